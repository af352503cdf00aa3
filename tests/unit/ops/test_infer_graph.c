// SPDX-License-Identifier: Apache-2.0
// The fixed point over graphs: facts that travel backwards, assumptions, symbolic shape arithmetic, folding,
// what stays unknown, and that neither order nor size of a graph matters.

#include "graph/verify.h"
#include "infer_case.h"
#include "unit.h"

static cleave_value_t add(cleave_graph_t *graph, const char *op, const cleave_value_t *inputs, size_t count) {
  cleave_node_t node = CLEAVE_NODE_NONE;
  unit_ok(cleave_graph_add_node(graph, cleave_op_find("", op), "", inputs, count, 1, &node, e));
  return cleave_node_output(graph, node, 0);
}

static cleave_value_t unary(cleave_graph_t *graph, const char *op, cleave_value_t input) {
  return add(graph, op, &input, 1);
}

static cleave_value_t binary(cleave_graph_t *graph, const char *op, cleave_value_t a, cleave_value_t b) {
  cleave_value_t inputs[2] = {a, b};
  return add(graph, op, inputs, 2);
}

static cleave_value_t ints(cleave_graph_t *graph, int32_t rank, int64_t count, const int64_t *values) {
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value = CLEAVE_VALUE_NONE;
  unit_ok(cleave_tensor_create_ints(rank, values, count, &tensor, e));
  unit_ok(cleave_graph_add_constant(graph, "", tensor, &value, e));
  cleave_tensor_release(tensor);
  return value;
}

static cleave_value_t scalar(cleave_graph_t *graph, int64_t value) {
  return ints(graph, 0, 1, &value);
}

static cleave_value_t vector1(cleave_graph_t *graph, int64_t value) {
  return ints(graph, 1, 1, &value);
}

static void set_int(cleave_graph_t *graph, cleave_value_t value, const char *name, int64_t number) {
  unit_ok(cleave_graph_set_int(graph, cleave_value_producer(graph, value), name, number, e));
}

static cleave_graph_t *new_graph(void) {
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_graph_create(&graph, e));
  return graph;
}

static void output(cleave_graph_t *graph, cleave_value_t value) {
  unit_ok(cleave_graph_add_output(graph, "", value, e));
}

#define assert_type(graph, value, expected)                                                   \
  do {                                                                                        \
    char types_[256];                                                                         \
    cleave_value_t value_ = (value);                                                          \
    ck_assert_str_eq(infer_case_types((graph), &value_, 1, types_, sizeof types_), expected); \
  } while (0)

UNIT_TEST(one_known_operand_tells_all_where_operands_are_taken_to_be_equal) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t a = infer_case_input(graph, "f32[2,3]");
  cleave_value_t b = infer_case_input(graph, "?[...]");
  cleave_value_t c = infer_case_input(graph, "?[...]");
  cleave_value_t d = infer_case_input(graph, "?[...]");
  cleave_value_t cd = binary(graph, "Mul", c, d);
  cleave_value_t sum = binary(graph, "Add", binary(graph, "Mul", a, b), cd);
  cleave_infer_result_t result;
  output(graph, sum);
  /* broadcasting leaves it open: all but `a` */
  unit_ok(cleave_graph_infer(graph, NULL, &result, e));
  ck_assert_uint_eq(result.unknown_count, 6);
  ck_assert_uint_eq(result.unknown[0].index, b.index);
  assert_type(graph, c, "f32[...]");
  cleave_infer_options_t options = {.assume_equal = true};
  unit_ok(cleave_graph_infer(graph, &options, &result, e));
  ck_assert_uint_eq(result.unknown_count, 0);
  assert_type(graph, b, "f32[2,3]");
  assert_type(graph, c, "f32[2,3]");
  assert_type(graph, d, "f32[2,3]");
  assert_type(graph, cd, "f32[2,3]");
  assert_type(graph, sum, "f32[2,3]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(assumptions_do_not_touch_what_is_known) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t a = infer_case_input(graph, "f32[2,3]");
  cleave_value_t bias = infer_case_input(graph, "f32[3]");
  cleave_value_t open = infer_case_input(graph, "f32[1,?]");
  cleave_value_t sum = binary(graph, "Add", binary(graph, "Add", a, bias), open);
  cleave_infer_options_t options = {.assume_equal = true};
  output(graph, sum);
  unit_ok(cleave_graph_infer(graph, &options, NULL, e));
  assert_type(graph, bias, "f32[3]");
  assert_type(graph, open, "f32[1,3]");
  assert_type(graph, sum, "f32[2,3]");
  cleave_graph_destroy(graph);
}

/* A weight that is a graph input of unknown shape gets it from its convolution, and feeds another one. */
UNIT_TEST(shape_of_a_weight_input_is_inferred_backward) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t data1 = infer_case_input(graph, "f32[2,3,10,10]");
  cleave_value_t data2 = infer_case_input(graph, "f32[1,?,?,?]");
  cleave_value_t weight2 = infer_case_input(graph, "?[...]");
  cleave_value_t c1 = binary(graph, "Conv", data1, data2);
  cleave_value_t c2 = binary(graph, "Conv", data2, weight2);
  const int64_t kernel1[2] = {2, 2};
  const int64_t kernel2[2] = {1, 1};
  unit_ok(cleave_graph_set_ints(graph, cleave_value_producer(graph, c1), "kernel_shape", kernel1, 2, e));
  unit_ok(cleave_graph_set_ints(graph, cleave_value_producer(graph, c2), "kernel_shape", kernel2, 2, e));
  output(graph, c1);
  output(graph, c2);
  unit_ok(cleave_graph_infer(graph, NULL, NULL, e));
  assert_type(graph, data2, "f32[1,3,2,2]");
  assert_type(graph, weight2, "f32[?,3,1,1]");
  assert_type(graph, c1, "f32[2,1,9,9]");
  assert_type(graph, c2, "f32[1,?,2,2]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_channel_count_is_inferred_backward_through_sin) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t data1 = infer_case_input(graph, "f32[3,3,10,10]");
  cleave_value_t data2 = infer_case_input(graph, "f32[1,?,2,2]");
  cleave_value_t bias = infer_case_input(graph, "?[...]");
  cleave_value_t inputs[3] = {data1, unary(graph, "Sin", data2), bias};
  cleave_value_t conv = add(graph, "Conv", inputs, 3);
  cleave_infer_result_t result;
  output(graph, conv);
  unit_ok(cleave_graph_infer(graph, NULL, &result, e));
  ck_assert_uint_eq(result.unknown_count, 0);
  assert_type(graph, data2, "f32[1,3,2,2]");
  assert_type(graph, bias, "f32[1]");
  assert_type(graph, conv, "f32[3,1,9,9]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(facts_travel_back_through_a_long_chain) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t input = infer_case_input(graph, "?[...]");
  cleave_value_t value = input;
  for (int k = 0; k < 1000; k++) {
    value = unary(graph, "Relu", value);
  }
  output(graph, value);
  const cleave_dim_t dims[2] = {4, 5};
  unit_ok(cleave_graph_set_type(graph, value, CLEAVE_DTYPE_F32, 2, dims, e));
  unit_ok(cleave_graph_infer(graph, NULL, NULL, e));
  assert_type(graph, input, "f32[4,5]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(contradictions_name_node_port_expected_and_found) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t a = infer_case_input(graph, "f32[2,3]");
  cleave_value_t value = unary(graph, "Relu", a);
  const cleave_dim_t dims[2] = {2, 4};
  output(graph, value);
  unit_ok(cleave_graph_set_type(graph, value, CLEAVE_DTYPE_F32, 2, dims, e));
  unit_fails(cleave_graph_infer(graph, NULL, NULL, e), CLEAVE_ERROR_SHAPE,
             "node 'Relu#0' (Relu): output 'Y': expected shape [2, 3], found [2, 4]");
  cleave_graph_destroy(graph);
}

/* Reshape(x, Concat(Shape(x)[0], Shape(x)[1], 12, 64)), as exporters split heads. */
UNIT_TEST(symbolic_sizes_pass_through_shape_arithmetic) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = infer_case_input(graph, "f32[N,T,768]");
  cleave_value_t shape = unary(graph, "Shape", x);
  cleave_value_t parts[4];
  for (int k = 0; k < 2; k++) {
    cleave_value_t index = scalar(graph, k);
    parts[k] = binary(graph, "Unsqueeze", binary(graph, "Gather", shape, index), vector1(graph, 0));
  }
  parts[2] = vector1(graph, 12);
  parts[3] = unary(graph, "Cast", binary(graph, "Div", vector1(graph, 768), vector1(graph, 12)));
  set_int(graph, parts[3], "to", CLEAVE_DTYPE_I64);
  cleave_value_t target = add(graph, "Concat", parts, 4);
  set_int(graph, target, "axis", 0);
  cleave_value_t reshaped = binary(graph, "Reshape", x, target);
  cleave_infer_result_t result;
  cleave_infer_options_t options = {.fold = true};
  output(graph, reshaped);
  size_t before = graph->live_node_count;
  unit_ok(cleave_graph_infer(graph, &options, &result, e));
  assert_type(graph, reshaped, "f32[N,T,12,64]");
  ck_assert_uint_eq(result.unknown_count, 0);
  ck_assert_uint_eq(result.folded_count, 2); /* 768 / 12, and its cast */
  ck_assert_uint_eq(graph->live_node_count, before - 2);
  unit_ok(cleave_graph_verify(graph, e));
  cleave_graph_destroy(graph);
}

UNIT_TEST(shape_arithmetic_over_known_sizes_folds_away) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = infer_case_input(graph, "f32[2,3,8,8]");
  cleave_value_t batch = binary(graph, "Gather", unary(graph, "Shape", x), scalar(graph, 0));
  cleave_value_t parts[2] = {binary(graph, "Unsqueeze", batch, vector1(graph, 0)), vector1(graph, -1)};
  cleave_value_t target = add(graph, "Concat", parts, 2);
  set_int(graph, target, "axis", 0);
  cleave_value_t reshaped = binary(graph, "Reshape", x, target);
  cleave_infer_options_t options = {.fold = true};
  output(graph, reshaped);
  unit_ok(cleave_graph_infer(graph, &options, NULL, e));
  ck_assert_uint_eq(graph->live_node_count, 1);
  assert_type(graph, reshaped, "f32[2,192]");
  cleave_value_t constant = cleave_node_input(graph, cleave_value_producer(graph, reshaped), 1);
  const cleave_tensor_t *tensor = cleave_graph_value(graph, constant)->tensor;
  ck_assert(tensor != NULL && tensor->dtype == CLEAVE_DTYPE_I64 && tensor->count == 2);
  ck_assert_int_eq(cleave_tensor_get_int(tensor, 0), 2);
  ck_assert_int_eq(cleave_tensor_get_int(tensor, 1), -1);
  unit_ok(cleave_graph_verify(graph, e));
  cleave_graph_destroy(graph);
}

/* Sizes for Resize: Cast(Floor(Cast(Shape(x)[2:4]) * 2.0)), as exporters upsample. */
UNIT_TEST(symbolic_sizes_pass_through_floats) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = infer_case_input(graph, "f32[N,3,H,W]");
  cleave_value_t shape = unary(graph, "Shape", x);
  set_int(graph, shape, "start", 2);
  cleave_value_t as_float = unary(graph, "Cast", shape);
  set_int(graph, as_float, "to", CLEAVE_DTYPE_F32);
  cleave_tensor_t *tensor = NULL;
  cleave_value_t factor = CLEAVE_VALUE_NONE;
  unit_ok(cleave_tensor_create_float(1.5F, &tensor, e));
  unit_ok(cleave_graph_add_constant(graph, "", tensor, &factor, e));
  cleave_tensor_release(tensor);
  cleave_value_t sizes = unary(graph, "Cast", unary(graph, "Floor", binary(graph, "Mul", as_float, factor)));
  set_int(graph, sizes, "to", CLEAVE_DTYPE_I64);
  cleave_value_t inputs[4] = {x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE, sizes};
  cleave_value_t resized = add(graph, "Resize", inputs, 4);
  const int64_t axes[2] = {2, 3};
  unit_ok(cleave_graph_set_ints(graph, cleave_value_producer(graph, resized), "axes", axes, 2, e));
  output(graph, resized);
  unit_ok(cleave_graph_infer(graph, NULL, NULL, e));
  assert_type(graph, resized, "f32[N,3,floor((3*H)/(2)),floor((3*W)/(2))]");
  cleave_graph_destroy(graph);
}

/* Where(Equal(shape, -1), ones, shape): how exporters make Expand's operand. */
UNIT_TEST(sizes_differ_from_minus_one) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = infer_case_input(graph, "f32[N,T]");
  cleave_value_t y = infer_case_input(graph, "f32[1,1]");
  cleave_value_t shape = unary(graph, "Shape", x);
  cleave_value_t ones = binary(graph, "Div", vector1(graph, 3), vector1(graph, 3));
  cleave_value_t inputs[3] = {binary(graph, "Equal", shape, vector1(graph, -1)), ones, shape};
  cleave_value_t expanded = binary(graph, "Expand", y, add(graph, "Where", inputs, 3));
  output(graph, expanded);
  unit_ok(cleave_graph_infer(graph, NULL, NULL, e));
  assert_type(graph, expanded, "f32[N,T]");
  cleave_graph_destroy(graph);
}

/* arange(T) and a mask of T x T, as causal models build. */
UNIT_TEST(ranges_and_products_of_symbolic_sizes) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = infer_case_input(graph, "i64[N,T]");
  cleave_value_t length = binary(graph, "Gather", unary(graph, "Shape", x), scalar(graph, 1));
  cleave_value_t range_inputs[3] = {scalar(graph, 0), length, scalar(graph, 1)};
  cleave_value_t positions = add(graph, "Range", range_inputs, 3);
  cleave_value_t row = binary(graph, "Unsqueeze", positions, vector1(graph, 0));
  cleave_value_t column = binary(graph, "Unsqueeze", positions, vector1(graph, 1));
  cleave_value_t mask = binary(graph, "Less", row, column);
  cleave_value_t total = unary(graph, "ReduceProd", unary(graph, "Shape", mask));
  set_int(graph, total, "keepdims", 0);
  cleave_value_t flat = binary(graph, "Reshape", mask, binary(graph, "Unsqueeze", total, vector1(graph, 0)));
  output(graph, flat);
  unit_ok(cleave_graph_infer(graph, NULL, NULL, e));
  assert_type(graph, mask, "bool[T,T]");
  assert_type(graph, flat, "bool[T*T]");
  cleave_graph_destroy(graph);
}

/* pads built by ConstantOfShape, Concat, Reshape to pairs, reversed, transposed: the exporters' spelling. */
UNIT_TEST(pads_are_followed_through_matrices) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = infer_case_input(graph, "f32[N,3,H,8]");
  const int64_t given[4] = {1, 2, 3, 4};
  const int64_t pair[2] = {-1, 2};
  cleave_value_t parts[2] = {ints(graph, 1, 4, given), unary(graph, "ConstantOfShape", vector1(graph, 4))};
  cleave_tensor_t *zero = NULL;
  int64_t zeros[1] = {0};
  unit_ok(cleave_tensor_create_ints(1, zeros, 1, &zero, e));
  cleave_attribute_t value = {.name = "value", .kind = CLEAVE_ATTRIBUTE_TENSOR, .count = 1, .held = zero};
  unit_ok(cleave_graph_set_attribute(graph, cleave_value_producer(graph, parts[1]), &value, e));
  cleave_tensor_release(zero);
  cleave_value_t all = add(graph, "Concat", parts, 2);
  set_int(graph, all, "axis", 0);
  cleave_value_t slice_inputs[5] = {binary(graph, "Reshape", all, ints(graph, 1, 2, pair)),
                                    vector1(graph, -1), vector1(graph, -INT32_MAX), vector1(graph, 0),
                                    vector1(graph, -1)};
  cleave_value_t turned = unary(graph, "Transpose", add(graph, "Slice", slice_inputs, 5));
  cleave_value_t padded = binary(graph, "Pad", x, binary(graph, "Reshape", turned, vector1(graph, -1)));
  output(graph, padded);
  unit_ok(cleave_graph_infer(graph, NULL, NULL, e));
  assert_type(graph, padded, "f32[N,3,H+7,11]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(names_that_a_file_gives_to_inner_dims_yield_to_expressions) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = infer_case_input(graph, "f32[N,4]");
  cleave_value_t known = unary(graph, "Relu", x);
  cleave_value_t open = unary(graph, "NonZero", x);
  cleave_dim_t made_up = cleave_dims_symbol(graph->dims, "Relu_dim_0", 10);
  const cleave_dim_t dims[2] = {made_up, CLEAVE_DIM_UNKNOWN};
  const cleave_dim_t found[2] = {2, made_up};
  unit_ok(cleave_graph_set_type(graph, known, CLEAVE_DTYPE_F32, 2, dims, e));
  unit_ok(cleave_graph_set_type(graph, open, CLEAVE_DTYPE_I64, 2, found, e));
  output(graph, known);
  output(graph, open);
  cleave_infer_result_t result;
  unit_ok(cleave_graph_infer(graph, NULL, &result, e));
  assert_type(graph, known, "f32[N,4]");
  assert_type(graph, open, "i64[2,Relu_dim_0]");
  ck_assert_uint_eq(result.unknown_count, 0);
  cleave_graph_destroy(graph);
}

UNIT_TEST(outputs_of_custom_operators_are_listed_as_unknown) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = infer_case_input(graph, "f32[2]");
  const cleave_op_t *op = NULL;
  cleave_node_t node = CLEAVE_NODE_NONE;
  unit_ok(cleave_graph_custom_op(graph, "com.example", "Mystery", 1, &op, e));
  unit_ok(cleave_graph_add_node(graph, op, "", &x, 1, 1, &node, e));
  cleave_value_t y = unary(graph, "Relu", cleave_node_output(graph, node, 0));
  cleave_infer_result_t result;
  output(graph, y);
  unit_ok(cleave_graph_infer(graph, NULL, &result, e));
  ck_assert_uint_eq(result.unknown_count, 2);
  ck_assert_uint_eq(result.unknown[0].index, cleave_node_output(graph, node, 0).index);
  ck_assert_uint_eq(result.unknown[1].index, y.index);
  cleave_graph_destroy(graph);
}

UNIT_TEST(random_and_large_results_are_not_folded) {
  cleave_graph_t *graph = new_graph();
  const int64_t shape[2] = {40, 40};
  cleave_value_t large = unary(graph, "ConstantOfShape", ints(graph, 1, 2, shape));
  cleave_node_t node = CLEAVE_NODE_NONE;
  unit_ok(cleave_graph_add_node(graph, cleave_op_get(CLEAVE_OP_RandomNormal), "", NULL, 0, 1, &node, e));
  unit_ok(cleave_graph_set_ints(graph, node, "shape", shape, 2, e));
  output(graph, binary(graph, "Add", large, cleave_node_output(graph, node, 0)));
  cleave_infer_options_t options = {.fold = true};
  cleave_infer_result_t result;
  unit_ok(cleave_graph_infer(graph, &options, &result, e));
  ck_assert_uint_eq(result.folded_count, 0);
  ck_assert_uint_eq(graph->live_node_count, 3);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_second_run_finds_the_same) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = infer_case_input(graph, "f32[N,T,8]");
  cleave_value_t y = binary(graph, "MatMul", x, infer_case_input(graph, "f32[8,M]"));
  cleave_infer_options_t options = {.fold = true};
  output(graph, y);
  for (int k = 0; k < 2; k++) {
    unit_ok(cleave_graph_infer(graph, &options, NULL, e));
    assert_type(graph, y, "f32[N,T,M]");
  }
  /* an input that gets a size takes its dependents along */
  const cleave_dim_t dims[3] = {2, 5, 8};
  unit_ok(cleave_graph_set_type(graph, x, CLEAVE_DTYPE_F32, 3, dims, e));
  unit_ok(cleave_graph_infer(graph, &options, NULL, e));
  assert_type(graph, y, "f32[2,5,M]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_failed_run_leaves_the_graph_as_it_was) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t a = infer_case_input(graph, "?[...]");
  cleave_value_t b = infer_case_input(graph, "f32[3]");
  cleave_value_t c = infer_case_input(graph, "f32[4]");
  output(graph, binary(graph, "MatMul", b, c));
  output(graph, binary(graph, "GatherElements", a, infer_case_input(graph, "i64[2,2]")));
  unit_fails_with(cleave_graph_infer(graph, NULL, NULL, e), CLEAVE_ERROR_SHAPE, "(MatMul)");
  assert_type(graph, a, "?[...]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(failing_allocations_are_errors) {
  for (int64_t k = 0; k < 400; k++) {
    cleave_graph_t *graph = new_graph();
    (void)infer_case_add(graph, "Slice", "f32[N,8] i64(0) i64(4) i64(1)", "", 1);
    (void)infer_case_add(graph, "Reshape", "f32[N,8] i64(-1)", "", 1);
    (void)infer_case_add(graph, "Concat", "i64(1) i64(2)", "axis=0", 1);
    cleave_infer_options_t options = {.fold = true};
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(k);
    cleave_status_t status = cleave_graph_infer(graph, &options, NULL, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
    cleave_graph_destroy(graph);
    if (status == CLEAVE_OK && k > 200) {
      break;
    }
  }
}

UNIT_TEST(one_node_is_inferred_at_run_time_from_data) {
  cleave_graph_t *graph = new_graph();
  cleave_node_t node = infer_case_add(graph, "Reshape", "f32[N,T] i64[2]", "", 1);
  const int64_t target[2] = {-1, 6};
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create_ints(1, target, 2, &tensor, e));
  cleave_node_type_t data = {.dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = {4, 9}};
  cleave_node_type_t shape = {.dtype = CLEAVE_DTYPE_I64, .rank = 1, .dims = {2}, .tensor = tensor};
  const cleave_node_type_t *inputs[2] = {&data, &shape};
  cleave_node_type_t result = {0};
  unit_ok(cleave_node_infer(graph, node, inputs, 2, &result, 1, e));
  ck_assert_int_eq(result.dtype, CLEAVE_DTYPE_F32);
  ck_assert_int_eq(result.rank, 2);
  ck_assert_int_eq(result.dims[0], 6);
  ck_assert_int_eq(result.dims[1], 6);
  shape.tensor = NULL;
  unit_ok(cleave_node_infer(graph, node, inputs, 2, &result, 1, e));
  ck_assert_int_eq(result.rank, 2);
  ck_assert_int_eq(result.dims[0], -1);
  data.dims[1] = 7;
  shape.tensor = tensor;
  unit_fails(cleave_node_infer(graph, node, inputs, 2, &result, 1, e), CLEAVE_ERROR_SHAPE,
             "node 'Reshape#0' (Reshape): 28 elements cannot be split into rows of 6");
  cleave_tensor_release(tensor);
  cleave_graph_destroy(graph);
}

/* Chains whose facts all come from the far end, and a value with very many users. */
static void infer_chains(int size) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t input = infer_case_input(graph, "?[...]");
  cleave_value_t value = input;
  for (int k = 0; k < size; k++) {
    value = k % 2 == 0 ? unary(graph, "Relu", value) : binary(graph, "Add", value, value);
    (void)unary(graph, "Neg", input);
  }
  output(graph, value);
  const cleave_dim_t dims[2] = {4, 5};
  unit_ok(cleave_graph_set_type(graph, value, CLEAVE_DTYPE_F32, 2, dims, e));
  cleave_infer_options_t options = {.assume_equal = true};
  unit_ok(cleave_graph_infer(graph, &options, NULL, e));
  assert_type(graph, input, "f32[4,5]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(work_grows_linearly_with_the_graph) {
  unit_is_linear(infer_chains, 5000);
}

UNIT_SUITE("infer_graph")
