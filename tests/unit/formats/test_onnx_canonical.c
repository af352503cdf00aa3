// SPDX-License-Identifier: Apache-2.0
/* Old forms of operators: each test reads one in its old opset and compares with the canonical form. */
#include "canonical_case.h"
#include "unit.h"

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
  cleave_graph_t *graph = canonical_case_read(&b);
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
               "model: node 'a': expected a Constant with one value and one output, found 0 and 1");
}

UNIT_TEST(chains_of_identities_vanish) {
  onnx_builder_t b;
  canonical_case_begin(&b, 13, "2");
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
  canonical_case_begin(&b, 13, "2");
  onnx_input(&b, "t", CLEAVE_DTYPE_BOOL, "");
  onnx_simple(&b, "Dropout", "x", "a unused");
  onnx_simple(&b, "Dropout", "a - t", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "input %t : bool[]\n"
              "%y = Dropout(%x, _, %t) : float32[...]\n"
              "output \"y\" = %y\n");
  canonical_case_begin(&b, 6, "2");
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
  canonical_case_begin(&b, 13, "2");
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
  canonical_case_begin(&b, 10, "2");
  onnx_node(&b, "Dropout", "x", "y mask");
  onnx_float(&b, "ratio", 0.25f);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  onnx_output(&b, "mask", CLEAVE_DTYPE_BOOL, "2");
  cleave_graph_t *graph = canonical_case_read(&b);
  ck_assert_double_eq(cleave_tensor_get_float(canonical_case_constant(graph, 0, 1), 0), 0.25);
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
    canonical_case_begin(&b, cases[k].opset, "1 2 1");
    onnx_node(&b, cases[k].op, "x", "y");
    onnx_int_list(&b, "axes", (int64_t[]){0, -1}, 2);
    onnx_end_node(&b);
    onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
    cleave_graph_t *graph = canonical_case_read(&b);
    canonical_case_ints(graph, 0, 1, (int64_t[]){0, -1}, 2);
    ck_assert_uint_eq(cleave_graph_node(graph, (cleave_node_t){0})->attribute_count, 0);
    cleave_graph_destroy(graph);
  }
}

UNIT_TEST(slice_pad_and_top_k_take_inputs) {
  onnx_builder_t b;
  canonical_case_begin(&b, 9, "4 4");
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
  cleave_graph_t *graph = canonical_case_read(&b);
  canonical_case_ints(graph, 0, 1, (int64_t[]){1}, 1);
  canonical_case_ints(graph, 0, 2, (int64_t[]){3}, 1);
  canonical_case_ints(graph, 1, 1, (int64_t[]){0, 1, 0, 1}, 4);
  ck_assert_double_eq(cleave_tensor_get_float(canonical_case_constant(graph, 1, 2), 0), 2.0);
  canonical_case_ints(graph, 2, 1, (int64_t[]){2}, 1);
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
  cleave_graph_t *graph = canonical_case_read(&b);
  ck_assert_int_eq((int)canonical_case_constant(graph, 0, 2)->dtype, CLEAVE_DTYPE_F64);
  ck_assert_double_eq(cleave_tensor_get_float(canonical_case_constant(graph, 0, 2), 0), 6.0);
  onnx_expect_graph(graph,
                    "input %x : float64[2]\n"
                    "%y = Clip(%x, _, %1) : float64[2]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(split_says_its_sizes_or_its_parts) {
  onnx_builder_t b;
  canonical_case_begin(&b, 11, "4");
  onnx_node(&b, "Split", "x", "a b");
  onnx_int_list(&b, "split", (int64_t[]){1, 3}, 2);
  onnx_end_node(&b);
  onnx_simple(&b, "Split", "x", "c d");
  onnx_output(&b, "a", CLEAVE_DTYPE_F32, "1");
  onnx_output(&b, "c", CLEAVE_DTYPE_F32, "2");
  cleave_graph_t *graph = canonical_case_read(&b);
  canonical_case_ints(graph, 0, 1, (int64_t[]){1, 3}, 2);
  onnx_expect_graph(graph,
                    "input %x : float32[4]\n"
                    "%a, %b = Split(%x, %1) : float32[1], float32[3]\n"
                    "%c, %d = Split(%x) {num_outputs = 2} : float32[2], float32[2]\n"
                    "output \"a\" = %a\n"
                    "output \"c\" = %c\n");
}

UNIT_TEST(reshape_tile_and_concat_of_the_first_opset) {
  onnx_builder_t b;
  canonical_case_begin(&b, 1, "4");
  onnx_ints(&b, "tiles", "1", (int64_t[]){3}, 1);
  onnx_ints(&b, "axis", "1", (int64_t[]){1}, 1);
  onnx_node(&b, "Reshape", "x", "r");
  onnx_int_list(&b, "shape", (int64_t[]){2, 2}, 2);
  onnx_int_list(&b, "consumed_inputs", (int64_t[]){0}, 1);
  onnx_end_node(&b);
  onnx_simple(&b, "Tile", "r tiles axis", "t");
  onnx_simple(&b, "Concat", "t t", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2 12");
  cleave_graph_t *graph = canonical_case_read(&b);
  canonical_case_ints(graph, 0, 1, (int64_t[]){2, 2}, 2);
  canonical_case_ints(graph, 1, 1, (int64_t[]){1, 3}, 2);
  onnx_expect_graph(graph,
                    "input %x : float32[4]\n"
                    "%r = Reshape(%x, %3) : float32[2, 2]\n"
                    "%t = Tile(%r, %5) : float32[2, 6]\n"
                    "%y = Concat(%t, %t) {axis = 1} : float32[2, 12]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(dft_takes_its_axis_as_input) {
  onnx_builder_t b;
  canonical_case_begin(&b, 17, "1 8 1");
  onnx_node(&b, "DFT", "x", "y");
  onnx_int(&b, "inverse", 1);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 8 2");
  cleave_graph_t *graph = canonical_case_read(&b);
  ck_assert_int_eq(canonical_case_constant(graph, 0, 2)->rank, 0);
  ck_assert_int_eq(cleave_tensor_get_int(canonical_case_constant(graph, 0, 2), 0), 1);
  cleave_graph_destroy(graph);
}

UNIT_SUITE("onnx_canonical")
