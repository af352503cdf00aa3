// SPDX-License-Identifier: Apache-2.0
// Devices as cleave sees them: memory, copies, streams and events.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

typedef struct event {
  uint32_t device;
  cuda_event_t event;
  cuda_stream_state_t *stream; /* it was last recorded on */
  uint64_t reads;              /* of the stream, that were asked for before */
} event_t;

static uint32_t count(void *state) {
  return ((const cuda_state_t *)state)->device_count;
}

static cleave_status_t properties(void *opaque, uint32_t device, cleave_device_properties_t *out_properties,
                                  cleave_message_t *message) {
  const cuda_state_t *state = opaque;
  if (device >= state->device_count) {
    return cuda_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_REASON_DEVICE,
                     "device %u does not exist: there are %u", (unsigned)device,
                     (unsigned)state->device_count);
  }
  const cuda_device_state_t *self = &state->devices[device];
  *out_properties =
      (cleave_device_properties_t){.size = sizeof *out_properties, .memory_bytes = self->memory_bytes};
  (void)snprintf(out_properties->name, sizeof out_properties->name, "%.40s (%d.%d)", self->name,
                 (int)self->capability / 10, (int)self->capability % 10);
  return CLEAVE_OK;
}

static cleave_status_t allocate(void *state, uint32_t device, size_t bytes, void **out_memory,
                                cleave_message_t *message) {
  cuda_address_t address = 0;
  *out_memory = NULL;
  CUDA_TRY(cuda_memory_alloc(state, device, bytes, false, &address, message));
  *out_memory = (void *)(uintptr_t)address;
  return CLEAVE_OK;
}

static void free_memory(void *state, uint32_t device, void *memory) {
  cuda_memory_free(state, device, (cuda_address_t)(uintptr_t)memory);
}

static void release_all(void *opaque, uint32_t device) {
  cuda_state_t *state = opaque;
  if (device < state->device_count) {
    cuda_memory_free_all(state, device);
  }
}

/* ---- copies ---- */

static cleave_status_t check_copy(const cleave_tensor_view_t *there, const cleave_tensor_view_t *here,
                                  uint32_t device, size_t *out_bytes, cleave_message_t *message) {
  int64_t elements = cleave_view_element_count(there);
  bool is_sound = there->dtype == here->dtype && elements >= 0 &&
                  elements == cleave_view_element_count(here) && there->storage == CLEAVE_STORAGE_DENSE &&
                  here->storage == CLEAVE_STORAGE_DENSE && there->dtype != CLEAVE_DTYPE_STRING;
  if (!is_sound) {
    return cuda_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_REASON_SHAPE,
                     "copy: expected two dense tensors of one dtype and shape");
  }
  if (there->memory != device + 1 || here->memory != CLEAVE_MEMORY_HOST) {
    return cuda_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_REASON_DEVICE,
                     "copy: expected memory of device %u (%u) and of the host (0), found %u and %u",
                     (unsigned)device, (unsigned)device + 1, (unsigned)there->memory, (unsigned)here->memory);
  }
  *out_bytes = (size_t)elements * cleave_dtype_size(there->dtype);
  return CLEAVE_OK;
}

static cleave_status_t copy_to(void *opaque, uint32_t device, const cleave_tensor_view_t *to,
                               const cleave_tensor_view_t *from, void *stream, cleave_message_t *message) {
  cuda_state_t *state = opaque;
  size_t bytes = 0;
  cuda_address_t address = (cuda_address_t)(uintptr_t)to->data;
  CUDA_TRY(check_copy(to, from, device, &bytes, message));
  if (bytes == 0) {
    return CLEAVE_OK;
  }
  if (stream != NULL) {
    return cuda_stream_write(state, stream, address, from->data, bytes, message);
  }
  CUDA_TRY(cuda_enter(state, device, message));
  cleave_status_t status = cuda_check(state, state->libraries.driver.copy_to(address, from->data, bytes),
                                      "copy to the device", message);
  cuda_leave(state);
  return status;
}

static cleave_status_t copy_from(void *opaque, uint32_t device, const cleave_tensor_view_t *to,
                                 const cleave_tensor_view_t *from, void *stream, cleave_message_t *message) {
  cuda_state_t *state = opaque;
  size_t bytes = 0;
  cuda_address_t address = (cuda_address_t)(uintptr_t)from->data;
  void *target = (void *)(uintptr_t)to->data;
  CUDA_TRY(check_copy(from, to, device, &bytes, message));
  if (bytes == 0) {
    return CLEAVE_OK;
  }
  if (stream != NULL) {
    return cuda_stream_read(state, stream, target, address, bytes, message);
  }
  CUDA_TRY(cuda_enter(state, device, message));
  cleave_status_t status = cuda_check(state, state->libraries.driver.copy_from(target, address, bytes),
                                      "copy from the device", message);
  cuda_leave(state);
  return status;
}

/* ---- streams and events ---- */

static cleave_status_t stream_create(void *state, uint32_t device, void **out_stream,
                                     cleave_message_t *message) {
  cuda_stream_state_t *stream = NULL;
  cleave_status_t status = cuda_stream_make(state, device, &stream, message);
  *out_stream = stream;
  return status;
}

static void stream_destroy(void *state, void *stream) {
  cuda_stream_free(state, stream);
}

static cleave_status_t stream_wait(void *state, void *stream, cleave_message_t *message) {
  return cuda_stream_finish(state, stream, message);
}

static cleave_status_t event_create(void *opaque, uint32_t device, void **out_event,
                                    cleave_message_t *message) {
  cuda_state_t *state = opaque;
  *out_event = NULL;
  CUDA_TRY(cuda_enter(state, device, message));
  event_t *event = calloc(1, sizeof *event);
  cleave_status_t status =
      event == NULL
          ? cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for an event")
          : cuda_check(state, state->libraries.driver.event_create(&event->event, CUDA_EVENT_DISABLE_TIMING),
                       "make an event", message);
  cuda_leave(state);
  if (status != CLEAVE_OK) {
    free(event);
    return status;
  }
  event->device = device;
  *out_event = event;
  return CLEAVE_OK;
}

static void event_destroy(void *opaque, void *memory) {
  cuda_state_t *state = opaque;
  event_t *event = memory;
  cleave_message_t message = {.text = ""};
  if (event == NULL) {
    return;
  }
  if (cuda_enter(state, event->device, &message) == CLEAVE_OK) {
    (void)state->libraries.driver.event_destroy(event->event);
    cuda_leave(state);
  }
  free(event);
}

static cleave_status_t event_record(void *opaque, void *memory, void *stream, cleave_message_t *message) {
  cuda_state_t *state = opaque;
  event_t *event = memory;
  CUDA_TRY(cuda_enter(state, event->device, message));
  cleave_status_t status =
      cuda_check(state, state->libraries.driver.event_record(event->event, cuda_stream_of(stream)),
                 "record an event", message);
  cuda_leave(state);
  event->stream = stream;
  event->reads = cuda_stream_reads(stream);
  return status;
}

/* The caller also gets what was read from the device before the event. */
static cleave_status_t event_wait(void *opaque, void *memory, void *stream, cleave_message_t *message) {
  cuda_state_t *state = opaque;
  event_t *event = memory;
  if (event->stream == NULL) {
    return CLEAVE_OK;
  }
  CUDA_TRY(cuda_enter(state, stream == NULL ? event->device : cuda_stream_device(stream), message));
  cuda_result_t result =
      stream == NULL ? state->libraries.driver.event_wait(event->event)
                     : state->libraries.driver.stream_wait_event(cuda_stream_of(stream), event->event, 0);
  cleave_status_t status = cuda_check(state, result, "wait for an event", message);
  cuda_leave(state);
  if (status == CLEAVE_OK && stream == NULL) {
    cuda_stream_deliver(event->stream, event->reads);
  }
  return status;
}

const cleave_backend_devices_t cuda_devices = {.size = sizeof cuda_devices,
                                               .count = count,
                                               .properties = properties,
                                               .alloc = allocate,
                                               .free = free_memory,
                                               .release_all = release_all,
                                               .copy_to = copy_to,
                                               .copy_from = copy_from,
                                               .stream_create = stream_create,
                                               .stream_destroy = stream_destroy,
                                               .stream_wait = stream_wait,
                                               .event_create = event_create,
                                               .event_destroy = event_destroy,
                                               .event_record = event_record,
                                               .event_wait = event_wait};
