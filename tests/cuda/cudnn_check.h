// SPDX-License-Identifier: Apache-2.0
/* The real cuDNN, asked by the stand-in whether it takes a description, too: that needs no GPU. */
#ifndef CLEAVE_TESTS_CUDNN_CHECK_H
#define CLEAVE_TESTS_CUDNN_CHECK_H

#include "cudnn.h"

/* As the stand-in was given it. */
typedef struct dnn_window {
  const struct cudnnTensorStruct *x;
  const struct cudnnTensorStruct *y;
  const struct cudnnFilterStruct *w; /* NULL: a pooling */
  int rank;                          /* of the places */
  const int *sizes;                  /* of a pooling's window */
  const int *pads;
  const int *strides;
  const int *dilations; /* of a convolution */
  int32_t mode;         /* of a pooling */
  int32_t math;         /* of a convolution */
  int groups;
} dnn_window_t;

/* Describes tensors and window to the library whose path is CLEAVE_CUDNN_REAL: false, with the reason on
 * stderr, if it refuses something or computes another size of y. True without such a path. */
bool dnn_check(const dnn_window_t *window);

#endif /* CLEAVE_TESTS_CUDNN_CHECK_H */
