// SPDX-License-Identifier: Apache-2.0
/* Values of a program as C++ text: types, constants, and the expressions of operators.inc with names put in.
 */
#ifndef CLEAVE_KERNELS_CUDA_EXPRESSION_H
#define CLEAVE_KERNELS_CUDA_EXPRESSION_H

#include "kernels/program.h"
#include "writer.h"

/* The type of a value, or of an element in memory: f16 and bf16 are their bits there. */
const char *cuda_type(cleave_dtype_t dtype);

/* "const TYPE vN = EXPRESSION;" for anything but a load or a reduction; operands are named vN. */
void cuda_write_value(cuda_writer_t *writer, const kernel_program_t *program, uint32_t value);

/* An element of a tensor, an expression, as it is computed with; and back. */
void cuda_write_widened(cuda_writer_t *writer, cleave_dtype_t dtype, const char *element);
void cuda_write_narrowed(cuda_writer_t *writer, cleave_dtype_t dtype, const char *value);

/* A reduction of a program. `type`: in which it adds up; the place of an element, if that is its result. */
typedef struct cuda_reduction {
  const kernel_value_t *value;
  cleave_dtype_t dtype; /* of the elements */
  char type[16];
} cuda_reduction_t;

cuda_reduction_t cuda_reduction_of(const kernel_program_t *program, uint32_t value);
bool cuda_is_argument(const kernel_value_t *value);

/* The text of its parts: `initial`, and what brings the element vN, which is at `index` of its row, or
 * another accumulator x into the accumulator a. */
void cuda_write_initial(cuda_writer_t *writer, const cuda_reduction_t *reduction);
void cuda_write_step(cuda_writer_t *writer, const cuda_reduction_t *reduction, const char *a,
                     const char *index);
void cuda_write_join(cuda_writer_t *writer, const cuda_reduction_t *reduction, const char *a, const char *x);
void cuda_write_result(cuda_writer_t *writer, const cuda_reduction_t *reduction, const char *a,
                       const char *n);

/* Definitions of the functions that `body` calls, in an order in which they can call each other. */
void cuda_write_functions(cuda_writer_t *writer, const char *body);

#endif /* CLEAVE_KERNELS_CUDA_EXPRESSION_H */
