// SPDX-License-Identifier: Apache-2.0
/*
 * Special values: NaN, infinities, and what rounds to them. oneDNN's code for max(x, 0), exponentials and
 * maxima turns NaN into a number. On x86 every such instruction raises the floating-point flag "invalid", and
 * nothing that computes numbers from numbers does: a program looks at the flag once per run, and repeats the
 * run exactly (ONEDNN_CARE_EXACT: loops of our own for those steps) if it was raised. What oneDNN computes
 * wrongly without raising the flag is a loop in every run.
 */
#ifndef ONEDNN_CARE_H
#define ONEDNN_CARE_H

#include "onednn/plan/plan.h"

/* Leading posts that primitives of the plan may compute; `plan->raises` is set if one of them may raise the
 * flag. */
uint32_t onednn_posts_allowed(onednn_plan_t *plan, const onednn_post_t *posts, uint32_t count);

/* May primitives of the plan compute what raises the flag? If so, `plan->raises` is set. */
bool onednn_may_raise(onednn_plan_t *plan);

/* The care that a region's attributes ask for: `strict = 0` means ONEDNN_CARE_NONE. */
onednn_care_t onednn_care_of(const cleave_region_view_t *region);

/* ---- the flag ------------------------------------------------------------------------------------- */

/* The flag "invalid" of the calling thread before a run, which gets it back after it. */
typedef struct onednn_flag {
  bool before;
} onednn_flag_t;

/* Lowers the flag of all `threads` threads. */
void onednn_flag_lower(onednn_flag_t *flag, int32_t threads);

/* Was it raised in any of them since? */
bool onednn_flag_raised(int32_t threads);

void onednn_flag_restore(const onednn_flag_t *flag);

/* OpenMP ends threads that a parallel section does not need, and their flags with them. After
 * onednn_crew_mark, onednn_crew_changed says whether all `threads` threads are still the same, and marks
 * those that are new. */
void onednn_crew_mark(int32_t threads);
bool onednn_crew_changed(int32_t threads);

#endif /* ONEDNN_CARE_H */
