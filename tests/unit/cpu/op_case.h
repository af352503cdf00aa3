// SPDX-License-Identifier: Apache-2.0
/*
 * One operator on one backend, with operands written as text. A list of tensors is separated by ';':
 *
 *   op_case(&backend, "Concat", "f32[1,2] 1 2; f32[1,1] 3", "axis=1", "f32[1,3] 1 2 3");
 *
 * A tensor is dtype, dims and elements; one element stands for all. "-" is an operand left out. Dtypes: f32
 * f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool str. Attributes are `name=1`, `name=1.5`, `name=[1,2]`,
 * `name='text'`, or `name=<i32[1] 7>` for a tensor, separated by spaces.
 *
 * Every case runs with all shapes known; with all unknown; with every input a constant at an odd address;
 * with more threads than one; and in place where the program offers it.
 */
#ifndef CLEAVE_TESTS_OP_CASE_H
#define CLEAVE_TESTS_OP_CASE_H

#include "cleave/backend.h"

typedef struct op_backend {
  const cleave_backend_t *backend;
  void *state;
} op_backend_t;

/* The reference backend, initialised; fails the test where that fails. */
op_backend_t op_backend_cpu(void);
void op_backend_destroy(op_backend_t *backend);

/* The operator gives the expected tensors; floats within 2e-6 relative and 1e-6 absolute (short ones
 * exactly). */
void op_case(const op_backend_t *backend, const char *op, const char *inputs, const char *attributes,
             const char *expected);

/* The same for operators that leave the shapes of their outputs to the caller: where shapes are unknown when
 * compiling, outputs have theirs when running, as sessions give them. */
void op_case_with_shapes(const op_backend_t *backend, const char *op, const char *inputs,
                         const char *attributes, const char *expected);

/* Compiling or running fails with this status and a message that contains `part`. `expected` gives the dtypes
 * and shapes of the outputs. */
void op_case_fails(const op_backend_t *backend, const char *op, const char *inputs, const char *attributes,
                   const char *expected, cleave_status_t status, const char *part);

#endif /* CLEAVE_TESTS_OP_CASE_H */
