// SPDX-License-Identifier: Apache-2.0
// What a library brings in rules is checked when it is loaded, so that whoever uses it later finds every
// function that it needs. Used without a rule file, it is put into the words of one.
#include "backend/registry/library_rules.h"

#include <stdio.h>
#include <string.h>

enum { RULE_LIMIT = 1024, NAME_LIMIT = 63 };

/* A name that a rule may have, too. */
static bool is_name(const char *name) {
  static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  size_t length = name == NULL ? 0 : strlen(name);
  return length > 0 && length <= NAME_LIMIT && strspn(name, LETTERS) == length && name[0] != '.' &&
         name[0] != '-';
}

/* ---- taking up ---- */

static cleave_status_t fail(const char *library, const char *what, const char *name, const char *problem,
                            cleave_error_t *error) {
  return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "library '%s': %s '%.64s': %s", library, what,
                          name == NULL ? "" : name, problem);
}

static const char *wrong_with_partitioner(const cleave_custom_partitioner_t *p) {
  bool selects = p->create_selector != NULL;
  return p->supported == NULL && !selects ? "function 'supported' or 'create_selector' is missing"
         : p->supported != NULL && selects
             ? "has both 'supported' and 'create_selector', expected one of them"
         : p->begin != NULL && p->end == NULL     ? "function 'end' is missing"
         : selects && p->select == NULL           ? "function 'select' is missing"
         : selects && p->destroy_selector == NULL ? "function 'destroy_selector' is missing"
                                                  : NULL;
}

static cleave_status_t check_name(const cleave_backend_handle_t *library, const char *what, const char *name,
                                  cleave_error_t *error) {
  cleave_named_rule_t other;
  if (!is_name(name)) {
    return fail(library->backend->name, what, name, "is no name (letters, digits, '_', '-' and '.')", error);
  }
  for (uint32_t k = 0; cleave_named_rule_at(k, &other); k++) {
    if (other.owner == library && strcmp(other.name, name) == 0) {
      return fail(library->backend->name, what, name, "the library has a rule of this name already", error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t take_pass(const cleave_backend_handle_t *library, const cleave_custom_pass_t *pass,
                                 cleave_error_t *error) {
  const char *name = library->backend->name;
  if (pass == NULL || pass->size < sizeof *pass) {
    return fail(name, "pass", "", "the struct is too small for version 2.0", error);
  }
  CLEAVE_TRY(check_name(library, "pass", pass->name, error));
  if (pass->run == NULL) {
    return fail(name, "pass", pass->name, "function 'run' is missing", error);
  }
  cleave_named_rule_t named = {.context = library->context,
                               .kind = CLEAVE_RULE_PASS,
                               .name = pass->name,
                               .library = name,
                               .backend = name,
                               .owner = library,
                               .definition = pass,
                               .bind = cleave_library_pass_bind};
  return cleave_named_rules_add(&named, error);
}

static cleave_status_t take_partitioner(const cleave_backend_handle_t *library,
                                        const cleave_custom_partitioner_t *partitioner,
                                        cleave_error_t *error) {
  const char *name = library->backend->name;
  if (partitioner == NULL || partitioner->size < sizeof *partitioner) {
    return fail(name, "partitioner", "", "the struct is too small for version 2.0", error);
  }
  CLEAVE_TRY(check_name(library, "partitioner", partitioner->name, error));
  const char *wrong = wrong_with_partitioner(partitioner);
  if (wrong == NULL && partitioner->backend != NULL && !is_name(partitioner->backend)) {
    wrong = "its backend has no possible name";
  }
  if (wrong != NULL) {
    return fail(name, "partitioner", partitioner->name, wrong, error);
  }
  cleave_named_rule_t named = {.context = library->context,
                               .kind = CLEAVE_RULE_REGION,
                               .name = partitioner->name,
                               .library = name,
                               .backend = partitioner->backend != NULL ? partitioner->backend : name,
                               .owner = library,
                               .definition = partitioner,
                               .bind = cleave_library_partitioner_bind};
  return cleave_named_rules_add(&named, error);
}

static cleave_status_t take(const cleave_backend_handle_t *library, cleave_error_t *error) {
  const cleave_backend_extensions_t *brought = library->backend->extensions;
  bool has_lists = (brought->pass_count == 0 || brought->passes != NULL) &&
                   (brought->partitioner_count == 0 || brought->partitioners != NULL);
  if (!has_lists || brought->pass_count > RULE_LIMIT || brought->partitioner_count > RULE_LIMIT) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "library '%s': %u passes and %u partitioners: expected lists of at most %d",
                            library->backend->name, (unsigned)brought->pass_count,
                            (unsigned)brought->partitioner_count, RULE_LIMIT);
  }
  for (uint32_t k = 0; k < brought->pass_count; k++) {
    CLEAVE_TRY(take_pass(library, brought->passes[k], error));
  }
  for (uint32_t k = 0; k < brought->partitioner_count; k++) {
    CLEAVE_TRY(take_partitioner(library, brought->partitioners[k], error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_library_rules_take(const cleave_backend_handle_t *library, cleave_error_t *error) {
  cleave_status_t status = take(library, error);
  if (status != CLEAVE_OK) {
    cleave_named_rules_remove(library);
  }
  return status;
}

void cleave_library_rules_leave(const cleave_backend_handle_t *library) {
  cleave_named_rules_remove(library);
}

/* ---- without a rule file ---- */

/* As a text of Lua, whatever is in it. */
static void add_quoted(cleave_text_t *text, const char *value) {
  cleave_text_add(text, "\"");
  for (; *value != '\0'; value++) {
    unsigned char c = (unsigned char)*value;
    bool is_plain = c >= ' ' && c < 0x7f && c != '"' && c != '\\';
    cleave_text_format(text, is_plain ? "%c" : "\\%03u", c);
  }
  cleave_text_add(text, "\"");
}

static cleave_status_t add_options(cleave_text_t *text, const cleave_setting_t *settings,
                                   size_t setting_count, cleave_error_t *error) {
  cleave_text_add(text, "  options = {\n");
  for (size_t k = 0; k < setting_count; k++) {
    if (!is_name(settings[k].name)) {
      return cleave_error_set(error, CLEAVE_ERROR_RULE,
                              "setting '%.64s' is no name (letters, digits, '_', '-' and '.')",
                              settings[k].name);
    }
    bool is_last = true; /* of its name: that one counts */
    for (size_t n = k + 1; n < setting_count; n++) {
      is_last = is_last && strcmp(settings[n].name, settings[k].name) != 0;
    }
    if (is_last) {
      cleave_text_format(text, "    [\"%s\"] = option.string(", settings[k].name);
      add_quoted(text, settings[k].value);
      cleave_text_add(text, ", \"for the library\"),\n");
    }
  }
  cleave_text_add(text, "  },\n");
  return CLEAVE_OK;
}

static void add_rule(cleave_text_t *text, const cleave_named_rule_t *rule) {
  if (rule->kind == CLEAVE_RULE_PASS) {
    cleave_text_format(text, "  pass \"%s\" { library = \"%s/%s\" },\n", rule->name, rule->library,
                       rule->name);
    return;
  }
  cleave_text_format(text, "  ruleset \"%s\" {\n    backend = \"%s\",\n", rule->name, rule->backend);
  cleave_text_format(text, "    region \"%s\" { partitioner = \"%s/%s\" },\n  },\n", rule->name,
                     rule->library, rule->name);
}

static bool is_library(cleave_context_t *context, const cleave_named_rule_t *rule, const char *name,
                       size_t length) {
  return rule->context == context && strlen(rule->library) == length &&
         strncmp(rule->library, name, length) == 0;
}

/* "library/part", where the library has other parts only. Of other names nothing is said. */
static cleave_status_t fail_part(cleave_context_t *context, const char *name, size_t length,
                                 cleave_error_t *error) {
  cleave_nearest_t nearest = {0};
  cleave_text_t parts = {0};
  cleave_named_rule_t rule;
  char hint[128];
  for (uint32_t k = 0; name[length] == '/' && cleave_named_rule_at(k, &rule); k++) {
    if (is_library(context, &rule, name, length)) {
      cleave_text_format(&parts, "%s%s", parts.length == 0 ? "" : ", ", rule.name);
      cleave_nearest_offer(&nearest, name + length + 1, rule.name);
    }
  }
  cleave_status_t status = CLEAVE_OK;
  if (parts.length > 0) {
    status = cleave_error_set(error, CLEAVE_ERROR_RULE, "library '%.*s' has no rule '%.64s'%s; it has: %s",
                              (int)length, name, name + length + 1,
                              cleave_nearest_hint(&nearest, hint, sizeof hint), cleave_text_get(&parts));
  }
  cleave_text_deinit(&parts);
  return status;
}

cleave_status_t cleave_library_rules_text(cleave_context_t *context, const char *name,
                                          const cleave_setting_t *settings, size_t setting_count,
                                          cleave_text_t *text, bool *out_found, cleave_error_t *error) {
  const char *slash = strchr(name, '/');
  size_t length = slash == NULL ? strlen(name) : (size_t)(slash - name);
  cleave_named_rule_t rule;
  *out_found = false;
  for (uint32_t k = 0; cleave_named_rule_at(k, &rule); k++) {
    if (!is_library(context, &rule, name, length) || (slash != NULL && strcmp(slash + 1, rule.name) != 0)) {
      continue;
    }
    if (!*out_found) {
      cleave_text_format(text, "return ruleset {\n  name = \"%s\",\n  backend = \"%s\",\n", rule.library,
                         rule.library);
      CLEAVE_TRY(add_options(text, settings, setting_count, error));
    }
    *out_found = true;
    add_rule(text, &rule);
  }
  if (!*out_found) {
    return fail_part(context, name, length, error);
  }
  cleave_text_add(text, "}\n");
  return cleave_text_check(text, error);
}
