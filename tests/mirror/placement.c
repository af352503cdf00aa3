// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a run lie, and the runs that cannot use them where they are: what comes from the host
// is copied to buffers of the program, what is added or not wanted is computed into them.
#include <string.h>

#include "program.h"

void mirror_buffer_free(mirror_program_t *program, mirror_buffer_t *buffer) {
  (void)mirror_pool_free(&program->mirror->pools[program->device], buffer->memory, true);
  *buffer = (mirror_buffer_t){0};
}

cleave_status_t mirror_buffer_reserve(mirror_program_t *program, mirror_buffer_t *buffer, size_t bytes,
                                      cleave_message_t *message) {
  if (buffer->memory != NULL && bytes <= buffer->bytes) {
    return CLEAVE_OK;
  }
  mirror_buffer_free(program, buffer);
  cleave_status_t status =
      mirror_pool_allocate(&program->mirror->pools[program->device], bytes, true, &buffer->memory);
  if (status != CLEAVE_OK) {
    return mirror_fail(message, status, CLEAVE_REASON_DEVICE, "device %u is full: no %zu bytes of its memory",
                       (unsigned)program->device, bytes);
  }
  buffer->bytes = bytes;
  return CLEAVE_OK;
}

cleave_status_t mirror_place(mirror_program_t *program, const cleave_tensor_view_t *tensor, const char *what,
                             uint32_t index, bool *out_staged, cleave_message_t *message) {
  mirror_t *mirror = program->mirror;
  bool says = tensor->size > offsetof(cleave_tensor_view_t, memory);
  uint32_t memory = says ? tensor->memory : CLEAVE_MEMORY_HOST;
  size_t bytes = 0;
  *out_staged = false;
  if (!mirror_tensor_bytes(tensor, &bytes)) {
    return mirror_misuse(mirror, message, "%s %u is no dense tensor of known shape and dtype", what,
                         (unsigned)index);
  }
  if (memory == CLEAVE_MEMORY_HOST && atomic_load_explicit(&mirror->settings.stages, memory_order_relaxed)) {
    *out_staged = true;
    return tensor->data != NULL || bytes == 0
               ? CLEAVE_OK
               : mirror_misuse(mirror, message, "%s %u has no memory", what, (unsigned)index);
  }
  if (memory == CLEAVE_MEMORY_HOST) {
    return mirror_misuse(mirror, message, "%s %u lies in host memory, expected memory of device %u", what,
                         (unsigned)index, (unsigned)program->device);
  }
  if (memory != program->device + 1) {
    return mirror_misuse(mirror, message, "%s %u lies in memory of device %u, expected device %u", what,
                         (unsigned)index, (unsigned)(memory - 1), (unsigned)program->device);
  }
  if (bytes > 0 && !mirror_pool_holds(&mirror->pools[program->device], tensor->data, bytes)) {
    return mirror_misuse(mirror, message,
                         "%s %u: %zu bytes at %p are not inside of memory that device %u gave out", what,
                         (unsigned)index, bytes, tensor->data, (unsigned)program->device);
  }
  return CLEAVE_OK;
}

/* ---- arguments of the program's own ---- */

static cleave_request_t request_of(const cleave_run_args_t *args, uint32_t output) {
  bool has_requests = args->size > offsetof(cleave_run_args_t, requests) && args->requests != NULL;
  return has_requests ? args->requests[output] : CLEAVE_REQUEST_WRITE;
}

static cleave_status_t bind_input(mirror_program_t *program, const cleave_run_args_t *args, uint32_t input,
                                  cleave_message_t *message) {
  cleave_tensor_view_t *view = &program->inputs[input];
  bool is_staged = false;
  *view = args->inputs[input];
  cleave_status_t status = mirror_place(program, view, "input", input, &is_staged, message);
  if (status != CLEAVE_OK || !is_staged) {
    return status;
  }
  size_t bytes = 0;
  (void)mirror_tensor_bytes(view, &bytes);
  status = mirror_buffer_reserve(program, &program->staged[input], bytes, message);
  if (status == CLEAVE_OK && bytes > 0) {
    memcpy(program->staged[input].memory, view->data, bytes);
    mirror_count(&program->mirror->counters.bytes_staged, bytes);
  }
  view->data = program->staged[input].memory;
  return status;
}

/* The output is computed into the program's own buffer. */
static cleave_status_t redirect(mirror_program_t *program, uint32_t output, cleave_message_t *message) {
  cleave_tensor_view_t *view = &program->outputs[output];
  size_t bytes = 0;
  if (!mirror_tensor_bytes(view, &bytes)) {
    return mirror_misuse(program->mirror, message, "output %u has no known shape or dtype", (unsigned)output);
  }
  mirror_buffer_t *buffer = &program->extras[output].buffer;
  cleave_status_t status = mirror_buffer_reserve(program, buffer, bytes, message);
  view->data = buffer->memory;
  program->extras[output].is_redirected = true;
  return status;
}

static cleave_status_t bind_output(mirror_program_t *program, const cleave_run_args_t *args, uint32_t output,
                                   cleave_message_t *message) {
  cleave_tensor_view_t *view = &program->outputs[output];
  cleave_request_t request = request_of(args, output);
  bool is_open = cleave_view_element_count(&args->outputs[output]) < 0;
  bool is_staged = false;
  *view = args->outputs[output];
  program->extras[output].is_redirected = false;
  switch (request) {
    case CLEAVE_REQUEST_NONE:
      view->data = NULL;
      return is_open ? CLEAVE_OK : redirect(program, output, message);
    case CLEAVE_REQUEST_WRITE:
      if (view->data == NULL && (is_open || cleave_view_element_count(view) > 0)) {
        return CLEAVE_OK;  // its memory comes by resize_output
      }
      break;
    case CLEAVE_REQUEST_ADD:
      if (view->data == NULL) {
        return mirror_misuse(program->mirror, message, "output %u has no memory to add to", (unsigned)output);
      }
      break;
    default:
      return mirror_misuse(program->mirror, message, "output %u: request %d is unknown", (unsigned)output,
                           (int)request);
  }
  cleave_status_t status = mirror_place(program, view, "output", output, &is_staged, message);
  return status != CLEAVE_OK || (!is_staged && request == CLEAVE_REQUEST_WRITE)
             ? status
             : redirect(program, output, message);
}

/* For the cpu program: memory for an output whose shape it just found out. */
static cleave_status_t resize(void *session, uint32_t output, int32_t rank, const int64_t *dims) {
  mirror_program_t *program = session;
  const cleave_run_args_t *args = program->args;
  cleave_tensor_view_t *view = &program->outputs[output];
  mirror_output_t *extra = &program->extras[output];
  cleave_message_t message;
  bool is_staged = true;
  if (rank < 0 || rank > CLEAVE_MAX_RANK) {
    return CLEAVE_ERROR_LIMIT;
  }
  for (int32_t d = 0; d < rank; d++) {
    extra->dims[d] = dims[d];
  }
  view->rank = rank;
  view->dims = extra->dims;
  if (request_of(args, output) != CLEAVE_REQUEST_NONE) {
    if (args->resize_output == NULL) {
      return CLEAVE_ERROR_INVALID_ARGUMENT;
    }
    cleave_status_t status = args->resize_output(args->session, output, rank, dims);
    if (status == CLEAVE_OK) {
      cleave_tensor_view_t given = args->outputs[output];
      given.rank = rank;
      given.dims = extra->dims;
      view->data = given.data;
      status = mirror_place(program, &given, "output", output, &is_staged, &message);
    }
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  return is_staged ? redirect(program, output, &message) : CLEAVE_OK;
}

static cleave_status_t bind_workspace(mirror_program_t *program, const cleave_run_args_t *args,
                                      void **out_workspace, cleave_message_t *message) {
  size_t bytes = program->info.workspace_bytes;
  *out_workspace = args->workspace;
  if (bytes == 0 || (!program->is_single &&
                     mirror_pool_holds(&program->mirror->pools[program->device], args->workspace, bytes))) {
    return CLEAVE_OK;
  }
  if (!program->is_single && !atomic_load(&program->mirror->settings.stages)) {
    return mirror_misuse(program->mirror, message,
                         "the workspace: %zu bytes at %p are not inside of memory that device %u gave out",
                         bytes, args->workspace, (unsigned)program->device);
  }
  cleave_status_t status = mirror_buffer_reserve(program, &program->workspace, bytes, message);
  *out_workspace = program->workspace.memory;
  return status;
}

/* Takes what was computed into a buffer to where it belongs. */
static cleave_status_t deliver(mirror_program_t *program, const cleave_run_args_t *args, uint32_t output,
                               cleave_message_t *message) {
  cleave_request_t request = request_of(args, output);
  mirror_output_t *extra = &program->extras[output];
  if (!extra->is_redirected || request == CLEAVE_REQUEST_NONE) {
    return CLEAVE_OK;
  }
  cleave_tensor_view_t to = program->outputs[output];
  cleave_tensor_view_t *given = &args->outputs[output];
  bool is_host = given->size <= offsetof(cleave_tensor_view_t, memory) || given->memory == CLEAVE_MEMORY_HOST;
  size_t bytes = 0;
  (void)mirror_tensor_bytes(&to, &bytes);
  void *result = extra->buffer.memory;
  if (request == CLEAVE_REQUEST_ADD) {
    to.data = given->data;
    if (is_host) {
      cleave_status_t status = mirror_buffer_reserve(program, &extra->adder.target, bytes, message);
      if (status != CLEAVE_OK) {
        return status;
      }
      memcpy(extra->adder.target.memory, given->data, bytes);
      mirror_count(&program->mirror->counters.bytes_staged, bytes);
      to.data = result = extra->adder.target.memory;
    }
    cleave_status_t status = mirror_add(program, &extra->adder, &to, extra->buffer.memory, message);
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  if (is_host && bytes > 0) {
    memcpy((void *)(uintptr_t)given->data, result, bytes);
    mirror_count(&program->mirror->counters.bytes_staged, bytes);
  }
  return CLEAVE_OK;
}

cleave_status_t mirror_program_detour(mirror_program_t *program, const cleave_run_args_t *args,
                                      cleave_message_t *message) {
  cleave_status_t status = CLEAVE_OK;
  cleave_run_args_t inner = {.size = sizeof inner,
                             .inputs = program->inputs,
                             .outputs = program->outputs,
                             .resize_output = resize,
                             .session = program};
  for (uint32_t k = 0; k < program->input_count && status == CLEAVE_OK; k++) {
    status = bind_input(program, args, k, message);
  }
  for (uint32_t k = 0; k < program->output_count && status == CLEAVE_OK; k++) {
    status = bind_output(program, args, k, message);
  }
  if (status == CLEAVE_OK) {
    status = bind_workspace(program, args, &inner.workspace, message);
  }
  program->args = args;
  if (status == CLEAVE_OK) {
    status = program->mirror->cpu->run(program->program, &inner, message);
  }
  for (uint32_t k = 0; k < program->output_count && status == CLEAVE_OK; k++) {
    status = deliver(program, args, k, message);
  }
  program->args = NULL;
  return status;
}
