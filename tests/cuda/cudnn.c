// SPDX-License-Identifier: Apache-2.0
// A stand-in for the part of libcudnn that the backend calls, for tests: convolutions as plain loops.
#include <stdlib.h>
#include <string.h>

#include "cuda/library/cudnn.h"
#include "kernels/convert.h"
#include "stand_in.h"

enum { OK = 0, BAD = 2000, ALLOCATION = 2003, EXECUTION = 5000, MAX_RANK = 8, WORKSPACE_BYTES = 4096 };

struct cudnnContext {
  cuda_stream_t stream;
};

struct cudnnTensorStruct {
  int32_t type;
  int rank;
  int dims[MAX_RANK];
  int strides[MAX_RANK];
};

struct cudnnFilterStruct {
  int32_t type;
  int rank;
  int dims[MAX_RANK];
};

struct cudnnConvolutionStruct {
  int rank;
  int pads[MAX_RANK];
  int strides[MAX_RANK];
  int dilations[MAX_RANK];
  int groups;
};

#define ENTRY(result, name, ...)            \
  STAND_IN_EXPORT result name(__VA_ARGS__); \
  result name(__VA_ARGS__)

#define CREATE_DESTROY(create, destroy, type)          \
  ENTRY(int32_t, create, type *out) {                  \
    *out = calloc(1, sizeof **out);                    \
    return *out == NULL ? ALLOCATION : fault(#create); \
  }                                                    \
  ENTRY(int32_t, destroy, type self) {                 \
    free(self);                                        \
    return OK;                                         \
  }

static int32_t fault(const char *name) {
  return stand_in_leave(stand_in_enter(name)) == CUDA_SUCCESS_ ? OK : EXECUTION;
}

CREATE_DESTROY(cudnnCreate, cudnnDestroy, cuda_dnn_handle_t)
CREATE_DESTROY(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, cuda_dnn_tensor_t)
CREATE_DESTROY(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor, cuda_dnn_filter_t)
CREATE_DESTROY(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor, cuda_dnn_convolution_t)

ENTRY(size_t, cudnnGetVersion, void) {
  return 91400;
}

ENTRY(const char *, cudnnGetErrorString, int32_t status) {
  return status == OK ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_BAD_PARAM";
}

ENTRY(int32_t, cudnnSetStream, cuda_dnn_handle_t handle, cuda_stream_t stream) {
  handle->stream = stream;
  return fault("cudnnSetStream");
}

ENTRY(int32_t, cudnnSetTensorNdDescriptor, cuda_dnn_tensor_t tensor, int32_t type, int rank, const int *dims,
      const int *strides) {
  if (rank < 4 || rank > MAX_RANK) { /* as the real one */
    return BAD;
  }
  tensor->type = type;
  tensor->rank = rank;
  memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
  memcpy(tensor->strides, strides, (size_t)rank * sizeof *strides);
  return OK;
}

ENTRY(int32_t, cudnnSetFilterNdDescriptor, cuda_dnn_filter_t filter, int32_t type, int32_t format, int rank,
      const int *dims) {
  if (rank < 4 || rank > MAX_RANK || format != CUDA_DNN_ROW_MAJOR) {
    return BAD;
  }
  filter->type = type;
  filter->rank = rank;
  memcpy(filter->dims, dims, (size_t)rank * sizeof *dims);
  return OK;
}

ENTRY(int32_t, cudnnSetConvolutionNdDescriptor, cuda_dnn_convolution_t convolution, int rank, const int *pads,
      const int *strides, const int *dilations, int32_t mode, int32_t type) {
  (void)type;
  if (rank < 2 || rank > MAX_RANK - 2 || mode != CUDA_DNN_CROSS_CORRELATION) {
    return BAD;
  }
  convolution->rank = rank;
  convolution->groups = 1;
  memcpy(convolution->pads, pads, (size_t)rank * sizeof *pads);
  memcpy(convolution->strides, strides, (size_t)rank * sizeof *strides);
  memcpy(convolution->dilations, dilations, (size_t)rank * sizeof *dilations);
  return OK;
}

ENTRY(int32_t, cudnnSetConvolutionMathType, cuda_dnn_convolution_t convolution, int32_t math) {
  (void)convolution;
  return math >= 0 && math <= CUDA_DNN_MATH_FMA ? OK : BAD;
}

ENTRY(int32_t, cudnnSetConvolutionGroupCount, cuda_dnn_convolution_t convolution, int groups) {
  convolution->groups = groups;
  return groups > 0 ? OK : BAD;
}

/* ---- convolutions ---- */

typedef struct task {
  struct cudnnTensorStruct x, y;
  struct cudnnFilterStruct w;
  struct cudnnConvolutionStruct convolution;
  const void *x_data;
  const void *w_data;
  void *y_data;
  double *x_wide; /* the elements, while it runs */
  double *w_wide;
} task_t;

static bool is_sound(const task_t *task) {
  const struct cudnnConvolutionStruct *own = &task->convolution;
  bool is_sound = task->x.rank == own->rank + 2 && task->y.rank == task->x.rank &&
                  task->w.rank == task->x.rank && task->x.type == task->y.type &&
                  task->x.type == task->w.type && task->x.dims[0] == task->y.dims[0] &&
                  task->x.dims[1] == task->w.dims[1] * own->groups && task->y.dims[1] == task->w.dims[0] &&
                  task->w.dims[0] % own->groups == 0;
  for (int k = 0; is_sound && k < own->rank; k++) {
    int reach = own->dilations[k] * (task->w.dims[k + 2] - 1) + 1;
    is_sound = task->y.dims[k + 2] == (task->x.dims[k + 2] + 2 * own->pads[k] - reach) / own->strides[k] + 1;
  }
  return is_sound;
}

static cleave_dtype_t dtype_of(int32_t type) {
  return type == CUDA_DNN_F64    ? CLEAVE_DTYPE_F64
         : type == CUDA_DNN_F16  ? CLEAVE_DTYPE_F16
         : type == CUDA_DNN_BF16 ? CLEAVE_DTYPE_BF16
                                 : CLEAVE_DTYPE_F32;
}

static int64_t product(const int *sizes, int count) {
  int64_t result = 1;
  for (int k = 0; k < count; k++) {
    result *= sizes[k];
  }
  return result;
}

/* One element of the result; `at` are its coordinates. */
static double convolve_at(const task_t *task, const int *at) {
  const struct cudnnConvolutionStruct *own = &task->convolution;
  int64_t taps = product(task->w.dims + 2, own->rank);
  int per_group = task->w.dims[1];
  int first = at[1] / (task->w.dims[0] / own->groups) * per_group;
  double sum = 0;
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t rest = tap;
    int64_t offset = (int64_t)at[0] * task->x.strides[0];
    bool is_inside = true;
    for (int k = own->rank - 1; k >= 0; k--) {
      int64_t place =
          at[k + 2] * own->strides[k] - own->pads[k] + rest % task->w.dims[k + 2] * own->dilations[k];
      rest /= task->w.dims[k + 2];
      is_inside = is_inside && place >= 0 && place < task->x.dims[k + 2];
      offset += place * task->x.strides[k + 2];
    }
    for (int c = 0; is_inside && c < per_group; c++) {
      sum += task->x_wide[offset + (int64_t)(first + c) * task->x.strides[1]] *
             task->w_wide[((int64_t)at[1] * per_group + c) * taps + tap];
    }
  }
  return sum;
}

/* The tensors that the backend describes are dense. */
static double *widen(int32_t type, const void *data, const int *dims, int rank) {
  int64_t count = product(dims, rank);
  double *wide = malloc((size_t)(count + 1) * sizeof *wide);
  if (wide != NULL) {
    cpu_convert(dtype_of(type), data, CLEAVE_DTYPE_F64, wide, count);
  }
  return wide;
}

static void convolve(const task_t *task) {
  int64_t count = product(task->y.dims, task->y.rank);
  cleave_dtype_t dtype = dtype_of(task->y.type);
  for (int64_t i = 0; i < count; i++) {
    int at[MAX_RANK];
    int64_t rest = i;
    int64_t offset = 0;
    for (int k = task->y.rank - 1; k >= 0; k--) {
      at[k] = (int)(rest % task->y.dims[k]);
      rest /= task->y.dims[k];
      offset += (int64_t)at[k] * task->y.strides[k];
    }
    double value = convolve_at(task, at);
    cpu_convert(CLEAVE_DTYPE_F64, &value, dtype,
                (char *)task->y_data + offset * (int64_t)cleave_dtype_size(dtype), 1);
  }
}

static int32_t run_convolution(void *context) {
  task_t *task = context;
  task->x_wide = widen(task->x.type, task->x_data, task->x.dims, task->x.rank);
  task->w_wide = widen(task->w.type, task->w_data, task->w.dims, task->w.rank);
  bool has_memory = task->x_wide != NULL && task->w_wide != NULL;
  if (has_memory) {
    convolve(task);
  }
  free(task->x_wide);
  free(task->w_wide);
  return has_memory ? CUDA_SUCCESS_ : CUDA_LAUNCH_FAILED;
}

ENTRY(int32_t, cudnnGetConvolutionForwardAlgorithm_v7, cuda_dnn_handle_t handle, cuda_dnn_tensor_t x,
      cuda_dnn_filter_t w, cuda_dnn_convolution_t convolution, cuda_dnn_tensor_t y, int wanted, int *count,
      cuda_dnn_choice_t *choices) {
  const task_t task = {.x = *x, .y = *y, .w = *w, .convolution = *convolution};
  int32_t result = fault("cudnnGetConvolutionForwardAlgorithm_v7");
  (void)handle;
  *count = 0;
  if (result != OK || !is_sound(&task)) {
    return result != OK ? result : BAD;
  }
  for (int k = 0; k < wanted && k < 2; k++) {
    choices[(*count)++] = (cuda_dnn_choice_t){.algorithm = k, .memory = (size_t)k * WORKSPACE_BYTES};
  }
  return OK;
}

ENTRY(int32_t, cudnnGetConvolutionForwardWorkspaceSize, cuda_dnn_handle_t handle, cuda_dnn_tensor_t x,
      cuda_dnn_filter_t w, cuda_dnn_convolution_t convolution, cuda_dnn_tensor_t y, int32_t algorithm,
      size_t *bytes) {
  (void)handle;
  (void)x;
  (void)w;
  (void)convolution;
  (void)y;
  *bytes = (size_t)algorithm * WORKSPACE_BYTES;
  return OK;
}

ENTRY(int32_t, cudnnConvolutionForward, cuda_dnn_handle_t handle, const void *alpha, cuda_dnn_tensor_t x_type,
      const void *x, cuda_dnn_filter_t w_type, const void *w, cuda_dnn_convolution_t convolution,
      int32_t algorithm, void *workspace, size_t workspace_bytes, const void *beta, cuda_dnn_tensor_t y_type,
      void *y) {
  int32_t result = stand_in_enter("cudnnConvolutionForward");
  if (result != CUDA_SUCCESS_) {
    (void)stand_in_leave(result);
    return EXECUTION;
  }
  size_t needed = (size_t)algorithm * WORKSPACE_BYTES;
  task_t *task = malloc(sizeof *task);
  if (task == NULL) {
    return stand_in_leave(ALLOCATION);
  }
  *task = (task_t){.x = *x_type,
                   .y = *y_type,
                   .w = *w_type,
                   .convolution = *convolution,
                   .x_data = x,
                   .w_data = w,
                   .y_data = y};
  bool is_double = x_type->type == CUDA_DNN_F64;
  double one = is_double ? *(const double *)alpha : (double)*(const float *)alpha;
  double zero = is_double ? *(const double *)beta : (double)*(const float *)beta;
  if (!is_sound(task) || workspace_bytes < needed || (needed > 0 && workspace == NULL) || one != 1.0 ||
      zero != 0.0) {
    free(task);
    return stand_in_leave(BAD);
  }
  result = stand_in_enqueue(handle->stream, run_convolution, task);
  return stand_in_leave(result == CUDA_SUCCESS_ ? OK : EXECUTION);
}
