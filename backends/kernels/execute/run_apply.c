// SPDX-License-Identifier: Apache-2.0
// What steps by themselves and chains share: where elements of loads lie, operators on tiles and rows.
#include <string.h>

#include "kernels/convert.h"
#include "kernels/execute/worker.h"

void kernel_worker_fill(const kernel_worker_t *worker, void *out, const void *element, int64_t count,
                        size_t size) {
  worker->plan->loops->fill[size](out, element, count);
}

unsigned char *kernel_worker_kept_output(const kernel_worker_t *worker, uint32_t value) {
  uint32_t output = worker->plan->kept_outputs[value];
  return output == CLEAVE_INDEX_NONE ? NULL : worker->call->outputs[output];
}

kernel_cell_t kernel_worker_read(const kernel_worker_t *worker, uint32_t index, bool is_row_step) {
  const kernel_plan_t *plan = worker->plan;
  if (plan->kept[index] != KERNEL_NO_SLOT) {
    size_t size = cleave_dtype_size(plan->program.values[index].dtype);
    unsigned char *output = kernel_worker_kept_output(worker, index);
    return (kernel_cell_t){.data = output != NULL ? output + (size_t)worker->begin * size
                                                  : worker->kept + plan->kept[index] * worker->kept_bytes +
                                                        (size_t)worker->inside * size};
  }
  kernel_cell_t cell = worker->cells[index];
  if (plan->rows[index] == KERNEL_NO_SLOT || is_row_step) {
    return cell;
  }
  bool is_single = worker->space->group == 1 || cell.is_single;
  return is_single ? (kernel_cell_t){.data = cell.data, .is_single = true} : worker->expanded[index];
}

kernel_place_t kernel_worker_place(const kernel_worker_t *worker, const kernel_value_t *load,
                                   const int64_t *at) {
  const kernel_space_t *space = worker->space;
  const int32_t last = space->rank - 1;
  const int32_t along = space->along[load->input];
  kernel_place_t place = {.input = load->input, .count = worker->count};
  if (space->rank == 0) {
    return place;
  }
  place.count = space->dims[last] - at[last];
  if (along >= 0) {
    place.input = kernel_space_part(space, load, at[along]);
    place.count = along == last ? space->ends[place.input] - at[last] : place.count;
    place.offset = -space->begins[place.input] * space->strides[place.input][along];
  }
  for (int32_t d = 0; d < space->rank; d++) {
    place.offset += at[d] * space->strides[place.input][d];
  }
  place.stride = space->strides[place.input][last];
  return place;
}

unsigned char *kernel_worker_spread(const kernel_worker_t *worker, kernel_cell_t cell, int64_t count,
                                    size_t size) {
  if (!cell.is_single) {
    return cell.data;
  }
  kernel_worker_fill(worker, worker->spare, cell.data, count, size);
  return worker->spare;
}

static void cast(const kernel_worker_t *worker, const kernel_value_t *value, cleave_dtype_t from,
                 const kernel_cell_t *operand, unsigned char *out, int64_t count) {
  if (value->rounds == CLEAVE_DTYPE_UNKNOWN) {
    cpu_convert(from, operand->data, value->dtype, out, count);
    return;
  }
  cpu_convert(from, operand->data, value->rounds, worker->spare, count);
  cpu_convert(value->rounds, worker->spare, value->dtype, out, count);
}

static void compute(const kernel_worker_t *worker, uint32_t index, const kernel_cell_t *operands,
                    unsigned char *out, int64_t count) {
  const kernel_value_t *value = &worker->plan->program.values[index];
  const kernel_loops_t *loops = worker->plan->loops;
  const kernel_op_info_t *info = kernel_op_info(value->op);
  cleave_dtype_t dtype = worker->plan->program.values[value->operands[0]].dtype;
  bool is_single = count == 1;
  if (value->op == KERNEL_CAST) {
    cast(worker, value, dtype, &operands[0], out, count);
  } else if (value->op == KERNEL_WHERE) {
    size_t size = cleave_dtype_size(value->dtype);
    const unsigned char *condition =
        is_single ? operands[0].data : kernel_worker_spread(worker, operands[0], count, 1);
    int which = (operands[1].is_single ? 1 : 0) + (operands[2].is_single ? 2 : 0);
    loops->where[size][which](out, condition, operands[1].data, operands[2].data, count);
  } else if (info->operand_count == 1) {
    loops->unary[value->op][dtype](out, operands[0].data, count, value->alpha, value->beta);
  } else {
    int which = is_single ? 0 : operands[0].is_single ? 1 : operands[1].is_single ? 2 : 0;
    loops->binary[value->op][dtype][which](out, operands[0].data, operands[1].data, count);
  }
}

void kernel_worker_apply(kernel_worker_t *worker, const kernel_step_t *step, bool is_row_step) {
  const kernel_plan_t *plan = worker->plan;
  const kernel_value_t *value = &plan->program.values[step->value];
  size_t size = cleave_dtype_size(value->dtype);
  kernel_cell_t operands[3];
  bool is_single = true;
  for (uint32_t k = 0; k < kernel_op_info(value->op)->operand_count; k++) {
    operands[k] = kernel_worker_read(worker, value->operands[k], is_row_step);
    is_single = is_single && operands[k].is_single;
  }
  int64_t count = is_row_step ? worker->row_count : worker->count;
  unsigned char *out = NULL;
  unsigned char *streamed = NULL; /* where the tile goes from its slot */
  bool is_whole = false;          /* the result has to be a tile */
  if (is_row_step) {
    out = worker->rows + (size_t)plan->rows[step->value] * KERNEL_SLOT_BYTES;
  } else if (plan->kept[step->value] != KERNEL_NO_SLOT) {
    out = kernel_worker_read(worker, step->value, false).data;
    is_whole = true;
  } else if (step->output != CLEAVE_INDEX_NONE && worker->call->outputs[step->output] != NULL) {
    out = (unsigned char *)worker->call->outputs[step->output] + (size_t)worker->begin * size;
    is_whole = true;
    if ((size_t)worker->space->total * size > KERNEL_STREAM_BYTES) {
      streamed = out;
      out = worker->slots + (size_t)step->slot * KERNEL_SLOT_BYTES;
    }
  } else {
    out = worker->slots + (size_t)step->slot * KERNEL_SLOT_BYTES;
  }
  compute(worker, step->value, operands, out, is_single ? 1 : count);
  if (is_single && is_whole && count > 1) {
    uint64_t element = 0;
    memcpy(&element, out, size);
    kernel_worker_fill(worker, out, &element, count, size);
    is_single = false;
  }
  if (streamed != NULL) {
    plan->loops->stream(streamed, out, (size_t)count * size);
    worker->has_streamed = true;
  }
  worker->cells[step->value] = (kernel_cell_t){.data = out, .is_single = is_single};
}
