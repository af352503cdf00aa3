// SPDX-License-Identifier: Apache-2.0
// Random tensors, losses, and the optimisers of ai.onnx.preview.training.

#include <string.h>

#include "ops/context/infer_context.h"

cleave_status_t cleave_infer_random(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dtype_t dtype = CLEAVE_DTYPE_F32;
  uint32_t count = 0;
  const int64_t *shape = cleave_infer_int_list(infer, "shape", &count);
  CLEAVE_TRY(cleave_infer_dtype_attribute(infer, "dtype", dtype, &dtype, error));
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, count, error));
  for (uint32_t k = 0; k < count; k++) {
    if (shape[k] < 0) {
      return cleave_infer_fail(infer, error, "attribute 'shape': expected sizes of 0 or more, found %lld",
                               (long long)shape[k]);
    }
  }
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, dtype, error));
  return cleave_infer_set_shape(infer, output, (int32_t)count, shape, error);
}

cleave_status_t cleave_infer_random_like(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dtype_t dtype = CLEAVE_DTYPE_UNKNOWN;
  CLEAVE_TRY(cleave_infer_dtype_attribute(infer, "dtype", cleave_fact_dtype(input), &dtype, error));
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, dtype, error));
  return cleave_infer_same_shape(infer, input, output, error);
}

/* input [N, classes] -> [N, sample_size]. */
cleave_status_t cleave_infer_multinomial(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dtype_t dtype = CLEAVE_DTYPE_I32;
  int64_t samples = cleave_infer_int(infer, "sample_size", 1);
  if (samples < 0) {
    return cleave_infer_fail(infer, error, "sample_size is %lld", (long long)samples);
  }
  CLEAVE_TRY(cleave_infer_dtype_attribute(infer, "dtype", dtype, &dtype, error));
  CLEAVE_TRY(cleave_infer_set_dtype(infer, output, dtype, error));
  CLEAVE_TRY(cleave_infer_types(infer, "-[n?] > -[n?]", error));
  return cleave_infer_set_dim(infer, output, 1, samples, error);
}

/* ---- losses ---- */

/* input [N, C, d...], target [N, d...], weight [C]; the loss is a scalar, or shaped as the target. */
cleave_status_t cleave_infer_nll_loss(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *target = cleave_infer_input(infer, 1);
  cleave_fact_t *loss = cleave_infer_output(infer, 0);
  const char *reduction = cleave_infer_text(infer, "reduction", "mean");
  bool reduces = strcmp(reduction, "none") != 0;
  if (reduces && strcmp(reduction, "mean") != 0 && strcmp(reduction, "sum") != 0) {
    return cleave_infer_fail(infer, error, "reduction is '%.32s'", reduction);
  }
  CLEAVE_TRY(cleave_infer_check_rank(infer, input, 2, CLEAVE_MAX_RANK, error));
  CLEAVE_TRY(cleave_infer_types(infer, "x[?c*] - x[c] > x", error));
  if (cleave_fact_rank(input) >= 0) {
    CLEAVE_TRY(cleave_infer_set_rank(infer, target, input->rank - 1, error));
    CLEAVE_TRY(cleave_infer_same_dim(infer, input, 0, target, 0, error));
    for (int32_t d = 2; d < input->rank; d++) {
      CLEAVE_TRY(cleave_infer_same_dim(infer, input, d, target, d - 1, error));
    }
  }
  return reduces ? cleave_infer_set_rank(infer, loss, 0, error)
                 : cleave_infer_same_shape(infer, target, loss, error);
}

cleave_status_t cleave_infer_softmax_cross_entropy_loss(cleave_infer_t *infer, cleave_error_t *error) {
  CLEAVE_TRY(cleave_infer_nll_loss(infer, error));
  return cleave_infer_same_type(infer, cleave_infer_input(infer, 0), cleave_infer_output(infer, 1), error);
}

/* ---- optimisers ---- */

/* Inputs R, T, then groups of n tensors: X, G and states; outputs: the new X, and the new states. */
/* Inputs stand for the values that xs and zs name; the gradients are those by xs. */
cleave_status_t cleave_infer_gradient(cleave_infer_t *infer, cleave_error_t *error) {
  const cleave_attribute_t *xs = cleave_op_attribute(infer->graph, infer->node, "xs");
  const cleave_attribute_t *zs = cleave_op_attribute(infer->graph, infer->node, "zs");
  uint32_t count = xs != NULL ? xs->count : 0;
  uint32_t others = zs != NULL ? zs->count : 0;
  if (infer->output_count != count || infer->input_count != count + others) {
    return cleave_infer_fail(infer, error, "%u input%s and %u output%s, expected %u and %u, by xs and zs",
                             infer->input_count, CLEAVE_PLURAL(infer->input_count), infer->output_count,
                             CLEAVE_PLURAL(infer->output_count), count + others, count);
  }
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY(
        cleave_infer_same_type(infer, cleave_infer_input(infer, k), cleave_infer_output(infer, k), error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_optimizer(cleave_infer_t *infer, cleave_error_t *error) {
  uint32_t state_groups = infer->op->id == CLEAVE_OP_Adam ? 2 : 1;
  uint32_t tensors = infer->input_count >= 2 ? infer->input_count - 2 : 0;
  uint32_t n = tensors / (2 + state_groups);
  if (n == 0 || tensors != n * (2 + state_groups) || infer->output_count != n * (1 + state_groups)) {
    return cleave_infer_fail(infer, error, "%u input%s and %u output%s do not fit together",
                             infer->input_count, CLEAVE_PLURAL(infer->input_count), infer->output_count,
                             CLEAVE_PLURAL(infer->output_count));
  }
  CLEAVE_TRY(cleave_infer_set_dtype(infer, cleave_infer_input(infer, 1), CLEAVE_DTYPE_I64, error));
  for (uint32_t k = 0; k < n; k++) {
    cleave_fact_t *tensor = cleave_infer_input(infer, 2 + k);
    CLEAVE_TRY(cleave_infer_same_type(infer, tensor, cleave_infer_input(infer, 2 + n + k), error));
    CLEAVE_TRY(cleave_infer_same_type(infer, tensor, cleave_infer_output(infer, k), error));
    for (uint32_t s = 0; s < state_groups; s++) {
      CLEAVE_TRY(
          cleave_infer_same_type(infer, tensor, cleave_infer_input(infer, 2 + (2 + s) * n + k), error));
      CLEAVE_TRY(cleave_infer_same_type(infer, tensor, cleave_infer_output(infer, (1 + s) * n + k), error));
    }
  }
  return CLEAVE_OK;
}
