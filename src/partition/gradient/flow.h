// SPDX-License-Identifier: Apache-2.0
/* Gradients flow through what depends on the values to differentiate by and influences the loss, through
 * floating-point values alone. */
#ifndef CLEAVE_PARTITION_GRADIENT_FLOW_H
#define CLEAVE_PARTITION_GRADIENT_FLOW_H

#include "base/text.h"
#include "partition/pattern/gradient_rule.h"

/* The rule of each operator: of several for one operator, the last. */
typedef struct cleave_gradient_rules {
  const cleave_gradient_rule_t *const *items;
  size_t count;
} cleave_gradient_rules_t;

/* NULL: the operator has none. */
const cleave_gradient_rule_t *cleave_gradient_rule_find(const cleave_gradient_rules_t *rules,
                                                        const cleave_op_t *op);

typedef struct cleave_gradient_flow {
  const cleave_graph_t *graph;
  cleave_value_t loss;
  uint32_t value_count; /* of the graph when this was made */
  bool *flows;          /* by value: it gets a gradient */
  cleave_node_t *order; /* nodes with an input and an output that get one, topological */
  uint32_t node_count;
} cleave_gradient_flow_t;

/* A graph only ever grows while the flow is used. Must be deinitialised also when this fails. */
CLEAVE_STATUS cleave_gradient_flow_init(cleave_gradient_flow_t *flow, const cleave_graph_t *graph,
                                        const cleave_gradient_rules_t *rules, const cleave_value_t *wrt,
                                        size_t wrt_count, cleave_value_t loss, cleave_error_t *error);
void cleave_gradient_flow_deinit(cleave_gradient_flow_t *flow);

static inline bool cleave_gradient_flows(const cleave_gradient_flow_t *flow, cleave_value_t value) {
  return cleave_value_exists(value) && value.index < flow->value_count && flow->flows[value.index];
}

/* Appends the shortest way from a node to the loss: "Foo 'a' -> Relu 'b' -> ReduceMean 'c'", the middle left
 * out if it is long. */
CLEAVE_STATUS cleave_gradient_flow_print_path(const cleave_gradient_flow_t *flow, cleave_node_t node,
                                              cleave_text_t *text, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_GRADIENT_FLOW_H */
