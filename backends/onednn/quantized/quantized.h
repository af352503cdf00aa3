// SPDX-License-Identifier: Apache-2.0
/*
 * Convolutions and products of 8-bit integers, and the values that stand for numbers.
 */
#ifndef ONEDNN_QUANTIZED_H
#define ONEDNN_QUANTIZED_H

#include "onednn/emit/emit.h"

/* Binds the values that nodes of the kernel make which only tell how numbers are stored: before anything else
 * of it is emitted. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_dequantize(onednn_plan_t *plan, const onednn_kernel_t *kernel);

/* A convolution or product of 8-bit integers, if the fusion asks for it and its operands are stored so;
 * `*done` is false, and nothing emitted, if they are not or oneDNN has no fast code. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_quantized(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                      bool *done);

/* A product of float32 data with constant integers, or floats of 16 bits, by kernels/matrix (narrow.c), if
 * the fusion asks for it, or if it has few rows of floats; `*done` is false if it is emitted as float32. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_narrow(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                   bool *done);

#endif /* ONEDNN_QUANTIZED_H */
