// SPDX-License-Identifier: Apache-2.0
// Training through cleave/train.h: updates against the same arithmetic by hand, norms, dropout, evaluation,
// checkpoints to the bit, samples that do not fit.
#include <math.h>

#include "train_case.h"
#include "unit.h"

/* y = x w, trained by mean((y - t)^2) in float64: the gradient of w is 2 / n x'(y - t). */
static const char linear[] =
    "local x = g.input('x', 'float64', { 'N', 2 })\n"
    "local w = g.constant({ { 0.5 }, { -1 } }, 'float64', 'w')\n"
    "g.output('y', g.MatMul(x, w))\n";

enum { ROWS = 4, STEPS = 5 };
static const double inputs[ROWS * 2] = {1, 2, -1, 0.5, 3, 1, 0, -2};
static const double targets[ROWS] = {1, -2, 0.5, 3};

static cleave_samples_t *linear_samples(void) {
  const train_case_array_t arrays[] = {
      {.name = "x", .dtype = CLEAVE_DTYPE_F64, .rank = 2, .dims = {ROWS, 2}, .numbers = inputs},
      {.name = "targets", .dtype = CLEAVE_DTYPE_F64, .rank = 2, .dims = {ROWS, 1}, .numbers = targets}};
  return train_case_samples("linear.npz", arrays, 2);
}

/* One update by hand. */
static void update(const cleave_train_options_t *o, int step, double rate, double w[2], double m[2],
                   double v[2]) {
  double d[2] = {0, 0};
  for (int r = 0; r < ROWS; r++) {
    double difference = inputs[2 * r] * w[0] + inputs[2 * r + 1] * w[1] - targets[r];
    d[0] += 2.0 / ROWS * difference * inputs[2 * r];
    d[1] += 2.0 / ROWS * difference * inputs[2 * r + 1];
  }
  double norm = sqrt(d[0] * d[0] + d[1] * d[1]);
  double cut = o->clip > 0.0 ? fmin(1.0, o->clip / (norm + 1e-6)) : 1.0;
  for (int k = 0; k < 2; k++) {
    bool is_adam = o->optimizer >= CLEAVE_OPTIMIZER_ADAM;
    double g = d[k] * cut + (o->optimizer == CLEAVE_OPTIMIZER_ADAMW ? 0.0 : o->weight_decay * w[k]);
    if (o->optimizer == CLEAVE_OPTIMIZER_ADAMW) {
      w[k] -= rate * o->weight_decay * w[k];
    }
    if (is_adam) {
      m[k] = o->beta1 * m[k] + (1 - o->beta1) * g;
      v[k] = o->beta2 * v[k] + (1 - o->beta2) * g * g;
      w[k] -= rate * (m[k] / (1 - pow(o->beta1, step + 1))) /
              (sqrt(v[k] / (1 - pow(o->beta2, step + 1))) + o->epsilon);
    } else if (o->optimizer == CLEAVE_OPTIMIZER_MOMENTUM) {
      m[k] = o->momentum * m[k] + g;
      w[k] -= rate * (o->nesterov ? g + o->momentum * m[k] : m[k]);
    } else {
      w[k] -= rate * g;
    }
  }
}

static void check_linear(const cleave_train_options_t *options) {
  cleave_model_t *model = train_case_model(linear);
  cleave_samples_t *samples = linear_samples();
  cleave_trainer_t *trainer = train_case_start(model, samples, options);
  double w[2] = {0.5, -1};
  double m[2] = {0, 0};
  double v[2] = {0, 0};
  for (int k = 0; k < STEPS; k++) {
    cleave_train_step_t step = {.size = sizeof step};
    unit_ok(cleave_trainer_step(trainer, &step, e));
    update(options, k, step.rate, w, m, v);
    for (int i = 0; i < 2; i++) {
      double found = train_case_constant(trainer, "w", i);
      ck_assert_msg(fabs(found - w[i]) <= 1e-13, "step %d, weight %d: %.17g, expected %.17g", k, i, found,
                    w[i]);
    }
  }
  cleave_train_step_t beyond = {.size = sizeof beyond};
  unit_fails(cleave_trainer_step(trainer, &beyond, e), CLEAVE_ERROR_INVALID_ARGUMENT, "all 5 steps done");
  cleave_train_step_t unsized = {0};
  unit_fails_with(cleave_trainer_history(trainer, 0, &unsized, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "cleave_train_step_t: expected a size of at least");
  uint32_t parts = cleave_trainer_part_count(trainer);
  ck_assert_ptr_nonnull(cleave_trainer_part_plan(trainer, parts - 1));
  ck_assert_ptr_null(cleave_trainer_part_plan(trainer, parts));
  ck_assert_ptr_null(cleave_trainer_part_model(trainer, parts));
  ck_assert_ptr_null(cleave_trainer_part_session(trainer, parts));
  cleave_trainer_destroy(trainer);
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

static cleave_train_options_t linear_options(cleave_optimizer_t optimizer) {
  cleave_train_options_t options = {.size = sizeof options};
  cleave_train_defaults(&options);
  options.loss = "mse";
  options.optimizer = optimizer;
  options.rate = 0.1;
  options.batch = ROWS;
  options.epochs = STEPS;
  return options;
}

UNIT_TEST(updates_are_those_of_the_formulas) {
  for (int optimizer = 0; optimizer <= CLEAVE_OPTIMIZER_ADAMW; optimizer++) {
    cleave_train_options_t options = linear_options((cleave_optimizer_t)optimizer);
    check_linear(&options);
    options.weight_decay = 0.25;
    check_linear(&options);
    options.clip = 0.5;
    options.nesterov = true;
    options.schedule = CLEAVE_SCHEDULE_COSINE;
    options.warmup = 2;
    check_linear(&options);
  }
}

UNIT_TEST(rates_follow_the_schedules) {
  cleave_model_t *model = train_case_model(linear);
  cleave_samples_t *samples = linear_samples();
  static const double expected[3][STEPS] = {
      {0.05, 0.1, 0.1, 0.1, 0.1},
      {0.05, 0.1, 0.05, 0.05, 0.025},
      {0.05, 0.1, 0.1, 0.01 + 0.09 * 0.75, 0.01 + 0.09 * 0.25},
  };
  for (int schedule = 0; schedule <= CLEAVE_SCHEDULE_COSINE; schedule++) {
    cleave_train_options_t options = linear_options(CLEAVE_OPTIMIZER_SGD);
    options.schedule = (cleave_schedule_t)schedule;
    options.warmup = 2;
    options.step_epochs = 2;
    options.step_factor = 0.5;
    options.final_rate = 0.01;
    cleave_trainer_t *trainer = train_case_start(model, samples, &options);
    for (int k = 0; k < STEPS; k++) {
      cleave_train_step_t step = {.size = sizeof step};
      cleave_train_step_t again = {.size = sizeof again};
      unit_ok(cleave_trainer_step(trainer, &step, e));
      ck_assert_msg(fabs(step.rate - expected[schedule][k]) < 1e-15, "schedule %d, step %d: %g", schedule, k,
                    step.rate);
      ck_assert_int_eq(step.epoch, k + 1);
      ck_assert(step.ends_epoch);
      unit_ok(cleave_trainer_history(trainer, k, &again, e));
      ck_assert(again.loss == step.loss && again.rate == step.rate && again.step == step.step);
    }
    cleave_trainer_destroy(trainer);
  }
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

// ---- a network with all that training changes ----

static const char network[] =
    "local x = g.input('x', 'float32', { 'N', 3, 4, 4 })\n"
    "local y = g.Conv(x, g.weight { 5, 3, 3, 3, name = 'conv.weight' }, { pads = { 1, 1, 1, 1 } })\n"
    "local function vector(name, value) return g.fill { 5, value = value, name = name } end\n"
    "y = g.BatchNormalization(y, vector('scale', 1), vector('bias', 0), vector('mean', 0), vector('var', "
    "1),\n"
    "  { momentum = 0.75 })\n"
    "y = g.Dropout(g.Relu(y), 0.25)\n"
    "y = g.Flatten(g.GlobalAveragePool(y))\n"
    "g.output('scores', g.Softmax(g.MatMul(y, g.weight { 5, 4, name = 'linear' })))\n";

enum { SAMPLES = 50, NETWORK_STEPS = 24 };

static cleave_samples_t *network_samples(void) {
  const train_case_array_t arrays[] = {
      {.name = "x", .dtype = CLEAVE_DTYPE_F32, .rank = 4, .dims = {SAMPLES, 3, 4, 4}, .low = -1, .high = 1},
      {.name = "labels", .dtype = CLEAVE_DTYPE_I32, .rank = 1, .dims = {SAMPLES}, .low = 0, .high = 4}};
  return train_case_samples("network.npz", arrays, 2);
}

static cleave_train_options_t network_options(void) {
  cleave_train_options_t options = {.size = sizeof options};
  cleave_train_defaults(&options);
  options.loss = "cross_entropy";
  options.optimizer = CLEAVE_OPTIMIZER_ADAM;
  options.rate = 0.01;
  options.batch = 8;
  options.epochs = 4;
  options.seed = 3;
  return options;
}

UNIT_TEST(a_resumed_run_is_the_uninterrupted_one_to_the_bit) {
  const char *path = train_case_path("checkpoint.npz");
  double whole[NETWORK_STEPS];
  double parts[NETWORK_STEPS];
  cleave_model_t *model = train_case_model(network);
  cleave_samples_t *samples = network_samples();
  cleave_train_options_t options = network_options();
  cleave_trainer_t *trainer = train_case_start(model, samples, &options);
  ck_assert_int_eq(cleave_trainer_step_count(trainer), NETWORK_STEPS);
  train_case_steps(trainer, NETWORK_STEPS, whole);
  ck_assert(whole[0] != whole[1] && whole[NETWORK_STEPS - 1] < whole[0]);
  double weight = train_case_constant(trainer, "conv.weight", 0);
  cleave_trainer_destroy(trainer);

  trainer = train_case_start(model, samples, &options);
  train_case_steps(trainer, 9, parts);
  unit_ok(cleave_trainer_save(trainer, path, e));
  cleave_trainer_destroy(trainer);
  trainer = train_case_start(model, samples, &options);
  double other[3];
  train_case_steps(trainer, 3, other); /* which resuming forgets */
  unit_ok(cleave_trainer_resume(trainer, path, e));
  ck_assert_int_eq(cleave_trainer_steps_done(trainer), 9);
  train_case_steps(trainer, NETWORK_STEPS - 9, parts + 9);
  ck_assert_mem_eq(parts, whole, sizeof whole);
  ck_assert(train_case_constant(trainer, "conv.weight", 0) == weight);
  ck_assert_int_eq(remove(path), 0);
  cleave_trainer_destroy(trainer);
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

UNIT_TEST(a_checkpoint_of_another_run_or_a_broken_one_changes_nothing) {
  const char *path = train_case_path("other.npz");
  double losses[NETWORK_STEPS];
  cleave_model_t *model = train_case_model(network);
  cleave_samples_t *samples = network_samples();
  cleave_train_options_t options = network_options();
  cleave_trainer_t *trainer = train_case_start(model, samples, &options);
  train_case_steps(trainer, 2, losses);
  unit_ok(cleave_trainer_save(trainer, path, e));
  cleave_train_options_t others[3] = {options, options, options};
  others[0].rate = 0.02;
  others[1].seed = 4;
  others[2].batch = 10;
  for (int k = 0; k < 3; k++) {
    static const char *const messages[3] = {
        "the checkpoint is of another run: its rate is 0.01, expected 0.02",
        "the checkpoint is of another run: its seed is 3, expected 4",
        "the checkpoint is of another run: its batch is 8, expected 10"};
    cleave_trainer_t *other = train_case_start(model, samples, &others[k]);
    unit_fails_with(cleave_trainer_resume(other, path, e), CLEAVE_ERROR_INVALID_ARGUMENT, messages[k]);
    ck_assert_int_eq(cleave_trainer_steps_done(other), 0);
    cleave_trainer_destroy(other);
  }
  char content[65536];
  FILE *file = fopen(path, "rb");
  size_t size = fread(content, 1, sizeof content, file);
  ck_assert_int_eq(fclose(file), 0);
  ck_assert(size > 1000 && size < sizeof content);
  double weight = train_case_constant(trainer, "conv.weight", 0);
  for (size_t cut = 0; cut < size; cut += size / 97 + 1) {
    for (int mode = 0; mode < 2; mode++) { /* cut off, or one bit turned over */
      file = fopen(path, "wb");
      content[cut] ^= mode == 1 ? 4 : 0;
      ck_assert_uint_eq(fwrite(content, 1, mode == 0 ? cut : size, file), mode == 0 ? cut : size);
      content[cut] ^= mode == 1 ? 4 : 0;
      ck_assert_int_eq(fclose(file), 0);
      cleave_error_t error = CLEAVE_ERROR_INIT;
      cleave_status_t status = cleave_trainer_resume(trainer, path, &error);
      ck_assert_msg(mode == 1 || status != CLEAVE_OK, "cut at %zu", cut);
      ck_assert(train_case_constant(trainer, "conv.weight", 0) == weight);
    }
  }
  ck_assert_int_eq(remove(path), 0);
  cleave_trainer_destroy(trainer);
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

/* Runs the exported model, without its Softmax's help: element `index` of its scores on the first sample. */
static double run_exported(const cleave_trainer_t *trainer, const cleave_tensor_t *x, int64_t index) {
  const char *path = train_case_path("out.onnx");
  cleave_model_t *model = NULL;
  cleave_session_t *session = NULL;
  cleave_tensor_view_t scores;
  unit_ok(cleave_trainer_export(trainer, path, 0, e));
  unit_ok(cleave_model_load(NULL, path, NULL, &model, e));
  const int64_t dims[] = {SAMPLES, 3, 4, 4};
  const cleave_tensor_view_t view = {
      .size = sizeof view, .dtype = CLEAVE_DTYPE_F32, .rank = 4, .dims = dims, .data = x->data};
  const cleave_tensor_view_t *views = &view;
  unit_ok(cleave_session_create(model, NULL, &views, 1, NULL, &session, e));
  unit_ok(cleave_session_set_input(session, 0, &view, e));
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_output(session, 0, &scores, e));
  double found = (double)((const float *)scores.data)[index];
  cleave_session_destroy(session);
  cleave_model_release(model);
  ck_assert_int_eq(remove(path), 0);
  return found;
}

UNIT_TEST(running_statistics_follow_the_batch_and_go_into_the_model) {
  cleave_model_t *model = train_case_model(network);
  cleave_samples_t *samples = network_samples();
  cleave_train_options_t options = network_options();
  double losses[NETWORK_STEPS];
  options.batch = SAMPLES;
  options.rate = 0.0;
  options.epochs = 2;
  cleave_trainer_t *trainer = train_case_start(model, samples, &options);
  train_case_steps(trainer, 1, losses);
  double mean = train_case_constant(trainer, "mean", 2) / 0.25; /* of the batch: 0 x 0.75 + mean x 0.25 */
  double var = (train_case_constant(trainer, "var", 2) - 0.75) / 0.25;
  ck_assert(mean != 0.0 && var > 0.0);
  train_case_steps(trainer, 1, losses);
  ck_assert_double_eq_tol(train_case_constant(trainer, "mean", 2), mean * (0.25 + 0.75 * 0.25), 1e-6);
  ck_assert_double_eq_tol(train_case_constant(trainer, "var", 2), 0.75 * (0.75 + 0.25 * var) + 0.25 * var,
                          1e-6);
  cleave_trainer_destroy(trainer);

  options.freeze_norms = true;
  options.rate = 0.1;
  trainer = train_case_start(model, samples, &options);
  train_case_steps(trainer, 2, losses);
  ck_assert(train_case_constant(trainer, "mean", 2) == 0.0 && train_case_constant(trainer, "var", 2) == 1.0);
  ck_assert(train_case_constant(trainer, "scale", 2) != 1.0);
  cleave_trainer_destroy(trainer);
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

UNIT_TEST(evaluation_is_that_of_the_exported_model) {
  const char *path = train_case_path("x.npz");
  const train_case_array_t arrays[] = {
      {.name = "x", .dtype = CLEAVE_DTYPE_F32, .rank = 4, .dims = {SAMPLES, 3, 4, 4}, .low = -1, .high = 1},
      {.name = "labels", .dtype = CLEAVE_DTYPE_I32, .rank = 1, .dims = {SAMPLES}, .low = 0, .high = 4}};
  cleave_npz_t npz = {0};
  double losses[NETWORK_STEPS];
  train_case_write(path, arrays, 2);
  unit_ok(cleave_npz_read(path, true, &npz, e));
  ck_assert_int_eq(remove(path), 0);
  cleave_model_t *model = train_case_model(network);
  cleave_samples_t *samples = network_samples();
  cleave_train_options_t options = network_options();
  cleave_trainer_t *trainer = train_case_start(model, samples, &options);
  train_case_steps(trainer, NETWORK_STEPS, losses);
  cleave_evaluation_t evaluation = {.size = sizeof evaluation};
  unit_ok(cleave_trainer_evaluate(trainer, samples, &evaluation, e));
  double sum = 0.0;
  int right = 0;
  for (int k = 0; k < SAMPLES; k++) {
    double scores[4];
    int best = 0;
    int64_t label = cleave_tensor_get_int(cleave_npz_find(&npz, "labels"), k);
    for (int c = 0; c < 4; c++) {
      scores[c] = run_exported(trainer, cleave_npz_find(&npz, "x"), 4 * k + c);
      best = scores[c] > scores[best] ? c : best;
    }
    sum -= log(scores[label]);
    right += best == label ? 1 : 0;
  }
  ck_assert_int_eq(evaluation.samples, SAMPLES); /* six minibatches of eight, and two more */
  ck_assert_double_eq_tol(evaluation.loss, sum / SAMPLES, 1e-5);
  ck_assert(evaluation.has_accuracy);
  ck_assert_double_eq_tol(evaluation.accuracy, (double)right / SAMPLES, 1e-12);
  cleave_npz_deinit(&npz);
  cleave_trainer_destroy(trainer);
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

UNIT_TEST(only_the_weights_that_are_named_change) {
  static const char *const names[] = {"lin*"};
  static const char *const wrong[] = {"liner"};
  cleave_model_t *model = train_case_model(network);
  cleave_samples_t *samples = network_samples();
  cleave_train_options_t options = network_options();
  cleave_trainer_t *trainer = NULL;
  double losses[2];
  options.weights = names;
  options.weight_count = 1;
  options.no_dropout = true;
  trainer = train_case_start(model, samples, &options);
  double linear_before = train_case_constant(trainer, "linear", 0);
  double conv_before = train_case_constant(trainer, "conv.weight", 0);
  train_case_steps(trainer, 2, losses);
  ck_assert(train_case_constant(trainer, "linear", 0) != linear_before);
  ck_assert(train_case_constant(trainer, "conv.weight", 0) == conv_before);
  cleave_trainer_destroy(trainer);
  options.weights = wrong;
  unit_fails(cleave_trainer_create(model, samples, &options, &trainer, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "weights 'liner': no floating-point constant has this name");
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

// ---- what does not fit ----

static void expect_misfit(cleave_model_t *model, const train_case_array_t *arrays, size_t count,
                          cleave_status_t status, const char *part) {
  cleave_samples_t *samples = train_case_samples("misfit.npz", arrays, count);
  cleave_train_options_t options = network_options();
  cleave_trainer_t *trainer = NULL;
  unit_fails_with(cleave_trainer_create(model, samples, &options, &trainer, e), status, part);
  ck_assert_ptr_null(trainer);
  cleave_samples_destroy(samples);
}

UNIT_TEST(arrays_that_do_not_fit_are_named) {
  cleave_model_t *model = train_case_model(network);
  const train_case_array_t x = {
      .name = "x", .dtype = CLEAVE_DTYPE_F32, .rank = 4, .dims = {10, 3, 4, 4}, .high = 1};
  const train_case_array_t labels = {
      .name = "labels", .dtype = CLEAVE_DTYPE_I64, .rank = 1, .dims = {10}, .high = 4};
  train_case_array_t arrays[2] = {x, labels};
  expect_misfit(model, arrays, 1, CLEAVE_ERROR_INVALID_ARGUMENT,
                "the loss's array 'labels': expected an array of this name, found 'x' float32[10, 3, 4, 4]");
  arrays[0].dims[1] = 2;
  expect_misfit(model, arrays, 2, CLEAVE_ERROR_SHAPE,
                "input 'x' is float32[?, 3, 4, 4], and the array 'x' is float32[10, 2, 4, 4]");
  arrays[0] = x;
  arrays[1].high = 6;
  expect_misfit(model, arrays, 2, CLEAVE_ERROR_INVALID_ARGUMENT, "expected a class from 0 to 3");
  arrays[1] = labels;
  arrays[1].dtype = CLEAVE_DTYPE_F32;
  expect_misfit(model, arrays, 2, CLEAVE_ERROR_SHAPE, "array 'labels' is float32[8] in a minibatch");
  arrays[1] = labels;
  arrays[1].rank = 2;
  arrays[1].dims[1] = 3;
  expect_misfit(model, arrays, 2, CLEAVE_ERROR_SHAPE, "array 'labels' is int64[8, 3] in a minibatch");
  arrays[0].dims[0] = arrays[1].dims[0] = 5;
  arrays[1].rank = 1;
  expect_misfit(model, arrays, 2, CLEAVE_ERROR_INVALID_ARGUMENT, "5 samples cannot fill one minibatch of 8");
  cleave_model_release(model);
}

UNIT_TEST(options_out_of_range_are_named) {
  cleave_model_t *model = train_case_model(linear);
  cleave_samples_t *samples = linear_samples();
  cleave_trainer_t *trainer = NULL;
  cleave_train_options_t options = linear_options(CLEAVE_OPTIMIZER_SGD);
  options.momentum = 1.0;
  unit_fails(cleave_trainer_create(model, samples, &options, &trainer, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "momentum: expected a number from 0 to less than 1, found 1");
  options.momentum = 0.9;
  options.rate = NAN;
  unit_fails_with(cleave_trainer_create(model, samples, &options, &trainer, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "rate: expected a number");
  options.rate = 0.1;
  options.loss = "loos";
  unit_fails_with(cleave_trainer_create(model, samples, &options, &trainer, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "loss 'loos': the model has no value of this name");
  options.loss = "y";
  unit_fails_with(cleave_trainer_create(model, samples, &options, &trainer, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "loss 'y': expected one number, found a value of shape [4, 1]");
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

UNIT_TEST(memory_that_runs_out_is_an_error) {
  cleave_model_t *model = train_case_model(linear);
  cleave_samples_t *samples = linear_samples();
  cleave_train_options_t options = linear_options(CLEAVE_OPTIMIZER_MOMENTUM);
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  int64_t count = 0;
  for (int64_t k = 0; status != CLEAVE_OK; k += 1 + k / 60) {
    cleave_trainer_t *trainer = NULL;
    (void)cleave_memory_fail_after(k);
    status = cleave_trainer_create(model, samples, &options, &trainer, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY, "allocation %lld: status %d",
                  (long long)k, (int)status);
    ck_assert((status == CLEAVE_OK) == (trainer != NULL));
    cleave_trainer_destroy(trainer);
    count++;
  }
  ck_assert_int_gt(count, 100);
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

UNIT_SUITE("train")
