// SPDX-License-Identifier: Apache-2.0
// Operators that know places: what picks and puts by indices, triangles and diagonals, sums and reversals
// along an axis, cutting and padding around the middle. Of every dtype, since most of them only move
// elements.
#include "sweep.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const dtypes[] = {"f32", "f64", "f16", "bf16", "i8",  "i16",
                                     "i32", "i64", "u8",  "u16",  "u32", "u64"};
static const char *const reductions[] = {"none", "add", "mul", "max", "min"};

static void texts(sweep_t *sweep, const char *const *list, size_t count) {
  for (size_t k = 0; k < count; k++) {
    sweep_nodes(sweep, "%s", list[k]);
  }
}

static void selections(sweep_t *sweep) {
  static const char *const list[] = {
      "Compress(x[3,4], Cast{to=9}(#[0,1,1,0,1]))",
      "Compress{axis=0}(x[3,4], Cast{to=9}(#[0,1,1]))",
      "Compress{axis=-1}(x[3,4], Cast{to=9}(#[1,0,1,1]))",
      "y, i = TopK{sorted=0}(x[3,5], #[4]) -> y",
      "y, i = Unique(x[7]) -> y",
      "y, i = Unique{axis=1, sorted=0}(x[2,4]) -> y",
      "Range(a[], Add(a, #4.2), Add(Abs(b[]), #1))",
  };
  texts(sweep, list, COUNT(list));
}

static void gathers(sweep_t *sweep) {
  static const char *const list[] = {
      "GatherND(x[2,3,4], Reshape(#[0,2,1,1], #[2,2]))",
      "GatherND{batch_dims=1}(x[2,3,4], i:i64[2,5,1])",
      "GatherND{batch_dims=2}(x[2,3,4], i:i64[2,3,1])",
      "GatherND{batch_dims=2}(x[2,0,4], i:i64[2,0,1])",
      "GatherND{batch_dims=1}(x[3,2,5,2], i:i64[3,4,2])",
      "GatherND(x[3,4], i:i64[7,2])",
      "GatherND(x[3,4], i:i64[2])",
      "GatherND(x[3,4], i:i64[0,1])",
      "GatherND(x[3,0], i:i64[2,1])",
      "GatherND(x[2,2,2,2,2,2,2,2], i:i64[3,8])",
      "GatherND(x[2,2,2,2,2,2,2,2], i:i64[3,5])",
      "GatherND(x[3,4,5], Neg(i:i64[6,2]))",
      "Relu(GatherND(Conv(x[1,3,5,5], $w[17,3,3,3]), Concat{axis=1}(Sub(i:i64[4,1], i), j:i64[4,2])))",
  };
  texts(sweep, list, COUNT(list));
  for (size_t t = 0; t < COUNT(dtypes); t++) {
    sweep_nodes(sweep, "GatherND(x:%s[3,2,3], i:i64[4,2])", dtypes[t]);
    sweep_nodes(sweep, "GatherElements{axis=-1}(x:%s[3,3], Neg(i:i32[2,3]))", dtypes[t]);
  }
  for (int axis = -1; axis < 2; axis++) {
    sweep_nodes(sweep, "GatherElements{axis=%d}(x[3,3], i:i64[2,3])", axis);
  }
}

/* Indices that are inputs name places several times; of floats, without a reduction, none does, because an
 * update that another one replaces has no gradient of its own. */
static void scatters(sweep_t *sweep) {
  static const char *const list[] = {
      "TensorScatter(x[2,4,3], u[2,2,3])",
      "TensorScatter(x[2,4,3], u[2,2,3], #[2,1])",
      "TensorScatter{axis=1, mode=circular}(x[2,4,3], u[2,2,3], #[3,1])",
      "TensorScatter(x[2,3,7,8], u[2,3,1,8], #[0,6])",
      "TensorScatter(x[2,3,7,8], u[2,3,7,8])",
      "TensorScatter(x[2,3,7,8], u[2,3,0,8])",
      "TensorScatter(x[0,4,3], u[0,2,3])",
      "TensorScatter{axis=-1, mode=circular}(x[3,2,5], u[3,2,3], #[4,0,2])",
      "TensorScatter{mode=circular}(x[2,3,5,6], u[2,3,5,6], #[4,1])",
      "TensorScatter(Relu(x[1,2,6,8]), MatMul(u[1,2,1,4], $w[4,8]), #[3])",
      "ScatterND(x:i32[3,4], i:i64[7,1], u:i32[7,4])",
      "ScatterND(x:i64[3,4], i:i64[9,2], u:i64[9])",
      "ScatterND(x:u8[3,2,4], Neg(i:i64[2,5,2]), u:u8[2,5,4])",
      "ScatterND(x[3,4], i:i64[0,1], u[0,4])",
      "ScatterND(x[3,0], i:i64[2,1], u[2,0])",
      "ScatterND(x:i16[2,2,2,2,2,2,2,2], i:i64[300,8], u:i16[300])",
      "ScatterND(Relu(x[5,8]), Reshape(#[4,-5,2], #[3,1]), MatMul(u[3,6], $w[6,8]))",
      "y = Relu(x[5,8]); ScatterND(y, Reshape(#[1,3,2], #[3,1]), u[3,8]) -> y",
      "ScatterElements(x:i32[5], i:i64[9], u:i32[9])",
      "ScatterElements{axis=1}(x:i8[2,3,4], i:i64[2,70,3], u:i8[2,70,3])",
      "ScatterElements{axis=-1}(x:u32[2,3,4], Neg(i:i64[1,2,9]), u:u32[1,2,9])",
      "ScatterElements(x[3,4], i:i64[0,4], u[0,4])",
      "ScatterElements{axis=2}(x:i64[2,2,2,2,2,2,2,2], i:i32[2,2,5,2,2,2,2,2], u:i64[2,2,5,2,2,2,2,2])",
      "ScatterElements{reduction=add}(x[7], i:i64[300], u[300])",
      "ScatterElements{axis=1, reduction=add}(x[3,4,5], i:i64[3,40,2], u[3,40,2])",
      "ScatterElements{axis=1, reduction=max}(x[3,4], i:i64[3,40], u![3,40])",
      "ScatterND{reduction=add}(x[3,4,2], i:i64[2,20,2], u[2,20,2])",
      "ScatterND{reduction=min}(x[3,4,2], Neg(i:i64[20,3]), u![20])",
      "ScatterElements{axis=1, reduction=add}(x[3,4,5], i:i64[3,400,2], u[3,400,2])",
      "ScatterElements{reduction=max}(x[9,4], i:i64[700,4], u![700,4])",
      "ScatterElements{reduction=add}(x:f16[7], Sub(i:i64[300], #3:i64), u:f16[300])",
      "ScatterND{reduction=add}(x[3,4,2], i:i64[2,200,2], u[2,200,2])",
      "ScatterND{reduction=mul}(x:i32[30,7], i:i64[3000,1], u:i32[3000,7])",
      "ScatterND{reduction=add}(Relu(x[30,8]), i:i64[1500,1], Exp(u[1500,8]))",
      "ScatterElements{axis=1, reduction=max}(x!:f16[3,4], i:i64[3,40], u:f16[3,40])",
      "ScatterND{reduction=min}(x!:bf16[3,4,2], i:i64[20,3], u:bf16[20])",
  };
  texts(sweep, list, COUNT(list));
  for (int axis = -1; axis < 2; axis++) {
    for (size_t k = 0; k < COUNT(reductions); k++) {
      sweep_nodes(sweep, "ScatterElements{axis=%d, reduction=%s}(x[3,3], %s, u[2,2])", axis, reductions[k],
                  k == 0 ? "Reshape(#[0,1,2,0], #[2,2])" : "i:i64[2,2]");
    }
  }
  for (size_t t = 0; t < COUNT(dtypes); t++) {
    sweep_nodes(sweep, "TensorScatter(x:%s[2,5,3], u:%s[2,2,3], #[2,3])", dtypes[t], dtypes[t]);
  }
  for (size_t k = 0; k < COUNT(reductions); k++) {
    sweep_nodes(sweep, "ScatterND{reduction=%s}(x[3,4], Reshape(#[2,%d], #[2,1]), u[2,4])", reductions[k],
                k == 0 ? 0 : 2);
    for (size_t t = 0; t < COUNT(dtypes); t++) {
      bool once = k == 0 && dtypes[t][0] != 'i' && dtypes[t][0] != 'u';
      sweep_nodes(sweep, "ScatterND{reduction=%s}(x:%s[6,2], %s, u:%s[5,2])", reductions[k], dtypes[t],
                  once ? "Reshape(#[5,1,-6,3,2], #[5,1])" : "i:i64[5,1]", dtypes[t]);
      sweep_nodes(sweep, "ScatterElements{reduction=%s}(x:%s[6,2], %s, u:%s[5,2])", reductions[k], dtypes[t],
                  once ? "Reshape(#[5,1,0,3,-3,0,1,5,2,4], #[5,2])" : "i:i64[5,2]", dtypes[t]);
    }
    sweep_nodes(sweep, "Not(ScatterND{reduction=%s}(Less(x[3,2], #0), i:i64[5,1], Less(u[5,2], #0)))",
                reductions[k]);
  }
}

static void diagonals(sweep_t *sweep) {
  static const char *const shapes[] = {"[4,4]", "[3,4,5]", "[2,5,3]", "[1,7]",
                                       "[7,1]", "[2,0,3]", "[2,3,0]", "[1,2,1,1,2,1,3,4]"};
  static const int kinds[] = {1, 10, 11, 16,
                              6, 7,  9}; /* of ONNX: float32, float16, double, bfloat16, … bool */
  sweep_nodes(sweep, "Trilu{upper=0}(x[3,4,5], Squeeze(#[-1]))");
  for (size_t s = 0; s < COUNT(shapes); s++) {
    for (int upper = 0; upper < 2; upper++) {
      sweep_nodes(sweep, "Trilu{upper=%d}(x%s)", upper, shapes[s]);
      for (int k = -9; k <= 9; k += k < -2 || k > 1 ? 6 : 1) {
        sweep_nodes(sweep, "Trilu{upper=%d}(x%s, #%d:i64)", upper, shapes[s], k);
      }
    }
  }
  for (size_t t = 0; t < COUNT(dtypes); t++) {
    sweep_nodes(sweep, "Trilu{upper=0}(x:%s[5,6])", dtypes[t]);
    sweep_nodes(sweep, "EyeLike(x:%s[3,4])", dtypes[t]);
  }
  sweep_nodes(sweep, "Not(Trilu(Less(x[5,6], #0)))");
  for (size_t t = 0; t < COUNT(kinds); t++) {
    sweep_nodes(sweep, "EyeLike{k=%d, dtype=%d}(x[%d,4])", (int)t - 3, kinds[t], (int)t);
  }
  sweep_nodes(sweep, "Softmax(Add(MatMul(x[2,7,5], y[2,5,7]), Trilu(m[7,7], #1:i64)))");
}

static void ones(sweep_t *sweep) {
  static const char *const places[] = {"f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
  for (int axis = -1; axis < 3; axis++) {
    sweep_nodes(sweep, "OneHot{axis=%d}(i:i64[2,3], Squeeze(#[2]), v[2])", axis);
    sweep_nodes(sweep, "OneHot{axis=%d}(Neg(i:i64[2,3]), #3:i64, v[2])", axis);
  }
  sweep_nodes(sweep, "OneHot(i:i64[3], Squeeze(#[3]), v[2])");
  sweep_nodes(sweep, "OneHot(i:i64[], #3:i64, v[2])");
  sweep_nodes(sweep, "OneHot(i:i64[0,2], #3:i64, v[2])");
  sweep_nodes(sweep, "OneHot(i:i64[2], #0:i64, v[2])");
  sweep_nodes(sweep, "OneHot(Add(i:i64[1,2,1,2,1,2,2], #1:i64), #2:f32, v[2])");
  for (size_t t = 0; t < COUNT(places); t++) {
    sweep_nodes(sweep, "OneHot(Cast{to=%d}(Mul(x[4,9], #4)), #5:i64, v[2])", t < 2 ? (int)t * 10 + 1 : 6);
    sweep_nodes(sweep, "OneHot(i:%s[4,9], #15:i64, #[3,7])", places[t]);
  }
  for (size_t t = 0; t < COUNT(dtypes); t++) {
    sweep_nodes(sweep, "OneHot(i:i32[5], #4:i64, v:%s[2])", dtypes[t]);
  }
}

static void sums(sweep_t *sweep) {
  static const char *const shapes[] = {"[1]",     "[300]",   "[3,33]",  "[2,700]", "[2,256]",
                                       "[300,3]", "[2,3,5]", "[2,0,3]", "[0,40]",  "[1,2,1,2,1,2,1,40]"};
  for (int k = 0; k < 4; k++) {
    sweep_nodes(sweep, "CumSum{exclusive=%d, reverse=%d}(x[3,4], Squeeze(#[%d]))", k % 2, k / 2, k % 2);
    for (size_t s = 0; s < COUNT(shapes); s++) {
      sweep_nodes(sweep, "CumSum{exclusive=%d, reverse=%d}(x%s, #%d:i64)", k % 2, k / 2, shapes[s],
                  s % 2 == 0 ? 0 : -1);
      sweep_nodes(sweep, "CumSum{exclusive=%d, reverse=%d}(x%s, #-1:i32)", k % 2, k / 2, shapes[s]);
    }
    for (size_t t = 0; t < COUNT(dtypes); t++) {
      sweep_nodes(sweep, "CumSum{exclusive=%d, reverse=%d}(x:%s[3,70], #%d:i64)", k % 2, k / 2, dtypes[t],
                  (int)(t + (size_t)k) % 2);
    }
  }
  sweep_nodes(sweep, "Relu(Sub(CumSum(Cast{to=7}(Less(x[3,40], #0)), #1:i64), #1:i64))");
}

static void reversals(sweep_t *sweep) {
  sweep_nodes(sweep, "ReverseSequence(x[4,3,2], #[2,1,4])");
  sweep_nodes(sweep, "ReverseSequence{batch_axis=0, time_axis=1}(x[2,4,3], #[3,1])");
  sweep_nodes(sweep, "ReverseSequence{batch_axis=0, time_axis=1}(x[3,4], Mul(l:i64[3], #[4,3,2]))");
  sweep_nodes(sweep, "ReverseSequence(x[4,3,1,2,1,1,2,2], Mul(l:i64[3], #[4,3,2]))");
  sweep_nodes(sweep, "ReverseSequence(x[0,3,2], #[0,0,0])");
  sweep_nodes(sweep, "ReverseSequence(x[4,3,0], #[2,1,4])");
  for (size_t t = 0; t < COUNT(dtypes); t++) {
    sweep_nodes(sweep, "ReverseSequence(x:%s[4,3,%d], #[2,0,4])", dtypes[t], (int)(t % 4) + 1);
  }
}

static void middles(sweep_t *sweep) {
  static const char *const list[] = {
      "CenterCropPad(x[3,4,4], #[2,7,4])",
      "CenterCropPad{axes=[0,2]}(x[3,4,4], #[5,3])",
      "CenterCropPad{axes=[-1]}(x[3,4,5], #[2])",
      "CenterCropPad(x[3,4], #[6,1])",
      "CenterCropPad(x[0,4], #[2,3])",
      "CenterCropPad(x[3,4], #[0,3])",
      "CenterCropPad{axes=[7,3]}(x[1,2,1,4,1,2,1,5], #[3,5])",
      "Relu(CenterCropPad{axes=[2,3]}(Conv(x[1,3,6,6], $w[17,3,3,3]), #[7,3]))",
  };
  texts(sweep, list, COUNT(list));
  for (size_t t = 0; t < COUNT(dtypes); t++) {
    sweep_nodes(sweep, "CenterCropPad(x:%s[3,4], #[2,7])", dtypes[t]);
  }
}

void sweep_indices(sweep_t *sweep) {
  selections(sweep);
  gathers(sweep);
  scatters(sweep);
  diagonals(sweep);
  ones(sweep);
  sums(sweep);
  reversals(sweep);
  middles(sweep);
}
