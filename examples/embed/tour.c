// SPDX-License-Identifier: Apache-2.0
// All that cleave/cleave.h has for a program that embeds it, step by step, with every result checked:
//
//   tour [LIBRARY]      LIBRARY: the accelerator library of backends/template, to run a part of the model on
//
// Every call that can fail returns a status and fills in one error struct, which `must` prints.
#include <cleave/cleave.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_model.h"

enum { BATCH = 2, INPUTS = 3, OUTPUTS = 2, THREADS = 4, RUNS = 200 };

static void must(cleave_status_t status, const cleave_error_t *error, const char *what) {
  if (status != CLEAVE_OK) {
    (void)fprintf(stderr, "tour: %s: %s\n", what,
                  error->message[0] != '\0' ? error->message : cleave_status_text(status));
    exit(1);
  }
}

static void check(bool is_right, const char *what) {
  if (!is_right) {
    (void)fprintf(stderr, "tour: %s: not what was expected\n", what);
    exit(1);
  }
}

/* ---- the process: an allocator; and a context with its log ---- */

static atomic_long blocks; /* that the library holds now */
static atomic_long lines;  /* that it logged */

static void *allocate(void *context, size_t bytes, size_t alignment) {
  void *memory = NULL;
  (void)context;
  if (posix_memalign(&memory, alignment, bytes) != 0) {
    return NULL;
  }
  (void)atomic_fetch_add(&blocks, 1);
  return memory;
}

static void *reallocate(void *context, void *memory, size_t bytes) {
  (void)context;
  return realloc(memory, bytes);
}

static void release(void *context, void *memory) {
  (void)context;
  (void)atomic_fetch_sub(&blocks, 1);
  free(memory);
}

static void log_line(void *context, cleave_log_level_t level, const char *line) {
  (void)atomic_fetch_add((atomic_long *)context, 1);
  if (level <= CLEAVE_LOG_WARNING) {
    (void)fprintf(stderr, "cleave says: %s\n", line);
  }
}

/* Backends, libraries and the log are a context's: this program has one, with all models in it. */
static cleave_context_t *make_context(void) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_context_t *context = NULL;
  cleave_allocator_t allocator = {
      .size = sizeof allocator, .allocate = allocate, .reallocate = reallocate, .free = release};
  must(cleave_set_allocator(&allocator, &error), &error, "setting the allocator"); /* before all else */
  cleave_context_options_t options = {.size = sizeof options, .log = log_line, .log_context = &lines};
  must(cleave_context_create(&options, &context, &error), &error, "making a context");
  return context;
}

/* ---- backends ---- */

static void list_backends(cleave_context_t *context, const char *library) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  bool has_cpu = false;
  if (library != NULL) {
    must(cleave_backend_load(context, library, "accelerator", &error), &error, "loading the library");
  }
  for (uint32_t k = 0; k < cleave_backend_count(context); k++) {
    cleave_backend_info_t info = {.size = sizeof info};
    must(cleave_backend_describe(context, k, &info, &error), &error, "describing a backend");
    (void)printf("backend %s: %s%s\n", info.name,
                 info.is_ready ? info.description : "not ready: ", info.reason);
    has_cpu = has_cpu || strcmp(info.name, "cpu") == 0;
  }
  check(has_cpu, "cpu is always there");
}

/* ---- models and plans ---- */

/* From memory, with sizes for what it leaves open. */
static cleave_model_t *load_model(cleave_context_t *context) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_model_t *model = NULL;
  cleave_model_t *bound = NULL;
  cleave_port_t port = {.size = sizeof port};
  must(cleave_model_load_memory(context, tiny_model, sizeof tiny_model, "tiny", &model, &error), &error,
       "loading");
  check(cleave_model_input_count(model) == 1 && cleave_model_find_input(model, "x") == 0, "inputs");
  must(cleave_model_input(model, 0, &port, &error), &error, "asking for the input");
  check(port.tensor.rank == 2 && port.tensor.dims[0] < 0 && port.tensor.dims[1] == INPUTS, "x is [N, 3]");
  const int64_t dims[2] = {BATCH, INPUTS};
  port.tensor.dims = dims;
  must(cleave_model_bind(model, (const cleave_tensor_view_t *[]){&port.tensor}, 1, &bound, &error), &error,
       "binding N");
  cleave_model_release(model); /* the bound one keeps what it needs */
  must(cleave_model_output(bound, 0, &port, &error), &error, "asking for the output");
  check(port.tensor.dims[0] == BATCH && port.tensor.dims[1] == OUTPUTS, "y is [2, 2]");
  return bound;
}

/* Rules as text: nothing has to be in a file. The options that they declare are set by name. Loaded once,
 * they serve any number of models; for a single one, cleave_model_partition does both. */
static cleave_plan_t *partition(cleave_context_t *context, cleave_model_t *model, bool has_library) {
  static const char rules[] =
      "local least = option.integer(1, 'nodes that make a region', { min = 1 })\n"
      "return ruleset {\n"
      "  name = 'tour', backend = 'cpu', options = { least = least },\n"
      "  region 'front' { doc = 'what the library knows', ops = { 'Add', 'Relu' }, min_nodes = least },\n"
      "}\n";
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_plan_t *plan = NULL;
  cleave_rule_files_t *files = NULL;
  char *text = NULL;
  cleave_rule_source_t source = {.path = "tour.lua", .text = rules, .length = sizeof rules - 1};
  cleave_setting_t setting = {.name = "least", .value = "2"};
  must(cleave_rule_files_load(context,
                              &(cleave_partition_request_t){.size = sizeof(cleave_partition_request_t),
                                                            .sources = &source,
                                                            .source_count = 1,
                                                            .settings = &setting,
                                                            .setting_count = 1,
                                                            .backend = has_library ? "accelerator" : NULL},
                              &files, &error),
       &error, "loading rules");
  must(cleave_rule_files_partition(files, model, &plan, &error), &error, "partitioning");
  cleave_rule_files_destroy(files);
  check(cleave_plan_region_count(plan) == 1, "one region");
  must(cleave_plan_format(plan, CLEAVE_PLAN_TEXT, &text, &error), &error, "printing the plan");
  (void)printf("region %s runs on %s\n", cleave_plan_region_name(plan, 0),
               cleave_plan_region_backend(plan, 0));
  check(strstr(text, "front") != NULL, "the plan names its rule");
  cleave_text_free(text);
  return plan;
}

/* What goes wrong is said in one line, with file and line where there are some. */
static void look_at_errors(cleave_model_t *model, const cleave_plan_t *plan) {
  static const char wrong[] =
      "return ruleset {\n  name = 'x', backend = 'cpu',\n  region 'r' { ops = { 'Convv' } },\n}\n";
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_plan_t *none = NULL;
  cleave_rule_source_t source = {.path = "wrong.lua", .text = wrong, .length = sizeof wrong - 1};
  cleave_status_t status = cleave_model_partition(
      model,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      &none, &error);
  check(status == CLEAVE_ERROR_RULE && none == NULL, "a wrong rule is refused");
  check(strcmp(error.file, "wrong.lua") == 0 && error.line == 3, "with its place");
  (void)printf("as it should be refused: %s\n", error.message);

  cleave_error_clear(&error); /* the first error stays until then */
  cleave_session_t *session = NULL;
  const int64_t dims[2] = {BATCH, INPUTS + 1};
  cleave_tensor_view_t type = {
      .size = sizeof type, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = dims, .data = NULL};
  status =
      cleave_session_create(model, plan, (const cleave_tensor_view_t *[]){&type}, 1, NULL, &session, &error);
  check(status == CLEAVE_ERROR_SHAPE && session == NULL, "a wrong shape is refused");
  (void)printf("as it should be refused: %s\n", error.message);
}

/* ---- sessions ---- */

/* y = Relu(x + x) w + b, by hand. */
static void compute(const float *x, float *y) {
  static const float w[INPUTS][OUTPUTS] = {{1.5F, 0}, {0, 2}, {1, -1}};
  static const float b[OUTPUTS] = {-1, 10};
  for (int n = 0; n < BATCH; n++) {
    for (int o = 0; o < OUTPUTS; o++) {
      y[n * OUTPUTS + o] = b[o];
      for (int i = 0; i < INPUTS; i++) {
        y[n * OUTPUTS + o] += fmaxf(2 * x[n * INPUTS + i], 0) * w[i][o];
      }
    }
  }
}

static bool is_near(const float *a, const float *b, int count) {
  bool near = true;
  for (int k = 0; k < count; k++) {
    near = near && fabsf(a[k] - b[k]) <= 1e-5F * (1 + fabsf(b[k]));
  }
  return near;
}

static const int64_t input_dims[2] = {BATCH, INPUTS};
static const int64_t output_dims[2] = {BATCH, OUTPUTS};

static cleave_tensor_view_t view_of(const int64_t *dims, const float *data) {
  return (cleave_tensor_view_t){
      .size = sizeof(cleave_tensor_view_t), .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = dims, .data = data};
}

static cleave_session_t *open_session(cleave_model_t *model, const cleave_plan_t *plan) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_session_t *session = NULL;
  cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  /* No types: the model says all sizes. */
  must(cleave_session_create(model, plan, NULL, 0, &options, &session, &error), &error, "making a session");
  check(cleave_session_note_count(session) == 0, "everything runs where the plan says");
  return session;
}

/* Inputs are read where they lie, outputs are read where they came to lie, or go where they are wanted. */
static void run_once(cleave_model_t *model, const cleave_plan_t *plan) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_session_t *session = open_session(model, plan);
  float x[BATCH * INPUTS] = {1, -2, 3, -0.5F, 0.25F, 8};
  _Alignas(64) float own[BATCH * OUTPUTS] = {0};
  float expected[BATCH * OUTPUTS];
  cleave_tensor_view_t input = view_of(input_dims, x);
  cleave_tensor_view_t mine = view_of(output_dims, own);
  cleave_tensor_view_t output;
  must(cleave_session_set_input(session, 0, &input, &error), &error, "setting the input");
  must(cleave_session_run(session, &error), &error, "running");
  must(cleave_session_output(session, 0, &output, &error), &error, "asking for the output");
  compute(x, expected);
  check(is_near(output.data, expected, BATCH * OUTPUTS), "the first output");

  x[1] = 5; /* the session reads the same memory again */
  compute(x, expected);
  must(cleave_session_set_output(session, 0, &mine, CLEAVE_REQUEST_WRITE, &error), &error, "giving memory");
  must(cleave_session_run(session, &error), &error, "running into memory of our own");
  must(cleave_session_output(session, 0, &output, &error), &error, "asking for the output");
  check(output.data == own && is_near(own, expected, BATCH * OUTPUTS), "the output in memory of our own");

  must(cleave_session_set_output(session, 0, &mine, CLEAVE_REQUEST_ADD, &error), &error, "asking to add");
  must(cleave_session_run(session, &error), &error, "adding");
  for (int k = 0; k < BATCH * OUTPUTS; k++) {
    expected[k] *= 2;
  }
  check(is_near(own, expected, BATCH * OUTPUTS), "the output added to what was there");
  cleave_session_destroy(session);
}

/* ---- threads: a session each, one model and one plan for all ---- */

typedef struct worker {
  pthread_t thread;
  cleave_model_t *model;
  const cleave_plan_t *plan;
  int number;
  bool is_right;
} worker_t;

static void *work(void *context) {
  worker_t *worker = context;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_session_t *session = open_session(worker->model, worker->plan);
  float x[BATCH * INPUTS];
  float expected[BATCH * OUTPUTS];
  cleave_tensor_view_t input = view_of(input_dims, x);
  cleave_tensor_view_t output;
  must(cleave_session_set_input(session, 0, &input, &error), &error, "setting the input of a thread");
  worker->is_right = true;
  for (int run = 0; run < RUNS; run++) {
    for (int k = 0; k < BATCH * INPUTS; k++) {
      x[k] = (float)((worker->number * 31 + run * 7 + k * 5) % 23 - 11);
    }
    compute(x, expected);
    must(cleave_session_run(session, &error), &error, "running on a thread");
    must(cleave_session_output(session, 0, &output, &error), &error, "asking on a thread");
    worker->is_right = worker->is_right && is_near(output.data, expected, BATCH * OUTPUTS);
  }
  cleave_session_destroy(session);
  return NULL;
}

static void run_threads(cleave_model_t *model, const cleave_plan_t *plan) {
  worker_t workers[THREADS];
  for (int k = 0; k < THREADS; k++) {
    workers[k] = (worker_t){.model = model, .plan = plan, .number = k};
    check(pthread_create(&workers[k].thread, NULL, work, &workers[k]) == 0, "starting a thread");
  }
  for (int k = 0; k < THREADS; k++) {
    (void)pthread_join(workers[k].thread, NULL);
    check(workers[k].is_right, "what a thread computed");
  }
  (void)printf("%d threads ran %d times each\n", THREADS, RUNS);
}

/* ---- plans that are kept, regions as text, new weights ---- */

static void keep_and_change(cleave_context_t *context, cleave_model_t *model, const cleave_plan_t *plan) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  char *text = NULL;
  cleave_plan_t *again = NULL;
  must(cleave_plan_format(plan, CLEAVE_PLAN_JSON, &text, &error), &error, "saving the plan");
  must(cleave_plan_load(model, "saved",
                        &(cleave_plan_load_options_t){
                            .size = sizeof(cleave_plan_load_options_t), .text = text, .length = strlen(text)},
                        &again, &error),
       &error, "taking it up");
  run_once(model, again);
  cleave_plan_destroy(again);
  cleave_text_free(text);

  /* A region of it is a model of its own, for whoever has to look at it. */
  cleave_model_t *region = NULL;
  must(cleave_plan_region_json(plan, 0, CLEAVE_REGION_CONSTANTS_INLINE, &text, &error), &error, "a region");
  must(cleave_model_load_memory(context, text, strlen(text), "region.json", &region, &error), &error,
       "its model");
  must(cleave_model_plan_region(region, NULL, NULL, &again, &error), &error, "its plan");
  check(cleave_plan_region_count(again) == 1, "the region in its own plan");
  cleave_plan_destroy(again);
  cleave_model_release(region);
  cleave_text_free(text);

  /* The same network with another bias: the same plan, no rule runs again. */
  static const float bias[OUTPUTS] = {100, 200};
  const int64_t dims[1] = {OUTPUTS};
  cleave_tensor_view_t b = {
      .size = sizeof b, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = dims, .data = bias};
  cleave_model_t *changed = NULL;
  must(cleave_model_set_constants(model, (const char *[]){"b"}, (const cleave_tensor_view_t *[]){&b}, 1,
                                  &changed, &error),
       &error, "setting the bias");
  must(cleave_plan_rebase(plan, changed, &again, &error), &error, "taking the plan over");
  cleave_session_t *session = open_session(changed, again);
  static const float zeros[BATCH * INPUTS];
  cleave_tensor_view_t input = view_of(input_dims, zeros);
  cleave_tensor_view_t output;
  must(cleave_session_set_input(session, 0, &input, &error), &error, "setting the input");
  must(cleave_session_run(session, &error), &error, "running with the new bias");
  must(cleave_session_output(session, 0, &output, &error), &error, "asking for the output");
  check(is_near(output.data, (const float[]){100, 200, 100, 200}, BATCH * OUTPUTS), "the new bias");
  cleave_session_destroy(session);
  cleave_plan_destroy(again);
  cleave_model_release(changed);
}

int main(int argc, char **argv) {
  const char *library = argc > 1 ? argv[1] : NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_context_t *context = make_context();
  (void)printf("cleave %s\n", cleave_version());
  list_backends(context, library);
  cleave_model_t *model = load_model(context);
  cleave_plan_t *plan = partition(context, model, library != NULL);
  look_at_errors(model, plan);
  run_once(model, plan);
  run_threads(model, plan);
  long before = atomic_load(&blocks);
  for (int k = 0; k < 10; k++) {
    keep_and_change(context, model, plan);
  }
  check(atomic_load(&blocks) == before, "what was made is freed again");
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  if (library != NULL) {
    must(cleave_backend_unload(context, "accelerator", &error), &error, "unloading the library");
  }
  cleave_context_release(context); /* everything goes with it, libraries that are loaded still, too */
  check(atomic_load(&blocks) == 0, "nothing is left");
  (void)printf("all results are right; %ld lines were logged\n", atomic_load(&lines));
  return 0;
}
