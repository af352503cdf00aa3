// SPDX-License-Identifier: Apache-2.0
// Layer normalization as exporters spell it out:
//   d = x - mean(x);  y = d / sqrt(mean(d^2) + epsilon) [* scale] [+ shift]
// with Pow, Mul(d, d) or a second subtraction for the square, and Div or Mul by a Reciprocal at the end.
#include "analysis.h"

typedef struct walk {
  onednn_unit_t *unit;
  uint32_t seen[24]; /* entries of unit->nodes that belong to the pattern */
  uint32_t count;
} walk_t;

static const cleave_region_view_t *region_of(const walk_t *walk) {
  return walk->unit->analysis->region;
}

// The node of the unit that makes `value`, if its operator is `op`; remembered as part of the pattern.
static const cleave_node_view_t *maker(walk_t *walk, uint32_t value, const char *op) {
  if (!onednn_unit_makes(walk->unit, value)) {
    return NULL;
  }
  uint32_t entry = onednn_unit_find(walk->unit, region_of(walk)->values[value].producer);
  const cleave_node_view_t *node = &region_of(walk)->nodes[walk->unit->nodes[entry]];
  if (!onednn_node_is(node, op)) {
    return NULL;
  }
  bool known = false;
  for (uint32_t k = 0; k < walk->count; k++) {
    known = known || walk->seen[k] == entry;
  }
  if (!known) {
    if (walk->count == sizeof(walk->seen) / sizeof(walk->seen[0])) {
      return NULL;
    }
    walk->seen[walk->count++] = entry;
  }
  return node;
}

// mean(x) over the last dimension, which stays: `*x` is its argument.
static bool match_mean(walk_t *walk, uint32_t value, uint32_t *x) {
  const cleave_node_view_t *node = maker(walk, value, "ReduceMean");
  int64_t axes[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  if (node == NULL || cleave_view_int(node, "keepdims", 1) != 1) {
    return false;
  }
  const cleave_value_view_t *list = cleave_view_input(region_of(walk), node, 1);
  const int64_t *attribute = cleave_view_ints(node, "axes", &count);
  if (list != NULL ? !onednn_integers(list, axes, &count) : count != 1) {
    return false;
  }
  if (list == NULL) {
    axes[0] = attribute[0];
  }
  *x = node->inputs[0];
  int32_t rank = region_of(walk)->values[*x].tensor.rank;
  return count == 1 && (axes[0] == -1 || (rank > 1 && axes[0] == rank - 1));
}

// x - mean(x).
static bool match_centred(walk_t *walk, uint32_t value, uint32_t *x) {
  const cleave_node_view_t *node = maker(walk, value, "Sub");
  uint32_t of = CLEAVE_INDEX_NONE;
  if (node == NULL || node->input_count != 2 || !match_mean(walk, node->inputs[1], &of)) {
    return false;
  }
  *x = node->inputs[0];
  return *x == of;
}

static bool match_square(walk_t *walk, uint32_t value, uint32_t *x) {
  const cleave_node_view_t *node = maker(walk, value, "Pow");
  double exponent = 0;
  if (node != NULL) {
    return node->input_count == 2 && onednn_scalar(&region_of(walk)->values[node->inputs[1]], &exponent) &&
           exponent == 2 && match_centred(walk, node->inputs[0], x);
  }
  node = maker(walk, value, "Mul");
  return node != NULL && node->inputs[0] == node->inputs[1] && match_centred(walk, node->inputs[0], x);
}

// sqrt(mean(d^2) + epsilon).
static bool match_deviation(walk_t *walk, uint32_t value, uint32_t *x, double *epsilon) {
  uint32_t square = CLEAVE_INDEX_NONE;
  const cleave_node_view_t *node = maker(walk, value, "Sqrt");
  if (node == NULL) {
    return false;
  }
  node = maker(walk, node->inputs[0], "Add");
  if (node == NULL) {
    return false;
  }
  for (uint32_t side = 0; side < 2; side++) {
    if (onednn_scalar(&region_of(walk)->values[node->inputs[side]], epsilon) &&
        match_mean(walk, node->inputs[1 - side], &square)) {
      return match_square(walk, square, x);
    }
  }
  return false;
}

// d / deviation, or d * reciprocal(deviation).
static bool match_quotient(walk_t *walk, uint32_t value, uint32_t *x, double *epsilon) {
  uint32_t other = CLEAVE_INDEX_NONE;
  const cleave_node_view_t *node = maker(walk, value, "Div");
  if (node != NULL) {
    return match_centred(walk, node->inputs[0], x) &&
           match_deviation(walk, node->inputs[1], &other, epsilon) && other == *x;
  }
  node = maker(walk, value, "Mul");
  for (uint32_t side = 0; node != NULL && side < 2; side++) {
    const cleave_node_view_t *inverse = maker(walk, node->inputs[side], "Reciprocal");
    if (inverse != NULL) {
      return match_deviation(walk, inverse->inputs[0], &other, epsilon) &&
             match_centred(walk, node->inputs[1 - side], x) && other == *x;
    }
  }
  return false;
}

// A float32 vector over the last dimension from outside the unit.
static bool is_vector(const walk_t *walk, uint32_t value) {
  const cleave_value_view_t *view = &region_of(walk)->values[value];
  return !onednn_unit_makes(walk->unit, value) && view->tensor.dtype == CLEAVE_DTYPE_F32 &&
         view->tensor.rank == 1;
}

// Peels a scale or shift off `*value`: op(vector, rest) in either order.
static uint32_t peel(walk_t *walk, const char *op, uint32_t *value) {
  uint32_t before = walk->count;
  const cleave_node_view_t *node = maker(walk, *value, op);
  for (uint32_t side = 0; node != NULL && node->input_count == 2 && side < 2; side++) {
    if (is_vector(walk, node->inputs[side]) && onednn_unit_makes(walk->unit, node->inputs[1 - side])) {
      uint32_t vector = node->inputs[side];
      *value = node->inputs[1 - side];
      return vector;
    }
  }
  walk->count = before;
  return CLEAVE_INDEX_NONE;
}

// The one value of the unit that is used outside, or CLEAVE_INDEX_NONE.
static uint32_t result_of(const onednn_unit_t *unit) {
  uint32_t result = CLEAVE_INDEX_NONE;
  for (uint32_t k = 0; k < unit->count; k++) {
    uint32_t value = unit->analysis->region->nodes[unit->nodes[k]].outputs[0];
    if (!onednn_unit_leaks(unit, value) && onednn_use_count(unit->analysis, value) > 0) {
      continue;
    }
    if (result != CLEAVE_INDEX_NONE) {
      return CLEAVE_INDEX_NONE;
    }
    result = value;
  }
  return result;
}

cleave_status_t onednn_recognise_normalization(onednn_unit_t *unit, onednn_kernel_t *kernel, bool *found) {
  uint32_t means = 0;
  *found = false;
  for (uint32_t k = 0; k < unit->count; k++) {
    means += onednn_node_is(&unit->analysis->region->nodes[unit->nodes[k]], "ReduceMean") ? 1 : 0;
  }
  if (means < 2) {
    return CLEAVE_OK;
  }
  walk_t walk = {.unit = unit, .count = 0};
  uint32_t result = result_of(unit);
  uint32_t x = CLEAVE_INDEX_NONE;
  double epsilon = 0;
  if (result == CLEAVE_INDEX_NONE) {
    return onednn_fail(unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                       "a value inside the normalization is also used outside");
  }
  uint32_t value = result;
  uint32_t shift = peel(&walk, "Add", &value);
  uint32_t scale = peel(&walk, "Mul", &value);
  if (!match_quotient(&walk, value, &x, &epsilon) || walk.count != unit->count) {
    return onednn_fail(
        unit->analysis->message, CLEAVE_ERROR_UNSUPPORTED,
        "two means, but not a layer normalization over the last dimension with nothing after it: "
        "result '%s'",
        unit->analysis->region->values[result].name);
  }
  for (uint32_t k = 0; k < unit->count; k++) {
    unit->taken[k] = true;
  }
  kernel->kind = ONEDNN_LAYER_NORMALIZATION;
  kernel->node = unit->nodes[0];
  kernel->source = x;
  kernel->output = result;
  kernel->axis = -1;
  kernel->epsilon = (float)epsilon;
  kernel->scale = scale;
  kernel->shift = shift;
  *found = true;
  return CLEAVE_OK;
}
