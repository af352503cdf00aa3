// SPDX-License-Identifier: Apache-2.0
// A stand-in for the part of libcudnn that the backend calls, for tests: convolutions and their gradients as
// plain loops.
#include "cudnn.h"

#include <string.h>

#include "cudnn_check.h"
#include "kernels/convert.h"

/* Algorithm 0 adds up gradients in another order each time. */
enum { WORKSPACE_BYTES = 4096, ALGORITHMS = 3 };

struct cudnnActivationStruct {
  int32_t mode;
};

struct cudnnConvolutionStruct {
  int rank;
  int pads[MAX_RANK];
  int strides[MAX_RANK];
  int dilations[MAX_RANK];
  int groups;
  int32_t math;
};

int32_t dnn_fault(const char *name) {
  return stand_in_leave(stand_in_enter(name)) == CUDA_SUCCESS_ ? OK : EXECUTION;
}

CREATE_DESTROY(cudnnCreate, cudnnDestroy, cuda_dnn_handle_t)
CREATE_DESTROY(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, cuda_dnn_tensor_t)
CREATE_DESTROY(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor, cuda_dnn_filter_t)
CREATE_DESTROY(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor, cuda_dnn_activation_t)
CREATE_DESTROY(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor, cuda_dnn_convolution_t)

ENTRY(size_t, cudnnGetVersion, void) {
  return 91400;
}

ENTRY(const char *, cudnnGetErrorString, int32_t status) {
  return status == OK ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_BAD_PARAM";
}

ENTRY(int32_t, cudnnSetStream, cuda_dnn_handle_t handle, cuda_stream_t stream) {
  handle->stream = stream;
  return dnn_fault("cudnnSetStream");
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
  if (rank < 4 || rank > MAX_RANK || (format != CUDA_DNN_ROW_MAJOR && format != CUDA_DNN_CHANNELS_LAST)) {
    return BAD;
  }
  filter->type = type;
  filter->is_last = format == CUDA_DNN_CHANNELS_LAST;
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
  convolution->math = math;
  return math >= 0 && math <= CUDA_DNN_MATH_FMA ? dnn_fault("cudnnSetConvolutionMathType") : BAD;
}

ENTRY(int32_t, cudnnSetConvolutionGroupCount, cuda_dnn_convolution_t convolution, int groups) {
  convolution->groups = groups;
  return groups > 0 ? OK : BAD;
}

ENTRY(int32_t, cudnnSetActivationDescriptor, cuda_dnn_activation_t activation, int32_t mode, int32_t nan,
      double bound) {
  (void)bound;
  activation->mode = mode;
  return (mode == CUDA_DNN_RELU || mode == CUDA_DNN_IDENTITY) && nan == CUDA_DNN_PROPAGATE_NAN ? OK : BAD;
}

/* ---- convolutions ---- */

typedef enum direction { FORWARD, DATA, WEIGHTS } direction_t;

typedef struct task {
  direction_t direction;
  struct cudnnTensorStruct x, y;
  struct cudnnFilterStruct w;
  struct cudnnConvolutionStruct convolution;
  void *x_data;
  void *w_data;
  void *y_data;
  double *x_wide; /* the elements, while it runs */
  double *w_wide;
  double *y_wide;
  bool is_whole; /* y = activation(conv + residual + bias) */
  bool has_relu;
  const void *bias;
  const void *residual; /* or NULL */
  double milliseconds;
  bool is_unstable;
} task_t;

/* Channels come last in all tensors, or in none. */
static bool has_one_order(const task_t *task) {
  const struct cudnnTensorStruct *tensors[2] = {&task->x, &task->y};
  bool is_one = true;
  for (int k = 0; k < 2; k++) {
    const struct cudnnTensorStruct *tensor = tensors[k];
    int64_t places = dnn_product(tensor->dims + 2, tensor->rank - 2);
    is_one = is_one && tensor->strides[1] == (task->w.is_last ? 1 : places) &&
             tensor->strides[tensor->rank - 1] == (task->w.is_last ? tensor->dims[1] : 1);
  }
  return is_one;
}

static bool is_sound(const task_t *task) {
  const struct cudnnConvolutionStruct *own = &task->convolution;
  bool is_sound = task->x.rank == own->rank + 2 && task->y.rank == task->x.rank &&
                  task->w.rank == task->x.rank && task->x.type == task->y.type &&
                  task->x.type == task->w.type && task->x.dims[0] == task->y.dims[0] &&
                  task->x.dims[1] == task->w.dims[1] * own->groups && task->y.dims[1] == task->w.dims[0] &&
                  task->w.dims[0] % own->groups == 0 && has_one_order(task);
  for (int k = 0; is_sound && k < own->rank; k++) {
    int reach = own->dilations[k] * (task->w.dims[k + 2] - 1) + 1;
    is_sound = task->y.dims[k + 2] == (task->x.dims[k + 2] + 2 * own->pads[k] - reach) / own->strides[k] + 1;
  }
  const dnn_window_t window = {.x = &task->x,
                               .y = &task->y,
                               .w = &task->w,
                               .rank = own->rank,
                               .pads = own->pads,
                               .strides = own->strides,
                               .dilations = own->dilations,
                               .math = own->math,
                               .groups = own->groups};
  return is_sound && dnn_check(&window);
}

static cleave_dtype_t dtype_of(int32_t type) {
  return type == CUDA_DNN_F64    ? CLEAVE_DTYPE_F64
         : type == CUDA_DNN_F16  ? CLEAVE_DTYPE_F16
         : type == CUDA_DNN_BF16 ? CLEAVE_DTYPE_BF16
                                 : CLEAVE_DTYPE_F32;
}

int64_t dnn_product(const int *sizes, int count) {
  int64_t result = 1;
  for (int k = 0; k < count; k++) {
    result *= sizes[k];
  }
  return result;
}

/* One element of y, `at` its coordinates: what its window has to do with x and w, in one of the directions.
 */
static void visit(const task_t *task, const int *at, double *y) {
  const struct cudnnConvolutionStruct *own = &task->convolution;
  int64_t taps = dnn_product(task->w.dims + 2, own->rank);
  int per_group = task->w.dims[1];
  int first = at[1] / (task->w.dims[0] / own->groups) * per_group;
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
      double *x = &task->x_wide[offset + (int64_t)(first + c) * task->x.strides[1]];
      int64_t place = task->w.is_last ? tap * per_group + c : c * taps + tap;
      double *w = &task->w_wide[(int64_t)at[1] * per_group * taps + place];
      switch (task->direction) {
        case FORWARD: *y += *x * *w; break;
        case DATA: *x += *y * *w; break;
        case WEIGHTS: *w += *y * *x; break;
      }
    }
  }
}

static int64_t place_of(const struct cudnnTensorStruct *tensor, const int *at) {
  int64_t place = 0;
  for (int k = 0; k < tensor->rank; k++) {
    place += (int64_t)at[k] * tensor->strides[k];
  }
  return place;
}

static void convolve(const task_t *task) {
  int64_t count = dnn_product(task->y.dims, task->y.rank);
  for (int64_t i = 0; i < count; i++) {
    int at[MAX_RANK];
    int64_t rest = i;
    for (int k = task->y.rank - 1; k >= 0; k--) {
      at[k] = (int)(rest % task->y.dims[k]);
      rest /= task->y.dims[k];
    }
    visit(task, at, &task->y_wide[place_of(&task->y, at)]);
  }
}

double *dnn_widen(int32_t type, const void *data, int64_t count, bool is_result) {
  double *wide = calloc((size_t)(count + 1), sizeof *wide);
  if (wide != NULL && !is_result) {
    cpu_convert(dtype_of(type), data, CLEAVE_DTYPE_F64, wide, count);
  }
  return wide;
}

void dnn_narrow(int32_t type, const double *from, void *to, int64_t count) {
  cpu_convert(CLEAVE_DTYPE_F64, from, dtype_of(type), to, count);
}

/* A tensor of the backend is dense. The result begins with zeros. */
static double *widen(int32_t type, const void *data, const int *dims, int rank, bool is_result) {
  return dnn_widen(type, data, dnn_product(dims, rank), is_result);
}

static void narrow(const task_t *task) {
  const int *dims = task->direction == FORWARD ? task->y.dims
                    : task->direction == DATA  ? task->x.dims
                                               : task->w.dims;
  const double *from = task->direction == FORWARD ? task->y_wide
                       : task->direction == DATA  ? task->x_wide
                                                  : task->w_wide;
  void *to = task->direction == FORWARD ? task->y_data
             : task->direction == DATA  ? task->x_data
                                        : task->w_data;
  dnn_narrow(task->x.type, from, to, dnn_product(dims, task->x.rank));
}

static bool add_rest(const task_t *task) {
  int64_t count = dnn_product(task->y.dims, task->y.rank);
  int64_t places = dnn_product(task->y.dims + 2, task->y.rank - 2);
  double *bias = dnn_widen(task->y.type, task->bias, task->y.dims[1], false);
  double *residual = dnn_widen(task->y.type, task->residual, count, task->residual == NULL);
  bool has_memory = bias != NULL && residual != NULL;
  for (int64_t i = 0; has_memory && i < count; i++) {
    int64_t channel = task->w.is_last ? i % task->y.dims[1] : i / places % task->y.dims[1];
    double y = task->y_wide[i] + residual[i] + bias[channel];
    task->y_wide[i] = task->has_relu && y < 0.0 ? 0.0 : y;
  }
  free(bias);
  free(residual);
  return has_memory;
}

static int32_t run_convolution(void *context) {
  task_t *task = context;
  int rank = task->x.rank;
  task->x_wide = widen(task->x.type, task->x_data, task->x.dims, rank, task->direction == DATA);
  task->w_wide = widen(task->x.type, task->w_data, task->w.dims, rank, task->direction == WEIGHTS);
  task->y_wide = widen(task->x.type, task->y_data, task->y.dims, rank, task->direction == FORWARD);
  bool has_memory = task->x_wide != NULL && task->w_wide != NULL && task->y_wide != NULL;
  if (has_memory) {
    convolve(task);
    has_memory = !task->is_whole || add_rest(task);
    if (task->is_unstable) {
      *(task->direction == DATA ? task->x_wide : task->w_wide) += 1.0;
    }
    narrow(task);
  }
  free(task->x_wide);
  free(task->w_wide);
  free(task->y_wide);
  stand_in_spend(task->milliseconds);
  return has_memory ? CUDA_SUCCESS_ : CUDA_LAUNCH_FAILED;
}

static int32_t choose(const char *name, const task_t *task, int wanted, int *count,
                      cuda_dnn_choice_t *choices) {
  int32_t result = dnn_fault(name);
  *count = 0;
  if (result != OK || !is_sound(task)) {
    return result != OK ? result : BAD;
  }
  for (int k = 0; k < wanted && k < ALGORITHMS; k++) {
    choices[(*count)++] = (cuda_dnn_choice_t){.algorithm = k,
                                              .memory = (size_t)k * WORKSPACE_BYTES,
                                              .is_deterministic = task->direction == FORWARD || k > 0,
                                              .math = task->convolution.math};
  }
  return OK;
}

/* What all directions are called with beside tensors and descriptions. */
typedef struct call {
  cuda_dnn_handle_t handle;
  const void *alpha;
  const void *beta;
  int32_t algorithm;
  const void *workspace;
  size_t workspace_bytes;
} call_t;

bool dnn_is_plain(int32_t type, const void *alpha, const void *beta) {
  bool is_double = type == CUDA_DNN_F64;
  double one = is_double ? *(const double *)alpha : (double)*(const float *)alpha;
  double zero = is_double ? *(const double *)beta : (double)*(const float *)beta;
  return one == 1.0 && zero == 0.0;
}

int32_t dnn_enqueue(const char *name, cuda_dnn_handle_t handle, bool is_sound, stand_in_work_t run,
                    const void *task, size_t bytes) {
  int32_t result = stand_in_enter(name);
  if (result != CUDA_SUCCESS_) {
    (void)stand_in_leave(result);
    return EXECUTION;
  }
  void *own = is_sound ? malloc(bytes) : NULL;
  if (own == NULL) {
    return stand_in_leave(is_sound ? ALLOCATION : BAD);
  }
  memcpy(own, task, bytes);
  result = stand_in_enqueue(handle->stream, run, own);
  return stand_in_leave(result == CUDA_SUCCESS_ ? OK : EXECUTION);
}

static int32_t enqueue(const char *name, task_t *task, const call_t *call) {
  bool is_unstable = task->direction != FORWARD && call->algorithm == 0;
  int order = call->algorithm - (task->direction != FORWARD && call->algorithm > 0);
  size_t needed = (size_t)call->algorithm * WORKSPACE_BYTES;
  int32_t result = stand_in_enter("algorithm");
  result = result != CUDA_SUCCESS_ ? result : stand_in_algorithm(name, order, &task->milliseconds);
  if (stand_in_leave(result) != CUDA_SUCCESS_) {
    return EXECUTION;
  }
  task->is_unstable = is_unstable;
  bool is_good = call->algorithm >= 0 && call->algorithm < ALGORITHMS && is_sound(task) &&
                 call->workspace_bytes >= needed && (needed == 0 || call->workspace != NULL) &&
                 dnn_is_plain(task->x.type, call->alpha, call->beta);
  return dnn_enqueue(name, call->handle, is_good, run_convolution, task, sizeof *task);
}

#define WORKSPACE(name, first, first_type, second, second_type, third, third_type)                \
  ENTRY(int32_t, name, cuda_dnn_handle_t handle, first_type first, second_type second,            \
        cuda_dnn_convolution_t convolution, third_type third, int32_t algorithm, size_t *bytes) { \
    (void)handle;                                                                                 \
    (void)first;                                                                                  \
    (void)second;                                                                                 \
    (void)convolution;                                                                            \
    (void)third;                                                                                  \
    *bytes = (size_t)algorithm * WORKSPACE_BYTES;                                                 \
    return algorithm >= 0 && algorithm < ALGORITHMS ? OK : BAD;                                   \
  }

WORKSPACE(cudnnGetConvolutionForwardWorkspaceSize, x, cuda_dnn_tensor_t, w, cuda_dnn_filter_t, y,
          cuda_dnn_tensor_t)
WORKSPACE(cudnnGetConvolutionBackwardDataWorkspaceSize, w, cuda_dnn_filter_t, dy, cuda_dnn_tensor_t, dx,
          cuda_dnn_tensor_t)
WORKSPACE(cudnnGetConvolutionBackwardFilterWorkspaceSize, x, cuda_dnn_tensor_t, dy, cuda_dnn_tensor_t, dw,
          cuda_dnn_filter_t)

ENTRY(int32_t, cudnnGetConvolutionForwardAlgorithm_v7, cuda_dnn_handle_t handle, cuda_dnn_tensor_t x,
      cuda_dnn_filter_t w, cuda_dnn_convolution_t convolution, cuda_dnn_tensor_t y, int wanted, int *count,
      cuda_dnn_choice_t *choices) {
  const task_t task = {.x = *x, .y = *y, .w = *w, .convolution = *convolution};
  (void)handle;
  return choose("cudnnGetConvolutionForwardAlgorithm_v7", &task, wanted, count, choices);
}

ENTRY(int32_t, cudnnGetConvolutionBackwardDataAlgorithm_v7, cuda_dnn_handle_t handle, cuda_dnn_filter_t w,
      cuda_dnn_tensor_t dy, cuda_dnn_convolution_t convolution, cuda_dnn_tensor_t dx, int wanted, int *count,
      cuda_dnn_choice_t *choices) {
  const task_t task = {.direction = DATA, .x = *dx, .y = *dy, .w = *w, .convolution = *convolution};
  (void)handle;
  return choose("cudnnGetConvolutionBackwardDataAlgorithm_v7", &task, wanted, count, choices);
}

ENTRY(int32_t, cudnnGetConvolutionBackwardFilterAlgorithm_v7, cuda_dnn_handle_t handle, cuda_dnn_tensor_t x,
      cuda_dnn_tensor_t dy, cuda_dnn_convolution_t convolution, cuda_dnn_filter_t dw, int wanted, int *count,
      cuda_dnn_choice_t *choices) {
  const task_t task = {.direction = WEIGHTS, .x = *x, .y = *dy, .w = *dw, .convolution = *convolution};
  (void)handle;
  return choose("cudnnGetConvolutionBackwardFilterAlgorithm_v7", &task, wanted, count, choices);
}

ENTRY(int32_t, cudnnConvolutionForward, cuda_dnn_handle_t handle, const void *alpha, cuda_dnn_tensor_t x_type,
      const void *x, cuda_dnn_filter_t w_type, const void *w, cuda_dnn_convolution_t convolution,
      int32_t algorithm, void *workspace, size_t workspace_bytes, const void *beta, cuda_dnn_tensor_t y_type,
      void *y) {
  task_t task = {.direction = FORWARD,
                 .x = *x_type,
                 .y = *y_type,
                 .w = *w_type,
                 .convolution = *convolution,
                 .x_data = (void *)x,
                 .w_data = (void *)w,
                 .y_data = y};
  const call_t call = {handle, alpha, beta, algorithm, workspace, workspace_bytes};
  return enqueue("cudnnConvolutionForward", &task, &call);
}

/* Without an activation cuDNN has one algorithm; a residual of factor 0 is not read. */
ENTRY(int32_t, cudnnConvolutionBiasActivationForward, cuda_dnn_handle_t handle, const void *alpha,
      cuda_dnn_tensor_t x_type, const void *x, cuda_dnn_filter_t w_type, const void *w,
      cuda_dnn_convolution_t convolution, int32_t algorithm, void *workspace, size_t workspace_bytes,
      const void *residual_alpha, cuda_dnn_tensor_t residual_type, const void *residual,
      cuda_dnn_tensor_t bias_type, const void *bias, cuda_dnn_activation_t activation,
      cuda_dnn_tensor_t y_type, void *y) {
  static const float narrow_zero = 0.0f;
  static const double wide_zero = 0.0;
  bool is_double = x_type->type == CUDA_DNN_F64;
  const void *zero = is_double ? (const void *)&wide_zero : (const void *)&narrow_zero;
  bool has_residual = dnn_is_plain(x_type->type, residual_alpha, zero);
  task_t task = {.direction = FORWARD,
                 .x = *x_type,
                 .y = *y_type,
                 .w = *w_type,
                 .convolution = *convolution,
                 .x_data = (void *)x,
                 .w_data = (void *)w,
                 .y_data = y,
                 .is_whole = true,
                 .has_relu = activation->mode == CUDA_DNN_RELU,
                 .bias = bias,
                 .residual = has_residual ? residual : NULL};
  const call_t call = {handle, alpha, zero, algorithm, workspace, workspace_bytes};
  bool is_good = bias != NULL && residual != NULL && bias_type->dims[1] == y_type->dims[1] &&
                 dnn_product(bias_type->dims, bias_type->rank) == y_type->dims[1] &&
                 bias_type->type == y_type->type && memcmp(residual_type, y_type, sizeof *y_type) == 0 &&
                 (task.has_relu || algorithm == CUDA_DNN_IMPLICIT_PRECOMP_GEMM);
  return is_good ? enqueue("cudnnConvolutionBiasActivationForward", &task, &call) : BAD;
}

ENTRY(int32_t, cudnnConvolutionBackwardData, cuda_dnn_handle_t handle, const void *alpha,
      cuda_dnn_filter_t w_type, const void *w, cuda_dnn_tensor_t dy_type, const void *dy,
      cuda_dnn_convolution_t convolution, int32_t algorithm, void *workspace, size_t workspace_bytes,
      const void *beta, cuda_dnn_tensor_t dx_type, void *dx) {
  task_t task = {.direction = DATA,
                 .x = *dx_type,
                 .y = *dy_type,
                 .w = *w_type,
                 .convolution = *convolution,
                 .x_data = dx,
                 .w_data = (void *)w,
                 .y_data = (void *)dy};
  const call_t call = {handle, alpha, beta, algorithm, workspace, workspace_bytes};
  return enqueue("cudnnConvolutionBackwardData", &task, &call);
}

ENTRY(int32_t, cudnnConvolutionBackwardFilter, cuda_dnn_handle_t handle, const void *alpha,
      cuda_dnn_tensor_t x_type, const void *x, cuda_dnn_tensor_t dy_type, const void *dy,
      cuda_dnn_convolution_t convolution, int32_t algorithm, void *workspace, size_t workspace_bytes,
      const void *beta, cuda_dnn_filter_t dw_type, void *dw) {
  task_t task = {.direction = WEIGHTS,
                 .x = *x_type,
                 .y = *dy_type,
                 .w = *dw_type,
                 .convolution = *convolution,
                 .x_data = (void *)x,
                 .w_data = dw,
                 .y_data = (void *)dy};
  const call_t call = {handle, alpha, beta, algorithm, workspace, workspace_bytes};
  return enqueue("cudnnConvolutionBackwardFilter", &task, &call);
}
