// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "imperative/imperative.h"

cleave_status_t cleave_array_set_shape(cleave_array_t *array, int32_t rank, const int64_t *dims,
                                       cleave_error_t *error) {
  int64_t count = 0;
  size_t bytes = 0;
  if (rank < 0 || rank > CLEAVE_MAX_RANK) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "array: expected rank 0 to %d, found %d",
                            CLEAVE_MAX_RANK, (int)rank);
  }
  for (int32_t d = 0; d < rank; d++) {
    if (dims[d] < 0) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "array: dimension %d: expected a size of 0 or more, found %lld", (int)d,
                              (long long)dims[d]);
    }
  }
  if (!cleave_shape_element_count(rank, dims, &count) ||
      !cleave_size_multiply((size_t)count, cleave_dtype_size(array->dtype), &bytes)) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "array: more elements than memory can have");
  }
  array->data = memory_pool_take(&array->owner->pool, bytes);
  if (array->data == NULL) {
    return cleave_error_out_of_memory(error);
  }
  array->rank = rank;
  array->count = count;
  array->bytes = bytes;
  if (rank > 0) {
    memcpy(array->dims, dims, (size_t)rank * sizeof *dims);
  }
  return CLEAVE_OK;
}

static void end_array(void *self) {
  cleave_array_t *array = self;
  memory_pool_t *pool = &array->owner->pool;
  memory_pool_give(pool, array->data, array->bytes);
  memory_pool_give(pool, array, sizeof *array);
}

cleave_status_t cleave_array_allocate(cleave_imperative_t *imperative, cleave_dtype_t dtype, int32_t rank,
                                      const int64_t *dims, cleave_array_t **out_array,
                                      cleave_error_t *error) {
  if (dtype == CLEAVE_DTYPE_STRING || cleave_dtype_size(dtype) == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "array: expected a dtype of numbers, found %s",
                            cleave_dtype_name(dtype));
  }
  cleave_array_t *array = memory_pool_take(&imperative->pool, sizeof *array);
  if (array == NULL) {
    return cleave_error_out_of_memory(error);
  }
  memset(array, 0, sizeof *array);
  array->owner = imperative;
  array->dtype = dtype;
  array->rank = -1;
  atomic_init(&array->references, 1);
  cleave_status_t status = rank < 0 ? CLEAVE_OK : cleave_array_set_shape(array, rank, dims, error);
  CLEAVE_THEN(status, cleave_variable_create(imperative->engine, NULL, &array->variable, error));
  CLEAVE_TRY_OR(status, end_array(array));
  *out_array = array;
  return CLEAVE_OK;
}

cleave_status_t cleave_array_create(cleave_imperative_t *imperative, cleave_dtype_t dtype, int32_t rank,
                                    const int64_t *dims, const void *data, cleave_array_t **out_array,
                                    cleave_error_t *error) {
  *out_array = NULL;
  if (rank < 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "array: expected rank 0 to %d, found %d",
                            CLEAVE_MAX_RANK, (int)rank);
  }
  CLEAVE_TRY(cleave_array_allocate(imperative, dtype, rank, dims, out_array, error));
  (*out_array)->is_computed = true;
  if (data != NULL && (*out_array)->bytes > 0) {
    memcpy((*out_array)->data, data, (*out_array)->bytes);
  } else {
    memset((*out_array)->data, 0, (*out_array)->bytes);
  }
  return CLEAVE_OK;
}

cleave_array_t *cleave_array_retain(cleave_array_t *array) {
  atomic_fetch_add_explicit(&array->references, 1, memory_order_relaxed);
  return array;
}

void cleave_array_release(cleave_array_t *array) {
  if (array != NULL && atomic_fetch_sub_explicit(&array->references, 1, memory_order_acq_rel) == 1) {
    cleave_variable_release(array->variable, end_array, array);
  }
}

cleave_dtype_t cleave_array_dtype(const cleave_array_t *array) {
  return array->dtype;
}

int32_t cleave_array_rank(const cleave_array_t *array) {
  return array->rank;
}

const int64_t *cleave_array_dims(const cleave_array_t *array) {
  return array->dims;
}

int64_t cleave_array_count(const cleave_array_t *array) {
  return array->count;
}

size_t cleave_array_bytes(const cleave_array_t *array) {
  return array->bytes;
}

cleave_variable_t *cleave_array_variable(cleave_array_t *array) {
  return array->variable;
}

cleave_status_t cleave_array_data(cleave_array_t *array, const void **out_data, cleave_error_t *error) {
  *out_data = NULL;
  CLEAVE_TRY(cleave_variable_wait(array->variable, error));
  if (!array->is_computed) { /* somebody was told why */
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "array: it was not computed, because a call before it failed");
  }
  *out_data = array->data;
  return CLEAVE_OK;
}
