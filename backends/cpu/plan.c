// SPDX-License-Identifier: Apache-2.0
// Memory of a program of several nodes. Steps are walked in order; the blocks in use are kept sorted by
// offset, and a new one goes into the first gap that holds it. A block is free again after the last step that
// reads it.
#include "cpu/program.h"

enum { ALIGNMENT = 64 };

typedef struct block {
  size_t offset;
  size_t size;
  uint32_t value; /* CLEAVE_INDEX_NONE: scratch */
} block_t;

typedef struct planner {
  cpu_program_t *program;
  const cleave_region_view_t *region;
  block_t *blocks; /* in use, by offset */
  uint32_t block_count;
  uint32_t *last_step; /* per value, of the program's steps */
  size_t peak;
} planner_t;

static bool is_intermediate(const cpu_program_t *program, uint32_t value) {
  return value != CLEAVE_INDEX_NONE && program->value_outputs[value] == CLEAVE_INDEX_NONE;
}

static size_t value_bytes(const cpu_tensor_t *tensor) {
  return (size_t)tensor->count * cleave_dtype_size(tensor->dtype);
}

static cleave_status_t take(planner_t *planner, size_t bytes, uint32_t value, size_t *out_offset,
                            cleave_message_t *message) {
  if (bytes > SIZE_MAX / 4) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "the workspace would be too large");
  }
  size_t size = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t offset = 0;
  uint32_t at = 0;
  while (at < planner->block_count && planner->blocks[at].offset - offset < size) {
    offset = planner->blocks[at].offset + planner->blocks[at].size;
    at++;
  }
  if (offset > SIZE_MAX / 4) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "the workspace would be too large");
  }
  for (uint32_t k = planner->block_count; k > at; k--) {
    planner->blocks[k] = planner->blocks[k - 1];
  }
  planner->blocks[at] = (block_t){.offset = offset, .size = size, .value = value};
  planner->block_count++;
  planner->peak = offset + size > planner->peak ? offset + size : planner->peak;
  *out_offset = offset;
  return CLEAVE_OK;
}

/* Frees the blocks that no later step reads, scratch among them. */
static void release_after(planner_t *planner, uint32_t step) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < planner->block_count; k++) {
    uint32_t value = planner->blocks[k].value;
    if (value != CLEAVE_INDEX_NONE && planner->last_step[value] > step) {
      planner->blocks[kept++] = planner->blocks[k];
    }
  }
  planner->block_count = kept;
}

/* The block of an input that dies at this step and that output 0 may overwrite; NULL if there is none. */
static block_t *find_dying_input(planner_t *planner, uint32_t step_index, uint32_t value) {
  const cpu_step_t *step = &planner->program->steps[step_index];
  const uint32_t *inputs = step->input_values;
  uint32_t input_count = step->call.input_count;
  const cpu_tensor_t *to = &planner->program->tensors[value];
  for (uint32_t i = 0; i < input_count && i < 32; i++) {
    uint32_t input = inputs[i];
    if ((step->inplace >> i & 1u) == 0 || input == CLEAVE_INDEX_NONE ||
        planner->region->values[input].producer == CLEAVE_INDEX_NONE ||
        !is_intermediate(planner->program, input) || planner->last_step[input] != step_index ||
        value_bytes(&planner->program->tensors[input]) != value_bytes(to)) {
      continue;
    }
    bool only_here = true;
    for (uint32_t j = 0; j < input_count; j++) {
      only_here = only_here && (inputs[j] != input || (j < 32 && (step->inplace >> j & 1u) != 0));
    }
    for (uint32_t k = 0; only_here && k < planner->block_count; k++) {
      if (planner->blocks[k].value == input) {
        return &planner->blocks[k];
      }
    }
  }
  return NULL;
}

static cleave_status_t plan_step(planner_t *planner, uint32_t step_index, cleave_message_t *message) {
  cpu_program_t *program = planner->program;
  cpu_step_t *step = &program->steps[step_index];
  for (uint32_t o = 0; o < step->call.output_count; o++) {
    uint32_t value = step->output_values[o];
    if (!is_intermediate(program, value)) {
      continue;
    }
    cpu_placement_t *placement = &program->placements[program->placement_count++];
    placement->value = value;
    block_t *dying = o == 0 ? find_dying_input(planner, step_index, value) : NULL;
    if (dying != NULL) {
      dying->value = value;
      placement->offset = dying->offset;
      continue;
    }
    cleave_status_t status =
        take(planner, value_bytes(&program->tensors[value]), value, &placement->offset, message);
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  if (step->scratch_bytes > 0) {
    return take(planner, step->scratch_bytes, CLEAVE_INDEX_NONE, &step->scratch_offset, message);
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_program_plan(cpu_program_t *program, const cleave_region_view_t *region,
                                 cleave_message_t *message) {
  kernel_arena_t arena = {0};
  planner_t planner = {.program = program, .region = region};
  size_t most = (size_t)region->value_count + 1;
  planner.blocks = kernel_arena_allocate(&arena, most, sizeof *planner.blocks);
  planner.last_step = kernel_arena_allocate(&arena, most, sizeof *planner.last_step);
  program->placements = kernel_arena_allocate(&program->arena, most, sizeof *program->placements);
  cleave_status_t status = CLEAVE_OK;
  if (planner.blocks == NULL || planner.last_step == NULL || program->placements == NULL) {
    status = kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory to plan the workspace");
  }
  for (uint32_t s = 0; s < program->step_count && status == CLEAVE_OK; s++) {
    const cpu_step_t *step = &program->steps[s];
    for (uint32_t i = 0; i < step->call.input_count; i++) {
      if (step->input_values[i] != CLEAVE_INDEX_NONE) {
        planner.last_step[step->input_values[i]] = s;
      }
    }
  }
  for (uint32_t s = 0; s < program->step_count && status == CLEAVE_OK; s++) {
    status = plan_step(&planner, s, message);
    release_after(&planner, s);
  }
  program->info.workspace_bytes = planner.peak;
  kernel_arena_free(&arena);
  return status;
}
