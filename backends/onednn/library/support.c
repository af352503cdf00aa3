// SPDX-License-Identifier: Apache-2.0
// Failures and checked sizes.
#include "onednn/library/support.h"

#include <string.h>

static const char *status_text(dnnl_status_t status) {
  switch ((int)status) {
    case dnnl_success: return "success";
    case dnnl_out_of_memory: return "out of memory";
    case dnnl_invalid_arguments: return "invalid arguments";
    case dnnl_unimplemented: return "not implemented";
    case dnnl_runtime_error: return "run-time error";
    case dnnl_not_required: return "not required";
    default: return "an unknown status";
  }
}

cleave_status_t onednn_check(dnnl_status_t status, const char *what, cleave_message_t *message) {
  if (status == dnnl_success) {
    return CLEAVE_OK;
  }
  cleave_status_t code = CLEAVE_ERROR_BACKEND;
  if (status == dnnl_out_of_memory) {
    code = CLEAVE_ERROR_OUT_OF_MEMORY;
  } else if (status == dnnl_unimplemented) {
    code = CLEAVE_ERROR_UNSUPPORTED;
  }
  return kernel_fail(message, code, "%s: oneDNN says '%s'", what, status_text(status));
}

const char *onednn_implementation(const_dnnl_primitive_desc_t description) {
  const char *name = NULL;
  bool is_told = dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, &name) == dnnl_success &&
                 name != NULL;
  return is_told ? name : "";
}

bool onednn_is_named(const_dnnl_primitive_desc_t description, const char *part) {
  return strstr(onednn_implementation(description), part) != NULL;
}

bool onednn_is_reference(const_dnnl_primitive_desc_t description) {
  return onednn_is_named(description, "ref");
}

bool onednn_reads_scratch(const_dnnl_primitive_desc_t description) {
  return onednn_is_named(description, "amx");
}

bool onednn_multiply(size_t a, size_t b, size_t *out) {
  if (b != 0 && a > SIZE_MAX / b) {
    return false;
  }
  *out = a * b;
  return true;
}

bool onednn_add(size_t a, size_t b, size_t *out) {
  if (a > SIZE_MAX - b) {
    return false;
  }
  *out = a + b;
  return true;
}

size_t onednn_round_up(size_t bytes) {
  return (bytes + 63U) & ~(size_t)63U;
}
