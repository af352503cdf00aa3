// SPDX-License-Identifier: Apache-2.0
// Coordinates and coefficients of Resize. Coordinates are clamped before they become integers: scales come
// from outside and may be anything.
#include "cpu/signal/resize.h"

#include <math.h>

int64_t cpu_resize_taps(const cpu_resize_rule_t *rule, double scale) {
  if (rule->mode == CPU_RESIZE_NEAREST) {
    return 1;
  }
  double reach = rule->mode == CPU_RESIZE_LINEAR ? 1 : 2;
  if (!rule->antialias || !(scale < 1)) {
    return (int64_t)(2 * reach);
  }
  double start = floor(-reach / fmax(scale, 1e-9)) + 1;
  return (int64_t)(2 - 2 * start);
}

static double coordinate(const cpu_resize_rule_t *rule, const cpu_resize_axis_t *axis, double x) {
  double in = (double)axis->in;
  double length = axis->scale * in;
  switch (rule->coordinates) {
    case CPU_RESIZE_HALF_PIXEL: return (x + 0.5) / axis->scale - 0.5;
    case CPU_RESIZE_HALF_PIXEL_SYMMETRIC:
      return in / 2 * (1 - (double)axis->out / length) + (x + 0.5) / axis->scale - 0.5;
    case CPU_RESIZE_PYTORCH_HALF_PIXEL: return axis->out > 1 ? (x + 0.5) / axis->scale - 0.5 : 0;
    case CPU_RESIZE_ALIGN_CORNERS: return axis->out == 1 || length == 1 ? 0 : x * (in - 1) / (length - 1);
    case CPU_RESIZE_ASYMMETRIC: return x / axis->scale;
    case CPU_RESIZE_TF_HALF_PIXEL_FOR_NN: return (x + 0.5) / axis->scale;
    case CPU_RESIZE_TF_CROP_AND_RESIZE:
      if (axis->out > 1) {
        return (axis->roi_start + x * (axis->roi_end - axis->roi_start) / ((double)axis->out - 1)) * (in - 1);
      }
      return (axis->roi_start + axis->roi_end) / 2 * (in - 1);
  }
  return x;
}

static double nearest(cpu_resize_rounding_t rounding, double x) {
  switch (rounding) {
    case CPU_RESIZE_ROUND_PREFER_FLOOR: return ceil(x - 0.5);
    case CPU_RESIZE_ROUND_PREFER_CEIL: return floor(x + 0.5);
    case CPU_RESIZE_FLOOR: return floor(x);
    case CPU_RESIZE_CEIL: return ceil(x);
  }
  return x;
}

static double coefficient(const cpu_resize_rule_t *rule, double distance) {
  double d = fabs(distance);
  double a = rule->cubic_a;
  if (rule->mode == CPU_RESIZE_LINEAR) {
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

static void interpolate(const cpu_resize_rule_t *rule, const cpu_resize_axis_t *axis, double x, int64_t taps,
                        int64_t *indices, double *weights) {
  double scale = rule->antialias && axis->scale < 1 ? axis->scale : 1;
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

void cpu_resize_table(const cpu_resize_rule_t *rule, const cpu_resize_axis_t *axis, int64_t taps,
                      int64_t *indices, double *weights) {
  for (int64_t o = 0; o < axis->out; o++) {
    double x = coordinate(rule, axis, (double)o);
    int64_t *to = indices + o * taps;
    double *weight = weights + o * taps;
    // What lies far outside counts as the edge, whatever the distance.
    double limit = (double)axis->in + 4;
    bool outside = !(x >= 0 && x <= (double)(axis->in - 1));
    x = x > -4 ? (x < limit ? x : limit) : -4;
    if (rule->coordinates == CPU_RESIZE_TF_CROP_AND_RESIZE && outside) {
      for (int64_t k = 0; k < taps; k++) {
        to[k] = -1;
        weight[k] = 0;
      }
    } else if (rule->mode == CPU_RESIZE_NEAREST) {
      to[0] = clamp_index(nearest(rule->rounding, x), axis->in);
      weight[0] = 1;
    } else {
      interpolate(rule, axis, x, taps, to, weight);
    }
  }
}
