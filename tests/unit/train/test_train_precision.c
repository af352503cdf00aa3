// SPDX-License-Identifier: Apache-2.0
// Training in low precision: the scale of the loss changes no bit where nothing overflows, steps that
// overflow are skipped, checkpoints go on to the bit, and a region in bfloat16 is close to one in float32.
#include <math.h>

#include "train_case.h"
#include "unit.h"

/* y = x w, multiplied in float16: the master weight is float32. */
static const char half[] =
    "local x = g.input('x', 'float32', { 'N', 2 })\n"
    "local w = g.constant({ { 0.5 }, { -1 } }, 'float32', 'w')\n"
    "local y = g.MatMul(g.Cast(x, { to = 'float16' }), g.Cast(w, { to = 'float16' }))\n"
    "g.output('y', g.Cast(y, { to = 'float32' }))\n";
static const char single[] =
    "local x = g.input('x', 'float32', { 'N', 2 })\n"
    "local w = g.constant({ { 0.5 }, { -1 } }, 'float32', 'w')\n"
    "g.output('y', g.MatMul(x, w))\n";

static const char network[] =
    "local x = g.input('x', 'float32', { 'N', 16, 6, 6 })\n"
    "local function vector(name, value) return g.fill { 32, value = value, name = name } end\n"
    "local function block(y, name, from)\n"
    "  y = g.Conv(y, g.weight { 32, from, 3, 3, name = name }, { pads = { 1, 1, 1, 1 } })\n"
    "  y = g.BatchNormalization(y, vector(name .. '.scale', 1), vector(name .. '.bias', 0),\n"
    "    vector(name .. '.mean', 0), vector(name .. '.var', 1))\n"
    "  return g.Relu(y)\n"
    "end\n"
    "local y = block(block(x, 'first', 16), 'second', 32)\n"
    "y = g.Flatten(g.GlobalAveragePool(g.MaxPool(y, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })))\n"
    "y = g.Relu(g.MatMul(y, g.weight { 32, 64, name = 'hidden' }))\n"
    "g.output('scores', g.MatMul(y, g.weight { 64, 4, name = 'linear' }))\n";

enum { ROWS = 4, STEPS = 40, SAMPLES = 32, NETWORK_STEPS = 12 };
static const double inputs[ROWS * 2] = {1, 2, -1, 0.5, 3, 1, 0, -2};
static const double targets[ROWS] = {1, -2, 0.5, 3};

static cleave_samples_t *linear_samples(void) {
  const train_case_array_t arrays[] = {
      {.name = "x", .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = {ROWS, 2}, .numbers = inputs},
      {.name = "targets", .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = {ROWS, 1}, .numbers = targets}};
  return train_case_samples("half.npz", arrays, 2);
}

static cleave_samples_t *network_samples(void) {
  const train_case_array_t arrays[] = {
      {.name = "x", .dtype = CLEAVE_DTYPE_F32, .rank = 4, .dims = {SAMPLES, 16, 6, 6}, .low = -1, .high = 1},
      {.name = "labels", .dtype = CLEAVE_DTYPE_I64, .rank = 1, .dims = {SAMPLES}, .low = 0, .high = 4}};
  return train_case_samples("low.npz", arrays, 2);
}

/* The scale is so large that the first gradients overflow float16, and doubles after three good steps. */
static cleave_train_options_t half_options(void) {
  cleave_train_options_t options = {.size = sizeof options};
  cleave_train_defaults(&options);
  options.loss = "mse";
  options.optimizer = CLEAVE_OPTIMIZER_ADAM;
  options.rate = 0.05;
  options.batch = ROWS;
  options.epochs = STEPS;
  options.precision = CLEAVE_TRAIN_FLOAT16;
  options.loss_scale = 0x1p20;
  options.scale_steps = 3;
  return options;
}

static cleave_train_options_t network_options(void) {
  cleave_train_options_t options = {.size = sizeof options};
  cleave_train_defaults(&options);
  options.loss = "cross_entropy";
  options.optimizer = CLEAVE_OPTIMIZER_MOMENTUM;
  options.rate = 0.02;
  options.clip = 1.0;
  options.batch = 8;
  options.epochs = 3;
  return options;
}

UNIT_TEST(steps_that_overflow_are_skipped_and_the_scale_follows) {
  cleave_model_t *model = train_case_model(half);
  cleave_samples_t *samples = linear_samples();
  const cleave_train_options_t options = half_options();
  cleave_trainer_t *trainer = train_case_start(model, samples, &options);
  double scale = options.loss_scale;
  double before = 0.5;
  int good = 0;
  int skipped = 0;
  int doubled = 0;
  for (int k = 0; k < STEPS; k++) {
    cleave_train_step_t step = {.size = sizeof step};
    unit_ok(cleave_trainer_step(trainer, &step, e));
    double now = train_case_constant(trainer, "w", 0);
    ck_assert_msg(step.loss_scale == scale, "step %d: scale %g, expected %g", k, step.loss_scale, scale);
    ck_assert(step.is_skipped == !isfinite(step.gradient_norm) && step.is_skipped == (now == before));
    skipped += step.is_skipped ? 1 : 0;
    good = step.is_skipped ? 0 : good + 1;
    doubled += good == 3 ? 1 : 0;
    scale *= step.is_skipped ? 0.5 : good == 3 ? 2.0 : 1.0;
    good %= 3;
    before = now;
  }
  ck_assert_int_gt(skipped, 4);
  ck_assert_int_gt(doubled, 2);
  cleave_trainer_destroy(trainer);
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

/* Skipped steps count for nothing else: what is left are the steps of float32, up to the precision. */
UNIT_TEST(steps_that_are_not_skipped_are_those_of_float32) {
  cleave_model_t *models[2] = {train_case_model(half), train_case_model(single)};
  cleave_samples_t *samples = linear_samples();
  cleave_train_options_t options = half_options();
  cleave_trainer_t *low = train_case_start(models[0], samples, &options);
  options.precision = CLEAVE_TRAIN_FLOAT32;
  cleave_trainer_t *high = train_case_start(models[1], samples, &options);
  int done = 0;
  for (int k = 0; k < STEPS; k++) {
    cleave_train_step_t step = {.size = sizeof step};
    cleave_train_step_t same = {.size = sizeof same};
    unit_ok(cleave_trainer_step(low, &step, e));
    if (step.is_skipped) {
      continue;
    }
    unit_ok(cleave_trainer_step(high, &same, e));
    ck_assert_msg(fabs(step.loss - same.loss) <= 2e-3 * (1 + same.loss), "step %d: loss %g, expected %g", k,
                  step.loss, same.loss);
    ck_assert_msg(fabs(step.gradient_norm - same.gradient_norm) <= 1e-2 * (1 + same.gradient_norm),
                  "step %d: norm %g, expected %g", k, step.gradient_norm, same.gradient_norm);
    done++;
  }
  ck_assert_int_gt(done, STEPS / 2);
  ck_assert_double_eq_tol(train_case_constant(low, "w", 0), train_case_constant(high, "w", 0), 5e-3);
  cleave_trainer_destroy(low);
  cleave_trainer_destroy(high);
  cleave_samples_destroy(samples);
  cleave_model_release(models[0]);
  cleave_model_release(models[1]);
}

UNIT_TEST(a_run_with_skipped_steps_goes_on_to_the_bit) {
  const char *path = train_case_path("scaled.npz");
  cleave_model_t *model = train_case_model(half);
  cleave_samples_t *samples = linear_samples();
  const cleave_train_options_t options = half_options();
  for (int64_t cut = 2; cut < STEPS; cut += 11) { /* among skipped steps, and between changes of the scale */
    double whole[STEPS];
    double parts[STEPS];
    cleave_trainer_t *trainer = train_case_start(model, samples, &options);
    train_case_steps(trainer, STEPS, whole);
    double weight = train_case_constant(trainer, "w", 1);
    cleave_trainer_destroy(trainer);
    trainer = train_case_start(model, samples, &options);
    train_case_steps(trainer, cut, parts);
    unit_ok(cleave_trainer_save(trainer, path, e));
    cleave_trainer_destroy(trainer);
    trainer = train_case_start(model, samples, &options);
    double other[5];
    train_case_steps(trainer, 5, other); /* which resuming forgets */
    unit_ok(cleave_trainer_resume(trainer, path, e));
    train_case_steps(trainer, STEPS - cut, parts + cut);
    ck_assert_mem_eq(parts, whole, sizeof whole);
    ck_assert(train_case_constant(trainer, "w", 1) == weight);
    for (int64_t k = 0; k < cut; k++) { /* the history knows the scale of each step */
      cleave_train_step_t step = {.size = sizeof step};
      unit_ok(cleave_trainer_history(trainer, k, &step, e));
      ck_assert(step.loss_scale < options.loss_scale || k == 0);
    }
    ck_assert_int_eq(remove(path), 0);
    cleave_trainer_destroy(trainer);
  }
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

static void run_network(const cleave_train_options_t *options, double *losses,
                        cleave_train_precision_report_t *report, char *reason, size_t size) {
  cleave_model_t *model = train_case_model(network);
  cleave_samples_t *samples = network_samples();
  cleave_trainer_t *trainer = train_case_start(model, samples, options);
  cleave_trainer_precision(trainer, report);
  (void)snprintf(reason, size, "%s", report->reason == NULL ? "" : report->reason);
  train_case_steps(trainer, NETWORK_STEPS, losses);
  cleave_trainer_destroy(trainer);
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

UNIT_TEST(a_scale_that_overflows_nothing_changes_no_bit) {
  double plain[NETWORK_STEPS];
  double scaled[NETWORK_STEPS];
  char reason[300];
  cleave_train_precision_report_t report = {.size = sizeof report};
  cleave_train_options_t options = network_options();
  run_network(&options, plain, &report, reason, sizeof reason);
  ck_assert_int_eq(report.precision, CLEAVE_TRAIN_FLOAT32);
  ck_assert_str_eq(reason, "");
  options.precision = CLEAVE_TRAIN_FLOAT16;
  run_network(&options, scaled, &report, reason, sizeof reason);
  ck_assert_uint_eq(report.regions, 0);
  ck_assert_str_eq(reason, "no rule file has the option 'precision' (onednn has)");
  ck_assert(plain[NETWORK_STEPS - 1] < plain[0]);
  ck_assert_mem_eq(scaled, plain, sizeof plain);
}

#ifdef CLEAVE_TEST_ONEDNN
/* If the processor has what it takes; otherwise there is a reason, and float32. */
UNIT_TEST(regions_in_bfloat16_are_close_to_float32) {
  double high[NETWORK_STEPS];
  double low[NETWORK_STEPS];
  char reason[300];
  cleave_train_precision_report_t report = {.size = sizeof report};
  const cleave_rule_source_t source = {.path = "onednn"};
  const cleave_partition_request_t request = {.size = sizeof request, .sources = &source, .source_count = 1};
  cleave_train_options_t options = network_options();
  options.rules = &request;
  run_network(&options, high, &report, reason, sizeof reason);
  options.precision = CLEAVE_TRAIN_BFLOAT16;
  run_network(&options, low, &report, reason, sizeof reason);
  double largest = 0.0;
  for (int k = 0; k < NETWORK_STEPS; k++) {
    largest = fmax(largest, fabs(low[k] - high[k]) / high[k]);
  }
  if (report.regions == 0) {
    ck_assert_ptr_nonnull(strstr(reason, "precision bfloat16: this processor has no AVX512_BF16"));
    ck_assert(largest == 0.0);
    return;
  }
  ck_assert_str_eq(reason, "");
  ck_assert_msg(largest > 0.0 && largest < 0.01, "losses differ by %g", largest);
}
#endif

UNIT_TEST(scales_that_are_no_power_of_two_are_refused) {
  cleave_model_t *model = train_case_model(half);
  cleave_samples_t *samples = linear_samples();
  cleave_trainer_t *trainer = NULL;
  cleave_train_options_t options = half_options();
  options.loss_scale = 1000;
  unit_fails(cleave_trainer_create(model, samples, &options, &trainer, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "loss scale: expected a power of two, found 1000");
  options.loss_scale = 0;
  unit_fails_with(cleave_trainer_create(model, samples, &options, &trainer, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "loss scale: expected a number from ");
  cleave_samples_destroy(samples);
  cleave_model_release(model);
}

UNIT_SUITE("train precision")
