// SPDX-License-Identifier: Apache-2.0
/* Loss and gradient norm over the steps, as a picture. */
#ifndef CLEAVE_CLI_TRAINING_TRAIN_PICTURE_H
#define CLEAVE_CLI_TRAINING_TRAIN_PICTURE_H

#include "cli/training/train_run.h"

/* Writes an SVG: one panel for the loss, with that of held-out samples, and one for the norm; both with a
 * logarithmic scale. Steps whose numbers are not positive and finite are left out. */
CLEAVE_MUST_USE cleave_status_t cleave_train_picture_write(const cleave_train_run_t *run, const char *path,
                                                           cleave_error_t *error);

#endif /* CLEAVE_CLI_TRAINING_TRAIN_PICTURE_H */
