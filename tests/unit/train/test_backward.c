// SPDX-License-Identifier: Apache-2.0
// Gradients of regions by their backends: `cpu` gets a `backward` of the test's own. Its gradients are used,
// a refusal falls back to gradient rules, and answers that do not fit are errors, not crashes.
#include <math.h>

#include "backend/registry/registry.h"
#include "train_case.h"
#include "unit.h"

#define NEW_NODE(...) (&(cleave_new_node_t){.size = sizeof(cleave_new_node_t), __VA_ARGS__})

static const char model_text[] =
    "local x = g.input('x', 'float32', { 'N', 4 })\n"
    "local y = g.MatMul(x, g.weight { 4, 3, name = 'w' })\n"
    "y = g.Tanh(g.Neg(g.Add(y, g.zeros { 3, name = 'b' })))\n"
    "g.output('y', g.MatMul(y, g.weight { 3, 1, name = 'v' }))\n";
static const char rules_text[] =
    "return ruleset { name = 'r', backend = 'cpu', region 'inner' { ops = { 'Neg', 'Tanh' } } }";

enum { SAMPLES = 12, STEPS = 6 };
typedef enum answer { REAL, REFUSAL, NOTHING, NO_VALUE, ANOTHER_SHAPE, FAILURE } answer_t;
static answer_t answer;
static int asked;

static cleave_status_t say(cleave_message_t *reason, cleave_status_t status, const char *text) {
  (void)snprintf(reason->text, sizeof reason->text, "%s", text);
  return status;
}

/* Of y = tanh(-x): -(1 - y y) dy. */
static cleave_status_t grow(const cleave_backward_request_t *request, uint32_t *out_dx,
                            cleave_message_t *reason) {
  const cleave_graph_editor_t *g = request->editor;
  uint32_t y = request->values[request->forward->outputs[0]];
  uint32_t dy = request->gradients[0];
  uint32_t value = 0;
  const uint32_t square[2] = {y, y};
  CLEAVE_TRY(g->add_node(g->graph,
                         NEW_NODE(.op = "Mul", .inputs = square, .input_count = 2, .output_count = 1), &value,
                         reason));
  const uint32_t part[2] = {value, dy};
  CLEAVE_TRY(g->add_node(g->graph, NEW_NODE(.op = "Mul", .inputs = part, .input_count = 2, .output_count = 1),
                         &value, reason));
  const uint32_t rest[2] = {value, dy};
  return g->add_node(g->graph, NEW_NODE(.op = "Sub", .inputs = rest, .input_count = 2, .output_count = 1),
                     out_dx, reason);
}

static cleave_status_t backward(void *state, const cleave_backward_request_t *request,
                                cleave_message_t *reason) {
  const cleave_region_view_t *region = request->forward;
  const cleave_graph_editor_t *g = request->editor;
  uint32_t x = region->inputs[0];
  (void)state;
  asked++;
  ck_assert_uint_eq(region->node_count, 2);
  ck_assert_uint_eq(region->input_count, 1);
  ck_assert_uint_eq(region->output_count, 1);
  ck_assert(request->wanted[x] && !request->wanted[region->outputs[0]]);
  ck_assert(request->gradients[0] != CLEAVE_INDEX_NONE && request->results[x] == CLEAVE_INDEX_NONE);
  ck_assert(g->view == NULL && g->set_input == NULL && g->replace_uses == NULL && g->remove_node == NULL);
  switch (answer) {
    case REFUSAL: {
      uint32_t dropped = 0;
      CLEAVE_TRY(grow(request, &dropped, reason));
      return say(reason, CLEAVE_ERROR_UNSUPPORTED, "not on a Tuesday");
    }
    case FAILURE: return say(reason, CLEAVE_ERROR_BACKEND, "the device is gone");
    case NO_VALUE: request->results[x] = 1u << 30; return CLEAVE_OK;
    case ANOTHER_SHAPE:
      return g->add_node(
          g->graph,
          NEW_NODE(.op = "Shape", .inputs = &request->gradients[0], .input_count = 1, .output_count = 1),
          &request->results[x], reason);
    case REAL: return grow(request, &request->results[x], reason);
    case NOTHING: break;
  }
  return CLEAVE_OK;
}

static cleave_samples_t *make_samples(void) {
  const train_case_array_t arrays[] = {
      {.name = "x", .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = {SAMPLES, 4}, .low = -1, .high = 1},
      {.name = "targets", .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = {SAMPLES, 1}, .low = -1, .high = 1}};
  return train_case_samples("backward.npz", arrays, 2);
}

/* Trains with this answer; NULL as losses: making the trainer fails with `status` and this message. */
static void train(answer_t wanted, double *losses, cleave_status_t status, const char *text) {
  const cleave_rule_source_t source = {.path = "r.lua", .text = rules_text, .length = sizeof rules_text - 1};
  const cleave_partition_request_t request = {.size = sizeof request, .sources = &source, .source_count = 1};
  cleave_model_t *model = train_case_model(model_text);
  cleave_samples_t *samples = make_samples();
  cleave_trainer_t *trainer = NULL;
  cleave_train_options_t options = {.size = sizeof options};
  cleave_train_defaults(&options);
  options.loss = "mse";
  options.rate = 0.1;
  options.batch = 6;
  options.epochs = STEPS / 2;
  options.rules = &request;
  answer = wanted;
  asked = 0;
  if (losses == NULL) {
    unit_fails_with(cleave_trainer_create(model, samples, &options, &trainer, e), status, text);
  } else {
    trainer = train_case_start(model, samples, &options);
    cleave_train_backward_report_t report = {.size = sizeof report};
    cleave_trainer_backward(trainer, &report);
    ck_assert_str_eq(report.reason == NULL ? "" : report.reason, text);
    ck_assert_uint_eq(report.by_backends, wanted == REAL && asked > 0 ? 1 : 0);
    train_case_steps(trainer, STEPS, losses);
  }
  cleave_trainer_destroy(trainer);
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

UNIT_TEST(backends_make_the_gradients_of_their_regions_or_say_why_not) {
  double plain[STEPS];
  double by_backend[STEPS];
  double refused[STEPS];
  const cleave_backend_handle_t *cpu = NULL;
  unit_ok(cleave_registry_find(NULL, "cpu", &cpu, e));
  train(REAL, plain, CLEAVE_OK, "cpu: it has no gradients of its own");
  ck_assert_int_eq(asked, 0);
  cleave_backend_t *table = (cleave_backend_t *)(uintptr_t)cpu->backend; /* a copy that the registry has */
  table->backward = backward;
  train(REAL, by_backend, CLEAVE_OK, "");
  ck_assert_int_eq(asked, 1);
  train(REFUSAL, refused, CLEAVE_OK, "inner_0: cpu: not on a Tuesday");
  ck_assert_int_eq(asked, 1);
  ck_assert_mem_eq(refused, plain, sizeof plain);
  ck_assert(plain[STEPS - 1] < plain[0]);
  for (int k = 0; k < STEPS; k++) {
    ck_assert_double_eq_tol(by_backend[k], plain[k], 1e-5);
  }
  train(NOTHING, NULL, CLEAVE_ERROR_BACKEND, "inner_0: cpu: the gradient of ");
  train(NO_VALUE, NULL, CLEAVE_ERROR_BACKEND, "is missing, or no value");
  train(ANOTHER_SHAPE, NULL, CLEAVE_ERROR_BACKEND, "grad(region 0): the gradient of ");
  train(FAILURE, NULL, CLEAVE_ERROR_BACKEND,
        "backend 'cpu': 'backward' of region 'inner_0': the device is gone");
  table->backward = NULL;
}

UNIT_SUITE("backward")
