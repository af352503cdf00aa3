// SPDX-License-Identifier: Apache-2.0
#include "floats_case.h"

#include <math.h>
#include <stdlib.h>

#include "unit.h"

float *floats_case_random(int64_t count) {
  float *data = malloc((size_t)count * sizeof(float));
  ck_assert_ptr_nonnull(data);
  for (int64_t i = 0; i < count; i++) {
    data[i] = (float)(rand() % 4001 - 2000) / 1000.0F;
  }
  return data;
}

int64_t floats_case_whole_panels(int64_t channels) {
  return (channels + KERNEL_WIDE_PANEL - 1) / KERNEL_WIDE_PANEL * KERNEL_WIDE_PANEL;
}

double floats_case_activate(const kernel_activation_t *activation, double value) {
  const kernel_activation_t *a = activation;
  switch (a->kind) {
    case KERNEL_SWISH: return value / (1 + exp(-(double)a->alpha * value));
    case KERNEL_GATE: return value * fmin(fmax((double)a->alpha * value + (double)a->beta, 0), 1);
    case KERNEL_SIGMOID: return 1 / (1 + exp(-(double)a->alpha * value));
    case KERNEL_BOUNDS: break;
  }
  return fmin(fmax(value, (double)a->low), (double)a->high);
}
