// SPDX-License-Identifier: Apache-2.0
/* Arrays and calls of operators one at a time: serial, one worker, several, on `cpu` and on onednn. */
#include <math.h>
#include <pthread.h>

#include "base/memory.h"
#include "cleave/array.h"
#include "unit.h"

#ifdef CLEAVE_TEST_ONEDNN
static const char *const backends[] = {"cpu", "cpu", "cpu", "onednn"};
#else
static const char *const backends[] = {"cpu", "cpu", "cpu", "cpu"};
#endif
enum { SETTING_COUNT = 4 };

static cleave_imperative_t *create(int setting) {
  cleave_imperative_t *imperative = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const cleave_imperative_options_t options = {.size = sizeof options,
                                               .backend = backends[setting],
                                               .threads = 2,
                                               .workers = setting == 1 ? 2 : 1,
                                               .is_serial = setting == 0};
  ck_assert_msg(cleave_imperative_create(NULL, &options, &imperative, &error) == CLEAVE_OK, "%s",
                error.message);
  return imperative;
}

static cleave_imperative_counters_t counters_of(cleave_imperative_t *imperative) {
  cleave_imperative_counters_t counters = {.size = sizeof counters};
  cleave_imperative_count(imperative, &counters);
  return counters;
}

static cleave_array_t *floats(cleave_imperative_t *imperative, int32_t rank, const int64_t *dims,
                              const float *data) {
  cleave_array_t *array = NULL;
  ck_assert_int_eq(cleave_array_create(imperative, CLEAVE_DTYPE_F32, rank, dims, data, &array, NULL),
                   CLEAVE_OK);
  return array;
}

static cleave_array_t *ints(cleave_imperative_t *imperative, int64_t count, const int64_t *data) {
  cleave_array_t *array = NULL;
  ck_assert_int_eq(cleave_array_create(imperative, CLEAVE_DTYPE_I64, 1, &count, data, &array, NULL),
                   CLEAVE_OK);
  return array;
}

/* One output, without attributes. */
static cleave_array_t *call(cleave_imperative_t *imperative, const char *op, cleave_array_t *a,
                            cleave_array_t *b) {
  cleave_array_t *inputs[] = {a, b};
  cleave_array_t *output = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status =
      cleave_array_call(imperative, op, inputs, b != NULL ? 2 : 1, NULL, 0, &output, 1, &error);
  ck_assert_msg(status == CLEAVE_OK, "%s", error.message);
  return output;
}

static const float *read(cleave_array_t *array) {
  const void *data = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_msg(cleave_array_data(array, &data, &error) == CLEAVE_OK, "%s", error.message);
  return data;
}

static const float some[6] = {-2.5F, -1, 0, 1, 2.25F, 3};

UNIT_TEST(calls_follow_each_other_without_waiting) {
  for (int k = 0; k < SETTING_COUNT; k++) {
    cleave_imperative_t *imperative = create(k);
    cleave_array_t *x = floats(imperative, 2, (int64_t[]){2, 3}, some);
    cleave_array_t *sum = cleave_array_retain(x);
    for (int n = 0; n < 100; n++) {
      cleave_array_t *relu = call(imperative, "Relu", x, NULL);
      cleave_array_t *next = call(imperative, "Add", sum, relu);
      cleave_array_release(relu);
      cleave_array_release(sum);
      sum = next;
    }
    const float *data = read(sum);
    for (int n = 0; n < 6; n++) {
      ck_assert_float_eq(data[n], some[n] + 100 * fmaxf(some[n], 0));
    }
    ck_assert_int_eq(cleave_array_rank(sum), 2);
    ck_assert_int_eq(cleave_array_dims(sum)[0], 2);
    ck_assert_int_eq(cleave_array_dims(sum)[1], 3);
    ck_assert_int_eq(cleave_array_dtype(sum), CLEAVE_DTYPE_F32);
    ck_assert_uint_eq(cleave_array_bytes(sum), 24);
    cleave_imperative_counters_t counters = counters_of(imperative);
    ck_assert_uint_eq(counters.calls, 200);
    ck_assert_uint_eq(counters.compiled, 2);
    cleave_array_release(x);
    cleave_array_release(sum);
    ck_assert_int_eq(cleave_imperative_wait(imperative, NULL), CLEAVE_OK);
    ck_assert_uint_eq(counters_of(imperative).array_bytes, 0);
    cleave_imperative_destroy(imperative);
  }
}

UNIT_TEST(an_operator_is_compiled_for_each_type_shape_and_attribute) {
  cleave_imperative_t *imperative = create(2);
  cleave_array_t *a = floats(imperative, 2, (int64_t[]){2, 3}, some);
  cleave_array_t *b = floats(imperative, 1, (int64_t[]){6}, some);
  const double slopes[] = {0.5, 0.25, 0.5, 0.25};
  for (int n = 0; n < 4; n++) {
    const cleave_attribute_view_t alpha = {
        .size = sizeof alpha, .name = "alpha", .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = slopes[n]};
    cleave_array_t *inputs[] = {n < 2 ? a : b};
    cleave_array_t *output = NULL;
    ck_assert_int_eq(cleave_array_call(imperative, "LeakyRelu", inputs, 1, &alpha, 1, &output, 1, NULL),
                     CLEAVE_OK);
    ck_assert_float_eq(read(output)[0], (float)slopes[n] * some[0]);
    cleave_array_release(output);
  }
  ck_assert_uint_eq(counters_of(imperative).compiled, 4);
  cleave_array_release(call(imperative, "Neg", a, NULL));
  cleave_array_release(call(imperative, "Neg", a, NULL));
  ck_assert_uint_eq(counters_of(imperative).compiled, 5);
  cleave_array_release(a);
  cleave_array_release(b);
  cleave_imperative_destroy(imperative);
}

UNIT_TEST(content_decides_about_shapes) {
  for (int k = 0; k < SETTING_COUNT; k++) {
    cleave_imperative_t *imperative = create(k);
    cleave_array_t *x = floats(imperative, 1, (int64_t[]){6}, some);
    const int64_t shapes[3][2] = {{2, 3}, {3, -1}, {6, 1}};
    const int64_t expected[3] = {2, 3, 6};
    for (int n = 0; n < 9; n++) {
      cleave_array_t *shape = ints(imperative, 2, shapes[n % 3]);
      cleave_array_t *y = call(imperative, "Reshape", x, shape);
      ck_assert_int_eq(cleave_array_rank(y), 2);
      ck_assert_int_eq(cleave_array_dims(y)[0], expected[n % 3]);
      ck_assert_mem_eq(read(y), some, sizeof some);
      cleave_array_release(shape);
      cleave_array_release(y);
    }
    ck_assert_uint_eq(counters_of(imperative).compiled, 3);
    cleave_array_release(x);
    cleave_imperative_destroy(imperative);
  }
}

UNIT_TEST(shapes_that_only_a_run_tells_are_waited_for) {
  for (int k = 0; k < SETTING_COUNT; k++) {
    cleave_imperative_t *imperative = create(k);
    for (int n = 0; n < 3; n++) {
      float data[6] = {0, 1, 0, 2, 0, 3};
      data[0] = (float)n;
      cleave_array_t *x = floats(imperative, 1, (int64_t[]){6}, data);
      cleave_array_t *y = call(imperative, "NonZero", x, NULL);
      ck_assert_int_eq(cleave_array_rank(y), 2);
      ck_assert_int_eq(cleave_array_dims(y)[0], 1);
      ck_assert_int_eq(cleave_array_dims(y)[1], n > 0 ? 4 : 3);
      const void *found = NULL;
      ck_assert_int_eq(cleave_array_data(y, &found, NULL), CLEAVE_OK);
      ck_assert_int_eq(((const int64_t *)found)[n > 0], 1);
      cleave_array_release(x);
      cleave_array_release(y);
    }
    ck_assert_uint_eq(counters_of(imperative).compiled, 1); /* not one for each content */
    cleave_imperative_destroy(imperative);
  }
}

UNIT_TEST(several_outputs_optional_inputs_and_many_inputs) {
  cleave_imperative_t *imperative = create(2);
  cleave_array_t *x = floats(imperative, 2, (int64_t[]){2, 3}, some);
  const cleave_attribute_view_t parts[] = {
      {.size = sizeof parts[0], .name = "axis", .kind = CLEAVE_ATTRIBUTE_INT, .i = 1},
      {.size = sizeof parts[0], .name = "num_outputs", .kind = CLEAVE_ATTRIBUTE_INT, .i = 3}};
  cleave_array_t *inputs[40] = {x};
  cleave_array_t *outputs[3];
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_msg(cleave_array_call(imperative, "Split", inputs, 1, parts, 2, outputs, 3, &error) == CLEAVE_OK,
                "%s", error.message);
  for (int n = 0; n < 3; n++) {
    ck_assert_float_eq(read(outputs[n])[0], some[n]);
    ck_assert_float_eq(read(outputs[n])[1], some[n + 3]);
  }
  cleave_array_t *limit = floats(imperative, 0, NULL, (float[]){1});
  cleave_array_t *clip[] = {x, NULL, limit};
  cleave_array_t *clipped = NULL;
  ck_assert_int_eq(cleave_array_call(imperative, "Clip", clip, 3, NULL, 0, &clipped, 1, NULL), CLEAVE_OK);
  ck_assert_float_eq(read(clipped)[5], 1);
  ck_assert_float_eq(read(clipped)[0], -2.5F);
  for (int n = 0; n < 40; n++) {
    inputs[n] = x;
  }
  cleave_array_t *sum = NULL;
  ck_assert_int_eq(cleave_array_call(imperative, "Sum", inputs, 40, NULL, 0, &sum, 1, NULL), CLEAVE_OK);
  ck_assert_float_eq(read(sum)[5], 120);
  cleave_array_t *all[] = {x, outputs[0], outputs[1], outputs[2], limit, clipped, sum, NULL};
  for (int n = 0; n < 8; n++) {
    cleave_array_release(all[n]);
  }
  cleave_imperative_destroy(imperative);
}

UNIT_TEST(mistakes_are_errors_of_the_call) {
  cleave_imperative_t *imperative = create(2);
  cleave_array_t *a = floats(imperative, 2, (int64_t[]){2, 3}, some);
  cleave_array_t *b = floats(imperative, 1, (int64_t[]){6}, some);
  cleave_array_t *output = a;
  static const struct {
    const char *op;
    uint32_t count;
    uint32_t outputs;
    const char *attribute;
    cleave_status_t status;
    const char *message;
  } cases[] = {
      {"Rely", 1, 1, NULL, CLEAVE_ERROR_UNSUPPORTED, "there is no operator 'Rely' (did you mean 'Relu'?)"},
      {"Relu", 1, 1, "alpha", CLEAVE_ERROR_INVALID_ARGUMENT, "Relu has no attribute 'alpha'"},
      {"Add", 2, 1, NULL, CLEAVE_ERROR_SHAPE, "Add"},
      {"MatMul", 1, 1, NULL, CLEAVE_ERROR_INVALID_ARGUMENT, "MatMul needs 2 inputs ('B'), found 1"},
      {"Relu", 0, 1, NULL, CLEAVE_ERROR_INVALID_ARGUMENT, "Relu needs 1 input ('X'), found 0"},
      {"Relu", 2, 1, NULL, CLEAVE_ERROR_INVALID_ARGUMENT, "Relu has at most 1 input, found 2"},
      {"Relu", 1, 2, NULL, CLEAVE_ERROR_INVALID_ARGUMENT, "Relu has at most 1 output, found 2"},
      {"Relu", 1, 0, NULL, CLEAVE_ERROR_INVALID_ARGUMENT, "Relu needs 1 output ('Y'), found 0"},
      {"Add", 3, 1, NULL, CLEAVE_ERROR_INVALID_ARGUMENT, "Add has at most 2 inputs, found 3"},
      {"Softmax", 1, 1, "axis", CLEAVE_ERROR_INVALID_ARGUMENT, "'axis' of Softmax is an int, found a float"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    cleave_array_t *inputs[] = {a, b, NULL};
    cleave_array_t *outputs[] = {a, a};
    cleave_error_t error = CLEAVE_ERROR_INIT;
    const cleave_attribute_view_t view = {
        .size = sizeof view, .name = cases[k].attribute, .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = 1};
    ck_assert_int_eq(cleave_array_call(imperative, cases[k].op, inputs, cases[k].count, &view,
                                       cases[k].attribute != NULL, outputs, cases[k].outputs, &error),
                     cases[k].status);
    for (uint32_t o = 0; o < cases[k].outputs; o++) {
      ck_assert_ptr_null(outputs[o]);
    }
    ck_assert_msg(strstr(error.message, cases[k].message) != NULL, "%s", error.message);
  }
  cleave_array_t *left_out[] = {a, NULL};
  unit_fails_with(cleave_array_call(imperative, "MatMul", left_out, 2, NULL, 0, &output, 1, e),
                  CLEAVE_ERROR_INVALID_ARGUMENT, "input 1 ('B') of MatMul is left out");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(cleave_array_create(imperative, CLEAVE_DTYPE_STRING, 0, NULL, NULL, &output, &error),
                   CLEAVE_ERROR_UNSUPPORTED);
  cleave_error_clear(&error);
  ck_assert_int_eq(
      cleave_array_create(imperative, CLEAVE_DTYPE_F32, 1, (int64_t[]){-3}, NULL, &output, &error),
      CLEAVE_ERROR_INVALID_ARGUMENT);
  ck_assert_str_eq(error.message, "array: dimension 0: expected a size of 0 or more, found -3");
  cleave_error_clear(&error);
  ck_assert_int_eq(cleave_array_create(imperative, CLEAVE_DTYPE_F32, 9, NULL, NULL, &output, &error),
                   CLEAVE_ERROR_INVALID_ARGUMENT);
  cleave_error_clear(&error);
  ck_assert_int_eq(
      cleave_array_create(imperative, CLEAVE_DTYPE_F32, 2, (int64_t[]){INT64_MAX, 3}, NULL, &output, &error),
      CLEAVE_ERROR_LIMIT);
  cleave_imperative_t *none = NULL;
  const cleave_imperative_options_t options = {.size = sizeof options, .backend = "nothing"};
  ck_assert_int_eq(cleave_imperative_create(NULL, &options, &none, NULL), CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_ptr_null(none);
  cleave_array_release(a);
  cleave_array_release(b);
  cleave_imperative_destroy(imperative);
}

UNIT_TEST(an_error_of_a_run_reaches_whoever_reads_what_depends_on_it) {
  for (int k = 0; k < 3; k++) {
    cleave_imperative_t *imperative = create(k);
    cleave_array_t *x = floats(imperative, 2, (int64_t[]){2, 3}, some);
    cleave_array_t *wrong = ints(imperative, 2, (int64_t[]){0, 7});
    cleave_array_t *bad = call(imperative, "Gather", x, wrong); /* row 7 of 2 */
    cleave_array_t *after = call(imperative, "Relu", bad, NULL);
    cleave_array_t *beside = call(imperative, "Relu", x, NULL);
    const void *data = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    ck_assert_float_eq(read(beside)[5], 3);
    ck_assert_int_ne(cleave_array_data(after, &data, &error), CLEAVE_OK);
    ck_assert_ptr_nonnull(strstr(error.message, "Gather"));
    ck_assert_ptr_null(data);
    /* It was reported; but nobody may take what was not computed for a result. */
    cleave_error_clear(&error);
    ck_assert_int_eq(cleave_array_data(bad, &data, &error), CLEAVE_ERROR_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "array: it was not computed, because a call before it failed");
    cleave_array_t *later = call(imperative, "Neg", after, NULL);
    cleave_error_clear(&error);
    ck_assert_int_eq(cleave_array_data(later, &data, &error), CLEAVE_ERROR_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "operation 'Neg': input 0 was not computed: a call before it failed");
    cleave_array_t *all[] = {x, wrong, bad, after, beside, later};
    for (int n = 0; n < 6; n++) {
      cleave_array_release(all[n]);
    }
    ck_assert_int_eq(cleave_imperative_wait(imperative, NULL), CLEAVE_OK);
    cleave_imperative_destroy(imperative);
  }
}

UNIT_TEST(scalars_empty_arrays_and_other_dtypes) {
  cleave_imperative_t *imperative = create(1);
  cleave_array_t *empty = floats(imperative, 2, (int64_t[]){0, 3}, NULL);
  cleave_array_t *scalar = floats(imperative, 0, NULL, (float[]){2});
  cleave_array_t *sum = call(imperative, "Add", empty, scalar);
  (void)read(sum);
  ck_assert_int_eq(cleave_array_count(sum), 0);
  ck_assert_int_eq(cleave_array_dims(sum)[1], 3);
  cleave_array_t *total = call(imperative, "ReduceSum", sum, NULL);
  ck_assert_float_eq(read(total)[0], 0);
  cleave_array_t *numbers = ints(imperative, 3, (int64_t[]){1, -2, INT64_MAX});
  cleave_array_t *absolute = call(imperative, "Abs", numbers, NULL);
  const void *data = NULL;
  ck_assert_int_eq(cleave_array_data(absolute, &data, NULL), CLEAVE_OK);
  ck_assert_int_eq(((const int64_t *)data)[1], 2);
  ck_assert_int_eq(((const int64_t *)data)[2], INT64_MAX);
  cleave_array_t *zeros = floats(imperative, 1, (int64_t[]){100}, NULL);
  for (int n = 0; n < 100; n++) {
    ck_assert_float_eq(read(zeros)[n], 0);
  }
  cleave_array_t *all[] = {empty, scalar, sum, total, numbers, absolute, zeros};
  for (int n = 0; n < 7; n++) {
    cleave_array_release(all[n]);
  }
  cleave_imperative_destroy(imperative);
}

static void *use(void *self) {
  cleave_imperative_t *imperative = self;
  for (int n = 0; n < 200; n++) {
    cleave_array_t *x = floats(imperative, 1, (int64_t[]){1 + n % 6}, some);
    cleave_array_t *y = call(imperative, n % 2 == 0 ? "Relu" : "Neg", x, NULL);
    ck_assert_float_eq(read(y)[0], n % 2 == 0 ? 0.0F : 2.5F);
    cleave_array_release(x);
    cleave_array_release(y);
  }
  return NULL;
}

UNIT_TEST(several_threads_share_compiled_operators) {
  for (int k = 0; k < 2; k++) {
    cleave_imperative_t *imperative = create(k);
    pthread_t threads[4];
    for (int t = 0; t < 4; t++) {
      pthread_create(&threads[t], NULL, use, imperative);
    }
    for (int t = 0; t < 4; t++) {
      pthread_join(threads[t], NULL);
    }
    ck_assert_uint_eq(counters_of(imperative).compiled, 6); /* Relu for 1, 3, 5 elements, Neg for 2, 4, 6 */
    ck_assert_uint_eq(counters_of(imperative).calls, 800);
    cleave_imperative_destroy(imperative);
  }
}

UNIT_TEST(compiled_calls_allocate_nothing) {
  cleave_imperative_t *imperative = create(0);
  cleave_array_t *x = floats(imperative, 2, (int64_t[]){2, 3}, some);
  for (int round = 0; round < 3; round++) {
    (void)cleave_memory_fail_after(-1);
    for (int n = 0; n < 50; n++) {
      cleave_array_t *y = call(imperative, "Relu", x, NULL);
      cleave_array_t *z = call(imperative, "Add", y, x);
      (void)read(z);
      cleave_array_release(y);
      cleave_array_release(z);
    }
    if (round > 0) {
      ck_assert_int_eq(cleave_memory_fail_after(-1), 0);
    }
  }
  cleave_array_release(x);
  cleave_imperative_destroy(imperative);
}

UNIT_TEST(a_program_that_never_waits_is_held_up) {
  for (uint32_t bulk = 0; bulk < 2; bulk++) {
    cleave_imperative_t *imperative = create(2);
    (void)cleave_engine_set_bulk(cleave_imperative_engine(imperative), bulk * 2000);
    cleave_array_t *x = floats(imperative, 1, (int64_t[]){100000}, NULL);
    uint64_t most = 0;
    for (int n = 0; n < 3000; n++) {
      cleave_array_release(call(imperative, "Relu", x, NULL));
      uint64_t bytes = counters_of(imperative).array_bytes;
      most = bytes > most ? bytes : most;
    }
    cleave_array_release(x);
    ck_assert_int_eq(cleave_imperative_wait(imperative, NULL), CLEAVE_OK);
    ck_assert_uint_lt(most, 700 * UINT64_C(524288)); /* 3000 would be 1.4 GB */
    cleave_imperative_destroy(imperative);
  }
}

UNIT_TEST(short_memory_is_an_error_and_no_leak) {
  int failures = 0;
  for (int64_t countdown = 0; countdown < 300; countdown += 1 + countdown / 20) {
    (void)cleave_memory_fail_after(countdown);
    cleave_imperative_t *imperative = NULL;
    const cleave_imperative_options_t options = {.size = sizeof options, .is_serial = true};
    cleave_status_t status = cleave_imperative_create(NULL, &options, &imperative, NULL);
    cleave_array_t *x = NULL;
    cleave_array_t *y = NULL;
    if (status == CLEAVE_OK) {
      status = cleave_array_create(imperative, CLEAVE_DTYPE_F32, 1, (int64_t[]){6}, some, &x, NULL);
    }
    if (status == CLEAVE_OK) {
      status = cleave_array_call(imperative, "Relu", &x, 1, NULL, 0, &y, 1, NULL);
    }
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
    ck_assert((y != NULL) == (status == CLEAVE_OK));
    failures += status != CLEAVE_OK;
    cleave_array_release(x);
    cleave_array_release(y);
    cleave_imperative_destroy(imperative);
  }
  ck_assert_int_gt(failures, 20);
}

UNIT_SUITE("arrays")
