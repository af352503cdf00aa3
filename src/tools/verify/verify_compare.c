// SPDX-License-Identifier: Apache-2.0
// How far values may differ: as the options say, by dtype, or by what rounding does.
#include "tools/verify/verify.h"

/* Tolerance for an output of this dtype: float64 1e-9, float32 1e-3 and 1e-4 of the largest value, float16
 * 1e-2, bfloat16 4e-2; all others exact. */
static cleave_check_tolerance_t tolerance_of(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F64: return (cleave_check_tolerance_t){.rtol = 1e-9, .atol = 1e-9, .scaled = true};
    case CLEAVE_DTYPE_F32: return (cleave_check_tolerance_t){.rtol = 1e-3, .atol = 1e-4, .scaled = true};
    case CLEAVE_DTYPE_F16: return (cleave_check_tolerance_t){.rtol = 1e-2, .atol = 1e-2, .scaled = true};
    case CLEAVE_DTYPE_BF16: return (cleave_check_tolerance_t){.rtol = 4e-2, .atol = 4e-2, .scaled = true};
    default: return (cleave_check_tolerance_t){0};
  }
}

cleave_status_t cleave_verify_compare(const cleave_verify_options_t *options, cleave_rounding_t *rounding,
                                      size_t index, const cleave_tensor_view_t *actual,
                                      const cleave_tensor_t *expected, cleave_check_result_t *out_result,
                                      cleave_error_t *error) {
  if (options->rtol < 0.0 && options->atol < 0.0) {
    return cleave_rounding_check(rounding, index, actual, expected, out_result, error);
  }
  cleave_check_tolerance_t tolerance = tolerance_of(expected->dtype);
  tolerance.rtol = options->rtol < 0.0 ? tolerance.rtol : options->rtol;
  tolerance.atol = options->atol < 0.0 ? tolerance.atol : options->atol;
  return cleave_check_tensor(actual, expected, &tolerance, out_result, error);
}
