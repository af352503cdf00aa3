// SPDX-License-Identifier: Apache-2.0
/*
 * The backend's state: libraries, devices with their contexts, streams. Everything hangs on cuda_state_t.
 * Functions that fail write one line into `message` and return the status.
 *
 * Work on a device goes on between cuda_enter and cuda_leave, which make its context current on the calling
 * thread.
 */
#ifndef CLEAVE_CUDA_STATE_H
#define CLEAVE_CUDA_STATE_H

#include "cleave/backend.h"
#include "cuda/library/libraries.h"

enum {
  CUDA_MAX_DEVICES = 16,
  CUDA_ALIGNMENT = 256,   /* of what alloc gives out */
  CUDA_MIN_DRIVER = 11080 /* CUDA 11.8 */
};

struct cuda_compiler;
struct cuda_choices;

typedef struct cuda_device_state {
  cuda_device_t device;
  int32_t capability; /* 90 for 9.0 */
  int32_t multiprocessors;
  uint64_t memory_bytes;
  char name[64];
  pthread_mutex_t lock;   /* of what follows */
  cuda_context_t context; /* NULL until it is first needed */
  struct cuda_allocation *allocations;
  cuda_blas_handle_t blas; /* NULL until it is first needed */
  cuda_dnn_handle_t dnn;
} cuda_device_state_t;

typedef struct cuda_state {
  const cleave_host_t *host;
  cuda_libraries_t libraries;
  int driver_version;
  uint32_t device_count;
  cuda_device_state_t devices[CUDA_MAX_DEVICES];
  struct cuda_compiler *compiler;
  struct cuda_choices *choices;
  cleave_key_value_t answers[12];
  char answer_texts[12][240];
} cuda_state_t;

CLEAVE_MUST_USE cleave_status_t cuda_fail(cleave_message_t *message, cleave_status_t status,
                                          cleave_reason_code_t code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* CLEAVE_OK for success; otherwise "cannot WHAT: out of memory (CUDA_ERROR_OUT_OF_MEMORY)". */
CLEAVE_MUST_USE cleave_status_t cuda_check(const cuda_state_t *state, cuda_result_t result, const char *what,
                                           cleave_message_t *message);

#define CUDA_TRY(call)              \
  do {                              \
    cleave_status_t status_ = call; \
    if (status_ != CLEAVE_OK) {     \
      return status_;               \
    }                               \
  } while (0)

/* A line for the host's log, if it has one; levels as in cleave/backend.h. */
void cuda_log(const cuda_state_t *state, int32_t level, const char *line);

/* Finds libcuda, NVRTC and the devices. CLEAVE_ERROR_UNSUPPORTED: one of them is missing, or too old. */
CLEAVE_MUST_USE cleave_status_t cuda_state_start(cuda_state_t *state, cleave_message_t *message);
/* Lets go of contexts. */
void cuda_state_stop(cuda_state_t *state);

/* Makes the device's context current on this thread. Nothing is to be left where it fails. */
CLEAVE_MUST_USE cleave_status_t cuda_enter(cuda_state_t *state, uint32_t device, cleave_message_t *message);
void cuda_leave(cuda_state_t *state);

/* Memory of the device, aligned to CUDA_ALIGNMENT; zero bytes get some, too. `is_own`: of the backend, not
 * the host. */
CLEAVE_MUST_USE cleave_status_t cuda_memory_alloc(cuda_state_t *state, uint32_t device, size_t bytes,
                                                  bool is_own, cuda_address_t *out_address,
                                                  cleave_message_t *message);
void cuda_memory_free(cuda_state_t *state, uint32_t device, cuda_address_t address);
/* All that is not the backend's own. */
void cuda_memory_free_all(cuda_state_t *state, uint32_t device);

/* Handles of the device, made when they are first needed: CLEAVE_ERROR_UNSUPPORTED where the library is
 * missing. */
CLEAVE_MUST_USE cleave_status_t cuda_blas_get(cuda_state_t *state, uint32_t device,
                                              cuda_blas_handle_t *out_handle, cleave_message_t *message);
CLEAVE_MUST_USE cleave_status_t cuda_dnn_get(cuda_state_t *state, uint32_t device,
                                             cuda_dnn_handle_t *out_handle, cleave_message_t *message);

/* ---- streams (stream.c) ---- */

typedef struct cuda_stream_state cuda_stream_state_t;

cuda_stream_t cuda_stream_of(const cuda_stream_state_t *stream);
uint32_t cuda_stream_device(const cuda_stream_state_t *stream);
CLEAVE_MUST_USE cleave_status_t cuda_stream_make(cuda_state_t *state, uint32_t device,
                                                 cuda_stream_state_t **out_stream, cleave_message_t *message);
void cuda_stream_free(cuda_state_t *state, cuda_stream_state_t *stream);
CLEAVE_MUST_USE cleave_status_t cuda_stream_finish(cuda_state_t *state, cuda_stream_state_t *stream,
                                                   cleave_message_t *message);
/* Through pinned memory of the stream; what is read from the device arrives when the stream is waited for. */
CLEAVE_MUST_USE cleave_status_t cuda_stream_write(cuda_state_t *state, cuda_stream_state_t *stream,
                                                  cuda_address_t to, const void *from, size_t bytes,
                                                  cleave_message_t *message);
CLEAVE_MUST_USE cleave_status_t cuda_stream_read(cuda_state_t *state, cuda_stream_state_t *stream, void *to,
                                                 cuda_address_t from, size_t bytes,
                                                 cleave_message_t *message);
/* Copies to its place what has arrived, up to this number of reads. */
void cuda_stream_deliver(cuda_stream_state_t *stream, uint64_t reads);
uint64_t cuda_stream_reads(const cuda_stream_state_t *stream);

extern const cleave_backend_devices_t cuda_devices; /* devices.c */

#endif /* CLEAVE_CUDA_STATE_H */
