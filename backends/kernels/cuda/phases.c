// SPDX-License-Identifier: Apache-2.0
// Phases are found as late as values are wanted, so that few of them wait in registers.
#include "phases.h"

#include <stdlib.h>
#include <string.h>

static void find_used(const kernel_program_t *program, const bool *wanted, cuda_phases_t *phases) {
  for (uint32_t k = 0; k < program->output_count; k++) {
    phases->used[program->outputs[k].value] |= wanted[k];
  }
  for (uint32_t v = program->value_count; v-- > 0;) {
    const kernel_value_t *value = &program->values[v];
    for (uint32_t k = 0; phases->used[v] && k < kernel_op_info(value->op)->operand_count; k++) {
      phases->used[value->operands[k]] = true;
    }
  }
}

void cuda_phases_mark(const kernel_program_t *program, const cuda_phases_t *phases, const bool *wanted,
                      uint32_t phase, bool reads_kept, bool *out_marks) {
  memset(out_marks, 0, program->value_count * sizeof *out_marks);
  for (uint32_t k = 0; k < program->output_count; k++) {
    uint32_t v = program->outputs[k].value;
    if (wanted[k] && !program->values[v].per_row && phases->ready[v] == phase) {
      out_marks[v] = true;
    }
  }
  for (uint32_t v = program->value_count; v-- > 0;) {
    const kernel_value_t *value = &program->values[v];
    bool is_reduction = cuda_is_reduction(value) && phases->used[v] && phases->ready[v] == phase + 1;
    bool is_computed = out_marks[v] && !(reads_kept && phases->first[v] < phase);
    for (uint32_t k = 0; (is_reduction || is_computed) && k < kernel_op_info(value->op)->operand_count; k++) {
      uint32_t operand = value->operands[k];
      out_marks[operand] =
          !program->values[operand].per_row && program->values[operand].op != KERNEL_CONSTANT;
    }
  }
}

void cuda_phases_find(const kernel_program_t *program, const bool *wanted, cuda_phases_t *out_phases) {
  cuda_phases_t *phases = out_phases;
  bool marks[KERNEL_MAX_VALUES];
  memset(phases, 0, sizeof *phases);
  find_used(program, wanted, phases);
  phases->count = 1;
  for (uint32_t v = 0; v < program->value_count; v++) {
    const kernel_value_t *value = &program->values[v];
    for (uint32_t k = 0; phases->used[v] && k < kernel_op_info(value->op)->operand_count; k++) {
      uint32_t ready = phases->ready[value->operands[k]] + (cuda_is_reduction(value) ? 1 : 0);
      phases->ready[v] = ready > phases->ready[v] ? ready : phases->ready[v];
    }
    phases->first[v] = UINT32_MAX;
    phases->count = phases->ready[v] + 1 > phases->count ? phases->ready[v] + 1 : phases->count;
  }
  for (uint32_t p = 0; p < phases->count; p++) {
    cuda_phases_mark(program, phases, wanted, p, true, marks);
    for (uint32_t v = 0; v < program->value_count; v++) {
      if (marks[v]) {
        phases->kept[v] = phases->kept[v] || phases->first[v] < p;
        phases->first[v] = phases->first[v] < p ? phases->first[v] : p;
      }
    }
  }
}

cleave_status_t kernel_cuda_create(const kernel_program_t *program, bool fast_math,
                                   kernel_cuda_t **out_kernel, cleave_message_t *message) {
  *out_kernel = NULL;
  kernel_cuda_t *kernel = calloc(1, sizeof *kernel);
  cuda_phases_t *phases = malloc(sizeof *phases);
  if (kernel == NULL || phases == NULL) {
    free(phases);
    free(kernel);
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for a kernel");
  }
  bool wanted[KERNEL_MAX_TENSORS];
  memset(wanted, 1, sizeof wanted);
  kernel->program = *program;
  kernel->fast_math = fast_math;
  cuda_phases_find(program, wanted, phases);
  for (uint32_t v = 0; v < program->value_count; v++) {
    const kernel_value_t *value = &program->values[v];
    if (phases->used[v] && value->op == KERNEL_LOAD) {
      for (uint32_t k = 0; k < (value->parts > 0 ? value->parts : 1); k++) {
        kernel->loads[value->input + k] = true;
      }
    }
    kernel->reduces = kernel->reduces || (phases->used[v] && cuda_is_reduction(value));
    kernel->kept_bytes += phases->kept[v] ? (cleave_dtype_size(value->dtype) == 8 ? 8 : 4) : 0;
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    kernel->per_row[k] = program->values[program->outputs[k].value].per_row;
  }
  free(phases);
  *out_kernel = kernel;
  return CLEAVE_OK;
}

void kernel_cuda_destroy(kernel_cuda_t *kernel) {
  free(kernel);
}
