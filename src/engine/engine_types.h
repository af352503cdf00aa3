// SPDX-License-Identifier: Apache-2.0
/*
 * What an engine is made of. One lock guards all of it: a push takes it once, and a worker once between two
 * operations, to end one and to take the next. A field with another guard says so.
 */
#ifndef CLEAVE_ENGINE_TYPES_H
#define CLEAVE_ENGINE_TYPES_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/array.h"
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

#endif /* CLEAVE_ENGINE_TYPES_H */
