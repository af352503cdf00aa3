// SPDX-License-Identifier: Apache-2.0
// Checks of shapes that programs tell in their runs. What inference and the model say of an output holds for
// the steps behind it, too: a library that says something else is found here, where it can be named.
#include "backend/program/resize.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"

cleave_status_t cleave_resize_refuse(cleave_resize_refusal_t *refusal, cleave_status_t status,
                                     const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(refusal->reason.text, sizeof refusal->reason.text, format, arguments);
  va_end(arguments);
  refusal->status = status;
  return status;
}

cleave_status_t cleave_resize_refuse_output(cleave_resize_refusal_t *refusal, uint32_t output) {
  return cleave_resize_refuse(refusal, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "the library asks for memory for output %u, which is not one of an open shape",
                              (unsigned)output);
}

void cleave_resize_explain(const cleave_resize_refusal_t *refusal, cleave_status_t status,
                           cleave_message_t *message) {
  if (message->text[0] == '\0' && refusal->status == status && status != CLEAVE_OK) {
    *message = refusal->reason;
  }
}

static bool agrees(const cleave_resize_t *resize, const cleave_tensor_view_t *known) {
  bool is_same = known->rank < 0 || known->rank == resize->rank;
  for (int32_t d = 0; is_same && d < known->rank; d++) {
    is_same = known->dims[d] < 0 || known->dims[d] == resize->dims[d];
  }
  return is_same;
}

static cleave_status_t refuse_shape(const cleave_resize_t *resize, const cleave_tensor_view_t *known,
                                    const cleave_dims_t *symbols, cleave_resize_refusal_t *refusal) {
  cleave_text_t text = {0};
  cleave_shape_print(NULL, resize->rank, resize->dims, &text);
  cleave_text_add(&text, ", expected ");
  cleave_shape_print(symbols, known->rank, known->dims, &text);
  cleave_status_t status =
      cleave_resize_refuse(refusal, CLEAVE_ERROR_SHAPE, "output %u: the library asks for memory for %.400s",
                           (unsigned)resize->output, cleave_text_get(&text));
  cleave_text_deinit(&text);
  return status;
}

cleave_status_t cleave_resize_check(cleave_resize_t *resize, const cleave_tensor_view_t *known,
                                    const cleave_dims_t *symbols, size_t most_bytes,
                                    cleave_resize_refusal_t *refusal) {
  unsigned output = (unsigned)resize->output;
  if (resize->rank < 0 || resize->rank > CLEAVE_MAX_RANK) {
    return cleave_resize_refuse(refusal, CLEAVE_ERROR_INVALID_ARGUMENT,
                                "output %u: the library asks for rank %d, expected 0 to %d", output,
                                (int)resize->rank, CLEAVE_MAX_RANK);
  }
  for (int32_t d = 0; d < resize->rank; d++) {
    if (resize->dims[d] < 0) {
      return cleave_resize_refuse(refusal, CLEAVE_ERROR_INVALID_ARGUMENT,
                                  "output %u: the library asks for the size %lld in dimension %d", output,
                                  (long long)resize->dims[d], (int)d);
    }
  }
  if (!agrees(resize, known)) {
    return refuse_shape(resize, known, symbols, refusal);
  }
  int64_t count = 0;
  if (!cleave_shape_element_count(resize->rank, resize->dims, &count) ||
      !cleave_size_multiply((size_t)count, cleave_dtype_size(known->dtype), &resize->bytes) ||
      resize->bytes > most_bytes) {
    return cleave_resize_refuse(refusal, CLEAVE_ERROR_LIMIT,
                                "output %u: the library asks for more memory than there can be", output);
  }
  return CLEAVE_OK;
}
