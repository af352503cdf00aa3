// SPDX-License-Identifier: Apache-2.0
/* How gradients pass a node: one rule for one operator, as `gradient "Gemm" { ... }` of a rule file states
 * it.
 */
#ifndef CLEAVE_PARTITION_PATTERN_GRADIENT_RULE_H
#define CLEAVE_PARTITION_PATTERN_GRADIENT_RULE_H

#include "base/containers/array.h"
#include "graph/graph.h"

/* Changes a graph and logs each change (partition/rewrite/editor.h). */
typedef struct cleave_editor cleave_editor_t;

/* One node whose rule is asked. */
typedef struct cleave_gradient_call {
  cleave_node_t node;
  const cleave_value_t *outputs; /* gradient of each output of the node; NONE if the loss does not read it */
  uint32_t output_count;
  /* Set by the rule, by input of the node: its gradient; NONE for a rule that says nothing about the input.
   */
  cleave_value_t *inputs;
  bool *is_zero; /* by input, set by the rule: no gradient passes here, as the rule says */
  uint32_t input_count;
} cleave_gradient_call_t;

typedef struct cleave_gradient_rule {
  const cleave_op_t *op;
  const char *name; /* of the operator, as the rule has it */
  const char *doc;  /* what the rule says about it; "" */
  const char *file; /* for messages */
  int32_t line;
  /* Outputs from the first on whose gradients the rule takes; UINT32_MAX: all. */
  uint32_t output_count;
  void *context;         /* handed to `apply` */
  const uint64_t *calls; /* of `apply` so far */
  /* Adds to the editor's graph what computes the gradients of the inputs. NULL: the operator carries no
   * gradient (Floor), and what lies before it gets none through it. */
  cleave_status_t (*apply)(void *context, cleave_editor_t *editor, cleave_gradient_call_t *call,
                           cleave_error_t *error);
} cleave_gradient_rule_t;

#endif /* CLEAVE_PARTITION_PATTERN_GRADIENT_RULE_H */
