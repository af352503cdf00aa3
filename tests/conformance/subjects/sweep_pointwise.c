// SPDX-License-Identifier: Apache-2.0
// Elementwise operators alone: every one over shapes of rank 0 to 5, with ordinary numbers and with
// infinities, NaN, huge and tiny ones; binary ones over all pairs of ranks and ways to broadcast.
#include "sweep.h"

#include <stdio.h>
#include <string.h>

static const char *const shapes[] = {
    "[]",     "[1]",         "[3]",       "[17]",          "[257]",     "[1,1]",        "[2,3]",
    "[5,17]", "[2,0,3]",     "[2,3,5]",   "[3,17,4]",      "[2,3,4,5]", "[1,17,3,3]",   "[3,16,2,2]",
    "[0]",    "[2,3,2,3,2]", "[1,1,1,1]", "[2,3,4,5,2,2]", "[1,8,7]",   "[2,17,1,3,2]",
};

static const char *const unary[] = {
    "Abs",
    "Exp",
    "HardSwish",
    "Swish",
    "Swish{alpha=1.702}",
    "Swish{alpha=-0.5}",
    "Mish",
    "Relu",
    "Round",
    "Sigmoid",
    "Softplus",
    "Tanh",
    "Neg",
    "Identity",
    "LeakyRelu",
    "LeakyRelu{alpha=0.3}",
    "LeakyRelu{alpha=-0.5}",
    "LeakyRelu{alpha=0}",
    "Elu",
    "Elu{alpha=0.5}",
    "Elu{alpha=-1.5}",
    "Selu",
    "Selu{alpha=1.1, gamma=-2}",
    "Celu",
    "Celu{alpha=0.5}",
    "HardSigmoid",
    "HardSigmoid{alpha=0.16666667, beta=0.5}",
    "HardSigmoid{alpha=-0.5, beta=0.25}",
    "Gelu",
    "Gelu{approximate=tanh}",
    "Erf",
    "Ceil",
    "Floor",
    "Sign",
    "Softsign",
    "Sin",
    "ThresholdedRelu{alpha=0.5}",
};

/* Only of positive numbers. */
static const char *const positive[] = {"Log", "Sqrt", "Reciprocal"};

static const char *const binary[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void unaries(sweep_t *sweep) {
  for (size_t s = 0; s < COUNT(shapes); s++) {
    for (size_t k = 0; k < COUNT(unary); k++) {
      sweep_nodes(sweep, "%s(x%s)", unary[k], shapes[s]);
    }
    for (size_t k = 0; k < COUNT(positive); k++) {
      sweep_nodes(sweep, "%s(x+%s)", positive[k], shapes[s]);
    }
  }
  for (size_t k = 0; k < COUNT(unary); k++) {
    /* Infinity times zero: NaN by the formula, zero by oneDNN's. */
    if (strcmp(unary[k], "LeakyRelu{alpha=0}") != 0) {
      sweep_nodes(sweep, "%s(x~[6,17])", unary[k]);
    }
    sweep_nodes(sweep, "%s(x%%[6,17])", unary[k]);
  }
  for (size_t k = 0; k < COUNT(positive); k++) {
    sweep_nodes(sweep, "%s(x~[6,17])", positive[k]);
    sweep_nodes(sweep, "%s(x%%[6,17])", positive[k]);
  }
}

static void clips(sweep_t *sweep) {
  static const char *const bounds[] = {
      "",
      ", #-0.5, #0.5",
      ", #-0.5",
      ", _, #0.5",
      ", #0",
      ", #0, #6",
      ", #1, #-1",
      ", #0, #inf",
      ", #-inf, #0.5",
      ", #-inf, #inf",
      ", low[], high[]",
      ", _, high[]",
      ", #nan",
  };
  static const char *const data[] = {"x[2,3,4]", "x[]", "x~[4,17]", "x%[1,17,3,3]"};
  for (size_t k = 0; k < COUNT(bounds); k++) {
    for (size_t d = 0; d < COUNT(data); d++) {
      sweep_nodes(sweep, "Clip(%s%s)", data[d], bounds[k]);
    }
  }
}

/* A shape of `rank` trailing dims, ones where `ones` has a bit. */
static void print_shape(char *text, size_t size, int rank, unsigned ones) {
  static const int dims[] = {2, 3, 1, 4, 17};
  size_t length = (size_t)snprintf(text, size, "[");
  for (int d = 0; d < rank; d++) {
    int place = 5 - rank + d;
    int dim = (ones >> place & 1U) != 0 ? 1 : dims[place];
    length += (size_t)snprintf(text + length, size - length, "%s%d", d == 0 ? "" : ",", dim);
  }
  (void)snprintf(text + length, size - length, "]");
}

/* Every pair of ranks, with sizes of one on either side, on both, and nowhere; operands at run time and
 * constant, on each side. */
static void broadcasts(sweep_t *sweep) {
  static const unsigned masks[][2] = {{0, 0}, {31, 0}, {0, 31}, {21, 10}, {10, 21}, {1, 16}, {2, 2}, {24, 3}};
  unsigned turn = 0;
  for (int a_rank = 0; a_rank <= 5; a_rank++) {
    for (int b_rank = 0; b_rank <= 5; b_rank++) {
      for (size_t m = 0; m < COUNT(masks); m++) {
        char a[40];
        char b[40];
        print_shape(a, sizeof a, a_rank, masks[m][0]);
        print_shape(b, sizeof b, b_rank, masks[m][1]);
        for (size_t k = 0; k < 2; k++, turn++) {
          /* Divisors stay away from zero. */
          const char *op = binary[turn % COUNT(binary)];
          const char *away = strcmp(op, "Div") == 0 ? "+" : "";
          uint32_t side = sweep_below(sweep, 3);
          sweep_nodes(sweep, "%s(%sa%s, %sb%s%s)", op, side == 1 ? "$" : "", a, side == 2 ? "$" : "", away,
                      b);
        }
      }
    }
  }
}

static void binaries(sweep_t *sweep) {
  static const char *const operands[] = {
      "a[2,3,4,5], #0.5",
      "#0.5, a[2,3,4,5]",
      "a[2,3,4,5], #0",
      "#0, a[2,3,4,5]",
      "a[2,3,4,5], #-2",
      "a[2,3,4,5], a",
      "a[2,3,4,5], b%[2,3,4,5]",
      "a%[4,17], b%[4,17]",
      "a~[4,17], b~[4,17]",
      "a~[4,17], #2",
      "#2, a~[4,17]",
      "a~[4,17], #inf",
      "#inf, a~[4,17]",
      "a[2,0,3], b[2,1,3]",
      "a[2,0,3], #1",
      "a[1], b[1,1,1]",
      "a[], b[]",
      "a[1,1,17], b[3,5,1]",
      "$a[2,3], b[2,3]",
      "a[3,1,1], b[2,3,4,4]",
      "a[2,3,4], $b[1,1]",
      "a[2,3,4], $b[1,1,1,1]",
      "$b[1], a[2,3,4]",
      "a[1], $b[4,3]",
      "a[2,17,3,3], b[17,1,1]",
      "a[2,17,3,3], $b[17,1,1]",
      "a[2,16,3,3], b[1,16,1,1]",
      "a[2,16,3,3], b[2,1,1,1]",
      "a[2,16,3,3], b[3,3]",
      "a[2,16,3,3], b[2,16,1,1]",
      "a[2,3,4,5,2,2], b[2,2]",
  };
  static const char *const others[] = {"Pow", "Mod{fmod=1}", "PRelu", "Sum"};
  for (size_t k = 0; k < COUNT(operands); k++) {
    for (size_t o = 0; o < COUNT(binary); o++) {
      sweep_nodes(sweep, "%s(%s)", binary[o], operands[k]);
    }
    for (size_t o = 0; o < COUNT(others); o++) {
      bool one_way = strcmp(others[o], "PRelu") == 0;
      bool fits = operands[k][0] != '#' && strncmp(operands[k], "a[1]", 4) != 0 &&
                  strncmp(operands[k], "a[3,1", 5) != 0 && strncmp(operands[k], "a[1,", 4) != 0 &&
                  strstr(operands[k], ", #") == NULL && operands[k][0] != '$' &&
                  strstr(operands[k], "$b[1,1,1,1]") == NULL && strstr(operands[k], "b~") == NULL;
      if (!one_way || fits) {
        sweep_nodes(sweep, "%s(%s)", others[o], operands[k]);
      }
    }
  }
}

static void powers(sweep_t *sweep) {
  static const char *const exponents[] = {"#2", "#3", "#0.5", "#-1", "#0", "#1", "#-2", "#1.5", "#-0.5"};
  static const char *const bases[] = {"x[2,3,4]", "x+[2,3,4]", "x%[4,17]"};
  for (size_t b = 0; b < COUNT(bases); b++) {
    for (size_t k = 0; k < COUNT(exponents); k++) {
      sweep_nodes(sweep, "Pow(%s, %s)", bases[b], exponents[k]);
    }
  }
  sweep_nodes(sweep, "Pow(#2, x[3,4])");
  sweep_nodes(sweep, "Pow(x+[3,4], y[3,4])");
  sweep_nodes(sweep, "Pow(x+[3,4], $y[4])");
}

static void variadics(sweep_t *sweep) {
  static const char *const ops[] = {"Sum", "Max", "Min", "Mean"};
  static const char *const operands[] = {
      "a[2,3]",
      "a[2,3], b[2,3], c[2,3]",
      "a[2,3], b[3], c[2,1]",
      "a[3], b[2,3], c[4,1,1]",
      "a[2,1], $b[1,3], c[], #0.25",
      "a[2,3,4], a, b[2,3,4], a",
      "#0.5, a[2,3], b[2,3]",
      "$a[2,3], b[2,3], $c[3]",
      "a[2,3,4,5], b[3,1,1], c[2,1,1,1], d[5]",
      "a~[4,17], b~[4,17], c~[4,17]",
  };
  for (size_t o = 0; o < COUNT(ops); o++) {
    for (size_t k = 0; k < COUNT(operands); k++) {
      sweep_nodes(sweep, "%s(%s)", ops[o], operands[k]);
    }
  }
}

static void slopes(sweep_t *sweep) {
  static const char *const operands[] = {
      "x[2,3,4,5], s[3,1,1]", "x[2,3,4,5], $s[3,1,1]",  "x[2,3,4,5], $s[1]",         "x[2,3,4,5], #0.25",
      "x[2,3,4,5], s[5]",     "x[2,17,3], $s[17,1]",    "x[4,17], $s[17]",           "x[4], $s[4]",
      "x[4,17], s[4,17]",     "x[2,3,4,5], s[1,3,1,1]", "x[2,3,2,2,2], $s[3,1,1,1]", "x~[4,17], $s[17]",
  };
  for (size_t k = 0; k < COUNT(operands); k++) {
    sweep_nodes(sweep, "PRelu(%s)", operands[k]);
  }
}

/* Types that oneDNN does not compute in are refused, not converted. */
static void types(sweep_t *sweep) {
  sweep_nodes(sweep, "Add(a:f64[2,3], b:f64[2,3])");
  sweep_nodes(sweep, "Add(a:i64[2,3], b:i64[2,3])");
  sweep_nodes(sweep, "Relu(a:f16[2,3])");
  sweep_nodes(sweep, "Max(a:i32[2,3], b:i32[3])");
  sweep_nodes(sweep, "Pow(a+[2,3], b:i64[2,3])");
  sweep_nodes(sweep, "Pow(a[2,3], #[2])");
  sweep_nodes(sweep, "Relu(Cast{to=1}(a:i64[2,3]))");
  sweep_nodes(sweep, "Mul(a[2,3], Cast{to=1}(Greater(a, #0)))");
}

/* Chains that the rule of that name fuses, and values that are used twice. */
static void chains(sweep_t *sweep) {
  sweep_rules(sweep, "Relu(Add(Mul(x[2,3,4], $a[3,1]), $b[4]))");
  sweep_rules(sweep, "Tanh(Sub(#1, Div(#2, x+[2,3,4])))");
  sweep_rules(sweep, "Mul(Sub(x[2,3,4], y[4]), Sigmoid(y))");
  sweep_rules(sweep, "h = Exp(x[2,3]); Add(h, h)");
  sweep_rules(sweep, "h = Exp(x[2,3]); Mul(h, Neg(h)) -> h");
  sweep_rules(sweep, "Add(Relu(x[2,1,4]), Abs(y[1,3,4]))");
  sweep_rules(sweep, "Add(x[3], Add(y[2,3], Add(z[4,2,3], #1)))");
  sweep_rules(sweep, "Clip(Round(Mul(x[2,17], #10)), #-8, #7)");
  sweep_rules(sweep, "Sub(Min(Max(x[2,17], y[17]), z[2,1]), x)");
  sweep_rules(sweep, "Div(Sqrt(Add(Mul(x[5,7], x), #1)), Exp(Neg(x)))");
}

/* NaN comes through. Left out is what takes another operand or a bound for it on oneDNN: Relu, Clip,
 * HardSigmoid, Exp, Max, Min, maxima over windows and axes, Softmax. */
static void not_numbers(sweep_t *sweep) {
  static const char *const texts[] = {
      "Abs(x![4,17])",
      "HardSwish(x![4,17])",
      "Mish(x![4,17])",
      "Round(x![4,17])",
      "Sigmoid(x![4,17])",
      "Softplus(x![4,17])",
      "Tanh(x![4,17])",
      "Neg(x![4,17])",
      "LeakyRelu(x![4,17])",
      "Elu(x![4,17])",
      "Selu(x![4,17])",
      "Celu(x![4,17])",
      "Gelu(x![4,17])",
      "Gelu{approximate=tanh}(x![4,17])",
      "Sqrt(Abs(x![4,17]))",
      "Reciprocal(x![4,17])",
      "Add(x![4,17], y[17])",
      "Sub(#1, x![4,17])",
      "Mul(y[17], x![4,17])",
      "Div(x![4,17], y+[17])",
      "Pow(x![4,17], #2)",
      "Pow(x![4,17], #3)",
      "PRelu(x![4,17], $s[17])",
      "Conv(x![1,3,5,5], $w[17,3,3,3])",
      "MatMul(x![3,4], $w[4,17])",
      "Gemm(x![3,4], $w[4,17], $b[17])",
      "BatchNormalization(x![2,3,4], $s[3], $b[3], $m[3], $v+[3])",
      "LayerNormalization(x![2,3,17], $s[17])",
      "ReduceSum(x![3,17], #[1])",
      "ReduceMean(x![2,17,3,3], #[2,3])",
      "AveragePool{kernel_shape=[2,2]}(x![1,17,4,4])",
      "Transpose{perm=[1,0]}(x![3,17])",
  };
  for (size_t k = 0; k < COUNT(texts); k++) {
    sweep_nodes(sweep, "%s", texts[k]);
  }
}

void sweep_pointwise(sweep_t *sweep) {
  unaries(sweep);
  clips(sweep);
  broadcasts(sweep);
  binaries(sweep);
  powers(sweep);
  variadics(sweep);
  slopes(sweep);
  types(sweep);
  not_numbers(sweep);
  chains(sweep);
}
