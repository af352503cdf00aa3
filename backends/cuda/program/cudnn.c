// SPDX-License-Identifier: Apache-2.0
// Steps of cuDNN: convolutions, and gradients. What their descriptions have in common are dense tensors x
// and y of one dtype.
#include "cudnn.h"

#include <string.h>

enum { MAX_CUDNN_POINTERS = 8 };

static int32_t type_of(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F64    ? CUDA_DNN_F64
         : dtype == CLEAVE_DTYPE_F16  ? CUDA_DNN_F16
         : dtype == CLEAVE_DTYPE_BF16 ? CUDA_DNN_BF16
                                      : CUDA_DNN_F32;
}

/* ---- descriptions; each gives cuDNN's status ---- */

/* The format of dense tensors whose dims are N, C and the places, whatever their order in memory. */
typedef struct format {
  int32_t type;
  int32_t rank;
  bool is_last; /* channels */
} format_t;

static int32_t describe_tensor(const cuda_dnn_t *dnn, const format_t *format, const int32_t *dims,
                               cuda_dnn_tensor_t *out_tensor) {
  int32_t strides[CLEAVE_MAX_RANK];
  int32_t stride = format->is_last ? dims[1] : 1;
  for (int32_t d = format->rank - 1; d >= 0; d--) {
    bool is_inner = format->is_last && d == 1;
    strides[d] = is_inner ? 1 : stride;
    stride *= is_inner ? 1 : dims[d];
  }
  int32_t result = dnn->tensor_create(out_tensor);
  return result != 0 ? result : dnn->tensor_set(*out_tensor, format->type, format->rank, dims, strides);
}

static int32_t describe_pair(const cuda_dnn_t *dnn, const format_t *format, const int32_t *x,
                             const int32_t *y, cuda_ready_t *ready) {
  int32_t result = describe_tensor(dnn, format, x, &ready->x);
  return result != 0 ? result : describe_tensor(dnn, format, y, &ready->y);
}

/* One element for each of the channels. */
static int32_t describe_channels(const cuda_dnn_t *dnn, int32_t type, int32_t rank, int32_t count,
                                 cuda_ready_t *ready) {
  const format_t format = {type, rank, false};
  int32_t dims[CLEAVE_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) {
    dims[d] = d == 1 ? count : 1;
  }
  return describe_tensor(dnn, &format, dims, &ready->channels);
}

static int32_t describe_epilogue(const cuda_dnn_t *dnn, const cuda_convolution_t *self, cuda_ready_t *ready) {
  int32_t mode = self->whole == CUDA_WHOLE_RELU ? CUDA_DNN_RELU : CUDA_DNN_IDENTITY;
  int32_t result = describe_channels(dnn, type_of(self->dtype), self->spatial + 2, self->y[1], ready);
  result = result != 0 ? result : dnn->activation_create(&ready->activation);
  return result != 0 ? result : dnn->activation_set(ready->activation, mode, CUDA_DNN_PROPAGATE_NAN, 0.0);
}

static int32_t describe_convolution(const cuda_dnn_t *dnn, const cuda_convolution_t *self,
                                    cuda_ready_t *ready) {
  int32_t rank = self->spatial + 2;
  int32_t type = type_of(self->dtype);
  int32_t order = self->is_last ? CUDA_DNN_CHANNELS_LAST : CUDA_DNN_ROW_MAJOR;
  const format_t format = {type, rank, self->is_last};
  int32_t result = describe_pair(dnn, &format, self->x, self->y, ready);
  result = result != 0 ? result : dnn->filter_create(&ready->w);
  result = result != 0 ? result : dnn->filter_set(ready->w, type, order, rank, self->w);
  result = result != 0 ? result : dnn->convolution_create(&ready->convolution);
  result = result != 0 ? result
                       : dnn->convolution_set(ready->convolution, self->spatial, self->pads, self->strides,
                                              self->dilations, CUDA_DNN_CROSS_CORRELATION,
                                              type == CUDA_DNN_F64 ? CUDA_DNN_F64 : CUDA_DNN_F32);
  result = result != 0 ? result : dnn->convolution_set_math(ready->convolution, cuda_dnn_math(self));
  result = result != 0 ? result : dnn->convolution_set_groups(ready->convolution, self->groups);
  return result != 0 || self->whole == CUDA_WHOLE_NOT ? result : describe_epilogue(dnn, self, ready);
}

static int32_t describe_pooling(const cuda_dnn_t *dnn, const cuda_pooling_t *self, cuda_ready_t *ready) {
  int32_t mode = self->counts_border ? CUDA_DNN_AVERAGE_OF_WINDOW : CUDA_DNN_AVERAGE_OF_INSIDE;
  const format_t format = {type_of(self->dtype), self->spatial + 2, false};
  int32_t result = describe_pair(dnn, &format, self->x, self->y, ready);
  result = result != 0 ? result : dnn->pooling_create(&ready->pooling);
  return result != 0 ? result
                     : dnn->pooling_set(ready->pooling, mode, CUDA_DNN_PROPAGATE_NAN, self->spatial,
                                        self->sizes, self->pads, self->strides);
}

static int32_t describe_norm(const cuda_dnn_t *dnn, const cuda_norm_t *self, cuda_ready_t *ready) {
  const int32_t dims[4] = {self->images, self->channels, self->places, 1};
  const format_t format = {type_of(self->dtype), 4, false};
  int32_t result = describe_tensor(dnn, &format, dims, &ready->x);
  int32_t type = self->dtype == CLEAVE_DTYPE_F64 ? CUDA_DNN_F64 : CUDA_DNN_F32;
  return result != 0 ? result : describe_channels(dnn, type, 4, self->channels, ready);
}

cleave_status_t cuda_ready_dnn(cuda_program_t *program, uint32_t index, cleave_message_t *message) {
  const cuda_dnn_t *dnn = &program->state->libraries.dnn;
  const cuda_step_t *step = &program->plan.steps[index];
  cuda_ready_t *ready = &program->ready[index];
  cuda_dnn_handle_t handle = NULL;
  int32_t result = 0;
  if (cuda_dnn_get(program->state, program->device, &handle, message) != CLEAVE_OK) {
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  if (step->kind == CUDA_STEP_POOL_BACK) {
    result = describe_pooling(dnn, step->pooling, ready);
  } else if (step->kind == CUDA_STEP_NORM_BACK) {
    result = describe_norm(dnn, step->norm, ready);
  } else {
    result = describe_convolution(dnn, step->convolution, ready);
  }
  if (result != 0) {
    return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_OPERATOR,
                     "cuDNN cannot describe %s: %s", step->label, dnn->error_string(result));
  }
  return step->kind == CUDA_STEP_CONVOLUTION ? cuda_dnn_choose(program, index, handle, message) : CLEAVE_OK;
}

/* ---- calls; `at` are the step's addresses ---- */

/* The mean needs neither what was pooled nor the result, but cuDNN wants addresses of both. */
static int32_t pool_back(const cuda_dnn_t *dnn, cuda_dnn_handle_t handle, const cuda_pooling_t *self,
                         const cuda_ready_t *ready, void *const *at) {
  cuda_dnn_scalars_t scalars = cuda_dnn_scalars(self->dtype);
  return dnn->pool_back(handle, ready->pooling, scalars.one, ready->y, at[0], ready->y, at[0], ready->x,
                        at[1], scalars.zero, ready->x, at[1]);
}

static int32_t norm_back(const cuda_dnn_t *dnn, cuda_dnn_handle_t handle, const cuda_norm_t *self,
                         const cuda_ready_t *ready, void *const *at) {
  cuda_dnn_scalars_t scalars = cuda_dnn_scalars(self->dtype);
  return dnn->norm_back(handle, CUDA_DNN_SPATIAL, scalars.one, scalars.zero, scalars.one, scalars.zero,
                        ready->x, at[1], ready->x, at[0], ready->x, at[5], ready->channels, at[2], at[6],
                        at[7], self->epsilon, at[3], at[4]);
}

cleave_status_t cuda_run_dnn(cuda_program_t *program, uint32_t index, cuda_stream_t stream,
                             cleave_message_t *message) {
  const cuda_dnn_t *dnn = &program->state->libraries.dnn;
  const cuda_step_t *step = &program->plan.steps[index];
  const cuda_ready_t *ready = &program->ready[index];
  cuda_device_state_t *device = &program->state->devices[program->device];
  void *at[MAX_CUDNN_POINTERS];
  for (uint32_t k = 0; k < step->pointer_count; k++) {
    at[k] = (void *)(uintptr_t)cuda_address_of(program, step->pointers[k]);
  }
  (void)pthread_mutex_lock(&device->lock); /* a handle has one stream at a time */
  int32_t result = dnn->set_stream(device->dnn, stream);
  if (result == 0) {
    result = step->kind == CUDA_STEP_POOL_BACK ? pool_back(dnn, device->dnn, step->pooling, ready, at)
             : step->kind == CUDA_STEP_NORM_BACK
                 ? norm_back(dnn, device->dnn, step->norm, ready, at)
                 : cuda_dnn_convolve(dnn, device->dnn, step->convolution, ready, at);
  }
  (void)pthread_mutex_unlock(&device->lock);
  return result == 0 ? CLEAVE_OK
                     : cuda_fail(message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_DEVICE,
                                 "cuDNN cannot compute %s: %s", step->label, dnn->error_string(result));
}

void cuda_dnn_free(cuda_program_t *program, cuda_ready_t *ready) {
  const cuda_dnn_t *dnn = &program->state->libraries.dnn;
  const cuda_dnn_tensor_t tensors[3] = {ready->x, ready->y, ready->channels};
  for (int k = 0; k < 3; k++) {
    if (tensors[k] != NULL) {
      (void)dnn->tensor_destroy(tensors[k]);
    }
  }
  if (ready->w != NULL) {
    (void)dnn->filter_destroy(ready->w);
  }
  if (ready->convolution != NULL) {
    (void)dnn->convolution_destroy(ready->convolution);
  }
  if (ready->activation != NULL) {
    (void)dnn->activation_destroy(ready->activation);
  }
  if (ready->pooling != NULL) {
    (void)dnn->pooling_destroy(ready->pooling);
  }
  memset(ready, 0, sizeof *ready);
}
