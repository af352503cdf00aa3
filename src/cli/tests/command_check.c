// SPDX-License-Identifier: Apache-2.0
// cleave check: runs the tests of rule files, and says what else is worth knowing about them. Files are
// checked one after the other; one that does not load counts as one failure, and the others go on.
#include <string.h>

#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/load.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "cli/tests/check_files.h"
#include "runtime/model/model.h"
#include "system/file.h"
#include "tools/rule_tests/rule_check.h"

typedef struct file_result {
  const char *path;
  cleave_rule_check_t check;
  cleave_error_t error; /* the file does not load */
} file_result_t;

typedef struct command {
  cleave_text_list_t model_paths;
  cleave_text_list_t set;
  cleave_text_list_t shapes;
  const char *test;
  int64_t threads;
  bool strict;
  bool coverage;
  bool verbose;
  bool json;
  cleave_settings_t settings;
  bool *setting_used;
  bool *shape_used;
  cleave_model_t **models;
  cleave_sizes_t *sizes; /* by model */
  cleave_check_model_t *graphs;
  cleave_paths_t found; /* what the operands stand for */
  file_result_t *files;
  size_t file_count;
  /* totals */
  size_t passed;
  size_t failed;
  size_t errors; /* of lints */
  size_t skipped;
  size_t warnings;
  size_t notes;
} command_t;

// ---- checking ----

/* Gives a model the sizes that it leaves open, as every command does. */
static cleave_status_t bind_model(command_t *command, size_t index, cleave_error_t *error) {
  cleave_model_t *bound = NULL;
  cleave_sizes_t *sizes = &command->sizes[index];
  cleave_size_request_t request = {
      .shapes = &command->shapes, .may_be_added = true, .used = command->shape_used};
  CLEAVE_TRY(cleave_sizes_find(cleave_model_graph(command->models[index]), &request, sizes, error));
  if (sizes->closes) {
    CLEAVE_TRY(
        cleave_model_bind_partly(command->models[index], sizes->pointers, sizes->input_count, &bound, error));
    cleave_model_release(command->models[index]);
    command->models[index] = bound;
  }
  return CLEAVE_OK;
}

static cleave_status_t check_shapes(const command_t *command, cleave_error_t *error) {
  for (size_t k = 0; k < command->shapes.count; k++) {
    if (!command->shape_used[k]) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "--shape: no model given has an input or an open size of the name in '%s'",
                              command->shapes.items[k]);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t load_models(command_t *command, cleave_error_t *error) {
  size_t count = command->model_paths.count;
  command->models = cleave_allocate_zeroed(count, sizeof(cleave_model_t *));
  command->graphs = cleave_allocate_zeroed(count, sizeof *command->graphs);
  command->setting_used = cleave_allocate_zeroed(command->settings.count, sizeof(bool));
  cleave_status_t status = CLEAVE_OK;
  command->sizes = cleave_allocate_zeroed(count, sizeof *command->sizes);
  command->shape_used = cleave_allocate_zeroed(command->shapes.count, sizeof *command->shape_used);
  CLEAVE_TRY_MEMORY_CLEANUP(command->models != NULL && command->graphs != NULL && command->sizes != NULL &&
                                command->shape_used != NULL && command->setting_used != NULL,
                            error);
  for (size_t k = 0; k < count; k++) {
    const char *path = command->model_paths.items[k];
    cleave_output_progress("reading %s", path);
    CLEAVE_TRY_CLEANUP(cleave_model_read(path, &command->settings, &command->shapes, NULL, NULL,
                                         &command->models[k], error));
    CLEAVE_TRY_CLEANUP(bind_model(command, k, error));
    command->graphs[k] = (cleave_check_model_t){path, cleave_model_graph(command->models[k])};
    for (size_t s = 0; s < command->settings.count; s++) {
      command->setting_used[s] = command->setting_used[s] || command->settings.used[s];
    }
  }
  CLEAVE_TRY_CLEANUP(check_shapes(command, error));
cleanup:
  return status;
}

static void show_progress(void *context, const char *test) {
  const file_result_t *file = context;
  cleave_output_progress("%s: %s", file->path, test);
}

/* Is the setting that of the option, by its name or by FILE.NAME? */
static bool is_setting_of(const char *setting, const char *path, const char *option) {
  const char *file = cleave_path_name(path);
  size_t length = strlen(file) - (cleave_path_has_extension(file, ".lua") ? 4 : 0);
  return strcmp(setting, option) == 0 || (strncmp(setting, file, length) == 0 && setting[length] == '.' &&
                                          strcmp(setting + length + 1, option) == 0);
}

static void mark_settings(command_t *command, const char *path, const cleave_rules_t *rules) {
  const cleave_declared_t *declared = cleave_rules_declared(rules);
  for (size_t s = 0; s < command->settings.count; s++) {
    for (uint32_t k = 0; k < declared->option_count; k++) {
      const char *name = declared->options[k].name;
      command->setting_used[s] = command->setting_used[s] ||
                                 (name != NULL && is_setting_of(command->settings.items[s].name, path, name));
    }
  }
}

/* Lints as the command sees them: --coverage wants tests. */
static cleave_lint_level_t level_of(const command_t *command, const cleave_lint_t *lint) {
  bool is_coverage = strcmp(lint->code, "untested") == 0 || strcmp(lint->code, "no-negative-test") == 0;
  return command->coverage && is_coverage ? CLEAVE_LINT_ERROR : lint->level;
}

static void check_file(command_t *command, file_result_t *file) {
  cleave_rule_source_t source = {.path = file->path};
  cleave_session_options_t session = cleave_common_session();
  cleave_rule_check_options_t options = {
      .context = cleave_common_context(),
      .settings = command->settings.items,
      .setting_count = command->settings.count,
      .only = command->test,
      .models = command->graphs,
      .model_count = command->model_paths.count,
      .threads = (int32_t)(command->threads > 1024 ? 1024 : command->threads),
      .session = &session,
      .progress = show_progress,
      .progress_context = file};
  if (cleave_rule_check_run(&source, &options, &file->check, &file->error) != CLEAVE_OK) {
    command->failed++;
  }
  if (file->check.rules != NULL) {
    mark_settings(command, file->path, file->check.rules);
  }
  command->passed += file->check.passed;
  command->failed += file->check.failed;
  command->skipped += file->check.skipped;
  for (size_t k = 0; k < file->check.lints.count; k++) {
    cleave_lint_level_t level = level_of(command, &file->check.lints.items[k]);
    command->errors += level == CLEAVE_LINT_ERROR;
    command->warnings += level == CLEAVE_LINT_WARNING;
    command->notes += level == CLEAVE_LINT_NOTE;
  }
}

static cleave_status_t check_settings(const command_t *command, cleave_error_t *error) {
  for (size_t s = 0; s < command->settings.count; s++) {
    const char *name = command->settings.items[s].name;
    cleave_nearest_t nearest = {0};
    bool all_loaded = true;
    for (size_t f = 0; f < command->file_count; f++) {
      const cleave_rules_t *rules = command->files[f].check.rules;
      all_loaded = all_loaded && rules != NULL;
      const cleave_declared_t *declared = rules == NULL ? NULL : cleave_rules_declared(rules);
      for (uint32_t k = 0; declared != NULL && k < declared->option_count; k++) {
        if (declared->options[k].name != NULL) {
          cleave_nearest_offer(&nearest, name, declared->options[k].name);
        }
      }
    }
    if (all_loaded && !command->setting_used[s]) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "setting '%s': no rule file or model given has an option of this name%s; "
                              "'cleave rules FILE' lists them",
                              name, cleave_nearest_hint(&nearest));
    }
  }
  return CLEAVE_OK;
}

// ---- printing ----

static void print_tests(const command_t *command) {
  static const cleave_style_t STYLES[] = {CLEAVE_STYLE_GOOD, CLEAVE_STYLE_BAD, CLEAVE_STYLE_DIM};
  cleave_text_t rows = {0};
  for (size_t f = 0; f < command->file_count; f++) {
    const cleave_rule_check_t *check = &command->files[f].check;
    for (size_t k = 0; k < check->tests.count; k++) {
      const cleave_test_result_t *test = &check->tests.items[k];
      cleave_text_add(&rows, rows.length == 0 ? "file\ttest\tverdict\tms\n" : "");
      cleave_text_show(&rows, "%s:%d\t%s\t" CLEAVE_TRUSTED "%s" CLEAVE_TRUSTED "\t%.1f\n", test->file,
                       (int)test->line, test->name, cleave_output_style(STYLES[test->verdict]),
                       cleave_test_verdict_name(test->verdict), cleave_output_style(CLEAVE_STYLE_PLAIN),
                       test->ms);
    }
  }
  const char *end = rows.length > 0 ? "\n" : "";
  cleave_output_table(&rows, "lllr");
  cleave_print(CLEAVE_TRUSTED, end);
}

/* Lines of a report, indented. */
static void print_indented(const char *text) {
  while (*text != '\0') {
    const char *end = strchr(text, '\n');
    int length = (int)(end == NULL ? strlen(text) : (size_t)(end - text));
    cleave_print("    %.*s\n", length, text);
    text += (size_t)length + (end != NULL);
  }
}

static void print_failures(const file_result_t *file) {
  const char *skip_reason = "";
  if (file->error.status != CLEAVE_OK) {
    cleave_print(CLEAVE_TRUSTED "error" CLEAVE_TRUSTED ": %s\n", cleave_output_style(CLEAVE_STYLE_BAD),
                 cleave_output_style(CLEAVE_STYLE_PLAIN), file->error.message);
  }
  for (size_t k = 0; k < file->check.tests.count; k++) {
    const cleave_test_result_t *test = &file->check.tests.items[k];
    if (test->verdict == CLEAVE_TEST_FAILED) {
      cleave_print("%s:%d: test '%s' " CLEAVE_TRUSTED "failed" CLEAVE_TRUSTED "\n", test->file,
                   (int)test->line, test->name, cleave_output_style(CLEAVE_STYLE_BAD),
                   cleave_output_style(CLEAVE_STYLE_PLAIN));
      print_indented(test->report);
    } else if (test->verdict == CLEAVE_TEST_SKIPPED && strcmp(skip_reason, test->report) != 0) {
      skip_reason = test->report;
      cleave_print("%s:%d: skipped: %s\n", test->file, (int)test->line, test->report);
    }
  }
}

static void print_lints(const command_t *command, const file_result_t *file) {
  static const char *const NAMES[] = {"note", "warning", "error"};
  for (size_t k = 0; k < file->check.lints.count; k++) {
    const cleave_lint_t *lint = &file->check.lints.items[k];
    cleave_lint_level_t level = level_of(command, lint);
    if (level > CLEAVE_LINT_NOTE || command->verbose) {
      cleave_print("%s:%d: " CLEAVE_TRUSTED "%s" CLEAVE_TRUSTED ": %s [%s]\n",
                   lint->file[0] == '\0' ? file->path : lint->file, (int)lint->line,
                   cleave_output_style(level == CLEAVE_LINT_ERROR ? CLEAVE_STYLE_BAD : CLEAVE_STYLE_BOLD),
                   NAMES[level], cleave_output_style(CLEAVE_STYLE_PLAIN), lint->message, lint->code);
    }
  }
}

static void print_sizes(const command_t *command) {
  for (size_t k = 0; k < command->model_paths.count; k++) {
    if (command->sizes[k].items.count > 0) {
      cleave_print("%s\n", command->model_paths.items[k]);
      cleave_report_sizes(&command->sizes[k]);
    }
  }
}

static void print_text(const command_t *command) {
  print_sizes(command);
  print_tests(command);
  for (size_t f = 0; f < command->file_count; f++) {
    print_failures(&command->files[f]);
  }
  for (size_t f = 0; f < command->file_count; f++) {
    print_lints(command, &command->files[f]);
  }
  if (command->notes > 0 && !command->verbose) {
    cleave_print("%zu %s (--verbose shows)\n", command->notes,
                 CLEAVE_BY_COUNT(command->notes, "note", "notes"));
  }
  cleave_print("%zu passed, %zu failed", command->passed, command->failed);
  if (command->skipped > 0) {
    cleave_print(", %zu skipped", command->skipped);
  }
  if (command->errors > 0) {
    cleave_print(", %zu %s", command->errors, CLEAVE_BY_COUNT(command->errors, "error", "errors"));
  }
  if (command->warnings > 0) {
    cleave_print(", %zu %s", command->warnings, CLEAVE_BY_COUNT(command->warnings, "warning", "warnings"));
  }
  cleave_print("\n");
}

static json_t *tests_json(const cleave_rule_check_t *check) {
  json_t *tests = json_array();
  for (size_t k = 0; k < check->tests.count; k++) {
    const cleave_test_result_t *test = &check->tests.items[k];
    (void)json_array_append_new(
        tests, json_pack("{s:s, s:i, s:s, s:f, s:s}", "name", test->name, "line", (int)test->line, "verdict",
                         cleave_test_verdict_name(test->verdict), "ms", test->ms, "report", test->report));
  }
  return tests;
}

static json_t *lints_json(const command_t *command, const cleave_rule_check_t *check) {
  static const char *const NAMES[] = {"note", "warning", "error"};
  json_t *lints = json_array();
  for (size_t k = 0; k < check->lints.count; k++) {
    const cleave_lint_t *lint = &check->lints.items[k];
    (void)json_array_append_new(
        lints, json_pack("{s:s, s:s, s:i, s:s, s:s}", "level", NAMES[level_of(command, lint)], "file",
                         lint->file, "line", (int)lint->line, "code", lint->code, "message", lint->message));
  }
  return lints;
}

static json_t *rules_json(const cleave_rule_check_t *check) {
  json_t *rules = json_array();
  for (size_t k = 0; k < check->reach.count; k++) {
    const cleave_rule_reach_t *reach = &check->reach.items[k];
    (void)json_array_append_new(
        rules,
        json_pack("{s:s, s:s, s:s, s:i, s:b, s:I, s:I}", "name", reach->rule->name, "kind", reach->rule->kind,
                  "file", reach->rule->file, "line", (int)reach->rule->line, "ran", (int)reach->ran,
                  "matches", (json_int_t)reach->matches, "model_matches", (json_int_t)reach->model_matches));
  }
  return rules;
}

static int print_json(const command_t *command) {
  json_t *files = json_array();
  for (size_t f = 0; f < command->file_count; f++) {
    const file_result_t *file = &command->files[f];
    json_t *entry = json_pack("{s:s, s:o, s:o, s:o}", "file", file->path, "tests", tests_json(&file->check),
                              "lints", lints_json(command, &file->check), "rules", rules_json(&file->check));
    (void)json_object_set_new(
        entry, "error", file->error.status == CLEAVE_OK ? json_null() : json_string(file->error.message));
    (void)json_array_append_new(files, entry);
  }
  json_t *models = json_array();
  for (size_t k = 0; k < command->model_paths.count; k++) {
    (void)json_array_append_new(models, json_pack("{s:s, s:o}", "model", command->model_paths.items[k],
                                                  "sizes", cleave_sizes_json(&command->sizes[k])));
  }
  return cleave_output_json(json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "files", files, "models", models,
                                      "passed", (json_int_t)command->passed, "failed",
                                      (json_int_t)command->failed, "skipped", (json_int_t)command->skipped,
                                      "errors", (json_int_t)command->errors, "warnings",
                                      (json_int_t)command->warnings));
}

// ---- the command ----

static int work(command_t *command, const cleave_text_list_t *operands) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_check_files_list(operands, &command->found, &error) != CLEAVE_OK) {
    return cleave_output_error(&error);
  }
  size_t count = command->found.count;
  command->files = cleave_allocate_zeroed(count, sizeof *command->files);
  if (command->files == NULL) {
    (void)cleave_error_out_of_memory(&error);
    return cleave_output_error(&error);
  }
  if (cleave_settings_read(&command->set, &command->settings, &error) != CLEAVE_OK ||
      load_models(command, &error) != CLEAVE_OK) {
    return cleave_output_error(&error);
  }
  for (size_t k = 0; k < count; k++) {
    file_result_t *file = &command->files[command->file_count++];
    file->path = command->found.items[k];
    check_file(command, file);
  }
  cleave_output_progress_end();
  if (check_settings(command, &error) != CLEAVE_OK) {
    return cleave_output_error(&error);
  }
  if (command->test != NULL && command->passed + command->failed + command->skipped == 0) {
    (void)cleave_error_set(&error, CLEAVE_ERROR_INVALID_ARGUMENT, "no test has '%s' in its name",
                           command->test);
    return cleave_output_error(&error);
  }
  int status = CLEAVE_EXIT_OK;
  if (command->json) {
    status = print_json(command);
  } else {
    print_text(command);
  }
  bool has_failed =
      command->failed + command->errors > 0 || (command->strict && command->warnings + command->skipped > 0);
  return status == CLEAVE_EXIT_OK && has_failed ? CLEAVE_EXIT_FAILURE : status;
}

static void deinit(command_t *command) {
  for (size_t k = 0; k < command->file_count; k++) {
    cleave_rule_check_deinit(&command->files[k].check);
  }
  cleave_free(command->files);
  cleave_paths_deinit(&command->found);
  for (size_t k = 0; command->models != NULL && k < command->model_paths.count; k++) {
    cleave_model_release(command->models[k]);
  }
  for (size_t k = 0; command->sizes != NULL && k < command->model_paths.count; k++) {
    cleave_sizes_deinit(&command->sizes[k]);
  }
  cleave_free(command->sizes);
  cleave_free(command->shape_used);
  cleave_free((void *)command->models);
  cleave_free(command->graphs);
  cleave_free(command->setting_used);
  cleave_settings_deinit(&command->settings);
}

static int run(cleave_arguments_t *arguments) {
  command_t command = {.threads = 1};
  const cleave_option_t options[] = {
      CLEAVE_LIST(&command.model_paths, "model", "MODEL",
                  "model that the rules are meant for; may be given many times. A rule that matches in none "
                  "of them gets a warning"),
      CLEAVE_LIST(&command.set, "set", "NAME=VALUE",
                  "option of the rule files or model scripts; a test's own options win"),
      CLEAVE_LIST(&command.shapes, "shape", "NAME=SIZES", CLEAVE_SHAPE_HELP),
      CLEAVE_TEXT(&command.test, "test", "TEXT", "only tests with this text in their name"),
      CLEAVE_FLAG(&command.coverage, "coverage",
                  "fail if a rule has fewer than two tests, or no test of what it must leave alone"),
      CLEAVE_FLAG(&command.strict, "strict", "fail also on warnings and on skipped tests"),
      CLEAVE_INT(&command.threads, "threads", "N", "threads of tests that run (default: 1)"),
      {"verbose", 'v', CLEAVE_OPTION_FLAG, NULL, "show notes, too", &command.verbose},
      CLEAVE_FLAG(&command.json, "json", "print the results as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    status = work(&command, &arguments->found);
  }
  deinit(&command);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    check, 25, "FILE|DIR...", run, "run the tests of rule files and look for mistakes",
    "Runs the tests of rule files, and of all rule files in a folder and below, and looks for mistakes\n"
    "that are not errors: rules that never get a match, options that nothing reads, functions that could\n"
    "be data. Exit status 1 if a test or file fails. Tests whose backend is not in this program are\n"
    "skipped.",
    .makes_sessions = true, .min_operands = 1, .max_operands = SIZE_MAX)
