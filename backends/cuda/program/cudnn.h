// SPDX-License-Identifier: Apache-2.0
/* The files for steps of cuDNN share this. */
#ifndef CLEAVE_CUDA_PROGRAM_CUDNN_H
#define CLEAVE_CUDA_PROGRAM_CUDNN_H

#include "program.h"

/* Numbers that cuDNN is called with: 1 and 0, as wide as the dtype wants them. */
typedef struct cuda_dnn_scalars {
  const void *one;
  const void *zero;
} cuda_dnn_scalars_t;

static inline cuda_dnn_scalars_t cuda_dnn_scalars(cleave_dtype_t dtype) {
  static const float narrow[2] = {1.0f, 0.0f};
  static const double wide[2] = {1.0, 0.0};
  bool is_double = dtype == CLEAVE_DTYPE_F64;
  return (cuda_dnn_scalars_t){is_double ? (const void *)&wide[0] : (const void *)&narrow[0],
                              is_double ? (const void *)&wide[1] : (const void *)&narrow[1]};
}

/* ---- convolution.c ---- */

/* The arithmetic that a convolution may be computed in: CUDA_DNN_MATH_... */
int32_t cuda_dnn_math(const cuda_convolution_t *convolution);

/* Its algorithm, when it is described: sets the choice of the step and the size of its workspace. */
CLEAVE_MUST_USE cleave_status_t cuda_dnn_choose(cuda_program_t *program, uint32_t step,
                                                cuda_dnn_handle_t handle, cleave_message_t *message);
/* On the handle's stream; `at` are the step's addresses. Gives cuDNN's status. */
int32_t cuda_dnn_convolve(const cuda_dnn_t *dnn, cuda_dnn_handle_t handle,
                          const cuda_convolution_t *convolution, const cuda_ready_t *ready, void *const *at);

#endif /* CLEAVE_CUDA_PROGRAM_CUDNN_H */
