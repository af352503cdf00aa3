// SPDX-License-Identifier: Apache-2.0
// Steps that are kernels: of texts/, and programs of kernels/. Addresses are put in when a program runs; what
// matters before is their alignment, which is that of slots.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/expression.h"
#include "kernels/execute/space.h"
#include "plan.h"

enum { MAX_THREADS = 1024 };

static cleave_status_t keep_arguments(cuda_plan_t *plan, cuda_step_t *step, const void *bytes,
                                      uint32_t count) {
  step->arguments = cuda_plan_allocate(plan, count, 1);
  if (step->arguments == NULL) {
    return cuda_plan_no_memory(plan);
  }
  memcpy(step->arguments, bytes, count);
  step->argument_bytes = count;
  return CLEAVE_OK;
}

/* ---- kernels of texts/ ---- */

static cleave_status_t write_text(cuda_plan_t *plan, const cuda_kernel_call_t *call, char **out_text) {
  const char *body = cuda_text_find(call->text);
  cuda_writer_t whole = {0};
  cuda_writer_t own = {0};
  if (body == NULL) {
    return cuda_fail(plan->message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_NONE, "there is no text '%s'",
                     call->text);
  }
  cuda_write(&own, "%s%s", call->defines, body);
  cuda_write_comment(&whole, call->label);
  cuda_write(&whole,
             "typedef signed char i8;\ntypedef short i16;\ntypedef int i32;\ntypedef long long i64;\n"
             "typedef unsigned char u8;\ntypedef unsigned short u16;\ntypedef unsigned int u32;\n"
             "typedef unsigned long long u64;\ntypedef %s index;\n",
             call->is_wide ? "i64" : "i32");
  cuda_write_functions(&whole, own.text == NULL ? "" : own.text);
  cuda_write(&whole, "%s", own.text == NULL ? "" : own.text);
  bool failed = own.failed || whole.failed;
  cuda_writer_deinit(&own);
  if (failed) {
    cuda_writer_deinit(&whole);
    return cuda_plan_no_memory(plan);
  }
  *out_text = whole.text;
  return CLEAVE_OK;
}

cleave_status_t cuda_plan_kernel(cuda_plan_t *plan, const cuda_kernel_call_t *call) {
  unsigned char arguments[8 * (CUDA_MAX_POINTERS + CUDA_MAX_NUMBERS)] = {0};
  uint32_t bytes = 8 * call->pointer_count;
  cuda_step_t *step = NULL;
  if (call->threads == 0) {
    return CLEAVE_OK;
  }
  int64_t blocks = (call->threads - 1) / call->block + 1;
  if (blocks > INT32_MAX) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SIZE, "%" PRId64 " blocks, expected at most %d", blocks,
                            INT32_MAX);
  }
  CUDA_TRY(cuda_plan_step(plan, CUDA_STEP_KERNEL, call->label, call->pointers, call->pointer_count, &step));
  for (uint32_t k = 0; k < call->number_count; k++) {
    int32_t number = (int32_t)call->numbers[k];
    uint32_t size = call->is_wide ? 8 : 4;
    memcpy(arguments + bytes, call->is_wide ? (const void *)&call->numbers[k] : (const void *)&number, size);
    bytes += size;
  }
  bytes = (bytes + 7) / 8 * 8;
  step->grid = (uint32_t)blocks;
  step->block = call->block;
  CUDA_TRY(keep_arguments(plan, step, arguments, bytes));
  return plan->options.is_dry ? CLEAVE_OK : write_text(plan, call, &step->text);
}

/* ---- programs of kernels/ ---- */

/* Slots begin at CUDA_ALIGNMENT, inputs and outputs of regions at 64 bytes: an address with the same
 * alignment. */
static void *like_address(cuda_pointer_t pointer) {
  return (void *)(uintptr_t)(CUDA_ALIGNMENT + (uint64_t)pointer.offset % CUDA_ALIGNMENT);
}

static cleave_status_t fill_step(cuda_plan_t *plan, const cuda_program_call_t *call,
                                 const kernel_cuda_t *kernel, const kernel_cuda_launch_t *launch,
                                 cuda_step_t *step) {
  step->grid = launch->grid;
  step->block = launch->block;
  step->fast_math = launch->variant.fast_math != 0;
  CUDA_TRY(keep_arguments(plan, step, launch->arguments, launch->argument_bytes));
  return plan->options.is_dry
             ? CLEAVE_OK
             : kernel_cuda_text(kernel, &launch->variant, call->label, &step->text, plan->message);
}

/* The pointers in the order in which the kernel takes them. */
static cleave_status_t add_program(cuda_plan_t *plan, const cuda_program_call_t *call,
                                   const kernel_cuda_t *kernel, const kernel_cuda_launch_t *launch) {
  cuda_argument_t arguments[CUDA_MAX_ARGUMENTS];
  cuda_pointer_t pointers[2 * KERNEL_MAX_TENSORS];
  cuda_step_t *step = NULL;
  uint32_t count = cuda_arguments_list(call->program, &launch->variant, arguments);
  uint32_t used = 0;
  while (used < count && arguments[used].kind <= CUDA_ARGUMENT_OUTPUT) {
    const cuda_argument_t *argument = &arguments[used];
    pointers[used++] = argument->kind == CUDA_ARGUMENT_INPUT ? call->input_pointers[argument->tensor]
                                                             : call->output_pointers[argument->tensor];
  }
  CUDA_TRY(cuda_plan_step(plan, CUDA_STEP_KERNEL, call->label, pointers, used, &step));
  return fill_step(plan, call, kernel, launch, step);
}

cleave_status_t cuda_plan_program(cuda_plan_t *plan, const cuda_program_call_t *call) {
  kernel_cuda_t *kernel = NULL;
  kernel_tensor_t inputs[KERNEL_MAX_TENSORS];
  void *outputs[KERNEL_MAX_TENSORS] = {NULL};
  int64_t dims[CLEAVE_MAX_RANK];
  for (uint32_t k = 0; k < call->program->input_count; k++) {
    inputs[k] = call->inputs[k];
    inputs[k].data = like_address(call->input_pointers[k]);
  }
  for (uint32_t k = 0; k < call->program->output_count; k++) {
    outputs[k] = like_address(call->output_pointers[k]);
  }
  CUDA_TRY(kernel_program_space(call->program, inputs, dims, plan->message));
  CUDA_TRY(kernel_cuda_create(call->program, plan->options.fast_math, &kernel, plan->message));
  kernel_cuda_launch_t *launch = malloc(sizeof *launch);
  cleave_status_t status = CLEAVE_OK;
  if (launch == NULL) {
    status = cuda_plan_no_memory(plan);
  } else {
    const kernel_cuda_call_t prepared = {.inputs = inputs, .outputs = outputs, .dims = dims};
    status = kernel_cuda_prepare(kernel, &prepared, launch, plan->message);
  }
  if (status == CLEAVE_OK && launch->grid > 0) {
    status = add_program(plan, call, kernel, launch);
  }
  free(launch);
  kernel_cuda_destroy(kernel);
  return status;
}
