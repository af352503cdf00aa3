// SPDX-License-Identifier: Apache-2.0
/*
 * The process in which an isolated library runs: started, asked, and ended. One call at a time; whatever the
 * library does, a call comes back within its limit, and a process that did not answer as it should is ended,
 * for good, with the reason kept for all later calls.
 */
#ifndef CLEAVE_BACKEND_PROCESS_WORKER_PROCESS_H
#define CLEAVE_BACKEND_PROCESS_WORKER_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "backend/process/worker_protocol.h"
#include "base/containers/array.h"
#include "base/status.h"
#include "system/log.h"

/* worker_constants.c: Constants that a worker process has: each is handed over once, however often regions
 * with it are shown, and stays as long as a program reads it; some others are kept for the next question
 * about them. All under the lock of the worker. */

struct cleave_worker;

/* A constant by its version, which no other has. */
typedef struct cleave_worker_constant {
  uint64_t version; /* 0: not to be found again */
  size_t bytes;
  uint32_t id;
  uint32_t users; /* programs */
  uint32_t next;  /* of the same bucket, or CLEAVE_INDEX_NONE */
} cleave_worker_constant_t;

enum { CLEAVE_CONSTANT_BUCKETS = 256 };

typedef struct cleave_worker_constants {
  CLEAVE_ARRAY(cleave_worker_constant_t) items; /* in the order in which they came */
  CLEAVE_ARRAY(uint32_t) used;                  /* ids in the region that was written last, each once */
  uint32_t buckets[CLEAVE_CONSTANT_BUCKETS];    /* index in `items` plus 1, or 0 */
  uint32_t last_id;
  size_t idle_bytes; /* of those without users */
} cleave_worker_constants_t;

static inline void cleave_worker_constants_deinit(cleave_worker_constants_t *constants) {
  cleave_array_free(&constants->items);
  cleave_array_free(&constants->used);
}

/* Before a region is written: lets go of constants that nothing uses, if they are many. */
void cleave_worker_constants_begin(struct cleave_worker *worker);

/* For cleave_region_write; the context is the worker. */
CLEAVE_STATUS cleave_worker_constants_share(void *worker, const cleave_tensor_view_t *tensor, size_t bytes,
                                            uint32_t *out_id, cleave_error_t *error);

/* Hands over data for a moment: *out_id is CLEAVE_INDEX_NONE if there is none. Between cleave_worker_begin
 * and cleave_worker_end, before the request is written; take_back after it. */
CLEAVE_STATUS cleave_worker_constants_lend(struct cleave_worker *worker, const void *data, size_t bytes,
                                           uint32_t *out_id, cleave_error_t *error);
void cleave_worker_constants_take_back(struct cleave_worker *worker, uint32_t id);

/* A program that was compiled from the region that was written last keeps what it uses: *out_ids is owned by
 * the caller. */
CLEAVE_STATUS cleave_worker_constants_keep(struct cleave_worker *worker, uint32_t **out_ids,
                                           uint32_t *out_count);
void cleave_worker_constants_release(struct cleave_worker *worker, const uint32_t *ids, uint32_t count);

typedef struct cleave_worker {
  pthread_mutex_t lock; /* around a call */
  atomic_uint references;
  char library[64]; /* its name, for messages */
  cleave_log_t *log;
  pid_t pid;            /* -1: none any more */
  atomic_llong process; /* the same, for who asks without the lock */
  pid_t owner;          /* the process that started it: a copy made by fork leaves it alone */
  int socket;
  int output; /* what the library prints */
  cleave_fault_record_t *record;
  atomic_bool is_lost;
  char reason[224];          /* of the loss: "library 'x' crashed (...) while ..."; set before is_lost */
  cleave_wire_out_t request; /* of the call */
  cleave_wire_out_t answer;  /* to a callback during it */
  cleave_wire_out_t outcome; /* the same with its status */
  cleave_frame_t frame;      /* of its reply */
  cleave_worker_constants_t constants;
  /* of the call that waits */
  uint64_t deadline;
  bool has_died;
  char line[256]; /* printed, not yet ended */
  size_t line_length;
} cleave_worker_t;

/* Answers a callback of the library: reads `in`, appends to `out` what follows CLEAVE_OK, and hands over
 * *out_fd if memory goes along. Sets in->failed if it makes no sense. May call the worker. */
typedef cleave_status_t (*cleave_worker_answer_t)(void *context, uint32_t kind, cleave_wire_in_t *in,
                                                  cleave_wire_out_t *out, int *out_fd,
                                                  cleave_message_t *message);

/* The purpose of a call: its limit, and words for messages. */
typedef struct cleave_worker_call {
  uint32_t kind;
  uint32_t limit_ms;
  const char *doing;             /* "running region" */
  const char *region;            /* or what else has a name; or NULL */
  int fd;                        /* that goes along; -1 */
  cleave_worker_answer_t answer; /* NULL: the library may not ask anything */
  void *context;
  size_t most_bytes; /* of what comes; 0: as much as usual */
} cleave_worker_call_t;

/* Starts the worker program. `name` is for messages, `log` outlives it. The caller has one reference. */
CLEAVE_STATUS cleave_worker_start(const char *name, cleave_log_t *log, cleave_worker_t **out_worker,
                                  cleave_error_t *error);
cleave_worker_t *cleave_worker_retain(cleave_worker_t *worker);
/* The last one ends the process. */
void cleave_worker_release(cleave_worker_t *worker);

/* Begins a call: takes the lock and empties worker->request. CLEAVE_ERROR_BACKEND, without the lock, if
 * the process is lost. The thread that answers a callback may do so, too. */
CLEAVE_STATUS cleave_worker_begin(cleave_worker_t *worker, cleave_message_t *message);
void cleave_worker_end(cleave_worker_t *worker);

/* Sends worker->request and waits for the reply; both within the limit. Returns the status of the library,
 * its message in `message`, and what else it said in *out_reply, valid until cleave_worker_end. Loses the
 * process if it crashed, did not answer, or answered nonsense. */
CLEAVE_STATUS cleave_worker_ask(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                cleave_wire_in_t *out_reply, cleave_message_t *message);
/* Sends worker->request, to which there is no reply. */
CLEAVE_STATUS cleave_worker_tell(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                 cleave_message_t *message);

/* Ends the process: "library 'x' <what> while <doing> '<region>'; its process was ended". Returns
 * CLEAVE_ERROR_BACKEND. */
cleave_status_t cleave_worker_lose(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                   cleave_message_t *message, const char *format, ...) CLEAVE_PRINTF(4, 5);

/* The reply could not be read: loses the process. */
cleave_status_t cleave_worker_answered_nonsense(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                                cleave_message_t *message);

/* Makes the process, and its ends here (worker_start.c). */
CLEAVE_STATUS cleave_worker_spawn(cleave_worker_t *worker, cleave_error_t *error);

/* Memory that two processes map: a descriptor whose size can no longer change; -1 if there is none. */
int cleave_worker_make_memory(const char *name, size_t bytes);
/* Makes such memory with data that nobody can change any more; -1 if there is none. */
int cleave_worker_make_constant(const void *data, size_t bytes);

#endif /* CLEAVE_BACKEND_PROCESS_WORKER_PROCESS_H */
