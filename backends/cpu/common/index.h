// SPDX-License-Identifier: Apache-2.0
/*
 * Index tensors and positions. Indices count from the end if they are negative; outside [-dim, dim) they
 * are an error that is found before anything is read or written.
 */
#ifndef CLEAVE_CPU_INDEX_H
#define CLEAVE_CPU_INDEX_H

#include "cpu/common/kernel.h"

/* Element of an index tensor, quick for the two dtypes that ONNX allows. */
static inline int64_t cpu_read_index(const cpu_tensor_t *indices, int64_t k) {
  return indices->dtype == CLEAVE_DTYPE_I64   ? ((const int64_t *)indices->data)[k]
         : indices->dtype == CLEAVE_DTYPE_I32 ? ((const int32_t *)indices->data)[k]
                                              : cpu_read_int(indices, k);
}

static inline int64_t cpu_wrap_index(int64_t index, int64_t dim) {
  return index < 0 ? index + dim : index;
}

/* Every index lies in [-dim, dim). */
CLEAVE_MUST_USE cleave_status_t cpu_check_indices(const cpu_tensor_t *indices, int64_t dim,
                                                  cleave_message_t *message);

/* Indices in tuples of `depth`: entry d of each lies in [-dims[d], dims[d]). */
CLEAVE_MUST_USE cleave_status_t cpu_check_tuples(const cpu_tensor_t *indices, int64_t depth,
                                                 const int64_t *dims, cleave_message_t *message);

/* The position of element `flat` in row-major order. No dim may be 0. */
void cpu_decode_index(int64_t flat, int32_t rank, const int64_t *dims, int64_t *out_index);

/* Advances to the next position in row-major order. */
static inline void cpu_next_index(int32_t rank, const int64_t *dims, int64_t *index) {
  for (int32_t d = rank - 1; d >= 0; d--) {
    if (++index[d] < dims[d]) {
      return;
    }
    index[d] = 0;
  }
}

#endif /* CLEAVE_CPU_INDEX_H */
