// SPDX-License-Identifier: Apache-2.0
// MXNet's cases of pointwise fusion, as far as ONNX has their operators (gamma, gammaln and erfinv it has
// not): each between two identities, so that something always fuses, in float16, float32 and float64. `@`
// stands for the dtype. test_fusion_cases.c has those that are about several runs.
#include <stdio.h>
#include <string.h>

#include "sweep.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* By the numbers of the cases there. x, a, b and c are between 0.05 and 0.95. */
static const struct {
  const char *name;
  const char *text;
} cases[] = {
    {"F1 relu", "Relu(x&@[9,13])"},
    {"F1 sigmoid", "Sigmoid(x&@[9,13])"},
    {"F1 softsign", "Softsign(x&@[9,13])"},
    {"F1 exp", "Exp(x&@[9,13])"},
    {"F1 expm1", "Sub(Exp(x&@[9,13]), #1@)"},
    {"F1 log", "Log(x&@[9,13])"},
    {"F1 log10", "Div(Log(x&@[9,13]), #2.3025851@)"},
    {"F1 log2", "Div(Log(x&@[9,13]), #0.6931472@)"},
    {"F1 log1p", "Log(Add(x&@[9,13], #1@))"},
    {"F1 degrees", "Mul(x&@[9,13], #57.29578@)"},
    {"F1 radians", "Mul(x&@[9,13], #0.017453292@)"},
    {"F1 sin", "Sin(x&@[9,13])"},
    {"F1 cos", "Cos(x&@[9,13])"},
    {"F1 tan", "Tan(x&@[9,13])"},
    {"F1 arcsin", "Asin(x&@[9,13])"},
    {"F1 arccos", "Acos(x&@[9,13])"},
    {"F1 arctan", "Atan(x&@[9,13])"},
    {"F1 sinh", "Sinh(x&@[9,13])"},
    {"F1 cosh", "Cosh(x&@[9,13])"},
    {"F1 tanh", "Tanh(x&@[9,13])"},
    {"F1 arcsinh", "Asinh(x&@[9,13])"},
    {"F1 arctanh", "Atanh(x&@[9,13])"},
    {"F1 sqrt", "Sqrt(x&@[9,13])"},
    {"F1 rsqrt", "Reciprocal(Sqrt(x&@[9,13]))"},
    {"F1 cbrt", "Pow(x&@[9,13], #0.33333334@)"},
    {"F1 square", "Mul(x&@[9,13], x)"},
    {"F1 squeeze", "Squeeze(Relu(x&@[9,1,13]), #[1])"},
    {"F1 zeros_like", "Add(x&@[9,13], CastLike(ConstantOfShape(Shape(x)), x))"},
    {"F1 ones_like", "Mul(x&@[9,13], Add(CastLike(ConstantOfShape(Shape(x)), x), #1@))"},
    {"F1 flatten", "Flatten(Relu(x&@[3,4,5]))"},
    {"F1 round", "Mul(Sign(x&@[9,13]), Floor(Add(Abs(x), #0.5@)))"},
    {"F1 rint", "Round(x&@[9,13])"},
    {"F1 fix, trunc", "y = Mul(x&@[9,13], #4@); Mul(Sign(y), Floor(Abs(y)))"},
    {"F1 floor", "Floor(Mul(x&@[9,13], #4@))"},
    {"F1 ceil", "Ceil(Mul(x&@[9,13], #4@))"},
    {"F1 sign", "Sign(Sub(x&@[9,13], #0.5@))"},
    {"F1 reciprocal", "Reciprocal(x&@[9,13])"},
    {"F1 abs", "Abs(Sub(x&@[9,13], #0.5@))"},
    {"F1 erf", "Erf(x&@[9,13])"},
    {"F1 negative", "Neg(x&@[9,13])"},
    {"F1 logical_not", "CastLike(Not(Cast{to=9}(Floor(Mul(x&@[9,13], #4@)))), x)"},
    {"F2 arccosh", "Acosh(Add(x&@[9,13], #1@))"},
    {"F4 softrelu", "Softplus(x&@[9,13])"},
    {"F5 softrelu of large numbers", "Softplus(Mul(x&@[9,13], #1000@))"},
    {"F6 cast to float16", "Cast{to=10}(Mul(x&@[9,13], #64@))"},
    {"F6 cast to float32", "Cast{to=1}(Mul(x&@[9,13], #64@))"},
    {"F6 cast to float64", "Cast{to=11}(Mul(x&@[9,13], #64@))"},
    {"F6 cast to int32", "Cast{to=6}(Mul(x&@[9,13], #64@))"},
    {"F7 reshape", "Reshape(Relu(x&@[9,13]), #[-1])"},
    {"F8 expand_dims", "Unsqueeze(Relu(x&@[9,13]), #[1])"},
    {"F9 clip", "Clip(x&@[9,13], #0.3@, #0.7@)"},
    {"F10 clip from minus infinity", "Clip(x&@[9,13], #-inf@, #0.7@)"},
    {"F11 clip between infinities", "Clip(x&@[9,13], #-inf@, #inf@)"},
    {"F12 clip to NaN", "Clip(x&@[9,13], #0@, #nan@)"},
    {"F13 smooth_l1",
     "Where(Less(Abs(x&@[9,13]), #11.111111@), Mul(Mul(x, x), #0.045@), Sub(Abs(x), #5.5555556@))"},
    {"F14 a + b", "Add(a&@[9,13], b&@[9,13])"},
    {"F14 a + 3", "Add(a&@[9,13], #3@)"},
    {"F14 a - b", "Sub(a&@[9,13], b&@[9,13])"},
    {"F14 a - 3", "Sub(a&@[9,13], #3@)"},
    {"F14 3 - a", "Sub(#3@, a&@[9,13])"},
    {"F14 a * b", "Mul(a&@[9,13], b&@[9,13])"},
    {"F14 a * 3", "Mul(a&@[9,13], #3@)"},
    {"F14 a / (b + 1)", "Div(a&@[9,13], Add(b&@[9,13], #1@))"},
    {"F14 a / 3", "Div(a&@[9,13], #3@)"},
    {"F14 3 / a", "Div(#3@, a&@[9,13])"},
    {"F14 a ** b", "Pow(a&@[9,13], b&@[9,13])"},
    {"F14 a ** 3", "Pow(a&@[9,13], #3@)"},
    {"F14 3 ** a", "Pow(#3@, a&@[9,13])"},
    {"F14 maximum", "Max(a&@[9,13], b&@[9,13])"},
    {"F14 minimum", "Min(a&@[9,13], b&@[9,13])"},
    {"F14 hypot", "Sqrt(Add(Mul(a&@[9,13], a), Mul(b&@[9,13], b)))"},
    {"F14 hypot(a, 3)", "Sqrt(Add(Mul(a&@[9,13], a), #9@))"},
    {"F15 add_n", "Sum(a&@[3,4,5], b&@[3,4,5], c&@[3,4,5])"},
    {"F16 slice_axis", "Slice(Relu(x&@[5,3,7]), #[1], #[4], #[0])"},
    {"F17 slice_axis from the end", "Slice(Relu(x&@[5,3,7]), #[1], #[4], #[-3])"},
    {"F18 slice", "Slice(Relu(x&@[5,3,7]), #[1,0,2], #[4,2,6], #[0,1,2])"},
    {"F19 slice from the end", "Slice(Relu(x&@[5,3,7]), #[-4,-6], #[-1,-2], #[0,2])"},
    {"F20 slice_like", "Slice(Relu(x&@[2,3,4,5]), #[0,0], #[2,1], #[-2,0])"},
    {"F21 broadcast_like", "Expand(Relu(x&@[1,1,2,3]), #[2,1,2,3])"},
    {"F22 gelu of a sum", "Gelu(Add(a&@[9,13], b&@[9,13]))"},
    {"F24 booleans", "Mul(CastLike(m:bool[10], x&@[10]), Unsqueeze(CastLike(m, x), #[1]))"},
    {"joined parts of every axis", "Mul(Concat{axis=-2}(x&@[2,3,5], y&@[2,1,5], x), Relu(z&@[2,7,5]))"},
    {"joined last", "Relu(Concat{axis=2}(x&@[2,3,5], y&@[2,3,0], z&@[2,3,8]))"},
    {"joined tokens before a norm",
     "LayerNormalization(Add(Concat{axis=1}(Expand(t&@[1,1,8], #[2,1,8]), x&@[2,4,8]), #0.5@), $g@[8], "
     "$b@[8])"},
    {"joined rows", "Softmax{axis=-1}(Concat{axis=-1}(x&@[6,9], y&@[6,4]))"},
    {"joined twice", "Sub(Concat{axis=0}(x&@[4,6], y&@[2,6]), Concat{axis=1}(z&@[6,1], w&@[6,5]))"},
    {"joined views",
     "Exp(Concat{axis=1}(Transpose{perm=[1,0]}(x&@[4,6]), Slice(y&@[6,8], #[2], #[7], #[1])))"},
    {"joined booleans", "Where(Concat{axis=0}(m:bool[2,5], n:bool[3,5]), x&@[5,5], Neg(x))"},
    {"F26 operands in another order",
     "s = Mul(x&@[10,10], #2@); MatMul(Add(s, Mul(y&@[10,1], y)), Add(s, z&@[10,10]))"},
};

/* Two kernels that read each other's sums may not become one. */
static const char *const crosswise =
    "u = Relu(x&@[8,8]); v = Relu(y&@[8,8]); p = Add(u, ReduceSum(v)); q = Add(v, ReduceSum(u)) -> p, q";

/* The text with a dtype for each '@', between identities if it is one expression. */
static void write_case(char *out, size_t size, const char *text, const char *dtype, bool wraps) {
  const char *last = strrchr(text, ';');
  const char *start = last != NULL ? last + 1 : text;
  size_t length = 0;
  for (const char *next = text;; next++) {
    if (wraps && next == start) {
      length += (size_t)snprintf(out + length, size - length, "Identity(Identity(");
    }
    if (*next == '\0') {
      break;
    }
    length += (size_t)snprintf(out + length, size - length, *next == '@' ? ":%s" : "%.1s",
                               *next == '@' ? dtype : next);
  }
  (void)snprintf(out + length, size - length, wraps ? "))" : "");
}

void sweep_fusion(sweep_t *sweep) {
  static const char *const dtypes[] = {"f16", "f32", "f64"};
  char text[512];
  for (size_t d = 0; d < COUNT(dtypes); d++) {
    /* A kernel rounds to float16 at the end only, nodes each time: a gradient has some ten of them. */
    sweep_set_slack(sweep, d == 0 ? 10.0 : 1.0);
    for (size_t k = 0; k < COUNT(cases); k++) {
      write_case(text, sizeof text, cases[k].text, dtypes[d], true);
      sweep_rules(sweep, "%s", text);
    }
    write_case(text, sizeof text, crosswise, dtypes[d], false);
    sweep_rules(sweep, "%s", text);
  }
}
