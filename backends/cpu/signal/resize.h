// SPDX-License-Identifier: Apache-2.0
/*
 * The arithmetic of Resize (ONNX, opset 19) along one axis: where an output element lies on the input, and
 * which input elements count how much. Separable: an N-d resize is one pass per axis.
 */
#ifndef CLEAVE_CPU_RESIZE_H
#define CLEAVE_CPU_RESIZE_H

#include "cpu/common/nn.h"

typedef enum cpu_resize_mode { CPU_RESIZE_NEAREST, CPU_RESIZE_LINEAR, CPU_RESIZE_CUBIC } cpu_resize_mode_t;

typedef enum cpu_resize_coordinates {
  CPU_RESIZE_HALF_PIXEL,
  CPU_RESIZE_HALF_PIXEL_SYMMETRIC,
  CPU_RESIZE_PYTORCH_HALF_PIXEL,
  CPU_RESIZE_ALIGN_CORNERS,
  CPU_RESIZE_ASYMMETRIC,
  CPU_RESIZE_TF_HALF_PIXEL_FOR_NN,
  CPU_RESIZE_TF_CROP_AND_RESIZE
} cpu_resize_coordinates_t;

typedef enum cpu_resize_rounding {
  CPU_RESIZE_ROUND_PREFER_FLOOR,
  CPU_RESIZE_ROUND_PREFER_CEIL,
  CPU_RESIZE_FLOOR,
  CPU_RESIZE_CEIL
} cpu_resize_rounding_t;

typedef struct cpu_resize_rule {
  cpu_resize_mode_t mode;
  cpu_resize_coordinates_t coordinates;
  cpu_resize_rounding_t rounding;
  bool antialias;
  bool exclude_outside;
  double cubic_a;
} cpu_resize_rule_t;

typedef struct cpu_resize_axis {
  int64_t in;
  int64_t out;
  double scale;
  double roi_start; /* normalised; tf_crop_and_resize only */
  double roi_end;
} cpu_resize_axis_t;

/* Input elements that one output element may need on an axis with this scale. */
int64_t cpu_resize_taps(const cpu_resize_rule_t *rule, double scale);

/* Fills [out, taps] indices (in [0, in), or -1 for all taps of an element outside of the region of interest)
 * and weights, which sum to 1 per output element. `in` and `out` are at least 1, taps as cpu_resize_taps()
 * gives. */
void cpu_resize_table(const cpu_resize_rule_t *rule, const cpu_resize_axis_t *axis, int64_t taps,
                      int64_t *indices, double *weights);

#endif /* CLEAVE_CPU_RESIZE_H */
