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

#include "backend/process/worker_constants.h"
#include "backend/process/worker_protocol.h"
#include "system/log.h"

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

/* What a call is for: a limit, and words for messages. */
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
CLEAVE_MUST_USE cleave_status_t cleave_worker_start(const char *name, cleave_log_t *log,
                                                    cleave_worker_t **out_worker, cleave_error_t *error);
cleave_worker_t *cleave_worker_retain(cleave_worker_t *worker);
/* The last one ends the process. */
void cleave_worker_release(cleave_worker_t *worker);

/* Begins a call: takes the lock and empties worker->request. CLEAVE_ERROR_BACKEND, without the lock, if
 * the process is lost. The thread that answers a callback may do so, too. */
CLEAVE_MUST_USE cleave_status_t cleave_worker_begin(cleave_worker_t *worker, cleave_message_t *message);
void cleave_worker_end(cleave_worker_t *worker);

/* Sends worker->request and waits for the reply; both within the limit. Returns the status of the library,
 * its message in `message`, and what else it said in *out_reply, valid until cleave_worker_end. Loses the
 * process if it crashed, did not answer, or answered nonsense. */
CLEAVE_MUST_USE cleave_status_t cleave_worker_ask(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                                  cleave_wire_in_t *out_reply, cleave_message_t *message);
/* Sends worker->request, to which there is no reply. */
CLEAVE_MUST_USE cleave_status_t cleave_worker_tell(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                                   cleave_message_t *message);

/* Ends the process: "library 'x' <what> while <doing> '<region>'; its process was ended". Returns
 * CLEAVE_ERROR_BACKEND. */
cleave_status_t cleave_worker_lose(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                   cleave_message_t *message, const char *format, ...) CLEAVE_PRINTF(4, 5);

/* The reply could not be read: loses the process. */
cleave_status_t cleave_worker_answered_nonsense(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                                cleave_message_t *message);

/* Makes the process, and its ends here (worker_start.c). */
CLEAVE_MUST_USE cleave_status_t cleave_worker_spawn(cleave_worker_t *worker, cleave_error_t *error);

/* Memory that two processes map: a descriptor whose size can no longer change; -1 if there is none. */
int cleave_worker_make_memory(const char *name, size_t bytes);
/* The same, filled with data that nobody can change any more. */
int cleave_worker_make_constant(const void *data, size_t bytes);

#endif /* CLEAVE_BACKEND_PROCESS_WORKER_PROCESS_H */
