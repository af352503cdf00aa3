// SPDX-License-Identifier: Apache-2.0
// Compiled regions of isolated libraries as bytes. Those that are saved come in pieces, of which there are
// only so many; those that are loaded are handed over as memory that cannot be written.
#include <stdio.h>

#include "backend/isolate/isolate_program.h"

#define MAX_BYTES ((size_t)2 << 30)

typedef struct saving {
  cleave_status_t (*write)(void *context, const void *data, size_t bytes);
  void *context;
  size_t bytes;
} saving_t;

/* WRITE. */
static cleave_status_t answer(void *context, uint32_t kind, cleave_wire_in_t *in, cleave_wire_out_t *out,
                              int *out_fd, cleave_message_t *message) {
  saving_t *saving = context;
  (void)out;
  (void)out_fd;
  uint32_t bytes = cleave_wire_u32(in);
  const void *data = cleave_wire_take(in, bytes, 1, 1);
  if (kind != CLEAVE_FRAME_WRITE || data == NULL) {
    in->failed = true;
    return CLEAVE_ERROR_FORMAT;
  }
  if (bytes > MAX_BYTES - saving->bytes) {
    (void)snprintf(message->text, sizeof message->text, "a compiled region of more than %zu bytes",
                   MAX_BYTES);
    return CLEAVE_ERROR_LIMIT;
  }
  saving->bytes += bytes;
  return saving->write(saving->context, data, bytes);
}

static cleave_status_t save(const void *memory,
                            cleave_status_t (*write)(void *context, const void *data, size_t bytes),
                            void *context, cleave_message_t *message) {
  const cleave_isolated_program_t *program = memory;
  saving_t saving = {.write = write, .context = context};
  cleave_worker_call_t call = cleave_isolate_program_call(program, CLEAVE_FRAME_SAVE);
  cleave_wire_in_t reply;
  call.answer = answer;
  call.context = &saving;
  CLEAVE_TRY(cleave_isolate_ask(program->worker, &call, &program->id, 1, NULL, &reply, message));
  cleave_worker_end(program->worker);
  return CLEAVE_OK;
}

/* Hands the bytes over; a call has begun. */
static cleave_status_t lend(cleave_worker_t *worker, const void *data, size_t bytes, uint32_t *out_id,
                            cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_worker_constants_lend(worker, data, bytes, out_id, &error);
  if (status != CLEAVE_OK) {
    (void)snprintf(message->text, sizeof message->text, "%.255s", error.message);
  }
  return status;
}

static cleave_status_t ask_check(cleave_isolate_t *isolate, cleave_worker_t *worker, uint32_t device,
                                 const void *data, size_t bytes, cleave_message_t *message) {
  cleave_worker_call_t call = cleave_isolate_call(isolate, CLEAVE_FRAME_CHECK, NULL);
  cleave_wire_in_t reply;
  uint32_t id = CLEAVE_INDEX_NONE;
  CLEAVE_TRY(lend(worker, data, bytes, &id, message));
  cleave_wire_put_u32(&worker->request, device);
  cleave_wire_put_u32(&worker->request, id);
  cleave_wire_put_u64(&worker->request, bytes);
  cleave_status_t status = cleave_worker_ask(worker, &call, &reply, message);
  cleave_worker_constants_take_back(worker, id);
  return status;
}

static cleave_status_t check(void *state, uint32_t device, const void *data, size_t bytes,
                             cleave_message_t *message) {
  cleave_isolate_t *isolate = state;
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  cleave_status_t status = cleave_isolate_begin(worker, NULL, 0, message);
  if (status == CLEAVE_OK) {
    status = ask_check(isolate, worker, device, data, bytes, message);
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

static cleave_status_t load(void *state, const cleave_region_view_t *region,
                            const cleave_compile_options_t *options, const void *data, size_t bytes,
                            void **out_program, cleave_message_t *message) {
  cleave_isolate_t *isolate = state;
  cleave_worker_t *worker = cleave_isolate_worker(isolate);
  uint32_t id = CLEAVE_INDEX_NONE;
  *out_program = NULL;
  cleave_status_t status = cleave_isolate_begin(worker, NULL, 0, message);
  if (status == CLEAVE_OK) {
    status = lend(worker, data, bytes, &id, message);
    if (status == CLEAVE_OK) {
      cleave_isolate_request_t request = {
          .way = CLEAVE_WAY_LOAD, .number = id, .name = region->name, .region = region, .options = options};
      status = cleave_isolate_make(isolate, &request, out_program, message);
    }
    cleave_worker_constants_take_back(worker, id);
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

const cleave_backend_blobs_t cleave_isolate_blobs = {
    .size = sizeof cleave_isolate_blobs, .save = save, .check = check, .load = load};
