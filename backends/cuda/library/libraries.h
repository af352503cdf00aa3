// SPDX-License-Identifier: Apache-2.0
/*
 * NVIDIA's libraries, opened when they are first needed, and why one is not there. CLEAVE_CUDA_PATH names
 * folders, separated by colons, in which alone they are looked for; without it, where the loader looks, then
 * below CUDA_PATH and /usr/local/cuda.
 */
#ifndef CLEAVE_CUDA_LIBRARIES_H
#define CLEAVE_CUDA_LIBRARIES_H

#include <pthread.h>
#include <stdbool.h>

#include "cublaslt.h"
#include "cudnn.h"
#include "driver.h"
#include "nvrtc.h"

typedef enum cuda_library_id {
  CUDA_LIBRARY_DRIVER,
  CUDA_LIBRARY_NVRTC,
  CUDA_LIBRARY_BLAS,
  CUDA_LIBRARY_DNN,
  CUDA_LIBRARY_COUNT
} cuda_library_id_t;

typedef struct cuda_library {
  bool was_tried;
  void *handle;     /* NULL: missing */
  char reason[200]; /* why */
} cuda_library_t;

typedef struct cuda_libraries {
  pthread_mutex_t lock;
  cuda_library_t items[CUDA_LIBRARY_COUNT];
  cuda_driver_t driver;
  cuda_nvrtc_t nvrtc;
  cuda_blas_t blas;
  cuda_dnn_t dnn;
} cuda_libraries_t;

bool cuda_libraries_init(cuda_libraries_t *libraries);
void cuda_libraries_deinit(cuda_libraries_t *libraries);

/* "libcuda", and so on. */
const char *cuda_library_name(cuda_library_id_t id);

/* Opens the library if nobody has yet; false: it is missing, or lacks an entry point, and items[id].reason
 * says so. Thread-safe. */
bool cuda_library_open(cuda_libraries_t *libraries, cuda_library_id_t id);

/* Is there such a file in the folders beside those of the loader, or does it open? For words about what is
 * missing: cuBLASLt takes half a second to open. Thread-safe. */
bool cuda_library_is_there(cuda_libraries_t *libraries, cuda_library_id_t id);

/* The names that cuBLASLt and cuDNN give a status, for messages. */
const char *cuda_blas_status_text(int32_t status);

#endif /* CLEAVE_CUDA_LIBRARIES_H */
