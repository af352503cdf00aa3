// SPDX-License-Identifier: Apache-2.0
/*
 * Building a graph. Records live in growing arrays and are named by index; a node's inputs are consecutive
 * uses, its outputs consecutive values. Lists of uses are linked through the use records, oldest first.
 */
#include "graph/graph.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "graph/links.h"

cleave_status_t cleave_graph_create(cleave_graph_t **out_graph, cleave_error_t *error) {
  *out_graph = NULL;
  static atomic_uint_fast64_t last_identity;
  cleave_graph_t *graph = cleave_allocate_zeroed(1, sizeof *graph);
  CLEAVE_TRY_MEMORY(graph, error);
  CLEAVE_TRY_OR(cleave_dims_create(&graph->dims, error), cleave_graph_destroy(graph));
  graph->identity = atomic_fetch_add_explicit(&last_identity, 1, memory_order_relaxed) + 1;
  graph->opset_version = 22;
  graph->ir_version = 10;
  *out_graph = graph;
  return CLEAVE_OK;
}

void cleave_graph_destroy(cleave_graph_t *graph) {
  if (graph == NULL) {
    return;
  }
  for (size_t k = 0; k < graph->tensors.count; k++) {
    cleave_tensor_release(graph->tensors.items[k]);
  }
  cleave_array_free(&graph->tensors);
  cleave_array_free(&graph->nodes);
  cleave_array_free(&graph->values);
  cleave_array_free(&graph->uses);
  cleave_array_free(&graph->inputs);
  cleave_array_free(&graph->outputs);
  cleave_array_free(&graph->output_names);
  cleave_array_free(&graph->custom_ops);
  cleave_dims_destroy(graph->dims);
  cleave_strings_deinit(&graph->strings);
  cleave_arena_deinit(&graph->arena);
  cleave_free(graph);
}

static cleave_status_t intern(cleave_graph_t *graph, const char *text, uint32_t *out_index,
                              cleave_error_t *error) {
  cleave_string_t string = CLEAVE_STRING_EMPTY;
  if (text != NULL && text[0] != '\0') {
    CLEAVE_TRY(cleave_strings_add(&graph->strings, text, strlen(text), &string, error));
  }
  *out_index = string.index;
  return CLEAVE_OK;
}

static cleave_status_t retain(cleave_graph_t *graph, cleave_tensor_t *tensor, cleave_error_t *error) {
  CLEAVE_ARRAY_PUSH(&graph->tensors, tensor, error);
  (void)cleave_tensor_retain(tensor);
  return CLEAVE_OK;
}

static cleave_status_t check_room(size_t count, size_t extra, const char *what, cleave_error_t *error) {
  if (count + extra >= CLEAVE_INDEX_NONE - 1) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "the graph has too many %s (2^32)", what);
  }
  return CLEAVE_OK;
}

static cleave_value_record_t new_value(uint32_t name) {
  return (cleave_value_record_t){.name = name,
                                 .producer = CLEAVE_INDEX_NONE,
                                 .first_use = CLEAVE_INDEX_NONE,
                                 .last_use = CLEAVE_INDEX_NONE,
                                 .rank = -1};
}

static cleave_status_t add_free_value(cleave_graph_t *graph, const char *name, cleave_value_t *out_value,
                                      cleave_error_t *error) {
  uint32_t interned = 0;
  CLEAVE_TRY(check_room(graph->values.count, 1, "values", error));
  CLEAVE_TRY(intern(graph, name, &interned, error));
  CLEAVE_ARRAY_PUSH(&graph->values, new_value(interned), error);
  out_value->index = (uint32_t)graph->values.count - 1;
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_set_type(cleave_graph_t *graph, cleave_value_t value, cleave_dtype_t dtype,
                                      int32_t rank, const cleave_dim_t *dims, cleave_error_t *error) {
  cleave_value_record_t *record = &graph->values.items[value.index];
  if (rank > CLEAVE_MAX_RANK) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "value '%s': expected a rank of at most %d, found %d",
                            cleave_value_name(graph, value), CLEAVE_MAX_RANK, rank);
  }
  if (rank > 0 && (record->rank != rank || memcmp(record->dims, dims, (size_t)rank * sizeof *dims) != 0)) {
    if (record->dims == NULL || record->rank < rank) {
      cleave_dim_t *room = cleave_arena_allocate(&graph->arena, (size_t)rank, sizeof *room);
      CLEAVE_TRY_MEMORY(room, error);
      record->dims = room;
    }
    memmove(record->dims, dims, (size_t)rank * sizeof *dims);
  }
  record->dtype = (uint8_t)dtype;
  record->rank = (int8_t)(rank < 0 ? -1 : rank);
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_set_value_name(cleave_graph_t *graph, cleave_value_t value, const char *name,
                                            cleave_error_t *error) {
  return intern(graph, name, &graph->values.items[value.index].name, error);
}

void cleave_graph_set_range(cleave_graph_t *graph, cleave_value_t value, float low, float high) {
  cleave_value_record_t *record = &graph->values.items[value.index];
  record->has_range = true;
  record->low = low;
  record->high = high;
}

cleave_status_t cleave_graph_add_input(cleave_graph_t *graph, const char *name, cleave_dtype_t dtype,
                                       int32_t rank, const cleave_dim_t *dims, cleave_value_t *out_value,
                                       cleave_error_t *error) {
  CLEAVE_TRY(cleave_array_reserve(&graph->inputs, 1, error));
  CLEAVE_TRY(add_free_value(graph, name, out_value, error));
  CLEAVE_TRY(cleave_graph_set_type(graph, *out_value, dtype, rank, dims, error));
  graph->values.items[out_value->index].is_input = true;
  cleave_array_push_reserved(&graph->inputs, *out_value);
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_add_constant(cleave_graph_t *graph, const char *name, cleave_tensor_t *tensor,
                                          cleave_value_t *out_value, cleave_error_t *error) {
  CLEAVE_TRY(add_free_value(graph, name, out_value, error));
  CLEAVE_TRY(cleave_graph_set_type(graph, *out_value, tensor->dtype, tensor->rank, tensor->dims, error));
  CLEAVE_TRY(retain(graph, tensor, error));
  graph->values.items[out_value->index].tensor = tensor;
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_close_input(cleave_graph_t *graph, size_t index, cleave_tensor_t *tensor,
                                         cleave_error_t *error) {
  cleave_value_record_t *record = &graph->values.items[graph->inputs.items[index].index];
  CLEAVE_TRY(retain(graph, tensor, error));
  record->tensor = tensor;
  record->is_input = false;
  graph->inputs.count--;
  memmove(&graph->inputs.items[index], &graph->inputs.items[index + 1],
          (graph->inputs.count - index) * sizeof *graph->inputs.items);
  return CLEAVE_OK;
}

/* Operators of libraries are listed like those that are the graph's own. */
static cleave_status_t list_custom_op(cleave_graph_t *graph, const cleave_op_t *op, cleave_error_t *error) {
  for (size_t k = 0; k < graph->custom_ops.count; k++) {
    if (graph->custom_ops.items[k] == op) {
      return CLEAVE_OK;
    }
  }
  CLEAVE_ARRAY_PUSH(&graph->custom_ops, op, error);
  return CLEAVE_OK;
}

// Wide: all that makes a node; most callers pass literals.
cleave_status_t cleave_graph_add_node(cleave_graph_t *graph, const cleave_op_t *op, const char *name,
                                      const cleave_value_t *inputs, size_t input_count, size_t output_count,
                                      cleave_node_t *out_node, cleave_error_t *error) {
  uint32_t interned = 0;
  if (input_count > UINT16_MAX || output_count > UINT16_MAX) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "node '%s': more than %d inputs or outputs",
                            name != NULL ? name : "", UINT16_MAX);
  }
  CLEAVE_TRY(check_room(graph->nodes.count, 1, "nodes", error));
  CLEAVE_TRY(check_room(graph->values.count, output_count, "values", error));
  CLEAVE_TRY(check_room(graph->uses.count, input_count, "uses", error));
  CLEAVE_TRY(intern(graph, name, &interned, error));
  if (op->id == CLEAVE_OP_ID_CUSTOM) {
    CLEAVE_TRY(list_custom_op(graph, op, error));
  }
  CLEAVE_TRY(cleave_array_reserve(&graph->nodes, 1, error));
  CLEAVE_TRY(cleave_array_reserve(&graph->values, output_count, error));
  CLEAVE_TRY(cleave_array_reserve(&graph->uses, input_count, error));
  uint32_t node = (uint32_t)graph->nodes.count;
  cleave_array_push_reserved(&graph->nodes,
                             ((cleave_node_record_t){.op = op,
                                                     .name = interned,
                                                     .first_use = (uint32_t)graph->uses.count,
                                                     .first_output = (uint32_t)graph->values.count,
                                                     .input_count = (uint16_t)input_count,
                                                     .output_count = (uint16_t)output_count}));
  for (size_t k = 0; k < input_count; k++) {
    cleave_array_push_reserved(&graph->uses, ((cleave_use_record_t){.node = node}));
    cleave_use_link(graph, (uint32_t)graph->uses.count - 1, inputs[k].index);
  }
  for (size_t k = 0; k < output_count; k++) {
    cleave_value_record_t record = new_value(0);
    record.producer = node;
    record.output_index = (uint16_t)k;
    cleave_array_push_reserved(&graph->values, record);
  }
  graph->live_node_count++;
  out_node->index = node;
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_add_output(cleave_graph_t *graph, const char *name, cleave_value_t value,
                                        cleave_error_t *error) {
  cleave_string_t interned = CLEAVE_STRING_EMPTY;
  CLEAVE_TRY(check_room(graph->uses.count, 1, "uses", error));
  CLEAVE_TRY(intern(graph, name, &interned.index, error));
  CLEAVE_TRY(cleave_array_reserve(&graph->uses, 1, error));
  CLEAVE_TRY(cleave_array_reserve(&graph->outputs, 1, error));
  CLEAVE_TRY(cleave_array_reserve(&graph->output_names, 1, error));
  cleave_use_t use = {(uint32_t)graph->uses.count};
  cleave_array_push_reserved(&graph->uses, ((cleave_use_record_t){.node = CLEAVE_INDEX_NONE}));
  cleave_use_link(graph, use.index, value.index);
  cleave_array_push_reserved(&graph->outputs, use);
  cleave_array_push_reserved(&graph->output_names, interned);
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_custom_op(cleave_graph_t *graph, const char *domain, const char *name,
                                       int32_t version, const cleave_op_t **out_op, cleave_error_t *error) {
  for (size_t k = 0; k < graph->custom_ops.count; k++) {
    const cleave_op_t *known = graph->custom_ops.items[k];
    if (strcmp(known->name, name) == 0 && strcmp(known->domain, domain) == 0 &&
        known->since_version == version) {
      *out_op = known;
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(cleave_array_reserve(&graph->custom_ops, 1, error));
  cleave_op_t *op = cleave_arena_allocate(&graph->arena, 1, sizeof *op);
  char *name_copy = cleave_arena_copy_text(&graph->arena, name, strlen(name));
  char *domain_copy = cleave_arena_copy_text(&graph->arena, domain, strlen(domain));
  CLEAVE_TRY_MEMORY(op != NULL && name_copy != NULL && domain_copy != NULL, error);
  *op = (cleave_op_t){
      .name = name_copy, .domain = domain_copy, .id = CLEAVE_OP_ID_CUSTOM, .since_version = version};
  cleave_array_push_reserved(&graph->custom_ops, op);
  *out_op = op;
  return CLEAVE_OK;
}

bool cleave_value_is_output(const cleave_graph_t *graph, cleave_value_t value) {
  for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
       use = cleave_use_next(graph, use)) {
    if (!cleave_node_exists(cleave_use_node(graph, use))) {
      return true;
    }
  }
  return false;
}

const char *cleave_node_label(const cleave_graph_t *graph, cleave_node_t node, char *buffer, size_t size) {
  const char *name = cleave_node_name(graph, node);
  const cleave_op_t *op = cleave_node_op(graph, node);
  if (name[0] != '\0') {
    (void)snprintf(buffer, size, "%s", name);
  } else {
    (void)snprintf(buffer, size, "%s#%u", op != NULL ? op->name : "removed", (unsigned)node.index);
  }
  return buffer;
}
