// SPDX-License-Identifier: Apache-2.0
// Outputs of known shape get their memory before the run, the others when the program asks for it. On a
// device with memory of its own, tensors are copied there before the run and back after it.
#include "backend/program/region_run.h"

#include <stdio.h>

#include "backend/program/backend_options.h"
#include "backend/program/blob_store.h"
#include "backend/program/device.h"
#include "backend/program/resize.h"
#include "backend/registry/context.h"
#include "system/threads.h"

typedef struct call {
  const cleave_region_run_t *request;
  const cleave_region_view_t *region;
  cleave_arena_t arena; /* of the options */
  cleave_compile_options_t options;
  cleave_device_t *device; /* NULL: the backend has none */
  cleave_stage_t stage;    /* inputs, outputs, workspace; without a device if host memory will do */
  cleave_tensor_view_t *inputs;
  cleave_tensor_view_t *outputs;
  cleave_tensor_t **tensors; /* of the outputs, in host memory */
  cleave_resize_refusal_t refusal;
} call_t;

/* The device that the region, or the option of the command line or session, says. */
static cleave_status_t choose(call_t *call, cleave_error_t *error) {
  const cleave_region_run_t *request = call->request;
  const cleave_session_options_t *session = request->session;
  cleave_backend_option_table_t table = {0};
  if (session != NULL) {
    CLEAVE_TRY(cleave_backend_option_table_build(request->handle->context, session->backend_options,
                                                 session->backend_option_count, &call->arena, &table, error));
  }
  call->options = (cleave_compile_options_t){
      .size = sizeof call->options,
      .threads = request->threads > 0 ? request->threads : cleave_threads_available()};
  cleave_backend_option_table_apply(&table, request->handle->backend->name, &call->options);
  const cleave_attribute_view_t *device = cleave_view_region_attribute(call->region, "device");
  CLEAVE_TRY(
      cleave_registry_restart(request->handle, error)); /* this region may not be the one that it died of */
  if (request->handle->backend->devices != NULL && device != NULL) {
    CLEAVE_TRY(cleave_backend_device_of(device, &call->options.device, error));
  }
  CLEAVE_TRY(cleave_device_acquire(request->handle, call->options.device, &call->device, error));
  call->stage.device = cleave_device_has_memory(call->device) ? call->device : NULL;
  return CLEAVE_OK;
}

static size_t bytes_of(const cleave_tensor_view_t *view) {
  return (size_t)cleave_view_element_count(view) * cleave_dtype_size(view->dtype);
}

static cleave_status_t check_texts(const call_t *call, cleave_error_t *error) {
  for (uint32_t k = 0; call->stage.device != NULL && k < call->region->value_count; k++) {
    if (call->region->values[k].tensor.dtype == CLEAVE_DTYPE_STRING) {
      return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                              "tensors of strings are not copied to a device");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t place_inputs(call_t *call, cleave_error_t *error) {
  for (uint32_t k = 0; k < call->region->input_count; k++) {
    call->inputs[k] = call->request->inputs[k];
    if (call->stage.device != NULL) {
      CLEAVE_TRY(cleave_stage_in(&call->stage, k, &call->request->inputs[k],
                                 bytes_of(&call->request->inputs[k]), &call->inputs[k], error));
    }
  }
  return CLEAVE_OK;
}

/* Takes the tensor over: the output is written there, or to memory of the device that is copied there. */
static cleave_status_t place_output(call_t *call, uint32_t index, cleave_tensor_t *tensor,
                                    cleave_error_t *error) {
  cleave_tensor_release(call->tensors[index]);
  call->tensors[index] = tensor;
  call->outputs[index] = cleave_tensor_view(tensor);
  if (call->stage.device != NULL) {
    void *memory = NULL;
    CLEAVE_TRY(
        cleave_stage_get(&call->stage, call->region->input_count + index, tensor->bytes, &memory, error));
    call->outputs[index].data = memory;
    call->outputs[index].memory = call->device->number + 1;
  }
  return CLEAVE_OK;
}

static cleave_status_t place_outputs(call_t *call, cleave_error_t *error) {
  for (uint32_t k = 0; k < call->region->output_count; k++) {
    const cleave_tensor_view_t *type = &call->region->values[call->region->outputs[k]].tensor;
    call->outputs[k] = (cleave_tensor_view_t){.size = sizeof *type, .dtype = type->dtype, .rank = -1};
    if (cleave_view_element_count(type) >= 0) {
      cleave_tensor_t *tensor = NULL;
      CLEAVE_TRY(cleave_tensor_create(type->dtype, type->rank, type->dims, &tensor, error));
      CLEAVE_TRY(place_output(call, k, tensor, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t resize_output(void *context, uint32_t index, int32_t rank, const int64_t *dims) {
  call_t *call = context;
  size_t most = call->request->most_bytes;
  cleave_resize_t wanted = {.output = index, .rank = rank, .dims = dims};
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_tensor_t *tensor = NULL;
  if (index >= call->region->output_count) {
    return cleave_resize_refuse_output(&call->refusal, index);
  }
  const cleave_tensor_view_t *known = &call->region->values[call->region->outputs[index]].tensor;
  CLEAVE_TRY(cleave_resize_check(&wanted, known, NULL, most > 0 ? most : SIZE_MAX, &call->refusal));
  cleave_status_t status = cleave_tensor_create(known->dtype, rank, dims, &tensor, &reason);
  CLEAVE_THEN(status, place_output(call, index, tensor, &reason));
  return status == CLEAVE_OK ? CLEAVE_OK
                             : cleave_resize_refuse(&call->refusal, status, "%.480s", reason.message);
}

static cleave_status_t fetch_outputs(call_t *call, cleave_error_t *error) {
  for (uint32_t k = 0; k < call->region->output_count; k++) {
    if (call->tensors[k] == NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "output %u was not written", (unsigned)k);
    }
    if (call->stage.device != NULL) {
      cleave_tensor_view_t host = cleave_tensor_view(call->tensors[k]);
      CLEAVE_TRY(cleave_device_copy(call->device, false, &host, &call->outputs[k], call->tensors[k]->bytes,
                                    NULL, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t get_workspace(call_t *call, size_t bytes, void **out_host, void **out_memory,
                                     cleave_error_t *error) {
  if (call->stage.device != NULL) {
    uint32_t index = call->region->input_count + call->region->output_count;
    return cleave_stage_get(&call->stage, index, bytes, out_memory, error);
  }
  *out_host = cleave_allocate_aligned(bytes);
  *out_memory = *out_host;
  return *out_host == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

static cleave_status_t run(call_t *call, cleave_program_t *program, cleave_message_t *message,
                           cleave_error_t *error) {
  void *host = NULL;
  void *workspace = NULL;
  CLEAVE_TRY(place_inputs(call, error));
  CLEAVE_TRY(place_outputs(call, error));
  CLEAVE_TRY(get_workspace(call, program->info->workspace_bytes, &host, &workspace, error));
  cleave_run_args_t args = {.size = sizeof args,
                            .inputs = call->inputs,
                            .outputs = call->outputs,
                            .workspace = workspace,
                            .resize_output = resize_output,
                            .session = call};
  cleave_status_t status = cleave_program_run(program, &args, message);
  cleave_resize_explain(&call->refusal, status, message);
  cleave_free(host);
  return status == CLEAVE_OK ? fetch_outputs(call, error) : status;
}

static cleave_status_t compile_and_run(call_t *call, cleave_message_t *message, cleave_error_t *error) {
  const cleave_region_run_t *request = call->request;
  cleave_program_t *program = NULL;
  cleave_blob_store_t *blobs = NULL;
  call->inputs = cleave_allocate_zeroed(call->region->input_count, sizeof *call->inputs);
  call->outputs = cleave_allocate_zeroed(call->region->output_count, sizeof *call->outputs);
  CLEAVE_TRY_MEMORY(call->inputs != NULL && call->outputs != NULL, error);
  CLEAVE_TRY(choose(call, error));
  CLEAVE_TRY(check_texts(call, error));
  if (request->session != NULL && request->session->blob_folder != NULL) {
    CLEAVE_TRY(cleave_blob_store_open(request->session->blob_folder, request->session->blob_limit,
                                      cleave_context_log(request->handle->context), &blobs, error));
  }
  cleave_program_request_t compile = {.handle = request->handle,
                                      .view = request->view,
                                      .options = &call->options,
                                      .name = "",
                                      .blobs = blobs};
  cleave_status_t status = cleave_program_compile(&compile, &program, message);
  CLEAVE_THEN(status, run(call, program, message, error));
  cleave_program_release(program);
  cleave_blob_store_close(blobs);
  return status;
}

cleave_status_t cleave_region_run(const cleave_region_run_t *request, cleave_tensor_t **outputs,
                                  cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  call_t call = {.request = request, .region = &request->view->region, .tensors = outputs};
  message->text[0] = '\0';
  for (uint32_t k = 0; k < call.region->output_count; k++) {
    outputs[k] = NULL;
  }
  cleave_status_t status = compile_and_run(&call, message, &error);
  if (error.status != CLEAVE_OK) {
    (void)snprintf(message->text, sizeof message->text, "%.*s", (int)sizeof message->text - 1, error.message);
  }
  for (uint32_t k = 0; status != CLEAVE_OK && k < call.region->output_count; k++) {
    cleave_tensor_release(outputs[k]);
    outputs[k] = NULL;
  }
  cleave_stage_deinit(&call.stage);
  cleave_device_release(call.device);
  cleave_arena_deinit(&call.arena);
  cleave_free(call.inputs);
  cleave_free(call.outputs);
  return status;
}
