// SPDX-License-Identifier: Apache-2.0
// The worker of an isolated library: opened, initialised, and replaced if it is lost. A process that takes
// the place of a lost one has to say the same of the library.
#include <string.h>
#include <unistd.h>

#include "backend/isolate/isolate_internal.h"
#include "base/hash.h"

static cleave_worker_t *get_worker(cleave_isolate_t *isolate) {
  (void)pthread_mutex_lock(&isolate->lock);
  cleave_worker_t *worker = cleave_worker_retain(isolate->worker);
  (void)pthread_mutex_unlock(&isolate->lock);
  return worker;
}

/* ---- opening ---- */

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

/* Hash of all that the reply to OPEN says of the library. */
static uint64_t hash_table(const cleave_wire_in_t *reply) {
  return cleave_hash_bytes(CLEAVE_HASH_SEED, reply->data + reply->at, reply->length - reply->at);
}

cleave_status_t cleave_isolate_open_worker(cleave_isolate_t *isolate,
                                           cleave_isolate_table_reader_t read_table,
                                           cleave_worker_t **out_worker, cleave_error_t *error) {
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
    if (status == CLEAVE_OK && read_table != NULL) {
      isolate->table_hash = hash_table(&reply);
      status = read_table(isolate, &reply);
    } else if (status == CLEAVE_OK) {
      is_other = hash_table(&reply) != isolate->table_hash;
    }
    if (status == CLEAVE_ERROR_FORMAT && reply.failed) {
      status = cleave_worker_answered_nonsense(worker, &call, &message);
    }
    cleave_worker_end(worker);
  }
  if (status != CLEAVE_OK) {
    status = fail_open(isolate, status, &message, error);
  } else if (is_other) {
    status = cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                              "%s: the file holds another library now: unload '%s' first", isolate->path,
                              isolate->name);
  }
  CLEAVE_TRY_OR(status, cleave_worker_release(worker));
  *out_worker = worker;
  return CLEAVE_OK;
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
  CLEAVE_TRY(cleave_isolate_open_worker(isolate, NULL, &worker, error));
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

/* ---- using ---- */

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

bool cleave_isolate_is_lost(cleave_isolate_t *isolate) {
  cleave_worker_t *worker = get_worker(isolate);
  bool is_lost = atomic_load(&worker->is_lost);
  cleave_worker_release(worker);
  return is_lost;
}
