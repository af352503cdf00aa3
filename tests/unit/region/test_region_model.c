// SPDX-License-Identifier: Apache-2.0
// Regions of plans as text, models out of that text, the plans they came with, and a library that compiles
// from it.
#include <unistd.h>

#include "backend/region/region_json.h"
#include "rule_case.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "unit.h"

static const char MODEL[] =
    "local x = g.input('x', 'float32', { 2, 3 })\n"
    "local y = g.Relu(g.Add(x, g.weight({ 2, 3 }, { name = 'w' })), { name = 'act' })\n"
    "g.output('y', g.Softmax(y))";

static const char RULES[] =
    "return ruleset { name = 'r', backend = 'cpu',\n"
    "  fuse 'add_act' { doc = 'both', pattern = op { 'Add', as = 'sum' } >> op { 'Relu', as = 'act' } },\n"
    "  region 'island' { ops = { 'Add', 'Relu', 'Softmax' },\n"
    "    review = function(sub) return true, { kind = 'a \"b\"', n = -1, x = 0.1 } end } }";

static const float DATA[6] = {1, -2, 3, -4, 5, -6};

static char *region_text(const char *model, const char *rules) {
  rule_case_request_t request = {.model = model, .rules = {rules}};
  char *text = NULL;
  rule_case_t c = rule_case_create(&request);
  ck_assert_uint_eq(cleave_plan_region_count(c.plan), 1);
  ck_assert_str_eq(cleave_plan_region_name(c.plan, 0), "island_0");
  ck_assert_str_eq(cleave_plan_region_name(c.plan, 1), "");
  ck_assert_str_eq(cleave_plan_region_backend(c.plan, 1), "");
  unit_ok(cleave_plan_region_json(c.plan, 0, CLEAVE_REGION_CONSTANTS_INLINE, &text, e));
  char *none = NULL;
  unit_fails(cleave_plan_region_json(c.plan, 1, CLEAVE_REGION_CONSTANTS_INLINE, &none, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "region 1: the plan has 1");
  unit_fails_with(cleave_plan_region_json(c.plan, 0, CLEAVE_REGION_CONSTANTS_FILES, &none, e),
                  CLEAVE_ERROR_INVALID_ARGUMENT, "cannot keep constants in files");
  rule_case_deinit(&c);
  return text;
}

static cleave_model_t *load(const char *text) {
  cleave_model_t *model = NULL;
  unit_ok(cleave_model_load_memory(NULL, text, strlen(text), "r.json", &model, e));
  return model;
}

static void run(cleave_model_t *model, const cleave_plan_t *plan, float *values) {
  cleave_session_t *session = NULL;
  cleave_tensor_view_t output;
  cleave_tensor_view_t input = {
      .size = sizeof input, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = (int64_t[]){2, 3}, .data = DATA};
  unit_ok(cleave_session_create(model, plan, NULL, 0, NULL, &session, e));
  ck_assert_uint_eq(cleave_session_note_count(session), 0);
  ck_assert_str_eq(cleave_session_note(session, 0), "");
  unit_ok(cleave_session_set_input(session, 0, &input, e));
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_output(session, 0, &output, e));
  memcpy(values, output.data, 6 * sizeof *values);
  cleave_session_destroy(session);
}

UNIT_TEST(a_region_is_a_model_with_its_plan_and_writes_the_same_bytes) {
  char *text = region_text(MODEL, RULES);
  cleave_model_t *model = load(text);
  cleave_plan_t *plan = NULL;
  char *again = NULL;
  float values[6];
  float expected[6];
  ck_assert(cleave_model_is_region(model));
  unit_ok(cleave_model_plan_region(model, NULL, NULL, &plan, e));
  unit_ok(cleave_plan_check(plan, e));
  ck_assert_uint_eq(plan->fusion_count, 1);
  ck_assert_str_eq(plan->fusions[0].labels[1], "act");
  ck_assert_uint_eq(plan->regions[0].attribute_count, 3);
  unit_ok(cleave_plan_region_json(plan, 0, CLEAVE_REGION_CONSTANTS_INLINE, &again, e));
  ck_assert_str_eq(again, text);
  run(model, plan, values);
  run(model, NULL, expected);
  ck_assert_mem_eq(values, expected, sizeof values);
  cleave_text_free(again);
  cleave_plan_destroy(plan);
  unit_fails_with(cleave_model_plan_region(model, "npu", NULL, &plan, e), CLEAVE_ERROR_UNSUPPORTED, "'npu'");
  ck_assert_ptr_null(plan);
  cleave_plan_load_options_t options = {.size = sizeof options, .fallback = true};
  unit_ok(cleave_model_plan_region(model, "npu", &options, &plan, e));
  ck_assert_uint_eq(plan->region_count, 0);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  cleave_text_free(text);
}

UNIT_TEST(other_models_have_no_plan_of_their_own) {
  rule_case_request_t request = {.model = MODEL, .rules = {RULES}};
  rule_case_t c = rule_case_create(&request);
  cleave_plan_t *plan = NULL;
  ck_assert(!cleave_model_is_region(c.model));
  unit_fails(cleave_model_plan_region(c.model, NULL, NULL, &plan, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "the model was not loaded from a region: it has no plan of its own");
  rule_case_deinit(&c);
}

/* `text` with the first `from` replaced, and the hash that this makes. */
static char *changed(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  ck_assert_msg(at != NULL, "'%s' is not in %s", from, text);
  cleave_text_t result = {0};
  cleave_text_append(&result, text, (size_t)(at - text));
  cleave_text_add(&result, to);
  cleave_text_add(&result, at + strlen(from));
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_region_file_t *region = NULL;
  cleave_status_t status = cleave_region_json_read("r", result.data, result.length, NULL, &region, &error);
  cleave_region_file_destroy(region);
  const char *right = strstr(error.message, "its content is ");
  if (status != CLEAVE_OK && right != NULL) {
    memcpy(strstr(result.data, "\"hash\": \"") + 9, right + 15, 16);
  }
  return result.data;
}

static void refused(const char *from, const char *to, cleave_status_t status, const char *message) {
  char *text = region_text(MODEL, RULES);
  char *wrong = changed(text, from, to);
  cleave_model_t *model = NULL;
  unit_fails_with(cleave_model_load_memory(NULL, wrong, strlen(wrong), "r.json", &model, e), status, message);
  ck_assert_ptr_null(model);
  cleave_text_free(wrong);
  cleave_text_free(text);
}

UNIT_TEST(what_is_a_region_and_no_model_is_refused) {
  refused("\"Add_0\",\"opset\":14", "\"Add_0\",\"opset\":7", CLEAVE_ERROR_UNSUPPORTED,
          "r.json: nodes[0]: Add of operator set 7, this program has the one of 14");
  refused("\"op\":\"Add\"", "\"op\":\"Relu\"", CLEAVE_ERROR_FORMAT, "Relu");
  refused("\"shape\":[2,3],\"data\":[", "\"shape\":[2,4],\"data\":[1.0,2.0,", CLEAVE_ERROR_SHAPE, "Add");
  refused("\"inputs\":[0,1]", "\"inputs\":[0,null]", CLEAVE_ERROR_FORMAT, "left out");
}

UNIT_TEST(constants_that_were_left_out_are_drawn_and_bounded) {
  char *text = region_text(MODEL, RULES);
  char *data = strstr(text, "\"data\":[");
  char *end = strchr(data, ']');
  cleave_text_t without = {0};
  cleave_text_append(&without, text, (size_t)(data - text));
  cleave_text_format(&without, "\"data\":null%s", end + 1);
  cleave_model_t *model = load(without.data);
  float values[6];
  run(model, NULL, values);
  for (int k = 0; k < 6; k++) {
    ck_assert(values[k] > 0.0F && values[k] < 1.0F);
  }
  cleave_model_release(model);
  char *huge =
      changed(without.data, "\"shape\":[2,3],\"data\":null", "\"shape\":[2000000,3000],\"data\":null");
  unit_fails_with(cleave_model_load_memory(NULL, huge, strlen(huge), "r.json", &model, e), CLEAVE_ERROR_LIMIT,
                  "r.json: values[1]: constants that were left out, or are sparse, have more than");
  cleave_text_free(huge);
  cleave_text_deinit(&without);
  cleave_text_free(text);
}

UNIT_TEST(files_stay_in_their_folder_whatever_a_region_is_called) {
  char *text = region_text(MODEL, RULES);
  char *named = changed(text, "\"name\": \"island_0\"", "\"name\": \"../../x y\"");
  cleave_model_t *model = load(named);
  cleave_plan_t *plan = NULL;
  cleave_model_t *again = NULL;
  unit_ok(cleave_model_plan_region(model, NULL, NULL, &plan, e));
  const char *folder = CLEAVE_BINARY_DIR "/test_region_model";
  unit_ok(cleave_plan_save_regions(plan, folder, CLEAVE_REGION_CONSTANTS_FILES, e));
  const char *path = CLEAVE_BINARY_DIR "/test_region_model/_._.._x_y.0.json";
  ck_assert_int_eq(access(path, R_OK), 0);
  unit_ok(cleave_model_load(NULL, path, NULL, &again, e));
  cleave_model_release(again);
  (void)unlink(path);
  (void)rmdir(folder);
  unit_fails_with(cleave_plan_save_regions(plan, "/proc/no/such", CLEAVE_REGION_CONSTANTS_FILES, e),
                  CLEAVE_ERROR_IO, "/proc/no/such: cannot make this folder");
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  cleave_text_free(named);
  cleave_text_free(text);
}

UNIT_TEST(a_library_compiles_from_text) {
  unit_ok(cleave_backend_load(NULL, CLEAVE_BINARY_DIR "/tests/accelerators/libjson.so", NULL, e));
  rule_case_request_t request = {
      .model = "local x = g.input('x', 'float32', { 2, 3 })\ng.output('y', g.Relu(x))",
      .rules = {"return ruleset { name = 'r', backend = 'json', region 'island' { ops = { 'Relu' } } }"}};
  rule_case_t c = rule_case_create(&request);
  float values[6];
  run(c.model, c.plan, values);
  ck_assert_float_eq(values[0], 1);
  ck_assert_float_eq(values[1], 0);
  ck_assert_float_eq(values[4], 5);
  rule_case_deinit(&c);
  unit_ok(cleave_backend_unload(NULL, "json", e));
}

UNIT_TEST(backends_describe_themselves) {
  cleave_backend_info_t info = {.size = sizeof info};
  unit_ok(cleave_backend_load(NULL, CLEAVE_BINARY_DIR "/tests/accelerators/libjson.so", "mine", e));
  bool found = false;
  for (uint32_t k = 0; k < cleave_backend_count(NULL); k++) {
    unit_ok(cleave_backend_describe(NULL, k, &info, e));
    if (strcmp(info.name, "mine") == 0) {
      found = true;
      ck_assert(info.is_ready);
      ck_assert_str_eq(info.version, "1");
      ck_assert_str_eq(info.description, "a test");
      ck_assert_ptr_nonnull(strstr(info.path, "libjson.so"));
      ck_assert_uint_eq(info.device_count, 0);
    }
  }
  ck_assert(found);
  unit_fails_with(cleave_backend_describe(NULL, 9999, &info, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "backend 9999: there are");
  unit_ok(cleave_backend_unload(NULL, "mine", e));
  ck_assert_str_eq(cleave_status_text(CLEAVE_ERROR_OUT_OF_MEMORY), "out of memory");
  ck_assert_str_eq(cleave_status_text((cleave_status_t)99), "unknown status");
}

UNIT_SUITE("region_model")
