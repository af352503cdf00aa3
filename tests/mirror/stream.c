// SPDX-License-Identifier: Apache-2.0
// The thread of a stream, and its queue: a ring of tasks, each with memory that it keeps for the next one, so
// that putting work on a stream allocates nothing once the ring has gone round. Whoever finds it full waits.
#include "stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_LENGTH = 128 };

typedef enum task_kind { TASK_COPY, TASK_RUN, TASK_RECORD, TASK_WAIT } task_kind_t;

/* How a call ended that the caller waits for. */
typedef struct outcome {
  cleave_status_t status;
  cleave_message_t message;
} outcome_t;

typedef struct task {
  task_kind_t kind;
  /* COPY */
  void *to;
  const void *from;
  size_t bytes;
  /* RUN */
  mirror_program_t *program;
  const cleave_run_args_t *args; /* `copy`, or the caller's */
  cleave_run_args_t copy;
  outcome_t *outcome; /* of a caller that waits, or NULL */
  void *memory;       /* what `copy` points to */
  size_t room;
  /* RECORD, WAIT */
  mirror_event_t *event;
  uint64_t ticket;
} task_t;

struct mirror_stream {
  mirror_t *mirror;
  uint32_t device;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t put;  /* something was put on it, or it ends */
  pthread_cond_t done; /* `finished` has come to `awaited` */
  uint64_t queued;
  uint64_t finished;
  uint64_t awaited; /* the first place that somebody waits for; UINT64_MAX: nobody waits */
  bool is_ending;
  outcome_t failure; /* the first one since `wait` */
  task_t tasks[QUEUE_LENGTH];
};

struct mirror_event {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t recorded; /* places marked so far */
  uint64_t reached;  /* the last one that a stream came to */
  uint32_t users;    /* the host, and tasks on streams */
  outcome_t failure; /* of the stream when it came there */
};

/* ---- events ---- */

static void release_event(mirror_event_t *event) {
  (void)pthread_mutex_lock(&event->lock);
  bool is_last = --event->users == 0;
  (void)pthread_mutex_unlock(&event->lock);
  if (is_last) {
    (void)pthread_cond_destroy(&event->changed);
    (void)pthread_mutex_destroy(&event->lock);
    free(event);
  }
}

static void reach(mirror_event_t *event, uint64_t ticket, const outcome_t *failure) {
  (void)pthread_mutex_lock(&event->lock);
  if (ticket > event->reached) {
    event->reached = ticket;
    event->failure = *failure;
  }
  (void)pthread_cond_broadcast(&event->changed);
  (void)pthread_mutex_unlock(&event->lock);
}

/* Waits until the place is reached; the failure that the event carries. */
static void await(mirror_event_t *event, uint64_t ticket, outcome_t *out_failure) {
  (void)pthread_mutex_lock(&event->lock);
  while (event->reached < ticket) {
    (void)pthread_cond_wait(&event->changed, &event->lock);
  }
  *out_failure = event->failure;
  (void)pthread_mutex_unlock(&event->lock);
}

/* ---- the thread ---- */

static void run_task(mirror_stream_t *stream, task_t *task) {
  mirror_t *mirror = stream->mirror;
  mirror_pool_t *pool = &mirror->pools[stream->device];
  outcome_t outcome = {.status = CLEAVE_OK};
  uint64_t latency_ns = 0;
  // Only this thread and `wait`, which finds nothing at work, change the failure.
  bool has_failed = stream->failure.status != CLEAVE_OK;
  switch (task->kind) {
    case TASK_COPY:
      latency_ns = atomic_load(&mirror->settings.latency_ns);
      if (!has_failed && latency_ns > 0) {
        mirror_sleep(latency_ns);
      }
      if (!has_failed && task->bytes > 0) {
        mirror_pool_open(pool);
        memcpy(task->to, task->from, task->bytes);
        mirror_pool_close(pool);
      }
      break;
    case TASK_RUN:
      if (has_failed) {
        outcome = stream->failure;
      } else {
        outcome.status = mirror_program_execute(task->program, task->args, &outcome.message);
      }
      if (task->outcome != NULL) {
        *task->outcome = outcome;
        outcome.status = has_failed ? outcome.status : CLEAVE_OK;  // the caller has it
      }
      break;
    case TASK_RECORD:
      reach(task->event, task->ticket, &stream->failure);
      release_event(task->event);
      break;
    case TASK_WAIT:
      await(task->event, task->ticket, &outcome);
      release_event(task->event);
      break;
  }
  if (!has_failed && outcome.status != CLEAVE_OK) {
    stream->failure = outcome;
  }
}

static void *work(void *context) {
  mirror_stream_t *stream = context;
  (void)pthread_mutex_lock(&stream->lock);
  for (;;) {
    while (stream->finished == stream->queued && !stream->is_ending) {
      (void)pthread_cond_wait(&stream->put, &stream->lock);
    }
    if (stream->finished == stream->queued) {
      break;
    }
    task_t *task = &stream->tasks[stream->finished % QUEUE_LENGTH];
    (void)pthread_mutex_unlock(&stream->lock);
    run_task(stream, task);
    (void)pthread_mutex_lock(&stream->lock);
    stream->finished++;
    if (stream->finished >= stream->awaited) {
      stream->awaited = UINT64_MAX;
      (void)pthread_cond_broadcast(&stream->done);
    }
  }
  (void)pthread_mutex_unlock(&stream->lock);
  return NULL;
}

/* ---- putting work on a stream ---- */

/* Waits, with the lock held, until so many tasks are done. Nobody is woken up before. */
static void wait_for(mirror_stream_t *stream, uint64_t ticket) {
  while (stream->finished < ticket) {
    stream->awaited = ticket < stream->awaited ? ticket : stream->awaited;
    (void)pthread_cond_wait(&stream->done, &stream->lock);
  }
}

/* A free place of the ring, with the lock held; `push` lets go of it. */
static task_t *begin(mirror_stream_t *stream) {
  (void)pthread_mutex_lock(&stream->lock);
  while (stream->queued - stream->finished == QUEUE_LENGTH) {
    wait_for(stream, stream->finished + QUEUE_LENGTH / 2);
  }
  task_t *task = &stream->tasks[stream->queued % QUEUE_LENGTH];
  task->outcome = NULL;
  return task;
}

static void push(mirror_stream_t *stream) {
  stream->queued++;
  (void)pthread_cond_signal(&stream->put);
  (void)pthread_mutex_unlock(&stream->lock);
}

/* Takes a piece of a task's memory. */
static void *carve(unsigned char **next, size_t bytes) {
  void *piece = *next;
  *next += (bytes + 15) / 16 * 16;
  return piece;
}

static void copy_tensors(unsigned char **next, const cleave_tensor_view_t *from, uint32_t count,
                         cleave_tensor_view_t *to) {
  for (uint32_t k = 0; k < count; k++) {
    size_t rank = from[k].rank < 0 || from[k].rank > CLEAVE_MAX_RANK ? 0 : (size_t)from[k].rank;
    int64_t *dims = carve(next, CLEAVE_MAX_RANK * sizeof *dims);
    to[k] = from[k];
    if (rank > 0) {
      memcpy(dims, from[k].dims, rank * sizeof *dims);
    }
    to[k].dims = dims;
  }
}

/* The arguments as the stream keeps them: all that they hold is copied, except for the tensors' memory. */
static bool copy_arguments(task_t *task, const mirror_program_t *program, const cleave_run_args_t *args) {
  uint32_t inputs = program->input_count;
  uint32_t outputs = program->output_count;
  size_t each = sizeof(cleave_tensor_view_t) + CLEAVE_MAX_RANK * sizeof(int64_t) + 32;
  size_t options = args->option_count * (2 * sizeof(cleave_key_value_t) + 16);
  for (uint32_t k = 0; k < args->option_count; k++) {
    options += strlen(args->options[k].key) + strlen(args->options[k].value) + 34;
  }
  size_t wanted = ((size_t)inputs + outputs) * each + (outputs + 4) * sizeof(cleave_request_t) + options + 64;
  if (wanted > task->room) {
    void *memory = malloc(wanted);
    if (memory == NULL) {
      return false;
    }
    free(task->memory);
    task->memory = memory;
    task->room = wanted;
  }
  unsigned char *next = task->memory;
  cleave_tensor_view_t *input_views = carve(&next, inputs * sizeof *input_views);
  cleave_tensor_view_t *output_views = carve(&next, outputs * sizeof *output_views);
  copy_tensors(&next, args->inputs, inputs, input_views);
  copy_tensors(&next, args->outputs, outputs, output_views);
  cleave_request_t *requests = carve(&next, outputs * sizeof *requests);
  cleave_key_value_t *pairs = carve(&next, args->option_count * sizeof *pairs);
  for (uint32_t k = 0; k < args->option_count; k++) {
    size_t key = strlen(args->options[k].key) + 1;
    size_t value = strlen(args->options[k].value) + 1;
    pairs[k].key = memcpy(carve(&next, key), args->options[k].key, key);
    pairs[k].value = memcpy(carve(&next, value), args->options[k].value, value);
  }
  if (args->requests != NULL) {
    memcpy(requests, args->requests, outputs * sizeof *requests);
  }
  task->copy = (cleave_run_args_t){.size = sizeof task->copy,
                                   .inputs = input_views,
                                   .outputs = output_views,
                                   .workspace = args->workspace,
                                   .requests = args->requests == NULL ? NULL : requests,
                                   .option_count = args->option_count,
                                   .options = pairs};
  return true;
}

cleave_status_t mirror_stream_run(mirror_stream_t *stream, mirror_program_t *program,
                                  const cleave_run_args_t *args, cleave_message_t *message) {
  for (uint32_t k = 0; k < args->option_count; k++) {
    if (args->options[k].key == NULL || args->options[k].value == NULL) {
      return mirror_misuse(stream->mirror, message, "option %u has no key or no value", (unsigned)k);
    }
  }
  task_t *task = begin(stream);
  task->kind = TASK_RUN;
  task->program = program;
  task->args = &task->copy;
  if (!copy_arguments(task, program, args)) {
    (void)pthread_mutex_unlock(&stream->lock);
    return mirror_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for the queue");
  }
  push(stream);
  return CLEAVE_OK;
}

cleave_status_t mirror_stream_run_and_wait(mirror_stream_t *stream, mirror_program_t *program,
                                           const cleave_run_args_t *args, cleave_message_t *message) {
  outcome_t outcome = {.status = CLEAVE_OK};
  task_t *task = begin(stream);
  task->kind = TASK_RUN;
  task->program = program;
  task->args = args;
  task->outcome = &outcome;
  uint64_t ticket = stream->queued + 1;
  push(stream);
  (void)pthread_mutex_lock(&stream->lock);
  wait_for(stream, ticket);
  (void)pthread_mutex_unlock(&stream->lock);
  *message = outcome.status == CLEAVE_OK ? *message : outcome.message;
  return outcome.status;
}

cleave_status_t mirror_stream_copy(mirror_stream_t *stream, void *to, const void *from, size_t bytes,
                                   cleave_message_t *message) {
  (void)message;
  task_t *task = begin(stream);
  task->kind = TASK_COPY;
  task->to = to;
  task->from = from;
  task->bytes = bytes;
  push(stream);
  return CLEAVE_OK;
}

cleave_status_t mirror_stream_wait(mirror_stream_t *stream, cleave_message_t *message) {
  (void)pthread_mutex_lock(&stream->lock);
  wait_for(stream, stream->queued);
  cleave_status_t status = stream->failure.status;
  if (status != CLEAVE_OK) {
    *message = stream->failure.message;
  }
  stream->failure.status = CLEAVE_OK;
  (void)pthread_mutex_unlock(&stream->lock);
  return status;
}

/* ---- streams and events, made and destroyed ---- */

static void free_stream(mirror_stream_t *stream) {
  for (size_t k = 0; k < QUEUE_LENGTH; k++) {
    free(stream->tasks[k].memory);
  }
  (void)pthread_cond_destroy(&stream->put);
  (void)pthread_cond_destroy(&stream->done);
  (void)pthread_mutex_destroy(&stream->lock);
  free(stream);
}

cleave_status_t mirror_stream_create(mirror_t *mirror, uint32_t device, mirror_stream_t **out_stream,
                                     cleave_message_t *message) {
  *out_stream = NULL;
  mirror_stream_t *stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    return mirror_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for a stream");
  }
  stream->mirror = mirror;
  stream->device = device;
  (void)pthread_mutex_init(&stream->lock, NULL);
  (void)pthread_cond_init(&stream->put, NULL);
  (void)pthread_cond_init(&stream->done, NULL);
  stream->awaited = UINT64_MAX;
  if (pthread_create(&stream->thread, NULL, work, stream) != 0) {
    free_stream(stream);
    return mirror_fail(message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_DEVICE, "no thread for a stream");
  }
  *out_stream = stream;
  return CLEAVE_OK;
}

void mirror_stream_destroy(mirror_stream_t *stream) {
  if (stream == NULL) {
    return;
  }
  (void)pthread_mutex_lock(&stream->lock);
  stream->is_ending = true;
  (void)pthread_cond_signal(&stream->put);
  (void)pthread_mutex_unlock(&stream->lock);
  (void)pthread_join(stream->thread, NULL);
  free_stream(stream);
}

uint32_t mirror_stream_device(const mirror_stream_t *stream) {
  return stream->device;
}

cleave_status_t mirror_event_create(mirror_event_t **out_event, cleave_message_t *message) {
  mirror_event_t *event = calloc(1, sizeof *event);
  *out_event = event;
  if (event == NULL) {
    return mirror_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for an event");
  }
  event->users = 1;
  (void)pthread_mutex_init(&event->lock, NULL);
  (void)pthread_cond_init(&event->changed, NULL);
  return CLEAVE_OK;
}

void mirror_event_destroy(mirror_event_t *event) {
  if (event != NULL) {
    release_event(event);
  }
}

/* Marks a new place (`marks`), or finds the last one; the event is used once more where there is one. */
static uint64_t take_ticket(mirror_event_t *event, bool marks) {
  (void)pthread_mutex_lock(&event->lock);
  event->recorded += marks;
  uint64_t ticket = event->recorded;
  event->users += ticket > 0;
  (void)pthread_mutex_unlock(&event->lock);
  return ticket;
}

static void push_event(mirror_stream_t *stream, task_kind_t kind, mirror_event_t *event, uint64_t ticket) {
  task_t *task = begin(stream);
  task->kind = kind;
  task->event = event;
  task->ticket = ticket;
  push(stream);
}

cleave_status_t mirror_event_record(mirror_event_t *event, mirror_stream_t *stream,
                                    cleave_message_t *message) {
  (void)message;
  push_event(stream, TASK_RECORD, event, take_ticket(event, true));
  return CLEAVE_OK;
}

cleave_status_t mirror_event_wait(mirror_event_t *event, mirror_stream_t *stream, cleave_message_t *message) {
  uint64_t ticket = take_ticket(event, false);
  if (ticket == 0) {
    return CLEAVE_OK;
  }
  if (stream != NULL) {
    push_event(stream, TASK_WAIT, event, ticket);
    return CLEAVE_OK;
  }
  outcome_t failure;
  await(event, ticket, &failure);
  release_event(event);
  if (failure.status != CLEAVE_OK) {
    *message = failure.message;
  }
  return failure.status;
}
