// SPDX-License-Identifier: Apache-2.0
/*
 * Devices of backends (cleave_backend_devices_t): one object per device for the whole process, whose lock
 * keeps the promise of the header that a device is called from one thread at a time. What a library hands out
 * is checked here, so that the rest of cleave need not: memory that is missing or not aligned, functions that
 * are not there. Messages start with the device's label, "mirror:0".
 */
#ifndef CLEAVE_BACKEND_PROGRAM_DEVICE_H
#define CLEAVE_BACKEND_PROGRAM_DEVICE_H

#include <pthread.h>

#include "backend/registry/registry.h"
#include "base/containers/array.h"

typedef struct cleave_device {
  const cleave_backend_handle_t *handle; /* retained */
  cleave_backend_devices_t functions;    /* a copy: NULL for what the library does not know */
  uint32_t number;
  bool has_streams;
  bool has_events;
  char label[80];
  cleave_device_properties_t properties;
  pthread_mutex_t lock;
  uint32_t users; /* under the lock of the list */
  struct cleave_device *next;
} cleave_device_t;

/* Device `number` of the backend, for cleave_device_release. *out_device is NULL for a backend that has no
 * devices, where only number 0 exists. CLEAVE_ERROR_INVALID_ARGUMENT: there is no such device, with how many
 * there are. Thread-safe. */
CLEAVE_STATUS cleave_device_acquire(const cleave_backend_handle_t *handle, uint32_t number,
                                    cleave_device_t **out_device, cleave_error_t *error);
/* NULL is a no-op. When nothing uses the device any more, all memory of it that cleave still has is released.
 */
void cleave_device_release(cleave_device_t *device);

/* Does it need copies? NULL does not. */
static inline bool cleave_device_has_memory(const cleave_device_t *device) {
  return device != NULL && !device->properties.shares_host_memory;
}

/* Memory of the device, 64-byte aligned; `bytes` 0 gives memory too. */
CLEAVE_STATUS cleave_device_alloc(cleave_device_t *device, size_t bytes, void **out_memory,
                                  cleave_error_t *error);
/* NULL is a no-op. */
void cleave_device_free(cleave_device_t *device, void *memory);

/* Copies `bytes`, which both views have, to the device or back; on the stream, or done on return. Without
 * bytes nothing happens. */
CLEAVE_STATUS cleave_device_copy(cleave_device_t *device, bool to_device, const cleave_tensor_view_t *to,
                                 const cleave_tensor_view_t *from, size_t bytes, void *stream,
                                 cleave_error_t *error);

/* *out_stream is NULL if the device has no streams. */
CLEAVE_STATUS cleave_device_stream_create(cleave_device_t *device, void **out_stream, cleave_error_t *error);
/* NULL is a no-op. */
void cleave_device_stream_destroy(cleave_device_t *device, void *stream);
/* The host waits for all that was put on the stream. The message is the library's own. */
CLEAVE_STATUS cleave_device_stream_wait(cleave_device_t *device, void *stream, cleave_message_t *message);

/* *out_event is NULL if the device has no events. */
CLEAVE_STATUS cleave_device_event_create(cleave_device_t *device, void **out_event, cleave_error_t *error);
void cleave_device_event_destroy(cleave_device_t *device, void *event);
CLEAVE_STATUS cleave_device_event_record(cleave_device_t *device, void *event, void *stream,
                                         cleave_message_t *message);
/* `stream` of `waiter`, a device of the same backend, waits for the event; NULL: the host does. */
CLEAVE_STATUS cleave_device_event_wait(cleave_device_t *waiter, void *event, void *stream,
                                       cleave_message_t *message);

/* ---- staging ---- */

typedef struct cleave_stage_buffer {
  void *memory;
  size_t bytes;
} cleave_stage_buffer_t;

/* Memory of a device for what is copied to it and back around a single call; it only grows. */
typedef struct cleave_stage {
  cleave_device_t *device;
  CLEAVE_ARRAY(cleave_stage_buffer_t) buffers;
  size_t bytes; /* of all buffers */
} cleave_stage_t;

/* Buffer `index`, with room for `bytes`; what it held is gone if it grows. */
CLEAVE_STATUS cleave_stage_get(cleave_stage_t *stage, uint32_t index, size_t bytes, void **out_memory,
                               cleave_error_t *error);
/* Copies a tensor of host memory into buffer `index`: *out_view is it there. */
CLEAVE_STATUS cleave_stage_in(cleave_stage_t *stage, uint32_t index, const cleave_tensor_view_t *host,
                              size_t bytes, cleave_tensor_view_t *out_view, cleave_error_t *error);
void cleave_stage_deinit(cleave_stage_t *stage);

#endif /* CLEAVE_BACKEND_PROGRAM_DEVICE_H */
