// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcublasLt, for tests: products as plain loops, column-major, with the epilogues that the
// backend asks for. A bias without an epilogue that reads one is an error, as in the real one.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/library/cublaslt.h"
#include "kernels/convert.h"
#include "stand_in.h"

struct cublasLtContext {
  int32_t device;
};

struct cuda_blas_desc {
  int32_t compute;
  int32_t scale;
  int32_t transposes[2];
  uint32_t epilogue;
  const void *bias;
};

struct cuda_blas_layout {
  int32_t type;
  uint64_t rows;
  uint64_t columns;
  int64_t stride;
  int32_t batches;
  int64_t batch_stride;
};

struct cuda_blas_preference {
  uint64_t workspace;
  uint32_t reductions;
};

/* Algorithms are numbers from 1 on; one of them adds parts in place, in another order each time. */
enum { OK = 0, ALLOCATION = 3, INVALID = 7, EXECUTION = 13, WORKSPACE_BYTES = 1024 };
enum { ALGORITHMS = 3, UNSTABLE = 4, REDUCTION_IN_PLACE = 1, ALL_REDUCTIONS = 7 };

#define ENTRY(result, name, ...)            \
  STAND_IN_EXPORT result name(__VA_ARGS__); \
  result name(__VA_ARGS__)

static int32_t fault(const char *name) {
  int32_t result = stand_in_enter(name);
  (void)stand_in_leave(result);
  return result == 0 ? OK : result < 100 ? result : EXECUTION;
}

ENTRY(size_t, cublasLtGetVersion, void) {
  return 130000;
}

ENTRY(int32_t, cublasLtCreate, cuda_blas_handle_t *handle) {
  *handle = calloc(1, sizeof **handle);
  return *handle == NULL ? ALLOCATION : fault("cublasLtCreate");
}

ENTRY(int32_t, cublasLtDestroy, cuda_blas_handle_t handle) {
  free(handle);
  return OK;
}

ENTRY(int32_t, cublasLtMatmulDescCreate, cuda_blas_desc_t *desc, int32_t compute, int32_t scale) {
  *desc = calloc(1, sizeof **desc);
  if (*desc == NULL) {
    return ALLOCATION;
  }
  **desc = (struct cuda_blas_desc){.compute = compute, .scale = scale, .epilogue = CUDA_BLAS_EPILOGUE_NONE};
  return OK;
}

ENTRY(int32_t, cublasLtMatmulDescSetAttribute, cuda_blas_desc_t desc, int32_t attribute, const void *value,
      size_t bytes) {
  void *to = attribute == CUDA_BLAS_DESC_TRANSPOSE_A   ? (void *)&desc->transposes[0]
             : attribute == CUDA_BLAS_DESC_TRANSPOSE_B ? (void *)&desc->transposes[1]
             : attribute == CUDA_BLAS_DESC_EPILOGUE    ? (void *)&desc->epilogue
             : attribute == CUDA_BLAS_DESC_BIAS        ? (void *)&desc->bias
                                                       : NULL;
  size_t expected = attribute == CUDA_BLAS_DESC_BIAS ? sizeof desc->bias : 4;
  if (to == NULL || bytes != expected) {
    return INVALID;
  }
  memcpy(to, value, bytes);
  return OK;
}

ENTRY(int32_t, cublasLtMatmulDescDestroy, cuda_blas_desc_t desc) {
  free(desc);
  return OK;
}

ENTRY(int32_t, cublasLtMatrixLayoutCreate, cuda_blas_layout_t *layout, int32_t type, uint64_t rows,
      uint64_t columns, int64_t stride) {
  *layout = calloc(1, sizeof **layout);
  if (*layout == NULL) {
    return ALLOCATION;
  }
  **layout = (struct cuda_blas_layout){
      .type = type, .rows = rows, .columns = columns, .stride = stride, .batches = 1};
  return OK;
}

ENTRY(int32_t, cublasLtMatrixLayoutSetAttribute, cuda_blas_layout_t layout, int32_t attribute,
      const void *value, size_t bytes) {
  if (attribute == CUDA_BLAS_LAYOUT_BATCHES && bytes == sizeof layout->batches) {
    memcpy(&layout->batches, value, bytes);
  } else if (attribute == CUDA_BLAS_LAYOUT_STRIDE && bytes == sizeof layout->batch_stride) {
    memcpy(&layout->batch_stride, value, bytes);
  } else {
    return INVALID;
  }
  return OK;
}

ENTRY(int32_t, cublasLtMatrixLayoutDestroy, cuda_blas_layout_t layout) {
  free(layout);
  return OK;
}

ENTRY(int32_t, cublasLtMatmulPreferenceCreate, cuda_blas_preference_t *preference) {
  *preference = calloc(1, sizeof **preference);
  if (*preference == NULL) {
    return ALLOCATION;
  }
  (*preference)->reductions = ALL_REDUCTIONS;
  return OK;
}

ENTRY(int32_t, cublasLtMatmulPreferenceSetAttribute, cuda_blas_preference_t preference, int32_t attribute,
      const void *value, size_t bytes) {
  bool is_alignment = attribute >= CUDA_BLAS_PREFERENCE_ALIGN_A && attribute <= CUDA_BLAS_PREFERENCE_ALIGN_D;
  if (is_alignment) {
    return bytes == sizeof(uint32_t) ? OK : INVALID;
  }
  if (attribute == CUDA_BLAS_PREFERENCE_REDUCTIONS && bytes == sizeof preference->reductions) {
    memcpy(&preference->reductions, value, bytes);
    return OK;
  }
  if (attribute != CUDA_BLAS_PREFERENCE_WORKSPACE || bytes != sizeof preference->workspace) {
    return INVALID;
  }
  memcpy(&preference->workspace, value, bytes);
  return OK;
}

ENTRY(int32_t, cublasLtMatmulPreferenceDestroy, cuda_blas_preference_t preference) {
  free(preference);
  return OK;
}

/* ---- products ---- */

/* A product as it is done later. */
typedef struct product {
  struct cuda_blas_desc desc;
  struct cuda_blas_layout a, b, c, d;
  const void *a_data, *b_data, *c_data;
  void *d_data;
  double alpha, beta;
  uint64_t inner;
  double milliseconds;
  bool is_unstable;
} product_t;

static bool is_sound(const product_t *product) {
  const struct cuda_blas_layout *layouts[4] = {&product->a, &product->b, &product->c, &product->d};
  bool turns_a = product->desc.transposes[0] != 0;
  bool turns_b = product->desc.transposes[1] != 0;
  bool is_sound =
      (turns_a ? product->a.columns : product->a.rows) == product->d.rows &&
      (turns_b ? product->b.rows : product->b.columns) == product->d.columns &&
      (turns_a ? product->a.rows : product->a.columns) == (turns_b ? product->b.columns : product->b.rows);
  for (size_t k = 0; k < 4; k++) {
    is_sound = is_sound && layouts[k]->stride >= (int64_t)layouts[k]->rows && layouts[k]->rows > 0 &&
               layouts[k]->columns > 0 && layouts[k]->batches == product->d.batches &&
               layouts[k]->type == product->d.type;
  }
  bool has_bias = (product->desc.epilogue & CUDA_BLAS_EPILOGUE_BIAS) != 0;
  return is_sound && has_bias == (product->desc.bias != NULL);
}

static product_t describe(cuda_blas_desc_t desc, cuda_blas_layout_t a, cuda_blas_layout_t b,
                          cuda_blas_layout_t c, cuda_blas_layout_t d) {
  product_t product = {.desc = *desc, .a = *a, .b = *b, .c = *c, .d = *d};
  product.inner = desc->transposes[0] != 0 ? a->rows : a->columns;
  return product;
}

ENTRY(int32_t, cublasLtMatmulAlgoGetHeuristic, cuda_blas_handle_t handle, cuda_blas_desc_t desc,
      cuda_blas_layout_t a, cuda_blas_layout_t b, cuda_blas_layout_t c, cuda_blas_layout_t d,
      cuda_blas_preference_t preference, int wanted, cuda_blas_choice_t *choices, int *count) {
  int32_t result = fault("cublasLtMatmulAlgoGetHeuristic");
  product_t product = describe(desc, a, b, c, d);
  (void)handle;
  *count = 0;
  if (result != OK) {
    return result;
  }
  if (!is_sound(&product)) {
    return INVALID;
  }
  if ((preference->reductions & REDUCTION_IN_PLACE) != 0) {
    choices[(*count)++] = (cuda_blas_choice_t){.algorithm = {{UNSTABLE}}, .waves = 1.0f};
  }
  for (int k = 0; *count < wanted && k < ALGORITHMS; k++) {
    size_t bytes = (size_t)k * WORKSPACE_BYTES;
    if (bytes <= preference->workspace) {
      choices[(*count)++] =
          (cuda_blas_choice_t){.algorithm = {{(uint64_t)k + 1}}, .workspace_bytes = bytes, .waves = 1.0f};
    }
  }
  return OK;
}

ENTRY(int32_t, cublasLtMatmulAlgoCheck, cuda_blas_handle_t handle, cuda_blas_desc_t desc,
      cuda_blas_layout_t a, cuda_blas_layout_t b, cuda_blas_layout_t c, cuda_blas_layout_t d,
      const cuda_blas_algorithm_t *algorithm, cuda_blas_choice_t *choice) {
  int32_t result = fault("cublasLtMatmulAlgoCheck");
  product_t product = describe(desc, a, b, c, d);
  if (result != OK || handle == NULL || !is_sound(&product)) {
    return result != OK ? result : INVALID;
  }
  if (algorithm->data[0] < 1 || algorithm->data[0] > ALGORITHMS) {
    return CUDA_BLAS_NOT_SUPPORTED;
  }
  choice->workspace_bytes = (size_t)(algorithm->data[0] - 1) * WORKSPACE_BYTES;
  choice->state = OK;
  return OK;
}

static void widen(const struct cuda_blas_layout *layout, const void *data, int32_t batch, double *out) {
  cleave_dtype_t dtype = layout->type == CUDA_BLAS_F64    ? CLEAVE_DTYPE_F64
                         : layout->type == CUDA_BLAS_F16  ? CLEAVE_DTYPE_F16
                         : layout->type == CUDA_BLAS_BF16 ? CLEAVE_DTYPE_BF16
                                                          : CLEAVE_DTYPE_F32;
  size_t size = cleave_dtype_size(dtype);
  for (uint64_t c = 0; c < layout->columns; c++) {
    const char *column =
        (const char *)data + ((int64_t)c * layout->stride + batch * layout->batch_stride) * (int64_t)size;
    cpu_convert(dtype, column, CLEAVE_DTYPE_F64, out + c * layout->rows, (int64_t)layout->rows);
  }
}

static void narrow(const struct cuda_blas_layout *layout, const double *from, int32_t batch, void *data) {
  cleave_dtype_t dtype = layout->type == CUDA_BLAS_F64    ? CLEAVE_DTYPE_F64
                         : layout->type == CUDA_BLAS_F16  ? CLEAVE_DTYPE_F16
                         : layout->type == CUDA_BLAS_BF16 ? CLEAVE_DTYPE_BF16
                                                          : CLEAVE_DTYPE_F32;
  size_t size = cleave_dtype_size(dtype);
  for (uint64_t c = 0; c < layout->columns; c++) {
    char *column =
        (char *)data + ((int64_t)c * layout->stride + batch * layout->batch_stride) * (int64_t)size;
    cpu_convert(CLEAVE_DTYPE_F64, from + c * layout->rows, dtype, column, (int64_t)layout->rows);
  }
}

static double finish(const product_t *product, double value, const double *bias, uint64_t row) {
  value += bias != NULL ? bias[row] : 0;
  if ((product->desc.epilogue & CUDA_BLAS_EPILOGUE_RELU) != 0) {
    value = value < 0 ? 0 : value;
  }
  if ((product->desc.epilogue & CUDA_BLAS_EPILOGUE_GELU_TANH) != 0) {
    value = 0.5 * value * (1 + tanh(0.7978845608028654 * (value + 0.044715 * value * value * value)));
  }
  return value;
}

/* The columns of the result one after the other; the inner loop goes along memory where it can. */
static void multiply(const product_t *product, const double *a, const double *b, double *d) {
  uint64_t rows = product->d.rows;
  bool turns_a = product->desc.transposes[0] != 0;
  for (uint64_t c = 0; c < product->d.columns; c++) {
    double *column = d + c * rows;
    for (uint64_t r = 0; r < rows; r++) {
      column[r] = 0;
    }
    for (uint64_t k = 0; k < product->inner; k++) {
      double factor =
          product->desc.transposes[1] != 0 ? b[k * product->d.columns + c] : b[c * product->inner + k];
      for (uint64_t r = 0; r < rows; r++) {
        column[r] += factor * (turns_a ? a[r * product->inner + k] : a[k * rows + r]);
      }
    }
  }
}

static int32_t run_product(void *context) {
  const product_t *product = context;
  uint64_t size = product->d.rows * product->d.columns;
  double *a = malloc((product->a.rows * product->a.columns + 1) * sizeof *a);
  double *b = malloc((product->b.rows * product->b.columns + 1) * sizeof *b);
  double *c = malloc((size + 1) * sizeof *c);
  double *d = malloc((size + 1) * sizeof *d);
  double *bias = product->desc.bias != NULL ? malloc(product->d.rows * sizeof *bias) : NULL;
  bool has_memory =
      a != NULL && b != NULL && c != NULL && d != NULL && (product->desc.bias == NULL || bias != NULL);
  if (has_memory && bias != NULL) {
    struct cuda_blas_layout column = product->d;
    column.columns = 1;
    widen(&column, product->desc.bias, 0, bias);
  }
  for (int32_t k = 0; has_memory && k < product->d.batches; k++) {
    widen(&product->a, product->a_data, k, a);
    widen(&product->b, product->b_data, k, b);
    multiply(product, a, b, d);
    if (product->beta != 0) {
      widen(&product->c, product->c_data, k, c);
    }
    for (uint64_t i = 0; i < size; i++) {
      d[i] += product->is_unstable ? 1.0 : 0.0;
      double value = product->alpha * d[i] + (product->beta != 0 ? product->beta * c[i] : 0);
      d[i] = finish(product, value, bias, i % product->d.rows);
    }
    narrow(&product->d, d, k, product->d_data);
  }
  free(a);
  free(b);
  free(c);
  free(d);
  free(bias);
  stand_in_spend(product->milliseconds);
  return has_memory ? CUDA_SUCCESS_ : CUDA_LAUNCH_FAILED;
}

ENTRY(int32_t, cublasLtMatmul, cuda_blas_handle_t handle, cuda_blas_desc_t desc, const void *alpha,
      const void *a, cuda_blas_layout_t a_layout, const void *b, cuda_blas_layout_t b_layout,
      const void *beta, const void *c, cuda_blas_layout_t c_layout, void *d, cuda_blas_layout_t d_layout,
      const cuda_blas_algorithm_t *algorithm, void *workspace, size_t workspace_bytes, cuda_stream_t stream) {
  int32_t result = stand_in_enter("cublasLtMatmul");
  int number = algorithm == NULL ? 1 : (int)algorithm->data[0];
  double milliseconds = 0.0;
  result = result != CUDA_SUCCESS_ ? result : stand_in_algorithm("cublasLtMatmul", number - 1, &milliseconds);
  if (result != CUDA_SUCCESS_) {
    (void)stand_in_leave(result);
    return result < 100 ? result : EXECUTION;
  }
  product_t *product = malloc(sizeof *product);
  if (product == NULL) {
    return stand_in_leave(ALLOCATION);
  }
  *product = describe(desc, a_layout, b_layout, c_layout, d_layout);
  product->a_data = a;
  product->b_data = b;
  product->c_data = c;
  product->d_data = d;
  bool is_double = desc->scale == CUDA_BLAS_F64;
  product->alpha = is_double ? *(const double *)alpha : (double)*(const float *)alpha;
  product->beta = is_double ? *(const double *)beta : (double)*(const float *)beta;
  product->milliseconds = milliseconds;
  product->is_unstable = number == UNSTABLE;
  size_t needed = product->is_unstable ? 0 : (size_t)(number - 1) * WORKSPACE_BYTES;
  if (handle == NULL || number < 1 || number > UNSTABLE || !is_sound(product) || workspace_bytes < needed ||
      (needed > 0 && workspace == NULL)) {
    free(product);
    return stand_in_leave(INVALID);
  }
  result = stand_in_enqueue(stream, run_product, product);
  return stand_in_leave(result == CUDA_SUCCESS_ ? OK : EXECUTION);
}
