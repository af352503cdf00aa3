// SPDX-License-Identifier: Apache-2.0
// Questions about the match of a trial: its nodes, the parts that they are bound to, sizes, outside readers.

#include <math.h>
#include <string.h>

#include "partition/explain/explain_find.h"

bool cleave_explainer_has_node(void *context, const cleave_match_t *match, uint64_t hash) {
  const cleave_node_t *wanted = context;
  (void)hash;
  for (uint32_t k = 0; k < match->node_count && cleave_node_exists(*wanted); k++) {
    if (match->nodes[k].index == wanted->index) {
      return true;
    }
  }
  return !cleave_node_exists(*wanted);
}

bool cleave_finder_has(const finder_t *finder, cleave_node_t node) {
  for (uint32_t k = 0; cleave_node_exists(node) && k < finder->node_count; k++) {
    if (finder->nodes[k].index == node.index) {
      return true;
    }
  }
  return false;
}

uint32_t cleave_finder_part(const finder_t *finder, cleave_node_t node) {
  const cleave_explainer_t *x = finder->x;
  for (uint32_t p = 0; cleave_node_exists(node) && p < x->pattern->node_count; p++) {
    if (x->pattern->nodes[p].kind == CLEAVE_PATTERN_OP && finder->bindings[p].count == 1 &&
        finder->bindings[p].node.index == node.index) {
      return p;
    }
  }
  return CLEAVE_INDEX_NONE;
}

cleave_use_t cleave_finder_outside_use(const finder_t *finder, cleave_value_t value) {
  const cleave_graph_t *graph = finder->x->graph;
  cleave_use_t use = cleave_value_first_use(graph, value);
  while (cleave_use_exists(use) && cleave_finder_has(finder, cleave_use_node(graph, use))) {
    use = cleave_use_next(graph, use);
  }
  return use;
}

cleave_dim_t cleave_finder_symbol(const finder_t *finder, const char *symbol) {
  const cleave_explainer_t *x = finder->x;
  for (uint32_t d = 0; d < x->constraint_count; d++) {
    const constraint_t *constraint = &x->constraints[d];
    bool asked = finder->trial->states[d] == CONSTRAINT_KEPT || finder->trial->states[d] == CONSTRAINT_STRICT;
    if (constraint->kind != CONSTRAINT_DIM || !asked) {
      continue;
    }
    const char *name = x->pattern->nodes[constraint->part].type.dims[constraint->index].symbol;
    cleave_value_t value = finder->bindings[constraint->part].value;
    if (name != NULL && strcmp(name, symbol) == 0 && cleave_value_exists(value) &&
        cleave_graph_value(x->graph, value)->rank > (int32_t)constraint->index) {
      return cleave_graph_value(x->graph, value)->dims[constraint->index];
    }
  }
  return CLEAVE_DIM_UNKNOWN;
}

int64_t cleave_finder_wrong_element(const cleave_constant_test_t *test, const cleave_tensor_t *tensor) {
  double first = tensor->count > 0 ? cleave_tensor_get_float(tensor, 0) : 0.0;
  for (int64_t k = 0; k < tensor->count; k++) {
    double element = cleave_tensor_get_float(tensor, k);
    bool wrong = test->all_equal && !(element == first);
    if (test->has_value) {
      wrong = wrong || !(element == test->value || fabs(element - test->value) <= test->tolerance);
    }
    if (test->has_range) {
      wrong = wrong || !(element >= test->low && element <= test->high);
    }
    if (test->values != NULL) {
      bool near_one = false;
      uint32_t from = test->is_list ? (uint32_t)(k < test->value_count ? k : 0) : 0;
      uint32_t to = test->is_list ? from + 1 : test->value_count;
      for (uint32_t v = from; v < to && v < test->value_count; v++) {
        near_one =
            near_one || element == test->values[v] || fabs(element - test->values[v]) <= test->tolerance;
      }
      wrong = wrong || !near_one || (test->is_list && k >= test->value_count);
    }
    if (wrong) {
      return k;
    }
  }
  return 0;
}
