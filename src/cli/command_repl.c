// SPDX-License-Identifier: Apache-2.0
// cleave repl: the sandbox of rule files at a prompt, with a model's graph, whose rules run when they are
// first asked for; without a model, a prompt that computes with arrays.
#include <string.h>

#include "cli/common/arrays.h"
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/common/repl_input.h"
#include "cli/report/report.h"
#include "runtime/model/model.h"
#include "script/repl.h"
#include "tools/rule_tests/why.h"

// ---- what the prompt asks for ----

typedef struct prompt {
  cleave_job_t *job;
  const cleave_repl_t *repl;
} prompt_t;

static cleave_status_t need_plan(cleave_job_t *job, cleave_error_t *error) {
  if (job->options->rules.count == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "there are no rule files: start with cleave repl MODEL --rules FILE");
  }
  return job->plan != NULL ? CLEAVE_OK : cleave_job_partition(job, error);
}

static cleave_status_t give_plan(void *context, char **out_text, cleave_error_t *error) {
  cleave_job_t *job = ((const prompt_t *)context)->job;
  CLEAVE_TRY(need_plan(job, error));
  CLEAVE_TRY(cleave_plan_format(job->plan, CLEAVE_PLAN_TEXT, out_text, error));
  size_t length = strlen(*out_text);
  while (length > 0 && (*out_text)[length - 1] == '\n') {
    (*out_text)[--length] = '\0';
  }
  return CLEAVE_OK;
}

static cleave_status_t take_text(cleave_text_t *text, char **out_text, cleave_error_t *error) {
  while (text->length > 0 && text->data[text->length - 1] == '\n') {
    text->data[--text->length] = '\0';
  }
  *out_text = cleave_copy_text(cleave_text_get(text), text->length);
  bool failed = text->failed || *out_text == NULL;
  cleave_text_deinit(text);
  return failed ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

static cleave_status_t give_rules(void *context, char **out_text, cleave_error_t *error) {
  cleave_job_t *job = ((const prompt_t *)context)->job;
  cleave_text_t text = {0};
  CLEAVE_TRY(need_plan(job, error));
  for (uint32_t k = 0; k < job->plan->rule_count; k++) {
    const cleave_plan_rule_t *rule = &job->plan->rules[k];
    char place[CLEAVE_PLACE_SIZE];
    cleave_text_show(&text, "%-8s %-24s made %5u  refused %5u  %s\n", cleave_rule_kind_name(rule->kind),
                     rule->name, (unsigned)rule->matches, (unsigned)rule->refused,
                     cleave_rule_place(rule->file, rule->line, place));
  }
  return take_text(&text, out_text, error);
}

/* A name alone is a rule's, or a node's. */
static bool is_rule(const cleave_plan_t *plan, const char *name) {
  for (uint32_t k = 0; name != NULL && k < plan->rule_count; k++) {
    if (strcmp(plan->rules[k].name, name) == 0) {
      return true;
    }
  }
  return false;
}

static cleave_status_t give_why(void *context, const char *node, const char *rule, char **out_text,
                                cleave_error_t *error) {
  const prompt_t *prompt = context;
  cleave_job_t *job = prompt->job;
  cleave_rule_list_t list = {0};
  cleave_why_t *why = NULL;
  cleave_text_t text = {0};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY(need_plan(job, error));
  if (rule == NULL && is_rule(job->plan, node)) {
    rule = node;
    node = NULL;
  }
  cleave_why_question_t question = {.nodes = &node,
                                    .node_count = node != NULL,
                                    .rules = &rule,
                                    .rule_count = rule != NULL,
                                    .numbers_of_source = true,
                                    .is_interrupted = cleave_repl_interrupted(prompt->repl)};
  CLEAVE_TRY_CLEANUP(cleave_job_load_rules(job, &list, error));
  CLEAVE_TRY_CLEANUP(cleave_rule_list_why(&list, job->plan, &question, &why, error));
  CLEAVE_TRY_CLEANUP(cleave_why_print_text(why, &text, error));
  CLEAVE_TRY_CLEANUP(take_text(&text, out_text, error));
cleanup:
  cleave_text_deinit(&text);
  cleave_why_destroy(why);
  cleave_rule_list_deinit(&list);
  return status;
}

// ---- the loop ----

static bool run_chunk(void *context, const char *chunk, size_t length) {
  cleave_text_t output = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  bool incomplete = false;
  cleave_common_start_script_time();
  cleave_status_t status = cleave_repl_run(context, chunk, length, &incomplete, &output, &error);
  cleave_print(CLEAVE_TRUSTED, cleave_text_get(&output));
  (void)fflush(stdout);
  if (status != CLEAVE_OK) {
    cleave_print_error("%s\n", error.message);
  }
  cleave_text_deinit(&output);
  return incomplete;
}

static void interrupt(void *context) {
  cleave_repl_interrupt(context);
}

static cleave_status_t complete(void *context, const char *line, size_t length, size_t *out_start,
                                cleave_text_t *words, cleave_error_t *error) {
  return cleave_repl_complete(context, line, length, out_start, words, error);
}

static cleave_status_t work(cleave_job_t *job, const cleave_job_options_t *options, cleave_error_t *error) {
  cleave_repl_t *repl = NULL;
  prompt_t prompt = {.job = job};
  cleave_repl_services_t services = {
      .context = &prompt, .plan = give_plan, .rules = give_rules, .why = give_why};
  CLEAVE_TRY(cleave_job_load(job, options, error));
  CLEAVE_TRY(cleave_job_bind_shapes(job, error));
  CLEAVE_TRY(cleave_repl_create(cleave_model_graph(job->model), &services, &repl, error));
  prompt.repl = repl;
  cleave_report_sizes(&job->inputs.sizes);
  if (cleave_repl_input_is_terminal()) {
    cleave_print("%s, %zu node%s in g; help() says more, Ctrl-D ends\n", options->model,
                 cleave_model_graph(job->model)->live_node_count,
                 CLEAVE_PLURAL(cleave_model_graph(job->model)->live_node_count));
  }
  const cleave_repl_target_t target = {
      .context = repl, .run = run_chunk, .interrupt = interrupt, .complete = complete};
  cleave_status_t status = cleave_repl_input_run(&target, error);
  cleave_repl_destroy(repl);
  return status;
}

/* 0, or the exit status of options that go with the other prompt. */
static int check(const cleave_job_options_t *job, const cleave_arrays_options_t *arrays) {
  if (job->model != NULL && (arrays->backend != NULL || arrays->threads != 0 || arrays->is_serial)) {
    return cleave_arguments_fail("repl",
                                 "options '--backend', '--threads' and '--serial' are for arrays: "
                                 "leave the model out");
  }
  if (job->model == NULL && (job->settings.count > 0 || job->shapes.count > 0 || job->ranges != NULL)) {
    return cleave_arguments_fail("repl", "options '--set', '--shape' and '--ranges' need a model");
  }
  return CLEAVE_EXIT_OK;
}

static int run(cleave_arguments_t *arguments) {
  cleave_job_options_t job_options = {0};
  cleave_arrays_options_t arrays = {0};
  const cleave_option_t options[] = {
      CLEAVE_LIST(&job_options.rules, "rules", "FILE",
                  "rule file for plan(), rules() and why(), or for functions of nd.hybrid; may be given many "
                  "times, they run in order"),
      CLEAVE_JOB_SETTINGS(&job_options),
      CLEAVE_JOB_RANGES(&job_options),
      CLEAVE_JOB_SHAPES(&job_options),
      CLEAVE_ARRAYS_OPTIONS(&arrays),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_job_t job = {0};
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    bool has_model = arguments->found.count > 0;
    job_options.model = has_model ? arguments->found.items[0] : NULL;
    arrays.rules = job_options.rules;
    status = check(&job_options, &arrays);
    if (status == CLEAVE_EXIT_OK &&
        (has_model ? work(&job, &job_options, &error)
                   : cleave_arrays_run(&arrays, &arguments->found, &error)) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    }
  }
  cleave_job_deinit(&job);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    repl, 60, "[MODEL]", run, "a prompt, with a model's graph or with arrays",
    "With a model: the sandbox of rule files, with the model's graph in g: try patterns, look at nodes,\n"
    "ask why. help() lists the words. Without one: Lua with arrays in nd, where each operator is a function\n"
    "and runs at once; it is trusted, and may read and write files, as 'cleave script' may.\n"
    "Lines come from the terminal, or from a pipe.",
    .max_operands = 1, .makes_sessions = true, .may_exit = true)
