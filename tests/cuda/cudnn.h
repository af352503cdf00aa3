// SPDX-License-Identifier: Apache-2.0
/* What the parts of the stand-in of libcudnn share. */
#ifndef CLEAVE_TESTS_CUDNN_H
#define CLEAVE_TESTS_CUDNN_H

#include <stdlib.h>

#include "cuda/library/cudnn.h"
#include "stand_in.h"

enum { OK = 0, BAD = 2000, ALLOCATION = 2003, EXECUTION = 5000, MAX_RANK = 8 };

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
  bool is_last; /* channels */
  int rank;
  int dims[MAX_RANK];
};

#define ENTRY(result, name, ...)            \
  STAND_IN_EXPORT result name(__VA_ARGS__); \
  result name(__VA_ARGS__)

#define CREATE_DESTROY(create, destroy, type)              \
  ENTRY(int32_t, create, type *out) {                      \
    *out = calloc(1, sizeof **out);                        \
    return *out == NULL ? ALLOCATION : dnn_fault(#create); \
  }                                                        \
  ENTRY(int32_t, destroy, type self) {                     \
    free(self);                                            \
    return OK;                                             \
  }

/* What the call of this name returns: OK, unless a fault is asked for. */
int32_t dnn_fault(const char *name);

int64_t dnn_product(const int *sizes, int count);

/* A dense tensor's elements as f64, to be freed; NULL without memory. Zeros if there are none yet. */
double *dnn_widen(int32_t type, const void *data, int64_t count, bool is_result);
void dnn_narrow(int32_t type, const double *from, void *to, int64_t count);

/* Puts a copy of `task` on the stream; BAD unless it is sound. */
int32_t dnn_enqueue(const char *name, cuda_dnn_handle_t handle, bool is_sound, stand_in_work_t run,
                    const void *task, size_t bytes);

/* Are alpha and beta 1 and 0? That is all that the backend asks for. */
bool dnn_is_plain(int32_t type, const void *alpha, const void *beta);

#endif /* CLEAVE_TESTS_CUDNN_H */
