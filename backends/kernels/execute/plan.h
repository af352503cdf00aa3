// SPDX-License-Identifier: Apache-2.0
/*
 * The decisions of planning about a program: the steps of each phase, and where each value lies during a
 * tile. A phase ends where a reduction has seen all of its row; values per row come first in the next one.
 */
#ifndef CLEAVE_KERNELS_PLAN_H
#define CLEAVE_KERNELS_PLAN_H

#include "kernels/execute/execute.h"

enum {
  KERNEL_SLOT_BYTES = 8192, /* a tile of the widest dtype of a program fits into a slot */
  KERNEL_MAX_STEPS = 4 * KERNEL_MAX_VALUES + 2 * KERNEL_MAX_TENSORS,
  KERNEL_NO_SLOT = UINT32_MAX,
};

typedef enum kernel_step_kind {
  KERNEL_STEP_LOAD,   /* brings a tile of an input */
  KERNEL_STEP_EXPAND, /* a value per row, for each element of its row */
  KERNEL_STEP_APPLY,
  KERNEL_STEP_REDUCE,
  KERNEL_STEP_STORE
} kernel_step_kind_t;

typedef struct kernel_step {
  kernel_step_kind_t kind;
  uint32_t value;
  uint32_t tile; /* of a reduction: the value that it reads */
  uint32_t
      about;     /* of a reduction: the value per row that it takes from each element, or CLEAVE_INDEX_NONE */
  uint32_t slot; /* where the tile goes; KERNEL_NO_SLOT: the value is kept over the whole row */
  uint32_t output; /* of a store; of an operator: that it writes to directly, or CLEAVE_INDEX_NONE */
  uint32_t chain;  /* of an operator of a chain: how many steps are left of it; otherwise 0 */
  bool is_read;    /* of an operator: a step other than the next one of its chain reads the tile; of a load: a
                      step outside of chains does */
} kernel_step_t;

typedef struct kernel_phase {
  uint32_t row_begin; /* steps once per row, then steps per tile */
  uint32_t tile_begin;
  uint32_t end;
} kernel_phase_t;

struct kernel_plan {
  kernel_program_t program;
  const kernel_loops_t *loops;
  int64_t tile;         /* most elements of a tile */
  uint32_t slot_count;  /* of tiles; the last one is for elements on their way to another dtype */
  uint32_t kept_count;  /* values kept over a row */
  uint32_t row_count;   /* values per row, with a slot each */
  uint32_t lanes_count; /* reductions */
  uint32_t phase_count;
  uint32_t step_count;
  bool fetches;           /* the next tile, in large spaces (kernel_gains_by_fetching) */
  int32_t cost;           /* of an element */
  uint32_t *kept;         /* per value: number among the kept ones, or KERNEL_NO_SLOT */
  uint32_t *kept_outputs; /* per kept value: the output that has it as well, if there is memory for that; or
                             CLEAVE_INDEX_NONE */
  uint32_t *rows;         /* per value: number among those per row, or KERNEL_NO_SLOT */
  uint32_t *lanes;
  kernel_phase_t *phases;
  kernel_step_t *steps;
};

/* An operator that costs more than its way through the registers of a chain does. */
bool kernel_step_is_costly(const kernel_plan_t *plan, const kernel_step_t *step);

/* Has the chain such an operator, from this step on? */
bool kernel_chain_is_costly(const kernel_plan_t *plan, const kernel_step_t *first);

/* The values that a step reads: at most three, in `values`. */
uint32_t kernel_step_operands(const kernel_program_t *program, const kernel_step_t *step, uint32_t *values);

/* Orders the steps per tile of a phase so that operators of chains (chain.h) follow each other, with what
 * they load before them. `scratch` has room for as many steps as the phase has. */
void kernel_plan_chains(kernel_plan_t *plan, kernel_phase_t *phase, kernel_step_t *scratch);

#endif /* CLEAVE_KERNELS_PLAN_H */
