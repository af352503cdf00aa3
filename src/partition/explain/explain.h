// SPDX-License-Identifier: Apache-2.0
/*
 * Why a pattern does not match: what it lacks at a node, what was expected and found there, and the smallest
 * edit of the rule with which it would match.
 *
 * Nothing here is part of partitioning. The explainer asks the matcher about patterns without single
 * constraints, so that its answers are the matcher's: a pattern matches if the matcher says so, a constraint
 * is named as the cause only if the match succeeds without it, and an edit is shown only after the edited
 * pattern has matched. Budgets of steps bound every anchor and every rule; the work is linear in the graph.
 */
#ifndef CLEAVE_PARTITION_EXPLAIN_EXPLAIN_H
#define CLEAVE_PARTITION_EXPLAIN_EXPLAIN_H

#include "base/arena.h"
#include "partition/pattern/ruleset.h"

/* One constraint of a pattern that the graph does not meet. Strings are for people, one line each. */
typedef struct cleave_mismatch {
  const char *kind;    /* for programs: "operator", "missing", "extra", "attribute", "dtype", "rank", "shape",
                          "constant", "value", "same", "shared", "count", "edge", "output", "condition" */
  uint32_t part;       /* of the pattern, by index; NONE: the pattern as a whole */
  int32_t line;        /* of the rule file, */
  const char *file;    /* or of one that it includes; NULL: the rule's own */
  const char *path;    /* in the pattern: "mul.inputs[B] > Sigmoid" */
  const char *subject; /* what is at fault: "operator", "attribute perm", "dtype" */
  const char *expected; /* "[0, 1, 3, 2]" */
  const char *found;    /* "[0, 2, 3, 1]"; no names of the graph, so that equal faults read the same */
  const char *detail;   /* with names of the graph: "by Add '/add'"; or "" */
  cleave_node_t node;   /* in the graph, at fault; NONE: see value */
  cleave_value_t value; /* likewise; NONE: there is no such value */
  const char *fix;      /* the edit of the rule that mends it, as Lua; NULL: there is none */
} cleave_mismatch_t;

/* The findings of the explainer about one anchor, in the arena of the caller. */
typedef struct cleave_finding {
  cleave_node_t anchor;
  bool matches;     /* the pattern as it is; `nodes` are the match */
  bool is_complete; /* false: a budget was spent before everything was tried */
  uint32_t matched; /* operators of the pattern that are present as required, */
  uint32_t total;   /* of so many */
  const cleave_node_t
      *nodes; /* the nodes for operators of the pattern, matching or not; in topological order */
  uint32_t node_count;
  const cleave_mismatch_t *mismatches; /* in the order of the pattern; together they keep it from matching */
  uint32_t mismatch_count;
  bool is_fixed;       /* with all fixes together the pattern matches here: this was tried */
  const char *refuser; /* who refuses that match: "cycle", "where", "backend"; "limit": nobody could be asked
                          any more; NULL: nobody */
  const char *refusal; /* why, one line; or NULL */
} cleave_finding_t;

typedef struct cleave_explainer cleave_explainer_t;
struct cleave_history;

/* The graph must outlive the explainer and not change. */
CLEAVE_STATUS cleave_explainer_create(const cleave_graph_t *graph, cleave_explainer_t **out_explainer,
                                      cleave_error_t *error);
void cleave_explainer_destroy(cleave_explainer_t *explainer);
/* Lets explanations say which rule made a node (explain_history.h). Borrowed; may be NULL. */
void cleave_explainer_set_history(cleave_explainer_t *explainer, const struct cleave_history *history);

/* Asked about matches of edited patterns: sets *out_refuser to a literal string like "backend", and the
 * reason, or leaves both. An error ends the answer; so a failure of a rule's function must be reported as a
 * refusal. */
typedef cleave_status_t (*cleave_explain_judge_t)(void *context, const cleave_graph_t *graph,
                                                  const cleave_match_t *match, const char **out_refuser,
                                                  cleave_reason_t *reason, cleave_error_t *error);
/* NULL: no match is refused. */
void cleave_explainer_set_judge(cleave_explainer_t *explainer, cleave_explain_judge_t judge, void *context);

/* The pattern (checked, borrowed) that the next calls are about; gives the rule its budget of steps. */
CLEAVE_STATUS cleave_explainer_set_pattern(cleave_explainer_t *explainer, const cleave_pattern_t *pattern,
                                           cleave_error_t *error);

/* Nodes of operators that the pattern begins with, in topological order. Borrowed until the pattern changes.
 */
CLEAVE_STATUS cleave_explainer_anchors(cleave_explainer_t *explainer, const uint32_t **out_positions,
                                       uint32_t *out_count, cleave_error_t *error);
/* The operators that the pattern cannot do without and the graph has none of: "Sigmoid", "Relu or Clip". In
 * the caller's arena. */
CLEAVE_STATUS cleave_explainer_needs(cleave_explainer_t *explainer, cleave_arena_t *arena,
                                     const char *const **out_needs, uint32_t *out_count,
                                     cleave_error_t *error);
/* Is the rule's budget of steps spent? Then nothing more is found. */
bool cleave_explainer_is_spent(const cleave_explainer_t *explainer);
/* The node of a position, and back. */
cleave_node_t cleave_explainer_node(const cleave_explainer_t *explainer, uint32_t position);
uint32_t cleave_explainer_position(const cleave_explainer_t *explainer, cleave_node_t node);

/* The first match at an anchor that has `include` (NONE: any). */
CLEAVE_STATUS cleave_explainer_match(cleave_explainer_t *explainer, uint32_t anchor, cleave_node_t include,
                                     cleave_arena_t *arena, cleave_finding_t *out_finding,
                                     cleave_error_t *error);

typedef enum cleave_explain_depth {
  CLEAVE_EXPLAIN_ALL,
  CLEAVE_EXPLAIN_DETAILS, /* nothing is found if an operator of the pattern is missing */
  CLEAVE_EXPLAIN_ANCHOR   /* nothing is found if more than the anchor's operator is not as required */
} cleave_explain_depth_t;

/* Finds what keeps the pattern from matching at an anchor (position). `focus`: an optional part of the
 * pattern that must be present, or NONE. The anchor may be any node: another operator is a mismatch like any
 * other. If nothing is found, the finding has no nodes. */
CLEAVE_STATUS cleave_explainer_explain(cleave_explainer_t *explainer, uint32_t anchor, uint32_t focus,
                                       cleave_explain_depth_t depth, cleave_arena_t *arena,
                                       cleave_finding_t *out_finding, cleave_error_t *error);

/* The optional operators of the pattern, as candidates for `focus`. At most `size` of them. */
uint32_t cleave_explainer_optional_parts(const cleave_explainer_t *explainer, uint32_t *parts, uint32_t size);

#endif /* CLEAVE_PARTITION_EXPLAIN_EXPLAIN_H */
