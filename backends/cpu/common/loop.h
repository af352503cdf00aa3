// SPDX-License-Identifier: Apache-2.0
/*
 * Loops over tensors by strides. A loop has dims and up to four operands, each a base pointer with a stride
 * in bytes per dim; operand 0 is what is written. Neighbouring dims are merged if every operand allows it,
 * so that the inner function sees long rows; rows are cut if they are long enough to share between
 * threads.
 */
#ifndef CLEAVE_CPU_LOOP_H
#define CLEAVE_CPU_LOOP_H

#include "cpu/common/kernel.h"

enum {
  CPU_MAX_OPERANDS = 4,
  CPU_LOOP_RANK = 2 * CLEAVE_MAX_RANK, /* Tile and the like split every dim in two */
  CPU_WORK_GRAIN = 131072, /* work that is worth a thread, in the unit of costs: some 10 microseconds */
};

typedef struct cpu_loop {
  int32_t rank;
  int32_t operand_count;
  int64_t dims[CPU_LOOP_RANK];
  int64_t strides[CPU_MAX_OPERANDS][CPU_LOOP_RANK]; /* bytes */
  unsigned char *bases[CPU_MAX_OPERANDS];
} cpu_loop_t;

/* One row: `count` elements, operand k at pointers[k] + n * strides[k]. */
typedef void (*cpu_row_fn_t)(void *context, unsigned char *const *pointers, const int64_t *strides,
                             int64_t count);

/* Strides in bytes of a dense row-major tensor. */
void cpu_dense_strides(int32_t rank, const int64_t *dims, size_t element_size, int64_t *out_strides);

/* Product of dims. */
int64_t cpu_count(int32_t rank, const int64_t *dims);

/* The shape that inputs broadcast to, by the rules of ONNX (those of NumPy). NULL inputs are skipped. */
CLEAVE_MUST_USE cleave_status_t cpu_broadcast_shape(const cpu_tensor_t *const *inputs, uint32_t count,
                                                    int32_t *out_rank, int64_t *out_dims,
                                                    cleave_message_t *message);

/* A loop over `output`, which inputs broadcast to; their shapes have been checked. Operand k + 1 is input k.
 */
void cpu_loop_broadcast(cpu_loop_t *loop, const cpu_tensor_t *output, const cpu_tensor_t *const *inputs,
                        uint32_t count);

/* Drops dims of size 1 and merges dims that every operand runs through in one go. No dim may be 0. */
void cpu_loop_merge(cpu_loop_t *loop);

/* Runs `row` over the whole loop on the threads of the call. `cost` is about the work per element in
 * nanoseconds times 4: 1 for a copy, 100 for a transcendental function. Changes the loop (merges dims). */
void cpu_loop_run(const cpu_call_t *call, cpu_loop_t *loop, cpu_row_fn_t row, void *context, int64_t cost);

/* Copies elements of 1, 2, 4 or 8 bytes from operand 1 to operand 0; transposes by blocks. Changes the loop.
 */
void cpu_loop_copy(const cpu_call_t *call, cpu_loop_t *loop, size_t element_size);

/* Copies `bytes` on the threads of the call; nothing if both are the same place. */
void cpu_copy(const cpu_call_t *call, void *destination, const void *source, int64_t bytes);

/* Fills `count` elements of 1, 2, 4 or 8 bytes with the one at `value`. */
void cpu_fill(const cpu_call_t *call, void *destination, const void *value, size_t element_size,
              int64_t count);

#endif /* CLEAVE_CPU_LOOP_H */
