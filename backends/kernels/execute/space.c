// SPDX-License-Identifier: Apache-2.0
// From the shapes of a call to merged axes, strides and tiles. Nothing here depends on the number of threads.
#include "kernels/execute/space.h"

#include <inttypes.h>

enum { MIN_ROW = 512 }; /* elements of rows that go one by one: shorter ones share what a tile costs */

/* Sizes along the axes of loads of several inputs, which are never repeated there. Loads come after other
 * inputs, so that a size of theirs that is 1 is found not to fit. */
static cleave_status_t add_joined(const kernel_program_t *program, const kernel_tensor_t *inputs,
                                  int64_t *dims, cleave_message_t *message) {
  uint32_t seen = 0; /* axes whose size a load has said */
  for (uint32_t v = 0; v < program->value_count; v++) {
    const kernel_value_t *value = &program->values[v];
    int64_t size = 0;
    if (value->op != KERNEL_LOAD || value->parts == 0) {
      continue;
    }
    for (uint32_t k = value->input; k < value->input + value->parts; k++) {
      size += inputs[k].dims[program->inputs[k].axes[value->along]];
    }
    bool is_given = dims[value->along] != 1 || (seen >> value->along & 1u) != 0;
    if (is_given && size != dims[value->along]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                         "inputs from %u on have size %" PRId64 " together along axis %d, expected %" PRId64,
                         (unsigned)value->input, size, (int)value->along, dims[value->along]);
    }
    dims[value->along] = size;
    seen |= 1u << value->along;
  }
  return CLEAVE_OK;
}

cleave_status_t kernel_program_space(const kernel_program_t *program, const kernel_tensor_t *inputs,
                                     int64_t *out_dims, cleave_message_t *message) {
  for (int32_t d = 0; d < program->rank; d++) {
    out_dims[d] = 1;
  }
  for (uint32_t k = 0; k < program->input_count; k++) {
    const kernel_input_t *input = &program->inputs[k];
    if (inputs[k].rank != input->rank) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "input %u has rank %d, expected %d", (unsigned)k,
                         (int)inputs[k].rank, (int)input->rank);
    }
    for (int32_t d = 0; d < program->rank; d++) {
      int64_t size = input->axes[d] < 0 ? 1 : inputs[k].dims[input->axes[d]];
      if (d == input->along) {
        continue;
      }
      if (size != 1 && out_dims[d] != 1 && size != out_dims[d]) {
        return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                           "input %u has size %" PRId64 " along axis %d, expected %" PRId64 " or 1",
                           (unsigned)k, size, (int)d, out_dims[d]);
      }
      out_dims[d] = size != 1 ? size : out_dims[d];
    }
  }
  return add_joined(program, inputs, out_dims, message);
}

cleave_status_t kernel_space(const kernel_plan_t *plan, const kernel_tensor_t *inputs, int64_t *out_dims,
                             cleave_message_t *message) {
  return kernel_program_space(&plan->program, inputs, out_dims, message);
}

/* The stride of an input along an axis of the space. A part of a load has one along its axis even if it has
 * one element there: what lies inside of it may merge with that axis. */
static int64_t axis_stride(const kernel_input_t *input, const kernel_tensor_t *tensor, int32_t axis) {
  int32_t own = input->axes[axis];
  if (own < 0 || (tensor->dims[own] == 1 && axis != input->along)) {
    return 0;
  }
  if (tensor->strides != NULL) {
    return tensor->strides[own];
  }
  int64_t stride = 1;
  for (int32_t d = own + 1; d < tensor->rank; d++) {
    stride *= tensor->dims[d];
  }
  return stride;
}

static bool can_merge(const kernel_space_t *space, uint32_t input_count, const int64_t *strides,
                      int64_t size) {
  for (uint32_t k = 0; k < input_count; k++) {
    if (space->strides[k][space->rank - 1] != strides[k] * size) {
      return false;
    }
  }
  return true;
}

static bool is_joined(const kernel_program_t *program, int32_t axis) {
  for (uint32_t k = 0; k < program->input_count; k++) {
    if (program->inputs[k].along == axis) {
      return true;
    }
  }
  return false;
}

/* Finds where parts lie along an axis that becomes the last merged one. */
static void place_parts(const kernel_program_t *program, const kernel_tensor_t *inputs, int32_t axis,
                        kernel_space_t *space) {
  for (uint32_t v = 0; v < program->value_count; v++) {
    const kernel_value_t *value = &program->values[v];
    int64_t at = 0;
    for (uint32_t k = value->input;
         value->op == KERNEL_LOAD && value->along == axis && k < value->input + value->parts; k++) {
      space->along[k] = space->rank - 1;
      space->begins[k] = at;
      at += inputs[k].dims[program->inputs[k].axes[axis]];
      space->ends[k] = at;
    }
  }
}

/* An axis inside of them merges with theirs. */
static void widen_parts(const kernel_program_t *program, int64_t size, kernel_space_t *space) {
  for (uint32_t k = 0; k < program->input_count; k++) {
    bool is_wider = space->along[k] == space->rank - 1;
    space->begins[k] *= is_wider ? size : 1;
    space->ends[k] *= is_wider ? size : 1;
  }
}

static void merge_axes(const kernel_program_t *program, int32_t first_of_row, const int64_t *dims,
                       const kernel_tensor_t *inputs, kernel_space_t *space) {
  int32_t barrier = 0; /* merged axes before it are not of the row */
  for (int32_t d = 0; d < program->rank; d++) {
    int64_t strides[KERNEL_MAX_TENSORS];
    barrier = d == first_of_row ? space->rank : barrier;
    bool is_seam = is_joined(program, d); /* nothing merges across it, and sizes of 1 do not drop it */
    if (dims[d] == 1 && !is_seam) {
      continue;
    }
    for (uint32_t k = 0; k < program->input_count; k++) {
      strides[k] = axis_stride(&program->inputs[k], &inputs[k], d);
    }
    if (space->rank > barrier && !is_seam && can_merge(space, program->input_count, strides, dims[d])) {
      space->dims[space->rank - 1] *= dims[d];
      widen_parts(program, dims[d], space);
    } else {
      space->dims[space->rank++] = dims[d];
    }
    if (is_seam) {
      place_parts(program, inputs, d, space);
    }
    for (uint32_t k = 0; k < program->input_count; k++) {
      space->strides[k][space->rank - 1] = strides[k];
    }
  }
  space->row_rank = first_of_row < program->rank ? space->rank - barrier : 0;
}

static kernel_grid_t make_grid(int64_t elements, int64_t run, int64_t tile) {
  kernel_grid_t grid = {.run = run, .elements = elements};
  if (elements == 0) {
    return grid;
  }
  if (run >= tile / 4) {
    int64_t pieces = (run - 1) / tile + 1;
    grid.chunk = ((run - 1) / pieces + KERNEL_BLOCK) / KERNEL_BLOCK * KERNEL_BLOCK;
    grid.per_run = (run - 1) / grid.chunk + 1;
    grid.count = elements / run * grid.per_run;
  } else {
    grid.chunk = tile / run * run;
    grid.count = (elements - 1) / grid.chunk + 1;
  }
  return grid;
}

void kernel_space_merge(const kernel_program_t *program, int32_t reduced, const int64_t *dims,
                        const kernel_tensor_t *inputs, kernel_space_t *out_space) {
  kernel_space_t *space = out_space;
  space->rank = 0;
  for (uint32_t k = 0; k < program->input_count; k++) {
    space->along[k] = -1;
    space->begins[k] = space->ends[k] = 0;
  }
  merge_axes(program, program->rank - reduced, dims, inputs, space);
  space->rows = 1;
  space->row_length = 1;
  for (int32_t d = 0; d < program->rank; d++) {
    int64_t *part = d < program->rank - reduced ? &space->rows : &space->row_length;
    *part *= dims[d];
  }
  space->total = space->rows * space->row_length;
  for (uint32_t k = 0; k < program->input_count; k++) {
    space->flat[k] = space->along[k] < 0;
    int64_t expected = 1;
    for (int32_t d = space->rank - 1; d >= 0; d--) {
      space->flat[k] = space->flat[k] && space->strides[k][d] == expected;
      expected *= space->dims[d];
    }
  }
}

void kernel_space_make(const kernel_plan_t *plan, const int64_t *dims, const kernel_tensor_t *inputs,
                       kernel_space_t *out_space) {
  const kernel_program_t *program = &plan->program;
  kernel_space_t *space = out_space;
  kernel_space_merge(program, program->reduced, dims, inputs, space);
  int64_t run = space->rank > 0 ? space->dims[space->rank - 1] : 1;
  run = program->reduced > 0 && run > space->row_length ? space->row_length : run;
  space->group = 0;
  space->one_by_one = false;
  space->is_shared = false;
  if (program->reduced == 0) {
    space->grid = make_grid(space->total, run, plan->tile);
    space->items = space->grid.count;
    return;
  }
  int64_t length = space->row_length;
  space->group = length > 0 && length <= plan->tile / 2 ? plan->tile / length : 1;
  space->one_by_one =
      length >= MIN_ROW && length <= KERNEL_MAX_IN_BLOCK && length <= plan->tile && space->row_rank == 1;
  if (space->one_by_one) {
    space->group = 1;
    space->grid = (kernel_grid_t){.run = length, .chunk = length, .count = 1, .elements = length};
  } else if (space->group > 1) {
    space->grid = (kernel_grid_t){.run = run, .chunk = space->group * length, .count = 1};
  } else {
    space->grid = make_grid(length, length > 0 ? run : 1, plan->tile);
  }
  space->items = space->rows == 0 ? 0 : (space->rows - 1) / space->group + 1;
  space->is_shared = space->rows > 0 && space->rows <= KERNEL_SHARED_ROWS && length >= KERNEL_SHARED_ROW;
  if (space->is_shared) {
    space->items = space->grid.count < KERNEL_PARTS ? space->grid.count : KERNEL_PARTS;
  }
}
