// SPDX-License-Identifier: Apache-2.0
// Elementwise operators and reductions of the reference backend, against values from NumPy and the ONNX text.
#include "cpu_test.h"

static void check(const char *op, const char *inputs, const char *attributes, const char *expected) {
  op_case(&cpu, op, inputs, attributes, expected);
}

CPU_TEST(computes_functions_of_one_float) {
  check("Exp", "f32[4] 0 1 -1 -inf", "", "f32[4] 1 2.71828183 0.36787944 0");
  check("Exp", "f32[3] 89 -104 nan", "", "f32[3] inf 0 nan");
  check("Exp", "f64[2] 1 -700", "", "f64[2] 2.718281828459045 9.8596765e-305");
  check("Log", "f32[5] 1 2.71828183 0 -1 inf", "", "f32[5] 0 1 -inf nan inf");
  check("Log", "f32[2] 1e-40 0.7", "", "f32[2] -92.1034037 -0.35667494");
  check("Sqrt", "f32[3] 4 2 -1", "", "f32[3] 2 1.41421356 nan");
  check("Reciprocal", "f32[3] 4 -0.5 0", "", "f32[3] 0.25 -2 inf");
  check("Floor", "f32[3] 1.5 -1.5 2", "", "f32[3] 1 -2 2");
  check("Ceil", "f32[3] 1.5 -1.5 2", "", "f32[3] 2 -1 2");
  check("Round", "f32[6] 0.5 1.5 2.5 -0.5 -1.5 2.6", "", "f32[6] 0 2 2 -0 -2 3");
  check("Sin", "f32[2] 0.5 -2", "", "f32[2] 0.47942554 -0.90929743");
  check("Cos", "f32[2] 0.5 -2", "", "f32[2] 0.87758256 -0.41614684");
  check("Tan", "f64[1] 0.5", "", "f64[1] 0.5463024898437905");
  check("Asin", "f32[2] 0.5 2", "", "f32[2] 0.52359878 nan");
  check("Acos", "f32[1] 0.5", "", "f32[1] 1.04719755");
  check("Atan", "f32[1] -3", "", "f32[1] -1.24904577");
  check("Sinh", "f32[1] 1", "", "f32[1] 1.17520119");
  check("Cosh", "f32[1] 1", "", "f32[1] 1.54308063");
  check("Asinh", "f32[1] 1", "", "f32[1] 0.88137359");
  check("Acosh", "f32[1] 2", "", "f32[1] 1.31695790");
  check("Atanh", "f32[1] 0.5", "", "f32[1] 0.54930614");
  check("Erf", "f32[5] 0 0.5 -1 3 nan", "", "f32[5] 0 0.52049988 -0.84270079 0.99997791 nan");
}

CPU_TEST(computes_activations) {
  check("Relu", "f32[4] -1 0 2 nan", "", "f32[4] 0 0 2 nan");
  check("Relu", "i32[3] -5 0 7", "", "i32[3] 0 0 7");
  check("LeakyRelu", "f32[2] -1 2", "alpha=0.1", "f32[2] -0.1 2");
  check("LeakyRelu", "f32[1] -1", "", "f32[1] -0.01");
  check("Elu", "f32[3] -1 2 -1e-4", "alpha=2.0", "f32[3] -1.26424112 2 -1.9999e-4");
  check("Selu", "f32[2] -1 1", "", "f32[2] -1.11133074 1.05070098");
  check("Celu", "f32[2] -1 1", "alpha=2.0", "f32[2] -0.78693868 1");
  check("Sigmoid", "f32[4] 0 2 -100 100", "", "f32[4] 0.5 0.88079708 0 1");
  check("Tanh", "f32[5] 0 0.5 -2 50 -50", "", "f32[5] 0 0.46211716 -0.96402758 1 -1");
  check("HardSigmoid", "f32[3] -9 1 9", "", "f32[3] 0 0.7 1");
  check("HardSwish", "f32[3] -4 1 4", "", "f32[3] 0 0.66666667 4");
  check("Softplus", "f32[4] -20 0 1 100", "", "f32[4] 2.0611536e-9 0.69314718 1.31326169 100");
  check("Softsign", "f32[2] -1 3", "", "f32[2] -0.5 0.75");
  check("ThresholdedRelu", "f32[3] 1 2 3", "alpha=2.0", "f32[3] 0 0 3");
  check("Mish", "f32[3] -1 1 30", "", "f32[3] -0.30340147 0.86509839 30");
  check("Shrink", "f32[3] -2 0.5 2", "lambd=1.5 bias=1.5", "f32[3] -0.5 0 0.5");
  check("Gelu", "f32[2] 1 -1", "", "f32[2] 0.84134475 -0.15865525");
  check("Gelu", "f32[2] 1 -1", "approximate='tanh'", "f32[2] 0.84119199 -0.15880801");
  check("PRelu", "f32[2,2] -1 2 -3 4; f32[2] 0.5 0.25", "", "f32[2,2] -0.5 2 -1.5 4");
  op_case_fails(&cpu, "PRelu", "f32[2] -1 2; f32[2,2] 1", "", "f32[2] 0", CLEAVE_ERROR_SHAPE, "slope");
  op_case_fails(&cpu, "Gelu", "f32[1] 1", "approximate='fast'", "f32[1] 0", CLEAVE_ERROR_UNSUPPORTED,
                "'fast'");
}

CPU_TEST(computes_short_floats_through_float) {
  check("Add", "f16[2] 1 0.5; f16[] 2", "", "f16[2] 3 2.5");
  check("Mul", "bf16[2] 1.5 -4; bf16[2] 2 0.25", "", "bf16[2] 3 -1");
  check("Neg", "f16[3] 1 -2 inf", "", "f16[3] -1 2 -inf");
  check("Relu", "bf16[2] -1 2", "", "bf16[2] 0 2");
  check("Max", "f16[2] 1 5; f16[2] 3 4; f16[1] 2", "", "f16[2] 3 5");
  check("Mean", "f16[2] 1 5; f16[2] 3 4; f16[1] 2", "", "f16[2] 2 3.66601562");
  check("Less", "f16[2] 1 5; f16[2] 3 4", "", "bool[2] 1 0");
  check("Clip", "bf16[3] -3 0.5 9; bf16[] -1; bf16[] 4", "", "bf16[3] -1 0.5 4");
  check("ReduceSum", "f16[4] 1 2 3 0.5; i64[1] 0", "keepdims=0", "f16[] 6.5");
  check("IsNaN", "f16[3] nan inf 1", "", "bool[3] 1 0 0");
  check("IsInf", "bf16[3] nan -inf inf", "detect_negative=0", "bool[3] 0 0 1");
}

CPU_TEST(broadcasts_like_numpy) {
  check("Add", "f32[2,1,3] 1 2 3 4 5 6; f32[2,1] 10 20", "",
        "f32[2,2,3] 11 12 13 21 22 23 14 15 16 24 25 26");
  check("Sub", "f32[] 10; f32[3] 1 2 3", "", "f32[3] 9 8 7");
  check("Sub", "f32[3] 1 2 3; f32[] 10", "", "f32[3] -9 -8 -7");
  check("Mul", "f32[1] 3; f32[] 2", "", "f32[1] 6");
  check("Sum", "f32[2] 1 2; f32[2,1] 10 20; f32[] 100", "", "f32[2,2] 111 112 121 122");
  op_case_fails(&cpu, "Add", "f32[2] 1; f32[3] 1", "", "f32[3] 0", CLEAVE_ERROR_SHAPE,
                "input 1 does not broadcast: dim 0 is 3, expected 2");
  op_case_fails(&cpu, "Add", "f32[2] 1; f32[2] 1", "", "f32[3] 0", CLEAVE_ERROR_SHAPE,
                "output 0 has shape [3], expected [2]");
  op_case_fails(&cpu, "Add", "f32[2] 1; f64[2] 1", "", "f32[2] 0", CLEAVE_ERROR_UNSUPPORTED, "float64");
}

CPU_TEST(integers_wrap_and_never_trap) {
  check("Add", "i32[1] 2147483647; i32[1] 1", "", "i32[1] -2147483648");
  check("Mul", "i64[1] 4611686018427387904; i64[1] 2", "", "i64[1] -9223372036854775808");
  check("Sub", "u8[1] 1; u8[1] 2", "", "u8[1] 255");
  check("Mul", "u16[1] 65535; u16[1] 65535", "", "u16[1] 1");
  check("Div", "i32[4] 7 -7 7 -2147483648; i32[4] 2 2 -2 -1", "", "i32[4] 3 -3 -3 -2147483648");
  check("Div", "u64[2] 18446744073709551615 1; u64[2] 2 3", "", "u64[2] 9223372036854775807 0");
  check("Mod", "i32[6] -4 7 5 4 -7 8; i32[6] 2 -3 8 -2 3 5", "", "i32[6] 0 -2 5 0 2 3");
  check("Mod", "i32[6] -4 7 5 4 -7 8; i32[6] 2 -3 8 -2 3 5", "fmod=1", "i32[6] 0 1 5 0 -1 3");
  check("Mod", "i64[2] -9223372036854775808 3; i64[2] -1 2", "", "i64[2] 0 1");
  check("Div", "i64[2] -9223372036854775808 7; i64[2] -1 2", "", "i64[2] -9223372036854775808 3");
  check("Mod", "f32[3] -4.3 7.2 5; f32[3] 2.1 -3.4 8", "fmod=1", "f32[3] -0.1 0.4 5");
  check("Mod", "f32[2] -1 1; f32[2] 3 -3", "", "f32[2] 2 -2");
  check("Neg", "i8[2] -128 5", "", "i8[2] -128 -5");
  check("Abs", "i32[2] -2147483648 -5", "", "i32[2] -2147483648 5");
  check("Sign", "i64[3] -9 0 9", "", "i64[3] -1 0 1");
  check("Sign", "f32[4] -9 0 9 nan", "", "f32[4] -1 0 1 nan");
}

CPU_TEST(integers_are_not_divided_by_zero) {
  static const char *const TYPES[] = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"};
  for (size_t k = 0; k < sizeof TYPES / sizeof TYPES[0]; k++) {
    const char *type = TYPES[k];
    char inputs[64];
    char output[32];
    (void)snprintf(inputs, sizeof inputs, "%s[3] 4 5 6; %s[3] 1 2 0", type, type);
    (void)snprintf(output, sizeof output, "%s[3] 0", type);
    static const char WHERE[] = "an integer is divided by zero: element 2 of the divisor";
    op_case_fails(&cpu, "Div", inputs, "", output, CLEAVE_ERROR_INVALID_ARGUMENT, WHERE);
    op_case_fails(&cpu, "Mod", inputs, "", output, CLEAVE_ERROR_INVALID_ARGUMENT, WHERE);
    op_case_fails(&cpu, "Mod", inputs, "fmod=1", output, CLEAVE_ERROR_INVALID_ARGUMENT, WHERE);
  }
  op_case_fails(&cpu, "Div", "i32[2] 1 2; i32[] 0", "", "i32[2] 0", CLEAVE_ERROR_INVALID_ARGUMENT,
                "element 0");
  check("Div", "i32[0]; i32[] 0", "", "i32[0]");
  check("Div", "f32[3] 1 -1 0; f32[] 0", "", "f32[3] inf -inf nan");
}

CPU_TEST(raises_to_powers_of_mixed_types) {
  check("Pow", "f32[4] 1 2 -3 4; f32[] 2", "", "f32[4] 1 4 9 16");
  check("Pow", "f32[3] 1 2 -3; f32[] 3", "", "f32[3] 1 8 -27");
  check("Pow", "f32[4] 4 0 -1 inf; f32[] 0.5", "", "f32[4] 2 0 nan inf");
  check("Pow", "f32[2] 2 3; i64[2] -1 4", "", "f32[2] 0.5 81");
  check("Pow", "i32[4] 2 3 -1 2; i64[4] 10 -1 -3 40", "", "i32[4] 1024 0 -1 0");
  check("Pow", "i64[2] 9 2; f32[2] 0.5 3", "", "i64[2] 3 8");
  check("Pow", "f32[] 2; f32[3] 1 2 3", "", "f32[3] 2 4 8");
}

CPU_TEST(extremes_keep_nan) {
  check("Max", "f32[3] 1 nan 3; f32[3] 2 5 nan", "", "f32[3] 2 nan nan");
  check("Min", "f32[3] 1 nan 3; f32[3] 2 5 nan", "", "f32[3] 1 nan nan");
  check("Max", "i8[2] -3 4", "", "i8[2] -3 4");
  check("Min", "u64[2] 18446744073709551615 1; u64[2] 2 3", "", "u64[2] 2 1");
  check("Clip", "f32[4] -2 0.5 9 nan; f32[] 0; f32[] 6", "", "f32[4] 0 0.5 6 nan");
  check("Clip", "f32[2] -2 9; -; f32[] 6", "", "f32[2] -2 6");
  check("Clip", "f32[2] -2 9; f32[] 0", "", "f32[2] 0 9");
  check("Clip", "f32[2] -2 9", "", "f32[2] -2 9");
  check("Clip", "f32[2] -2 9; f32[] 5; f32[] 1", "", "f32[2] 1 1");
  check("Clip", "i8[3] -128 3 127; i8[] -5; i8[] 5", "", "i8[3] -5 3 5");
  check("Clip", "u64[1] 18446744073709551615; u64[] 0; u64[] 9223372036854775808", "",
        "u64[1] 9223372036854775808");
}

CPU_TEST(compares_and_combines_truth) {
  check("Equal", "i64[3] 1 2 3; i64[] 2", "", "bool[3] 0 1 0");
  check("Equal", "str[2] a b; str[] b", "", "bool[2] 0 1");
  check("Equal", "f32[2] nan 1; f32[2] nan 1", "", "bool[2] 0 1");
  check("Less", "f32[3] 1 2 nan; f32[3] 2 2 1", "", "bool[3] 1 0 0");
  check("LessOrEqual", "u8[3] 1 2 3; u8[] 2", "", "bool[3] 1 1 0");
  check("Greater", "i32[2] -1 1; i32[] 0", "", "bool[2] 0 1");
  check("GreaterOrEqual", "f64[2] -1 1; f64[] 1", "", "bool[2] 0 1");
  check("And", "bool[4] 0 0 1 1; bool[4] 0 1 0 1", "", "bool[4] 0 0 0 1");
  check("Or", "bool[2,1] 0 1; bool[2] 0 1", "", "bool[2,2] 0 1 1 1");
  check("Xor", "bool[4] 0 0 1 1; bool[4] 0 1 0 1", "", "bool[4] 0 1 1 0");
  check("Not", "bool[2] 0 1", "", "bool[2] 1 0");
  check("BitwiseAnd", "u8[2] 12 255; u8[] 10", "", "u8[2] 8 10");
  check("BitwiseOr", "i32[1] -8; i32[1] 3", "", "i32[1] -5");
  check("BitwiseXor", "i16[1] 12; i16[1] 10", "", "i16[1] 6");
  check("BitwiseNot", "i8[2] 0 -1", "", "i8[2] -1 0");
  check("BitShift", "u8[3] 16 4 1; u8[3] 1 2 8", "direction='LEFT'", "u8[3] 32 16 0");
  check("BitShift", "u64[2] 16 4; u64[2] 1 64", "direction='RIGHT'", "u64[2] 8 0");
  check("IsNaN", "f32[3] nan 1 inf", "", "bool[3] 1 0 0");
  check("IsInf", "f32[3] -inf 1 inf", "", "bool[3] 1 0 1");
  check("IsInf", "f32[3] -inf 1 inf", "detect_positive=0", "bool[3] 1 0 0");
  check("Where", "bool[2,1] 1 0; f32[2] 1 2; f32[] 9", "", "f32[2,2] 1 2 9 9");
  check("Where", "bool[] 1; i64[] 5; i64[3] 1 2 3", "", "i64[3] 5 5 5");
  check("Where", "bool[3] 1 0 1; str[] yes; str[] no", "", "str[3] yes no yes");
}

CPU_TEST(casts_between_all_types) {
  check("Cast", "f32[6] 1.9 -1.9 3e9 -3e9 nan inf", "", "i32[6] 1 -1 2147483647 -2147483648 0 2147483647");
  check("Cast", "f64[4] 9.3e18 -9.3e18 255.9 -1", "",
        "i64[4] 9223372036854775807 -9223372036854775808 255 -1");
  check("Cast", "f32[4] -0.9 -1 300 255.5", "", "u8[4] 0 0 255 255");
  check("Cast", "i64[3] 257 -1 128", "", "i8[3] 1 -1 -128");
  check("Cast", "i64[2] 16777217 -5", "", "f32[2] 16777216 -5");
  check("Cast", "f32[3] 0 0.5 nan", "", "bool[3] 0 1 1");
  check("Cast", "bool[2] 0 1", "", "f32[2] 0 1");
  check("Cast", "f32[4] 65504 65520 1e-7 0.333333343", "", "f16[4] 65504 inf 1.1920929e-07 0.33325195");
  check("Cast", "f16[3] 2.38418579e-07 -2 nan", "", "f32[3] 2.38418579e-07 -2 nan");
  check("Cast", "f32[3] 1 1.0078125 3.3895314e38", "", "bf16[3] 1 1.0078125 3.3895314e38");
  check("Cast", "f32[2] 1.00390625 1.01171875", "", "bf16[2] 1 1.015625");
  check("Cast", "i32[2] 2049 2051", "", "f16[2] 2048 2052");
  check("Cast", "str[4] 3 -2.5 inf NaN", "", "f32[4] 3 -2.5 inf nan");
  check("Cast", "str[1] 9007199254740993", "", "i64[1] 9007199254740993");
  check("CastLike", "f32[1] 2.5; i64[1] 0", "", "i64[1] 2");
  op_case_fails(&cpu, "Cast", "str[1] 3x", "", "f32[1] 0", CLEAVE_ERROR_FORMAT, "'3x' is not a number");
  op_case_fails(&cpu, "Cast", "f32[1] 1", "", "str[1] 1", CLEAVE_ERROR_UNSUPPORTED, "from float32 to string");
}

CPU_TEST(reduces_over_any_axes) {
  check("ReduceSum", "f32[2,3,2] 1 2 3 4 5 6 7 8 9 10 11 12; i64[1] 1", "keepdims=0", "f32[2,2] 9 12 27 30");
  check("ReduceSum", "f32[2,3,2] 1 2 3 4 5 6 7 8 9 10 11 12; i64[2] 0 -1", "", "f32[1,3,1] 18 26 34");
  check("ReduceSum", "f32[2,2] 1 2 3 4", "keepdims=0", "f32[] 10");
  check("ReduceSum", "f32[2,2] 1 2 3 4; i64[0]", "noop_with_empty_axes=1", "f32[2,2] 1 2 3 4");
  check("ReduceSum", "i32[2] 2147483647 1; i64[1] 0", "keepdims=0", "i32[] -2147483648");
  check("ReduceMean", "f32[2,2] 1 2 3 5; i64[1] 1", "", "f32[2,1] 1.5 4");
  check("ReduceMean", "i32[3] 1 2 4; i64[1] 0", "keepdims=0", "i32[] 2");
  check("ReduceMax", "f32[2,2] 1 nan 3 -inf; i64[1] 1", "keepdims=0", "f32[2] nan 3");
  check("ReduceMax", "i8[2,2] -5 -7 3 4; i64[1] 0", "keepdims=0", "i8[2] 3 4");
  check("ReduceMin", "u64[2] 18446744073709551615 9223372036854775808; i64[1] 0", "keepdims=0",
        "u64[] 9223372036854775808");
  check("ReduceMax", "bool[2,2] 0 1 0 0; i64[1] 1", "keepdims=0", "bool[2] 1 0");
  check("ReduceProd", "f32[4] 1 2 3 4; i64[1] 0", "keepdims=0", "f32[] 24");
  check("ReduceL1", "f32[3] -1 2 -3; i64[1] 0", "keepdims=0", "f32[] 6");
  check("ReduceL2", "f32[2] 3 -4; i64[1] 0", "keepdims=0", "f32[] 5");
  check("ReduceL2", "i32[2] 3 -4; i64[1] 0", "keepdims=0", "i32[] 5");
  check("ReduceSumSquare", "i64[2] 3 -4; i64[1] 0", "keepdims=0", "i64[] 25");
  check("ReduceLogSum", "f32[2] 1 1.71828183; i64[1] 0", "keepdims=0", "f32[] 1");
  check("ReduceLogSumExp", "f32[2,2] 1000 1000 0 -inf; i64[1] 1", "keepdims=0", "f32[2] 1000.69315 0");
  check("ReduceLogSumExp", "f32[2,2] 1 2 3 4; i64[1] 0", "keepdims=0", "f32[2] 3.12692801 4.12692801");
  check("ReduceSum", "f32[3,700] 0.5; i64[1] 1", "keepdims=0", "f32[3] 350");
  check("ReduceSum", "f32[3,700] 0.5; i64[1] 0", "keepdims=0", "f32[700] 1.5");
  check("ReduceLogSumExp", "f32[600] 2; i64[1] 0", "keepdims=0", "f32[] 8.39692966");
  check("ReduceSum", "f32[] 3", "", "f32[] 3");
  op_case_fails(&cpu, "ReduceSum", "f32[2] 1; i64[1] 1", "", "f32[1] 0", CLEAVE_ERROR_SHAPE,
                "axis 1 is outside rank 1");
}

CPU_TEST(finds_the_place_of_an_extreme) {
  check("ArgMax", "f32[2,3] 1 3 3 9 2 1", "axis=1 keepdims=0", "i64[2] 1 0");
  check("ArgMax", "f32[2,3] 1 3 3 9 2 1", "axis=1 select_last_index=1", "i64[2,1] 2 0");
  check("ArgMin", "i32[2,3] 1 3 3 9 2 1", "axis=0 keepdims=0", "i64[3] 0 1 1");
  check("ArgMax", "f32[3] 1 nan 3", "axis=-1 keepdims=0", "i64[] 1");
  check("ArgMax", "u64[2] 1 18446744073709551615", "axis=0 keepdims=0", "i64[] 1");
  check("ArgMax", "f32[700] 1", "axis=0 keepdims=0 select_last_index=1", "i64[] 699");
  op_case_fails(&cpu, "ArgMax", "f32[2,0]", "axis=1 keepdims=0", "i64[2] 0", CLEAVE_ERROR_SHAPE,
                "no elements");
}

CPU_TEST(sums_along_an_axis) {
  check("CumSum", "f32[4] 1 2 3 4; i64[] 0", "", "f32[4] 1 3 6 10");
  check("CumSum", "f32[4] 1 2 3 4; i64[] 0", "exclusive=1", "f32[4] 0 1 3 6");
  check("CumSum", "f32[4] 1 2 3 4; i64[] 0", "reverse=1", "f32[4] 10 9 7 4");
  check("CumSum", "f32[4] 1 2 3 4; i64[] 0", "reverse=1 exclusive=1", "f32[4] 9 7 4 0");
  check("CumSum", "i32[2,3] 1 2 3 4 5 6; i32[] 0", "", "i32[2,3] 1 2 3 5 7 9");
  check("CumSum", "i32[2,3] 1 2 3 4 5 6; i32[] -1", "", "i32[2,3] 1 3 6 4 9 15");
  op_case_fails(&cpu, "CumSum", "f32[2] 1; i64[] 1", "", "f32[2] 0", CLEAVE_ERROR_SHAPE, "axis");
}

UNIT_SUITE("cpu_math")
