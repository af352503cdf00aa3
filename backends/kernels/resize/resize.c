// SPDX-License-Identifier: Apache-2.0
// Coordinates and coefficients of Resize. Coordinates are computed in float32, as ONNX Runtime and PyTorch
// do: 3 / float(1/3) is 9 there, and a little less in float64, where rounding down would give another
// element. They are clamped before they become integers: scales come from outside and may be anything.
#include "kernels/resize/resize.h"

#include <math.h>
#include <string.h>

#include "kernels/program.h"

int64_t kernel_resize_taps(const kernel_resize_rule_t *rule, double scale) {
  if (rule->mode == KERNEL_RESIZE_NEAREST) {
    return 1;
  }
  double reach = rule->mode == KERNEL_RESIZE_LINEAR ? 1 : 2;
  if (!rule->antialias || !(scale < 1)) {
    return (int64_t)(2 * reach);
  }
  double start = floor(-reach / fmax(scale, 1e-9)) + 1;
  return (int64_t)(2 - 2 * start);
}

static float coordinate(const kernel_resize_rule_t *rule, const kernel_resize_axis_t *axis, float x) {
  float in = (float)axis->in;
  float out = (float)axis->out;
  float length = axis->length;
  switch (rule->coordinates) {
    case KERNEL_RESIZE_HALF_PIXEL: return (x + 0.5F) / axis->scale - 0.5F;
    case KERNEL_RESIZE_HALF_PIXEL_SYMMETRIC: {
      // ONNX Runtime has float64 in the last line, and only there.
      float offset = in / 2 * (1 - out / (axis->scale * in));
      return (float)((double)offset + ((double)x + 0.5) / (double)axis->scale - 0.5);
    }
    case KERNEL_RESIZE_PYTORCH_HALF_PIXEL: return axis->out > 1 ? (x + 0.5F) / axis->scale - 0.5F : 0;
    case KERNEL_RESIZE_ALIGN_CORNERS: return axis->out == 1 || length == 1 ? 0 : x * (in - 1) / (length - 1);
    case KERNEL_RESIZE_ASYMMETRIC: return x / axis->scale;
    case KERNEL_RESIZE_TF_HALF_PIXEL_FOR_NN: return (x + 0.5F) / axis->scale;
    case KERNEL_RESIZE_TF_CROP_AND_RESIZE:
      if (axis->out > 1) {
        return axis->roi_start * (in - 1) + x * (axis->roi_end - axis->roi_start) * (in - 1) / (out - 1);
      }
      return (axis->roi_start + axis->roi_end) / 2 * (in - 1);
  }
  return x;
}

static double nearest(kernel_resize_rounding_t rounding, double x) {
  switch (rounding) {
    case KERNEL_RESIZE_ROUND_PREFER_FLOOR: return ceil(x - 0.5);
    case KERNEL_RESIZE_ROUND_PREFER_CEIL: return floor(x + 0.5);
    case KERNEL_RESIZE_FLOOR: return floor(x);
    case KERNEL_RESIZE_CEIL: return ceil(x);
  }
  return x;
}

static double coefficient(const kernel_resize_rule_t *rule, double distance) {
  double d = fabs(distance);
  double a = rule->cubic_a;
  if (rule->mode == KERNEL_RESIZE_LINEAR) {
    return d < 1 ? 1 - d : 0;
  }
  if (d <= 1) {
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  }
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static int64_t clamp_index(double at, int64_t count) {
  // Also for NaN: the comparison is false.
  return at > 0 ? (at < (double)(count - 1) ? (int64_t)at : count - 1) : 0;
}

static void interpolate(const kernel_resize_rule_t *rule, const kernel_resize_axis_t *axis, double x,
                        int64_t taps, int64_t *indices, double *weights) {
  double scale = rule->antialias && axis->scale < 1 ? (double)axis->scale : 1;
  double base = floor(x);
  double start = 1 - (double)taps / 2;
  double sum = 0;
  for (int64_t k = 0; k < taps; k++) {
    double offset = start + (double)k;
    double at = base + offset;
    bool outside = at < 0 || at > (double)(axis->in - 1);
    indices[k] = clamp_index(at, axis->in);
    weights[k] = outside && rule->exclude_outside ? 0 : coefficient(rule, (offset - (x - base)) * scale);
    sum += weights[k];
  }
  for (int64_t k = 0; k < taps && sum != 0; k++) {
    weights[k] /= sum;
  }
}

static bool is_outside(const kernel_resize_rule_t *rule, const kernel_resize_axis_t *axis, double x) {
  return rule->coordinates == KERNEL_RESIZE_TF_CROP_AND_RESIZE && !(x >= 0 && x <= (double)(axis->in - 1));
}

int64_t kernel_resize_nearest(const kernel_resize_rule_t *rule, const kernel_resize_axis_t *axis, int64_t o) {
  double x = (double)coordinate(rule, axis, (float)o);
  return is_outside(rule, axis, x) ? -1 : clamp_index(nearest(rule->rounding, x), axis->in);
}

void kernel_resize_table(const kernel_resize_rule_t *rule, const kernel_resize_axis_t *axis, int64_t taps,
                         int64_t *indices, double *weights) {
  for (int64_t o = 0; o < axis->out; o++) {
    int64_t *to = indices + o * taps;
    double *weight = weights + o * taps;
    if (rule->mode == KERNEL_RESIZE_NEAREST) {
      to[0] = kernel_resize_nearest(rule, axis, o);
      weight[0] = 1;
      continue;
    }
    double x = (double)coordinate(rule, axis, (float)o);
    if (is_outside(rule, axis, x)) {
      for (int64_t k = 0; k < taps; k++) {
        to[k] = -1;
        weight[k] = 0;
      }
      continue;
    }
    // Places far outside count as the edge, whatever the distance.
    double limit = (double)axis->in + 4;
    x = x > -4 ? (x < limit ? x : limit) : -4;
    interpolate(rule, axis, x, taps, to, weight);
  }
}

// ---- operands and attributes ----------------------------------------------------------------------------

// The place of axis `axis` in scales, sizes and roi, or -1 if the attribute axes leaves it out.
static int32_t entry_of(const kernel_resize_rule_t *rule, int32_t rank, int32_t axis) {
  if (rule->axis_count == 0) {
    return axis;
  }
  for (uint32_t k = 0; k < rule->axis_count; k++) {
    if (rule->axes[k] == axis || rule->axes[k] == axis - rank) {
      return (int32_t)k;
    }
  }
  return -1;
}

// The scale that keeps the proportions within the sizes; 0 if they need not be kept.
static float common_scale(const kernel_resize_rule_t *rule, const kernel_resize_numbers_t *numbers,
                          int32_t rank, const kernel_resize_axis_t *axes) {
  bool is_upper = rule->policy == KERNEL_RESIZE_NOT_LARGER;
  float common = is_upper ? INFINITY : 0;
  for (int32_t d = 0; d < rank; d++) {
    int32_t entry = entry_of(rule, rank, d);
    if (entry >= 0) {
      float scale = (float)numbers->sizes[entry] / (float)axes[d].in;
      common = is_upper ? fminf(common, scale) : fmaxf(common, scale);
    }
  }
  return common;
}

cleave_status_t kernel_resize_scale(const kernel_resize_rule_t *rule, const kernel_resize_numbers_t *numbers,
                                    int32_t rank, kernel_resize_axis_t *axes, cleave_message_t *message) {
  int64_t entries = rule->axis_count == 0 ? rank : (int64_t)rule->axis_count;
  bool by_scales = numbers->scale_count > 0;
  bool by_sizes = !by_scales && numbers->size_count > 0;
  bool crop = rule->coordinates == KERNEL_RESIZE_TF_CROP_AND_RESIZE;
  if (entries > CLEAVE_MAX_RANK || (by_scales && numbers->scale_count != entries) ||
      (by_sizes && numbers->size_count != entries) || (crop && numbers->roi_count != 2 * entries)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "scales, sizes or roi do not have %lld entr%s",
                       (long long)entries, KERNEL_BY_COUNT(entries, "y", "ies"));
  }
  bool keeps = by_sizes && rule->policy != KERNEL_RESIZE_STRETCH;
  float common = keeps ? common_scale(rule, numbers, rank, axes) : 0;
  for (int32_t d = 0; d < rank; d++) {
    int32_t entry = entry_of(rule, rank, d);
    axes[d].length = (float)axes[d].out;
    if (entry >= 0) {
      axes[d].roi_start = crop ? (float)numbers->roi[entry] : axes[d].roi_start;
      axes[d].roi_end = crop ? (float)numbers->roi[entries + entry] : axes[d].roi_end;
      axes[d].scale = by_scales ? (float)numbers->scales[entry]
                      : keeps   ? common
                                : (float)axes[d].out / (float)axes[d].in;
      axes[d].length = by_scales || keeps ? axes[d].scale * (float)axes[d].in : axes[d].length;
    }
    if (!(axes[d].scale > 0) || isinf(axes[d].scale)) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "scale of axis %d is %g, expected a positive number", d,
                         (double)axes[d].scale);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t choose(const cleave_node_view_t *node, const char *name, const char *const *choices,
                              int count, int *out_choice, cleave_message_t *message) {
  const char *text = cleave_view_string(node, name, choices[0]);
  for (int k = 0; k < count; k++) {
    if (strcmp(text, choices[k]) == 0) {
      *out_choice = k;
      return CLEAVE_OK;
    }
  }
  return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s '%.32s' is unknown", name, text);
}

cleave_status_t kernel_resize_read(const cleave_node_view_t *node, kernel_resize_rule_t *out,
                                   cleave_message_t *message) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const coordinates[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
      "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
  const struct {
    const char *name;
    const char *const *choices;
    int count;
  } settings[] = {{"mode", modes, 3},
                  {"coordinate_transformation_mode", coordinates, 7},
                  {"nearest_mode", roundings, 4},
                  {"keep_aspect_ratio_policy", policies, 3}};
  int found[4] = {0};
  for (int k = 0; k < 4; k++) {
    cleave_status_t status =
        choose(node, settings[k].name, settings[k].choices, settings[k].count, &found[k], message);
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  *out = (kernel_resize_rule_t){
      .mode = (kernel_resize_mode_t)found[0],
      .coordinates = (kernel_resize_coordinates_t)found[1],
      .rounding = (kernel_resize_rounding_t)found[2],
      .policy = (kernel_resize_policy_t)found[3],
      .antialias = cleave_view_int(node, "antialias", 0) != 0,
      .exclude_outside = cleave_view_int(node, "exclude_outside", 0) != 0,
      .cubic_a = cleave_view_float(node, "cubic_coeff_a", -0.75),
      .extrapolation = cleave_view_float(node, "extrapolation_value", 0),
  };
  out->axes = cleave_view_ints(node, "axes", &out->axis_count);
  return CLEAVE_OK;
}
