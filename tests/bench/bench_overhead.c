// SPDX-License-Identifier: Apache-2.0
/*
 * What the way through a library costs: `bench_overhead [MODEL.lua [ROUNDS]]`, by default ResNet-50. The
 * library is mirror, whose kernels are those of the linked-in cpu, on memory of its own that it checks in
 * every call.
 *
 *  - Calls: the same tiny region through both tables, as a region and as a single operator.
 *  - A model: as one region, operator by operator as regions of one node, and through executors, against the
 *    same pieces on cpu. Copies of inputs and outputs to and from the device count.
 *
 * Both sides run by turns in one process, each first in every other round. Reported are medians, and of every
 * comparison the median over the rounds of what the round's pair says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/registry/registry.h"
#include "cleave/cleave.h"
#include "system/clock.h"
#include "view_builder.h"

enum { CALLS = 2000, CALL_ROUNDS = 301, SESSIONS = 7, MAX_ROUNDS = 1001, MAX_INPUTS = 8 };

static void fail(const char *message) {
  (void)fprintf(stderr, "bench_overhead: %s\n", message);
  exit(1);
}

static void check(cleave_status_t status, const cleave_error_t *error) {
  if (status != CLEAVE_OK) {
    fail(error->message);
  }
}

static void check_backend(cleave_status_t status, const cleave_message_t *message) {
  if (status != CLEAVE_OK) {
    fail(message->text);
  }
}

static int compare_numbers(const void *a, const void *b) {
  double left = *(const double *)a;
  double right = *(const double *)b;
  return (left > right) - (left < right);
}

static double median(double *numbers, size_t count) {
  qsort(numbers, count, sizeof *numbers, compare_numbers);
  return numbers[count / 2];
}

/* Nanoseconds of two sides by turns. */
typedef struct pairs {
  double first[MAX_ROUNDS];
  double second[MAX_ROUNDS];
  size_t count;
} pairs_t;

typedef struct result {
  double first; /* medians */
  double second;
  double difference; /* of second and first */
  double ratio;
} result_t;

static result_t judge(pairs_t *pairs) {
  static double differences[MAX_ROUNDS];
  static double ratios[MAX_ROUNDS];
  for (size_t k = 0; k < pairs->count; k++) {
    differences[k] = pairs->second[k] - pairs->first[k];
    ratios[k] = pairs->second[k] / pairs->first[k];
  }
  return (result_t){.difference = median(differences, pairs->count),
                    .ratio = median(ratios, pairs->count),
                    .first = median(pairs->first, pairs->count),
                    .second = median(pairs->second, pairs->count)};
}

/* Takes the time of one side of a round. */
typedef double (*side_fn_t)(void *context, bool is_second);

/* Adds rounds. */
static void measure(side_fn_t side, void *context, size_t rounds, pairs_t *pairs) {
  for (uint32_t k = 0; k < 2; k++) {
    (void)side(context, k == 1);
  }
  for (size_t k = 0; k < rounds && pairs->count < MAX_ROUNDS; k++) {
    bool turned = k % 2 == 1;
    double one = side(context, turned);
    double other = side(context, !turned);
    pairs->first[pairs->count] = turned ? other : one;
    pairs->second[pairs->count++] = turned ? one : other;
  }
}

/* ---- calls ---- */

typedef cleave_status_t (*run_fn_t)(void *program, const cleave_run_args_t *args, cleave_message_t *message);

typedef struct side {
  run_fn_t run;
  void *program;
  cleave_run_args_t args;
  cleave_tensor_view_t inputs[2];
  cleave_tensor_view_t outputs[1];
} side_t;

typedef struct calls {
  side_t sides[2];
} calls_t;

static double time_calls(void *context, bool is_second) {
  side_t *side = &((calls_t *)context)->sides[is_second ? 1 : 0];
  cleave_message_t message;
  cleave_status_t status = CLEAVE_OK;
  uint64_t start = cleave_clock_now();
  for (uint32_t k = 0; k < CALLS && status == CLEAVE_OK; k++) {
    status = side->run(side->program, &side->args, &message);
  }
  double ns = (double)(cleave_clock_now() - start) / CALLS;
  check_backend(status, &message);
  return ns;
}

/* Memory for a tensor or workspace, full of ones as floats: of the device where the backend has some. */
static void *make_memory(const cleave_backend_handle_t *handle, size_t bytes) {
  const cleave_backend_devices_t *devices = handle->backend->devices;
  size_t whole = (bytes + 63) / 64 * 64 + 64;
  float *ones = aligned_alloc(64, whole);
  if (ones == NULL) {
    fail("no memory");
  }
  for (size_t k = 0; k < whole / sizeof *ones; k++) {
    ones[k] = 1.0f;
  }
  if (devices == NULL) {
    return ones;
  }
  void *memory = NULL;
  cleave_message_t message = {.text = ""};
  int64_t count = (int64_t)(whole / sizeof *ones);
  cleave_tensor_view_t from = {
      .size = sizeof from, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = &count, .data = ones};
  cleave_tensor_view_t to = from;
  check_backend(devices->alloc(handle->state, 0, whole, &memory, &message), &message);
  to.data = memory;
  to.memory = 1;
  check_backend(devices->copy_to(handle->state, 0, &to, &from, NULL, &message), &message);
  free(ones);
  return memory;
}

static void bind_tensor(const cleave_backend_handle_t *handle, const cleave_tensor_view_t *type,
                        cleave_tensor_view_t *out_view) {
  *out_view = *type;
  out_view->data = make_memory(handle, (size_t)cleave_view_element_count(type) * sizeof(float));
  out_view->memory = handle->backend->devices == NULL ? CLEAVE_MEMORY_HOST : 1;
}

static void make_side(const cleave_backend_handle_t *handle, const cleave_region_view_t *region,
                      bool is_single, side_t *side) {
  const cleave_backend_t *backend = handle->backend;
  cleave_message_t message = {.text = ""};
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1};
  size_t workspace = 0;
  *side = (side_t){.run = is_single ? backend->imperative->execute : backend->run};
  if (is_single) {
    check_backend(
        backend->imperative->get_executor(handle->state, region, &options, &side->program, &message),
        &message);
  } else {
    check_backend(backend->compile(handle->state, region, &options, &side->program, &message), &message);
    workspace = backend->info(side->program)->workspace_bytes;
  }
  for (uint32_t k = 0; k < region->input_count; k++) {
    bind_tensor(handle, &region->values[region->inputs[k]].tensor, &side->inputs[k]);
  }
  bind_tensor(handle, &region->values[region->outputs[0]].tensor, &side->outputs[0]);
  side->args = (cleave_run_args_t){.size = sizeof side->args,
                                   .inputs = side->inputs,
                                   .outputs = side->outputs,
                                   .workspace = make_memory(handle, workspace)};
}

/* `op` of two tensors, or of one where it is Relu. */
static void bench_call(const char *name, const char *op, int64_t rows, int64_t columns) {
  const cleave_backend_handle_t *cpu = NULL;
  const cleave_backend_handle_t *mirror = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  check(cleave_registry_find(NULL, "cpu", &cpu, &error), &error);
  check(cleave_registry_find(NULL, "mirror", &mirror, &error), &error);
  view_builder_t *builder = view_builder_create();
  const int64_t dims[2] = {rows, columns};
  uint32_t values[3];
  for (size_t k = 0; k < 3; k++) {
    values[k] = view_builder_value(builder, CLEAVE_DTYPE_F32, 2, dims);
  }
  view_builder_node(builder, op, strcmp(op, "Relu") == 0 ? 1 : 2, values, 1, &values[2]);
  view_builder_output(builder, values[2]);
  const cleave_region_view_t *region = view_builder_region(builder);
  for (uint32_t is_single = 0; is_single < 2; is_single++) {
    static calls_t calls;
    make_side(cpu, region, false, &calls.sides[0]);
    make_side(mirror, region, is_single == 1, &calls.sides[1]);
    static pairs_t pairs;
    pairs.count = 0;
    measure(time_calls, &calls, CALL_ROUNDS, &pairs);
    result_t result = judge(&pairs);
    printf("  %-24s %-10s %9.1f %9.1f %9.1f\n", name, is_single == 1 ? "executor" : "region", result.first,
           result.second, result.difference);
    cpu->backend->unload(calls.sides[0].program);
    if (is_single == 1) {
      mirror->backend->imperative->release_executor(calls.sides[1].program);
    } else {
      mirror->backend->unload(calls.sides[1].program);
    }
  }
  view_builder_destroy(builder);
}

/* ---- a model ---- */

static double time_session(void *context, bool is_second) {
  cleave_session_t *session = ((cleave_session_t **)context)[is_second ? 1 : 0];
  cleave_error_t error = CLEAVE_ERROR_INIT;
  uint64_t start = cleave_clock_now();
  check(cleave_session_run(session, &error), &error);
  return (double)(cleave_clock_now() - start);
}

static cleave_plan_t *make_plan(cleave_model_t *model, const char *backend, bool in_pieces) {
  static const char WHOLE[] = "return ruleset { name = 'r', backend = '%s', region 'whole' {} }";
  static const char PIECES[] =
      "local function yes() return true end local function no() return false end\n"
      "return ruleset { name = 'r', backend = '%s', region 'piece' { selector = function()\n"
      "  return { select = yes, select_input = no, select_output = no } end } }";
  char text[512];
  int length = snprintf(text, sizeof text, in_pieces ? PIECES : WHOLE, backend);
  cleave_rule_source_t source = {.path = "overhead", .text = text, .length = (size_t)length};
  cleave_plan_t *plan = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  check(cleave_model_partition(
            model,
            &(cleave_partition_request_t){
                .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
            &plan, &error),
        &error);
  return plan;
}

static cleave_session_t *make_session(cleave_model_t *model, const cleave_plan_t *plan, bool imperative) {
  cleave_session_options_t options = {.size = sizeof options, .threads = 1, .imperative = imperative};
  const cleave_tensor_view_t *views[MAX_INPUTS] = {NULL};
  cleave_port_t ports[MAX_INPUTS];
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_session_t *session = NULL;
  uint32_t count = cleave_model_input_count(model);
  if (count > MAX_INPUTS) {
    fail("the model has too many inputs");
  }
  for (uint32_t k = 0; k < count; k++) {
    ports[k].size = sizeof ports[k];
    check(cleave_model_input(model, k, &ports[k], &error), &error);
    views[k] = &ports[k].tensor;
  }
  check(cleave_session_create(model, plan, views, count, &options, &session, &error), &error);
  for (uint32_t k = 0; k < count; k++) {
    cleave_tensor_view_t tensor = ports[k].tensor;
    size_t bytes = (size_t)cleave_view_element_count(&tensor) * cleave_dtype_size(tensor.dtype);
    tensor.data = calloc(bytes + 1, 1);
    if (tensor.data == NULL) {
      fail("no memory");
    }
    check(cleave_session_set_input(session, k, &tensor, &error), &error);
  }
  return session;
}

/* Sessions are made anew a few times: where their memory happens to lie makes a difference of some per cent.
 */
static void bench_model(cleave_model_t *model, const char *name, bool in_pieces, bool imperative,
                        size_t rounds) {
  static pairs_t pairs;
  cleave_plan_t *plans[2] = {make_plan(model, "cpu", in_pieces), make_plan(model, "mirror", in_pieces)};
  uint32_t pieces = cleave_plan_region_count(plans[1]);
  pairs.count = 0;
  for (size_t made = 0; made < SESSIONS; made++) {
    cleave_session_t *sessions[2];
    for (size_t k = 0; k < 2; k++) {
      sessions[(k + made) % 2] = make_session(model, plans[(k + made) % 2], imperative);
    }
    measure(time_session, sessions, rounds, &pairs);
    cleave_session_destroy(sessions[0]);
    cleave_session_destroy(sessions[1]);
  }
  result_t result = judge(&pairs);
  printf("  %-24s %6u %9.3f %9.3f  %+7.2f %% %9.2f\n", name, (unsigned)pieces, result.first / 1e6,
         result.second / 1e6, 100.0 * (result.ratio - 1.0), result.difference / 1e3 / (double)pieces);
  cleave_plan_destroy(plans[0]);
  cleave_plan_destroy(plans[1]);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : CLEAVE_SOURCE_DIR "/examples/models/resnet50.lua";
  size_t rounds = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 9;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_model_t *model = NULL;
  if (rounds < 1 || rounds > MAX_ROUNDS / SESSIONS) {
    fail("usage: bench_overhead [MODEL [ROUNDS]], at most 143 rounds");
  }
  check(cleave_backend_load(NULL, CLEAVE_BINARY_DIR "/accelerators/libmirror.so", NULL, &error), &error);
  printf("calls, in nanoseconds: medians of %d rounds of %d calls each, by turns\n", CALL_ROUNDS, CALLS);
  printf("  %-24s %-10s %9s %9s %9s\n", "operator", "as", "cpu", "mirror", "more");
  bench_call("Relu 4x4", "Relu", 4, 4);
  bench_call("Add 4x4", "Add", 4, 4);
  bench_call("MatMul 32x32", "MatMul", 32, 32);
  bench_call("Add 64x1024", "Add", 64, 1024);
  printf("\n%s, in milliseconds: medians of %zu rounds, by turns, over %d sessions\n", path,
         rounds * SESSIONS, SESSIONS);
  printf("  %-24s %6s %9s %9s  %9s %9s\n", "as", "pieces", "cpu", "mirror", "more", "us each");
  check(cleave_model_load(NULL, path, NULL, &model, &error), &error);
  bench_model(model, "one region", false, false, rounds);
  bench_model(model, "regions of one node", true, false, rounds);
  bench_model(model, "single operators", true, true, rounds);
  cleave_model_release(model);
  return 0;
}
