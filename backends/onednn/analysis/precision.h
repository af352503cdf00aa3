// SPDX-License-Identifier: Apache-2.0
/*
 * In which precision a region computes. The region's attribute `precision` ("bfloat16", "float16") asks for
 * products of that type; its attribute `float32`, a list of operators and names of nodes, and a fusion's
 * attribute `precision = "float32"` leave kernels as they are. Products read both operands in the
 * low type and add up in float32; what follows them in their kernel is computed in float32, too. A value is
 * stored in the low type if some product reads it, directly or through kernels that only move or pool it;
 * outputs of the region are float32.
 */
#ifndef ONEDNN_PRECISION_H
#define ONEDNN_PRECISION_H

#include "onednn/analysis/analysis.h"

typedef struct onednn_precision {
  dnnl_data_type_t type;
  const bool *kernels; /* per kernel: computes in `type`; NULL: all is float32 */
  const bool *values;  /* per value: is stored in `type` */
} onednn_precision_t;

/* The type that the region asks for; dnnl_f32 if it asks for none. A type that has no name here is
 * CLEAVE_ERROR_UNSUPPORTED with the reason in `message`. */
CLEAVE_MUST_USE cleave_status_t onednn_precision_of(const cleave_region_view_t *region, dnnl_data_type_t *out,
                                                    cleave_message_t *message);

/* Decides for all kernels and values of `analysis`, which is of `region`. Lists come from the arena of the
 * analysis. A type in which this processor does not multiply becomes dnnl_f32. */
CLEAVE_MUST_USE cleave_status_t onednn_precision_choose(const onednn_analysis_t *analysis,
                                                        const cleave_region_view_t *region,
                                                        onednn_precision_t *out);

static inline bool onednn_precision_is_low(const onednn_precision_t *precision) {
  return precision->kernels != NULL;
}

#endif /* ONEDNN_PRECISION_H */
