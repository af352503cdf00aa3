// SPDX-License-Identifier: Apache-2.0
// Messages to and from the parent: frames and lines of the log are sent from any thread; a callback is asked
// in the middle of a request, and requests that arrive before its answer are served meanwhile
// (worker->serve).
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "backend/region/region_wire.h"
#include "worker/worker.h"

static worker_t *served; /* that the log of the library goes through: a process has one */

/* ---- sending ---- */

void worker_end(void) {
  if (fcntl(CLEAVE_WORKER_SOCKET, F_GETFD) < 0) {
    _exit(CLEAVE_WORKER_EXIT_CLOSED);
  }
  (void)kill(0, SIGKILL);
  _exit(0);
}

void worker_send(worker_t *worker, uint32_t kind, const cleave_wire_out_t *frame) {
  (void)pthread_mutex_lock(&worker->sending);
  cleave_frame_status_t sent =
      frame->failed ? CLEAVE_FRAME_NO_MEMORY
                    : cleave_channel_send(&worker->channel, kind, frame->data, frame->length, -1);
  (void)pthread_mutex_unlock(&worker->sending);
  if (sent != CLEAVE_FRAME_OK) {
    worker_end();
  }
}

void worker_log_through(worker_t *worker) {
  served = worker;
}

void worker_log(const cleave_host_t *host, int32_t level, const char *line) {
  (void)host;
  cleave_wire_out_t frame = {0};
  char text[1024];
  (void)snprintf(text, sizeof text, "%s", line == NULL ? "" : line);
  cleave_wire_put_u32(&frame, level < 0 ? UINT32_MAX : (uint32_t)level);
  cleave_wire_put_text(&frame, text);
  if (!frame.failed) {
    worker_send(served, CLEAVE_FRAME_LOG, &frame);
  }
  cleave_wire_deinit(&frame);
}

/* ---- reading ---- */

cleave_status_t worker_fail(const cleave_error_t *error, cleave_message_t *message) {
  (void)snprintf(message->text, sizeof message->text, "%.*s", (int)sizeof message->text - 1, error->message);
  return error->status;
}

cleave_status_t worker_fail_request(cleave_message_t *message) {
  (void)snprintf(message->text, sizeof message->text, "a request cannot be read");
  return CLEAVE_ERROR_INTERNAL;
}

bool worker_read_pairs(cleave_arena_t *arena, cleave_wire_in_t *in, const cleave_key_value_t **out_pairs,
                       uint32_t *out_count) {
  *out_count = cleave_wire_count(in, 2 * sizeof(uint32_t));
  cleave_key_value_t *pairs = cleave_arena_allocate(arena, *out_count, sizeof *pairs);
  for (uint32_t k = 0; pairs != NULL && k < *out_count; k++) {
    pairs[k].key = cleave_wire_named(in);
    pairs[k].value = cleave_wire_text(in);
  }
  *out_pairs = pairs;
  return pairs != NULL && !in->failed;
}

cleave_status_t worker_read_region(worker_t *worker, cleave_wire_in_t *in, cleave_arena_t *arena,
                                   cleave_region_view_t *region, cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status =
      cleave_region_read(in, arena, worker_constants_find, &worker->constants, region, &error);
  return status == CLEAVE_OK ? CLEAVE_OK : worker_fail(&error, message);
}

unsigned char *worker_take_request(worker_t *worker) {
  unsigned char *data = worker->request.data;
  worker->request.data = NULL;
  worker->request.capacity = 0;
  return data;
}

void worker_request_free(worker_t *worker) {
  cleave_wire_deinit(&worker->reply);
  cleave_wire_deinit(&worker->frame);
  cleave_arena_deinit(&worker->arena);
  cleave_free(worker->request.data);
  worker->request.data = NULL;
}

/* ---- callbacks ---- */

/* A request in the middle of another one, whose memory stays as it is. */
static void serve_within(worker_t *worker, cleave_frame_t request) {
  cleave_frame_t outer_request = worker->request;
  cleave_arena_t outer_arena = worker->arena;
  cleave_wire_out_t outer_reply = worker->reply;
  cleave_wire_out_t outer_frame = worker->frame;
  worker->request = request;
  worker->arena = (cleave_arena_t){0};
  worker->reply = (cleave_wire_out_t){0};
  worker->frame = (cleave_wire_out_t){0};
  worker->serve(worker);
  worker_request_free(worker);
  worker->request = outer_request;
  worker->arena = outer_arena;
  worker->reply = outer_reply;
  worker->frame = outer_frame;
}

static cleave_status_t read_answer(worker_answer_t *answer, cleave_message_t *message) {
  cleave_wire_in_t *in = &answer->in;
  *in = cleave_wire_read(answer->frame.data, answer->frame.length);
  uint32_t status = cleave_wire_u32(in);
  uint32_t code = cleave_wire_u32(in);
  const char *text = cleave_wire_named(in);
  if (status == CLEAVE_OK) {
    (void)cleave_wire_take(in, 0, 1, CLEAVE_REPLY_ALIGNMENT);
  } else if (message != NULL) {
    (void)snprintf(message->text, sizeof message->text, "%s", text);
    message->code = (cleave_reason_code_t)code;
  }
  return (cleave_status_t)status;
}

cleave_status_t worker_call_back(worker_t *worker, uint32_t kind, const cleave_wire_out_t *content,
                                 worker_answer_t *out_answer, cleave_message_t *message) {
  *out_answer = (worker_answer_t){.frame = {.fd = -1}};
  worker_send(worker, kind, content);
  for (;;) {
    cleave_frame_t *frame = &out_answer->frame;
    if (cleave_channel_receive(&worker->channel, frame) != CLEAVE_FRAME_OK) {
      worker_end();
    }
    if (frame->kind == CLEAVE_FRAME_ANSWER) {
      return read_answer(out_answer, message);
    }
    serve_within(worker, *frame);
    *frame = (cleave_frame_t){.fd = -1};
  }
}

void worker_answer_free(worker_answer_t *answer) {
  if (answer->frame.fd >= 0) {
    (void)close(answer->frame.fd);
  }
  cleave_free(answer->frame.data);
  *answer = (worker_answer_t){.frame = {.fd = -1}};
}
