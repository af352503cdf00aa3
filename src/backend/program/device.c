// SPDX-License-Identifier: Apache-2.0
// The devices in use, in a list under a lock: the first session that asks makes the object, the last one that
// gives it back frees it. Every call into a library is made under the lock of its device, but for waits of
// devices that allow other calls meanwhile.
#include "backend/program/device.h"

#include <stdio.h>
#include <string.h>

#include "backend/program/backend_options.h"

enum { ALIGNMENT = 64 };

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static cleave_device_t *list;

/* ---- finding ---- */

/* Takes over the functions that both sides know, and finds out about streams and events. */
static cleave_status_t copy_functions(cleave_device_t *device, cleave_error_t *error) {
  const cleave_backend_devices_t *from = device->handle->backend->devices;
  cleave_backend_devices_t *to = &device->functions;
  memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
  const char *missing = to->properties == NULL  ? "properties"
                        : to->alloc == NULL     ? "alloc"
                        : to->free == NULL      ? "free"
                        : to->copy_to == NULL   ? "copy_to"
                        : to->copy_from == NULL ? "copy_from"
                                                : NULL;
  if (missing != NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "backend '%s': function '%s' of its devices is missing",
                            device->handle->backend->name, missing);
  }
  device->has_streams = to->stream_create != NULL && to->stream_destroy != NULL && to->stream_wait != NULL;
  device->has_events = device->has_streams && to->event_create != NULL && to->event_destroy != NULL &&
                       to->event_record != NULL && to->event_wait != NULL;
  return CLEAVE_OK;
}

static cleave_status_t read_properties(cleave_device_t *device, cleave_error_t *error) {
  cleave_message_t message = {.text = ""};
  cleave_device_properties_t properties = {.size = sizeof properties};
  cleave_status_t status =
      device->functions.properties(device->handle->state, device->number, &properties, &message);
  if (status != CLEAVE_OK) {
    return cleave_registry_fail(error, status, device->label, &message);
  }
  properties.name[sizeof properties.name - 1] = '\0';
  device->properties = properties;
  return CLEAVE_OK;
}

static cleave_status_t create(const cleave_backend_handle_t *handle, uint32_t number,
                              cleave_device_t **out_device, cleave_error_t *error) {
  cleave_device_t *device = cleave_allocate_zeroed(1, sizeof *device);
  CLEAVE_TRY_MEMORY(device, error);
  *device = (cleave_device_t){.handle = handle, .number = number, .users = 1};
  (void)snprintf(device->label, sizeof device->label, "%.64s:%u", handle->backend->name, (unsigned)number);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(copy_functions(device, error));
  CLEAVE_TRY_CLEANUP(read_properties(device, error));
  if (pthread_mutex_init(&device->lock, NULL) != 0) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  cleave_registry_retain(handle);
  *out_device = device;
  device = NULL;
cleanup:
  cleave_free(device);
  return status;
}

static cleave_status_t find_or_create(const cleave_backend_handle_t *handle, uint32_t number,
                                      cleave_device_t **out_device, cleave_error_t *error) {
  for (cleave_device_t *device = list; device != NULL; device = device->next) {
    if (device->handle == handle && device->number == number) {
      device->users++;
      *out_device = device;
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(create(handle, number, out_device, error));
  (*out_device)->next = list;
  list = *out_device;
  return CLEAVE_OK;
}

cleave_status_t cleave_device_acquire(const cleave_backend_handle_t *handle, uint32_t number,
                                      cleave_device_t **out_device, cleave_error_t *error) {
  const cleave_backend_t *backend = handle->backend;
  *out_device = NULL;
  bool has_devices = backend->devices != NULL && backend->devices->count != NULL;
  CLEAVE_TRY(cleave_backend_check_device(handle, number, error));
  if (!has_devices) {
    return CLEAVE_OK;
  }
  (void)pthread_mutex_lock(&list_lock);
  cleave_status_t status = find_or_create(handle, number, out_device, error);
  (void)pthread_mutex_unlock(&list_lock);
  return status;
}

void cleave_device_release(cleave_device_t *device) {
  if (device == NULL) {
    return;
  }
  (void)pthread_mutex_lock(&list_lock);
  bool is_last = --device->users == 0;
  if (is_last) {
    cleave_device_t **link = &list;
    while (*link != device) {
      link = &(*link)->next;
    }
    *link = device->next;
    /* The lock is held, because the next one who asks for the device makes it anew, and allocates. */
    if (device->functions.release_all != NULL) {
      device->functions.release_all(device->handle->state, device->number);
    }
  }
  (void)pthread_mutex_unlock(&list_lock);
  if (is_last) {
    (void)pthread_mutex_destroy(&device->lock);
    cleave_registry_release(device->handle);
    cleave_free(device);
  }
}

/* ---- memory and copies ---- */

cleave_status_t cleave_device_alloc(cleave_device_t *device, size_t bytes, void **out_memory,
                                    cleave_error_t *error) {
  cleave_message_t message = {.text = ""};
  void *memory = NULL;
  *out_memory = NULL;
  size_t wanted = bytes == 0 ? ALIGNMENT : bytes;
  (void)pthread_mutex_lock(&device->lock);
  cleave_status_t status =
      device->functions.alloc(device->handle->state, device->number, wanted, &memory, &message);
  (void)pthread_mutex_unlock(&device->lock);
  if (status != CLEAVE_OK) {
    char place[160];
    (void)snprintf(place, sizeof place, "%s: no memory for %zu byte%s", device->label, wanted,
                   CLEAVE_PLURAL(wanted));
    return cleave_registry_fail(error, status, place, &message);
  }
  if (memory == NULL || (uintptr_t)memory % ALIGNMENT != 0) {
    if (memory != NULL) {
      cleave_device_free(device, memory);
    }
    return cleave_error_set(
        error, CLEAVE_ERROR_BACKEND, "%s: 'alloc' gave %s", device->label,
        memory == NULL ? "neither memory nor an error" : "memory that is not aligned to 64 bytes");
  }
  *out_memory = memory;
  return CLEAVE_OK;
}

void cleave_device_free(cleave_device_t *device, void *memory) {
  if (memory != NULL) {
    (void)pthread_mutex_lock(&device->lock);
    device->functions.free(device->handle->state, device->number, memory);
    (void)pthread_mutex_unlock(&device->lock);
  }
}

cleave_status_t cleave_device_copy(cleave_device_t *device, bool to_device, const cleave_tensor_view_t *to,
                                   const cleave_tensor_view_t *from, size_t bytes, void *stream,
                                   cleave_error_t *error) {
  if (bytes == 0) {
    return CLEAVE_OK;
  }
  cleave_message_t message;
  message.text[0] = '\0';
  const cleave_backend_devices_t *functions = &device->functions;
  (void)pthread_mutex_lock(&device->lock);
  cleave_status_t status = (to_device ? functions->copy_to : functions->copy_from)(
      device->handle->state, device->number, to, from, stream, &message);
  (void)pthread_mutex_unlock(&device->lock);
  if (status != CLEAVE_OK) {
    char place[160];
    (void)snprintf(place, sizeof place, "%s: copying %zu byte%s %s the device", device->label, bytes,
                   CLEAVE_PLURAL(bytes), to_device ? "to" : "from");
    return cleave_registry_fail(error, status, place, &message);
  }
  return CLEAVE_OK;
}

/* ---- streams and events ---- */

typedef cleave_status_t (*create_fn_t)(void *state, uint32_t device, void **out, cleave_message_t *message);
typedef void (*destroy_fn_t)(void *state, void *object);

/* A stream or an event; NULL if the device has none. */
static cleave_status_t create_object(cleave_device_t *device, bool has_any, create_fn_t make, void **out,
                                     cleave_error_t *error) {
  *out = NULL;
  if (!has_any) {
    return CLEAVE_OK;
  }
  cleave_message_t message = {.text = ""};
  (void)pthread_mutex_lock(&device->lock);
  cleave_status_t status = make(device->handle->state, device->number, out, &message);
  (void)pthread_mutex_unlock(&device->lock);
  if (status != CLEAVE_OK) {
    *out = NULL;
    return cleave_registry_fail(error, status, device->label, &message);
  }
  return CLEAVE_OK;
}

static void destroy_object(cleave_device_t *device, destroy_fn_t end, void *object) {
  if (object != NULL) {
    (void)pthread_mutex_lock(&device->lock);
    end(device->handle->state, object);
    (void)pthread_mutex_unlock(&device->lock);
  }
}

cleave_status_t cleave_device_stream_create(cleave_device_t *device, void **out_stream,
                                            cleave_error_t *error) {
  return create_object(device, device->has_streams, device->functions.stream_create, out_stream, error);
}

void cleave_device_stream_destroy(cleave_device_t *device, void *stream) {
  destroy_object(device, device->functions.stream_destroy, stream);
}

/* Begins a call in which the thread sleeps until the device is done. */
static void enter_wait(cleave_device_t *device) {
  if (!device->properties.waits_aside) {
    (void)pthread_mutex_lock(&device->lock);
  }
}

static void leave_wait(cleave_device_t *device) {
  if (!device->properties.waits_aside) {
    (void)pthread_mutex_unlock(&device->lock);
  }
}

cleave_status_t cleave_device_stream_wait(cleave_device_t *device, void *stream, cleave_message_t *message) {
  enter_wait(device);
  cleave_status_t status = device->functions.stream_wait(device->handle->state, stream, message);
  leave_wait(device);
  return status;
}

cleave_status_t cleave_device_event_create(cleave_device_t *device, void **out_event, cleave_error_t *error) {
  return create_object(device, device->has_events, device->functions.event_create, out_event, error);
}

void cleave_device_event_destroy(cleave_device_t *device, void *event) {
  destroy_object(device, device->functions.event_destroy, event);
}

cleave_status_t cleave_device_event_record(cleave_device_t *device, void *event, void *stream,
                                           cleave_message_t *message) {
  (void)pthread_mutex_lock(&device->lock);
  cleave_status_t status = device->functions.event_record(device->handle->state, event, stream, message);
  (void)pthread_mutex_unlock(&device->lock);
  return status;
}

cleave_status_t cleave_device_event_wait(cleave_device_t *waiter, void *event, void *stream,
                                         cleave_message_t *message) {
  if (stream == NULL) {
    enter_wait(waiter);
  } else {
    (void)pthread_mutex_lock(&waiter->lock);
  }
  cleave_status_t status = waiter->functions.event_wait(waiter->handle->state, event, stream, message);
  if (stream == NULL) {
    leave_wait(waiter);
  } else {
    (void)pthread_mutex_unlock(&waiter->lock);
  }
  return status;
}

/* ---- staging ---- */

cleave_status_t cleave_stage_get(cleave_stage_t *stage, uint32_t index, size_t bytes, void **out_memory,
                                 cleave_error_t *error) {
  while (stage->buffers.count <= index) {
    cleave_stage_buffer_t none = {0};
    CLEAVE_ARRAY_PUSH(&stage->buffers, none, error);
  }
  cleave_stage_buffer_t *buffer = &stage->buffers.items[index];
  if (buffer->memory == NULL || buffer->bytes < bytes) {
    size_t wanted = bytes > SIZE_MAX / 2 ? bytes : bytes + bytes / 4;
    void *memory = NULL;
    CLEAVE_TRY(cleave_device_alloc(stage->device, wanted, &memory, error));
    cleave_device_free(stage->device, buffer->memory);
    stage->bytes += wanted - buffer->bytes;
    *buffer = (cleave_stage_buffer_t){.memory = memory, .bytes = wanted};
  }
  *out_memory = buffer->memory;
  return CLEAVE_OK;
}

cleave_status_t cleave_stage_in(cleave_stage_t *stage, uint32_t index, const cleave_tensor_view_t *host,
                                size_t bytes, cleave_tensor_view_t *out_view, cleave_error_t *error) {
  void *memory = NULL;
  CLEAVE_TRY(cleave_stage_get(stage, index, bytes, &memory, error));
  *out_view = *host;
  out_view->data = memory;
  out_view->memory = stage->device->number + 1;
  return cleave_device_copy(stage->device, true, out_view, host, bytes, NULL, error);
}

void cleave_stage_deinit(cleave_stage_t *stage) {
  for (size_t k = 0; k < stage->buffers.count; k++) {
    cleave_device_free(stage->device, stage->buffers.items[k].memory);
  }
  cleave_array_free(&stage->buffers);
}
