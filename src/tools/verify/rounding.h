// SPDX-License-Identifier: Apache-2.0
/*
 * How far a float may be off because arithmetic rounds: measured on the graph and the values at hand. The
 * graph runs on `cpu` again with every value of every operator changed by about as much as rounding changes
 * it (Monte Carlo arithmetic: Parker, 1997), and what comes out tells how much of it reaches each output. An
 * evaluation in another order, or fused, may differ by a small multiple of that.
 */
#ifndef CLEAVE_TOOLS_VERIFY_ROUNDING_H
#define CLEAVE_TOOLS_VERIFY_ROUNDING_H

#include "partition/plan/plan.h"
#include "tools/verify/check.h"

typedef struct cleave_rounding {
  /* Borrowed; of the caller. `values` are what `graph` computes on `cpu` from `inputs`. */
  const cleave_graph_t *graph;
  cleave_tensor_t *const *inputs;
  size_t input_count;
  cleave_tensor_t *const *values;
  size_t value_count;
  int32_t threads;
  int digits; /* of the significands of float32 values that products read; 0: their own 24 */
  /* Values from this index on that DequantizeLinear makes of constants are weights that rules rounded to
   * integers: each may be the next one. 0: integers are what the model has. */
  uint32_t narrowed_from;
  /* private */
  double *tolerances; /* by output, CLEAVE_CHECK_SIZES each; NULL: not measured */
} cleave_rounding_t;

/* For `digits`: the fewest that attributes of these regions let a backend compute with (`precision`:
 * "bfloat16" 8, "float16" 11, "int8" 6; `tf32` 11), or 0. */
int cleave_rounding_digits(const cleave_plan_region_t *regions, size_t count);

/* Compares `actual` with `expected`, both for output `index` of the graph: with a few units in the last place
 * of the largest values, and only if that is not enough with what rounding does, which is measured once.
 * If numbers are quantized, 8-bit integers may be the next ones, and what comes of that is measured, too;
 * all other integers are compared exactly. */
CLEAVE_STATUS cleave_rounding_check(cleave_rounding_t *rounding, size_t index,
                                    const cleave_tensor_view_t *actual, const cleave_tensor_t *expected,
                                    cleave_check_result_t *out_result, cleave_error_t *error);
void cleave_rounding_deinit(cleave_rounding_t *rounding);

#endif /* CLEAVE_TOOLS_VERIFY_ROUNDING_H */
