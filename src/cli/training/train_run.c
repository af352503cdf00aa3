// SPDX-License-Identifier: Apache-2.0
#include "cli/training/train_run.h"

#include <string.h>

#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/run/processes.h"
#include "cli/training/train_report.h"
#include "distributed/communicator.h"
#include "system/clock.h"
#include "tools/profile/profile.h"

// ---- options ----

/* The place of a name in a list; NULL stands for the first. False: the message is printed. */
static bool choose(const char *option, const char *name, const char *const *names, size_t count, int *out) {
  cleave_text_t text = {0};
  for (size_t k = 0; k < count; k++) {
    if (name == NULL || strcmp(name, names[k]) == 0) {
      *out = (int)k;
      return true;
    }
  }
  for (size_t k = 0; k < count; k++) {
    cleave_text_format(&text, "%s%s", k == 0 ? "" : k + 1 < count ? ", " : " or ", names[k]);
  }
  (void)cleave_arguments_fail("train", "option '--%s': expected %s, found '%s'", option,
                              cleave_text_get(&text), name);
  cleave_text_deinit(&text);
  return false;
}

static bool choose_all(cleave_train_run_t *run) {
  static const char *const optimizers[] = {"sgd", "momentum", "adam", "adamw"};
  static const char *const schedules[] = {"constant", "step", "cosine"};
  static const char *const norms[] = {"batch", "frozen"};
  static const char *const precisions[] = {"float32", "bfloat16", "float16"};
  int optimizer = 0;
  int schedule = 0;
  int frozen = 0;
  int precision = 0;
  bool good = choose("optimizer", run->optimizer, optimizers, 4, &optimizer) &&
              choose("schedule", run->schedule, schedules, 3, &schedule) &&
              choose("norms", run->norms, norms, 2, &frozen) &&
              choose("precision", run->precision, precisions, 3, &precision);
  run->options.optimizer = (cleave_optimizer_t)optimizer;
  run->options.schedule = (cleave_schedule_t)schedule;
  run->options.freeze_norms = frozen == 1;
  run->options.precision = (cleave_train_precision_t)precision;
  return good;
}

int cleave_train_run_check(cleave_train_run_t *run) {
  if (run->data == NULL || run->options.loss == NULL || run->options.rate < 0.0) {
    return cleave_arguments_fail("train", "expected --data DIR, --loss NAME and --rate NUMBER");
  }
  if (run->held_out != NULL && run->hold_out > 0.0) {
    return cleave_arguments_fail("train", "option '--hold-out' does not go with --eval");
  }
  if (run->hold_out >= 1.0) {
    return cleave_arguments_fail("train", "option '--hold-out': expected a share less than 1, found %g",
                                 run->hold_out);
  }
  if (run->output != NULL && !cleave_path_has_extension(run->output, ".onnx")) {
    return cleave_arguments_fail("train", "option '--output': expected a file.onnx, found '%s'", run->output);
  }
  if (run->checkpoint != NULL && !cleave_path_has_extension(run->checkpoint, ".npz")) {
    return cleave_arguments_fail("train", "option '--checkpoint': expected a file.npz, found '%s'",
                                 run->checkpoint);
  }
  if (!(run->bucket_mb > 0.0 && run->bucket_mb <= 1e6)) {
    return cleave_arguments_fail(
        "train", "option '--bucket': expected a number of MB greater than 0, found %g", run->bucket_mb);
  }
  if (run->checkpoint_epochs < 1) {
    return cleave_arguments_fail("train", "option '--checkpoint-epochs': expected 1 or more");
  }
  return choose_all(run) ? CLEAVE_EXIT_OK : CLEAVE_EXIT_USAGE;
}

// ---- making ----

static cleave_status_t open_samples(cleave_train_run_t *run, cleave_error_t *error) {
  CLEAVE_TRY(cleave_samples_open(run->data, &run->all, error));
  if (run->held_out != NULL) {
    return cleave_samples_open(run->held_out, &run->held, error);
  }
  int64_t count = cleave_samples_count(run->all);
  int64_t held = (int64_t)((double)count * run->hold_out);
  if (held == 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_samples_slice(run->all, 0, count - held, &run->part, error));
  return cleave_samples_slice(run->all, count - held, held, &run->held, error);
}

/* Rule files, and the settings that are not those of the model script. */
static cleave_status_t make_trainer(cleave_train_run_t *run, cleave_rule_source_t *sources,
                                    cleave_setting_t *settings, cleave_error_t *error) {
  cleave_train_options_t options = run->options;
  cleave_session_options_t session = cleave_common_session();
  cleave_partition_request_t request = {
      .size = sizeof request, .sources = sources, .settings = settings, .backend = run->job_options.backend};
  session.threads = cleave_processes_threads(run->communicator, run->job_options.threads);
  session.profile = run->profile != NULL;
  for (size_t k = 0; k < run->job_options.rules.count; k++) {
    sources[request.source_count++].path = run->job_options.rules.items[k];
  }
  for (size_t k = 0; k < run->job.settings.count; k++) {
    if (!run->job.settings.used[k]) {
      settings[request.setting_count++] = run->job.settings.items[k];
    }
  }
  options.communicator = run->communicator;
  options.bucket_bytes = (int64_t)(run->bucket_mb * 1048576.0) + 1;
  options.rules = &request;
  options.session = &session;
  options.weights = run->weights.items;
  options.weight_count = run->weights.count;
  options.seed = (uint64_t)run->seed;
  return cleave_trainer_create(run->job.model, run->part != NULL ? run->part : run->all, &options,
                               &run->trainer, error);
}

/* Loads what each process has for itself. */
static cleave_status_t load(cleave_train_run_t *run, cleave_error_t *error) {
  run->job_options.script_seed = run->seed;
  CLEAVE_TRY(cleave_job_load(&run->job, &run->job_options, error));
  return open_samples(run, error);
}

/* All processes fail, if one does. */
static cleave_status_t agree(const cleave_train_run_t *run, cleave_status_t status, cleave_error_t *error) {
  return run->communicator == NULL ? status : cleave_communicator_agree(run->communicator, status, error);
}

/* FILE, or for one of several parts FILE.K with the extension behind. */
static cleave_status_t save_plan(const cleave_train_run_t *run, uint32_t part, cleave_error_t *error) {
  const cleave_plan_t *plan = cleave_trainer_part_plan(run->trainer, part);
  const char *dot = strrchr(run->plan, '.');
  cleave_text_t path = {0};
  if (cleave_trainer_part_count(run->trainer) == 1 || dot == NULL) {
    return cleave_plan_save(plan, run->plan, 0, error);
  }
  cleave_text_format(&path, "%.*s.%u%s", (int)(dot - run->plan), run->plan, (unsigned)part + 1, dot);
  cleave_status_t status = cleave_plan_save(plan, cleave_text_get(&path), 0, error);
  cleave_text_deinit(&path);
  return status;
}

static cleave_status_t save_plans(const cleave_train_run_t *run, cleave_error_t *error) {
  uint32_t count = run->plan == NULL || run->is_silent ? 0 : cleave_trainer_part_count(run->trainer);
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY(save_plan(run, k, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare(cleave_train_run_t *run, cleave_error_t *error) {
  CLEAVE_TRY(agree(run, load(run, error), error));
  uint64_t start = cleave_clock_now();
  cleave_rule_source_t *sources = cleave_allocate_zeroed(run->job_options.rules.count + 1, sizeof *sources);
  cleave_setting_t *settings = cleave_allocate_zeroed(run->job.settings.count + 1, sizeof *settings);
  cleave_status_t status = sources == NULL || settings == NULL ? cleave_error_out_of_memory(error)
                                                               : make_trainer(run, sources, settings, error);
  cleave_free(sources);
  cleave_free(settings);
  CLEAVE_TRY(status);
  run->make_ms = cleave_clock_ms(start, cleave_clock_now());
  CLEAVE_TRY(agree(run, save_plans(run, error), error));
  return run->resume == NULL ? CLEAVE_OK : cleave_trainer_resume(run->trainer, run->resume, error);
}

// ---- epochs ----

static cleave_status_t finish_epoch(cleave_train_run_t *run, cleave_train_epoch_t *epoch, bool is_last,
                                    cleave_error_t *error) {
  if (run->held != NULL) {
    epoch->evaluation.size = sizeof epoch->evaluation;
    CLEAVE_TRY(cleave_trainer_evaluate(run->trainer, run->held, &epoch->evaluation, error));
    epoch->has_evaluation = true;
  }
  cleave_train_report_epoch(run, epoch);
  CLEAVE_ARRAY_PUSH(&run->epochs, *epoch, error);
  if (run->checkpoint != NULL && !run->is_silent && (is_last || epoch->epoch % run->checkpoint_epochs == 0)) {
    CLEAVE_TRY(cleave_trainer_save(run->trainer, run->checkpoint, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t train(cleave_train_run_t *run, cleave_error_t *error) {
  int64_t count = cleave_trainer_step_count(run->trainer);
  cleave_train_epoch_t epoch = {0};
  double ms = 0.0;
  for (int64_t k = cleave_trainer_steps_done(run->trainer); k < count; k++) {
    cleave_train_step_t step = {.size = sizeof step};
    uint64_t start = cleave_clock_now();
    CLEAVE_TRY(cleave_trainer_step(run->trainer, &step, error));
    ms += cleave_clock_ms(start, cleave_clock_now());
    epoch.loss += step.loss;
    epoch.norm += step.is_skipped ? 0.0 : step.gradient_norm;
    epoch.skipped += step.is_skipped ? 1 : 0;
    epoch.steps++;
    cleave_train_report_step(run, &step);
    if (step.ends_epoch) {
      epoch.epoch = step.epoch;
      epoch.step = step.step;
      epoch.rate = step.rate;
      epoch.loss /= (double)epoch.steps;
      epoch.norm /= (double)(epoch.steps - epoch.skipped);
      epoch.step_ms = ms / (double)epoch.steps;
      CLEAVE_TRY(finish_epoch(run, &epoch, k + 1 == count, error));
      epoch = (cleave_train_epoch_t){0};
      ms = 0.0;
    }
  }
  return CLEAVE_OK;
}

// ---- what is left ----

static cleave_status_t save_all(cleave_train_run_t *run, cleave_error_t *error) {
  cleave_train_report_communication(run);
  cleave_train_report_scale(run);
  if (run->is_silent) {
    return CLEAVE_OK;
  }
  if (run->checkpoint != NULL) {
    cleave_train_report_saved(run, "checkpoint", run->checkpoint);
  }
  if (run->output != NULL) {
    CLEAVE_TRY(cleave_trainer_export(run->trainer, run->output, (int32_t)run->opset, error));
    cleave_train_report_saved(run, "model", run->output);
  }
  if (run->picture != NULL) {
    CLEAVE_TRY(cleave_train_picture_write(run, run->picture, error));
    cleave_train_report_saved(run, "picture", run->picture);
  }
  if (run->profile != NULL) {
    CLEAVE_TRY(cleave_profile_write_trace(run->profile, cleave_trainer_part_session(run->trainer, 0),
                                          cleave_trainer_part_plan(run->trainer, 0), error));
    cleave_train_report_saved(run, "trace of the last step", run->profile);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_train_run(cleave_train_run_t *run, cleave_error_t *error) {
  CLEAVE_TRY(cleave_communicator_open(&run->communicator, error));
  run->is_silent = cleave_processes_silent(run->communicator);
  CLEAVE_TRY(prepare(run, error));
  run->is_prepared = true;
  cleave_train_report_start(run);
  CLEAVE_TRY(train(run, error));
  return save_all(run, error);
}

void cleave_train_run_deinit(cleave_train_run_t *run) {
  cleave_trainer_destroy(run->trainer);
  cleave_samples_destroy(run->held);
  cleave_samples_destroy(run->part);
  cleave_samples_destroy(run->all);
  cleave_job_deinit(&run->job);
  cleave_array_free(&run->epochs);
  cleave_communicator_close(run->communicator);
}
