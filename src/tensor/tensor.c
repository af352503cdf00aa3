// SPDX-License-Identifier: Apache-2.0
/* Tensors: creation with checked sizes, sharing, element access. Borrowed data is never written. */
#include "tensor/tensor.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "cleave/half.h"
#include "tensor/sparse.h"

static const char empty_text[] = "";

/* Versions are unique over all tensors, so that (version) alone tells whether a cached result is stale. */
static _Atomic uint64_t last_version = 1;

void cleave_tensor_touch(cleave_tensor_t *tensor) {
  cleave_sparse_destroy(tensor->sparse);
  tensor->sparse = NULL;
  tensor->version = atomic_fetch_add_explicit(&last_version, 1, memory_order_relaxed);
}

static cleave_status_t create(cleave_dtype_t dtype, int32_t rank, const int64_t *dims,
                              cleave_tensor_t **out_tensor, cleave_error_t *error) {
  int64_t count = 0;
  size_t bytes = 0;
  *out_tensor = NULL;
  if (rank < 0 || rank > CLEAVE_MAX_RANK) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "tensor: expected a rank of 0 to %d, found %d",
                            CLEAVE_MAX_RANK, rank);
  }
  if (cleave_dtype_size(dtype) == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "tensor: dtype number %d is unknown",
                            (int)dtype);
  }
  if (!cleave_shape_element_count(rank, dims, &count) ||
      !cleave_size_multiply((size_t)count, cleave_dtype_size(dtype), &bytes) || bytes > PTRDIFF_MAX) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "tensor: its size does not fit into memory");
  }
  cleave_tensor_t *tensor = cleave_allocate_zeroed(1, sizeof *tensor);
  CLEAVE_TRY_MEMORY(tensor, error);
  tensor->dtype = dtype;
  tensor->rank = rank;
  if (rank > 0) {
    memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
  }
  tensor->count = count;
  tensor->bytes = bytes;
  tensor->references = 1;
  cleave_tensor_touch(tensor);
  *out_tensor = tensor;
  return CLEAVE_OK;
}

cleave_status_t cleave_tensor_create(cleave_dtype_t dtype, int32_t rank, const int64_t *dims,
                                     cleave_tensor_t **out_tensor, cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(create(dtype, rank, dims, &tensor, error));
  tensor->data = cleave_allocate_aligned(tensor->bytes);
  tensor->owns_data = true;
  if (tensor->data == NULL) {
    cleave_free(tensor);
    *out_tensor = NULL;
    return cleave_error_out_of_memory(error);
  }
  memset(tensor->data, 0, tensor->bytes);
  for (int64_t k = 0; dtype == CLEAVE_DTYPE_STRING && k < tensor->count; k++) {
    ((const char **)tensor->data)[k] = empty_text;
  }
  *out_tensor = tensor;
  return CLEAVE_OK;
}

cleave_status_t cleave_tensor_create_borrowed(const cleave_tensor_view_t *view, size_t bytes,
                                              cleave_file_t *file, cleave_tensor_t **out_tensor,
                                              cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(create(view->dtype, view->rank, view->dims, &tensor, error));
  if (tensor->bytes != bytes || view->dtype == CLEAVE_DTYPE_STRING) {
    size_t expected = tensor->bytes;
    cleave_free(tensor);
    *out_tensor = NULL;
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "tensor: expected %zu byte%s of data for its shape, found %zu", expected,
                            CLEAVE_PLURAL(expected), bytes);
  }
  tensor->data = (void *)(uintptr_t)view->data;
  tensor->file = file != NULL ? cleave_file_retain(file) : NULL;
  *out_tensor = tensor;
  return CLEAVE_OK;
}

bool cleave_tensor_view_bytes(const cleave_tensor_view_t *tensor, size_t *out_bytes) {
  size_t bytes = cleave_dtype_size(tensor->dtype);
  if (tensor->rank < 0 || bytes == 0) {
    return false;
  }
  int32_t first = 0;
  if (tensor->storage != CLEAVE_STORAGE_DENSE) {
    first = tensor->storage == CLEAVE_STORAGE_CSR ? tensor->rank : 1;
    if (tensor->sparse == NULL || tensor->sparse->stored < 0 ||
        !cleave_size_multiply(bytes, (size_t)tensor->sparse->stored, &bytes)) {
      return false;
    }
  }
  for (int32_t d = 0; d < tensor->rank; d++) {
    if (tensor->dims[d] < 0) {
      return false;
    }
    if (d >= first && !cleave_size_multiply(bytes, (size_t)tensor->dims[d], &bytes)) {
      return false;
    }
  }
  *out_bytes = bytes;
  return true;
}

cleave_status_t cleave_tensor_create_ints(int32_t rank, const int64_t *values, int64_t count,
                                          cleave_tensor_t **out_tensor, cleave_error_t *error) {
  CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_I64, rank, &count, out_tensor, error));
  if (count > 0) {
    memcpy((*out_tensor)->data, values, (size_t)count * sizeof *values);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_tensor_create_float(float value, cleave_tensor_t **out_tensor, cleave_error_t *error) {
  CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_F32, 0, NULL, out_tensor, error));
  memcpy((*out_tensor)->data, &value, sizeof value);
  return CLEAVE_OK;
}

cleave_tensor_t *cleave_tensor_retain(cleave_tensor_t *tensor) {
  (void)__atomic_fetch_add(&tensor->references, 1, __ATOMIC_RELAXED);
  return tensor;
}

void cleave_tensor_release(cleave_tensor_t *tensor) {
  if (tensor == NULL || __atomic_fetch_sub(&tensor->references, 1, __ATOMIC_ACQ_REL) != 1) {
    return;
  }
  if (tensor->owns_data) {
    for (int64_t k = 0; tensor->dtype == CLEAVE_DTYPE_STRING && k < tensor->count; k++) {
      const char *text = ((const char **)tensor->data)[k];
      if (text != empty_text) {
        cleave_free((void *)(uintptr_t)text);
      }
    }
    cleave_free(tensor->data);
  }
  cleave_sparse_destroy(tensor->sparse);
  cleave_file_release(tensor->file);
  cleave_free(tensor);
}

cleave_status_t cleave_tensor_set_string(cleave_tensor_t *tensor, int64_t index, const char *text,
                                         size_t length, cleave_error_t *error) {
  char *copy = cleave_copy_text(text, length);
  CLEAVE_TRY_MEMORY(copy, error);
  const char **place = (const char **)tensor->data + index;
  if (*place != empty_text) {
    cleave_free((void *)(uintptr_t)*place);
  }
  *place = copy;
  return CLEAVE_OK;
}

/* Element `index`, an unaligned `type` that is called `value` in what is returned. */
#define LOAD_CASE(dtype, type, result)                                                       \
  case dtype: {                                                                              \
    type value;                                                                              \
    memcpy(&value, (const char *)tensor->data + (size_t)index * sizeof value, sizeof value); \
    return (result);                                                                         \
  }

double cleave_tensor_get_float(const cleave_tensor_t *tensor, int64_t index) {
  switch (tensor->dtype) {
    LOAD_CASE(CLEAVE_DTYPE_F32, float, (double)value)
    LOAD_CASE(CLEAVE_DTYPE_F64, double, value)
    LOAD_CASE(CLEAVE_DTYPE_F16, uint16_t, (double)cleave_half_to_float(value))
    LOAD_CASE(CLEAVE_DTYPE_BF16, uint16_t, (double)cleave_bfloat_to_float(value))
    LOAD_CASE(CLEAVE_DTYPE_U64, uint64_t, (double)value)
    default: return (double)cleave_tensor_get_int(tensor, index);
  }
}

int64_t cleave_tensor_get_int(const cleave_tensor_t *tensor, int64_t index) {
  switch (tensor->dtype) {
    LOAD_CASE(CLEAVE_DTYPE_I64, int64_t, value)
    LOAD_CASE(CLEAVE_DTYPE_I32, int32_t, value)
    LOAD_CASE(CLEAVE_DTYPE_I16, int16_t, value)
    LOAD_CASE(CLEAVE_DTYPE_I8, int8_t, value)
    LOAD_CASE(CLEAVE_DTYPE_U8, uint8_t, value)
    LOAD_CASE(CLEAVE_DTYPE_BOOL, uint8_t, value)
    LOAD_CASE(CLEAVE_DTYPE_U16, uint16_t, value)
    LOAD_CASE(CLEAVE_DTYPE_U32, uint32_t, value)
    LOAD_CASE(CLEAVE_DTYPE_U64, uint64_t, value > INT64_MAX ? INT64_MAX : (int64_t)value)
    case CLEAVE_DTYPE_F32:
    case CLEAVE_DTYPE_F64:
    case CLEAVE_DTYPE_F16:
    case CLEAVE_DTYPE_BF16: {
      double value = cleave_tensor_get_float(tensor, index);
      if (isnan(value)) {
        return 0;
      }
      return value >= 0x1p63 ? INT64_MAX : (value <= -0x1p63 ? INT64_MIN : (int64_t)value);
    }
    case CLEAVE_DTYPE_STRING:
    case CLEAVE_DTYPE_UNKNOWN: break;
  }
  return 0;
}

/* An integer of `type` nearest to `value`, 0 for NaN. */
#define STORE_INTEGER(type, low, high)                                                                      \
  do {                                                                                                      \
    type stored_ =                                                                                          \
        isnan(value) ? 0                                                                                    \
                     : (value <= (double)(low) ? (low) : (value >= (double)(high) ? (high) : (type)value)); \
    memcpy((char *)tensor->data + (size_t)index * sizeof stored_, &stored_, sizeof stored_);                \
  } while (0)

void cleave_tensor_set_float(cleave_tensor_t *tensor, int64_t index, double value) {
  switch (tensor->dtype) {
    case CLEAVE_DTYPE_F32: ((float *)tensor->data)[index] = (float)value; break;
    case CLEAVE_DTYPE_F64: ((double *)tensor->data)[index] = value; break;
    case CLEAVE_DTYPE_F16: ((uint16_t *)tensor->data)[index] = cleave_float_to_half((float)value); break;
    case CLEAVE_DTYPE_BF16: ((uint16_t *)tensor->data)[index] = cleave_float_to_bfloat((float)value); break;
    case CLEAVE_DTYPE_I64: STORE_INTEGER(int64_t, INT64_MIN, INT64_MAX); break;
    case CLEAVE_DTYPE_I32: STORE_INTEGER(int32_t, INT32_MIN, INT32_MAX); break;
    case CLEAVE_DTYPE_I16: STORE_INTEGER(int16_t, INT16_MIN, INT16_MAX); break;
    case CLEAVE_DTYPE_I8: STORE_INTEGER(int8_t, INT8_MIN, INT8_MAX); break;
    case CLEAVE_DTYPE_U64: STORE_INTEGER(uint64_t, 0, UINT64_MAX); break;
    case CLEAVE_DTYPE_U32: STORE_INTEGER(uint32_t, 0, UINT32_MAX); break;
    case CLEAVE_DTYPE_U16: STORE_INTEGER(uint16_t, 0, UINT16_MAX); break;
    case CLEAVE_DTYPE_U8: STORE_INTEGER(uint8_t, 0, UINT8_MAX); break;
    case CLEAVE_DTYPE_BOOL: ((uint8_t *)tensor->data)[index] = value != 0.0; break;
    case CLEAVE_DTYPE_STRING:
    case CLEAVE_DTYPE_UNKNOWN: break;
  }
}
