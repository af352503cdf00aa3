// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "cudnn_check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct real {
  cuda_dnn_t calls;
  int32_t (*convolved)(cuda_dnn_convolution_t convolution, cuda_dnn_tensor_t x, cuda_dnn_filter_t w, int rank,
                       int *dims);
  int32_t (*pooled)(cuda_dnn_pooling_t pooling, cuda_dnn_tensor_t x, int rank, int *dims);
} real_t;

#define SYMBOL(result, member, symbol, parameters) {#symbol, offsetof(real_t, calls.member)},
static const struct {
  const char *name;
  size_t offset;
} symbols[] = {CUDA_DNN_ENTRIES(SYMBOL){"cudnnGetConvolutionNdForwardOutputDim", offsetof(real_t, convolved)},
               {"cudnnGetPoolingNdForwardOutputDim", offsetof(real_t, pooled)}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static real_t real;

static bool open_library(const char *path) {
  void *library = real.calls.version != NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  for (size_t k = 0; library != NULL && k < sizeof symbols / sizeof symbols[0]; k++) {
    void *found = dlsym(library, symbols[k].name);
    memcpy((char *)&real + symbols[k].offset, &found, sizeof found);
    if (found == NULL) { /* dlerror says which */
      real.calls.version = NULL;
      break;
    }
  }
  return real.calls.version != NULL;
}

/* Descriptions of one window, made by the real library. */
typedef struct described {
  cuda_dnn_tensor_t x;
  cuda_dnn_tensor_t y;
  cuda_dnn_filter_t w;
  cuda_dnn_convolution_t convolution;
  cuda_dnn_pooling_t pooling;
} described_t;

static int32_t describe_tensor(const struct cudnnTensorStruct *tensor, cuda_dnn_tensor_t *out) {
  int32_t result = real.calls.tensor_create(out);
  return result != 0 ? result
                     : real.calls.tensor_set(*out, tensor->type, tensor->rank, tensor->dims, tensor->strides);
}

static int32_t describe_convolution(const dnn_window_t *window, described_t *own) {
  const struct cudnnFilterStruct *w = window->w;
  int32_t computed = w->type == CUDA_DNN_F64 ? CUDA_DNN_F64 : CUDA_DNN_F32;
  int32_t result = real.calls.filter_create(&own->w);
  result = result != 0 ? result
                       : real.calls.filter_set(own->w, w->type,
                                               w->is_last ? CUDA_DNN_CHANNELS_LAST : CUDA_DNN_ROW_MAJOR,
                                               w->rank, w->dims);
  result = result != 0 ? result : real.calls.convolution_create(&own->convolution);
  result = result != 0
               ? result
               : real.calls.convolution_set(own->convolution, window->rank, window->pads, window->strides,
                                            window->dilations, CUDA_DNN_CROSS_CORRELATION, computed);
  result = result != 0 ? result : real.calls.convolution_set_math(own->convolution, window->math);
  return result != 0 ? result : real.calls.convolution_set_groups(own->convolution, window->groups);
}

static int32_t describe(const dnn_window_t *window, described_t *own, int *dims) {
  int32_t result = describe_tensor(window->x, &own->x);
  result = result != 0 ? result : describe_tensor(window->y, &own->y);
  if (window->w != NULL) {
    result = result != 0 ? result : describe_convolution(window, own);
    return result != 0 ? result : real.convolved(own->convolution, own->x, own->w, window->x->rank, dims);
  }
  result = result != 0 ? result : real.calls.pooling_create(&own->pooling);
  result = result != 0 ? result
                       : real.calls.pooling_set(own->pooling, window->mode, CUDA_DNN_PROPAGATE_NAN,
                                                window->rank, window->sizes, window->pads, window->strides);
  return result != 0 ? result : real.pooled(own->pooling, own->x, window->x->rank, dims);
}

static void destroy(const described_t *own) {
  if (own->x != NULL) {
    (void)real.calls.tensor_destroy(own->x);
  }
  if (own->y != NULL) {
    (void)real.calls.tensor_destroy(own->y);
  }
  if (own->w != NULL) {
    (void)real.calls.filter_destroy(own->w);
  }
  if (own->convolution != NULL) {
    (void)real.calls.convolution_destroy(own->convolution);
  }
  if (own->pooling != NULL) {
    (void)real.calls.pooling_destroy(own->pooling);
  }
}

bool dnn_check(const dnn_window_t *window) {
  const char *path = getenv("CLEAVE_CUDNN_REAL");
  described_t own = {.x = NULL};
  int dims[MAX_RANK] = {0};
  if (path == NULL || path[0] == '\0') {
    return true;
  }
  (void)pthread_mutex_lock(&lock);
  bool is_open = open_library(path);
  int32_t result = is_open ? describe(window, &own, dims) : 0;
  bool is_same = memcmp(dims, window->y->dims, (size_t)window->y->rank * sizeof *dims) == 0;
  const char *reason = !is_open      ? dlerror()
                       : result != 0 ? real.calls.error_string(result)
                       : is_same     ? NULL
                                     : "it computes another size";
  if (reason != NULL) {
    fprintf(stderr, "%s: %s\n", path, reason);
  }
  if (is_open) {
    destroy(&own);
  }
  (void)pthread_mutex_unlock(&lock);
  return reason == NULL;
}
