/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the worker share: the library, its programs, and how requests are answered. */
#ifndef CLEAVE_WORKER_WORKER_H
#define CLEAVE_WORKER_WORKER_H

#include <pthread.h>

#include "backend/library.h"
#include "backend/worker_protocol.h"
#include "base/arena.h"
#include "worker/memory.h"

/* A compiled region. What the region said lives as long as it: constants may lie in the message. */
typedef struct worker_program {
  uint32_t id;
  void *program; /* of the library */
  bool profile;
  uint32_t device;
  bool has_device; /* buffers of its own on the device of the library */
  cleave_region_view_t region;
  unsigned char *message; /* owned; the region points into it */
  cleave_arena_t arena;   /* the region's structs, and what follows */
  worker_area_t area;
  size_t workspace_bytes;
  void *workspace;              /* on the device; otherwise the scratch memory */
  cleave_tensor_view_t *inputs; /* host memory: the buffers */
  cleave_tensor_view_t *outputs;
  cleave_tensor_view_t *device_inputs; /* NULL without a device */
  cleave_tensor_view_t *device_outputs;
  cleave_request_t *requests;
} worker_program_t;

typedef struct worker {
  cleave_channel_t channel;
  pthread_mutex_t sending; /* lines for the log come from any thread */
  cleave_library_t library;
  cleave_backend_t table; /* what the library knows of it; others NULL */
  void *state;
  bool is_initialised;
  cleave_arena_t arena; /* of the request at hand */
  worker_constants_t constants;
  worker_scratch_t scratch;
  CLEAVE_ARRAY(worker_program_t *) programs; /* by id, rising */
  cleave_wire_out_t reply;                   /* what follows status and message */
  cleave_wire_out_t frame;                   /* both */
  cleave_frame_t request;
} worker_t;

/* There is nobody to talk to: ends this process and what the library started. Where the library closed the
 * socket, the parent does that. */
_Noreturn void worker_end(void);
/* Answers one request. Returns false when the worker is to end. */
bool worker_serve(worker_t *worker);
/* Sends a frame; whoever cannot ends. */
void worker_send(worker_t *worker, uint32_t kind, const cleave_wire_out_t *frame);

/* Requests about programs: they read the rest of `in`, and append to worker->reply. */
cleave_status_t worker_program_compile(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message);
cleave_status_t worker_program_run(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message);
cleave_status_t worker_program_unload(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message);
void worker_program_unload_all(worker_t *worker);

/* Pairs in the arena of the request. False where they cannot be read. */
bool worker_read_pairs(worker_t *worker, cleave_wire_in_t *in, const cleave_key_value_t **out_pairs,
                       uint32_t *out_count);
/* The error as the message of a reply; returns its status. */
cleave_status_t worker_fail(const cleave_error_t *error, cleave_message_t *message);

#endif /* CLEAVE_WORKER_WORKER_H */
