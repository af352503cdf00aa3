// SPDX-License-Identifier: Apache-2.0
// What runs along axes: reductions over every set of axes, softmax along each, layer normalization and other
// normalizations.
#include <stdio.h>

#include "sweep.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const shapes[] = {"[7]",         "[3,17]",    "[2,3,5]", "[2,17,3,4]",
                                     "[2,3,2,4,3]", "[1,1,5,1]", "[]"};
static const int ranks[] = {1, 2, 3, 4, 5, 4, 0};

/* "[0,-2]": the axes of the bits of `set`, every other one counted from the end. */
static void print_axes(char *text, size_t size, int rank, unsigned set) {
  size_t length = (size_t)snprintf(text, size, "[");
  bool first = true;
  for (int d = 0; d < rank; d++) {
    if ((set >> d & 1U) != 0) {
      length += (size_t)snprintf(text + length, size - length, "%s%d", first ? "" : ",",
                                 (d + (int)set) % 2 == 0 ? d : d - rank);
      first = false;
    }
  }
  (void)snprintf(text + length, size - length, "]");
}

static void reductions(sweep_t *sweep) {
  static const char *const ops[] = {"ReduceSum",       "ReduceMean",  "ReduceMax", "ReduceMin",
                                    "ReduceProd",      "ReduceL1",    "ReduceL2",  "ReduceSumSquare",
                                    "ReduceLogSumExp", "ReduceLogSum"};
  for (size_t s = 0; s < COUNT(shapes); s++) {
    for (unsigned set = 0; set < 1U << ranks[s]; set++) {
      for (size_t o = 0; o < COUNT(ops); o++) {
        char axes[40];
        print_axes(axes, sizeof axes, ranks[s], set);
        bool logs = o + 1 == COUNT(ops);
        sweep_nodes(sweep, "%s{keepdims=%u}(x%s%s, #%s)", ops[o], sweep_below(sweep, 2), logs ? "+" : "",
                    shapes[s], axes);
      }
    }
    for (size_t o = 0; o < COUNT(ops); o++) {
      sweep_nodes(sweep, "%s{keepdims=%u}(x+%s)", ops[o], sweep_below(sweep, 2), shapes[s]);
      sweep_nodes(sweep, "%s{noop_with_empty_axes=1}(x+%s, #[])", ops[o], shapes[s]);
    }
    for (int axis = -ranks[s]; axis < ranks[s]; axis++) {
      sweep_nodes(sweep, "%s{axis=%d, keepdims=%u}(x%s)", axis % 2 == 0 ? "ArgMax" : "ArgMin", axis,
                  sweep_below(sweep, 2), shapes[s]);
    }
  }
  sweep_nodes(sweep, "ArgMax{axis=1, select_last_index=1}(x[3,17])");
  sweep_nodes(sweep, "ArgMin{axis=-1}(x:i64[3,400])");
  sweep_rules(sweep, "y = Softmax(x[5,70]); i = ArgMax{keepdims=0, axis=-1}(Mul(y, #2)) -> y, i");
  sweep_nodes(sweep, "ReduceSum(x[2,0,3], #[1])");
  sweep_nodes(sweep, "ReduceMean(x[0,3], #[1])");
  sweep_nodes(sweep, "ReduceSum(x[2,3], a:i64[1])");
  sweep_nodes(sweep, "ReduceMax(x~[3,17], #[1])");
  sweep_nodes(sweep, "ReduceMin(x~[3,17], #[0])");
  sweep_nodes(sweep, "ReduceSum(x:f64[3,4], #[1])");
  sweep_nodes(sweep, "ReduceSum{keepdims=0}(x[2,3,2,2,3,2], #[1,4])");
  sweep_nodes(sweep, "ReduceMean{keepdims=0}(x[2,17,3,3], #[2,3])");
  sweep_nodes(sweep, "ReduceMean{keepdims=0}(Conv(x[2,3,5,5], $w[17,3,2,2]), #[2,3])");
  sweep_nodes(sweep, "ReduceMax{keepdims=1}(Conv(x[2,3,5,5], $w[17,3,2,2]), #[-1,-2])");
  sweep_nodes(sweep, "ReduceSum{keepdims=1}(Conv(x[2,3,5,5], $w[17,3,2,2]), #[1])");
  sweep_nodes(sweep, "ReduceMean(x[2,300,400], #[1,2])");
}

static void epilogues(sweep_t *sweep) {
  static const char *const texts[] = {
      "Relu(ReduceSum(x[2,17,3,4], #[1]))",
      "Mul(ReduceMean(x[2,17,3,4], #[2,3]), #2)",
      "Sqrt(Add(ReduceMean(Mul(x[2,17,5], x), #[2]), #0.001))",
      "Sub(x[2,17,5], ReduceMax(x, #[2]))",
      "Add(ReduceSum{keepdims=0}(x[2,3,4], #[1]), y[2,4])",
      "Add(ReduceSum{keepdims=0}(x[2,3,4], #[1]), y[3,2,4])",
      "Add(ReduceSum(x[2,3,4], #[1]), y[4])",
      "Add(ReduceSum(x[2,3,4], #[1]), y[2,3,4])",
      "Div(ReduceSumSquare{keepdims=0}(x[2,3,4], #[0,2]), $y+[3])",
      "Sigmoid(Mul(ReduceL2(x[2,3,4], #[-1]), $y[2,3,1]))",
      "Sub(#1, ReduceMean{keepdims=0}(x[2,3,4]))",
      "Sigmoid(ReduceMean{keepdims=0}(x[2,17,4,4], #[2,3]))",
      "Mul(ReduceMean{keepdims=0}(x[2,17,4,4], #[2,3]), $s[17])",
      "Add(ReduceMax(x[2,17,4,4], #[2,3]), $s[17,1,1])",
  };
  for (size_t k = 0; k < COUNT(texts); k++) {
    sweep_rules(sweep, "%s", texts[k]);
  }
}

static void softmaxes(sweep_t *sweep) {
  static const char *const ops[] = {"Softmax", "LogSoftmax"};
  for (size_t o = 0; o < COUNT(ops); o++) {
    for (size_t s = 0; s < COUNT(shapes); s++) {
      for (int axis = -ranks[s]; axis < ranks[s]; axis++) {
        sweep_nodes(sweep, "%s{axis=%d}(x%s)", ops[o], axis, shapes[s]);
      }
    }
    sweep_nodes(sweep, "%s(x[3,1])", ops[o]);
    sweep_nodes(sweep, "%s{axis=1}(x[2,0,3])", ops[o]);
    sweep_nodes(sweep, "%s(Mul(x[3,17], #100))", ops[o]);
    sweep_nodes(sweep, "%s(Add(x[3,17], #1000))", ops[o]);
    sweep_nodes(sweep, "%s{axis=1}(Conv(x[1,3,6,6], $w[17,3,3,3]))", ops[o]);
    sweep_nodes(sweep, "%s(Conv(x[1,3,6,6], $w[17,3,3,3]))", ops[o]);
    sweep_nodes(sweep, "%s{axis=2}(x[2,3,2,2,3,2])", ops[o]);
    sweep_nodes(sweep, "%s(x[5,1000])", ops[o]);
    sweep_rules(sweep, "Mul(%s(x[3,17]), #2)", ops[o]);
  }
  sweep_nodes(sweep, "Hardmax(x[3,17])");
}

static void layer_norms(sweep_t *sweep) {
  static const char *const data[] = {"[3,17]", "[2,3,17]", "[2,3,4,5]", "[1,1,64]", "[2,1]"};
  static const int widths[][4] = {{3, 17}, {2, 3, 17}, {2, 3, 4, 5}, {1, 1, 64}, {2, 1}};
  static const int data_ranks[] = {2, 3, 4, 3, 2};
  for (size_t k = 0; k < COUNT(data); k++) {
    for (int axis = 0; axis < data_ranks[k]; axis++) {
      char tail[40];
      size_t length = (size_t)snprintf(tail, sizeof tail, "[");
      for (int d = axis; d < data_ranks[k]; d++) {
        length +=
            (size_t)snprintf(tail + length, sizeof tail - length, "%s%d", d == axis ? "" : ",", widths[k][d]);
      }
      (void)snprintf(tail + length, sizeof tail - length, "]");
      int named = sweep_below(sweep, 2) == 0 ? axis : axis - data_ranks[k];
      sweep_nodes(sweep, "LayerNormalization{axis=%d}(x%s, $s%s)", named, data[k], tail);
      sweep_nodes(sweep, "LayerNormalization{axis=%d, epsilon=0.01}(x%s, $s%s, $b%s)", named, data[k], tail,
                  tail);
      sweep_nodes(sweep, "LayerNormalization{axis=%d}(x%s, s%s, b%s)", named, data[k], tail, tail);
      sweep_nodes(sweep, "y, m = LayerNormalization{axis=%d}(x%s, $s%s, $b%s) -> y, m", named, data[k], tail,
                  tail);
      sweep_nodes(sweep, "y, m, d = LayerNormalization{axis=%d}(x%s, $s%s, $b%s) -> y, m, d", named, data[k],
                  tail, tail);
      sweep_nodes(sweep, "y, m, d = LayerNormalization{axis=%d}(x%s, $s%s, $b%s) -> y", named, data[k], tail,
                  tail);
    }
  }
  static const char *const others[] = {
      "LayerNormalization(x[2,3,17], $s[1], $b[1])",
      "LayerNormalization(x[2,3,17], $s[1,17], $b[1,1,17])",
      "LayerNormalization(x[2,3,17], $s[3,17], $b[17])",
      "LayerNormalization(x[2,3,17], $s[], $b[])",
      "LayerNormalization(x[2,3,17], $s[17], b[17])",
      "LayerNormalization(x[2,3,17], s[17])",
      "LayerNormalization(x[0,17], $s[17])",
      "LayerNormalization(Transpose{perm=[0,2,1]}(x[2,17,3]), $s[17], $b[17])",
      "Transpose{perm=[0,2,1]}(LayerNormalization(x[2,3,17], $s[17], $b[17]))",
      "LayerNormalization(Transpose{perm=[0,2,3,1]}(Conv(x[1,3,6,6], $w[17,3,3,3])), $s[17], $b[17])",
      "LayerNormalization(Add(x[2,3,17], MatMul(x, $w[17,17])), $s[17], $b[17])",
      "Relu(LayerNormalization(x[2,3,17], $s[17], $b[17]))",
      "LayerNormalization(Mul(x[2,3,17], #1000), $s[17], $b[17])",
      "RMSNormalization(x[2,3,17], $s[17])",
      "RMSNormalization{axis=1, epsilon=0.01}(x[2,3,17], $s[3,17])",
      "RMSNormalization{axis=0}(x[2,3,17], s[17])",
      "RMSNormalization(Mul(x[2,3,17], #1000), $s[1])",
      "Relu(RMSNormalization(Transpose{perm=[0,2,1]}(x[2,17,3]), $s[17]))",
      "InstanceNormalization(x[2,17,3,4], $s[17], $b[17])",
      "GroupNormalization{num_groups=3}(x[2,6,4,4], $s[6], $b[6])",
  };
  for (size_t k = 0; k < COUNT(others); k++) {
    sweep_nodes(sweep, "%s", others[k]);
    sweep_rules(sweep, "%s", others[k]);
  }
  /* A mean that is rounded to float32 is off by half an ulp of the input, which the deviation of 1 does not
   * make smaller. */
  sweep_set_slack(sweep, 4.0);
  sweep_nodes(sweep, "LayerNormalization(Add(x[2,3,17], #100), $s[17], $b[17])");
  sweep_rules(sweep, "LayerNormalization(Add(x[2,3,17], #100), $s[17], $b[17])");
  sweep_set_slack(sweep, 1.0);
}

static void batch_norms(sweep_t *sweep) {
  static const char *const data[] = {"[2,17]", "[2,17,5]", "[2,17,3,4]", "[1,17,2,3,4]", "[3,17,2,2,2,2]"};
  static const char *const ends[] = {"", "{epsilon=0.1}"};
  for (size_t k = 0; k < COUNT(data); k++) {
    for (size_t e = 0; e < COUNT(ends); e++) {
      sweep_nodes(sweep, "BatchNormalization%s(x%s, $s[17], $b[17], $m[17], $v+[17])", ends[e], data[k]);
      sweep_nodes(sweep, "BatchNormalization%s(x%s, s[17], $b[17], $m[17], v+[17])", ends[e], data[k]);
    }
  }
  sweep_nodes(
      sweep,
      "y, m2, v2 = BatchNormalization{training_mode=1}(x[4,3,5], $s[3], $b[3], $m[3], $v+[3]) -> y, m2, v2");
  sweep_nodes(sweep, "BatchNormalization(x[0,3,5], $s[3], $b[3], $m[3], $v+[3])");
  sweep_nodes(sweep, "BatchNormalization(x[1,1,5], $s[1], $b[1], $m[1], $v+[1])");
  sweep_nodes(sweep, "BatchNormalization(x[2,16,3,3], $s[16], $b[16], $m[16], $v+[16])");
}

void sweep_reduction(sweep_t *sweep) {
  reductions(sweep);
  epilogues(sweep);
  softmaxes(sweep);
  layer_norms(sweep);
  batch_norms(sweep);
}
