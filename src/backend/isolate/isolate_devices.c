// SPDX-License-Identifier: Apache-2.0
// Devices of an isolated library. Their memory is in the other process, which copies to and from it around
// every run: seen from here they share host memory, and what is allocated is just that.
#include <stdio.h>
#include <string.h>

#include "backend/isolate/isolate_internal.h"
#include "backend/region/region_wire.h"

void cleave_isolate_read_devices(cleave_isolate_t *isolate, cleave_wire_in_t *reply) {
  isolate->device_count = cleave_wire_index(reply, CLEAVE_MAX_DEVICES + 1);
  for (uint32_t k = 0; k < isolate->device_count && !reply->failed; k++) {
    cleave_isolate_device_t *device = &isolate->devices[k];
    (void)snprintf(device->name, sizeof device->name, "%s", cleave_wire_named(reply));
    device->memory_bytes = cleave_wire_u64(reply);
  }
}

static uint32_t count(void *state) {
  return ((const cleave_isolate_t *)state)->device_count;
}

static cleave_status_t properties(void *state, uint32_t number, cleave_device_properties_t *out_properties,
                                  cleave_message_t *message) {
  const cleave_isolate_t *isolate = state;
  if (number >= isolate->device_count) {
    (void)snprintf(message->text, sizeof message->text, "there is no device %u", (unsigned)number);
    return CLEAVE_ERROR_INVALID_ARGUMENT;
  }
  const cleave_isolate_device_t *device = &isolate->devices[number];
  memcpy(out_properties->name, device->name, sizeof out_properties->name);
  out_properties->memory_bytes = device->memory_bytes;
  out_properties->shares_host_memory = true;
  return CLEAVE_OK;
}

static cleave_status_t allocate(void *state, uint32_t device, size_t bytes, void **out_memory,
                                cleave_message_t *message) {
  (void)state;
  (void)device;
  (void)message;
  *out_memory = cleave_allocate_aligned(bytes);
  return *out_memory == NULL ? CLEAVE_ERROR_OUT_OF_MEMORY : CLEAVE_OK;
}

static void release(void *state, uint32_t device, void *memory) {
  (void)state;
  (void)device;
  cleave_free(memory);
}

static cleave_status_t copy(void *state, uint32_t device, const cleave_tensor_view_t *to,
                            const cleave_tensor_view_t *from, void *stream, cleave_message_t *message) {
  size_t bytes = 0;
  (void)state;
  (void)device;
  (void)stream;
  (void)message;
  if (!cleave_tensor_view_bytes(from, &bytes)) {
    return CLEAVE_ERROR_SHAPE;
  }
  if (bytes > 0) {
    memcpy((void *)(uintptr_t)to->data, from->data, bytes);
  }
  return CLEAVE_OK;
}

const cleave_backend_devices_t cleave_isolate_devices = {.size = sizeof cleave_isolate_devices,
                                                         .count = count,
                                                         .properties = properties,
                                                         .alloc = allocate,
                                                         .free = release,
                                                         .copy_to = copy,
                                                         .copy_from = copy};
