// SPDX-License-Identifier: Apache-2.0
/* Old forms of operators: each test reads one in its old opset and compares with the canonical form. */
#include "onnx_builder.h"
#include "unit.h"

/* Constant data of input `index` of the only node, or of node number `node`. */
static const cleave_tensor_t *constant_of(const cleave_graph_t *graph, uint32_t node, uint32_t index) {
  cleave_value_t value = cleave_node_input(graph, (cleave_node_t){node}, index);
  ck_assert(cleave_value_exists(value));
  const cleave_tensor_t *tensor = cleave_graph_value(graph, value)->tensor;
  ck_assert_ptr_nonnull(tensor);
  return tensor;
}

static void expect_ints(const cleave_graph_t *graph, uint32_t node, uint32_t index, const int64_t *values,
                        int64_t count) {
  const cleave_tensor_t *tensor = constant_of(graph, node, index);
  ck_assert_int_eq((int)tensor->dtype, CLEAVE_DTYPE_I64);
  ck_assert_int_eq(tensor->rank, 1);
  ck_assert_int_eq(tensor->count, count);
  for (int64_t k = 0; k < count; k++) {
    ck_assert_int_eq(cleave_tensor_get_int(tensor, k), values[k]);
  }
}

static cleave_graph_t *read(onnx_builder_t *b) {
  cleave_graph_t *graph = NULL;
  unit_ok(onnx_read(b, &graph, e));
  return graph;
}

static void begin(onnx_builder_t *b, int64_t opset, const char *dims) {
  onnx_begin(b, opset < 9 ? 3 : 8, opset);
  onnx_input(b, "x", CLEAVE_DTYPE_F32, dims);
}

/* ---- operators that vanish ---- */

UNIT_TEST(constants_of_every_spelling_become_constants) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 13);
  onnx_node(&b, "Constant", "", "a");
  onnx_int(&b, "value_int", 5);
  onnx_end_node(&b);
  onnx_node(&b, "Constant", "", "b");
  onnx_float_list(&b, "value_floats", (float[]){1.5f, 2.5f}, 2);
  onnx_end_node(&b);
  onnx_node(&b, "Constant", "", "c");
  onnx_text(&b, "value_string", "text");
  onnx_end_node(&b);
  onnx_node(&b, "Constant", "", "d");
  onnx_int_list(&b, "value_ints", (int64_t[]){1, 2, 3}, 3);
  onnx_end_node(&b);
  onnx_node(&b, "Constant", "", "f");
  onnx_float(&b, "value_float", -1.0f);
  onnx_end_node(&b);
  onnx_output(&b, "a", CLEAVE_DTYPE_I64, "");
  onnx_output(&b, "b", CLEAVE_DTYPE_F32, "2");
  onnx_output(&b, "c", CLEAVE_DTYPE_STRING, "");
  onnx_output(&b, "d", CLEAVE_DTYPE_I64, "3");
  onnx_output(&b, "f", CLEAVE_DTYPE_F32, "");
  cleave_graph_t *graph = read(&b);
  ck_assert_uint_eq(graph->live_node_count, 0);
  const cleave_tensor_t *tensors[5];
  for (size_t k = 0; k < 5; k++) {
    tensors[k] = cleave_graph_value(graph, cleave_graph_output(graph, k))->tensor;
    ck_assert_ptr_nonnull(tensors[k]);
  }
  ck_assert_int_eq(tensors[0]->rank, 0);
  ck_assert_int_eq(cleave_tensor_get_int(tensors[0], 0), 5);
  ck_assert_int_eq(tensors[1]->dims[0], 2);
  ck_assert_double_eq(cleave_tensor_get_float(tensors[1], 1), 2.5);
  ck_assert_str_eq(*(const char *const *)tensors[2]->data, "text");
  ck_assert_int_eq(cleave_tensor_get_int(tensors[3], 2), 3);
  ck_assert_double_eq(cleave_tensor_get_float(tensors[4], 0), -1.0);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_constant_without_a_value_is_refused) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 13);
  onnx_simple(&b, "Constant", "", "a");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT,
               "model: node '': expected a Constant with one value and one output, found 0 and 1");
}

UNIT_TEST(chains_of_identities_vanish) {
  onnx_builder_t b;
  begin(&b, 13, "2");
  onnx_simple(&b, "Identity", "x", "a");
  onnx_simple(&b, "Identity", "a", "b");
  onnx_simple(&b, "Relu", "b", "c");
  onnx_simple(&b, "Identity", "c", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "%c = Relu(%x) : float32[...]\n"
              "output \"y\" = %c\n");
}

UNIT_TEST(dropout_vanishes_at_inference) {
  onnx_builder_t b;
  begin(&b, 13, "2");
  onnx_input(&b, "t", CLEAVE_DTYPE_BOOL, "");
  onnx_simple(&b, "Dropout", "x", "a unused");
  onnx_simple(&b, "Dropout", "a - t", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "input %t : bool[]\n"
              "%y = Dropout(%x, _, %t) : float32[...]\n"
              "output \"y\" = %y\n");
  begin(&b, 6, "2");
  onnx_node(&b, "Dropout", "x", "y mask");
  onnx_int(&b, "is_test", 1);
  onnx_float(&b, "ratio", 0.3f);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "output \"y\" = %x\n");
}

UNIT_TEST(dropout_that_drops_nothing_vanishes_in_training_too) {
  onnx_builder_t b;
  begin(&b, 13, "2");
  onnx_input(&b, "t", CLEAVE_DTYPE_BOOL, "");
  onnx_floats(&b, "zero", "", (float[]){0.0f}, 1);
  onnx_floats(&b, "half", "", (float[]){0.5f}, 1);
  onnx_simple(&b, "Dropout", "x zero t", "a");
  onnx_simple(&b, "Dropout", "a half t", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "input %t : bool[]\n"
              "%y = Dropout(%x, %half, %t) : float32[...]\n"
              "output \"y\" = %y\n");
}

UNIT_TEST(dropout_whose_mask_is_read_stays) {
  onnx_builder_t b;
  begin(&b, 10, "2");
  onnx_node(&b, "Dropout", "x", "y mask");
  onnx_float(&b, "ratio", 0.25f);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  onnx_output(&b, "mask", CLEAVE_DTYPE_BOOL, "2");
  cleave_graph_t *graph = read(&b);
  ck_assert_double_eq(cleave_tensor_get_float(constant_of(graph, 0, 1), 0), 0.25);
  onnx_expect_graph(graph,
                    "input %x : float32[2]\n"
                    "%y, %mask = Dropout(%x, %1) : float32[2], bool[2]\n"
                    "output \"y\" = %y\n"
                    "output \"mask\" = %mask\n");
}

/* ---- attributes that became inputs ---- */

UNIT_TEST(axes_become_an_input) {
  static const struct {
    const char *op;
    int64_t opset;
  } cases[] = {{"Squeeze", 11}, {"ReduceSum", 11}, {"ReduceMean", 17}, {"ReduceL2", 13}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    onnx_builder_t b;
    begin(&b, cases[k].opset, "1 2 1");
    onnx_node(&b, cases[k].op, "x", "y");
    onnx_int_list(&b, "axes", (int64_t[]){0, -1}, 2);
    onnx_end_node(&b);
    onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
    cleave_graph_t *graph = read(&b);
    expect_ints(graph, 0, 1, (int64_t[]){0, -1}, 2);
    ck_assert_uint_eq(cleave_graph_node(graph, (cleave_node_t){0})->attribute_count, 0);
    cleave_graph_destroy(graph);
  }
}

UNIT_TEST(slice_pad_and_top_k_take_inputs) {
  onnx_builder_t b;
  begin(&b, 9, "4 4");
  onnx_node(&b, "Slice", "x", "a");
  onnx_int_list(&b, "starts", (int64_t[]){1}, 1);
  onnx_int_list(&b, "ends", (int64_t[]){3}, 1);
  onnx_end_node(&b);
  onnx_node(&b, "Pad", "a", "p");
  onnx_int_list(&b, "pads", (int64_t[]){0, 1, 0, 1}, 4);
  onnx_float(&b, "value", 2.0f);
  onnx_text(&b, "mode", "constant");
  onnx_end_node(&b);
  onnx_node(&b, "TopK", "p", "v i");
  onnx_int(&b, "k", 2);
  onnx_end_node(&b);
  onnx_output(&b, "v", CLEAVE_DTYPE_F32, "2 2");
  onnx_output(&b, "i", CLEAVE_DTYPE_I64, "2 2");
  cleave_graph_t *graph = read(&b);
  expect_ints(graph, 0, 1, (int64_t[]){1}, 1);
  expect_ints(graph, 0, 2, (int64_t[]){3}, 1);
  expect_ints(graph, 1, 1, (int64_t[]){0, 1, 0, 1}, 4);
  ck_assert_double_eq(cleave_tensor_get_float(constant_of(graph, 1, 2), 0), 2.0);
  expect_ints(graph, 2, 1, (int64_t[]){2}, 1);
  onnx_expect_graph(graph,
                    "input %x : float32[4, 4]\n"
                    "%a = Slice(%x, %1, %2) : float32[2, 4]\n"
                    "%p = Pad(%a, %4, %5) {mode = \"constant\"} : float32[2, 6]\n"
                    "%v, %i = TopK(%p, %7) : float32[2, 2], int64[2, 2]\n"
                    "output \"v\" = %v\n"
                    "output \"i\" = %i\n");
}

UNIT_TEST(clip_bounds_have_the_dtype_of_the_data) {
  onnx_builder_t b;
  onnx_begin(&b, 3, 6);
  onnx_input(&b, "x", CLEAVE_DTYPE_F64, "2");
  onnx_node(&b, "Clip", "x", "y");
  onnx_float(&b, "max", 6.0f);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F64, "2");
  cleave_graph_t *graph = read(&b);
  ck_assert_int_eq((int)constant_of(graph, 0, 2)->dtype, CLEAVE_DTYPE_F64);
  ck_assert_double_eq(cleave_tensor_get_float(constant_of(graph, 0, 2), 0), 6.0);
  onnx_expect_graph(graph,
                    "input %x : float64[2]\n"
                    "%y = Clip(%x, _, %1) : float64[2]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(split_says_its_sizes_or_its_parts) {
  onnx_builder_t b;
  begin(&b, 11, "4");
  onnx_node(&b, "Split", "x", "a b");
  onnx_int_list(&b, "split", (int64_t[]){1, 3}, 2);
  onnx_end_node(&b);
  onnx_simple(&b, "Split", "x", "c d");
  onnx_output(&b, "a", CLEAVE_DTYPE_F32, "1");
  onnx_output(&b, "c", CLEAVE_DTYPE_F32, "2");
  cleave_graph_t *graph = read(&b);
  expect_ints(graph, 0, 1, (int64_t[]){1, 3}, 2);
  onnx_expect_graph(graph,
                    "input %x : float32[4]\n"
                    "%a, %b = Split(%x, %1) : float32[1], float32[3]\n"
                    "%c, %d = Split(%x) {num_outputs = 2} : float32[2], float32[2]\n"
                    "output \"a\" = %a\n"
                    "output \"c\" = %c\n");
}

UNIT_TEST(reshape_tile_and_concat_of_the_first_opset) {
  onnx_builder_t b;
  begin(&b, 1, "4");
  onnx_ints(&b, "tiles", "1", (int64_t[]){3}, 1);
  onnx_ints(&b, "axis", "1", (int64_t[]){1}, 1);
  onnx_node(&b, "Reshape", "x", "r");
  onnx_int_list(&b, "shape", (int64_t[]){2, 2}, 2);
  onnx_int_list(&b, "consumed_inputs", (int64_t[]){0}, 1);
  onnx_end_node(&b);
  onnx_simple(&b, "Tile", "r tiles axis", "t");
  onnx_simple(&b, "Concat", "t t", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2 12");
  cleave_graph_t *graph = read(&b);
  expect_ints(graph, 0, 1, (int64_t[]){2, 2}, 2);
  expect_ints(graph, 1, 1, (int64_t[]){1, 3}, 2);
  onnx_expect_graph(graph,
                    "input %x : float32[4]\n"
                    "%r = Reshape(%x, %3) : float32[2, 2]\n"
                    "%t = Tile(%r, %5) : float32[2, 6]\n"
                    "%y = Concat(%t, %t) {axis = 1} : float32[2, 12]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(dft_takes_its_axis_as_input) {
  onnx_builder_t b;
  begin(&b, 17, "1 8 1");
  onnx_node(&b, "DFT", "x", "y");
  onnx_int(&b, "inverse", 1);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 8 2");
  cleave_graph_t *graph = read(&b);
  ck_assert_int_eq(constant_of(graph, 0, 2)->rank, 0);
  ck_assert_int_eq(cleave_tensor_get_int(constant_of(graph, 0, 2), 0), 1);
  cleave_graph_destroy(graph);
}

/* ---- meanings that changed ---- */

UNIT_TEST(softmax_of_the_last_axis_stays_softmax) {
  onnx_builder_t b;
  begin(&b, 11, "2 3");
  onnx_simple(&b, "Softmax", "x", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2 3");
  onnx_expect(&b,
              "input %x : float32[2, 3]\n"
              "%y = Softmax(%x) {axis = -1} : float32[2, 3]\n"
              "output \"y\" = %y\n");
}

UNIT_TEST(softmax_over_several_axes_goes_through_a_matrix) {
  onnx_builder_t b;
  begin(&b, 11, "2 3 4");
  onnx_node(&b, "LogSoftmax", "x", "y");
  onnx_int(&b, "axis", 1);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2 3 4");
  cleave_graph_t *graph = read(&b);
  expect_ints(graph, 2, 1, (int64_t[]){2, 3, 4}, 3);
  onnx_expect_graph(graph,
                    "input %x : float32[2, 3, 4]\n"
                    "%1 = Flatten(%x) {axis = 1} : float32[2, 12]\n"
                    "%2 = LogSoftmax(%1) {axis = -1} : float32[2, 12]\n"
                    "%y = Reshape(%2, %3) : float32[2, 3, 4]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(softmax_of_an_unknown_shape_reads_the_shape_at_run_time) {
  onnx_builder_t b;
  begin(&b, 11, NULL);
  onnx_node(&b, "Softmax", "x", "y");
  onnx_int(&b, "axis", 2);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  cleave_graph_t *graph = read(&b);
  ck_assert_uint_eq(graph->live_node_count, 4);
  ck_assert_str_eq(cleave_node_op(graph, (cleave_node_t){2})->name, "Shape");
  ck_assert_str_eq(cleave_node_op(graph, (cleave_node_t){3})->name, "Reshape");
  cleave_graph_destroy(graph);
}

UNIT_TEST(batch_normalization_loses_old_attributes_and_outputs) {
  onnx_builder_t b;
  begin(&b, 7, "1 2 3");
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
  begin(&b, 9, "1 2 3");
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
  begin(&b, 7, "1 2 3");
  onnx_node(&b, "BatchNormalization", "x x x x x", "y");
  onnx_int(&b, "spatial", 0);
  onnx_end_node(&b);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED,
               "model: node '': operator 'BatchNormalization' of opset 7: spatial = 0 is not supported");
}

UNIT_TEST(upsample_becomes_resize) {
  onnx_builder_t b;
  begin(&b, 7, "1 1 2 2");
  onnx_node(&b, "Upsample", "x", "y");
  onnx_float_list(&b, "scales", (float[]){1, 1, 2, 3}, 4);
  onnx_text(&b, "mode", "linear");
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 1 4 6");
  cleave_graph_t *graph = read(&b);
  ck_assert_double_eq(cleave_tensor_get_float(constant_of(graph, 0, 2), 3), 3.0);
  onnx_expect_graph(graph,
                    "input %x : float32[1, 1, 2, 2]\n"
                    "%y = Resize(%x, _, %1) {mode = \"linear\", coordinate_transformation_mode = "
                    "\"asymmetric\", nearest_mode = \"floor\"} : float32[1, 1, 4, 6]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(resize_of_opset_10_is_asymmetric) {
  onnx_builder_t b;
  begin(&b, 10, "1 1 2 2");
  onnx_floats(&b, "s", "4", (float[]){1, 1, 2, 2}, 4);
  onnx_simple(&b, "Resize", "x s", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 1 4 4");
  onnx_expect(&b,
              "input %x : float32[1, 1, 2, 2]\n"
              "%y = Resize(%x, _, %s) {coordinate_transformation_mode = \"asymmetric\", nearest_mode = "
              "\"floor\"} : float32[1, 1, 4, 4]\n"
              "output \"y\" = %y\n");
}

UNIT_TEST(resize_takes_empty_tensors_as_left_out) {
  onnx_builder_t b;
  begin(&b, 11, "1 1 2 2");
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
  begin(&b, 16, "1 1 2 2");
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
  begin(&b, 9, "3");
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
  begin(&b, 10, "1 1 4 4");
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
  begin(&b, 18, "1 4 2");
  onnx_floats(&b, "s", "2", (float[]){1, 2}, 2);
  onnx_floats(&b, "b", "2", (float[]){3, 4}, 2);
  onnx_node(&b, "GroupNormalization", "x s b", "y");
  onnx_int(&b, "num_groups", 2);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 4 2");
  cleave_graph_t *graph = read(&b);
  ck_assert_uint_eq(graph->live_node_count, 15);
  cleave_node_t norm = cleave_value_producer(graph, cleave_graph_output(graph, 0));
  cleave_node_t scale = cleave_value_producer(graph, cleave_node_input(graph, norm, 1));
  ck_assert_str_eq(cleave_node_op(graph, scale)->name, "Reshape");
  cleave_graph_destroy(graph);
}

/* ---- opset 6 and before ---- */

UNIT_TEST(broadcast_along_an_axis_is_spelled_out) {
  onnx_builder_t b;
  begin(&b, 6, "2 3 4 5");
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
  cleave_graph_t *graph = read(&b);
  const cleave_tensor_t *w = constant_of(graph, 0, 1);
  ck_assert_int_eq(w->rank, 3);
  ck_assert_int_eq(w->dims[0], 3);
  ck_assert_int_eq(w->dims[2], 1);
  ck_assert_double_eq(cleave_tensor_get_float(w, 2), 3.0);
  expect_ints(graph, 1, 1, (int64_t[]){1, 2}, 2);
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
  begin(&b, 6, "2 3");
  onnx_node(&b, "Add", "x x", "a");
  onnx_int(&b, "broadcast", 1);
  onnx_int(&b, "axis", 1);
  onnx_end_node(&b);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED,
               "model: node '': operator 'Add' of opset 6: its axis is outside of the first operand");
}

UNIT_TEST(slopes_of_old_prelu_are_per_channel) {
  onnx_builder_t b;
  begin(&b, 6, "2 3 4 5");
  onnx_floats(&b, "w", "3", (float[]){1, 2, 3}, 3);
  onnx_simple(&b, "PRelu", "x w", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2 3 4 5");
  cleave_graph_t *graph = read(&b);
  ck_assert_int_eq(constant_of(graph, 0, 1)->rank, 3);
  ck_assert_int_eq(constant_of(graph, 0, 1)->dims[0], 3);
  cleave_graph_destroy(graph);
}

UNIT_TEST(cast_by_name_and_old_constants) {
  onnx_builder_t b;
  begin(&b, 5, "2");
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
  cleave_graph_t *graph = read(&b);
  const cleave_attribute_t *to = cleave_node_attribute(graph, (cleave_node_t){0}, "to");
  ck_assert_int_eq(to->i, CLEAVE_DTYPE_F64);
  const cleave_attribute_t *alpha = cleave_node_attribute(graph, (cleave_node_t){1}, "alpha");
  ck_assert_double_eq_tol(alpha->f, 1.6732, 1e-9);
  ck_assert_ptr_null(cleave_node_attribute(graph, (cleave_node_t){1}, "consumed_inputs"));
  cleave_graph_destroy(graph);
  begin(&b, 5, "2");
  onnx_node(&b, "Cast", "x", "c");
  onnx_text(&b, "to", "QUAD");
  onnx_end_node(&b);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED,
               "model: node '': operator 'Cast' of opset 5: it casts to an unknown element type");
}

UNIT_MAIN("onnx_canonical")
