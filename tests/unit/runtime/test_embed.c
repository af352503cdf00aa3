// SPDX-License-Identifier: Apache-2.0
// The embedding API, as a program of its own would use it: cleave/cleave.h alone, but for making the model
// file and for making allocations fail.
#include "formats/onnx/onnx.h"
#include "library_case.h"
#include "session_case.h"
#include "unit.h"

#define NONE CLEAVE_VALUE_NONE

static const char rules_text[] =
    "return ruleset {\n"
    "  name = 'mine', backend = 'cpu',\n"
    "  options = { with_tanh = option.boolean(false, 'take Tanh too') },\n"
    "  fuse 'product' { doc = 'a product and what follows', pattern = op { 'MatMul' } >> op { 'Add' } },\n"
    "  region 'island' { doc = 'both', ops = { 'MatMul', 'Add' } },\n"
    "}\n";

/* x[N, 3] * w + b -> Tanh, as an ONNX file in the build folder. */
static const char *model_path(void) {
  static char path[512];
  static const float numbers[6] = {1, 2, 3, 4, 5, 6};
  session_case_t c = session_case_create();
  cleave_dim_t dims[2] = {session_case_symbol(&c, "N"), 3};
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, dims);
  cleave_value_t w = session_case_floats(&c, "w", 2, (const int64_t[]){3, 2}, numbers);
  cleave_value_t b = session_case_floats(&c, "b", 1, (const int64_t[]){2}, numbers);
  cleave_value_t product = session_case_node(&c, "MatMul", "product", x, w, NONE);
  cleave_value_t sum = session_case_node(&c, "Add", "sum", product, b, NONE);
  session_case_output(&c, session_case_node(&c, "Tanh", "y", sum, NONE, NONE));
  session_case_output(&c, sum);
  session_case_infer(&c);
  snprintf(path, sizeof path, "%s/test_embed.onnx", CLEAVE_BINARY_DIR);
  unit_ok(cleave_onnx_write(path, c.graph, NULL, e));
  session_case_deinit(&c);
  return path;
}

static const int64_t two_by_three[2] = {2, 3};
static const float ones[6] = {1, 1, 1, 1, 1, 1};

static cleave_tensor_view_t input_view(void) {
  return (cleave_tensor_view_t){.size = sizeof(cleave_tensor_view_t),
                                .dtype = CLEAVE_DTYPE_F32,
                                .rank = 2,
                                .dims = two_by_three,
                                .data = ones};
}

/* Everything from file to numbers; frees whatever it made. */
static cleave_status_t whole_way(const char *path, float *out_sum, cleave_error_t *error) {
  cleave_model_t *model = NULL;
  cleave_model_t *bound = NULL;
  cleave_rule_files_t *files = NULL;
  cleave_plan_t *plan = NULL;
  cleave_session_t *session = NULL;
  char *text = NULL;
  cleave_tensor_view_t view = input_view();
  const cleave_tensor_view_t *views[1] = {&view};
  cleave_rule_source_t source = {.path = "mine.lua", .text = rules_text, .length = sizeof rules_text - 1};
  cleave_tensor_view_t output;
  cleave_status_t status = cleave_model_load(NULL, path, NULL, &model, error);
  if (status == CLEAVE_OK) {
    status = cleave_model_bind(model, views, 1, &bound, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_rule_files_load(
        NULL,
        &(cleave_partition_request_t){
            .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
        &files, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_rule_files_partition(files, bound, &plan, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_plan_format(plan, CLEAVE_PLAN_JSON, &text, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_session_create(bound, plan, views, 1, NULL, &session, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_session_set_input(session, 0, &view, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_session_run(session, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_session_output(session, 1, &output, error);
  }
  if (status == CLEAVE_OK) {
    *out_sum = ((const float *)output.data)[0];
  }
  cleave_text_free(text);
  cleave_session_destroy(session);
  cleave_rule_files_destroy(files);
  cleave_plan_destroy(plan);
  cleave_model_release(bound);
  cleave_model_release(model);
  return status;
}

UNIT_TEST(a_model_runs_from_file_to_numbers) {
  float sum = 0;
  unit_ok(whole_way(model_path(), &sum, e));
  ck_assert_float_eq(sum, 1 + 3 + 5 + 1);
}

UNIT_TEST(a_model_tells_its_inputs_and_outputs) {
  cleave_model_t *model = NULL;
  cleave_port_t port = {.size = sizeof port};
  unit_ok(cleave_model_load(NULL, model_path(), NULL, &model, e));
  ck_assert_uint_eq(cleave_model_input_count(model), 1);
  ck_assert_uint_eq(cleave_model_output_count(model), 2);
  unit_ok(cleave_model_input(model, 0, &port, e));
  ck_assert_str_eq(port.name, "x");
  ck_assert_int_eq(port.tensor.dtype, CLEAVE_DTYPE_F32);
  ck_assert_int_eq(port.tensor.rank, 2);
  ck_assert_int_lt(port.tensor.dims[0], 0);
  ck_assert_int_eq(port.tensor.dims[1], 3);
  ck_assert_uint_eq(cleave_model_find_input(model, "x"), 0);
  ck_assert_uint_eq(cleave_model_find_input(model, "nope"), CLEAVE_INDEX_NONE);
  ck_assert_uint_eq(cleave_model_find_output(model, "sum"), 1);
  unit_fails(cleave_model_input(model, 1, &port, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "input 1: the model has 1 input");
  unit_fails(cleave_model_output(model, 2, &port, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "output 2: the model has 2 outputs");
  cleave_model_release(cleave_model_retain(model));
  cleave_model_release(model);
}

UNIT_TEST(a_bound_model_knows_all_sizes_and_outlives_the_one_it_came_from) {
  cleave_model_t *model = NULL;
  cleave_model_t *bound = NULL;
  cleave_port_t port = {.size = sizeof port};
  cleave_tensor_view_t view = input_view();
  const cleave_tensor_view_t *views[1] = {&view};
  unit_ok(cleave_model_load(NULL, model_path(), NULL, &model, e));
  unit_ok(cleave_model_bind(model, views, 1, &bound, e));
  cleave_model_release(model);
  unit_ok(cleave_model_output(bound, 0, &port, e));
  ck_assert_int_eq(port.tensor.dims[0], 2);
  ck_assert_int_eq(port.tensor.dims[1], 2);
  ck_assert_str_eq(port.name, "y");
  cleave_model_release(bound);
}

UNIT_TEST(rules_are_files_or_texts_and_settings_must_be_known) {
  cleave_model_t *model = NULL;
  cleave_plan_t *plan = NULL;
  char *text = NULL;
  unit_ok(cleave_model_load(NULL, model_path(), NULL, &model, e));
  cleave_rule_source_t source = {.path = "mine.lua", .text = rules_text, .length = sizeof rules_text - 1};
  cleave_setting_t setting = {.name = "with_tanh", .value = "true"};
  unit_ok(cleave_model_partition(model,
                                 &(cleave_partition_request_t){.size = sizeof(cleave_partition_request_t),
                                                               .sources = &source,
                                                               .source_count = 1,
                                                               .settings = &setting,
                                                               .setting_count = 1},
                                 &plan, e));
  unit_ok(cleave_plan_format(plan, CLEAVE_PLAN_TEXT, &text, e));
  ck_assert_ptr_nonnull(strstr(text, "fuse 'product' (mine.lua:4)"));
  ck_assert_ptr_nonnull(strstr(text, "1 region, 1 fusion, 1 node on cpu"));
  cleave_text_free(text);
  cleave_plan_destroy(plan);
  setting.name = "with_tan";
  unit_fails(cleave_model_partition(model,
                                    &(cleave_partition_request_t){.size = sizeof(cleave_partition_request_t),
                                                                  .sources = &source,
                                                                  .source_count = 1,
                                                                  .settings = &setting,
                                                                  .setting_count = 1},
                                    &plan, e),
             CLEAVE_ERROR_RULE,
             "setting 'with_tan': neither a rule file nor a model script has an option of this name (did you "
             "mean 'with_tanh'?); rule files have: with_tanh (take Tanh too)");
  cleave_rule_source_t missing = {.path = "/nowhere/rules.lua"};
  unit_fails_with(cleave_model_partition(
                      model,
                      &(cleave_partition_request_t){
                          .size = sizeof(cleave_partition_request_t), .sources = &missing, .source_count = 1},
                      &plan, e),
                  CLEAVE_ERROR_IO, "/nowhere/rules.lua");
  cleave_rule_source_t empty = {0};
  unit_fails(cleave_model_partition(
                 model,
                 &(cleave_partition_request_t){
                     .size = sizeof(cleave_partition_request_t), .sources = &empty, .source_count = 1},
                 &plan, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "a rule source has neither path nor text");
  cleave_rule_source_t wrong = {.path = "bad.lua", .text = "return 1 +", .length = 10};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(cleave_model_partition(
                       model,
                       &(cleave_partition_request_t){
                           .size = sizeof(cleave_partition_request_t), .sources = &wrong, .source_count = 1},
                       &plan, &error),
                   CLEAVE_ERROR_RULE);
  ck_assert_str_eq(error.file, "bad.lua");
  ck_assert_int_eq(error.line, 1);
  unit_fails_with(
      cleave_model_partition(
          model, &(cleave_partition_request_t){.size = sizeof(cleave_partition_request_t), .backend = "npu"},
          &plan, e),
      CLEAVE_ERROR_UNSUPPORTED, "backend 'npu' is unknown");
  ck_assert_ptr_null(plan);
  cleave_model_release(model);
}

UNIT_TEST(plans_are_saved_by_extension) {
  cleave_model_t *model = NULL;
  cleave_model_t *again = NULL;
  cleave_plan_t *plan = NULL;
  char path[512];
  cleave_rule_source_t source = {.path = "mine.lua", .text = rules_text, .length = sizeof rules_text - 1};
  unit_ok(cleave_model_load(NULL, model_path(), NULL, &model, e));
  unit_ok(cleave_model_partition(
      model,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      &plan, e));
  static const char *const extensions[] = {"txt", "json", "dot", "onnx"};
  for (int k = 0; k < 4; k++) {
    snprintf(path, sizeof path, "%s/test_embed_plan.%s", CLEAVE_BINARY_DIR, extensions[k]);
    unit_ok(cleave_plan_save(plan, path, 17, e));
  }
  /* The file with functions is the model again. */
  unit_ok(cleave_model_load(NULL, path, NULL, &again, e));
  ck_assert_uint_eq(cleave_model_find_output(again, "sum"), 1);
  unit_fails(cleave_plan_save(plan, "plan.pdf", 0, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "plan.pdf: expected a name that ends in .txt, .json, .dot or .onnx");
  cleave_model_release(again);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

UNIT_TEST(a_session_without_a_plan_runs_on_cpu_and_keeps_the_model) {
  cleave_model_t *model = NULL;
  cleave_session_t *session = NULL;
  cleave_tensor_view_t view = input_view();
  cleave_tensor_view_t output;
  const cleave_tensor_view_t *views[1] = {&view};
  cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  unit_ok(cleave_model_load(NULL, model_path(), NULL, &model, e));
  unit_ok(cleave_session_create(model, NULL, views, 1, &options, &session, e));
  cleave_model_release(model);
  unit_ok(cleave_session_set_input(session, 0, &view, e));
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_output(session, 1, &output, e));
  ck_assert_float_eq(((const float *)output.data)[3], 2 + 4 + 6 + 2);
  cleave_session_destroy(session);
  options.threads = -1;
  unit_ok(cleave_model_load(NULL, model_path(), NULL, &model, e));
  unit_fails_with(cleave_session_create(model, NULL, views, 1, &options, &session, e),
                  CLEAVE_ERROR_INVALID_ARGUMENT, "-1 threads");
  cleave_model_release(model);
}

UNIT_TEST(files_that_are_no_models_are_refused_with_one_line) {
  cleave_model_t *model = NULL;
  unit_fails(cleave_model_load(NULL, "model.pt", NULL, &model, e), CLEAVE_ERROR_UNSUPPORTED,
             "model.pt: not a model by its name: expected .onnx, .lua, or .json (a region)");
  unit_fails_with(cleave_model_load(NULL, "/nowhere/model.onnx", NULL, &model, e), CLEAVE_ERROR_IO,
                  "/nowhere/model.onnx");
  cleave_setting_t setting = {.name = "a", .value = "1"};
  unit_fails_with(
      cleave_model_load(
          NULL, model_path(),
          &(cleave_model_load_options_t){
              .size = sizeof(cleave_model_load_options_t), .settings = &setting, .setting_count = 1},
          &model, e),
      CLEAVE_ERROR_INVALID_ARGUMENT, "setting 'a': the model has no option of this name");
  ck_assert_ptr_null(model);
}

UNIT_TEST(backends_are_listed) {
  bool has_cpu = false;
  for (uint32_t k = 0; k < cleave_backend_count(NULL); k++) {
    has_cpu = has_cpu || strcmp(cleave_backend_name(NULL, k), "cpu") == 0;
  }
  ck_assert(has_cpu);
  ck_assert_int_ne(cleave_version()[0], '\0');
}

/* Every allocation fails once, and all after it; of the many of the rule language a sample. */
UNIT_TEST(the_whole_way_survives_failing_allocations) {
  const char *path = model_path();
  float sum = 0;
  (void)cleave_memory_fail_after(-1);
  unit_ok(whole_way(path, &sum, e));
  int64_t total = cleave_memory_fail_after(-1);
  ck_assert_int_gt(total, 100);
  int64_t step = 1 + total / 1500;
  for (int64_t k = 0; k < total; k += step) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(k);
    cleave_status_t status = whole_way(path, &sum, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_ERROR_OUT_OF_MEMORY || status == CLEAVE_OK,
                  "allocation %d of %d: status %d: %s", (int)k, (int)total, (int)status, error.message);
    ck_assert_msg(status == CLEAVE_OK || error.message[0] != '\0', "allocation %d: no message", (int)k);
  }
  unit_ok(whole_way(path, &sum, e));
  ck_assert_float_eq(sum, 10.0f);
}

/* ---- rule files that are loaded once ---- */

static cleave_status_t load_rules(const char *with_tanh, cleave_rule_files_t **out_files,
                                  cleave_error_t *error) {
  cleave_rule_source_t source = {.path = "mine.lua", .text = rules_text, .length = sizeof rules_text - 1};
  cleave_setting_t setting = {.name = "with_tanh", .value = with_tanh};
  return cleave_rule_files_load(NULL,
                                &(cleave_partition_request_t){.size = sizeof(cleave_partition_request_t),
                                                              .sources = &source,
                                                              .source_count = 1,
                                                              .settings = &setting,
                                                              .setting_count = 1},
                                out_files, error);
}

UNIT_TEST(rule_files_that_are_loaded_once_serve_many_models) {
  cleave_rule_files_t *files = NULL;
  cleave_model_t *model = NULL;
  cleave_rule_source_t source = {.path = "mine.lua", .text = rules_text, .length = sizeof rules_text - 1};
  cleave_setting_t setting = {.name = "with_tanh", .value = "true"};
  unit_ok(load_rules("true", &files, e));
  unit_ok(cleave_model_load(NULL, model_path(), NULL, &model, e));
  for (int round = 0; round < 3; round++) {
    cleave_tensor_view_t view = input_view();
    const cleave_tensor_view_t *views[1] = {&view};
    cleave_model_t *bound = NULL;
    cleave_plan_t *plans[2] = {NULL, NULL};
    char *texts[2] = {NULL, NULL};
    unit_ok(cleave_model_bind(model, views, 1, &bound, e));
    unit_ok(cleave_rule_files_partition(files, bound, &plans[0], e));
    unit_ok(cleave_model_partition(bound,
                                   &(cleave_partition_request_t){.size = sizeof(cleave_partition_request_t),
                                                                 .sources = &source,
                                                                 .source_count = 1,
                                                                 .settings = &setting,
                                                                 .setting_count = 1},
                                   &plans[1], e));
    for (int k = 0; k < 2; k++) {
      unit_ok(cleave_plan_format(plans[k], CLEAVE_PLAN_JSON, &texts[k], e));
      cleave_plan_destroy(plans[k]);
    }
    ck_assert_str_eq(texts[0], texts[1]);
    ck_assert_ptr_nonnull(strstr(texts[0], "with_tanh"));
    cleave_text_free(texts[0]);
    cleave_text_free(texts[1]);
    cleave_model_release(bound);
  }
  cleave_model_release(model);
  cleave_rule_files_destroy(files);
  cleave_rule_files_destroy(NULL);
}

UNIT_TEST(a_plan_outlives_the_rule_files_that_made_it) {
  cleave_rule_files_t *files = NULL;
  cleave_model_t *model = NULL;
  cleave_plan_t *plan = NULL;
  char *text = NULL;
  unit_ok(cleave_model_load(NULL, model_path(), NULL, &model, e));
  unit_ok(load_rules("false", &files, e));
  unit_ok(cleave_rule_files_partition(files, model, &plan, e));
  cleave_rule_files_destroy(files);
  unit_ok(cleave_plan_format(plan, CLEAVE_PLAN_TEXT, &text, e));
  ck_assert_ptr_nonnull(strstr(text, "island"));
  cleave_text_free(text);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

UNIT_TEST(rule_files_that_are_wrong_are_refused_without_a_model) {
  static const char wrong[] =
      "return ruleset {\n  name = 'x', backend = 'cpu',\n  region 'r' { ops = { 'Convv' } },\n}\n";
  cleave_rule_files_t *files = NULL;
  cleave_rule_source_t source = {.path = "wrong.lua", .text = wrong, .length = sizeof wrong - 1};
  unit_fails_with(cleave_rule_files_load(
                      NULL,
                      &(cleave_partition_request_t){
                          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
                      &files, e),
                  CLEAVE_ERROR_RULE, "wrong.lua:3: region 'r': operator 'Convv' is unknown");
  ck_assert_ptr_null(files);
  unit_fails_with(load_rules("perhaps", &files, e), CLEAVE_ERROR_RULE, "with_tanh");
  source.text = rules_text;
  source.length = sizeof rules_text - 1;
  unit_fails_with(
      cleave_rule_files_load(NULL,
                             &(cleave_partition_request_t){.size = sizeof(cleave_partition_request_t),
                                                           .sources = &source,
                                                           .source_count = 1,
                                                           .backend = "nobody"},
                             &files, e),
      CLEAVE_ERROR_UNSUPPORTED, "backend 'nobody' is unknown");
  ck_assert_ptr_null(files);
}

/* A model of so many constants, all of which change. */
static void change_all(int size) {
  static const float nine = 9.0F;
  char text[256];
  (void)snprintf(text, sizeof text,
                 "local y = g.input('x', 'float32', {})\n"
                 "for k = 1, %d do y = y + g.constant(k, 'float32', 'c' .. k) end\n"
                 "g.output('y', y)",
                 size);
  cleave_model_t *model = library_case_model(text);
  cleave_model_t *changed = NULL;
  const char **names = calloc((size_t)size, sizeof *names);
  const cleave_tensor_view_t **views = calloc((size_t)size, sizeof *views);
  cleave_tensor_view_t view = {.size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .data = &nine};
  ck_assert_int_eq((int)cleave_model_constant_count(model), size);
  for (int k = 0; k < size; k++) {
    cleave_port_t port = {.size = sizeof port};
    unit_ok(cleave_model_constant(model, (uint32_t)k, &port, e));
    names[k] = port.name;
    views[k] = &view;
  }
  unit_ok(cleave_model_set_constants(model, names, views, (size_t)size, &changed, e));
  cleave_port_t port = {.size = sizeof port};
  unit_ok(cleave_model_constant(changed, (uint32_t)size - 1, &port, e));
  ck_assert_str_eq(port.name, names[size - 1]);
  ck_assert_float_eq(*(const float *)port.tensor.data, nine);
  cleave_model_release(changed);
  cleave_model_release(model);
  free(names);
  free(views);
}

UNIT_TEST(work_grows_linearly_with_the_constants) {
  unit_is_linear(change_all, 2000);
}

UNIT_SUITE("embed")
