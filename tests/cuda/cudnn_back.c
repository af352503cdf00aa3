// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcudnn, continued: gradients of average poolings and of batch normalization.
#include <math.h>
#include <string.h>

#include "cudnn_check.h"

struct cudnnPoolingStruct {
  int32_t mode;
  int rank;
  int sizes[MAX_RANK];
  int pads[MAX_RANK];
  int strides[MAX_RANK];
};

/* ---- poolings ---- */

CREATE_DESTROY(cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor, cuda_dnn_pooling_t)

ENTRY(int32_t, cudnnSetPoolingNdDescriptor, cuda_dnn_pooling_t pooling, int32_t mode, int32_t nan, int rank,
      const int *sizes, const int *pads, const int *strides) {
  if (rank < 2 || rank > 3 || nan != CUDA_DNN_PROPAGATE_NAN ||
      (mode != CUDA_DNN_AVERAGE_OF_WINDOW && mode != CUDA_DNN_AVERAGE_OF_INSIDE)) {
    return BAD;
  }
  pooling->mode = mode;
  pooling->rank = rank;
  memcpy(pooling->sizes, sizes, (size_t)rank * sizeof *sizes);
  memcpy(pooling->pads, pads, (size_t)rank * sizeof *pads);
  memcpy(pooling->strides, strides, (size_t)rank * sizeof *strides);
  return dnn_fault("cudnnSetPoolingNdDescriptor");
}

typedef struct pool_task {
  struct cudnnPoolingStruct pooling;
  struct cudnnTensorStruct x, y;
  const void *dy;
  void *dx;
} pool_task_t;

/* cuDNN refuses what has not these sizes; the tensors are dense. */
static bool is_sound(const pool_task_t *task) {
  const struct cudnnPoolingStruct *own = &task->pooling;
  bool is_sound = task->x.rank == own->rank + 2 && task->y.rank == task->x.rank &&
                  task->x.type == task->y.type && task->x.dims[0] == task->y.dims[0] &&
                  task->x.dims[1] == task->y.dims[1] && task->dy != NULL && task->dx != NULL;
  for (int k = 0; is_sound && k < own->rank; k++) {
    int room = task->x.dims[k + 2] + 2 * own->pads[k] - own->sizes[k];
    is_sound = own->pads[k] < own->sizes[k] && task->y.dims[k + 2] == room / own->strides[k] + 1;
  }
  const dnn_window_t window = {.x = &task->x,
                               .y = &task->y,
                               .rank = own->rank,
                               .sizes = own->sizes,
                               .pads = own->pads,
                               .strides = own->strides,
                               .mode = own->mode};
  return is_sound && dnn_check(&window);
}

/* Window `place` of a plane: the place in the plane of its element `tap`, or -1. */
static int64_t find_element(const pool_task_t *task, int64_t place, int64_t tap) {
  const struct cudnnPoolingStruct *own = &task->pooling;
  int64_t step = 1;
  int64_t offset = 0;
  for (int k = own->rank - 1; k >= 0; k--) {
    int64_t at = place % task->y.dims[k + 2] * own->strides[k] - own->pads[k] + tap % own->sizes[k];
    place /= task->y.dims[k + 2];
    tap /= own->sizes[k];
    if (at < 0 || at >= task->x.dims[k + 2]) {
      return -1;
    }
    offset += at * step;
    step *= task->x.dims[k + 2];
  }
  return offset;
}

static void spread(const pool_task_t *task, const double *dy, double *dx) {
  const struct cudnnPoolingStruct *own = &task->pooling;
  int64_t taps = dnn_product(own->sizes, own->rank);
  int64_t places = dnn_product(task->y.dims + 2, own->rank);
  int64_t pixels = dnn_product(task->x.dims + 2, own->rank);
  int64_t planes = dnn_product(task->x.dims, 2);
  for (int64_t i = 0; i < planes * places; i++) {
    int64_t count = own->mode == CUDA_DNN_AVERAGE_OF_WINDOW ? taps : 0;
    for (int64_t tap = 0; tap < taps && own->mode == CUDA_DNN_AVERAGE_OF_INSIDE; tap++) {
      count += find_element(task, i % places, tap) >= 0 ? 1 : 0;
    }
    for (int64_t tap = 0; tap < taps; tap++) {
      int64_t at = find_element(task, i % places, tap);
      if (at >= 0) {
        dx[i / places * pixels + at] += dy[i] / (double)count;
      }
    }
  }
}

static int32_t run_pool(void *context) {
  const pool_task_t *task = context;
  int64_t count = dnn_product(task->x.dims, task->x.rank);
  double *dy = dnn_widen(task->y.type, task->dy, dnn_product(task->y.dims, task->y.rank), false);
  double *dx = dnn_widen(task->x.type, NULL, count, true);
  bool has_memory = dy != NULL && dx != NULL;
  if (has_memory) {
    spread(task, dy, dx);
    dnn_narrow(task->x.type, dx, task->dx, count);
  }
  free(dy);
  free(dx);
  return has_memory ? CUDA_SUCCESS_ : CUDA_LAUNCH_FAILED;
}

ENTRY(int32_t, cudnnPoolingBackward, cuda_dnn_handle_t handle, cuda_dnn_pooling_t pooling, const void *alpha,
      cuda_dnn_tensor_t y_type, const void *y, cuda_dnn_tensor_t dy_type, const void *dy,
      cuda_dnn_tensor_t x_type, const void *x, const void *beta, cuda_dnn_tensor_t dx_type, void *dx) {
  const pool_task_t task = {*pooling, *dx_type, *dy_type, dy, dx};
  bool is_good = is_sound(&task) && x != NULL && y != NULL && dnn_is_plain(dx_type->type, alpha, beta) &&
                 memcmp(y_type->dims, dy_type->dims, sizeof dy_type->dims) == 0 &&
                 memcmp(x_type->dims, dx_type->dims, sizeof dx_type->dims) == 0;
  return dnn_enqueue("cudnnPoolingBackward", handle, is_good, run_pool, &task, sizeof task);
}

/* ---- batch normalization ---- */

typedef struct norm_task {
  struct cudnnTensorStruct x, channels;
  const void *x_data, *dy_data, *scale, *mean, *inverse;
  void *dx_data, *scale_gradient, *shift_gradient;
} norm_task_t;

enum { X, DY, DX, SCALE, MEAN, INVERSE, SCALE_GRADIENT, SHIFT_GRADIENT, ARRAYS };

static void normalize_back(const norm_task_t *task, double *const *a) {
  int64_t places = dnn_product(task->x.dims + 2, task->x.rank - 2);
  int64_t channels = task->x.dims[1];
  int64_t total = dnn_product(task->x.dims, task->x.rank);
  double count = (double)(total / channels);
  for (int64_t i = 0; i < total; i++) {
    int64_t c = i / places % channels;
    a[SHIFT_GRADIENT][c] += a[DY][i];
    a[SCALE_GRADIENT][c] += a[DY][i] * (a[X][i] - a[MEAN][c]) * a[INVERSE][c];
  }
  for (int64_t i = 0; i < total; i++) {
    int64_t c = i / places % channels;
    double own = (a[X][i] - a[MEAN][c]) * a[INVERSE][c];
    a[DX][i] = a[SCALE][c] * a[INVERSE][c] *
               (a[DY][i] - a[SHIFT_GRADIENT][c] / count - own * a[SCALE_GRADIENT][c] / count);
  }
}

static int32_t run_norm(void *context) {
  const norm_task_t *task = context;
  const void *const from[ARRAYS] = {task->x_data, task->dy_data, NULL, task->scale,
                                    task->mean,   task->inverse, NULL, NULL};
  void *const to[ARRAYS] = {
      [DX] = task->dx_data, [SCALE_GRADIENT] = task->scale_gradient, [SHIFT_GRADIENT] = task->shift_gradient};
  double *arrays[ARRAYS];
  bool has_memory = true;
  for (int k = 0; k < ARRAYS; k++) {
    const struct cudnnTensorStruct *type = k < SCALE ? &task->x : &task->channels;
    arrays[k] = dnn_widen(type->type, from[k], dnn_product(type->dims, type->rank), from[k] == NULL);
    has_memory = has_memory && arrays[k] != NULL;
  }
  if (has_memory) {
    normalize_back(task, arrays);
  }
  for (int k = 0; k < ARRAYS; k++) {
    const struct cudnnTensorStruct *type = k < SCALE ? &task->x : &task->channels;
    if (has_memory && to[k] != NULL) {
      dnn_narrow(type->type, arrays[k], to[k], dnn_product(type->dims, type->rank));
    }
    free(arrays[k]);
  }
  return has_memory ? CUDA_SUCCESS_ : CUDA_LAUNCH_FAILED;
}

/* Statistics of f16 are f32, all others have the dtype of the data; epsilon is not looked at, as they are
 * given. */
ENTRY(int32_t, cudnnBatchNormalizationBackward, cuda_dnn_handle_t handle, int32_t mode, const void *alpha,
      const void *beta, const void *parameter_alpha, const void *parameter_beta, cuda_dnn_tensor_t x_type,
      const void *x, cuda_dnn_tensor_t dy_type, const void *dy, cuda_dnn_tensor_t dx_type, void *dx,
      cuda_dnn_tensor_t parameter_type, const void *scale, void *scale_gradient, void *shift_gradient,
      double epsilon, const void *mean, const void *inverse_deviation) {
  const norm_task_t task = {*x_type,        *parameter_type, x, dy, scale, mean, inverse_deviation, dx,
                            scale_gradient, shift_gradient};
  int32_t expected = x_type->type == CUDA_DNN_F64 ? CUDA_DNN_F64 : CUDA_DNN_F32;
  bool is_good = mode == CUDA_DNN_SPATIAL && parameter_type->type == expected && isfinite(epsilon) &&
                 (x_type->rank == 4 || x_type->rank == 5) &&
                 dnn_product(parameter_type->dims, parameter_type->rank) == x_type->dims[1] &&
                 parameter_type->dims[1] == x_type->dims[1] && memcmp(x_type, dy_type, sizeof *x_type) == 0 &&
                 memcmp(x_type, dx_type, sizeof *x_type) == 0 && x != NULL && dy != NULL && dx != NULL &&
                 scale != NULL && mean != NULL && inverse_deviation != NULL && scale_gradient != NULL &&
                 shift_gradient != NULL && dnn_is_plain(x_type->type, alpha, beta) &&
                 dnn_is_plain(x_type->type, parameter_alpha, parameter_beta);
  return dnn_enqueue("cudnnBatchNormalizationBackward", handle, is_good, run_norm, &task, sizeof task);
}
