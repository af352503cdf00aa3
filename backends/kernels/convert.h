// SPDX-License-Identifier: Apache-2.0
/*
 * Conversions between element types, as ONNX Cast defines them: float to integer truncates, integers wrap,
 * anything but zero is true. Where Cast leaves the result open (float out of range, NaN), it saturates, and
 * NaN becomes 0. Float16 and bfloat16 round to nearest even.
 */
#ifndef CLEAVE_KERNELS_CONVERT_H
#define CLEAVE_KERNELS_CONVERT_H

#include "cleave/backend.h"
#include "cleave/half.h"

/* Elements converted at a time where a loop goes through a buffer on the stack. */
enum { CPU_BLOCK = 256 };

/* Truncates; saturates out of range; NaN gives 0. */
static inline int64_t cpu_f64_to_i64(double value) {
  if (!(value >= -0x1p63)) {
    return value != value ? 0 : INT64_MIN;
  }
  return value >= 0x1p63 ? INT64_MAX : (int64_t)value;
}

/* Converts `count` elements. Neither dtype may be STRING or UNKNOWN. Source and destination may be the same
 * memory where the elements have the same size. */
void cpu_convert(cleave_dtype_t from, const void *source, cleave_dtype_t to, void *destination,
                 int64_t count);

static inline bool cpu_dtype_is_float(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F32 || dtype == CLEAVE_DTYPE_F64 || dtype == CLEAVE_DTYPE_F16 ||
         dtype == CLEAVE_DTYPE_BF16;
}

static inline bool cpu_dtype_is_integer(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_U8 || dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_U16 ||
         dtype == CLEAVE_DTYPE_I16 || dtype == CLEAVE_DTYPE_I32 || dtype == CLEAVE_DTYPE_I64 ||
         dtype == CLEAVE_DTYPE_U32 || dtype == CLEAVE_DTYPE_U64;
}

/* Every dtype that holds numbers or truth values. */
static inline bool cpu_dtype_is_plain(cleave_dtype_t dtype) {
  return cpu_dtype_is_float(dtype) || cpu_dtype_is_integer(dtype) || dtype == CLEAVE_DTYPE_BOOL;
}

/* Float16 and bfloat16: computed as float. */
static inline bool cpu_dtype_is_short_float(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F16 || dtype == CLEAVE_DTYPE_BF16;
}

#endif /* CLEAVE_KERNELS_CONVERT_H */
