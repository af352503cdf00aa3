// SPDX-License-Identifier: Apache-2.0
// Checks of index tensors, and positions in row-major order.
#include "cpu/common/index.h"

static cleave_status_t refuse(int64_t place, int64_t index, int64_t dim, cleave_message_t *message) {
  return kernel_fail(message, CLEAVE_ERROR_SHAPE, "index %lld at element %lld is outside a dim of %lld",
                     (long long)index, (long long)place, (long long)dim);
}

cleave_status_t cpu_check_indices(const cpu_tensor_t *indices, int64_t dim, cleave_message_t *message) {
  for (int64_t k = 0; k < indices->count; k++) {
    int64_t index = cpu_read_index(indices, k);
    if (index < -dim || index >= dim) {
      return refuse(k, index, dim, message);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_check_tuples(const cpu_tensor_t *indices, int64_t depth, const int64_t *dims,
                                 cleave_message_t *message) {
  for (int64_t k = 0; k < indices->count; k++) {
    int64_t index = cpu_read_index(indices, k);
    int64_t dim = dims[k % depth];
    if (index < -dim || index >= dim) {
      return refuse(k, index, dim, message);
    }
  }
  return CLEAVE_OK;
}

void cpu_decode_index(int64_t flat, int32_t rank, const int64_t *dims, int64_t *out_index) {
  for (int32_t d = rank - 1; d >= 0; d--) {
    out_index[d] = flat % dims[d];
    flat /= dims[d];
  }
}
