// SPDX-License-Identifier: Apache-2.0
/* What a training run prints. */
#ifndef CLEAVE_CLI_TRAINING_TRAIN_REPORT_H
#define CLEAVE_CLI_TRAINING_TRAIN_REPORT_H

#include "cli/training/train_run.h"

void cleave_train_report_start(const cleave_train_run_t *run);
void cleave_train_report_step(const cleave_train_run_t *run, const cleave_train_step_t *step);
void cleave_train_report_epoch(const cleave_train_run_t *run, const cleave_train_epoch_t *epoch);
/* What the sums over processes took, if there were any. */
void cleave_train_report_communication(const cleave_train_run_t *run);
/* The scale of the loss at the end, and how many steps were skipped; nothing if it was not scaled. */
void cleave_train_report_scale(const cleave_train_run_t *run);
void cleave_train_report_saved(const cleave_train_run_t *run, const char *what, const char *path);

#endif /* CLEAVE_CLI_TRAINING_TRAIN_REPORT_H */
