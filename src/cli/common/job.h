// SPDX-License-Identifier: Apache-2.0
/* The way from a command line to a session, as commands share it: model, inputs, plan, session, times. */
#ifndef CLEAVE_CLI_COMMON_JOB_H
#define CLEAVE_CLI_COMMON_JOB_H

#include "cli/common/load.h"
#include "cli/common/sizes.h"
#include "partition/plan/plan_document.h"
#include "runtime/model/rule_list.h"
#include "runtime/session/session.h"

typedef struct cleave_job_options {
  const char *model;
  cleave_text_list_t rules;
  cleave_text_list_t settings;
  cleave_text_list_t shapes;
  cleave_text_list_t files;
  cleave_text_list_t constants; /* NAME=FILE: in the place of the model's */
  const char *backend;
  const char *data;   /* folder with input_N.pb, or NULL */
  const char *ranges; /* of the model's values, for rules: a file of `cleave calibrate`, or NULL */
  const char *plan;   /* saved plan in place of rule files, or NULL */
  bool fallback;      /* regions of that plan that cannot be run as one run node by node */
  int64_t threads;
  int64_t workers;
  int64_t seed;
  int64_t script_seed; /* of what a model script draws; 0: its own */
  bool profile;
  bool imperative;  /* nodes of regions one by one on their backends */
  bool keeps_plans; /* in the folder of compiled regions, and takes up the one that is there */
} cleave_job_options_t;

typedef struct cleave_job {
  const cleave_job_options_t *options;
  cleave_settings_t settings;
  cleave_model_t *model;            /* with the sizes of the inputs */
  cleave_inputs_t inputs;           /* of the model */
  cleave_inputs_t plan_inputs;      /* of the session: those, and what rules added; made before compiling */
  cleave_plan_document_t *document; /* of options->plan, until it has become `plan` */
  cleave_plan_t *plan;
  cleave_program_cache_t *programs;        /* of the session, if it is set before compiling */
  cleave_session_t *session;               /* of several processes: of the stage of this one */
  const cleave_tensor_view_t *outputs;     /* of the model, where stages run; NULL: those of the session */
  const cleave_rules_listener_t *listener; /* is called for each file that partitioning reads; NULL: nobody */
  bool plan_was_kept;                      /* no rule ran */
  double load_ms;                          /* reading the model, inference and folding */
  double bind_ms;                          /* inference again with the inputs' sizes */
  double rules_ms;                         /* loading rule files */
  double partition_ms;                     /* running the rules */
  double compile_ms;                       /* the session */
} cleave_job_t;

/* Rows of tables of options that commands have in common; `job` is a cleave_job_options_t *. */
#define CLEAVE_JOB_RULES(job) \
  CLEAVE_LIST(&(job)->rules, "rules", "FILE", "rule file; may be given many times, they run in order")
#define CLEAVE_JOB_BACKEND(job) \
  CLEAVE_TEXT(&(job)->backend, "backend", "NAME", "the backend in place of the rule files'")
#define CLEAVE_JOB_SETTINGS(job) \
  CLEAVE_LIST(&(job)->settings, "set", "NAME=VALUE", "option of a rule file or a model script")
#define CLEAVE_JOB_RANGES(job)                                                                           \
  CLEAVE_TEXT(&(job)->ranges, "ranges", "FILE",                                                          \
              "ranges of the model's values, as `cleave calibrate` writes them, for rules that compute " \
              "with 8-bit integers")
#define CLEAVE_JOB_SHAPES(job) CLEAVE_LIST(&(job)->shapes, "shape", "NAME=SIZES", CLEAVE_SHAPE_HELP)
#define CLEAVE_JOB_INPUTS(job)                                                                      \
  CLEAVE_LIST(&(job)->files, "input", "NAME=FILE", "input from a .npy or .pb file"),                \
      CLEAVE_TEXT(&(job)->data, "data", "DIR", "inputs from a folder of an ONNX test: input_N.pb"), \
      CLEAVE_JOB_SHAPES(job),                                                                       \
      CLEAVE_INT(&(job)->seed, "seed", "N", "seed of all random values (default: 0)"),              \
      CLEAVE_INT(&(job)->threads, "threads", "N", "threads (default: one per usable processor)")

/* Loads the model, settings for scripts included. */
CLEAVE_STATUS cleave_job_load(cleave_job_t *job, const cleave_job_options_t *options, cleave_error_t *error);
/* An error if a setting is none of the model script's: for commands without rule files. */
CLEAVE_STATUS cleave_job_check_settings(const cleave_job_t *job, cleave_error_t *error);
/* Loads or draws the inputs, and gives the model their sizes. If a saved plan is to be run, it is read
 * first: inputs that are open and not given have the sizes that it was made for, and a plan of the model
 * without sizes leaves the model so. */
CLEAVE_STATUS cleave_job_bind(cleave_job_t *job, cleave_error_t *error);
/* Gives the model the sizes that it leaves open (cli/common/sizes.h), but for those that --shape leaves open,
 * too; no inputs are loaded. */
CLEAVE_STATUS cleave_job_bind_shapes(cleave_job_t *job, cleave_error_t *error);
/* Does the same after that failed with CLEAVE_ERROR_SHAPE, but leaves open what nothing tells. */
CLEAVE_STATUS cleave_job_bind_open(cleave_job_t *job, cleave_error_t *error);
/* Makes the request of a partition from the command line: rule files, settings, and the backend. Release it
 * with cleave_rule_request_deinit. */
CLEAVE_STATUS cleave_job_request(const cleave_job_t *job, cleave_partition_request_t *out_request,
                                 cleave_error_t *error);
/* Loads the rule files, for commands that run them more than once. The list must be deinitialised also when
 * this fails. */
CLEAVE_STATUS cleave_job_load_rules(const cleave_job_t *job, cleave_rule_list_t *out_list,
                                    cleave_error_t *error);
/* Are there rule files, or is the model a region, which has a plan of its own? */
bool cleave_job_has_rules(const cleave_job_options_t *options);
/* Runs the rule files, or takes up the saved plan, or the one of a region. */
CLEAVE_STATUS cleave_job_partition(cleave_job_t *job, cleave_error_t *error);
CLEAVE_STATUS cleave_job_compile(cleave_job_t *job, cleave_error_t *error);
/* How sessions of the job are made. */
cleave_session_options_t cleave_job_session_options(const cleave_job_t *job);
/* Loads the inputs that rules added, for `plan_inputs`. */
CLEAVE_STATUS cleave_job_load_inputs(cleave_job_t *job, cleave_error_t *error);
/* Output `index` of the model in the last run. */
CLEAVE_STATUS cleave_job_output(const cleave_job_t *job, uint32_t index, cleave_tensor_view_t *out_view,
                                cleave_error_t *error);
/* Another session like that of a compiled job, with so many threads, on the same inputs; the caller destroys
 * it before the job. */
CLEAVE_STATUS cleave_job_add_session(const cleave_job_t *job, int64_t threads, cleave_session_t **out_session,
                                     cleave_error_t *error);
void cleave_job_deinit(cleave_job_t *job);

#endif /* CLEAVE_CLI_COMMON_JOB_H */
