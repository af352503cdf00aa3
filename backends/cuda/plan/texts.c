// SPDX-License-Identifier: Apache-2.0
// Texts of kernels, from the files of texts/, and what they begin with.
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/expression.h"
#include "plan.h"

typedef struct embedded {
  const char *name;
  const char *text;
} embedded_t;

#include "cuda_texts.inc"

const char *cuda_text_find(const char *name) {
  for (const embedded_t *at = cuda_texts; at->name != NULL; at++) {
    if (strcmp(at->name, name) == 0) {
      return at->text;
    }
  }
  return NULL;
}

int cuda_text_defines(cleave_dtype_t dtype, char *out_text, size_t size) {
  const char *widen = dtype == CLEAVE_DTYPE_F16    ? "half_to_float(x)"
                      : dtype == CLEAVE_DTYPE_BF16 ? "bfloat_to_float(x)"
                                                   : "(x)";
  const char *narrow = dtype == CLEAVE_DTYPE_F16    ? "float_to_half(x)"
                       : dtype == CLEAVE_DTYPE_BF16 ? "float_to_bfloat(x)"
                                                    : "(element)(x)";
  return snprintf(out_text, size,
                  "typedef %s element;\ntypedef %s number;\n#define widen(x) %s\n#define narrow(x) %s\n",
                  cuda_type(dtype), cuda_type(kernel_compute_dtype(dtype)), widen, narrow);
}
