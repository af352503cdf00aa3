// SPDX-License-Identifier: Apache-2.0
// Programs of kernels/: nodes as one program, and programs that families build from parts.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

enum { MAX_LABEL = 200 };

/* "Add Relu": the kernel is the same wherever these are. */
static void write_label(const cleave_region_view_t *region, const uint32_t *nodes, uint32_t count,
                        char *out_label) {
  size_t at = 0;
  out_label[0] = '\0';
  for (uint32_t k = 0; k < count && at < MAX_LABEL; k++) {
    int length =
        snprintf(out_label + at, MAX_LABEL - at, "%s%s", k == 0 ? "" : " ", region->nodes[nodes[k]].op);
    at += length > 0 ? (size_t)length : 0;
  }
}

static uint32_t slot_of(const uint32_t *slots, uint32_t value) {
  return slots == NULL ? value : slots[value];
}

cleave_status_t cuda_lower(cuda_plan_t *plan, const cleave_region_view_t *region, const uint32_t *nodes,
                           uint32_t count, kernel_lowered_t *out_lowered) {
  kernel_arena_t arena = {0};
  bool is_own = region == plan->region;
  kernel_lowerer_t *lowerer = is_own ? plan->lowerer : NULL;
  cleave_status_t status = CLEAVE_OK;
  if (lowerer == NULL) {
    status = kernel_lowerer_create(region, is_own ? &plan->arena : &arena, &lowerer, plan->message);
    plan->lowerer = is_own && status == CLEAVE_OK ? lowerer : plan->lowerer;
  }
  if (status == CLEAVE_OK) {
    status = kernel_lower(lowerer, count, nodes, out_lowered, plan->message);
  }
  kernel_arena_free(&arena);
  return status;
}

cleave_status_t cuda_emit_lowered(cuda_plan_t *plan, const cleave_region_view_t *region,
                                  const uint32_t *nodes, uint32_t count, const uint32_t *slots) {
  char label[MAX_LABEL];
  kernel_lowered_t lowered = {0};
  CUDA_TRY(cuda_lower(plan, region, nodes, count, &lowered));
  cuda_program_call_t *call = calloc(1, sizeof *call);
  cleave_status_t status = call == NULL ? cuda_plan_no_memory(plan) : CLEAVE_OK;
  if (call != NULL) {
    write_label(region, nodes, count, label);
    call->program = lowered.program;
    call->label = label;
    for (uint32_t k = 0; k < lowered.program->input_count; k++) {
      const kernel_view_t *view = &lowered.views[k];
      size_t size = cleave_dtype_size(region->values[lowered.inputs[k]].tensor.dtype);
      call->inputs[k] = (kernel_tensor_t){.rank = view->rank, .dims = view->dims, .strides = view->strides};
      call->input_pointers[k] =
          (cuda_pointer_t){slot_of(slots, lowered.inputs[k]), view->offset * (int64_t)size};
    }
    for (uint32_t k = 0; k < lowered.program->output_count; k++) {
      call->output_pointers[k] = (cuda_pointer_t){slot_of(slots, lowered.outputs[k]), 0};
    }
    status = cuda_emit_program(plan, call);
  }
  free(call);
  kernel_program_destroy(lowered.program);
  return status;
}

/* ---- from parts ---- */

cleave_status_t cuda_builder_init(cuda_builder_t *builder, cuda_plan_t *plan, const char *label, int32_t rank,
                                  int32_t reduced) {
  *builder = (cuda_builder_t){.plan = plan, .call = calloc(1, sizeof *builder->call)};
  if (builder->call == NULL) {
    return cuda_plan_no_memory(plan);
  }
  cleave_status_t status = kernel_program_create(rank, reduced, &builder->program, plan->message);
  builder->call->program = builder->program;
  builder->call->label = label;
  return status;
}

void cuda_builder_deinit(cuda_builder_t *builder) {
  if (builder->program != NULL) {
    kernel_program_destroy(builder->program);
  }
  free(builder->call);
}

// Wide: an array with its axes, and the value that it becomes.
cleave_status_t cuda_builder_load(cuda_builder_t *builder, cleave_dtype_t dtype, cuda_pointer_t from,
                                  const int8_t *axes, int32_t rank, const int64_t *dims,
                                  uint32_t *out_value) {
  uint32_t input = 0;
  CUDA_TRY(kernel_program_input(builder->program, dtype, axes, &input, builder->plan->message));
  builder->call->inputs[input] = (kernel_tensor_t){.rank = rank, .dims = dims};
  builder->call->input_pointers[input] = from;
  return kernel_program_load(builder->program, input, out_value, builder->plan->message);
}

cleave_status_t cuda_builder_apply(cuda_builder_t *builder, kernel_op_t op, uint32_t x, uint32_t y,
                                   uint32_t *out_value) {
  const uint32_t operands[3] = {x, y, 0};
  return kernel_program_apply(builder->program, op, operands, 0, 0, out_value, builder->plan->message);
}

cleave_status_t cuda_builder_number(cuda_builder_t *builder, cleave_dtype_t dtype, double number,
                                    uint32_t *out_value) {
  float single = (float)number;
  return kernel_program_constant(builder->program, dtype,
                                 dtype == CLEAVE_DTYPE_F64 ? (const void *)&number : (const void *)&single,
                                 out_value, builder->plan->message);
}

cleave_status_t cuda_builder_store(cuda_builder_t *builder, cleave_dtype_t dtype, uint32_t value,
                                   cuda_pointer_t to) {
  uint32_t output = builder->program->output_count;
  CUDA_TRY(kernel_program_output(builder->program, dtype, value, false, builder->plan->message));
  builder->call->output_pointers[output] = to;
  return CLEAVE_OK;
}
