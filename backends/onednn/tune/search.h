// SPDX-License-Identifier: Apache-2.0
/*
 * The search for the fastest forms of the kernels of a region, by measurement. Every candidate is the whole
 * region with one form wished for all convolutions, so that kernels are measured with their posts, their
 * neighbours' data and their caches as they will be. A shortest path puts the candidates together; what it
 * found is measured against the default form, and taken only if it is faster.
 */
#ifndef ONEDNN_SEARCH_H
#define ONEDNN_SEARCH_H

#include "onednn/plan/plan.h"

/* `*out` is allocated with malloc. Seconds for large regions; the host's log tells how far it is. */
CLEAVE_MUST_USE cleave_status_t onednn_search(const onednn_base_t *base, const cleave_region_view_t *region,
                                              int32_t threads, onednn_tuning_t **out,
                                              cleave_message_t *message);

#endif /* ONEDNN_SEARCH_H */
