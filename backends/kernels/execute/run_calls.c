// SPDX-License-Identifier: Apache-2.0
// Rows of a medium size, one by one: the first row of a stretch in which every input moves on by the same
// step goes through the steps, from which calls with pointers are made; the other rows are nothing but these
// calls. What cannot be made into a call stays a step. Calls go through a batch of rows phase by phase: what
// depends on the result of a reduction need not wait for it, and steps per row are one call for the batch.
#include <string.h>

#include "kernels/execute/worker.h"

enum {
  MIN_CALLED = 4, /* rows for which calls are worth making */
  BATCH = 4,      /* rows that go through a phase one after the other */
};

typedef enum call_kind {
  CALL_CHAIN,
  CALL_UNARY,
  CALL_BINARY,
  CALL_REDUCE,
  CALL_REDUCE_ABOUT,
  CALL_STEP
} call_kind_t;

/* A place of each row: `move` bytes from row to row, or, in memory of the worker, from row to row of a
 * batch. */
typedef struct pointer {
  unsigned char *first;
  int64_t move;
  int64_t batch_move;
} pointer_t;

/* All that it takes: what lies elsewhere would come from the second cache for each row. */
typedef struct call {
  call_kind_t kind;
  uint32_t phase;
  bool is_row_step;
  const kernel_step_t *step;
  union {
    kernel_unary_t unary;
    kernel_binary_t binary;
    void (*reduce)(const void *x, void *out, int64_t count);
    void (*reduce_about)(const float *x, float about, float *out, int64_t count);
    kernel_chain_run_t chain;
  } run;
  double alpha;
  double beta;
  kernel_link_t *links;
  uint32_t moving_begin; /* links that move */
  uint32_t moving_end;
  pointer_t out;
  pointer_t x;
  pointer_t y;
  int64_t count;
} call_t;

typedef struct moving_link {
  kernel_link_t *link;
  pointer_t data;
} moving_link_t;

typedef struct rows {
  kernel_worker_t *worker;
  int64_t *moves; /* per value: bytes that its cell moves from row to row */
  call_t *calls;
  uint32_t call_count;
  kernel_link_t *links;
  uint32_t link_count;
  moving_link_t *moving;
  uint32_t moving_count;
  int64_t row; /* since the calls were made */
  uint32_t phase;
  bool has_steps; /* some calls are steps, which know one row */
} rows_t;

static size_t round_up(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

static uint32_t max_links(const kernel_plan_t *plan) {
  return 3 * plan->step_count + 2 * plan->step_count + 2 * KERNEL_MAX_TENSORS;
}

size_t kernel_made_bytes(const kernel_plan_t *plan) {
  return round_up(plan->program.value_count * sizeof(int64_t)) + round_up(plan->step_count * sizeof(call_t)) +
         round_up(max_links(plan) * sizeof(kernel_link_t)) +
         round_up(max_links(plan) * sizeof(moving_link_t));
}

/* ---- making calls ---- */

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

/* Pointers into memory of the worker go back with each batch. */
static pointer_t make_pointer(const rows_t *rows, unsigned char *first, int64_t move) {
  const kernel_worker_t *worker = rows->worker;
  uintptr_t address = (uintptr_t)first;
  uintptr_t begin = (uintptr_t)worker->rows;
  uintptr_t end = (uintptr_t)worker->kept + worker->plan->kept_count * worker->kept_bytes;
  bool is_own = address >= begin && address < end;
  return (pointer_t){.first = first, .move = is_own ? 0 : move, .batch_move = is_own ? move : 0};
}

static call_t *add_call(rows_t *rows, call_kind_t kind, const kernel_step_t *step, bool is_row_step) {
  call_t *call = &rows->calls[rows->call_count++];
  *call = (call_t){.kind = kind,
                   .phase = rows->phase,
                   .step = step,
                   .is_row_step = is_row_step,
                   .count = is_row_step ? 1 : rows->worker->count};
  rows->has_steps = rows->has_steps || kind == CALL_STEP;
  return call;
}

/* Bytes to the next row of a batch for a value with `count` elements per row that lies in memory of the
 * worker. */
static int64_t next_in_batch(const rows_t *rows, uint32_t value, int64_t count) {
  const kernel_worker_t *worker = rows->worker;
  int64_t size = (int64_t)cleave_dtype_size(worker->plan->program.values[value].dtype);
  return worker->batch > 1 ? count * size : 0;
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
  int which = operands[0].is_single ? 1 : count > 1 && operands[1].is_single ? 2 : 0;
  if (count == 1) {
    call->run.unary = loops->unary[value->op][dtype];
    call->alpha = value->alpha;
    call->beta = value->beta;
  } else {
    call->run.binary = loops->binary[value->op][dtype][which];
  }
  bool is_kept = worker->plan->kept[step->value] != KERNEL_NO_SLOT;
  int64_t move = is_row_step  ? next_in_batch(rows, step->value, 1)
                 : has_output ? worker->count * (int64_t)size
                 : is_kept    ? next_in_batch(rows, step->value, worker->count)
                              : 0;
  rows->moves[step->value] = move;
  call->out = make_pointer(rows, kernel_worker_read(worker, step->value, is_row_step).data, move);
  call->x = make_pointer(rows, operands[0].data, rows->moves[value->operands[0]]);
  call->y = count > 1 ? make_pointer(rows, operands[1].data, rows->moves[value->operands[1]]) : call->x;
}

static void add_reduce(rows_t *rows, const kernel_step_t *step) {
  const kernel_worker_t *worker = rows->worker;
  kernel_cell_t cell = kernel_worker_read(worker, step->tile, false);
  if (cell.is_single) {
    add_call(rows, CALL_STEP, step, false);
    return;
  }
  call_t *call = add_call(rows, CALL_REDUCE, step, false);
  call->run.reduce = kernel_worker_reduction(worker, step->value)->row;
  call->x = call->y = make_pointer(rows, cell.data, rows->moves[step->tile]);
  if (step->about != CLEAVE_INDEX_NONE) {
    call->kind = CALL_REDUCE_ABOUT;
    call->run.reduce_about =
        worker->plan->loops->reduce_about[worker->plan->program.values[step->value].op].row;
    call->y =
        make_pointer(rows, kernel_worker_read(worker, step->about, true).data, rows->moves[step->about]);
  }
  rows->moves[step->value] = next_in_batch(rows, step->value, 1);
  unsigned char *out = worker->rows + (size_t)worker->plan->rows[step->value] * KERNEL_SLOT_BYTES;
  call->out = make_pointer(rows, out, rows->moves[step->value]);
}

/* The chain from this step on. */
static bool add_chain(rows_t *rows, const kernel_step_t *first) {
  call_t *call = add_call(rows, CALL_CHAIN, first, false);
  uint32_t count = 0;
  call->links = rows->links + rows->link_count;
  bool is_made =
      kernel_worker_make_chain(rows->worker, first, rows->moves, call->links, &count, &call->run.chain);
  rows->link_count += count;
  call->moving_begin = rows->moving_count;
  for (uint32_t k = 0; k < count; k++) {
    kernel_link_t *link = &call->links[k];
    if (link->row_step != 0) {
      rows->moving[rows->moving_count++] =
          (moving_link_t){.link = link, .data = make_pointer(rows, link->data, link->row_step)};
    }
  }
  call->moving_end = rows->moving_count;
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

/* A step per row can be one call for a batch if its operands are results of such, one behind the other, or
 * the same for all rows. */
static bool fits_batch(const rows_t *rows, const kernel_step_t *step) {
  const kernel_worker_t *worker = rows->worker;
  const kernel_value_t *value = &worker->plan->program.values[step->value];
  bool has_row = false;
  for (uint32_t k = 0; k < kernel_op_info(value->op)->operand_count; k++) {
    uint32_t operand = value->operands[k];
    bool is_single = kernel_worker_read(worker, operand, true).is_single;
    if (is_single ? rows->moves[operand] != 0 : worker->plan->program.values[operand].op == KERNEL_LOAD) {
      return false;
    }
    has_row = has_row || !is_single;
  }
  return has_row;
}

/* Makes calls of the row that has just been computed. False: its rows have to go through the steps, or in
 * smaller batches. */
static bool make_calls(rows_t *rows) {
  kernel_worker_t *worker = rows->worker;
  const kernel_plan_t *plan = worker->plan;
  memset(rows->moves, 0, plan->program.value_count * sizeof *rows->moves);
  rows->call_count = 0;
  rows->link_count = 0;
  rows->moving_count = 0;
  rows->row = 0;
  rows->has_steps = false;
  share_fetches(worker);
  for (uint32_t p = 0; p < plan->phase_count; p++) {
    const kernel_phase_t *phase = &plan->phases[p];
    rows->phase = p;
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
        case KERNEL_STEP_APPLY:
          if (is_row_step && worker->batch > 1 && !fits_batch(rows, step)) {
            return false;
          }
          add_apply(rows, step, is_row_step);
          break;
        case KERNEL_STEP_REDUCE: add_reduce(rows, step); break;
        case KERNEL_STEP_STORE: add_call(rows, CALL_STEP, step, is_row_step); break;
      }
    }
  }
  return worker->batch == 1 || !rows->has_steps;
}

/* Rows of a batch: as many of what is kept over a row as there is memory for. */
static int64_t largest_batch(const kernel_worker_t *worker) {
  const kernel_plan_t *plan = worker->plan;
  int64_t batch = worker->space->total < KERNEL_FETCHED_ELEMENTS ? BATCH : 1;
  for (uint32_t v = 0; v < plan->program.value_count; v++) {
    if (plan->kept[v] != KERNEL_NO_SLOT && kernel_worker_kept_output(worker, v) == NULL) {
      int64_t bytes = worker->count * (int64_t)cleave_dtype_size(plan->program.values[v].dtype);
      int64_t fitting = bytes == 0 ? BATCH : (int64_t)worker->kept_bytes / bytes;
      batch = fitting < batch ? fitting : batch;
    }
  }
  return batch < 1 ? 1 : batch;
}

/* Calls for batches that are as large as can be. */
static bool make_batches(rows_t *rows) {
  kernel_worker_t *worker = rows->worker;
  worker->batch = largest_batch(worker);
  bool is_made = make_calls(rows);
  if (!is_made && worker->batch > 1) {
    worker->batch = 1;
    is_made = make_calls(rows);
  }
  return is_made;
}

/* ---- running calls ---- */

/* Nothing is stored for this: stores wait for those before them, which bring results to memory. On Zen 4 rows
 * that come from memory took up to 1.8 times as long when calls stored pointers and reductions their sums. */
static inline unsigned char *find(const pointer_t *pointer, int64_t row, int64_t in_batch) {
  return pointer->first + row * pointer->move + in_batch * pointer->batch_move;
}

/* Part of its caller: a function of its own would store registers with each call. */
static inline __attribute__((always_inline)) void run_call(const rows_t *rows, const call_t *call,
                                                           int64_t row, int64_t in_batch, int64_t count) {
#define AT(pointer) find(&call->pointer, row, in_batch)
  switch (call->kind) {
    case CALL_CHAIN:
      for (uint32_t k = call->moving_begin; k < call->moving_end; k++) {
        rows->moving[k].link->data = find(&rows->moving[k].data, row, in_batch);
      }
      call->run.chain(call->links, count);
      break;
    case CALL_UNARY: call->run.unary(AT(out), AT(x), count, call->alpha, call->beta); break;
    case CALL_BINARY: call->run.binary(AT(out), AT(x), AT(y), count); break;
    case CALL_REDUCE: call->run.reduce(AT(x), AT(out), count); break;
    case CALL_REDUCE_ABOUT:
      call->run.reduce_about((const float *)(const void *)AT(x), *(const float *)(const void *)AT(y),
                             (float *)(void *)AT(out), count);
      break;
    case CALL_STEP: kernel_worker_step(rows->worker, call->step, call->is_row_step); break;
  }
#undef AT
}

/* The next row: with fewer instructions than as a batch of one, so that its first loads do not wait long for
 * the last stores of the row before. */
static void run_row(const rows_t *rows) {
  const call_t *end = rows->calls + rows->call_count;
  for (const call_t *call = rows->calls; call < end; call++) {
    run_call(rows, call, rows->row, 0, call->count);
  }
}

/* The next rows, as many as `count`, phase by phase: a step per row is one call for all of them. */
static void run_batch(const rows_t *rows, int64_t count) {
  const call_t *end = rows->calls + rows->call_count;
  for (const call_t *call = rows->calls; call < end;) {
    const call_t *first = call++;
    while (!first->is_row_step && call < end && !call->is_row_step && call->phase == first->phase) {
      call++;
    }
    for (int64_t k = 0; k < (first->is_row_step ? 1 : count); k++) {
      for (const call_t *one = first; one < call; one++) {
        run_call(rows, one, rows->row + k, k, one->is_row_step ? count : one->count);
      }
    }
  }
}

/* Moves on from the row that has just been computed to the next one, and tells calls that are steps. */
static void move_on(rows_t *rows) {
  kernel_worker_t *worker = rows->worker;
  rows->row++;
  if (rows->has_steps) {
    worker->row++;
    worker->begin += worker->space->row_length;
    kernel_worker_locate(worker);
    for (uint32_t v = 0; v < worker->plan->program.value_count; v++) {
      if (rows->moves[v] != 0) {
        worker->cells[v].data += rows->moves[v];
      }
    }
  }
}

void kernel_worker_calls(kernel_worker_t *worker, int64_t begin, int64_t end) {
  const kernel_space_t *space = worker->space;
  rows_t rows = {.worker = worker};
  unsigned char *memory = worker->made;
  rows.moves = (int64_t *)(void *)memory;
  memory += round_up(worker->plan->program.value_count * sizeof(int64_t));
  rows.calls = (call_t *)(void *)memory;
  memory += round_up(worker->plan->step_count * sizeof(call_t));
  rows.links = (kernel_link_t *)(void *)memory;
  memory += round_up(max_links(worker->plan) * sizeof(kernel_link_t));
  rows.moving = (moving_link_t *)(void *)memory;
  int32_t outer = space->rank - space->row_rank - 1;
  int64_t stretch = outer < 0 ? 1 : space->dims[outer];
  for (int64_t row = begin; row < end;) {
    int64_t left = rows_left(worker, row, stretch, outer);
    int64_t stop = left < end - row ? row + left : end;
    kernel_worker_group(worker, row++);
    if (stop - row < MIN_CALLED || !make_batches(&rows)) {
      while (row < stop) {
        kernel_worker_group(worker, row++);
      }
      continue;
    }
    for (int64_t count = 0; row < stop; row += count) {
      count = worker->batch < stop - row ? worker->batch : stop - row;
      move_on(&rows);
      if (count == 1) {
        run_row(&rows);
      } else {
        run_batch(&rows, count);
      }
      rows.row += count - 1;
    }
  }
}
