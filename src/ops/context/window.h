// SPDX-License-Identifier: Apache-2.0
/*
 * Sliding windows of convolutions and poolings: attributes kernel_shape, strides, pads, dilations, auto_pad
 * and ceil_mode, checked and with their defaults, and the output size along an axis.
 */
#ifndef CLEAVE_OPS_CONTEXT_WINDOW_H
#define CLEAVE_OPS_CONTEXT_WINDOW_H

#include "ops/context/infer_context.h"

typedef enum cleave_padding {
  CLEAVE_PADDING_EXPLICIT, /* NOTSET */
  CLEAVE_PADDING_VALID,
  CLEAVE_PADDING_SAME_UPPER,
  CLEAVE_PADDING_SAME_LOWER
} cleave_padding_t;

typedef struct cleave_window {
  int32_t spatial_rank;
  cleave_padding_t padding;
  bool ceil_mode;
  cleave_dim_t kernel[CLEAVE_MAX_RANK]; /* UNKNOWN if no attribute tells */
  int64_t strides[CLEAVE_MAX_RANK];     /* >= 1 */
  int64_t dilations[CLEAVE_MAX_RANK];   /* >= 1 */
  int64_t pads_begin[CLEAVE_MAX_RANK];  /* >= 0; 0 unless explicit */
  int64_t pads_end[CLEAVE_MAX_RANK];
} cleave_window_t;

/* Reads and checks the attributes. All numbers come out below 2^31, so that sums of a few cannot overflow. */
CLEAVE_STATUS cleave_window_read(const cleave_infer_t *infer, int32_t spatial_rank,
                                 cleave_window_t *out_window, cleave_error_t *error);

/* A list attribute with `count` entries of at least `lowest` (and below 2^31). If it is absent: what the
 * schema fills it with, or UNKNOWN. */
CLEAVE_STATUS cleave_window_list(const cleave_infer_t *infer, const char *name, int32_t count, int64_t lowest,
                                 int64_t *values, cleave_error_t *error);

/* Input elements that the window spans: dilation (kernel - 1) + 1; UNKNOWN if the kernel is. */
cleave_dim_t cleave_window_extent(const cleave_window_t *window, int32_t axis);

/* Number of window positions along an axis of `size`. An error if the window does not fit in. */
CLEAVE_STATUS cleave_window_size(const cleave_infer_t *infer, const cleave_window_t *window, int32_t axis,
                                 cleave_dim_t size, cleave_dim_t *out_size, cleave_error_t *error);

#endif /* CLEAVE_OPS_CONTEXT_WINDOW_H */
