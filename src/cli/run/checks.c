// SPDX-License-Identifier: Apache-2.0
// Outputs against a folder, against the unpartitioned graph, and of batches against the same request alone.
#include "cli/run/checks.h"

#include "base/memory.h"
#include "runtime/model/model.h"
#include "tools/verify/check.h"

void cleave_run_checks_free(cleave_run_checks_t *checks) {
  for (uint32_t k = 0; k < checks->count; k++) {
    cleave_text_deinit(&checks->lines[k].explanation);
  }
  cleave_free(checks->lines);
  *checks = (cleave_run_checks_t){0};
}

/* Output `index` of the run, or of an answer to a request. */
static cleave_status_t get_output(const cleave_run_t *run, int64_t answer, uint32_t index,
                                  cleave_tensor_view_t *out_view, cleave_error_t *error) {
  return cleave_run_requests_answers(&run->requests) == 0 || run->job.outputs != NULL
             ? cleave_job_output(&run->job, index, out_view, error)
             : cleave_run_requests_output(&run->requests, answer, index, out_view, error);
}

/* What the options say; by default 1e-3 and 1e-5, and for 16 bits what is usual for them. */
static cleave_check_tolerance_t tolerance_of(const cleave_run_t *run, cleave_dtype_t dtype) {
  bool is_short = dtype == CLEAVE_DTYPE_F16 || dtype == CLEAVE_DTYPE_BF16;
  cleave_check_tolerance_t tolerance =
      is_short ? cleave_check_tolerance_of(dtype)
               : (cleave_check_tolerance_t){.rtol = 1e-3, .atol = 1e-5, .scaled = true};
  tolerance.rtol = run->rtol >= 0.0 ? run->rtol : tolerance.rtol;
  tolerance.atol = run->atol >= 0.0 ? run->atol : tolerance.atol;
  return tolerance;
}

static cleave_status_t compare_answer(const cleave_run_t *run, int64_t answer,
                                      cleave_tensor_t *const *expected, cleave_run_checks_t *checks,
                                      cleave_error_t *error) {
  uint32_t count = cleave_model_output_count(run->job.model);
  checks->lines = cleave_allocate_zeroed(count, sizeof *checks->lines);
  CLEAVE_TRY_MEMORY(checks->lines, error);
  checks->matches = true;
  for (uint32_t k = 0; k < count; k++) {
    cleave_run_check_t *line = &checks->lines[k];
    cleave_port_t port = {.size = sizeof port};
    cleave_tensor_view_t actual;
    checks->count = k + 1;
    CLEAVE_TRY(cleave_model_output(run->job.model, k, &port, error));
    CLEAVE_TRY(get_output(run, answer, k, &actual, error));
    const cleave_check_tolerance_t tolerance = tolerance_of(run, expected[k]->dtype);
    CLEAVE_TRY(cleave_check_tensor(&actual, expected[k], &tolerance, &line->result, error));
    line->name = port.name;
    cleave_check_explain(port.name, &actual, expected[k], &line->result, &line->explanation);
    checks->matches = checks->matches && line->result.matches;
  }
  return CLEAVE_OK;
}

/* Does the answer belong to what the user gave, and not to another variant of it? */
static bool is_of_inputs(const cleave_run_t *run, int64_t answer) {
  return run->requests.server == NULL || answer % run->requests.variants.count == 0;
}

/* Compares all answers to requests, and reports the first whose outputs differ. */
static cleave_status_t compare_outputs(const cleave_run_t *run, cleave_tensor_t *const *expected,
                                       cleave_run_checks_t *checks, cleave_error_t *error) {
  CLEAVE_TRY(compare_answer(run, 0, expected, checks, error));
  for (int64_t k = 1; k < cleave_run_requests_answers(&run->requests) && checks->matches; k++) {
    if (is_of_inputs(run, k)) {
      cleave_run_checks_free(checks);
      CLEAVE_TRY(compare_answer(run, k, expected, checks, error));
    }
  }
  return CLEAVE_OK;
}

/* Compares what clients got in batches with what the session gives for the same request alone. */
static cleave_status_t check_batches(cleave_run_t *run, cleave_error_t *error) {
  for (int64_t k = 0; k == 0 || (k < run->requests.concurrency && run->alone.matches); k++) {
    cleave_run_checks_free(&run->alone);
    CLEAVE_TRY(
        compare_answer(run, k, cleave_run_variants_alone(&run->requests.variants, k), &run->alone, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_run_check_outputs(cleave_run_t *run, cleave_error_t *error) {
  const cleave_job_t *job = &run->job;
  uint32_t count = cleave_model_output_count(job->model);
  cleave_status_t status = CLEAVE_OK;
  cleave_tensor_t **expected = cleave_allocate_zeroed(count, sizeof *expected);
  cleave_tensor_t **reference = cleave_allocate_zeroed(count, sizeof *reference);
  CLEAVE_TRY_MEMORY_CLEANUP(expected != NULL && reference != NULL, error);
  if (run->requests.server != NULL) {
    CLEAVE_TRY_CLEANUP(check_batches(run, error));
  }
  if (run->options.data != NULL) {
    CLEAVE_TRY_CLEANUP(cleave_outputs_load(run->options.data, expected, count, error));
    CLEAVE_TRY_CLEANUP(compare_outputs(run, expected, &run->data, error));
  }
  if (run->verify) {
    CLEAVE_TRY_CLEANUP(cleave_check_reference(cleave_model_graph(job->model), job->inputs.tensors,
                                              job->inputs.count, (int32_t)run->options.threads, reference,
                                              count, error));
    CLEAVE_TRY_CLEANUP(compare_outputs(run, reference, &run->reference, error));
  }
cleanup:
  for (uint32_t k = 0; k < count; k++) {
    cleave_tensor_release(expected == NULL ? NULL : expected[k]);
    cleave_tensor_release(reference == NULL ? NULL : reference[k]);
  }
  cleave_free(expected);
  cleave_free(reference);
  return status;
}
