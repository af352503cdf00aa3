// SPDX-License-Identifier: Apache-2.0
/*
 * A dependency engine: operations that say which variables they read and which they write run as soon as
 * these are free, on the workers of their device.
 *
 * A variable stands for something that operations share: an array, a file, a random state. For each variable
 * operations take effect in the order in which they were pushed: reads that follow each other may run side by
 * side, a write runs alone. Between operations without a common variable there is no order. Several threads
 * may push; each push is one step for all of its variables, so that no two operations wait for each other.
 *
 * An operation that fails leaves its error with the variables that it writes. Operations that read or write
 * such a variable are skipped, and leave the same error with theirs. Whoever waits for one of them gets the
 * error; after that it counts as reported, and holds nothing up any more.
 *
 * All functions may be called from any thread, if nothing else is said. Errors, pointers and structs with
 * `size` are as cleave/cleave.h says.
 */
#ifndef CLEAVE_ENGINE_H
#define CLEAVE_ENGINE_H

#include "cleave/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleave_engine cleave_engine_t;
typedef struct cleave_variable cleave_variable_t;
typedef struct cleave_operation cleave_operation_t;
typedef struct cleave_completion cleave_completion_t;

/* ---- devices -------------------------------------------------------------------------------------- */

/* Queues of a device that run in order, as streams of CUDA do. Functions return at once, `synchronize`
 * excepted; on failure they write the error. Events are made by the first `record`, recorded again later, and
 * destroyed with the engine. Calls for one stream come from one thread at a time. */
typedef struct cleave_stream_functions {
  size_t size; /* sizeof(cleave_stream_functions_t) */
  cleave_status_t (*create)(void *self, void **out_stream, cleave_error_t *error);
  void (*destroy)(void *self, void *stream); /* everything in it has ended */
  /* The event is reached after all that is in the stream now. *event is NULL at first. */
  cleave_status_t (*record)(void *self, void *stream, void **event, cleave_error_t *error);
  /* Work that is put into the stream from now on runs after the event was reached. */
  cleave_status_t (*wait)(void *self, void *stream, void *event, cleave_error_t *error);
  /* The calling thread waits for the event. An error of what ran before it is returned here. */
  cleave_status_t (*synchronize)(void *self, void *event, cleave_error_t *error);
  void (*destroy_event)(void *self, void *event);
} cleave_stream_functions_t;

/* A device's workers. Those of a device with streams own one each: their operations put work into it, and are
 * done for operations of other streams and of the host once the stream has got there, without a thread that
 * waits for it. Lies in arrays, and never grows. */
typedef struct cleave_engine_device {
  size_t size;      /* sizeof(cleave_engine_device_t) */
  const char *name; /* for messages and traces; copied */
  uint32_t workers; /* threads for operations; 0: as many as processors without streams, 1 with streams */
  uint32_t copy_workers;                    /* threads for copies; 0: the same workers take them */
  const cleave_stream_functions_t *streams; /* copied; NULL: operations end when their function returns */
  void *self;                               /* for `streams` */
} cleave_engine_device_t;

/* ---- engines -------------------------------------------------------------------------------------- */

/* One operation that ended; a bulk is one for each of its operations. Times by the monotonic clock in
 * nanoseconds. */
typedef struct cleave_engine_trace {
  const char *name;
  const char *device;
  uint32_t worker;
  int32_t priority;
  uint64_t pushed;
  uint64_t started;
  uint64_t ended;
  cleave_status_t status; /* CLEAVE_OK, or of its own failure or of the one for which it was skipped */
  bool is_skipped;
} cleave_engine_trace_t;

typedef struct cleave_engine_options {
  size_t size; /* sizeof(cleave_engine_options_t) */
  /* Runs every operation in the order of pushes, on the thread that pushes it, to its end: for debuggers, and
   * to see whether an order was missing. Errors travel as ever. */
  bool is_serial;
  const cleave_engine_device_t *devices; /* numbered from 0; NULL: one, "host", without streams */
  uint32_t device_count;
  /* Called for each operation that ends, from any worker, several at a time; NULL: nobody reads clocks. */
  void (*trace)(void *self, const cleave_engine_trace_t *entry);
  void *trace_self;
} cleave_engine_options_t;

/* `options` may be NULL. CLEAVE_ERROR_BACKEND: no thread or no stream could be made. */
CLEAVE_MUST_USE cleave_status_t cleave_engine_create(const cleave_engine_options_t *options,
                                                     cleave_engine_t **out_engine, cleave_error_t *error);

/* Waits until every operation has ended, then frees the engine. Variables and operations of the caller are
 * released before. Nobody else uses the engine during the call; not to be called by an operation. In a
 * process that was forked since, which has none of the workers, it only frees memory. NULL is a no-op. */
void cleave_engine_destroy(cleave_engine_t *engine);

typedef struct cleave_engine_counters {
  size_t size;        /* sizeof(cleave_engine_counters_t) */
  uint64_t pushed;    /* operations; those in bulks count each */
  uint64_t ended;     /* also those that failed or were skipped */
  uint64_t failed;    /* by themselves */
  uint64_t skipped;   /* because of another's failure */
  uint64_t bulks;     /* pushed as one, of two operations or more */
  uint64_t ready;     /* wait for a worker now */
  uint64_t sleeps;    /* times that a worker found nothing to do and slept */
  uint64_t variables; /* that live now */
} cleave_engine_counters_t;

void cleave_engine_count(cleave_engine_t *engine, cleave_engine_counters_t *out_counters);

/* Describes the operations that have been pushed and have not ended, a line each: its name, whether it waits,
 * is ready or runs, and for which variables and whom there it waits. It helps people who look for what holds
 * a program up. Free the text with cleave_text_free. */
CLEAVE_MUST_USE cleave_status_t cleave_engine_describe(cleave_engine_t *engine, char **out_text,
                                                       cleave_error_t *error);

/* ---- variables ------------------------------------------------------------------------------------ */

/* `name` may be NULL; copied. */
CLEAVE_MUST_USE cleave_status_t cleave_variable_create(cleave_engine_t *engine, const char *name,
                                                       cleave_variable_t **out_variable,
                                                       cleave_error_t *error);

/* The caller pushes nothing with it any more. Once all that was pushed has ended, `end` (may be NULL) is
 * called with `self`, by the thread that finds out, and the variable is freed. NULL is a no-op. */
void cleave_variable_release(cleave_variable_t *variable, void (*end)(void *self), void *self);

/* How many writes have ended. */
uint64_t cleave_variable_version(cleave_variable_t *variable);

/* ---- operations ----------------------------------------------------------------------------------- */

/* Who runs an operation. */
typedef struct cleave_engine_run {
  uint32_t device;
  uint32_t worker; /* of the device; 0 in serial engines */
  void *stream;    /* of the worker; NULL without streams */
} cleave_engine_run_t;

/* Runs an operation; an error is `error` and its status. It may push, and must not wait. */
typedef cleave_status_t (*cleave_operation_run_t)(void *self, const cleave_engine_run_t *run,
                                                  cleave_error_t *error);
/* Starts an operation that ends later: cleave_operation_complete must be called once, by any thread, also
 * before this returns. */
typedef void (*cleave_operation_start_t)(void *self, const cleave_engine_run_t *run,
                                         cleave_completion_t *completion);

typedef enum cleave_operation_flags {
  CLEAVE_OPERATION_COPY = 1,  /* for the copy workers of its device */
  CLEAVE_OPERATION_ALWAYS = 2 /* not skipped after failures; if it succeeds, what it writes is whole again */
} cleave_operation_flags_t;

/* An operation. Arrays are copied; `name` and `self` must last until it has ended for the last time. */
typedef struct cleave_operation_info {
  size_t size;                /* sizeof(cleave_operation_info_t) */
  const char *name;           /* for errors, traces, descriptions */
  cleave_operation_run_t run; /* this or `start` */
  cleave_operation_start_t start;
  void (*end)(void *self); /* after the last run, also if it was skipped; may be NULL */
  void *self;
  cleave_variable_t *const *reads; /* a variable given twice counts once; one also written is written */
  cleave_variable_t *const *writes;
  uint32_t read_count;
  uint32_t write_count;
  uint32_t device;
  uint32_t flags;   /* cleave_operation_flags_t */
  int32_t priority; /* of those that are ready the highest runs first, equal ones in order */
} cleave_operation_info_t;

/* Runs it once. On failure nothing was pushed, and `end` is not called. CLEAVE_ERROR_INVALID_ARGUMENT: a
 * function or a variable is missing, a variable is of another engine, or the device is not there. */
CLEAVE_MUST_USE cleave_status_t cleave_engine_push(cleave_engine_t *engine,
                                                   const cleave_operation_info_t *info,
                                                   cleave_error_t *error);

/* For an operation that is pushed again and again. */
CLEAVE_MUST_USE cleave_status_t cleave_operation_create(cleave_engine_t *engine,
                                                        const cleave_operation_info_t *info,
                                                        cleave_operation_t **out_operation,
                                                        cleave_error_t *error);
/* May be called as often as wanted; runs that write nothing may overlap. */
CLEAVE_MUST_USE cleave_status_t cleave_operation_push(cleave_operation_t *operation, cleave_error_t *error);
/* `end` is called after what was pushed has ended. Its variables may be released before or after. NULL is a
 * no-op. */
void cleave_operation_release(cleave_operation_t *operation);

/* The end of an operation with `start`. A status that is not CLEAVE_OK is its failure, with this message. */
void cleave_operation_complete(cleave_completion_t *completion, cleave_status_t status, const char *message);

/* ---- bulks ---------------------------------------------------------------------------------------- */

/* Joins what this thread pushes from now on into bulks of up to `count` operations, which are pushed as one
 * and run in order on one worker: less to do for each, nothing side by side. 0 or 1: each by itself, as at
 * first. A bulk takes operations with `run`, of one device, without flags and priority; it is pushed when it
 * is full, before any other operation of this thread, and when this thread waits, flushes or ends. In a bulk
 * each operation fails for itself. Returns the count before. */
uint32_t cleave_engine_set_bulk(cleave_engine_t *engine, uint32_t count);

/* Pushes the bulk that this thread has begun. */
void cleave_engine_flush(cleave_engine_t *engine);

/* ---- waiting -------------------------------------------------------------------------------------- */

/* Waits until all writes of the variable that were pushed before have ended; reads may still run. Returns the
 * error that one of them left, once. CLEAVE_ERROR_INVALID_ARGUMENT: an operation of the engine called it,
 * which might wait for ever. */
CLEAVE_MUST_USE cleave_status_t cleave_variable_wait(cleave_variable_t *variable, cleave_error_t *error);

/* Waits until all operations have ended, and everything in streams. Returns the first error that nobody was
 * told, and counts all as reported. Bulks that other threads have begun are not waited for. */
CLEAVE_MUST_USE cleave_status_t cleave_engine_wait(cleave_engine_t *engine, cleave_error_t *error);

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_ENGINE_H */
