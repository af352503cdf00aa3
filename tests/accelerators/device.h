// SPDX-License-Identifier: Apache-2.0
/*
 * Two devices of a test library: memory that nobody may touch outside of the library's calls, and streams, a
 * thread and a queue each. What is to go wrong is set by `configure` (device.c).
 */
#ifndef CLEAVE_TESTS_ACCELERATORS_DEVICE_H
#define CLEAVE_TESTS_ACCELERATORS_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cleave/backend.h"

enum { DEVICES = 2, POOL_BYTES = 1 << 20, MAX_TASKS = 256, MAX_BLOCKS = 64 };

typedef struct pool {
  unsigned char *base;
  atomic_size_t used;
  void *blocks[MAX_BLOCKS]; /* given out */
  int open;                 /* calls at work */
  pthread_mutex_t lock;
} pool_t;

typedef struct device_state {
  pool_t pools[DEVICES];
  /* set by configure */
  atomic_long fail_alloc;    /* this allocation fails: 1 is the next */
  atomic_long fail_copy;     /* this copy */
  atomic_long misaligned;    /* memory is not aligned */
  atomic_long empty;         /* alloc succeeds without memory */
  atomic_long fail_once;     /* the next run fails on its stream */
  atomic_long broken_copy;   /* this copy and all later ones fail */
  atomic_long broken_event;  /* this call about an event, and all later ones */
  atomic_long broken_stream; /* this stream, and all later ones */
  atomic_long broken_start;  /* 1: there are no properties, 2: nor a device */
  atomic_long latency_us;    /* that a task of a stream waits before it starts */
  /* answered by it */
  atomic_long live; /* allocations */
  atomic_long copies_to;
  atomic_long copies_from;
  atomic_long runs;
  atomic_long executions;
  atomic_long adds;        /* runs that were asked to add */
  atomic_long nones;       /* outputs that nobody wanted */
  atomic_long releases;    /* of all memory */
  atomic_long waits;       /* of the host, for streams and events */
  atomic_long event_waits; /* of streams */
} device_state_t;

/* Is it time for it? 1 is now, 0 never. */
static inline bool is_broken(atomic_long *calls, cleave_message_t *message) {
  long left = atomic_load(calls);
  if (left > 1) {
    atomic_store(calls, left - 1);
  }
  if (left == 1) {
    (void)snprintf(message->text, sizeof message->text, "the bus is broken for good");
  }
  return left == 1;
}

/* Takes away, or gives, all access to a device's memory. */
static inline void pool_open(pool_t *pool) {
  (void)pthread_mutex_lock(&pool->lock);
  if (pool->open++ == 0) {
    (void)mprotect(pool->base, POOL_BYTES, PROT_READ | PROT_WRITE);
  }
  (void)pthread_mutex_unlock(&pool->lock);
}

static inline void pool_close(pool_t *pool) {
  (void)pthread_mutex_lock(&pool->lock);
  if (--pool->open == 0) {
    (void)mprotect(pool->base, POOL_BYTES, PROT_NONE);
  }
  (void)pthread_mutex_unlock(&pool->lock);
}

static inline bool pool_holds(const pool_t *pool, const void *memory, size_t bytes) {
  const unsigned char *at = memory;
  return at >= pool->base && at + bytes <= pool->base + pool->used;
}

/* ---- streams ---- */

/* Marked on a stream; waited for by another one, or by the host. */
typedef struct event {
  pthread_mutex_t lock;
  pthread_cond_t reached;
  long recorded; /* so many times it was put on a stream */
  long passed;
} event_t;

typedef struct await {
  event_t *event;
  long number;
} await_t;

typedef struct task {
  cleave_status_t (*work)(void *context, cleave_message_t *message);
  unsigned char context[1024];
  bool runs_always; /* events are reached even where something before them failed */
} task_t;

typedef struct stream {
  device_state_t *state;
  uint32_t device;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  task_t tasks[MAX_TASKS];
  long put;
  long done;
  bool ends;
  cleave_status_t status; /* of the first task that failed */
  cleave_message_t message;
} stream_t;

static inline void *stream_work(void *context) {
  stream_t *stream = context;
  (void)pthread_mutex_lock(&stream->lock);
  for (;;) {
    while (stream->done == stream->put && !stream->ends) {
      (void)pthread_cond_wait(&stream->changed, &stream->lock);
    }
    if (stream->done == stream->put) {
      break;
    }
    task_t task = stream->tasks[stream->done % MAX_TASKS];
    bool runs = stream->status == CLEAVE_OK || task.runs_always;
    (void)pthread_mutex_unlock(&stream->lock);
    cleave_message_t message = {.text = ""};
    cleave_status_t status = runs ? task.work(task.context, &message) : CLEAVE_OK;
    (void)pthread_mutex_lock(&stream->lock);
    if (status != CLEAVE_OK && stream->status == CLEAVE_OK) {
      stream->status = status;
      stream->message = message;
    }
    stream->done++;
    (void)pthread_cond_broadcast(&stream->changed);
  }
  (void)pthread_mutex_unlock(&stream->lock);
  return NULL;
}

/* Puts a task on the stream; waits where the queue is full. */
static inline cleave_status_t stream_put(stream_t *stream,
                                         cleave_status_t (*work)(void *context, cleave_message_t *message),
                                         const void *context, size_t size, bool always) {
  (void)pthread_mutex_lock(&stream->lock);
  while (stream->put - stream->done == MAX_TASKS) {
    (void)pthread_cond_wait(&stream->changed, &stream->lock);
  }
  task_t *task = &stream->tasks[stream->put % MAX_TASKS];
  task->work = work;
  task->runs_always = always;
  memcpy(task->context, context, size);
  stream->put++;
  (void)pthread_cond_broadcast(&stream->changed);
  (void)pthread_mutex_unlock(&stream->lock);
  return CLEAVE_OK;
}

/* ---- the functions of the header ---- */

static inline cleave_status_t stream_create(void *opaque, uint32_t device, void **out_stream,
                                            cleave_message_t *message) {
  device_state_t *state = opaque;
  if (is_broken(&state->broken_stream, message)) {
    return CLEAVE_ERROR_BACKEND;
  }
  stream_t *stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  stream->state = opaque;
  stream->device = device;
  (void)pthread_mutex_init(&stream->lock, NULL);
  (void)pthread_cond_init(&stream->changed, NULL);
  (void)pthread_create(&stream->thread, NULL, stream_work, stream);
  *out_stream = stream;
  return CLEAVE_OK;
}

static inline void stream_destroy(void *opaque, void *handle) {
  stream_t *stream = handle;
  (void)opaque;
  (void)pthread_mutex_lock(&stream->lock);
  stream->ends = true;
  (void)pthread_cond_broadcast(&stream->changed);
  (void)pthread_mutex_unlock(&stream->lock);
  (void)pthread_join(stream->thread, NULL);
  (void)pthread_cond_destroy(&stream->changed);
  (void)pthread_mutex_destroy(&stream->lock);
  free(stream);
}

static inline cleave_status_t stream_wait(void *opaque, void *handle, cleave_message_t *message) {
  stream_t *stream = handle;
  ((device_state_t *)opaque)->waits++;
  (void)pthread_mutex_lock(&stream->lock);
  while (stream->done < stream->put) {
    (void)pthread_cond_wait(&stream->changed, &stream->lock);
  }
  cleave_status_t status = stream->status;
  *message = stream->message;
  (void)pthread_mutex_unlock(&stream->lock);
  return status;
}

static inline cleave_status_t event_create(void *opaque, uint32_t device, void **out_event,
                                           cleave_message_t *message) {
  (void)device;
  if (is_broken(&((device_state_t *)opaque)->broken_event, message)) {
    return CLEAVE_ERROR_BACKEND;
  }
  event_t *event = calloc(1, sizeof *event);
  *out_event = event;
  if (event == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  (void)pthread_mutex_init(&event->lock, NULL);
  (void)pthread_cond_init(&event->reached, NULL);
  return CLEAVE_OK;
}

static inline void event_destroy(void *opaque, void *handle) {
  event_t *event = handle;
  (void)opaque;
  (void)pthread_cond_destroy(&event->reached);
  (void)pthread_mutex_destroy(&event->lock);
  free(event);
}

static inline cleave_status_t pass_work(void *context, cleave_message_t *message) {
  event_t *event;
  (void)message;
  memcpy(&event, context, sizeof event);
  (void)pthread_mutex_lock(&event->lock);
  event->passed++;
  (void)pthread_cond_broadcast(&event->reached);
  (void)pthread_mutex_unlock(&event->lock);
  return CLEAVE_OK;
}

static inline cleave_status_t event_record(void *opaque, void *handle, void *stream,
                                           cleave_message_t *message) {
  event_t *event = handle;
  if (is_broken(&((device_state_t *)opaque)->broken_event, message)) {
    return CLEAVE_ERROR_BACKEND;
  }
  (void)pthread_mutex_lock(&event->lock);
  event->recorded++;
  (void)pthread_mutex_unlock(&event->lock);
  return stream_put(stream, pass_work, &event, sizeof event, true);
}

static inline cleave_status_t await_work(void *context, cleave_message_t *message) {
  await_t await;
  (void)message;
  memcpy(&await, context, sizeof await);
  (void)pthread_mutex_lock(&await.event->lock);
  while (await.event->passed < await.number) {
    (void)pthread_cond_wait(&await.event->reached, &await.event->lock);
  }
  (void)pthread_mutex_unlock(&await.event->lock);
  return CLEAVE_OK;
}

static inline cleave_status_t event_wait(void *opaque, void *handle, void *stream,
                                         cleave_message_t *message) {
  device_state_t *state = opaque;
  event_t *event = handle;
  if (is_broken(&state->broken_event, message)) {
    return CLEAVE_ERROR_BACKEND;
  }
  (void)pthread_mutex_lock(&event->lock);
  await_t await = {event, event->recorded};
  (void)pthread_mutex_unlock(&event->lock);
  *(stream == NULL ? &state->waits : &state->event_waits) += 1;
  return stream == NULL ? await_work(&await, message)
                        : stream_put(stream, await_work, &await, sizeof await, true);
}

#endif /* CLEAVE_TESTS_ACCELERATORS_DEVICE_H */
