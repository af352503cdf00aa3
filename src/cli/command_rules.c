// SPDX-License-Identifier: Apache-2.0
// cleave rules: what rule files declare: rules, options with type, default and range, tests.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/load.h"
#include "cli/common/output.h"
#include "runtime/model/rule_list.h"
#include "script/rules/declared.h"

/* A line of the file that is listed, or a place in one that it includes: the first cell of a row. */
static void add_place(cleave_text_t *rows, const char *path, const char *file, int32_t line) {
  if (file[0] == '\0') {
    cleave_text_add(rows, "-\t"); /* a rule of a library */
  } else if (strcmp(path, file) == 0) {
    cleave_text_show(rows, "%d\t", (int)line);
  } else {
    cleave_text_show(rows, "%s:%d\t", file, (int)line);
  }
}

static void print_rules(const char *path, const cleave_declared_t *declared) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "line\tkind\trule\truns on\tdoes\n");
  for (uint32_t k = 0; k < declared->rule_count; k++) {
    const cleave_declared_rule_t *rule = &declared->rules[k];
    add_place(&rows, path, rule->file, rule->line);
    cleave_text_show(&rows, "%s\t%s\t%s\t%s%s\n", rule->kind, rule->name, rule->backend,
                     rule->enabled ? "" : "(switched off) ", rule->doc);
  }
  cleave_output_table(&rows, "rllll");
}

static void print_options(const cleave_declared_t *declared) {
  cleave_text_t rows = {0};
  for (uint32_t k = 0; k < declared->option_count; k++) {
    const cleave_declared_option_t *option = &declared->options[k];
    if (option->name != NULL) {
      cleave_text_add(&rows, rows.length == 0 ? "option\ttype\tdefault\tvalue\trange\tis\n" : "");
      cleave_text_show(&rows, "%s\t%s\t%s\t%s\t%s\t%s\n", option->name, option->type, option->fallback,
                       option->value, option->range, option->doc);
    }
  }
  cleave_print(CLEAVE_TRUSTED, rows.length > 0 ? "\n" : "");
  cleave_output_table(&rows, "llllll");
}

static void print_tests(const char *path, const cleave_declared_t *declared) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "line\ttest\n");
  for (uint32_t k = 0; k < declared->test_count; k++) {
    add_place(&rows, path, declared->tests[k].file, declared->tests[k].line);
    cleave_text_show(&rows, "%s\n", declared->tests[k].name);
  }
  cleave_print(CLEAVE_TRUSTED, declared->test_count > 0 ? "\n" : "");
  cleave_output_table(&rows, "rl");
}

static json_t *rules_json(const cleave_declared_t *declared) {
  json_t *rules = json_array();
  for (uint32_t k = 0; k < declared->rule_count; k++) {
    const cleave_declared_rule_t *rule = &declared->rules[k];
    (void)json_array_append_new(
        rules, json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:s, s:s}", "kind", rule->kind, "name",
                         rule->name, "doc", rule->doc, "file", rule->file, "line", (int)rule->line,
                         "priority", (int)rule->priority, "enabled", (int)rule->enabled, "ruleset",
                         rule->ruleset, "backend", rule->backend));
  }
  return rules;
}

/* A value of an option, from its text; JSON has no number that is not finite. */
static json_t *value_json(const char *type, const char *text) {
  if (strcmp(type, "boolean") == 0) {
    return json_boolean(strcmp(text, "true") == 0);
  }
  if (strcmp(type, "integer") == 0) {
    return json_integer(strtoll(text, NULL, 10));
  }
  if (strcmp(type, "number") == 0 && isfinite(strtod(text, NULL))) {
    return json_real(strtod(text, NULL));
  }
  return json_string(text);
}

static json_t *options_json(const cleave_declared_t *declared) {
  json_t *options = json_array();
  for (uint32_t k = 0; k < declared->option_count; k++) {
    const cleave_declared_option_t *option = &declared->options[k];
    if (option->name != NULL) {
      (void)json_array_append_new(
          options, json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:i}", "name", option->name, "type",
                             option->type, "default", value_json(option->type, option->fallback), "value",
                             value_json(option->type, option->value), "range", option->range, "doc",
                             option->doc, "line", (int)option->line));
    }
  }
  return options;
}

static json_t *file_json(const char *path, const cleave_declared_t *declared) {
  json_t *tests = json_array();
  for (uint32_t k = 0; k < declared->test_count; k++) {
    const cleave_rule_test_t *test = &declared->tests[k];
    (void)json_array_append_new(
        tests, json_pack("{s:s, s:s, s:i}", "name", test->name, "doc", test->doc, "line", (int)test->line));
  }
  return json_pack("{s:s, s:o, s:o, s:o}", "file", path, "rules", rules_json(declared), "options",
                   options_json(declared), "tests", tests);
}

/* Each file by itself; a setting has to be known to one of them. */
static cleave_status_t load(const cleave_text_list_t *paths, const cleave_settings_t *settings,
                            cleave_rule_list_t *list, cleave_error_t *error) {
  cleave_partition_request_t request;
  CLEAVE_TRY(cleave_rule_request(paths, settings, &request, error));
  cleave_status_t status = cleave_rule_list_load(list, cleave_common_context(), &request, NULL, error);
  cleave_rule_request_deinit(&request);
  return status;
}

static int print(const cleave_text_list_t *paths, const cleave_rule_list_t *list, bool json) {
  json_t *files = json ? json_array() : NULL;
  for (size_t k = 0; k < list->file_count; k++) {
    const cleave_declared_t *declared = cleave_rules_declared(list->files[k]);
    if (json) {
      (void)json_array_append_new(files, file_json(paths->items[k], declared));
      continue;
    }
    cleave_print(CLEAVE_TRUSTED CLEAVE_TRUSTED "%s" CLEAVE_TRUSTED "\n", k == 0 ? "" : "\n",
                 cleave_output_style(CLEAVE_STYLE_BOLD), paths->items[k],
                 cleave_output_style(CLEAVE_STYLE_PLAIN));
    print_rules(paths->items[k], declared);
    print_options(declared);
    print_tests(paths->items[k], declared);
  }
  return json ? cleave_output_json(json_pack("{s:o}", "files", files)) : CLEAVE_EXIT_OK;
}

static int run(cleave_arguments_t *arguments) {
  cleave_text_list_t set = {0};
  bool json = false;
  const cleave_option_t options[] = {
      CLEAVE_LIST(&set, "set", "NAME=VALUE", "option of the rule files, to see which rules it enables"),
      CLEAVE_FLAG(&json, "json", "print it as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_rule_list_t list = {0};
  cleave_settings_t settings = {0};
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    if (cleave_settings_read(&set, &settings, &error) != CLEAVE_OK ||
        load(&arguments->found, &settings, &list, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    } else {
      status = print(&arguments->found, &list, json);
    }
  }
  cleave_rule_list_deinit(&list);
  cleave_settings_deinit(&settings);
  return status;
}

CLEAVE_COMMAND_DEFINE(rules, 26, "FILE...", run, "list rules, options and tests of rule files",
                      "Lists what rule files declare: rules in their order, options for --set, tests.",
                      .min_operands = 1, .max_operands = SIZE_MAX)
