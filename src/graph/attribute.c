/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of nodes: everything they point to is copied into the graph's arena, tensors are retained. */
#include <string.h>

#include "graph/graph.h"

const cleave_attribute_t *cleave_node_attribute(const cleave_graph_t *graph, cleave_node_t node,
                                                const char *name) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  for (uint32_t k = 0; k < record->attribute_count; k++) {
    if (strcmp(record->attributes[k].name, name) == 0) {
      return &record->attributes[k];
    }
  }
  return NULL;
}

static cleave_status_t copy_strings(cleave_graph_t *graph, cleave_attribute_t *attribute,
                                    cleave_error_t *error) {
  const char **copies = cleave_arena_allocate(&graph->arena, attribute->count, sizeof *copies);
  for (uint32_t k = 0; copies != NULL && k < attribute->count; k++) {
    copies[k] = cleave_arena_copy_text(&graph->arena, attribute->strings[k], strlen(attribute->strings[k]));
    if (copies[k] == NULL) {
      copies = NULL;
    }
  }
  attribute->strings = copies;
  return copies != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

/* Replaces what `attribute` points to by copies of the graph's own. */
static cleave_status_t adopt(cleave_graph_t *graph, cleave_attribute_t *attribute, cleave_error_t *error) {
  cleave_string_t name;
  const void *copy = attribute;
  CLEAVE_TRY(cleave_strings_add(&graph->strings, attribute->name, strlen(attribute->name), &name, error));
  attribute->name = cleave_strings_text(&graph->strings, name);
  switch (attribute->kind) {
    case CLEAVE_ATTRIBUTE_STRING:
      copy = attribute->s = cleave_arena_copy_text(&graph->arena, attribute->s, attribute->count);
      break;
    case CLEAVE_ATTRIBUTE_INTS:
      copy = attribute->ints =
          cleave_arena_copy(&graph->arena, attribute->ints, attribute->count * sizeof *attribute->ints);
      break;
    case CLEAVE_ATTRIBUTE_FLOATS:
      copy = attribute->floats =
          cleave_arena_copy(&graph->arena, attribute->floats, attribute->count * sizeof *attribute->floats);
      break;
    case CLEAVE_ATTRIBUTE_STRINGS: return copy_strings(graph, attribute, error);
    case CLEAVE_ATTRIBUTE_TENSOR:
      CLEAVE_TRY(cleave_array_reserve(&graph->tensors, 1, error));
      cleave_array_push_reserved(&graph->tensors, cleave_tensor_retain(attribute->tensor));
      break;
    case CLEAVE_ATTRIBUTE_INT:
    case CLEAVE_ATTRIBUTE_FLOAT: break;
  }
  return copy != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

cleave_status_t cleave_graph_set_attribute(cleave_graph_t *graph, cleave_node_t node,
                                           const cleave_attribute_t *attribute, cleave_error_t *error) {
  cleave_attribute_t own = *attribute;
  CLEAVE_TRY(adopt(graph, &own, error));
  cleave_node_record_t *record = &graph->nodes.items[node.index];
  for (uint32_t k = 0; k < record->attribute_count; k++) {
    if (strcmp(record->attributes[k].name, own.name) == 0) {
      record->attributes[k] = own;
      return CLEAVE_OK;
    }
  }
  if (record->attribute_count == UINT16_MAX) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "node '%s': too many attributes",
                            cleave_node_name(graph, node));
  }
  /* room grows by powers of two, so its size follows from the count */
  uint32_t count = record->attribute_count;
  if ((count & (count - 1)) == 0) {
    cleave_attribute_t *room =
        cleave_arena_allocate(&graph->arena, count == 0 ? 1 : (size_t)count * 2, sizeof *room);
    if (room == NULL) {
      return cleave_error_out_of_memory(error);
    }
    if (count > 0) {
      memcpy(room, record->attributes, count * sizeof *room);
    }
    record->attributes = room;
  }
  record->attributes[record->attribute_count++] = own;
  return CLEAVE_OK;
}

cleave_status_t cleave_graph_set_int(cleave_graph_t *graph, cleave_node_t node, const char *name,
                                     int64_t value, cleave_error_t *error) {
  cleave_attribute_t attribute = {.name = name, .kind = CLEAVE_ATTRIBUTE_INT, .count = 1, .i = value};
  return cleave_graph_set_attribute(graph, node, &attribute, error);
}

cleave_status_t cleave_graph_set_float(cleave_graph_t *graph, cleave_node_t node, const char *name,
                                       double value, cleave_error_t *error) {
  cleave_attribute_t attribute = {.name = name, .kind = CLEAVE_ATTRIBUTE_FLOAT, .count = 1, .f = value};
  return cleave_graph_set_attribute(graph, node, &attribute, error);
}

cleave_status_t cleave_graph_set_text(cleave_graph_t *graph, cleave_node_t node, const char *name,
                                      const char *value, cleave_error_t *error) {
  cleave_attribute_t attribute = {
      .name = name, .kind = CLEAVE_ATTRIBUTE_STRING, .count = (uint32_t)strlen(value), .s = value};
  return cleave_graph_set_attribute(graph, node, &attribute, error);
}

cleave_status_t cleave_graph_set_ints(cleave_graph_t *graph, cleave_node_t node, const char *name,
                                      const int64_t *values, size_t count, cleave_error_t *error) {
  cleave_attribute_t attribute = {
      .name = name, .kind = CLEAVE_ATTRIBUTE_INTS, .count = (uint32_t)count, .ints = values};
  return cleave_graph_set_attribute(graph, node, &attribute, error);
}
