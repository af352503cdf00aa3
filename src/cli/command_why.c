// SPDX-License-Identifier: Apache-2.0
// cleave why: what rules did with a node, and what they nearly matched.
#include "cli/common/command.h"
#include "cli/common/job.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "tools/rule_tests/why.h"

typedef struct ask {
  cleave_text_list_t nodes;
  cleave_text_list_t rules;
  int64_t limit;
  bool json;
} ask_t;

static cleave_status_t print(const cleave_why_t *why, const cleave_sizes_t *sizes, bool json,
                             cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_status_t status =
      json ? cleave_why_print_json(why, &text, error) : cleave_why_print_text(why, &text, error);
  if (status == CLEAVE_OK && json) {
    json_t *object = json_loads(cleave_text_get(&text), 0, NULL);
    (void)json_object_set_new(object, "sizes", cleave_sizes_json(sizes));
    (void)cleave_output_json(object);
  } else if (status == CLEAVE_OK) {
    cleave_report_sizes(sizes);
    cleave_output_printed(&text, false);
  }
  cleave_text_deinit(&text);
  return status;
}

static cleave_status_t work(cleave_job_t *job, const cleave_job_options_t *options, const ask_t *ask,
                            cleave_error_t *error) {
  cleave_rule_list_t list = {0};
  cleave_why_t *why = NULL;
  cleave_status_t status = CLEAVE_OK;
  cleave_why_question_t question = {.nodes = ask->nodes.items,
                                    .node_count = ask->nodes.count,
                                    .rules = ask->rules.items,
                                    .rule_count = ask->rules.count,
                                    .limit = (uint32_t)(ask->limit > 100000 ? 100000 : ask->limit)};
  CLEAVE_TRY_CLEANUP(cleave_job_load(job, options, error));
  CLEAVE_TRY_CLEANUP(cleave_job_bind_shapes(job, error));
  CLEAVE_TRY_CLEANUP(cleave_job_partition(job, error));
  CLEAVE_TRY_CLEANUP(cleave_job_load_rules(job, &list, error));
  CLEAVE_TRY_CLEANUP(cleave_rule_list_why(&list, job->plan, &question, &why, error));
  why->limit_option = "--limit";
  CLEAVE_TRY_CLEANUP(print(why, &job->inputs.sizes, ask->json, error));
cleanup:
  cleave_why_destroy(why);
  cleave_rule_list_deinit(&list);
  return status;
}

static int run(cleave_arguments_t *arguments) {
  cleave_job_options_t job_options = {0};
  ask_t ask = {.limit = 10};
  const cleave_option_t options[] = {
      CLEAVE_JOB_RULES(&job_options),
      CLEAVE_LIST(&ask.nodes, "node", "NAME",
                  "what every rule did with this node: its name, '#12' (the number in 'Conv#12'), the name "
                  "of an output, or 'op:Conv' for all of an operator; may be given many times"),
      CLEAVE_LIST(&ask.rules, "rule", "NAME",
                  "only this rule; without --node: its matches and near misses over the whole model"),
      CLEAVE_INT(&ask.limit, "limit", "N",
                 "nodes of an operator; of a rule kinds of near misses, refusals and losses (default: 10)"),
      CLEAVE_JOB_SETTINGS(&job_options),
      CLEAVE_JOB_RANGES(&job_options),
      CLEAVE_JOB_SHAPES(&job_options),
      CLEAVE_FLAG(&ask.json, "json", "print everything as JSON"),
  };
  int status = CLEAVE_EXIT_OK;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_job_t job = {0};
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    job_options.model = arguments->found.items[0];
    if (job_options.rules.count == 0) {
      status = cleave_arguments_fail("why", "expected --rules FILE");
    } else if (work(&job, &job_options, &ask, &error) != CLEAVE_OK) {
      status = cleave_output_error(&error);
    }
  }
  cleave_job_deinit(&job);
  return status;
}

CLEAVE_COMMAND_DEFINE(
    why, 25, "MODEL", run, "why a rule did or did not match, and what would change that",
    "Says why: for a node, what each rule did with it, and the first thing that keeps a pattern from\n"
    "matching there; for a rule, where it matched and where it nearly did, with the smallest edit of\n"
    "the rule that would let it match (tried before it is printed, also against the rule's where and\n"
    "backend). Without either: the best near misses of all rules.",
    .min_operands = 1)
