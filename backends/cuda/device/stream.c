// SPDX-License-Identifier: Apache-2.0
// Streams with pinned memory. What goes to the device is copied there first, so that the caller's memory is
// free again; what comes back lies there until somebody waits. Copies too large for it go straight.
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { MIN_BLOCK = 1 << 20, MAX_PINNED = 1 << 26, STEP = 64 };

typedef struct pinned {
  unsigned char *memory;
  size_t bytes;
  size_t used;
  struct pinned *next;
} pinned_t;

typedef struct delivery {
  void *to;
  const void *from;
  size_t bytes;
} delivery_t;

struct cuda_stream_state {
  uint32_t device;
  cuda_stream_t stream;
  pinned_t *pinned;
  size_t pinned_bytes;
  delivery_t *deliveries; /* in order; the first one has number `delivered` */
  size_t delivery_count;
  size_t delivery_room;
  uint64_t delivered;
};

cuda_stream_t cuda_stream_of(const cuda_stream_state_t *stream) {
  return stream->stream;
}

uint32_t cuda_stream_device(const cuda_stream_state_t *stream) {
  return stream->device;
}

uint64_t cuda_stream_reads(const cuda_stream_state_t *stream) {
  return stream->delivered + stream->delivery_count;
}

cleave_status_t cuda_stream_make(cuda_state_t *state, uint32_t device, cuda_stream_state_t **out_stream,
                                 cleave_message_t *message) {
  *out_stream = NULL;
  CUDA_TRY(cuda_enter(state, device, message));
  cuda_stream_state_t *stream = calloc(1, sizeof *stream);
  cleave_status_t status =
      stream == NULL
          ? cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for a stream")
          : cuda_check(state,
                       state->libraries.driver.stream_create(&stream->stream, CUDA_STREAM_NON_BLOCKING),
                       "make a stream", message);
  cuda_leave(state);
  if (status != CLEAVE_OK) {
    free(stream);
    return status;
  }
  stream->device = device;
  *out_stream = stream;
  return CLEAVE_OK;
}

void cuda_stream_free(cuda_state_t *state, cuda_stream_state_t *stream) {
  cleave_message_t message = {.text = ""};
  if (stream == NULL) {
    return;
  }
  bool is_inside = cuda_enter(state, stream->device, &message) == CLEAVE_OK;
  if (is_inside) {
    (void)state->libraries.driver.stream_wait(stream->stream);
    (void)state->libraries.driver.stream_destroy(stream->stream);
  }
  while (stream->pinned != NULL) {
    pinned_t *next = stream->pinned->next;
    if (is_inside) {
      (void)state->libraries.driver.host_free(stream->pinned->memory);
    }
    free(stream->pinned);
    stream->pinned = next;
  }
  if (is_inside) {
    cuda_leave(state);
  }
  free(stream->deliveries);
  free(stream);
}

void cuda_stream_deliver(cuda_stream_state_t *stream, uint64_t reads) {
  size_t count = 0;
  while (count < stream->delivery_count && stream->delivered < reads) {
    const delivery_t *delivery = &stream->deliveries[count++];
    memcpy(delivery->to, delivery->from, delivery->bytes);
    stream->delivered++;
  }
  stream->delivery_count -= count;
  if (count > 0 && stream->delivery_count > 0) {
    memmove(stream->deliveries, stream->deliveries + count,
            stream->delivery_count * sizeof *stream->deliveries);
  }
}

/* The device's context is current. */
static cleave_status_t finish(cuda_state_t *state, cuda_stream_state_t *stream, cleave_message_t *message) {
  CUDA_TRY(cuda_check(state, state->libraries.driver.stream_wait(stream->stream),
                      "finish the work on the device", message));
  cuda_stream_deliver(stream, UINT64_MAX);
  for (pinned_t *block = stream->pinned; block != NULL; block = block->next) {
    block->used = 0;
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_stream_finish(cuda_state_t *state, cuda_stream_state_t *stream,
                                   cleave_message_t *message) {
  CUDA_TRY(cuda_enter(state, stream->device, message));
  cleave_status_t status = finish(state, stream, message);
  cuda_leave(state);
  return status;
}

/* ---- pinned memory ---- */

static unsigned char *take(cuda_stream_state_t *stream, size_t bytes) {
  for (pinned_t *block = stream->pinned; block != NULL; block = block->next) {
    if (block->bytes - block->used >= bytes) {
      unsigned char *memory = block->memory + block->used;
      size_t step = (bytes + STEP - 1) / STEP * STEP;
      block->used = step < block->bytes - block->used ? block->used + step : block->bytes;
      return memory;
    }
  }
  return NULL;
}

static bool grow(cuda_state_t *state, cuda_stream_state_t *stream, size_t bytes) {
  size_t size = bytes > MIN_BLOCK ? bytes : MIN_BLOCK;
  void *memory = NULL;
  pinned_t *block = stream->pinned_bytes + size <= MAX_PINNED ? calloc(1, sizeof *block) : NULL;
  if (block == NULL || state->libraries.driver.host_alloc(&memory, size, 0) != CUDA_SUCCESS_) {
    free(block);
    return false;
  }
  *block = (pinned_t){.memory = memory, .bytes = size, .next = stream->pinned};
  stream->pinned = block;
  stream->pinned_bytes += size;
  return true;
}

/* *out_memory NULL: there is none, copy straight. */
static cleave_status_t reserve(cuda_state_t *state, cuda_stream_state_t *stream, size_t bytes,
                               unsigned char **out_memory, cleave_message_t *message) {
  *out_memory = bytes <= MAX_PINNED ? take(stream, bytes) : NULL;
  if (*out_memory == NULL && bytes <= MAX_PINNED && grow(state, stream, bytes)) {
    *out_memory = take(stream, bytes);
  }
  if (*out_memory == NULL && bytes <= MAX_PINNED && stream->pinned != NULL) {
    CUDA_TRY(finish(state, stream, message));
    *out_memory = take(stream, bytes);
  }
  return CLEAVE_OK;
}

static cleave_status_t write_bytes(cuda_state_t *state, cuda_stream_state_t *stream, cuda_address_t to,
                                   const void *from, size_t bytes, cleave_message_t *message) {
  unsigned char *memory = NULL;
  CUDA_TRY(reserve(state, stream, bytes, &memory, message));
  if (memory == NULL) { /* the driver copies what is not pinned before it returns, or waits */
    CUDA_TRY(cuda_check(state, state->libraries.driver.copy_to_async(to, from, bytes, stream->stream),
                        "copy to the device", message));
    return finish(state, stream, message);
  }
  memcpy(memory, from, bytes);
  return cuda_check(state, state->libraries.driver.copy_to_async(to, memory, bytes, stream->stream),
                    "copy to the device", message);
}

cleave_status_t cuda_stream_write(cuda_state_t *state, cuda_stream_state_t *stream, cuda_address_t to,
                                  const void *from, size_t bytes, cleave_message_t *message) {
  CUDA_TRY(cuda_enter(state, stream->device, message));
  cleave_status_t status = write_bytes(state, stream, to, from, bytes, message);
  cuda_leave(state);
  return status;
}

static bool note_delivery(cuda_stream_state_t *stream, void *to, const void *from, size_t bytes) {
  if (stream->delivery_count == stream->delivery_room) {
    size_t room = 2 * stream->delivery_room + 8;
    delivery_t *deliveries = realloc(stream->deliveries, room * sizeof *deliveries);
    if (deliveries == NULL) {
      return false;
    }
    stream->deliveries = deliveries;
    stream->delivery_room = room;
  }
  stream->deliveries[stream->delivery_count++] = (delivery_t){.to = to, .from = from, .bytes = bytes};
  return true;
}

static cleave_status_t read_bytes(cuda_state_t *state, cuda_stream_state_t *stream, void *to,
                                  cuda_address_t from, size_t bytes, cleave_message_t *message) {
  unsigned char *memory = NULL;
  CUDA_TRY(reserve(state, stream, bytes, &memory, message));
  void *target = memory == NULL ? to : memory;
  CUDA_TRY(cuda_check(state, state->libraries.driver.copy_from_async(target, from, bytes, stream->stream),
                      "copy from the device", message));
  if (memory != NULL && note_delivery(stream, to, memory, bytes)) {
    return CLEAVE_OK;
  }
  CUDA_TRY(finish(state, stream, message));
  if (memory != NULL) {
    memcpy(to, memory, bytes);
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_stream_read(cuda_state_t *state, cuda_stream_state_t *stream, void *to,
                                 cuda_address_t from, size_t bytes, cleave_message_t *message) {
  CUDA_TRY(cuda_enter(state, stream->device, message));
  cleave_status_t status = read_bytes(state, stream, to, from, bytes, message);
  cuda_leave(state);
  return status;
}
