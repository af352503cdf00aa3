// SPDX-License-Identifier: Apache-2.0
/* Prints a training run. */
#ifndef CLEAVE_CLI_TRAINING_TRAIN_REPORT_H
#define CLEAVE_CLI_TRAINING_TRAIN_REPORT_H

#include "cli/training/train_run.h"

void cleave_train_report_start(const cleave_train_run_t *run);
void cleave_train_report_step(const cleave_train_run_t *run, const cleave_train_step_t *step);
void cleave_train_report_epoch(const cleave_train_run_t *run, const cleave_train_epoch_t *epoch);
/* Prints what the sums over processes took, if there were any. */
void cleave_train_report_communication(const cleave_train_run_t *run);
/* Prints the scale of the loss at the end, and how many steps were skipped; nothing if it was not scaled. */
void cleave_train_report_scale(const cleave_train_run_t *run);
void cleave_train_report_saved(const cleave_train_run_t *run, const char *what, const char *path);

/* ---- train_picture ---- */

/* Loss and gradient norm over the steps, as a picture. */
/* Writes an SVG: one panel for the loss, with that of held-out samples, and one for the norm; both with a
 * logarithmic scale. Steps whose numbers are not positive and finite are left out. */
CLEAVE_STATUS cleave_train_picture_write(const cleave_train_run_t *run, const char *path,
                                         cleave_error_t *error);

#endif /* CLEAVE_CLI_TRAINING_TRAIN_REPORT_H */
