// SPDX-License-Identifier: Apache-2.0
/* Building, editing, ordering, hashing and printing graphs; a graph of a million nodes. */
#include "graph/clone.h"
#include "graph/graph.h"

#include <sys/resource.h>
#include <time.h>

#include "graph/compare/structural_hash.h"
#include "graph/order.h"
#include "graph/print.h"
#include "graph/verify.h"
#include "unit.h"

static const cleave_op_t relu = {.name = "Relu", .domain = "", .id = 1};
static const cleave_op_t add = {.name = "Add", .domain = "", .id = 2};

static cleave_graph_t *new_graph(void) {
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_graph_create(&graph, e));
  return graph;
}

static cleave_value_t input(cleave_graph_t *graph, const char *name) {
  cleave_value_t value;
  unit_ok(cleave_graph_add_input(graph, name, CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){2, 3}, &value, e));
  return value;
}

static cleave_value_t unary(cleave_graph_t *graph, const char *name, cleave_value_t x) {
  cleave_node_t node;
  unit_ok(cleave_graph_add_node(graph, &relu, name, &x, 1, 1, &node, e));
  return cleave_node_output(graph, node, 0);
}

static cleave_value_t binary(cleave_graph_t *graph, const char *name, cleave_value_t x, cleave_value_t y) {
  cleave_node_t node;
  unit_ok(cleave_graph_add_node(graph, &add, name, (cleave_value_t[]){x, y}, 2, 1, &node, e));
  return cleave_node_output(graph, node, 0);
}

static void output(cleave_graph_t *graph, const char *name, cleave_value_t value) {
  unit_ok(cleave_graph_add_output(graph, name, value, e));
}

static uint64_t hash_of(const cleave_graph_t *graph) {
  uint64_t hash = 0;
  unit_ok(cleave_graph_hash(graph, &hash, e));
  return hash;
}

UNIT_TEST(uses_are_listed_in_order_and_outputs_are_uses) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = input(graph, "x");
  cleave_value_t a = unary(graph, "a", x);
  cleave_value_t b = binary(graph, "b", a, a);
  output(graph, "y", a);
  output(graph, "z", b);
  output(graph, "again", b);
  ck_assert_uint_eq(cleave_graph_value(graph, a)->use_count, 3);
  cleave_use_t use = cleave_value_first_use(graph, a);
  ck_assert_uint_eq(cleave_use_input_index(graph, use), 0);
  use = cleave_use_next(graph, use);
  ck_assert_uint_eq(cleave_use_input_index(graph, use), 1);
  ck_assert_uint_eq(cleave_use_node(graph, use).index, cleave_value_producer(graph, b).index);
  use = cleave_use_next(graph, use);
  ck_assert(!cleave_node_exists(cleave_use_node(graph, use)));
  ck_assert(cleave_value_is_output(graph, a));
  ck_assert(!cleave_value_is_output(graph, x));
  unit_ok(cleave_graph_verify(graph, e));
  cleave_graph_destroy(graph);
}

UNIT_TEST(replacing_uses_keeps_their_order_and_dead_nodes_go) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = input(graph, "x");
  cleave_value_t a = unary(graph, "a", x);
  cleave_value_t b = unary(graph, "b", a);
  cleave_value_t c = binary(graph, "c", b, a);
  output(graph, "y", c);
  output(graph, "b", b);
  cleave_graph_replace_uses(graph, b, a);
  ck_assert_uint_eq(cleave_graph_value(graph, b)->use_count, 0);
  ck_assert_uint_eq(cleave_graph_output(graph, 1).index, a.index);
  size_t removed = 0;
  unit_ok(cleave_graph_remove_dead(graph, &removed, e));
  ck_assert_uint_eq(removed, 1);
  ck_assert_uint_eq(graph->live_node_count, 2);
  unit_ok(cleave_graph_verify(graph, e));
  cleave_graph_set_input(graph, cleave_value_producer(graph, c), 0, x);
  cleave_graph_set_input(graph, cleave_value_producer(graph, c), 1, CLEAVE_VALUE_NONE);
  ck_assert(!cleave_value_exists(cleave_node_input(graph, cleave_value_producer(graph, c), 1)));
  unit_ok(cleave_graph_verify(graph, e));
  cleave_graph_destroy(graph);
}

UNIT_TEST(nodes_that_nothing_reads_can_be_kept) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = input(graph, "x");
  cleave_value_t a = unary(graph, "a", x);
  cleave_value_t dead = unary(graph, "dead", unary(graph, "half dead", a));
  output(graph, "y", unary(graph, "b", a));
  bool needed[4];
  unit_ok(cleave_graph_find_needed(graph, needed, e));
  ck_assert(needed[0] && !needed[1] && !needed[2] && needed[3]);
  cleave_graph_keep_dead(graph);
  cleave_graph_t *copy = NULL;
  unit_ok(cleave_graph_copy(graph, &copy, e));
  cleave_value_t later = unary(copy, "later", a);
  size_t removed = 0;
  unit_ok(cleave_graph_remove_dead(copy, &removed, e));
  ck_assert_uint_eq(removed, 1);
  ck_assert_uint_eq(copy->live_node_count, 4);
  ck_assert(cleave_node_is_live(copy, cleave_value_producer(copy, dead)));
  ck_assert(!cleave_node_exists(cleave_value_producer(copy, later)));
  unit_ok(cleave_graph_verify(copy, e));
  cleave_graph_destroy(copy);
  cleave_graph_destroy(graph);
}

UNIT_TEST(a_constant_can_take_the_place_of_a_value) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t a = unary(graph, "a", input(graph, "x"));
  output(graph, "y", unary(graph, "b", a));
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create_ints(1, (int64_t[]){1, 2}, 2, &tensor, e));
  unit_ok(cleave_graph_replace_with_constant(graph, a, tensor, e));
  cleave_tensor_release(tensor);
  size_t removed = 0;
  unit_ok(cleave_graph_remove_dead(graph, &removed, e));
  ck_assert_uint_eq(removed, 1);
  unit_ok(cleave_graph_verify(graph, e));
  cleave_node_t b = cleave_value_producer(graph, cleave_graph_output(graph, 0));
  ck_assert(cleave_value_is_constant(graph, cleave_node_input(graph, b, 0)));
  cleave_graph_destroy(graph);
}

UNIT_TEST(attributes_are_copied_and_replaced) {
  cleave_graph_t *graph = new_graph();
  cleave_node_t node;
  unit_ok(cleave_graph_add_node(graph, &relu, "r", NULL, 0, 1, &node, e));
  int64_t pads[] = {1, 2, 3, 4};
  char text[] = "same";
  unit_ok(cleave_graph_set_ints(graph, node, "pads", pads, 4, e));
  unit_ok(cleave_graph_set_text(graph, node, "mode", text, e));
  unit_ok(cleave_graph_set_int(graph, node, "group", 3, e));
  unit_ok(cleave_graph_set_float(graph, node, "alpha", 0.5, e));
  unit_ok(cleave_graph_set_int(graph, node, "group", 4, e));
  for (int k = 0; k < 20; k++) {
    char name[16];
    (void)snprintf(name, sizeof name, "a%d", k);
    unit_ok(cleave_graph_set_int(graph, node, name, k, e));
  }
  pads[0] = 9;
  text[0] = 'X';
  ck_assert_int_eq(cleave_node_attribute(graph, node, "pads")->ints[0], 1);
  ck_assert_str_eq(cleave_node_attribute(graph, node, "mode")->s, "same");
  ck_assert_int_eq(cleave_node_attribute(graph, node, "group")->i, 4);
  ck_assert_int_eq(cleave_node_attribute(graph, node, "a17")->i, 17);
  ck_assert_ptr_null(cleave_node_attribute(graph, node, "axis"));
  ck_assert_uint_eq(cleave_graph_node(graph, node)->attribute_count, 24);
  cleave_graph_destroy(graph);
}

UNIT_TEST(orders_by_index_among_ready_nodes) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = input(graph, "x");
  cleave_value_t late = unary(graph, "n0", x);
  cleave_value_t b = unary(graph, "n1", x);
  cleave_value_t c = unary(graph, "n2", b);
  output(graph, "y", late);
  output(graph, "z", c);
  cleave_graph_set_input(graph, cleave_value_producer(graph, late), 0, c); /* n0 now needs n2 */
  cleave_node_t order[3];
  uint32_t position[3];
  unit_ok(cleave_graph_topological_order(graph, order, position, e));
  ck_assert_uint_eq(order[0].index, 1);
  ck_assert_uint_eq(order[1].index, 2);
  ck_assert_uint_eq(order[2].index, 0);
  ck_assert_uint_eq(position[0], 2);
  cleave_graph_set_input(graph, cleave_value_producer(graph, b), 0, late);
  unit_fails(cleave_graph_topological_order(graph, order, NULL, e), CLEAVE_ERROR_FORMAT,
             "graph: expected no cycles, found one that feeds node 'n0'");
  unit_fails_with(cleave_graph_verify(graph, e), CLEAVE_ERROR_FORMAT, "no cycles");
  cleave_graph_destroy(graph);
}

static cleave_graph_t *diamond(bool swapped, const char *prefix, bool same_inputs) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = input(graph, prefix);
  cleave_value_t y = input(graph, "other");
  cleave_value_t a = swapped ? unary(graph, "", y) : unary(graph, "", x);
  cleave_value_t b = swapped ? unary(graph, "", x) : unary(graph, "", y);
  cleave_value_t left = swapped ? b : a;
  output(graph, prefix, binary(graph, prefix, left, same_inputs ? left : (swapped ? a : b)));
  return graph;
}

UNIT_TEST(the_hash_sees_structure_but_no_names_or_order_of_making) {
  cleave_graph_t *one = diamond(false, "x", false);
  cleave_graph_t *two = diamond(true, "renamed", false);
  cleave_graph_t *other = diamond(false, "x", true);
  ck_assert_uint_eq(hash_of(one), hash_of(two));
  ck_assert_uint_ne(hash_of(one), hash_of(other));
  uint64_t before = hash_of(one);
  unit_ok(cleave_graph_set_int(one, (cleave_node_t){0}, "axis", 1, e));
  uint64_t after = hash_of(one);
  ck_assert_uint_ne(before, after);
  unit_ok(cleave_graph_set_int(one, (cleave_node_t){0}, "axis", 2, e));
  ck_assert_uint_ne(hash_of(one), after);
  cleave_graph_destroy(one);
  cleave_graph_destroy(two);
  cleave_graph_destroy(other);
}

UNIT_TEST(prints_a_node_a_line) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = input(graph, "x");
  cleave_value_t a = unary(graph, "act", x);
  unit_ok(cleave_graph_set_ints(graph, cleave_value_producer(graph, a), "pads", (int64_t[]){1, 2}, 2, e));
  unit_ok(cleave_graph_set_text(graph, cleave_value_producer(graph, a), "mode", "same", e));
  unit_ok(cleave_graph_set_value_name(graph, a, "a", e));
  cleave_dim_t n = cleave_dims_symbol(graph->dims, "N", 1);
  unit_ok(cleave_graph_set_type(graph, a, CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){n, -1}, e));
  output(graph, "y", binary(graph, "", a, a));
  cleave_text_t text = {0};
  unit_ok(cleave_graph_print(graph, &text, e));
  ck_assert_str_eq(cleave_text_get(&text),
                   "input %x : float32[2, 3]\n"
                   "%a = Relu(%x) {pads = [1, 2], mode = \"same\"} : float32[N, ?]\n"
                   "%2 = Add(%a, %a) : unknown[...]\n"
                   "output \"y\" = %2\n");
  cleave_text_deinit(&text);
  cleave_graph_destroy(graph);
}

UNIT_TEST(custom_operators_have_one_entry_a_name) {
  cleave_graph_t *graph = new_graph();
  const cleave_op_t *a = NULL;
  const cleave_op_t *b = NULL;
  const cleave_op_t *c = NULL;
  unit_ok(cleave_graph_custom_op(graph, "my.domain", "Foo", 1, &a, e));
  unit_ok(cleave_graph_custom_op(graph, "my.domain", "Foo", 1, &b, e));
  unit_ok(cleave_graph_custom_op(graph, "", "Foo", 1, &c, e));
  ck_assert_ptr_eq(a, b);
  ck_assert_ptr_ne(a, c);
  ck_assert_uint_eq(a->id, CLEAVE_OP_ID_CUSTOM);
  cleave_graph_destroy(graph);
}

/* Builds a chain of nodes with one or two inputs; returns the processor time that it took in milliseconds. */
static double build_chain(cleave_graph_t *graph, int count) {
  clock_t start = clock();
  cleave_value_t before = input(graph, "x");
  cleave_value_t last = before;
  for (int k = 0; k < count; k++) {
    cleave_value_t next = k % 2 == 0 ? unary(graph, "", last) : binary(graph, "", last, before);
    before = last;
    last = next;
  }
  output(graph, "y", last);
  return (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
}

UNIT_TEST(builds_a_million_nodes_in_linear_time_and_a_gigabyte) {
  cleave_graph_t *small = new_graph();
  double tenth = build_chain(small, 100000);
  cleave_graph_destroy(small);
  cleave_graph_t *graph = new_graph();
  double built = build_chain(graph, 1000000);
  struct rusage usage;
  ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
  unit_ok(cleave_graph_verify(graph, e));
  ck_assert_uint_eq(graph->live_node_count, 1000000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  /* Time per node may grow fourfold, as caches are left behind; quadratic work would take a hundred times. */
  ck_assert_msg(built < 40.0 * tenth, "100,000 nodes in %.0f ms, 1,000,000 in %.0f", tenth, built);
  ck_assert_msg(usage.ru_maxrss < 1000000, "%ld kB", usage.ru_maxrss);
#else
  (void)built;
  (void)tenth;
#endif
  cleave_graph_destroy(graph);
}

UNIT_TEST(every_failing_allocation_is_an_error_and_no_leak) {
  for (int64_t countdown = 0; countdown < 60; countdown++) {
    cleave_graph_t *graph = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    cleave_value_t x;
    cleave_node_t node;
    (void)cleave_memory_fail_after(countdown);
    cleave_status_t status = cleave_graph_create(&graph, &error);
    if (status == CLEAVE_OK) {
      status = cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 1, (cleave_dim_t[]){4}, &x, &error);
    }
    if (status == CLEAVE_OK) {
      status = cleave_graph_add_node(graph, &relu, "n", &x, 1, 1, &node, &error);
    }
    if (status == CLEAVE_OK) {
      status = cleave_graph_set_ints(graph, node, "pads", (int64_t[]){1, 2}, 2, &error);
    }
    if (status == CLEAVE_OK) {
      status = cleave_graph_add_output(graph, "y", cleave_node_output(graph, node, 0), &error);
    }
    (void)cleave_memory_fail_after(-1);
    if (status != CLEAVE_OK) {
      ck_assert_int_eq(status, CLEAVE_ERROR_OUT_OF_MEMORY);
      ck_assert_str_eq(error.message, "out of memory");
    } else {
      unit_ok(cleave_graph_verify(graph, e));
    }
    ck_assert(status == CLEAVE_OK || countdown < 50);
    cleave_graph_destroy(graph);
  }
}

UNIT_SUITE("graph")
