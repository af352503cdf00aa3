// SPDX-License-Identifier: Apache-2.0
/* The files of the worker share this: the library, its programs and partitioners at work, and how requests
 * are answered. */
#ifndef CLEAVE_WORKER_WORKER_H
#define CLEAVE_WORKER_WORKER_H

#include <pthread.h>

#include "backend/library/library.h"
#include "backend/process/worker_protocol.h"
#include "base/arena.h"

/* fault.c: if the library crashes, writes where it was into memory that the parent reads. */

/* A range of memory that faults are looked up in. */
typedef struct worker_range {
  const unsigned char *guard; /* memory that cannot be touched begins here */
  const unsigned char *data;  /* the buffer */
  size_t bytes;
  const unsigned char *end; /* of the memory behind it that cannot be touched */
  cleave_fault_place_t place;
  uint32_t index;
} worker_range_t;

/* Installs handlers for crashes on a stack of their own; those that were there before (a
 * sanitizer's) follow them. */
void worker_fault_install(cleave_fault_record_t *record);

/* Sets the ranges of the program that runs; they must stay valid until they are replaced. */
void worker_fault_watch(const worker_range_t *ranges, uint32_t count);

/* memory.c: a library gets buffers between pages that cannot be touched, and constants that cannot be
 * written. */

/* ---- buffers of a program ---- */

typedef struct worker_buffer {
  size_t bytes;
  bool is_input;  /* can be read only */
  uint32_t index; /* of the input or output, for messages */
} worker_buffer_t;

typedef struct worker_area {
  unsigned char *memory; /* reserved; buffers lie apart in it */
  size_t reserved;
  uint32_t count;
  cleave_area_part_t *parts;
  unsigned char **data;   /* per part: the buffer */
  worker_range_t *ranges; /* per part */
} worker_area_t;

/* Maps `fd`, which holds these buffers one behind the other. */
CLEAVE_STATUS worker_area_map(worker_area_t *area, int fd, const worker_buffer_t *buffers, uint32_t count,
                              cleave_error_t *error);
void worker_area_unmap(worker_area_t *area);

/* ---- scratch memory, one for all programs ---- */

typedef struct worker_scratch {
  unsigned char *memory; /* reserved */
  size_t reserved;
  cleave_area_part_t part;
  unsigned char *data;
} worker_scratch_t;

/* Makes it at least this large. CLEAVE_ERROR_OUT_OF_MEMORY leaves it as it was. */
CLEAVE_STATUS worker_scratch_reserve(worker_scratch_t *scratch, size_t bytes);
void worker_scratch_free(worker_scratch_t *scratch);

/* ---- constants ---- */

typedef struct worker_constant {
  uint32_t id;
  size_t bytes;
  void *data;
} worker_constant_t;

typedef struct worker_constants {
  CLEAVE_ARRAY(worker_constant_t) items; /* ids rise */
} worker_constants_t;

/* Takes over what `fd` holds. */
CLEAVE_STATUS worker_constants_add(worker_constants_t *constants, uint32_t id, size_t bytes, int fd,
                                   cleave_error_t *error);
void worker_constants_drop(worker_constants_t *constants, uint32_t id);
/* NULL if there is none of this number. */
const void *worker_constants_get(worker_constants_t *constants, uint32_t id, size_t *out_bytes);
/* Gives the constant to the caller, who unmaps its bytes; the worker forgets it. */
void *worker_constants_take(worker_constants_t *constants, uint32_t id, size_t *out_bytes);
/* For cleave_region_read. */
const void *worker_constants_find(void *constants, uint32_t id, size_t bytes);
void worker_constants_deinit(worker_constants_t *constants);

/* An output whose shape the library tells during a run. */
typedef struct worker_open_output {
  worker_area_t area; /* of the run at hand */
  void *device;       /* memory of the device for it */
  int64_t dims[CLEAVE_MAX_RANK];
} worker_open_output_t;

/* A compiled region, an executor or a kernel. The message that described it lives as long, because constants
 * may lie in it. */
typedef struct worker_program {
  uint32_t id;
  void *program; /* of the library */
  cleave_program_way_t way;
  const cleave_custom_operator_t *definition; /* of a kernel */
  bool profile;
  uint32_t device;
  bool has_device; /* buffers of its own on the device of the library */
  cleave_region_view_t region;
  unsigned char *message; /* owned; the region points into it */
  cleave_arena_t arena;   /* the region's structs */
  void *blob;             /* that it was loaded from, mapped; or NULL */
  size_t blob_bytes;
  size_t workspace_bytes;
  void *workspace; /* on the device; otherwise the scratch memory */
  /* The buffers that it is bound to. */
  bool is_bound;
  cleave_arena_t binding; /* all of this, until it is bound again */
  worker_area_t area;
  cleave_tensor_view_t *inputs; /* host memory: the buffers, or constants */
  bool *is_fixed;               /* per input: a constant */
  cleave_tensor_view_t *outputs;
  cleave_tensor_view_t *device_inputs; /* NULL without a device */
  cleave_tensor_view_t *device_outputs;
  worker_open_output_t **open; /* per output: NULL if the shape is known */
  cleave_request_t *requests;
  worker_range_t *ranges; /* of buffers, of open outputs, and of the workspace */
} worker_program_t;

/* A partitioner at work: the graph, and its selectors. */
typedef struct worker_selector {
  uint32_t id;
  void *own; /* the library's */
} worker_selector_t;

typedef struct worker_partitioning {
  uint32_t id;
  const cleave_custom_partitioner_t *partitioner;
  void *state;    /* of the library */
  bool has_begun; /* and has to end */
  cleave_region_view_t graph;
  unsigned char *message; /* owned; the graph and the options point into it */
  cleave_arena_t arena;
  const cleave_key_value_t *options;
  uint32_t option_count;
  CLEAVE_ARRAY(worker_selector_t) selectors;
} worker_partitioning_t;

typedef struct worker worker_t;
struct worker {
  cleave_channel_t channel;
  void (*serve)(worker_t *worker); /* answers the request at hand (serve.c) */
  pthread_mutex_t sending;         /* lines for the log come from any thread */
  cleave_library_t library;
  cleave_backend_t table; /* what the library knows of it; others NULL */
  void *state;
  bool is_initialised;
  worker_constants_t constants;
  worker_scratch_t scratch;
  CLEAVE_ARRAY(worker_program_t *) programs; /* by id, rising */
  CLEAVE_ARRAY(worker_partitioning_t *) partitionings;
  /* State of the current request; a request that comes in the middle of it has its own meanwhile. */
  cleave_frame_t request;
  cleave_arena_t arena;
  cleave_wire_out_t reply; /* what follows status and message */
  cleave_wire_out_t frame; /* both */
};

/* Answers one request (serve.c). Returns false when the worker is to end. */
bool worker_serve(worker_t *worker);

/* ---- messages (messages.c) ---- */

/* Ends this process and what the library started, because there is nobody to talk to. If the library closed
 * the socket, the parent ends them. */
_Noreturn void worker_end(void);
/* Sends a frame; ends the process if that fails. */
void worker_send(worker_t *worker, uint32_t kind, const cleave_wire_out_t *frame);
/* Sets the worker that worker_log sends through; once, before there are other threads that log. */
void worker_log_through(worker_t *worker);
/* A line for the log of the program that embeds cleave; from any thread. `host` may be NULL. */
void worker_log(const cleave_host_t *host, int32_t level, const char *line);

/* An answer to a callback. */
typedef struct worker_answer {
  cleave_frame_t frame; /* owned */
  cleave_wire_in_t in;  /* what follows success */
} worker_answer_t;

/* Sends a question of the library in the middle of a request, and answers what the parent asks meanwhile.
 * Returns the answer's status; `message` may be NULL. */
cleave_status_t worker_call_back(worker_t *worker, uint32_t kind, const cleave_wire_out_t *content,
                                 worker_answer_t *out_answer, cleave_message_t *message);
void worker_answer_free(worker_answer_t *answer);

/* Reads pairs into an arena. False if they cannot be read. */
bool worker_read_pairs(cleave_arena_t *arena, cleave_wire_in_t *in, const cleave_key_value_t **out_pairs,
                       uint32_t *out_count);
cleave_status_t worker_read_region(worker_t *worker, cleave_wire_in_t *in, cleave_arena_t *arena,
                                   cleave_region_view_t *region, cleave_message_t *message);
/* Makes the error the message of a reply; returns its status. */
cleave_status_t worker_fail(const cleave_error_t *error, cleave_message_t *message);
/* Refuses a request that makes no sense. */
cleave_status_t worker_fail_request(cleave_message_t *message);
/* Gives the memory of the request to the caller. */
unsigned char *worker_take_request(worker_t *worker);
/* Frees the memory of the request at hand and of its reply. */
void worker_request_free(worker_t *worker);

/* ---- requests and notices: they read the rest of `in`, and append to worker->reply ---- */

#define CLEAVE_REMARK(kind)
#define CLEAVE_REQUEST(kind, function, limit, words) \
  cleave_status_t function(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message);
#define CLEAVE_NOTICE(kind, function) \
  cleave_status_t function(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message);
#define CLEAVE_CALLBACK(kind)
#include "backend/process/worker_messages.inc"
#include "base/containers/array.h"

/* ---- programs ---- */

worker_program_t *worker_program_find(const worker_t *worker, uint32_t id);
void worker_program_unload_all(worker_t *worker);
/* Allocates memory on the device for what the program is bound to. */
cleave_status_t worker_device_use(worker_t *worker, worker_program_t *program, cleave_message_t *message);
void worker_device_leave(const worker_t *worker, worker_program_t *program);
/* Its properties are to be had; a program for a device that does not start is not compiled. */
cleave_status_t worker_device_start(const worker_t *worker, uint32_t device, cleave_message_t *message);
/* The functions for memory of a device that does not share the host's, or NULL. */
const cleave_backend_devices_t *worker_device_functions(const worker_t *worker, uint32_t device);
cleave_status_t worker_device_copy_in(worker_t *worker, const worker_program_t *program, bool has_requests,
                                      cleave_message_t *message);
cleave_status_t worker_device_copy_out(worker_t *worker, const worker_program_t *program,
                                       cleave_message_t *message);

/* ---- what the library adds ---- */

/* Appends operators, partitioners, passes and rule files to the reply. */
void worker_put_extensions(worker_t *worker);
void worker_put_option_keys(worker_t *worker);
/* Definition `number`; NULL if there is none that parent and library both know. */
const cleave_custom_operator_t *worker_operator(const worker_t *worker, uint32_t number);
const cleave_custom_partitioner_t *worker_partitioner(const worker_t *worker, uint32_t number);
const cleave_custom_pass_t *worker_custom_pass(const worker_t *worker, uint32_t number);
void worker_partitioner_end_all(worker_t *worker);

#endif /* CLEAVE_WORKER_WORKER_H */
