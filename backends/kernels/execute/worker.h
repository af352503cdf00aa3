// SPDX-License-Identifier: Apache-2.0
/*
 * One thread at work on its share of a run. A value of a tile is a cell: a pointer into a slot, right into an
 * input or output, or to a single element that counts for all.
 */
#ifndef CLEAVE_KERNELS_WORKER_H
#define CLEAVE_KERNELS_WORKER_H

#include "kernels/execute/space.h"

enum {
  KERNEL_STREAM_BYTES = 1 << 25, /* an output that is larger would push everything else out of the caches */
  KERNEL_FETCHED_ELEMENTS = 1 << 19, /* spaces of as many do not fit into the cache of one processor */
};

typedef struct kernel_cell {
  unsigned char *data;
  bool is_single;
  bool is_row; /* one row, the same for all rows of the group; chains alone read such */
} kernel_cell_t;

typedef struct kernel_worker {
  const kernel_plan_t *plan;
  const kernel_call_t *call;
  const kernel_space_t *space;
  kernel_cell_t *cells;    /* per value */
  kernel_cell_t *expanded; /* per value that is one per row: as seen by elements */
  unsigned char *made;     /* kernel_made_bytes */
  unsigned char *lanes;
  unsigned char *rows;
  unsigned char *slots;
  unsigned char *spare;   /* a slot for elements on their way */
  unsigned char *repeats; /* a slot per input that is one run, repeated (only without reductions) */
  uint64_t repeated;      /* inputs that are there: bits */
  unsigned char *kept;
  size_t kept_bytes; /* of each kept value */
  int64_t batch;     /* of calls that are made once: rows that go through a phase together */
  int64_t row;       /* first row of the group */
  int64_t row_count;
  int64_t begin;  /* of the tile, in the space */
  int64_t count;  /* of the tile */
  int64_t inside; /* of the tile, in the group of rows */
  int64_t coordinates[CLEAVE_MAX_RANK];
  bool has_streamed;
  uint32_t fetchers; /* chains that share out what is fetched for the next tile */
  bool are_costly;   /* these chains: those with a costly operator */
  uint32_t fetched;  /* how many of them have their share */
} kernel_worker_t;

/* The place of `count` elements of a load, in one run. */
typedef struct kernel_place {
  uint32_t input;
  int64_t offset; /* of the first, in elements of the input */
  int64_t stride;
  int64_t count;
} kernel_place_t;

/* The place from the element with these coordinates to the end of the last axis, or of the part. */
kernel_place_t kernel_worker_place(const kernel_worker_t *worker, const kernel_value_t *load,
                                   const int64_t *at);

/* The output that a kept value lies in instead of the memory for such; NULL: it does not. */
unsigned char *kernel_worker_kept_output(const kernel_worker_t *worker, uint32_t value);

/* The value as a step per row, or per tile, sees it. */
kernel_cell_t kernel_worker_read(const kernel_worker_t *worker, uint32_t value, bool is_row_step);

/* `count` copies of an element of `size` bytes. */
void kernel_worker_fill(const kernel_worker_t *worker, void *out, const void *element, int64_t count,
                        size_t size);
/* A single element becomes a tile, in the spare slot; anything else stays where it is. */
unsigned char *kernel_worker_spread(const kernel_worker_t *worker, kernel_cell_t cell, int64_t count,
                                    size_t size);

/* An operator on a tile, or on the rows of the group. What comes from single elements alone is one. */
void kernel_worker_apply(kernel_worker_t *worker, const kernel_step_t *step, bool is_row_step);

/* The chain that begins with this step. */
void kernel_worker_chain(kernel_worker_t *worker, const kernel_step_t *first);

/* Makes the chain without running it: links for the row that cells show, each with the bytes by which it
 * moves to the next row, and what goes through them. `moves` has these bytes per value, and gets those of
 * what the chain makes. False: there are no such links. */
CLEAVE_MUST_USE bool kernel_worker_make_chain(kernel_worker_t *worker, const kernel_step_t *first,
                                              int64_t *moves, kernel_link_t *links, uint32_t *out_count,
                                              kernel_chain_run_t *out_run);

/* Any other step; those of a tile with the chains among them, at `begin`. */
void kernel_worker_step(kernel_worker_t *worker, const kernel_step_t *step, bool is_row_step);
void kernel_worker_tile(kernel_worker_t *worker, const kernel_phase_t *phase);

/* Sets the coordinates of `begin`. */
void kernel_worker_locate(kernel_worker_t *worker);

/* Begins the reductions of a phase, in the lanes of the worker, or ends them with values per row. */
void kernel_worker_bound(const kernel_worker_t *worker, const kernel_phase_t *phase, bool is_end);

/* The loops of a value that is a reduction. */
const kernel_reduce_t *kernel_worker_reduction(const kernel_worker_t *worker, uint32_t value);

/* An item of the space that is a group of rows, phase by phase. */
void kernel_worker_group(kernel_worker_t *worker, int64_t item);
/* Items from `begin` to before `end` that are one row each, if rows go one by one; `worker->made` is memory
 * for that. */
void kernel_worker_calls(kernel_worker_t *worker, int64_t begin, int64_t end);
size_t kernel_made_bytes(const kernel_plan_t *plan);

#endif /* CLEAVE_KERNELS_WORKER_H */
