// SPDX-License-Identifier: Apache-2.0
/*
 * Arithmetic over the sizes that a pattern names: "2*C" as a dimension of a shape, "C % 16 == 0 and H >= W"
 * as a condition. An expression is compiled once, into a short program for a stack of bounded depth. It is
 * evaluated whenever its symbols have sizes, without allocating.
 *
 *   or  and  not  == != ~= < <= > >=  + -  * / // %  -x  (...)  whole numbers  symbols
 *
 * Both `/` and `//` round down, but `/` must leave no remainder: "H/2" for H = 7 is not a size, so the test
 * fails. A size is a number, or symbolic ("N", "2 * T"). Facts that follow for symbolic sizes are used (N ==
 * N, 2*N % 2 == 0); everything else is unknown. A condition that is unknown does not hold.
 */
#ifndef CLEAVE_PARTITION_PATTERN_EXPRESSION_H
#define CLEAVE_PARTITION_PATTERN_EXPRESSION_H

#include "base/arena.h"
#include "tensor/shape.h"

enum { CLEAVE_EXPRESSION_MAX_SYMBOLS = 16 }; /* of one expression */

typedef enum cleave_expression_kind {
  CLEAVE_EXPRESSION_SIZE,     /* "2*C" */
  CLEAVE_EXPRESSION_CONDITION /* "C % 16 == 0" */
} cleave_expression_kind_t;

typedef struct cleave_expression_step {
  uint8_t code;
  uint32_t symbol; /* in `symbols` */
  int64_t number;
} cleave_expression_step_t;

/* All memory belongs to the caller's arena. */
typedef struct cleave_expression {
  const char *text; /* as written */
  int32_t line;     /* of the rule file */
  cleave_expression_kind_t kind;
  uint32_t symbol_count;
  const char *const *symbols; /* distinct, in order of appearance */
  uint32_t step_count;
  const cleave_expression_step_t *steps; /* private to expression.c */
} cleave_expression_t;

typedef enum cleave_truth { CLEAVE_FALSE, CLEAVE_TRUE, CLEAVE_UNKNOWN } cleave_truth_t;

/* Compiles `text`. CLEAVE_ERROR_RULE with "'C %': column 4: expected a size, found the end". */
CLEAVE_STATUS cleave_expression_compile(cleave_arena_t *arena, const char *text, int32_t line,
                                        cleave_expression_kind_t kind,
                                        const cleave_expression_t **out_expression, cleave_error_t *error);

/* Value of a SIZE when symbol k has size `sizes[k]` (CLEAVE_DIM_UNKNOWN: none): a number >= 0, a symbolic
 * size of `dims`, or CLEAVE_DIM_UNKNOWN. `dims` is the table of symbolic sizes, to which the function may
 * add; if it is NULL, symbolic sizes are unknown. */
cleave_dim_t cleave_expression_size(const cleave_expression_t *expression, cleave_dims_t *dims,
                                    const cleave_dim_t *sizes);

/* Does a CONDITION hold? */
cleave_truth_t cleave_expression_test(const cleave_expression_t *expression, cleave_dims_t *dims,
                                      const cleave_dim_t *sizes);

#endif /* CLEAVE_PARTITION_PATTERN_EXPRESSION_H */
