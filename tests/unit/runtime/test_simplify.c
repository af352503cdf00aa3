// SPDX-License-Identifier: Apache-2.0
// Constant folding by running: what is computed, what stays, and where the limits are.
#include "graph/clone.h"
#include "plan_case.h"
#include "runtime/model/bind.h"
#include "session_case.h"
#include "unit.h"

#define NONE CLEAVE_VALUE_NONE

static size_t simplify(cleave_graph_t *graph, const bool *keep) {
  size_t count = 0;
  unit_ok(cleave_graph_simplify(graph, keep, keep == NULL ? 0 : cleave_graph_node_bound(graph), &count, e));
  return count;
}

/* The constant that input `input` of the producer of output 0 reads. */
static const cleave_tensor_t *operand(const cleave_graph_t *graph, uint32_t input) {
  cleave_node_t node = cleave_value_producer(graph, cleave_graph_output(graph, 0));
  const cleave_tensor_t *tensor = cleave_graph_value(graph, cleave_node_input(graph, node, input))->tensor;
  ck_assert_ptr_nonnull(tensor);
  return tensor;
}

UNIT_TEST(a_chain_of_constants_becomes_one) {
  cleave_graph_t *graph = plan_case_graph("a = Add(#1.5, #2.0); b = Mul(a, a); c = Add(x, b); -> c");
  unit_ok(cleave_graph_set_type(graph, cleave_node_output(graph, plan_case_node(graph, "a"), 0),
                                CLEAVE_DTYPE_UNKNOWN, -1, NULL, e));
  unit_ok(cleave_graph_set_type(graph, cleave_node_output(graph, plan_case_node(graph, "b"), 0),
                                CLEAVE_DTYPE_UNKNOWN, -1, NULL, e));
  (void)simplify(graph, NULL);
  ck_assert_uint_eq(graph->live_node_count, 1);
  ck_assert_double_eq(cleave_tensor_get_float(operand(graph, 1), 0), 12.25);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_node_that_is_to_stay_stays) {
  cleave_graph_t *graph = plan_case_graph("a = Exp($w); b = Neg(a); c = Add(x, b); -> c");
  bool keep[8] = {false};
  keep[plan_case_node(graph, "a").index] = true;
  ck_assert(!cleave_graph_has_foldable(graph, keep, 8));
  ck_assert(cleave_graph_has_foldable(graph, NULL, 0));
  ck_assert_uint_eq(simplify(graph, keep), 0);
  ck_assert_uint_eq(graph->live_node_count, 3);
  ck_assert_uint_eq(simplify(graph, NULL), 2);
  ck_assert_uint_eq(graph->live_node_count, 1);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_dead_node_that_is_kept_is_not_computed) {
  cleave_graph_t *graph = plan_case_graph("a = Exp($w); b = Neg(a); c = Exp(x); -> c");
  cleave_node_t dead = plan_case_node(graph, "b");
  cleave_graph_keep_dead(graph);
  ck_assert_uint_eq(simplify(graph, NULL), 1);
  ck_assert(cleave_node_is_live(graph, dead));
  ck_assert_uint_eq(graph->live_node_count, 2);
  cleave_graph_destroy(graph);
}

UNIT_TEST(outputs_whose_shape_depends_on_constant_data_are_known_after) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_I64, 2, (const int64_t[]){1, 2});
  cleave_value_t k = session_case_floats(&c, "k", 1, (const int64_t[]){4}, (const float[]){0, 5, 0, 6});
  cleave_value_t places = session_case_node(&c, "NonZero", "places", k, NONE, NONE);
  session_case_output(&c, session_case_node(&c, "Add", "sum", x, places, NONE));
  session_case_infer(&c);
  ck_assert_uint_eq(simplify(c.graph, NULL), 1);
  const cleave_tensor_t *found = operand(c.graph, 1);
  ck_assert_int_eq(found->dims[0], 1);
  ck_assert_int_eq(found->dims[1], 2);
  ck_assert_int_eq(cleave_tensor_get_int(found, 1), 3);
  session_case_deinit(&c);
}

UNIT_TEST(what_would_grow_large_stays_a_node) {
  session_case_t c = session_case_create();
  const int64_t shape[] = {1 << 12, 1 << 11}; /* 32 MiB out of 4 bytes */
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, shape);
  cleave_value_t one = session_case_floats(&c, "one", 1, (const int64_t[]){1}, (const float[]){1});
  cleave_value_t sizes = session_case_ints(&c, "sizes", 2, shape);
  cleave_value_t wide = session_case_node(&c, "Expand", "wide", one, sizes, NONE);
  session_case_output(&c, session_case_node(&c, "Add", "sum", x, wide, NONE));
  session_case_infer(&c);
  ck_assert_uint_eq(simplify(c.graph, NULL), 0);
  ck_assert_uint_eq(c.graph->live_node_count, 2);
  session_case_deinit(&c);
}

/* `count` times: of a constant, twice as much. */
static cleave_value_t doublings(session_case_t *c, cleave_value_t value, int count) {
  for (int k = 0; k < count; k++) {
    value = session_case_node(c, "Concat", "", value, value, NONE);
    unit_ok(cleave_graph_set_int(c->graph, cleave_value_producer(c->graph, value), "axis", 0, e));
  }
  return value;
}

UNIT_TEST(what_doubles_for_ever_stops_at_the_budget_of_bytes) {
  session_case_t c = session_case_create();
  cleave_value_t k = session_case_floats(&c, "k", 1, (const int64_t[]){4}, (const float[]){1, 2, 3, 4});
  session_case_output(&c, doublings(&c, k, 40));
  session_case_infer(&c);
  size_t folded = simplify(c.graph, NULL);
  ck_assert_uint_gt(folded, 20); /* 16 bytes to 16 MiB, at least */
  ck_assert_uint_lt(folded, 26); /* 16 << 25 are 512 MiB */
  ck_assert(c.graph->fold_budget.is_spent);
  size_t bytes = 0;
  for (size_t t = 0; t < c.graph->tensors.count; t++) {
    bytes += c.graph->tensors.items[t]->bytes;
  }
  ck_assert_uint_lt(bytes, (size_t)512 << 20);
  size_t live = c.graph->live_node_count;
  cleave_graph_t *copy = NULL;
  unit_ok(cleave_graph_copy(c.graph, &copy, e));
  ck_assert_uint_eq(simplify(copy, NULL), 0); /* one budget for all foldings of a model */
  ck_assert_uint_eq(copy->live_node_count, live);
  cleave_graph_destroy(copy);
  session_case_deinit(&c);
}

UNIT_TEST(what_would_work_for_minutes_stops_at_the_budget_of_work) {
  session_case_t c = session_case_create();
  const int64_t shape[] = {600, 600};
  cleave_value_t one = session_case_floats(&c, "one", 1, (const int64_t[]){1}, (const float[]){0.001f});
  cleave_value_t sizes = session_case_ints(&c, "sizes", 2, shape);
  cleave_value_t product = session_case_node(&c, "Expand", "wide", one, sizes, NONE);
  for (int k = 0; k < 400; k++) { /* 0.4 GFLOP each */
    product = session_case_node(&c, "MatMul", "", product, product, NONE);
  }
  session_case_output(&c, product);
  session_case_infer(&c);
  size_t folded = simplify(c.graph, NULL);
  ck_assert_uint_gt(folded, 4);
  ck_assert_uint_lt(folded, 20);
  ck_assert(c.graph->fold_budget.is_spent);
  session_case_deinit(&c);
}

UNIT_TEST(a_model_with_much_data_may_compute_much) {
  session_case_t c = session_case_create();
  const int64_t shape[] = {4096, 4096}; /* 64 MiB; what is read no more is not counted */
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 2, shape, &tensor, e));
  unit_ok(cleave_graph_add_constant(c.graph, "weight", tensor, &value, e));
  cleave_tensor_release(tensor);
  for (int k = 0; k < 16; k++) {
    value = session_case_node(&c, k % 2 == 0 ? "Transpose" : "Neg", "", value, NONE, NONE);
  }
  session_case_output(&c, value);
  session_case_infer(&c);
  ck_assert_uint_eq(simplify(c.graph, NULL), 16);
  ck_assert_uint_eq(c.graph->live_node_count, 0);
  ck_assert(!c.graph->fold_budget.is_spent);
  session_case_deinit(&c);
}

UNIT_TEST(nodes_that_no_output_needs_go_although_nothing_is_folded) {
  cleave_graph_t *graph = plan_case_graph("a = Exp(x); b = Neg(a); c = Add(x, x); -> c");
  ck_assert_uint_eq(simplify(graph, NULL), 0);
  ck_assert_uint_eq(graph->live_node_count, 1);
  cleave_graph_destroy(graph);
}

UNIT_TEST(random_and_custom_nodes_are_never_computed) {
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 1, (const int64_t[]){4});
  cleave_value_t noise = session_case_node(&c, "RandomNormal", "noise", NONE, NONE, NONE);
  unit_ok(cleave_graph_set_ints(c.graph, cleave_value_producer(c.graph, noise), "shape", (const int64_t[]){4},
                                1, e));
  cleave_value_t k = session_case_floats(&c, "k", 1, (const int64_t[]){4}, (const float[]){0, 5, 0, 6});
  cleave_value_t custom = session_case_node(&c, "Frobnicate", "custom", k, NONE, NONE);
  cleave_value_t sum = session_case_node(&c, "Add", "sum", x, noise, NONE);
  session_case_output(&c, session_case_node(&c, "Add", "all", sum, custom, NONE));
  session_case_infer(&c);
  ck_assert(!cleave_graph_has_foldable(c.graph, NULL, 0));
  ck_assert_uint_eq(simplify(c.graph, NULL), 0);
  ck_assert_uint_eq(c.graph->live_node_count, 4);
  session_case_deinit(&c);
}

UNIT_TEST(folding_survives_every_allocation_failing) {
  int64_t failures = 0;
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (; status != CLEAVE_OK; failures++) {
    cleave_graph_t *graph = plan_case_graph("a = Exp($w); b = Neg(a); c = Add(x, b); -> c");
    (void)cleave_memory_fail_after(failures);
    status = cleave_graph_simplify(graph, NULL, 0, NULL, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
    cleave_graph_destroy(graph);
  }
  ck_assert_int_gt(failures, 5);
}

UNIT_SUITE("simplify")
