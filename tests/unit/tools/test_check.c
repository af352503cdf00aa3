// SPDX-License-Identifier: Apache-2.0
// Comparing outputs: tolerances, their scale, and what is said about the first difference.
#include "backend/region/view.h"
#include "plan_case.h"
#include "session_case.h"
#include "tools/profile/profile.h"
#include "tools/verify/check.h"
#include "unit.h"

static cleave_tensor_t *floats(const int64_t *dims, int32_t rank, const float *data) {
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, rank, dims, &tensor, e));
  memcpy(tensor->data, data, tensor->bytes);
  return tensor;
}

/* Compares and says what is wrong; "" where nothing is. */
static const char *compare(const cleave_tensor_t *actual, const cleave_tensor_t *expected,
                           cleave_check_tolerance_t tolerance, cleave_check_result_t *result) {
  static char line[512];
  cleave_text_t text = {0};
  cleave_tensor_view_t view = cleave_tensor_view(actual);
  unit_ok(cleave_check_tensor(&view, expected, &tolerance, result, e));
  cleave_check_explain("y", &view, expected, result, &text);
  ck_assert(result->matches == (text.length == 0));
  snprintf(line, sizeof line, "%s", cleave_text_get(&text));
  cleave_text_deinit(&text);
  return line;
}

UNIT_TEST(the_absolute_tolerance_scales_with_the_output) {
  const int64_t dims[] = {2, 2};
  cleave_tensor_t *expected = floats(dims, 2, (const float[]){0, 1, 2, 1000});
  cleave_tensor_t *actual = floats(dims, 2, (const float[]){0.005f, 1, 2, 1000});
  cleave_check_result_t result;
  cleave_check_tolerance_t tolerance = {.rtol = 0.0, .atol = 1e-5, .scaled = true};
  ck_assert_str_eq(compare(actual, expected, tolerance, &result), "");
  ck_assert_double_eq_tol(result.difference.max_absolute, 0.005, 1e-9);
  ck_assert_double_eq_tol(result.relative, 5e-6, 1e-12);
  tolerance.scaled = false;
  ck_assert_str_eq(compare(actual, expected, tolerance, &result),
                   "output 'y': 1 of 4 values differs, first at [0, 0]: found 0.00499999989, expected 0");
  tolerance.atol = 0.01;
  ck_assert_str_eq(compare(actual, expected, tolerance, &result), "");
  cleave_tensor_release(actual);
  cleave_tensor_release(expected);
}

UNIT_TEST(the_first_difference_is_told_with_its_place) {
  const int64_t dims[] = {1, 2, 3};
  cleave_tensor_t *expected = floats(dims, 3, (const float[]){1, 2, 3, 4, 5, 6});
  cleave_tensor_t *actual = floats(dims, 3, (const float[]){1, 2, 3, 4, 7, 8});
  cleave_check_result_t result;
  cleave_check_tolerance_t tolerance = {.rtol = 1e-3};
  ck_assert_str_eq(compare(actual, expected, tolerance, &result),
                   "output 'y': 2 of 6 values differ, first at [0, 1, 1]: found 7, expected 5");
  cleave_tensor_release(actual);
  cleave_tensor_release(expected);
}

UNIT_TEST(another_shape_or_dtype_is_told) {
  cleave_tensor_t *expected = floats((const int64_t[]){2, 1}, 2, (const float[]){1, 2});
  cleave_tensor_t *actual = floats((const int64_t[]){2}, 1, (const float[]){1, 2});
  cleave_check_result_t result;
  cleave_check_tolerance_t tolerance = {0};
  ck_assert_str_eq(compare(actual, expected, tolerance, &result),
                   "output 'y': found float32[2], expected float32[2, 1]");
  cleave_tensor_release(actual);
  cleave_tensor_release(expected);
}

UNIT_TEST(sixteen_bit_words_stand_for_bfloat16) {
  cleave_tensor_t *expected = NULL;
  cleave_tensor_t *actual = NULL;
  const int64_t dims[] = {2};
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_U16, 1, dims, &expected, e));
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_BF16, 1, dims, &actual, e));
  ((uint16_t *)expected->data)[0] = 0x3f80; /* 1 */
  ((uint16_t *)actual->data)[0] = 0x3f81;   /* the next one */
  cleave_check_result_t result;
  cleave_check_tolerance_t tolerance = {.rtol = 0.01};
  ck_assert_str_eq(compare(actual, expected, tolerance, &result), "");
  tolerance.rtol = 0.001;
  ck_assert_str_ne(compare(actual, expected, tolerance, &result), "");
  cleave_tensor_release(actual);
  cleave_tensor_release(expected);
}

UNIT_TEST(a_profile_adds_up_steps_by_label_and_region) {
  session_case_t c = {.graph = plan_case_graph("a = Exp(x); b = Neg(a); d = Neg(b); t = Tanh(d); -> t")};
  session_case_feed(&c, 2, (const int64_t[]){2, 2}, (const float[]){1, 2, 3, 4});
  session_case_partition(&c, "Exp,Neg", "cpu");
  cleave_session_options_t options = {.size = sizeof options, .threads = 1, .profile = true};
  session_case_compile(&c, &options);
  cleave_profile_t profile = {0};
  for (int k = 0; k < 3; k++) {
    session_case_run(&c);
    unit_ok(cleave_profile_add(&profile, c.session, c.plan, e));
  }
  cleave_profile_finish(&profile);
  ck_assert_uint_eq(profile.regions.count, 2);
  ck_assert_uint_eq(profile.lines.count, 3);
  uint32_t seen = 0;
  for (size_t k = 0; k < profile.lines.count; k++) {
    const cleave_profile_line_t *line = &profile.lines.items[k];
    ck_assert_uint_eq(line->count, strcmp(line->label, "Neg") == 0 ? 2 : 1);
    ck_assert_str_eq(line->backend, "cpu");
    seen += strcmp(line->label, "Tanh") == 0;
    ck_assert(k == 0 || line->total_ms <= profile.lines.items[k - 1].total_ms);
  }
  ck_assert_uint_eq(seen, 1);
  cleave_profile_deinit(&profile);
  session_case_deinit(&c);
}

UNIT_SUITE("check")
