// SPDX-License-Identifier: Apache-2.0
// Operands of products and convolutions in tests, and what may follow them, in double.
#ifndef CLEAVE_TESTS_FLOATS_CASE_H
#define CLEAVE_TESTS_FLOATS_CASE_H

#include "kernels/matrix/wide.h"

/* Multiples of 1/1000 between -2 and 2, by rand(); the caller frees them. */
float *floats_case_random(int64_t count);

/* Channels up to the end of the last panel of KERNEL_WIDE_PANEL. */
int64_t floats_case_whole_panels(int64_t channels);

double floats_case_activate(const kernel_activation_t *activation, double value);

#endif /* CLEAVE_TESTS_FLOATS_CASE_H */
