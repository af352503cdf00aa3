// SPDX-License-Identifier: Apache-2.0
#include "train/options.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "base/status.h"

#define PI 3.14159265358979323846

/* Powers of two: multiplying by them does not round. */
static const double LEAST_SCALE = 0x1p-24;
static const double MOST_SCALE = 0x1p+32;

static const cleave_train_options_t defaults = {.size = sizeof defaults,
                                                .optimizer = CLEAVE_OPTIMIZER_SGD,
                                                .momentum = 0.9,
                                                .beta1 = 0.9,
                                                .beta2 = 0.999,
                                                .epsilon = 1e-8,
                                                .step_epochs = 30,
                                                .step_factor = 0.1,
                                                .batch = 32,
                                                .epochs = 1,
                                                .bucket_bytes = INT64_C(25) << 20,
                                                .loss_scale = 65536,
                                                .scale_steps = 2000};

void cleave_train_defaults(cleave_train_options_t *out_options) {
  CLEAVE_SIZED_OUT(cleave_train_options_t, &defaults, out_options);
}

cleave_status_t cleave_train_read_options(const cleave_train_options_t *given,
                                          cleave_train_options_t *out_options, cleave_error_t *error) {
  *out_options = defaults;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_train_options_t, given, out_options, error));
  return cleave_list_check("weights", out_options->weights, out_options->weight_count, error);
}

// ---- ranges ----

typedef struct range {
  const char *name;
  double value;
  double least;
  double most;
  bool excludes_most;
} range_t;

/* NaN is in no range. */
static bool is_inside(const range_t *range) {
  return range->value >= range->least &&
         (range->excludes_most ? range->value < range->most : range->value <= range->most);
}

cleave_status_t cleave_train_check_options(const cleave_train_options_t *options, cleave_error_t *error) {
  if (options->loss == NULL || options->loss[0] == '\0') {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "loss: expected cross_entropy, mse, or the name of an output, found nothing");
  }
  const range_t ranges[] = {{"optimizer", (double)options->optimizer, 0, CLEAVE_OPTIMIZER_ADAMW, false},
                            {"schedule", (double)options->schedule, 0, CLEAVE_SCHEDULE_COSINE, false},
                            {"rate", options->rate, 0, FLT_MAX, false},
                            {"final rate", options->final_rate, 0, FLT_MAX, false},
                            {"momentum", options->momentum, 0, 1, true},
                            {"beta1", options->beta1, 0, 1, true},
                            {"beta2", options->beta2, 0, 1, true},
                            {"epsilon", options->epsilon, DBL_MIN, 1, false},
                            {"weight decay", options->weight_decay, 0, FLT_MAX, false},
                            {"clip", options->clip, 0, FLT_MAX, false},
                            {"step factor", options->step_factor, 0, FLT_MAX, false},
                            {"step epochs", (double)options->step_epochs, 1, 1e9, false},
                            {"warmup", (double)options->warmup, 0, 1e12, false},
                            {"recompute", options->recompute, 0, 1, true},
                            {"batch", (double)options->batch, 1, 1e9, false},
                            {"epochs", (double)options->epochs, 1, 1e9, false},
                            {"bucket", (double)options->bucket_bytes, 1, 1e15, false},
                            {"precision", (double)options->precision, 0, CLEAVE_TRAIN_FLOAT16, false},
                            {"loss scale", options->loss_scale, LEAST_SCALE, MOST_SCALE, false},
                            {"scale steps", (double)options->scale_steps, 1, 1e12, false}};
  for (size_t k = 0; k < sizeof ranges / sizeof ranges[0]; k++) {
    if (!is_inside(&ranges[k])) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "%s: expected a number from %g to %s%g, found %g", ranges[k].name,
                              ranges[k].least, ranges[k].excludes_most ? "less than " : "", ranges[k].most,
                              ranges[k].value);
    }
  }
  int exponent = 0;
  if (frexp(options->loss_scale, &exponent) != 0.5) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "loss scale: expected a power of two, found %g", options->loss_scale);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_train_copy_options(const cleave_train_options_t *options, cleave_arena_t *arena,
                                          cleave_train_options_t *out_options, cleave_error_t *error) {
  *out_options = *options;
  out_options->loss = cleave_arena_copy_text(arena, options->loss, strlen(options->loss));
  if (options->scores != NULL) {
    out_options->scores = cleave_arena_copy_text(arena, options->scores, strlen(options->scores));
  }
  const char **weights = cleave_arena_allocate(arena, options->weight_count + 1, sizeof *weights);
  bool good = out_options->loss != NULL && (options->scores == NULL || out_options->scores != NULL) &&
              weights != NULL;
  for (size_t k = 0; good && k < options->weight_count; k++) {
    weights[k] = cleave_arena_copy_text(arena, options->weights[k], strlen(options->weights[k]));
    good = weights[k] != NULL;
  }
  out_options->weights = weights;
  out_options->rules = NULL;
  out_options->session = NULL;
  return good ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

// ---- what a run is ----

size_t cleave_train_describe(const cleave_train_options_t *options, int64_t sample_count,
                             cleave_train_number_t numbers[CLEAVE_TRAIN_NUMBERS]) {
  const cleave_train_number_t all[] = {
      {"version of the checkpoint", 2},
      {"number of samples", (double)sample_count},
      {"batch", (double)options->batch},
      {"seed", (double)(options->seed & UINT32_MAX)},
      {"seed", (double)(options->seed >> 32)},
      {"order of the samples", options->keep_order ? 1 : 0},
      {"optimizer", (double)options->optimizer},
      {"rate", options->rate},
      {"momentum", options->momentum},
      {"nesterov", options->nesterov ? 1 : 0},
      {"beta1", options->beta1},
      {"beta2", options->beta2},
      {"epsilon", options->epsilon},
      {"weight decay", options->weight_decay},
      {"clip", options->clip},
      {"schedule", (double)options->schedule},
      {"step epochs", (double)options->step_epochs},
      {"step factor", options->step_factor},
      {"final rate", options->final_rate},
      {"warmup", (double)options->warmup},
      {"epochs", options->schedule == CLEAVE_SCHEDULE_COSINE ? (double)options->epochs : 0},
      {"precision", (double)options->precision},
      {"loss scale", options->loss_scale},
      {"scale steps", (double)options->scale_steps}};
  memcpy(numbers, all, sizeof all);
  return sizeof all / sizeof all[0];
}

// ---- the rate ----

double cleave_train_rate(const cleave_train_options_t *options, int64_t step, int64_t steps_per_epoch) {
  if (step < options->warmup) {
    return options->rate * (double)(step + 1) / (double)options->warmup;
  }
  switch (options->schedule) {
    case CLEAVE_SCHEDULE_STEP:
      return options->rate *
             pow(options->step_factor, (double)(step / steps_per_epoch / options->step_epochs));
    case CLEAVE_SCHEDULE_COSINE: {
      double left = (double)(options->epochs * steps_per_epoch - options->warmup);
      double share = left > 0.0 ? (double)(step - options->warmup) / left : 1.0;
      return options->final_rate + 0.5 * (options->rate - options->final_rate) * (1.0 + cos(PI * share));
    }
    case CLEAVE_SCHEDULE_CONSTANT: break;
  }
  return options->rate;
}

// ---- the scale of the loss ----

bool cleave_train_is_scaled(const cleave_train_options_t *options) {
  return options->precision == CLEAVE_TRAIN_FLOAT16;
}

cleave_train_scaling_t cleave_train_scaling_start(const cleave_train_options_t *options) {
  return (cleave_train_scaling_t){.scale = cleave_train_is_scaled(options) ? options->loss_scale : 1.0};
}

bool cleave_train_scaling_advance(const cleave_train_options_t *options, double norm,
                                  cleave_train_scaling_t *scaling) {
  bool is_scaled = cleave_train_is_scaled(options);
  if (is_scaled && !isfinite(norm)) {
    scaling->scale = fmax(0.5 * scaling->scale, LEAST_SCALE);
    scaling->good = 0;
    return false;
  }
  scaling->updates++;
  scaling->good++;
  if (is_scaled && scaling->good == options->scale_steps) {
    scaling->scale = fmin(2.0 * scaling->scale, MOST_SCALE);
    scaling->good = 0;
  }
  return true;
}
