// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel of a unit, found from its nodes and edges alone, never from the name of its rule.
 */
#ifndef ONEDNN_RECOGNISE_H
#define ONEDNN_RECOGNISE_H

#include "onednn/units/unit.h"

/* CLEAVE_ERROR_UNSUPPORTED, with the reason in the message of the analysis, if oneDNN cannot compute the unit
 * with one primitive and its posts. */
CLEAVE_MUST_USE cleave_status_t onednn_recognise(onednn_unit_t *unit, onednn_kernel_t *kernel);

#endif /* ONEDNN_RECOGNISE_H */
