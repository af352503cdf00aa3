// SPDX-License-Identifier: Apache-2.0
// Rows of a share. A group of rows, or one long row, goes phase by phase through all steps. Rows of a medium
// size go one by one: the first row of a stretch in which every input moves on by the same step goes through
// the steps, from which calls with pointers are made; the other rows are nothing but these calls. What cannot
// be made into a call stays a step.
#include <string.h>

#include "kernels/execute/worker.h"

enum { MIN_CALLED = 4 }; /* rows for which calls are worth making */

typedef enum call_kind {
  CALL_CHAIN,
  CALL_UNARY,
  CALL_BINARY,
  CALL_REDUCE,
  CALL_REDUCE_ABOUT,
  CALL_STEP
} call_kind_t;

typedef struct call {
  call_kind_t kind;
  bool is_row_step;
  const kernel_step_t *step;
  union {
    kernel_unary_t unary;
    kernel_binary_t binary;
    const kernel_reduce_t *reduce;
    const kernel_reduce_about_t *about;
    kernel_link_t *links;
  } run;
  unsigned char *out;
  const unsigned char *x;
  const unsigned char *y;
  int64_t out_move; /* bytes from row to row */
  int64_t x_move;
  int64_t y_move;
  int64_t count;
} call_t;

typedef struct rows {
  kernel_worker_t *worker;
  int64_t *moves; /* per value: bytes that its cell moves from row to row */
  call_t *calls;
  uint32_t call_count;
  kernel_link_t *links;
  uint32_t link_count;
  bool has_steps; /* some calls are steps */
} rows_t;

static size_t round_up(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

static uint32_t max_links(const kernel_plan_t *plan) {
  return 3 * plan->step_count + 2 * plan->step_count + 2 * KERNEL_MAX_TENSORS;
}

size_t kernel_made_bytes(const kernel_plan_t *plan) {
  return round_up(plan->program.value_count * sizeof(int64_t)) + round_up(plan->step_count * sizeof(call_t)) +
         round_up(max_links(plan) * sizeof(kernel_link_t));
}

void kernel_worker_bound(const kernel_worker_t *worker, const kernel_phase_t *phase, bool is_end) {
  for (uint32_t s = phase->tile_begin; s < phase->end; s++) {
    const kernel_step_t *step = &worker->plan->steps[s];
    if (step->kind != KERNEL_STEP_REDUCE) {
      continue;
    }
    unsigned char *lanes = worker->lanes + (size_t)worker->plan->lanes[step->value] * KERNEL_LANES_BYTES;
    unsigned char *out = worker->rows + (size_t)worker->plan->rows[step->value] * KERNEL_SLOT_BYTES;
    if (is_end) {
      kernel_worker_reduction(worker, step->value)->finish(lanes, out, worker->space->row_length);
    } else {
      kernel_worker_reduction(worker, step->value)->begin(lanes);
    }
  }
}

/* A group of rows, phase by phase. */
static void run_group(kernel_worker_t *worker, int64_t item) {
  const kernel_space_t *space = worker->space;
  const bool is_long = space->group == 1 && !space->one_by_one;
  worker->row = item * space->group;
  worker->row_count = space->rows - worker->row < space->group ? space->rows - worker->row : space->group;
  for (uint32_t p = 0; p < worker->plan->phase_count; p++) {
    const kernel_phase_t *phase = &worker->plan->phases[p];
    for (uint32_t s = phase->row_begin; s < phase->tile_begin; s++) {
      kernel_worker_step(worker, &worker->plan->steps[s], true);
    }
    if (is_long) {
      kernel_worker_bound(worker, phase, false);
    }
    for (int64_t t = 0; t < space->grid.count && phase->tile_begin < phase->end; t++) {
      worker->inside = 0;
      worker->count = worker->row_count * space->row_length;
      if (is_long) {
        kernel_grid_tile(&space->grid, t, &worker->inside, &worker->count);
      }
      worker->begin = worker->row * space->row_length + worker->inside;
      kernel_worker_tile(worker, phase);
    }
    if (is_long) {
      kernel_worker_bound(worker, phase, true);
    }
  }
}

/* ---- rows one by one ---- */

/* How the cell of a loaded value moves; false: the tile is brought by the step each time. */
static bool load_moves(const rows_t *rows, const kernel_step_t *step) {
  const kernel_worker_t *worker = rows->worker;
  const kernel_space_t *space = worker->space;
  const kernel_value_t *value = &worker->plan->program.values[step->value];
  const kernel_cell_t *cell = &worker->cells[step->value];
  const unsigned char *slot = worker->slots + (size_t)step->slot * KERNEL_SLOT_BYTES;
  if (cell->data == slot || cell->data == worker->spare) {
    return false;
  }
  int32_t outer = space->rank - space->row_rank - 1;
  uint32_t input =
      value->parts == 0 ? value->input : kernel_worker_place(worker, value, worker->coordinates).input;
  rows->moves[step->value] =
      outer < 0 ? 0 : space->strides[input][outer] * (int64_t)cleave_dtype_size(value->dtype);
  return true;
}

/* How many rows there are from this one on, in a stretch of `stretch`, in which no load goes on to its next
 * part. */
static int64_t rows_left(const kernel_worker_t *worker, int64_t row, int64_t stretch, int32_t outer) {
  const kernel_space_t *space = worker->space;
  int64_t at = row % stretch;
  int64_t left = stretch - at;
  for (uint32_t k = 0; k < worker->plan->program.input_count && outer >= 0; k++) {
    bool ends = space->along[k] == outer && at >= space->begins[k] && at < space->ends[k];
    left = ends && space->ends[k] - at < left ? space->ends[k] - at : left;
  }
  return left;
}

static call_t *add_call(rows_t *rows, call_kind_t kind, const kernel_step_t *step, bool is_row_step) {
  call_t *call = &rows->calls[rows->call_count++];
  *call = (call_t){
      .kind = kind, .step = step, .is_row_step = is_row_step, .count = is_row_step ? 1 : rows->worker->count};
  rows->has_steps = rows->has_steps || kind == CALL_STEP;
  return call;
}

/* An operator as a call, or as the step that it is. */
static void add_apply(rows_t *rows, const kernel_step_t *step, bool is_row_step) {
  const kernel_worker_t *worker = rows->worker;
  const kernel_program_t *program = &worker->plan->program;
  const kernel_value_t *value = &program->values[step->value];
  uint32_t count = kernel_op_info(value->op)->operand_count;
  cleave_dtype_t dtype = program->values[value->operands[0]].dtype;
  const kernel_loops_t *loops = worker->plan->loops;
  kernel_cell_t operands[3];
  bool is_single = true;
  for (uint32_t k = 0; k < count; k++) {
    operands[k] = kernel_worker_read(worker, value->operands[k], is_row_step);
    is_single = is_single && operands[k].is_single;
  }
  size_t size = cleave_dtype_size(value->dtype);
  bool has_output =
      !is_row_step && step->output != CLEAVE_INDEX_NONE && worker->call->outputs[step->output] != NULL;
  bool streams = has_output && (size_t)worker->space->total * size > KERNEL_STREAM_BYTES;
  if (value->op == KERNEL_CAST || value->op == KERNEL_WHERE || streams || (is_single && !is_row_step)) {
    rows->moves[step->value] = has_output && !streams ? worker->count * (int64_t)size : 0;
    add_call(rows, CALL_STEP, step, is_row_step);
    return;
  }
  call_t *call = add_call(rows, count == 1 ? CALL_UNARY : CALL_BINARY, step, is_row_step);
  int which = is_row_step ? 0 : operands[0].is_single ? 1 : count > 1 && operands[1].is_single ? 2 : 0;
  if (count == 1) {
    call->run.unary = loops->unary[value->op][dtype];
  } else {
    call->run.binary = loops->binary[value->op][dtype][which];
    call->y = operands[1].data;
    call->y_move = rows->moves[value->operands[1]];
  }
  call->x = operands[0].data;
  call->x_move = rows->moves[value->operands[0]];
  call->out = kernel_worker_read(worker, step->value, is_row_step).data;
  call->out_move = has_output ? worker->count * (int64_t)size : 0;
  rows->moves[step->value] = call->out_move;
}

static void add_reduce(rows_t *rows, const kernel_step_t *step) {
  const kernel_worker_t *worker = rows->worker;
  kernel_cell_t cell = kernel_worker_read(worker, step->tile, false);
  if (cell.is_single) {
    add_call(rows, CALL_STEP, step, false);
    return;
  }
  call_t *call = add_call(rows, CALL_REDUCE, step, false);
  call->run.reduce = kernel_worker_reduction(worker, step->value);
  call->x = cell.data;
  call->x_move = rows->moves[step->tile];
  if (step->about != CLEAVE_INDEX_NONE) {
    call->kind = CALL_REDUCE_ABOUT;
    call->run.about = &worker->plan->loops->reduce_about[worker->plan->program.values[step->value].op];
    call->y = kernel_worker_read(worker, step->about, true).data;
    call->y_move = rows->moves[step->about];
  }
  call->out = worker->rows + (size_t)worker->plan->rows[step->value] * KERNEL_SLOT_BYTES;
}

/* The chain from this step on. */
static bool add_chain(rows_t *rows, const kernel_step_t *first) {
  call_t *call = add_call(rows, CALL_CHAIN, first, false);
  uint32_t count = 0;
  call->run.links = rows->links + rows->link_count;
  bool is_made = kernel_worker_make_chain(rows->worker, first, rows->moves, call->run.links, &count);
  rows->link_count += count;
  return is_made;
}

/* Costly operators leave the memory time to fetch the next row; without any all chains do. */
static void share_fetches(kernel_worker_t *worker) {
  const kernel_plan_t *plan = worker->plan;
  uint32_t chains = 0;
  uint32_t costly = 0;
  for (uint32_t p = 0; p < plan->phase_count; p++) { /* steps between phases are none of a run */
    for (uint32_t s = plan->phases[p].tile_begin; s < plan->phases[p].end;) {
      const kernel_step_t *step = &plan->steps[s];
      chains += step->chain > 0;
      costly += kernel_chain_is_costly(plan, step);
      s += step->chain > 0 ? step->chain : 1;
    }
  }
  worker->fetched = 0;
  worker->are_costly = costly > 0;
  worker->fetchers = costly > 0 ? costly : chains;
}

/* Makes calls of the row that has just been computed. False: its rows have to go through the steps. */
static bool make_calls(rows_t *rows) {
  kernel_worker_t *worker = rows->worker;
  const kernel_plan_t *plan = worker->plan;
  memset(rows->moves, 0, plan->program.value_count * sizeof *rows->moves);
  rows->call_count = 0;
  rows->link_count = 0;
  rows->has_steps = false;
  share_fetches(worker);
  for (uint32_t p = 0; p < plan->phase_count; p++) {
    const kernel_phase_t *phase = &plan->phases[p];
    for (uint32_t s = phase->row_begin; s < phase->end;) {
      const kernel_step_t *step = &plan->steps[s];
      bool is_row_step = s < phase->tile_begin;
      s += step->chain > 0 ? step->chain : 1;
      if (step->chain > 0) {
        if (!add_chain(rows, step)) {
          return false;
        }
        continue;
      }
      switch (step->kind) {
        case KERNEL_STEP_LOAD:
          if (!load_moves(rows, step)) {
            add_call(rows, CALL_STEP, step, is_row_step);
          }
          break;
        case KERNEL_STEP_EXPAND: break;
        case KERNEL_STEP_APPLY: add_apply(rows, step, is_row_step); break;
        case KERNEL_STEP_REDUCE: add_reduce(rows, step); break;
        case KERNEL_STEP_STORE: add_call(rows, CALL_STEP, step, is_row_step); break;
      }
    }
  }
  return true;
}

/* On to the next row. */
static void move_on(rows_t *rows) {
  kernel_worker_t *worker = rows->worker;
  worker->row++;
  worker->begin += worker->space->row_length;
  for (uint32_t k = 0; k < rows->link_count; k++) {
    rows->links[k].data += rows->links[k].row_step;
  }
  for (uint32_t k = 0; k < rows->call_count; k++) {
    call_t *call = &rows->calls[k];
    call->out += call->out_move;
    call->x += call->x_move;
    call->y += call->y_move;
  }
  if (rows->has_steps) {
    kernel_worker_locate(worker);
    for (uint32_t v = 0; v < worker->plan->program.value_count; v++) {
      if (rows->moves[v] != 0) {
        worker->cells[v].data += rows->moves[v];
      }
    }
  }
}

static void run_calls(const rows_t *rows) {
  kernel_worker_t *worker = rows->worker;
  const kernel_plan_t *plan = worker->plan;
  for (uint32_t k = 0; k < rows->call_count; k++) {
    const call_t *call = &rows->calls[k];
    const kernel_value_t *value = &plan->program.values[call->step->value];
    switch (call->kind) {
      case CALL_CHAIN: plan->loops->chain->run(call->run.links, call->count); break;
      case CALL_UNARY: call->run.unary(call->out, call->x, call->count, value->alpha, value->beta); break;
      case CALL_BINARY: call->run.binary(call->out, call->x, call->y, call->count); break;
      case CALL_REDUCE: call->run.reduce->row(call->x, call->out, call->count); break;
      case CALL_REDUCE_ABOUT:
        call->run.about->row((const float *)(const void *)call->x, *(const float *)(const void *)call->y,
                             (float *)(void *)call->out, call->count);
        break;
      case CALL_STEP: kernel_worker_step(worker, call->step, call->is_row_step); break;
    }
  }
}

static void run_one_by_one(kernel_worker_t *worker, int64_t begin, int64_t end) {
  const kernel_space_t *space = worker->space;
  rows_t rows = {.worker = worker};
  unsigned char *memory = worker->made;
  rows.moves = (int64_t *)(void *)memory;
  memory += round_up(worker->plan->program.value_count * sizeof(int64_t));
  rows.calls = (call_t *)(void *)memory;
  memory += round_up(worker->plan->step_count * sizeof(call_t));
  rows.links = (kernel_link_t *)(void *)memory;
  int32_t outer = space->rank - space->row_rank - 1;
  int64_t stretch = outer < 0 ? 1 : space->dims[outer];
  for (int64_t row = begin; row < end;) {
    int64_t left = rows_left(worker, row, stretch, outer);
    int64_t stop = left < end - row ? row + left : end;
    run_group(worker, row++);
    if (stop - row < MIN_CALLED || !make_calls(&rows)) {
      while (row < stop) {
        run_group(worker, row++);
      }
      continue;
    }
    for (; row < stop; row++) {
      move_on(&rows);
      run_calls(&rows);
    }
  }
}

void kernel_worker_rows(kernel_worker_t *worker, int64_t begin, int64_t end) {
  if (worker->space->one_by_one) {
    run_one_by_one(worker, begin, end);
    return;
  }
  for (int64_t item = begin; item < end; item++) {
    run_group(worker, item);
  }
}
