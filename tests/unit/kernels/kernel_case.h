// SPDX-License-Identifier: Apache-2.0
/*
 * Programs of backends/kernels in tests: read from text, interpreted element by element, and run with chosen
 * loops.
 */
#ifndef CLEAVE_TESTS_KERNEL_CASE_H
#define CLEAVE_TESTS_KERNEL_CASE_H

#include "kernels/execute/execute.h"
#include "program_read.h"

/* The program of this text; fails the test where it is none. */
kernel_program_t *kernel_case_read(const char *text);

/* A host with threads, as a session has it. */
extern const cleave_host_t kernel_case_host;

/* Runs over the space that the inputs make. `limit` as for kernel_loops_choose. Outputs are written from
 * `outputs` on. */
void kernel_case_run(const kernel_program_t *program, int limit, int32_t threads,
                     const kernel_tensor_t *inputs, void *const *outputs);

/* The same one element after the other, by the expressions of operators.inc as scalars. */
void kernel_case_interpret(const kernel_program_t *program, const kernel_tensor_t *inputs,
                           void *const *outputs);

/* One scalar operator on one element; operands and result in their dtypes. False: the dtype is not one of
 * its. */
bool kernel_case_apply(kernel_op_t op, cleave_dtype_t dtype, const void *const *operands, double alpha,
                       double beta, void *out);

#endif /* CLEAVE_TESTS_KERNEL_CASE_H */
