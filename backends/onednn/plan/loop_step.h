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

void onednn_loop_set_dims(int64_t *dims, const onednn_shape_t *shape);

/* Strides of a plain tensor of shape `own`, 0 for dimensions of one element. */
void onednn_loop_set_strides(int64_t *strides, const onednn_shape_t *own);

#endif /* ONEDNN_LOOP_STEP_H */
