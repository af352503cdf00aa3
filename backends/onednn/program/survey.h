// SPDX-License-Identifier: Apache-2.0
/*
 * What tuning has to know of a plan: which kernel has which form and adds which steps, which values live from
 * kernel to kernel, and in which layouts.
 */
#ifndef ONEDNN_SURVEY_H
#define ONEDNN_SURVEY_H

#include "onednn/plan/plan.h"

typedef struct onednn_survey {
  kernel_arena_t *arena; /* of all that follows; set by the caller */
  uint32_t kernel_count;
  uint32_t convolution_count;
  uint32_t value_count;
  uint32_t step_count;
  bool *formed;             /* per kernel: it has the form that was asked for */
  uint32_t *kernel_of_step; /* per step */
  bool *moves;              /* per value: kernels hand it on in memory of the region, float32 */
  onednn_layout_t *layouts; /* per value that moves */
  uint32_t *made_by;        /* per value: kernel */
  uint32_t *last_use;       /* per value: kernel, or CLEAVE_INDEX_NONE for outputs of the region */
} onednn_survey_t;

/* Surveys a plan whose kernels have all been emitted. */
CLEAVE_MUST_USE cleave_status_t onednn_survey_take(const onednn_plan_t *plan, onednn_survey_t *survey);

#endif /* ONEDNN_SURVEY_H */
