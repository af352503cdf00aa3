// SPDX-License-Identifier: Apache-2.0
/*
 * What a region means, before any layout is chosen: the list of its kernels. `supports` asks for the kernels
 * of one node or fusion and looks at the outcome; `compile` asks for all and emits them.
 */
#ifndef ONEDNN_ANALYSIS_H
#define ONEDNN_ANALYSIS_H

#include "onednn/units/unit.h"

/* Are the ids of a view those of its values and nodes, and has each node its first input and output?
 * CLEAVE_ERROR_INVALID_ARGUMENT or CLEAVE_ERROR_UNSUPPORTED if not. */
CLEAVE_MUST_USE cleave_status_t onednn_check_ids(const cleave_region_view_t *region,
                                                 cleave_message_t *message);

/* Analyses all units of the region. All memory comes from `arena`. A unit that oneDNN cannot express is
 * CLEAVE_ERROR_UNSUPPORTED with the reason in `message`. */
CLEAVE_MUST_USE cleave_status_t onednn_analyse(const cleave_region_view_t *region, kernel_arena_t *arena,
                                               cleave_message_t *message, onednn_analysis_t *out);

#endif /* ONEDNN_ANALYSIS_H */
