// SPDX-License-Identifier: Apache-2.0
/* Records of calls and their gradients (cleave_record_*): values against finite differences, gradients of
 * gradients, what is noted and what is not, forms that are used again, mistakes, failures on the way, and who
 * owns what. */
#include <math.h>
#include <pthread.h>

#include "base/memory.h"
#include "cleave/array.h"
#include "unit.h"

typedef struct setting {
  bool is_serial;
  uint32_t workers;
} setting_t;
static const setting_t settings[] = {{true, 1}, {false, 1}, {false, 2}};
enum { SETTING_COUNT = sizeof settings / sizeof settings[0] };

static cleave_imperative_t *create(int k) {
  cleave_imperative_t *imperative = NULL;
  const cleave_imperative_options_t options = {.size = sizeof options,
                                               .threads = 1,
                                               .workers = settings[k].workers,
                                               .is_serial = settings[k].is_serial};
  unit_ok(cleave_imperative_create(NULL, &options, &imperative, e));
  return imperative;
}

static cleave_imperative_counters_t counters_of(cleave_imperative_t *imperative) {
  cleave_imperative_counters_t counters = {.size = sizeof counters};
  cleave_imperative_count(imperative, &counters);
  return counters;
}

static void end(cleave_imperative_t *imperative) {
  unit_ok(cleave_imperative_wait(imperative, e));
  ck_assert_uint_eq(counters_of(imperative).array_bytes, 0);
  cleave_imperative_destroy(imperative);
}

static cleave_array_t *doubles(cleave_imperative_t *imperative, int64_t rows, int64_t columns,
                               const double *data) {
  cleave_array_t *array = NULL;
  unit_ok(cleave_array_create(imperative, CLEAVE_DTYPE_F64, 2, (int64_t[]){rows, columns}, data, &array, e));
  return array;
}

static cleave_array_t *ints(cleave_imperative_t *imperative, int64_t number) {
  cleave_array_t *array = NULL;
  unit_ok(cleave_array_create(imperative, CLEAVE_DTYPE_I64, 1, (int64_t[]){1}, &number, &array, e));
  return array;
}

/* The call takes its operands over if their bits are set in `taken`. */
static cleave_array_t *call(cleave_imperative_t *imperative, const char *op, cleave_array_t *a,
                            cleave_array_t *b, unsigned taken) {
  cleave_array_t *inputs[] = {a, b};
  cleave_array_t *output = NULL;
  unit_ok(cleave_array_call(imperative, op, inputs, b != NULL ? 2 : 1, NULL, 0, &output, 1, e));
  cleave_array_release((taken & 1U) != 0 ? a : NULL);
  cleave_array_release((taken & 2U) != 0 ? b : NULL);
  return output;
}

static const double *read(cleave_array_t *array) {
  const void *data = NULL;
  unit_ok(cleave_array_data(array, &data, e));
  return data;
}

static cleave_record_t *begin(cleave_imperative_t *imperative) {
  cleave_record_t *record = NULL;
  unit_ok(cleave_record_begin(imperative, &record, e));
  return record;
}

static cleave_record_request_t request_of(cleave_array_t *const *result, cleave_array_t *const *parameters,
                                          uint32_t parameter_count) {
  return (cleave_record_request_t){.size = sizeof(cleave_record_request_t),
                                   .results = result,
                                   .result_count = 1,
                                   .parameters = parameters,
                                   .parameter_count = parameter_count};
}

static const double some[6] = {0.3, -0.7, 1.1, 0.2, -0.4, 0.9};
static const double weights[6] = {0.5, -0.2, 0.8, 0.1, 0.6, -0.9};

/* Sum of tanh(x w)^2, halved until it is below a number: values decide what is called. */
static cleave_array_t *loss_of(cleave_imperative_t *imperative, cleave_array_t *x, cleave_array_t *w,
                               int *out_halvings) {
  const double half = 0.5;
  cleave_array_t *y = call(imperative, "Tanh", call(imperative, "MatMul", x, w, 0), NULL, 1);
  cleave_array_t *sum = call(imperative, "ReduceSum", call(imperative, "Mul", y, y, 1), NULL, 1);
  for (*out_halvings = 0; read(sum)[0] > 0.25; ++*out_halvings) {
    sum = call(imperative, "Mul", sum, doubles(imperative, 1, 1, &half), 3);
  }
  return sum;
}

static double loss_at(cleave_imperative_t *imperative, const double *x_data, const double *w_data) {
  int halvings = 0;
  cleave_array_t *x = doubles(imperative, 2, 3, x_data);
  cleave_array_t *w = doubles(imperative, 3, 2, w_data);
  cleave_array_t *loss = loss_of(imperative, x, w, &halvings);
  double number = read(loss)[0];
  cleave_array_release(x);
  cleave_array_release(w);
  cleave_array_release(loss);
  return number;
}

UNIT_TEST(gradients_are_those_of_finite_differences) {
  for (int k = 0; k < SETTING_COUNT; k++) {
    cleave_imperative_t *imperative = create(k);
    cleave_array_t *parameters[] = {doubles(imperative, 2, 3, some), doubles(imperative, 3, 2, weights)};
    cleave_array_t *gradients[2];
    int halvings = 0;
    cleave_record_t *record = begin(imperative);
    cleave_array_t *loss = loss_of(imperative, parameters[0], parameters[1], &halvings);
    cleave_record_end(record);
    ck_assert_int_gt(halvings, 0);
    const cleave_record_request_t request = request_of(&loss, parameters, 2);
    unit_ok(cleave_record_gradient(record, &request, gradients, e));
    for (int p = 0; p < 2; p++) {
      ck_assert_int_eq(cleave_array_dtype(gradients[p]), CLEAVE_DTYPE_F64);
      ck_assert_int_eq(cleave_array_dims(gradients[p])[0], p == 0 ? 2 : 3);
      ck_assert_int_eq(cleave_array_dims(gradients[p])[1], p == 0 ? 3 : 2);
      for (int n = 0; n < 6; n++) {
        double near[2];
        for (int side = 0; side < 2; side++) {
          double moved[2][6];
          memcpy(moved[0], some, sizeof some);
          memcpy(moved[1], weights, sizeof weights);
          moved[p][n] += side == 0 ? -1e-5 : 1e-5;
          near[side] = loss_at(imperative, moved[0], moved[1]);
        }
        ck_assert_double_eq_tol(read(gradients[p])[n], (near[1] - near[0]) / 2e-5, 1e-9);
      }
      cleave_array_release(parameters[p]);
      cleave_array_release(gradients[p]);
    }
    cleave_array_release(loss);
    cleave_record_destroy(record);
    end(imperative);
  }
}

/* By itself, times its exponential: w^2 e^w. */
static cleave_array_t *curve_of(cleave_imperative_t *imperative, cleave_array_t *w) {
  cleave_array_t *square = call(imperative, "Mul", w, w, 0);
  return call(imperative, "Mul", square, call(imperative, "Exp", w, NULL, 0), 3);
}

UNIT_TEST(gradients_are_differentiated_again) {
  for (int k = 0; k < SETTING_COUNT; k++) {
    cleave_imperative_t *imperative = create(k);
    cleave_array_t *w = doubles(imperative, 2, 3, some);
    cleave_record_t *records[3];
    cleave_array_t *orders[4];
    for (int order = 0; order < 3; order++) {
      records[order] = begin(imperative);
    }
    orders[0] = curve_of(imperative, w);
    for (int order = 0; order < 3; order++) {
      cleave_record_t *inner = records[2 - order];
      const cleave_record_request_t request = request_of(&orders[order], &w, 1);
      cleave_record_end(inner); /* the outer ones note the gradient */
      unit_ok(cleave_record_gradient(inner, &request, &orders[order + 1], e));
    }
    for (int n = 0; n < 6; n++) {
      double at = some[n];
      ck_assert_double_eq_tol(read(orders[1])[n], (2 * at + at * at) * exp(at), 1e-12);
      ck_assert_double_eq_tol(read(orders[2])[n], (2 + 4 * at + at * at) * exp(at), 1e-12);
      ck_assert_double_eq_tol(read(orders[3])[n], (6 + 6 * at + at * at) * exp(at), 1e-12);
    }
    for (int order = 0; order < 4; order++) {
      cleave_array_release(orders[order]);
    }
    for (int order = 0; order < 3; order++) {
      cleave_record_destroy(records[2 - order]);
    }
    cleave_array_release(w);
    end(imperative);
  }
}

UNIT_TEST(results_are_summed_by_their_heads) {
  cleave_imperative_t *imperative = create(1);
  cleave_array_t *w = doubles(imperative, 2, 3, some);
  cleave_array_t *head = doubles(imperative, 2, 3, weights);
  cleave_array_t *gradient = NULL;
  cleave_record_t *record = begin(imperative);
  cleave_array_t *results[] = {call(imperative, "Mul", w, w, 0), call(imperative, "Sin", w, NULL, 0)};
  cleave_record_end(record);
  cleave_array_t *heads[] = {head, NULL};
  cleave_record_request_t request = request_of(results, &w, 1);
  request.result_count = 2;
  request.heads = heads;
  unit_ok(cleave_record_gradient(record, &request, &gradient, e));
  for (int n = 0; n < 6; n++) {
    ck_assert_double_eq_tol(read(gradient)[n], 2 * some[n] * weights[n] + cos(some[n]), 1e-12);
  }
  cleave_array_release(gradient);
  cleave_array_release(results[0]);
  cleave_array_release(results[1]);
  cleave_array_release(head);
  cleave_array_release(w);
  cleave_record_destroy(record);
  end(imperative);
}

static void *call_beside(void *self) {
  cleave_array_t **arrays = self;
  arrays[1] = call((cleave_imperative_t *)arrays[2], "Exp", arrays[0], NULL, 0);
  return NULL;
}

static bool is_zero(cleave_array_t *array) {
  bool is_zero = true;
  for (int64_t n = 0; n < cleave_array_count(array); n++) {
    is_zero = is_zero && read(array)[n] == 0;
  }
  return is_zero;
}

/* Of the sum of a result by w: zeros, if its calls were not noted. */
static bool has_no_gradient(cleave_record_t *record, cleave_array_t *result, cleave_array_t *w) {
  cleave_array_t *gradient = NULL;
  const cleave_record_request_t request = request_of(&result, &w, 1);
  unit_ok(cleave_record_gradient(record, &request, &gradient, e));
  bool found = is_zero(gradient);
  cleave_array_release(gradient);
  return found;
}

UNIT_TEST(calls_are_noted_between_begin_and_end_by_their_thread) {
  cleave_imperative_t *imperative = create(2);
  cleave_array_t *w = doubles(imperative, 2, 3, some);
  cleave_array_t *before = call(imperative, "Exp", w, NULL, 0);
  cleave_record_t *record = begin(imperative);
  cleave_array_t *noted = call(imperative, "Exp", w, NULL, 0);
  cleave_record_pause();
  cleave_record_pause();
  cleave_record_resume();
  cleave_array_t *paused = call(imperative, "Exp", w, NULL, 0);
  cleave_record_resume();
  cleave_array_t *resumed = call(imperative, "Mul", paused, w, 0);
  cleave_array_t *beside[] = {w, NULL, (cleave_array_t *)imperative};
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, call_beside, beside), 0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  cleave_record_end(record);
  cleave_array_t *after = call(imperative, "Exp", w, NULL, 0);
  ck_assert(has_no_gradient(record, before, w));
  ck_assert(!has_no_gradient(record, noted, w));
  ck_assert(has_no_gradient(record, paused, w));
  ck_assert(!has_no_gradient(record, resumed, w)); /* by w, and not by way of what was paused */
  ck_assert(has_no_gradient(record, beside[1], w));
  ck_assert(has_no_gradient(record, after, w));
  cleave_array_t *gradient = NULL;
  const cleave_record_request_t request = request_of(&resumed, &w, 1);
  unit_ok(cleave_record_gradient(record, &request, &gradient, e));
  ck_assert_mem_eq(read(gradient), read(paused), sizeof some);
  cleave_array_t *all[] = {before, noted, paused, resumed, beside[1], after, gradient, w};
  for (size_t n = 0; n < sizeof all / sizeof all[0]; n++) {
    cleave_array_release(all[n]);
  }
  cleave_record_destroy(record);
  end(imperative);
}

UNIT_TEST(records_of_the_same_calls_are_compiled_once) {
  cleave_imperative_t *imperative = create(1);
  uint64_t compiled = 0;
  for (int round = 0; round < 5; round++) {
    double data[6];
    for (int n = 0; n < 6; n++) {
      data[n] = some[n] + round;
    }
    cleave_array_t *w = doubles(imperative, 2, 3, data);
    cleave_array_t *gradient = NULL;
    cleave_record_t *record = begin(imperative);
    cleave_array_t *y = curve_of(imperative, w);
    const cleave_record_request_t request = request_of(&y, &w, 1);
    unit_ok(cleave_record_gradient(record, &request, &gradient, e)); /* also while it is open */
    for (int n = 0; n < 6; n++) {
      double expected = (2 * data[n] + data[n] * data[n]) * exp(data[n]);
      ck_assert_double_eq_tol(read(gradient)[n], expected, 1e-12 * fmax(1, fabs(expected)));
    }
    ck_assert(round == 0 || counters_of(imperative).compiled == compiled);
    compiled = counters_of(imperative).compiled;
    cleave_array_release(w);
    cleave_array_release(y);
    cleave_array_release(gradient);
    cleave_record_destroy(record); /* ends it */
  }
  /* Another shape is another form. */
  cleave_array_t *w = doubles(imperative, 3, 2, some);
  cleave_record_t *record = begin(imperative);
  cleave_array_t *y = curve_of(imperative, w);
  ck_assert(!has_no_gradient(record, y, w));
  ck_assert_uint_gt(counters_of(imperative).compiled, compiled);
  cleave_array_release(w);
  cleave_array_release(y);
  cleave_record_destroy(record);
  end(imperative);
}

UNIT_TEST(mistakes_are_errors_and_give_nothing) {
  cleave_imperative_t *imperative = create(1);
  cleave_array_t *w = doubles(imperative, 2, 3, some);
  cleave_array_t *whole = ints(imperative, 3);
  cleave_array_t *other = doubles(imperative, 3, 2, some);
  cleave_record_t *record = begin(imperative);
  cleave_array_t *y = call(imperative, "Exp", w, NULL, 0);
  cleave_record_end(record);
  cleave_array_t *parameters[] = {w, whole};
  cleave_array_t *gradients[] = {w, w}; /* overwritten */
  cleave_record_request_t request = request_of(&y, parameters, 2);
  unit_fails(cleave_record_gradient(record, &request, gradients, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "gradient: parameter 2: expected an array of floating-point numbers, found int64");
  ck_assert(gradients[0] == NULL && gradients[1] == NULL);
  request = request_of(&whole, parameters, 1);
  unit_fails(cleave_record_gradient(record, &request, gradients, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "gradient: result 1: expected an array of floating-point numbers, found int64");
  parameters[0] = NULL;
  request = request_of(&y, parameters, 1);
  unit_fails(cleave_record_gradient(record, &request, gradients, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "gradient: parameter 1: expected an array of floating-point numbers, found none");
  parameters[0] = w;
  request.heads = &other;
  unit_fails(cleave_record_gradient(record, &request, gradients, e), CLEAVE_ERROR_SHAPE,
             "gradient: head 1: expected an array of the dtype and shape of its result");
  request.heads = NULL;
  unit_ok(cleave_record_gradient(record, &request, gradients, e)); /* the record is as it was */
  ck_assert_double_eq_tol(read(gradients[0])[2], exp(some[2]), 1e-12);
  cleave_array_t *all[] = {w, whole, other, y, gradients[0]};
  for (size_t n = 0; n < sizeof all / sizeof all[0]; n++) {
    cleave_array_release(all[n]);
  }
  cleave_record_destroy(record);
  cleave_record_destroy(NULL);
  end(imperative);
}

UNIT_TEST(an_error_on_the_way_reaches_who_reads_the_gradient) {
  for (int k = 0; k < SETTING_COUNT; k++) {
    for (int waits = 0; waits < 2; waits++) {
      cleave_imperative_t *imperative = create(k);
      cleave_array_t *w = doubles(imperative, 2, 3, some);
      cleave_array_t *wrong = ints(imperative, 7); /* of 2 rows */
      cleave_array_t *gradient = NULL;
      cleave_error_t error = CLEAVE_ERROR_INIT;
      const void *data = NULL;
      cleave_record_t *record = begin(imperative);
      cleave_array_t *bad = call(imperative, "Gather", w, wrong, 0);
      cleave_array_t *y = call(imperative, "Exp", bad, NULL, 0);
      cleave_record_end(record);
      const cleave_record_request_t request = request_of(&y, &w, 1);
      unit_ok(cleave_record_gradient(record, &request, &gradient, e));
      ck_assert_int_ne(waits != 0 ? cleave_imperative_wait(imperative, &error)
                                  : cleave_array_data(gradient, &data, &error),
                       CLEAVE_OK);
      ck_assert_ptr_nonnull(strstr(error.message, "Gather"));
      ck_assert_int_ne(cleave_array_data(gradient, &data, NULL), CLEAVE_OK); /* it never counts as one */
      ck_assert_ptr_null(data);
      cleave_array_t *all[] = {w, wrong, bad, y, gradient};
      for (size_t n = 0; n < sizeof all / sizeof all[0]; n++) {
        cleave_array_release(all[n]);
      }
      cleave_record_destroy(record);
      end(imperative);
    }
  }
}

UNIT_TEST(a_record_keeps_what_its_gradients_need) {
  cleave_imperative_t *imperative = create(1);
  cleave_array_t *w = doubles(imperative, 2, 3, some);
  cleave_array_t *gradient = NULL;
  cleave_record_t *outer = begin(imperative);
  cleave_record_t *record = begin(imperative);
  cleave_array_t *y = curve_of(imperative, w); /* what is between is released */
  cleave_record_end(record);
  const cleave_record_request_t request = request_of(&y, &w, 1);
  unit_ok(cleave_record_gradient(record, &request, &gradient, e));
  cleave_array_release(w);
  cleave_array_release(y);
  cleave_record_destroy(record);
  ck_assert_double_eq_tol(read(gradient)[0], (2 * 0.3 + 0.09) * exp(0.3), 1e-12); /* is the caller's */
  ck_assert_uint_gt(counters_of(imperative).array_bytes, 0);
  cleave_array_release(gradient);
  cleave_record_destroy(outer);
  end(imperative); /* nothing is left */
}

UNIT_TEST(short_memory_is_an_error_and_no_leak) {
  cleave_imperative_t *imperative = create(0);
  bool has_failed = false;
  bool has_ended = false;
  for (int64_t countdown = 0; countdown < 10000000 && !has_ended; countdown += 1 + countdown / 4) {
    cleave_array_t *w = doubles(imperative, 2, 3, some);
    cleave_array_t *y = NULL;
    cleave_array_t *gradient = NULL;
    cleave_record_t *record = NULL;
    (void)cleave_memory_fail_after(countdown);
    cleave_status_t status = cleave_record_begin(imperative, &record, NULL);
    if (status == CLEAVE_OK) {
      status = cleave_array_call(imperative, "Sinh", &w, 1, NULL, 0, &y, 1, NULL);
    }
    if (status == CLEAVE_OK) {
      const cleave_record_request_t request = request_of(&y, &w, 1);
      status = cleave_record_gradient(record, &request, &gradient, NULL);
    }
    (void)cleave_memory_fail_after(-1);
    has_failed = has_failed || status != CLEAVE_OK;
    has_ended = status == CLEAVE_OK;
    ck_assert((gradient != NULL) == has_ended);
    cleave_array_release(gradient);
    cleave_array_release(y);
    cleave_array_release(w);
    cleave_record_destroy(record);
  }
  ck_assert(has_failed && has_ended);
  end(imperative);
}

UNIT_SUITE("records")
