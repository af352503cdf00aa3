// SPDX-License-Identifier: Apache-2.0
// Infers types while a graph changes: of one new node at a time, and of nodes that depend on a changed input
// or attribute. Facts about the content of small integer tensors are kept until types may change, so that
// shape arithmetic in a substitute is inferred as in a model.

#include "graph/order.h"
#include "ops/infer/op_functions.h"
#include "partition/rewrite/editor.h"

static cleave_status_t make_fact(cleave_editor_t *editor, cleave_value_t value, bool with_type,
                                 cleave_fact_t **out_fact, cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(editor->graph, value);
  cleave_fact_t *fact = cleave_arena_allocate(&editor->arena, 1, sizeof *fact);
  CLEAVE_TRY_MEMORY(fact, error);
  fact->rank = -1;
  if (with_type) {
    fact->rank = record->rank;
    fact->dtype = record->dtype;
    fact->tensor = record->tensor;
    if (record->rank > 0) {
      fact->dims = cleave_arena_copy(&editor->arena, record->dims, (size_t)record->rank * sizeof *fact->dims);
      CLEAVE_TRY_MEMORY(fact->dims, error);
    }
  }
  *out_fact = fact;
  return CLEAVE_OK;
}

/* The facts known of a value, made from its type when they are first needed. */
static cleave_status_t fact_of(cleave_editor_t *editor, cleave_value_t value, cleave_fact_t **out_fact,
                               cleave_error_t *error) {
  *out_fact = NULL;
  if (!cleave_value_exists(value)) {
    return CLEAVE_OK;
  }
  while (editor->facts.count <= value.index) {
    CLEAVE_ARRAY_PUSH(&editor->facts, NULL, error);
  }
  if (editor->facts.items[value.index] == NULL) {
    CLEAVE_ARRAY_PUSH(&editor->facts_made, value.index, error);
    CLEAVE_TRY(make_fact(editor, value, true, &editor->facts.items[value.index], error));
  }
  *out_fact = editor->facts.items[value.index];
  return CLEAVE_OK;
}

void cleave_editor_forget_facts(cleave_editor_t *editor) {
  for (size_t k = 0; k < editor->facts_made.count; k++) {
    if (editor->facts_made.items[k] < editor->facts.count) {
      editor->facts.items[editor->facts_made.items[k]] = NULL;
    }
  }
  editor->facts_made.count = 0;
  cleave_arena_reset(&editor->arena);
}

/* Runs the operator's inference. If `afresh` is set, known facts of the outputs are dropped before. */
static cleave_status_t run(cleave_editor_t *editor, cleave_node_t node, bool afresh, cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  const cleave_op_t *op = cleave_node_op(graph, node);
  uint32_t input_count = cleave_node_input_count(graph, node);
  uint32_t output_count = cleave_node_output_count(graph, node);
  editor->ports.count = 0;
  CLEAVE_TRY(cleave_array_reserve(&editor->ports, (size_t)input_count + output_count + 1, error));
  for (uint32_t k = 0; k < input_count; k++) {
    cleave_fact_t *fact = NULL;
    CLEAVE_TRY(fact_of(editor, cleave_node_input(graph, node, k), &fact, error));
    cleave_array_push_reserved(&editor->ports, fact);
  }
  for (uint32_t k = 0; k < output_count; k++) {
    cleave_fact_t *fact = NULL;
    cleave_value_t value = cleave_node_output(graph, node, k);
    CLEAVE_TRY(fact_of(editor, value, &fact, error));
    if (afresh) {
      CLEAVE_TRY(make_fact(editor, value, false, &fact, error));
      editor->facts.items[value.index] = fact;
    }
    cleave_array_push_reserved(&editor->ports, fact);
  }
  cleave_infer_t infer = {.graph = graph,
                          .node = node,
                          .op = op,
                          .inputs = editor->ports.items,
                          .outputs = editor->ports.items + input_count,
                          .input_count = input_count,
                          .output_count = output_count,
                          .dims = graph->dims,
                          .arena = &editor->arena};
  return cleave_op_functions(op)->infer(&infer, error);
}

cleave_status_t cleave_editor_infer(cleave_editor_t *editor, cleave_node_t node, cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  if (cleave_op_functions(cleave_node_op(graph, node))->infer == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(run(editor, node, false, error));
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    const cleave_fact_t *fact = editor->facts.items[value.index];
    CLEAVE_TRY(
        cleave_graph_set_type(graph, value, (cleave_dtype_t)fact->dtype, fact->rank, fact->dims, error));
  }
  return CLEAVE_OK;
}

// ---- types that follow ----

/* Does the type that the graph has for a value contradict the inferred one? */
static bool differs(const cleave_value_record_t *record, const cleave_fact_t *fact) {
  if (fact->dtype != CLEAVE_DTYPE_UNKNOWN && fact->dtype != record->dtype) {
    return true;
  }
  if (fact->rank < 0) {
    return false;
  }
  bool other = fact->rank != record->rank;
  for (int32_t d = 0; !other && d < fact->rank; d++) {
    other = fact->dims[d] != CLEAVE_DIM_UNKNOWN && fact->dims[d] != record->dims[d];
  }
  return other;
}

static cleave_status_t retype_node(cleave_editor_t *editor, cleave_node_t node, uint8_t *dirty,
                                   cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  CLEAVE_TRY(cleave_op_check(graph, node, CLEAVE_ERROR_INVALID_ARGUMENT, error));
  if (cleave_op_functions(cleave_node_op(graph, node))->infer == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(run(editor, node, true, error));
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    const cleave_fact_t *fact = editor->facts.items[value.index];
    if (!differs(cleave_graph_value(graph, value), fact)) {
      continue;
    }
    CLEAVE_TRY(
        cleave_graph_set_type(graph, value, (cleave_dtype_t)fact->dtype, fact->rank, fact->dims, error));
    for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
         use = cleave_use_next(graph, use)) {
      if (cleave_node_exists(cleave_use_node(graph, use))) {
        dirty[cleave_use_node(graph, use).index] = 1;
      }
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_editor_retype(cleave_editor_t *editor, cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  if (editor->retyped.count == 0) {
    return CLEAVE_OK;
  }
  cleave_status_t status = CLEAVE_OK;
  size_t live = graph->live_node_count;
  cleave_node_t *order = cleave_allocate(live + 1, sizeof *order);
  uint8_t *dirty = cleave_allocate_zeroed((size_t)cleave_graph_node_bound(graph) + 1, sizeof *dirty);
  CLEAVE_TRY_MEMORY_CLEANUP(order != NULL && dirty != NULL, error);
  CLEAVE_TRY_CLEANUP(cleave_graph_topological_order(graph, order, NULL, error));
  for (size_t k = 0; k < editor->retyped.count; k++) {
    dirty[editor->retyped.items[k]] = 1;
  }
  editor->retyped.count = 0;
  cleave_editor_forget_facts(editor);
  for (size_t k = 0; k < live; k++) {
    if (dirty[order[k].index] != 0) {
      CLEAVE_TRY_CLEANUP(retype_node(editor, order[k], dirty, error));
    }
  }
cleanup:
  cleave_editor_forget_facts(editor);
  cleave_free(order);
  cleave_free(dirty);
  return status;
}
