// SPDX-License-Identifier: Apache-2.0
/*
 * Constants end up in slabs, which programs share. While compiling, a constant goes to the slab at
 * hand as soon as it is made; at the end, slabs of other programs that this one hardly uses are given up
 * again for copies, so that no program keeps much more alive than it reads.
 */
#ifndef ONEDNN_WEIGHTS_MEMORY_H
#define ONEDNN_WEIGHTS_MEMORY_H

#include "onednn/plan/plan.h"

/* Memory for a constant, with any content, in a slab that the plan fills; NULL without
 * memory. */
void *onednn_plan_take(onednn_plan_t *plan, size_t bytes, onednn_slab_t **out_slab);

/* Makes `plan->scratch` at least so large; what was in it is lost. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_reserve_scratch(onednn_plan_t *plan, size_t bytes);

/* Tells cleave that these bytes of a constant of the model have been packed, as below. */
void onednn_plan_leave(onednn_plan_t *plan, const void *data, size_t bytes);

/* Tells cleave that the constant of the model behind the buffer has been packed
 * (cleave_host_t.constant_packed). */
void onednn_plan_leave_source(onednn_plan_t *plan, uint32_t buffer);

/* The fill function of a constant of the model as float32, which is `context`; and is the constant of the
 * buffer a mere copy that it makes? */
void onednn_fill_floats(const void *context, float *out);
bool onednn_fill_copies(const onednn_buffer_t *buffer);

/* Makes the content of a constant that `fill` has yet to make; `keeps` false: in the scratch memory, until
 * the next one. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_materialise(onednn_plan_t *plan, uint32_t buffer, bool keeps);

/* When all steps are there: makes the constants that they read, moves those out of slabs that are hardly
 * used, publishes what was packed, and counts bytes. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_gather(onednn_plan_t *plan);

#endif /* ONEDNN_WEIGHTS_MEMORY_H */
