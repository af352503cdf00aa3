// SPDX-License-Identifier: Apache-2.0
// The rules of a loaded library, used without a rule file: consecutive passes are one ruleset on the library
// itself, each partitioner is a ruleset on the backend that it asks for. The settings are their options.
#include <string.h>

#include "base/text.h"
#include "partition/pattern/named_rules.h"
#include "script/rules/rules_internal.h"

typedef struct building {
  cleave_context_t *context;
  const char *name; /* "library", or "library/part" */
  size_t library_length;
  cleave_rules_t *rules;
  cleave_ruleset_t *rulesets;
  cleave_rule_t *rule;
  cleave_declared_rule_t *declared;
  cleave_key_value_t *options;
  uint32_t option_count;
} building_t;

static const char *copy(const building_t *building, const char *text) {
  return cleave_arena_copy_text(&building->rules->arena, text, strlen(text));
}

static bool is_of_library(const building_t *building, const cleave_named_rule_t *rule) {
  return rule->context == building->context && strlen(rule->library) == building->library_length &&
         strncmp(rule->library, building->name, building->library_length) == 0;
}

/* The next rule that is wanted, from *index on. */
static bool next_rule(const building_t *building, uint32_t *index, cleave_named_rule_t *out_rule) {
  const char *part = building->name + building->library_length;
  while (cleave_named_rule_at((*index)++, out_rule)) {
    if (is_of_library(building, out_rule) && (part[0] == '\0' || strcmp(part + 1, out_rule->name) == 0)) {
      return true;
    }
  }
  return false;
}

/* "library/part", if the library has other parts only. Nothing is said of other names. */
static cleave_status_t fail_part(const building_t *building, cleave_error_t *error) {
  const char *part = building->name + building->library_length;
  cleave_nearest_t nearest = {0};
  cleave_text_t parts = {0};
  cleave_named_rule_t rule;
  for (uint32_t k = 0; part[0] == '/' && cleave_named_rule_at(k, &rule); k++) {
    if (is_of_library(building, &rule)) {
      cleave_text_format(&parts, "%s%s", parts.length == 0 ? "" : ", ", rule.name);
      cleave_nearest_offer(&nearest, part + 1, rule.name);
    }
  }
  cleave_status_t status = CLEAVE_OK;
  if (parts.length > 0) {
    status = cleave_error_set(error, CLEAVE_ERROR_RULE, "library '%.*s' has no rule '%.64s'%s; it has: %s",
                              (int)building->library_length, building->name, part + 1,
                              cleave_nearest_hint(&nearest), cleave_text_get(&parts));
  }
  cleave_text_deinit(&parts);
  return status;
}

/* If settings have the same name, the last one counts. */
static cleave_status_t add_options(building_t *building, const cleave_script_settings_t *given,
                                   cleave_error_t *error) {
  size_t count = given == NULL ? 0 : given->count;
  const cleave_setting_t *settings = given == NULL ? NULL : given->items;
  building->options = cleave_arena_allocate(&building->rules->arena, count, sizeof *building->options);
  CLEAVE_TRY_MEMORY(building->options, error);
  for (size_t k = 0; k < count; k++) {
    bool is_last = true;
    for (size_t n = k + 1; n < count; n++) {
      is_last = is_last && strcmp(settings[n].name, settings[k].name) != 0;
    }
    if (is_last) {
      cleave_key_value_t option = {.key = copy(building, settings[k].name),
                                   .value = copy(building, settings[k].value)};
      CLEAVE_TRY_MEMORY(option.key != NULL && option.value != NULL, error);
      building->options[building->option_count++] = option;
    }
    if (given->out_used != NULL) {
      given->out_used[k] = true;
    }
  }
  return CLEAVE_OK;
}

/* Adds a rule to the last ruleset. */
static cleave_status_t add_rule(building_t *building, const cleave_named_rule_t *named, const char *name,
                                cleave_error_t *error) {
  cleave_rules_t *rules = building->rules;
  cleave_ruleset_t *ruleset = &building->rulesets[rules->ruleset_count - 1];
  cleave_named_rule_use_t *use = cleave_arena_allocate(&rules->arena, 1, sizeof *use);
  const char *full_name = cleave_arena_format(&rules->arena, "%s/%s", named->library, named->name);
  CLEAVE_TRY_MEMORY(use != NULL && full_name != NULL && name != NULL, error);
  *use = (cleave_named_rule_use_t){.context = building->context,
                                   .name = full_name,
                                   .file = "",
                                   .options = building->options,
                                   .option_count = building->option_count};
  cleave_rule_t *rule = building->rule++;
  *rule = (cleave_rule_t){.kind = named->kind, .name = name, .doc = "", .file = "", .context = use};
  named->bind(named, rule);
  ruleset->rule_count++;
  building->declared[rules->declared.rule_count++] =
      (cleave_declared_rule_t){.kind = cleave_rule_kind_name(named->kind),
                               .name = name,
                               .doc = "",
                               .file = "",
                               .enabled = true,
                               .ruleset = ruleset->name,
                               .backend = ruleset->backend};
  return CLEAVE_OK;
}

/* Adds at most `count` rules, because libraries may be loaded meanwhile. */
static cleave_status_t add_rules(building_t *building, uint32_t count, cleave_error_t *error) {
  cleave_rules_t *rules = building->rules;
  cleave_named_rule_t named;
  bool follows_pass = false;
  for (uint32_t index = 0; rules->declared.rule_count < count && next_rule(building, &index, &named);) {
    bool is_pass = named.kind == CLEAVE_RULE_PASS;
    const char *name = copy(building, named.name);
    if (!is_pass || !follows_pass) {
      const char *library = copy(building, named.library);
      cleave_ruleset_t ruleset = {
          .name = is_pass ? library : cleave_arena_format(&rules->arena, "%s/%s", named.library, named.name),
          .backend = is_pass ? library : copy(building, named.backend),
          .file = "",
          .rules = building->rule};
      CLEAVE_TRY_MEMORY(ruleset.name != NULL && ruleset.backend != NULL, error);
      building->rulesets[rules->ruleset_count++] = ruleset;
    }
    CLEAVE_TRY(add_rule(building, &named, name, error));
    follows_pass = is_pass;
  }
  return CLEAVE_OK;
}

static cleave_status_t build(building_t *building, uint32_t count, const cleave_script_settings_t *settings,
                             cleave_error_t *error) {
  cleave_rules_t *rules = building->rules;
  building->rulesets = cleave_arena_allocate(&rules->arena, count, sizeof *building->rulesets);
  building->rule = cleave_arena_allocate(&rules->arena, count, sizeof *building->rule);
  building->declared = cleave_arena_allocate(&rules->arena, count, sizeof *building->declared);
  CLEAVE_TRY_MEMORY(building->rulesets != NULL && building->rule != NULL && building->declared != NULL,
                    error);
  rules->rulesets = building->rulesets;
  rules->declared.rules = building->declared;
  CLEAVE_TRY(add_options(building, settings, error));
  return add_rules(building, count, error);
}

cleave_status_t cleave_rules_load_library(cleave_context_t *context, const char *name,
                                          const cleave_script_settings_t *settings,
                                          cleave_rules_t **out_rules, cleave_error_t *error) {
  building_t building = {.context = context, .name = name, .library_length = strcspn(name, "/")};
  cleave_named_rule_t rule;
  uint32_t count = 0;
  *out_rules = NULL;
  for (uint32_t index = 0; next_rule(&building, &index, &rule);) {
    count++;
  }
  if (count == 0) {
    return fail_part(&building, error);
  }
  building.rules = cleave_allocate_zeroed(1, sizeof *building.rules);
  CLEAVE_TRY_MEMORY(building.rules, error);
  CLEAVE_TRY_OR(build(&building, count, settings, error), cleave_rules_destroy(building.rules));
  *out_rules = building.rules;
  return CLEAVE_OK;
}
