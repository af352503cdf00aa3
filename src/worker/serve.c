// SPDX-License-Identifier: Apache-2.0
// Requests, one after the other. The library is called in the one thread that reads them. Which function
// answers a request comes from the list of messages.
#include <unistd.h>

#include "worker/worker.h"

typedef cleave_status_t (*handler_t)(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message);

static const handler_t HANDLERS[CLEAVE_FRAME_COUNT] = {
#define CLEAVE_REMARK(kind)
#define CLEAVE_REQUEST(kind, function, limit, words) [CLEAVE_FRAME_##kind] = function,
#define CLEAVE_NOTICE(kind, function) [CLEAVE_FRAME_##kind] = function,
#define CLEAVE_CALLBACK(kind)
#include "backend/process/worker_messages.inc"
};

/* ---- answering ---- */

/* Puts status and message before what was answered; after a failure that is left out. */
static void send_reply(worker_t *worker, cleave_status_t status, cleave_message_t *message) {
  cleave_wire_out_t *frame = &worker->frame;
  message->text[sizeof message->text - 1] = '\0';
  cleave_wire_reset(frame);
  cleave_wire_put_u32(frame, (uint32_t)status);
  cleave_wire_put_u32(frame, (uint32_t)message->code);
  cleave_wire_put_text(frame, message->text);
  if (status == CLEAVE_OK) {
    cleave_wire_put(frame, worker->reply.data, worker->reply.length, CLEAVE_REPLY_ALIGNMENT);
    frame->failed = frame->failed || worker->reply.failed;
  }
  worker_send(worker, CLEAVE_FRAME_REPLY, frame);
}

static bool is_notice(uint32_t kind) {
  return kind == CLEAVE_FRAME_SHARE || kind == CLEAVE_FRAME_DROP;
}

/* The library is there, and initialised, for all requests but those that make it so. */
static cleave_status_t answer(worker_t *worker, uint32_t kind, cleave_wire_in_t *in,
                              cleave_message_t *message) {
  bool needs_library = kind != CLEAVE_FRAME_OPEN && kind != CLEAVE_FRAME_INITIALISE &&
                       kind != CLEAVE_FRAME_CLOSE && !is_notice(kind);
  if (kind >= CLEAVE_FRAME_COUNT || HANDLERS[kind] == NULL || (needs_library && !worker->is_initialised)) {
    return worker_fail_request(message);
  }
  return HANDLERS[kind](worker, in, message);
}

/* Answers the request that is there. */
static void serve(worker_t *worker) {
  cleave_wire_in_t in = cleave_wire_read(worker->request.data, worker->request.length);
  cleave_message_t message = {.text = ""};
  uint32_t kind = worker->request.kind;
  cleave_wire_reset(&worker->reply);
  cleave_status_t status = answer(worker, kind, &in, &message);
  if (!is_notice(kind)) {
    send_reply(worker, status, &message);
  }
  cleave_arena_reset(&worker->arena);
  if (worker->request.fd >= 0) {
    (void)close(worker->request.fd);
  }
  worker->request.fd = -1;
}

bool worker_serve(worker_t *worker) {
  worker->serve = serve;
  if (cleave_channel_receive(&worker->channel, &worker->request) != CLEAVE_FRAME_OK) {
    worker_end();
  }
  bool goes_on = worker->request.kind != CLEAVE_FRAME_CLOSE;
  serve(worker);
  if (!goes_on) {
    worker_request_free(worker);
  }
  return goes_on;
}
