// SPDX-License-Identifier: Apache-2.0
// A graph partitioned by rule files, or, without any, by what one backend supports.
#include <string.h>

#include "backend/registry/registry.h"
#include "base/sized.h"
#include "runtime/model/model.h"
#include "runtime/model/model_gradient.h"
#include "runtime/model/rule_list.h"
#include "script/rules/declared.h"
#include "system/clock.h"

static cleave_status_t copy_settings(cleave_arena_t *arena, const cleave_setting_t *settings, size_t count,
                                     cleave_setting_t **out_copies, cleave_error_t *error) {
  cleave_setting_t *copies = cleave_arena_allocate(arena, count, sizeof *copies);
  bool is_complete = copies != NULL;
  for (size_t k = 0; is_complete && k < count; k++) {
    copies[k].name = cleave_arena_copy_text(arena, settings[k].name, strlen(settings[k].name));
    copies[k].value = cleave_arena_copy_text(arena, settings[k].value, strlen(settings[k].value));
    is_complete = copies[k].name != NULL && copies[k].value != NULL;
  }
  *out_copies = copies;
  return is_complete ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

/* What was set is part of the plan: it explains why two plans differ. */
static cleave_status_t keep_settings(cleave_plan_t *plan, const cleave_setting_t *settings, size_t count,
                                     cleave_error_t *error) {
  cleave_setting_t *copies = NULL;
  CLEAVE_TRY(copy_settings(&plan->arena, settings, count, &copies, error));
  plan->settings = copies;
  plan->setting_count = (uint32_t)count;
  return CLEAVE_OK;
}

cleave_status_t cleave_partition_request_read(const cleave_partition_request_t *given,
                                              cleave_partition_request_t *out_request,
                                              cleave_error_t *error) {
  *out_request = (cleave_partition_request_t){.size = sizeof *out_request};
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_partition_request_t, given, out_request, error));
  CLEAVE_TRY(cleave_list_check("sources", out_request->sources, out_request->source_count, error));
  return cleave_list_check("settings", out_request->settings, out_request->setting_count, error);
}

static cleave_status_t load(cleave_rule_list_t *list, cleave_context_t *context,
                            const cleave_partition_request_t *request,
                            const cleave_rule_list_options_t *options, cleave_error_t *error) {
  if (request->backend != NULL) {
    const cleave_backend_handle_t *handle = NULL;
    CLEAVE_TRY(cleave_registry_find(context, request->backend, &handle, error));
  }
  cleave_rule_list_options_t own = options == NULL ? (cleave_rule_list_options_t){0} : *options;
  own.leaves_tests_out = true;
  return cleave_rule_list_load(list, context, request, &own, error);
}

static cleave_status_t run(const cleave_rule_list_t *list, const cleave_graph_t *graph,
                           const cleave_setting_t *settings, size_t setting_count, cleave_plan_t **out_plan,
                           cleave_error_t *error) {
  CLEAVE_TRY(cleave_rule_list_partition(list, graph, out_plan, error));
  cleave_status_t status = keep_settings(*out_plan, settings, setting_count, error);
  if (status != CLEAVE_OK) {
    cleave_plan_destroy(*out_plan);
    *out_plan = NULL;
  }
  return status;
}

cleave_status_t cleave_graph_partition(const cleave_graph_t *graph, const cleave_partition_request_t *request,
                                       const cleave_rule_list_options_t *options, cleave_plan_t **out_plan,
                                       double *out_script_ms, cleave_error_t *error) {
  cleave_partition_request_t own;
  *out_plan = NULL;
  uint64_t start = cleave_clock_now();
  cleave_rule_list_t list = {0};
  CLEAVE_TRY(cleave_partition_request_read(request, &own, error));
  cleave_status_t status = load(&list, graph->context, &own, options, error);
  if (out_script_ms != NULL) {
    *out_script_ms = cleave_clock_ms(start, cleave_clock_now());
  }
  CLEAVE_THEN(status, run(&list, graph, own.settings, own.setting_count, out_plan, error));
  cleave_rule_list_deinit(&list);
  return status;
}

cleave_status_t cleave_model_partition(cleave_model_t *model, const cleave_partition_request_t *request,
                                       cleave_plan_t **out_plan, cleave_error_t *error) {
  return cleave_graph_partition(cleave_model_graph(model), request, NULL, out_plan, NULL, error);
}

/* ---- rule files that are loaded once ---- */

struct cleave_rule_files {
  cleave_context_t *context; /* retained; NULL: the process's own */
  cleave_arena_t arena;      /* of the copies */
  cleave_rule_list_t list;
  cleave_setting_t *settings;
  size_t setting_count;
};

/* Copies what of the request is needed after loading: the settings, and the backend's name. */
static cleave_status_t keep_request(cleave_rule_files_t *files, cleave_partition_request_t *request,
                                    cleave_error_t *error) {
  if (request->backend != NULL) {
    request->backend = cleave_arena_copy_text(&files->arena, request->backend, strlen(request->backend));
    CLEAVE_TRY_MEMORY(request->backend, error);
  }
  files->setting_count = request->setting_count;
  CLEAVE_TRY(
      copy_settings(&files->arena, request->settings, request->setting_count, &files->settings, error));
  request->settings = files->settings;
  return CLEAVE_OK;
}

cleave_status_t cleave_rule_files_load(cleave_context_t *context, const cleave_partition_request_t *request,
                                       cleave_rule_files_t **out_files, cleave_error_t *error) {
  *out_files = NULL;
  cleave_partition_request_t own;
  CLEAVE_TRY(cleave_partition_request_read(request, &own, error));
  cleave_rule_files_t *files = cleave_allocate_zeroed(1, sizeof *files);
  CLEAVE_TRY_MEMORY(files, error);
  files->context = cleave_context_retain(context);
  cleave_status_t status = keep_request(files, &own, error);
  CLEAVE_THEN(status, load(&files->list, context, &own, NULL, error));
  CLEAVE_TRY_OR(status, cleave_rule_files_destroy(files));
  *out_files = files;
  return CLEAVE_OK;
}

cleave_status_t cleave_rule_files_partition(cleave_rule_files_t *files, cleave_model_t *model,
                                            cleave_plan_t **out_plan, cleave_error_t *error) {
  *out_plan = NULL;
  if (cleave_model_graph(model)->context != files->context) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "the rule files were loaded in another context than the model");
  }
  return run(&files->list, cleave_model_graph(model), files->settings, files->setting_count, out_plan, error);
}

const cleave_rule_list_t *cleave_rule_files_list(const cleave_rule_files_t *files) {
  return &files->list;
}

bool cleave_rule_files_have_option(const cleave_rule_files_t *files, const char *name) {
  for (size_t k = 0; k < files->list.file_count; k++) {
    const cleave_declared_t *declared = cleave_rules_declared(files->list.files[k]);
    for (uint32_t o = 0; o < declared->option_count; o++) {
      if (declared->options[o].name != NULL && strcmp(declared->options[o].name, name) == 0) {
        return true;
      }
    }
  }
  return false;
}

void cleave_rule_files_destroy(cleave_rule_files_t *files) {
  if (files != NULL) {
    cleave_rule_list_deinit(&files->list);
    cleave_arena_deinit(&files->arena);
    cleave_context_release(files->context);
    cleave_free(files);
  }
}
