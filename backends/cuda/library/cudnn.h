// SPDX-License-Identifier: Apache-2.0
/* The entry points of cuDNN 8 and 9 that are called: convolutions, also with what follows them, and gradients
 * of these, of average poolings and of batch normalization. */
#ifndef CLEAVE_CUDA_CUDNN_H
#define CLEAVE_CUDA_CUDNN_H

#include <stddef.h>
#include <stdint.h>

#include "driver.h"

typedef struct cudnnContext *cuda_dnn_handle_t;
typedef struct cudnnTensorStruct *cuda_dnn_tensor_t;
typedef struct cudnnFilterStruct *cuda_dnn_filter_t;
typedef struct cudnnConvolutionStruct *cuda_dnn_convolution_t;
typedef struct cudnnPoolingStruct *cuda_dnn_pooling_t;
typedef struct cudnnActivationStruct *cuda_dnn_activation_t;

enum { CUDA_DNN_F32 = 0, CUDA_DNN_F64 = 1, CUDA_DNN_F16 = 2, CUDA_DNN_BF16 = 9 };
enum { CUDA_DNN_ROW_MAJOR = 0, CUDA_DNN_CHANNELS_LAST = 1 };
enum { CUDA_DNN_CROSS_CORRELATION = 1 };
enum { CUDA_DNN_AVERAGE_OF_WINDOW = 1, CUDA_DNN_AVERAGE_OF_INSIDE = 2 }; /* with the border, and without */
enum { CUDA_DNN_RELU = 1, CUDA_DNN_IDENTITY = 5 };
enum { CUDA_DNN_IMPLICIT_PRECOMP_GEMM = 1 }; /* the only algorithm that has CUDA_DNN_IDENTITY */
enum { CUDA_DNN_PROPAGATE_NAN = 1 };
enum { CUDA_DNN_SPATIAL = 1 }; /* statistics of channels, over images and places */
enum {
  CUDA_DNN_MATH_DEFAULT = 0,
  CUDA_DNN_MATH_TENSOR = 1,
  CUDA_DNN_MATH_CONVERSION = 2, /* may round float32 to 16 bits */
  CUDA_DNN_MATH_FMA = 3
};

/* All directions of a convolution have the same struct. */
typedef struct cuda_dnn_choice {
  int32_t algorithm;
  int32_t status;
  float time;
  size_t memory;
  int32_t is_deterministic;
  int32_t math;
  int32_t reserved[3];
} cuda_dnn_choice_t;

/* X(result, member, symbol, parameters) */
#define CUDA_DNN_ENTRIES(X)                                                                                  \
  X(size_t, version, cudnnGetVersion, (void))                                                                \
  X(const char *, error_string, cudnnGetErrorString, (int32_t status))                                       \
  X(int32_t, create, cudnnCreate, (cuda_dnn_handle_t * handle))                                              \
  X(int32_t, destroy, cudnnDestroy, (cuda_dnn_handle_t handle))                                              \
  X(int32_t, set_stream, cudnnSetStream, (cuda_dnn_handle_t handle, cuda_stream_t stream))                   \
  X(int32_t, tensor_create, cudnnCreateTensorDescriptor, (cuda_dnn_tensor_t * tensor))                       \
  X(int32_t, tensor_set, cudnnSetTensorNdDescriptor,                                                         \
    (cuda_dnn_tensor_t tensor, int32_t type, int rank, const int *dims, const int *strides))                 \
  X(int32_t, tensor_destroy, cudnnDestroyTensorDescriptor, (cuda_dnn_tensor_t tensor))                       \
  X(int32_t, filter_create, cudnnCreateFilterDescriptor, (cuda_dnn_filter_t * filter))                       \
  X(int32_t, filter_set, cudnnSetFilterNdDescriptor,                                                         \
    (cuda_dnn_filter_t filter, int32_t type, int32_t format, int rank, const int *dims))                     \
  X(int32_t, filter_destroy, cudnnDestroyFilterDescriptor, (cuda_dnn_filter_t filter))                       \
  X(int32_t, convolution_create, cudnnCreateConvolutionDescriptor, (cuda_dnn_convolution_t * convolution))   \
  X(int32_t, convolution_set, cudnnSetConvolutionNdDescriptor,                                               \
    (cuda_dnn_convolution_t convolution, int rank, const int *pads, const int *strides,                      \
     const int *dilations, int32_t mode, int32_t type))                                                      \
  X(int32_t, convolution_set_math, cudnnSetConvolutionMathType,                                              \
    (cuda_dnn_convolution_t convolution, int32_t math))                                                      \
  X(int32_t, convolution_set_groups, cudnnSetConvolutionGroupCount,                                          \
    (cuda_dnn_convolution_t convolution, int groups))                                                        \
  X(int32_t, convolution_destroy, cudnnDestroyConvolutionDescriptor, (cuda_dnn_convolution_t convolution))   \
  X(int32_t, choose, cudnnGetConvolutionForwardAlgorithm_v7,                                                 \
    (cuda_dnn_handle_t handle, cuda_dnn_tensor_t x, cuda_dnn_filter_t w, cuda_dnn_convolution_t convolution, \
     cuda_dnn_tensor_t y, int wanted, int *count, cuda_dnn_choice_t *choices))                               \
  X(int32_t, workspace, cudnnGetConvolutionForwardWorkspaceSize,                                             \
    (cuda_dnn_handle_t handle, cuda_dnn_tensor_t x, cuda_dnn_filter_t w, cuda_dnn_convolution_t convolution, \
     cuda_dnn_tensor_t y, int32_t algorithm, size_t * bytes))                                                \
  X(int32_t, convolve, cudnnConvolutionForward,                                                              \
    (cuda_dnn_handle_t handle, const void *alpha, cuda_dnn_tensor_t x_type, const void *x,                   \
     cuda_dnn_filter_t w_type, const void *w, cuda_dnn_convolution_t convolution, int32_t algorithm,         \
     void *workspace, size_t workspace_bytes, const void *beta, cuda_dnn_tensor_t y_type, void *y))          \
  X(int32_t, activation_create, cudnnCreateActivationDescriptor, (cuda_dnn_activation_t * activation))       \
  X(int32_t, activation_set, cudnnSetActivationDescriptor,                                                   \
    (cuda_dnn_activation_t activation, int32_t mode, int32_t nan, double bound))                             \
  X(int32_t, activation_destroy, cudnnDestroyActivationDescriptor, (cuda_dnn_activation_t activation))       \
  X(int32_t, convolve_whole, cudnnConvolutionBiasActivationForward,                                          \
    (cuda_dnn_handle_t handle, const void *alpha, cuda_dnn_tensor_t x_type, const void *x,                   \
     cuda_dnn_filter_t w_type, const void *w, cuda_dnn_convolution_t convolution, int32_t algorithm,         \
     void *workspace, size_t workspace_bytes, const void *residual_alpha, cuda_dnn_tensor_t residual_type,   \
     const void *residual, cuda_dnn_tensor_t bias_type, const void *bias, cuda_dnn_activation_t activation,  \
     cuda_dnn_tensor_t y_type, void *y))                                                                     \
  X(int32_t, choose_data, cudnnGetConvolutionBackwardDataAlgorithm_v7,                                       \
    (cuda_dnn_handle_t handle, cuda_dnn_filter_t w, cuda_dnn_tensor_t dy,                                    \
     cuda_dnn_convolution_t convolution, cuda_dnn_tensor_t dx, int wanted, int *count,                       \
     cuda_dnn_choice_t *choices))                                                                            \
  X(int32_t, workspace_data, cudnnGetConvolutionBackwardDataWorkspaceSize,                                   \
    (cuda_dnn_handle_t handle, cuda_dnn_filter_t w, cuda_dnn_tensor_t dy,                                    \
     cuda_dnn_convolution_t convolution, cuda_dnn_tensor_t dx, int32_t algorithm, size_t * bytes))           \
  X(int32_t, convolve_data, cudnnConvolutionBackwardData,                                                    \
    (cuda_dnn_handle_t handle, const void *alpha, cuda_dnn_filter_t w_type, const void *w,                   \
     cuda_dnn_tensor_t dy_type, const void *dy, cuda_dnn_convolution_t convolution, int32_t algorithm,       \
     void *workspace, size_t workspace_bytes, const void *beta, cuda_dnn_tensor_t dx_type, void *dx))        \
  X(int32_t, choose_weights, cudnnGetConvolutionBackwardFilterAlgorithm_v7,                                  \
    (cuda_dnn_handle_t handle, cuda_dnn_tensor_t x, cuda_dnn_tensor_t dy,                                    \
     cuda_dnn_convolution_t convolution, cuda_dnn_filter_t dw, int wanted, int *count,                       \
     cuda_dnn_choice_t *choices))                                                                            \
  X(int32_t, workspace_weights, cudnnGetConvolutionBackwardFilterWorkspaceSize,                              \
    (cuda_dnn_handle_t handle, cuda_dnn_tensor_t x, cuda_dnn_tensor_t dy,                                    \
     cuda_dnn_convolution_t convolution, cuda_dnn_filter_t dw, int32_t algorithm, size_t * bytes))           \
  X(int32_t, convolve_weights, cudnnConvolutionBackwardFilter,                                               \
    (cuda_dnn_handle_t handle, const void *alpha, cuda_dnn_tensor_t x_type, const void *x,                   \
     cuda_dnn_tensor_t dy_type, const void *dy, cuda_dnn_convolution_t convolution, int32_t algorithm,       \
     void *workspace, size_t workspace_bytes, const void *beta, cuda_dnn_filter_t dw_type, void *dw))        \
  X(int32_t, pooling_create, cudnnCreatePoolingDescriptor, (cuda_dnn_pooling_t * pooling))                   \
  X(int32_t, pooling_set, cudnnSetPoolingNdDescriptor,                                                       \
    (cuda_dnn_pooling_t pooling, int32_t mode, int32_t nan, int rank, const int *sizes, const int *pads,     \
     const int *strides))                                                                                    \
  X(int32_t, pooling_destroy, cudnnDestroyPoolingDescriptor, (cuda_dnn_pooling_t pooling))                   \
  X(int32_t, pool_back, cudnnPoolingBackward,                                                                \
    (cuda_dnn_handle_t handle, cuda_dnn_pooling_t pooling, const void *alpha, cuda_dnn_tensor_t y_type,      \
     const void *y, cuda_dnn_tensor_t dy_type, const void *dy, cuda_dnn_tensor_t x_type, const void *x,      \
     const void *beta, cuda_dnn_tensor_t dx_type, void *dx))                                                 \
  X(int32_t, norm_back, cudnnBatchNormalizationBackward,                                                     \
    (cuda_dnn_handle_t handle, int32_t mode, const void *alpha, const void *beta,                            \
     const void *parameter_alpha, const void *parameter_beta, cuda_dnn_tensor_t x_type, const void *x,       \
     cuda_dnn_tensor_t dy_type, const void *dy, cuda_dnn_tensor_t dx_type, void *dx,                         \
     cuda_dnn_tensor_t parameter_type, const void *scale, void *scale_gradient, void *shift_gradient,        \
     double epsilon, const void *mean, const void *inverse_deviation))

typedef struct cuda_dnn {
#define CUDA_ENTRY(result, member, symbol, parameters) result(*member) parameters;
  CUDA_DNN_ENTRIES(CUDA_ENTRY)
#undef CUDA_ENTRY
} cuda_dnn_t;

#endif /* CLEAVE_CUDA_CUDNN_H */
