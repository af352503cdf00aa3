// SPDX-License-Identifier: Apache-2.0
/* Inputs that are fixed: texts of all dtypes, which inputs may be, and what is left of the graph. */
#include <math.h>

#include "graph/graph.h"
#include "graph/verify.h"
#include "unit.h"

static const cleave_op_t relu = {.name = "Relu", .domain = "", .id = 1};

// y = Relu(x), with an input of this type in front of x.
static cleave_graph_t *make(const char *name, cleave_dtype_t dtype, int32_t rank, const cleave_dim_t *dims) {
  cleave_graph_t *graph = NULL;
  cleave_value_t fixed, x;
  cleave_node_t node;
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, name, dtype, rank, dims, &fixed, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){2, 3}, &x, e));
  unit_ok(cleave_graph_add_node(graph, &relu, "", &fixed, 1, 1, &node, e));
  unit_ok(cleave_graph_add_output(graph, "y", cleave_node_output(graph, node, 0), e));
  return graph;
}

static cleave_status_t fix(cleave_graph_t *graph, const char *name, const char *value,
                           cleave_error_t *error) {
  const cleave_fixed_input_t fixed = {.name = name, .value = value};
  return cleave_graph_fix_inputs(graph, &fixed, 1, error);
}

typedef struct text_case {
  cleave_dtype_t dtype;
  const char *text;
  bool is_valid;
  double value;
} text_case_t;

static const text_case_t TEXTS[] = {
    {CLEAVE_DTYPE_BOOL, "true", true, 1},
    {CLEAVE_DTYPE_BOOL, "0", true, 0},
    {CLEAVE_DTYPE_BOOL, "false", true, 0},
    {CLEAVE_DTYPE_BOOL, "True", false, 0},
    {CLEAVE_DTYPE_BOOL, "2", false, 0},
    {CLEAVE_DTYPE_BOOL, "", false, 0},
    {CLEAVE_DTYPE_I64, "-12", true, -12},
    {CLEAVE_DTYPE_I64, "1.5", false, 0},
    {CLEAVE_DTYPE_I64, "true", false, 0},
    {CLEAVE_DTYPE_I64, " 1", false, 0},
    {CLEAVE_DTYPE_I64, "1 ", false, 0},
    {CLEAVE_DTYPE_I64, "9223372036854775808", false, 0},
    {CLEAVE_DTYPE_I32, "2147483647", true, 2147483647},
    {CLEAVE_DTYPE_I32, "2147483648", false, 0},
    {CLEAVE_DTYPE_I8, "-128", true, -128},
    {CLEAVE_DTYPE_I8, "-129", false, 0},
    {CLEAVE_DTYPE_U8, "255", true, 255},
    {CLEAVE_DTYPE_U8, "-1", false, 0},
    {CLEAVE_DTYPE_U64, "-1", false, 0},
    {CLEAVE_DTYPE_U64, "18446744073709551616", false, 0},
    {CLEAVE_DTYPE_F32, "0.5", true, 0.5},
    {CLEAVE_DTYPE_F32, "-inf", true, -INFINITY},
    {CLEAVE_DTYPE_F32, "1e39", false, 0},
    {CLEAVE_DTYPE_F32, "half", false, 0},
    {CLEAVE_DTYPE_F32, "1,5", false, 0},
    {CLEAVE_DTYPE_F64, "1e39", true, 1e39},
    {CLEAVE_DTYPE_F16, "-65504", true, -65504},
    {CLEAVE_DTYPE_F16, "1e6", false, 0},
    {CLEAVE_DTYPE_BF16, "3", true, 3},
};

UNIT_TEST(a_text_is_a_value_of_the_dtype_or_an_error) {
  for (size_t k = 0; k < sizeof TEXTS / sizeof TEXTS[0]; k++) {
    cleave_graph_t *graph = make("n", TEXTS[k].dtype, k % 2 == 0 ? 0 : 2, (cleave_dim_t[]){1, 1});
    cleave_value_t n = graph->inputs.items[0];
    cleave_error_t error = CLEAVE_ERROR_INIT;
    cleave_status_t status = fix(graph, "n", TEXTS[k].text, &error);
    ck_assert_msg((status == CLEAVE_OK) == TEXTS[k].is_valid, "%s: '%s'", cleave_dtype_name(TEXTS[k].dtype),
                  TEXTS[k].text);
    if (TEXTS[k].is_valid) {
      ck_assert_double_eq(cleave_tensor_get_float(cleave_graph_value(graph, n)->tensor, 0), TEXTS[k].value);
    } else {
      ck_assert_int_eq(status, CLEAVE_ERROR_INVALID_ARGUMENT);
      ck_assert_ptr_nonnull(strstr(error.message, "input 'n': expected a value of "));
    }
    cleave_graph_destroy(graph);
  }
}

UNIT_TEST(integers_of_64_bits_are_whole) {
  cleave_graph_t *graph = make("n", CLEAVE_DTYPE_I64, 0, NULL);
  cleave_value_t n = graph->inputs.items[0];
  unit_ok(fix(graph, "n", "9007199254740993", e));
  ck_assert_int_eq(cleave_tensor_get_int(cleave_graph_value(graph, n)->tensor, 0), 9007199254740993);
  cleave_graph_destroy(graph);
  graph = make("n", CLEAVE_DTYPE_U64, 0, NULL);
  n = graph->inputs.items[0];
  unit_ok(fix(graph, "n", "18446744073709551615", e));
  ck_assert(*(const uint64_t *)cleave_graph_value(graph, n)->tensor->data == UINT64_MAX);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_fixed_input_is_a_constant_in_its_place) {
  cleave_graph_t *graph = make("n", CLEAVE_DTYPE_F32, 1, (cleave_dim_t[]){1});
  cleave_value_t n = graph->inputs.items[0];
  unit_ok(fix(graph, "n", "2", e));
  ck_assert_uint_eq(graph->inputs.count, 1);
  ck_assert_str_eq(cleave_value_name(graph, graph->inputs.items[0]), "x");
  ck_assert(cleave_value_is_constant(graph, n) && !cleave_graph_value(graph, n)->is_input);
  ck_assert_uint_eq(cleave_graph_value(graph, n)->use_count, 1);
  ck_assert_uint_eq(graph->fixed_input_count, 1);
  ck_assert_str_eq(cleave_strings_text(&graph->strings, graph->fixed_inputs[0]), "n=2");
  unit_ok(cleave_graph_verify(graph, e));
  cleave_graph_destroy(graph);
}

UNIT_TEST(the_last_value_counts_and_optional_names_may_be_missing) {
  const cleave_fixed_input_t fixed[] = {{"n", "nonsense", false}, {"m", "1", true}, {"n", "3", false}};
  cleave_graph_t *graph = make("n", CLEAVE_DTYPE_F32, 0, NULL);
  cleave_value_t n = graph->inputs.items[0];
  unit_ok(cleave_graph_fix_inputs(graph, fixed, 3, e));
  ck_assert_double_eq(cleave_tensor_get_float(cleave_graph_value(graph, n)->tensor, 0), 3);
  ck_assert_uint_eq(graph->fixed_input_count, 1);
  cleave_graph_destroy(graph);
}

static void refused(cleave_graph_t *graph, const char *name, const char *message) {
  unit_fails(fix(graph, name, "1", e), CLEAVE_ERROR_INVALID_ARGUMENT, message);
  ck_assert_uint_eq(graph->inputs.count, 2);
  cleave_graph_destroy(graph);
}

UNIT_TEST(refuses_inputs_that_are_not_there_and_those_of_more_than_one_element) {
  refused(make("cache_branch", CLEAVE_DTYPE_BOOL, 0, NULL), "cache_brunch",
          "expected an input to fix, found 'cache_brunch' (did you mean 'cache_branch'?); the model's inputs "
          "are: "
          "cache_branch, x");
  refused(make("n", CLEAVE_DTYPE_F32, 0, NULL), "x",
          "input 'x': expected one number or bool to fix it, found float32[2, 3]");
  refused(make("n", CLEAVE_DTYPE_BOOL, -1, NULL), "n",
          "input 'n': expected one number or bool to fix it, found bool[...]");
  refused(make("n", CLEAVE_DTYPE_BOOL, 1, (cleave_dim_t[]){CLEAVE_DIM_UNKNOWN}), "n",
          "input 'n': expected one number or bool to fix it, found bool[?]");
  refused(make("n", CLEAVE_DTYPE_BOOL, 1, (cleave_dim_t[]){0}), "n",
          "input 'n': expected one number or bool to fix it, found bool[0]");
  refused(make("n", CLEAVE_DTYPE_STRING, 0, NULL), "n",
          "input 'n': expected one number or bool to fix it, found string[]");
  refused(make("n", CLEAVE_DTYPE_UNKNOWN, 0, NULL), "n",
          "input 'n': expected one number or bool to fix it, found unknown[]");
}

UNIT_SUITE("fix")
