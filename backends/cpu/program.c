// SPDX-License-Identifier: Apache-2.0
// Running a program: pointers of inputs, outputs and intermediates are filled in, then the steps run in
// order. If all shapes are known nothing is allocated or looked up.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/program.h"

/* Tensors without elements point to this, so that NULL always means "not there yet". */
static _Alignas(64) unsigned char nothing[64];

cleave_status_t cpu_program_bind(cpu_tensor_t *tensor, int32_t rank, const int64_t *dims, const void *data) {
  int64_t count = 1;
  for (int32_t d = 0; d < rank; d++) {
    tensor->dims[d] = dims[d];
    if (dims[d] < 0 || __builtin_mul_overflow(count, dims[d], &count)) {
      return CLEAVE_ERROR_SHAPE;
    }
  }
  tensor->rank = rank;
  tensor->count = count;
  tensor->data = count == 0 && data == NULL ? nothing : (void *)(uintptr_t)data;
  return tensor->data == NULL ? CLEAVE_ERROR_OUT_OF_MEMORY : CLEAVE_OK;
}

static bool fits(const cpu_program_t *program, uint32_t value, const cleave_tensor_view_t *view) {
  const cpu_tensor_t *tensor = &program->tensors[value];
  if (view->dtype != tensor->dtype || view->rank < 0 || view->rank > CLEAVE_MAX_RANK) {
    return false;
  }
  if (!program->known[value]) {
    return true;
  }
  return view->rank == tensor->rank &&
         (view->rank == 0 ||
          memcmp(view->dims, tensor->dims, (size_t)view->rank * sizeof view->dims[0]) == 0);
}

static cleave_status_t grow(void **memory, size_t *size, size_t wanted) {
  if (wanted <= *size) {
    return CLEAVE_OK;
  }
  if (wanted > SIZE_MAX / 2) {
    return CLEAVE_ERROR_LIMIT;
  }
  size_t whole = (wanted + 63) / 64 * 64;
  void *grown = aligned_alloc(64, whole);
  if (grown == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  free(*memory);
  *memory = grown;
  *size = whole;
  return CLEAVE_OK;
}

/* Data borrowed from a user may lie anywhere: what does not suit its elements is copied first. */
static cleave_status_t bind_input(cpu_program_t *program, uint32_t index, const cleave_tensor_view_t *view,
                                  cleave_message_t *message) {
  cpu_tensor_t *tensor = &program->tensors[program->inputs[index]];
  if (!fits(program, program->inputs[index], view)) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                       "input %u does not have the dtype and shape compiled for", (unsigned)index);
  }
  cleave_status_t status = cpu_program_bind(tensor, view->rank, view->dims, view->data);
  size_t element = cleave_dtype_size(tensor->dtype);
  if (status == CLEAVE_OK && element > 1 && (uintptr_t)tensor->data % element != 0) {
    size_t bytes = (size_t)tensor->count * element;
    status = grow(&program->input_copies[index], &program->input_copy_sizes[index], bytes);
    if (status == CLEAVE_OK && bytes > 0) {
      memcpy(program->input_copies[index], view->data, bytes);
      tensor->data = program->input_copies[index];
    }
  }
  return status == CLEAVE_OK ? CLEAVE_OK
                             : kernel_fail(message, status, "input %u has no usable data", (unsigned)index);
}

static cleave_status_t bind_output(cpu_program_t *program, uint32_t index, const cleave_tensor_view_t *view,
                                   cleave_message_t *message) {
  cpu_tensor_t *tensor = &program->tensors[program->outputs[index]];
  if (view->data == NULL && (view->rank < 0 || cleave_view_element_count(view) != 0)) {
    if (program->args->resize_output == NULL) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                         "output %u has no memory and cannot be resized", (unsigned)index);
    }
    tensor->data = NULL;
    return CLEAVE_OK;
  }
  size_t element = cleave_dtype_size(tensor->dtype);
  if (!fits(program, program->outputs[index], view) ||
      (element > 1 && (uintptr_t)view->data % element != 0) ||
      cpu_program_bind(tensor, view->rank, view->dims, view->data) != CLEAVE_OK) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                       "output %u does not have the dtype and shape compiled for", (unsigned)index);
  }
  return CLEAVE_OK;
}

static cleave_status_t bind(cpu_program_t *program, const cleave_run_args_t *args,
                            cleave_message_t *message) {
  for (uint32_t k = 0; k < program->input_count; k++) {
    CPU_TRY(bind_input(program, k, &args->inputs[k], message));
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    CPU_TRY(bind_output(program, k, &args->outputs[k], message));
  }
  if (program->info.workspace_bytes > 0 && args->workspace == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "the workspace is missing");
  }
  for (uint32_t k = 0; k < program->placement_count; k++) {
    cpu_tensor_t *tensor = &program->tensors[program->placements[k].value];
    tensor->data =
        tensor->count == 0 ? nothing : (unsigned char *)args->workspace + program->placements[k].offset;
  }
  return CLEAVE_OK;
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static cleave_status_t run_step(cpu_program_t *program, cpu_step_t *step, cleave_message_t *message) {
  cleave_message_t detail = {.text = ""};
  cleave_status_t status = CLEAVE_OK;
  step->call.scratch = nothing;
  if (step->is_static) {
    if (step->scratch_bytes > 0) {
      step->call.scratch = (unsigned char *)program->args->workspace + step->scratch_offset;
    }
  } else {
    status = grow(&program->scratch, &program->scratch_size, cpu_kernel_scratch(step->kernel, &step->call));
    step->call.scratch = program->scratch == NULL ? nothing : program->scratch;
  }
  if (status == CLEAVE_OK) {
    status = cpu_kernel_run(step->kernel, &step->call, &detail);
  }
  if (status == CLEAVE_OK) {
    return CLEAVE_OK;
  }
  const char *text = detail.text[0] != '\0' ? detail.text : "no memory left";
  return step->name[0] == '\0'
             ? kernel_fail(message, status, "%s: %.200s", step->kernel->op, text)
             : kernel_fail(message, status, "%s '%.64s': %.160s", step->kernel->op, step->name, text);
}

cleave_status_t cpu_program_run(cpu_program_t *program, const cleave_run_args_t *args,
                                cleave_message_t *message) {
  program->args = args;
  program->time_count = 0;
  cleave_status_t status = bind(program, args, message);
  for (uint32_t k = 0; k < program->step_count && status == CLEAVE_OK; k++) {
    uint64_t start = program->times == NULL ? 0 : now_ns();
    status = run_step(program, &program->steps[k], message);
    if (program->times != NULL) {
      program->times[k].start_ns = start;
      program->times[k].end_ns = now_ns();
      program->time_count = k + 1;
    }
  }
  program->args = NULL;
  return status;
}
