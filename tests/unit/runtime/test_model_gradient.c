// SPDX-License-Identifier: Apache-2.0
// Gradients through the embedding API: numbers that are known, models that are bound or get other constants
// afterwards, second derivatives, and every allocation that may fail. Operators are compared with finite
// differences by the rules' own tests.
#include <math.h>
#include <unistd.h>

#include "runtime/model/model.h"
#include "unit.h"

/* loss = sum((x w)^2), of which the gradient of w is 2 x'(x w), and that of x 2 (x w) w'. */
static const char network[] =
    "local x = g.input('x', 'float32', { 'N', 2 })\n"
    "local w = g.constant({ { 1 }, { -2 } }, 'float32', 'w')\n"
    "local y = g.MatMul(x, w)\n"
    "g.output('loss', g.ReduceSum(y * y, { keepdims = 0 }))\n"
    "g.output('ids', g.Cast(y, { to = 'int64' }))\n";

static const float rows[6] = {1.0f, 2.0f, 0.5f, -1.0f, 3.0f, 0.0f};

static cleave_model_t *load_text(const char *text) {
  char path[512];
  cleave_model_t *model = NULL;
  (void)snprintf(path, sizeof path, CLEAVE_BINARY_DIR "/model_gradient_%ld.lua", (long)getpid());
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_ge(fputs(text, file), 0);
  ck_assert_int_eq(fclose(file), 0);
  unit_ok(cleave_model_load(NULL, path, NULL, &model, e));
  ck_assert_int_eq(remove(path), 0);
  return model;
}

static cleave_model_t *load(void) {
  return load_text(network);
}

static cleave_tensor_view_t rows_view(int64_t *dims, int64_t count) {
  dims[0] = count;
  dims[1] = 2;
  return (cleave_tensor_view_t){.size = sizeof(cleave_tensor_view_t),
                                .dtype = CLEAVE_DTYPE_F32,
                                .rank = 2,
                                .dims = dims,
                                .data = (void *)(uintptr_t)rows};
}

/* Runs a model on the first `count` rows, and copies the floats of the output of that name. */
static void run(cleave_model_t *model, int64_t count, const char *output, float *out_values,
                int64_t value_count) {
  int64_t dims[2];
  cleave_tensor_view_t input = rows_view(dims, count);
  const cleave_tensor_view_t *inputs = &input;
  cleave_session_t *session = NULL;
  cleave_tensor_view_t found;
  uint32_t index = cleave_model_find_output(model, output);
  ck_assert_uint_ne(index, CLEAVE_INDEX_NONE);
  unit_ok(cleave_session_create(model, NULL, &inputs, 1, NULL, &session, e));
  unit_ok(cleave_session_set_input(session, 0, &input, e));
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_output(session, index, &found, e));
  ck_assert_int_eq(cleave_view_element_count(&found), value_count);
  memcpy(out_values, found.data, (size_t)value_count * sizeof *out_values);
  cleave_session_destroy(session);
}

static void expect(const float *found, const float *expected, int count) {
  for (int k = 0; k < count; k++) {
    ck_assert_msg(found[k] == expected[k], "element %d: %g, expected %g", k, (double)found[k],
                  (double)expected[k]);
  }
}

UNIT_TEST(weights_get_gradients_and_inputs_that_are_named) {
  static const char *const names[] = {"x", "w"};
  cleave_model_t *model = load();
  cleave_model_t *weights = NULL;
  cleave_model_t *both = NULL;
  float found[4];
  unit_ok(cleave_model_gradient(model, "loss", NULL, 0, NULL, &weights, e));
  ck_assert_uint_eq(cleave_model_output_count(weights), 3);
  run(weights, 2, "grad(w)", found, 2); /* x w = -3, 2.5 */
  expect(found, (float[]){-3.5f, -17.0f}, 2);
  unit_ok(cleave_model_gradient(model, "loss", names, 2, NULL, &both, e));
  ck_assert_uint_eq(cleave_model_find_output(both, "grad(x)"), 2);
  run(both, 2, "grad(x)", found, 4);
  expect(found, (float[]){-6.0f, 12.0f, 5.0f, -10.0f}, 4);
  run(both, 2, "loss", found, 1);
  expect(found, (float[]){15.25f}, 1);
  cleave_model_release(both);
  cleave_model_release(weights);
  cleave_model_release(model);
}

UNIT_TEST(a_bound_model_stays_bound_and_outlives_the_one_it_was_made_of) {
  int64_t dims[2];
  cleave_tensor_view_t input = rows_view(dims, 3);
  const cleave_tensor_view_t *inputs = &input;
  cleave_model_t *model = load();
  cleave_model_t *bound = NULL;
  cleave_model_t *gradient = NULL;
  cleave_port_t port = {.size = sizeof port};
  static const char *const name = "x";
  float found[6];
  unit_ok(cleave_model_bind(model, &inputs, 1, &bound, e));
  unit_ok(cleave_model_gradient(bound, "loss", &name, 1, NULL, &gradient, e));
  cleave_model_release(bound);
  cleave_model_release(model);
  unit_ok(cleave_model_output(gradient, cleave_model_find_output(gradient, "grad(x)"), &port, e));
  ck_assert_int_eq(port.tensor.dims[0], 3);
  run(gradient, 3, "grad(x)", found, 6);
  expect(found, (float[]){-6.0f, 12.0f, 5.0f, -10.0f, 6.0f, -12.0f}, 6);
  cleave_model_release(gradient);
}

UNIT_TEST(other_constants_give_other_gradients) {
  static const float values[2] = {2.0f, 1.0f};
  static const int64_t dims[2] = {2, 1};
  static const char *const name = "w";
  cleave_tensor_view_t view = {.size = sizeof view,
                               .dtype = CLEAVE_DTYPE_F32,
                               .rank = 2,
                               .dims = dims,
                               .data = (void *)(uintptr_t)values};
  const cleave_tensor_view_t *views = &view;
  cleave_model_t *model = load();
  cleave_model_t *gradient = NULL;
  cleave_model_t *changed = NULL;
  float found[2];
  unit_ok(cleave_model_gradient(model, "loss", NULL, 0, NULL, &gradient, e));
  unit_ok(cleave_model_set_constants(gradient, &name, &views, 1, &changed, e));
  run(changed, 1, "grad(w)", found, 2); /* x w = 4 */
  expect(found, (float[]){8.0f, 16.0f}, 2);
  cleave_model_release(changed);
  cleave_model_release(gradient);
  cleave_model_release(model);
}

UNIT_TEST(gradients_have_gradients) {
  static const char *const name = "x";
  cleave_model_t *model = load();
  cleave_model_t *first = NULL;
  cleave_model_t *second = NULL;
  float found[2];
  unit_ok(cleave_model_gradient(model, "loss", &name, 1, NULL, &first, e));
  cleave_model_release(model);
  unit_ok(cleave_model_gradient(first, "grad(x)", &name, 1, NULL, &second, e));
  cleave_model_release(first);
  /* The sum of 2 (x w) w', differentiated: 2 (w1 + w2) w. */
  uint32_t outputs = cleave_model_output_count(second);
  ck_assert_uint_eq(outputs, 4);
  int64_t dims[2];
  cleave_tensor_view_t input = rows_view(dims, 1);
  const cleave_tensor_view_t *inputs = &input;
  cleave_session_t *session = NULL;
  cleave_tensor_view_t view;
  unit_ok(cleave_session_create(second, NULL, &inputs, 1, NULL, &session, e));
  unit_ok(cleave_session_set_input(session, 0, &input, e));
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_output(session, outputs - 1, &view, e));
  memcpy(found, view.data, sizeof found);
  expect(found, (float[]){-2.0f, 4.0f}, 2);
  cleave_session_destroy(session);
  cleave_model_release(second);
}

/* Rows and their targets, with weights that a run is given: descending along the gradient finds the weights.
 */
UNIT_TEST(weights_that_are_inputs_are_trained_without_compiling_again) {
  static const char text[] =
      "local x, t = g.input('x', 'float32', { 3, 2 }), g.input('t', 'float32', { 3, 1 })\n"
      "local d = g.MatMul(x, g.constant({ { 0.5 }, { 0.25 } }, 'float32', 'w')) - t\n"
      "g.output('loss', g.ReduceMean(d * d, { keepdims = 0 }))\n";
  float targets[3] = {5.0f, 0.5f, 9.0f}; /* of the rows, by w = (3, 1) */
  float weights[2] = {0.5f, 0.25f};
  int64_t x_dims[2];
  int64_t t_dims[2] = {3, 1};
  int64_t w_dims[2] = {2, 1};
  cleave_tensor_view_t views[3];
  views[0] = rows_view(x_dims, 3);
  views[1] = (cleave_tensor_view_t){
      .size = sizeof views[1], .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = t_dims, .data = targets};
  views[2] = (cleave_tensor_view_t){
      .size = sizeof views[2], .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = w_dims, .data = weights};
  const cleave_tensor_view_t *pointers[3] = {&views[0], &views[1], &views[2]};
  cleave_model_t *model = load_text(text);
  cleave_model_t *training = NULL;
  cleave_session_t *session = NULL;
  cleave_gradient_options_t options = {.size = sizeof options, .open = true};
  unit_ok(cleave_model_gradient(model, "loss", NULL, 0, &options, &training, e));
  ck_assert_uint_eq(cleave_model_find_input(training, "w"), 2);
  unit_ok(cleave_session_create(training, NULL, pointers, 3, NULL, &session, e));
  for (uint32_t k = 0; k < 3; k++) {
    unit_ok(cleave_session_set_input(session, k, &views[k], e));
  }
  for (int step = 0; step < 400; step++) {
    cleave_tensor_view_t gradient;
    unit_ok(cleave_session_run(session, e));
    unit_ok(cleave_session_output(session, 1, &gradient, e));
    for (int k = 0; k < 2; k++) {
      weights[k] -= 0.1f * ((const float *)gradient.data)[k];
    }
  }
  ck_assert_msg(fabsf(weights[0] - 3.0f) < 1e-4f && fabsf(weights[1] - 1.0f) < 1e-4f, "weights %g, %g",
                (double)weights[0], (double)weights[1]);
  cleave_session_destroy(session);
  cleave_model_release(training);
  cleave_model_release(model);
}

UNIT_TEST(says_what_is_wrong_with_a_request) {
  static const struct {
    const char *loss;
    const char *wrt;
    const char *message;
  } mistakes[] = {
      {"lost", "w", "loss 'lost': the model has no value of this name (did you mean 'loss'?)"},
      {"ids", "w", "loss 'ids': expected floating-point numbers, found int64"},
      {"loss", "v", "wrt 'v': the model has no value of this name"},
      {"loss", "ids", "wrt 'ids': expected floating-point numbers, found int64"},
  };
  cleave_model_t *model = load();
  for (size_t k = 0; k < sizeof mistakes / sizeof mistakes[0]; k++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    cleave_model_t *gradient = NULL;
    ck_assert_int_eq(
        cleave_model_gradient(model, mistakes[k].loss, &mistakes[k].wrt, 1, NULL, &gradient, &error),
        CLEAVE_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(gradient);
    ck_assert_msg(strncmp(error.message, mistakes[k].message, strlen(mistakes[k].message)) == 0, "%s",
                  error.message);
  }
  cleave_model_release(model);
}

UNIT_TEST(every_failed_allocation_is_an_error) {
  static const char *const name = "w";
  cleave_model_t *model = load();
  int64_t failures = 0;
  for (cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY; status != CLEAVE_OK; failures++) {
    cleave_model_t *gradient = NULL;
    (void)cleave_memory_fail_after(failures);
    status = cleave_model_gradient(model, "loss", &name, 1, NULL, &gradient, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY, "status %d after %d",
                  (int)status, (int)failures);
    cleave_model_release(gradient);
    failures += failures > 600 ? 96 : 0; /* most are the interpreter's, in its own tests */
  }
  ck_assert_int_gt(failures, 500);
  cleave_model_release(model);
}

UNIT_SUITE("model_gradient")
