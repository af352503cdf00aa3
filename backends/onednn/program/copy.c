// SPDX-License-Identifier: Apache-2.0
// Copies of region views: every array and text once more, element by element, since structs of hosts of
// another minor version may have other sizes only at the end of the region itself.
#include "onednn/program/copy.h"

#include <string.h>

typedef struct copier {
  kernel_arena_t *arena;
  bool failed;
} copier_t;

static void *copy_array(copier_t *copier, const void *from, size_t count, size_t size) {
  if (from == NULL) {
    return NULL;
  }
  void *copy = kernel_arena_allocate(copier->arena, count, size);
  copier->failed = copier->failed || copy == NULL;
  if (copy != NULL && count > 0) {
    memcpy(copy, from, count * size);
  }
  return copy;
}

static const char *copy_text(copier_t *copier, const char *text) {
  return text != NULL ? copy_array(copier, text, strlen(text) + 1, 1) : NULL;
}

static void copy_attribute(copier_t *copier, cleave_attribute_view_t *a) {
  a->name = copy_text(copier, a->name);
  a->s = copy_text(copier, a->s);
  a->ints = copy_array(copier, a->ints, a->kind == CLEAVE_ATTRIBUTE_INTS ? a->count : 0, sizeof(*a->ints));
  a->floats =
      copy_array(copier, a->floats, a->kind == CLEAVE_ATTRIBUTE_FLOATS ? a->count : 0, sizeof(*a->floats));
  a->strings = NULL;
  a->tensor = NULL;
}

static void copy_node(copier_t *copier, cleave_node_view_t *node) {
  node->op = copy_text(copier, node->op);
  node->domain = copy_text(copier, node->domain);
  node->name = copy_text(copier, node->name);
  node->inputs = copy_array(copier, node->inputs, node->input_count, sizeof(*node->inputs));
  node->outputs = copy_array(copier, node->outputs, node->output_count, sizeof(*node->outputs));
  cleave_attribute_view_t *attributes =
      copy_array(copier, node->attributes, node->attribute_count, sizeof(*attributes));
  for (uint32_t k = 0; attributes != NULL && k < node->attribute_count; k++) {
    copy_attribute(copier, &attributes[k]);
  }
  node->attributes = attributes;
}

static void copy_value(copier_t *copier, cleave_value_view_t *value) {
  value->name = copy_text(copier, value->name);
  value->tensor.dims = copy_array(copier, value->tensor.dims,
                                  value->tensor.rank > 0 ? (size_t)value->tensor.rank : 0, sizeof(int64_t));
  value->tensor.layout = NULL;
  value->tensor.sparse = NULL;
}

static void copy_fusion(copier_t *copier, cleave_fusion_view_t *fusion) {
  fusion->rule = copy_text(copier, fusion->rule);
  fusion->nodes = copy_array(copier, fusion->nodes, fusion->node_count, sizeof(*fusion->nodes));
  fusion->labels = NULL;
}

const cleave_region_view_t *onednn_copy_region(const cleave_region_view_t *region, kernel_arena_t *arena) {
  copier_t copier = {.arena = arena};
  cleave_region_view_t *copy = kernel_arena_allocate(arena, 1, sizeof(*copy));
  if (copy == NULL) {
    return NULL;
  }
  memcpy(copy, region, CLEAVE_REGION_VIEW_SIZE_REQUIRED);
  copy->size = CLEAVE_REGION_VIEW_SIZE_REQUIRED;
  copy->name = copy_text(&copier, region->name);
  copy->rule = copy_text(&copier, region->rule);
  copy->inputs = copy_array(&copier, region->inputs, region->input_count, sizeof(*region->inputs));
  copy->outputs = copy_array(&copier, region->outputs, region->output_count, sizeof(*region->outputs));
  cleave_value_view_t *values =
      copy_array(&copier, region->values, region->value_count, sizeof(*region->values));
  cleave_node_view_t *nodes = copy_array(&copier, region->nodes, region->node_count, sizeof(*region->nodes));
  cleave_fusion_view_t *fusions =
      copy_array(&copier, region->fusions, region->fusion_count, sizeof(*region->fusions));
  for (uint32_t k = 0; values != NULL && k < region->value_count; k++) {
    copy_value(&copier, &values[k]);
  }
  for (uint32_t k = 0; nodes != NULL && k < region->node_count; k++) {
    copy_node(&copier, &nodes[k]);
  }
  for (uint32_t k = 0; fusions != NULL && k < region->fusion_count; k++) {
    copy_fusion(&copier, &fusions[k]);
  }
  copy->values = values;
  copy->nodes = nodes;
  copy->fusions = fusions;
  return copier.failed ? NULL : copy;
}
