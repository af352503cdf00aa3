// SPDX-License-Identifier: Apache-2.0
/* Types of one node at a time, while a script builds: what cleave_graph_infer does for whole graphs. */

#include "ops/infer/op_functions.h"
#include "script/builder/builder.h"

/* The fact of a value, made from its type on first use; NULL for NONE. Raises when memory is short. */
static cleave_fact_t *fact_of(lua_State *state, cleave_value_t value) {
  cleave_builder_t *builder = cleave_builder_of(state);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (!cleave_value_exists(value)) {
    return NULL;
  }
  while (builder->facts.count <= value.index) {
    if (cleave_array_reserve(&builder->facts, 1, &error) != CLEAVE_OK) {
      cleave_script_raise_error(state, &error);
    }
    cleave_array_push_reserved(&builder->facts, NULL);
  }
  if (builder->facts.items[value.index] != NULL) {
    return builder->facts.items[value.index];
  }
  const cleave_value_record_t *record = cleave_graph_value(builder->graph, value);
  cleave_fact_t *fact = cleave_arena_allocate(&builder->arena, 1, sizeof *fact);
  if (fact == NULL) {
    (void)cleave_error_out_of_memory(&error);
    cleave_script_raise_error(state, &error);
    return NULL;
  }
  fact->rank = record->rank;
  fact->dtype = record->dtype;
  fact->tensor = record->tensor;
  if (record->rank > 0) {
    fact->dims = cleave_arena_copy(&builder->arena, record->dims, (size_t)record->rank * sizeof *fact->dims);
    if (fact->dims == NULL) {
      (void)cleave_error_out_of_memory(&error);
      cleave_script_raise_error(state, &error);
    }
  }
  builder->facts.items[value.index] = fact;
  return fact;
}

static cleave_status_t write_types(cleave_builder_t *builder, cleave_node_t node, cleave_error_t *error) {
  for (uint32_t k = 0; k < cleave_node_output_count(builder->graph, node); k++) {
    cleave_value_t value = cleave_node_output(builder->graph, node, k);
    const cleave_fact_t *fact = builder->facts.items[value.index];
    CLEAVE_TRY(cleave_graph_set_type(builder->graph, value, (cleave_dtype_t)fact->dtype, fact->rank,
                                     fact->dims, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_builder_infer(lua_State *state, cleave_node_t node, cleave_error_t *error) {
  cleave_builder_t *builder = cleave_builder_of(state);
  const cleave_op_t *op = cleave_node_op(builder->graph, node);
  if (cleave_op_functions(op)->infer == NULL) {
    return CLEAVE_OK;
  }
  uint32_t input_count = cleave_node_input_count(builder->graph, node);
  uint32_t output_count = cleave_node_output_count(builder->graph, node);
  cleave_fact_t **facts =
      lua_newuserdatauv(state, ((size_t)input_count + output_count + 1) * sizeof *facts, 0);
  for (uint32_t k = 0; k < input_count; k++) {
    facts[k] = fact_of(state, cleave_node_input(builder->graph, node, k));
  }
  for (uint32_t k = 0; k < output_count; k++) {
    facts[input_count + k] = fact_of(state, cleave_node_output(builder->graph, node, k));
  }
  cleave_infer_t infer = {.graph = builder->graph,
                          .node = node,
                          .op = op,
                          .inputs = facts,
                          .outputs = facts + input_count,
                          .input_count = input_count,
                          .output_count = output_count,
                          .dims = builder->graph->dims,
                          .arena = &builder->arena};
  cleave_status_t status = cleave_op_functions(op)->infer(&infer, error);
  lua_pop(state, 1);
  CLEAVE_THEN(status, write_types(builder, node, error));
  return status;
}
