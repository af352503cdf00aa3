// SPDX-License-Identifier: Apache-2.0
// An isolated library: opened, described, ended. Its table is read once, when it is opened.
#include "backend/isolate/isolate.h"

#include <stdio.h>
#include <string.h>

#include "backend/isolate/isolate_internal.h"
#include "backend/library/library.h"

enum { ASK_MS = 10 * 1000, COMPILE_MS = 120 * 1000, RUN_MS = 30 * 1000, MAX_MS = 24 * 3600 * 1000 };

const cleave_backend_t *cleave_isolate_table(const cleave_isolate_t *isolate) {
  return &isolate->table;
}

/* ---- opening ---- */

static uint32_t limit_or(uint32_t given, uint32_t fallback) {
  return given == 0 ? fallback : given > MAX_MS ? MAX_MS : given;
}

static void set_options(cleave_isolate_t *isolate, const cleave_isolation_options_t *given) {
  cleave_isolation_options_t options = {.size = sizeof options};
  if (given != NULL) {
    memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
  }
  options.ask_ms = limit_or(options.ask_ms, ASK_MS);
  options.compile_ms = limit_or(options.compile_ms, COMPILE_MS);
  options.run_ms = limit_or(options.run_ms, RUN_MS);
  isolate->options = options;
}

static void free_isolate(cleave_isolate_t *isolate) {
  cleave_arena_deinit(&isolate->arena);
  cleave_arena_deinit(&isolate->answers);
  (void)pthread_mutex_destroy(&isolate->lock);
  cleave_free(isolate->path);
  cleave_free(isolate->absolute);
  cleave_free(isolate);
}

cleave_status_t cleave_isolate_open(const char *path, const char *absolute, const char *name,
                                    cleave_log_t *log, const cleave_isolation_options_t *options,
                                    cleave_isolate_t **out_isolate, cleave_error_t *error) {
  *out_isolate = NULL;
  cleave_isolate_t *isolate = cleave_allocate_zeroed(1, sizeof *isolate);
  if (isolate == NULL || pthread_mutex_init(&isolate->lock, NULL) != 0) {
    cleave_free(isolate);
    return cleave_error_out_of_memory(error);
  }
  isolate->log = log;
  set_options(isolate, options);
  cleave_isolate_rename(isolate, name);
  isolate->path = cleave_copy_text(path, strlen(path));
  isolate->absolute = cleave_copy_text(absolute, strlen(absolute));
  bool is_complete = isolate->path != NULL && isolate->absolute != NULL;
  cleave_status_t status = is_complete ? CLEAVE_OK : cleave_error_out_of_memory(error);
  CLEAVE_THEN(status,
              cleave_isolate_open_worker(isolate, cleave_isolate_read_table, &isolate->worker, error));
  if (status == CLEAVE_OK && isolate->table.blobs != NULL) {
    isolate->digest = cleave_library_digest_file(absolute);
  }
  CLEAVE_TRY_OR(status, free_isolate(isolate));
  *out_isolate = isolate;
  return CLEAVE_OK;
}

void cleave_isolate_destroy(cleave_isolate_t *isolate) {
  if (isolate == NULL) {
    return;
  }
  cleave_worker_release(isolate->worker);
  free_isolate(isolate);
}

void cleave_isolate_rename(cleave_isolate_t *isolate, const char *name) {
  (void)snprintf(isolate->name, sizeof isolate->name, "%s", name);
  if (isolate->worker != NULL) {
    (void)snprintf(isolate->worker->library, sizeof isolate->worker->library, "%s", name);
  }
}

/* ---- what it is ---- */

void cleave_isolate_describe(cleave_isolate_t *isolate, cleave_isolation_t *out_description) {
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_isolation_t description = {.size = sizeof description,
                                    .is_isolated = true,
                                    .is_lost = atomic_load(&worker->is_lost),
                                    .process = atomic_load(&worker->process)};
  if (description.is_lost) {
    (void)snprintf(description.reason, sizeof description.reason, "%s", worker->reason);
  }
  *out_description = description;
  cleave_worker_release(worker);
}

bool cleave_isolate_falls_back(const cleave_isolate_t *isolate) {
  return isolate->options.fallback;
}

cleave_digest_t cleave_isolate_digest(const cleave_isolate_t *isolate) {
  return isolate->digest;
}
