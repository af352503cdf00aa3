// SPDX-License-Identifier: Apache-2.0
/* The options of a trainer: checked, copied, and the learning rate that they say. */
#ifndef CLEAVE_TRAIN_OPTIONS_H
#define CLEAVE_TRAIN_OPTIONS_H

#include "base/arena.h"
#include "cleave/train.h"

/* What a caller gave, with defaults for fields that the caller's struct does not have; NULL: defaults. */
CLEAVE_MUST_USE cleave_status_t cleave_train_read_options(const cleave_train_options_t *given,
                                                          cleave_train_options_t *out_options,
                                                          cleave_error_t *error);

/* Checks the ranges of numbers. CLEAVE_ERROR_INVALID_ARGUMENT names the first that is wrong. */
CLEAVE_MUST_USE cleave_status_t cleave_train_check_options(const cleave_train_options_t *options,
                                                           cleave_error_t *error);

/* A copy whose texts are in the arena, without the rule files and session options, which are needed while the
 * trainer is made. */
CLEAVE_MUST_USE cleave_status_t cleave_train_copy_options(const cleave_train_options_t *options,
                                                          cleave_arena_t *arena,
                                                          cleave_train_options_t *out_options,
                                                          cleave_error_t *error);

/* A number that identifies a run. */
typedef struct cleave_train_number {
  const char *name;
  double value;
} cleave_train_number_t;

enum { CLEAVE_TRAIN_NUMBERS = 24 };

/* Lists what later steps depend on beside tensors, the version of the list first. Returns how many there are.
 */
size_t cleave_train_describe(const cleave_train_options_t *options, int64_t sample_count,
                             cleave_train_number_t numbers[CLEAVE_TRAIN_NUMBERS]);

/* The learning rate of a step, from 0, as cleave_schedule_t says. */
double cleave_train_rate(const cleave_train_options_t *options, int64_t step, int64_t steps_per_epoch);

/* Is the loss multiplied by a scale before backward? */
bool cleave_train_is_scaled(const cleave_train_options_t *options);

/* The scale of the next step. It follows from the options and the gradient norms of the steps before: a
 * checkpoint, which has these, need not keep it. */
typedef struct cleave_train_scaling {
  double scale;    /* a power of two; 1 if the loss is not scaled */
  int64_t good;    /* steps since it changed */
  int64_t updates; /* steps that were not skipped */
} cleave_train_scaling_t;

cleave_train_scaling_t cleave_train_scaling_start(const cleave_train_options_t *options);
/* After a step with this norm of its gradients. False: the step is to be skipped. */
bool cleave_train_scaling_advance(const cleave_train_options_t *options, double norm,
                                  cleave_train_scaling_t *scaling);

#endif /* CLEAVE_TRAIN_OPTIONS_H */
