// SPDX-License-Identifier: Apache-2.0
// Which posts keep special values, as tests/unit/onednn/test_onednn_values.c finds them; and the flag
// "invalid" of OpenMP's threads, which live as long as sections of the same size follow each other.
#include "onednn/plan/care.h"

#include <fenv.h>
#include <omp.h>

/* How oneDNN's code for one post treats special values. */
typedef enum keeping {
  KEEPS,  /* right */
  RAISES, /* may lose NaN, and raises the flag when it does */
  LOSES   /* wrong, and nothing tells */
} keeping_t;

static keeping_t keeping_of(const onednn_post_t *post) {
  if (post->kind == ONEDNN_POST_BINARY) {
    bool picks = post->algorithm == dnnl_binary_max || post->algorithm == dnnl_binary_min;
    return picks ? RAISES : KEEPS;
  }
  if (post->kind == ONEDNN_POST_NORMALIZE || post->kind == ONEDNN_POST_QUANTIZE) {
    return KEEPS;
  }
  switch ((int)post->algorithm) {
    case dnnl_eltwise_linear:
    case dnnl_eltwise_abs:
    case dnnl_eltwise_square:
    case dnnl_eltwise_sqrt:
    case dnnl_eltwise_round:
    case dnnl_eltwise_pow: return KEEPS;
    // softplus(-20) = -1.9e-6, mish(-20) = 0.
    case dnnl_eltwise_soft_relu:
    case dnnl_eltwise_mish: return LOSES;
    default: return RAISES;
  }
}

bool onednn_may_raise(onednn_plan_t *plan) {
  plan->raises = plan->raises || plan->care == ONEDNN_CARE_FLAG;
  return plan->care != ONEDNN_CARE_EXACT;
}

uint32_t onednn_posts_allowed(onednn_plan_t *plan, const onednn_post_t *posts, uint32_t count) {
  for (uint32_t k = 0; k < count && plan->care != ONEDNN_CARE_NONE; k++) {
    keeping_t keeping = keeping_of(&posts[k]);
    if (keeping == LOSES || (keeping == RAISES && !onednn_may_raise(plan))) {
      return k;
    }
  }
  return count;
}

onednn_care_t onednn_care_of(const cleave_region_view_t *region) {
  const cleave_attribute_view_t *strict = cleave_view_region_attribute(region, "strict");
  return strict != NULL && strict->kind == CLEAVE_ATTRIBUTE_INT && strict->i == 0 ? ONEDNN_CARE_NONE
                                                                                  : ONEDNN_CARE_FLAG;
}

void onednn_flag_lower(onednn_flag_t *flag, int32_t threads) {
  flag->before = fetestexcept(FE_INVALID) != 0;
  if (threads < 2) {
    (void)feclearexcept(FE_INVALID);
    return;
  }
#pragma omp parallel num_threads(threads)
  (void)feclearexcept(FE_INVALID);
}

bool onednn_flag_raised(int32_t threads) {
  if (threads < 2) {
    return fetestexcept(FE_INVALID) != 0;
  }
  int raised = 0;
#pragma omp parallel num_threads(threads) reduction(| : raised)
  raised |= fetestexcept(FE_INVALID);
  return raised != 0;
}

void onednn_flag_restore(const onednn_flag_t *flag) {
  (void)(flag->before ? feraiseexcept(FE_INVALID) : feclearexcept(FE_INVALID));
}

static _Thread_local bool marked;

void onednn_crew_mark(int32_t threads) {
#pragma omp parallel num_threads(threads)
  marked = true;
}

bool onednn_crew_changed(int32_t threads) {
  int fresh = 0;
#pragma omp parallel num_threads(threads) reduction(| : fresh)
  {
    fresh |= marked ? 0 : 1;
    marked = true;
  }
  return fresh != 0;
}
