// SPDX-License-Identifier: Apache-2.0
// The first variant is what the user gave, or what was drawn; the others have random floats like those.
#include "cli/run/report.h"

#include "base/hash.h"
#include "tools/verify/check.h"
#include "tools/verify/draw.h"

static cleave_status_t draw_inputs(cleave_run_variants_t *variants, const cleave_job_t *job,
                                   cleave_error_t *error) {
  size_t count = variants->input_count;
  size_t all = (size_t)variants->count * count;
  variants->inputs = cleave_allocate_zeroed(all + 1, sizeof *variants->inputs);
  variants->views = cleave_allocate_zeroed(all + 1, sizeof *variants->views);
  variants->pointers = cleave_allocate_zeroed(all + 1, sizeof *variants->pointers);
  CLEAVE_TRY_MEMORY(variants->inputs != NULL && variants->views != NULL && variants->pointers != NULL, error);
  for (size_t k = 0; k < all; k++) {
    cleave_tensor_t *own = job->inputs.tensors[k % count];
    uint64_t seed = cleave_hash_combine((uint64_t)job->options->seed, k);
    if (k < count) {
      variants->inputs[k] = cleave_tensor_retain(own);
    } else {
      CLEAVE_TRY(cleave_draw_like(own, seed, 1.0, false, &variants->inputs[k], error));
    }
    variants->views[k] = cleave_tensor_view(variants->inputs[k]);
    variants->pointers[k] = &variants->views[k];
  }
  return CLEAVE_OK;
}

/* The job's session has the first variant's inputs and outputs in the end. */
static cleave_status_t run_alone(cleave_run_variants_t *variants, const cleave_job_t *job,
                                 cleave_error_t *error) {
  size_t outputs = (size_t)variants->count * variants->output_count;
  variants->alone = cleave_allocate_zeroed(outputs + 1, sizeof *variants->alone);
  CLEAVE_TRY_MEMORY(variants->alone, error);
  for (int64_t v = variants->count; v-- > 0;) {
    for (size_t k = 0; k < variants->input_count; k++) {
      const cleave_tensor_view_t *input = &variants->views[(size_t)v * variants->input_count + k];
      CLEAVE_TRY(cleave_session_set_input(job->session, (uint32_t)k, input, error));
    }
    CLEAVE_TRY(cleave_session_run(job->session, error));
    for (uint32_t k = 0; k < variants->output_count; k++) {
      cleave_tensor_view_t view;
      CLEAVE_TRY(cleave_session_output(job->session, k, &view, error));
      CLEAVE_TRY(cleave_check_copy(&view, &variants->alone[(size_t)v * variants->output_count + k], error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_run_variants_make(cleave_run_variants_t *variants, const cleave_job_t *job,
                                         int64_t clients, cleave_error_t *error) {
  *variants =
      (cleave_run_variants_t){.count = clients < CLEAVE_RUN_MAX_VARIANTS ? clients : CLEAVE_RUN_MAX_VARIANTS,
                              .input_count = job->inputs.count,
                              .output_count = cleave_model_output_count(job->model)};
  CLEAVE_TRY(draw_inputs(variants, job, error));
  return run_alone(variants, job, error);
}

const cleave_tensor_view_t *const *cleave_run_variants_inputs(const cleave_run_variants_t *variants,
                                                              int64_t client) {
  return variants->pointers + (size_t)(client % variants->count) * variants->input_count;
}

cleave_tensor_t *const *cleave_run_variants_alone(const cleave_run_variants_t *variants, int64_t client) {
  return variants->alone + (size_t)(client % variants->count) * variants->output_count;
}

void cleave_run_variants_deinit(cleave_run_variants_t *variants) {
  for (size_t k = 0; variants->inputs != NULL && k < (size_t)variants->count * variants->input_count; k++) {
    cleave_tensor_release(variants->inputs[k]);
  }
  for (size_t k = 0; variants->alone != NULL && k < (size_t)variants->count * variants->output_count; k++) {
    cleave_tensor_release(variants->alone[k]);
  }
  cleave_free((void *)variants->inputs);
  cleave_free(variants->views);
  cleave_free((void *)variants->pointers);
  cleave_free((void *)variants->alone);
}
