// SPDX-License-Identifier: Apache-2.0
/* What the files of isolated libraries share: a library, what it adds, and calls to its worker. */
#ifndef CLEAVE_BACKEND_ISOLATE_ISOLATE_INTERNAL_H
#define CLEAVE_BACKEND_ISOLATE_ISOLATE_INTERNAL_H

#include "backend/isolate/isolate.h"
#include "backend/process/worker_process.h"
#include "base/arena.h"
#include "ops/custom.h"

typedef struct cleave_isolate_device {
  char name[64];
  uint64_t memory_bytes;
} cleave_isolate_device_t;

/* Definitions that the library has there: the functions are of this process, and `self` is all of this. */
typedef struct cleave_isolated_operator {
  cleave_custom_operator_t definition;
  cleave_isolate_t *isolate;
  uint32_t number;
  char name[96]; /* "my.company.Gemm" */
} cleave_isolated_operator_t;

typedef struct cleave_isolated_partitioner {
  cleave_custom_partitioner_t definition;
  cleave_isolate_t *isolate;
  uint32_t number;
} cleave_isolated_partitioner_t;

typedef struct cleave_isolated_pass {
  cleave_custom_pass_t definition;
  cleave_isolate_t *isolate;
  uint32_t number;
} cleave_isolated_pass_t;

struct cleave_isolate {
  char name[64];
  char *path; /* for messages */
  char *absolute;
  cleave_log_t *log;
  cleave_isolation_options_t options; /* without zeros */
  pthread_mutex_t lock;               /* around `worker`, and the answers of `configure` */
  cleave_worker_t *worker;            /* never NULL once opened */
  bool is_initialised;
  cleave_backend_t table;
  cleave_backend_extensions_t extensions;
  uint64_t table_hash;                                 /* of the reply to OPEN */
  cleave_digest_t digest;                              /* of its code */
  cleave_isolate_device_t devices[CLEAVE_MAX_DEVICES]; /* as they were when it started */
  uint32_t device_count;
  cleave_arena_t arena;   /* of the table */
  cleave_arena_t answers; /* of `configure` */
  atomic_uint last_id;    /* of programs, partitioners at work and selectors */
};

/* The worker now; the caller releases it. A copy of this process made by fork gets a worker of its own when
 * it first needs one; if it gets none, the calls fail and say so. */
cleave_worker_t *cleave_isolate_worker(cleave_isolate_t *isolate);

/* Reads the reply to OPEN. CLEAVE_ERROR_FORMAT if it cannot be read. */
typedef cleave_status_t (*cleave_isolate_table_reader_t)(cleave_isolate_t *isolate, cleave_wire_in_t *reply);

/* Starts a worker and opens the library in it. `read_table` is for the first time; NULL: the library has to
 * say the same as then. */
CLEAVE_STATUS cleave_isolate_open_worker(cleave_isolate_t *isolate, cleave_isolate_table_reader_t read_table,
                                         cleave_worker_t **out_worker, cleave_error_t *error);

/* A call with its limit and its words. `about`: what has a name; NULL: nothing. */
cleave_worker_call_t cleave_isolate_call(const cleave_isolate_t *isolate, uint32_t kind, const char *about);

/* A number that no other program, partitioner at work or selector of the library has. */
uint32_t cleave_isolate_next_id(cleave_isolate_t *isolate);

/* Appends the region to the request. A failure is in `message`. */
CLEAVE_STATUS cleave_isolate_put_region(cleave_worker_t *worker, const cleave_region_view_t *region,
                                        cleave_message_t *message);
/* Begins a call whose request begins with these numbers; constants that nothing uses may go. On failure
 * nothing is to be ended. */
CLEAVE_STATUS cleave_isolate_begin(cleave_worker_t *worker, const uint32_t *numbers, uint32_t count,
                                   cleave_message_t *message);
/* A whole call: these numbers, and a region if it is not NULL. Between success and cleave_worker_end the
 * reply may be read; after a failure nothing is to be ended. */
CLEAVE_STATUS cleave_isolate_ask(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                 const uint32_t *numbers, uint32_t count, const cleave_region_view_t *region,
                                 cleave_wire_in_t *out_reply, cleave_message_t *message);
/* After reading a reply: loses the process if it could not be read. */
CLEAVE_STATUS cleave_isolate_check_reply(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                         const cleave_wire_in_t *reply, cleave_message_t *message);

/* ---- the table ---- */

/* A cleave_isolate_table_reader_t. */
CLEAVE_STATUS cleave_isolate_read_table(cleave_isolate_t *isolate, cleave_wire_in_t *reply);
/* Reads what the reply to INITIALISE says of devices. */
void cleave_isolate_read_devices(cleave_isolate_t *isolate, cleave_wire_in_t *reply);

extern const cleave_backend_devices_t cleave_isolate_devices;
extern const cleave_backend_imperative_t cleave_isolate_imperative;
extern const cleave_backend_blobs_t cleave_isolate_blobs;

cleave_status_t cleave_isolate_supports(void *state, const cleave_region_view_t *region,
                                        cleave_message_t *reason);
cleave_status_t cleave_isolate_cost(void *state, const cleave_region_view_t *region, double *out_nanoseconds,
                                    cleave_message_t *message);
cleave_status_t cleave_isolate_review(void *state, const cleave_region_view_t *region, bool *keep,
                                      cleave_message_t *message);
cleave_status_t cleave_isolate_configure(void *state, const cleave_key_value_t *settings,
                                         uint32_t setting_count, const cleave_key_value_t **out_answers,
                                         uint32_t *out_answer_count, cleave_message_t *message);
cleave_status_t cleave_isolate_compile(void *state, const cleave_region_view_t *region,
                                       const cleave_compile_options_t *options, void **out_program,
                                       cleave_message_t *message);
void cleave_isolate_unload(void *program);
const cleave_program_info_t *cleave_isolate_info(const void *program);
cleave_status_t cleave_isolate_run(void *program, const cleave_run_args_t *args, cleave_message_t *message);
uint32_t cleave_isolate_profile(const void *program, const cleave_step_time_t **out_steps);

/* Functions of definitions: `has` says which of them the library has (CLEAVE_..._HAS_...) */
void cleave_isolate_fill_operator(cleave_isolated_operator_t *op, uint32_t has);
void cleave_isolate_fill_partitioner(cleave_isolated_partitioner_t *partitioner, uint32_t has);
void cleave_isolate_fill_pass(cleave_isolated_pass_t *pass, uint32_t has);

#endif /* CLEAVE_BACKEND_ISOLATE_ISOLATE_INTERNAL_H */
