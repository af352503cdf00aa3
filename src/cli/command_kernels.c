// SPDX-License-Identifier: Apache-2.0
// The text of the kernels that backends generate for a model. A backend keeps texts once it is told
// "hint.kernels" ("1", or "cuda"), and answers "kernels.text".
#include <string.h>

#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/job.h"
#include "cli/common/output.h"

static cleave_status_t configure(const char *backend, const char *key, const char *value,
                                 cleave_key_value_t **out_answers, uint32_t *out_count) {
  cleave_error_t error = CLEAVE_ERROR_INIT; /* it has no such setting: no reason to fail */
  const cleave_key_value_t setting = {.key = key, .value = value};
  return cleave_backend_configure(cleave_common_context(), backend, &setting, 1, out_answers, out_count,
                                  &error);
}

/* Prints the kernels of the backend of a region, unless an earlier region has the same one. */
static void print_kernels(const cleave_plan_t *plan, uint32_t region) {
  const char *backend = cleave_plan_region_backend(plan, region);
  cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  for (uint32_t r = 0; r < region; r++) {
    if (strcmp(cleave_plan_region_backend(plan, r), backend) == 0) {
      return;
    }
  }
  if (configure(backend, "kernels.text", NULL, &answers, &count) != CLEAVE_OK || count == 0) {
    cleave_print("%s: it generates no kernels, or does not show them\n", backend);
  } else if (answers[0].value[0] == '\0') {
    cleave_print("%s: it generated no kernels for this model\n", backend);
  } else {
    cleave_print(CLEAVE_TRUSTED, answers[0].value); /* backends clean what comes from models */
  }
  cleave_answers_free(answers);
}

static cleave_status_t work(cleave_job_t *job, const cleave_job_options_t *options, bool cuda,
                            cleave_error_t *error) {
  CLEAVE_TRY(cleave_job_load(job, options, error));
  CLEAVE_TRY(cleave_job_bind(job, error));
  CLEAVE_TRY(cleave_job_partition(job, error));
  uint32_t count = cleave_plan_region_count(job->plan);
  for (uint32_t r = 0; r < count; r++) {
    (void)configure(cleave_plan_region_backend(job->plan, r), "hint.kernels", cuda ? "cuda" : "1", NULL,
                    NULL);
  }
  CLEAVE_TRY(cleave_job_compile(job, error));
  if (count == 0) {
    cleave_print("no kernels: the rules made no fusion and no region (see cleave why)\n");
  }
  for (uint32_t r = 0; r < count; r++) {
    print_kernels(job->plan, r);
  }
  return CLEAVE_OK;
}

static int run(cleave_arguments_t *arguments) {
  cleave_job_options_t job_options = {.threads = 1};
  bool cuda = false;
  const cleave_option_t options[] = {
      CLEAVE_JOB_RULES(&job_options),
      CLEAVE_JOB_SETTINGS(&job_options),
      CLEAVE_JOB_RANGES(&job_options),
      CLEAVE_TEXT(&job_options.backend, "backend", "NAME",
                  "one region over all that this backend supports, or the backend in place of that of the "
                  "rule files"),
      CLEAVE_JOB_SHAPES(&job_options),
      CLEAVE_FLAG(&cuda, "cuda",
                  "kernels of processors, like those of --rules pointwise, as the CUDA text that a GPU would "
                  "compile; unlike --rules cuda it needs no GPU"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_job_t job = {0};
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job_options.model = arguments->found.items[0];
    status =
        work(&job, &job_options, cuda, &error) == CLEAVE_OK ? CLEAVE_EXIT_OK : cleave_output_error(&error);
  }
  cleave_job_deinit(&job);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    kernels, 37, "MODEL", run, "print the kernels that backends generate",
    "Compiles a model and prints the text of the kernels that its backends generate, each text once,\n"
    "with the nodes that it computes: for processors programs in the language of "
    "backends/kernels/README.md,\n"
    "for GPUs CUDA.",
    .min_operands = 1, .makes_sessions = true)
