// SPDX-License-Identifier: Apache-2.0
// Stage by stage, each timed. A failed stage leaves what is there for cleave_job_deinit.
#include "cli/common/job.h"

#include <stdio.h>
#include <string.h>

#include "backend/region/view.h"
#include "base/memory.h"
#include "cleave/cleave.h"
#include "cli/common/arguments.h"
#include "cli/common/common.h"
#include "cli/common/load.h"
#include "partition/plan/plan_read.h"
#include "runtime/model/model.h"
#include "runtime/plans/kept_plan.h"
#include "runtime/plans/plan_load.h"
#include "system/clock.h"
#include "system/file.h"

/* ---- constants ---- */

/* All constants of a command line are set at once: the structure is judged with all of them in place. */
typedef struct constants {
  size_t count;
  char **names;
  cleave_tensor_t **tensors;
  cleave_tensor_view_t *views;
  const cleave_tensor_view_t **pointers;
} constants_t;

static cleave_status_t load_one(const char *text, char **out_name, cleave_tensor_t **out_tensor,
                                cleave_error_t *error) {
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "--set-constant: expected NAME=FILE, found '%s'", text);
  }
  *out_name = cleave_copy_text(text, (size_t)(equals - text));
  return *out_name == NULL ? cleave_error_out_of_memory(error)
                           : cleave_tensor_load(equals + 1, out_tensor, error);
}

static cleave_status_t load_all(const cleave_text_list_t *list, constants_t *constants,
                                cleave_error_t *error) {
  constants->count = list->count;
  constants->names = cleave_allocate_zeroed(list->count, sizeof *constants->names);
  constants->tensors = cleave_allocate_zeroed(list->count, sizeof *constants->tensors);
  constants->views = cleave_allocate_zeroed(list->count, sizeof *constants->views);
  constants->pointers = cleave_allocate_zeroed(list->count, sizeof *constants->pointers);
  CLEAVE_TRY_MEMORY(constants->names != NULL && constants->tensors != NULL && constants->views != NULL &&
                        constants->pointers != NULL,
                    error);
  for (size_t k = 0; k < list->count; k++) {
    CLEAVE_TRY(load_one(list->items[k], &constants->names[k], &constants->tensors[k], error));
    constants->views[k] = cleave_tensor_view(constants->tensors[k]);
    constants->pointers[k] = &constants->views[k];
  }
  return CLEAVE_OK;
}

static void deinit(constants_t *constants) {
  for (size_t k = 0; k < constants->count; k++) {
    if (constants->names != NULL) {
      cleave_free(constants->names[k]);
    }
    if (constants->tensors != NULL) {
      cleave_tensor_release(constants->tensors[k]);
    }
  }
  cleave_free((void *)constants->names);
  cleave_free((void *)constants->tensors);
  cleave_free(constants->views);
  cleave_free((void *)constants->pointers);
}

/* The model with tensors from files (.npy or .pb) in the place of its constants; takes the place of *model,
 * which is released. Names go up to the first '='. */
static cleave_status_t constants_set(const cleave_text_list_t *list, cleave_model_t **model,
                                     cleave_error_t *error) {
  constants_t constants = {0};
  cleave_model_t *changed = NULL;
  if (list->count == 0) {
    return CLEAVE_OK;
  }
  cleave_status_t status = load_all(list, &constants, error);
  CLEAVE_THEN(status, cleave_model_set_constants(*model, (const char *const *)constants.names,
                                                 constants.pointers, constants.count, &changed, error));
  deinit(&constants);
  CLEAVE_TRY(status);
  cleave_model_release(*model);
  *model = changed;
  return CLEAVE_OK;
}

cleave_status_t cleave_job_load(cleave_job_t *job, const cleave_job_options_t *options,
                                cleave_error_t *error) {
  *job = (cleave_job_t){.options = options};
  CLEAVE_TRY(cleave_settings_read(&options->settings, &job->settings, error));
  uint64_t start = cleave_clock_now();
  job->settings.seed = (uint64_t)options->script_seed;
  CLEAVE_TRY(cleave_model_read(options->model, &job->settings, &options->shapes, &options->files,
                               options->data, &job->model, error));
  if (options->plan == NULL) { /* otherwise later: the plan is of the model as it is in its file */
    CLEAVE_TRY(constants_set(&options->constants, &job->model, error));
  }
  if (options->ranges != NULL) {
    CLEAVE_TRY(cleave_model_read_ranges(job->model, options->ranges, error));
  }
  job->load_ms = cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

cleave_status_t cleave_job_check_settings(const cleave_job_t *job, cleave_error_t *error) {
  for (size_t k = 0; k < job->settings.count; k++) {
    if (!job->settings.used[k]) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "setting '%s': the model has no option of this name",
                              job->settings.items[k].name);
    }
  }
  return CLEAVE_OK;
}

/* Why the model cannot have the sizes, with the sizes: some may be taken for what nobody gave. */
static cleave_status_t fail_bind(const cleave_job_t *job, const cleave_error_t *reason,
                                 cleave_error_t *error) {
  cleave_text_t sizes = {0};
  cleave_sizes_print(&job->inputs.sizes, &sizes);
  cleave_status_t status = sizes.length == 0 ? cleave_error_take(error, reason)
                                             : cleave_error_set(error, reason->status, "%s (sizes: %s)",
                                                                reason->message, cleave_text_get(&sizes));
  cleave_text_deinit(&sizes);
  return status;
}

static cleave_status_t bind(cleave_job_t *job, cleave_error_t *error) {
  cleave_model_t *bound = NULL;
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  uint64_t start = cleave_clock_now();
  if (cleave_model_bind(job->model, job->inputs.pointers, job->inputs.count, &bound, &reason) != CLEAVE_OK) {
    return fail_bind(job, &reason, error);
  }
  job->bind_ms = cleave_clock_ms(start, cleave_clock_now());
  cleave_model_release(job->model);
  job->model = bound;
  return CLEAVE_OK;
}

/* ---- saved plans ---- */

/* The saved plan that was asked for; without rules and backend, the one that an exported model brings. */
static cleave_status_t read_plan(cleave_job_t *job, cleave_error_t *error) {
  const cleave_job_options_t *options = job->options;
  bool is_own = options->plan == NULL && options->rules.count == 0 && options->backend == NULL &&
                options->shapes.count == 0 && options->constants.count == 0 &&
                cleave_path_has_extension(options->model, ".onnx");
  return options->plan == NULL && !is_own
             ? CLEAVE_OK
             : cleave_plan_document_open(is_own ? options->model : options->plan,
                                         cleave_model_graph(job->model), !is_own, &job->document, error);
}

/* ---- stages ---- */

/* Rules, and saved plans, may add inputs: whoever uses the request then looks at all of its names. */
static cleave_input_request_t request_of(const cleave_job_t *job) {
  return (cleave_input_request_t){.files = &job->options->files,
                                  .shapes = &job->options->shapes,
                                  .document = job->document,
                                  .folder = job->options->data,
                                  .seed = (uint64_t)job->options->seed,
                                  .may_be_added = job->options->rules.count > 0 || job->document != NULL};
}

cleave_status_t cleave_job_bind(cleave_job_t *job, cleave_error_t *error) {
  bool is_bound = false; /* by the session alone: the plan is about the model as it was loaded */
  CLEAVE_TRY(read_plan(job, error));
  if (job->document != NULL) {
    is_bound = cleave_plan_document_match(job->document, cleave_model_graph(job->model), NULL) == CLEAVE_OK;
  }
  cleave_input_request_t request = request_of(job);
  CLEAVE_TRY(cleave_inputs_load(job->model, &request, &job->inputs, error));
  return is_bound ? CLEAVE_OK : bind(job, error);
}

static cleave_status_t bind_shapes(cleave_job_t *job, bool leaves_open, cleave_error_t *error) {
  cleave_model_t *bound = NULL;
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_size_request_t request = {.shapes = &job->options->shapes,
                                   .document = job->document,
                                   .may_be_added = job->options->rules.count > 0,
                                   .leaves_open = leaves_open};
  CLEAVE_TRY(cleave_sizes_find(cleave_model_graph(job->model), &request, &job->inputs.sizes, error));
  const cleave_sizes_t *sizes = &job->inputs.sizes;
  bool is_about_open =
      job->document != NULL &&
      cleave_plan_document_match(job->document, cleave_model_graph(job->model), NULL) == CLEAVE_OK;
  if (!sizes->closes || is_about_open) {
    return CLEAVE_OK;
  }
  uint64_t start = cleave_clock_now();
  if (cleave_model_bind_partly(job->model, sizes->pointers, sizes->input_count, &bound, &reason) !=
      CLEAVE_OK) {
    return fail_bind(job, &reason, error);
  }
  job->bind_ms = cleave_clock_ms(start, cleave_clock_now());
  cleave_model_release(job->model);
  job->model = bound;
  return CLEAVE_OK;
}

cleave_status_t cleave_job_bind_shapes(cleave_job_t *job, cleave_error_t *error) {
  CLEAVE_TRY(read_plan(job, error));
  return bind_shapes(job, false, error);
}

cleave_status_t cleave_job_bind_open(cleave_job_t *job, cleave_error_t *error) {
  cleave_sizes_deinit(&job->inputs.sizes);
  return bind_shapes(job, true, error);
}

cleave_status_t cleave_job_request(const cleave_job_t *job, cleave_partition_request_t *out_request,
                                   cleave_error_t *error) {
  CLEAVE_TRY(cleave_rule_request(&job->options->rules, &job->settings, out_request, error));
  out_request->backend = job->options->backend;
  return CLEAVE_OK;
}

cleave_status_t cleave_job_load_rules(const cleave_job_t *job, cleave_rule_list_t *out_list,
                                      cleave_error_t *error) {
  cleave_partition_request_t request;
  cleave_rule_list_options_t options = {.known = job->settings.used};
  *out_list = (cleave_rule_list_t){0};
  CLEAVE_TRY(cleave_job_request(job, &request, error));
  cleave_status_t status =
      cleave_rule_list_load(out_list, cleave_common_context(), &request, &options, error);
  cleave_rule_request_deinit(&request);
  return status;
}

/* Names of --shape that the model does not have must be those of inputs that rules added. */
static cleave_status_t check_shapes(const cleave_job_t *job, cleave_error_t *error) {
  cleave_sizes_t sizes = {0};
  cleave_size_request_t request = {.shapes = &job->options->shapes, .known = &job->inputs.sizes};
  cleave_status_t status = cleave_sizes_find(job->plan->graph, &request, &sizes, error);
  cleave_sizes_deinit(&sizes);
  return status;
}

/* The model and its plan with the constants that are given. */
static cleave_status_t change_constants(cleave_job_t *job, cleave_error_t *error) {
  cleave_model_t *model = cleave_model_retain(job->model);
  cleave_plan_t *plan = NULL;
  cleave_status_t status = constants_set(&job->options->constants, &model, error);
  CLEAVE_THEN(status, cleave_plan_rebase(job->plan, model, &plan, error));
  CLEAVE_TRY_OR(status, cleave_model_release(model));
  cleave_plan_destroy(job->plan);
  job->plan = plan;
  cleave_model_release(job->model);
  job->model = model;
  return CLEAVE_OK;
}

static cleave_status_t take_up_plan(cleave_job_t *job, cleave_error_t *error) {
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_plan_load_for(job->document, job->model, job->options->fallback, &job->plan, error));
  if (job->options->constants.count > 0) {
    CLEAVE_TRY(change_constants(job, error));
  }
  job->partition_ms = cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

bool cleave_job_has_rules(const cleave_job_options_t *options) {
  return options->rules.count > 0 || cleave_path_has_extension(options->model, ".json");
}

cleave_status_t cleave_job_partition(cleave_job_t *job, cleave_error_t *error) {
  const cleave_job_options_t *options = job->options;
  if (job->document != NULL) {
    return take_up_plan(job, error);
  }
  cleave_partition_request_t request;
  cleave_rule_list_options_t list_options = {.known = job->settings.used, .listener = job->listener};
  uint64_t start = cleave_clock_now();
  if (options->rules.count == 0 && cleave_model_is_region(job->model)) {
    CLEAVE_TRY(cleave_model_plan_region(job->model, options->backend, NULL, &job->plan, error));
    job->partition_ms = cleave_clock_ms(start, cleave_clock_now());
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_job_request(job, &request, error));
  const cleave_session_options_t session = cleave_common_session();
  cleave_plan_keeping_t keeping = {.limit = session.blob_limit};
  // The constants of a script are made anew each time: reading them all would cost what is saved.
  if (options->keeps_plans && cleave_path_has_extension(options->model, ".onnx")) {
    keeping.folder = session.blob_folder;
  }
  cleave_status_t status = cleave_graph_partition_kept(
      cleave_model_graph(job->model), &request, &list_options, &keeping, &job->plan, &job->rules_ms, error);
  job->plan_was_kept = keeping.was_kept;
  job->partition_ms = cleave_clock_ms(start, cleave_clock_now()) - job->rules_ms;
  cleave_rule_request_deinit(&request);
  return status == CLEAVE_OK ? check_shapes(job, error) : status;
}

cleave_session_options_t cleave_job_session_options(const cleave_job_t *job) {
  cleave_session_options_t options = cleave_common_session();
  options.threads = (int32_t)(job->options->threads > INT32_MAX ? INT32_MAX : job->options->threads);
  options.profile = job->options->profile;
  options.programs = job->programs;
  options.imperative = job->options->imperative;
  options.workers = (int32_t)job->options->workers;
  options.strict = job->options->plan != NULL && !job->options->fallback;
  return options;
}

cleave_status_t cleave_job_output(const cleave_job_t *job, uint32_t index, cleave_tensor_view_t *out_view,
                                  cleave_error_t *error) {
  if (job->outputs == NULL) {
    return cleave_session_output(job->session, index, out_view, error);
  }
  *out_view = job->outputs[index];
  return CLEAVE_OK;
}

cleave_status_t cleave_job_add_session(const cleave_job_t *job, int64_t threads,
                                       cleave_session_t **out_session, cleave_error_t *error) {
  cleave_session_options_t options = cleave_job_session_options(job);
  options.threads = (int32_t)(threads > INT32_MAX ? INT32_MAX : threads);
  const cleave_inputs_t *inputs = job->plan != NULL ? &job->plan_inputs : &job->inputs;
  CLEAVE_TRY(cleave_session_create(job->model, job->plan, inputs->pointers, inputs->count, &options,
                                   out_session, error));
  for (uint32_t k = 0; k < inputs->count; k++) {
    CLEAVE_TRY(cleave_session_set_input(*out_session, k, &inputs->views[k], error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_job_load_inputs(cleave_job_t *job, cleave_error_t *error) {
  if (job->plan == NULL) {
    return CLEAVE_OK;
  }
  cleave_input_request_t request = request_of(job);
  cleave_inputs_deinit(&job->plan_inputs);
  return cleave_inputs_load_added(job->plan, &request, &job->inputs, &job->plan_inputs, error);
}

cleave_status_t cleave_job_compile(cleave_job_t *job, cleave_error_t *error) {
  CLEAVE_TRY(cleave_job_load_inputs(job, error));
  uint64_t start = cleave_clock_now();
  cleave_common_progress(true);
  cleave_status_t status = cleave_job_add_session(job, job->options->threads, &job->session, error);
  cleave_common_progress(false);
  CLEAVE_TRY(status);
  cleave_memory_trim();
  job->compile_ms = cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

void cleave_job_deinit(cleave_job_t *job) {
  cleave_session_destroy(job->session);
  cleave_program_cache_release(job->programs);
  cleave_plan_destroy(job->plan);
  cleave_plan_document_destroy(job->document);
  cleave_inputs_deinit(&job->inputs);
  cleave_inputs_deinit(&job->plan_inputs);
  cleave_model_release(job->model);
  cleave_settings_deinit(&job->settings);
}
