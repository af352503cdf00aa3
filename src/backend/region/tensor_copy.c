// SPDX-License-Identifier: Apache-2.0
// A library's tensor is measured before anything of it is read: only then can its bytes be counted.
#include "backend/region/tensor_copy.h"

#include <string.h>

static const char *wrong_with(const cleave_tensor_view_t *view) {
  if (view == NULL) {
    return "there is none";
  }
  if (!cleave_dtype_is_valid((int64_t)view->dtype)) {
    return "its dtype is unknown";
  }
  if (view->rank < 0 || view->rank > CLEAVE_MAX_RANK || (view->rank > 0 && view->dims == NULL)) {
    return "its shape is not known, or has too many dimensions";
  }
  if (view->storage != CLEAVE_STORAGE_DENSE || view->memory != CLEAVE_MEMORY_HOST) {
    return "it is not dense and in host memory";
  }
  return NULL;
}

static cleave_status_t copy_texts(const cleave_tensor_view_t *view, cleave_tensor_t *tensor,
                                  cleave_error_t *error) {
  for (int64_t k = 0; k < tensor->count; k++) {
    const char *text = ((const char *const *)view->data)[k];
    if (text == NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "the tensor: element %lld is not a string", (long long)k);
    }
    CLEAVE_TRY(cleave_tensor_set_string(tensor, k, text, strlen(text), error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_tensor_copy_view(const cleave_tensor_view_t *view, size_t most_bytes,
                                        cleave_tensor_t **out_tensor, cleave_error_t *error) {
  const char *wrong = wrong_with(view);
  int64_t count = 0;
  size_t bytes = 0;
  *out_tensor = NULL;
  if (wrong == NULL && !cleave_shape_element_count(view->rank, view->dims, &count)) {
    wrong = "its sizes are not known, or too large";
  }
  if (wrong == NULL && count > 0 && view->data == NULL) {
    wrong = "it has no data";
  }
  if (wrong != NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "the tensor: %s", wrong);
  }
  if (!cleave_size_multiply((size_t)count, cleave_dtype_size(view->dtype), &bytes) || bytes > most_bytes) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "the tensor: more than %zu bytes", most_bytes);
  }
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create(view->dtype, view->rank, view->dims, &tensor, error));
  cleave_status_t status = CLEAVE_OK;
  if (view->dtype == CLEAVE_DTYPE_STRING) {
    status = copy_texts(view, tensor, error);
  } else if (bytes > 0) {
    memcpy(tensor->data, view->data, bytes);
  }
  CLEAVE_TRY_OR(status, cleave_tensor_release(tensor));
  cleave_tensor_touch(tensor);
  *out_tensor = tensor;
  return CLEAVE_OK;
}
