// SPDX-License-Identifier: Apache-2.0
// Models with their gradients: the graph before anything was folded, since that has the constants of the
// file, with the backward graph that rules built beside it; then a model like any other.
#include "runtime/model/model_gradient.h"

#include <stdio.h>
#include <string.h>

#include "backend/program/backward.h"
#include "base/sized.h"
#include "base/text.h"
#include "graph/clone.h"
#include "ops/infer.h"
#include "partition/gradient/recompute.h"
#include "runtime/model/bind.h"
#include "runtime/model/gradient_rules.h"
#include "runtime/model/model_internal.h"

enum { NAME_SIZE = 1100 };

typedef struct job {
  cleave_graph_t *graph; /* owned, until it becomes the model's */
  cleave_gradient_set_t set;
  CLEAVE_ARRAY(cleave_value_t) wrt;
  cleave_value_t *gradients;
  bool is_default; /* the caller named none of `wrt` */
  bool partial;    /* as in the order */
  cleave_backward_t backward;
} job_t;

// ---- names ----

static bool is_parameter(const cleave_value_record_t *record) {
  return record->tensor != NULL && !record->is_removed && record->name != CLEAVE_STRING_EMPTY.index &&
         record->rank > 0 && cleave_dtype_is_float((cleave_dtype_t)record->dtype);
}

static cleave_status_t fail_name(const cleave_graph_t *graph, const char *what, const char *name,
                                 cleave_error_t *error) {
  cleave_nearest_t nearest = {0};
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
                          cleave_nearest_hint(&nearest));
}

cleave_status_t cleave_gradient_find_value(const cleave_graph_t *graph, const char *what, const char *name,
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

/* Finds the values to differentiate by: those with the given names, or all parameters. */
static cleave_status_t find_wrt(job_t *job, const char *const *names, size_t count, cleave_error_t *error) {
  const cleave_graph_t *graph = job->graph;
  job->is_default = count == 0;
  for (size_t k = 0; k < count; k++) {
    cleave_value_t value = CLEAVE_VALUE_NONE;
    CLEAVE_TRY(cleave_gradient_find_value(graph, "wrt", names[k], &value, error));
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
      if (job->is_default || job->partial) {
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
  if (added == 0 && !job->partial) {
    return cleave_error_set(
        error, CLEAVE_ERROR_INVALID_ARGUMENT,
        "loss '%.100s': it depends on no floating-point constant of the model with one or more "
        "dimensions: name the values to differentiate by",
        loss);
  }
  return CLEAVE_OK;
}

/* The regions of the list, if some backend has gradients of its own. Rules that change graphs do not run. */
static cleave_status_t find_regions(job_t *job, const cleave_rule_list_t *list, cleave_error_t *error) {
  bool any = false;
  for (uint32_t k = 0; list != NULL && k < list->count; k++) {
    bool has = false;
    if (list->rulesets[k].rule_count > 0) {
      CLEAVE_TRY(cleave_backward_has(&job->backward, job->graph, list->rulesets[k].backend, &has, error));
    }
    any = any || has;
  }
  if (!any) {
    return CLEAVE_OK;
  }
  cleave_supports_t supports;
  cleave_plan_t *plan = NULL;
  cleave_supports_init(&supports, job->graph);
  cleave_partition_options_t options = cleave_rule_list_ask(list, &supports);
  cleave_status_t status = cleave_partition(job->graph, list->pointers, list->count, &options, &plan, error);
  cleave_supports_deinit(&supports);
  return status == CLEAVE_OK ? cleave_backward_start_take(&job->backward, plan, error) : status;
}

static cleave_status_t build(job_t *job, cleave_value_t loss, const cleave_value_t *wrt, size_t wrt_count,
                             cleave_value_t *out_gradients, cleave_error_t *error) {
  cleave_gradient_request_t request = {.rules = &job->set.rules,
                                       .loss = loss,
                                       .wrt = wrt,
                                       .wrt_count = wrt_count,
                                       .regions = job->backward.plan != NULL ? &job->backward.regions : NULL};
  cleave_editor_t editor;
  cleave_editor_init(&editor, job->graph, NULL);
  cleave_status_t status = cleave_gradient_build(&editor, &request, out_gradients, error);
  cleave_editor_deinit(&editor);
  return status;
}

static cleave_status_t recompute(job_t *job, const cleave_gradient_order_t *order, uint32_t first_backward,
                                 cleave_error_t *error) {
  if (order->recompute == 0.0) {
    return CLEAVE_OK;
  }
  if (!(order->recompute > 0.0 && order->recompute < 1.0)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "recompute: expected a share of more than 0 and less than 1, found %g",
                            order->recompute);
  }
  return cleave_gradient_recompute(job->graph, first_backward, order->recompute, order->out_recompute, error);
}

static void job_deinit(job_t *job) {
  cleave_graph_destroy(job->graph);
  cleave_gradient_set_deinit(&job->set);
  cleave_array_free(&job->wrt);
  cleave_free(job->gradients);
  cleave_backward_deinit(&job->backward);
}

/* Constants with a gradient become inputs of their names. */
static cleave_status_t open_constants(job_t *job, cleave_error_t *error) {
  cleave_graph_t *graph = job->graph;
  for (size_t k = 0; k < job->wrt.count; k++) {
    cleave_value_t constant = job->wrt.items[k];
    cleave_value_t input = CLEAVE_VALUE_NONE;
    if (!cleave_value_exists(job->gradients[k]) || !cleave_value_is_constant(graph, constant)) {
      continue;
    }
    const cleave_tensor_t *tensor = cleave_graph_value(graph, constant)->tensor;
    CLEAVE_TRY(cleave_graph_add_input(graph, cleave_value_name(graph, constant), tensor->dtype, tensor->rank,
                                      tensor->dims, &input, error));
    cleave_graph_replace_uses(graph, constant, input);
    cleave_graph_remove_constant(graph, constant);
  }
  return cleave_graph_release_unused(graph, error);
}

// ---- models ----

/* Collects, by input, what the model or one that it was made of was bound to; NULL if none was. */
static void collect_bound(const cleave_model_t *model, const cleave_tensor_view_t **inputs, size_t count) {
  for (; model->origin != NULL; model = model->origin) {
    for (size_t k = 0; k < model->bound_count && k < count; k++) {
      inputs[k] = inputs[k] == NULL ? model->bound_inputs[k] : inputs[k];
    }
  }
}

/* The graph with the sizes of a bound model; NULL: it has them already. Only integers are folded. */
static cleave_status_t bind_source(const cleave_model_t *model, const cleave_graph_t *source,
                                   cleave_graph_t **out_graph, cleave_error_t *error) {
  size_t input_count = source->inputs.count;
  uint32_t node_count = cleave_graph_node_bound(source);
  const cleave_tensor_view_t **inputs = cleave_allocate_zeroed(input_count + 1, sizeof *inputs);
  bool *keep = cleave_allocate((size_t)node_count + 1, sizeof *keep);
  cleave_status_t status = CLEAVE_OK;
  if (inputs == NULL || keep == NULL) {
    status = cleave_error_out_of_memory(error);
  } else {
    memset(keep, true, node_count * sizeof *keep);
    collect_bound(model, inputs, input_count);
    status = cleave_graph_bind_partly(source, inputs, input_count, keep, out_graph, error);
  }
  cleave_free((void *)inputs);
  cleave_free(keep);
  return status;
}

cleave_status_t cleave_model_copy_source(const cleave_model_t *model, cleave_graph_t **out_graph,
                                         cleave_error_t *error) {
  const cleave_model_t *root = model;
  while (root->origin != NULL) {
    root = root->origin;
  }
  const cleave_graph_t *source = root->unfolded != NULL ? root->unfolded : root->graph;
  *out_graph = NULL;
  if (model != root) {
    CLEAVE_TRY(bind_source(model, source, out_graph, error));
  }
  if (*out_graph == NULL) {
    CLEAVE_TRY(cleave_graph_copy(source, out_graph, error));
  }
  (*out_graph)->is_sized = false;
  (*out_graph)->context = model->context;
  return CLEAVE_OK;
}

cleave_status_t cleave_model_gradient_by(cleave_model_t *model, const cleave_gradient_order_t *order,
                                         cleave_model_t **out_model, cleave_error_t *error) {
  job_t job = {.partial = order->partial};
  cleave_value_t loss = CLEAVE_VALUE_NONE;
  cleave_infer_options_t infer = {.fold = true};
  cleave_status_t status = CLEAVE_OK;
  uint32_t first_backward = 0;
  *out_model = NULL;
  CLEAVE_TRY_CLEANUP(cleave_model_copy_source(model, &job.graph, error));
  CLEAVE_TRY_CLEANUP(cleave_graph_infer(job.graph, &infer, NULL, error));
  first_backward = cleave_graph_node_bound(job.graph);
  CLEAVE_TRY_CLEANUP(cleave_gradient_find_value(job.graph, "loss", order->loss, &loss, error));
  CLEAVE_TRY_CLEANUP(find_wrt(&job, order->wrt, order->wrt_count, error));
  CLEAVE_TRY_CLEANUP(cleave_gradient_set_load(&job.set, model->context, order->list, error));
  job.gradients = cleave_allocate_zeroed(job.wrt.count + 1, sizeof *job.gradients);
  CLEAVE_TRY_CLEANUP(job.gradients == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK);
  CLEAVE_TRY_CLEANUP(find_regions(&job, order->list, error));
  CLEAVE_TRY_CLEANUP(build(&job, loss, job.wrt.items, job.wrt.count, job.gradients, error));
  CLEAVE_TRY_CLEANUP(add_outputs(&job, order->loss, order->wrt, error));
  CLEAVE_TRY_CLEANUP(recompute(&job, order, first_backward, error));
  if (order->open) {
    CLEAVE_TRY_CLEANUP(open_constants(&job, error));
  }
  cleave_graph_t *graph = job.graph;
  job.graph = NULL;
  CLEAVE_TRY_CLEANUP(cleave_model_create_sharing_take(graph, model, out_model, error));
  (*out_model)->backward = job.backward.records.items;
  (*out_model)->backward_count = (uint32_t)job.backward.records.count;
  (*out_model)->arena = job.backward.arena;
  job.backward.records.items = NULL;
  job.backward.arena = (cleave_arena_t){0};
cleanup:
  job_deinit(&job);
  return status;
}

const cleave_backward_region_t *cleave_model_backward(const cleave_model_t *model, uint32_t *out_count) {
  *out_count = model->backward_count;
  return model->backward;
}

cleave_status_t cleave_graph_add_gradients(cleave_graph_t *graph, cleave_value_t loss,
                                           const cleave_value_t *wrt, size_t wrt_count,
                                           cleave_value_t *out_gradients, cleave_error_t *error) {
  job_t job = {.graph = graph};
  cleave_status_t status = cleave_gradient_set_load(&job.set, graph->context, NULL, error);
  CLEAVE_THEN(status, build(&job, loss, wrt, wrt_count, out_gradients, error));
  job.graph = NULL; /* the caller's */
  job_deinit(&job);
  return status;
}

cleave_status_t cleave_model_gradient(cleave_model_t *model, const char *loss, const char *const *wrt,
                                      size_t wrt_count, const cleave_gradient_options_t *options,
                                      cleave_model_t **out_model, cleave_error_t *error) {
  cleave_gradient_options_t own = {.size = sizeof own};
  cleave_partition_request_t request;
  *out_model = NULL;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_gradient_options_t, options, &own, error));
  CLEAVE_TRY(cleave_list_check("wrt", wrt, wrt_count, error));
  if (own.out_recompute != NULL) {
    CLEAVE_TRY(CLEAVE_SIZED_CHECK(cleave_recompute_report_t, own.out_recompute, error));
  }
  cleave_gradient_order_t order = {.loss = loss,
                                   .wrt = wrt,
                                   .wrt_count = wrt_count,
                                   .open = own.open,
                                   .recompute = own.recompute,
                                   .out_recompute = own.out_recompute};
  const cleave_partition_request_t rules = {.size = sizeof rules,
                                            .sources = own.sources,
                                            .source_count = own.source_count,
                                            .settings = own.settings,
                                            .setting_count = own.setting_count};
  CLEAVE_TRY(cleave_partition_request_read(&rules, &request, error));
  if (request.source_count == 0) {
    return cleave_model_gradient_by(model, &order, out_model, error);
  }
  cleave_rule_list_t list = {0};
  cleave_status_t status = cleave_rule_list_load(&list, model->context, &request, NULL, error);
  if (status == CLEAVE_OK) {
    order.list = &list;
    status = cleave_model_gradient_by(model, &order, out_model, error);
  }
  cleave_rule_list_deinit(&list);
  return status;
}
