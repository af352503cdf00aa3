// SPDX-License-Identifier: Apache-2.0
/*
 * Trials: a region compiled with given forms, and the times of its kernels. All trials of a region run on the
 * same inputs, in the same memory.
 */
#ifndef ONEDNN_TRIAL_H
#define ONEDNN_TRIAL_H

#include "onednn/program/program.h"
#include "onednn/program/survey.h"

/* Inputs and outputs of a region. */
typedef struct onednn_ground {
  const onednn_base_t *base;
  const cleave_region_view_t *region;
  int32_t threads;
  cleave_tensor_view_t *inputs;
  cleave_tensor_view_t *outputs;
  void *workspace;
  size_t workspace_bytes;
  kernel_arena_t arena;
  cleave_message_t *message;
} onednn_ground_t;

/* Inputs are small numbers, or zeros if they are not float32. Deinit also after a failure. */
CLEAVE_MUST_USE cleave_status_t onednn_ground_init(onednn_ground_t *ground, const onednn_base_t *base,
                                                   const cleave_region_view_t *region, int32_t threads,
                                                   cleave_message_t *message);
void onednn_ground_deinit(onednn_ground_t *ground);

/* Compiles with forms (NULL: the default ones), with times of steps if there is a `survey`. */
CLEAVE_MUST_USE cleave_status_t onednn_trial_create(onednn_ground_t *ground, const onednn_tuning_t *tuning,
                                                    onednn_survey_t *survey, onednn_program_t **out);

/* Milliseconds of a run. */
CLEAVE_MUST_USE cleave_status_t onednn_trial_run(onednn_ground_t *ground, onednn_program_t *program,
                                                 double *out_ms);

/* The least time of each kernel, in milliseconds, in runs of about `budget_ms` together; the first one does
 * not count. */
CLEAVE_MUST_USE cleave_status_t onednn_trial_measure(onednn_ground_t *ground, onednn_program_t *program,
                                                     const onednn_survey_t *survey, double budget_ms,
                                                     double *kernel_ms);

/* Milliseconds of copying a tensor from one layout to another; HUGE_VAL if oneDNN cannot. */
double onednn_trial_reorder(onednn_ground_t *ground, const onednn_layout_t *from, const onednn_layout_t *to);

#endif /* ONEDNN_TRIAL_H */
