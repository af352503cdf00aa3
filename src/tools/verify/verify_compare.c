// SPDX-License-Identifier: Apache-2.0
// How far values may differ: as the options say, by dtype, or by what rounding does.
#include "tools/verify/verify.h"

cleave_status_t cleave_verify_compare(const cleave_verify_options_t *options, cleave_rounding_t *rounding,
                                      size_t index, const cleave_tensor_view_t *actual,
                                      const cleave_tensor_t *expected, cleave_check_result_t *out_result,
                                      cleave_error_t *error) {
  if (options->rtol < 0.0 && options->atol < 0.0) {
    return cleave_rounding_check(rounding, index, actual, expected, out_result, error);
  }
  cleave_check_tolerance_t tolerance = cleave_check_tolerance_of(expected->dtype);
  tolerance.rtol = options->rtol < 0.0 ? tolerance.rtol : options->rtol;
  tolerance.atol = options->atol < 0.0 ? tolerance.atol : options->atol;
  return cleave_check_tensor(actual, expected, &tolerance, out_result, error);
}
