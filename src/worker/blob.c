// SPDX-License-Identifier: Apache-2.0
// Compiled regions as bytes: what the library writes is collected, so that small pieces cost little, and sent
// in large ones.
#include <string.h>

#include "worker/worker.h"

enum { PIECE = 1 << 20 };

typedef struct saving {
  worker_t *worker;
  unsigned char *data; /* PIECE bytes */
  size_t length;
} saving_t;

static cleave_status_t flush(saving_t *saving) {
  cleave_wire_out_t out = {0};
  worker_answer_t answer;
  if (saving->length == 0) {
    return CLEAVE_OK;
  }
  cleave_wire_put_u32(&out, (uint32_t)saving->length);
  cleave_wire_put(&out, saving->data, saving->length, 1);
  saving->length = 0;
  cleave_status_t status = worker_call_back(saving->worker, CLEAVE_FRAME_WRITE, &out, &answer, NULL);
  worker_answer_free(&answer);
  cleave_wire_deinit(&out);
  return status;
}

static cleave_status_t write_piece(void *context, const void *data, size_t bytes) {
  saving_t *saving = context;
  const unsigned char *from = data;
  while (bytes > 0) {
    size_t room = PIECE - saving->length;
    size_t count = bytes < room ? bytes : room;
    memcpy(saving->data + saving->length, from, count);
    saving->length += count;
    from += count;
    bytes -= count;
    if (saving->length == PIECE) {
      CLEAVE_TRY(flush(saving));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t worker_blob_save(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  const worker_program_t *program = worker_program_find(worker, cleave_wire_u32(in));
  if (program == NULL || worker->table.blobs == NULL ||
      (program->way != CLEAVE_WAY_COMPILE && program->way != CLEAVE_WAY_LOAD)) {
    return worker_fail_request(message);
  }
  saving_t saving = {.worker = worker, .data = cleave_allocate(PIECE, 1)};
  if (saving.data == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  cleave_status_t status = worker->table.blobs->save(program->program, write_piece, &saving, message);
  CLEAVE_THEN(status, flush(&saving));
  cleave_free(saving.data);
  return status;
}

cleave_status_t worker_blob_check(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  uint32_t device = cleave_wire_u32(in);
  uint32_t id = cleave_wire_u32(in);
  uint64_t sent = cleave_wire_u64(in);
  size_t bytes = 0;
  const void *data = worker_constants_get(&worker->constants, id, &bytes);
  if (in->failed || worker->table.blobs == NULL || bytes != sent) {
    return worker_fail_request(message);
  }
  return worker->table.blobs->check(worker->state, device, data, bytes, message);
}
