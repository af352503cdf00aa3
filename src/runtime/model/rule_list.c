// SPDX-License-Identifier: Apache-2.0
// Rule files over a graph: all are loaded before the first one runs, a setting has to be known to one of
// them, and the backends are asked through the registry.
#include "runtime/model/rule_list.h"

#include <stdlib.h>
#include <string.h>

#include "backend/registry/registry.h"
#include "base/text.h"
#include "runtime/model/bind.h"
#include "script/rules/declared.h"

void cleave_rule_list_deinit(cleave_rule_list_t *list) {
  for (size_t k = 0; k < list->file_count; k++) {
    cleave_rules_destroy(list->files[k]);
  }
  cleave_free(list->files);
  cleave_free(list->rulesets);
  cleave_free((void *)list->pointers);
  cleave_free(list->everything);
  *list = (cleave_rule_list_t){0};
}

/* One region rule over all that the backend supports; `cpu` and NULL: no rule at all. */
static cleave_status_t add_everything(cleave_rule_list_t *list, const char *backend, cleave_error_t *error) {
  if (backend == NULL || strcmp(backend, "cpu") == 0) {
    return CLEAVE_OK;
  }
  list->everything = cleave_allocate_zeroed(1, sizeof *list->everything);
  list->rulesets = cleave_allocate_zeroed(1, sizeof *list->rulesets);
  list->pointers = cleave_allocate_zeroed(1, sizeof *list->pointers);
  CLEAVE_TRY_MEMORY(list->everything != NULL && list->rulesets != NULL && list->pointers != NULL, error);
  *list->everything = (cleave_rule_t){
      .kind = CLEAVE_RULE_REGION, .name = backend, .doc = "", .file = "", .mode = CLEAVE_REGION_BACKEND};
  list->rulesets[0] = (cleave_ruleset_t){
      .name = backend, .backend = backend, .file = "", .rules = list->everything, .rule_count = 1};
  list->pointers[0] = &list->rulesets[0];
  list->count = 1;
  return CLEAVE_OK;
}

static cleave_status_t load_one(cleave_context_t *context, const cleave_rule_source_t *source,
                                const cleave_script_settings_t *settings,
                                const cleave_rules_listener_t *listener, cleave_rules_t **out_rules,
                                cleave_error_t *error) {
  if (source->text != NULL || source->path == NULL) {
    return cleave_rules_load(context, source, settings, listener, out_rules, error);
  }
  // A name that is neither a file nor one of cleave's may be a rule file that a loaded library brings.
  char path[1024];
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_rules_load(context, source, settings, listener, out_rules, &failure);
  if (status == CLEAVE_ERROR_IO && cleave_registry_find_rules(context, source->path, path, sizeof path)) {
    cleave_rule_source_t found = {.path = path};
    return cleave_rules_load(context, &found, settings, listener, out_rules, error);
  }
  if (status == CLEAVE_ERROR_IO) {
    CLEAVE_TRY(cleave_rules_load_library(context, source->path, settings, out_rules, error));
    status = *out_rules != NULL ? CLEAVE_OK : status;
  }
  if (status != CLEAVE_OK && error != NULL && error->status == CLEAVE_OK) {
    *error = failure;
  }
  return status;
}

static cleave_status_t collect(cleave_rule_list_t *list, const char *backend, cleave_error_t *error) {
  for (size_t k = 0; k < list->file_count; k++) {
    uint32_t count = 0;
    (void)cleave_rules_rulesets(list->files[k], &count);
    list->count += count;
  }
  list->rulesets = cleave_allocate_zeroed(list->count, sizeof *list->rulesets);
  list->pointers = cleave_allocate_zeroed(list->count, sizeof *list->pointers);
  CLEAVE_TRY_MEMORY(list->rulesets != NULL && list->pointers != NULL, error);
  uint32_t next = 0;
  for (size_t k = 0; k < list->file_count; k++) {
    uint32_t count = 0;
    const cleave_ruleset_t *rulesets = cleave_rules_rulesets(list->files[k], &count);
    for (uint32_t s = 0; s < count; s++) {
      list->rulesets[next] = rulesets[s];
      if (backend != NULL) {
        list->rulesets[next].backend = backend;
        list->rulesets[next].line = 0;
      }
      list->pointers[next] = &list->rulesets[next];
      next++;
    }
  }
  return CLEAVE_OK;
}

/* Names the options that there are, with what they are for. */
static cleave_status_t fail_setting(const cleave_rule_list_t *list, const char *name, cleave_error_t *error) {
  cleave_nearest_t nearest = {0};
  cleave_text_t options = {0};
  for (size_t k = 0; k < list->file_count; k++) {
    const cleave_declared_t *declared = cleave_rules_declared(list->files[k]);
    for (uint32_t o = 0; o < declared->option_count; o++) {
      const cleave_declared_option_t *option = &declared->options[o];
      if (option->name != NULL) {
        cleave_nearest_offer(&nearest, name, option->name);
        cleave_text_format(&options, "%s%s (%s)", options.length == 0 ? "; rule files have: " : ", ",
                           option->name, option->doc[0] == '\0' ? option->type : option->doc);
      }
    }
  }
  cleave_status_t status =
      cleave_error_set(error, CLEAVE_ERROR_RULE,
                       "setting '%s': neither a rule file nor a model script has an option of this name%s%s",
                       name, cleave_nearest_hint(&nearest), cleave_text_get(&options));
  cleave_text_deinit(&options);
  return status;
}

/* The settings of a request behind what the environment sets in rule files with such an option. The caller
 * frees the list; NULL: memory is out. */
static cleave_setting_t *list_settings(const cleave_partition_request_t *request, size_t *out_own) {
  const char *pointwise = getenv("CLEAVE_POINTWISE");
  cleave_setting_t *items = cleave_allocate_zeroed(request->setting_count + 1, sizeof *items);
  *out_own = pointwise != NULL ? 1 : 0;
  if (items != NULL && pointwise != NULL) {
    items[0] = (cleave_setting_t){.name = "pointwise", .value = pointwise};
  }
  if (items != NULL && request->setting_count > 0) {
    memcpy(items + *out_own, request->settings, request->setting_count * sizeof *items);
  }
  return items;
}

cleave_status_t cleave_rule_list_load(cleave_rule_list_t *list, cleave_context_t *context,
                                      const cleave_partition_request_t *request,
                                      const cleave_rule_list_options_t *options, cleave_error_t *error) {
  static const cleave_rule_list_options_t plain;
  options = options == NULL ? &plain : options;
  *list = (cleave_rule_list_t){.context = context, .stops_at_mistakes = options->stops_at_mistakes};
  cleave_status_t status = CLEAVE_OK;
  size_t own = 0;
  cleave_setting_t *items = list_settings(request, &own);
  size_t setting_count = own + request->setting_count;
  bool *used = cleave_allocate_zeroed(setting_count * 2, sizeof *used);
  bool *ever_used = used == NULL ? NULL : used + setting_count;
  cleave_script_settings_t settings = {items, setting_count, used, options->leaves_tests_out};
  list->files = cleave_allocate_zeroed(request->source_count, sizeof *list->files);
  CLEAVE_TRY_MEMORY_CLEANUP(items != NULL && used != NULL && list->files != NULL, error);
  for (size_t k = 0; k < request->source_count; k++) {
    memset(used, 0, setting_count * sizeof *used);
    CLEAVE_TRY_CLEANUP(
        load_one(context, &request->sources[k], &settings, options->listener, &list->files[k], error));
    list->file_count++;
    for (size_t s = 0; s < setting_count; s++) {
      ever_used[s] = ever_used[s] || used[s];
    }
  }
  for (size_t s = own; s < setting_count; s++) {
    if (!ever_used[s] && (options->known == NULL || !options->known[s - own])) {
      CLEAVE_TRY_CLEANUP(fail_setting(list, items[s].name, error));
    }
  }
  CLEAVE_TRY_CLEANUP(request->source_count > 0 ? collect(list, request->backend, error)
                                               : add_everything(list, request->backend, error));
cleanup:
  cleave_free(items);
  cleave_free(used);
  return status;
}

cleave_partition_options_t cleave_rule_list_ask(const cleave_rule_list_t *list, cleave_supports_t *supports) {
  return (cleave_partition_options_t){.supports = cleave_supports_ask,
                                      .cost = cleave_supports_cost,
                                      .review = cleave_supports_review,
                                      .backend_context = supports,
                                      .allow = list->allow,
                                      .allow_context = list->allow_context};
}

cleave_status_t cleave_rule_list_fold(void *context, cleave_graph_t *graph, cleave_error_t *error) {
  (void)context;
  return cleave_graph_simplify(graph, NULL, 0, NULL, error);
}

/* Runs the graph rules of a list (rewrites and passes), alone; what comes out must not outlive the graph. */
static cleave_status_t transform(const cleave_rule_list_t *list, const cleave_graph_t *graph,
                                 cleave_transformation_t *out_transformation, cleave_error_t *error) {
  cleave_transform_options_t options = {.fold = cleave_rule_list_fold,
                                        .allow = list->allow,
                                        .allow_context = list->allow_context,
                                        .stops_at_mistakes = list->stops_at_mistakes};
  return cleave_transform(graph, list->pointers, list->count, &options, out_transformation, error);
}

cleave_status_t cleave_graph_replay(const cleave_graph_t *graph, const cleave_edits_t *edits,
                                    cleave_graph_t **out_graph, cleave_error_t *error) {
  cleave_transform_options_t options = {.fold = cleave_rule_list_fold};
  return cleave_transform_replay(graph, edits, &options, out_graph, error);
}

cleave_status_t cleave_rule_list_partition(const cleave_rule_list_t *list, const cleave_graph_t *graph,
                                           cleave_plan_t **out_plan, cleave_error_t *error) {
  cleave_transformation_t transformation;
  cleave_supports_t supports;
  CLEAVE_TRY(transform(list, graph, &transformation, error));
  const cleave_graph_t *subject = transformation.graph != NULL ? transformation.graph : graph;
  cleave_supports_init(&supports, subject);
  cleave_partition_options_t options = cleave_rule_list_ask(list, &supports);
  cleave_status_t status = cleave_partition(subject, list->pointers, list->count, &options, out_plan, error);
  cleave_supports_deinit(&supports);
  if (status == CLEAVE_OK) {
    status = cleave_transformation_move(&transformation, graph, *out_plan, error);
    if (status != CLEAVE_OK) {
      cleave_plan_destroy(*out_plan);
      *out_plan = NULL;
    }
  }
  cleave_transformation_deinit(&transformation);
  return status;
}

cleave_status_t cleave_rule_list_report(const cleave_rule_list_t *list, const cleave_graph_t *graph,
                                        cleave_boundary_report_t **out_report, cleave_error_t *error) {
  cleave_supports_t supports;
  cleave_supports_init(&supports, graph);
  cleave_partition_options_t options = cleave_rule_list_ask(list, &supports);
  cleave_status_t status =
      cleave_boundary_report_create(graph, list->pointers, list->count, &options, out_report, error);
  cleave_supports_deinit(&supports);
  return status;
}
