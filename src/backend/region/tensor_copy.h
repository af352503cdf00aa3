// SPDX-License-Identifier: Apache-2.0
/* Tensors that libraries hand to cleave. */
#ifndef CLEAVE_BACKEND_REGION_TENSOR_COPY_H
#define CLEAVE_BACKEND_REGION_TENSOR_COPY_H

#include "tensor/tensor.h"

/* A copy of a dense tensor in host memory, with a version of its own. CLEAVE_ERROR_INVALID_ARGUMENT says what
 * is wrong with the view; CLEAVE_ERROR_LIMIT if it has more than `most_bytes`. */
CLEAVE_STATUS cleave_tensor_copy_view(const cleave_tensor_view_t *view, size_t most_bytes,
                                      cleave_tensor_t **out_tensor, cleave_error_t *error);

#endif /* CLEAVE_BACKEND_REGION_TENSOR_COPY_H */
