// SPDX-License-Identifier: Apache-2.0
// What attributes contain, and attributes of nodes: everything that these point to is copied into the graph's
// arena, tensors are retained.

#include <string.h>

#include "base/hash.h"
#include "graph/graph.h"

/* ---- content ---- */

const void *cleave_attribute_bytes(const cleave_attribute_t *attribute, size_t *out_bytes) {
  switch (attribute->kind) {
    case CLEAVE_ATTRIBUTE_INT: *out_bytes = sizeof attribute->i; return &attribute->i;
    case CLEAVE_ATTRIBUTE_FLOAT: *out_bytes = sizeof attribute->f; return &attribute->f;
    case CLEAVE_ATTRIBUTE_STRING: *out_bytes = attribute->count; return attribute->s;
    case CLEAVE_ATTRIBUTE_INTS:
      *out_bytes = attribute->count * sizeof *attribute->ints;
      return attribute->ints;
    case CLEAVE_ATTRIBUTE_FLOATS:
      *out_bytes = attribute->count * sizeof *attribute->floats;
      return attribute->floats;
    case CLEAVE_ATTRIBUTE_STRINGS:
    case CLEAVE_ATTRIBUTE_TENSOR: break;
  }
  *out_bytes = 0;
  return NULL;
}

bool cleave_attribute_is_list(const cleave_attribute_t *attribute) {
  return attribute->kind == CLEAVE_ATTRIBUTE_INTS || attribute->kind == CLEAVE_ATTRIBUTE_FLOATS ||
         attribute->kind == CLEAVE_ATTRIBUTE_STRINGS;
}

uint32_t cleave_attribute_item_count(const cleave_attribute_t *attribute) {
  return cleave_attribute_is_list(attribute)          ? attribute->count
         : attribute->kind == CLEAVE_ATTRIBUTE_TENSOR ? 0
                                                      : 1;
}

cleave_attribute_t cleave_attribute_item(const cleave_attribute_t *attribute, uint32_t index) {
  switch (attribute->kind) {
    case CLEAVE_ATTRIBUTE_INTS:
      return (cleave_attribute_t){.kind = CLEAVE_ATTRIBUTE_INT, .count = 1, .i = attribute->ints[index]};
    case CLEAVE_ATTRIBUTE_FLOATS:
      return (cleave_attribute_t){
          .kind = CLEAVE_ATTRIBUTE_FLOAT, .count = 1, .f = (double)attribute->floats[index]};
    case CLEAVE_ATTRIBUTE_STRINGS:
      return (cleave_attribute_t){.kind = CLEAVE_ATTRIBUTE_STRING,
                                  .count = (uint32_t)strlen(attribute->strings[index]),
                                  .s = attribute->strings[index]};
    default: return *attribute;
  }
}

static bool same_texts(const cleave_attribute_t *a, const cleave_attribute_t *b) {
  for (uint32_t k = 0; k < a->count; k++) {
    if (strcmp(a->strings[k], b->strings[k]) != 0) {
      return false;
    }
  }
  return true;
}

bool cleave_attribute_is_equal(const cleave_attribute_t *a, const cleave_attribute_t *b) {
  size_t a_bytes = 0;
  size_t b_bytes = 0;
  if (a->kind != b->kind || a->count != b->count || a->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    return false;
  }
  if (a->kind == CLEAVE_ATTRIBUTE_STRINGS) {
    return same_texts(a, b);
  }
  const void *a_data = cleave_attribute_bytes(a, &a_bytes);
  const void *b_data = cleave_attribute_bytes(b, &b_bytes);
  return a_bytes == b_bytes && (a_bytes == 0 || memcmp(a_data, b_data, a_bytes) == 0);
}

uint64_t cleave_attribute_hash_content(const cleave_attribute_t *attribute, uint64_t hash) {
  uint64_t bits = 0;
  size_t bytes = 0;
  hash = cleave_hash_bytes(hash, attribute->name, strlen(attribute->name));
  hash = cleave_hash_combine(hash, (uint64_t)attribute->kind);
  if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    return hash;
  }
  if (attribute->kind == CLEAVE_ATTRIBUTE_STRINGS) {
    for (uint32_t k = 0; k < attribute->count; k++) {
      hash = cleave_hash_bytes(hash, attribute->strings[k], strlen(attribute->strings[k]));
    }
    return hash;
  }
  const void *data = cleave_attribute_bytes(attribute, &bytes);
  if (attribute->kind == CLEAVE_ATTRIBUTE_INT || attribute->kind == CLEAVE_ATTRIBUTE_FLOAT) {
    memcpy(&bits, data, sizeof bits);
    return cleave_hash_combine(hash, bits);
  }
  return cleave_hash_bytes(hash, data, bytes);
}

void cleave_attribute_set_list(cleave_attribute_t *attribute, const void *list) {
  attribute->ints = attribute->kind == CLEAVE_ATTRIBUTE_INTS ? list : NULL;
  attribute->floats = attribute->kind == CLEAVE_ATTRIBUTE_FLOATS ? list : NULL;
  attribute->strings = attribute->kind == CLEAVE_ATTRIBUTE_STRINGS ? list : NULL;
}

static const char *const *copy_texts(const cleave_attribute_t *attribute, cleave_arena_t *arena) {
  const char **copies = cleave_arena_allocate(arena, (size_t)attribute->count + 1, sizeof *copies);
  for (uint32_t k = 0; copies != NULL && k < attribute->count; k++) {
    copies[k] = cleave_arena_copy_text(arena, attribute->strings[k], strlen(attribute->strings[k]));
    if (copies[k] == NULL) {
      return NULL;
    }
  }
  return copies;
}

bool cleave_attribute_copy_content(cleave_attribute_t *attribute, cleave_arena_t *arena) {
  size_t bytes = 0;
  const void *data = cleave_attribute_bytes(attribute, &bytes);
  switch (attribute->kind) {
    case CLEAVE_ATTRIBUTE_INT:
    case CLEAVE_ATTRIBUTE_FLOAT:
    case CLEAVE_ATTRIBUTE_TENSOR: return true;
    case CLEAVE_ATTRIBUTE_STRINGS: return (attribute->strings = copy_texts(attribute, arena)) != NULL;
    default: break; /* a text, or a list of numbers */
  }
  bool is_text = attribute->kind == CLEAVE_ATTRIBUTE_STRING;
  const void *copy =
      is_text ? cleave_arena_copy_text(arena, data, bytes) : cleave_arena_copy(arena, data, bytes);
  if (is_text) {
    attribute->s = copy;
  } else {
    cleave_attribute_set_list(attribute, copy);
  }
  return copy != NULL;
}

/* ---- of nodes ---- */

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

/* Replaces what `attribute` points to by copies of the graph's own. */
static cleave_status_t adopt(cleave_graph_t *graph, cleave_attribute_t *attribute, cleave_error_t *error) {
  cleave_string_t name;
  CLEAVE_TRY(cleave_strings_add(&graph->strings, attribute->name, strlen(attribute->name), &name, error));
  attribute->name = cleave_strings_text(&graph->strings, name);
  if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    CLEAVE_TRY(cleave_array_reserve(&graph->tensors, 1, error));
    cleave_array_push_reserved(&graph->tensors, cleave_tensor_retain(attribute->held));
    attribute->tensor = NULL;
  }
  return cleave_attribute_copy_content(attribute, &graph->arena) ? CLEAVE_OK
                                                                 : cleave_error_out_of_memory(error);
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
    CLEAVE_TRY_MEMORY(room, error);
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
