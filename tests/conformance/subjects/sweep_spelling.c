// SPDX-License-Identifier: Apache-2.0
// Functions as exporters spell them, in every order of operands, after products and alone; and near misses:
// graphs that look like one of them, or like an epilogue, and are not.
#include <string.h>

#include "sweep.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* What stands before: `v` is defined by it. The number of nodes counts those that fuse. */
static const struct {
  const char *text;
  uint32_t nodes;
} befores[] = {
    {"v = x[2,5,17];", 0},
    {"v = MatMul(x[2,5,8], $w[8,17]);", 1},
    {"v = Add(MatMul(x[2,5,8], $w[8,17]), $b[17]);", 2},
    {"v = Add($b[17], MatMul(x[2,5,8], $w[8,17]));", 2},
    {"v = Conv(x[1,3,5,5], $w[17,3,3,3], $b[17]);", 1},
    {"v = BatchNormalization(Conv(x[1,3,5,5], $w[4,3,3,3]), $s[4], $b[4], $m[4], $v0+[4]);", 2},
    {"v = Gemm(x[3,8], $w[8,17], $b[17]);", 1},
};

/* Over v; one operator once canonical/activations.lua has seen it. */
static const char *const activations[] = {
    /* gelu by erf */
    "Mul(Mul(v, Add(Erf(Div(v, #1.4142135)), #1)), #0.5)",
    "Mul(#0.5, Mul(Add(#1, Erf(Div(v, #1.4142135))), v))",
    "Mul(Mul(v, #0.5), Add(Erf(Div(v, #1.4142135)), #1))",
    "Mul(Add(Erf(Mul(v, #0.70710678)), #1), Mul(#0.5, v))",
    "Mul(v, Mul(#0.5, Add(Erf(Mul(#0.70710678, v)), #1)))",
    "Mul(Mul(Add(Erf(Div(v, #1.4142135)), #1), #0.5), v)",
    /* gelu by tanh */
    "Mul(Mul(v, #0.5), Add(Tanh(Mul(Add(v, Mul(Pow(v, #3), #0.044715)), #0.79788456)), #1))",
    "Mul(#0.5, Mul(v, Add(#1, Tanh(Mul(#0.79788456, Add(v, Mul(#0.044715, Pow(v, #3))))))))",
    "Mul(v, Mul(Add(Tanh(Mul(Add(Mul(Mul(Mul(v, v), v), #0.044715), v), #0.79788456)), #1), #0.5))",
    /* SiLU */
    "Mul(v, Sigmoid(v))",
    "Mul(Sigmoid(v), v)",
    "Mul(v, Sigmoid(Mul(v, #1.702)))",
    "Div(v, Add(Exp(Neg(v)), #1))",
    /* Mish */
    "Mul(v, Tanh(Softplus(v)))",
    /* LeakyRelu */
    "Max(v, Mul(v, #0.1))",
    /* hard-swish */
    "Mul(v, HardSigmoid{alpha=0.16666667, beta=0.5}(v))",
    "Div(Mul(v, Clip(Add(v, #3), #0, #6)), #6)",
    "Mul(v, Div(Clip(Add(#3, v), #0, #6), #6))",
    "Div(Mul(Clip(Add(v, #3), #0, #6), v), #6)",
};

static void spellings(sweep_t *sweep) {
  static const char *const afters[] = {"y", "Mul(y, #2)", "Relu(y)", "Add(y, r[1])"};
  for (size_t b = 0; b < COUNT(befores); b++) {
    for (size_t a = 0; a < COUNT(activations); a++) {
      uint32_t nodes = befores[b].nodes;
      sweep_fused(sweep, nodes == 0 ? 0 : nodes + 1, "%s %s", befores[b].text, activations[a]);
      sweep_rules(sweep, "%s y = %s; %s", befores[b].text, activations[a],
                  afters[1 + sweep_below(sweep, COUNT(afters) - 1)]);
      /* The value before is needed elsewhere, too. */
      sweep_rules(sweep, "%s y = %s; Relu(y) -> v", befores[b].text, activations[a]);
    }
  }
}

/* One wrong constant, exponent, operand or operator. Whatever fuses, the numbers must hold. */
static void near_activations(sweep_t *sweep) {
  static const char *const texts[] = {
      "Mul(Mul(v, Add(Erf(Div(v, #1.5)), #1)), #0.5)",
      "Mul(Mul(v, Add(Erf(Div(v, #1.4142135)), #1)), #0.25)",
      "Mul(Mul(v, Add(Erf(Div(v, #1.4142135)), #2)), #0.5)",
      "Mul(Mul(v, Add(Erf(Div(#1.4142135, Add(Abs(v), #1))), #1)), #0.5)",
      "Mul(Mul(v, Sub(Erf(Div(v, #1.4142135)), #1)), #0.5)",
      "Mul(Mul(u[17], Add(Erf(Div(v, #1.4142135)), #1)), #0.5)",
      "Mul(Mul(v, Add(Erf(Div(v, d+[17])), #1)), #0.5)",
      "Mul(Mul(v, Add(Tanh(Div(v, #1.4142135)), #1)), #0.5)",
      "Mul(Mul(v, #0.5), Add(Tanh(Mul(Add(v, Mul(Pow(v, #2), #0.044715)), #0.79788456)), #1))",
      "Mul(Mul(v, #0.5), Add(Tanh(Mul(Add(v, Mul(Pow(v, #3), #0.05)), #0.79788456)), #1))",
      "Mul(Mul(v, #0.5), Add(Tanh(Mul(Add(v, Mul(Pow(v, #3), #0.044715)), #0.8)), #1))",
      "Mul(Mul(v, #0.5), Add(Tanh(Mul(Sub(v, Mul(Pow(v, #3), #0.044715)), #0.79788456)), #1))",
      "Mul(Mul(v, #0.5), Add(Tanh(Mul(Add(v, Mul(Mul(Mul(v, v), u[17]), #0.044715)), #0.79788456)), #1))",
      "Mul(v, Sigmoid(Neg(v)))",
      "Mul(v, Sigmoid(u[17]))",
      "Mul(v, Tanh(v))",
      "Add(v, Sigmoid(v))",
      "Mul(v, Sigmoid(Mul(v, u[17])))",
      "Mul(v, Tanh(Softplus(Neg(v))))",
      "Mul(v, HardSigmoid(v))",
      "Mul(v, HardSigmoid{alpha=0.16666667, beta=0.4}(v))",
      "Div(Mul(v, Clip(Add(v, #2), #0, #6)), #6)",
      "Div(Mul(v, Clip(Add(v, #3), #0, #5)), #6)",
      "Div(Mul(v, Clip(Add(v, #3), #0)), #6)",
      "Div(Mul(v, Clip(Add(v, #3), #0, #6)), #3)",
      "Div(#6, Add(Abs(Mul(v, Clip(Add(v, #3), #0, #6))), #1))",
      "Mul(v, Div(Clip(Sub(v, #3), #0, #6), #6))",
      "Mul(v, v)",
      "Mul(Mul(v, v), v)",
      "Max(v, Mul(v, #2))",
      "Max(v, Mul(v, #0.1), #0.5)",
      "Sub(v, Relu(v))",
      "Div(v, Add(Exp(Neg(v)), #2))",
      "Pow(v, #3)",
  };
  for (size_t b = 0; b < COUNT(befores); b++) {
    bool channels = strstr(befores[b].text, "Conv") != NULL;
    for (size_t k = 0; k < COUNT(texts); k++) {
      if (!channels || (strstr(texts[k], "u[17]") == NULL && strstr(texts[k], "d+[17]") == NULL)) {
        sweep_rules(sweep, "%s %s", befores[b].text, texts[k]);
      }
    }
  }
}

/* A value inside is a graph output, or is read twice. */
static void shared_inside(sweep_t *sweep) {
  static const char *const texts[] = {
      "h = Conv(x[1,3,5,5], $w[17,3,3,3]); Relu(h) -> h",
      "h = Conv(x[1,3,5,5], $w[17,3,3,3]); Add(Relu(h), h)",
      "h = Conv(x[1,3,5,5], $w[17,3,3,3]); Add(h, h)",
      "h = Conv(x[1,3,5,5], $w[17,3,3,3]); Mul(h, Relu(h))",
      "h = Conv(x[1,3,5,5], $w[17,3,3,3]); Sub(h, h)",
      "h = Conv(x[1,3,5,5], $w[17,3,3,3]); g = Relu(h); Tanh(g) -> g",
      "h = Conv(x[1,3,5,5], $w[17,3,3,3]); g = Relu(h); Add(Tanh(g), g) -> h",
      "h = Conv{pads=[1,1,1,1]}(x[1,4,5,5], $w[4,4,3,3]); g = Conv{pads=[1,1,1,1]}(h, $u[4,4,3,3]); "
      "Relu(Add(g, h))",
      "h = Conv{pads=[1,1,1,1]}(x[1,4,5,5], $w[4,4,3,3]); g = Conv{pads=[1,1,1,1]}(x, $u[4,4,3,3]); "
      "Relu(Add(g, h))",
      "h = Conv{pads=[1,1,1,1]}(x[1,4,5,5], $w[4,4,3,3]); g = Conv{pads=[1,1,1,1]}(h, $u[4,4,3,3]); "
      "Relu(Add(g, h)) -> h",
      "h = Conv{pads=[1,1,1,1]}(x[1,4,5,5], $w[4,4,3,3]); g = Relu(Add(h, x)); Add(Conv(g, $u[4,4,1,1]), g) "
      "-> g",
      "h = MatMul(x[3,8], $w[8,8]); Add(MatMul(h, $u[8,8]), h)",
      "h = MatMul(x[3,8], $w[8,8]); Add(MatMul(h, $u[8,8]), MatMul(h, $t[8,8])) -> h",
      "h = MatMul(x[8,8], $w[8,8]); Add(MatMul(h, h), h)",
      "h = MatMul(x[8,8], $w[8,8]); Mul(MatMul(x, h), x)",
      "h = Sigmoid(x[3,17]); Mul(x, h) -> h",
      "h = Mul(x[3,17], y[3,17]); g = Identity(h); Mul(g, Tanh(h))",
      "h = Mul(x[3,17], y[3,17]); g = Reshape(h, #[1,3,17]); Sub(Reshape(Exp(Neg(h)), #[1,3,17]), g)",
      "h = Conv(x[1,3,5,5], $w[17,3,3,3]); g = Identity(h); Max(Softplus(g), h)",
      "h = Conv(x[1,3,5,5], $w[17,3,3,3]); g = Dropout(h); Add(Mul(Tanh(g), #3), Identity(h))",
      "c = Clip(Add(x[3,17], #3), #0, #6); Div(Mul(x, c), #6) -> c",
      "e = Erf(Div(x[3,17], #1.4142135)); Mul(Mul(x, Add(e, #1)), #0.5) -> e",
      "a = Add(Erf(Div(x[3,17], #1.4142135)), #1); Add(Mul(Mul(x, a), #0.5), a)",
      "h = Add(x[1,16,5,5], y[1,16,5,5]); g = Conv{pads=[1,1,1,1]}(Relu(h), $w[16,16,3,3]); Add(g, h)",
      "h = Conv{pads=[1,1,1,1]}(x[1,16,5,5], $w[16,16,3,3]); g = MaxPool{kernel_shape=[3,3], "
      "pads=[1,1,1,1]}(h);"
      " Add(Relu(h), g)",
      "h = Relu(x[1,16,5,5]); Add(Conv{pads=[1,1,1,1]}(h, $w[16,16,3,3]), Conv{pads=[1,1,1,1]}(h, "
      "$u[16,16,3,3]))",
      "h = Conv(x[1,16,5,5], $w[16,16,1,1]); g = Conv(x, $u[16,16,1,1]); Add(Add(h, g), Add(h, g))",
  };
  for (size_t k = 0; k < COUNT(texts); k++) {
    sweep_rules(sweep, "%s", texts[k]);
    sweep_nodes(sweep, "%s", texts[k]);
  }
}

static void normalizations(sweep_t *sweep) {
  /* One LayerNormalization each, so that nothing is left to fuse. */
  static const char *const whole[] = {
      "d = Sub(v, ReduceMean(v, #[-1])); Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.00001)))",
      "d = Sub(v, ReduceMean(v, #[2])); Div(d, Sqrt(Add(#0.00001, ReduceMean(Mul(d, d), #[2]))))",
      "d = Sub(v, ReduceMean(v, #[-1])); Add(Mul(Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001))), "
      "$g[17]), "
      "$h[17])",
      "d = Sub(v, ReduceMean(v, #[-1])); Add($h[17], Mul($g[17], Mul(Reciprocal(Sqrt(Add(ReduceMean(Pow(d, "
      "#2), "
      "#[-1]), #0.001))), d)))",
  };
  for (size_t k = 0; k < COUNT(whole); k++) {
    sweep_fused(sweep, 0, "v = x[2,5,17]; %s", whole[k]);
    sweep_fused_by(sweep, "onednn", 0, "v = Identity(Transpose{perm=[0,2,1]}(x[2,17,5])); %s", whole[k]);
    sweep_rules(sweep, "v = Add(x[2,5,17], MatMul(x, $w[17,17])); %s -> v", whole[k]);
    sweep_rules(sweep, "v = Mul(x[2,5,17], #30); y = Sigmoid(v); %s -> y", whole[k]);
  }
  static const char *const near[] = {
      "d = Sub(v, ReduceMean(v, #[-1])); Div(d, Sqrt(Add(ReduceMean(Pow(d, #3), #[-1]), #100)))",
      "d = Sub(v, ReduceMean(v, #[1])); Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[1]), #0.001)))",
      "d = Sub(v, ReduceMean(v, #[1])); Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001)))",
      "d = Sub(v, ReduceMean(v, #[-1])); Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[1]), #0.001)))",
      "d = Sub(v, ReduceMean(v, #[1,2])); Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[1,2]), #0.001)))",
      "d = Sub(v, ReduceMean(v)); Div(d, Sqrt(Add(ReduceMean(Pow(d, #2)), #0.001)))",
      "d = Sub(v, ReduceMean(v, #[-1])); Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), e+[])))",
      "d = Sub(v, ReduceMean(v, #[-1])); Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), e+[2,5,1])))",
      "d = Sub(v, ReduceMean(v, #[-1])); Div(d, Sqrt(Add(ReduceMean(Pow(v, #2), #[-1]), #0.001)))",
      "d = Sub(v, ReduceMean(v, #[-1])); Div(v, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001)))",
      "d = Sub(ReduceMean(v, #[-1]), v); Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001)))",
      "d = Sub(v, ReduceMax(v, #[-1])); Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001)))",
      "d = Sub(v, ReduceMean(v, #[-1])); Div(d, Sqrt(Add(ReduceSum(Pow(d, #2), #[-1]), #0.001)))",
      "d = Sub(v, ReduceMean(v, #[-1])); Mul(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001)))",
      "d = Sub(v, ReduceMean(v, #[-1])); Div(d, Add(Sqrt(ReduceMean(Pow(d, #2), #[-1])), #0.001))",
      "d = Sub(v, ReduceMean(v, #[-1])); Div(Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001)), Add(Abs(d), "
      "#1))",
      "d = Sub(v, ReduceMean(v, #[-1])); n = Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001))); "
      "Add(Mul(n, $g[5,1]), $h[17])",
      "d = Sub(v, ReduceMean(v, #[-1])); n = Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001))); "
      "Add(Mul(n, $g[]), $h[])",
      "d = Sub(v, ReduceMean(v, #[-1])); n = Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001))); "
      "Add(Mul(n, g[17]), h[17])",
      "d = Sub(v, ReduceMean(v, #[-1])); n = Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001))); "
      "Sub(Mul(n, $g[17]), $h[17])",
      "d = Sub(v, ReduceMean(v, #[-1])); n = Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001))); "
      "Mul(Add(n, $h[17]), $g[17])",
      "d = Sub(v, ReduceMean(v, #[-1])); n = Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001))); "
      "Add(Mul(n, $g[17]), $h[17]) -> n",
      "d = Sub(v, ReduceMean(v, #[-1])); n = Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001))); "
      "Relu(n) -> d",
      "m = ReduceMean(v, #[-1]); d = Sub(v, m); n = Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), "
      "#0.001))); "
      "Relu(n) -> m",
      "d = Sub(v, ReduceMean{keepdims=1}(u[2,5,17], #[-1])); "
      "Div(d, Sqrt(Add(ReduceMean(Pow(d, #2), #[-1]), #0.001)))",
  };
  for (size_t k = 0; k < COUNT(near); k++) {
    sweep_rules(sweep, "v = x[2,5,17]; %s", near[k]);
    sweep_rules(sweep, "v = MatMul(x[2,5,8], $w[8,17]); %s", near[k]);
  }
}

/* Epilogues that look right and are not. */
static void near_epilogues(sweep_t *sweep) {
  static const char *const texts[] = {
      "y, a, b = BatchNormalization{training_mode=1}(Conv(x[2,3,5,5], $w[4,3,3,3]), $s[4], $o[4], $m[4], "
      "$v+[4]) -> "
      "y, a, b",
      "y, a, b = BatchNormalization{training_mode=1}(Conv(x[2,3,5,5], $w[4,3,3,3]), $s[4], $o[4], $m[4], "
      "$v+[4]) -> y",
      "BatchNormalization(Conv(x[2,3,5,5], $w[4,3,3,3]), s[4], $o[4], $m[4], $v+[4])",
      "BatchNormalization(Conv(x[2,3,5,5], $w[4,3,3,3]), $s[4], o[4], m[4], v+[4])",
      "BatchNormalization(Transpose{perm=[0,2,1,3]}(Conv(x[1,3,6,5], $w[4,3,3,3])), $s[4], $o[4], $m[4], "
      "$v+[4])",
      "BatchNormalization(MatMul(x[2,4,8], $w[8,5]), $s[4], $o[4], $m[4], $v+[4])",
      "BatchNormalization(Gemm(x[3,8], $w[8,17]), $s[17], $o[17], $m[17], $v+[17])",
      "Add(Conv(x[1,3,5,5], $w[4,3,3,3]), r[3,4,3,3])",
      "Add(Conv(x[1,3,5,5], $w[1,3,3,3]), r[1,4,3,3])",
      "Relu(Add(Conv(x[1,3,5,5], $w[4,3,5,5]), r[1,4,3,3]))",
      "Add(Conv(x[1,3,5,5], $w[4,3,3,3]), r[2,1,4,3,3])",
      "Add(MatMul(x[3,8], $w[8,17]), r[2,3,17])",
      "Add(MatMul(x[1,8], $w[8,17]), r[3,17])",
      "Add(MatMul(x[3,8], $w[8,1]), r[3,17])",
      "Mul(Gemm(x[1,8], $w[8,4]), r[4,1])",
      "Add(Gemm(x[3,8], $w[8,4]), r[1,1,1,1])",
      "Clip(Conv(x[1,3,5,5], $w[4,3,3,3]), lo[], #1)",
      "Clip(Conv(x[1,3,5,5], $w[4,3,3,3]), #1, #-1)",
      "PRelu(Conv(x[1,3,5,5], $w[4,3,3,3]), $s[4,1,1])",
      "Relu(PRelu(Conv(x[1,3,5,5], $w[4,3,3,3]), s[4,1,1]))",
      "Softmax(Conv(x[1,3,5,5], $w[4,3,3,3]))",
      "Add(Conv(x[1,3,5,5], $w[4,3,3,3]), Conv(x, $u[4,3,3,3]))",
      "Add(Conv(x[1,3,5,5], $w[4,3,3,3]), Add(Conv(x, $u[4,3,3,3]), Conv(x, $t[4,3,3,3])))",
      "Mul(Relu(Conv(x[1,3,5,5], $w[4,3,3,3])), Sigmoid(Conv(x, $u[4,3,3,3])))",
      "Pow(#2, Conv(x[1,3,5,5], $w[4,3,3,3]))",
      "Pow(Abs(Conv(x[1,3,5,5], $w[4,3,3,3])), p+[4,1,1])",
      "Sum(Conv(x[1,3,5,5], $w[4,3,3,3]), a[4,1,1], b[1,4,3,3], #1)",
      "Max(Conv(x[1,3,5,5], $w[4,3,3,3]), a[4,1,1], b[1,4,3,3], #0)",
      "Min(a[4,1,1], b[1,4,3,3], Conv(x[1,3,5,5], $w[4,3,3,3]))",
      "Mean(Conv(x[1,3,5,5], $w[4,3,3,3]), b[1,4,3,3])",
      "Relu(Reshape(Conv(x[1,3,5,5], $w[4,3,3,3]), #[4,9]))",
      "Add(Reshape(Conv(x[1,3,5,5], $w[4,3,3,3]), #[4,9]), b[9])",
      "Relu(Transpose{perm=[0,2,3,1]}(Conv(x[1,3,5,5], $w[17,3,3,3])))",
      "Add(Transpose{perm=[0,2,3,1]}(Conv(x[1,3,5,5], $w[17,3,3,3])), $b[17])",
      "Dropout(Relu(Conv(x[1,3,5,5], $w[17,3,3,3])))",
      "y, k = Dropout(Relu(Conv(x[1,3,5,5], $w[17,3,3,3]))) -> y, k",
      "Relu(Relu(Relu(Conv(x[1,3,5,5], $w[17,3,3,3]))))",
      "LeakyRelu{alpha=0.1}(LeakyRelu{alpha=0.2}(LeakyRelu{alpha=0.3}(Conv(x[1,3,5,5], $w[17,3,3,3]))))",
      "Elu{alpha=0.1}(Elu{alpha=0.2}(Conv(x[1,3,5,5], $w[17,3,3,3])))",
      "Clip(Add(Clip(Conv(x[1,3,5,5], $w[17,3,3,3]), #-1, #1), $b[17,1,1]), #-0.5, #0.5)",
      "Mul(Add(Mul(Add(Conv(x[1,3,5,5], $w[17,3,3,3]), #1), #2), $b[17,1,1]), #3)",
      "Add(Conv(x[1,3,5,5], $w[3,3,3,3]), Relu(Slice(x, #[0,0], #[3,3], #[2,3])))",
  };
  for (size_t k = 0; k < COUNT(texts); k++) {
    sweep_rules(sweep, "%s", texts[k]);
    sweep_nodes(sweep, "%s", texts[k]);
  }
}

void sweep_spelling(sweep_t *sweep) {
  sweep_set_slack(sweep, 4.0);
  spellings(sweep);
  near_activations(sweep);
  shared_inside(sweep);
  normalizations(sweep);
  near_epilogues(sweep);
}
