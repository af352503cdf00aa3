// SPDX-License-Identifier: Apache-2.0
// cleave backends: what can execute here: linked in, loaded, and found in folders; and why one cannot.
#include <stdio.h>
#include <string.h>

#include "backend/registry/registry.h"
#include "cli/common/arguments.h"
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/output.h"

enum { MAX_DEVICES = 64 };

typedef struct backend_info {
  const char *name;
  const char *path;
  const cleave_backend_handle_t *handle; /* NULL: refused */
  cleave_error_t refusal;
  uint32_t device_count;
} backend_info_t;

static backend_info_t find(uint32_t index) {
  backend_info_t info = {.name = cleave_registry_name(cleave_common_context(), index),
                         .path = cleave_registry_path(cleave_common_context(), index),
                         .refusal = CLEAVE_ERROR_INIT};
  if (cleave_registry_find(cleave_common_context(), info.name, &info.handle, &info.refusal) == CLEAVE_OK) {
    const cleave_backend_devices_t *devices = info.handle->backend->devices;
    info.device_count = devices != NULL && devices->count != NULL ? devices->count(info.handle->state) : 0;
    info.device_count = info.device_count > MAX_DEVICES ? MAX_DEVICES : info.device_count;
  }
  return info;
}

static cleave_device_properties_t properties_of(const backend_info_t *info, uint32_t device) {
  cleave_device_properties_t properties = {.size = sizeof properties};
  cleave_message_t message = {.text = ""};
  const cleave_backend_devices_t *devices = info->handle->backend->devices;
  if (devices->properties == NULL ||
      devices->properties(info->handle->state, device, &properties, &message) != CLEAVE_OK) {
    (void)snprintf(properties.name, sizeof properties.name, "device %u", (unsigned)device);
  }
  properties.name[sizeof properties.name - 1] = '\0';
  return properties;
}

/* Lists what a library can do beyond compiling regions: "devices, single operators, blobs". */
static void add_abilities(const cleave_backend_t *backend, cleave_text_t *text) {
  const struct {
    bool has;
    const char *name;
  } ABILITIES[] = {
      {backend->devices != NULL, "devices"},       {backend->imperative != NULL, "single operators"},
      {backend->blobs != NULL, "blobs"},           {backend->cost != NULL, "costs"},
      {backend->review != NULL, "review"},         {backend->configure != NULL, "configure"},
      {backend->extensions != NULL, "extensions"}, {backend->adds, "adds"},
      {backend->backward != NULL, "backward"}};
  for (size_t k = 0; k < sizeof ABILITIES / sizeof ABILITIES[0]; k++) {
    if (ABILITIES[k].has) {
      cleave_text_format(text, "%s%s", text->length > 0 ? ", " : "", ABILITIES[k].name);
    }
  }
}

/* The state of a library in a process of its own. */
static cleave_isolation_t isolation_of(const backend_info_t *info) {
  cleave_isolation_t isolation = {.size = sizeof isolation};
  if (cleave_backend_isolation(cleave_common_context(), info->name, &isolation, NULL) != CLEAVE_OK) {
    isolation.is_isolated = false;
  }
  return isolation;
}

static void print_isolation(const backend_info_t *info) {
  cleave_isolation_t isolation = isolation_of(info);
  if (isolation.is_isolated && isolation.is_lost) {
    cleave_print("    isolated, and lost: %s\n", isolation.reason);
  } else if (isolation.is_isolated) {
    cleave_print("    isolated: process %lld run%s\n", (long long)isolation.process,
                 CLEAVE_PLURAL(isolation.process));
  }
}

static void print_details(const backend_info_t *info) {
  const cleave_backend_t *backend = info->handle->backend;
  cleave_text_t abilities = {0};
  char bytes[32];
  cleave_print("    %s\n", backend->description == NULL ? "" : backend->description);
  cleave_print("    interface %u.%u%s%s\n", (unsigned)backend->abi_major, (unsigned)backend->abi_minor,
               info->path[0] == '\0' ? ", linked in" : ", from ", info->path);
  print_isolation(info);
  add_abilities(backend, &abilities);
  if (abilities.length > 0) {
    cleave_print("    has %s\n", cleave_text_get(&abilities));
  }
  for (uint32_t k = 0; k < info->device_count; k++) {
    cleave_device_properties_t properties = properties_of(info, k);
    cleave_print("    device %u: %s, %s%s\n", (unsigned)k, properties.name,
                 properties.memory_bytes == 0
                     ? "memory not known"
                     : cleave_output_bytes((double)properties.memory_bytes, bytes, sizeof bytes),
                 properties.shares_host_memory ? ", shares host memory" : "");
  }
  const cleave_backend_extensions_t *extensions = backend->extensions;
  for (uint32_t k = 0; extensions != NULL && k < extensions->operator_count; k++) {
    const cleave_custom_operator_t *op = extensions->operators[k];
    int last = op->last_version == 0 ? op->version : op->last_version;
    cleave_print("    operator %s.%s, version%s %d", op->domain, op->name, last > op->version ? "s" : "",
                 (int)op->version);
    cleave_print(last > op->version ? " to %d: " : ": ", last);
    cleave_print("%s -> %s\n", op->inputs, op->outputs);
  }
  for (uint32_t k = 0; extensions != NULL && k < extensions->partitioner_count; k++) {
    cleave_print("    partitioner %s\n", extensions->partitioners[k]->name);
  }
  for (uint32_t k = 0; extensions != NULL && k < extensions->pass_count; k++) {
    cleave_print("    pass %s\n", extensions->passes[k]->name);
  }
  for (uint32_t k = 0; extensions != NULL && k < extensions->rule_file_count; k++) {
    cleave_print("    rule file %s\n", extensions->rule_files[k]);
  }
  cleave_text_deinit(&abilities);
}

/* Prints one of them, or all if `name` is NULL. */
static int print_text(const char *name, bool verbose) {
  for (uint32_t k = 0; k < cleave_registry_count(cleave_common_context()); k++) {
    if (name != NULL && strcmp(cleave_registry_name(cleave_common_context(), k), name) != 0) {
      continue;
    }
    backend_info_t info = find(k);
    if (info.handle == NULL) {
      cleave_print("  %-12s " CLEAVE_TRUSTED "not usable" CLEAVE_TRUSTED ": %s\n", info.name,
                   cleave_output_style(CLEAVE_STYLE_BAD), cleave_output_style(CLEAVE_STYLE_PLAIN),
                   info.refusal.message);
      continue;
    }
    const cleave_backend_t *backend = info.handle->backend;
    cleave_print("  %-12s %-10s %u device%s  %s\n", info.name,
                 backend->version == NULL ? "" : backend->version,
                 (unsigned)(info.device_count == 0 ? 1 : info.device_count),
                 info.device_count > 1 ? "s" : " ", info.path[0] == '\0' ? "linked in" : info.path);
    if (verbose) {
      print_details(&info);
    }
  }
  return CLEAVE_EXIT_OK;
}

static json_t *names_json(const cleave_backend_extensions_t *extensions) {
  json_t *names = json_array();
  for (uint32_t k = 0; extensions != NULL && k < extensions->operator_count; k++) {
    (void)json_array_append_new(
        names, json_sprintf("%s.%s", extensions->operators[k]->domain, extensions->operators[k]->name));
  }
  return names;
}

static int print_json(const char *name) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < cleave_registry_count(cleave_common_context()); k++) {
    if (name != NULL && strcmp(cleave_registry_name(cleave_common_context(), k), name) != 0) {
      continue;
    }
    backend_info_t info = find(k);
    json_t *json = json_pack("{s:s, s:b}", "name", info.name, "usable", info.handle != NULL);
    if (info.path[0] != '\0') {
      (void)json_object_set_new(json, "path", json_string(info.path));
    }
    if (info.handle == NULL) {
      (void)json_object_set_new(json, "reason", json_string(info.refusal.message));
    } else {
      const cleave_backend_t *backend = info.handle->backend;
      json_t *devices = json_array();
      for (uint32_t d = 0; d < info.device_count; d++) {
        cleave_device_properties_t properties = properties_of(&info, d);
        (void)json_array_append_new(devices, json_pack("{s:s, s:I, s:b}", "name", properties.name,
                                                       "memory_bytes", (json_int_t)properties.memory_bytes,
                                                       "shares_host_memory", properties.shares_host_memory));
      }
      (void)json_object_set_new(json, "version", json_string(backend->version));
      (void)json_object_set_new(json, "description", json_string(backend->description));
      (void)json_object_set_new(
          json, "interface",
          json_sprintf("%u.%u", (unsigned)backend->abi_major, (unsigned)backend->abi_minor));
      (void)json_object_set_new(json, "devices", devices);
      cleave_isolation_t isolation = isolation_of(&info);
      (void)json_object_set_new(json, "isolated", json_boolean(isolation.is_isolated));
      if (isolation.is_isolated) {
        (void)json_object_set_new(json, "process", json_integer((json_int_t)isolation.process));
      }
      if (isolation.is_lost) {
        (void)json_object_set_new(json, "lost", json_string(isolation.reason));
      }
      (void)json_object_set_new(json, "operators", names_json(backend->extensions));
    }
    (void)json_array_append_new(list, json);
  }
  return cleave_output_json(json_pack("{s:o}", "backends", list));
}

/* ---- one backend: what it answers ---- */

static void print_answers(const cleave_key_value_t *answers, uint32_t count) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "key\tvalue\n");
  for (uint32_t k = 0; k < count; k++) {
    cleave_text_show(&rows, "%s\t%s\n", answers[k].key, answers[k].value);
  }
  cleave_output_table(&rows, "ll");
}

static int print_answers_json(const char *name, const cleave_key_value_t *answers, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < count; k++) {
    (void)json_array_append_new(
        list, json_pack("{s:s+, s:s+}", "key", answers[k].key, "", "value", answers[k].value, ""));
  }
  return cleave_output_json(json_pack("{s:s, s:o}", "backend", name, "answers", list));
}

/* Sends KEY (asks) and KEY=VALUE (tells, and hears what is said to it); without any, asks for everything. */
static cleave_status_t ask(const char *name, const cleave_text_list_t *questions, bool json, int *out_exit,
                           cleave_error_t *error) {
  cleave_key_value_t *settings = cleave_allocate_zeroed(questions->count, sizeof *settings);
  char **keys = cleave_allocate_zeroed(questions->count, sizeof *keys);
  cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  cleave_status_t status = settings != NULL && keys != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
  for (size_t k = 0; k < questions->count && status == CLEAVE_OK; k++) {
    const char *text = questions->items[k];
    size_t length = strcspn(text, "=");
    keys[k] = cleave_copy_text(text, length);
    settings[k] =
        (cleave_key_value_t){.key = keys[k], .value = text[length] == '=' ? text + length + 1 : NULL};
    status = keys[k] == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  }
  CLEAVE_THEN(status, cleave_backend_configure(cleave_common_context(), name, settings,
                                               (uint32_t)questions->count, &answers, &count, error));
  if (status == CLEAVE_OK && json) {
    *out_exit = print_answers_json(name, answers, count);
  } else if (status == CLEAVE_OK) {
    print_answers(answers, count);
  }
  for (size_t k = 0; keys != NULL && k < questions->count; k++) {
    cleave_free(keys[k]);
  }
  cleave_answers_free(answers);
  cleave_free(keys);
  cleave_free(settings);
  return status;
}

static int print_one(const char *name, const cleave_text_list_t *questions, bool json) {
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const cleave_backend_handle_t *handle = NULL;
  if (cleave_registry_find(cleave_common_context(), name, &handle, &error) != CLEAVE_OK) {
    return cleave_output_error(&error);
  }
  if (questions->count == 0 && json) {
    return print_json(name);
  }
  if (questions->count == 0) {
    (void)print_text(name, true);
    if (handle->backend->configure == NULL) {
      return CLEAVE_EXIT_OK;
    }
    cleave_print("\n");
  }
  return ask(name, questions, json, &status, &error) == CLEAVE_OK ? status : cleave_output_error(&error);
}

static int run(cleave_arguments_t *arguments) {
  bool verbose = false;
  bool json = false;
  cleave_text_list_t questions = {0};
  const cleave_option_t options[] = {
      {"verbose", 'v', CLEAVE_OPTION_FLAG, NULL,
       "devices, interface version, abilities, and what a library adds to cleave", &verbose},
      CLEAVE_LIST(&questions, "ask", "KEY[=VALUE]",
                  "print the backend's answer to one of its keys, after setting it if a value is given; may "
                  "be given many times"),
      CLEAVE_FLAG(&json, "json", "print as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    const char *name = arguments->found.count > 0 ? arguments->found.items[0] : NULL;
    if (name != NULL) {
      status = print_one(name, &questions, json);
    } else if (questions.count > 0) {
      status = cleave_arguments_fail("backends", "option '--ask' needs the NAME of a backend");
    } else {
      status = json ? print_json(NULL) : print_text(NULL, verbose);
    }
  }
  return status;
}

CLEAVE_COMMAND_DEFINE(
    backends, 80, "[NAME]", run, "list what can execute here",
    "Lists what can execute here: backends that are linked in, libraries of --load, and those in the\n"
    "folders of CLEAVE_BACKEND_PATH; where each comes from, and why one is not usable. With NAME: "
    "everything\nabout that backend, and its answers to all of its keys.",
    .max_operands = 1)
