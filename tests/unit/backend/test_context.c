// SPDX-License-Identifier: Apache-2.0
// Contexts: what one has and another has not, who keeps one alive, and that everything goes with the last who
// does.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "library_case.h"
#include "ops/custom.h"
#include "unit.h"

#define FOLDER CLEAVE_BINARY_DIR "/tests/accelerators"
#define LIBRARY(name) FOLDER "/lib" name ".so"
#define SHIPPED(name) CLEAVE_BINARY_DIR "/accelerators/lib" name ".so"

#define RELU_MODEL "g.output('y', g.Relu(g.input('x', 'float32', { 2, 3 })))"
#define RELU_RULES(backend) \
  "return ruleset { name = 'r', backend = '" backend "', region 'all' { ops = { 'Relu' } } }"
#define GEMM_MODEL                                             \
  "local x = g.input('x', 'float32', { 2, 3 })\n"              \
  "local w = g.constant({ { 1 }, { 2 }, { 3 } }, 'float32')\n" \
  "g.output('y', g['my.company.Gemm'](x, w))"

static const int64_t SHAPE[2] = {2, 3};
static const float DATA[6] = {-1.0f, 2.0f, -3.0f, 4.0f, 0.0f, 0.5f};
static const float RELU[6] = {0.0f, 2.0f, 0.0f, 4.0f, 0.0f, 0.5f};

static cleave_context_t *make_context(void) {
  cleave_context_options_t options = {.size = sizeof options, .backend_folders = ""};
  cleave_context_t *context = NULL;
  unit_ok(cleave_context_create(&options, &context, e));
  return context;
}

static cleave_status_t partition(cleave_model_t *model, const char *rules, cleave_plan_t **out_plan,
                                 cleave_error_t *error) {
  cleave_rule_source_t source = {.path = "r.lua", .text = rules, .length = strlen(rules)};
  return cleave_model_partition(
      model,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      out_plan, error);
}

/* A model, its plan on the library "good", and its session. */
typedef struct running {
  cleave_model_t *model;
  cleave_plan_t *plan;
  cleave_session_t *session;
} running_t;

static running_t run_good(cleave_context_t *context) {
  running_t running = {.model = library_case_model_in(context, RELU_MODEL)};
  unit_ok(partition(running.model, RELU_RULES("good"), &running.plan, e));
  ck_assert_str_eq(cleave_plan_region_backend(running.plan, 0), "good");
  running.session = library_case_session(running.model, running.plan, 2, SHAPE, DATA, NULL);
  library_case_run(running.session, 0, RELU, 6);
  return running;
}

static void end(running_t *running) {
  cleave_session_destroy(running->session);
  cleave_plan_destroy(running->plan);
  cleave_model_release(running->model);
}

static bool is_open(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (handle != NULL) {
    ck_assert_int_eq(dlclose(handle), 0);
  }
  return handle != NULL;
}

/* ---- what is whose ---- */

UNIT_TEST(a_library_is_known_in_the_context_that_loaded_it_and_nowhere_else) {
  cleave_context_t *context = make_context();
  cleave_context_t *other = make_context();
  unit_ok(cleave_backend_load(context, LIBRARY("good"), NULL, e));
  running_t running = run_good(context);
  cleave_plan_t *plan = NULL;
  cleave_context_t *const strangers[] = {NULL, other};
  for (size_t k = 0; k < 2; k++) {
    cleave_model_t *model = library_case_model_in(strangers[k], RELU_MODEL);
    unit_fails_with(partition(model, RELU_RULES("good"), &plan, e), CLEAVE_ERROR_UNSUPPORTED,
                    "backend 'good' is unknown");
    cleave_model_release(model);
  }
  ck_assert_uint_eq(cleave_backend_count(context), cleave_backend_count(other) + 1);
  ck_assert_str_eq(cleave_backend_name(context, cleave_backend_count(other)), "good");
  end(&running);
  cleave_context_release(context);
  cleave_context_release(other);
}

UNIT_TEST(two_contexts_call_different_libraries_by_the_same_name) {
  cleave_context_t *first = make_context();
  cleave_context_t *second = make_context();
  unit_ok(cleave_backend_load(first, LIBRARY("good"), "mine", e));
  unit_ok(cleave_backend_load(second, SHIPPED("template"), "mine", e));
  for (uint32_t k = 0; k < 2; k++) {
    cleave_context_t *context = k == 0 ? first : second;
    cleave_backend_info_t info = {.size = sizeof info};
    unit_ok(cleave_backend_describe(context, cleave_backend_count(context) - 1, &info, e));
    ck_assert_str_eq(info.name, "mine");
    ck_assert_ptr_nonnull(strstr(info.path, k == 0 ? "libgood.so" : "libtemplate.so"));
    cleave_model_t *model = library_case_model_in(context, RELU_MODEL);
    cleave_plan_t *plan = NULL;
    unit_ok(partition(model, RELU_RULES("mine"), &plan, e));
    cleave_session_t *session = library_case_session(model, plan, 2, SHAPE, DATA, NULL);
    library_case_run(session, 0, RELU, 6);
    cleave_session_destroy(session);
    cleave_plan_destroy(plan);
    cleave_model_release(model);
  }
  cleave_context_release(first);
  cleave_context_release(second);
}

static void ask(cleave_context_t *context, const char *value, const char *expected) {
  cleave_key_value_t setting = {.key = "latency_ns", .value = value};
  cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  unit_ok(cleave_backend_configure(context, "mirror", &setting, 1, &answers, &count, e));
  ck_assert_uint_eq(count, 1);
  ck_assert_str_eq(answers[0].value, expected);
  cleave_answers_free(answers);
}

UNIT_TEST(the_same_library_in_two_contexts_has_a_state_for_each) {
  cleave_context_t *first = make_context();
  cleave_context_t *second = make_context();
  unit_ok(cleave_backend_load(first, SHIPPED("mirror"), NULL, e));
  unit_ok(cleave_backend_load(second, SHIPPED("mirror"), NULL, e));
  ask(first, "250", "250");
  ask(second, NULL, "0");
  cleave_context_release(first);
  ask(second, "7", "7");
  cleave_context_release(second);
}

UNIT_TEST(rule_files_and_models_of_different_contexts_do_not_go_together) {
  cleave_context_t *context = make_context();
  cleave_rule_source_t source = {
      .path = "r.lua", .text = RELU_RULES("cpu"), .length = sizeof RELU_RULES("cpu") - 1};
  cleave_rule_files_t *files = NULL;
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_backend_load(context, LIBRARY("good"), NULL, e));
  unit_ok(cleave_rule_files_load(
      context,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      &files, e));
  cleave_model_t *stranger = library_case_model(RELU_MODEL);
  cleave_model_t *model = library_case_model_in(context, RELU_MODEL);
  cleave_context_release(context); /* the files and the model keep it */
  unit_fails(cleave_rule_files_partition(files, stranger, &plan, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "the rule files were loaded in another context than the model");
  unit_ok(cleave_rule_files_partition(files, model, &plan, e));
  ck_assert_uint_eq(cleave_plan_region_count(plan), 1);
  cleave_plan_destroy(plan);
  cleave_model_release(stranger);
  cleave_model_release(model);
  ck_assert(is_open(LIBRARY("good")));
  cleave_rule_files_destroy(files);
  ck_assert(!is_open(LIBRARY("good")));
}

UNIT_TEST(rules_are_watched_with_the_libraries_of_the_model) {
  char path[] = CLEAVE_BINARY_DIR "/context_rules_XXXXXX";
  int file = mkstemp(path);
  const char *rules = "return ruleset { name = 'r', region 'all' { ops = { 'Relu' } } }";
  ck_assert_int_ge(file, 0);
  ck_assert_int_eq(write(file, rules, strlen(rules)), (int)strlen(rules));
  ck_assert_int_eq(close(file), 0);
  cleave_context_t *context = make_context();
  unit_ok(cleave_backend_load(context, LIBRARY("good"), NULL, e));
  cleave_model_t *model = library_case_model_in(context, RELU_MODEL);
  cleave_rule_source_t source = {.path = path};
  cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = SHAPE, .data = DATA};
  const cleave_tensor_view_t *inputs[1] = {&view};
  cleave_partition_request_t request = {
      .size = sizeof request, .sources = &source, .source_count = 1, .backend = "good"};
  cleave_rules_watch_options_t options = {.size = sizeof options, .inputs = inputs, .input_count = 1};
  cleave_rules_watch_t *watch = NULL;
  unit_ok(cleave_rules_watch_create(model, &request, &options, &watch, e));
  ck_assert_str_eq(cleave_plan_region_backend(cleave_rules_watch_plan(watch), 0), "good");
  library_case_run(cleave_rules_watch_session(watch), 0, RELU, 6);
  cleave_rules_watch_destroy(watch);
  cleave_model_release(model);
  cleave_context_release(context);
  ck_assert_int_eq(remove(path), 0);
}

/* ---- logs and folders ---- */

typedef struct heard {
  int count;
  char last[256];
} heard_t;

static void listen(void *context, cleave_log_level_t level, const char *line) {
  heard_t *heard = context;
  heard->count += level <= CLEAVE_LOG_WARNING ? 1 : 0;
  (void)snprintf(heard->last, sizeof heard->last, "%s", line);
}

UNIT_TEST(each_context_has_a_log_and_folders_of_its_own) {
  heard_t heard[2] = {{0}, {0}};
  char folder[] = CLEAVE_BINARY_DIR "/context_XXXXXX";
  char path[256];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  (void)snprintf(path, sizeof path, "%s/libtext.so", folder);
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_ge(fputs("no library\n", file), 0);
  ck_assert_int_eq(fclose(file), 0);
  ck_assert_int_eq(setenv("CLEAVE_BACKEND_PATH", FOLDER, 1), 0);
  cleave_context_options_t options = {
      .size = sizeof options, .log = listen, .log_context = &heard[0], .backend_folders = folder};
  cleave_context_t *context = NULL;
  cleave_context_t *none = make_context();
  unit_ok(cleave_context_create(&options, &context, e));
  cleave_context_set_log(none, listen, &heard[1]);
  uint32_t linked = cleave_backend_count(none);
  ck_assert_uint_eq(cleave_backend_count(context), linked + 1); /* refused, and listed with the reason */
  ck_assert_str_eq(cleave_backend_name(context, linked), "text");
  ck_assert_int_eq(heard[0].count, 1);
  ck_assert_ptr_nonnull(strstr(heard[0].last, "libtext.so"));
  ck_assert_int_eq(heard[1].count, 0);
  ck_assert_uint_gt(cleave_backend_count(NULL), linked + 1); /* those of the environment */
  ck_assert_int_eq(remove(path), 0);
  ck_assert_int_eq(rmdir(folder), 0);
  cleave_context_release(context);
  cleave_context_release(none);
}

/* ---- how long they live ---- */

UNIT_TEST(a_context_lives_as_long_as_its_models_and_closes_its_libraries_then) {
  ck_assert(!is_open(LIBRARY("good")));
  cleave_context_t *context = make_context();
  unit_ok(cleave_backend_load(context, LIBRARY("good"), NULL, e));
  running_t running = run_good(context);
  cleave_model_t *bound = NULL;
  unit_ok(cleave_model_bind(running.model, NULL, 0, &bound, e));
  cleave_context_release(context);
  library_case_run(running.session, 0, RELU, 6);
  end(&running);
  ck_assert(is_open(LIBRARY("good"))); /* the bound model is one more */
  cleave_model_release(bound);
  ck_assert(!is_open(LIBRARY("good")));
}

UNIT_TEST(a_session_may_be_the_last_that_keeps_a_context) {
  cleave_context_t *context = make_context();
  unit_ok(cleave_backend_load(context, SHIPPED("gemms"), NULL, e));
  cleave_model_t *model = library_case_model_in(context, GEMM_MODEL);
  cleave_session_t *session = library_case_session(model, NULL, 2, SHAPE, DATA, NULL);
  cleave_model_release(model);
  cleave_context_release(context);
  library_case_run(session, 0, (float[]){-6.0f, 5.5f}, 2);
  ck_assert(is_open(SHIPPED("gemms")));
  cleave_session_destroy(session);
  ck_assert(!is_open(SHIPPED("gemms")));
}

UNIT_TEST(an_isolated_library_ends_with_its_context) {
  cleave_context_t *context = make_context();
  cleave_isolation_t isolation = {.size = sizeof isolation};
  unit_ok(cleave_backend_isolate(context, "good", NULL, e));
  unit_ok(cleave_backend_load(context, LIBRARY("good"), NULL, e));
  unit_ok(cleave_backend_load(NULL, LIBRARY("good"), NULL, e)); /* not in another context */
  unit_ok(cleave_backend_isolation(NULL, "good", &isolation, e));
  ck_assert(!isolation.is_isolated);
  unit_ok(cleave_backend_isolation(context, "good", &isolation, e));
  ck_assert(isolation.is_isolated && isolation.process > 0);
  running_t running = run_good(context);
  end(&running);
  ck_assert_int_eq(kill((pid_t)isolation.process, 0), 0);
  cleave_context_release(context);
  ck_assert_int_eq(kill((pid_t)isolation.process, 0), -1);
}

UNIT_TEST(retaining_and_releasing_nothing_is_nothing) {
  ck_assert_ptr_null(cleave_context_retain(NULL));
  cleave_context_release(NULL);
  cleave_context_t *context = make_context();
  ck_assert_ptr_eq(cleave_context_retain(context), context);
  cleave_context_release(context);
  unit_ok(cleave_backend_load(context, LIBRARY("good"), NULL, e));
  cleave_context_release(context);
  ck_assert(!is_open(LIBRARY("good")));
}

/* ---- operators of libraries ---- */

static void run_gemm(cleave_context_t *context) {
  cleave_model_t *model = library_case_model_in(context, GEMM_MODEL);
  cleave_session_t *session = library_case_session(model, NULL, 2, SHAPE, DATA, NULL);
  library_case_run(session, 0, (float[]){-6.0f, 5.5f}, 2);
  cleave_session_destroy(session);
  cleave_model_release(model);
}

UNIT_TEST(operators_are_computed_where_their_library_is_loaded) {
  cleave_context_t *first = make_context();
  cleave_context_t *second = make_context();
  unit_ok(cleave_backend_load(first, SHIPPED("gemms"), NULL, e));
  unit_ok(cleave_backend_load(second, SHIPPED("gemms"), NULL, e));
  run_gemm(first);
  run_gemm(second);
  library_case_model_fails(GEMM_MODEL, CLEAVE_ERROR_UNSUPPORTED,
                           "operator 'my.company.Gemm' is of library 'gemms', which is not loaded in this "
                           "context");
  cleave_context_release(first);
  run_gemm(second);
  ck_assert(is_open(SHIPPED("gemms")));
  cleave_context_release(second);
  ck_assert(!is_open(SHIPPED("gemms")));
}

static cleave_status_t infer_nothing(void *self, const cleave_region_view_t *node,
                                     cleave_tensor_view_t *outputs, int64_t (*dims)[CLEAVE_MAX_RANK],
                                     cleave_message_t *message) {
  (void)self;
  (void)node, (void)outputs, (void)dims, (void)message;
  return CLEAVE_OK;
}

UNIT_TEST(contexts_agree_on_what_an_operator_is) {
  cleave_context_t *first = make_context();
  cleave_context_t *second = make_context();
  int owners[2];
  cleave_custom_operator_t definition = {.size = sizeof definition,
                                         .domain = "my.test",
                                         .name = "Op",
                                         .version = 1,
                                         .inputs = "X",
                                         .outputs = "Y",
                                         .infer = infer_nothing};
  cleave_custom_operator_t other = definition;
  other.inputs = "X Z";
  const cleave_custom_operator_t *list = &definition;
  const cleave_custom_operator_t *others = &other;
  unit_ok(cleave_custom_ops_add(first, &list, 1, "lib", &owners[0], e));
  unit_fails(cleave_custom_ops_add(second, &others, 1, "lib", &owners[1], e), CLEAVE_ERROR_BACKEND,
             "library 'lib': operator 'my.test.Op' exists already with another definition, of library 'lib' "
             "in another "
             "context");
  unit_ok(cleave_custom_ops_add(second, &list, 1, "lib", &owners[1], e));
  const cleave_op_t *op = cleave_op_find("my.test", "Op");
  void *owner = NULL;
  ck_assert_ptr_eq(cleave_custom_op_definition(op, second, &owner), &definition);
  ck_assert_ptr_eq(owner, &owners[1]);
  ck_assert_ptr_null(cleave_custom_op_definition(op, NULL, &owner));
  cleave_custom_ops_remove(&owners[0]);
  ck_assert_ptr_null(cleave_custom_op_definition(op, first, &owner));
  ck_assert_ptr_eq(cleave_op_find("my.test", "Op"), op);
  cleave_custom_ops_remove(&owners[1]);
  ck_assert_ptr_null(cleave_op_find("my.test", "Op"));
  unit_ok(cleave_custom_ops_add(second, &others, 1, "lib", &owners[1], e)); /* nobody has the first now */
  cleave_custom_ops_remove(&owners[1]);
  cleave_context_release(first);
  cleave_context_release(second);
}

/* ---- many ---- */

/* Bytes and blocks that cleave has taken and not given back. */
static atomic_long blocks;

static void *count_allocate(void *context, size_t bytes, size_t alignment) {
  void *memory = NULL;
  (void)context;
  if (posix_memalign(&memory, alignment, bytes) != 0) {
    return NULL;
  }
  (void)atomic_fetch_add(&blocks, 1);
  return memory;
}

static void *count_reallocate(void *context, void *memory, size_t bytes) {
  (void)context;
  return realloc(memory, bytes);
}

static void count_free(void *context, void *memory) {
  (void)context;
  (void)atomic_fetch_sub(&blocks, 1);
  free(memory);
}

UNIT_TEST(whatever_a_context_took_goes_with_it) {
  cleave_allocator_t counting = {.size = sizeof counting,
                                 .allocate = count_allocate,
                                 .reallocate = count_reallocate,
                                 .free = count_free};
  unit_ok(cleave_set_allocator(&counting, e));
  long before = 0;
  for (int round = 0; round < 200; round++) {
    cleave_context_t *context = make_context();
    unit_ok(cleave_backend_load(context, LIBRARY("good"), NULL, e));
    unit_ok(cleave_backend_load(context, SHIPPED("gemms"), NULL, e));
    running_t running = run_good(context);
    run_gemm(context);
    end(&running);
    cleave_context_release(context);
    before = round == 1 ? atomic_load(&blocks) : before; /* names of operators stay */
  }
  ck_assert_int_eq(atomic_load(&blocks), before);
}

static void *work(void *argument) {
  (void)argument;
  for (int round = 0; round < 20; round++) {
    cleave_context_t *context = make_context();
    unit_ok(cleave_backend_load(context, LIBRARY("good"), NULL, e));
    unit_ok(cleave_backend_load(context, SHIPPED("gemms"), NULL, e));
    cleave_model_t *model = NULL;
    cleave_plan_t *plan = NULL;
    unit_ok(cleave_model_load(context, CLEAVE_SOURCE_DIR "/examples/accelerators/custom_ops/model_gemms.lua",
                              NULL, &model, e));
    unit_ok(partition(model, RELU_RULES("good"), &plan, e));
    cleave_context_release(context);
    cleave_plan_destroy(plan);
    cleave_model_release(model);
  }
  return NULL;
}

UNIT_TEST(threads_with_a_context_each_do_not_meet) {
  pthread_t threads[4];
  for (size_t k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, work, NULL), 0);
  }
  for (size_t k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
  }
}

UNIT_SUITE("context")
