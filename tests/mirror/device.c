// SPDX-License-Identifier: Apache-2.0
// The two devices: memory, copies between them and the host, streams and events. The "device" is a range of
// addresses of this process; what makes it one is that nobody else may touch it.
#include <stdio.h>
#include <string.h>

#include "stream.h"

cleave_status_t mirror_check_device(mirror_t *mirror, uint32_t device, cleave_message_t *message) {
  return device < MIRROR_DEVICES
             ? CLEAVE_OK
             : mirror_misuse(mirror, message, "device %u: there are %d", (unsigned)device, MIRROR_DEVICES);
}

static uint32_t count(void *state) {
  (void)state;
  return MIRROR_DEVICES;
}

static cleave_status_t properties(void *state, uint32_t device, cleave_device_properties_t *out_properties,
                                  cleave_message_t *message) {
  mirror_t *mirror = state;
  cleave_status_t status = mirror_check_device(mirror, device, message);
  if (status == CLEAVE_OK) {
    out_properties->size = sizeof *out_properties;
    out_properties->memory_bytes = mirror->pools[device].capacity;
    out_properties->shares_host_memory = false;
    out_properties->waits_aside = true;
    (void)snprintf(out_properties->name, sizeof out_properties->name, "mirror %u", (unsigned)device);
  }
  return status;
}

static cleave_status_t allocate(void *state, uint32_t device, size_t bytes, void **out_memory,
                                cleave_message_t *message) {
  mirror_t *mirror = state;
  *out_memory = NULL;
  cleave_status_t status = mirror_check_device(mirror, device, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  status = mirror_pool_allocate(&mirror->pools[device], bytes, false, out_memory);
  return status == CLEAVE_OK ? CLEAVE_OK
                             : mirror_fail(message, status, CLEAVE_REASON_DEVICE,
                                           "device %u is full: no %zu bytes", (unsigned)device, bytes);
}

static void free_memory(void *state, uint32_t device, void *memory) {
  mirror_t *mirror = state;
  cleave_message_t message = {.text = ""};
  cleave_status_t status = mirror_check_device(mirror, device, &message);
  if (status == CLEAVE_OK && !mirror_pool_free(&mirror->pools[device], memory, false)) {
    status = mirror_misuse(mirror, &message, "free: %p was not given out by device %u, or is free already",
                           memory, (unsigned)device);
  }
  if (status != CLEAVE_OK && mirror->host->size > offsetof(cleave_host_t, log) && mirror->host->log != NULL) {
    mirror->host->log(mirror->host, 0, message.text);
  }
}

static void release_all(void *state, uint32_t device) {
  mirror_t *mirror = state;
  if (device < MIRROR_DEVICES) {
    mirror_pool_release_all(&mirror->pools[device]);
  }
}

/* ---- copies ---- */

static bool same_type(const cleave_tensor_view_t *a, const cleave_tensor_view_t *b) {
  return a->dtype == b->dtype && a->rank == b->rank && a->rank >= 0 &&
         (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0);
}

/* One side lies on the device, the other one on the host. */
static cleave_status_t check_copy(mirror_t *mirror, uint32_t device, const cleave_tensor_view_t *there,
                                  const cleave_tensor_view_t *here, size_t *out_bytes,
                                  cleave_message_t *message) {
  cleave_status_t status = mirror_check_device(mirror, device, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  if (!same_type(there, here) || there->storage != CLEAVE_STORAGE_DENSE ||
      here->storage != CLEAVE_STORAGE_DENSE || !mirror_tensor_bytes(there, out_bytes)) {
    return mirror_misuse(mirror, message, "copy: expected two dense tensors of one known dtype and shape");
  }
  if (there->memory != device + 1 || here->memory != CLEAVE_MEMORY_HOST) {
    return mirror_misuse(mirror, message,
                         "copy: expected memory of device %u (%u) and of the host (%u), found %u and %u",
                         (unsigned)device, (unsigned)device + 1, CLEAVE_MEMORY_HOST, (unsigned)there->memory,
                         (unsigned)here->memory);
  }
  if (*out_bytes > 0 && here->data == NULL) {
    return mirror_misuse(mirror, message, "copy: the tensor of the host has no memory");
  }
  if (*out_bytes > 0 && !mirror_pool_holds(&mirror->pools[device], there->data, *out_bytes)) {
    return mirror_misuse(mirror, message,
                         "copy: %zu bytes at %p are not inside of memory that device %u gave out", *out_bytes,
                         there->data, (unsigned)device);
  }
  return CLEAVE_OK;
}

static cleave_status_t copy_bytes(mirror_t *mirror, uint32_t device, const cleave_tensor_view_t *to,
                                  const cleave_tensor_view_t *from, size_t bytes, mirror_stream_t *stream,
                                  cleave_message_t *message) {
  void *target = (void *)(uintptr_t)to->data;
  if (stream != NULL && mirror_stream_device(stream) != device) {
    return mirror_misuse(mirror, message, "copy: the stream is of device %u, the memory of device %u",
                         (unsigned)mirror_stream_device(stream), (unsigned)device);
  }
  if (stream != NULL) {
    return mirror_stream_copy(stream, target, from->data, bytes, message);
  }
  uint64_t latency_ns = atomic_load(&mirror->settings.latency_ns);
  if (latency_ns > 0) {
    mirror_sleep(latency_ns);
  }
  if (bytes > 0) {
    mirror_pool_open(&mirror->pools[device]);
    memcpy(target, from->data, bytes);
    mirror_pool_close(&mirror->pools[device]);
  }
  return CLEAVE_OK;
}

static cleave_status_t copy_to(void *state, uint32_t device, const cleave_tensor_view_t *to,
                               const cleave_tensor_view_t *from, void *stream, cleave_message_t *message) {
  mirror_t *mirror = state;
  size_t bytes = 0;
  cleave_status_t status = check_copy(mirror, device, to, from, &bytes, message);
  if (status == CLEAVE_OK) {
    mirror_count(&mirror->counters.bytes_copied_to, bytes);
    status = copy_bytes(mirror, device, to, from, bytes, stream, message);
  }
  return status;
}

static cleave_status_t copy_from(void *state, uint32_t device, const cleave_tensor_view_t *to,
                                 const cleave_tensor_view_t *from, void *stream, cleave_message_t *message) {
  mirror_t *mirror = state;
  size_t bytes = 0;
  cleave_status_t status = check_copy(mirror, device, from, to, &bytes, message);
  if (status == CLEAVE_OK) {
    mirror_count(&mirror->counters.bytes_copied_from, bytes);
    status = copy_bytes(mirror, device, to, from, bytes, stream, message);
  }
  return status;
}

/* ---- streams and events ---- */

static cleave_status_t stream_create(void *state, uint32_t device, void **out_stream,
                                     cleave_message_t *message) {
  mirror_stream_t *stream = NULL;
  cleave_status_t status = mirror_check_device(state, device, message);
  if (status == CLEAVE_OK) {
    status = mirror_stream_create(state, device, &stream, message);
  }
  *out_stream = stream;
  return status;
}

static void stream_destroy(void *state, void *stream) {
  (void)state;
  mirror_stream_destroy(stream);
}

static cleave_status_t stream_wait(void *state, void *stream, cleave_message_t *message) {
  (void)state;
  return mirror_stream_wait(stream, message);
}

static cleave_status_t event_create(void *state, uint32_t device, void **out_event,
                                    cleave_message_t *message) {
  mirror_event_t *event = NULL;
  cleave_status_t status = mirror_check_device(state, device, message);
  if (status == CLEAVE_OK) {
    status = mirror_event_create(&event, message);
  }
  *out_event = event;
  return status;
}

static void event_destroy(void *state, void *event) {
  (void)state;
  mirror_event_destroy(event);
}

static cleave_status_t event_record(void *state, void *event, void *stream, cleave_message_t *message) {
  if (stream == NULL) {
    return mirror_misuse(state, message, "an event is recorded on a stream");
  }
  return mirror_event_record(event, stream, message);
}

static cleave_status_t event_wait(void *state, void *event, void *stream, cleave_message_t *message) {
  (void)state;
  return mirror_event_wait(event, stream, message);
}

const cleave_backend_devices_t mirror_devices = {.size = sizeof mirror_devices,
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
