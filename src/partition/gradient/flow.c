// SPDX-License-Identifier: Apache-2.0
// Gradients flow through what is reached both forward from the values to differentiate by and backward from
// the loss. Values of integers and booleans stop both, and so do operators whose rule says so.
#include "partition/gradient/flow.h"

#include <string.h>

#include "base/memory.h"
#include "graph/order.h"

enum { PATH_HEAD = 4, PATH_TAIL = 2, LABEL_SIZE = 160 };

const cleave_gradient_rule_t *cleave_gradient_rule_find(const cleave_gradient_rules_t *rules,
                                                        const cleave_op_t *op) {
  for (size_t k = rules->count; k-- > 0;) {
    if (rules->items[k]->op == op) {
      return rules->items[k];
    }
  }
  return NULL;
}

static bool is_differentiable(const cleave_graph_t *graph, cleave_value_t value) {
  return cleave_dtype_is_float((cleave_dtype_t)cleave_graph_value(graph, value)->dtype);
}

static bool carries(const cleave_gradient_rules_t *rules, const cleave_op_t *op) {
  const cleave_gradient_rule_t *rule = cleave_gradient_rule_find(rules, op);
  return rule == NULL || rule->apply != NULL;
}

static bool any_input(const cleave_graph_t *graph, cleave_node_t node, const bool *marked) {
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    if (cleave_value_exists(value) && marked[value.index]) {
      return true;
    }
  }
  return false;
}

static bool any_output(const cleave_graph_t *graph, cleave_node_t node, const bool *marked) {
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    if (marked[cleave_node_output(graph, node, k).index]) {
      return true;
    }
  }
  return false;
}

/* Marks what depends on the marked values. */
static void reach_forward(const cleave_gradient_flow_t *flow, const cleave_gradient_rules_t *rules,
                          bool *reached) {
  const cleave_graph_t *graph = flow->graph;
  for (size_t n = 0; n < graph->live_node_count; n++) {
    cleave_node_t node = flow->order[n];
    if (!any_input(graph, node, reached) || !carries(rules, cleave_node_op(graph, node))) {
      continue;
    }
    for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
      cleave_value_t value = cleave_node_output(graph, node, k);
      reached[value.index] = reached[value.index] || is_differentiable(graph, value);
    }
  }
}

/* Marks what the loss depends on among the values that were reached, and keeps the nodes in between. */
static void reach_backward(cleave_gradient_flow_t *flow, const bool *reached) {
  const cleave_graph_t *graph = flow->graph;
  size_t kept = graph->live_node_count;
  flow->flows[flow->loss.index] = reached[flow->loss.index];
  for (size_t n = graph->live_node_count; n-- > 0;) {
    cleave_node_t node = flow->order[n];
    if (!any_output(graph, node, flow->flows) || !any_input(graph, node, reached)) {
      continue;
    }
    for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
      cleave_value_t value = cleave_node_input(graph, node, k);
      if (cleave_value_exists(value) && reached[value.index]) {
        flow->flows[value.index] = true;
      }
    }
    flow->order[--kept] = node;
  }
  flow->node_count = (uint32_t)(graph->live_node_count - kept);
  memmove(flow->order, flow->order + kept, flow->node_count * sizeof *flow->order);
}

cleave_status_t cleave_gradient_flow_init(cleave_gradient_flow_t *flow, const cleave_graph_t *graph,
                                          const cleave_gradient_rules_t *rules, const cleave_value_t *wrt,
                                          size_t wrt_count, cleave_value_t loss, cleave_error_t *error) {
  *flow =
      (cleave_gradient_flow_t){.graph = graph, .loss = loss, .value_count = cleave_graph_value_bound(graph)};
  bool *reached = cleave_allocate_zeroed((size_t)flow->value_count + 1, sizeof *reached);
  flow->flows = cleave_allocate_zeroed((size_t)flow->value_count + 1, sizeof *flow->flows);
  flow->order = cleave_allocate(graph->live_node_count + 1, sizeof *flow->order);
  cleave_status_t status = CLEAVE_OK;
  if (reached == NULL || flow->flows == NULL || flow->order == NULL) {
    status = cleave_error_out_of_memory(error);
  }
  CLEAVE_THEN(status, cleave_graph_topological_order(graph, flow->order, NULL, error));
  if (status == CLEAVE_OK) {
    for (size_t k = 0; k < wrt_count; k++) {
      reached[wrt[k].index] = is_differentiable(graph, wrt[k]);
    }
    reach_forward(flow, rules, reached);
    reach_backward(flow, reached);
  }
  cleave_free(reached);
  return status;
}

void cleave_gradient_flow_deinit(cleave_gradient_flow_t *flow) {
  cleave_free(flow->flows);
  cleave_free(flow->order);
}

/* ---- the way to the loss ---- */

/* By node: the next one on the shortest way to the loss; NONE if there is none, and for the last. */
static void find_next(const cleave_gradient_flow_t *flow, uint32_t *next, uint32_t *distance) {
  const cleave_graph_t *graph = flow->graph;
  for (uint32_t n = flow->node_count; n-- > 0;) {
    cleave_node_t node = flow->order[n];
    for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
      cleave_value_t value = cleave_node_output(graph, node, k);
      if (value.index == flow->loss.index) {
        next[node.index] = CLEAVE_INDEX_NONE;
        distance[node.index] = 1;
      }
      if (!cleave_gradient_flows(flow, value)) {
        continue;
      }
      for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
           use = cleave_use_next(graph, use)) {
        cleave_node_t user = cleave_use_node(graph, use);
        bool leads = cleave_node_exists(user) && distance[user.index] > 0;
        if (leads && (distance[node.index] == 0 || distance[user.index] + 1 < distance[node.index])) {
          distance[node.index] = distance[user.index] + 1;
          next[node.index] = user.index;
        }
      }
    }
  }
}

cleave_status_t cleave_gradient_flow_print_path(const cleave_gradient_flow_t *flow, cleave_node_t node,
                                                cleave_text_t *text, cleave_error_t *error) {
  uint32_t bound = cleave_graph_node_bound(flow->graph);
  uint32_t *next = cleave_allocate_zeroed(bound, sizeof *next);
  uint32_t *distance = cleave_allocate_zeroed(bound, sizeof *distance);
  if (next == NULL || distance == NULL) {
    cleave_free(next);
    cleave_free(distance);
    return cleave_error_out_of_memory(error);
  }
  find_next(flow, next, distance);
  uint32_t length = distance[node.index];
  for (uint32_t k = 0; k < length; k++, node.index = next[node.index]) {
    char label[LABEL_SIZE];
    if (length > PATH_HEAD + PATH_TAIL + 1 && k >= PATH_HEAD && k < length - PATH_TAIL) {
      cleave_text_add(text, k == PATH_HEAD ? " -> ..." : "");
      continue;
    }
    cleave_text_format(text, "%s%s '%.60s'", k == 0 ? "" : " -> ", cleave_node_op(flow->graph, node)->name,
                       cleave_node_label(flow->graph, node, label, sizeof label));
  }
  cleave_free(next);
  cleave_free(distance);
  return cleave_text_check(text, error);
}
