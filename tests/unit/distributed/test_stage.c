// SPDX-License-Identifier: Apache-2.0
/* Stages of a plan and requests through them (distributed/stage.h), each stage in a thread of its own: the
 * bits of one process, in any number of stages and of requests at once; what does not fit fails in all. */
#include "distributed/stage.h"
#include "thread_ranks.h"
#include "train_case.h"
#include "unit.h"

/* A chain with a value that skips a stage, an input that is read late, and an output that is made early. */
static const char *const script =
    "local x = g.input('x', 'float32', { 'N', 6 })\n"
    "local late = g.input('late', 'float32', { 'N', 6 })\n"
    "local a = g.Relu(g.MatMul(x, g.weight { 6, 6, name = 'w0' }))\n"
    "g.output('early', g.ReduceSum(a, g.constant { 1 }))\n"
    "local b = g.Tanh(g.MatMul(a, g.weight { 6, 6, name = 'w1' }))\n"
    "local c = g.Sin(g.MatMul(b, g.weight { 6, 6, name = 'w2' }) + a)\n"
    "g.output('y', g.MatMul(c, g.weight { 6, 6, name = 'w3' }) + late)\n";

enum { ROWS = 3, NUMBERS = ROWS * 6 };

typedef struct pipeline {
  cleave_model_t *model;
  cleave_plan_t *plans[THREAD_RANKS_MAX]; /* by process */
  int32_t count;
  int64_t requests;
  int64_t concurrency;
  float x[NUMBERS];
  float late[NUMBERS];
  float y[NUMBERS]; /* by one process */
  float early[ROWS];
  cleave_error_t errors[THREAD_RANKS_MAX];
} pipeline_t;

/* Stage k begins with the product of the weight of this number. */
static cleave_plan_t *plan_of(cleave_model_t *model, const char *starts) {
  char text[700];
  cleave_plan_t *plan = NULL;
  (void)snprintf(
      text, sizeof text,
      "local starts = { %s }\n"
      "return ruleset { name = 'cut', stage 'cut' { of = function(node)\n"
      "  for i = 1, #node.inputs do\n"
      "    local input = node.inputs[i]\n"
      "    if input and input.is_constant and starts[input.name] then return starts[input.name] end\n"
      "  end\n"
      "  return false\n"
      "end } }\n",
      starts);
  const cleave_rule_source_t source = {.path = "cut.lua", .text = text, .length = strlen(text)};
  const cleave_partition_request_t request = {.size = sizeof request, .sources = &source, .source_count = 1};
  unit_ok(cleave_model_partition(model, &request, &plan, e));
  return plan;
}

static void views_of(pipeline_t *pipeline, cleave_tensor_view_t *views, const int64_t *dims) {
  float *const data[] = {pipeline->x, pipeline->late};
  for (int k = 0; k < 2; k++) {
    views[k] = (cleave_tensor_view_t){
        .size = sizeof views[k], .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = dims, .data = data[k]};
  }
}

static void run_alone(pipeline_t *pipeline) {
  cleave_session_t *session = NULL;
  cleave_tensor_view_t views[2];
  const cleave_tensor_view_t *const pointers[] = {&views[0], &views[1]};
  const cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  const int64_t dims[] = {ROWS, 6};
  views_of(pipeline, views, dims);
  unit_ok(cleave_session_create(pipeline->model, NULL, pointers, 2, &options, &session, e));
  for (uint32_t k = 0; k < 2; k++) {
    unit_ok(cleave_session_set_input(session, k, &views[k], e));
  }
  unit_ok(cleave_session_run(session, e));
  for (uint32_t k = 0; k < 2; k++) {
    cleave_tensor_view_t view;
    unit_ok(cleave_session_output(session, k, &view, e));
    memcpy(k == 0 ? (void *)pipeline->early : (void *)pipeline->y, view.data,
           k == 0 ? sizeof pipeline->early : sizeof pipeline->y);
  }
  cleave_session_destroy(session);
}

static void start(pipeline_t *pipeline, int32_t count, const char *starts) {
  *pipeline = (pipeline_t){.count = count, .requests = 1, .concurrency = 1};
  pipeline->model = train_case_model(script);
  for (int k = 0; k < NUMBERS; k++) {
    pipeline->x[k] = (float)(k % 7) * 0.25F - 0.5F;
    pipeline->late[k] = (float)(k % 5) - 2;
  }
  run_alone(pipeline);
  for (int32_t k = 0; k < count; k++) {
    pipeline->plans[k] = plan_of(pipeline->model, starts);
  }
}

static void stop(pipeline_t *pipeline) {
  for (int32_t k = 0; k < pipeline->count; k++) {
    cleave_plan_destroy(pipeline->plans[k]);
  }
  cleave_model_release(pipeline->model);
}

static cleave_status_t create(pipeline_t *pipeline, const cleave_communicator_t *communicator,
                              cleave_stage_t **out_stage, cleave_error_t *error) {
  cleave_tensor_view_t views[2];
  const cleave_tensor_view_t *const pointers[] = {&views[0], &views[1]};
  const int64_t dims[] = {ROWS, 6};
  views_of(pipeline, views, dims);
  const cleave_stage_source_t source = {.model = pipeline->model,
                                        .plan = pipeline->plans[communicator->rank],
                                        .inputs = pointers,
                                        .input_count = 2,
                                        .concurrency = pipeline->concurrency};
  return cleave_stage_create(communicator, &source, CLEAVE_OK, out_stage, error);
}

static void check_outputs(const pipeline_t *pipeline, const cleave_stage_t *stage,
                          const cleave_stage_load_t *load) {
  ck_assert_uint_eq(stage->output_count, 2);
  ck_assert_mem_eq(stage->outputs[0].data, pipeline->early, sizeof pipeline->early);
  ck_assert_mem_eq(stage->outputs[1].data, pipeline->y, sizeof pipeline->y);
  ck_assert_int_eq(load->count, pipeline->requests);
  for (int64_t r = 0; r < load->count; r++) {
    ck_assert_double_ge(load->times[r], 0);
  }
}

static void serve(const cleave_communicator_t *communicator, void *context) {
  pipeline_t *pipeline = context;
  cleave_stage_t *stage = NULL;
  cleave_session_t *session = NULL;
  const cleave_tensor_view_t *pointers[8];
  const cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  const int64_t dims[] = {ROWS, 6};
  cleave_tensor_view_t views[2];
  double times[64];
  cleave_stage_load_t load = {0};
  views_of(pipeline, views, dims);
  unit_ok(create(pipeline, communicator, &stage, e));
  ck_assert_uint_le(stage->input_count, 8);
  for (uint32_t k = 0; k < stage->input_count; k++) {
    pointers[k] = &stage->inputs[k];
  }
  unit_ok(
      cleave_session_create(stage->model, stage->plan, pointers, stage->input_count, &options, &session, e));
  for (uint32_t k = 0; k < stage->input_count; k++) {
    if (stage->model_inputs[k] != CLEAVE_INDEX_NONE) {
      unit_ok(cleave_session_set_input(session, k, &views[stage->model_inputs[k]], e));
    }
  }
  for (int round = 0; round < 2; round++) {
    if (communicator->rank == 0) { /* what the others say does not count */
      load = (cleave_stage_load_t){
          .count = pipeline->requests, .concurrency = pipeline->concurrency, .times = times};
    }
    unit_ok(cleave_stage_run(stage, session, &load, e));
    if (communicator->rank == 0) {
      check_outputs(pipeline, stage, &load);
    } else {
      ck_assert_uint_eq(stage->output_count, 0);
    }
  }
  cleave_session_destroy(session);
  cleave_stage_destroy(stage);
}

static const char *const two = "w0 = 0, w2 = 1";
static const char *const three = "w0 = 0, w1 = 1, w3 = 2";
static const char *const four = "w0 = 0, w1 = 1, w2 = 2, w3 = 3";

UNIT_TEST(requests_through_stages_have_the_bits_of_one_process) {
  const char *const cuts[] = {two, three, four};
  static const int64_t loads[][2] = {{1, 1}, {1, 4}, {2, 2}, {7, 1}, {7, 3}, {40, 8}};
  for (int32_t count = 2; count <= 4; count++) {
    static pipeline_t pipeline;
    start(&pipeline, count, cuts[count - 2]);
    for (size_t k = 0; k < sizeof loads / sizeof loads[0]; k++) {
      pipeline.requests = loads[k][0];
      pipeline.concurrency = loads[k][1];
      (void)thread_ranks_run(count, serve, &pipeline);
    }
    stop(&pipeline);
  }
}

static void look(const cleave_communicator_t *communicator, void *context) {
  cleave_stage_t *stage = NULL;
  unit_ok(create(context, communicator, &stage, e));
  static const size_t receives[] = {0, 1, 2}; /* a goes to stages 1 and 2 */
  ck_assert_uint_eq(stage->receives.list.count, communicator->rank == 3 ? 1 : receives[communicator->rank]);
  ck_assert_uint_eq(stage->sends.list.count, 1);
  if (communicator->rank == 0) {
    const cleave_stage_link_t *a = &stage->sends.list.items[0];
    ck_assert_uint_eq(a->bytes, NUMBERS * sizeof(float));
    ck_assert_uint_eq(a->target_count, 2); /* one value, sent twice */
    ck_assert_uint_eq(stage->results.list.count, 1);
    ck_assert_uint_ne(stage->own_outputs[0], CLEAVE_INDEX_NONE);
    ck_assert_uint_eq(stage->own_outputs[1], CLEAVE_INDEX_NONE);
  }
  cleave_stage_destroy(stage);
}

UNIT_TEST(what_later_stages_read_is_a_link) {
  static pipeline_t pipeline;
  start(&pipeline, 4, four);
  (void)thread_ranks_run(4, look, &pipeline);
  stop(&pipeline);
}

static void fail_to_create(const cleave_communicator_t *communicator, void *context) {
  pipeline_t *pipeline = context;
  cleave_stage_t *stage = NULL;
  cleave_error_t *error = &pipeline->errors[communicator->rank];
  cleave_error_clear(error);
  ck_assert_int_eq(create(pipeline, communicator, &stage, error), CLEAVE_ERROR_INVALID_ARGUMENT);
  ck_assert_ptr_null(stage);
}

UNIT_TEST(what_does_not_fit_fails_in_all) {
  static pipeline_t pipeline;
  start(&pipeline, 2, two);
  cleave_plan_destroy(pipeline.plans[1]);
  pipeline.plans[1] = plan_of(pipeline.model, "w0 = 0, w3 = 1");
  (void)thread_ranks_run(2, fail_to_create, &pipeline);
  for (int k = 0; k < 2; k++) {
    ck_assert_str_eq(
        pipeline.errors[k].message,
        "process 1 of 2: its plan differs from that of process 0: all need the same model, sizes, rules "
        "and settings");
  }
  stop(&pipeline);
  start(&pipeline, 3, two); /* a process too many */
  (void)thread_ranks_run(3, fail_to_create, &pipeline);
  for (int k = 0; k < 3; k++) {
    ck_assert_ptr_nonnull(
        strstr(pipeline.errors[k].message, "the plan has 2 stages, and there are 3 processes"));
  }
  stop(&pipeline);
}

UNIT_SUITE("stages")
