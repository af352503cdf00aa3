// SPDX-License-Identifier: Apache-2.0
/*
 * The hash of a value is made of its producer's hash and output index, inputs by their place; the hash of a
 * graph of its outputs' in order, and of the sum over all nodes, so that nodes no output needs count too.
 */
#include "graph/compare/structural_hash.h"

#include <string.h>

#include "base/hash.h"
#include "graph/order.h"

enum { SMALL_CONSTANT_BYTES = 1024 };

static uint64_t hash_text(uint64_t hash, const char *text) {
  return cleave_hash_bytes(hash, text, strlen(text));
}

static uint64_t hash_tensor(uint64_t hash, const cleave_tensor_t *tensor) {
  hash = cleave_hash_combine(hash, (uint64_t)tensor->dtype);
  hash = cleave_hash_bytes(hash, tensor->dims, (size_t)tensor->rank * sizeof *tensor->dims);
  if (tensor->dtype != CLEAVE_DTYPE_STRING && tensor->bytes <= SMALL_CONSTANT_BYTES) {
    hash = cleave_hash_bytes(hash, tensor->data, tensor->bytes);
  }
  return hash;
}

/* Hash of an attribute's name and content, starting from `hash`. */
static uint64_t hash_attribute(const cleave_attribute_t *attribute, uint64_t hash) {
  hash = cleave_attribute_hash_content(attribute, hash);
  return attribute->kind == CLEAVE_ATTRIBUTE_TENSOR ? hash_tensor(hash, attribute->held) : hash;
}

uint64_t cleave_node_hash(const cleave_graph_t *graph, cleave_node_t node, uint64_t hash) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  hash = hash_text(hash, record->op->name);
  hash = hash_text(hash, record->op->domain);
  uint64_t attributes = 0; /* a sum: their order means nothing */
  for (uint32_t k = 0; k < record->attribute_count; k++) {
    attributes += hash_attribute(&record->attributes[k], CLEAVE_HASH_SEED);
  }
  return cleave_hash_combine(hash, attributes);
}

/* Hash of a type; symbolic dims by their text, since codes depend on the order in which they were made. */
static cleave_status_t hash_type(const cleave_graph_t *graph, const cleave_value_record_t *value,
                                 uint64_t *hash, cleave_error_t *error) {
  cleave_text_t text = {0};
  *hash = cleave_hash_combine(*hash, value->dtype);
  cleave_shape_print(graph->dims, value->rank, value->dims, &text);
  cleave_status_t status = cleave_text_check(&text, error);
  *hash = hash_text(*hash, cleave_text_get(&text));
  cleave_text_deinit(&text);
  return status;
}

static cleave_status_t hash_leaves(const cleave_graph_t *graph, uint64_t *hashes, cleave_error_t *error) {
  uint64_t input = 0;
  for (uint32_t k = 0; k < graph->values.count; k++) {
    const cleave_value_record_t *value = &graph->values.items[k];
    hashes[k] = CLEAVE_HASH_SEED;
    if (value->tensor != NULL) {
      hashes[k] = hash_tensor(hashes[k], value->tensor);
    } else if (value->is_input) {
      hashes[k] = cleave_hash_combine(hashes[k], ++input);
      CLEAVE_TRY(hash_type(graph, value, &hashes[k], error));
    }
  }
  return CLEAVE_OK;
}

static uint64_t hash_nodes(const cleave_graph_t *graph, const cleave_node_t *order, uint64_t *hashes) {
  uint64_t sum = 0;
  for (size_t k = 0; k < graph->live_node_count; k++) {
    uint64_t hash = cleave_node_hash(graph, order[k], CLEAVE_HASH_SEED);
    for (uint32_t i = 0; i < cleave_node_input_count(graph, order[k]); i++) {
      cleave_value_t input = cleave_node_input(graph, order[k], i);
      hash = cleave_hash_combine(hash, cleave_value_exists(input) ? hashes[input.index] : 0);
    }
    for (uint32_t o = 0; o < cleave_node_output_count(graph, order[k]); o++) {
      hashes[cleave_node_output(graph, order[k], o).index] = cleave_hash_combine(hash, o + 1);
    }
    sum += hash;
  }
  return sum;
}

cleave_status_t cleave_graph_hash(const cleave_graph_t *graph, uint64_t *out_hash, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_node_t *order = cleave_allocate(graph->live_node_count, sizeof *order);
  uint64_t *hashes = cleave_allocate(graph->values.count, sizeof *hashes);
  CLEAVE_TRY_MEMORY_CLEANUP(order != NULL && hashes != NULL, error);
  CLEAVE_TRY_CLEANUP(cleave_graph_topological_order(graph, order, NULL, error));
  CLEAVE_TRY_CLEANUP(hash_leaves(graph, hashes, error));
  uint64_t hash = cleave_hash_combine(CLEAVE_HASH_SEED, hash_nodes(graph, order, hashes));
  for (size_t k = 0; k < graph->outputs.count; k++) {
    hash = cleave_hash_combine(hash, hashes[cleave_graph_output(graph, k).index]);
  }
  *out_hash = hash;
cleanup:
  cleave_free(order);
  cleave_free(hashes);
  return status;
}
