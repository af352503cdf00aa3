// SPDX-License-Identifier: Apache-2.0
// Memory on the library's device: a program that runs there has buffers of its own, to and from which the
// shared ones are copied around every run.
#include <stdio.h>

#include "backend/region/region_wire.h"
#include "worker/worker.h"

const cleave_backend_devices_t *worker_device_functions(const worker_t *worker, uint32_t device) {
  const cleave_backend_devices_t *devices = worker->table.devices;
  cleave_device_properties_t properties = {.size = sizeof properties};
  cleave_message_t message = {.text = ""};
  bool is_complete = devices != NULL && devices->alloc != NULL && devices->free != NULL &&
                     devices->copy_to != NULL && devices->copy_from != NULL;
  bool shares = is_complete && devices->properties != NULL &&
                devices->properties(worker->state, device, &properties, &message) == CLEAVE_OK &&
                properties.shares_host_memory;
  return is_complete && !shares ? devices : NULL;
}

cleave_status_t worker_device_start(const worker_t *worker, uint32_t device, cleave_message_t *message) {
  const cleave_backend_devices_t *devices = worker->table.devices;
  cleave_device_properties_t properties = {.size = sizeof properties};
  cleave_status_t status = devices == NULL || devices->properties == NULL
                               ? CLEAVE_OK
                               : devices->properties(worker->state, device, &properties, message);
  if (status != CLEAVE_OK && message->text[0] == '\0') {
    (void)snprintf(message->text, sizeof message->text, "device %u does not start and gives no reason",
                   (unsigned)device);
  }
  return status;
}

/* Memory for one input or output; a constant is copied there at once. */
static cleave_status_t place(worker_t *worker, const worker_program_t *program,
                             const cleave_tensor_view_t *from, cleave_tensor_view_t *to,
                             cleave_message_t *message) {
  size_t bytes = 0;
  void *memory = NULL;
  *to = *from;
  to->memory = program->device + 1;
  to->data = NULL;
  if (!cleave_tensor_view_bytes(from, &bytes)) {
    return CLEAVE_OK; /* an open output */
  }
  CLEAVE_TRY(
      worker->table.devices->alloc(worker->state, program->device, bytes == 0 ? 1 : bytes, &memory, message));
  to->data = memory;
  return CLEAVE_OK;
}

cleave_status_t worker_device_use(worker_t *worker, worker_program_t *program, cleave_message_t *message) {
  const cleave_region_view_t *region = &program->region;
  program->device_inputs =
      cleave_arena_allocate(&program->binding, region->input_count, sizeof *program->device_inputs);
  program->device_outputs =
      cleave_arena_allocate(&program->binding, region->output_count, sizeof *program->device_outputs);
  if (program->device_inputs == NULL || program->device_outputs == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->has_device = true;
  for (uint32_t k = 0; k < region->input_count; k++) {
    program->device_inputs[k].data = NULL;
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    program->device_outputs[k].data = NULL;
  }
  for (uint32_t k = 0; k < region->input_count; k++) {
    CLEAVE_TRY(place(worker, program, &program->inputs[k], &program->device_inputs[k], message));
    if (program->is_fixed[k]) {
      CLEAVE_TRY(worker->table.devices->copy_to(worker->state, program->device, &program->device_inputs[k],
                                                &program->inputs[k], NULL, message));
    }
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    CLEAVE_TRY(place(worker, program, &program->outputs[k], &program->device_outputs[k], message));
  }
  return program->workspace_bytes == 0
             ? CLEAVE_OK
             : worker->table.devices->alloc(worker->state, program->device, program->workspace_bytes,
                                            &program->workspace, message);
}

static void free_views(const worker_t *worker, const worker_program_t *program, cleave_tensor_view_t *views,
                       uint32_t count) {
  for (uint32_t k = 0; views != NULL && k < count; k++) {
    if (views[k].data != NULL) {
      worker->table.devices->free(worker->state, program->device, (void *)(uintptr_t)views[k].data);
    }
  }
}

void worker_device_leave(const worker_t *worker, worker_program_t *program) {
  if (!program->has_device) {
    return;
  }
  free_views(worker, program, program->device_inputs, program->region.input_count);
  free_views(worker, program, program->device_outputs, program->region.output_count);
  if (program->workspace != NULL) {
    worker->table.devices->free(worker->state, program->device, program->workspace);
  }
  program->device_inputs = NULL;
  program->device_outputs = NULL;
  program->workspace = NULL;
  program->has_device = false;
}

cleave_status_t worker_device_copy_in(worker_t *worker, const worker_program_t *program, bool has_requests,
                                      cleave_message_t *message) {
  const cleave_backend_devices_t *devices = worker->table.devices;
  for (uint32_t k = 0; k < program->region.input_count; k++) {
    if (!program->is_fixed[k]) {
      CLEAVE_TRY(devices->copy_to(worker->state, program->device, &program->device_inputs[k],
                                  &program->inputs[k], NULL, message));
    }
  }
  for (uint32_t k = 0; k < program->region.output_count; k++) {
    if (has_requests && program->requests[k] == CLEAVE_REQUEST_ADD) {
      CLEAVE_TRY(devices->copy_to(worker->state, program->device, &program->device_outputs[k],
                                  &program->outputs[k], NULL, message));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t worker_device_copy_out(worker_t *worker, const worker_program_t *program,
                                       cleave_message_t *message) {
  const cleave_backend_devices_t *devices = worker->table.devices;
  for (uint32_t k = 0; k < program->region.output_count; k++) {
    if (program->outputs[k].data != NULL) {
      CLEAVE_TRY(devices->copy_from(worker->state, program->device, &program->outputs[k],
                                    &program->device_outputs[k], NULL, message));
    }
  }
  return CLEAVE_OK;
}
