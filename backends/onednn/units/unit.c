// SPDX-License-Identifier: Apache-2.0
// Questions about units and the readers of values.
#include "onednn/units/unit.h"

#include <string.h>

uint32_t onednn_use_count(const onednn_analysis_t *analysis, uint32_t value) {
  return analysis->use_starts[value + 1] - analysis->use_starts[value];
}

uint32_t onednn_unit_find(const onednn_unit_t *unit, uint32_t node) {
  for (uint32_t k = 0; k < unit->count; k++) {
    if (unit->nodes[k] == node) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

bool onednn_unit_leaks(const onednn_unit_t *unit, uint32_t value) {
  const onednn_analysis_t *analysis = unit->analysis;
  if (analysis->region->values[value].is_output) {
    return true;
  }
  for (uint32_t k = analysis->use_starts[value]; k < analysis->use_starts[value + 1]; k++) {
    if (analysis->unit_of[analysis->uses[k]] != unit->id) {
      return true;
    }
  }
  return false;
}

bool onednn_casts_weights(const cleave_region_view_t *region, const cleave_node_view_t *node) {
  return onednn_node_is(node, "Cast") && onednn_is_short(&region->values[node->inputs[0]]) &&
         region->values[node->outputs[0]].tensor.dtype == CLEAVE_DTYPE_F32;
}

bool onednn_unpacks(const cleave_node_view_t *node) {
  return strcmp(node->op, "UnpackBits") == 0 && strcmp(node->domain, "cleave") == 0;
}

bool onednn_unit_borrows(const onednn_unit_t *unit, const cleave_node_view_t *node) {
  return unit->count > 1 && (onednn_node_is(node, "DequantizeLinear") || onednn_unpacks(node) ||
                             onednn_casts_weights(unit->analysis->region, node));
}

bool onednn_unit_makes(const onednn_unit_t *unit, uint32_t value) {
  const onednn_analysis_t *analysis = unit->analysis;
  uint32_t producer = analysis->region->values[value].producer;
  return producer != CLEAVE_INDEX_NONE && analysis->unit_of[producer] == unit->id &&
         !onednn_unit_borrows(unit, &analysis->region->nodes[producer]);
}
