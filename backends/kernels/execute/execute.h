// SPDX-License-Identifier: Apache-2.0
/*
 * Programs on the CPU. The space is cut into tiles that stay in the first cache; each step of the program is
 * one loop over a tile. If there are reductions, a thread has whole rows; what later steps of a row read
 * again is kept in scratch memory. Tiles depend on sizes alone, so that results are the same for any number
 * of threads.
 */
#ifndef CLEAVE_KERNELS_EXECUTE_H
#define CLEAVE_KERNELS_EXECUTE_H

#include "kernels/loops/loops.h"

typedef struct kernel_plan kernel_plan_t;

/* Plans a program, which the plan copies what it needs from. `loops` are those of the processor
 * (kernel_loops_choose). */
CLEAVE_MUST_USE cleave_status_t kernel_plan_create(const kernel_program_t *program,
                                                   const kernel_loops_t *loops, kernel_plan_t **out_plan,
                                                   cleave_message_t *message);
void kernel_plan_destroy(kernel_plan_t *plan);

/* A tensor of a call. Elements are aligned to their size. */
typedef struct kernel_tensor {
  const void *data;
  int32_t rank;
  const int64_t *dims;
  const int64_t *strides; /* in elements; NULL: dense */
} kernel_tensor_t;

typedef struct kernel_call {
  const cleave_host_t *host; /* NULL: one thread */
  int32_t threads;
  const kernel_tensor_t *inputs; /* a dim of size 1 is repeated */
  void *const *outputs;          /* dense; an output per row has no reduced axes. NULL: nobody wants it */
  int64_t dims[CLEAVE_MAX_RANK]; /* of the space */
  void *scratch;                 /* kernel_scratch_bytes, aligned to 64 bytes */
} kernel_call_t;

/* The space that these inputs make: along each axis the size of those that are not repeated there. Fails
 * where sizes do not fit together. Axes that every input repeats have size 1. */
CLEAVE_MUST_USE cleave_status_t kernel_space(const kernel_plan_t *plan, const kernel_tensor_t *inputs,
                                             int64_t *out_dims, cleave_message_t *message);

/* Scratch memory for a call over this space. */
size_t kernel_scratch_bytes(const kernel_plan_t *plan, const int64_t *dims, int32_t threads);

/* The inputs that output 0 may lie over, one bit each, in calls with such inputs over this space. */
uint32_t kernel_inplace(const kernel_plan_t *plan, const int64_t *dims, const kernel_tensor_t *inputs);

/* Runs; allocates nothing. Inputs fit the space (kernel_space); outputs overlap neither them, unless
 * kernel_inplace says so, nor each other. */
void kernel_run(const kernel_plan_t *plan, const kernel_call_t *call);

#endif /* CLEAVE_KERNELS_EXECUTE_H */
