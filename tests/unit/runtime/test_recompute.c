// SPDX-License-Identifier: Apache-2.0
// Gradients whose forward values are computed again: the same bits, less memory, and what is refused.
#include <unistd.h>

#include "base/memory.h"
#include "runtime/session/session.h"
#include "unit.h"

/* Blocks of convolution, norm and activation with a residual, then a deep perceptron. */
static const char network[] =
    "local x = g.input('x', 'float32', { 'N', 8, 16, 16 })\n"
    "for k = 1, 4 do\n"
    "  local y = g.Conv(x, g.weight { 8, 8, 3, 3, name = 'conv' .. k }, { pads = { 1, 1, 1, 1 } })\n"
    "  y = g.Tanh(g.BatchNormalization(y, g.uniform { 8, low = 0.5, high = 1, name = 's' .. k },\n"
    "    g.normal { 8, name = 'b' .. k }, g.zeros { 8 }, g.ones { 8 }))\n"
    "  x = g.Sigmoid(y + x)\n"
    "end\n"
    "local z = g.Flatten(g.ReduceMean(x, g.constant { 2, 3 }, { keepdims = 1 }))\n"
    "for k = 1, 6 do\n"
    "  z = g.Tanh(g.MatMul(z, g.weight { k == 1 and 8 or 512, 512, name = 'w' .. k }))\n"
    "end\n"
    "g.output('loss', g.ReduceMean(z * z, { keepdims = 0 }))\n";

enum { BATCH = 4, VALUES = BATCH * 8 * 16 * 16 };
static int64_t dims[4] = {BATCH, 8, 16, 16};
static float pixels[VALUES];

static cleave_tensor_view_t image(void) {
  for (int k = 0; k < VALUES; k++) {
    pixels[k] = (float)((k * 37) % 101) / 50.0f - 1.0f;
  }
  return (cleave_tensor_view_t){.size = sizeof(cleave_tensor_view_t),
                                .dtype = CLEAVE_DTYPE_F32,
                                .rank = 4,
                                .dims = dims,
                                .data = pixels};
}

static cleave_model_t *load(void) {
  char path[512];
  cleave_model_t *model = NULL;
  (void)snprintf(path, sizeof path, CLEAVE_BINARY_DIR "/recompute_%ld.lua", (long)getpid());
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_ge(fputs(network, file), 0);
  ck_assert_int_eq(fclose(file), 0);
  unit_ok(cleave_model_load(NULL, path, NULL, &model, e));
  ck_assert_int_eq(remove(path), 0);
  return model;
}

static cleave_model_t *bind(cleave_model_t *model) {
  const cleave_tensor_view_t view = image();
  const cleave_tensor_view_t *inputs = &view;
  cleave_model_t *bound = NULL;
  unit_ok(cleave_model_bind(model, &inputs, 1, &bound, e));
  cleave_model_release(model);
  return bound;
}

static cleave_model_t *differentiate(cleave_model_t *model, double share, cleave_recompute_report_t *report) {
  const cleave_gradient_options_t options = {
      .size = sizeof options, .recompute = share, .out_recompute = report};
  cleave_model_t *gradient = NULL;
  unit_ok(cleave_model_gradient(model, "loss", NULL, 0, &options, &gradient, e));
  return gradient;
}

static cleave_session_t *run(cleave_model_t *model, const cleave_plan_t *plan) {
  const cleave_tensor_view_t view = image();
  const cleave_tensor_view_t *inputs = &view;
  cleave_session_t *session = NULL;
  unit_ok(cleave_session_create(model, plan, &inputs, 1, NULL, &session, e));
  unit_ok(cleave_session_set_input(session, 0, &view, e));
  unit_ok(cleave_session_run(session, e));
  return session;
}

static void expect_equal(cleave_session_t *found, cleave_session_t *expected, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    cleave_tensor_view_t a;
    cleave_tensor_view_t b;
    unit_ok(cleave_session_output(found, k, &a, e));
    unit_ok(cleave_session_output(expected, k, &b, e));
    ck_assert_int_eq(cleave_view_element_count(&a), cleave_view_element_count(&b));
    ck_assert_msg(memcmp(a.data, b.data, (size_t)cleave_view_element_count(&a) * sizeof(float)) == 0,
                  "output %u differs", (unsigned)k);
  }
}

UNIT_TEST(what_is_computed_again_has_the_same_bits_and_needs_less_memory) {
  static const double shares[] = {0.9, 0.75};
  cleave_model_t *model = bind(load());
  cleave_model_t *kept = differentiate(model, 0.0, NULL);
  cleave_session_t *expected = run(kept, NULL);
  size_t before = cleave_session_memory(expected).values_bytes;
  double flops = 0.0;
  for (size_t k = 0; k < sizeof shares / sizeof shares[0]; k++) {
    cleave_recompute_report_t report = {.size = sizeof report};
    cleave_model_t *again = differentiate(model, shares[k], &report);
    cleave_session_t *session = run(again, NULL);
    expect_equal(session, expected, cleave_model_output_count(kept));
    ck_assert_uint_gt(report.node_count, 0);
    ck_assert_double_gt(report.flops_added, flops);
    ck_assert_int_lt(report.kept_bytes, report.kept_bytes_before);
    ck_assert_double_le((double)report.peak_bytes, shares[k] * (double)report.peak_bytes_before);
    /* What the session plans differs from the estimate: views, memory that is taken over, holes. */
    size_t after = cleave_session_memory(session).values_bytes;
    ck_assert_msg((double)after < (shares[k] + 0.1) * (double)before, "share %g: %zu of %zu bytes", shares[k],
                  after, before);
    flops = report.flops_added;
    cleave_session_destroy(session);
    cleave_model_release(again);
  }
  cleave_session_destroy(expected);
  cleave_model_release(kept);
  cleave_model_release(model);
}

UNIT_TEST(regions_compute_again_when_backward_comes_there) {
  const cleave_partition_request_t request = {.size = sizeof request, .backend = "cpu"};
  cleave_model_t *model = bind(load());
  cleave_model_t *kept = differentiate(model, 0.0, NULL);
  cleave_model_t *again = differentiate(model, 0.75, NULL);
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_model_partition(again, &request, &plan, e));
  cleave_session_t *expected = run(kept, NULL);
  cleave_session_t *session = run(again, plan);
  expect_equal(session, expected, cleave_model_output_count(kept));
  cleave_session_destroy(session);
  cleave_session_destroy(expected);
  cleave_plan_destroy(plan);
  cleave_model_release(again);
  cleave_model_release(kept);
  cleave_model_release(model);
}

UNIT_TEST(gradients_of_gradients_pass_what_is_computed_again) {
  static const char *const name = "conv1";
  cleave_model_t *model = bind(load());
  cleave_model_t *first[2] = {NULL, NULL};
  cleave_model_t *second[2] = {NULL, NULL};
  cleave_session_t *sessions[2];
  for (int k = 0; k < 2; k++) {
    const cleave_gradient_options_t options = {.size = sizeof options, .recompute = k == 0 ? 0.0 : 0.8};
    unit_ok(cleave_model_gradient(model, "loss", NULL, 0, &options, &first[k], e));
    unit_ok(cleave_model_gradient(first[k], "grad(conv1)", &name, 1, NULL, &second[k], e));
    sessions[k] = run(second[k], NULL);
  }
  uint32_t output = cleave_model_output_count(second[0]) - 1;
  cleave_tensor_view_t a;
  cleave_tensor_view_t b;
  unit_ok(cleave_session_output(sessions[0], output, &a, e));
  unit_ok(cleave_session_output(sessions[1], output, &b, e));
  for (int64_t k = 0; k < cleave_view_element_count(&a); k++) {
    float x = ((const float *)a.data)[k];
    float y = ((const float *)b.data)[k];
    ck_assert_msg(x - y <= 1e-6f && y - x <= 1e-6f, "element %d: %g, %g", (int)k, (double)x, (double)y);
  }
  for (int k = 0; k < 2; k++) {
    cleave_session_destroy(sessions[k]);
    cleave_model_release(second[k]);
    cleave_model_release(first[k]);
  }
  cleave_model_release(model);
}

UNIT_TEST(sizes_must_be_known_and_the_share_must_be_possible) {
  cleave_gradient_options_t options = {.size = sizeof options, .recompute = 0.5};
  cleave_model_t *model = load();
  cleave_model_t *gradient = NULL;
  unit_fails(cleave_model_gradient(model, "loss", NULL, 0, &options, &gradient, e), CLEAVE_ERROR_SHAPE,
             "recompute: the size of value 'Conv_0' is not known: give the sizes of the inputs");
  model = bind(model);
  options.recompute = 1e-6;
  unit_fails(
      cleave_model_gradient(model, "loss", NULL, 0, &options, &gradient, e), CLEAVE_ERROR_LIMIT,
      "recompute: the values of a run need 0.4 MiB if all are kept; a share of 1e-06 is too small, the "
      "least that was found is 0.71");
  options.recompute = 1.5;
  unit_fails(cleave_model_gradient(model, "loss", NULL, 0, &options, &gradient, e),
             CLEAVE_ERROR_INVALID_ARGUMENT,
             "recompute: expected a share of more than 0 and less than 1, found 1.5");
  cleave_model_release(model);
}

UNIT_TEST(every_failed_allocation_is_an_error) {
  const cleave_gradient_options_t options = {.size = sizeof options, .recompute = 0.8};
  cleave_model_t *model = bind(load());
  int64_t failures = 0;
  for (cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY; status != CLEAVE_OK; failures += 23) {
    cleave_model_t *gradient = NULL;
    (void)cleave_memory_fail_after(failures);
    status = cleave_model_gradient(model, "loss", NULL, 0, &options, &gradient, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY, "status %d after %d",
                  (int)status, (int)failures);
    cleave_model_release(gradient);
  }
  ck_assert_int_gt(failures, 500);
  cleave_model_release(model);
}

UNIT_SUITE("recompute")
