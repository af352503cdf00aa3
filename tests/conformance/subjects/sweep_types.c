// SPDX-License-Identifier: Apache-2.0
// Every pointwise operator on every type that it takes.
#include "sweep.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const unary[] = {"Abs",
                                    "Exp",
                                    "HardSwish",
                                    "Swish",
                                    "Swish{alpha=1.702}",
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
                                    "Elu",
                                    "Elu{alpha=0.5}",
                                    "Selu",
                                    "Selu{alpha=1.1, gamma=-2}",
                                    "Celu",
                                    "Celu{alpha=0.5}",
                                    "HardSigmoid",
                                    "HardSigmoid{alpha=0.16666667, beta=0.5}",
                                    "Gelu",
                                    "Gelu{approximate=tanh}",
                                    "Erf",
                                    "Ceil",
                                    "Floor",
                                    "Sign",
                                    "Softsign",
                                    "Sin",
                                    "ThresholdedRelu{alpha=0.5}"};

void sweep_types(sweep_t *sweep) {
  static const char *const floats[] = {"f32", "f64", "f16", "bf16"};
  static const char *const integers[] = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
  static const char *const arithmetic[] = {"Add", "Sub", "Mul", "Max", "Min"};
  static const char *const comparisons[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  static const char *const bits[] = {"BitwiseAnd", "BitwiseOr", "BitwiseXor"};
  static const char *const divisions[] = {"Div", "Mod", "Mod{fmod=1}"};
  static const char *const positive[] = {"Acos",
                                         "Acosh",
                                         "Asin",
                                         "Asinh",
                                         "Atan",
                                         "Atanh",
                                         "Cos",
                                         "Cosh",
                                         "Sinh",
                                         "Tan",
                                         "Shrink{bias=0.25}",
                                         "HardSwish",
                                         "Reciprocal",
                                         "Sqrt",
                                         "Log"};
  for (size_t t = 0; t < COUNT(floats); t++) {
    for (size_t k = 0; k < COUNT(unary); k++) {
      sweep_nodes(sweep, "%s(x:%s[3,150])", unary[k], floats[t]);
    }
    for (size_t k = 0; k < COUNT(positive); k++) {
      sweep_nodes(sweep, "%s(x+:%s[3,150])", positive[k], floats[t]);
    }
    sweep_nodes(sweep, "Div(a:%s[3,150], b+:%s[150])", floats[t], floats[t]);
    sweep_nodes(sweep, "Pow(a+:%s[3,150], b:%s[3,1])", floats[t], floats[t]);
    sweep_nodes(sweep, "Mod{fmod=1}(a:%s[3,150], b+:%s[3,1])", floats[t], floats[t]);
    sweep_nodes(sweep, "PRelu(a:%s[3,150], b:%s[150])", floats[t], floats[t]);
    sweep_nodes(sweep, "Clip(a:%s[3,150], b:%s[], c:%s[])", floats[t], floats[t], floats[t]);
    sweep_nodes(sweep, "Where(Less(a:%s[3,150], b:%s[150]), a, b)", floats[t], floats[t]);
    sweep_nodes(sweep, "Mod(a:%s[3,150], b:%s[3,1])", floats[t], floats[t]);
    sweep_nodes(sweep, "IsNaN(a!:%s[3,150])", floats[t]);
    sweep_nodes(sweep, "Where(IsNaN(a!:%s[3,150]), b:%s[150], a)", floats[t], floats[t]);
    for (int k = 0; k < 4; k++) {
      sweep_nodes(sweep, "IsInf{detect_negative=%d, detect_positive=%d}(a~:%s[3,150])", k % 2, k / 2,
                  floats[t]);
    }
  }
  for (size_t t = 0; t < COUNT(floats) + COUNT(integers); t++) {
    const char *type = t < COUNT(floats) ? floats[t] : integers[t - COUNT(floats)];
    for (size_t k = 0; k < COUNT(arithmetic); k++) {
      sweep_nodes(sweep, "%s(a:%s[3,150], b:%s[150])", arithmetic[k], type, type);
    }
    for (size_t k = 0; k < COUNT(comparisons); k++) {
      sweep_nodes(sweep, "%s(a:%s[3,1], b:%s[3,150])", comparisons[k], type, type);
    }
    for (size_t k = 0; k < COUNT(bits) && t >= COUNT(floats); k++) {
      sweep_nodes(sweep, "%s(a:%s[3,150], b:%s[150])", bits[k], type, type);
      sweep_nodes(sweep, "BitwiseNot(a:%s[3,150])", type);
    }
    for (size_t k = 0; k < COUNT(divisions) && t >= COUNT(floats); k++) {
      sweep_nodes(sweep, "%s(a:%s[3,150], BitwiseOr(b:%s[150], #1:%s))", divisions[k], type, type, type);
      sweep_nodes(sweep, "%s(a:%s[], BitwiseOr(b:%s[2,1,5], #1:%s))", divisions[k], type, type, type);
    }
    if (t >= COUNT(floats)) {
      sweep_nodes(sweep, "Pow(a:%s[3,150], BitwiseAnd(b:%s[150], #7:%s))", type, type, type);
      sweep_nodes(sweep, "Pow(a:%s[3,150], b:i16[3,1])", type);
    }
    for (int k = 0; k < 2 && type[0] == 'u'; k++) {
      sweep_nodes(sweep, "BitShift{direction=%s}(a:%s[3,150], BitwiseAnd(b:%s[150], #%d:%s))",
                  k == 0 ? "LEFT" : "RIGHT", type, type, k == 0 ? 127 : 7, type);
    }
    sweep_nodes(sweep, "And(Less(a:%s[3,150], b:%s[150]), Not(Equal(a, b)))", type, type);
    sweep_nodes(sweep, "Xor(Less(a:%s[3,150], b:%s[150]), Or(Greater(a, b), Equal(a, b)))", type, type);
  }
}
