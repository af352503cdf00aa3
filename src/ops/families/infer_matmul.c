// SPDX-License-Identifier: Apache-2.0
// Matrix products: NumPy's matmul rules, Gemm with its transposes, and Det.

#include "ops/context/infer_context.h"

/* Batch dims of matmul operands: all but the last two, broadcast. */
static cleave_status_t batch_dims(cleave_infer_t *infer, const cleave_fact_t *a, const cleave_fact_t *b,
                                  int32_t *out_rank, cleave_dim_t *out, cleave_error_t *error) {
  int32_t a_rank = a->rank > 2 ? a->rank - 2 : 0;
  int32_t b_rank = b->rank > 2 ? b->rank - 2 : 0;
  *out_rank = cleave_shape_broadcast(a_rank, a->dims, b_rank, b->dims, out);
  if (*out_rank >= 0) {
    return CLEAVE_OK;
  }
  cleave_text_t left = {0};
  cleave_text_t right = {0};
  cleave_shape_print(infer->dims, a->rank, a->dims, &left);
  cleave_shape_print(infer->dims, b->rank, b->dims, &right);
  cleave_status_t status = cleave_infer_fail(infer, error, "batches of %s and %s do not broadcast",
                                             cleave_text_get(&left), cleave_text_get(&right));
  cleave_text_deinit(&left);
  cleave_text_deinit(&right);
  return status;
}

static cleave_status_t matmul_shapes(cleave_infer_t *infer, cleave_fact_t *a, cleave_fact_t *b,
                                     cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_check_rank(infer, a, 1, CLEAVE_MAX_RANK, error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, b, 1, CLEAVE_MAX_RANK, error));
  int32_t a_rank = cleave_fact_rank(a);
  int32_t b_rank = cleave_fact_rank(b);
  if (a_rank < 0 || b_rank < 0) {
    return CLEAVE_OK;
  }
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = 0;
  CLEAVE_TRY(cleave_infer_same_dim(infer, a, a_rank - 1, b, b_rank > 1 ? b_rank - 2 : 0, error));
  CLEAVE_TRY(batch_dims(infer, a, b, &rank, dims, error));
  for (int32_t d = 0; d < 2; d++) {
    const cleave_fact_t *operand = d == 0 ? a : b;
    if (operand->rank > 1) {
      dims[rank++] = operand->dims[d == 0 ? a_rank - 2 : b_rank - 1];
    }
  }
  CLEAVE_TRY(cleave_infer_set_shape(infer, output, rank, dims, error));
  if (a_rank > 1) {
    CLEAVE_TRY(cleave_infer_set_dim(infer, a, a_rank - 2,
                                    cleave_fact_dim(output, b_rank > 1 ? rank - 2 : rank - 1), error));
  }
  return b_rank > 1 ? cleave_infer_set_dim(infer, b, b_rank - 1, cleave_fact_dim(output, rank - 1), error)
                    : CLEAVE_OK;
}

cleave_status_t cleave_infer_matmul(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "x x > x", error));
  return matmul_shapes(infer, cleave_infer_input(infer, 0), cleave_infer_input(infer, 1), error);
}

cleave_status_t cleave_infer_matmul_integer(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "a b a b > I", error));
  return matmul_shapes(infer, cleave_infer_input(infer, 0), cleave_infer_input(infer, 1), error);
}

cleave_status_t cleave_infer_qlinear_matmul(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_types(infer, "a - a b - b - y > y", error));
  return matmul_shapes(infer, cleave_infer_input(infer, 0), cleave_infer_input(infer, 3), error);
}

/* A' [M, K], B' [K, N], C broadcasts to Y [M, N]. */
cleave_status_t cleave_infer_gemm(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *a = cleave_infer_input(infer, 0);
  cleave_fact_t *b = cleave_infer_input(infer, 1);
  cleave_fact_t *c = cleave_infer_input(infer, 2);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  int32_t a_rows = cleave_infer_int(infer, "transA", 0) != 0 ? 1 : 0;
  int32_t b_rows = cleave_infer_int(infer, "transB", 0) != 0 ? 1 : 0;
  CLEAVE_TRY(cleave_infer_types(infer, "x[??] x[??] x > x[??]", error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, a, 1 - a_rows, b, b_rows, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, a, a_rows, output, 0, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, b, 1 - b_rows, output, 1, error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, c, 0, 2, error));
  for (int32_t d = 0; d < cleave_fact_rank(c); d++) {
    cleave_dim_t bias = c->dims[d];
    cleave_dim_t size = cleave_fact_dim(output, 2 - c->rank + d);
    if (cleave_dim_is_known(bias) && bias != 1 && cleave_dim_is_known(size) && bias != size) {
      return cleave_infer_fail(infer, error, "input 'C': size %lld does not broadcast to %lld",
                               (long long)bias, (long long)size);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_det(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, input, 2, CLEAVE_MAX_RANK, error));
  int32_t rank = cleave_fact_rank(input);
  CLEAVE_TRY(cleave_infer_same_dim(infer, input, rank - 1, input, rank - 2, error));
  return cleave_infer_set_shape(infer, output, rank >= 0 ? rank - 2 : -1, rank >= 0 ? input->dims : NULL,
                                error);
}
