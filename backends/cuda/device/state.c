// SPDX-License-Identifier: Apache-2.0
// Starting: the driver and its devices. A context is made with the first work on its device, which takes a
// while.
#include "state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_CAPABILITY = 70 };

typedef struct cuda_allocation {
  cuda_address_t address;
  bool is_own;
  struct cuda_allocation *next;
} cuda_allocation_t;

cleave_status_t cuda_fail(cleave_message_t *message, cleave_status_t status, cleave_reason_code_t code,
                          const char *format, ...) {
  va_list list;
  va_start(list, format);
  message->code = code;
  (void)vsnprintf(message->text, sizeof message->text, format, list);
  va_end(list);
  return status;
}

cleave_status_t cuda_check(const cuda_state_t *state, cuda_result_t result, const char *what,
                           cleave_message_t *message) {
  if (result == CUDA_SUCCESS_) {
    return CLEAVE_OK;
  }
  const char *name = NULL;
  const char *text = NULL;
  (void)state->libraries.driver.error_name(result, &name);
  (void)state->libraries.driver.error_string(result, &text);
  bool is_full = result == CUDA_OUT_OF_MEMORY;
  return cuda_fail(message, is_full ? CLEAVE_ERROR_OUT_OF_MEMORY : CLEAVE_ERROR_BACKEND, CLEAVE_REASON_DEVICE,
                   "cannot %s: %s (%s)", what, text == NULL ? "unknown error" : text,
                   name == NULL ? "CUDA error" : name);
}

void cuda_log(const cuda_state_t *state, int32_t level, const char *line) {
  const cleave_host_t *host = state->host;
  if (host != NULL && host->size > offsetof(cleave_host_t, log) && host->log != NULL) {
    host->log(host, level, line);
  }
}

/* ---- starting ---- */

static cleave_status_t start_device(cuda_state_t *state, int number, cleave_message_t *message) {
  const cuda_driver_t *driver = &state->libraries.driver;
  cuda_device_state_t *device = &state->devices[state->device_count];
  int major = 0;
  int minor = 0;
  size_t bytes = 0;
  CUDA_TRY(cuda_check(state, driver->device_get(&device->device, number), "open a device", message));
  CUDA_TRY(cuda_check(state,
                      driver->device_attribute(&major, CUDA_ATTRIBUTE_CAPABILITY_MAJOR, device->device),
                      "ask for the compute capability", message));
  CUDA_TRY(cuda_check(state,
                      driver->device_attribute(&minor, CUDA_ATTRIBUTE_CAPABILITY_MINOR, device->device),
                      "ask for the compute capability", message));
  CUDA_TRY(cuda_check(state, driver->device_memory(&bytes, device->device), "ask for the memory", message));
  device->capability = major * 10 + minor;
  if (device->capability < MIN_CAPABILITY) {
    return CLEAVE_OK; /* an old one beside others */
  }
  device->memory_bytes = bytes;
  device->multiprocessors = 1;
  (void)driver->device_attribute(&device->multiprocessors, CUDA_ATTRIBUTE_MULTIPROCESSORS, device->device);
  if (driver->device_name(device->name, (int)sizeof device->name, device->device) != CUDA_SUCCESS_) {
    (void)snprintf(device->name, sizeof device->name, "device %d", number);
  }
  device->name[sizeof device->name - 1] = '\0';
  if (pthread_mutex_init(&device->lock, NULL) != 0) {
    return cuda_fail(message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_NONE, "no lock for a device");
  }
  state->device_count++;
  return CLEAVE_OK;
}

/* Whoever installs one library wants to know of the others, too: they are named behind the reason. */
static cleave_status_t open_library(cuda_state_t *state, cuda_library_id_t id, cleave_message_t *message) {
  char others[96] = "";
  size_t used = 0;
  if (cuda_library_open(&state->libraries, id)) {
    return CLEAVE_OK;
  }
  for (cuda_library_id_t other = 0; other < CUDA_LIBRARY_COUNT; other++) {
    if (other != id && !cuda_library_is_there(&state->libraries, other) && used < sizeof others) {
      used += (size_t)snprintf(others + used, sizeof others - used, "%s%s",
                               used == 0 ? "; also missing: " : ", ", cuda_library_name(other));
    }
  }
  return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_DEVICE, "%s%s",
                   state->libraries.items[id].reason, others);
}

cleave_status_t cuda_state_start(cuda_state_t *state, cleave_message_t *message) {
  const cuda_driver_t *driver = &state->libraries.driver;
  int count = 0;
  CUDA_TRY(open_library(state, CUDA_LIBRARY_DRIVER, message));
  CUDA_TRY(
      cuda_check(state, driver->version(&state->driver_version), "ask for the driver's version", message));
  if (state->driver_version < CUDA_MIN_DRIVER) {
    return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_VERSION,
                     "the driver is of CUDA %d.%d, expected 11.8 or newer", state->driver_version / 1000,
                     state->driver_version % 1000 / 10);
  }
  cuda_result_t result = driver->init(0);
  if (result == CUDA_NO_DEVICE) {
    return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_DEVICE, "the driver finds no device");
  }
  CUDA_TRY(cuda_check(state, result, "start the driver", message));
  CUDA_TRY(cuda_check(state, driver->device_count(&count), "count the devices", message));
  for (int k = 0; k < count && state->device_count < CUDA_MAX_DEVICES; k++) {
    CUDA_TRY(start_device(state, k, message));
  }
  if (state->device_count == 0) {
    return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_DEVICE,
                     "no device has compute capability 7.0 or higher");
  }
  return open_library(state, CUDA_LIBRARY_NVRTC, message);
}

/* ---- contexts ---- */

static cleave_status_t make_context(cuda_state_t *state, cuda_device_state_t *device,
                                    cleave_message_t *message) {
  cleave_status_t status = CLEAVE_OK;
  (void)pthread_mutex_lock(&device->lock);
  if (device->context == NULL) {
    status = cuda_check(state, state->libraries.driver.context_retain(&device->context, device->device),
                        "make a context", message);
    device->context = status == CLEAVE_OK ? device->context : NULL;
  }
  (void)pthread_mutex_unlock(&device->lock);
  return status;
}

cleave_status_t cuda_enter(cuda_state_t *state, uint32_t device, cleave_message_t *message) {
  if (device >= state->device_count) {
    return cuda_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_REASON_DEVICE,
                     "device %u does not exist: there are %u", (unsigned)device,
                     (unsigned)state->device_count);
  }
  CUDA_TRY(make_context(state, &state->devices[device], message));
  return cuda_check(state, state->libraries.driver.context_push(state->devices[device].context),
                    "make a context current", message);
}

void cuda_leave(cuda_state_t *state) {
  cuda_context_t context = NULL;
  (void)state->libraries.driver.context_pop(&context);
}

static void stop_device(cuda_state_t *state, cuda_device_state_t *device) {
  cuda_context_t popped = NULL;
  if (device->context != NULL && state->libraries.driver.context_push(device->context) == CUDA_SUCCESS_) {
    while (device->allocations != NULL) {
      cuda_allocation_t *next = device->allocations->next;
      (void)state->libraries.driver.memory_free(device->allocations->address);
      free(device->allocations);
      device->allocations = next;
    }
    if (device->blas != NULL) {
      (void)state->libraries.blas.destroy(device->blas);
    }
    if (device->dnn != NULL) {
      (void)state->libraries.dnn.destroy(device->dnn);
    }
    (void)state->libraries.driver.context_pop(&popped);
    (void)state->libraries.driver.context_release(device->device);
  }
  (void)pthread_mutex_destroy(&device->lock);
}

void cuda_state_stop(cuda_state_t *state) {
  for (uint32_t k = 0; k < state->device_count; k++) {
    stop_device(state, &state->devices[k]);
  }
}

/* ---- memory ---- */

cleave_status_t cuda_memory_alloc(cuda_state_t *state, uint32_t device, size_t bytes, bool is_own,
                                  cuda_address_t *out_address, cleave_message_t *message) {
  CUDA_TRY(cuda_enter(state, device, message));
  cuda_device_state_t *self = &state->devices[device];
  cuda_allocation_t *allocation = malloc(sizeof *allocation);
  cleave_status_t status = CLEAVE_OK;
  if (allocation == NULL) {
    status =
        cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for an allocation");
  } else if (state->libraries.driver.memory_alloc(&allocation->address, bytes > 0 ? bytes : 1) !=
             CUDA_SUCCESS_) {
    status = cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_DEVICE,
                       "device %u is full, or lost: no %zu bytes", (unsigned)device, bytes);
  }
  cuda_leave(state);
  if (status != CLEAVE_OK) {
    free(allocation);
    return status;
  }
  allocation->is_own = is_own;
  (void)pthread_mutex_lock(&self->lock);
  allocation->next = self->allocations;
  self->allocations = allocation;
  (void)pthread_mutex_unlock(&self->lock);
  *out_address = allocation->address;
  return CLEAVE_OK;
}

void cuda_memory_free(cuda_state_t *state, uint32_t device, cuda_address_t address) {
  cleave_message_t message = {.text = ""};
  if (address == 0 || cuda_enter(state, device, &message) != CLEAVE_OK) {
    return;
  }
  cuda_device_state_t *self = &state->devices[device];
  (void)pthread_mutex_lock(&self->lock);
  cuda_allocation_t **at = &self->allocations;
  while (*at != NULL && (*at)->address != address) {
    at = &(*at)->next;
  }
  cuda_allocation_t *found = *at;
  if (found != NULL) {
    *at = found->next;
  }
  (void)pthread_mutex_unlock(&self->lock);
  if (found != NULL) {
    (void)state->libraries.driver.memory_free(address);
    free(found);
  }
  cuda_leave(state);
}

void cuda_memory_free_all(cuda_state_t *state, uint32_t device) {
  cuda_device_state_t *self = &state->devices[device];
  for (;;) {
    (void)pthread_mutex_lock(&self->lock);
    const cuda_allocation_t *at = self->allocations;
    while (at != NULL && at->is_own) {
      at = at->next;
    }
    cuda_address_t address = at != NULL ? at->address : 0;
    (void)pthread_mutex_unlock(&self->lock);
    if (address == 0) {
      return;
    }
    cuda_memory_free(state, device, address);
  }
}

/* ---- handles of libraries, in the device's context ---- */

cleave_status_t cuda_blas_get(cuda_state_t *state, uint32_t device, cuda_blas_handle_t *out_handle,
                              cleave_message_t *message) {
  cuda_device_state_t *self = &state->devices[device];
  CUDA_TRY(open_library(state, CUDA_LIBRARY_BLAS, message));
  (void)pthread_mutex_lock(&self->lock);
  int32_t result = self->blas != NULL ? 0 : state->libraries.blas.create(&self->blas);
  self->blas = result != 0 ? NULL : self->blas;
  *out_handle = self->blas;
  (void)pthread_mutex_unlock(&self->lock);
  return result == 0 ? CLEAVE_OK
                     : cuda_fail(message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_DEVICE,
                                 "cannot start cuBLASLt: %s", cuda_blas_status_text(result));
}

cleave_status_t cuda_dnn_get(cuda_state_t *state, uint32_t device, cuda_dnn_handle_t *out_handle,
                             cleave_message_t *message) {
  cuda_device_state_t *self = &state->devices[device];
  CUDA_TRY(open_library(state, CUDA_LIBRARY_DNN, message));
  (void)pthread_mutex_lock(&self->lock);
  int32_t result = self->dnn != NULL ? 0 : state->libraries.dnn.create(&self->dnn);
  self->dnn = result != 0 ? NULL : self->dnn;
  *out_handle = self->dnn;
  (void)pthread_mutex_unlock(&self->lock);
  return result == 0 ? CLEAVE_OK
                     : cuda_fail(message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_DEVICE,
                                 "cannot start cuDNN: %s", state->libraries.dnn.error_string(result));
}
