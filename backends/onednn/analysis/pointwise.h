// SPDX-License-Identifier: Apache-2.0
/*
 * Pointwise steps: what one elementwise node does to a value, as posts of a kernel.
 */
#ifndef ONEDNN_POINTWISE_H
#define ONEDNN_POINTWISE_H

#include "onednn/units/unit.h"

/* Is the operator one that posts can express for some operands? */
bool onednn_pointwise_known(const cleave_node_view_t *node);

/* Is it arithmetic of two or more operands, any of which may be the one that the post is applied to? Of all
 * other operators that is the first input. */
bool onednn_pointwise_arithmetic(const cleave_node_view_t *node);

/* Appends what `node` does to the value `current`, which it reads in one slot or in all of them.
 * CLEAVE_ERROR_UNSUPPORTED, with the reason, if no post-op does that. */
CLEAVE_MUST_USE cleave_status_t onednn_pointwise_node(onednn_unit_t *unit, uint32_t node, uint32_t current,
                                                      onednn_kernel_t *kernel);

#endif /* ONEDNN_POINTWISE_H */
