// SPDX-License-Identifier: Apache-2.0
// A group of rows, or one long row, goes phase by phase through all steps.
#include "kernels/execute/worker.h"

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

void kernel_worker_group(kernel_worker_t *worker, int64_t item) {
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
