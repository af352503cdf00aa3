// SPDX-License-Identifier: Apache-2.0
// Stage by stage, each timed. A failed stage leaves what is there for cleave_job_deinit.
#include "cli/job.h"

#include <sys/resource.h>

#include "base/clock.h"
#include "runtime/model.h"

cleave_status_t cleave_job_load(cleave_job_t *job, const cleave_job_options_t *options,
                                cleave_error_t *error) {
  *job = (cleave_job_t){.options = options};
  CLEAVE_TRY(cleave_settings_read(&options->settings, &job->settings, error));
  job->script_used = cleave_allocate_zeroed(job->settings.count, sizeof *job->script_used);
  if (job->script_used == NULL) {
    return cleave_error_out_of_memory(error);
  }
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_model_load_with(options->model, job->settings.items, job->settings.count, 0,
                                    job->script_used, &job->model, error));
  job->load_ms = cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

cleave_status_t cleave_job_check_settings(const cleave_job_t *job, cleave_error_t *error) {
  for (size_t k = 0; k < job->settings.count; k++) {
    if (!job->script_used[k]) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "setting '%s': the model has no option of this name",
                              job->settings.items[k].name);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t bind(cleave_job_t *job, cleave_error_t *error) {
  cleave_model_t *bound = NULL;
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_model_bind(job->model, job->inputs.pointers, job->inputs.count, &bound, error));
  job->bind_ms = cleave_clock_ms(start, cleave_clock_now());
  cleave_model_release(job->model);
  job->model = bound;
  return CLEAVE_OK;
}

cleave_status_t cleave_job_bind(cleave_job_t *job, cleave_error_t *error) {
  cleave_input_request_t request = {.files = &job->options->files,
                                    .shapes = &job->options->shapes,
                                    .folder = job->options->data,
                                    .seed = (uint64_t)job->options->seed};
  CLEAVE_TRY(cleave_inputs_load(job->model, &request, &job->inputs, error));
  return bind(job, error);
}

cleave_status_t cleave_job_bind_shapes(cleave_job_t *job, cleave_error_t *error) {
  if (job->options->shapes.count == 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_inputs_describe(job->model, &job->options->shapes, &job->inputs, error));
  return bind(job, error);
}

/* The rule files as sources; the caller frees them. */
static cleave_status_t list_sources(const cleave_job_options_t *options, cleave_rule_source_t **out_sources,
                                    cleave_error_t *error) {
  *out_sources = cleave_allocate_zeroed(options->rules.count, sizeof **out_sources);
  for (size_t k = 0; *out_sources != NULL && k < options->rules.count; k++) {
    (*out_sources)[k].path = options->rules.items[k];
  }
  return *out_sources == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

cleave_status_t cleave_job_load_rules(const cleave_job_t *job, cleave_rule_list_t *out_list,
                                      cleave_error_t *error) {
  const cleave_job_options_t *options = job->options;
  cleave_rule_source_t *sources = NULL;
  *out_list = (cleave_rule_list_t){0};
  CLEAVE_TRY(list_sources(options, &sources, error));
  cleave_status_t status =
      cleave_rule_list_load(out_list, sources, options->rules.count, job->settings.items, job->settings.count,
                            job->script_used, options->backend, error);
  cleave_free(sources);
  return status;
}

cleave_status_t cleave_job_partition(cleave_job_t *job, cleave_error_t *error) {
  const cleave_job_options_t *options = job->options;
  size_t count = options->rules.count;
  cleave_rule_source_t *sources = NULL;
  CLEAVE_TRY(list_sources(options, &sources, error));
  uint64_t start = cleave_clock_now();
  cleave_status_t status = cleave_graph_partition(cleave_model_graph(job->model), sources, count,
                                                  job->settings.items, job->settings.count, job->script_used,
                                                  options->backend, &job->plan, &job->rules_ms, error);
  job->partition_ms = cleave_clock_ms(start, cleave_clock_now()) - job->rules_ms;
  cleave_free(sources);
  return status;
}

cleave_status_t cleave_job_compile(cleave_job_t *job, cleave_error_t *error) {
  cleave_session_options_t options = {
      .size = sizeof options,
      .threads = (int32_t)(job->options->threads > INT32_MAX ? INT32_MAX : job->options->threads),
      .profile = job->options->profile};
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_session_create(job->model, job->plan, job->inputs.pointers, job->inputs.count, &options,
                                   &job->session, error));
  job->compile_ms = cleave_clock_ms(start, cleave_clock_now());
  for (uint32_t k = 0; k < job->inputs.count; k++) {
    CLEAVE_TRY(cleave_session_set_input(job->session, k, &job->inputs.views[k], error));
  }
  return CLEAVE_OK;
}

void cleave_job_deinit(cleave_job_t *job) {
  cleave_session_destroy(job->session);
  cleave_plan_destroy(job->plan);
  cleave_inputs_deinit(&job->inputs);
  cleave_model_release(job->model);
  cleave_free(job->script_used);
  cleave_settings_deinit(&job->settings);
}

double cleave_job_peak_rss(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024.0 : 0.0;
}
