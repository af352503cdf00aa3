// SPDX-License-Identifier: Apache-2.0
/* A run of `cleave train`. */
#ifndef CLEAVE_CLI_TRAINING_TRAIN_RUN_H
#define CLEAVE_CLI_TRAINING_TRAIN_RUN_H

#include "cleave/train.h"
#include "cli/common/job.h"

/* An epoch as it was printed. */
typedef struct cleave_train_epoch {
  int64_t epoch;   /* from 1 */
  int64_t step;    /* the last one */
  int64_t steps;   /* of the epoch that this process did */
  double loss;     /* mean of these steps */
  int64_t skipped; /* of these, without an update */
  double norm;     /* mean of the others */
  double rate;     /* of the last step */
  double step_ms;  /* mean */
  bool has_evaluation;
  cleave_evaluation_t evaluation;
} cleave_train_epoch_t;

typedef struct cleave_train_run {
  cleave_job_options_t job_options;
  cleave_train_options_t options;
  const char *data;
  const char *held_out;  /* samples to evaluate on, or NULL */
  double hold_out;       /* share of the samples to evaluate on; 0: none */
  const char *optimizer; /* names, or NULL */
  const char *schedule;
  const char *norms;
  const char *precision;
  cleave_text_list_t weights;
  int64_t seed;
  const char *checkpoint; /* or NULL */
  int64_t checkpoint_epochs;
  const char *resume; /* or NULL */
  const char *output; /* .onnx, or NULL */
  int64_t opset;
  const char *picture; /* .svg, or NULL */
  const char *plan;    /* file for the plan of the step, or NULL */
  const char *profile; /* file for a trace of a step, or NULL */
  bool each_step;      /* JSON: a line for each step */
  bool json;
  double bucket_mb;
  /* the run */
  cleave_communicator_t *communicator; /* NULL: mpirun did not start this process */
  bool is_silent;                      /* another process prints and writes */
  bool is_prepared;                    /* what fails from here on, others do not know of */
  cleave_job_t job;
  cleave_samples_t *all;
  cleave_samples_t *part; /* of `all`, if some of it is held out */
  cleave_samples_t *held; /* or NULL */
  cleave_trainer_t *trainer;
  double make_ms; /* building and compiling the step */
  CLEAVE_ARRAY(cleave_train_epoch_t) epochs;
} cleave_train_run_t;

/* Turns names of options into numbers. The exit status; an error is printed. */
int cleave_train_run_check(cleave_train_run_t *run);
/* Trains, evaluates, saves, and prints as it goes; together with the other processes if mpirun started them.
 */
CLEAVE_STATUS cleave_train_run(cleave_train_run_t *run, cleave_error_t *error);
void cleave_train_run_deinit(cleave_train_run_t *run);

#endif /* CLEAVE_CLI_TRAINING_TRAIN_RUN_H */
