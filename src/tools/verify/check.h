// SPDX-License-Identifier: Apache-2.0
/* Checks of a session's outputs: against tensors, and against the graph run unpartitioned on `cpu`. */
#ifndef CLEAVE_TOOLS_VERIFY_CHECK_H
#define CLEAVE_TOOLS_VERIFY_CHECK_H

#include "runtime/session/session.h"

enum { CLEAVE_CHECK_SIZES = 280 };

/* The binary exponent of |value| as an index below CLEAVE_CHECK_SIZES; 0 for 0 and what is smaller than any
 * float32, the last for what is larger. */
uint32_t cleave_check_size(double value);
/* A power of two above the values of this size. */
double cleave_check_size_bound(uint32_t size);

/* How far a float may be off: |actual - expected| <= atol * scale + rtol * |expected| + by_size. */
typedef struct cleave_check_tolerance {
  double rtol;
  double atol;
  bool scaled;           /* scale is the largest |expected| of the output, at least 1; otherwise 1 */
  const double *by_size; /* CLEAVE_CHECK_SIZES tolerances, by cleave_check_size(expected); NULL: 0 */
} cleave_check_tolerance_t;

/* What is usual for an output of this dtype, scaled: float64 1e-9, float32 1e-3 and 1e-4 of the largest
 * value, float16 1e-2, bfloat16 4e-2; all others exact. */
cleave_check_tolerance_t cleave_check_tolerance_of(cleave_dtype_t dtype);

typedef struct cleave_check_result {
  bool matches;
  cleave_difference_t difference;
  double relative; /* largest |actual - expected| over the largest |expected| (over 1 if that is 0) */
} cleave_check_result_t;

/* Compares one tensor; `actual` is borrowed during the call. Other dtype or shape: no match. Reference data
 * of ONNX's tests that stores bfloat16 as uint16 is taken as bfloat16. */
CLEAVE_STATUS cleave_check_tensor(const cleave_tensor_view_t *actual, const cleave_tensor_t *expected,
                                  const cleave_check_tolerance_t *tolerance,
                                  cleave_check_result_t *out_result, cleave_error_t *error);

/* One line on what does not match: "output 'y': 3 of 120 values differ, first at [0, 2, 1]: found 1.5,
 * expected 1.25" or the types that differ. Nothing is appended if it matches. */
void cleave_check_explain(const char *name, const cleave_tensor_view_t *actual,
                          const cleave_tensor_t *expected, const cleave_check_result_t *result,
                          cleave_text_t *text);

/* A tensor of its own with what an output of a session holds. The caller releases it. */
CLEAVE_STATUS cleave_check_copy(const cleave_tensor_view_t *view, cleave_tensor_t **out_tensor,
                                cleave_error_t *error);

/* Runs a graph unpartitioned, every node alone on `cpu`, and hands out copies of the outputs: `outputs` has
 * room for all of them; the caller releases each (NULL if it failed). */
CLEAVE_STATUS cleave_check_reference(const cleave_graph_t *graph, cleave_tensor_t *const *inputs,
                                     size_t input_count, int32_t threads, cleave_tensor_t **outputs,
                                     size_t output_count, cleave_error_t *error);

#endif /* CLEAVE_TOOLS_VERIFY_CHECK_H */
