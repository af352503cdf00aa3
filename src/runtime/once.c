// SPDX-License-Identifier: Apache-2.0
// Outputs of known shape get their memory before the run, the others when the program asks for it.
#include "runtime/once.h"

#include <stdio.h>

typedef struct outputs {
  const cleave_once_t *once;
  cleave_tensor_t **tensors;
  cleave_tensor_view_t *views;
  uint32_t count;
} outputs_t;

static cleave_status_t resize_output(void *session, uint32_t index, int32_t rank, const int64_t *dims) {
  outputs_t *outputs = session;
  size_t most = outputs->once->most_bytes;
  if (index >= outputs->count || rank < 0 || rank > CLEAVE_MAX_RANK) {
    return CLEAVE_ERROR_INTERNAL;
  }
  int64_t count = 0;
  size_t bytes = 0;
  cleave_dtype_t dtype = outputs->views[index].dtype;
  if (!cleave_shape_element_count(rank, dims, &count) ||
      !cleave_size_multiply((size_t)count, cleave_dtype_size(dtype), &bytes) || (most > 0 && bytes > most)) {
    return CLEAVE_ERROR_LIMIT;
  }
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create(dtype, rank, dims, &tensor, NULL));
  cleave_tensor_release(outputs->tensors[index]);
  outputs->tensors[index] = tensor;
  outputs->views[index] = cleave_tensor_view(tensor);
  return CLEAVE_OK;
}

static cleave_status_t make_outputs(outputs_t *outputs) {
  const cleave_region_view_t *region = &outputs->once->view->region;
  for (uint32_t k = 0; k < outputs->count; k++) {
    const cleave_tensor_view_t *type = &region->values[region->outputs[k]].tensor;
    outputs->views[k] = (cleave_tensor_view_t){.size = sizeof *type, .dtype = type->dtype, .rank = -1};
    if (cleave_view_element_count(type) >= 0) {
      CLEAVE_TRY(cleave_tensor_create(type->dtype, type->rank, type->dims, &outputs->tensors[k], NULL));
      outputs->views[k] = cleave_tensor_view(outputs->tensors[k]);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t run(const cleave_once_t *once, outputs_t *outputs, void *program,
                           cleave_message_t *message) {
  const cleave_backend_t *backend = once->handle->backend;
  void *workspace = cleave_allocate_aligned(backend->info(program)->workspace_bytes);
  if (workspace == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  cleave_run_args_t args = {.size = sizeof args,
                            .inputs = once->inputs,
                            .outputs = outputs->views,
                            .workspace = workspace,
                            .resize_output = resize_output,
                            .session = outputs};
  cleave_status_t status = backend->run(program, &args, message);
  cleave_free(workspace);
  for (uint32_t k = 0; status == CLEAVE_OK && k < outputs->count; k++) {
    if (outputs->tensors[k] == NULL) {
      (void)snprintf(message->text, sizeof message->text, "output %u was not written", (unsigned)k);
      status = CLEAVE_ERROR_BACKEND;
    }
  }
  return status;
}

cleave_status_t cleave_run_once(const cleave_once_t *once, cleave_tensor_t **outputs,
                                cleave_message_t *message) {
  const cleave_backend_t *backend = once->handle->backend;
  const cleave_region_view_t *region = &once->view->region;
  outputs_t results = {.once = once, .tensors = outputs, .count = region->output_count};
  cleave_compile_options_t options = {.size = sizeof options, .threads = once->threads};
  void *program = NULL;
  message->text[0] = '\0';
  for (uint32_t k = 0; k < results.count; k++) {
    outputs[k] = NULL;
  }
  results.views = cleave_allocate_zeroed(results.count, sizeof *results.views);
  cleave_status_t status = results.views == NULL ? CLEAVE_ERROR_OUT_OF_MEMORY : make_outputs(&results);
  if (status == CLEAVE_OK) {
    status = backend->compile(once->handle->state, region, &options, &program, message);
  }
  if (status == CLEAVE_OK) {
    status = run(once, &results, program, message);
    backend->unload(program);
  }
  for (uint32_t k = 0; status != CLEAVE_OK && k < results.count; k++) {
    cleave_tensor_release(outputs[k]);
    outputs[k] = NULL;
  }
  cleave_free(results.views);
  return status;
}
