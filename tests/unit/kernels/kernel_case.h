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

/* ---- against the interpreter ---- */

enum { KERNEL_CASE_INPUTS = 5, KERNEL_CASE_OUTPUTS = 4 };

/* Runs over a space of these sizes with inputs that are drawn: every instruction set, one thread and more,
 * against the interpreter; all of them give the same bits. */
void kernel_case_check(const kernel_program_t *program, const int64_t *dims, unsigned seed, double tolerance);
void kernel_case_check_text(const char *text, const int64_t *dims, double tolerance);
/* How often output 0 lay over an input so far. */
extern int kernel_case_inplace_count;

/* Elements of an output; differences up to the tolerance, relative to 1 and more. */
void kernel_case_check_close(const kernel_program_t *program, uint32_t output, const void *found,
                             const void *expected, size_t count, double tolerance);

#endif /* CLEAVE_TESTS_KERNEL_CASE_H */
