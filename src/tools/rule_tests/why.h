// SPDX-License-Identifier: Apache-2.0
/* Answers to "why" over a model and its rule files: the plan, and what the explainer says of it. */
#ifndef CLEAVE_TOOLS_RULE_TESTS_WHY_H
#define CLEAVE_TOOLS_RULE_TESTS_WHY_H

#include "partition/report/explain_report.h"
#include "runtime/model/rule_list.h"

/* A question; see cleave_why_request_t. */
typedef struct cleave_why_question {
  const char *const *nodes;
  size_t node_count;
  const char *const *rules;
  size_t rule_count;
  bool numbers_of_source;
  uint32_t limit;
  const atomic_bool *is_interrupted;
} cleave_why_question_t;

/* `plan` was made by rules like those of `list`, which are loaded afresh: they run once more over the plan's
 * graph, so that it is on record where regions stop. The plan must outlive the answer. */
CLEAVE_STATUS cleave_rule_list_why(const cleave_rule_list_t *list, const cleave_plan_t *plan,
                                   const cleave_why_question_t *question, cleave_why_t **out_why,
                                   cleave_error_t *error);

#endif /* CLEAVE_TOOLS_RULE_TESTS_WHY_H */
