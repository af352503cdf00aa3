// SPDX-License-Identifier: Apache-2.0
// Cases with their gradients in one graph, for backends to partition and fuse: forward, and backward from
// ones for every output of floating-point numbers.
#include <stdio.h>
#include <string.h>

#include "ops/infer.h"
#include "ops/ops.h"
#include "runtime/model/model_gradient.h"
#include "sweep_case.h"

static cleave_status_t add_op(cleave_graph_t *graph, const char *op, const cleave_value_t *inputs,
                              size_t count, cleave_value_t *out_value, cleave_error_t *error) {
  cleave_node_t node = CLEAVE_NODE_NONE;
  CLEAVE_TRY(cleave_graph_add_node(graph, cleave_op_find("", op), NULL, inputs, count, 1, &node, error));
  *out_value = cleave_node_output(graph, node, 0);
  return cleave_op_check(graph, node, error);
}

/* The output to differentiate, or the sum of the sums of several; NONE if none is of floating-point numbers.
 */
static cleave_status_t add_loss(cleave_graph_t *graph, cleave_value_t *out_loss, cleave_error_t *error) {
  cleave_value_t pair[2] = {CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE};
  *out_loss = CLEAVE_VALUE_NONE;
  for (size_t k = 0; k < graph->outputs.count; k++) {
    cleave_value_t value = cleave_graph_output(graph, k);
    if (!cleave_dtype_is_float((cleave_dtype_t)cleave_graph_value(graph, value)->dtype)) {
      continue;
    }
    if (graph->outputs.count == 1) {
      *out_loss = value;
      return CLEAVE_OK;
    }
    CLEAVE_TRY(add_op(graph, "ReduceSum", &value, 1, &pair[1], error));
    if (cleave_value_exists(pair[0])) {
      CLEAVE_TRY(add_op(graph, "Add", pair, 2, &pair[0], error));
    } else {
      pair[0] = pair[1];
    }
  }
  *out_loss = pair[0];
  return cleave_graph_infer(graph, &(cleave_infer_options_t){0}, NULL, error);
}

cleave_status_t sweep_backward_add(sweep_graph_t *graph, bool adds, bool *out_passes, cleave_error_t *error) {
  cleave_value_t inputs[SWEEP_MAX_INPUTS];
  cleave_value_t gradients[SWEEP_MAX_INPUTS];
  size_t places[SWEEP_MAX_INPUTS];
  size_t count = 0;
  cleave_value_t loss;
  *out_passes = false;
  graph->added_from = adds ? graph->graph->outputs.count : 0;
  CLEAVE_TRY(add_loss(graph->graph, &loss, error));
  for (size_t k = 0; k < graph->input_count; k++) {
    cleave_value_t input = graph->graph->inputs.items[k];
    if (cleave_dtype_is_float((cleave_dtype_t)cleave_graph_value(graph->graph, input)->dtype)) {
      inputs[count] = input;
      places[count++] = k;
    }
  }
  if (!cleave_value_exists(loss) || count == 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_graph_add_gradients(graph->graph, loss, inputs, count, gradients, error));
  for (size_t k = 0; k < count; k++) {
    char name[48];
    if (!cleave_value_exists(gradients[k])) {
      continue;
    }
    *out_passes = true;
    (void)snprintf(name, sizeof name, "grad(%.31s)", graph->inputs[places[k]].name);
    CLEAVE_TRY(cleave_graph_add_output(graph->graph, name, gradients[k], error));
  }
  return cleave_graph_infer(graph->graph, &(cleave_infer_options_t){.fold = true}, NULL, error);
}
