// SPDX-License-Identifier: Apache-2.0
/* Printing, counting and broadcasting of shapes; the arithmetic of dimensions is in dims.c. */
#include "tensor/shape.h"

void cleave_shape_print(const cleave_dims_t *dims, int32_t rank, const cleave_dim_t *shape,
                        cleave_text_t *text) {
  if (rank < 0) {
    cleave_text_add(text, "[...]");
    return;
  }
  cleave_text_add(text, "[");
  for (int32_t d = 0; d < rank; d++) {
    cleave_text_add(text, d > 0 ? ", " : "");
    cleave_dim_print(dims, shape[d], text);
  }
  cleave_text_add(text, "]");
}

void cleave_type_print(const cleave_dims_t *dims, cleave_dtype_t dtype, int32_t rank,
                       const cleave_dim_t *shape, cleave_text_t *text) {
  cleave_text_add(text, cleave_dtype_name(dtype));
  cleave_shape_print(dims, rank <= CLEAVE_MAX_RANK ? rank : -1, shape, text);
}

bool cleave_shape_element_count(int32_t rank, const cleave_dim_t *shape, int64_t *out_count) {
  int64_t count = 1;
  bool has_zero = false;
  bool overflow = false;
  for (int32_t d = 0; d < rank; d++) {
    if (!cleave_dim_is_known(shape[d])) {
      return false;
    }
    has_zero = has_zero || shape[d] == 0;
    overflow = overflow || __builtin_mul_overflow(count, shape[d], &count);
  }
  *out_count = has_zero ? 0 : count;
  return rank >= 0 && (has_zero || !overflow);
}

static cleave_dim_t broadcast_dim(cleave_dim_t a, cleave_dim_t b, bool *fits) {
  if (a == b || b == 1) {
    return a;
  }
  if (a == 1) {
    return b;
  }
  if (cleave_dim_is_known(a) && cleave_dim_is_known(b)) {
    *fits = false;
    return a;
  }
  if (cleave_dim_is_known(a)) {
    return a;
  }
  return cleave_dim_is_known(b) ? b : CLEAVE_DIM_UNKNOWN;
}

int32_t cleave_shape_broadcast(int32_t a_rank, const cleave_dim_t *a, int32_t b_rank, const cleave_dim_t *b,
                               cleave_dim_t *out) {
  bool fits = true;
  int32_t rank = a_rank > b_rank ? a_rank : b_rank;
  cleave_dim_t result[CLEAVE_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) {
    int32_t i = d - (rank - a_rank);
    int32_t j = d - (rank - b_rank);
    result[d] = i < 0 ? b[j] : (j < 0 ? a[i] : broadcast_dim(a[i], b[j], &fits));
  }
  for (int32_t d = 0; fits && d < rank; d++) {
    out[d] = result[d];
  }
  return fits ? rank : -1;
}
