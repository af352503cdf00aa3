// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of an engine. One lock guards all of them: a push takes it once, and a worker once between two
 * operations, to end one and to take the next. A field with another guard says so.
 */
#ifndef CLEAVE_ENGINE_TYPES_H
#define CLEAVE_ENGINE_TYPES_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/containers/array.h"
#include "cleave/engine.h"

typedef struct engine_device engine_device_t;
typedef struct engine_queue engine_queue_t;
typedef struct engine_task engine_task_t;

/* An error that operations left, shared by all variables that have it. */
typedef struct engine_failure {
  cleave_engine_t *engine;
  struct engine_failure *next; /* of the engine's list */
  uint32_t references;
  _Atomic uint64_t number;  /* they are counted as they happen */
  _Atomic bool is_reported; /* nothing is skipped for it any more; read without the lock */
  cleave_error_t error;
} engine_failure_t;

/* A place in a stream that was recorded; back in its stream's list with the last reference. */
typedef struct engine_event {
  struct engine_stream *stream;
  struct engine_event *next; /* of the free ones */
  uint32_t references;
  void *handle; /* the device's; NULL until it is recorded first */
} engine_event_t;

typedef struct engine_stream {
  engine_device_t *device;
  void *handle;
  engine_event_t *last; /* newest that was recorded, or NULL */
  engine_event_t *free_events;
} engine_stream_t;

typedef CLEAVE_ARRAY(engine_event_t *) engine_events_t;

/* A variable in a task: it waits in the queue of the variable, or the task has it. */
typedef struct engine_access {
  cleave_variable_t *variable;
  engine_task_t *task;
  struct engine_access *next; /* in the queue */
  bool is_write;
} engine_access_t;

struct cleave_variable {
  cleave_engine_t *engine;
  cleave_variable_t *next; /* of the free ones */
  char *name;              /* or NULL */
  uint64_t mark;           /* sequence of the last task that asked for it, to find those that ask twice */
  uint64_t version;
  uint32_t active_reads;
  bool is_writing;
  engine_access_t *first; /* queue: a write, or it is empty */
  engine_access_t *last;
  engine_failure_t *failure; /* changed only by who has it for writing */
  engine_event_t *written;   /* end of the last write, if that was in a stream */
  engine_events_t read;      /* ends of the reads since, at most one for each stream */
  engine_task_t *end;        /* that frees it, made with it so that its release cannot fail */
};

/* One of several operations that are pushed as one. Its variables are items [first, end) of the bulk's. */
typedef struct engine_member {
  const char *name;
  cleave_operation_run_t run;
  void (*end)(void *self);
  void *self;
  uint32_t first_variable;
  uint32_t end_variable;
  uint64_t pushed;
} engine_member_t;

typedef struct engine_bulk_variable {
  cleave_variable_t *variable;
  bool is_write;
} engine_bulk_variable_t;

typedef CLEAVE_ARRAY(engine_member_t) engine_members_t;
typedef CLEAVE_ARRAY(engine_bulk_variable_t) engine_bulk_variables_t;

typedef struct engine_bulk {
  struct engine_bulk *next; /* of the free ones, or of all that threads hold */
  cleave_engine_t *engine;
  uint32_t limit; /* of operations, as the thread asked */
  uint32_t device;
  engine_task_t *task;       /* with room for all variables; taken with the first member */
  struct engine_bulk *spare; /* takes the members away from here when they are pushed */
  engine_members_t members;
  engine_bulk_variables_t variables;
} engine_bulk_t;

typedef enum engine_task_state { TASK_WAITS, TASK_IS_READY, TASK_RUNS } engine_task_state_t;

/* One run of an operation, of a bulk, the end of a variable, or a thread that waits. */
struct engine_task {
  cleave_engine_t *engine;
  engine_task_t *previous; /* of all that have not ended, in order of pushes */
  engine_task_t *next;     /* the same; of free ones */
  engine_task_t *next_ready;
  engine_task_t *first_child; /* in the heap of ready ones */
  engine_queue_t *queue;
  engine_device_t *device;
  uint64_t order; /* among tasks of equal priority */
  int32_t priority;
  uint32_t flags;   /* cleave_operation_flags_t */
  uint32_t missing; /* variables that it does not have yet */
  engine_task_state_t state;
  const char *name;
  cleave_operation_run_t run;
  cleave_operation_start_t start;
  void (*end)(void *self);
  void *self;
  cleave_operation_t *operation; /* that this is a run of, or NULL */
  engine_bulk_t *bulk;           /* or NULL */
  cleave_variable_t *last_of;    /* this is its end */
  pthread_cond_t *waiter;        /* of the thread that waits for the variables; nothing runs */
  bool needs_host;               /* what streams do for its variables must have ended */
  bool is_synchronised;          /* it has */
  bool is_skipped;
  bool has_run;
  uint32_t worker;
  engine_failure_t *failure; /* its own, or the one for which it is skipped */
  engine_events_t events;    /* to wait for before it runs */
  engine_event_t *event;     /* its end in the worker's stream */
  uint64_t pushed;           /* times for the trace */
  uint64_t started;
  uint32_t capacity;
  uint32_t access_count;
  engine_access_t accesses[];
};

typedef struct engine_worker {
  engine_queue_t *queue;
  uint32_t index;
  bool has_thread;
  pthread_t thread;
  engine_stream_t stream; /* its handle is NULL without streams */
  cleave_error_t error;   /* of the operation that runs; the worker's own */
} engine_worker_t;

/* Tasks that are ready, and the workers that run them. */
struct engine_queue {
  cleave_engine_t *engine;
  engine_device_t *device;
  engine_task_t *first; /* in order; what comes later than the last one goes here */
  engine_task_t *last;
  engine_task_t *heap;    /* all others: a pairing heap */
  _Atomic uint32_t ready; /* count; workers look at it without the lock before they sleep */
  uint32_t sleeping;
  uint32_t woken; /* of those, by a signal that has not arrived yet */
  pthread_cond_t wake;
  engine_worker_t *workers;
  uint32_t worker_count;
};

struct engine_device {
  char *name;
  bool has_streams;
  cleave_stream_functions_t functions;
  void *self;
  engine_queue_t compute;
  engine_queue_t copy; /* without workers if `compute` takes copies */
};

struct cleave_operation {
  cleave_engine_t *engine;
  uint32_t references;          /* the caller's, and one for each task */
  cleave_operation_info_t info; /* with arrays of its own, behind this */
};

enum { ENGINE_TASK_CLASSES = 24, ENGINE_SMALLEST_TASK = 8, ENGINE_MAX_FAILURES = 64 };

struct cleave_engine {
  pthread_mutex_t lock;
  bool is_serial;
  bool is_draining; /* serial: a thread runs tasks, all from the queue of the first device */
  bool is_open;     /* serial: an operation that was started has not been completed */
  bool is_stopping;
  bool has_streams;
  uint32_t stream_count;
  uint32_t device_count;
  engine_device_t *devices;
  uint64_t order;
  uint64_t pending; /* tasks that have not ended */
  engine_task_t *first_task;
  engine_task_t *last_task;
  uint32_t waiting_threads;
  pthread_cond_t progress;                        /* pending is 0, or is_open became false */
  engine_task_t *free_tasks[ENGINE_TASK_CLASSES]; /* by capacity: ENGINE_SMALLEST_TASK << index */
  cleave_variable_t *free_variables;
  engine_bulk_t *free_bulks;
  engine_bulk_t *thread_bulks; /* one for each thread that asked */
  pthread_key_t thread_bulk;
  engine_failure_t *failures; /* the first that nobody was told of, oldest first */
  engine_failure_t *last_failure;
  uint32_t failure_count;
  uint64_t failure_number; /* of the newest */
  _Atomic uint64_t
      reported; /* who waited for all was told of those up to this number; read without the lock */
  engine_failure_t *spare_failure; /* if there is no memory for another */
  /* Host tasks whose variables are still used in streams, for the thread that waits for these. */
  engine_task_t *first_deferred;
  engine_task_t *last_deferred;
  pthread_cond_t deferred;
  pthread_t watcher;
  bool has_watcher;
  cleave_engine_counters_t counters;
  void (*trace)(void *self, const cleave_engine_trace_t *entry);
  void *trace_self;
  uint64_t fork_count; /* of the process when it was made */
};

/* tasks.c: Tasks: made and freed, known to the engine from push to end. With the lock held. */

/* A task with room for `capacity` variables, all zero but for that; NULL: no memory. */
engine_task_t *engine_task_take(cleave_engine_t *engine, uint32_t capacity);
/* Makes a new task, never one of the free ones. */
engine_task_t *engine_task_create(cleave_engine_t *engine, uint32_t capacity);
/* Returns a task to the free ones. */
void engine_task_give(engine_task_t *task);
/* Frees the free ones. */
void engine_tasks_free(cleave_engine_t *engine);

/* Into and out of the list of all that have not ended. */
void engine_task_link(engine_task_t *task);
void engine_task_unlink(engine_task_t *task);

/* queues.c: Queues of ready tasks: the highest priority first, equal ones in order. With the lock held,
 * unless said otherwise. */

/* The task has all its variables: into its queue, or its thread is woken. */
void engine_task_ready(engine_task_t *task);

/* The first one, taken out; NULL: there is none. */
engine_task_t *engine_queue_pop(engine_queue_t *queue);

/* Wakes sleeping workers for what is ready: before the lock is given back, if something may have become
 * ready. */
void engine_wake_workers(cleave_engine_t *engine);
/* Does the same, and gives the lock back. */
void engine_unlock(cleave_engine_t *engine);

/* Waits until something is ready or the engine stops. */
void engine_queue_wait(engine_queue_t *queue);

/* failures.c: Errors of operations, on their way to those who wait. With the lock held, unless said
 * otherwise. */

CLEAVE_STATUS engine_failures_start(cleave_engine_t *engine, cleave_error_t *error);
void engine_failures_end(cleave_engine_t *engine);

/* A failure of the operation `name` (NULL: of none), with one reference. The engine remembers the oldest ones
 * for who waits for all. If there is no memory, it is the engine's spare one, which says so. */
engine_failure_t *engine_failure_create(cleave_engine_t *engine, const char *name,
                                        const cleave_error_t *error);
void engine_failure_release(engine_failure_t *failure);

/* Takes the place of `*slot`. `failure` may be NULL. */
void engine_failure_set(engine_failure_t **slot, engine_failure_t *failure);

/* Does it still hold up operations? NULL does not. Without the lock. */
static inline bool engine_failure_holds(const engine_failure_t *failure) {
  return failure != NULL && !atomic_load_explicit(&failure->is_reported, memory_order_relaxed) &&
         atomic_load_explicit(&failure->number, memory_order_relaxed) >
             atomic_load_explicit(&failure->engine->reported, memory_order_relaxed);
}

/* Hands the error out and counts it as reported. Returns its status; CLEAVE_OK if it does not hold. */
cleave_status_t engine_failure_report(engine_failure_t *failure, cleave_error_t *error);

/* Reports the oldest failure that nobody was told of; all others count as reported, too. */
cleave_status_t engine_failures_report(cleave_engine_t *engine, cleave_error_t *error);

/* events.c: Streams of devices, and the events by which variables know what in them still uses them. With the
 * lock held, unless said otherwise. */

/* An event of the stream that nobody refers to, with one reference; NULL: no memory. */
engine_event_t *engine_event_take(engine_stream_t *stream);
void engine_event_release(engine_event_t *event);

/* Room in task->events, and free events in the streams that may run the task: as many as it can hold at once,
 * that of its last run and that of the next. False: no memory. */
bool engine_events_reserve(engine_task_t *task);

/* Appends to task->events, with a reference each, what its worker's `stream` (NULL: the host) must wait for.
 */
CLEAVE_STATUS engine_events_collect(engine_task_t *task, const engine_stream_t *stream,
                                    cleave_error_t *error);
void engine_events_drop(engine_task_t *task);

/* Without the lock: the stream waits for the task's events, or this thread does if `stream` is NULL. */
CLEAVE_STATUS engine_events_wait(const engine_task_t *task, const engine_stream_t *stream,
                                 cleave_error_t *error);
CLEAVE_STATUS engine_event_synchronize(const engine_event_t *event, cleave_error_t *error);
/* Without the lock: task->event is the stream's end now. */
CLEAVE_STATUS engine_event_record(const engine_task_t *task, cleave_error_t *error);

/* The task, which was not skipped, has ended: its variables know task->event (NULL: all was done by then). */
void engine_events_note(engine_task_t *task);

/* The variable goes, or what it knows of streams is over. */
void engine_events_forget(cleave_variable_t *variable);

/* Creates or destroys the worker's stream, all events with it. */
CLEAVE_STATUS engine_stream_start(engine_worker_t *worker, cleave_error_t *error);
void engine_stream_end(engine_worker_t *worker);

/* accesses.c: Who has a variable, and who waits for it. With the lock held. */

/* The task is in the order of pushes now; engine_access_add gives it variables, engine_task_submit lets it
 * run. */
void engine_task_begin(engine_task_t *task);
/* It will need the variable, unless it has been asked for by this task already: writes come first. The task
 * has room for it. */
void engine_access_add(engine_task_t *task, cleave_variable_t *variable, bool is_write);
void engine_task_submit(engine_task_t *task);

/* The failure for which the task is skipped, or NULL. */
engine_failure_t *engine_task_inherited(const engine_task_t *task);

/* The task has ended: its variables go to those that wait for them, with its failure if it wrote them. */
void engine_task_finish(engine_task_t *task);

void engine_variable_free(cleave_variable_t *variable);

/* operations.c: Operations: checked, made into tasks, pushed. */

/* CLEAVE_ERROR_INVALID_ARGUMENT with what is wrong, or that the process was forked. */
CLEAVE_STATUS engine_operation_check(const cleave_engine_t *engine, const cleave_operation_info_t *info,
                                     cleave_error_t *error);

/* Pushes what was checked, by itself. `operation` (or NULL) is what it is a run of. */
CLEAVE_STATUS engine_operation_push(cleave_engine_t *engine, const cleave_operation_info_t *info,
                                    cleave_operation_t *operation, cleave_error_t *error);

/* With the lock held: where tasks for the device go. */
void engine_task_place(engine_task_t *task, uint32_t device, uint32_t flags, int32_t priority);

/* With the lock held, after engine_task_submit: gives the lock back; a serial engine runs it. */
void engine_push_end(cleave_engine_t *engine);

/* How often this process is a fork of another. */
uint64_t engine_fork_count(void);

/* run.c: Runs tasks: workers, the thread that waits for streams, and serial engines. */

/* Does the calling thread run an operation of this engine? */
bool engine_runs_here(const cleave_engine_t *engine);

/* Bodies of threads: of a worker, and of the one that waits for streams on behalf of host tasks (an engine).
 */
void *engine_worker_main(void *worker);
void *engine_watcher_main(void *engine);

/* With the lock held, of a serial engine: runs what is ready, unless a thread does already. */
void engine_drain(cleave_engine_t *engine);

/* See cleave_operation_complete. */
void engine_complete(engine_task_t *task, cleave_status_t status, const char *message);

/* bulk.c: Bulks: what a thread pushes, joined into one task. */

/* The bulk that this thread joins operations into; NULL: none. */
engine_bulk_t *engine_bulk_here(const cleave_engine_t *engine);

/* Does the operation, which was checked, fit into the thread's bulks? */
bool engine_bulk_takes(const engine_bulk_t *bulk, const cleave_operation_info_t *info);
CLEAVE_STATUS engine_bulk_add(engine_bulk_t *bulk, const cleave_operation_info_t *info,
                              cleave_error_t *error);
/* Pushes what the thread has joined; NULL and nothing joined are a no-op. */
void engine_bulk_flush(engine_bulk_t *bulk);

CLEAVE_STATUS engine_bulks_start(cleave_engine_t *engine, cleave_error_t *error);
/* Nobody pushes any more. */
void engine_bulks_end(cleave_engine_t *engine);

#endif /* CLEAVE_ENGINE_TYPES_H */
