// SPDX-License-Identifier: Apache-2.0
// NumPy's broadcasting as facts in both directions, and the elements of small tensors that are broadcast,
// copied or reordered.

#include "ops/context/infer_context.h"

enum { OPERAND_LIMIT = 16 }; /* of folded variadic operators */

static cleave_status_t fail_broadcast(const cleave_infer_t *infer, int32_t a_rank, const cleave_dim_t *a,
                                      const cleave_fact_t *b, cleave_error_t *error) {
  cleave_text_t left = {0};
  cleave_text_t right = {0};
  cleave_shape_print(infer->dims, a_rank, a, &left);
  cleave_shape_print(infer->dims, b->rank, b->dims, &right);
  cleave_status_t status = cleave_infer_fail(infer, error, "shapes %s and %s do not broadcast",
                                             cleave_text_get(&left), cleave_text_get(&right));
  cleave_text_deinit(&left);
  cleave_text_deinit(&right);
  return status;
}

/* Broadcast of all operands whose rank is known; *out_rank -1 if there is none. */
static cleave_status_t broadcast_known(const cleave_infer_t *infer, cleave_fact_t *const *operands,
                                       uint32_t count, int32_t *out_rank, cleave_dim_t *out,
                                       uint32_t *out_unknown, cleave_error_t *error) {
  *out_rank = -1;
  *out_unknown = 0;
  for (uint32_t k = 0; k < count; k++) {
    const cleave_fact_t *operand = operands[k];
    if (operand == NULL) {
      continue;
    }
    if (operand->rank < 0) {
      (*out_unknown)++;
    } else if (*out_rank < 0) {
      *out_rank = operand->rank;
      for (int32_t d = 0; d < operand->rank; d++) {
        out[d] = operand->dims[d];
      }
    } else {
      int32_t rank = cleave_shape_broadcast(*out_rank, out, operand->rank, operand->dims, out);
      if (rank < 0) {
        return fail_broadcast(infer, *out_rank, out, operand, error);
      }
      *out_rank = rank;
    }
  }
  return CLEAVE_OK;
}

/* Dims of operands that only the output tells: if the output has 1, all have; if all others have 1,
 * this one has what the output has. */
static cleave_status_t state_backwards(cleave_infer_t *infer, cleave_fact_t *const *operands, uint32_t count,
                                       const cleave_fact_t *output, cleave_error_t *error) {
  for (int32_t axis = 0; axis < output->rank; axis++) {
    cleave_dim_t dim = output->dims[axis];
    uint32_t open_count = 0; /* operands that are not 1 there */
    cleave_fact_t *open = NULL;
    for (uint32_t k = 0; k < count; k++) {
      int32_t own = axis - (output->rank - cleave_fact_rank(operands[k]));
      if (operands[k] != NULL && own >= 0 && operands[k]->dims[own] != 1) {
        open_count++;
        open = operands[k];
        if (dim == 1) {
          CLEAVE_TRY(cleave_infer_set_dim(infer, operands[k], own, 1, error));
        }
      }
    }
    if (open_count == 1) {
      CLEAVE_TRY(cleave_infer_set_dim(infer, open, axis - (output->rank - open->rank), dim, error));
    }
  }
  return CLEAVE_OK;
}

/* One open operand takes the reference shape: all of it, or if the rank agrees, the dims it lacks. */
static cleave_status_t assume_operand(cleave_infer_t *infer, cleave_fact_t *operand, int32_t rank,
                                      const cleave_dim_t *dims, cleave_error_t *error) {
  if (operand->rank < 0) {
    infer->wants_assumption = true;
    return infer->assume_equal ? cleave_infer_set_shape(infer, operand, rank, dims, error) : CLEAVE_OK;
  }
  for (int32_t d = 0; operand->rank == rank && d < rank; d++) {
    if (operand->dims[d] == CLEAVE_DIM_UNKNOWN && dims[d] != CLEAVE_DIM_UNKNOWN) {
      infer->wants_assumption = true;
      if (infer->assume_equal) {
        CLEAVE_TRY(cleave_infer_set_dim(infer, operand, d, dims[d], error));
      }
    }
  }
  return CLEAVE_OK;
}

/* Operands that are open take the shape of the output, or of the operands that are known. */
static cleave_status_t assume_equal(cleave_infer_t *infer, cleave_fact_t *const *operands, uint32_t count,
                                    const cleave_fact_t *output, int32_t known_rank,
                                    const cleave_dim_t *known, cleave_error_t *error) {
  int32_t rank = cleave_fact_rank(output) >= 0 ? output->rank : known_rank;
  const cleave_dim_t *dims = cleave_fact_rank(output) >= 0 ? output->dims : known;
  for (uint32_t k = 0; rank >= 0 && k < count; k++) {
    if (operands[k] != NULL) {
      CLEAVE_TRY(assume_operand(infer, operands[k], rank, dims, error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_broadcast(cleave_infer_t *infer, cleave_fact_t *const *operands,
                                       uint32_t operand_count, cleave_fact_t *output, cleave_error_t *error) {
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = -1;
  uint32_t unknown = 0;
  CLEAVE_TRY(broadcast_known(infer, operands, operand_count, &rank, dims, &unknown, error));
  CLEAVE_TRY(assume_equal(infer, operands, operand_count, output, rank, dims, error));
  if (infer->assume_equal) {
    CLEAVE_TRY(broadcast_known(infer, operands, operand_count, &rank, dims, &unknown, error));
  }
  if (unknown > 0 || rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_set_shape(infer, output, rank, dims, error));
  return output != NULL ? state_backwards(infer, operands, operand_count, output, error) : CLEAVE_OK;
}

/* ---- elements ---- */

/* Row-major place in `operand` of the element at `place` of a result with these dims. */
static int64_t operand_place(const cleave_fact_t *operand, int32_t rank, const cleave_dim_t *dims,
                             int64_t place) {
  int64_t result = 0;
  int64_t stride = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    int64_t index = place % dims[d];
    int32_t own = d - (rank - operand->rank);
    place /= dims[d];
    if (own >= 0) {
      result += operand->dims[own] == 1 ? 0 : index * stride;
      stride *= operand->dims[own];
    }
  }
  return result;
}

cleave_status_t cleave_infer_fold_pointwise(cleave_infer_t *infer, cleave_fact_t *const *operands,
                                            uint32_t count, cleave_fact_t *output, cleave_error_t *error) {
  int64_t total = cleave_fact_count(output);
  if (count == 0 || count > OPERAND_LIMIT || total < 0 || total > CLEAVE_ELEMENT_LIMIT) {
    return CLEAVE_OK;
  }
  const cleave_element_t *elements[OPERAND_LIMIT] = {NULL};
  for (uint32_t k = 0; k < count; k++) {
    elements[k] = cleave_infer_elements(infer, operands[k]);
    if (elements[k] == NULL) {
      return CLEAVE_OK;
    }
  }
  cleave_element_t results[CLEAVE_ELEMENT_LIMIT];
  cleave_dtype_t dtype = cleave_fact_dtype(operands[count - 1]);
  for (int64_t place = 0; place < total; place++) {
    cleave_element_t row[OPERAND_LIMIT];
    for (uint32_t k = 0; k < count; k++) {
      row[k] = elements[k][operand_place(operands[k], output->rank, output->dims, place)];
    }
    results[place] = cleave_element_apply(infer, dtype, row, count);
  }
  return cleave_infer_set_elements(infer, output, results, total, error);
}

cleave_status_t cleave_infer_fold_copy(cleave_infer_t *infer, cleave_fact_t *input, cleave_fact_t *output,
                                       cleave_error_t *error) {
  const cleave_element_t *elements = cleave_infer_elements(infer, input);
  return elements == NULL
             ? CLEAVE_OK
             : cleave_infer_set_elements(infer, output, elements, cleave_fact_count(input), error);
}

bool cleave_infer_can_fold(cleave_infer_t *infer, cleave_fact_t *input, const cleave_fact_t *output) {
  int64_t count = cleave_fact_count(output);
  return count >= 0 && count <= CLEAVE_ELEMENT_LIMIT && cleave_infer_elements(infer, input) != NULL;
}

void cleave_infer_unravel(int64_t place, int32_t rank, const cleave_dim_t *dims, int64_t *coordinates) {
  for (int32_t d = rank - 1; d >= 0; d--) {
    coordinates[d] = place % dims[d];
    place /= dims[d];
  }
}

int64_t cleave_infer_ravel(int32_t rank, const cleave_dim_t *dims, const int64_t *coordinates) {
  int64_t place = 0;
  for (int32_t d = 0; d < rank; d++) {
    place = place * dims[d] + coordinates[d];
  }
  return place;
}

cleave_status_t cleave_infer_fold_places(cleave_infer_t *infer, cleave_fact_t *input, cleave_fact_t *output,
                                         const int64_t *places, int64_t count, cleave_error_t *error) {
  const cleave_element_t *elements = cleave_infer_elements(infer, input);
  cleave_element_t results[CLEAVE_ELEMENT_LIMIT];
  if (elements == NULL || count > CLEAVE_ELEMENT_LIMIT) {
    return CLEAVE_OK;
  }
  for (int64_t k = 0; k < count; k++) {
    results[k] = elements[places[k]];
  }
  return cleave_infer_set_elements(infer, output, results, count, error);
}

cleave_status_t cleave_infer_fold_from(cleave_infer_t *infer, cleave_fact_t *input, cleave_fact_t *output,
                                       cleave_infer_source_fn_t source, const void *context,
                                       cleave_error_t *error) {
  int64_t places[CLEAVE_ELEMENT_LIMIT];
  int64_t count = cleave_infer_can_fold(infer, input, output) ? cleave_fact_count(output) : -1;
  for (int64_t k = 0; k < count; k++) {
    int64_t at[CLEAVE_MAX_RANK];
    cleave_infer_unravel(k, output->rank, output->dims, at);
    if (!source(context, at)) {
      return CLEAVE_OK;
    }
    places[k] = cleave_infer_ravel(input->rank, input->dims, at);
  }
  return count < 0 ? CLEAVE_OK : cleave_infer_fold_places(infer, input, output, places, count, error);
}
