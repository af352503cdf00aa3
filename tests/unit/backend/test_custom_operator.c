// SPDX-License-Identifier: Apache-2.0
// Operators of a library in scripts, rules, and sessions: kernels, state, and libraries that come and go.
#include "base/memory.h"
#include "graph/clone.h"
#include "library_case.h"
#include "ops/custom.h"
#include "ops/infer.h"
#include "partition/plan/plan.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "unit.h"

#define GEMMS CLEAVE_BINARY_DIR "/accelerators/libgemms.so"

#define X "local x = g.input('x', 'float32', { 2, 3 })\n"

static const int64_t SHAPE[2] = {2, 3};
static const float DATA[6] = {1.0f, 2.0f, 3.0f, -4.0f, 5.0f, 6.0f};

/* Runs once with DATA; the first output is `expected`. */
static void check_run(cleave_model_t *model, const cleave_plan_t *plan, const float *expected,
                      int64_t count) {
  cleave_session_t *session = library_case_session(model, plan, 2, SHAPE, DATA, NULL);
  library_case_run(session, 0, expected, count);
  cleave_session_destroy(session);
}

/* ---- scripts ---- */

UNIT_TEST(scripts_know_library_operators_by_their_full_names) {
  unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
  library_case_model_fails(X "g.output('y', g['my.company.Gem'](x, x))", CLEAVE_ERROR_FORMAT,
                           "operator 'my.company.Gem' is unknown (did you mean 'my.company.Gemm'?)");
  library_case_model_fails(X "g.output('y', g['my.company.Gemm'](x, x, { alfa = 1 }))", CLEAVE_ERROR_FORMAT,
                           "operator 'Gemm' has no attribute or input 'alfa' (did you mean 'alpha'?)");
  library_case_model_fails(X "g.output('y', g['my.company.Gemm'](x, x, { alpha = 'a' }))",
                           CLEAVE_ERROR_FORMAT, "Gemm: attribute 'alpha': expected a number, found a string");
  library_case_model_fails(X "g.output('y', g['my.company.Gemm'](x, x))", CLEAVE_ERROR_SHAPE,
                           "columns of A and rows of B: 3 and 2");
  library_case_model_fails(X "g.output('y', g['my.company.Gemm'](x))", CLEAVE_ERROR_FORMAT,
                           "Gemm needs 2 inputs ('B'), found 1");
}

UNIT_TEST(rules_match_and_build_library_operators) {
  unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
  cleave_model_t *model =
      library_case_model(X
                         "local w = g.constant({ { 1, 0 }, { 0, 1 }, { 1, 1 } }, 'float32')\n"
                         "g.output('y', g.Relu(g['my.company.Gemm'](x, w, { alpha = 2 })))");
  cleave_plan_t *plan = NULL;
  unit_ok(
      library_case_partition(model,
                             "return ruleset { name = 'r', rewrite 'other_way' {\n"
                             "  pattern = op { 'my.company.Gemm', as = 'gemm', attrs = { transB = 0 } },\n"
                             "  replace = function(m, g)\n"
                             "    local w = g.Transpose(m.gemm.inputs[2], { perm = { 1, 0 } })\n"
                             "    return g['my.company.Gemm'](m.gemm.inputs[1], w,\n"
                             "      { transB = 1, alpha = m.gemm.attrs.alpha })\n"
                             "  end } }",
                             NULL, NULL, &plan, e));
  const cleave_graph_t *graph = plan->graph;
  uint32_t found = 0;
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    if (cleave_node_is_live(graph, (cleave_node_t){k}) &&
        strcmp(cleave_node_op(graph, (cleave_node_t){k})->name, "Gemm") == 0) {
      found += cleave_op_int(graph, (cleave_node_t){k}, "transB", 0) == 1 ? 1 : 100;
    }
  }
  ck_assert_uint_eq(found, 1);
  check_run(model, plan, (float[]){8.0f, 10.0f, 4.0f, 22.0f}, 4);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

UNIT_TEST(rewrites_find_operators_that_other_rewrites_brought_into_the_graph) {
  unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
  cleave_model_t *model =
      library_case_model(X "g.output('y', g.MatMul(x, g.constant({ { 1 }, { 2 }, { 3 } }, 'float32')))");
  cleave_plan_t *plan = NULL;
  unit_ok(library_case_partition(
      model,
      "return ruleset { name = 'r',\n"
      "  rewrite 'ours' { pattern = op { 'MatMul', as = 'm' }, replace = function(m, g)\n"
      "    return g['my.company.Gemm'](m.m.inputs[1], m.m.inputs[2]) end },\n"
      "  rewrite 'double' { pattern = op { 'my.company.Gemm', as = 'm', attrs = { alpha = 1 } },\n"
      "    replace = function(m, g)\n"
      "    return g['my.company.Gemm'](m.m.inputs[1], m.m.inputs[2], { alpha = 2 }) end } }",
      NULL, NULL, &plan, e));
  check_run(model, plan, (float[]){28.0f, 48.0f}, 2);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

/* ---- running ---- */

#define STATEFUL_MODEL                                                               \
  X "local w = g.constant({ { 1 }, { 2 }, { 3 } }, 'float32')\n"                     \
    "local y, a = g['my.company.StatefulGemm'](x, w, { outputs = 2, start = 10 })\n" \
    "local z, b = g['my.company.StatefulGemm'](x, w, { outputs = 2, start = 10 })\n" \
    "g.output('y', y)\ng.output('a', a)\ng.output('z', z)\ng.output('b', b)\n"

UNIT_TEST(every_stateful_node_of_every_session_counts_for_itself) {
  unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
  static const float EXPECTED[2] = {14.0f, 24.0f};
  cleave_program_cache_t *programs = NULL;
  unit_ok(cleave_program_cache_create(&programs, e));
  cleave_session_options_t options = {.size = sizeof options, .threads = 1, .programs = programs};
  cleave_model_t *model = library_case_model(STATEFUL_MODEL);
  cleave_session_t *first = library_case_session(model, NULL, 2, SHAPE, DATA, &options);
  library_case_run(first, 0, EXPECTED, 2);
  library_case_run(first, 2, EXPECTED, 2);
  ck_assert_int_eq(library_case_int(first, 1), 12);
  ck_assert_int_eq(library_case_int(first, 3), 12);
  cleave_session_t *second = library_case_session(model, NULL, 2, SHAPE, DATA, &options);
  ck_assert_uint_eq(cleave_session_reused_count(second), 0);
  library_case_run(second, 0, EXPECTED, 2);
  ck_assert_int_eq(library_case_int(second, 1), 11);
  library_case_run(first, 0, EXPECTED, 2);
  ck_assert_int_eq(library_case_int(first, 3), 13);
  unit_fails(cleave_registry_unload(NULL, "gemms", e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "backend 'gemms' is in use: 4 compiled programs of it live");
  cleave_session_destroy(first);
  cleave_session_destroy(second);
  unit_ok(cleave_registry_unload(NULL, "gemms", e));
  cleave_model_release(model);
  cleave_program_cache_release(programs);
}

UNIT_TEST(nodes_without_state_are_folded_where_all_is_constant) {
  unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
  cleave_model_t *model = library_case_model(
      "local x = g.input('x', 'float32', { 1, 1 })\n"
      "local a = g.constant({ { 1, 2 } }, 'float32')\nlocal b = g.constant({ { 3 }, { 4 } }, 'float32')\n"
      "g.output('y', x + g['my.company.Gemm'](a, b))\n"
      "g.output('z', x + g['my.company.StatefulGemm'](a, b))");
  ck_assert_uint_eq(cleave_model_graph(model)->live_node_count, 3); /* two sums, and what has a state */
  cleave_session_t *session = library_case_session(model, NULL, 2, (int64_t[]){1, 1}, (float[]){0.5f}, NULL);
  library_case_run(session, 0, (float[]){11.5f}, 1);
  library_case_run(session, 1, (float[]){11.5f}, 1);
  cleave_session_destroy(session);
  cleave_model_release(model);
}

UNIT_TEST(kernels_run_where_shapes_come_with_the_data_and_state_goes_on_there) {
  unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
  cleave_model_t *model = library_case_model(
      "local x = g.input('x', 'float32', { 6 })\n"
      "local places = g.Cast(g.NonZero(x), { to = 'float32' })\n" /* [1, n] */
      "g.output('y', g['my.company.Gemm'](places, places, { transB = 1, alpha = 0.5 }))\n"
      "local c, runs = g['my.company.StatefulGemm'](places, places, { transB = 1, outputs = 2 })\n"
      "g.output('c', c)\ng.output('runs', runs)");
  const int64_t six = 6;
  float data[6] = {0.0f, 1.0f, 1.0f, 0.0f, 0.0f, 1.0f}; /* places 1, 2, 5 */
  cleave_session_t *session = library_case_session(model, NULL, 1, &six, data, NULL);
  library_case_run(session, 0, (float[]){15.0f}, 1);
  library_case_run(session, 1, (float[]){30.0f}, 1);
  ck_assert_int_eq(library_case_int(session, 2), 2);
  float other[6] = {0.0f, 0.0f, 0.0f, 0.0f, 1.0f, 1.0f}; /* another shape: places 4, 5 */
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = &six, .data = other};
  unit_ok(cleave_session_set_input(session, 0, &view, e));
  library_case_run(session, 1, (float[]){41.0f}, 1);
  ck_assert_int_eq(library_case_int(session, 2), 3);
  cleave_session_destroy(session);
  cleave_model_release(model);
}

UNIT_TEST(an_operator_without_a_kernel_says_so) {
  cleave_custom_operator_t definition = library_case_same("X", "Y", "");
  library_case_operator(&definition);
  cleave_model_t *model = library_case_model(X "g.output('y', g['my.test.Op'](x, { name = 'n' }))");
  cleave_session_t *session = NULL;
  unit_fails_with(cleave_session_create(model, NULL, NULL, 0, NULL, &session, e), CLEAVE_ERROR_UNSUPPORTED,
                  "node 'n': operator 'my.test.Op' has no kernel: library 'cpu' runs it only in regions");
  cleave_model_release(model);
}

UNIT_TEST(memory_that_runs_out_is_an_error_wherever_it_does) {
  unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
  cleave_model_t *model = library_case_model(STATEFUL_MODEL);
  cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  cleave_session_t *session = NULL;
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (int64_t k = 0; status != CLEAVE_OK; k++) {
    (void)cleave_memory_fail_after(k);
    status = cleave_session_create(model, NULL, NULL, 0, &options, &session, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
  }
  cleave_session_destroy(session);
  cleave_model_release(model);
  unit_ok(cleave_registry_unload(NULL, "gemms", e));
}

/* ---- libraries that come and go ---- */

UNIT_TEST(a_graph_of_an_unloaded_library_fails_with_its_name_and_works_again_later) {
  unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
  cleave_model_t *model = library_case_model(STATEFUL_MODEL);
  unit_ok(cleave_registry_unload(NULL, "gemms", e));
  cleave_session_t *session = NULL;
  unit_fails_with(cleave_session_create(model, NULL, NULL, 0, NULL, &session, e), CLEAVE_ERROR_UNSUPPORTED,
                  "operator 'my.company.StatefulGemm' is of library 'gemms', which is not loaded any more");
  cleave_graph_t *copy = NULL;
  unit_ok(cleave_graph_copy(cleave_model_graph(model), &copy, e));
  unit_fails_with(cleave_graph_infer(copy, NULL, NULL, e), CLEAVE_ERROR_UNSUPPORTED, "not loaded any more");
  cleave_graph_destroy(copy);
  unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
  check_run(model, NULL, (float[]){14.0f, 24.0f}, 2);
  cleave_model_release(model);
}

UNIT_TEST(a_library_with_a_wrong_or_a_taken_operator_does_not_load) {
  const cleave_backend_handle_t *handle = NULL;
  for (int k = 0; k < 2; k++) { /* nothing of it stays that would be in the way */
    unit_fails(
        cleave_registry_load(NULL, CLEAVE_BINARY_DIR "/tests/accelerators/libbad_operator.so", NULL, e),
        CLEAVE_ERROR_BACKEND,
        "library 'bad_operator': operator 'bad.operator.Wrong': attributes: 'alpha:float': expected "
        "name:kind with one of the kinds i, f, s, is, fs, ss and t");
    unit_fails_with(cleave_registry_find(NULL, "bad_operator", &handle, e), CLEAVE_ERROR_UNSUPPORTED,
                    "is unknown");
    ck_assert_ptr_null(cleave_op_find("bad.operator", "Right"));
  }
  unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
  unit_fails(cleave_registry_load(NULL, GEMMS, "second", e), CLEAVE_ERROR_BACKEND,
             "library 'second': operator 'my.company.Gemm' exists already, of library 'gemms'");
  ck_assert_ptr_nonnull(cleave_op_find_full("my.company.Gemm"));
}

UNIT_TEST(a_thousand_rounds_of_loading_and_using_leave_nothing_behind) {
  static const float EXPECTED[2] = {14.0f, 24.0f};
  for (int k = 0; k < 1000; k++) {
    unit_ok(cleave_registry_load(NULL, GEMMS, NULL, e));
    if (k % 50 == 0) {
      cleave_model_t *model = library_case_model(STATEFUL_MODEL);
      check_run(model, NULL, EXPECTED, 2);
      cleave_model_release(model);
    }
    unit_ok(cleave_registry_unload(NULL, "gemms", e));
  }
  uint32_t left = 0;
  for (const cleave_op_t *op = cleave_custom_op_next(NULL); op != NULL; op = cleave_custom_op_next(op)) {
    left++;
  }
  ck_assert_uint_eq(left, 0);
}

UNIT_SUITE("custom operator")
