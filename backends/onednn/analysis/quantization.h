// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers that are stored as 8-bit integers: number = (integer - zero point) * scale, with one scale for all,
 * one per index of an axis, or one per block of an axis and index of the others. Definitions: the ONNX
 * operators QuantizeLinear-21 and DequantizeLinear-21, with constant parameters.
 */
#ifndef ONEDNN_QUANTIZATION_H
#define ONEDNN_QUANTIZATION_H

#include "onednn/units/unit.h"

typedef struct onednn_quantization {
  float scale; /* if there is one for all */
  int32_t zero_point;
  int32_t axis;  /* of the tensor, if there are several */
  int64_t count; /* of scales */
  int64_t block; /* indices of the axis that share scales; 0: no blocks, and scales are for an axis alone */
  const float *scales;  /* or NULL: one for all */
  const int32_t *zeros; /* one per scale, or NULL: zero_point */
} onednn_quantization_t;

/* Reads the parameters of a QuantizeLinear or DequantizeLinear. Lists come from the arena.
 * CLEAVE_ERROR_UNSUPPORTED, with the reason, for parameters that are not constant float32, and for integers
 * of other sizes. */
CLEAVE_MUST_USE cleave_status_t onednn_quantization_read(const onednn_analysis_t *analysis,
                                                         const cleave_node_view_t *node,
                                                         onednn_quantization_t *out);

/* The scale of element `index` of a row-major tensor of this shape. */
int64_t onednn_quantization_index(const onednn_quantization_t *numbers, const onednn_shape_t *shape,
                                  int64_t index);

/* Are both one scale and zero point for all, and the same? */
bool onednn_quantization_equal(const onednn_quantization_t *a, const onednn_quantization_t *b);

/* Does the fusion of this node multiply 8-bit integers (its attribute `precision = "int8"`)? */
bool onednn_multiplies_bytes(const cleave_region_view_t *region, uint32_t fusion);

/* Do its weights of float16 or bfloat16 stay so for any number of rows (its attribute `weights`, of which
 * "float32" says no)? */
bool onednn_keeps_weights(const cleave_region_view_t *region, uint32_t fusion);

/* Checks the DequantizeLinear nodes of a fusion, and a product of 8-bit integers: its weights are such,
 * signed, without zero points, with one scale or one per output channel. */
CLEAVE_MUST_USE cleave_status_t onednn_quantization_check(const onednn_unit_t *unit);

/* Appends what a QuantizeLinear does to the posts. */
CLEAVE_MUST_USE cleave_status_t onednn_quantization_post(onednn_unit_t *unit, uint32_t node,
                                                         onednn_kernel_t *kernel);

#endif /* ONEDNN_QUANTIZATION_H */
