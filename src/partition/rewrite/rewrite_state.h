/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites that run together: private to transform.c and rewrite*.c. */
#ifndef CLEAVE_PARTITION_REWRITE_REWRITE_STATE_H
#define CLEAVE_PARTITION_REWRITE_REWRITE_STATE_H

#include "base/key_set.h"
#include "graph/contraction.h"
#include "partition/match/match.h"
#include "partition/rewrite/transform.h"

/* One rule that changes graphs, and what it has still to look at. */
typedef struct cleave_rule_run {
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
} cleave_rule_run_t;

/* A match in the queue: what has the newest nodes first, then the larger, then the one that begins
 * first. */
typedef struct cleave_rewrite_candidate {
  uint32_t round;  /* the latest application that made a node of it; 0: the rule found them all */
  uint32_t anchor; /* node */
  uint32_t look;   /* number of the look at the anchor that found it: a later one finds anew */
  uint32_t size;
  uint32_t first;    /* position of its first node */
  uint32_t position; /* of the anchor */
  uint32_t refusals; /* of other matches at the anchor, since the look */
  size_t nodes;      /* in the queue's `nodes` */
  uint64_t hash;
} cleave_rewrite_candidate_t;

/* Matches of the rule at work that were found and not yet applied, and who lost to whom. */
typedef struct cleave_rewrite_queue {
  CLEAVE_ARRAY(cleave_rewrite_candidate_t) heap;
  CLEAVE_ARRAY(uint32_t) nodes;  /* of the candidates */
  CLEAVE_ARRAY(uint32_t) looks;  /* per node: at it as an anchor, so far */
  CLEAVE_ARRAY(uint32_t) rounds; /* per node: number of the application that made it, or 0 */
  uint32_t round;                /* number of the last application */
  CLEAVE_ARRAY(uint32_t) takers; /* per node: group of the log in which the rule took it, or NONE */
  cleave_key_set_t refused;      /* matches */
} cleave_rewrite_queue_t;

/* How nodes came about; what a place was. */
typedef struct cleave_rewrite_loops cleave_rewrite_loops_t;

typedef struct cleave_rewriter {
  cleave_editor_t *editor;
  const cleave_transform_options_t *options;
  cleave_rule_run_t *runs; /* of the group */
  uint32_t run_count;
  cleave_contraction_t order;       /* positions: topological for nodes of the beginning, new ones behind */
  uint32_t known_nodes;             /* node indices below this have positions */
  size_t node_capacity;             /* of order.nodes */
  size_t position_capacity;         /* of order.positions */
  cleave_matcher_t *matcher;        /* over `order`; NULL: to be made anew */
  CLEAVE_ARRAY(uint32_t) changes;   /* nodes, that the other rules have still to look at */
  CLEAVE_ARRAY(uint32_t) worklist;  /* nodes to look at */
  CLEAVE_ARRAY(uint8_t) is_waiting; /* per node index: in the worklist */
  CLEAVE_ARRAY(uint32_t) reached;   /* of a walk over neighbours, nearest first */
  CLEAVE_ARRAY(uint32_t) walks;     /* per node index: the walk that saw it last */
  uint32_t walk;
  cleave_rewrite_queue_t queue;
  CLEAVE_ARRAY(cleave_node_t) nodes; /* of the match in hand, in topological order */
  CLEAVE_ARRAY(const char *) labels;
  CLEAVE_ARRAY(uint32_t) local;         /* per node index: place in the match, or NONE */
  CLEAVE_ARRAY(uint64_t) hashes;        /* per node of the match */
  CLEAVE_ARRAY(cleave_value_t) outputs; /* of the match: what is read outside */
  cleave_rewrite_loops_t *loops;
  size_t steps_left; /* of the rule at work */
} cleave_rewriter_t;

/* ---- rewrite.c ---- */

/* Runs rewrites together until none of them matches anywhere. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_group(cleave_editor_t *editor,
                                                     const cleave_transform_options_t *options,
                                                     cleave_rule_run_t *runs, uint32_t run_count,
                                                     cleave_error_t *error);

/* ---- rewrite_worklist.c ---- */

/* What a match of the rule's pattern reaches. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_measure(cleave_rule_run_t *run, cleave_error_t *error);

/* A matcher and positions for the graph as it is. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_begin_order(cleave_rewriter_t *rewriter,
                                                           cleave_error_t *error);
void cleave_rewrite_drop_order(cleave_rewriter_t *rewriter);
/* Positions for nodes that were added since. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_grow_order(cleave_rewriter_t *rewriter, cleave_error_t *error);

/* Puts nodes on the worklist that may be anchors of new matches, now that `count` nodes changed; nearest
 * last.
 */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_extend_worklist(cleave_rewriter_t *rewriter,
                                                               cleave_rule_run_t *run,
                                                               const uint32_t *changed, size_t count,
                                                               cleave_error_t *error);

/* ---- rewrite_queue.c ---- */

/* Empties the queue, before a rule runs. */
void cleave_rewrite_queue_clear(cleave_rewrite_queue_t *queue);
void cleave_rewrite_queue_deinit(cleave_rewrite_queue_t *queue);
/* Room for nodes below `bound`; what is new was made by the last application. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_queue_grow(cleave_rewrite_queue_t *queue, uint32_t bound,
                                                          cleave_error_t *error);
/* A look at an anchor: candidates and refusals of earlier ones do not count any more. */
void cleave_rewrite_queue_look(cleave_rewrite_queue_t *queue, cleave_node_t anchor);

/* A match at an anchor, after so many refused ones. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_queue_push(cleave_rewriter_t *rewriter, cleave_node_t anchor,
                                                          uint32_t refusals,
                                                          const cleave_match_answer_t *answer,
                                                          cleave_error_t *error);
/* The one that goes first; *out_is_current: nobody has looked at its anchor since. False: none is left. */
bool cleave_rewrite_queue_pop(cleave_rewrite_queue_t *queue, cleave_rewrite_candidate_t *out_candidate,
                              bool *out_is_current);

/* Was this match at the anchor refused since the last look? */
bool cleave_rewrite_queue_is_refused(const cleave_rewrite_queue_t *queue, cleave_node_t anchor,
                                     uint64_t hash);
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_queue_refuse(cleave_rewrite_queue_t *queue,
                                                            cleave_node_t anchor, uint64_t hash,
                                                            cleave_error_t *error);

/* An application has taken editor->removed; what is new from here on is its own. */
void cleave_rewrite_queue_applied(cleave_rewriter_t *rewriter);
/* Puts on record that a candidate lost a node, if it did: to a match of the same rule, which is none but
 * itself. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_queue_note_loss(cleave_rewriter_t *rewriter,
                                                               const cleave_rule_run_t *run,
                                                               const cleave_rewrite_candidate_t *candidate,
                                                               cleave_error_t *error);

/* ---- rewrite_apply.c ---- */

/* Puts the substitute in the place of a match. *out_applied is false where `where` or `replace` leave it, for
 * a reason that is on record. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_apply(cleave_rewriter_t *rewriter, cleave_rule_run_t *run,
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
                                                            const cleave_rule_run_t *run,
                                                            cleave_error_t *error);
/* After it: editor->removed are gone, nodes from first_node on are new; `to` stands for `from` now. */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_check_growth(cleave_rewriter_t *rewriter,
                                                            const cleave_rule_run_t *run,
                                                            const cleave_substitute_t *substitute,
                                                            cleave_error_t *error);
/* The value of the graph as it was given in whose place this one stands. */
uint32_t cleave_rewrite_place(const cleave_rewrite_loops_t *loops, uint32_t value);

/* "rules/a.lua:12: rewrite 'x': message". */
CLEAVE_MUST_USE cleave_status_t cleave_rewrite_fail(const cleave_rule_run_t *run, cleave_status_t status,
                                                    const cleave_error_t *cause, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_REWRITE_REWRITE_STATE_H */
