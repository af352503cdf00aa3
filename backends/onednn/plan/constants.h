// SPDX-License-Identifier: Apache-2.0
/*
 * Constants of a plan: those of the model, those that emitters make, and either in another layout.
 */
#ifndef ONEDNN_CONSTANTS_H
#define ONEDNN_CONSTANTS_H

#include "onednn/analysis/bits.h"
#include "onednn/plan/plan.h"

/* A constant tensor of the plan's own; `*data` is its memory, zeroed, to be filled by the caller. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_constant(onednn_plan_t *plan, const onednn_layout_t *layout,
                                                     onednn_tensor_t *out, float **data);

/* A constant that `fill` makes only if it is needed itself, or to pack it while no program has it packed yet.
 * `context` lives as long as the plan. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_lazy(onednn_plan_t *plan, const onednn_layout_t *layout,
                                                 const onednn_content_t *content, onednn_fill_fn_t fill,
                                                 const void *context, onednn_tensor_t *out);

/* The constant `value` of the region, row-major: where it lies, or a copy if it cannot be used there. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_load(onednn_plan_t *plan, uint32_t value, onednn_tensor_t *out);

/* The matrix of packed integers, made if it is needed in bytes; and what a buffer has that is such a matrix,
 * or NULL. `bits` lives as long as the plan. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_unpack(onednn_plan_t *plan, const onednn_bits_t *bits,
                                                   onednn_tensor_t *out);
const onednn_bits_t *onednn_buffer_bits(const onednn_buffer_t *buffer);

/* A constant in the layout of `to`: as some program has it already, or packed now. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_pack(onednn_plan_t *plan, const onednn_tensor_t *from,
                                                 onednn_tensor_t *to);

#endif /* ONEDNN_CONSTANTS_H */
