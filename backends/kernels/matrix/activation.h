// SPDX-License-Identifier: Apache-2.0
/* The kernels for AVX-512 apply this to a result before it is stored. */
#ifndef CLEAVE_KERNELS_ACTIVATION_H
#define CLEAVE_KERNELS_ACTIVATION_H

#include <stdbool.h>

typedef enum kernel_activation_kind {
  KERNEL_BOUNDS,  /* min(max(v, low), high); a NaN stays */
  KERNEL_SWISH,   /* v / (1 + exp(-alpha v)) */
  KERNEL_GATE,    /* v min(max(alpha v + beta, 0), 1): hard swish */
  KERNEL_SIGMOID, /* 1 / (1 + exp(-alpha v)) */
} kernel_activation_kind_t;

typedef struct kernel_activation {
  kernel_activation_kind_t kind;
  float low; /* -INFINITY and INFINITY: no bounds, as with the other kinds */
  float high;
  float alpha;
  float beta;
} kernel_activation_t;

#endif /* CLEAVE_KERNELS_ACTIVATION_H */
