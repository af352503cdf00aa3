// SPDX-License-Identifier: Apache-2.0
// An isolated library: opening it, starting it, and starting it again. Its table is read once; a process that
// takes the place of a lost one has to say the same.
#include "backend/isolate/isolate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/isolate/isolate_internal.h"
#include "backend/library/library.h"

enum { ASK_MS = 10 * 1000, COMPILE_MS = 120 * 1000, RUN_MS = 30 * 1000, MOST_MS = 24 * 3600 * 1000 };

static cleave_worker_t *get_worker(cleave_isolate_t *isolate) {
  (void)pthread_mutex_lock(&isolate->lock);
  cleave_worker_t *worker = cleave_worker_retain(isolate->worker);
  (void)pthread_mutex_unlock(&isolate->lock);
  return worker;
}

/* A copy of this process made by fork gets a worker of its own when it first wants one; where it gets none,
 * the calls fail and say so. */
cleave_worker_t *cleave_isolate_worker(cleave_isolate_t *isolate) {
  cleave_worker_t *worker = get_worker(isolate);
  if (worker->owner == getpid()) {
    return worker;
  }
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_worker_release(worker);
  if (cleave_isolate_restart(isolate, &error) != CLEAVE_OK) {
    cleave_log(isolate->log, CLEAVE_LOG_WARNING, "%s", error.message);
  }
  return get_worker(isolate);
}

const cleave_backend_t *cleave_isolate_table(const cleave_isolate_t *isolate) {
  return &isolate->table;
}

/* ---- opening ---- */

static uint32_t limit_or(uint32_t given, uint32_t otherwise) {
  return given == 0 ? otherwise : given > MOST_MS ? MOST_MS : given;
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

/* A message of a worker as an error about the file, which it may name already. */
static cleave_status_t fail_open(const cleave_isolate_t *isolate, cleave_status_t status,
                                 const cleave_message_t *message, cleave_error_t *error) {
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY && message->text[0] == '\0') {
    return cleave_error_out_of_memory(error);
  }
  const char *text = message->text[0] == '\0' ? "no reason given" : message->text;
  size_t length = strlen(isolate->absolute);
  if (strncmp(text, isolate->absolute, length) == 0 && strncmp(text + length, ": ", 2) == 0) {
    text += length + 2;
  }
  return cleave_error_set(error, status, "%s: %s", isolate->path, text);
}

/* Starts a worker and opens the library in it. Its table is taken over the first time; later it has to be
 * the same. */
static cleave_status_t open_worker(cleave_isolate_t *isolate, bool is_first, cleave_worker_t **out_worker,
                                   cleave_error_t *error) {
  cleave_worker_t *worker = NULL;
  cleave_message_t message = {.text = ""};
  cleave_wire_in_t reply = {0};
  cleave_worker_call_t call = cleave_isolate_call(isolate, CLEAVE_FRAME_OPEN, NULL);
  bool is_other = false;
  *out_worker = NULL;
  CLEAVE_TRY(cleave_worker_start(isolate->name, isolate->log, &worker, error));
  cleave_status_t status = cleave_worker_begin(worker, &message);
  if (status == CLEAVE_OK) {
    cleave_wire_put_text(&worker->request, isolate->absolute);
    status = cleave_worker_ask(worker, &call, &reply, &message);
    if (status == CLEAVE_OK && is_first) {
      status = cleave_isolate_read_table(isolate, &reply);
    } else if (status == CLEAVE_OK) {
      is_other = cleave_isolate_hash_table(&reply) != isolate->told;
    }
    if (status == CLEAVE_ERROR_FORMAT && reply.failed) {
      status = cleave_worker_answered_nonsense(worker, &call, &message);
    }
    cleave_worker_end(worker);
  }
  if (status != CLEAVE_OK) {
    status = fail_open(isolate, status, &message, error);
  } else if (is_other) {
    status =
        cleave_error_set(error, CLEAVE_ERROR_BACKEND, "%s: is another library than before: unload '%s' first",
                         isolate->path, isolate->name);
  }
  if (status != CLEAVE_OK) {
    cleave_worker_release(worker);
    return status;
  }
  *out_worker = worker;
  return CLEAVE_OK;
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
  if (status == CLEAVE_OK) {
    status = open_worker(isolate, true, &isolate->worker, error);
  }
  if (status == CLEAVE_OK && isolate->table.blobs != NULL) {
    isolate->digest = cleave_library_digest_file(absolute);
  }
  if (status != CLEAVE_OK) {
    free_isolate(isolate);
    return status;
  }
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

/* ---- starting, and starting again ---- */

static cleave_status_t initialise(cleave_isolate_t *isolate, cleave_worker_t *worker,
                                  cleave_message_t *message) {
  cleave_worker_call_t call = cleave_isolate_call(isolate, CLEAVE_FRAME_INITIALISE, NULL);
  cleave_wire_in_t reply;
  CLEAVE_TRY(cleave_worker_begin(worker, message));
  cleave_status_t status = cleave_worker_ask(worker, &call, &reply, message);
  if (status == CLEAVE_OK && !isolate->is_initialised) {
    cleave_isolate_read_devices(isolate, &reply);
    isolate->is_initialised = !reply.failed;
    status = reply.failed ? cleave_worker_answered_nonsense(worker, &call, message) : CLEAVE_OK;
  }
  cleave_worker_end(worker);
  return status;
}

cleave_status_t cleave_isolate_initialise(cleave_isolate_t *isolate, cleave_message_t *message) {
  return initialise(isolate, isolate->worker, message);
}

cleave_status_t cleave_isolate_restart(cleave_isolate_t *isolate, cleave_error_t *error) {
  cleave_worker_t *worker = get_worker(isolate);
  bool is_usable = worker->owner == getpid() && !atomic_load(&worker->is_lost);
  cleave_worker_release(worker);
  if (is_usable) {
    return CLEAVE_OK;
  }
  cleave_message_t message = {.text = ""};
  CLEAVE_TRY(open_worker(isolate, false, &worker, error));
  cleave_status_t status = initialise(isolate, worker, &message);
  if (status != CLEAVE_OK) {
    cleave_worker_release(worker);
    return fail_open(isolate, status, &message, error);
  }
  (void)pthread_mutex_lock(&isolate->lock);
  cleave_worker_t *before = isolate->worker;
  isolate->worker = worker;
  (void)pthread_mutex_unlock(&isolate->lock);
  cleave_worker_release(before);
  return CLEAVE_OK;
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

bool cleave_isolate_is_lost(cleave_isolate_t *isolate) {
  cleave_worker_t *worker = get_worker(isolate);
  bool is_lost = atomic_load(&worker->is_lost);
  cleave_worker_release(worker);
  return is_lost;
}

bool cleave_isolate_falls_back(const cleave_isolate_t *isolate) {
  return isolate->options.fallback;
}

cleave_digest_t cleave_isolate_digest(const cleave_isolate_t *isolate) {
  return isolate->digest;
}
