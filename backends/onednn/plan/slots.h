// SPDX-License-Identifier: Apache-2.0
/*
 * Concat without copying. If the parts of its result lie one after the other in memory, the kernels that make
 * its inputs write straight to their part, their slot. A value that several Concats read (dense blocks) has
 * its slot in the last of them; the earlier ones then find their inputs side by side already.
 */
#ifndef ONEDNN_SLOTS_H
#define ONEDNN_SLOTS_H

#include "onednn/plan/plan.h"

/* Gives values that a Concat reads a slot in its result. */
void onednn_slots_assign(onednn_plan_t *plan);

/* Is every part of a row-major or channel-blocked result contiguous along the axis? */
bool onednn_slots_contiguous(const onednn_shape_t *shape, int32_t axis);

/* How many channels a block of the layout has: 1 in row-major order, 0 in layouts that are neither. */
int64_t onednn_slot_block(const onednn_layout_t *layout);

/* The layout with blocks of 1, 8 or 16 channels, for elements of a type. */
onednn_layout_t onednn_slot_layout(int64_t block, const onednn_shape_t *shape, dnnl_data_type_t type);

/* A layout whose parts along `axis` are contiguous from `start` on, and the bytes of one step along the axis.
 */
bool onednn_slot_divides(const onednn_layout_t *layout, int32_t axis, int64_t start, size_t *bytes);

#endif /* ONEDNN_SLOTS_H */
