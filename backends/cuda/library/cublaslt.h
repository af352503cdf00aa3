// SPDX-License-Identifier: Apache-2.0
/* The entry points of cuBLASLt 11 to 13 that are called: products of matrices, column-major. */
#ifndef CLEAVE_CUDA_CUBLASLT_H
#define CLEAVE_CUDA_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

#include "driver.h"

typedef struct cublasLtContext *cuda_blas_handle_t;
typedef struct cuda_blas_desc *cuda_blas_desc_t;
typedef struct cuda_blas_layout *cuda_blas_layout_t;
typedef struct cuda_blas_preference *cuda_blas_preference_t;

typedef struct cuda_blas_algorithm {
  uint64_t data[8];
} cuda_blas_algorithm_t;

typedef struct cuda_blas_choice {
  cuda_blas_algorithm_t algorithm;
  size_t workspace_bytes;
  int32_t state;
  float waves;
  int32_t reserved[4];
} cuda_blas_choice_t;

enum { CUDA_BLAS_NOT_SUPPORTED = 15 };
enum { CUDA_BLAS_F32 = 0, CUDA_BLAS_F64 = 1, CUDA_BLAS_F16 = 2, CUDA_BLAS_BF16 = 14 };
enum { CUDA_BLAS_COMPUTE_F32 = 68, CUDA_BLAS_COMPUTE_F64 = 70, CUDA_BLAS_COMPUTE_TF32 = 77 };
enum {
  CUDA_BLAS_DESC_TRANSPOSE_A = 3, /* int32_t: 0, or 1 */
  CUDA_BLAS_DESC_TRANSPOSE_B = 4,
  CUDA_BLAS_DESC_EPILOGUE = 7, /* uint32_t */
  CUDA_BLAS_DESC_BIAS = 8      /* const void *, one per row of the result */
};
enum {
  CUDA_BLAS_EPILOGUE_NONE = 1,
  CUDA_BLAS_EPILOGUE_RELU = 2,
  CUDA_BLAS_EPILOGUE_BIAS = 4,
  CUDA_BLAS_EPILOGUE_GELU_TANH = 32 /* the tanh form */
};
enum { CUDA_BLAS_LAYOUT_BATCHES = 5 /* int32_t */, CUDA_BLAS_LAYOUT_STRIDE = 6 /* int64_t, elements */ };
enum {
  CUDA_BLAS_PREFERENCE_WORKSPACE = 1,  /* uint64_t */
  CUDA_BLAS_PREFERENCE_REDUCTIONS = 3, /* uint32_t, a mask */
  CUDA_BLAS_PREFERENCE_ALIGN_A = 5,    /* uint32_t, bytes */
  CUDA_BLAS_PREFERENCE_ALIGN_B = 6,
  CUDA_BLAS_PREFERENCE_ALIGN_C = 7,
  CUDA_BLAS_PREFERENCE_ALIGN_D = 8
};

/* How parts of a long sum are put together. */
enum { CUDA_BLAS_REDUCTION_COMPUTE_TYPE = 2 };

/* X(result, member, symbol, parameters) */
#define CUDA_BLAS_ENTRIES(X)                                                                           \
  X(size_t, version, cublasLtGetVersion, (void))                                                       \
  X(int32_t, create, cublasLtCreate, (cuda_blas_handle_t * handle))                                    \
  X(int32_t, destroy, cublasLtDestroy, (cuda_blas_handle_t handle))                                    \
  X(int32_t, desc_create, cublasLtMatmulDescCreate,                                                    \
    (cuda_blas_desc_t * desc, int32_t compute_type, int32_t scale_type))                               \
  X(int32_t, desc_set, cublasLtMatmulDescSetAttribute,                                                 \
    (cuda_blas_desc_t desc, int32_t attribute, const void *value, size_t bytes))                       \
  X(int32_t, desc_destroy, cublasLtMatmulDescDestroy, (cuda_blas_desc_t desc))                         \
  X(int32_t, layout_create, cublasLtMatrixLayoutCreate,                                                \
    (cuda_blas_layout_t * layout, int32_t type, uint64_t rows, uint64_t columns, int64_t stride))      \
  X(int32_t, layout_set, cublasLtMatrixLayoutSetAttribute,                                             \
    (cuda_blas_layout_t layout, int32_t attribute, const void *value, size_t bytes))                   \
  X(int32_t, layout_destroy, cublasLtMatrixLayoutDestroy, (cuda_blas_layout_t layout))                 \
  X(int32_t, preference_create, cublasLtMatmulPreferenceCreate, (cuda_blas_preference_t * preference)) \
  X(int32_t, preference_set, cublasLtMatmulPreferenceSetAttribute,                                     \
    (cuda_blas_preference_t preference, int32_t attribute, const void *value, size_t bytes))           \
  X(int32_t, preference_destroy, cublasLtMatmulPreferenceDestroy, (cuda_blas_preference_t preference)) \
  X(int32_t, choose, cublasLtMatmulAlgoGetHeuristic,                                                   \
    (cuda_blas_handle_t handle, cuda_blas_desc_t desc, cuda_blas_layout_t a, cuda_blas_layout_t b,     \
     cuda_blas_layout_t c, cuda_blas_layout_t d, cuda_blas_preference_t preference, int wanted,        \
     cuda_blas_choice_t *choices, int *count))                                                         \
  X(int32_t, check, cublasLtMatmulAlgoCheck,                                                           \
    (cuda_blas_handle_t handle, cuda_blas_desc_t desc, cuda_blas_layout_t a, cuda_blas_layout_t b,     \
     cuda_blas_layout_t c, cuda_blas_layout_t d, const cuda_blas_algorithm_t *algorithm,               \
     cuda_blas_choice_t *choice))                                                                      \
  X(int32_t, multiply, cublasLtMatmul,                                                                 \
    (cuda_blas_handle_t handle, cuda_blas_desc_t desc, const void *alpha, const void *a,               \
     cuda_blas_layout_t a_layout, const void *b, cuda_blas_layout_t b_layout, const void *beta,        \
     const void *c, cuda_blas_layout_t c_layout, void *d, cuda_blas_layout_t d_layout,                 \
     const cuda_blas_algorithm_t *algorithm, void *workspace, size_t workspace_bytes, cuda_stream_t stream))

typedef struct cuda_blas {
#define CUDA_ENTRY(result, member, symbol, parameters) result(*member) parameters;
  CUDA_BLAS_ENTRIES(CUDA_ENTRY)
#undef CUDA_ENTRY
} cuda_blas_t;

#endif /* CLEAVE_CUDA_CUBLASLT_H */
