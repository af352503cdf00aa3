// SPDX-License-Identifier: Apache-2.0
/*
 * Steps that are loops of our own (loops.h).
 */
#ifndef ONEDNN_LOOP_STEP_H
#define ONEDNN_LOOP_STEP_H

#include "onednn/plan/plan.h"

/* Adds the loop with these tensors as its data, the last of them the result; at most three. */
CLEAVE_MUST_USE cleave_status_t onednn_loop_step(onednn_plan_t *plan, const onednn_loop_t *loop,
                                                 const onednn_tensor_t *const *tensors, uint32_t count,
                                                 uint32_t node, const char *label);

/* A step that is a loop over 8-bit integers, whose tensors have one dense layout and the shape of the first.
 * Wide: a step of its own kind. */
CLEAVE_MUST_USE cleave_status_t onednn_bytes_step(onednn_plan_t *plan, onednn_loop_fn_t run,
                                                  const onednn_bytes_loop_t *bytes,
                                                  const onednn_tensor_t *const *tensors, uint32_t count,
                                                  uint32_t node, const char *label);

/* Describes a tensor to loops over integers. */
onednn_bytes_t onednn_bytes_of(const onednn_tensor_t *tensor, float scale, float zero);

void onednn_loop_set_dims(int64_t *dims, const onednn_shape_t *shape);

/* Strides of a plain tensor of shape `own`, 0 for dimensions of one element. */
void onednn_loop_set_strides(int64_t *strides, const onednn_shape_t *own);

#endif /* ONEDNN_LOOP_STEP_H */
