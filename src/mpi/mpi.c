// SPDX-License-Identifier: Apache-2.0
// The library that cleave loads for MPI, and the one place with its calls. One thread makes all of them: it
// starts what others ask for, and keeps it going while they compute, since MPI moves data only while it is
// called.
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cleave/distributed.h"

enum { POLL_NS = 30000 }; /* between looks at transfers for which nobody waits */

typedef struct request {
  struct request *next; /* in the list that it is in */
  cleave_transfer_t transfer;
  cleave_transfer_times_t times;
  MPI_Request handle;
  int code; /* of MPI */
  bool is_done;
} request_t;

typedef struct world {
  cleave_communicator_t communicator;
  pthread_t thread;
  request_t *going;       /* the thread's own */
  pthread_mutex_t lock;   /* of what follows */
  pthread_cond_t changed; /* for the thread */
  pthread_cond_t done;
  request_t *asked; /* to be begun, in order */
  request_t **last_asked;
  request_t *spare;
  size_t waiting; /* callers that wait */
  bool is_ready;
  bool ends;
  bool aborts;
  int abort_status;
  int start_code; /* of MPI_Init_thread */
} world_t;

static uint64_t now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

// ---- the thread ----

static MPI_Datatype type_of(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F32 ? MPI_FLOAT : dtype == CLEAVE_DTYPE_F64 ? MPI_DOUBLE : MPI_INT64_T;
}

static int bytes_of(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F64:
    case CLEAVE_DTYPE_I64:
    case CLEAVE_DTYPE_U64: return 8;
    case CLEAVE_DTYPE_F32:
    case CLEAVE_DTYPE_I32:
    case CLEAVE_DTYPE_U32: return 4;
    case CLEAVE_DTYPE_F16:
    case CLEAVE_DTYPE_BF16:
    case CLEAVE_DTYPE_I16:
    case CLEAVE_DTYPE_U16: return 2;
    case CLEAVE_DTYPE_I8:
    case CLEAVE_DTYPE_U8:
    case CLEAVE_DTYPE_BOOL: return 1;
    default: return 0;
  }
}

static int begin(request_t *request) {
  const cleave_transfer_t *t = &request->transfer;
  int count = (int)t->count;
  MPI_Comm all = MPI_COMM_WORLD;
  if (t->kind == CLEAVE_TRANSFER_SUM) {
    return MPI_Iallreduce(MPI_IN_PLACE, t->data, count, type_of(t->dtype), MPI_SUM, all, &request->handle);
  }
  MPI_Datatype bytes = MPI_BYTE;
  count *= bytes_of(t->dtype);
  switch (t->kind) {
    case CLEAVE_TRANSFER_BROADCAST: return MPI_Ibcast(t->data, count, bytes, t->peer, all, &request->handle);
    case CLEAVE_TRANSFER_SEND:
      return MPI_Isend(t->data, count, bytes, t->peer, t->tag, all, &request->handle);
    default: return MPI_Irecv(t->data, count, bytes, t->peer, t->tag, all, &request->handle);
  }
}

/* Begins the requests of a list, and puts them among those that are going. */
static void begin_all(world_t *world, request_t *list) {
  request_t **end = &world->going;
  while (*end != NULL) {
    end = &(*end)->next;
  }
  *end = list;
  for (request_t *request = list; request != NULL; request = request->next) {
    request->times.start_ns = now();
    request->code = begin(request);
  }
}

/* A longer message is an error of MPI's own. */
static int check_length(const request_t *request, const MPI_Status *status) {
  int count = 0;
  if (request->transfer.kind != CLEAVE_TRANSFER_RECEIVE) {
    return MPI_SUCCESS;
  }
  int code = MPI_Get_count(status, MPI_BYTE, &count);
  return code == MPI_SUCCESS && count != (int)request->transfer.count * bytes_of(request->transfer.dtype)
             ? MPI_ERR_TRUNCATE
             : code;
}

/* Takes those that are done off the list. Did it find any? */
static bool test_all(world_t *world) {
  bool any = false;
  for (request_t **at = &world->going; *at != NULL;) {
    request_t *request = *at;
    int is_done = 0;
    MPI_Status status;
    if (request->code == MPI_SUCCESS) {
      request->code = MPI_Test(&request->handle, &is_done, &status);
    }
    if (is_done && request->code == MPI_SUCCESS) {
      request->code = check_length(request, &status);
    }
    if (!is_done && request->code == MPI_SUCCESS) {
      at = &request->next;
      continue;
    }
    *at = request->next;
    request->times.end_ns = now();
    any = true;
    (void)pthread_mutex_lock(&world->lock);
    request->is_done = true;
    (void)pthread_cond_broadcast(&world->done);
    (void)pthread_mutex_unlock(&world->lock);
  }
  return any;
}

/* MPI is called without the lock, so that nobody who asks waits for a long call. */
static void serve(world_t *world) {
  const struct timespec pause_time = {.tv_nsec = POLL_NS};
  for (;;) {
    (void)pthread_mutex_lock(&world->lock);
    while (world->asked == NULL && world->going == NULL && !world->ends && !world->aborts) {
      (void)pthread_cond_wait(&world->changed, &world->lock);
    }
    request_t *list = world->asked;
    world->asked = NULL;
    world->last_asked = &world->asked;
    bool is_urgent = world->waiting > 0;
    bool aborts = world->aborts;
    (void)pthread_mutex_unlock(&world->lock);
    if (aborts) {
      (void)MPI_Abort(MPI_COMM_WORLD, world->abort_status);
    }
    begin_all(world, list);
    if (world->going == NULL) {
      return; /* the end */
    }
    if (!test_all(world) && is_urgent) {
      (void)sched_yield();
    } else if (!is_urgent) {
      (void)nanosleep(&pause_time, NULL);
    }
  }
}

static int start_mpi(world_t *world) {
  int provided = 0;
  MPI_Comm local = MPI_COMM_NULL;
  cleave_communicator_t *communicator = &world->communicator;
  int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  if (code != MPI_SUCCESS) {
    return code;
  }
  (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &communicator->rank);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &communicator->count);
  code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
  if (code == MPI_SUCCESS) {
    (void)MPI_Comm_size(local, &communicator->local_count);
    (void)MPI_Comm_free(&local);
  }
  return code;
}

static void *run(void *self) {
  world_t *world = self;
  int code = start_mpi(world);
  (void)pthread_mutex_lock(&world->lock);
  world->start_code = code;
  world->is_ready = true;
  (void)pthread_cond_broadcast(&world->done);
  (void)pthread_mutex_unlock(&world->lock);
  if (code == MPI_SUCCESS) {
    serve(world);
    (void)MPI_Finalize();
  }
  return NULL;
}

// ---- what callers see ----

static cleave_status_t fail(cleave_message_t *message, cleave_status_t status, const char *what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (code != MPI_SUCCESS) {
    (void)MPI_Error_string(code, text, &length);
  }
  (void)snprintf(message->text, sizeof message->text, "%s%s%.200s", what, text[0] != '\0' ? ": " : "", text);
  return status;
}

static cleave_status_t check(const world_t *world, const cleave_transfer_t *t, cleave_message_t *message) {
  bool is_sum = t->kind == CLEAVE_TRANSFER_SUM;
  bool is_number =
      t->dtype == CLEAVE_DTYPE_F32 || t->dtype == CLEAVE_DTYPE_F64 || t->dtype == CLEAVE_DTYPE_I64;
  int bytes = bytes_of(t->dtype);
  if (bytes == 0 || (is_sum && !is_number)) {
    return fail(message, CLEAVE_ERROR_UNSUPPORTED, "a transfer of this dtype is not there", MPI_SUCCESS);
  }
  if (t->count < 0 || t->count > INT_MAX / (is_sum ? 1 : bytes)) {
    return fail(message, CLEAVE_ERROR_LIMIT, "a transfer is of more than 2147483647 elements or bytes",
                MPI_SUCCESS);
  }
  if (!is_sum && (t->peer < 0 || t->peer >= world->communicator.count)) {
    return fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "a transfer's peer is not one of the processes",
                MPI_SUCCESS);
  }
  return CLEAVE_OK;
}

static cleave_status_t start(void *self, const cleave_transfer_t *transfer, uint64_t *out_number,
                             cleave_message_t *message) {
  world_t *world = self;
  cleave_status_t status = check(world, transfer, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  (void)pthread_mutex_lock(&world->lock);
  request_t *request = world->spare;
  if (request != NULL) {
    world->spare = request->next;
  }
  (void)pthread_mutex_unlock(&world->lock);
  request = request != NULL ? request : malloc(sizeof *request);
  if (request == NULL) {
    return fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory", MPI_SUCCESS);
  }
  *request = (request_t){.transfer = *transfer};
  *out_number = (uint64_t)(uintptr_t)request;
  (void)pthread_mutex_lock(&world->lock);
  *world->last_asked = request;
  world->last_asked = &request->next;
  (void)pthread_cond_signal(&world->changed);
  (void)pthread_mutex_unlock(&world->lock);
  return CLEAVE_OK;
}

static cleave_status_t wait_for(void *self, uint64_t number, cleave_transfer_times_t *out_times,
                                cleave_message_t *message) {
  world_t *world = self;
  request_t *request = (request_t *)(uintptr_t)number;
  (void)pthread_mutex_lock(&world->lock);
  world->waiting++;
  while (!request->is_done) {
    (void)pthread_cond_wait(&world->done, &world->lock);
  }
  world->waiting--;
  int code = request->code;
  if (out_times != NULL) {
    *out_times = request->times;
  }
  request->next = world->spare;
  world->spare = request;
  (void)pthread_mutex_unlock(&world->lock);
  return code == MPI_SUCCESS
             ? CLEAVE_OK
             : fail(message, CLEAVE_ERROR_IO, "another process or its connection is lost", code);
}

static void end_all(void *self, int status) {
  world_t *world = self;
  (void)pthread_mutex_lock(&world->lock);
  world->aborts = true;
  world->abort_status = status;
  (void)pthread_cond_signal(&world->changed);
  (void)pthread_mutex_unlock(&world->lock);
  for (;;) {
    (void)pause();
  }
}

static void destroy(world_t *world) {
  (void)pthread_mutex_destroy(&world->lock);
  (void)pthread_cond_destroy(&world->changed);
  (void)pthread_cond_destroy(&world->done);
  for (request_t *request = world->spare; request != NULL;) {
    request_t *next = request->next;
    free(request);
    request = next;
  }
  free(world);
}

static void close_world(void *self) {
  world_t *world = self;
  (void)pthread_mutex_lock(&world->lock);
  world->ends = true;
  (void)pthread_cond_signal(&world->changed);
  (void)pthread_mutex_unlock(&world->lock);
  (void)pthread_join(world->thread, NULL);
  destroy(world);
}

cleave_status_t cleave_mpi_open(cleave_communicator_t **out_communicator, cleave_message_t *message);

/* The library is loaded for this function. */
cleave_status_t cleave_mpi_open(cleave_communicator_t **out_communicator, cleave_message_t *message) {
  world_t *world = calloc(1, sizeof *world);
  if (world == NULL) {
    return fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory", MPI_SUCCESS);
  }
  (void)pthread_mutex_init(&world->lock, NULL);
  (void)pthread_cond_init(&world->changed, NULL);
  (void)pthread_cond_init(&world->done, NULL);
  world->last_asked = &world->asked;
  world->communicator = (cleave_communicator_t){.size = sizeof world->communicator,
                                                .self = world,
                                                .start = start,
                                                .wait = wait_for,
                                                .abort = end_all,
                                                .close = close_world};
  int code = pthread_create(&world->thread, NULL, run, world);
  if (code != 0) {
    (void)snprintf(message->text, sizeof message->text, "a thread cannot be started: %s", strerror(code));
    destroy(world);
    return CLEAVE_ERROR_BACKEND;
  }
  (void)pthread_mutex_lock(&world->lock);
  while (!world->is_ready) {
    (void)pthread_cond_wait(&world->done, &world->lock);
  }
  code = world->start_code;
  (void)pthread_mutex_unlock(&world->lock);
  if (code != MPI_SUCCESS) {
    (void)pthread_join(world->thread, NULL);
    destroy(world);
    return fail(message, CLEAVE_ERROR_BACKEND, "MPI does not start", code);
  }
  *out_communicator = &world->communicator;
  return CLEAVE_OK;
}
