// SPDX-License-Identifier: Apache-2.0
// Training in several processes, which are threads here, against one process with the whole minibatch:
// losses, norms, weights, evaluations; buckets of all sizes; checkpoints; what goes wrong in one of them.
#include <math.h>

#include "thread_ranks.h"
#include "train_case.h"
#include "unit.h"

/* Weights of both dtypes would need two buckets; here: a shared weight, one read twice, a Dropout, a loss
 * with labels that do not count. */
static const char network[] =
    "local x = g.input('x', 'float64', { 'N', 6 })\n"
    "local w = g.weight { 6, 6, name = 'shared', dtype = 'float64' }\n"
    "local y = g.Relu(g.MatMul(x, w) + g.constant({ 0.1, 0, -0.1, 0.2, 0.3, 0 }, 'float64', 'bias'))\n"
    "y = g.Dropout(g.Tanh(g.MatMul(y, w)), 0.25)\n"
    "g.output('scores', g.MatMul(y, g.weight { 6, 3, name = 'last', dtype = 'float64' }))\n";

enum { ROWS = 24, STEPS = 6 };

static cleave_samples_t *network_samples(const char *name) {
  static double labels[ROWS];
  for (int k = 0; k < ROWS; k++) {
    labels[k] = k % 5 == 0 ? -100 : k % 3; /* the shares of a minibatch have different numbers that count */
  }
  const train_case_array_t arrays[] = {
      {.name = "x", .dtype = CLEAVE_DTYPE_F64, .rank = 2, .dims = {ROWS, 6}, .low = -1, .high = 1},
      {.name = "labels", .dtype = CLEAVE_DTYPE_I64, .rank = 1, .dims = {ROWS}, .numbers = labels}};
  return train_case_samples(name, arrays, 2);
}

typedef struct job {
  cleave_model_t *model;
  const cleave_samples_t *samples;
  cleave_train_options_t options;
  const char *checkpoint; /* written after half of the steps, then taken up; or NULL */
  cleave_train_step_t steps[THREAD_RANKS_MAX][STEPS];
  double weights[THREAD_RANKS_MAX][3];
  cleave_evaluation_t evaluation[THREAD_RANKS_MAX];
  cleave_train_communication_t communication[THREAD_RANKS_MAX];
} job_t;

static void train(const cleave_communicator_t *communicator, void *context) {
  job_t *job = context;
  cleave_train_options_t options = job->options;
  int32_t rank = communicator == NULL ? 0 : communicator->rank;
  options.communicator = communicator;
  job->evaluation[rank].size = sizeof job->evaluation[rank];
  job->communication[rank].size = sizeof job->communication[rank];
  cleave_trainer_t *trainer = train_case_start(job->model, job->samples, &options);
  for (int k = 0; k < STEPS; k++) {
    if (job->checkpoint != NULL && k == STEPS / 2) {
      if (rank == 0) {
        unit_ok(cleave_trainer_save(trainer, job->checkpoint, e));
      }
      cleave_trainer_destroy(trainer);
      trainer = train_case_start(job->model, job->samples, &options);
      unit_ok(cleave_trainer_resume(trainer, job->checkpoint, e));
      ck_assert_int_eq(cleave_trainer_steps_done(trainer), k);
      cleave_train_step_t before = {.size = sizeof before};
      unit_ok(cleave_trainer_history(trainer, k - 1, &before, e));
      ck_assert(before.loss == job->steps[rank][k - 1].loss);
    }
    job->steps[rank][k].size = sizeof job->steps[rank][k];
    unit_ok(cleave_trainer_step(trainer, &job->steps[rank][k], e));
  }
  job->weights[rank][0] = train_case_constant(trainer, "shared", 7);
  job->weights[rank][1] = train_case_constant(trainer, "bias", 2);
  job->weights[rank][2] = train_case_constant(trainer, "last", 3);
  unit_ok(cleave_trainer_evaluate(trainer, job->samples, &job->evaluation[rank], e));
  cleave_trainer_communication(trainer, &job->communication[rank]);
  cleave_trainer_destroy(trainer);
}

static bool near(double a, double b) {
  return fabs(a - b) <= 1e-12 * (1 + fabs(b));
}

/* The numbers of rank 0 against those of one process; those of the others to the bit. */
static void compare(const job_t *together, const job_t *alone, int32_t ranks) {
  for (int k = 0; k < STEPS; k++) {
    const cleave_train_step_t *found = &together->steps[0][k];
    ck_assert_msg(near(found->loss, alone->steps[0][k].loss),
                  "step %d of %d ranks: loss %.17g, expected %.17g", k, ranks, found->loss,
                  alone->steps[0][k].loss);
    ck_assert_msg(near(found->gradient_norm, alone->steps[0][k].gradient_norm),
                  "step %d of %d ranks: norm %.17g", k, ranks, found->gradient_norm);
    ck_assert(k == 0 || found->loss != together->steps[0][k - 1].loss);
    for (int32_t r = 1; r < ranks; r++) {
      ck_assert(together->steps[r][k].loss == found->loss);
      ck_assert(together->steps[r][k].gradient_norm == found->gradient_norm);
    }
  }
  for (int k = 0; k < 3; k++) {
    ck_assert_msg(near(together->weights[0][k], alone->weights[0][k]),
                  "weight %d of %d ranks: %.17g, expected %.17g", k, ranks, together->weights[0][k],
                  alone->weights[0][k]);
    for (int32_t r = 1; r < ranks; r++) {
      ck_assert(together->weights[r][k] == together->weights[0][k]);
    }
  }
  for (int32_t r = 0; r < ranks; r++) {
    ck_assert_int_eq(together->evaluation[r].samples, alone->evaluation[0].samples);
    ck_assert(near(together->evaluation[r].loss, alone->evaluation[0].loss));
    ck_assert(together->evaluation[r].accuracy == alone->evaluation[0].accuracy);
  }
}

static job_t start_job(const char *name) {
  job_t job = {.model = train_case_model(network), .samples = network_samples(name)};
  job.options.size = sizeof job.options;
  cleave_train_defaults(&job.options);
  job.options.loss = "cross_entropy";
  job.options.rate = 0.05;
  job.options.batch = 8;
  job.options.epochs = 2;
  job.options.seed = 3;
  return job;
}

static void end_job(job_t *job) {
  cleave_samples_destroy((cleave_samples_t *)(uintptr_t)job->samples);
  cleave_model_release(job->model);
}

UNIT_TEST(several_processes_train_as_one_does) {
  static const int64_t buckets[] = {1, 300, 1 << 20}; /* a weight each; some together; all */
  static const uint32_t bucket_counts[] = {4, 3, 1};
  for (int optimizer = 0; optimizer <= CLEAVE_OPTIMIZER_ADAMW; optimizer++) {
    job_t alone = start_job("together.npz");
    alone.options.optimizer = (cleave_optimizer_t)optimizer;
    alone.options.weight_decay = 0.1;
    alone.options.clip = optimizer % 2 == 0 ? 0.2 : 0.0;
    train(NULL, &alone);
    ck_assert_uint_eq(alone.communication[0].buckets, 0);
    for (int32_t ranks = 1; ranks <= 4; ranks *= 2) {
      for (int b = 0; b < 3; b++) {
        job_t together = alone;
        together.options.bucket_bytes = buckets[b];
        size_t transfers = thread_ranks_run(ranks, train, &together);
        compare(&together, &alone, ranks);
        const cleave_train_communication_t *communication = &together.communication[0];
        ck_assert_uint_eq(communication->buckets, bucket_counts[b]);
        ck_assert_int_eq(communication->steps, STEPS);
        ck_assert_uint_ge(communication->bytes, (1 + 36 + 6 + 18) * sizeof(double));
        ck_assert_uint_ge(transfers, STEPS * bucket_counts[b]);
      }
    }
    end_job(&alone);
  }
}

UNIT_TEST(a_checkpoint_goes_on_in_all_processes) {
  job_t whole = start_job("together_whole.npz");
  whole.options.optimizer = CLEAVE_OPTIMIZER_ADAM;
  job_t parts = whole;
  parts.checkpoint = train_case_path("together_checkpoint.npz");
  (void)thread_ranks_run(2, train, &whole);
  (void)thread_ranks_run(2, train, &parts);
  for (int k = 0; k < STEPS; k++) {
    ck_assert(parts.steps[0][k].loss == whole.steps[0][k].loss);
    ck_assert(parts.steps[1][k].loss == whole.steps[0][k].loss);
  }
  ck_assert(parts.weights[1][0] == whole.weights[0][0]);
  ck_assert_int_eq(remove(parts.checkpoint), 0);
  end_job(&whole);
}

// ---- statistics ----

typedef struct norm_job {
  cleave_model_t *model;
  cleave_samples_t *samples;
  double found[THREAD_RANKS_MAX][3]; /* mean, variance, scale */
} norm_job_t;

static void train_norm(const cleave_communicator_t *communicator, void *context) {
  norm_job_t *job = context;
  cleave_train_options_t options = {.size = sizeof options};
  cleave_train_step_t step = {.size = sizeof step};
  cleave_train_defaults(&options);
  options.loss = "mse";
  options.rate = 0.1;
  options.batch = 4;
  options.keep_order = true;
  options.communicator = communicator;
  cleave_trainer_t *trainer = train_case_start(job->model, job->samples, &options);
  unit_ok(cleave_trainer_step(trainer, &step, e));
  job->found[communicator->rank][0] = train_case_constant(trainer, "mean", 0);
  job->found[communicator->rank][1] = train_case_constant(trainer, "variance", 0);
  job->found[communicator->rank][2] = train_case_constant(trainer, "scale", 0);
  cleave_trainer_destroy(trainer);
}

/* The shares are 1, 3 and 10, 20: means 2 and 15, variances 1 and 25, of which a tenth counts (0.1 in
 * float32). */
UNIT_TEST(running_statistics_are_means_over_processes) {
  static const char norm[] =
      "local x = g.input('x', 'float64', { 'N', 1 })\n"
      "local function one(name, value) return g.constant({ value }, 'float64', name) end\n"
      "local y = g.BatchNormalization(x, one('scale', 1), one('bias', 0), one('mean', 0), one('variance', "
      "1))\n"
      "g.output('y', y)\n";
  static const double inputs[4] = {1, 3, 10, 20};
  const train_case_array_t arrays[] = {
      {.name = "x", .dtype = CLEAVE_DTYPE_F64, .rank = 2, .dims = {4, 1}, .numbers = inputs},
      {.name = "targets", .dtype = CLEAVE_DTYPE_F64, .rank = 2, .dims = {4, 1}, .low = 0, .high = 1}};
  norm_job_t job = {.model = train_case_model(norm),
                    .samples = train_case_samples("together_norm.npz", arrays, 2)};
  (void)thread_ranks_run(2, train_norm, &job);
  for (int r = 0; r < 2; r++) {
    ck_assert_double_eq_tol(job.found[r][0], 0.1 * (2 + 15) / 2, 1e-6);
    ck_assert_double_eq_tol(job.found[r][1], 0.9 + 0.1 * (1 + 25) / 2, 1e-6);
    ck_assert(job.found[r][2] != 1.0 && job.found[r][2] == job.found[0][2]);
  }
  cleave_samples_destroy(job.samples);
  cleave_model_release(job.model);
}

// ---- what goes wrong ----

typedef struct wrong_job {
  job_t job;
  int32_t rank;  /* where it is wrong */
  int64_t batch; /* there; 0: as it is */
  double rate;   /* there; 0: as it is */
  const char *resume;
  cleave_error_t errors[THREAD_RANKS_MAX];
} wrong_job_t;

static void fail_to_train(const cleave_communicator_t *communicator, void *context) {
  wrong_job_t *wrong = context;
  cleave_train_options_t options = wrong->job.options;
  cleave_error_t *error = &wrong->errors[communicator->rank];
  cleave_trainer_t *trainer = NULL;
  bool is_here = wrong->rank < 0 || communicator->rank == wrong->rank;
  options.batch = is_here && wrong->batch != 0 ? wrong->batch : options.batch;
  options.rate = is_here && wrong->rate != 0.0 ? wrong->rate : options.rate;
  options.communicator = communicator;
  cleave_error_clear(error);
  cleave_status_t status =
      cleave_trainer_create(wrong->job.model, wrong->job.samples, &options, &trainer, error);
  if (wrong->resume != NULL) {
    ck_assert_int_eq(status, CLEAVE_OK);
    status = cleave_trainer_resume(trainer, wrong->resume, error);
    cleave_trainer_destroy(trainer);
    trainer = NULL;
  }
  ck_assert_int_ne(status, CLEAVE_OK);
  ck_assert_ptr_null(trainer);
}

static void expect_wrong(wrong_job_t *wrong, const char *message) {
  (void)thread_ranks_run(2, fail_to_train, wrong);
  for (int r = 0; r < 2; r++) {
    ck_assert_str_eq(wrong->errors[r].message, message);
  }
}

UNIT_TEST(what_fails_in_one_process_fails_in_all) {
  wrong_job_t wrong = {.job = start_job("together_wrong.npz"), .rank = 1, .batch = -2};
  expect_wrong(&wrong, "process 1 of 2: batch: expected a number from 1 to 1e+09, found -2");
  wrong.batch = 100;
  wrong.rank = 0;
  (void)thread_ranks_run(2, fail_to_train, &wrong);
  ck_assert_ptr_nonnull(strstr(wrong.errors[1].message, "process 0 of 2: "));
  ck_assert_ptr_nonnull(strstr(wrong.errors[1].message, "24 samples cannot fill one minibatch of 100"));
  wrong.rank = -1;
  wrong.batch = 7;
  expect_wrong(&wrong, "batch: expected a multiple of the 2 processes that train together, found 7");
  wrong.batch = 0;
  wrong.rank = 1;
  wrong.rate = 0.25;
  expect_wrong(&wrong,
               "process 1 of 2: model, samples or options differ from those of process 0: all that train "
               "together need the same");
  wrong.rate = 0.0;
  wrong.resume = "/nowhere/checkpoint.npz";
  expect_wrong(&wrong, "process 0 of 2: /nowhere/checkpoint.npz: cannot open: No such file or directory");
  end_job(&wrong.job);
}

UNIT_TEST(a_communicator_is_checked) {
  job_t job = start_job("together_check.npz");
  cleave_communicator_t communicator = {.size = sizeof communicator, .count = 2};
  cleave_trainer_t *trainer = NULL;
  job.options.communicator = &communicator;
  unit_fails(cleave_trainer_create(job.model, job.samples, &job.options, &trainer, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "communicator: a function is missing");
  communicator.rank = 2;
  unit_fails(cleave_trainer_create(job.model, job.samples, &job.options, &trainer, e),
             CLEAVE_ERROR_INVALID_ARGUMENT, "communicator: its rank is not one of its processes");
  end_job(&job);
}

UNIT_SUITE("together")
