// SPDX-License-Identifier: Apache-2.0
/* The comparison of tensors with a tolerance of any form. */
#ifndef CLEAVE_TENSOR_COMPARE_H
#define CLEAVE_TENSOR_COMPARE_H

#include "tensor/tensor.h"

/* How far a number may be off that is expected to be `expected`. */
typedef double (*cleave_tolerance_of_t)(const void *context, double expected);

/* cleave_tensor_compare (tensor/tensor.h), whose tolerance is atol + rtol * |expected|, with another
 * tolerance. */
void cleave_tensor_compare_by(const cleave_tensor_t *actual, const cleave_tensor_t *expected,
                              cleave_tolerance_of_t tolerance_of, const void *context,
                              cleave_difference_t *out_difference);

#endif /* CLEAVE_TENSOR_COMPARE_H */
