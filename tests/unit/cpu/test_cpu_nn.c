// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling, matrix product, normalisation and softmax kernels of the reference backend; expected
// values are those of PyTorch and NumPy in double.
#include "cpu_test.h"

CPU_TEST(convolves_with_padding_stride_and_bias) {
  op_case_with_shapes(&cpu, "Conv",
                      "f32[1,2,4,5] 3 1 1 3 1 2 2 -2 -3 -1 -2 3 3 -3 0 2 -3 2 -3 0 2 -1 -1 -2 2 -2 3 0 0 0 1 "
                      "0 0 3 2 2 1 1 -1 3; f32[2,2,3,3] 0 -2 2 -2 3 1 -3 -3 0 -3 -3 0 3 0 2 3 2 1 0 0 -2 0 "
                      "-1 -2 3 -3 -3 -2 3 1 3 -2 2 -1 0 -3; f32[2] 1 2",
                      "pads=[1,1,1,1] strides=[2,1]",
                      "f32[1,2,2,5] 2 -9 7 25 4 3 21 3 1 30 -30 13 8 8 -15 -11 17 7 10 -1");
  op_case_with_shapes(
      &cpu, "Conv",
      "f64[1,2,4,5] 3 1 1 3 1 2 2 -2 -3 -1 -2 3 3 -3 0 2 -3 2 -3 0 2 -1 -1 -2 2 -2 3 0 0 0 1 0 0 3 2 2 1 1 "
      "-1 3; f64[2,2,3,3] 0 -2 2 -2 3 1 -3 -3 0 -3 -3 0 3 0 2 3 2 1 0 0 -2 0 -1 -2 3 -3 -3 -2 3 1 3 -2 2 -1 "
      "0 -3",
      "pads=[0,2,1,0]",
      "f64[1,2,3,5] 5 12 -9 -9 7 6 2 20 2 0 2 12 -6 -2 -7 -9 4 -45 8 13 -12 -13 15 5 8 5 -1 -3 12 25");
  op_case_with_shapes(&cpu, "Conv",
                      "f16[1,2,4,5] 3 1 1 3 1 2 2 -2 -3 -1 -2 3 3 -3 0 2 -3 2 -3 0 2 -1 -1 -2 2 -2 3 0 0 0 1 "
                      "0 0 3 2 2 1 1 -1 3; f16[2,2,3,3] 0 -2 2 -2 3 1 -3 -3 0 -3 -3 0 3 0 2 3 2 1 0 0 -2 0 "
                      "-1 -2 3 -3 -3 -2 3 1 3 -2 2 -1 0 -3",
                      "", "f16[1,2,2,3] -9 -9 7 20 2 0 -45 8 13 15 5 8");
}

CPU_TEST(convolves_one_and_three_axes) {
  op_case_with_shapes(&cpu, "Conv", "f32[2,1,6] 1 -2 0 -2 3 3 -2 0 3 2 1 1; f32[1,1,2] -3 2", "dilations=[2]",
                      "f32[2,1,4] -3 2 6 12 12 4 -7 -4");
  op_case_with_shapes(&cpu, "Conv",
                      "f32[1,1,2,3,3] 0 -3 -2 0 2 0 1 3 1 -1 1 1 -3 -3 1 -1 1 -1; f32[2,1,2,2,2] -2 -2 -1 2 "
                      "-1 -1 1 3 -1 1 0 1 0 1 0 1",
                      "", "f32[1,2,1,2,2] -2 6 9 -5 -3 3 3 -1");
}

CPU_TEST(convolves_groups_and_depthwise) {
  op_case_with_shapes(&cpu, "Conv",
                      "f32[1,4,3,3] 3 -2 0 0 -1 -2 -3 -1 2 -3 -1 3 3 -2 -3 1 -3 -1 0 3 -3 1 0 -3 2 2 0 3 1 3 "
                      "3 0 -2 -2 0 -2; f32[2,2,2,2] 2 3 -2 0 -3 -2 -1 3 3 1 1 0 -3 -1 3 -1",
                      "group=2", "f32[1,2,2,2] 2 -12 -12 6 3 2 -10 3");
  op_case_with_shapes(&cpu, "Conv",
                      "f32[1,2,4,4] -2 -2 1 -3 3 3 0 0 2 0 0 -1 0 2 -3 -3 2 -1 2 -3 3 -3 -1 3 -3 1 2 -1 -3 0 "
                      "0 3; f32[4,1,3,3] 1 -1 -3 1 -2 1 3 -1 3 0 0 2 2 3 3 -2 -1 3 -1 -3 1 2 2 2 1 -3 2 -1 2 "
                      "2 3 -3 3 1 0 2; f32[4] 3 0 -3 2",
                      "group=2 pads=[1,1,1,1] strides=[2,2]",
                      "f32[1,4,2,2] 11 5 -7 5 -6 -16 18 -13 -16 -1 -10 16 -13 -13 14 9");
}

CPU_TEST(pads_to_the_same_size) {
  op_case_with_shapes(&cpu, "Conv",
                      "f32[1,1,4,4] -2 -2 -2 -2 3 -1 -3 -2 -1 -1 -1 3 3 1 3 -1; f32[1,1,2,2] -3 -2 -3 3",
                      "auto_pad='SAME_UPPER'", "f32[1,1,4,4] -2 4 13 12 -7 9 25 -3 -1 11 -15 -6 -11 -9 -7 3");
  op_case_with_shapes(&cpu, "Conv",
                      "f32[1,1,4,4] -2 -2 -2 -2 3 -1 -3 -2 -1 -1 -1 3 3 1 3 -1; f32[1,1,2,2] -3 -2 -3 3",
                      "auto_pad='SAME_LOWER'", "f32[1,1,4,4] -6 0 0 0 13 -2 4 13 -9 -7 9 25 11 -1 11 -15");
}

CPU_TEST(convolves_point_by_point) {
  op_case_with_shapes(&cpu, "Conv", "f32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; f32[2,3,1,1] 1 1 2 -1 3 3", "",
                      "f32[1,2,2,2] 2 6 5 7 5 9 17 3");
  op_case_with_shapes(&cpu, "Conv", "f32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; f32[2,3,1,1] 1 1 2 -1 3 3",
                      "strides=[2,2]", "f32[1,2,1,1] 2 5");
  op_case_with_shapes(&cpu, "Conv", "f32[0,3,2,2]; f32[2,3,1,1] 1 1 2 -1 3 3", "", "f32[0,2,2,2]");
}

CPU_TEST(refuses_convolutions_that_do_not_fit) {
  op_case_fails(&cpu, "Conv", "f32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; f32[2,2,1,1] -1 -1 2 3", "",
                "f32[1,2,2,2] 0", CLEAVE_ERROR_SHAPE, "3 channels in 1 group cannot have weights [2, 2]");
  op_case_fails(&cpu, "Conv", "f32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; f32[2,3,1,1] 1 1 2 -1 3 3", "",
                "f32[1,2,3,2] 0", CLEAVE_ERROR_SHAPE, "output has 3 elements on spatial axis 0, expected 2");
  op_case_fails(&cpu, "Conv",
                "f32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; f32[2,3,1,1] 1 1 2 -1 3 3; f32[3] -3 -3 -2", "",
                "f32[1,2,2,2] 0", CLEAVE_ERROR_SHAPE, "bias has 3 elements, expected 2");
  op_case_fails(&cpu, "Conv", "f32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; f32[2,3,1,1] 1 1 2 -1 3 3",
                "kernel_shape=[1,3]", "f32[1,2,2,2] 0", CLEAVE_ERROR_SHAPE,
                "kernel_shape has 3, the weights have 1");
  op_case_fails(&cpu, "Conv", "f32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; f32[2,3,1,1] 1 1 2 -1 3 3",
                "strides=[0,1]", "f32[1,2,2,2] 0", CLEAVE_ERROR_UNSUPPORTED,
                "strides has entry 0, expected at least 1");
  op_case_fails(&cpu, "Conv", "f32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; f32[2,3,1,1] 1 1 2 -1 3 3", "group=0",
                "f32[1,2,2,2] 0", CLEAVE_ERROR_UNSUPPORTED, "group is 0");
  op_case_fails(&cpu, "Conv", "f32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; f32[2,3,1,1] 1 1 2 -1 3 3",
                "strides=[1]", "f32[1,2,2,2] 0", CLEAVE_ERROR_SHAPE, "attributes do not fit 2 spatial axes");
  op_case_fails(&cpu, "Conv", "f32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; f32[2,3,1,1] 1 1 2 -1 3 3",
                "auto_pad='SOME'", "f32[1,2,2,2] 0", CLEAVE_ERROR_UNSUPPORTED, "auto_pad 'SOME' is unknown");
  op_case_fails(&cpu, "Conv", "i32[1,3,2,2] -2 0 -2 3 -2 0 3 0 3 3 2 2; i32[2,3,1,1] 1 1 2 -1 3 3", "",
                "i32[1,2,2,2] 0", CLEAVE_ERROR_UNSUPPORTED, "input 0 of dtype int32 is not supported");
}

CPU_TEST(convolves_transposed) {
  op_case_with_shapes(&cpu, "ConvTranspose",
                      "f32[1,2,3,2] 0 -2 0 0 3 2 -2 2 2 1 1 -1; f32[2,1,3,3] 2 -3 1 3 3 -1 -1 1 -1 2 -2 -2 "
                      "-3 0 -2 -1 3 2; f32[1] 2",
                      "strides=[2,2] pads=[1,1,1,1] output_padding=[1,0]",
                      "f32[1,1,6,3] 2 -6 -4 -8 -4 4 2 -5 2 -3 8 1 11 6 8 8 0 1");
  op_case_with_shapes(
      &cpu, "ConvTranspose",
      "f32[1,2,3,2] 0 -2 0 0 3 2 -2 2 2 1 1 -1; f32[2,2,2,2] 1 -3 2 1 3 0 -2 1 0 1 -1 -1 -3 3 2 0",
      "group=2 dilations=[2,1]",
      "f32[1,4,5,3] 0 -2 6 0 0 0 3 -11 -8 0 0 0 6 7 2 0 -6 0 0 0 0 9 10 -2 0 0 0 -6 -1 2 0 -2 2 0 2 1 2 1 -3 "
      "-2 -3 -1 -1 0 1 6 -12 6 -6 3 3 -7 10 -3 4 2 0 2 -2 0");
  op_case_with_shapes(&cpu, "ConvTranspose", "f32[1,1,3] 2 -3 1; f32[1,1,3] -1 -3 2",
                      "strides=[2] auto_pad='SAME_UPPER'", "f32[1,1,6] -2 -6 7 9 -7 -3");
  op_case_with_shapes(&cpu, "ConvTranspose", "f32[1,1,3] 2 -3 1; f32[1,1,3] -1 -3 2",
                      "strides=[2] output_shape=[6]", "f32[1,1,6] -6 7 9 -7 -3 2");
  op_case_fails(&cpu, "ConvTranspose", "f32[1,1,3] 2 -3 1; f32[1,1,3] -1 -3 2", "strides=[2]", "f32[1,1,6] 0",
                CLEAVE_ERROR_SHAPE, "output has 6 elements on spatial axis 0, expected 7");
}

CPU_TEST(convolves_integers) {
  op_case_with_shapes(&cpu, "ConvInteger",
                      "u8[1,2,3,3] 6 7 8 6 7 1 8 8 6 7 6 7 8 4 7 8 2 0; i8[2,2,2,2] -2 -3 0 -3 -2 -2 1 -2 3 "
                      "-2 3 0 -2 -3 -1 1; u8[] 3; i8[2] 1 -2",
                      "", "i32[1,2,2,2] -68 -61 -65 -27 43 45 51 37");
  op_case_with_shapes(&cpu, "ConvInteger",
                      "u8[1,2,3,3] 6 7 8 6 7 1 8 8 6 7 6 7 8 4 7 8 2 0; i8[2,2,2,2] -2 -3 0 -3 -2 -2 1 -2 3 "
                      "-2 3 0 -2 -3 -1 1; u8[] 3",
                      "pads=[0,1,0,0]", "i32[1,2,2,3] -36 -41 -38 -44 -38 -16 -13 -11 -1 -16 -3 15");
  op_case_with_shapes(
      &cpu, "QLinearConv",
      "u8[1,2,3,3] 6 7 8 6 7 1 8 8 6 7 6 7 8 4 7 8 2 0; f32[] 0.5; u8[] 3; i8[2,2,2,2] -2 -3 0 -3 -2 -2 1 -2 "
      "3 -2 3 0 -2 -3 -1 1; f32[2] 0.25 0.5; i8[] 0; f32[] 2; u8[] 5; i32[2] 4 -7",
      "", "u8[1,2,2,2] 3 3 3 4 3 4 4 6");
}

CPU_TEST(takes_maxima_of_windows) {
  op_case_with_shapes(&cpu, "MaxPool", "f32[1,1,4,5] -7 -6 -7 3 -8 -9 -1 -4 1 8 7 1 3 6 -1 3 -5 2 -5 -6",
                      "kernel_shape=[2,2] strides=[2,2] ceil_mode=1", "f32[1,1,2,3] -1 3 8 7 6 -1");
  op_case_with_shapes(&cpu, "MaxPool", "f32[1,1,4,5] -7 -6 -7 3 -8 -9 -1 -4 1 8 7 1 3 6 -1 3 -5 2 -5 -6",
                      "kernel_shape=[2,2] strides=[2,2] ceil_mode=1",
                      "f32[1,1,2,3] -1 3 8 7 6 -1; i64[1,1,2,3] 6 3 9 10 13 14");
  op_case_with_shapes(&cpu, "MaxPool", "f32[1,1,4,5] -7 -6 -7 3 -8 -9 -1 -4 1 8 7 1 3 6 -1 3 -5 2 -5 -6",
                      "kernel_shape=[2,2] strides=[2,2] ceil_mode=1", "-; i64[1,1,2,3] 6 3 9 10 13 14");
  op_case_with_shapes(&cpu, "MaxPool", "f32[1,1,4,5] -7 -6 -7 3 -8 -9 -1 -4 1 8 7 1 3 6 -1 3 -5 2 -5 -6",
                      "kernel_shape=[2,2] strides=[2,2] ceil_mode=1 storage_order=1",
                      "f32[1,1,2,3] -1 3 8 7 6 -1; i64[1,1,2,3] 5 12 17 2 14 18");
  op_case_with_shapes(&cpu, "MaxPool", "f32[1,1,4,5] -7 -6 -7 3 -8 -9 -1 -4 1 8 7 1 3 6 -1 3 -5 2 -5 -6",
                      "kernel_shape=[2,3] pads=[1,1,1,1] dilations=[2,1]",
                      "f32[1,1,4,5] -1 -1 1 8 8 7 7 6 6 6 3 3 2 8 8 7 7 6 6 6");
  op_case_with_shapes(&cpu, "MaxPool", "f32[1,1,4] 1 nan 2 3", "kernel_shape=[2]", "f32[1,1,3] nan nan 3");
  op_case_with_shapes(&cpu, "MaxPool", "i8[1,1,2,4] 52 14 -25 -93 -53 60 -7 92", "kernel_shape=[1,2]",
                      "i8[1,1,2,3] 52 14 -25 60 60 92");
  op_case_with_shapes(&cpu, "MaxPool", "u8[1,1,4] 180 170 3 10", "kernel_shape=[3] auto_pad='SAME_UPPER'",
                      "u8[1,1,4] 180 180 170 10");
}

CPU_TEST(averages_windows) {
  op_case_with_shapes(&cpu, "AveragePool", "f32[1,1,4,5] -7 -6 -7 3 -8 -9 -1 -4 1 8 7 1 3 6 -1 3 -5 2 -5 -6",
                      "kernel_shape=[2,2] pads=[1,0,1,0]",
                      "f32[1,1,5,4] -6.5 -6.5 -2 -2.5 -5.75 -4.5 -1.75 1 -0.5 -0.25 1.5 3.5 1.5 0.25 1.5 "
                      "-1.5 -1 -1.5 -1.5 -5.5");
  op_case_with_shapes(&cpu, "AveragePool", "f32[1,1,4,5] -7 -6 -7 3 -8 -9 -1 -4 1 8 7 1 3 6 -1 3 -5 2 -5 -6",
                      "kernel_shape=[2,2] pads=[1,0,1,0] count_include_pad=1",
                      "f32[1,1,5,4] -3.25 -3.25 -1 -1.25 -5.75 -4.5 -1.75 1 -0.5 -0.25 1.5 3.5 1.5 0.25 1.5 "
                      "-1.5 -0.5 -0.75 -0.75 -2.75");
  op_case_with_shapes(&cpu, "AveragePool", "f32[1,1,4,5] -7 -6 -7 3 -8 -9 -1 -4 1 8 7 1 3 6 -1 3 -5 2 -5 -6",
                      "kernel_shape=[3,3] strides=[2,2] ceil_mode=1 count_include_pad=1 pads=[1,1,1,1]",
                      "f32[1,1,3,3] -2.55555558 -1.55555558 0.444444448 -0.444444448 -0.222222224 "
                      "0.333333343 -0.333333343 -1.33333337 -1.83333337");
  op_case_with_shapes(&cpu, "AveragePool", "f64[1,1,4,5] -7 -6 -7 3 -8 -9 -1 -4 1 8 7 1 3 6 -1 3 -5 2 -5 -6",
                      "kernel_shape=[2,2] dilations=[1,2]",
                      "f64[1,1,3,3] -6.75 -0.75 -2.75 -0.75 1.75 1.5 3.75 -0.75 -0.5");
  op_case_with_shapes(&cpu, "LpPool", "f32[1,1,4,5] -7 -6 -7 3 -8 -9 -1 -4 1 8 7 1 3 6 -1 3 -5 2 -5 -6",
                      "kernel_shape=[2,2] strides=[2,2] p=2",
                      "f32[1,1,2,2] 12.9228477 8.66025448 9.1651516 8.60232544");
}

CPU_TEST(pools_whole_planes) {
  op_case_with_shapes(&cpu, "GlobalAveragePool",
                      "f32[2,2,2,3] 1 -1 2 -1 -2 -3 -1 1 -3 2 -1 -1 1 3 0 2 -1 -3 2 2 2 3 0 -2", "",
                      "f32[2,2,1,1] -0.666666687 -0.5 0.333333343 1.16666663");
  op_case_with_shapes(&cpu, "GlobalMaxPool",
                      "f32[2,2,2,3] 1 -1 2 -1 -2 -3 -1 1 -3 2 -1 -1 1 3 0 2 -1 -3 2 2 2 3 0 -2", "",
                      "f32[2,2,1,1] 2 2 3 3");
  op_case_with_shapes(&cpu, "GlobalLpPool",
                      "f32[2,2,2,3] 1 -1 2 -1 -2 -3 -1 1 -3 2 -1 -1 1 3 0 2 -1 -3 2 2 2 3 0 -2", "p=1",
                      "f32[2,2,1,1] 10 9 10 11");
  op_case_with_shapes(&cpu, "GlobalMaxPool",
                      "f16[2,2,2,3] 1 -1 2 -1 -2 -3 -1 1 -3 2 -1 -1 1 3 0 2 -1 -3 2 2 2 3 0 -2", "",
                      "f16[2,2,1,1] 2 2 3 3");
}

CPU_TEST(unpools_maxima) {
  op_case_with_shapes(&cpu, "MaxUnpool", "f32[1,1,2,2] 1 2 3 4; i64[1,1,2,2] 5 7 13 15",
                      "kernel_shape=[2,2] strides=[2,2]", "f32[1,1,4,4] 0 0 0 0 0 1 0 2 0 0 0 0 0 3 0 4");
  op_case_fails(&cpu, "MaxUnpool", "f32[1,1,1,1] 1; i64[1,1,1,1] 16", "kernel_shape=[2,2] strides=[2,2]",
                "f32[1,1,2,2] 0", CLEAVE_ERROR_SHAPE, "index 16 is outside of the output");
  op_case_fails(&cpu, "MaxUnpool", "f32[1,1,1,1] 1; i64[1,1,1,1] -1", "kernel_shape=[2,2] strides=[2,2]",
                "f32[1,1,2,2] 0", CLEAVE_ERROR_SHAPE, "index -1 is outside of the output");
}

CPU_TEST(refuses_pools_without_end) {
  op_case_fails(&cpu, "MaxPool", "f32[1,1,4,4] 0", "kernel_shape=[100000,100000]", "f32[1,1,1,1] 0",
                CLEAVE_ERROR_LIMIT, "a window has 10000000000 elements");
  op_case_fails(&cpu, "AveragePool", "f32[1,1,4] 0", "kernel_shape=[6] pads=[1,0]", "f32[1,1,1] 0",
                CLEAVE_ERROR_SHAPE, "a window of 6 elements does not fit into 5");
  op_case_fails(&cpu, "MaxPool", "f32[1,1,4] 0", "", "f32[1,1,1] 0", CLEAVE_ERROR_INVALID_ARGUMENT,
                "kernel_shape is missing");
  op_case_fails(&cpu, "AveragePool", "f32[4,4] 0", "kernel_shape=[1]", "f32[4,4] 0", CLEAVE_ERROR_UNSUPPORTED,
                "input has rank 2, expected 3 to 5");
}

CPU_TEST(multiplies_matrices) {
  op_case_with_shapes(&cpu, "MatMul", "f32[2,3] 1 1 -1 1 -2 1; f32[3,2] 2 -3 0 1 -3 1", "",
                      "f32[2,2] 5 -3 -1 -4");
  op_case_with_shapes(&cpu, "MatMul", "f32[3] 3 2 1; f32[3,2] 2 -1 -1 -3 2 -1", "", "f32[2] 6 -10");
  op_case_with_shapes(&cpu, "MatMul", "f32[2,3] 3 0 3 -3 -2 -1; f32[3] -3 0 1", "", "f32[2] -6 8");
  op_case_with_shapes(&cpu, "MatMul", "f32[3] 1 -2 -2; f32[3] 0 1 3", "", "f32[] -8");
  op_case_with_shapes(&cpu, "MatMul", "f32[2,2,3] 3 -1 -2 -2 3 0 3 1 1 -3 1 -1; f32[3,2] 2 -3 -2 1 1 2", "",
                      "f32[2,2,2] 6 -14 -10 9 5 -6 -9 8");
  op_case_with_shapes(&cpu, "MatMul",
                      "f32[2,1,1,3] 0 -1 -1 -1 1 0; f32[2,3,2] -1 -2 1 -2 -2 -1 2 0 1 -3 -1 2", "",
                      "f32[2,2,1,2] 1 3 0 1 2 0 -1 -3");
  op_case_with_shapes(&cpu, "MatMul", "f32[2,0]; f32[0,2]", "", "f32[2,2] 0");
  op_case_with_shapes(&cpu, "MatMul",
                      "i64[2,3] 2000000000000000 1000000000000000 3000000000000000 -1000000000000000 "
                      "-2000000000000000 -3000000000000000; i64[3,2] -2 2 3 -3 0 -3",
                      "", "i64[2,2] -1000000000000000 -8000000000000000 -4000000000000000 13000000000000000");
  op_case_with_shapes(&cpu, "MatMul", "f16[2,3] 2 -3 1 -3 2 3; f16[3,2] 2 -2 2 -1 2 2", "",
                      "f16[2,2] 0 1 4 10");
  op_case_with_shapes(&cpu, "MatMul", "f64[2,3] 2 -3 1 -3 2 3; f64[3,2] 2 -2 2 -1 2 2", "",
                      "f64[2,2] 0 1 4 10");
  op_case_fails(&cpu, "MatMul", "f32[2,3] 0 1 2 -2 -3 0; f32[2,2] -2 3 3 -1", "", "f32[2,2] -1 1 0 -3",
                CLEAVE_ERROR_SHAPE, "inner sizes differ: 3 and 2");
  op_case_fails(
      &cpu, "MatMul",
      "f32[2,2,3] 1 2 -3 2 0 2 2 1 -1 -1 2 -3; f32[3,3,2] -2 0 3 2 2 -2 -2 -2 2 0 -2 2 1 3 0 -3 3 -2", "",
      "f32[2,2,2] -3 2 0 1 -3 2 -1 3", CLEAVE_ERROR_SHAPE, "batch dimensions do not broadcast");
  op_case_fails(&cpu, "MatMul", "f32[] 1; f32[2] 1 3", "", "f32[] 1", CLEAVE_ERROR_SHAPE,
                "an input is a scalar");
}

CPU_TEST(multiplies_matrices_with_scale_and_bias) {
  op_case_with_shapes(&cpu, "Gemm", "f32[3,2] 2 2 -3 2 1 -1; f32[4,3] -1 1 -2 -2 3 2 1 2 -1 2 -2 0",
                      "transA=1 transB=1 alpha=0.5 beta=2.0", "f32[2,4] -3.5 -5.5 -2.5 5 1 0 3.5 0");
  op_case_with_shapes(&cpu, "Gemm", "f32[3,2] 2 2 -3 2 1 -1; f32[4,3] -1 1 -2 -2 3 2 1 2 -1 2 -2 0; f32[] 2",
                      "transA=1 transB=1 alpha=0.5 beta=2.0", "f32[2,4] 0.5 -1.5 1.5 9 5 4 7.5 4");
  op_case_with_shapes(&cpu, "Gemm",
                      "f32[3,2] 2 2 -3 2 1 -1; f32[4,3] -1 1 -2 -2 3 2 1 2 -1 2 -2 0; f32[4] -2 -1 -1 -1",
                      "transA=1 transB=1 alpha=0.5 beta=2.0", "f32[2,4] -7.5 -7.5 -4.5 3 -3 -2 1.5 -2");
  op_case_with_shapes(&cpu, "Gemm",
                      "f32[3,2] 2 2 -3 2 1 -1; f32[4,3] -1 1 -2 -2 3 2 1 2 -1 2 -2 0; f32[2,1] 0 -3",
                      "transA=1 transB=1 alpha=0.5 beta=2.0", "f32[2,4] -3.5 -5.5 -2.5 5 -5 -6 -2.5 -6");
  op_case_with_shapes(
      &cpu, "Gemm",
      "f32[3,2] 2 2 -3 2 1 -1; f32[4,3] -1 1 -2 -2 3 2 1 2 -1 2 -2 0; f32[2,4] -1 2 0 0 -3 -1 3 0",
      "transA=1 transB=1 alpha=0.5 beta=2.0", "f32[2,4] -5.5 -1.5 -2.5 5 -5 -2 9.5 0");
  op_case_with_shapes(&cpu, "Gemm", "i32[1,3] -3 2 2; i32[3,1] -1 -3 2", "alpha=3.0", "i32[1,1] 3");
  op_case_fails(&cpu, "Gemm", "f32[1,3] -2 3 -1; f32[3,2] -1 2 -3 -3 2 3; f32[3] 3 -3 -2", "",
                "f32[1,2] -1 1", CLEAVE_ERROR_SHAPE, "C does not broadcast to [1, 2]");
  op_case_fails(&cpu, "Gemm", "i32[1,3] -3 2 2; i32[3,1] -1 -3 2", "alpha=0.5", "i32[1,1] 1",
                CLEAVE_ERROR_UNSUPPORTED, "alpha or beta 0.5 of an integer product is not an integer");
}

CPU_TEST(multiplies_bytes) {
  op_case_with_shapes(&cpu, "MatMulInteger",
                      "u8[2,3] 8 7 3 8 2 1; i8[3,2] 0 -3 1 3 -3 -3; u8[] 2; i8[2] 1 -1", "",
                      "i32[2,2] -10 6 -2 -10");
  op_case_with_shapes(
      &cpu, "QLinearMatMul",
      "u8[2,3] 8 7 3 8 2 1; f32[] 0.5; u8[] 2; i8[3,2] 0 -3 1 3 -3 -3; f32[] 0.5; i8[] 0; f32[] 1; u8[] 7",
      "", "u8[2,2] 7 5 8 3");
}

CPU_TEST(sums_products_by_equation) {
  op_case_with_shapes(&cpu, "Einsum",
                      "f32[2,2,3] -2 -2 0 1 3 0 3 2 2 -2 0 3; f32[2,3,2] 2 -2 2 2 -2 -3 -2 0 -2 -3 -3 -1",
                      "equation='bij,bjk->bik'", "f32[2,2,2] -8 0 8 4 -16 -8 -5 -3");
  op_case_with_shapes(&cpu, "Einsum",
                      "f32[2,2,3] -2 -2 0 1 3 0 3 2 2 -2 0 3; f32[2,3,2] 2 -2 2 2 -2 -3 -2 0 -2 -3 -3 -1",
                      "equation='...ij,...jk->...ki'", "f32[2,2,2] -8 8 0 4 -16 -5 -8 -3");
  op_case_with_shapes(&cpu, "Einsum", "f32[3,3] -1 -1 0 2 -2 0 2 -3 3", "equation='ii->i'", "f32[3] -1 -2 3");
  op_case_with_shapes(&cpu, "Einsum", "f32[3,3] -1 -1 0 2 -2 0 2 -3 3", "equation='ii'", "f32[] 0");
  op_case_with_shapes(&cpu, "Einsum", "f32[2,3] 3 -1 3 -2 3 1; f32[3,2] -2 -3 -1 2 -2 0; f32[2,2] -3 -1 -3 3",
                      "equation='ij,jk,kl->il'", "f32[2,2] 66 -22 -33 37");
  op_case_with_shapes(&cpu, "Einsum", "i32[2,3] 3 -1 3 -2 3 1; i32[3,2] -2 -3 -1 2 -2 0", "equation='ij,jk'",
                      "i32[2,2] -11 -11 -1 12");
  op_case_fails(&cpu, "Einsum", "f32[2,3] 3 -1 3 -2 3 1; f32[3,2] -2 -3 -1 2 -2 0", "equation='ij->ij'",
                "f32[2,3] 3 -1 3 -2 3 1", CLEAVE_ERROR_UNSUPPORTED,
                "equation 'ij->ij' has 1 term for 2 operands");
  op_case_fails(&cpu, "Einsum", "f32[2,3] 3 -1 3 -2 3 1", "equation='i.j->ij'", "f32[2,3] 3 -1 3 -2 3 1",
                CLEAVE_ERROR_UNSUPPORTED, "is malformed");
  op_case_fails(&cpu, "Einsum", "f32[2,3] 3 -1 3 -2 3 1", "equation='ij->ijk'", "f32[2,3] 3 -1 3 -2 3 1",
                CLEAVE_ERROR_SHAPE, "or one that no operand has");
  op_case_fails(&cpu, "Einsum", "f32[2,3] 3 -1 3 -2 3 1; f32[2,3] 3 -1 3 -2 3 1", "equation='ij,jk->ik'",
                "f32[2,3] 3 -1 3 -2 3 1", CLEAVE_ERROR_SHAPE, "operand 1 has extent 2 where another has 3");
}

CPU_TEST(normalises_batches) {
  op_case_with_shapes(
      &cpu, "BatchNormalization",
      "f32[2,2,3] 0 2 -3 -2 -2 0 3 1 0 3 -2 -2; f32[2] 1 2; f32[2] 0.5 -1; f32[2] 1 -1; f32[2] 4 0.25", "",
      "f32[2,2,3] 6.24998847e-07 0.999999404 -1.4999975 -4.99991989 -4.99991989 2.99991989 1.49999881 0.5 "
      "6.24998847e-07 14.9996796 -4.99991989 -4.99991989");
  op_case_with_shapes(
      &cpu, "BatchNormalization",
      "f32[2,2,3] 0 2 -3 -2 -2 0 3 1 0 3 -2 -2; f32[2] 1 2; f32[2] 0.5 -1; f32[2] 1 -1; f32[2] 4 0.25",
      "training_mode=1 momentum=0.75 epsilon=0.001",
      "f32[2,2,3] 0.235901579 1.29229522 -1.34868896 -2.25201774 -2.25201774 -0.105701581 1.82049215 "
      "0.764098406 0.235901579 3.11377263 -2.25201774 -2.25201774; f32[2] 0.875 -0.958333313; f32[2] "
      "3.89583325 1.05555558");
  op_case_fails(
      &cpu, "BatchNormalization",
      "f32[2,2,3] 0 2 -3 -2 -2 0 3 1 0 3 -2 -2; f32[2] 1 2; f32[2] 0.5 -1; f32[2] 1 -1; f32[3] 1 2 -2", "",
      "f32[2,2,3] 0 2 -3 -2 -2 0 3 1 0 3 -2 -2", CLEAVE_ERROR_SHAPE, "variance has 3 elements, expected 2");
}

CPU_TEST(normalises_layers) {
  op_case_with_shapes(&cpu, "LayerNormalization",
                      "f32[2,2,3] -2 0 2 -2 2 0 1 1 0 0 3 -1; f32[3] 1 2 -1; f32[3] 0 1 0.5", "",
                      "f32[2,2,3] -1.22474253 1 -0.724742591 -1.22474253 3.44948506 0.5 0.707090855 "
                      "2.41418171 1.91418171 -0.392231584 3.7456212 1.48057902");
  op_case_with_shapes(&cpu, "LayerNormalization", "f32[2,2,3] -2 0 2 -2 2 0 1 1 0 0 3 -1; f32[3] 1 2 -1", "",
                      "f32[2,2,3] -1.22474253 0 -1.22474253 -1.22474253 2.44948506 -0 0.707090855 1.41418171 "
                      "1.41418171 -0.392231584 2.7456212 0.980578959; f32[2,2,1] 0 0 0.666666687 "
                      "0.666666687; f32[2,2,1] 0.612371266 0.612371266 2.12127256 0.588347375");
  op_case_with_shapes(&cpu, "LayerNormalization",
                      "f32[2,2,3] -2 0 2 -2 2 0 1 1 0 0 3 -1; f32[3] 1 2 -1; f32[3] 0 1 0.5",
                      "axis=1 epsilon=0.1",
                      "f32[2,2,3] -1.20240724 1 -0.702407241 -1.20240724 3.40481448 0.5 0.25906387 1.5181278 "
                      "1.0181278 -0.518127739 4.62689447 1.79531944");
  op_case_with_shapes(&cpu, "RMSNormalization", "f32[2,2,3] -2 0 2 -2 2 0 1 1 0 0 3 -1; f32[3] 1 2 -1", "",
                      "f32[2,2,3] -1.22474253 0 -1.22474253 -1.22474253 2.44948506 -0 1.22473574 2.44947147 "
                      "-0 0 3.28633046 0.547721744");
  op_case_fails(&cpu, "LayerNormalization", "f32[2,2,3] -2 0 2 -2 2 0 1 1 0 0 3 -1; f32[2] 3 2", "",
                "f32[2,2,3] -2 0 2 -2 2 0 1 1 0 0 3 -1", CLEAVE_ERROR_SHAPE,
                "scale or bias does not broadcast");
  op_case_fails(&cpu, "LayerNormalization", "f32[2,2,3] -2 0 2 -2 2 0 1 1 0 0 3 -1; f32[3] 1 2 -1", "axis=3",
                "f32[2,2,3] -2 0 2 -2 2 0 1 1 0 0 3 -1", CLEAVE_ERROR_SHAPE, "axis 3 is outside rank 3");
}

CPU_TEST(normalises_instances_and_groups) {
  op_case_with_shapes(&cpu, "InstanceNormalization",
                      "f32[1,4,3] -2 3 -1 -2 -2 -3 -1 -3 0 3 3 3; f32[4] 1 2 3 4; f32[4] 0 1 0 -1", "",
                      "f32[1,4,3] -0.925819099 1.38872862 -0.462909549 2.41418171 2.41418171 -1.82836354 "
                      "0.801781178 -4.00890589 3.20712471 -1 -1 -1");
  op_case_with_shapes(&cpu, "GroupNormalization",
                      "f32[1,4,3] -2 3 -1 -2 -2 -3 -1 -3 0 3 3 3; f32[4] 1 2 3 4; f32[4] 0 1 0 -1",
                      "num_groups=2",
                      "f32[1,4,3] -0.427178264 2.13589144 0.0854356512 0.145643458 0.145643458 -0.879584372 "
                      "-2.35115051 -4.91604185 -1.06870472 2.70484328 2.70484328 2.70484328");
  op_case_with_shapes(&cpu, "GroupNormalization",
                      "f32[1,4,3] -2 3 -1 -2 -2 -3 -1 -3 0 3 3 3; f32[2] 1 2; f32[2] 0 1", "num_groups=2",
                      "f32[1,4,3] -0.427178264 2.13589144 0.0854356512 -0.427178264 -0.427178264 "
                      "-0.939792216 -0.567433655 -2.27736139 0.287530154 2.85242152 2.85242152 2.85242152");
  op_case_fails(&cpu, "GroupNormalization",
                "f32[1,4,3] -2 3 -1 -2 -2 -3 -1 -3 0 3 3 3; f32[4] 1 2 3 4; f32[4] 0 1 0 -1", "num_groups=3",
                "f32[1,4,3] -2 3 -1 -2 -2 -3 -1 -3 0 3 3 3", CLEAVE_ERROR_SHAPE,
                "4 channels cannot be divided into 3 groups");
  op_case_with_shapes(&cpu, "LpNormalization", "f32[2,2] 3 4 0 0", "",
                      "f32[2,2] 0.600000024 0.800000012 0 0");
  op_case_with_shapes(&cpu, "LpNormalization", "f32[2,2] 3 nan inf 1", "", "f32[2,2] nan nan nan 0");
  op_case_with_shapes(&cpu, "LpNormalization", "f32[2,2] 3 -1 0 1", "axis=0 p=1", "f32[2,2] 1 -0.5 0 0.5");
  op_case_with_shapes(&cpu, "LRN", "f32[1,3,2] -2 -2 1 3 2 -2", "size=3 alpha=0.5 beta=1.0 bias=2.0",
                      "f32[1,3,2] -0.70588237 -0.479999989 0.285714298 0.620689631 0.70588237 -0.479999989");
  op_case_with_shapes(&cpu, "MeanVarianceNormalization", "f32[2,2,2,1] 2 0 0 0 0 3 2 -3", "axes=[0,2,3]",
                      "f32[2,2,2,1] 0.577350259 -0.962250471 0.140028015 0.140028015 -0.962250471 1.34715068 "
                      "1.26025212 -1.54030812");
}

CPU_TEST(makes_probabilities) {
  op_case(&cpu, "Softmax", "f32[2,3,2] 4 -2 -2 2 6 -6 0 -4 6 0 4 6", "axis=-1",
          "f32[2,3,2] 0.997527361 0.00247262325 0.0179862101 0.982013762 0.999993861 6.14417468e-06 "
          "0.982013762 0.0179862101 0.997527361 0.00247262325 0.119202919 0.880797088");
  op_case(&cpu, "LogSoftmax", "f32[2,3,2] 4 -2 -2 2 6 -6 0 -4 6 0 4 6", "axis=-1",
          "f32[2,3,2] -0.00247568521 -6.00247574 -4.01814985 -0.0181499273 -6.14419332e-06 -12.0000057 "
          "-0.0181499273 -4.01814985 -0.00247568521 -6.00247574 -2.12692809 -0.126928017");
  op_case(&cpu, "Softmax", "f32[2,3,2] 4 -2 -2 2 6 -6 0 -4 6 0 4 6", "axis=1",
          "f32[2,3,2] 0.119167708 0.0179802869 0.000295387232 0.981690407 0.880536914 0.000329320435 "
          "0.00217852136 4.5285622e-05 0.878878236 0.00247251126 0.118943237 0.997482181");
  op_case(&cpu, "LogSoftmax", "f32[2,3,2] 4 -2 -2 2 6 -6 0 -4 6 0 4 6", "axis=1",
          "f32[2,3,2] -2.12722349 -4.01847935 -8.12722301 -0.0184793025 -0.127223447 -8.01847935 -6.12910891 "
          "-10.0025206 -0.129108906 -6.00252104 -2.12910891 -0.0025209717");
  op_case(&cpu, "Softmax", "f32[2,3,2] 4 -2 -2 2 6 -6 0 -4 6 0 4 6", "axis=0",
          "f32[2,3,2] 0.982013762 0.880797088 0.000335350138 0.880797088 0.880797088 6.14417468e-06 "
          "0.0179862101 0.119202919 0.999664664 0.119202919 0.119202919 0.999993861");
  op_case(&cpu, "LogSoftmax", "f32[2,3,2] 4 -2 -2 2 6 -6 0 -4 6 0 4 6", "axis=0",
          "f32[2,3,2] -0.0181499273 -0.126928017 -8.00033569 -0.126928017 -0.126928017 -12.0000057 "
          "-4.01814985 -2.12692809 -0.000335406367 -2.12692809 -2.12692809 -6.14419332e-06");
  op_case(&cpu, "Softmax", "f32[2,2] 1000 1001 -1000 -1000", "", "f32[2,2] 0.268941432 0.731058598 0.5 0.5");
  op_case(&cpu, "Softmax", "f32[3] 0 -inf 0", "", "f32[3] 0.5 0 0.5");
  op_case(&cpu, "Hardmax", "f32[2,3] 1 3 3 2 1 0", "", "f32[2,3] 0 1 0 1 0 0");
  op_case(&cpu, "Hardmax", "f32[2,2] 1 3 2 1", "axis=0", "f32[2,2] 0 1 1 0");
  op_case(&cpu, "Softmax",
          "f64[20] 0 0.25 0.5 0.75 1 1.25 1.5 1.75 2 2.25 2.5 2.75 3 3.25 3.5 3.75 4 4.25 4.5 4.75", "",
          "f64[20] 0.00192673041 0.00247397082 0.00317664141 0.00407888831 0.00523739627 0.00672494992 "
          "0.00863500663 0.011087568 0.0142367191 0.0182803092 0.0234723816 0.0301391346 0.0386994148 "
          "0.0496910322 0.0638045484 0.0819266618 0.105195916 0.13507423 0.173438744 0.222699756");
  op_case(&cpu, "Softmax", "f32[2,0]", "", "f32[2,0]");
  op_case_fails(&cpu, "Softmax", "f32[2,2] -3 2 2 2", "axis=2", "f32[2,2] 3 2 2 1", CLEAVE_ERROR_SHAPE,
                "axis 2 is outside rank 2");
}

UNIT_SUITE("cpu_nn")
