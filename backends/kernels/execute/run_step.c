// SPDX-License-Identifier: Apache-2.0
// Single steps of a run, and all steps of a tile.
#include <string.h>

#include "kernels/convert.h"
#include "kernels/execute/worker.h"

/* Copies `count` elements that are `stride` apart. */
static void gather(void *out, const unsigned char *from, int64_t stride, int64_t count, size_t size) {
#define GATHER(T)                                    \
  {                                                  \
    T *to = out;                                     \
    const T *source = (const T *)(const void *)from; \
    for (int64_t k = 0; k < count; k++) {            \
      to[k] = source[k * stride];                    \
    }                                                \
    break;                                           \
  }
  switch (size) {
    case 1: GATHER(uint8_t)
    case 2: GATHER(uint16_t)
    case 4: GATHER(uint32_t)
    default: GATHER(uint64_t)
  }
#undef GATHER
}

/* A part of one run of an input, in the dtype of the input. */
static void load_run(const kernel_worker_t *worker, unsigned char *out, const unsigned char *from,
                     int64_t stride, int64_t count, size_t size) {
  if (stride == 1) {
    memcpy(out, from, (size_t)count * size);
  } else if (stride == 0) {
    kernel_worker_fill(worker, out, from, count, size);
  } else {
    gather(out, from, stride, count, size);
  }
}

/* The tile of an input, or of several, run by run. */
static void load_runs(const kernel_worker_t *worker, const kernel_value_t *value, unsigned char *out,
                      size_t size) {
  const kernel_space_t *space = worker->space;
  int64_t at[CLEAVE_MAX_RANK];
  int32_t last = space->rank - 1;
  memcpy(at, worker->coordinates, sizeof at);
  kernel_place_t place = kernel_worker_place(worker, value, at);
  const int64_t *strides = space->strides[place.input];
  for (int64_t done = 0; done < worker->count;) {
    const unsigned char *data = worker->call->inputs[place.input].data;
    int64_t count = worker->count - done < place.count ? worker->count - done : place.count;
    load_run(worker, out + (size_t)done * size, data + place.offset * (int64_t)size, place.stride, count,
             size);
    done += count;
    at[last] += count;
    place.offset += count * place.stride;
    for (int32_t d = last; d > 0 && at[d] == space->dims[d]; d--) {
      place.offset += strides[d - 1] - at[d] * strides[d];
      at[d] = 0;
      at[d - 1]++;
    }
    place.count = space->dims[last] - at[last];
    if (value->parts > 0 && done < worker->count) {
      place = kernel_worker_place(worker, value, at);
      strides = space->strides[place.input];
    }
  }
}

/* One row for all rows of a group, if chains alone read it. */
static bool load_row(kernel_worker_t *worker, const kernel_step_t *step) {
  const kernel_space_t *space = worker->space;
  const kernel_value_t *value = &worker->plan->program.values[step->value];
  const int64_t *strides = space->strides[value->input];
  bool is_row = !step->is_read && value->parts == 0 && space->group > 1 && space->row_rank == 1 &&
                strides[space->rank - 1] == 1 &&
                worker->plan->program.inputs[value->input].dtype == value->dtype;
  for (int32_t d = 0; d + 1 < space->rank && is_row; d++) {
    is_row = strides[d] == 0;
  }
  if (!is_row) {
    return false;
  }
  worker->cells[step->value] = (kernel_cell_t){
      .data = (unsigned char *)(uintptr_t)worker->call->inputs[value->input].data, .is_row = true};
  return true;
}

/* An input that is one run, repeated: tiles of several runs have the same elements of it. They are brought
 * once. */
static bool load_repeated(kernel_worker_t *worker, const kernel_step_t *step) {
  const kernel_space_t *space = worker->space;
  const kernel_value_t *value = &worker->plan->program.values[step->value];
  cleave_dtype_t dtype = worker->plan->program.inputs[value->input].dtype;
  const int64_t *strides = space->strides[value->input];
  bool repeats = value->parts == 0 && space->group == 0 && space->grid.per_run == 0 && space->rank > 1 &&
                 strides[space->rank - 1] != 0;
  for (int32_t d = 0; d + 1 < space->rank && repeats; d++) {
    repeats = strides[d] == 0;
  }
  if (!repeats) {
    return false;
  }
  unsigned char *to = worker->repeats + (size_t)value->input * KERNEL_SLOT_BYTES;
  uint64_t bit = UINT64_C(1) << value->input;
  if ((worker->repeated & bit) == 0) {
    unsigned char *raw = dtype == value->dtype ? to : worker->spare;
    load_runs(worker, value, raw, cleave_dtype_size(dtype));
    if (raw != to) {
      cpu_convert(dtype, raw, value->dtype, to, worker->count);
    }
    worker->repeated |= bit;
  }
  worker->cells[step->value] = (kernel_cell_t){.data = to};
  return true;
}

/* Leaves the tile where it lies if it can: dense, or one element. */
static void load(kernel_worker_t *worker, const kernel_step_t *step) {
  const kernel_space_t *space = worker->space;
  const kernel_value_t *value = &worker->plan->program.values[step->value];
  cleave_dtype_t dtype = worker->plan->program.inputs[value->input].dtype;
  size_t size = cleave_dtype_size(dtype);
  unsigned char *slot = worker->slots + (size_t)step->slot * KERNEL_SLOT_BYTES;
  kernel_place_t place = {
      .input = value->input, .offset = worker->begin, .stride = 1, .count = worker->count};
  if (!space->flat[value->input]) {
    place = kernel_worker_place(worker, value, worker->coordinates);
  }
  unsigned char *data = (unsigned char *)(uintptr_t)worker->call->inputs[place.input].data;
  bool is_run = worker->count <= place.count;
  kernel_cell_t cell = {.data = data + place.offset * (int64_t)size,
                        .is_single = is_run && place.stride == 0};
  if (!is_run || place.stride > 1 || place.stride < 0) {
    unsigned char *to = dtype == value->dtype ? slot : worker->spare;
    if (is_run) {
      gather(to, cell.data, place.stride, worker->count, size);
    } else {
      load_runs(worker, value, to, size);
    }
    cell.data = to;
  }
  if (dtype != value->dtype) {
    cpu_convert(dtype, cell.data, value->dtype, slot, cell.is_single ? 1 : worker->count);
    cell.data = slot;
  }
  worker->cells[step->value] = cell;
}

static void expand(kernel_worker_t *worker, const kernel_step_t *step) {
  size_t size = cleave_dtype_size(worker->plan->program.values[step->value].dtype);
  const kernel_cell_t rows = worker->cells[step->value];
  if (worker->space->group == 1 || rows.is_single) {
    return;
  }
  unsigned char *slot = worker->slots + (size_t)step->slot * KERNEL_SLOT_BYTES;
  size_t length = (size_t)worker->space->row_length;
  for (int64_t k = 0; k < worker->row_count; k++) {
    kernel_worker_fill(worker, slot + (size_t)k * length * size, rows.data + (size_t)k * size,
                       (int64_t)length, size);
  }
  worker->expanded[step->value] = (kernel_cell_t){.data = slot};
}

const kernel_reduce_t *kernel_worker_reduction(const kernel_worker_t *worker, uint32_t value) {
  const kernel_value_t *self = &worker->plan->program.values[value];
  return &worker->plan->loops->reduce[self->op][worker->plan->program.values[self->operands[0]].dtype];
}

static void reduce(kernel_worker_t *worker, const kernel_step_t *step) {
  const kernel_value_t *value = &worker->plan->program.values[step->value];
  const kernel_reduce_t *self = kernel_worker_reduction(worker, step->value);
  size_t size = cleave_dtype_size(worker->plan->program.values[step->tile].dtype);
  size_t out_size = cleave_dtype_size(value->dtype);
  unsigned char *lanes = worker->lanes + (size_t)worker->plan->lanes[step->value] * KERNEL_LANES_BYTES;
  const unsigned char *data =
      kernel_worker_spread(worker, kernel_worker_read(worker, step->tile, false), worker->count, size);
  unsigned char *out = worker->rows + (size_t)worker->plan->rows[step->value] * KERNEL_SLOT_BYTES;
  int64_t length = worker->space->row_length;
  bool is_long = worker->space->group == 1 && !worker->space->one_by_one;
  if (step->about != CLEAVE_INDEX_NONE) {
    const kernel_reduce_about_t *loops = &worker->plan->loops->reduce_about[value->op];
    const kernel_cell_t about = kernel_worker_read(worker, step->about, true);
    const float *abouts = (const float *)(const void *)about.data;
    const float *x = (const float *)(const void *)data;
    if (is_long) {
      loops->step(lanes, x, *abouts, worker->count);
      return;
    }
    for (int64_t k = 0; k < worker->row_count; k++) {
      loops->row(x + k * length, abouts[about.is_single ? 0 : k], (float *)(void *)out + k, length);
    }
    return;
  }
  if (is_long) {
    self->step(lanes, data, worker->count);
    return;
  }
  for (int64_t k = 0; k < worker->row_count; k++) {
    self->row(data + (size_t)(k * length) * size, out + (size_t)k * out_size, length);
  }
}

static void store_added(const kernel_worker_t *worker, const kernel_output_t *output, unsigned char *to,
                        kernel_cell_t cell, int64_t count) {
  cleave_dtype_t dtype = worker->plan->program.values[output->value].dtype;
  kernel_binary_t add = worker->plan->loops->binary[KERNEL_Add][dtype][cell.is_single && count > 1 ? 2 : 0];
  if (output->dtype == dtype) {
    add(to, to, cell.data, count);
    return;
  }
  cpu_convert(output->dtype, to, dtype, worker->spare, count);
  add(worker->spare, worker->spare, cell.data, count);
  cpu_convert(dtype, worker->spare, output->dtype, to, count);
}

static void store(const kernel_worker_t *worker, const kernel_step_t *step, bool is_row_step) {
  const kernel_output_t *output = &worker->plan->program.outputs[step->output];
  cleave_dtype_t dtype = worker->plan->program.values[output->value].dtype;
  size_t size = cleave_dtype_size(output->dtype);
  if (worker->call->outputs[step->output] == NULL) {
    return;
  }
  int64_t first = is_row_step ? worker->row : worker->begin;
  int64_t count = is_row_step ? worker->row_count : worker->count;
  unsigned char *to = (unsigned char *)worker->call->outputs[step->output] + (size_t)first * size;
  kernel_cell_t cell = kernel_worker_read(worker, step->value, is_row_step);
  if (output->adds) {
    store_added(worker, output, to, cell, count);
  } else if (cell.is_single && count > 1) {
    uint64_t element = 0;
    cpu_convert(dtype, cell.data, output->dtype, &element, 1);
    kernel_worker_fill(worker, to, &element, count, size);
  } else {
    cpu_convert(dtype, cell.data, output->dtype, to, count);
  }
}

void kernel_worker_step(kernel_worker_t *worker, const kernel_step_t *step, bool is_row_step) {
  switch (step->kind) {
    case KERNEL_STEP_LOAD:
      if (!load_row(worker, step) && !load_repeated(worker, step)) {
        load(worker, step);
      }
      break;
    case KERNEL_STEP_EXPAND: expand(worker, step); break;
    case KERNEL_STEP_APPLY: kernel_worker_apply(worker, step, is_row_step); break;
    case KERNEL_STEP_REDUCE: reduce(worker, step); break;
    case KERNEL_STEP_STORE: store(worker, step, is_row_step); break;
  }
}

void kernel_worker_locate(kernel_worker_t *worker) {
  int64_t rest = worker->begin;
  for (int32_t d = worker->space->rank - 1; d >= 0; d--) {
    worker->coordinates[d] = d == 0 ? rest : rest % worker->space->dims[d];
    rest /= worker->space->dims[d];
  }
}

void kernel_worker_tile(kernel_worker_t *worker, const kernel_phase_t *phase) {
  worker->fetchers = 1;
  worker->are_costly = false;
  worker->fetched = 0;
  kernel_worker_locate(worker);
  for (uint32_t s = phase->tile_begin; s < phase->end;) {
    const kernel_step_t *step = &worker->plan->steps[s];
    if (step->chain > 0) {
      kernel_worker_chain(worker, step);
      s += step->chain;
    } else {
      kernel_worker_step(worker, step, false);
      s++;
    }
  }
}
