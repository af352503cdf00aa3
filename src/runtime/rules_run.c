// SPDX-License-Identifier: Apache-2.0
// Rule files over a graph: all are loaded before the first one runs, a setting has to be known to one of
// them, and the backends are asked through the registry.
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "partition/partition.h"
#include "runtime/model.h"
#include "runtime/registry.h"
#include "runtime/view.h"
#include "script/rules.h"

typedef struct loaded_rules {
  cleave_rules_t **files;
  size_t count;
  cleave_ruleset_t *rulesets; /* with the backend that is to be used */
  const cleave_ruleset_t **pointers;
} loaded_rules_t;

static void unload(loaded_rules_t *loaded) {
  for (size_t k = 0; k < loaded->count; k++) {
    cleave_rules_destroy(loaded->files[k]);
  }
  cleave_free(loaded->files);
  cleave_free(loaded->rulesets);
  cleave_free((void *)loaded->pointers);
}

static cleave_status_t load_one(const cleave_rule_source_t *source, const cleave_setting_t *settings,
                                size_t setting_count, bool *used, cleave_rules_t **out_rules,
                                cleave_error_t *error) {
  if (source->text != NULL) {
    return cleave_rules_load_text(source->path == NULL ? "rules" : source->path, source->text, source->length,
                                  settings, setting_count, used, out_rules, error);
  }
  if (source->path == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "a rule source has neither path nor text");
  }
  return cleave_rules_load(source->path, settings, setting_count, used, out_rules, error);
}

static cleave_status_t load(const cleave_rule_source_t *sources, size_t source_count,
                            const cleave_setting_t *settings, size_t setting_count, const bool *known,
                            const char *backend, loaded_rules_t *loaded, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  bool *used = cleave_allocate_zeroed(setting_count * 2, sizeof *used);
  bool *ever_used = used == NULL ? NULL : used + setting_count;
  loaded->files = cleave_allocate_zeroed(source_count, sizeof *loaded->files);
  loaded->rulesets = cleave_allocate_zeroed(source_count, sizeof *loaded->rulesets);
  loaded->pointers = cleave_allocate_zeroed(source_count, sizeof *loaded->pointers);
  if (used == NULL || loaded->files == NULL || loaded->rulesets == NULL || loaded->pointers == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  for (size_t k = 0; k < source_count; k++) {
    memset(used, 0, setting_count * sizeof *used);
    CLEAVE_TRY_CLEANUP(load_one(&sources[k], settings, setting_count, used, &loaded->files[k], error));
    loaded->count++;
    loaded->rulesets[k] = *cleave_rules_ruleset(loaded->files[k]);
    loaded->rulesets[k].backend = backend != NULL ? backend : loaded->rulesets[k].backend;
    loaded->pointers[k] = &loaded->rulesets[k];
    for (size_t s = 0; s < setting_count; s++) {
      ever_used[s] = ever_used[s] || used[s];
    }
  }
  for (size_t s = 0; s < setting_count; s++) {
    if (!ever_used[s] && (known == NULL || !known[s])) {
      CLEAVE_TRY_CLEANUP(
          cleave_error_set(error, CLEAVE_ERROR_RULE,
                           "setting '%s': neither a rule file nor a model script has an option of this name",
                           settings[s].name));
    }
  }
cleanup:
  cleave_free(used);
  return status;
}

cleave_status_t cleave_graph_partition(const cleave_graph_t *graph, const cleave_rule_source_t *sources,
                                       size_t source_count, const cleave_setting_t *settings,
                                       size_t setting_count, const bool *known, const char *backend,
                                       cleave_plan_t **out_plan, double *out_script_ms,
                                       cleave_error_t *error) {
  *out_plan = NULL;
  uint64_t start = cleave_clock_now();
  cleave_status_t status = CLEAVE_OK;
  loaded_rules_t loaded = {0};
  cleave_supports_t supports;
  cleave_supports_init(&supports, graph);
  cleave_partition_options_t options = {.supports = cleave_supports_ask, .supports_context = &supports};
  cleave_rule_t everything = {.kind = CLEAVE_RULE_REGION,
                              .name = backend == NULL ? "cpu" : backend,
                              .doc = "",
                              .file = "",
                              .mode = CLEAVE_REGION_BACKEND};
  cleave_ruleset_t whole = {
      .name = everything.name, .backend = everything.name, .file = "", .rules = &everything, .rule_count = 1};
  const cleave_ruleset_t *const whole_pointer = &whole;
  const cleave_ruleset_t *const *rulesets = &whole_pointer;
  uint32_t ruleset_count = backend == NULL || strcmp(backend, "cpu") == 0 ? 0 : 1;
  if (backend != NULL) {
    const cleave_backend_handle_t *handle = NULL;
    CLEAVE_TRY_CLEANUP(cleave_registry_find(backend, &handle, error));
  }
  if (source_count > 0 || setting_count > 0) {
    CLEAVE_TRY_CLEANUP(load(sources, source_count, settings, setting_count, known, backend, &loaded, error));
    rulesets = loaded.pointers;
    ruleset_count = (uint32_t)loaded.count;
  }
  if (out_script_ms != NULL) {
    *out_script_ms = cleave_clock_ms(start, cleave_clock_now());
  }
  CLEAVE_TRY_CLEANUP(cleave_partition(graph, rulesets, ruleset_count, &options, out_plan, error));
cleanup:
  unload(&loaded);
  cleave_supports_deinit(&supports);
  return status;
}
