// SPDX-License-Identifier: Apache-2.0
/*
 * Shapes with symbolic dimensions. A dimension is one int64: >= 0 is its size; CLEAVE_DIM_UNKNOWN (-1) is
 * "some size, nothing known"; below that it names an expression in a `cleave_dims_t` table ("N", "T + 1",
 * "12 * N"). Expressions are kept as polynomials with integer coefficients in a normal form, so that equal
 * expressions have equal numbers; what is not a polynomial (floor division that leaves a rest) is an opaque
 * term.
 */
#ifndef CLEAVE_TENSOR_SHAPE_H
#define CLEAVE_TENSOR_SHAPE_H

#include "base/text.h"
#include "tensor/dtype.h"

typedef int64_t cleave_dim_t;
#define CLEAVE_DIM_UNKNOWN ((cleave_dim_t)-1)

static inline bool cleave_dim_is_known(cleave_dim_t dim) {
  return dim >= 0;
}
static inline bool cleave_dim_is_symbolic(cleave_dim_t dim) {
  return dim < -1;
}

typedef struct cleave_dims cleave_dims_t;

CLEAVE_STATUS cleave_dims_create(cleave_dims_t **out_dims, cleave_error_t *error);
void cleave_dims_destroy(cleave_dims_t *dims);

/* A table in which every code means what it means in `dims`. */
CLEAVE_STATUS cleave_dims_copy(const cleave_dims_t *dims, cleave_dims_t **out_dims, cleave_error_t *error);

/* The dimension named `name` ("N"), made when new. UNKNOWN when there is no memory. */
cleave_dim_t cleave_dims_symbol(cleave_dims_t *dims, const char *name, size_t length);

/* Arithmetic over sizes and expressions. UNKNOWN if an operand is, if a size would overflow, or when
 * there is no memory. Results may be negative sizes in the middle of shape arithmetic: those cannot be
 * distinguished from codes, so a known negative result is UNKNOWN too. */
cleave_dim_t cleave_dim_add(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b);
cleave_dim_t cleave_dim_subtract(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b);
cleave_dim_t cleave_dim_multiply(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b);
/* Floor and ceiling of a / b. */
cleave_dim_t cleave_dim_divide(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b);
cleave_dim_t cleave_dim_divide_up(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b);

/* Value of an expression when its symbols have sizes: `sizes[k]` for symbol number k (in order of making), or
 * negative if unbound. UNKNOWN if a symbol is unbound. */
cleave_dim_t cleave_dim_evaluate(const cleave_dims_t *dims, cleave_dim_t dim, const int64_t *sizes,
                                 size_t size_count);
size_t cleave_dims_symbol_count(const cleave_dims_t *dims);
const char *cleave_dims_symbol_name(const cleave_dims_t *dims, size_t symbol);
/* The number of the symbol called `name`, and of the symbol that a dimension is; the count of symbols: none.
 */
size_t cleave_dims_find_symbol(const cleave_dims_t *dims, const char *name, size_t length);
size_t cleave_dims_symbol_of(const cleave_dims_t *dims, cleave_dim_t dim);

/* "224", "N", "T + 1", "?". */
void cleave_dim_print(const cleave_dims_t *dims, cleave_dim_t dim, cleave_text_t *text);

/* "[1, 3, N, 224]"; rank -1: "[...]". `dims` may be NULL if no dimension is symbolic. */
void cleave_shape_print(const cleave_dims_t *dims, int32_t rank, const cleave_dim_t *shape,
                        cleave_text_t *text);

/* "float32[1, 3, N, 224]". A rank that no tensor has is printed like -1. */
void cleave_type_print(const cleave_dims_t *dims, cleave_dtype_t dtype, int32_t rank,
                       const cleave_dim_t *shape, cleave_text_t *text);

/* Product of known dims, checked: false if one is not known, or if it overflows int64. */
bool cleave_shape_element_count(int32_t rank, const cleave_dim_t *shape, int64_t *out_count);

/* NumPy broadcast of two shapes into `out` (room for CLEAVE_MAX_RANK). Returns the rank, or -1 if known
 * sizes do not fit. Symbolic against 1: the symbol; equal: itself; symbolic against a size > 1: the size. */
int32_t cleave_shape_broadcast(int32_t a_rank, const cleave_dim_t *a, int32_t b_rank, const cleave_dim_t *b,
                               cleave_dim_t *out);

#endif /* CLEAVE_TENSOR_SHAPE_H */
