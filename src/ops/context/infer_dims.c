// SPDX-License-Identifier: Apache-2.0
// Arithmetic on dims: numbers are checked for overflow, symbols are computed by the table of dims if there is
// one.
#include "ops/context/infer_context.h"

static bool both_known(cleave_dim_t a, cleave_dim_t b) {
  return cleave_dim_is_known(a) && cleave_dim_is_known(b);
}

static bool has_unknown(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b) {
  return infer->dims == NULL || a == CLEAVE_DIM_UNKNOWN || b == CLEAVE_DIM_UNKNOWN;
}

cleave_dim_t cleave_infer_add(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b) {
  if (both_known(a, b)) {
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? CLEAVE_DIM_UNKNOWN : sum;
  }
  return has_unknown(infer, a, b) ? CLEAVE_DIM_UNKNOWN : cleave_dim_add(infer->dims, a, b);
}

cleave_dim_t cleave_infer_offset(const cleave_infer_t *infer, cleave_dim_t a, int64_t b) {
  if (b == INT64_MIN) {
    return CLEAVE_DIM_UNKNOWN;
  }
  return b >= 0 ? cleave_infer_add(infer, a, b) : cleave_infer_subtract(infer, a, -b);
}

cleave_dim_t cleave_infer_subtract(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b) {
  if (both_known(a, b)) {
    return a >= b ? a - b : CLEAVE_DIM_UNKNOWN;
  }
  return has_unknown(infer, a, b) ? CLEAVE_DIM_UNKNOWN : cleave_dim_subtract(infer->dims, a, b);
}

cleave_dim_t cleave_infer_multiply(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b) {
  if (a == 0 || b == 0) {
    return 0;
  }
  if (both_known(a, b)) {
    int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? CLEAVE_DIM_UNKNOWN : product;
  }
  return has_unknown(infer, a, b) ? CLEAVE_DIM_UNKNOWN : cleave_dim_multiply(infer->dims, a, b);
}

cleave_dim_t cleave_infer_divide(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b) {
  if (b == 0) {
    return CLEAVE_DIM_UNKNOWN;
  }
  if (both_known(a, b)) {
    return a / b;
  }
  return has_unknown(infer, a, b) ? CLEAVE_DIM_UNKNOWN : cleave_dim_divide(infer->dims, a, b);
}

cleave_dim_t cleave_infer_divide_up(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b) {
  if (b == 0) {
    return CLEAVE_DIM_UNKNOWN;
  }
  if (both_known(a, b)) {
    return a / b + (a % b != 0 ? 1 : 0);
  }
  return has_unknown(infer, a, b) ? CLEAVE_DIM_UNKNOWN : cleave_dim_divide_up(infer->dims, a, b);
}

cleave_dim_t cleave_infer_product(const cleave_infer_t *infer, const cleave_dim_t *dims, int32_t count) {
  cleave_dim_t product = 1;
  for (int32_t d = 0; d < count; d++) {
    product = cleave_infer_multiply(infer, product, dims[d]);
  }
  return product;
}
