// SPDX-License-Identifier: Apache-2.0
// Contraction: single sets by hand, then random contractions and dissolutions against brute force; the order
// list under insertions at one place.

#include "graph/contraction/contraction.h"

#include "plan_case.h"
#include "random_case.h"
#include "unit.h"

static cleave_contraction_t *contraction_of(const char *text) {
  cleave_contraction_t *contraction = NULL;
  unit_ok(cleave_contraction_create(plan_case_graph(text), &contraction, e));
  return plan_case_keep(contraction);
}

static uint32_t at(const cleave_contraction_t *c, const char *name) {
  return c->positions[plan_case_node(c->graph, name).index];
}

static cleave_contraction_result_t contract(cleave_contraction_t *c, uint32_t count,
                                            const uint32_t *positions) {
  cleave_contraction_result_t result;
  cleave_contraction_result_t asked;
  unit_ok(cleave_contraction_check(c, positions, count, SIZE_MAX, &asked, e));
  unit_ok(cleave_contraction_contract(c, positions, count, SIZE_MAX, &result, e));
  ck_assert_int_eq(asked.outcome, result.outcome);
  ck_assert_uint_eq(asked.outside, result.outside);
  return result;
}

/* Along every edge between two groups the order goes up, and each group is in the list once. */
static void check_order(const cleave_contraction_t *c) {
  for (uint32_t p = 0; p < c->node_count; p++) {
    uint32_t group = cleave_contraction_group(c, p);
    for (uint32_t e = c->producer_start[p]; e < c->producer_start[p + 1]; e++) {
      uint32_t other = cleave_contraction_group(c, c->producers[e]);
      ck_assert(other == group || cleave_contraction_label(c, other) < cleave_contraction_label(c, group));
    }
  }
  uint64_t last = 0;
  uint32_t members = 0;
  for (uint32_t g = cleave_contraction_first(c); g != CLEAVE_INDEX_NONE; g = cleave_contraction_next(c, g)) {
    ck_assert_uint_eq(cleave_contraction_group(c, g), g);
    ck_assert_uint_gt(cleave_contraction_label(c, g), last);
    last = cleave_contraction_label(c, g);
    uint32_t size = 0;
    uint32_t member = g;
    do {
      ck_assert_uint_eq(cleave_contraction_group(c, member), g);
      member = c->next_member[member];
      size++;
    } while (member != g);
    ck_assert_uint_eq(size, c->sizes[g]);
    members += size;
  }
  ck_assert_uint_eq(members, c->node_count);
}

#define DIAMOND "a = Relu(x); b = Exp(a); c = Cos(a); d = Add(b, c); e = Relu(d); -> e"

UNIT_TEST(a_pair_with_a_path_around_closes_a_cycle) {
  cleave_contraction_t *c = contraction_of(DIAMOND);
  cleave_contraction_result_t result = contract(c, 3, (uint32_t[]){at(c, "a"), at(c, "b"), at(c, "d")});
  ck_assert_int_eq(result.outcome, CLEAVE_CONTRACTION_CYCLE);
  ck_assert_uint_eq(result.outside, at(c, "c"));
  ck_assert_uint_eq(cleave_contraction_group(c, at(c, "a")), at(c, "a"));
  check_order(c);
}

UNIT_TEST(a_whole_diamond_contracts) {
  cleave_contraction_t *c = contraction_of(DIAMOND);
  uint32_t set[5] = {at(c, "a"), at(c, "d"), at(c, "c"), at(c, "b"), at(c, "b")};
  cleave_contraction_result_t result = contract(c, 5, set);
  ck_assert_int_eq(result.outcome, CLEAVE_CONTRACTION_DONE);
  ck_assert_uint_eq(c->sizes[cleave_contraction_group(c, set[0])], 4);
  check_order(c);
}

UNIT_TEST(a_set_with_one_way_out_needs_no_search) {
  cleave_contraction_t *c =
      contraction_of("a = Relu(x); o = Exp(y); b = Add(a, o); p = Cos(y); r = Add(b, p); q = Relu(r); -> q");
  cleave_contraction_result_t result = contract(c, 3, (uint32_t[]){at(c, "a"), at(c, "b"), at(c, "r")});
  ck_assert_int_eq(result.outcome, CLEAVE_CONTRACTION_DONE);
  ck_assert_uint_lt(result.steps, 12);
  check_order(c);
}

UNIT_TEST(a_cycle_through_another_group_is_found) {
  // Two chains that depend on each other once both are contracted.
  cleave_contraction_t *c = contraction_of(
      "rx = Relu(x); ry = Relu(y); z1 = Abs(rx); z2 = Abs(ry); o1 = Add(rx, z2); o2 = Add(ry, z1); -> o1, "
      "o2");
  ck_assert_int_eq(contract(c, 2, (uint32_t[]){at(c, "rx"), at(c, "o1")}).outcome, CLEAVE_CONTRACTION_DONE);
  cleave_contraction_result_t result = contract(c, 2, (uint32_t[]){at(c, "ry"), at(c, "o2")});
  ck_assert_int_eq(result.outcome, CLEAVE_CONTRACTION_CYCLE);
  check_order(c);
}

UNIT_TEST(a_search_ends_at_its_limit) {
  cleave_text_t text = {0};
  cleave_text_add(&text, "a = Relu(x); b0 = Exp(a); ");
  for (int k = 1; k < 200; k++) {
    cleave_text_format(&text, "b%d = Exp(b%d); ", k, k - 1);
  }
  cleave_text_add(&text, "c = Add(a, b199); -> c");
  cleave_contraction_t *c = contraction_of(cleave_text_get(&text));
  cleave_text_deinit(&text);
  cleave_contraction_result_t result;
  uint32_t pair[2] = {at(c, "a"), at(c, "c")};
  unit_ok(cleave_contraction_contract(c, pair, 2, 50, &result, e));
  ck_assert_int_eq(result.outcome, CLEAVE_CONTRACTION_LIMIT);
  ck_assert_int_eq(contract(c, 2, pair).outcome, CLEAVE_CONTRACTION_CYCLE);
}

UNIT_TEST(a_dissolved_group_is_single_nodes_in_its_place) {
  cleave_contraction_t *c = contraction_of(DIAMOND);
  uint32_t set[4] = {at(c, "a"), at(c, "b"), at(c, "c"), at(c, "d")};
  (void)contract(c, 4, set);
  unit_ok(cleave_contraction_dissolve(c, set[2], e));
  check_order(c);
  for (uint32_t k = 0; k < 4; k++) {
    ck_assert_uint_eq(cleave_contraction_group(c, set[k]), set[k]);
  }
  ck_assert_int_eq(contract(c, 2, (uint32_t[]){set[0], set[1]}).outcome, CLEAVE_CONTRACTION_DONE);
}

UNIT_TEST(levels_contract_without_search) {
  cleave_contraction_t *c =
      contraction_of("a = Relu(x); b = Relu(a); c = Cos(b); d = Add(b, c); e = Relu(d); -> e");
  uint32_t levels[5] = {1, 1, 2, 3, 3};
  bool joins[5] = {true, true, false, true, true};
  unit_ok(cleave_contraction_contract_levels(c, levels, joins, e));
  check_order(c);
  ck_assert_uint_eq(cleave_contraction_group(c, 0), cleave_contraction_group(c, 1));
  ck_assert_uint_eq(cleave_contraction_group(c, 3), cleave_contraction_group(c, 4));
  ck_assert_uint_ne(cleave_contraction_group(c, 1), cleave_contraction_group(c, 3));
  ck_assert_uint_eq(cleave_contraction_group(c, 2), 2);
}

// ---- against brute force ----

enum { MOST = 24 };

/* Would the graph have a cycle with these groups contracted? */
static bool has_cycle(const cleave_contraction_t *c, const uint32_t *groups) {
  bool reaches[MOST][MOST] = {{false}};
  uint32_t n = c->node_count;
  for (uint32_t p = 0; p < n; p++) {
    for (uint32_t e = c->producer_start[p]; e < c->producer_start[p + 1]; e++) {
      reaches[groups[c->producers[e]]][groups[p]] |= groups[c->producers[e]] != groups[p];
    }
  }
  for (uint32_t m = 0; m < n; m++) {
    for (uint32_t a = 0; a < n; a++) {
      for (uint32_t b = 0; b < n && reaches[a][m]; b++) {
        reaches[a][b] |= reaches[m][b];
      }
    }
  }
  for (uint32_t k = 0; k < n; k++) {
    if (reaches[k][k]) {
      return true;
    }
  }
  return false;
}

static cleave_graph_t *random_graph(void) {
  cleave_graph_t *graph = NULL;
  cleave_value_t values[MOST + 1];
  uint32_t n = 2 + random_below(MOST - 1);
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 0, NULL, &values[0], e));
  for (uint32_t k = 0; k < n; k++) {
    cleave_value_t inputs[2] = {values[random_below(k + 1)], values[random_below(k + 1)]};
    cleave_node_t node;
    unit_ok(cleave_graph_add_node(graph, cleave_op_get(CLEAVE_OP_Add), NULL, inputs, 2, 1, &node, e));
    values[k + 1] = cleave_node_output(graph, node, 0);
  }
  return graph;
}

UNIT_TEST(random_contractions_agree_with_brute_force) {
  uint32_t outcomes[2] = {0, 0};
  for (uint32_t round = 0; round < 3000; round++) {
    cleave_graph_t *graph = random_graph();
    cleave_contraction_t *c = NULL;
    unit_ok(cleave_contraction_create(graph, &c, e));
    for (uint32_t turn = 0; turn < 8; turn++) {
      uint32_t groups[MOST];
      uint32_t set[4];
      uint32_t count = 2 + random_below(3);
      if (random_below(6) == 0) {
        unit_ok(cleave_contraction_dissolve(c, random_below(c->node_count), e));
        check_order(c);
      }
      for (uint32_t k = 0; k < count; k++) {
        set[k] = random_below(c->node_count);
      }
      for (uint32_t p = 0; p < c->node_count; p++) {
        groups[p] = cleave_contraction_group(c, p);
        for (uint32_t k = 0; k < count; k++) {
          if (groups[p] == cleave_contraction_group(c, set[k])) {
            groups[p] = cleave_contraction_group(c, set[0]);
            break;
          }
        }
      }
      cleave_contraction_result_t result = contract(c, count, set);
      bool cycle = has_cycle(c, groups);
      ck_assert_int_eq(result.outcome == CLEAVE_CONTRACTION_CYCLE, cycle);
      outcomes[cycle]++;
      if (cycle) {
        for (uint32_t k = 0; k < count; k++) {
          ck_assert_uint_ne(cleave_contraction_group(c, result.outside), cleave_contraction_group(c, set[k]));
        }
      }
      check_order(c);
    }
    cleave_contraction_destroy(c);
    cleave_graph_destroy(graph);
  }
  ck_assert_uint_gt(outcomes[0], 3000);
  ck_assert_uint_gt(outcomes[1], 3000);
}

UNIT_TEST(the_order_list_makes_room_at_one_place_for_ever) {
  enum { COUNT = 20000 };
  cleave_order_list_t list = {0};
  unit_ok(cleave_order_list_init(&list, COUNT, e));
  // All but two elements go, one by one, between the last two.
  for (uint32_t k = 0; k + 2 < COUNT; k++) {
    cleave_order_list_remove(&list, k);
    cleave_order_list_insert_after(&list, COUNT - 2, &k, 1);
  }
  uint32_t wanted = COUNT - 2;
  uint32_t element = list.after[list.sentinel];
  for (uint32_t k = 0; k < COUNT; k++) {
    ck_assert_uint_eq(element, k == 0 ? COUNT - 2 : k == COUNT - 1 ? COUNT - 1 : wanted);
    ck_assert(k == 0 || list.labels[element] > list.labels[list.before[element]]);
    wanted--;
    element = list.after[element];
  }
  ck_assert_uint_eq(element, list.sentinel);
  cleave_order_list_deinit(&list);
}

UNIT_SUITE("contraction")
