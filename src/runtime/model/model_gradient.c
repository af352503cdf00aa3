// SPDX-License-Identifier: Apache-2.0
// Models with their gradients: the graph before anything was folded, since that has the constants of the
// file, with the backward graph that rules built beside it; then a model like any other.
#include "runtime/model/model_gradient.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/clone.h"
#include "ops/infer.h"
#include "partition/gradient/gradient.h"
#include "runtime/model/model_internal.h"

/* The rules that come with cleave; those of the caller take their place where both have one. */
static const char SHIPPED[] = "lua/cleave/gradients/all.lua";

enum { NAME_SIZE = 1100 };

typedef struct job {
  cleave_graph_t *graph; /* owned, until it becomes the model's */
  cleave_rules_t *shipped;
  CLEAVE_ARRAY(const cleave_gradient_rule_t *) rules;
  CLEAVE_ARRAY(cleave_value_t) wrt;
  cleave_value_t *gradients;
  bool is_default; /* the caller named none of `wrt` */
} job_t;

// ---- rules ----

static cleave_status_t collect(job_t *job, const cleave_ruleset_t *rulesets, uint32_t count,
                               cleave_error_t *error) {
  for (uint32_t s = 0; s < count; s++) {
    for (uint32_t k = 0; k < rulesets[s].gradient_count; k++) {
      CLEAVE_ARRAY_PUSH(&job->rules, &rulesets[s].gradients[k], error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t load_rules(job_t *job, cleave_context_t *context, const cleave_rule_list_t *list,
                                  cleave_error_t *error) {
  uint32_t count = 0;
  CLEAVE_TRY(cleave_rules_load_embedded(context, SHIPPED, &job->shipped, error));
  const cleave_ruleset_t *rulesets = cleave_rules_rulesets(job->shipped, &count);
  CLEAVE_TRY(collect(job, rulesets, count, error));
  return list == NULL ? CLEAVE_OK : collect(job, list->rulesets, list->count, error);
}

// ---- names ----

static bool is_parameter(const cleave_value_record_t *record) {
  return record->tensor != NULL && !record->is_removed && record->name != CLEAVE_STRING_EMPTY.index &&
         record->rank > 0 && cleave_dtype_is_float((cleave_dtype_t)record->dtype);
}

static cleave_status_t fail_name(const cleave_graph_t *graph, const char *what, const char *name,
                                 cleave_error_t *error) {
  cleave_nearest_t nearest = {0};
  char hint[160];
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    if (!graph->values.items[k].is_removed) {
      cleave_nearest_offer(&nearest, name, cleave_value_name(graph, (cleave_value_t){k}));
    }
  }
  for (size_t k = 0; k < graph->outputs.count; k++) {
    cleave_nearest_offer(&nearest, name, cleave_strings_text(&graph->strings, graph->output_names.items[k]));
  }
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                          "%s '%.100s': the model has no value of this name%s", what, name,
                          cleave_nearest_hint(&nearest, hint, sizeof hint));
}

/* An output of the graph by its name, or any value by its own. */
static cleave_status_t find_value(const cleave_graph_t *graph, const char *what, const char *name,
                                  cleave_value_t *out_value, cleave_error_t *error) {
  *out_value = CLEAVE_VALUE_NONE;
  for (size_t k = 0; k < graph->outputs.count; k++) {
    if (strcmp(cleave_strings_text(&graph->strings, graph->output_names.items[k]), name) == 0) {
      *out_value = cleave_graph_output(graph, k);
    }
  }
  cleave_string_t string = cleave_strings_find(&graph->strings, name, strlen(name));
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph) && !cleave_value_exists(*out_value); k++) {
    const cleave_value_record_t *record = &graph->values.items[k];
    if (!record->is_removed && record->name == string.index && name[0] != '\0') {
      *out_value = (cleave_value_t){k};
    }
  }
  if (!cleave_value_exists(*out_value)) {
    return fail_name(graph, what, name, error);
  }
  cleave_dtype_t dtype = (cleave_dtype_t)cleave_graph_value(graph, *out_value)->dtype;
  if (!cleave_dtype_is_float(dtype)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "%s '%.100s': expected floating-point numbers, found %s", what, name,
                            cleave_dtype_name(dtype));
  }
  return CLEAVE_OK;
}

/* What is differentiated by: the values of those names, or all parameters. */
static cleave_status_t find_wrt(job_t *job, const char *const *names, size_t count, cleave_error_t *error) {
  const cleave_graph_t *graph = job->graph;
  job->is_default = count == 0;
  for (size_t k = 0; k < count; k++) {
    cleave_value_t value = CLEAVE_VALUE_NONE;
    CLEAVE_TRY(find_value(graph, "wrt", names[k], &value, error));
    for (size_t other = 0; other < job->wrt.count; other++) {
      if (job->wrt.items[other].index == value.index) {
        return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "wrt '%.100s' is given twice",
                                names[k]);
      }
    }
    CLEAVE_ARRAY_PUSH(&job->wrt, value, error);
  }
  for (uint32_t k = 0; count == 0 && k < cleave_graph_value_bound(graph); k++) {
    if (is_parameter(&graph->values.items[k])) {
      CLEAVE_ARRAY_PUSH(&job->wrt, (cleave_value_t){k}, error);
    }
  }
  return CLEAVE_OK;
}

// ---- the graph ----

static cleave_status_t add_outputs(job_t *job, const char *loss, const char *const *names,
                                   cleave_error_t *error) {
  size_t added = 0;
  for (size_t k = 0; k < job->wrt.count; k++) {
    char name[NAME_SIZE];
    const char *of = job->is_default ? cleave_value_name(job->graph, job->wrt.items[k]) : names[k];
    if (!cleave_value_exists(job->gradients[k])) {
      if (job->is_default) {
        continue;
      }
      return cleave_error_set(
          error, CLEAVE_ERROR_INVALID_ARGUMENT,
          "wrt '%.100s': the loss '%.100s' does not depend on it, or not through floating-point "
          "values and operators that carry a gradient",
          of, loss);
    }
    (void)snprintf(name, sizeof name, "grad(%.1024s)", of);
    CLEAVE_TRY(cleave_graph_add_output(job->graph, name, job->gradients[k], error));
    added++;
  }
  if (added == 0) {
    return cleave_error_set(
        error, CLEAVE_ERROR_INVALID_ARGUMENT,
        "loss '%.100s': it depends on no floating-point constant of the model with one or more "
        "dimensions: name what to differentiate by",
        loss);
  }
  return CLEAVE_OK;
}

static cleave_status_t build(job_t *job, cleave_value_t loss, cleave_error_t *error) {
  cleave_gradient_rules_t rules = {.items = job->rules.items, .count = job->rules.count};
  cleave_gradient_request_t request = {
      .rules = &rules, .loss = loss, .wrt = job->wrt.items, .wrt_count = job->wrt.count};
  cleave_editor_t editor;
  job->gradients = cleave_allocate_zeroed(job->wrt.count + 1, sizeof *job->gradients);
  if (job->gradients == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_editor_init(&editor, job->graph, NULL);
  cleave_status_t status = cleave_gradient_build(&editor, &request, job->gradients, error);
  cleave_editor_deinit(&editor);
  return status;
}

static void job_deinit(job_t *job) {
  cleave_graph_destroy(job->graph);
  cleave_rules_destroy(job->shipped);
  cleave_array_free(&job->rules);
  cleave_array_free(&job->wrt);
  cleave_free(job->gradients);
}

/* Of a model that is not bound. */
static cleave_status_t make_model(cleave_model_t *model, const char *loss_name, const char *const *wrt,
                                  size_t wrt_count, const cleave_rule_list_t *list,
                                  cleave_model_t **out_model, cleave_error_t *error) {
  job_t job = {0};
  cleave_value_t loss = CLEAVE_VALUE_NONE;
  cleave_infer_options_t infer = {.fold = true};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(
      cleave_graph_copy(model->unfolded != NULL ? model->unfolded : model->graph, &job.graph, error));
  job.graph->context = model->context;
  CLEAVE_TRY_CLEANUP(cleave_graph_infer(job.graph, &infer, NULL, error));
  CLEAVE_TRY_CLEANUP(find_value(job.graph, "loss", loss_name, &loss, error));
  CLEAVE_TRY_CLEANUP(find_wrt(&job, wrt, wrt_count, error));
  CLEAVE_TRY_CLEANUP(load_rules(&job, model->context, list, error));
  CLEAVE_TRY_CLEANUP(build(&job, loss, error));
  CLEAVE_TRY_CLEANUP(add_outputs(&job, loss_name, wrt, error));
  cleave_graph_t *graph = job.graph;
  job.graph = NULL;
  status = cleave_model_create_sharing_take(graph, model, out_model, error);
cleanup:
  job_deinit(&job);
  return status;
}

cleave_status_t cleave_model_gradient_by(cleave_model_t *model, const char *loss, const char *const *wrt,
                                         size_t wrt_count, const cleave_rule_list_t *list,
                                         cleave_model_t **out_model, cleave_error_t *error) {
  *out_model = NULL;
  if (model->origin == NULL) {
    return make_model(model, loss, wrt, wrt_count, list, out_model, error);
  }
  cleave_model_t *open = NULL;
  CLEAVE_TRY(cleave_model_gradient_by(model->origin, loss, wrt, wrt_count, list, &open, error));
  cleave_status_t status = cleave_model_bind(open, model->bound_inputs, model->bound_count, out_model, error);
  cleave_model_release(open);
  return status;
}

cleave_status_t cleave_model_gradient(cleave_model_t *model, const char *loss, const char *const *wrt,
                                      size_t wrt_count, const cleave_gradient_options_t *options,
                                      cleave_model_t **out_model, cleave_error_t *error) {
  *out_model = NULL;
  if (options == NULL || options->source_count == 0) {
    return cleave_model_gradient_by(model, loss, wrt, wrt_count, NULL, out_model, error);
  }
  cleave_rule_list_t list = {0};
  cleave_status_t status =
      cleave_rule_list_load(&list, model->context, options->sources, options->source_count, options->settings,
                            options->setting_count, NULL, NULL, error);
  if (status == CLEAVE_OK) {
    status = cleave_model_gradient_by(model, loss, wrt, wrt_count, &list, out_model, error);
  }
  cleave_rule_list_deinit(&list);
  return status;
}
