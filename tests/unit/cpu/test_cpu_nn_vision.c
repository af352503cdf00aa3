// SPDX-License-Identifier: Apache-2.0
// Resize, sampling, region and box kernels of the reference backend; expected values are those of PyTorch and
// NumPy in double.
#include "cpu_test.h"

/* 3 / float(1/3) is 9 in float32 and a little less in float64. Expected are the results of ONNX Runtime 1.30.
 */
CPU_TEST(coordinates_of_resize_are_in_float32) {
  op_case_with_shapes(&cpu, "Resize", "f32[12] 0 1 2 3 4 5 6 7 8 9 10 11; -; f32[1] 0.33333334",
                      "coordinate_transformation_mode='asymmetric' nearest_mode='floor'", "f32[4] 0 3 6 9");
  op_case_with_shapes(&cpu, "Resize", "f32[5] 0 1 2 3 4; -; f32[1] 1.6",
                      "coordinate_transformation_mode='asymmetric' nearest_mode='floor'",
                      "f32[8] 0 0 1 1 2 3 3 4");
  op_case_with_shapes(&cpu, "Resize",
                      "f32[30] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 "
                      "25 26 27 28 29; -; f32[1] 0.1",
                      "coordinate_transformation_mode='asymmetric' nearest_mode='floor'", "f32[3] 0 10 20");
}

CPU_TEST(resizes_by_every_rule_of_coordinates) {
  op_case_with_shapes(&cpu, "Resize", "f32[1,1,2,2] 1 2 3 4; -; f32[4] 1 1 2 2",
                      "coordinate_transformation_mode='asymmetric' nearest_mode='floor'",
                      "f32[1,1,4,4] 1 1 2 2 1 1 2 2 3 3 4 4 3 3 4 4");
  op_case_with_shapes(&cpu, "Resize", "f32[1,1,2,2] 1 2 3 4; -; f32[4] 1 1 2 2", "mode='linear'",
                      "f32[1,1,4,4] 1 1.25 1.75 2 1.5 1.75 2.25 2.5 2.5 2.75 3.25 3.5 3 3.25 3.75 4");
  op_case_with_shapes(&cpu, "Resize", "f32[1,1,2,2] 1 2 3 4; -; -; i64[4] 1 1 3 3",
                      "mode='linear' coordinate_transformation_mode='align_corners'",
                      "f32[1,1,3,3] 1 1.5 2 2 2.5 3 3 3.5 4");
  op_case_with_shapes(&cpu, "Resize", "f32[1,1,2,2] 1 2 3 4; -; -; i64[4] 1 1 1 4",
                      "mode='linear' coordinate_transformation_mode='pytorch_half_pixel'",
                      "f32[1,1,1,4] 1 1.25 1.75 2");
  op_case_with_shapes(
      &cpu, "Resize", "f32[1,1,4,5] 0 -3 -2 3 -1 -2 2 0 2 -2 0 2 2 1 0 2 -1 1 0 -1; -; -; i64[4] 1 1 3 7",
      "mode='cubic'",
      "f32[1,1,3,7] -0.167422518 -1.51540065 -2.55778599 -1.74768519 2.12085629 1.65773475 -1.49720943 "
      "-1.69970846 1.17237604 2.80389023 1.28125 1.65137577 0.47339651 -1.19679296 1.93008316 0.219914153 "
      "-0.315641522 1.17824078 0.583812475 -0.38222453 -0.89637661");
  op_case_with_shapes(&cpu, "Resize",
                      "f32[1,1,4,5] 0 -3 -2 3 -1 -2 2 0 2 -2 0 2 2 1 0 2 -1 1 0 -1; -; -; i64[4] 1 1 2 3",
                      "mode='linear' antialias=1 exclude_outside=1",
                      "f32[1,1,2,3] -0.551020384 0.158730164 0.244897962 0.632653058 1.03174603 -0.10204082");
  op_case_with_shapes(
      &cpu, "Resize", "f32[1,1,2,2] 1 2 3 4; f32[8] 0 0 0 -1 1 1 1 1; -; i64[4] 1 1 2 3",
      "mode='linear' coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=9.0",
      "f32[1,1,2,3] 9 1 2 9 3 4");
  op_case_with_shapes(&cpu, "Resize", "f32[1,1,2,2] 1 2 3 4; -; f32[1] 1.5; -",
                      "axes=[3] coordinate_transformation_mode='half_pixel_symmetric' nearest_mode='ceil'",
                      "f32[1,1,2,3] 1 2 2 3 4 4");
  op_case_with_shapes(&cpu, "Resize", "i32[1,1,2,2] 1 2 3 4; -; f32[4] 1 1 1 2", "mode='linear'",
                      "i32[1,1,2,4] 1 1 1 2 3 3 3 4");
  op_case_with_shapes(&cpu, "Resize", "f16[1,1,2,2] 1 2 3 4; -; f32[4] 1 1 1 2", "mode='linear'",
                      "f16[1,1,2,4] 1 1.25 1.75 2 3 3.25 3.75 4");
  op_case_fails(&cpu, "Resize", "f32[1,1,2,2] 1 2 3 4; -; f32[3] 1 1 2", "", "f32[1,1,4,4] 0",
                CLEAVE_ERROR_SHAPE, "scales, sizes or roi do not have 4 entries");
  op_case_fails(&cpu, "Resize", "f32[1,1,2,2] 1 2 3 4; -; f32[4] 1 1 -2 2", "", "f32[1,1,4,4] 0",
                CLEAVE_ERROR_SHAPE, "scale of axis 2 is -2");
  op_case_fails(&cpu, "Resize", "f32[1,1,2,2] 1 2 3 4; -; f32[4] 1 1 2 2", "mode='fast'", "f32[1,1,4,4] 0",
                CLEAVE_ERROR_UNSUPPORTED, "mode 'fast' is unknown");
}

CPU_TEST(samples_grids) {
  op_case_with_shapes(
      &cpu, "GridSample",
      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 -0.375 0.375 "
      "-0.25 -0.375 -0.625",
      "mode='linear' padding_mode='zeros' align_corners=0",
      "f32[1,2,2,2] 0.25 -1.02734375 0.765625 -1.02734375 -0.84375 -0.1640625 0.5390625 -0.1640625");
  op_case_with_shapes(&cpu, "GridSample",
                      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 "
                      "-0.375 0.375 -0.25 -0.375 -0.625",
                      "mode='linear' padding_mode='zeros' align_corners=1",
                      "f32[1,2,2,2] 0.75 -0.234375 0.9375 -0.234375 -0.625 0.59375 0.40625 0.59375");
  op_case_with_shapes(
      &cpu, "GridSample",
      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 -0.375 0.375 "
      "-0.25 -0.375 -0.625",
      "mode='linear' padding_mode='border' align_corners=0",
      "f32[1,2,2,2] 0.25 -1.02734375 0.765625 -1.02734375 -0.84375 -0.1640625 0.5390625 -0.1640625");
  op_case_with_shapes(&cpu, "GridSample",
                      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 "
                      "-0.375 0.375 -0.25 -0.375 -0.625",
                      "mode='linear' padding_mode='border' align_corners=1",
                      "f32[1,2,2,2] 0.75 -0.234375 0.9375 -0.234375 -0.625 0.59375 0.40625 0.59375");
  op_case_with_shapes(
      &cpu, "GridSample",
      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 -0.375 0.375 "
      "-0.25 -0.375 -0.625",
      "mode='linear' padding_mode='reflection' align_corners=0",
      "f32[1,2,2,2] 0.25 -1.02734375 0.765625 -1.02734375 -0.84375 -0.1640625 0.5390625 -0.1640625");
  op_case_with_shapes(&cpu, "GridSample",
                      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 "
                      "-0.375 0.375 -0.25 -0.375 -0.625",
                      "mode='linear' padding_mode='reflection' align_corners=1",
                      "f32[1,2,2,2] 0.75 -0.234375 0.9375 -0.234375 -0.625 0.59375 0.40625 0.59375");
  op_case_with_shapes(&cpu, "GridSample",
                      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 "
                      "-0.375 0.375 -0.25 -0.375 -0.625",
                      "mode='nearest' padding_mode='zeros' align_corners=0",
                      "f32[1,2,2,2] 2 -2 2 -2 0 -2 0 -2");
  op_case_with_shapes(&cpu, "GridSample",
                      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 "
                      "-0.375 0.375 -0.25 -0.375 -0.625",
                      "mode='nearest' padding_mode='border' align_corners=0",
                      "f32[1,2,2,2] 2 -2 2 -2 0 -2 0 -2");
  op_case_with_shapes(&cpu, "GridSample",
                      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 "
                      "-0.375 0.375 -0.25 -0.375 -0.625",
                      "mode='nearest' padding_mode='reflection' align_corners=0",
                      "f32[1,2,2,2] 2 -2 2 -2 0 -2 0 -2");
  op_case_with_shapes(&cpu, "GridSample",
                      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 "
                      "-0.375 0.375 -0.25 -0.375 -0.625",
                      "mode='cubic' padding_mode='zeros' align_corners=0",
                      "f32[1,2,2,2] 0.448572159 -1.47156537 1.41445041 -1.2425884 -1.26850891 -0.0829201564 "
                      "0.969009161 -0.326053828");
  op_case_with_shapes(&cpu, "GridSample",
                      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 "
                      "-0.375 0.375 -0.25 -0.375 -0.625",
                      "mode='cubic' padding_mode='border' align_corners=0",
                      "f32[1,2,2,2] 0.571344376 -1.21233475 1.29579806 -0.992482662 -1.01791763 0.110618427 "
                      "0.786399841 -0.123390362");
  op_case_with_shapes(&cpu, "GridSample",
                      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,2] 0.5 0.25 -0.625 "
                      "-0.375 0.375 -0.25 -0.375 -0.625",
                      "mode='cubic' padding_mode='reflection' align_corners=0",
                      "f32[1,2,2,2] 0.571344376 -1.21233475 1.29579806 -0.992482662 -1.01791763 0.110618427 "
                      "0.786399841 -0.123390362");
  op_case_with_shapes(&cpu, "GridSample",
                      "f32[1,1,2,2,3] 1 3 -2 -1 0 -2 0 3 1 -2 -2 -3; f32[1,1,2,2,3] 1 -0.375 -0.5 0.75 "
                      "-0.375 -0.625 -0.5 -0.25 -0.875 0.25 -0.125 1",
                      "", "f32[1,1,1,2,2] -1 -1.53125 0.5859375 0.2578125");
  op_case_fails(
      &cpu, "GridSample",
      "f32[1,2,3,3] -2 0 -1 0 1 2 2 0 -3 -2 2 1 2 0 0 -2 -3 -2; f32[1,2,2,3] 2 -1 1 2 -2 -2 -3 -3 -1 2 2 -1",
      "", "f32[1,2,2,2] 0", CLEAVE_ERROR_SHAPE, "the grid does not fit input and output");
  op_case_with_shapes(&cpu, "AffineGrid", "f32[1,2,3] 0 2 3 -2 1 1; i64[4] 1 1 2 3", "align_corners=0",
                      "f32[1,2,3,2] 2 1.83333337 2 0.5 2 -0.833333313 4 2.83333325 4 1.5 4 0.166666672");
  op_case_with_shapes(&cpu, "AffineGrid", "f32[1,2,3] 0 2 3 -2 1 1; i64[4] 1 1 2 3", "align_corners=1",
                      "f32[1,2,3,2] 1 2 1 0 1 -2 5 4 5 2 5 0");
}

CPU_TEST(pools_regions) {
  op_case_with_shapes(&cpu, "RoiAlign",
                      "f32[1,1,4,4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; f32[1,4] 0 0 3 3; i64[1] 0",
                      "output_height=2 output_width=2 sampling_ratio=1", "f32[1,1,2,2] 1.25 2.75 7.25 8.75");
  op_case_with_shapes(
      &cpu, "RoiAlign", "f32[1,1,4,4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; f32[1,4] 0 0 3 3; i64[1] 0",
      "output_height=1 output_width=1 sampling_ratio=1 coordinate_transformation_mode='output_half_pixel'",
      "f32[1,1,1,1] 7.5");
  op_case_with_shapes(&cpu, "MaxRoiPool",
                      "f32[1,1,4,4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; f32[1,5] 0 1 1 3 2",
                      "pooled_shape=[1,2]", "f32[1,1,1,2] 10 11");
  op_case_fails(&cpu, "RoiAlign",
                "f32[1,1,4,4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; f32[1,4] 0 0 3 3; i64[1] 1", "",
                "f32[1,1,1,1] 0", CLEAVE_ERROR_SHAPE, "batch index 1 is outside of 1 image");
  op_case_fails(&cpu, "RoiAlign",
                "f32[1,1,4,4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; f32[1,4] 0 0 1e+09 1e+09; i64[1] 0", "",
                "f32[1,1,1,1] 0", CLEAVE_ERROR_LIMIT, "region 0 is too large");
  op_case_fails(&cpu, "MaxRoiPool", "f32[1,1,4,4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; f32[1,5] -1 0 0 1 1",
                "pooled_shape=[1,1]", "f32[1,1,1,1] 0", CLEAVE_ERROR_SHAPE,
                "batch index -1 is outside of 1 image");
}

CPU_TEST(keeps_the_best_boxes) {
  op_case(&cpu, "NonMaxSuppression",
          "f32[1,6,4] 0 0 1 1 0 0.100000001 1 1.10000002 0 -0.100000001 1 0.899999976 0 10 1 11 0 10.1000004 "
          "1 11.1000004 0 100 1 101; f32[1,1,6] 0.899999976 0.75 0.600000024 0.949999988 0.5 0.300000012; "
          "i64[1] 3; f32[1] 0.5; f32[1] 0",
          "", "i64[3,3] 0 0 3 0 0 0 0 0 5");
  op_case(&cpu, "NonMaxSuppression",
          "f32[1,6,4] 0 0 1 1 0 0.100000001 1 1.10000002 0 -0.100000001 1 0.899999976 0 10 1 11 0 10.1000004 "
          "1 11.1000004 0 100 1 101; f32[1,1,6] 0.899999976 0.75 0.600000024 0.949999988 0.5 0.300000012; "
          "i64[1] 3; f32[1] 0.5; f32[1] 0.400000006",
          "", "i64[2,3] 0 0 3 0 0 0");
  op_case(&cpu, "NonMaxSuppression",
          "f32[1,6,4] 0 0 1 1 0 0.100000001 1 1.10000002 0 -0.100000001 1 0.899999976 0 10 1 11 0 10.1000004 "
          "1 11.1000004 0 100 1 101; f32[1,1,6] 0.899999976 0.75 0.600000024 0.949999988 0.5 0.300000012",
          "", "i64[0,3]");
  op_case(&cpu, "NonMaxSuppression",
          "f32[1,3,4] 0.5 0.5 1 1 0.5 0.600000024 1 1 0.5 10.5 1 1; f32[1,1,3] 0.5 0.5 0.100000001; i64[1] "
          "9; f32[1] 0.5",
          "center_point_box=1", "i64[2,3] 0 0 0 0 0 2");
  op_case_fails(
      &cpu, "NonMaxSuppression",
      "f32[1,6,4] 0 0 1 1 0 0.100000001 1 1.10000002 0 -0.100000001 1 0.899999976 0 10 1 11 0 10.1000004 1 "
      "11.1000004 0 100 1 101; f32[1,1,5] 0.899999976 0.75 0.600000024 0.949999988 0.5",
      "", "i64[0,3]", CLEAVE_ERROR_SHAPE, "boxes and scores are not [N, B, 4] and [N, C, B]");
}

CPU_TEST(adds_up_columns) {
  op_case_with_shapes(&cpu, "Col2Im",
                      "f32[1,4,4] 1 2 -1 2 2 2 2 -3 -1 2 -1 -2 2 -3 -2 -2; i64[2] 3; i64[2] 2", "",
                      "f32[1,1,3,3] 1 4 2 -2 8 -6 -1 -4 -2");
  op_case_with_shapes(&cpu, "Col2Im", "f32[1,2,4] 0 0 -1 -3 -1 -3 0 0; i64[2] 3; i64[2] 2 1",
                      "pads=[1,0,1,0] strides=[2,2] dilations=[2,1]", "f32[1,1,3,3] 0 0 0 -2 0 -6 0 0 0");
  op_case_fails(&cpu, "Col2Im", "f32[1,2,4] 0 0 -1 -3 -1 -3 0 0; i64[2] 3; i64[2] 2", "",
                "f32[1,1,3,3] 1 2 2 -1 2 -3 -1 -2 -2", CLEAVE_ERROR_SHAPE, "expected");
}

UNIT_SUITE("cpu_nn_vision")
