// SPDX-License-Identifier: Apache-2.0
// Random graphs under random rules, partitioned and run, against the same graph with every node on its own:
// on cpu the numbers are the same to the bit, on oneDNN within its rounding.
#include "backend/program/supports.h"
#include "backend/registry/registry.h"
#include "ops/infer.h"
#include "plan_case.h"
#include "random_case.h"
#include "tools/verify/check.h"
#include "unit.h"

enum { MAX_NODES = 40, GRAPHS = 400, ROWS = 3 };

/* All values are square, so that every operator fits everywhere. Reshape goes to 1x9 and back. */
static const char *const operators[] = {"Add", "Mul",    "Sub",  "Relu",    "Tanh",
                                        "Sin", "MatMul", "Clip", "Reshape", "Transpose"};
enum { OPERATOR_COUNT = sizeof operators / sizeof operators[0] };

static cleave_value_t add_node(cleave_graph_t *graph, const char *name, cleave_value_t a, cleave_value_t b,
                               size_t input_count) {
  cleave_node_t node;
  cleave_value_t inputs[2] = {a, b};
  unit_ok(cleave_graph_add_node(graph, cleave_op_find("", name), NULL, inputs, input_count, 1, &node, e));
  return cleave_node_output(graph, node, 0);
}

static cleave_value_t add_ints(cleave_graph_t *graph, int64_t a, int64_t b) {
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value;
  unit_ok(cleave_tensor_create_ints(1, (int64_t[]){a, b}, 2, &tensor, e));
  unit_ok(cleave_graph_add_constant(graph, "shape", tensor, &value, e));
  cleave_tensor_release(tensor);
  return value;
}

static cleave_value_t add_random_node(cleave_graph_t *graph, cleave_value_t a, cleave_value_t b) {
  const char *name = operators[random_below(OPERATOR_COUNT)];
  if (strcmp(name, "Reshape") == 0) {
    cleave_value_t flat = add_node(graph, name, a, add_ints(graph, 1, ROWS * ROWS), 2);
    cleave_value_t through = random_below(2) == 0 ? flat : add_node(graph, "Relu", flat, flat, 1);
    return add_node(graph, name, through, add_ints(graph, ROWS, ROWS), 2);
  }
  if (strcmp(name, "Clip") == 0) {
    cleave_tensor_t *tensor = NULL;
    cleave_value_t low;
    unit_ok(cleave_tensor_create_float(-0.5f, &tensor, e));
    unit_ok(cleave_graph_add_constant(graph, "low", tensor, &low, e));
    cleave_tensor_release(tensor);
    return add_node(graph, name, a, low, 2);
  }
  return add_node(graph, name, a, b, cleave_op_find("", name)->input_count == 1 ? 1 : 2);
}

static cleave_graph_t *random_graph(void) {
  cleave_graph_t *graph = NULL;
  cleave_value_t values[MAX_NODES + 3];
  cleave_dim_t dims[2] = {ROWS, ROWS};
  cleave_tensor_t *weight = NULL;
  uint32_t count = 3;
  uint32_t nodes = 1 + random_below(MAX_NODES);
  uint32_t reach = random_below(2) == 0 ? 4 : MAX_NODES + 3;
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 2, dims, &values[0], e));
  unit_ok(cleave_graph_add_input(graph, "y", CLEAVE_DTYPE_F32, 2, dims, &values[1], e));
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 2, dims, &weight, e));
  cleave_tensor_fill_normal(weight, random_state, 0.0, 0.5);
  unit_ok(cleave_graph_add_constant(graph, "w", weight, &values[2], e));
  cleave_tensor_release(weight);
  for (uint32_t n = 0; n < nodes; n++) {
    uint32_t window = reach < count ? reach : count;
    cleave_value_t a = values[count - 1 - random_below(window)];
    cleave_value_t b = values[count - 1 - random_below(window)];
    /* A squashing function in between keeps numbers small. */
    cleave_value_t value = add_random_node(graph, a, b);
    values[count++] = random_below(3) == 0 ? add_node(graph, "Tanh", value, value, 1) : value;
  }
  for (uint32_t k = 3; k < count; k++) {
    if (cleave_graph_value(graph, values[k])->use_count == 0 || random_below(100) < 8) {
      unit_ok(cleave_graph_add_output(graph, "out", values[k], e));
    }
  }
  cleave_infer_options_t options = {0};
  unit_ok(cleave_graph_infer(graph, &options, NULL, e));
  return graph;
}

/* A region rule over a random half of the operators, or over all that the backend supports. */
static cleave_plan_t *random_plan(const cleave_graph_t *graph, const char *backend) {
  const cleave_op_t *ops[OPERATOR_COUNT];
  cleave_rule_t rules[2] = {plan_case_rule(CLEAVE_RULE_REGION, "first"),
                            plan_case_rule(CLEAVE_RULE_REGION, "second")};
  rules[0].mode = CLEAVE_REGION_OPS;
  rules[0].ops = ops;
  for (uint32_t k = 0; k < OPERATOR_COUNT; k++) {
    if (random_below(2) == 0 || k == 0) {
      ops[rules[0].op_count++] = cleave_op_find("", operators[k]);
    }
  }
  rules[1].mode = CLEAVE_REGION_BACKEND;
  cleave_ruleset_t ruleset = {.name = "random",
                              .backend = backend,
                              .file = "test.lua",
                              .rules = rules,
                              .rule_count = 1 + random_below(2)};
  const cleave_ruleset_t *pointer = &ruleset;
  cleave_supports_t supports;
  cleave_plan_t *plan = NULL;
  cleave_supports_init(&supports, graph);
  cleave_partition_options_t options = {.supports = cleave_supports_ask, .backend_context = &supports};
  unit_ok(cleave_partition(graph, &pointer, 1, &options, &plan, e));
  cleave_supports_deinit(&supports);
  return plan;
}

static void compare(const char *backend, const cleave_check_tolerance_t *tolerance) {
  cleave_session_options_t session_options = {.size = sizeof session_options, .threads = 1};
  uint32_t regions = 0;
  for (uint32_t round = 0; round < GRAPHS; round++) {
    random_state = UINT64_C(0x9e3779b97f4a7c15) * (round + 1);
    cleave_graph_t *graph = random_graph();
    cleave_plan_t *plan = random_plan(graph, backend);
    cleave_session_t *session = NULL;
    cleave_tensor_t *inputs[2];
    cleave_tensor_t *expected[MAX_NODES + 3];
    size_t output_count = graph->outputs.count;
    unit_ok(cleave_session_create_planned(graph, plan, NULL, 0, &session_options, &session, e));
    for (uint32_t k = 0; k < 2; k++) {
      unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 2, (int64_t[]){ROWS, ROWS}, &inputs[k], e));
      cleave_tensor_fill_normal(inputs[k], round * 2 + k, 0.0, 1.0);
      cleave_tensor_view_t view = cleave_tensor_view(inputs[k]);
      unit_ok(cleave_session_set_input(session, k, &view, e));
    }
    unit_ok(cleave_check_reference(graph, inputs, 2, 1, expected, output_count, e));
    for (int again = 0; again < 2; again++) {
      unit_ok(cleave_session_run(session, e));
      for (uint32_t k = 0; k < output_count; k++) {
        cleave_tensor_view_t actual;
        cleave_check_result_t result;
        cleave_text_t why = {0};
        unit_ok(cleave_session_output(session, k, &actual, e));
        unit_ok(cleave_check_tensor(&actual, expected[k], tolerance, &result, e));
        cleave_check_explain("out", &actual, expected[k], &result, &why);
        ck_assert_msg(result.matches, "graph %u, output %u, run %d: %s", round, k, again,
                      cleave_text_get(&why));
        cleave_text_deinit(&why);
      }
    }
    regions += plan->region_count;
    for (uint32_t k = 0; k < output_count; k++) {
      cleave_tensor_release(expected[k]);
    }
    cleave_tensor_release(inputs[0]);
    cleave_tensor_release(inputs[1]);
    cleave_session_destroy(session);
    cleave_plan_destroy(plan);
    cleave_graph_destroy(graph);
  }
  ck_assert_uint_gt(regions, GRAPHS / 2);
}

UNIT_TEST(regions_on_cpu_give_the_same_bits) {
  cleave_check_tolerance_t exact = {0};
  compare("cpu", &exact);
}

#ifdef CLEAVE_TEST_ONEDNN
UNIT_TEST(regions_on_onednn_give_the_same_numbers) {
  cleave_check_tolerance_t tolerance = {.rtol = 1e-4, .atol = 1e-5, .scaled = true};
  compare("onednn", &tolerance);
}
#endif

UNIT_SUITE("session_random")
