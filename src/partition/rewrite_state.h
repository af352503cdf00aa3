/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites that run together: private to transform.c and rewrite*.c. */
#ifndef CLEAVE_PARTITION_REWRITE_STATE_H
#define CLEAVE_PARTITION_REWRITE_STATE_H

#include "graph/contraction.h"
#include "partition/match.h"
#include "partition/transform.h"

/* A graph rule in its turn. */
typedef struct cleave_graph_turn {
  const cleave_rule_t *rule;
  const char *file;
  cleave_plan_rule_t description; /* for `allow` */
  uint32_t number;                /* among all rules of all rulesets */
  uint32_t log_rule;              /* in the log's rules */
  /* rewrites: what a match reaches, and what was looked at */
  uint32_t radius;                        /* edges between the nodes of a match, at most */
  uint64_t ops[CLEAVE_OP_COUNT / 64 + 1]; /* that the pattern names, as bits */
  bool any_op;                            /* it names none somewhere, or one that is in no table */
  bool has_siblings;                      /* nodes of a match may be tied by a value that they read, only */
  bool looks_at_all;                      /* every node has to be looked at (again) */
  size_t changes_seen;                    /* of rewriter->changes */
} cleave_graph_turn_t;

/* How nodes came about; what a place was. */
typedef struct cleave_rewrite_loops cleave_rewrite_loops_t;

typedef struct cleave_rewriter {
  cleave_editor_t *editor;
  const cleave_transform_options_t *options;
  cleave_graph_turn_t *turns; /* of the group */
  uint32_t turn_count;
  cleave_contraction_t order;       /* positions: topological for nodes of the beginning, new ones behind */
  uint32_t known_nodes;             /* node indices below this have positions */
  size_t node_capacity;             /* of order.nodes */
  size_t position_capacity;         /* of order.positions */
  cleave_matcher_t *matcher;        /* over `order`; NULL: to be made anew */
  CLEAVE_ARRAY(uint32_t) changes;   /* nodes, for turns to come */
  CLEAVE_ARRAY(uint32_t) stack;     /* nodes to look at */
  CLEAVE_ARRAY(uint8_t) is_waiting; /* per node index: in the stack */
  CLEAVE_ARRAY(uint32_t) near;      /* of a walk over neighbours, nearest first */
  CLEAVE_ARRAY(uint32_t) walks;     /* per node index: the walk that saw it last */
  uint32_t walk;
  CLEAVE_ARRAY(uint64_t) refused;    /* hashes of matches at one anchor */
  CLEAVE_ARRAY(cleave_node_t) nodes; /* of the match in hand, in topological order */
  CLEAVE_ARRAY(const char *) labels;
  CLEAVE_ARRAY(uint32_t) local;         /* per node index: place in the match, or NONE */
  CLEAVE_ARRAY(uint64_t) hashes;        /* per node of the match */
  CLEAVE_ARRAY(cleave_value_t) outputs; /* of the match: what is read outside */
  cleave_rewrite_loops_t *loops;
  size_t steps_left; /* of the rule at work */
} cleave_rewriter_t;

/* ---- rewrite.c ---- */

/* Runs the turns (rewrites all) together to their end. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_group(cleave_editor_t *editor,
                                                     const cleave_transform_options_t *options,
                                                     cleave_graph_turn_t *turns, uint32_t turn_count,
                                                     cleave_error_t *error);

/* ---- rewrite_near.c ---- */

/* What a match of the turn's pattern reaches. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_measure(cleave_graph_turn_t *turn, cleave_error_t *error);

/* A matcher and positions for the graph as it is. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_begin_order(cleave_rewriter_t *rewriter,
                                                           cleave_error_t *error);
void cleave_rewrite_drop_order(cleave_rewriter_t *rewriter);
/* Positions for nodes that were added since. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_grow_order(cleave_rewriter_t *rewriter, cleave_error_t *error);

/* Puts nodes on the stack that may be anchors of new matches, now that `count` nodes changed; nearest last.
 */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_push_near(cleave_rewriter_t *rewriter,
                                                         cleave_graph_turn_t *turn, const uint32_t *changed,
                                                         size_t count, cleave_error_t *error);

/* ---- rewrite_apply.c ---- */

/* Puts the substitute in the place of a match. *out_applied is false where `where` or `replace` leave it, for
 * a reason that is on record. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_apply(cleave_rewriter_t *rewriter, cleave_graph_turn_t *turn,
                                                     const cleave_match_t *match, bool *out_applied,
                                                     cleave_error_t *error);

/* ---- rewrite_loops.c ---- */

CLEAVE_MUST_USE cleave_status_t cleave_rewrite_loops_create(const cleave_graph_t *graph,
                                                            cleave_rewrite_loops_t **out_loops,
                                                            cleave_error_t *error);
void cleave_rewrite_loops_destroy(cleave_rewrite_loops_t *loops);

/* Before a change: is the place of the match in hand (rewriter->nodes, hashes, outputs) one that has been so
 * before? CLEAVE_ERROR_RULE names the rules. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_check_return(cleave_rewriter_t *rewriter,
                                                            const cleave_graph_turn_t *turn,
                                                            cleave_error_t *error);
/* After it: editor->removed are gone, nodes from first_node on are new; `to` stands for `from` now. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_check_growth(cleave_rewriter_t *rewriter,
                                                            const cleave_graph_turn_t *turn,
                                                            const cleave_substitute_t *substitute,
                                                            cleave_error_t *error);
/* The value of the graph as it was given in whose place this one stands. */
uint32_t cleave_rewrite_place(const cleave_rewrite_loops_t *loops, uint32_t value);

/* "rules/a.lua:12: rewrite 'x': message". */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_fail(const cleave_graph_turn_t *turn, cleave_status_t status,
                                                    const cleave_error_t *cause, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_REWRITE_STATE_H */
