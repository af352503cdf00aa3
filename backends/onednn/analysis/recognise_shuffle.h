// SPDX-License-Identifier: Apache-2.0
/*
 * Channel shuffles.
 */
#ifndef ONEDNN_RECOGNISE_SHUFFLE_H
#define ONEDNN_RECOGNISE_SHUFFLE_H

#include "onednn/units/unit.h"

/* A unit that is a channel shuffle. `*found` is false if it has no Transpose between views. */
CLEAVE_MUST_USE cleave_status_t onednn_recognise_shuffle(onednn_unit_t *unit, onednn_kernel_t *kernel,
                                                         bool *found);

#endif /* ONEDNN_RECOGNISE_SHUFFLE_H */
