// SPDX-License-Identifier: Apache-2.0
/* Operators whose meaning changed: each test reads one in its old opset and compares with the canonical form.
 */
#include "canonical_case.h"
#include "unit.h"

/* ---- meanings that changed ---- */

UNIT_TEST(softmax_of_the_last_axis_stays_softmax) {
  onnx_builder_t b;
  canonical_case_begin(&b, 11, "2 3");
  onnx_simple(&b, "Softmax", "x", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2 3");
  onnx_expect(&b,
              "input %x : float32[2, 3]\n"
              "%y = Softmax(%x) {axis = -1} : float32[2, 3]\n"
              "output \"y\" = %y\n");
}

UNIT_TEST(softmax_over_several_axes_goes_through_a_matrix) {
  onnx_builder_t b;
  canonical_case_begin(&b, 11, "2 3 4");
  onnx_node(&b, "LogSoftmax", "x", "y");
  onnx_int(&b, "axis", 1);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2 3 4");
  cleave_graph_t *graph = canonical_case_read(&b);
  canonical_case_ints(graph, 2, 1, (int64_t[]){2, 3, 4}, 3);
  onnx_expect_graph(graph,
                    "input %x : float32[2, 3, 4]\n"
                    "%1 = Flatten(%x) {axis = 1} : float32[2, 12]\n"
                    "%2 = LogSoftmax(%1) {axis = -1} : float32[2, 12]\n"
                    "%y = Reshape(%2, %3) : float32[2, 3, 4]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(softmax_of_an_unknown_shape_reads_the_shape_at_run_time) {
  onnx_builder_t b;
  canonical_case_begin(&b, 11, NULL);
  onnx_node(&b, "Softmax", "x", "y");
  onnx_int(&b, "axis", 2);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  cleave_graph_t *graph = canonical_case_read(&b);
  ck_assert_uint_eq(graph->live_node_count, 4);
  ck_assert_str_eq(cleave_node_op(graph, (cleave_node_t){2})->name, "Shape");
  ck_assert_str_eq(cleave_node_op(graph, (cleave_node_t){3})->name, "Reshape");
  cleave_graph_destroy(graph);
}

UNIT_TEST(batch_normalization_loses_old_attributes_and_outputs) {
  onnx_builder_t b;
  canonical_case_begin(&b, 7, "1 2 3");
  onnx_floats(&b, "w", "2", (float[]){1, 1}, 2);
  onnx_node(&b, "BatchNormalization", "x w w w w", "y m v sm sv");
  onnx_int(&b, "spatial", 1);
  onnx_float(&b, "epsilon", 0.5f);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 2 3");
  onnx_expect(&b,
              "input %x : float32[1, 2, 3]\n"
              "%y = BatchNormalization(%x, %w, %w, %w, %w) {epsilon = 0.5} : float32[1, 2, 3]\n"
              "output \"y\" = %y\n");
  canonical_case_begin(&b, 9, "1 2 3");
  onnx_floats(&b, "w", "2", (float[]){1, 1}, 2);
  onnx_simple(&b, "BatchNormalization", "x w w w w", "y m v sm sv");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 2 3");
  onnx_output(&b, "m", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[1, 2, 3]\n"
              "%y, %m, %v = BatchNormalization(%x, %w, %w, %w, %w) {training_mode = 1} : float32[1, 2, 3], "
              "float32[2], float32[2]\n"
              "output \"y\" = %y\n"
              "output \"m\" = %m\n");
}

UNIT_TEST(batch_normalization_per_element_is_refused) {
  onnx_builder_t b;
  canonical_case_begin(&b, 7, "1 2 3");
  onnx_node(&b, "BatchNormalization", "x x x x x", "y");
  onnx_int(&b, "spatial", 0);
  onnx_end_node(&b);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED,
               "model: node 'y': operator 'BatchNormalization' of opset 7: spatial = 0 is not supported");
}

UNIT_TEST(upsample_becomes_resize) {
  onnx_builder_t b;
  canonical_case_begin(&b, 7, "1 1 2 2");
  onnx_node(&b, "Upsample", "x", "y");
  onnx_float_list(&b, "scales", (float[]){1, 1, 2, 3}, 4);
  onnx_text(&b, "mode", "linear");
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 1 4 6");
  cleave_graph_t *graph = canonical_case_read(&b);
  ck_assert_double_eq(cleave_tensor_get_float(canonical_case_constant(graph, 0, 2), 3), 3.0);
  onnx_expect_graph(graph,
                    "input %x : float32[1, 1, 2, 2]\n"
                    "%y = Resize(%x, _, %1) {mode = \"linear\", coordinate_transformation_mode = "
                    "\"asymmetric\", nearest_mode = \"floor\"} : float32[1, 1, 4, 6]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(resize_of_opset_10_is_asymmetric) {
  onnx_builder_t b;
  canonical_case_begin(&b, 10, "1 1 2 2");
  onnx_floats(&b, "s", "4", (float[]){1, 1, 2, 2}, 4);
  onnx_simple(&b, "Resize", "x s", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 1 4 4");
  onnx_expect(&b,
              "input %x : float32[1, 1, 2, 2]\n"
              "%y = Resize(%x, _, %s) {coordinate_transformation_mode = \"asymmetric\", nearest_mode = "
              "\"floor\"} : float32[1, 1, 4, 4]\n"
              "output \"y\" = %y\n");
}

/* As ONNX's own test of that opset has it. */
UNIT_TEST(nearest_of_opset_10_rounds_up_along_axes_that_shrink) {
  onnx_builder_t b;
  canonical_case_begin(&b, 10, "1 1 2 4");
  onnx_floats(&b, "s", "4", (float[]){1, 1, 0.6F, 0.6F}, 4);
  onnx_simple(&b, "Resize", "x s", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 1 1 2");
  onnx_expect(&b,
              "input %x : float32[1, 1, 2, 4]\n"
              "%y = Resize(%x, _, %s) {coordinate_transformation_mode = \"asymmetric\", nearest_mode = "
              "\"ceil\"} : float32[1, 1, 1, 2]\n"
              "output \"y\" = %y\n");
  canonical_case_begin(&b, 10, "1 1 2 4");
  onnx_floats(&b, "s", "4", (float[]){1, 1, 2, 0.6F}, 4);
  onnx_simple(&b, "Resize", "x s", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 1 4 2");
  onnx_expect(&b,
              "input %x : float32[1, 1, 2, 4]\n"
              "%3 = Min(%s, %2) : float32[4]\n"
              "%4 = Max(%s, %2) : float32[4]\n"
              "%5 = Resize(%x, _, %3) {coordinate_transformation_mode = \"asymmetric\", nearest_mode = "
              "\"ceil\"} : float32[?, ?, ?, ?]\n"
              "%y = Resize(%5, _, %4) {coordinate_transformation_mode = \"asymmetric\", nearest_mode = "
              "\"floor\"} : float32[?, ?, ?, ?]\n"
              "output \"y\" = %y\n");
}

UNIT_TEST(resize_takes_empty_tensors_as_left_out) {
  onnx_builder_t b;
  canonical_case_begin(&b, 11, "1 1 2 2");
  onnx_floats(&b, "none", "0", NULL, 0);
  onnx_ints(&b, "sizes", "4", (int64_t[]){1, 1, 4, 4}, 4);
  onnx_simple(&b, "Resize", "x none none sizes", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 1 4 4");
  onnx_expect(&b,
              "input %x : float32[1, 1, 2, 2]\n"
              "%y = Resize(%x, _, _, %sizes) : float32[1, 1, 4, 4]\n"
              "output \"y\" = %y\n");
}

UNIT_TEST(names_of_modes_and_operators_follow) {
  onnx_builder_t b;
  canonical_case_begin(&b, 16, "1 1 2 2");
  onnx_input(&b, "g", CLEAVE_DTYPE_F32, "1 2 2 2");
  onnx_node(&b, "GridSample", "x g", "a");
  onnx_text(&b, "mode", "bicubic");
  onnx_end_node(&b);
  onnx_simple(&b, "GridSample", "a g", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 1 2 2");
  onnx_expect(&b,
              "input %x : float32[1, 1, 2, 2]\n"
              "input %g : float32[1, 2, 2, 2]\n"
              "%a = GridSample(%x, %g) {mode = \"cubic\"} : unknown[...]\n"
              "%y = GridSample(%a, %g) {mode = \"linear\"} : float32[...]\n"
              "output \"y\" = %y\n");
  canonical_case_begin(&b, 9, "3");
  onnx_input(&b, "i", CLEAVE_DTYPE_I64, "1");
  onnx_simple(&b, "Scatter", "x i x", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "3");
  onnx_expect(&b,
              "input %x : float32[3]\n"
              "input %i : int64[1]\n"
              "%y = ScatterElements(%x, %i, %x) : float32[...]\n"
              "output \"y\" = %y\n");
}

UNIT_TEST(roi_align_before_16_has_no_half_pixel) {
  onnx_builder_t b;
  canonical_case_begin(&b, 10, "1 1 4 4");
  onnx_input(&b, "r", CLEAVE_DTYPE_F32, "1 4");
  onnx_input(&b, "i", CLEAVE_DTYPE_I64, "1");
  onnx_simple(&b, "RoiAlign", "x r i", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 1 1 1");
  onnx_expect(&b,
              "input %x : float32[1, 1, 4, 4]\n"
              "input %r : float32[1, 4]\n"
              "input %i : int64[1]\n"
              "%y = RoiAlign(%x, %r, %i) {coordinate_transformation_mode = \"output_half_pixel\"} : "
              "float32[1, 1, 1, 1]\n"
              "output \"y\" = %y\n");
}

UNIT_TEST(group_normalization_gets_a_scale_per_channel) {
  onnx_builder_t b;
  canonical_case_begin(&b, 18, "1 4 2");
  onnx_floats(&b, "s", "2", (float[]){1, 2}, 2);
  onnx_floats(&b, "b", "2", (float[]){3, 4}, 2);
  onnx_node(&b, "GroupNormalization", "x s b", "y");
  onnx_int(&b, "num_groups", 2);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 4 2");
  cleave_graph_t *graph = canonical_case_read(&b);
  ck_assert_uint_eq(graph->live_node_count, 15);
  cleave_node_t norm = cleave_value_producer(graph, cleave_graph_output(graph, 0));
  cleave_node_t scale = cleave_value_producer(graph, cleave_node_input(graph, norm, 1));
  ck_assert_str_eq(cleave_node_op(graph, scale)->name, "Reshape");
  cleave_graph_destroy(graph);
}

/* ---- opset 6 and before ---- */

UNIT_TEST(broadcast_along_an_axis_is_spelled_out) {
  onnx_builder_t b;
  canonical_case_begin(&b, 6, "2 3 4 5");
  onnx_input(&b, "r", CLEAVE_DTYPE_F32, "3");
  onnx_floats(&b, "w", "3", (float[]){1, 2, 3}, 3);
  onnx_node(&b, "Add", "x w", "a");
  onnx_int(&b, "broadcast", 1);
  onnx_int(&b, "axis", 1);
  onnx_end_node(&b);
  onnx_node(&b, "Mul", "a r", "m");
  onnx_int(&b, "broadcast", 1);
  onnx_int(&b, "axis", 1);
  onnx_end_node(&b);
  onnx_node(&b, "Sub", "m x", "y");
  onnx_int(&b, "broadcast", 1);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2 3 4 5");
  cleave_graph_t *graph = canonical_case_read(&b);
  const cleave_tensor_t *w = canonical_case_constant(graph, 0, 1);
  ck_assert_int_eq(w->rank, 3);
  ck_assert_int_eq(w->dims[0], 3);
  ck_assert_int_eq(w->dims[2], 1);
  ck_assert_double_eq(cleave_tensor_get_float(w, 2), 3.0);
  canonical_case_ints(graph, 1, 1, (int64_t[]){1, 2}, 2);
  onnx_expect_graph(graph,
                    "input %x : float32[2, 3, 4, 5]\n"
                    "input %r : float32[3]\n"
                    "%a = Add(%x, %w) : float32[2, 3, 4, 5]\n"
                    "%6 = Unsqueeze(%r, %5) : float32[3, 1, 1]\n"
                    "%m = Mul(%a, %6) : float32[2, 3, 4, 5]\n"
                    "%y = Sub(%m, %x) : float32[2, 3, 4, 5]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(broadcast_outside_of_the_operand_is_refused) {
  onnx_builder_t b;
  canonical_case_begin(&b, 6, "2 3");
  onnx_node(&b, "Add", "x x", "a");
  onnx_int(&b, "broadcast", 1);
  onnx_int(&b, "axis", 1);
  onnx_end_node(&b);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED,
               "model: node 'a': operator 'Add' of opset 6: its axis is outside of the first operand");
}

UNIT_TEST(slopes_of_old_prelu_are_per_channel) {
  onnx_builder_t b;
  canonical_case_begin(&b, 6, "2 3 4 5");
  onnx_floats(&b, "w", "3", (float[]){1, 2, 3}, 3);
  onnx_simple(&b, "PRelu", "x w", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2 3 4 5");
  cleave_graph_t *graph = canonical_case_read(&b);
  ck_assert_int_eq(canonical_case_constant(graph, 0, 1)->rank, 3);
  ck_assert_int_eq(canonical_case_constant(graph, 0, 1)->dims[0], 3);
  cleave_graph_destroy(graph);
}

UNIT_TEST(cast_by_name_and_old_constants) {
  onnx_builder_t b;
  canonical_case_begin(&b, 5, "2");
  onnx_node(&b, "Cast", "x", "c");
  onnx_text(&b, "to", "DOUBLE");
  onnx_end_node(&b);
  onnx_node(&b, "Selu", "x", "s");
  onnx_int_list(&b, "consumed_inputs", (int64_t[]){0}, 1);
  onnx_end_node(&b);
  onnx_node(&b, "GlobalLpPool", "x", "g");
  onnx_end_node(&b);
  onnx_output(&b, "c", CLEAVE_DTYPE_F64, "2");
  onnx_output(&b, "s", CLEAVE_DTYPE_F32, "2");
  cleave_graph_t *graph = canonical_case_read(&b);
  const cleave_attribute_t *to = cleave_node_attribute(graph, (cleave_node_t){0}, "to");
  ck_assert_int_eq(to->i, CLEAVE_DTYPE_F64);
  const cleave_attribute_t *alpha = cleave_node_attribute(graph, (cleave_node_t){1}, "alpha");
  ck_assert_double_eq_tol(alpha->f, 1.6732, 1e-9);
  ck_assert_ptr_null(cleave_node_attribute(graph, (cleave_node_t){1}, "consumed_inputs"));
  cleave_graph_destroy(graph);
  canonical_case_begin(&b, 5, "2");
  onnx_node(&b, "Cast", "x", "c");
  onnx_text(&b, "to", "QUAD");
  onnx_end_node(&b);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED,
               "model: node 'c': operator 'Cast' of opset 5: it casts to an unknown element type");
}

UNIT_SUITE("onnx meanings")
