// SPDX-License-Identifier: Apache-2.0
/* Dtypes, symbolic dimensions, tensors, fills, comparison, npy files. */
#include <math.h>
#include <unistd.h>

#include "cleave/half.h"
#include "tensor/npy.h"
#include "unit.h"

static void assert_dim(const cleave_dims_t *dims, cleave_dim_t dim, const char *expected) {
  cleave_text_t text = {0};
  cleave_dim_print(dims, dim, &text);
  ck_assert_str_eq(cleave_text_get(&text), expected);
  cleave_text_deinit(&text);
}

UNIT_TEST(sixteen_bit_floats_round_to_nearest_even) {
  ck_assert_uint_eq(cleave_float_to_half(1.0f), 0x3c00);
  ck_assert_uint_eq(cleave_float_to_half(65504.0f), 0x7bff);
  ck_assert_uint_eq(cleave_float_to_half(65519.99f), 0x7bff);
  ck_assert_uint_eq(cleave_float_to_half(65520.0f), 0x7c00);
  ck_assert_uint_eq(cleave_float_to_half(-0.0f), 0x8000);
  ck_assert_uint_eq(cleave_float_to_half(0x1p-24f), 0x0001);
  ck_assert_uint_eq(cleave_float_to_half(0x1p-25f), 0x0000);
  ck_assert_uint_eq(cleave_float_to_half(0x1.8p-24f), 0x0002);
  ck_assert_uint_eq(cleave_float_to_half(1.0f + 0x1p-11f), 0x3c00);
  ck_assert_uint_eq(cleave_float_to_half(1.0f + 0x1.8p-10f), 0x3c02);
  ck_assert(isnan(cleave_half_to_float(cleave_float_to_half(NAN))));
  for (uint32_t bits = 0; bits < 0x7c00; bits++) {
    ck_assert_uint_eq(cleave_float_to_half(cleave_half_to_float((uint16_t)bits)), bits);
  }
  ck_assert_uint_eq(cleave_float_to_bfloat(1.00390625f), 0x3f80);
  ck_assert_uint_eq(cleave_float_to_bfloat(1.01171875f), 0x3f82);
  ck_assert(isnan(cleave_bfloat_to_float(cleave_float_to_bfloat(NAN))));
}

UNIT_TEST(dtypes_have_names_both_ways) {
  for (int64_t number = -2; number < 40; number++) {
    if (cleave_dtype_is_valid(number)) {
      ck_assert_int_eq(cleave_dtype_find(cleave_dtype_name((cleave_dtype_t)number)), number);
    }
  }
  ck_assert_int_eq(cleave_dtype_find("half"), CLEAVE_DTYPE_F16);
  ck_assert_int_eq(cleave_dtype_find("complex64"), CLEAVE_DTYPE_UNKNOWN);
  ck_assert(!cleave_dtype_is_valid(14));
}

UNIT_TEST(equal_expressions_are_equal_numbers) {
  cleave_dims_t *dims = NULL;
  unit_ok(cleave_dims_create(&dims, e));
  cleave_dim_t n = cleave_dims_symbol(dims, "N", 1);
  cleave_dim_t t = cleave_dims_symbol(dims, "T", 1);
  ck_assert_int_eq(n, cleave_dims_symbol(dims, "N", 1));
  cleave_dim_t left = cleave_dim_multiply(dims, cleave_dim_add(dims, n, 1), cleave_dim_subtract(dims, t, 2));
  cleave_dim_t nt = cleave_dim_multiply(dims, t, n);
  cleave_dim_t right = cleave_dim_subtract(
      dims, cleave_dim_add(dims, cleave_dim_subtract(dims, nt, cleave_dim_multiply(dims, n, 2)), t), 2);
  ck_assert_int_eq(left, right);
  assert_dim(dims, left, "N * T - 2 * N + T - 2");
  ck_assert_int_eq(cleave_dim_subtract(dims, cleave_dim_add(dims, n, t), cleave_dim_add(dims, t, n)), 0);
  ck_assert_int_eq(
      cleave_dim_divide(dims, cleave_dim_multiply(dims, nt, 12), cleave_dim_multiply(dims, n, 4)),
      cleave_dim_multiply(dims, t, 3));
  ck_assert_int_eq(cleave_dim_divide(dims, nt, nt), 1);
  cleave_dims_destroy(dims);
}

UNIT_TEST(divisions_that_leave_a_rest_stay_symbolic_and_evaluate) {
  cleave_dims_t *dims = NULL;
  unit_ok(cleave_dims_create(&dims, e));
  cleave_dim_t n = cleave_dims_symbol(dims, "N", 1);
  cleave_dim_t half = cleave_dim_divide(dims, cleave_dim_subtract(dims, n, 1), 2);
  assert_dim(dims, half, "floor((N - 1) / (2))");
  ck_assert_int_eq(half, cleave_dim_divide(dims, cleave_dim_subtract(dims, n, 1), 2));
  assert_dim(dims, cleave_dim_divide(dims, cleave_dim_add(dims, cleave_dim_multiply(dims, n, 4), 7), 4),
             "N + 1");
  int64_t size = 224;
  ck_assert_int_eq(cleave_dim_evaluate(dims, half, &size, 1), 111);
  ck_assert_int_eq(cleave_dim_evaluate(dims, cleave_dim_divide_up(dims, n, 32), &size, 1), 7);
  size = 225;
  ck_assert_int_eq(cleave_dim_evaluate(dims, cleave_dim_divide_up(dims, n, 32), &size, 1), 8);
  ck_assert_int_eq(cleave_dim_evaluate(dims, n, &size, 0), CLEAVE_DIM_UNKNOWN);
  cleave_dims_destroy(dims);
}

static void divide_symbols(int size) {
  cleave_dims_t *dims = NULL;
  unit_ok(cleave_dims_create(&dims, e));
  for (int k = 0; k < size; k++) {
    char name[32];
    size_t length = (size_t)snprintf(name, sizeof name, "N%d", k);
    cleave_dim_t n = cleave_dims_symbol(dims, name, length);
    cleave_dim_t half = cleave_dim_divide(dims, n, 2);
    ck_assert_int_eq(half, cleave_dim_divide(dims, n, 2));
    ck_assert_uint_eq(cleave_dims_symbol_of(dims, n), (size_t)k);
    ck_assert_uint_eq(cleave_dims_find_symbol(dims, name, length), (size_t)k);
    ck_assert_uint_eq(cleave_dims_symbol_of(dims, half), (size_t)k + 1); /* of so many: none */
  }
  cleave_dims_destroy(dims);
}

UNIT_TEST(work_grows_linearly_with_the_divisions) {
  unit_is_linear(divide_symbols, 3000);
}

UNIT_TEST(a_symbol_is_found_by_name_and_by_dimension) {
  cleave_dims_t *dims = NULL;
  unit_ok(cleave_dims_create(&dims, e));
  ck_assert_uint_eq(cleave_dims_find_symbol(dims, "N", 1), 0);
  cleave_dim_t n = cleave_dims_symbol(dims, "N", 1);
  cleave_dim_t t = cleave_dims_symbol(dims, "T", 1);
  ck_assert_uint_eq(cleave_dims_symbol_count(dims), 2);
  ck_assert_uint_eq(cleave_dims_find_symbol(dims, "T = 3", 1), 1);
  ck_assert_uint_eq(cleave_dims_find_symbol(dims, "", 0), 2);
  ck_assert_uint_eq(cleave_dims_symbol_of(dims, t), 1);
  const cleave_dim_t none[] = {0,
                               4,
                               CLEAVE_DIM_UNKNOWN,
                               INT64_MIN,
                               cleave_dim_add(dims, n, 1),
                               cleave_dim_multiply(dims, t, 2),
                               cleave_dim_multiply(dims, n, t)};
  for (size_t k = 0; k < sizeof none / sizeof *none; k++) {
    ck_assert_uint_eq(cleave_dims_symbol_of(dims, none[k]), 2);
  }
  cleave_dims_destroy(dims);
}

UNIT_TEST(what_is_unknown_negative_or_too_large_is_unknown) {
  cleave_dims_t *dims = NULL;
  unit_ok(cleave_dims_create(&dims, e));
  cleave_dim_t n = cleave_dims_symbol(dims, "N", 1);
  ck_assert_int_eq(cleave_dim_add(dims, n, CLEAVE_DIM_UNKNOWN), CLEAVE_DIM_UNKNOWN);
  ck_assert_int_eq(cleave_dim_subtract(dims, 3, 5), CLEAVE_DIM_UNKNOWN);
  ck_assert_int_eq(cleave_dim_divide(dims, n, 0), CLEAVE_DIM_UNKNOWN);
  ck_assert_int_eq(cleave_dim_multiply(dims, INT64_MAX, 2), CLEAVE_DIM_UNKNOWN);
  ck_assert_int_eq(cleave_dim_add(dims, n, INT64_MIN), CLEAVE_DIM_UNKNOWN);
  cleave_dim_t power = n;
  for (int k = 0; k < 40; k++) {
    power = cleave_dim_multiply(dims, power, n);
  }
  ck_assert_int_eq(power, CLEAVE_DIM_UNKNOWN);
  cleave_dim_t nested = n;
  for (int k = 0; k < 100; k++) {
    nested = cleave_dim_divide(dims, cleave_dim_add(dims, nested, 1), 3);
  }
  ck_assert_int_eq(nested, CLEAVE_DIM_UNKNOWN);
  cleave_dims_destroy(dims);
}

UNIT_TEST(broadcasts_as_numpy_does) {
  cleave_dim_t out[CLEAVE_MAX_RANK];
  ck_assert_int_eq(cleave_shape_broadcast(2, (cleave_dim_t[]){3, 1}, 3, (cleave_dim_t[]){2, 1, 4}, out), 3);
  ck_assert_int_eq(out[0], 2);
  ck_assert_int_eq(out[1], 3);
  ck_assert_int_eq(out[2], 4);
  ck_assert_int_eq(cleave_shape_broadcast(1, (cleave_dim_t[]){3}, 1, (cleave_dim_t[]){4}, out), -1);
  ck_assert_int_eq(cleave_shape_broadcast(0, NULL, 1, (cleave_dim_t[]){-2}, out), 1);
  ck_assert_int_eq(out[0], -2);
  ck_assert_int_eq(cleave_shape_broadcast(1, (cleave_dim_t[]){-2}, 1, (cleave_dim_t[]){7}, out), 1);
  ck_assert_int_eq(out[0], 7);
  ck_assert_int_eq(cleave_shape_broadcast(1, (cleave_dim_t[]){-2}, 1, (cleave_dim_t[]){-3}, out), 1);
  ck_assert_int_eq(out[0], CLEAVE_DIM_UNKNOWN);
}

UNIT_TEST(element_counts_do_not_overflow) {
  int64_t count = 0;
  ck_assert(!cleave_shape_element_count(2, (cleave_dim_t[]){INT64_MAX, 3}, &count));
  ck_assert(cleave_shape_element_count(3, (cleave_dim_t[]){INT64_MAX, 3, 0}, &count));
  ck_assert_int_eq(count, 0);
  cleave_tensor_t *tensor = NULL;
  unit_fails(cleave_tensor_create(CLEAVE_DTYPE_F64, 1, (int64_t[]){INT64_MAX / 2}, &tensor, e),
             CLEAVE_ERROR_LIMIT, "tensor: its size does not fit into memory");
  unit_fails(cleave_tensor_create(CLEAVE_DTYPE_F32, 9, (int64_t[9]){0}, &tensor, e), CLEAVE_ERROR_LIMIT,
             "tensor: expected a rank of 0 to 8, found 9");
  unit_fails(cleave_tensor_create_borrowed(
                 &(cleave_tensor_view_t){
                     .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = (int64_t[]){2}, .data = "abc"},
                 3, NULL, &tensor, e),
             CLEAVE_ERROR_FORMAT, "tensor: expected 8 bytes of data for its shape, found 3");
}

UNIT_TEST(elements_convert_and_saturate) {
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_I8, 1, (int64_t[]){3}, &tensor, e));
  cleave_tensor_set_float(tensor, 0, 300.0);
  cleave_tensor_set_float(tensor, 1, -300.0);
  cleave_tensor_set_float(tensor, 2, NAN);
  ck_assert_int_eq(cleave_tensor_get_int(tensor, 0), 127);
  ck_assert_int_eq(cleave_tensor_get_int(tensor, 1), -128);
  ck_assert_int_eq(cleave_tensor_get_int(tensor, 2), 0);
  cleave_tensor_release(tensor);
  unit_ok(cleave_tensor_create_float(INFINITY, &tensor, e));
  ck_assert_int_eq(cleave_tensor_get_int(tensor, 0), INT64_MAX);
  cleave_tensor_release(tensor);
  char raw[9] = {0};
  float value = 2.5f;
  memcpy(raw + 1, &value, sizeof value);
  unit_ok(cleave_tensor_create_borrowed(&(cleave_tensor_view_t){.dtype = CLEAVE_DTYPE_F32, .data = raw + 1},
                                        4, NULL, &tensor, e));
  ck_assert(cleave_tensor_get_float(tensor, 0) == 2.5);
  cleave_tensor_release(tensor);
}

UNIT_TEST(string_tensors_own_their_texts) {
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_STRING, 1, (int64_t[]){2}, &tensor, e));
  ck_assert_str_eq(((const char **)tensor->data)[1], "");
  unit_ok(cleave_tensor_set_string(tensor, 1, "one", 3, e));
  unit_ok(cleave_tensor_set_string(tensor, 1, "two!", 3, e));
  ck_assert_str_eq(((const char **)tensor->data)[1], "two");
  cleave_tensor_release(tensor);
}

UNIT_TEST(fills_depend_on_seed_and_place_only) {
  cleave_tensor_t *a = NULL;
  cleave_tensor_t *b = NULL;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, (int64_t[]){100000}, &a, e));
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, (int64_t[]){99999}, &b, e));
  uint64_t version = a->version;
  cleave_tensor_fill_normal(a, 7, 1.0, 2.0);
  cleave_tensor_fill_normal(b, 7, 1.0, 2.0);
  ck_assert_uint_ne(a->version, version);
  ck_assert_mem_eq(a->data, b->data, b->bytes);
  double sum = 0.0;
  double squares = 0.0;
  for (int64_t k = 0; k < a->count; k++) {
    double value = cleave_tensor_get_float(a, k);
    sum += value;
    squares += (value - 1.0) * (value - 1.0);
  }
  ck_assert(fabs(sum / 1e5 - 1.0) < 0.03);
  ck_assert(fabs(sqrt(squares / 1e5) - 2.0) < 0.03);
  cleave_tensor_fill_normal(b, 8, 1.0, 2.0);
  ck_assert(memcmp(a->data, b->data, b->bytes) != 0);
  cleave_tensor_release(a);
  cleave_tensor_release(b);
}

UNIT_TEST(compares_with_tolerances_and_finds_the_first_difference) {
  cleave_tensor_t *a = NULL;
  cleave_tensor_t *b = NULL;
  cleave_difference_t difference;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, (int64_t[]){4}, &a, e));
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, (int64_t[]){4}, &b, e));
  memcpy(a->data, (float[]){1.0f, NAN, INFINITY, 4.02f}, 16);
  memcpy(b->data, (float[]){1.0f, NAN, INFINITY, 4.0f}, 16);
  cleave_tensor_compare(a, b, 1e-2, 0.0, &difference);
  ck_assert_int_eq(difference.mismatches, 0);
  ck_assert(fabs(difference.max_absolute - 0.02) < 1e-6);
  ck_assert(difference.max_expected == 4.0);
  cleave_tensor_compare(a, b, 1e-3, 0.0, &difference);
  ck_assert_int_eq(difference.mismatches, 1);
  ck_assert_int_eq(difference.first, 3);
  ((float *)a->data)[1] = 0.0f;
  cleave_tensor_compare(a, b, 1.0, 1e30, &difference);
  ck_assert_int_eq(difference.first, 1);
  ck_assert(isinf(difference.max_absolute));
  cleave_tensor_release(b);
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 2, (int64_t[]){2, 2}, &b, e));
  cleave_tensor_compare(a, b, 1.0, 1.0, &difference);
  ck_assert(!difference.same_type);
  cleave_tensor_release(a);
  cleave_tensor_release(b);
}

UNIT_TEST(wide_integers_compare_exactly) {
  cleave_tensor_t *a = NULL;
  cleave_tensor_t *b = NULL;
  cleave_difference_t difference;
  unit_ok(cleave_tensor_create_ints(1, (int64_t[]){INT64_MAX, 5}, 2, &a, e));
  unit_ok(cleave_tensor_create_ints(1, (int64_t[]){INT64_MAX - 1, 5}, 2, &b, e));
  cleave_tensor_compare(a, b, 0.0, 0.0, &difference);
  ck_assert_int_eq(difference.mismatches, 1);
  cleave_tensor_release(a);
  cleave_tensor_release(b);
}

UNIT_TEST(npy_files_come_back_as_they_went) {
  char path[] = "/tmp/cleave_npy_XXXXXX";
  int descriptor = mkstemp(path);
  ck_assert_int_ge(descriptor, 0);
  (void)close(descriptor);
  cleave_tensor_t *tensor = NULL;
  cleave_tensor_t *again = NULL;
  cleave_difference_t difference;
  const cleave_dtype_t dtypes[] = {CLEAVE_DTYPE_F32, CLEAVE_DTYPE_I64, CLEAVE_DTYPE_BOOL, CLEAVE_DTYPE_F16};
  for (size_t d = 0; d < 4; d++) {
    for (int32_t rank = 0; rank < 4; rank++) {
      unit_ok(cleave_tensor_create(dtypes[d], rank, (int64_t[]){2, 3, 5}, &tensor, e));
      cleave_tensor_fill_uniform(tensor, 3, -9.0, 9.0);
      unit_ok(cleave_npy_write(path, tensor, e));
      unit_ok(cleave_npy_read(path, &again, e));
      cleave_tensor_compare(again, tensor, 0.0, 0.0, &difference);
      ck_assert(difference.same_type);
      ck_assert_int_eq(difference.mismatches, 0);
      cleave_tensor_release(tensor);
      cleave_tensor_release(again);
    }
  }
  unlink(path);
}

UNIT_TEST(broken_npy_files_are_errors) {
  char path[] = "/tmp/cleave_npy_XXXXXX";
  (void)close(mkstemp(path));
  cleave_tensor_t *tensor = NULL;
  const char *const headers[] = {
      "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,2), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,9,), }",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }",
      "",
      "{'descr': '<f4'}"};
  for (size_t k = 0; k < sizeof headers / sizeof headers[0]; k++) {
    char data[256] = "\x93NUMPY\x01";
    size_t length = strlen(headers[k]);
    data[8] = (char)length;
    memcpy(data + 10, headers[k], length);
    unit_ok(cleave_file_write(path, data, 10 + length + 16, e));
    unit_fails_with(cleave_npy_read(path, &tensor, e), cleave_npy_read(path, &tensor, NULL), path);
    ck_assert_int_ne(cleave_npy_read(path, &tensor, NULL), CLEAVE_OK);
  }
  unlink(path);
}

static void write_npy(const char *path, const char *header, const void *data, size_t bytes) {
  char text[256] = "\x93NUMPY\x01";
  size_t length = strlen(header);
  text[8] = (char)length;
  memcpy(text + 10, header, length);
  memcpy(text + 10 + length, data, bytes);
  unit_ok(cleave_file_write(path, text, 10 + length + bytes, e));
}

UNIT_TEST(npy_files_in_fortran_order_are_transposed) {
  char path[] = "/tmp/cleave_npy_XXXXXX";
  (void)close(mkstemp(path));
  cleave_tensor_t *tensor = NULL;
  int32_t data[12];
  for (int32_t k = 0; k < 12; k++) {
    data[k] = k;
  }
  write_npy(path, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 2), }", data, sizeof data);
  unit_ok(cleave_npy_read(path, &tensor, e));
  for (int64_t k = 0; k < 12; k++) {
    ck_assert_int_eq(cleave_tensor_get_int(tensor, k), k / 6 + k / 2 % 3 * 2 + k % 2 * 6);
  }
  cleave_tensor_release(tensor);
  unlink(path);
}

UNIT_TEST(npy_files_of_another_type_say_which) {
  char path[] = "/tmp/cleave_npy_XXXXXX";
  (void)close(mkstemp(path));
  cleave_tensor_t *tensor = NULL;
  write_npy(path, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678", 8);
  unit_fails_with(cleave_npy_read(path, &tensor, e), CLEAVE_ERROR_UNSUPPORTED,
                  "expected a little-endian number type, found '<c8'");
  unlink(path);
}

UNIT_SUITE("tensor")
