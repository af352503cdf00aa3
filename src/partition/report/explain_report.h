// SPDX-License-Identifier: Apache-2.0
/*
 * Answers to "why": what every rule did with a node, and what a rule matched and nearly matched. Made from an
 * existing plan, the log of where regions stopped, and the explainer; text for people, JSON for programs.
 */
#ifndef CLEAVE_PARTITION_REPORT_EXPLAIN_REPORT_H
#define CLEAVE_PARTITION_REPORT_EXPLAIN_REPORT_H

#include <stdatomic.h>

#include "partition/explain/explain.h"
#include "partition/explain/explain_history.h"
#include "partition/gradient/flow.h"
#include "partition/grow/boundary_log.h"
#include "partition/grow/partition.h"
#include "partition/pattern/ruleset.h"
#include "partition/plan/plan.h"

typedef struct cleave_why_request {
  const cleave_plan_t *plan;
  const cleave_boundary_log_t *log; /* of plan->graph; NULL: reasons of regions come from the plan's notes */
  const cleave_ruleset_t *const *rulesets; /* that made the plan */
  uint32_t ruleset_count;
  const char *const *nodes; /* names, "#12" (the number in "Conv#12"), "op:Conv" for all of an operator */
  uint32_t node_count;
  const char *const *rules; /* names; none: all */
  uint32_t rule_count;
  bool numbers_of_source;      /* "#12" is a node of plan->source: if it was taken, the node of that name
                                  in plan->graph, if there is one */
  uint32_t limit;              /* nodes of one "op:"; of a rule near misses, refusals, losses; 0: 10 */
  cleave_fold_function_t fold; /* that graph rules ran with: their graphs are made again with it */
  void *fold_context;
  /* As in cleave_partition_options_t: asked about what an edited rule would fuse. NULL: no match is refused.
   */
  cleave_status_t (*supports)(void *context, const char *backend, const cleave_graph_t *graph,
                              const cleave_fusion_set_t *set, bool *out_yes, cleave_reason_t *reason,
                              cleave_error_t *error);
  void *supports_context;
  const cleave_gradient_rules_t *gradients; /* in force, those of `rulesets` last; NULL: not asked about */
  const atomic_bool *is_interrupted; /* if it is set, by any thread or signal handler, the answer ends with
                                        CLEAVE_ERROR_LIMIT; NULL: nothing ends it */
} cleave_why_request_t;

typedef enum cleave_fate {
  CLEAVE_FATE_FUSED,     /* in a fusion of the rule */
  CLEAVE_FATE_REGION,    /* in a region of the rule */
  CLEAVE_FATE_STAGE,     /* in a stage of the rule */
  CLEAVE_FATE_MADE,      /* the rule, which changes the model, made it */
  CLEAVE_FATE_REWRITTEN, /* the rule, which changes the model, took it */
  CLEAVE_FATE_REFUSED,   /* matched; refused by where, the backend, review, a threshold or a cycle */
  CLEAVE_FATE_LOST,      /* matched; nodes were taken by others */
  CLEAVE_FATE_MISSED,    /* a part of the pattern matched */
  CLEAVE_FATE_OUTSIDE    /* the rule has nothing to do with this node */
} cleave_fate_t;

/* "fused", "region", "stage", "made", "rewritten", "refused", "lost", "missed", "outside". */
const char *cleave_fate_name(cleave_fate_t fate);

/* The fate of a node under a rule. */
typedef struct cleave_verdict {
  uint32_t rule; /* in plan->rules */
  cleave_fate_t fate;
  const char *cause;  /* REFUSED: "where", "backend", ...; LOST: kind of the winner; or "" */
  const char *reason; /* one line; "" if there is none */
  uint32_t winner;    /* LOST: in plan->rules; MISSED, OUTSIDE: the rule that took the node; or NONE */
  uint32_t fusion;    /* FUSED: in plan->fusions; LOST: that of the winner; or NONE */
  uint32_t region;    /* in plan->regions, or NONE */
  const cleave_graph_t *graph; /* that has the nodes of `finding`: as the rule saw it */
  cleave_finding_t finding;    /* REFUSED, LOST: the match; MISSED: the best partial one; MADE, REWRITTEN: its
                                  nodes are what the rule took */
  const cleave_node_t *made;   /* MADE, REWRITTEN: what the rule made in their place, in plan->graph */
  uint32_t made_count;
} cleave_verdict_t;

/* The rule by which gradients pass an operator. */
typedef struct cleave_why_gradient {
  const char *op;
  const char *place;    /* "a.lua:12"; NULL: it has none */
  const char *replaced; /* place of the rule that this one replaces; NULL: none */
  bool carries;         /* false: the rule says that no gradient passes */
  uint32_t node_count;  /* of this operator in the plan's graph */
} cleave_why_gradient_t;

typedef struct cleave_why_node {
  const cleave_graph_t *graph; /* of `node`: the plan's, or its source */
  cleave_node_t node;
  const cleave_verdict_t *verdicts;
  uint32_t verdict_count;
  const cleave_why_gradient_t *gradient; /* NULL: not asked about */
} cleave_why_node_t;

/* Matches of one structure that one rule did not keep for one reason: refused, or lost to one other rule. */
typedef struct cleave_why_refusal {
  const char *cause;     /* as cleave_plan_note_name; "" for rules that change the model, and for losses */
  const char *reason;    /* of the first; names in quotes make no difference. "" for losses */
  uint32_t winner;       /* of losses: in plan->rules; or NONE */
  const char *structure; /* operators of the match, "Conv, Relu"; "" if they are not known */
  uint32_t count;
  const cleave_graph_t *graph; /* of `first` */
  cleave_node_t first;         /* NONE: see place */
  const char *place;           /* of rules that change the model: the first node, as it was called; or NULL */
} cleave_why_refusal_t;

/* Places with the same mismatches. */
typedef struct cleave_near_miss {
  const cleave_graph_t *graph; /* of the finding */
  cleave_finding_t finding;    /* of the first place */
  uint32_t count;
  bool is_optional; /* the rule matches there, without this optional part */
  bool is_taken; /* all its nodes are in fusions of other rules, or a rule that changes the model took it */
} cleave_near_miss_t;

/* The order of near misses, as for qsort: by the share of the pattern that matched, where each mismatch
 * counts as one node. */
int cleave_near_miss_compare(const cleave_near_miss_t *a, const cleave_near_miss_t *b);

typedef struct cleave_why_rule {
  uint32_t rule;               /* in plan->rules */
  bool grows;                  /* it has no pattern: its fusions or regions grow */
  const cleave_graph_t *graph; /* that the rule looked at in the end */
  uint32_t anchor_count;
  uint32_t match_count;  /* places where the pattern matches */
  uint32_t lost_count;   /* of them, those whose nodes other rules took */
  uint32_t before_count; /* in addition: places where the rule (not a graph rule) would have matched the
                            model as it was before it was rewritten */
  uint32_t far_count;    /* places with less than half of the pattern */
  uint32_t limit_count;  /* places where a search was given up */
  uint32_t need_count;
  const char *const *needs; /* operators that the pattern needs and the model has none of: "Relu or Clip" */
  uint32_t refusal_count;
  const cleave_why_refusal_t *refusals; /* all groups, most frequent first */
  uint32_t loss_count;
  const cleave_why_refusal_t *losses;    /* likewise */
  uint32_t near_miss_count;              /* groups; at most `limit` of them are in `near_misses` */
  const cleave_near_miss_t *near_misses; /* most matched first */
} cleave_why_rule_t;

typedef struct cleave_why {
  cleave_arena_t arena;
  const cleave_plan_t *plan;
  cleave_history_t *history; /* owned: graphs of the answers are its states */
  uint32_t limit;
  const char *limit_option; /* how the user can raise it, printed if something is left out; may be NULL */
  bool is_summary;          /* neither nodes nor rules were asked for */
  uint32_t node_count;
  const cleave_why_node_t *nodes;
  uint32_t nodes_left_out; /* of "op:" beyond the limit */
  uint32_t rule_count;
  const cleave_why_rule_t *rules;
  uint32_t gradient_count; /* rules that were asked for and are gradients */
  const cleave_why_gradient_t *gradients;
} cleave_why_t;

/* With nodes asked for: verdicts of the rules asked for (or all). Otherwise: reports of these rules. A name
 * that nothing has is CLEAVE_ERROR_INVALID_ARGUMENT with the nearest one. The plan must outlive the answer.
 */
CLEAVE_STATUS cleave_why_create(const cleave_why_request_t *request, cleave_why_t **out_why,
                                cleave_error_t *error);
void cleave_why_destroy(cleave_why_t *why);

CLEAVE_STATUS cleave_why_print_text(const cleave_why_t *why, cleave_text_t *text, cleave_error_t *error);
CLEAVE_STATUS cleave_why_print_json(const cleave_why_t *why, cleave_text_t *text, cleave_error_t *error);

/* ---- the parts, for explain_report.c ---- */

typedef struct cleave_why_builder {
  const cleave_why_request_t *request;
  cleave_arena_t *arena;
  const cleave_rule_t *const *rules; /* per rule of the plan; NULL: not known */
  cleave_history_t *history;
  uint32_t asked_rule; /* that the judge is about */
} cleave_why_builder_t;

/* explain_try_rule.c: gives an explainer a rule's pattern, and `where` and the backend as the judge of edits.
 */
CLEAVE_STATUS cleave_why_set_rule(cleave_why_builder_t *builder, uint32_t rule, cleave_explainer_t *explainer,
                                  cleave_error_t *error);
/* explain_groups.c */
typedef CLEAVE_ARRAY(cleave_why_refusal_t) cleave_why_refusals_t;
/* Adds one match that was not kept to its group. */
CLEAVE_STATUS cleave_why_group(cleave_why_refusals_t *groups, const cleave_why_refusal_t *refusal,
                               cleave_error_t *error);
/* Sorts the groups, most frequent first, and copies them into the arena. */
CLEAVE_STATUS cleave_why_end_groups(cleave_why_refusals_t *groups, cleave_arena_t *arena,
                                    const cleave_why_refusal_t **out_items, uint32_t *out_count,
                                    cleave_error_t *error);

/* To be called in long loops: CLEAVE_ERROR_LIMIT if the request was interrupted. */
CLEAVE_MUST_USE static inline cleave_status_t cleave_why_go_on(const cleave_why_builder_t *builder,
                                                               cleave_error_t *error) {
  const atomic_bool *flag = builder->request->is_interrupted;
  return flag != NULL && atomic_load(flag) ? cleave_error_set(error, CLEAVE_ERROR_LIMIT, "why: interrupted")
                                           : CLEAVE_OK;
}

/* explain_gradient.c */
/* Reports the gradient rule of the operator. *out_report is NULL if the request has no gradients. */
CLEAVE_STATUS cleave_why_report_gradient(const cleave_why_builder_t *builder, const cleave_op_t *op,
                                         const cleave_why_gradient_t **out_report, cleave_error_t *error);
/* Reports the gradients of rule files among the rules that were asked for by name. */
CLEAVE_STATUS cleave_why_report_gradients(const cleave_why_builder_t *builder, cleave_why_t *why,
                                          cleave_error_t *error);
/* The gradient rule of this name in the request's rule files, or NULL. */
const cleave_gradient_rule_t *cleave_why_find_gradient(const cleave_why_request_t *request, const char *name);
/* explain_rule.c */
CLEAVE_STATUS cleave_why_report_rule(cleave_why_builder_t *builder, uint32_t rule,
                                     cleave_why_rule_t *out_report, cleave_error_t *error);
/* explain_node.c; the explainer has the rule's pattern afterwards. */
CLEAVE_STATUS cleave_why_judge(cleave_why_builder_t *builder, uint32_t rule, cleave_node_t node,
                               cleave_verdict_t *out_verdict, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_REPORT_EXPLAIN_REPORT_H */
