// SPDX-License-Identifier: Apache-2.0
// cleave cache: what the folder of compiled regions holds, and emptying it.
#include <stdio.h>
#include <time.h>

#include "backend/program/blob_key.h"
#include "backend/program/blob_store.h"
#include "backend/registry/context.h"
#include "cli/common/arguments.h"
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/output.h"

/* The texts of a file's key that people want to see; "" if they are not known. */
typedef struct shown {
  char backend[64];
  char version[64];
  char device[80];
  char region[64];
} shown_t;

static void find(const cleave_blob_entry_t *entry, const char *label, char *text, size_t size) {
  size_t length = 0;
  const char *found = entry->key == NULL ? "" : cleave_blob_key_find(entry->key, label, &length);
  (void)snprintf(text, size, "%.*s", (int)length, found);
}

static shown_t show(const cleave_blob_entry_t *entry) {
  shown_t shown;
  find(entry, "backend", shown.backend, sizeof shown.backend);
  if (entry->is_plan && entry->key != NULL) {
    (void)snprintf(shown.backend, sizeof shown.backend, "(plan)");
  }
  find(entry, "version", shown.version, sizeof shown.version);
  find(entry, "device", shown.device, sizeof shown.device);
  find(entry, "region", shown.region, sizeof shown.region);
  return shown;
}

/* "2026-03-01 12:00" */
static const char *format_time(int64_t ns, char *buffer, size_t size) {
  time_t seconds = (time_t)(ns / INT64_C(1000000000));
  struct tm parts;
  if (localtime_r(&seconds, &parts) == NULL || strftime(buffer, size, "%Y-%m-%d %H:%M", &parts) == 0) {
    buffer[0] = '\0';
  }
  return buffer;
}

static uint64_t sum_bytes(const cleave_blob_list_t *list) {
  uint64_t bytes = 0;
  for (size_t k = 0; k < list->count; k++) {
    bytes += list->items[k].bytes;
  }
  return bytes;
}

static size_t count_plans(const cleave_blob_list_t *list) {
  size_t count = 0;
  for (size_t k = 0; k < list->count; k++) {
    count += list->items[k].is_plan ? 1 : 0;
  }
  return count;
}

static void print_text(const cleave_blob_store_t *store, const cleave_blob_list_t *list, uint64_t limit) {
  char buffers[2][32];
  char plans[48] = "";
  size_t plan_count = count_plans(list);
  size_t region_count = list->count - plan_count;
  if (plan_count > 0) {
    (void)snprintf(plans, sizeof plans, ", %zu plan%s", plan_count, CLEAVE_PLURAL(plan_count));
  }
  cleave_print("%s: %zu compiled region%s%s, %s of %s\n", cleave_blob_store_folder(store), region_count,
               CLEAVE_PLURAL(region_count), plans,
               cleave_output_bytes((double)sum_bytes(list), buffers[0], sizeof buffers[0]),
               cleave_output_bytes((double)limit, buffers[1], sizeof buffers[1]));
  if (list->count == 0) {
    return;
  }
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "backend\tversion\tdevice\tregion\tsize\tlast used\n");
  for (size_t k = 0; k < list->count; k++) {
    const cleave_blob_entry_t *entry = &list->items[k];
    shown_t shown = show(entry);
    cleave_text_show(&rows, "%s\t%s\t%s\t%s\t%s\t%s\n", entry->key == NULL ? "(unreadable)" : shown.backend,
                     shown.version, shown.device, shown.region,
                     cleave_output_bytes((double)entry->bytes, buffers[0], sizeof buffers[0]),
                     format_time(entry->used_ns, buffers[1], sizeof buffers[1]));
  }
  cleave_output_table(&rows, "llllrl");
}

static int print_json(const cleave_blob_store_t *store, const cleave_blob_list_t *list, uint64_t limit) {
  json_t *regions = json_array();
  json_t *plans = json_array();
  for (size_t k = 0; k < list->count; k++) {
    const cleave_blob_entry_t *entry = &list->items[k];
    shown_t shown = show(entry);
    json_t *file =
        json_pack("{s:s, s:I, s:I, s:b}", "file", entry->name, "bytes", (json_int_t)entry->bytes, "last_used",
                  (json_int_t)(entry->used_ns / INT64_C(1000000000)), "readable", entry->key != NULL);
    if (entry->key != NULL) {
      (void)json_object_set_new(file, "version", json_string(shown.version));
      (void)json_object_set_new(file, "region", json_string(shown.region));
    }
    if (entry->key != NULL && !entry->is_plan) {
      (void)json_object_set_new(file, "backend", json_string(shown.backend));
      (void)json_object_set_new(file, "device", json_string(shown.device));
    }
    (void)json_array_append_new(entry->is_plan ? plans : regions, file);
  }
  return cleave_output_json(json_pack("{s:s, s:I, s:I, s:o, s:o}", "folder", cleave_blob_store_folder(store),
                                      "bytes", (json_int_t)sum_bytes(list), "limit", (json_int_t)limit,
                                      "regions", regions, "plans", plans));
}

static cleave_status_t work(bool clear, bool json, int *out_exit, cleave_error_t *error) {
  const cleave_session_options_t options = cleave_common_session();
  uint64_t limit = options.blob_limit == 0 ? CLEAVE_BLOB_LIMIT : options.blob_limit;
  cleave_blob_store_t *store = NULL;
  cleave_blob_list_t list = {0};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_blob_store_open(options.blob_folder, limit,
                                            cleave_context_log(cleave_common_context()), &store, error));
  if (clear) {
    CLEAVE_TRY_CLEANUP(cleave_blob_store_clear(store, error));
  }
  CLEAVE_TRY_CLEANUP(cleave_blob_store_list(store, true, &list, error));
  if (json) {
    *out_exit = print_json(store, &list, limit);
  } else {
    print_text(store, &list, limit);
  }
cleanup:
  cleave_blob_list_deinit(&list);
  cleave_blob_store_close(store);
  return status;
}

static int run(cleave_arguments_t *arguments) {
  bool clear = false;
  bool json = false;
  const cleave_option_t options[] = {
      CLEAVE_FLAG(&clear, "clear", "remove them; other files in the folder stay"),
      CLEAVE_FLAG(&json, "json", "print the list as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    if (cleave_common_session().blob_folder == NULL) {
      status = cleave_arguments_fail("cache", "expected --cache DIR, or a folder in CLEAVE_CACHE");
    } else if (work(clear, json, &status, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    }
  }
  return status;
}

CLEAVE_COMMAND_DEFINE(
    cache, 85, NULL, run, "list or remove compiled regions that are kept",
    "Lists the compiled regions that sessions keep in the folder of --cache or CLEAVE_CACHE, so that\n"
    "the next process need not compile them. Only backends that can serialise their programs take part.",
    .makes_sessions = true)
