// SPDX-License-Identifier: Apache-2.0
// Other constants for a model: the same numbers as a model loaded with them, whatever was folded from them
// and by whom; only what changed is compiled; what the model cannot take is refused.
#include <pthread.h>

#include "library_case.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "unit.h"

#define RULES CLEAVE_SOURCE_DIR "/rules/"
#define CANONICAL RULES "canonical.lua"

/* Every constant is a multiple of an option, so that a model can also be loaded with others. */
static const char network[] =
    "local function constant(name, values)\n"
    "  local factor = tonumber(options[name] or 1)\n"
    "  for k = 1, #values do values[k] = values[k] * factor end\n"
    "  return g.constant(values, 'float32', name)\n"
    "end\n"
    "local function norm(y, name)\n"
    "  return g.BatchNormalization(y, constant(name .. '_scale', { 1, 2, 0.5, -1 }),\n"
    "    constant(name .. '_shift', { 0.5, -1, 0, 2 }), constant(name .. '_mean', { 1, 0, -0.5, 0.25 }),\n"
    "    constant(name .. '_var', { 1, 4, 0.25, 2 }), { epsilon = 0.01 })\n"
    "end\n"
    "local batch = options.batch == nil and 2 or options.batch\n"
    "local x = g.input('x', 'float32', { batch, 3, 4, 4 })\n"
    "local w = { }\n"
    "for k = 1, 12 do w[k] = (k % 5 - 2) / 4 end\n"
    "local y = g.Conv(x, g.Reshape(constant('w', w), { 4, 3, 1, 1 }))\n"
    "y = g.Relu(norm(y, 'first'))\n"
    "local v = { }\n"
    "for k = 1, 16 do v[k] = (k % 7 - 3) / 8 end\n"
    "y = norm(g.Conv(y, g.Reshape(constant('v', v), { 4, 4, 1, 1 })), 'second')\n"
    "local a = g.constant(2 * tonumber(options.a or 1), 'float32', 'a')\n"
    "local b = g.constant(3 * tonumber(options.b or 1), 'float32', 'b')\n"
    "g.output('y', g.Relu(y) * (a * b))\n";

/* The network where an option has a value; NULL: none has. */
static cleave_model_t *load(const char *option, const char *value) {
  char text[sizeof network + 64];
  (void)snprintf(text, sizeof text, "local options = { %s = '%s' }\n%s", option == NULL ? "none" : option,
                 option == NULL ? "" : value, network);
  return library_case_model(text);
}

// ---- changing constants ----

enum { MAX_ELEMENTS = 64 };

/* The constant as it is, times a factor. `data` has room for MAX_ELEMENTS. */
static cleave_tensor_view_t scaled(const cleave_model_t *model, const char *name, float factor, float *data) {
  cleave_port_t port = {.size = sizeof port};
  uint32_t index = 0;
  do {
    unit_ok(cleave_model_constant(model, index++, &port, e));
  } while (strcmp(port.name, name) != 0);
  int64_t count = cleave_view_element_count(&port.tensor);
  ck_assert_int_le(count, MAX_ELEMENTS);
  for (int64_t k = 0; k < count; k++) { /* which may be unaligned */
    memcpy(&data[k], (const char *)port.tensor.data + k * (int64_t)sizeof *data, sizeof *data);
    data[k] *= factor;
  }
  port.tensor.data = data;
  return port.tensor;
}

static cleave_model_t *scale(cleave_model_t *model, const char *name, float factor) {
  float data[MAX_ELEMENTS];
  cleave_tensor_view_t view = scaled(model, name, factor, data);
  const cleave_tensor_view_t *views[1] = {&view};
  cleave_model_t *result = NULL;
  unit_ok(cleave_model_set_constants(model, &name, views, 1, &result, e));
  return result;
}

// ---- running ----

enum { INPUTS = 96, OUTPUTS = 128 };

typedef struct outputs {
  float values[OUTPUTS];
} outputs_t;

static const int64_t input_dims[4] = {2, 3, 4, 4};

static cleave_tensor_view_t input_view(void) {
  static float data[INPUTS];
  for (int k = 0; k < INPUTS; k++) {
    data[k] = (float)(k % 13 - 6) / 4.0F;
  }
  return (cleave_tensor_view_t){.size = sizeof(cleave_tensor_view_t),
                                .dtype = CLEAVE_DTYPE_F32,
                                .rank = 4,
                                .dims = input_dims,
                                .data = data};
}

static cleave_session_t *make_session(cleave_model_t *model, const cleave_plan_t *plan,
                                      cleave_program_cache_t *cache) {
  const cleave_session_options_t options = {.size = sizeof options, .threads = 1, .programs = cache};
  return library_case_session(model, plan, 4, input_dims, input_view().data, &options);
}

static outputs_t outputs_of(cleave_session_t *session) {
  outputs_t outputs;
  cleave_tensor_view_t view;
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_output(session, 0, &view, e));
  ck_assert_int_eq(cleave_view_element_count(&view), OUTPUTS);
  memcpy(outputs.values, view.data, sizeof outputs.values);
  return outputs;
}

static outputs_t run(cleave_model_t *model, const cleave_plan_t *plan) {
  cleave_session_t *session = make_session(model, plan, NULL);
  outputs_t outputs = outputs_of(session);
  cleave_session_destroy(session);
  return outputs;
}

static bool same(const outputs_t *a, const outputs_t *b) {
  return memcmp(a, b, sizeof *a) == 0;
}

/* By up to two rule files. */
static cleave_plan_t *partition(cleave_model_t *model, const char *rules, const char *more) {
  const cleave_rule_source_t sources[2] = {{.path = rules}, {.path = more}};
  const cleave_partition_request_t request = {.size = sizeof request,
                                              .sources = sources,
                                              .source_count = rules == NULL  ? 0
                                                              : more == NULL ? 1
                                                                             : 2};
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_model_partition(model, &request, &plan, e));
  return plan;
}

static cleave_plan_t *rebase(const cleave_plan_t *plan, cleave_model_t *model) {
  cleave_plan_t *moved = NULL;
  unit_ok(cleave_plan_rebase(plan, model, &moved, e));
  return moved;
}

/* A model with its plan by rules, and the model with a constant times a factor with the plan for that. */
typedef struct change {
  cleave_model_t *model;
  cleave_model_t *changed;
  cleave_plan_t *plan;
  cleave_plan_t *moved;
} change_t;

static change_t change(cleave_model_t *model, const char *rules, const char *name, float factor) {
  change_t c = {.model = model, .plan = partition(model, rules, NULL), .changed = scale(model, name, factor)};
  c.moved = rebase(c.plan, c.changed);
  return c;
}

static void end_change(const change_t *c) {
  cleave_plan_destroy(c->moved);
  cleave_plan_destroy(c->plan);
  cleave_model_release(c->changed);
  cleave_model_release(c->model);
}

/* The network with an open size, bound to the size that inputs have here. */
static cleave_model_t *load_bound(void) {
  cleave_tensor_view_t input = input_view();
  const cleave_tensor_view_t *inputs[1] = {&input};
  cleave_model_t *model = load("batch", "N");
  cleave_model_t *bound = NULL;
  unit_ok(cleave_model_bind(model, inputs, 1, &bound, e));
  ck_assert_ptr_ne(model, bound);
  cleave_model_release(model);
  return bound;
}

/* Each constant of the network in turn: the model with another one, by its own plan and by the plan of the
 * model before, computes bit for bit what the model that was loaded with it does. */
static void check_all(const char *rules, const char *more) {
  static const char *const names[] = {"w",          "v",           "first_scale", "first_shift",
                                      "first_mean", "first_var",   "second_var",  "a",
                                      "b",          "second_mean", "second_scale"};
  cleave_model_t *model = load(NULL, NULL);
  cleave_plan_t *plan = partition(model, rules, more);
  outputs_t before = run(model, plan);
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    cleave_model_t *fresh = load(names[k], "1.75");
    cleave_plan_t *fresh_plan = partition(fresh, rules, more);
    outputs_t expected = run(fresh, fresh_plan);
    cleave_model_t *changed = scale(model, names[k], 1.75F);
    cleave_plan_t *changed_plan = partition(changed, rules, more);
    cleave_plan_t *moved = rebase(plan, changed);
    outputs_t by_rules = run(changed, changed_plan);
    outputs_t by_plan = run(changed, moved);
    ck_assert_msg(!same(&expected, &before), "%s", names[k]);
    ck_assert_msg(same(&expected, &by_rules), "%s", names[k]);
    ck_assert_msg(same(&expected, &by_plan), "%s", names[k]);
    cleave_plan_destroy(moved);
    cleave_plan_destroy(changed_plan);
    cleave_plan_destroy(fresh_plan);
    cleave_model_release(changed);
    cleave_model_release(fresh);
  }
  outputs_t after = run(model, plan);
  ck_assert(same(&before, &after));
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

UNIT_TEST(operators_one_by_one_follow_their_constants) {
  check_all(NULL, NULL);
}

UNIT_TEST(what_rewrites_folded_follows_the_constants_it_came_from) {
  check_all(CANONICAL, NULL);
}

#ifdef CLEAVE_TEST_ONEDNN
UNIT_TEST(weights_that_a_backend_packed_follow) {
  check_all(RULES "onednn.lua", NULL);
}

UNIT_TEST(folded_weights_that_a_backend_packed_follow) {
  check_all(CANONICAL, RULES "onednn.lua");
}
#endif

UNIT_TEST(batch_norm_is_folded_before_and_after) {
  change_t c = change(load(NULL, NULL), CANONICAL, "first_scale", 2);
  ck_assert_ptr_nonnull(c.moved->rewritten);
  ck_assert_ptr_eq(c.moved->source, cleave_model_graph(c.changed));
  ck_assert_uint_eq(c.moved->edits->groups.count, c.plan->edits->groups.count);
  ck_assert_uint_eq(c.moved->graph->live_node_count, c.plan->graph->live_node_count);
  // The second convolution's constants are the very same, the first one's are not.
  uint32_t others = 0;
  for (uint32_t k = 0; k < cleave_graph_value_bound(c.plan->graph); k++) {
    const cleave_value_record_t *old = &c.plan->graph->values.items[k];
    const cleave_value_record_t *new = &c.moved->graph->values.items[k];
    if (old->tensor != NULL && old->use_count > 0) {
      others += old->tensor != new->tensor;
      ck_assert(old->tensor == new->tensor || old->tensor->version != new->tensor->version);
    }
  }
  ck_assert_uint_eq(others, 2);
  cleave_plan_destroy(c.plan);
  cleave_model_release(c.model); /* nothing of the new ones needs them, but what they keep themselves */
  c.plan = NULL;
  c.model = load("first_scale", "2");
  outputs_t outputs = run(c.changed, c.moved);
  outputs_t expected = run(c.model, NULL);
  for (int k = 0; k < OUTPUTS; k++) {
    ck_assert_float_eq_tol(outputs.values[k], expected.values[k], 1e-4F);
  }
  end_change(&c);
}

// ---- programs ----

UNIT_TEST(only_what_changed_is_compiled) {
  cleave_model_t *model = load(NULL, NULL);
  cleave_program_cache_t *cache = NULL;
  unit_ok(cleave_program_cache_create(&cache, e));
  cleave_session_t *session = make_session(model, NULL, cache);
  uint32_t programs = cleave_session_program_count(session);
  ck_assert_uint_ge(programs, 6);
  cleave_model_t *changed = scale(model, "second_mean", 3);
  cleave_session_t *next = make_session(changed, NULL, cache);
  ck_assert_uint_eq(cleave_session_program_count(next), programs);
  ck_assert_uint_eq(cleave_session_reused_count(next), programs - 1);
  cleave_session_destroy(session);
  cleave_model_release(model);
  cleave_model_t *fresh = load("second_mean", "3");
  outputs_t expected = run(fresh, NULL);
  outputs_t outputs = outputs_of(next);
  ck_assert(same(&expected, &outputs));
  cleave_session_destroy(next);
  cleave_model_release(changed);
  cleave_model_release(fresh);
  cleave_program_cache_release(cache);
}

UNIT_TEST(the_same_content_is_the_same_model) {
  cleave_model_t *model = load(NULL, NULL);
  cleave_model_t *same_model = scale(model, "w", 1);
  ck_assert_ptr_eq(model, same_model);
  cleave_model_release(same_model);
  cleave_model_release(model);
}

UNIT_TEST(a_long_line_of_updates_ends_where_one_would) {
  cleave_model_t *model = load(NULL, NULL);
  cleave_model_t *current = cleave_model_retain(model);
  for (int k = 0; k < 8; k++) {
    cleave_model_t *next = scale(current, k % 2 == 0 ? "first_var" : "v", 2);
    cleave_model_release(current);
    current = next;
  }
  cleave_model_t *first = scale(model, "first_var", 16);
  cleave_model_t *expected = scale(first, "v", 16);
  outputs_t outputs = run(current, NULL);
  outputs_t others = run(expected, NULL);
  ck_assert(same(&outputs, &others));
  // Back to the start: the same numbers, whatever was in between.
  cleave_model_t *back = scale(expected, "v", 1.0F / 16);
  cleave_model_t *home = scale(back, "first_var", 1.0F / 16);
  outputs = run(home, NULL);
  others = run(model, NULL);
  ck_assert(same(&outputs, &others));
  cleave_model_release(home);
  cleave_model_release(back);
  cleave_model_release(expected);
  cleave_model_release(first);
  cleave_model_release(current);
  cleave_model_release(model);
}

// ---- bound models ----

UNIT_TEST(a_bound_model_is_bound_again) {
  change_t c = change(load_bound(), CANONICAL, "first_scale", 1.75F);
  cleave_model_t *fresh = load("first_scale", "1.75");
  cleave_plan_t *fresh_plan = partition(fresh, CANONICAL, NULL);
  outputs_t expected = run(fresh, fresh_plan);
  outputs_t outputs = run(c.changed, c.moved);
  ck_assert(same(&expected, &outputs));
  cleave_plan_destroy(fresh_plan);
  cleave_model_release(fresh);
  end_change(&c);
}

// ---- what is refused ----

static void check_refused(cleave_model_t *model, const char *name, cleave_tensor_view_t view,
                          cleave_status_t status, const char *message) {
  const cleave_tensor_view_t *views[1] = {&view};
  cleave_model_t *result = NULL;
  unit_fails_with(cleave_model_set_constants(model, &name, views, 1, &result, e), status, message);
  ck_assert_ptr_null(result);
}

UNIT_TEST(names_and_types_that_are_not_the_models_are_refused) {
  cleave_model_t *model = load(NULL, NULL);
  float data[MAX_ELEMENTS] = {0};
  cleave_tensor_view_t w = scaled(model, "first_mean", 2, data);
  cleave_tensor_view_t other = w;
  const int64_t dims[2] = {2, 2};
  check_refused(model, "first_maen", w, CLEAVE_ERROR_INVALID_ARGUMENT, "did you mean 'first_mean'?");
  check_refused(model, "", w, CLEAVE_ERROR_INVALID_ARGUMENT, "no constant of this name");
  check_refused(model, "x", w, CLEAVE_ERROR_INVALID_ARGUMENT, "it is not a constant");
  other.dtype = CLEAVE_DTYPE_I32;
  check_refused(model, "first_mean", other, CLEAVE_ERROR_SHAPE,
                "constant 'first_mean': expected float32[4], found int32[4]");
  other = w;
  other.rank = 2;
  other.dims = dims;
  check_refused(model, "first_mean", other, CLEAVE_ERROR_SHAPE, "expected float32[4], found float32[2, 2]");
  const int64_t ones[CLEAVE_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
  other.rank = CLEAVE_MAX_RANK;
  other.dims = ones;
  check_refused(model, "first_mean", other, CLEAVE_ERROR_SHAPE, "found float32[1, 1, 1, 1, 1, 1, 1, 1]");
  other.rank = CLEAVE_MAX_RANK + 1;
  check_refused(model, "first_mean", other, CLEAVE_ERROR_SHAPE, "found float32[...]");
  other = w;
  other.data = NULL;
  check_refused(model, "first_mean", other, CLEAVE_ERROR_INVALID_ARGUMENT, "no data");
  const char *names[2] = {"first_mean", "first_mean"};
  const cleave_tensor_view_t *views[2] = {&w, &w};
  cleave_model_t *result = NULL;
  unit_fails(cleave_model_set_constants(model, names, views, 2, &result, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "constant 'first_mean' is given twice");
  cleave_port_t port = {.size = sizeof port};
  unit_fails_with(cleave_model_constant(model, cleave_model_constant_count(model), &port, e),
                  CLEAVE_ERROR_INVALID_ARGUMENT, "the model has");
  cleave_model_release(model);
}

UNIT_TEST(constants_of_one_name_are_ambiguous) {
  cleave_model_t *model = library_case_model(
      "local x = g.input('x', 'float32', { 2, 3, 4, 4 })\n"
      "local a = g.constant({ 1, 2, 3, 4 }, 'float32', 'c')\n"
      "g.output('y', (x + a) * g.constant({ 5, 6, 7, 8 }, 'float32', 'c'))\n");
  float data[MAX_ELEMENTS] = {0};
  cleave_tensor_view_t c = scaled(model, "c", 2, data);
  check_refused(model, "c", c, CLEAVE_ERROR_INVALID_ARGUMENT, "2 constants of the model have this name");
  cleave_model_release(model);
}

UNIT_TEST(a_constant_that_decides_the_structure_is_refused) {
  cleave_model_t *model = library_case_model(
      "local x = g.input('x', 'float32', { 2, 3, 4, 4 })\n"
      "local shape = g.constant({ 4, 24 }, 'int64', 'shape')\n"
      "local w = g.constant({ 2 }, 'float32', 'w')\n"
      "g.output('y', g.Reshape(x * w, shape))\n");
  const int64_t two[1] = {2};
  const int64_t one[1] = {1};
  const int64_t other[2] = {24, 4};
  const int64_t wrong[2] = {5, 5};
  const float five = 5;
  cleave_tensor_view_t shape = {
      .size = sizeof shape, .dtype = CLEAVE_DTYPE_I64, .rank = 1, .dims = two, .data = other};
  cleave_tensor_view_t w = {
      .size = sizeof w, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = one, .data = &five};
  check_refused(model, "shape", shape, CLEAVE_ERROR_UNSUPPORTED,
                "constant 'shape' decides the structure of the model");
  // Among several it is the one that is named.
  const char *names[2] = {"w", "shape"};
  const cleave_tensor_view_t *views[2] = {&w, &shape};
  cleave_model_t *result = NULL;
  unit_fails_with(cleave_model_set_constants(model, names, views, 2, &result, e), CLEAVE_ERROR_UNSUPPORTED,
                  "constant 'shape' decides");
  shape.data = wrong;
  check_refused(model, "shape", shape, CLEAVE_ERROR_UNSUPPORTED, "load the model again");
  unit_ok(cleave_model_set_constants(model, names, views, 1, &result, e));
  cleave_model_release(result);
  cleave_model_release(model);
}

// ---- threads, memory ----

enum { THREADS = 4, ROUNDS = 12 };

typedef struct worker {
  const change_t *change;
  const cleave_tensor_view_t *input;
  const outputs_t *expected; /* of the model, and of the changed one */
  cleave_program_cache_t *cache;
  int wrong;
} worker_t;

static void *work(void *context) {
  worker_t *worker = context;
  const change_t *c = worker->change;
  for (int round = 0; round < ROUNDS; round++) {
    bool is_new = round % 2 == 1;
    cleave_session_options_t options = {.size = sizeof options, .threads = 1, .programs = worker->cache};
    cleave_session_t *session = NULL;
    cleave_tensor_view_t output;
    bool good = cleave_session_create(is_new ? c->changed : c->model, is_new ? c->moved : c->plan,
                                      &worker->input, 1, &options, &session, NULL) == CLEAVE_OK &&
                cleave_session_set_input(session, 0, worker->input, NULL) == CLEAVE_OK;
    for (int k = 0; k < 3 && good; k++) {
      good = cleave_session_run(session, NULL) == CLEAVE_OK &&
             cleave_session_output(session, 0, &output, NULL) == CLEAVE_OK &&
             memcmp(output.data, worker->expected[is_new].values, sizeof(outputs_t)) == 0;
    }
    worker->wrong += good ? 0 : 1;
    cleave_session_destroy(session);
  }
  return NULL;
}

UNIT_TEST(threads_run_old_and_new_models_over_one_cache) {
  change_t c = change(load(NULL, NULL), CANONICAL, "first_scale", 2);
  outputs_t expected[2] = {run(c.model, c.plan), run(c.changed, c.moved)};
  cleave_program_cache_t *cache = NULL;
  const cleave_tensor_view_t input = input_view();
  pthread_t threads[THREADS];
  worker_t workers[THREADS];
  unit_ok(cleave_program_cache_create(&cache, e));
  for (int k = 0; k < THREADS; k++) {
    workers[k] = (worker_t){.change = &c, .input = &input, .expected = expected, .cache = cache};
    ck_assert_int_eq(pthread_create(&threads[k], NULL, work, &workers[k]), 0);
  }
  for (int k = 0; k < THREADS; k++) {
    ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
    ck_assert_int_eq(workers[k].wrong, 0);
  }
  cleave_program_cache_release(cache);
  end_change(&c);
}

UNIT_TEST(every_allocation_may_fail) {
  cleave_model_t *bound = load_bound();
  cleave_plan_t *plan = partition(bound, CANONICAL, NULL);
  float data[MAX_ELEMENTS];
  const char *name = "first_scale";
  cleave_tensor_view_t view = scaled(bound, name, 2, data);
  const cleave_tensor_view_t *views[1] = {&view};
  int64_t failures = 0;
  for (cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY; status != CLEAVE_OK; failures++) {
    cleave_model_t *changed = NULL;
    cleave_plan_t *moved = NULL;
    (void)cleave_memory_fail_after(failures);
    status = cleave_model_set_constants(bound, &name, views, 1, &changed, NULL);
    if (status == CLEAVE_OK) {
      status = cleave_plan_rebase(plan, changed, &moved, NULL);
    }
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY, "status %d after %d",
                  (int)status, (int)failures);
    cleave_plan_destroy(moved);
    cleave_model_release(changed);
  }
  ck_assert_int_gt(failures, 100);
  cleave_plan_destroy(plan);
  cleave_model_release(bound);
}

UNIT_SUITE("model_constants")
