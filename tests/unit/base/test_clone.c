// SPDX-License-Identifier: Apache-2.0
// Copies of graphs: the same ids, symbols turned into sizes, nothing shared that a change would show in.
#include "graph/clone.h"
#include "graph/compare/structural_hash.h"
#include "graph/print.h"
#include "graph/verify.h"
#include "plan_case.h"
#include "session_case.h"
#include "unit.h"

#define NONE CLEAVE_VALUE_NONE

static char *print(const cleave_graph_t *graph) {
  cleave_text_t text = {0};
  unit_ok(cleave_graph_print(graph, &text, e));
  return text.data;
}

UNIT_TEST(a_copy_prints_and_hashes_like_its_original) {
  cleave_graph_t *graph = plan_case_graph(
      "a = Add(x, #1.5); b, m = MaxPool{kernel_shape=[1], auto_pad=VALID}(a); c = Frobnicate(b, _, $w); -> "
      "c, a");
  cleave_graph_t *copy = NULL;
  uint64_t hashes[2];
  unit_ok(cleave_graph_clone(graph, NULL, 0, &copy, e));
  unit_ok(cleave_graph_verify(copy, e));
  unit_ok(cleave_graph_hash(graph, &hashes[0], e));
  unit_ok(cleave_graph_hash(copy, &hashes[1], e));
  ck_assert_uint_eq(hashes[0], hashes[1]);
  char *texts[2] = {print(graph), print(copy)};
  ck_assert_str_eq(texts[0], texts[1]);
  ck_assert_uint_eq(plan_case_node(copy, "b").index, plan_case_node(graph, "b").index);
  cleave_free(texts[0]);
  cleave_free(texts[1]);
  cleave_graph_destroy(copy);
  cleave_graph_destroy(graph);
}

UNIT_TEST(changing_a_copy_leaves_the_original_alone) {
  cleave_graph_t *graph = plan_case_graph("a = Gemm{alpha=0.5}(x, y); b = Relu(a); -> b");
  cleave_graph_t *copy = NULL;
  char *before = print(graph);
  unit_ok(cleave_graph_clone(graph, NULL, 0, &copy, e));
  cleave_node_t gemm = plan_case_node(copy, "a");
  cleave_dim_t dims[2] = {7, 9};
  unit_ok(cleave_graph_set_float(copy, gemm, "alpha", 2.0, e));
  unit_ok(cleave_graph_set_int(copy, gemm, "transB", 1, e));
  unit_ok(cleave_graph_set_type(copy, cleave_node_output(copy, gemm, 0), CLEAVE_DTYPE_F16, 2, dims, e));
  cleave_graph_set_input(copy, gemm, 1, copy->inputs.items[0]);
  cleave_graph_replace_uses(copy, cleave_node_output(copy, plan_case_node(copy, "b"), 0),
                            cleave_node_output(copy, gemm, 0));
  unit_ok(cleave_graph_remove_dead(copy, &(size_t){0}, e));
  ck_assert_uint_eq(copy->live_node_count, 1);
  char *after = print(graph);
  ck_assert_str_eq(before, after);
  cleave_free(before);
  cleave_free(after);
  cleave_graph_destroy(copy);
  cleave_graph_destroy(graph);
}

UNIT_TEST(symbols_become_sizes_or_unknown) {
  session_case_t c = session_case_create();
  cleave_dim_t n = session_case_symbol(&c, "N");
  cleave_dim_t t = session_case_symbol(&c, "T");
  cleave_dim_t sum = cleave_dim_add(c.graph->dims, n, 3);
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 4, (cleave_dim_t[]){n, t, sum, 5});
  cleave_value_t y = session_case_node(&c, "Relu", "y", x, NONE, NONE);
  session_case_output(&c, y);
  unit_ok(cleave_graph_set_type(c.graph, y, CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){n, 5}, e));
  cleave_graph_t *copy = NULL;
  unit_ok(cleave_graph_clone(c.graph, (const int64_t[]){4, CLEAVE_DIM_UNKNOWN}, 2, &copy, e));
  const cleave_value_record_t *record = cleave_graph_value(copy, copy->inputs.items[0]);
  ck_assert_int_eq(record->dims[0], 4);
  ck_assert_int_eq(record->dims[1], CLEAVE_DIM_UNKNOWN);
  ck_assert_int_eq(record->dims[2], 7);
  ck_assert_int_eq(record->dims[3], 5);
  ck_assert_int_eq(cleave_graph_value(c.graph, c.graph->inputs.items[0])->dims[0], n);
  /* Of what nodes make, inference tells. */
  ck_assert_int_eq(cleave_graph_value(copy, y)->dims[0], CLEAVE_DIM_UNKNOWN);
  ck_assert_int_eq(cleave_graph_value(copy, y)->dims[1], 5);
  cleave_graph_destroy(copy);
  session_case_deinit(&c);
}

UNIT_TEST(a_copy_survives_every_allocation_failing) {
  cleave_graph_t *graph = plan_case_graph("a = Add(x, #1.5); b = Gemm{alpha=0.5}(a, $w); -> b");
  cleave_graph_t *copy = NULL;
  int64_t failures = 0;
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (; status != CLEAVE_OK; failures++) {
    (void)cleave_memory_fail_after(failures);
    status = cleave_graph_clone(graph, NULL, 0, &copy, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
    ck_assert((status == CLEAVE_OK) == (copy != NULL));
  }
  ck_assert_int_gt(failures, 3);
  cleave_graph_destroy(copy);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_copy_to_rewrite_keeps_symbols_and_custom_operators) {
  cleave_graph_t *graph = NULL;
  cleave_graph_t *copy = NULL;
  const cleave_op_t *mine = NULL;
  const cleave_op_t *again = NULL;
  cleave_value_t x;
  cleave_node_t node;
  unit_ok(cleave_graph_create(&graph, e));
  cleave_dim_t n = cleave_dims_symbol(graph->dims, "N", 1);
  cleave_dim_t dims[2] = {cleave_dim_add(graph->dims, n, 1), 4};
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 2, dims, &x, e));
  unit_ok(cleave_graph_custom_op(graph, "my.domain", "Mine", 1, &mine, e));
  unit_ok(cleave_graph_add_node(graph, mine, "m", &x, 1, 1, &node, e));
  unit_ok(cleave_graph_copy(graph, &copy, e));
  cleave_text_t text = {0};
  const cleave_value_record_t *record = cleave_graph_value(copy, copy->inputs.items[0]);
  cleave_shape_print(copy->dims, record->rank, record->dims, &text);
  ck_assert_str_eq(cleave_text_get(&text), "[N + 1, 4]");
  cleave_text_deinit(&text);
  ck_assert(cleave_dims_symbol(copy->dims, "N", 1) == n);
  ck_assert(cleave_dim_add(copy->dims, n, 1) == dims[0]);
  unit_ok(cleave_graph_custom_op(copy, "my.domain", "Mine", 1, &again, e));
  ck_assert_ptr_eq(mine, again);
  cleave_graph_destroy(copy);
  cleave_graph_destroy(graph);
}

UNIT_TEST(attributes_of_a_copy_have_room_to_grow) {
  cleave_graph_t *graph = NULL;
  cleave_node_t node;
  char name[16];
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_node(graph, cleave_op_find("", "Relu"), "r", NULL, 0, 1, &node, e));
  for (int count = 0; count < 9; count++) {
    cleave_graph_t *copy = NULL;
    unit_ok(cleave_graph_copy(graph, &copy, e));
    for (int k = 0; k < 20; k++) {
      (void)snprintf(name, sizeof name, "b%d", k);
      unit_ok(cleave_graph_set_int(copy, node, name, k, e));
    }
    for (int k = 0; k < 20; k++) {
      (void)snprintf(name, sizeof name, "b%d", k);
      ck_assert_int_eq(cleave_node_attribute(copy, node, name)->i, k);
    }
    ck_assert_uint_eq(cleave_graph_node(copy, node)->attribute_count, (unsigned)count + 20);
    cleave_graph_destroy(copy);
    (void)snprintf(name, sizeof name, "a%d", count);
    unit_ok(cleave_graph_set_int(graph, node, name, count, e));
  }
  cleave_graph_destroy(graph);
}

UNIT_SUITE("clone")
