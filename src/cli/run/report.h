// SPDX-License-Identifier: Apache-2.0
/* What `cleave run` did, for people and as JSON. */
#ifndef CLEAVE_CLI_RUN_REPORT_H
#define CLEAVE_CLI_RUN_REPORT_H

#include <jansson.h>

#include "base/array.h"
#include "cli/common/job.h"
#include "cli/run/outputs.h"
#include "cli/run/requests.h"
#include "cli/run/stages.h"
#include "tools/profile/profile.h"
#include "tools/verify/check.h"

/* Without --repeat: at least MIN_RUNS, then as many as fit into BUDGET_MS, at most MAX_RUNS. */
enum { CLEAVE_RUN_MIN_RUNS = 3, CLEAVE_RUN_MAX_RUNS = 50, CLEAVE_RUN_BUDGET_MS = 1000 };
#define CLEAVE_RUN_UNSET INT64_C(-1) /* --repeat */

/* How one output compares. */
typedef struct cleave_run_check {
  const char *name;
  cleave_check_result_t result;
  cleave_text_t explanation;
} cleave_run_check_t;

typedef struct cleave_run_checks {
  cleave_run_check_t *lines;
  uint32_t count; /* 0: not asked for */
  bool matches;
} cleave_run_checks_t;

typedef struct cleave_run {
  cleave_job_options_t options;
  cleave_job_t job;
  cleave_check_tolerance_t tolerance;
  int64_t warmup;
  int64_t repeat;
  bool verify;
  bool json;
  bool watch;
  bool interrupted; /* while --watch waited for the first plan */
  bool rule_stats;
  const char *profile_path;
  cleave_run_checks_t alone;     /* of batches, against the same request alone */
  cleave_run_checks_t data;      /* against --data */
  cleave_run_checks_t reference; /* against the unpartitioned graph */
  CLEAVE_ARRAY(double) times;
  double first_ms;
  double total_ms;
  cleave_profile_t profile;
  cleave_run_requests_t requests;
  cleave_run_outputs_t outputs;
  cleave_run_stages_t stages;
  bool are_apart; /* of several processes: what fails now fails in this one alone */
} cleave_run_t;

void cleave_run_report_print(const cleave_run_t *run);
/* The caller's; NULL: memory is short. */
json_t *cleave_run_report_json(const cleave_run_t *run);

#endif /* CLEAVE_CLI_RUN_REPORT_H */
