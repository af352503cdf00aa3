// SPDX-License-Identifier: Apache-2.0
// Operators that only move numbers: views, permutations with all kinds of readers behind them, parts and
// joins; alone, and between operators whose results have a layout of the backend's own.
#include <string.h>

#include "sweep.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Where the data comes from: plain memory, and results with blocked channels. %s: the operator. */
static const char *const sources[] = {"x[2,17,4,5]", "Conv{pads=[1,1,1,1]}(x[2,3,4,5], $w[17,3,3,3])",
                                      "Relu(Conv(x[2,8,4,5], $w[17,8,1,1]))",
                                      "MaxPool{kernel_shape=[2,2]}(Conv(x[2,3,5,6], $w[17,3,1,1]))"};

static void transposes(sweep_t *sweep) {
  /* Readers of the permuted value y; its dims are not known here. */
  static const char *const readers[] = {
      "y",
      "Relu(y)",
      "Add(y, y)",
      "Mul(y, Sigmoid(y))",
      "Softmax(y)",
      "ReduceMean(y, #[2,3])",
      "ReduceSum(y, #[1])",
      "Flatten(y)",
      "Transpose(y)",
      "Reshape(y, #[17,-1])",
      "Concat{axis=1}(y, y)",
      "GlobalAveragePool(y)",
      "MaxPool{kernel_shape=[2,2], pads=[0,0,1,1]}(y)",
      "MatMul(y, Transpose{perm=[0,1,3,2]}(y))",
  };
  for (int index = 0; index < 24; index++) {
    int order[4];
    bool used[4] = {false};
    int rest = index;
    for (int d = 0; d < 4; d++) {
      int choice = rest % (4 - d);
      rest /= 4 - d;
      int from = 0;
      while (used[from] || choice-- > 0) {
        from++;
      }
      used[from] = true;
      order[d] = from;
    }
    for (size_t r = 0; r < COUNT(readers); r++) {
      const char *source = sources[sweep_below(sweep, COUNT(sources))];
      sweep_nodes(sweep, "y = Transpose{perm=[%d,%d,%d,%d]}(%s); %s%s", order[0], order[1], order[2],
                  order[3], source, readers[r], sweep_below(sweep, 4) == 0 ? " -> y" : "");
    }
  }
  static const char *const others[] = {
      "Transpose(x[3,4])",
      "Transpose(x[5])",
      "Transpose(x[])",
      "Transpose{perm=[1,0,2]}(x[3,4,5])",
      "Transpose{perm=[4,0,3,1,2]}(x[2,3,4,5,2])",
      "Transpose{perm=[5,3,1,0,2,4]}(x[2,3,2,3,2,2])",
      "Transpose(x[2,0,3])",
      "Transpose{perm=[0,2,1]}(x[1,1,5])",
      "Transpose{perm=[1,0]}(x:f64[3,4])",
      "Conv(Transpose{perm=[0,3,1,2]}(x[1,5,6,3]), $w[17,3,3,3])",
      "Conv(Transpose{perm=[0,2,1,3]}(x[1,5,3,6]), $w[17,3,3,3])",
      "Transpose{perm=[0,2,3,1]}(Conv(Transpose{perm=[0,3,1,2]}(x[1,5,6,17]), $w[4,17,3,3]))",
      "Add(Transpose{perm=[1,0]}(x[3,17]), y[17,3])",
      "Add(Transpose{perm=[1,0]}(x[3,17]), y[3])",
      "Gemm(Transpose{perm=[1,0]}(x[3,17]), $w[3,5])",
      "y = Transpose{perm=[1,0]}(x[3,17]); Relu(x) -> y",
  };
  for (size_t k = 0; k < COUNT(others); k++) {
    sweep_nodes(sweep, "%s", others[k]);
    sweep_rules(sweep, "%s", others[k]);
  }
}

static void reshapes(sweep_t *sweep) {
  static const char *const texts[] = {
      "Reshape(%s, #[2,-1])",
      "Reshape(%s, #[0,17,-1])",
      "Reshape(%s, #[-1])",
      "Reshape(%s, #[2,17,20])",
      "Reshape(%s, #[1,2,17,4,5])",
      "Reshape(%s, #[5,4,17,2])",
      "Reshape{allowzero=1}(%s, #[34,20])",
      "Flatten(%s)",
      "Flatten{axis=0}(%s)",
      "Flatten{axis=2}(%s)",
      "Flatten{axis=4}(%s)",
      "Flatten{axis=-1}(%s)",
      "Unsqueeze(%s, #[0])",
      "Unsqueeze(%s, #[-1,1])",
      "Squeeze(Unsqueeze(%s, #[2]), #[2])",
      "Squeeze(ReduceSum(%s, #[1]))",
      "Squeeze(GlobalAveragePool(%s), #[-1,2])",
      "Identity(%s)",
      "After(%s, d[3])",
      "Dropout(%s)",
      "Relu(Reshape(%s, #[2,17,20]))",
      "Softmax(Reshape(%s, #[2,-1]))",
      "Add(Reshape(%s, #[34,20]), y[20])",
      "Gemm(Flatten(%s), $v[340,5])",
      "Reshape(Transpose{perm=[0,2,3,1]}(%s), #[2,20,17])",
      "Transpose{perm=[0,2,1]}(Reshape(%s, #[2,17,20]))",
      "Pad(%s, #[0,0,0,0,0,0,0,0])",
      "Pad(%s, #[0,0,1,2,0,0,3,0])",
      "Pad{mode=edge}(%s, #[0,0,1,2,0,0,3,0])",
      "Pad{mode=wrap}(%s, #[0,1,-1,9,0,0,3,4])",
      "DepthToSpace{blocksize=1}(%s)",
      "SpaceToDepth{blocksize=1}(%s)",
      "Expand(%s, #[2,17,4,5])",
      "Expand(%s, #[3,1,1,1,1])",
      "Tile(%s, #[1,2,1,1])",
      "Gather{axis=1}(%s, #[3,0,16])",
  };
  for (size_t k = 0; k < COUNT(texts); k++) {
    const char *place = strchr(texts[k], '%');
    for (size_t s = 0; s < COUNT(sources); s++) {
      const char *outputs = sweep_below(sweep, 3) == 0 ? " -> h" : "";
      sweep_nodes(sweep, "h = %s; %.*sh%s%s", sources[s], (int)(place - texts[k]), texts[k], place + 2,
                  outputs);
    }
  }
  sweep_nodes(sweep, "Reshape(x[], #[1,1])");
  sweep_nodes(sweep, "Reshape(x[1,1], #[])");
  sweep_nodes(sweep, "Reshape(x[2,0,3], #[0,-1])");
  sweep_nodes(sweep, "Reshape(x[2,3], Add(Mul(s:i64[2], #[0,0]), #[3,2]))");
  sweep_nodes(sweep, "Tile(x[0,3], #[2,2])");
  sweep_nodes(sweep, "DepthToSpace{blocksize=2, mode=CRD}(x[1,8,0,4])");
  sweep_nodes(sweep, "Squeeze(x[1,1])");
  sweep_nodes(sweep, "Unsqueeze(x[], #[0])");
  sweep_nodes(sweep, "Flatten{axis=0}(x[])");
}

static void joins(sweep_t *sweep) {
  static const char *const operands[] = {"y[2,17,4,5]", "Relu(h)", "h", "$c[2,17,4,5]",
                                         "Conv(y[2,5,4,5], $v[17,5,1,1])"};
  for (int axis = -4; axis < 4; axis++) {
    for (size_t s = 0; s < COUNT(sources); s++) {
      for (size_t k = 0; k < COUNT(operands); k++) {
        sweep_nodes(sweep, "h = %s; Concat{axis=%d}(h, %s)%s", sources[s], axis, operands[k],
                    sweep_below(sweep, 3) == 0 ? " -> h" : "");
      }
    }
  }
  static const char *const texts[] = {
      "Concat{axis=0}(x[3])",
      "Concat{axis=0}(x[3], y[5])",
      "Concat{axis=1}(x[2,3], y[2,0], z[2,4])",
      "Concat{axis=1}(x[2,3], x, x)",
      "Concat{axis=1}(x[1,16,4,4], y[1,16,4,4], z[1,3,4,4])",
      "Concat{axis=1}(x[1,3,4,4], Conv(x, $w[16,3,1,1]), Conv(x, $v[17,3,1,1]))",
      "Relu(Concat{axis=1}(Conv(x[1,3,4,4], $w[16,3,1,1]), Conv(x, $v[32,3,1,1])))",
      "Conv(Concat{axis=1}(Conv(x[1,3,4,4], $w[16,3,1,1]), Conv(x, $v[32,3,1,1])), $u[5,48,1,1])",
      "Concat{axis=2}(x[2,3,4,2,2], y[2,3,1,2,2])",
      "Concat{axis=3}(x[2,3,2,2,2,2], y[2,3,2,1,2,2])",
      "Concat{axis=0}(x:f64[3], y:f64[5])",
      "h = Concat{axis=1}(x[1,4,3,3], y[1,4,3,3]); g = Concat{axis=1}(h, y); Relu(g) -> h",
      "Concat{axis=-1}($a[2,3], $b[2,3], x[2,1])",
  };
  for (size_t k = 0; k < COUNT(texts); k++) {
    sweep_nodes(sweep, "%s", texts[k]);
    sweep_rules(sweep, "%s", texts[k]);
  }
}

static void parts(sweep_t *sweep) {
  static const char *const texts[] = {
      "Slice(%s, #[1], #[3], #[2])",
      "Slice(%s, #[0,1], #[1,16], #[0,1])",
      "Slice(%s, #[-3], #[100], #[-1])",
      "Slice(%s, #[-100], #[-1], #[1])",
      "Slice(%s, #[1,2,3,4], #[2,3,4,5])",
      "Slice(%s, #[0], #[17], #[1], #[2])",
      "Slice(%s, #[3], #[0], #[3], #[-1])",
      "Slice(%s, #[1], #[17], #[1], #[2])",
      "Slice(%s, #[0], #[4], #[2], #[2])",
      "Slice(%s, #[1], #[5], #[-1], #[3])",
      "Slice(%s, #[0,1,0], #[2,4,5], #[0,2,3], #[2,2,4])",
      "Conv(Slice(%s, #[0,0], #[4,5], #[2,3], #[2,2]), $u[5,17,1,1])",
      "Gather{axis=1}(%s, Squeeze(#[3]))",
      "Gather{axis=-1}(%s, Squeeze(#[-2]))",
      "Relu(Gather{axis=2}(%s, Squeeze(#[0])))",
      "Slice(%s, #[3], #[3], #[3])",
      "Slice(%s, #[16], #[17], #[1])",
      "Relu(Slice(%s, #[1], #[9], #[1]))",
      "Slice(Slice(%s, #[1], #[9], #[1]), #[1], #[3], #[2])",
      "a, b = Split{axis=1}(%s, #[8,9]) -> a, b",
      "a, b = Split{axis=1}(%s, #[16,1]) -> a, b",
      "a, b, c = Split{axis=-1, num_outputs=3}(%s) -> a, b, c",
      "a, b = Split{num_outputs=2}(%s) -> a, b",
      "a, b, c = Split{axis=2}(%s, #[1,0,3]) -> a, b, c",
      "a, b = Split{axis=1}(%s, #[8,9]); Relu(b) -> a",
      "a, b = Split{axis=3}(%s, #[2,3]); Concat{axis=3}(b, a)",
      "a, b = Split{axis=2}(%s, #[2,2]); Mul(a, Sigmoid(b))",
      "a, b = Split{axis=2}(%s, #[2,2]) -> b",
      "Gather{axis=0}(%s, #[1])",
  };
  for (size_t k = 0; k < COUNT(texts); k++) {
    const char *place = strchr(texts[k], '%');
    for (size_t s = 0; s < COUNT(sources); s++) {
      sweep_nodes(sweep, "h = %s; %.*sh%s%s", sources[s], (int)(place - texts[k]), texts[k], place + 2,
                  strstr(texts[k], "->") != NULL ? ", h" : "");
    }
  }
  sweep_nodes(sweep, "Slice(x[7], #[1], #[5])");
  sweep_nodes(sweep, "Slice(x[7], s:i64[1], #[5])");
  sweep_nodes(sweep, "Slice(x[2,3,4,5,2,2], #[1,1], #[3,4], #[2,3])");
  sweep_nodes(sweep, "Slice(x[2,0], #[0], #[1], #[0])");
  sweep_nodes(sweep, "a, b = Split{num_outputs=2}(x[5]) -> a, b");
}

/* Arithmetic over permuted, blocked and cut layouts, and over one value by several names. */
static void layouts(sweep_t *sweep) {
  static const char *const texts[] = {
      "v = Transpose{perm=[0,2,1,3]}(Conv{pads=[1,1,1,1]}(x[1,16,9,8], $w^[32,16,3,3])); HardSwish(Max(v, "
      "Sigmoid(v)))",
      "v = Transpose{perm=[3,2,0,1]}(Conv{pads=[1,1,1,1]}(x[1,16,9,8], $w^[32,16,3,3])); Gelu(Max(v, "
      "HardSwish(v)))",
      "v = Transpose{perm=[1,3,2,0]}(ConvTranspose{strides=[2,2]}(x[1,16,6,6], $w^[16,5,2,2])); "
      "Min(Mul(Sigmoid(Neg(v)), v), v)",
      "u = Identity(x[2,32,7,7]); v = Conv(u, $w^[17,32,1,1]); c = Conv{pads=[1,1,1,1]}(u, $k^[16,32,3,3]); "
      "Sigmoid(Transpose{perm=[3,1,2,0]}(v)) -> c",
      "v = Conv(x[1,16,4,17], $w^[16,16,1,1]); Add(v, MatMul(v, $k^[17,17]))",
      "v = Conv(x[1,16,4,17], $w^[16,16,1,1]); Add(MatMul(v, $k^[17,17]), v) -> v",
      "v = Min(ReduceMean(x[1,16,6,6], #[2,3]), MatMul(x, $w^[6,17])); Transpose{perm=[0,2,1,3]}(v)",
      "v = Transpose{perm=[2,0,1]}(x[2,5,16]); BatchNormalization(Add(Identity(v), v), $s[2], $b[2], $m[2], "
      "$d+[2])",
      "v = Transpose{perm=[2,1,0]}(Relu(x[2,5,5])); Min(Sub(v, $w[5,5,2]), $k[1,5,1])",
      "v = Transpose{perm=[1,0,2,3]}(Relu(x[2,5,4,3])); Mul(Add(v, $w[5,2,4,3]), $k[2,1,1])",
      "v = Transpose{perm=[0,2,1,3]}(Relu(x[2,5,4,3])); Mul(Add(v, $w[2,4,5,3]), $k[4,1,1])",
      "v = Transpose{perm=[0,3,1,2]}(Relu(x[2,5,4,3])); Mul(Add(v, $w[2,3,5,4]), $k[3,1,1])",
      "v = Transpose{perm=[0,1,3,2]}(Relu(x[2,5,4,3])); Mul(Add(v, $w[2,5,3,4]), $k[5,1,1])",
      "v = Reshape(Relu(x[5,5]), #[5,1,5]); Min(v, BatchNormalization(Transpose{perm=[2,1,0]}(v), $s[1], "
      "$b[1], $m[1], "
      "$d+[1]))",
      "v = Slice(ConvTranspose{strides=[2,2]}(x[1,5,2,2], $w^[5,3,2,2]), #[0], #[1], #[1]); MatMul(v, "
      "$k^[4,4])",
      "v = Slice(ConvTranspose{strides=[2,2]}(x[2,3,7,5], $w^[3,17,2,2]), #[0], #[16], #[1]); Tanh(v)",
      "v = Slice(ConvTranspose{strides=[2,2]}(x[2,3,7,5], $w^[3,17,2,2]), #[16], #[17], #[1]); Tanh(v)",
      "Relu(Max(ConvTranspose{strides=[2,2]}(x[1,3,3,3], $w[3,5,2,2]), y[6]))",
      "Sub(Resize{mode=linear}(Conv(x[2,3,4,2], $w[16,3,1,1]), _, _, #[2,16,8,4]), $k[8,4])",
      "v = x[1,17,4,3]; c = Clip(v, #-0.5, #1.5); Sub(c, v)",
      "v = Mul(x[3,17], y[3,17]); Sub(v, Clip(v, #-0.5, #0.5))",
  };
  for (size_t k = 0; k < COUNT(texts); k++) {
    sweep_nodes(sweep, "%s", texts[k]);
    sweep_rules(sweep, "%s", texts[k]);
  }
}

void sweep_movement(sweep_t *sweep) {
  transposes(sweep);
  reshapes(sweep);
  joins(sweep);
  parts(sweep);
  layouts(sweep);
}
