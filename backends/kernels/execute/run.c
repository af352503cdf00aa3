// SPDX-License-Identifier: Apache-2.0
// Running a plan. A share of the tiles, of the rows, or of a long row, goes to each thread with scratch
// memory of its own. A value of a tile is a pointer: into a slot, right into an input or output, or to a
// single element that counts for all.
#include <string.h>

#include "kernels/convert.h"
#include "kernels/execute/worker.h"

enum {
  ALIGNMENT = 64,
  WORK_GRAIN = 131072,
};

typedef struct run {
  const kernel_plan_t *plan;
  const kernel_call_t *call;
  const kernel_space_t *space;
  int64_t shares;
  size_t share_bytes;
  int64_t row; /* of rows that are shared: the one at work, and its phase */
  uint32_t phase;
} run_t;

static size_t round_up(size_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t kept_bytes(const kernel_plan_t *plan, const kernel_space_t *space) {
  int64_t most = space->group == 1 ? space->row_length : plan->tile;
  return round_up((size_t)(most > plan->tile ? most : plan->tile) * 8);
}

static size_t repeat_count(const kernel_plan_t *plan) {
  return plan->program.reduced == 0 ? plan->program.input_count : 0;
}

static size_t share_bytes(const kernel_plan_t *plan, const kernel_space_t *space) {
  size_t cells = round_up((size_t)plan->program.value_count * 2 * sizeof(kernel_cell_t));
  return cells + kernel_made_bytes(plan) + (size_t)plan->lanes_count * KERNEL_LANES_BYTES +
         ((size_t)plan->row_count + plan->slot_count + repeat_count(plan)) * KERNEL_SLOT_BYTES +
         plan->kept_count * kept_bytes(plan, space);
}

/* How many threads are worth it. */
static int64_t count_shares(const kernel_plan_t *plan, const kernel_space_t *space, int32_t threads) {
  int64_t cost = plan->cost > 0 ? plan->cost : 1;
  int64_t worth = space->total / WORK_GRAIN * cost + space->total % WORK_GRAIN * cost / WORK_GRAIN;
  int64_t shares = threads < space->items ? threads : space->items;
  shares = shares > worth ? worth : shares;
  return shares < 1 ? 1 : shares;
}

size_t kernel_scratch_bytes(const kernel_plan_t *plan, const int64_t *dims, int32_t threads) {
  int64_t length = 1;
  for (int32_t d = plan->program.rank - plan->program.reduced; d < plan->program.rank; d++) {
    length *= dims[d];
  }
  const kernel_space_t space = {.row_length = length, .group = 1};
  size_t parts =
      length < KERNEL_SHARED_ROW ? 0 : (size_t)KERNEL_PARTS * plan->lanes_count * KERNEL_LANES_BYTES;
  return share_bytes(plan, &space) * (size_t)(threads < 1 ? 1 : threads) + parts;
}

/* Is an element of the input never read after output 0 got that element? `flat` inputs lie in the order of
 * the space. */
static bool is_read_first(const kernel_plan_t *plan, uint32_t input) {
  bool is_written = false;
  for (uint32_t p = 0; p < plan->phase_count; p++) {
    for (uint32_t s = plan->phases[p].row_begin; s < plan->phases[p].end; s++) {
      const kernel_step_t *step = &plan->steps[s];
      uint32_t operands[3];
      uint32_t count = kernel_step_operands(&plan->program, step, operands);
      for (uint32_t k = 0; k < count && is_written; k++) {
        const kernel_value_t *value = &plan->program.values[operands[k]];
        if (value->op == KERNEL_LOAD && value->input == input) {
          return false;
        }
      }
      bool writes = step->kind == KERNEL_STEP_STORE || step->kind == KERNEL_STEP_APPLY;
      is_written = is_written || (writes && step->output == 0);
    }
  }
  return true;
}

uint32_t kernel_inplace(const kernel_plan_t *plan, const int64_t *dims, const kernel_tensor_t *inputs) {
  const kernel_output_t *output = &plan->program.outputs[0];
  kernel_space_t space;
  uint32_t found = 0;
  if (plan->program.output_count == 0 || output->adds || plan->program.values[output->value].per_row) {
    return 0;
  }
  kernel_space_make(plan, dims, inputs, &space);
  for (uint32_t k = 0; k < plan->program.input_count && k < 32; k++) {
    bool is_alike = space.flat[k] && plan->program.inputs[k].dtype == output->dtype;
    found |= is_alike && is_read_first(plan, k) ? 1u << k : 0;
  }
  return found;
}

/* The worker of a share; what it holds in scratch memory is as it was left. */
static kernel_worker_t make_worker(const run_t *run, int64_t share) {
  const kernel_plan_t *plan = run->plan;
  unsigned char *memory = (unsigned char *)run->call->scratch + (size_t)share * run->share_bytes;
  kernel_worker_t worker = {.plan = plan, .call = run->call, .space = run->space, .batch = 1};
  worker.cells = (kernel_cell_t *)(void *)memory;
  worker.expanded = worker.cells + plan->program.value_count;
  memory += round_up((size_t)plan->program.value_count * 2 * sizeof(kernel_cell_t));
  worker.made = memory;
  memory += kernel_made_bytes(plan);
  worker.lanes = memory;
  worker.rows = worker.lanes + (size_t)plan->lanes_count * KERNEL_LANES_BYTES;
  worker.slots = worker.rows + (size_t)plan->row_count * KERNEL_SLOT_BYTES;
  worker.spare = worker.slots + (size_t)(plan->slot_count - 1) * KERNEL_SLOT_BYTES;
  worker.repeats = worker.slots + (size_t)plan->slot_count * KERNEL_SLOT_BYTES;
  worker.kept = worker.repeats + repeat_count(plan) * KERNEL_SLOT_BYTES;
  worker.kept_bytes = kept_bytes(plan, run->space);
  for (uint32_t v = 0; v < plan->program.value_count; v++) {
    const kernel_value_t *value = &plan->program.values[v];
    if (value->op == KERNEL_CONSTANT) {
      worker.cells[v] = (kernel_cell_t){.data = (unsigned char *)(uintptr_t)&value->bits, .is_single = true};
    } else if (plan->rows[v] != KERNEL_NO_SLOT) {
      worker.cells[v] = (kernel_cell_t){.data = worker.rows + (size_t)plan->rows[v] * KERNEL_SLOT_BYTES};
    }
  }
  return worker;
}

/* The first of the items of a share; the one behind the last is that of the next share. */
static int64_t first_item(const run_t *run, int64_t share) {
  int64_t items = run->space->items;
  return items / run->shares * share + items % run->shares * share / run->shares;
}

static void run_share(const run_t *run, int64_t share) {
  const kernel_space_t *space = run->space;
  kernel_worker_t worker = make_worker(run, share);
  int64_t begin = first_item(run, share);
  int64_t end = first_item(run, share + 1);
  if (space->one_by_one) {
    kernel_worker_calls(&worker, begin, end);
  }
  for (int64_t item = begin; item < end && !space->one_by_one; item++) {
    if (space->group > 0) {
      kernel_worker_group(&worker, item);
    } else {
      kernel_grid_tile(&space->grid, item, &worker.begin, &worker.count);
      kernel_worker_tile(&worker, &run->plan->phases[0]);
    }
  }
  if (worker.has_streamed) {
    run->plan->loops->stream_end();
  }
}

static void run_shares(void *context, int64_t begin, int64_t end) {
  for (int64_t share = begin; share < end; share++) {
    run_share(context, share);
  }
}

/* ---- few long rows, each of which all threads share ---- */

static unsigned char *part_lanes(const run_t *run, int64_t part) {
  unsigned char *first = (unsigned char *)run->call->scratch + (size_t)run->shares * run->share_bytes;
  return first + (size_t)part * run->plan->lanes_count * KERNEL_LANES_BYTES;
}

/* Parts of a phase of the row, with lanes each. Steps once per row are done by every share, for itself; what
 * is kept over the row lies in the memory of the first share. */
static void run_parts(void *context, int64_t begin, int64_t end) {
  const run_t *run = context;
  const kernel_space_t *space = run->space;
  const kernel_phase_t *phase = &run->plan->phases[run->phase];
  for (int64_t share = begin; share < end; share++) {
    kernel_worker_t worker = make_worker(run, share);
    worker.kept -= (size_t)share * run->share_bytes;
    worker.row = run->row;
    worker.row_count = 1;
    for (uint32_t s = phase->row_begin; s < phase->tile_begin; s++) {
      if (share == 0 || run->plan->steps[s].kind != KERNEL_STEP_STORE) {
        kernel_worker_step(&worker, &run->plan->steps[s], true);
      }
    }
    for (int64_t part = first_item(run, share); part < first_item(run, share + 1); part++) {
      worker.lanes = part_lanes(run, part);
      kernel_worker_bound(&worker, phase, false);
      for (int64_t t = space->grid.count * part / space->items;
           t < space->grid.count * (part + 1) / space->items && phase->tile_begin < phase->end; t++) {
        kernel_grid_tile(&space->grid, t, &worker.inside, &worker.count);
        worker.begin = worker.row * space->row_length + worker.inside;
        kernel_worker_tile(&worker, phase);
      }
    }
    if (worker.has_streamed) {
      run->plan->loops->stream_end();
    }
  }
}

/* The parts become one, in their order, and every share gets what the reductions make. */
static void join_parts(const run_t *run) {
  const kernel_plan_t *plan = run->plan;
  const kernel_phase_t *phase = &plan->phases[run->phase];
  kernel_worker_t worker = make_worker(run, 0);
  worker.lanes = part_lanes(run, 0);
  for (uint32_t s = phase->tile_begin; s < phase->end; s++) {
    if (plan->steps[s].kind == KERNEL_STEP_REDUCE) {
      uint32_t value = plan->steps[s].value;
      size_t offset = (size_t)plan->lanes[value] * KERNEL_LANES_BYTES;
      for (int64_t part = 1; part < run->space->items; part++) {
        kernel_worker_reduction(&worker, value)->merge(worker.lanes + offset, part_lanes(run, part) + offset);
      }
    }
  }
  kernel_worker_bound(&worker, phase, true);
  for (int64_t share = 1; share < run->shares; share++) {
    for (uint32_t s = phase->tile_begin; s < phase->end; s++) {
      if (plan->steps[s].kind == KERNEL_STEP_REDUCE) {
        unsigned char *from = worker.cells[plan->steps[s].value].data;
        memcpy(from + (size_t)share * run->share_bytes, from, 8);
      }
    }
  }
}

static void run_shared_rows(run_t *run) {
  for (run->row = 0; run->row < run->space->rows; run->row++) {
    for (run->phase = 0; run->phase < run->plan->phase_count; run->phase++) {
      if (run->shares == 1) {
        run_parts(run, 0, 1);
      } else {
        run->call->host->parallel_for(run->call->threads, run->shares, 1, run_parts, run);
      }
      join_parts(run);
    }
  }
}

void kernel_run(const kernel_plan_t *plan, const kernel_call_t *call) {
  kernel_space_t space;
  kernel_space_make(plan, call->dims, call->inputs, &space);
  run_t run = {.plan = plan,
               .call = call,
               .space = &space,
               .shares = count_shares(plan, &space, call->threads),
               .share_bytes = share_bytes(plan, &space)};
  bool is_alone = call->host == NULL || call->host->parallel_for == NULL;
  run.shares = is_alone ? 1 : run.shares;
  if (space.is_shared) {
    run_shared_rows(&run);
  } else if (run.shares == 1) {
    run_share(&run, 0);
  } else {
    call->host->parallel_for(call->threads, run.shares, 1, run_shares, &run);
  }
}
