// SPDX-License-Identifier: Apache-2.0
// Saved plans through the embedding API: replayed runs give the same numbers, and what is refused says why.

#include "runtime/model/model.h"
#include "session_case.h"
#include "unit.h"

static const char rules[] =
    "return ruleset { name = 'mine', backend = 'cpu',\n"
    "  fuse 'f' { doc = 'd', pattern = op { 'MatMul' } >> op { 'Add' } },\n"
    "  region 'island' { doc = 'd', ops = { 'MatMul', 'Add', 'Tanh' } },\n"
    "}\n";

static const int64_t square[2] = {2, 2};
static const float numbers[4] = {1, 2, 3, 4};

/* y = Tanh(x * w + w); x is [2, 2], or open. */
static cleave_model_t *make_model(bool is_open) {
  session_case_t c = session_case_create();
  cleave_model_t *model = NULL;
  cleave_dim_t dims[2] = {2, 2};
  if (is_open) {
    dims[0] = session_case_symbol(&c, "N");
  }
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, dims);
  cleave_value_t w = session_case_floats(&c, "w", 2, square, numbers);
  cleave_value_t product = session_case_node(&c, "MatMul", "product", x, w, CLEAVE_VALUE_NONE);
  cleave_value_t sum = session_case_node(&c, "Add", "sum", product, w, CLEAVE_VALUE_NONE);
  session_case_output(&c, session_case_node(&c, "Tanh", "y", sum, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  unit_ok(cleave_model_create_take(c.graph, &model, e));
  return model;
}

static cleave_plan_t *partition(cleave_model_t *model) {
  cleave_rule_source_t source = {.path = "mine.lua", .text = rules, .length = sizeof rules - 1};
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_model_partition(
      model,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      &plan, e));
  return plan;
}

static char *json_of(const cleave_plan_t *plan) {
  char *text = NULL;
  unit_ok(cleave_plan_format(plan, CLEAVE_PLAN_JSON, &text, e));
  return text;
}

static void run(cleave_model_t *model, const cleave_plan_t *plan, float *out) {
  cleave_tensor_view_t input = {
      .size = sizeof input, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = square, .data = numbers};
  const cleave_tensor_view_t *inputs[1] = {&input};
  cleave_session_options_t options = {.size = sizeof options, .strict = true};
  cleave_session_t *session = NULL;
  cleave_tensor_view_t output;
  unit_ok(cleave_session_create(model, plan, inputs, 1, &options, &session, e));
  unit_ok(cleave_session_set_input(session, 0, &input, e));
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_output(session, 0, &output, e));
  memcpy(out, output.data, 4 * sizeof *out);
  cleave_session_destroy(session);
}

UNIT_TEST(a_replayed_plan_is_the_plan) {
  for (int open = 0; open < 2; open++) {
    cleave_model_t *model = make_model(open == 1);
    cleave_plan_t *plan = partition(model);
    cleave_plan_t *loaded = NULL;
    char *text = json_of(plan);
    float numbers_before[4];
    float numbers_after[4];
    unit_ok(cleave_plan_load(
        model, "p.json",
        &(cleave_plan_load_options_t){
            .size = sizeof(cleave_plan_load_options_t), .text = text, .length = strlen(text)},
        &loaded, e));
    char *again = json_of(loaded);
    ck_assert_str_eq(again, text);
    run(model, plan, numbers_before);
    run(model, loaded, numbers_after);
    ck_assert_mem_eq(numbers_before, numbers_after, sizeof numbers_before);
    cleave_text_free(again);
    cleave_text_free(text);
    cleave_plan_destroy(loaded);
    cleave_plan_destroy(plan);
    cleave_model_release(model);
  }
}

UNIT_TEST(files_are_read_and_named) {
  char path[512];
  cleave_model_t *model = make_model(false);
  cleave_plan_t *plan = partition(model);
  cleave_plan_t *loaded = NULL;
  (void)snprintf(path, sizeof path, "%s/test_plan_load.json", CLEAVE_BINARY_DIR);
  unit_ok(cleave_plan_save(plan, path, 0, e));
  unit_ok(cleave_plan_load(model, path, NULL, &loaded, e));
  cleave_plan_destroy(loaded);
  cleave_model_t *open_model = make_model(true);
  unit_fails_with(
      cleave_plan_load(open_model, path, NULL, &loaded, e), CLEAVE_ERROR_MISMATCH,
      "test_plan_load.json: the plan is of another model: input 'x' is float32[N, 2], the plan was "
      "made for float32[2, 2]");
  cleave_model_release(open_model);
  (void)remove(path);
  unit_fails_with(cleave_plan_load(model, path, NULL, &loaded, e), CLEAVE_ERROR_IO, "test_plan_load.json");
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

/* The text with `from`, which is there, replaced everywhere. Not inlined: gcc 12 then sees a dangling pointer
 * that is none. */
__attribute__((noinline)) static char *replace(const char *whole, const char *from, const char *to) {
  cleave_text_t result = {0};
  const char *rest = whole;
  const char *at = strstr(rest, from);
  ck_assert_ptr_nonnull(at);
  while (at != NULL) {
    cleave_text_append(&result, rest, (size_t)(at - rest));
    cleave_text_add(&result, to);
    rest = at + strlen(from);
    at = strstr(rest, from);
  }
  cleave_text_add(&result, rest);
  char *made = cleave_copy_text(cleave_text_get(&result), result.length);
  cleave_text_deinit(&result);
  return made;
}

UNIT_TEST(a_missing_backend_is_an_error_or_a_fallback) {
  cleave_model_t *model = make_model(false);
  cleave_plan_t *plan = partition(model);
  cleave_plan_t *loaded = NULL;
  float before[4];
  float after[4];
  char *text = json_of(plan);
  char *other = replace(text, "\"backend\": \"cpu\"", "\"backend\": \"npu\"");
  unit_fails_with(cleave_plan_load(
                      model, "p.json",
                      &(cleave_plan_load_options_t){
                          .size = sizeof(cleave_plan_load_options_t), .text = other, .length = strlen(other)},
                      &loaded, e),
                  CLEAVE_ERROR_UNSUPPORTED, "p.json: region 'island_0': backend 'npu' is unknown");
  ck_assert_ptr_null(loaded);
  cleave_plan_load_options_t options = {.size = sizeof options, .fallback = true};
  unit_ok(cleave_plan_load(model, "p.json",
                           &(cleave_plan_load_options_t){.size = sizeof(cleave_plan_load_options_t),
                                                         .fallback = true,
                                                         .text = other,
                                                         .length = strlen(other)},
                           &loaded, e));
  ck_assert_uint_eq(loaded->region_count, 0);
  ck_assert_uint_eq(loaded->step_count, 3);
  ck_assert_uint_eq(loaded->note_count, 1);
  ck_assert_ptr_nonnull(strstr(loaded->notes[0].reason, "backend 'npu' is unknown"));
  unit_ok(cleave_plan_check(loaded, e));
  run(model, plan, before);
  run(model, loaded, after);
  ck_assert_mem_eq(before, after, sizeof before);
  cleave_text_free(other);
  cleave_text_free(text);
  cleave_plan_destroy(loaded);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

#ifdef CLEAVE_TEST_ONEDNN
UNIT_TEST(a_backend_that_refuses_is_named_with_the_fusion) {
  session_case_t c = session_case_create();
  cleave_model_t *model = NULL;
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, square);
  session_case_output(&c, session_case_node(&c, "Hardmax", "s", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  unit_ok(cleave_model_create_take(c.graph, &model, e));
  static const char hardmax[] =
      "return ruleset { name = 'n', backend = 'cpu', region 'island' { doc = 'd', ops = { 'Hardmax' } } }";
  cleave_rule_source_t source = {.path = "s.lua", .text = hardmax, .length = sizeof hardmax - 1};
  cleave_plan_t *plan = NULL;
  cleave_plan_t *loaded = NULL;
  unit_ok(cleave_model_partition(
      model,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      &plan, e));
  char *text = json_of(plan);
  char *other = replace(text, "\"backend\": \"cpu\"", "\"backend\": \"onednn\"");
  unit_fails_with(cleave_plan_load(
                      model, "p.json",
                      &(cleave_plan_load_options_t){
                          .size = sizeof(cleave_plan_load_options_t), .text = other, .length = strlen(other)},
                      &loaded, e),
                  CLEAVE_ERROR_UNSUPPORTED,
                  "p.json: region 'island_0': backend 'onednn' refuses node Hardmax at 's': ");
  cleave_text_free(other);
  cleave_text_free(text);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}
#endif

/* ---- allocations that fail ---- */

static cleave_status_t replay(cleave_model_t *model, const char *text, cleave_error_t *error) {
  cleave_plan_t *plan = NULL;
  char *again = NULL;
  cleave_status_t status =
      cleave_plan_load(model, "p.json",
                       &(cleave_plan_load_options_t){
                           .size = sizeof(cleave_plan_load_options_t), .text = text, .length = strlen(text)},
                       &plan, error);
  if (status == CLEAVE_OK) {
    status = cleave_plan_format(plan, CLEAVE_PLAN_JSON, &again, error);
  }
  cleave_text_free(again);
  cleave_plan_destroy(plan);
  return status;
}

UNIT_TEST(every_allocation_may_fail) {
  cleave_model_t *model = make_model(false);
  cleave_plan_t *plan = partition(model);
  char *text = json_of(plan);
  int64_t count = 0;
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (; status != CLEAVE_OK; count++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(count);
    status = replay(model, text, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY, "%d: %s", (int)status,
                  error.message);
    ck_assert_int_lt(count, 10000);
  }
  ck_assert_int_gt(count, 10);
  cleave_text_free(text);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

UNIT_SUITE("plan_load")
