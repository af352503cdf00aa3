// SPDX-License-Identifier: Apache-2.0
// The hash of a region, out of nothing but its view, so that whoever has the view (from a file, in another
// process) comes to the same number. Names, versions and the content of constants have no part in it, but
// tensors in attributes do, as far as they are small.
#include <string.h>

#include "backend/region/view.h"
#include "base/hash.h"

enum { SMALL_TENSOR_BYTES = 1024 };

static uint64_t hash_text(uint64_t hash, const char *text) {
  return cleave_hash_bytes(hash, text, strlen(text));
}

static uint64_t hash_type(uint64_t hash, const cleave_tensor_view_t *tensor) {
  hash = cleave_hash_combine(hash, (uint64_t)(uint32_t)tensor->dtype << 32 | (uint32_t)tensor->rank);
  for (int32_t d = 0; d < tensor->rank; d++) {
    hash = cleave_hash_combine(hash, (uint64_t)(tensor->dims[d] < 0 ? -1 : tensor->dims[d]));
  }
  return tensor->storage == CLEAVE_STORAGE_DENSE ? hash
                                                 : cleave_hash_combine(hash, (uint64_t)tensor->storage);
}

static uint64_t hash_tensor(uint64_t hash, const cleave_tensor_view_t *tensor) {
  hash = hash_type(hash, tensor);
  int64_t count = cleave_view_element_count(tensor);
  size_t size = cleave_dtype_size(tensor->dtype);
  if (tensor->data != NULL && tensor->dtype != CLEAVE_DTYPE_STRING && count > 0 &&
      count <= SMALL_TENSOR_BYTES && (size_t)count * size <= SMALL_TENSOR_BYTES) {
    hash = cleave_hash_bytes(hash, tensor->data, (size_t)count * size);
  }
  return hash;
}

static uint64_t hash_attribute(const cleave_attribute_view_t *view, uint64_t hash) {
  hash = cleave_attribute_hash_content(view, hash);
  return view->kind == CLEAVE_ATTRIBUTE_TENSOR ? hash_tensor(hash, view->tensor) : hash;
}

static uint64_t hash_attributes(const cleave_attribute_view_t *attributes, uint32_t count, uint64_t hash) {
  uint64_t sum = 0; /* their order means nothing */
  for (uint32_t k = 0; k < count; k++) {
    sum += hash_attribute(&attributes[k], CLEAVE_HASH_SEED);
  }
  return cleave_hash_combine(cleave_hash_combine(hash, count), sum);
}

static uint64_t hash_node(const cleave_node_view_t *node, uint64_t hash) {
  hash = hash_text(hash, node->op);
  hash = hash_text(hash, node->domain);
  hash = cleave_hash_combine(hash, (uint64_t)(uint32_t)node->opset_version);
  hash = hash_attributes(node->attributes, node->attribute_count, hash);
  for (uint32_t k = 0; k < node->input_count; k++) {
    hash = cleave_hash_combine(hash, node->inputs[k]);
  }
  hash = cleave_hash_combine(hash, node->input_count);
  for (uint32_t k = 0; k < node->output_count; k++) {
    hash = cleave_hash_combine(hash, node->outputs[k]);
  }
  return cleave_hash_combine(hash, node->output_count);
}

static uint64_t hash_fusion(const cleave_region_view_t *region, uint32_t index, bool has_lists,
                            uint64_t hash) {
  const cleave_fusion_view_t *fusion = &region->fusions[index];
  hash = hash_text(hash, fusion->rule);
  for (uint32_t k = 0; k < fusion->node_count; k++) {
    hash = cleave_hash_combine(hash, fusion->nodes[k]);
    hash = hash_text(hash, fusion->labels[k]);
  }
  if (has_lists) {
    const cleave_attribute_list_t *list = &region->fusion_attributes[index];
    hash = hash_attributes(list->items, list->count, hash);
  }
  return hash;
}

uint64_t cleave_region_hash(const cleave_region_view_t *region) {
  bool has_lists = region->size > CLEAVE_REGION_VIEW_SIZE_REQUIRED && region->fusion_attributes != NULL;
  uint64_t hash = CLEAVE_HASH_SEED;
  for (uint32_t k = 0; k < region->value_count; k++) {
    const cleave_value_view_t *value = &region->values[k];
    bool is_constant = value->tensor.data != NULL || value->tensor.is_weight;
    hash = cleave_hash_combine(hash_type(hash, &value->tensor), is_constant);
  }
  for (uint32_t k = 0; k < region->node_count; k++) {
    hash = hash_node(&region->nodes[k], hash);
  }
  for (uint32_t k = 0; k < region->fusion_count; k++) {
    hash = hash_fusion(region, k, has_lists, hash);
  }
  for (uint32_t k = 0; k < region->input_count; k++) {
    hash = cleave_hash_combine(hash, region->inputs[k]);
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    hash = cleave_hash_combine(hash, region->outputs[k]);
  }
  return region->size > CLEAVE_REGION_VIEW_SIZE_REQUIRED
             ? hash_attributes(region->attributes, region->attribute_count, hash)
             : hash;
}
