// SPDX-License-Identifier: Apache-2.0
// Libraries are loaded in the order in which they are given, then configured as --configure says, then
// options of sessions are taken apart: so that names of backends mean what is there by then. The log comes
// first.
#include "cli/common/common.h"

#include <stdlib.h>
#include <string.h>

#include "backend/program/backend_options.h"
#include "backend/registry/registry.h"
#include "base/memory.h"
#include "cli/common/command.h"
#include "cli/common/output.h"

enum { SESSION_OPTIONS = 3, DEVICE_OPTIONS = 1, MAX_SECONDS = 86400 };

static cleave_text_list_t libraries;
static cleave_text_list_t isolated;
static bool falls_back;
static bool is_lenient;
static bool keeps_dead;
static cleave_text_list_t fixes;
static cleave_text_list_t settings;
static cleave_text_list_t options;
static const char *log_level;
static const char *folder;
static int64_t limit_mb;
static double script_seconds;
static const char *device;

static cleave_context_t *context;                /* that all models of the command are of */
static cleave_backend_option_t *backend_options; /* of `options` and `device` */
static uint32_t backend_option_count;
static cleave_fixed_input_t *fixed; /* of `fixes`, with room for one more; their names are copies */
static size_t fixed_count;
static char **texts;         /* that those of `options` point into */
static char *device_backend; /* the name in `device` */

static const cleave_option_t TABLE[] = {
    CLEAVE_LIST(
        &libraries, "load", "[NAME=]LIBRARY",
        "load an accelerator library; rule files name it as their backend, by its own name or by NAME; may "
        "be given many times. Libraries in the folders of CLEAVE_BACKEND_PATH are found by name"),
    CLEAVE_LIST(
        &isolated, "isolate", "NAME[=SECONDS]",
        "run the library of this name in a process of its own: when it crashes, writes beyond its buffers, "
        "or does not answer within SECONDS (default: 10 for questions, 120 to compile, 30 to run), the "
        "command ends with an error, and nothing else is harmed; may be given many times"),
    CLEAVE_FLAG(&falls_back, "fallback",
                "cpu takes over from a backend that fails in a run or whose device has no memory, and with "
                "--isolate from a library that crashed or did not answer; with --plan: regions whose backend "
                "is missing or refuses them run node by node on cpu"),
    CLEAVE_FLAG(
        &is_lenient, "lenient",
        "accept ONNX files with an operator set newer than the newest known one (read as that one), with "
        "functions that do not import what they use, and with outputs of another shape than declared"),
    CLEAVE_FLAG(&keeps_dead, "keep-dead",
                "keep nodes that no output of the model needs; by default they are removed first"),
    CLEAVE_LIST(
        &fixes, "fix", "NAME=VALUE",
        "give an input of the model this value for good, so that it is a constant, and conditions (If) "
        "that depend on it are decided; a number or bool of one element. May be given many times"),
    CLEAVE_LIST(&settings, "configure", "BACKEND.KEY=VALUE",
                "set a key of a backend, right after it is loaded; may be given many times. 'cleave backends "
                "BACKEND --ask KEY' prints its answer"),
    CLEAVE_TEXT(&log_level, "log", "LEVEL",
                "print messages of cleave and of libraries on standard error, up to this level: error, "
                "warning, information or detail (default: none)"),
    CLEAVE_NUMBER(&script_seconds, "script-time", "SECONDS",
                  "time limit for all calls of rule files and model scripts together; beyond it the command "
                  "fails. repl and --watch start again at zero for each chunk and each reload (default: only "
                  "each call has a limit)"),
    CLEAVE_LIST(&options, "option", "BACKEND.KEY=VALUE",
                "option that a backend compiles its regions with; 'device' is the number of its device. May "
                "be given many times; the last value of a key counts"),
    CLEAVE_TEXT(&folder, "cache", "DIR",
                "folder that keeps compiled regions for the next process, for backends that support this "
                "(default: the environment's CLEAVE_CACHE, or none); see 'cleave cache'"),
    CLEAVE_INT(&limit_mb, "cache-limit", "MIB",
               "size limit of the folder; the least recently used regions are removed first (default: 2048)"),
    CLEAVE_TEXT(&device, "device", "NAME[:N]",
                "the same as --backend NAME --option NAME.device=N, like cpu, cuda:0 or a library's NAME:1; "
                "'cleave backends NAME' lists its devices"),
};

/* The variable of the command's --backend; NULL: it has none. */
static const char **find_backend_target(const cleave_arguments_t *arguments) {
  for (size_t k = 0; k < arguments->option_count; k++) {
    if (strcmp(arguments->options[k].name, "backend") == 0) {
      return arguments->options[k].target;
    }
  }
  return NULL;
}

const cleave_option_t *cleave_common_options(const cleave_arguments_t *arguments, size_t *out_count) {
  *out_count = sizeof TABLE / sizeof TABLE[0];
  if (!arguments->command->makes_sessions) {
    *out_count -= SESSION_OPTIONS + DEVICE_OPTIONS;
  } else if (find_backend_target(arguments) == NULL) {
    *out_count -= DEVICE_OPTIONS;
  }
  return TABLE;
}

/* ---- BACKEND.KEY=VALUE ---- */

/* Length of the backend's name: up to a point, behind which the key begins; 0: there is none. */
static size_t find_backend(char *text, size_t end) {
  size_t first = strcspn(text, ".");
  if (first == 0 || first + 1 >= end) {
    return 0;
  }
  for (size_t k = end - 2; k > first; k--) {
    const cleave_backend_handle_t *handle = NULL;
    if (text[k] == '.') {
      text[k] = '\0';
      bool is_there = cleave_registry_find(context, text, &handle, NULL) == CLEAVE_OK;
      text[k] = '.';
      if (is_there) {
        return k;
      }
    }
  }
  return first;
}

/* "mirror.level=3" in parts: the backend is the longest name of one that the text begins with, or what is
 * before the first point. All are copied into one text, which `out_memory` owns. *out_value is NULL if
 * there is no '=' and `needs_value` is false. */
static cleave_status_t split_setting(const char *option, const char *text, bool needs_value,
                                     cleave_backend_option_t *out_parts, char **out_memory,
                                     cleave_error_t *error) {
  size_t end = strcspn(text, "=");
  char *copy = cleave_copy_text(text, strlen(text));
  *out_memory = copy;
  CLEAVE_TRY_MEMORY(copy, error);
  size_t point = find_backend(copy, end);
  if (point == 0 || (needs_value && text[end] == '\0')) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "option '--%s': expected BACKEND.KEY=VALUE, found '%s'", option, text);
  }
  copy[point] = '\0';
  *out_parts = (cleave_backend_option_t){.backend = copy, .key = copy + point + 1};
  if (copy[end] == '=') {
    copy[end] = '\0';
    out_parts->value = copy + end + 1;
  }
  return CLEAVE_OK;
}

/* ---- NAME=VALUE ---- */

/* No value has a '=' in it, but a name may. */
static cleave_status_t split_fixes(cleave_error_t *error) {
  fixed = cleave_allocate_zeroed(fixes.count + 1, sizeof *fixed);
  CLEAVE_TRY_MEMORY(fixed, error);
  for (size_t k = 0; k < fixes.count; k++) {
    const char *equals = strrchr(fixes.items[k], '=');
    if (equals == NULL || equals == fixes.items[k]) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "option '--fix': expected NAME=VALUE, found '%s'", fixes.items[k]);
    }
    fixed[k].name = cleave_copy_text(fixes.items[k], (size_t)(equals - fixes.items[k]));
    fixed[k].value = equals + 1;
    CLEAVE_TRY_MEMORY(fixed[k].name, error);
    fixed_count = k + 1;
  }
  return CLEAVE_OK;
}

const cleave_fixed_input_t *cleave_common_fixed(size_t *out_count) {
  *out_count = fixed_count;
  return fixed;
}

void cleave_common_fix_usually(const char *name, const char *value) {
  for (size_t k = 0; k < fixes.count; k++) {
    if (strcmp(fixed[k].name, name) == 0) {
      return;
    }
  }
  fixed[fixes.count] = (cleave_fixed_input_t){.name = name, .value = value, .is_optional = true};
  fixed_count = fixes.count + 1;
}

/* ---- applying ---- */

static const char *const LEVELS[] = {"error", "warning", "information", "detail"};

static bool shows_progress;

void cleave_common_progress(bool shows) {
  shows_progress = shows;
  if (!shows) {
    cleave_output_progress_end();
  }
}

static void print_line(void *log_context, cleave_log_level_t level, const char *line) {
  const cleave_log_level_t *most = log_context;
  if (level <= *most) {
    cleave_print_error("cleave: %s: %s\n", LEVELS[level], line);
  } else if (level == CLEAVE_LOG_INFORMATION && shows_progress) {
    cleave_output_progress("%s", line);
  }
}

static cleave_status_t set_log(cleave_error_t *error) {
  static cleave_log_level_t most;
  for (size_t k = 0; k < sizeof LEVELS / sizeof LEVELS[0]; k++) {
    if (strcmp(log_level, LEVELS[k]) == 0) {
      most = (cleave_log_level_t)k;
      cleave_context_set_log(context, print_line, &most);
      return CLEAVE_OK;
    }
  }
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                          "option '--log': expected error, warning, information or detail, found '%s'",
                          log_level);
}

static cleave_status_t load(const char *text, cleave_error_t *error) {
  size_t length = strcspn(text, "=/");
  if (text[length] != '=') {
    return cleave_registry_load(context, text, NULL, error);
  }
  char *name = cleave_copy_text(text, length);
  CLEAVE_TRY_MEMORY(name, error);
  cleave_status_t status = cleave_registry_load(context, text + length + 1, name, error);
  cleave_free(name);
  return status;
}

/* "NAME" or "NAME=SECONDS". */
static cleave_status_t isolate(const char *text, cleave_error_t *error) {
  cleave_isolation_options_t limits = {.size = sizeof limits, .fallback = falls_back};
  size_t length = strcspn(text, "=");
  if (text[length] == '=') {
    char *end = NULL;
    double seconds = strtod(text + length + 1, &end);
    if (end == text + length + 1 || *end != '\0' || !(seconds >= 0.001 && seconds <= MAX_SECONDS)) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "option '--isolate': expected NAME or NAME=SECONDS, found '%s'", text);
    }
    limits.ask_ms = limits.compile_ms = limits.run_ms = (uint32_t)(seconds * 1000.0);
  }
  char *name = cleave_copy_text(text, length);
  CLEAVE_TRY_MEMORY(name, error);
  cleave_status_t status = cleave_backend_isolate(context, name, &limits, error);
  cleave_free(name);
  return status;
}

/* A name that is not a library's would isolate nothing. */
static cleave_status_t check_isolated(const char *text, cleave_error_t *error) {
  const cleave_backend_handle_t *handle = NULL;
  char *name = cleave_copy_text(text, strcspn(text, "="));
  CLEAVE_TRY_MEMORY(name, error);
  cleave_status_t status = cleave_registry_find(context, name, &handle, error);
  cleave_free(name);
  return status;
}

static cleave_status_t configure(const char *text, cleave_error_t *error) {
  char *memory = NULL;
  cleave_backend_option_t parts;
  cleave_status_t status = split_setting("configure", text, true, &parts, &memory, error);
  if (status == CLEAVE_OK) {
    cleave_key_value_t setting = {.key = parts.key, .value = parts.value};
    status = cleave_backend_configure(context, parts.backend, &setting, 1, NULL, NULL, error);
  }
  cleave_free(memory);
  return status;
}

static cleave_status_t split_options(cleave_error_t *error) {
  backend_options = cleave_allocate_zeroed(options.count + 1, sizeof *backend_options);
  texts = cleave_allocate_zeroed(options.count, sizeof *texts);
  CLEAVE_TRY_MEMORY(backend_options != NULL && texts != NULL, error);
  for (size_t k = 0; k < options.count; k++) {
    CLEAVE_TRY(split_setting("option", options.items[k], true, &backend_options[k], &texts[k], error));
  }
  backend_option_count = (uint32_t)options.count;
  return CLEAVE_OK;
}

/* "NAME" or "NAME:N", with what is wrong with it in `reason`. */
static cleave_status_t choose_device(const char **backend, cleave_error_t *reason) {
  const cleave_backend_handle_t *handle = NULL;
  const char *colon = strrchr(device, ':');
  uint32_t number = 0;
  device_backend = cleave_copy_text(device, colon == NULL ? strlen(device) : (size_t)(colon - device));
  CLEAVE_TRY_MEMORY(device_backend, reason);
  CLEAVE_TRY(cleave_registry_find(context, device_backend, &handle, reason));
  if (*backend != NULL && strcmp(*backend, device_backend) != 0) {
    return cleave_error_set(reason, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "expected a device of --backend %s, found '%s'", *backend, device);
  }
  *backend = device_backend;
  if (colon != NULL) {
    CLEAVE_TRY(cleave_backend_read_device(handle, colon + 1, &number, reason));
    backend_options[backend_option_count++] =
        (cleave_backend_option_t){.backend = device_backend, .key = "device", .value = colon + 1};
  }
  return CLEAVE_OK;
}

static cleave_status_t apply(const cleave_arguments_t *arguments, cleave_error_t *error) {
  CLEAVE_TRY(cleave_context_create(NULL, &context, error));
  cleave_common_start_script_time();
  if (log_level != NULL) {
    CLEAVE_TRY(set_log(error));
  }
  for (size_t k = 0; k < isolated.count; k++) {
    CLEAVE_TRY(isolate(isolated.items[k], error));
  }
  for (size_t k = 0; k < libraries.count; k++) {
    CLEAVE_TRY(load(libraries.items[k], error));
  }
  for (size_t k = 0; k < isolated.count; k++) {
    CLEAVE_TRY(check_isolated(isolated.items[k], error));
  }
  for (size_t k = 0; k < settings.count; k++) {
    CLEAVE_TRY(configure(settings.items[k], error));
  }
  CLEAVE_TRY(split_options(error));
  CLEAVE_TRY(split_fixes(error));
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  if (device == NULL || choose_device(find_backend_target(arguments), &reason) == CLEAVE_OK) {
    return CLEAVE_OK;
  }
  cleave_status_t status = cleave_error_set(error, reason.status, "option '--device': %s", reason.message);
  cleave_error_hint(error, reason.hint);
  return status;
}

int cleave_common_apply(const cleave_arguments_t *arguments) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  return apply(arguments, &error) == CLEAVE_OK ? CLEAVE_EXIT_OK : cleave_output_error(&error);
}

void cleave_common_start_script_time(void) {
  double ms = script_seconds * 1000.0;
  uint64_t limit = ms < 1e15 ? (uint64_t)ms : 0;
  cleave_context_set_script_time(context, script_seconds > 0.0 && limit == 0 ? 1 : limit);
}

cleave_context_t *cleave_common_context(void) {
  return context;
}

bool cleave_common_has_backend(const char *name) {
  for (uint32_t k = 0; k < cleave_backend_count(cleave_common_context()); k++) {
    if (strcmp(cleave_backend_name(cleave_common_context(), k), name) == 0) {
      return true;
    }
  }
  return false;
}

bool cleave_common_fallback(void) {
  return falls_back;
}

bool cleave_common_lenient(void) {
  return is_lenient;
}

bool cleave_common_keep_dead(void) {
  return keeps_dead;
}

cleave_session_options_t cleave_common_session(void) {
  const char *given = folder != NULL ? folder : getenv("CLEAVE_CACHE");
  return (cleave_session_options_t){.size = sizeof(cleave_session_options_t),
                                    .backend_options = backend_options,
                                    .backend_option_count = backend_option_count,
                                    .blob_folder = given != NULL && given[0] != '\0' ? given : NULL,
                                    .blob_limit = (uint64_t)limit_mb << 20,
                                    .fallback = falls_back};
}

void cleave_common_free(void) {
  cleave_context_release(context);
  context = NULL;
  for (size_t k = 0; texts != NULL && k < options.count; k++) {
    cleave_free(texts[k]);
  }
  for (size_t k = 0; k < fixed_count && k < fixes.count; k++) {
    cleave_free((void *)fixed[k].name);
  }
  cleave_free(texts);
  cleave_free(fixed);
  cleave_free(backend_options);
  cleave_free(device_backend);
  libraries = isolated = settings = options = fixes = (cleave_text_list_t){0};
  texts = NULL;
  fixed = NULL;
  fixed_count = 0;
  backend_options = NULL;
  backend_option_count = 0;
  device = NULL;
  device_backend = NULL;
  folder = NULL;
  log_level = NULL;
  limit_mb = 0;
  script_seconds = 0.0;
  falls_back = false;
  is_lenient = false;
  keeps_dead = false;
}
