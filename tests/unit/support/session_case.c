// SPDX-License-Identifier: Apache-2.0
// Small graphs and sessions over them. Tests only: any failure fails the test.
#include "session_case.h"

#include "backend/program/supports.h"
#include "backend/region/view.h"
#include "ops/infer.h"
#include "plan_case.h"
#include "unit.h"

session_case_t session_case_create(void) {
  session_case_t c = {0};
  unit_ok(cleave_graph_create(&c.graph, e));
  return c;
}

void session_case_deinit(session_case_t *c) {
  cleave_session_destroy(c->session);
  cleave_plan_destroy(c->plan);
  cleave_graph_destroy(c->graph);
  for (size_t k = 0; k < c->input_count; k++) {
    cleave_tensor_release(c->inputs[k]);
  }
  *c = (session_case_t){0};
}

cleave_value_t session_case_input(session_case_t *c, const char *name, cleave_dtype_t dtype, int32_t rank,
                                  const cleave_dim_t *dims) {
  cleave_value_t value;
  unit_ok(cleave_graph_add_input(c->graph, name, dtype, rank, dims, &value, e));
  return value;
}

cleave_dim_t session_case_symbol(session_case_t *c, const char *name) {
  return cleave_dims_symbol(c->graph->dims, name, strlen(name));
}

static cleave_value_t add_constant(session_case_t *c, const char *name, cleave_tensor_t *tensor) {
  cleave_value_t value;
  unit_ok(cleave_graph_add_constant(c->graph, name, tensor, &value, e));
  cleave_tensor_release(tensor);
  return value;
}

cleave_value_t session_case_floats(session_case_t *c, const char *name, int32_t rank, const int64_t *dims,
                                   const float *data) {
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, rank, dims, &tensor, e));
  memcpy(tensor->data, data, tensor->bytes);
  return add_constant(c, name, tensor);
}

cleave_value_t session_case_ints(session_case_t *c, const char *name, int64_t count, const int64_t *data) {
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create_ints(1, data, count, &tensor, e));
  return add_constant(c, name, tensor);
}

cleave_value_t session_case_node(session_case_t *c, const char *op_name, const char *name, cleave_value_t a,
                                 cleave_value_t b, cleave_value_t d) {
  const cleave_op_t *op = cleave_op_find("", op_name);
  cleave_value_t inputs[3] = {a, b, d};
  size_t count = cleave_value_exists(d) ? 3 : cleave_value_exists(b) ? 2 : cleave_value_exists(a) ? 1 : 0;
  cleave_node_t node;
  if (op == NULL) {
    unit_ok(cleave_graph_custom_op(c->graph, "test", op_name, 1, &op, e));
  }
  unit_ok(cleave_graph_add_node(c->graph, op, name, inputs, count, 1, &node, e));
  cleave_value_t output = cleave_node_output(c->graph, node, 0);
  unit_ok(cleave_graph_set_value_name(c->graph, output, name, e));
  return output;
}

void session_case_output(session_case_t *c, cleave_value_t value) {
  unit_ok(cleave_graph_add_output(c->graph, cleave_value_name(c->graph, value), value, e));
}

void session_case_infer(session_case_t *c) {
  cleave_infer_options_t options = {0};
  unit_ok(cleave_graph_infer(c->graph, &options, NULL, e));
}

void session_case_partition(session_case_t *c, const char *ops, const char *backend) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "island");
  const cleave_op_t *const *list = plan_case_op_list(ops, &rule.op_count);
  rule.mode = CLEAVE_REGION_OPS;
  rule.ops = list;
  cleave_ruleset_t ruleset = {
      .name = "ops", .backend = backend, .file = "test.lua", .rules = &rule, .rule_count = 1};
  const cleave_ruleset_t *pointer = &ruleset;
  cleave_supports_t supports;
  cleave_supports_init(&supports, c->graph);
  cleave_partition_options_t options = {.supports = cleave_supports_ask, .backend_context = &supports};
  unit_ok(cleave_partition(c->graph, &pointer, 1, &options, &c->plan, e));
  cleave_supports_deinit(&supports);
  free((void *)(uintptr_t)list);
}

static void feed(session_case_t *c, cleave_dtype_t dtype, int32_t rank, const int64_t *dims,
                 const void *data) {
  ck_assert_uint_lt(c->input_count, SESSION_CASE_INPUTS);
  cleave_tensor_t **tensor = &c->inputs[c->input_count];
  unit_ok(cleave_tensor_create(dtype, rank, dims, tensor, e));
  if ((*tensor)->bytes > 0) {
    memcpy((*tensor)->data, data, (*tensor)->bytes);
  }
  c->views[c->input_count] = cleave_tensor_view(*tensor);
  c->input_count++;
}

void session_case_feed(session_case_t *c, int32_t rank, const int64_t *dims, const float *data) {
  feed(c, CLEAVE_DTYPE_F32, rank, dims, data);
}

void session_case_feed_ints(session_case_t *c, int32_t rank, const int64_t *dims, const int64_t *data) {
  feed(c, CLEAVE_DTYPE_I64, rank, dims, data);
}

void session_case_compile(session_case_t *c, const cleave_session_options_t *options) {
  for (size_t k = 0; k < c->input_count; k++) {
    c->pointers[k] = &c->views[k];
  }
  unit_ok(
      cleave_session_create_planned(c->graph, c->plan, c->pointers, c->input_count, options, &c->session, e));
  for (uint32_t k = 0; k < c->input_count; k++) {
    unit_ok(cleave_session_set_input(c->session, k, &c->views[k], e));
  }
}

void session_case_run(session_case_t *c) {
  unit_ok(cleave_session_run(c->session, e));
}

cleave_tensor_view_t session_case_view(const session_case_t *c, uint32_t output) {
  cleave_tensor_view_t view = {0};
  unit_ok(cleave_session_output(c->session, output, &view, e));
  return view;
}

float session_case_value(const session_case_t *c, uint32_t output, int64_t index) {
  cleave_tensor_view_t view = session_case_view(c, output);
  ck_assert_int_eq(view.dtype, CLEAVE_DTYPE_F32);
  ck_assert_int_lt(index, cleave_view_element_count(&view));
  return ((const float *)view.data)[index];
}

session_case_t session_case_text(const char *text) {
  session_case_t c = {.graph = plan_case_graph(text)};
  for (size_t k = 0; k < c.graph->inputs.count; k++) {
    float base = (float)k * 4.0f;
    session_case_feed(&c, 2, ((const int64_t[]){2, 2}),
                      ((const float[]){base + 1, base + 2, base + 3, base + 4}));
  }
  return c;
}

session_case_t session_case_symbolic(void) {
  session_case_t c = session_case_create();
  cleave_dim_t n = session_case_symbol(&c, "N");
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){n, 3});
  cleave_value_t y = session_case_input(&c, "y", CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){n, 3});
  cleave_value_t shape = session_case_node(&c, "Shape", "shape", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  cleave_value_t sum = session_case_node(&c, "Add", "sum", x, y, CLEAVE_VALUE_NONE);
  cleave_value_t flat =
      session_case_node(&c, "Reshape", "flat", sum, session_case_ints(&c, "all", 1, ((const int64_t[]){-1})),
                        CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Reshape", "out", flat, shape, CLEAVE_VALUE_NONE));
  session_case_infer(&c);
  return c;
}
