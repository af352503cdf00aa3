// SPDX-License-Identifier: Apache-2.0
/* MXNet's cases of pointwise fusion that are about several runs, with gradients, by the kernels of
 * rules/pointwise.lua: F23, a model twice, and F28, a model of other sizes. The others are sweep_fusion.c
 * and, F25, tests/lua/arrays.lua. */
#include "train_case.h"
#include "unit.h"

static cleave_model_t *with_gradients(const char *script, const char *const *names, size_t count) {
  cleave_model_t *model = train_case_model(script);
  cleave_model_t *both = NULL;
  unit_ok(cleave_model_gradient(model, "y", names, count, NULL, &both, e));
  cleave_model_release(model);
  return both;
}

/* A plan with kernels, which has one at least. */
static cleave_plan_t *partition(cleave_model_t *model) {
  static const cleave_setting_t settings[] = {{.name = "min_bytes", .value = "0"},
                                              {.name = "min_gain", .value = "0"}};
  const cleave_rule_source_t source = {.path = CLEAVE_SOURCE_DIR "/rules/pointwise.lua"};
  const cleave_partition_request_t request = {.size = sizeof request,
                                              .sources = &source,
                                              .source_count = 1,
                                              .settings = settings,
                                              .setting_count = 2};
  cleave_plan_t *plan = NULL;
  char *text = NULL;
  unit_ok(cleave_model_partition(model, &request, &plan, e));
  unit_ok(cleave_plan_format(plan, CLEAVE_PLAN_TEXT, &text, e));
  ck_assert_ptr_nonnull(strstr(text, "[pointwise]"));
  cleave_text_free(text);
  return plan;
}

static cleave_session_t *session_of(cleave_model_t *model, const cleave_plan_t *plan,
                                    cleave_program_cache_t *programs,
                                    const cleave_tensor_view_t *const *inputs, size_t count) {
  cleave_session_t *session = NULL;
  const cleave_session_options_t options = {.size = sizeof options, .threads = 1, .programs = programs};
  unit_ok(cleave_session_create(model, plan, inputs, count, &options, &session, e));
  for (size_t k = 0; k < count; k++) {
    unit_ok(cleave_session_set_input(session, (uint32_t)k, inputs[k], e));
  }
  unit_ok(cleave_session_run(session, e));
  return session;
}

static const float *output_of(const cleave_session_t *session, uint32_t index, int64_t count) {
  cleave_tensor_view_t view;
  int64_t found = 1;
  unit_ok(cleave_session_output(session, index, &view, e));
  for (int32_t d = 0; d < view.rank; d++) {
    found *= view.dims[d];
  }
  ck_assert_int_eq(found, count);
  return view.data;
}

UNIT_TEST(a_model_that_is_there_twice_is_compiled_once) {
  static const char *const names[] = {"a", "b"};
  cleave_program_cache_t *programs = NULL;
  cleave_model_t *model = with_gradients(
      "local a = g.input('a', 'float32', { 8, 8 })\n"
      "local b = g.input('b', 'float32', { 8, 8 })\n"
      "g.output('y', g.Tanh(g.Exp(a + b)))\n",
      names, 2);
  cleave_session_t *sessions[2];
  cleave_plan_t *plans[2];
  static float data[2][64];
  const int64_t dims[] = {8, 8};
  cleave_tensor_view_t views[2];
  const cleave_tensor_view_t *const pointers[] = {&views[0], &views[1]};
  for (int n = 0; n < 64; n++) {
    data[0][n] = (float)n * 0.01F;
    data[1][n] = 1.0F - (float)n * 0.01F;
  }
  for (int k = 0; k < 2; k++) {
    views[k] = (cleave_tensor_view_t){
        .size = sizeof views[k], .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = dims, .data = data[k]};
  }
  unit_ok(cleave_program_cache_create(&programs, e));
  for (int k = 0; k < 2; k++) {
    plans[k] = partition(model);
    sessions[k] = session_of(model, plans[k], programs, pointers, 2);
  }
  ck_assert_uint_eq(cleave_session_reused_count(sessions[0]), 0);
  ck_assert_uint_gt(cleave_session_reused_count(sessions[1]), 0);
  for (uint32_t k = 0; k < 3; k++) {
    ck_assert_mem_eq(output_of(sessions[0], k, 64), output_of(sessions[1], k, 64), 64 * sizeof(float));
  }
  ck_assert_float_ne(output_of(sessions[0], 1, 64)[0], 0);
  for (int k = 0; k < 2; k++) {
    cleave_session_destroy(sessions[k]);
    cleave_plan_destroy(plans[k]);
  }
  cleave_model_release(model);
  cleave_program_cache_release(programs);
}

UNIT_TEST(a_model_of_other_sizes_has_other_sums) {
  static const char *const names[] = {"a", "b"};
  static const int64_t sizes[][2] = {{10, 10}, {80, 2}, {30, 5}};
  static const float zeros[160];
  cleave_model_t *model = with_gradients(
      "local a = g.input('a', 'float32', { 'M', 'N' })\n"
      "local b = g.input('b', 'float32', { 'M', 'N' })\n"
      "g.output('y', g.Relu(a + b + 1))\n",
      names, 2);
  for (int s = 0; s < 3; s++) {
    cleave_model_t *bound = NULL;
    cleave_tensor_view_t view = {
        .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = sizes[s], .data = zeros};
    const cleave_tensor_view_t *const pointers[] = {&view, &view};
    unit_ok(cleave_model_bind(model, pointers, 2, &bound, e));
    cleave_plan_t *plan = partition(bound);
    cleave_session_t *session = session_of(bound, plan, NULL, pointers, 2);
    int64_t count = sizes[s][0] * sizes[s][1];
    for (uint32_t k = 0; k < 3; k++) { /* y, and gradients of ones */
      const float *found = output_of(session, k, count);
      float sum = 0;
      for (int64_t n = 0; n < count; n++) {
        sum += found[n];
      }
      ck_assert_float_eq(sum, (float)count);
    }
    cleave_session_destroy(session);
    cleave_plan_destroy(plan);
    cleave_model_release(bound);
  }
  cleave_model_release(model);
}

UNIT_SUITE("fusion cases")
