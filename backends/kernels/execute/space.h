// SPDX-License-Identifier: Apache-2.0
/*
 * The space of one call: its axes merged where every input runs through them in one go, and how it is cut
 * into tiles.
 */
#ifndef CLEAVE_KERNELS_SPACE_H
#define CLEAVE_KERNELS_SPACE_H

#include "kernels/execute/plan.h"

enum {
  KERNEL_SHARED_ROW = 1 << 16, /* elements from which a row may be shared */
  KERNEL_SHARED_ROWS = 8,      /* at most, if they are; more of them are one for each thread */
  KERNEL_PARTS = 32,           /* of a row that is shared, at most: each has lanes of its own */
};

/* How a span of elements is cut. A tile is some whole runs along the last axis, or a part of one. */
typedef struct kernel_grid {
  int64_t run;      /* elements along the last axis */
  int64_t chunk;    /* elements of a tile; fewer at an end */
  int64_t per_run;  /* tiles per run; 0: a tile has several runs */
  int64_t count;    /* tiles */
  int64_t elements; /* of the span */
} kernel_grid_t;

typedef struct kernel_space {
  int32_t rank;
  int32_t row_rank; /* of these axes, the last ones are of the row */
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t strides[KERNEL_MAX_TENSORS][CLEAVE_MAX_RANK]; /* of each input, in elements; 0 if it is repeated */
  bool flat[KERNEL_MAX_TENSORS];                        /* the input is dense in the order of the space */
  int32_t along[KERNEL_MAX_TENSORS]; /* of a part of a load: the merged axis, and where it lies along that; */
  int64_t begins[KERNEL_MAX_TENSORS]; /* otherwise -1 */
  int64_t ends[KERNEL_MAX_TENSORS];
  int64_t total;
  int64_t row_length;
  int64_t rows;
  int64_t group;      /* rows that are done together; 0: there are no reductions */
  bool one_by_one;    /* each row is a tile; `group` is 1 */
  bool is_shared;     /* all threads share each row; `group` is 1 */
  int64_t items;      /* groups; tiles, where there are no reductions; parts of a row that is shared */
  kernel_grid_t grid; /* of everything, of a group of rows, or of one row */
} kernel_space_t;

/* kernel_space of execute.h, from the program alone. */
CLEAVE_MUST_USE cleave_status_t kernel_program_space(const kernel_program_t *program,
                                                     const kernel_tensor_t *inputs, int64_t *out_dims,
                                                     cleave_message_t *message);

/* Merges axes, with the last `reduced` ones as the row; leaves out how the space is cut. */
void kernel_space_merge(const kernel_program_t *program, int32_t reduced, const int64_t *dims,
                        const kernel_tensor_t *inputs, kernel_space_t *out_space);

void kernel_space_make(const kernel_plan_t *plan, const int64_t *dims, const kernel_tensor_t *inputs,
                       kernel_space_t *out_space);

/* Which part of a load of several inputs has this coordinate along their axis. */
static inline uint32_t kernel_space_part(const kernel_space_t *space, const kernel_value_t *load,
                                         int64_t at) {
  uint32_t part = load->input;
  while (at >= space->ends[part]) {
    part++;
  }
  return part;
}

static inline void kernel_grid_tile(const kernel_grid_t *grid, int64_t index, int64_t *out_begin,
                                    int64_t *out_count) {
  if (grid->per_run == 0) {
    *out_begin = index * grid->chunk;
    int64_t left = grid->elements - *out_begin;
    *out_count = left < grid->chunk ? left : grid->chunk;
    return;
  }
  int64_t inside = index % grid->per_run * grid->chunk;
  int64_t left = grid->run - inside;
  *out_begin = index / grid->per_run * grid->run + inside;
  *out_count = left < grid->chunk ? left : grid->chunk;
}

#endif /* CLEAVE_KERNELS_SPACE_H */
