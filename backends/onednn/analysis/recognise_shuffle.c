// SPDX-License-Identifier: Apache-2.0
// Channel shuffle, as exporters spell it:
//   [Concat] -> Reshape [N, g, c, H, W] -> Transpose 0 2 1 3 4 -> Reshape [N, c g, H, W] [-> Slices, or a
//   Split]
// Channel i of group k becomes channel i g + k; Slices and Split cut the result along its channels.
#include "onednn/analysis/recognise_shuffle.h"

#include <string.h>

#include "onednn/units/windows.h"

enum { RANK = 4 };

static const cleave_node_view_t *unit_node(const onednn_unit_t *unit, uint32_t k) {
  return &unit->analysis->region->nodes[unit->nodes[k]];
}

static onednn_shape_t shape_of(const onednn_unit_t *unit, uint32_t value) {
  return onednn_shape_of(&unit->analysis->region->values[value]);
}

// The node of the unit that makes `value`, if its operator is `op`.
static const cleave_node_view_t *maker(const onednn_unit_t *unit, uint32_t value, const char *op) {
  if (!onednn_unit_makes(unit, value)) {
    return NULL;
  }
  const cleave_region_view_t *region = unit->analysis->region;
  const cleave_node_view_t *node = &region->nodes[region->values[value].producer];
  return onednn_node_is(node, op) ? node : NULL;
}

static bool is_image(const onednn_shape_t *shape, int32_t rank) {
  return shape->rank == rank && onednn_shape_known(shape) && onednn_shape_count(shape) > 0;
}

// Is `mid` the image `x` with its channels in groups?
static bool groups_channels(const onednn_shape_t *x, const onednn_shape_t *mid) {
  return is_image(x, RANK) && is_image(mid, RANK + 1) && mid->dims[1] > 1 &&
         mid->dims[1] * mid->dims[2] == x->dims[1] && mid->dims[3] == x->dims[2] &&
         mid->dims[4] == x->dims[3] && mid->dims[0] == x->dims[0];
}

// The values that make up `x`: inputs of a Concat in the unit, whole groups each, or `x` itself.
static bool find_sources(onednn_unit_t *unit, uint32_t x, int64_t channels, onednn_shuffle_t *shuffle) {
  const cleave_node_view_t *concat = maker(unit, x, "Concat");
  if (concat == NULL) {
    shuffle->source_count = 1;
    shuffle->sources[0] = x;
    return !onednn_unit_makes(unit, x);
  }
  shuffle->source_count = concat->input_count;
  if (concat->input_count > ONEDNN_SHUFFLE_VALUES - 1 ||
      onednn_axis(cleave_view_int(concat, "axis", 0), RANK) != 1 || onednn_unit_leaks(unit, x)) {
    return false;
  }
  for (uint32_t k = 0; k < concat->input_count; k++) {
    shuffle->sources[k] = concat->inputs[k];
    if (concat->inputs[k] == CLEAVE_INDEX_NONE || onednn_unit_makes(unit, concat->inputs[k])) {
      return false;
    }
    onednn_shape_t shape = shape_of(unit, concat->inputs[k]);
    if (!is_image(&shape, RANK) || shape.dims[1] % channels != 0) {
      return false;
    }
  }
  return true;
}

static bool add_part(onednn_unit_t *unit, uint32_t value, int64_t start, onednn_shuffle_t *shuffle) {
  onednn_shape_t shape = shape_of(unit, value);
  if (!is_image(&shape, RANK) || shuffle->source_count + shuffle->part_count >= ONEDNN_SHUFFLE_VALUES) {
    return false;
  }
  shuffle->starts[shuffle->part_count] = start;
  shuffle->parts[shuffle->part_count++] = value;
  return true;
}

// A Slice or Split of `y`, which has `shape`, along its channels alone.
static bool add_parts(onednn_unit_t *unit, const cleave_node_view_t *node, uint32_t y,
                      const onednn_shape_t *shape, onednn_shuffle_t *shuffle) {
  onednn_slice_t slice;
  if (node->inputs[0] != y) {
    return false;
  }
  if (onednn_node_is(node, "Slice")) {
    onednn_shape_t part = shape_of(unit, node->outputs[0]);
    if (!onednn_slice_of(unit->analysis->region, node, shape, &slice) || slice.steps[1] != 1 ||
        part.rank != RANK || part.dims[0] != shape->dims[0] || part.dims[2] != shape->dims[2] ||
        part.dims[3] != shape->dims[3]) {
      return false;
    }
    return slice.starts[1] + part.dims[1] <= shape->dims[1] &&
           add_part(unit, node->outputs[0], slice.starts[1], shuffle);
  }
  if (!onednn_node_is(node, "Split") || onednn_axis(cleave_view_int(node, "axis", 0), RANK) != 1) {
    return false;
  }
  int64_t start = 0;
  for (uint32_t k = 0; k < node->output_count; k++) {
    if (node->outputs[k] == CLEAVE_INDEX_NONE || !add_part(unit, node->outputs[k], start, shuffle)) {
      return false;
    }
    start += shape_of(unit, node->outputs[k]).dims[1];
  }
  return start == shape->dims[1];
}

// The results: what Slices or a Split make of `y`, or `y` itself if nothing in the unit reads it.
static bool find_parts(onednn_unit_t *unit, uint32_t y, const onednn_shape_t *shape, uint32_t known,
                       onednn_shuffle_t *shuffle) {
  if (known == unit->count) {
    return add_part(unit, y, 0, shuffle);
  }
  for (uint32_t k = 0; k < unit->count; k++) {
    const cleave_node_view_t *node = unit_node(unit, k);
    if (onednn_node_is(node, "Slice") || onednn_node_is(node, "Split")) {
      known++;
      if (!add_parts(unit, node, y, shape, shuffle)) {
        return false;
      }
    }
  }
  return known == unit->count && !onednn_unit_leaks(unit, y);
}

// Follows the unit from its only Transpose in both directions.
static bool follow(onednn_unit_t *unit, const cleave_node_view_t *transpose, onednn_shuffle_t *shuffle) {
  static const int32_t swapped[RANK + 1] = {0, 2, 1, 3, 4};
  int32_t order[CLEAVE_MAX_RANK];
  uint32_t mid = transpose->inputs[0];
  uint32_t turned = transpose->outputs[0];
  const cleave_node_view_t *before = maker(unit, mid, "Reshape");
  const cleave_node_view_t *after = NULL;
  for (uint32_t k = 0; k < unit->count; k++) {
    const cleave_node_view_t *node = unit_node(unit, k);
    after = onednn_node_is(node, "Reshape") && node->inputs[0] == turned ? node : after;
  }
  if (before == NULL || after == NULL || !onednn_transpose_order(transpose, RANK + 1, order) ||
      memcmp(order, swapped, sizeof(swapped)) != 0 || onednn_unit_leaks(unit, mid) ||
      onednn_unit_leaks(unit, turned)) {
    return false;
  }
  uint32_t x = before->inputs[0];
  uint32_t y = after->outputs[0];
  onednn_shape_t from = shape_of(unit, x);
  onednn_shape_t grouped = shape_of(unit, mid);
  onednn_shape_t to = shape_of(unit, y);
  if (!groups_channels(&from, &grouped) || !onednn_shape_equal(&from, &to) ||
      grouped.dims[1] > ONEDNN_SHUFFLE_GROUPS) {
    return false;
  }
  shuffle->groups = grouped.dims[1];
  uint32_t known = maker(unit, x, "Concat") != NULL ? 4 : 3;
  return find_sources(unit, x, grouped.dims[2], shuffle) && find_parts(unit, y, &to, known, shuffle);
}

cleave_status_t onednn_recognise_shuffle(onednn_unit_t *unit, onednn_kernel_t *kernel, bool *found) {
  const cleave_node_view_t *transpose = NULL;
  uint32_t views = 0;
  *found = false;
  for (uint32_t k = 0; k < unit->count; k++) {
    const cleave_node_view_t *node = unit_node(unit, k);
    transpose = onednn_node_is(node, "Transpose") ? node : transpose;
    views += onednn_node_is(node, "Reshape") ? 1 : 0;
  }
  if (transpose == NULL || views == 0) {
    return CLEAVE_OK;
  }
  onednn_shuffle_t *shuffle = kernel_arena_allocate(unit->analysis->arena, 1, sizeof(*shuffle));
  if (shuffle == NULL) {
    return kernel_fail(unit->analysis->message, CLEAVE_ERROR_OUT_OF_MEMORY,
                       "out of memory while analysing a region");
  }
  if (!follow(unit, transpose, shuffle)) {
    return kernel_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                       "Transpose '%s' and the views around it are not a shuffle of the channels of images",
                       onednn_node_name(transpose));
  }
  for (uint32_t k = 0; k < unit->count; k++) {
    unit->taken[k] = true;
  }
  kernel->kind = ONEDNN_SHUFFLE;
  kernel->node = unit->nodes[0];
  kernel->source = shuffle->sources[0];
  kernel->output = shuffle->parts[0];
  kernel->shuffle = shuffle;
  *found = true;
  return CLEAVE_OK;
}
