// SPDX-License-Identifier: Apache-2.0
/* Rewrites that run together: private to transform.c and rewrite*.c. */
#ifndef CLEAVE_PARTITION_REWRITE_REWRITE_STATE_H
#define CLEAVE_PARTITION_REWRITE_REWRITE_STATE_H

#include "base/containers/key_set.h"
#include "graph/contraction/contraction.h"
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
  bool any_op;                            /* some part of it accepts any operator, or a custom one */
  bool has_siblings;                      /* nodes of a match may be connected only by a value that they
                                             both read */
  bool looks_at_all;                      /* every node has to be tried as an anchor (again) */
  size_t changes_seen;                    /* of rewriter->changes */
} cleave_rule_run_t;

/* A match in the queue. Order: the newest nodes first, then the larger match, then the one that begins first.
 */
typedef struct cleave_rewrite_candidate {
  uint32_t round;  /* the latest application that made a node of it; 0: all nodes existed before the rule
                      ran */
  uint32_t anchor; /* node */
  uint32_t look;   /* number of the try at the anchor that found it; a later try makes it obsolete */
  uint32_t size;
  uint32_t first;    /* position of its first node */
  uint32_t position; /* of the anchor */
  uint32_t refusals; /* of other matches at the anchor, since the look */
  size_t nodes;      /* in the queue's `nodes` */
  uint64_t hash;
} cleave_rewrite_candidate_t;

/* Matches of the rule at work that were found and not yet applied, and which match took each node. */
typedef struct cleave_rewrite_queue {
  CLEAVE_ARRAY(cleave_rewrite_candidate_t) heap;
  CLEAVE_ARRAY(uint32_t) nodes;  /* of the candidates */
  CLEAVE_ARRAY(uint32_t) looks;  /* per node: at it as an anchor, so far */
  CLEAVE_ARRAY(uint32_t) rounds; /* per node: number of the application that made it, or 0 */
  uint32_t round;                /* number of the last application */
  CLEAVE_ARRAY(uint32_t) takers; /* per node: group of the log in which the rule took it, or NONE */
  cleave_key_set_t refused;      /* matches */
} cleave_rewrite_queue_t;

/* How nodes were made, and hashes of the states that places have had. */
typedef struct cleave_rewrite_loops cleave_rewrite_loops_t;

typedef struct cleave_rewriter {
  cleave_editor_t *editor;
  const cleave_transform_options_t *options;
  cleave_rule_run_t *runs; /* of the group */
  uint32_t run_count;
  cleave_contraction_t order;       /* positions: topological for the nodes at the beginning, new ones
                                       after them */
  uint32_t known_nodes;             /* node indices below this have positions */
  size_t node_capacity;             /* of order.nodes */
  size_t position_capacity;         /* of order.positions */
  cleave_matcher_t *matcher;        /* over `order`; NULL: to be made again */
  CLEAVE_ARRAY(uint32_t) changes;   /* changed nodes that the other rules have still to look at */
  CLEAVE_ARRAY(uint32_t) worklist;  /* nodes to look at */
  CLEAVE_ARRAY(uint8_t) is_waiting; /* per node index: in the worklist */
  CLEAVE_ARRAY(uint32_t) reached;   /* of a walk over neighbours, nearest first */
  CLEAVE_ARRAY(uint32_t) walks;     /* per node index: the walk that saw it last */
  uint32_t walk;
  cleave_rewrite_queue_t queue;
  cleave_key_set_t counted; /* matches that were refused: rule and nodes, alone and with the reason */
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
CLEAVE_STATUS cleave_rewrite_group(cleave_editor_t *editor, const cleave_transform_options_t *options,
                                   cleave_rule_run_t *runs, uint32_t run_count, cleave_error_t *error);

/* ---- rewrite_worklist.c ---- */

/* Computes how far a match of the rule's pattern reaches. */
CLEAVE_STATUS cleave_rewrite_measure(cleave_rule_run_t *run, cleave_error_t *error);

/* Makes a matcher and positions for the present graph. */
CLEAVE_STATUS cleave_rewrite_begin_order(cleave_rewriter_t *rewriter, cleave_error_t *error);
void cleave_rewrite_drop_order(cleave_rewriter_t *rewriter);
/* Positions for nodes that were added since. */
CLEAVE_STATUS cleave_rewrite_grow_order(cleave_rewriter_t *rewriter, cleave_error_t *error);

/* Puts nodes on the worklist that may be anchors of new matches, now that `count` nodes changed; nearest
 * last.
 */
CLEAVE_STATUS cleave_rewrite_extend_worklist(cleave_rewriter_t *rewriter, cleave_rule_run_t *run,
                                             const uint32_t *changed, size_t count, cleave_error_t *error);

/* ---- rewrite_queue.c ---- */

/* Empties the queue, before a rule runs. */
void cleave_rewrite_queue_clear(cleave_rewrite_queue_t *queue);
void cleave_rewrite_queue_deinit(cleave_rewrite_queue_t *queue);
/* Makes room for nodes below `bound`; new ones were made by the last application. */
CLEAVE_STATUS cleave_rewrite_queue_grow(cleave_rewrite_queue_t *queue, uint32_t bound, cleave_error_t *error);
/* Begins a try at an anchor: candidates and refusals of earlier tries are obsolete. */
void cleave_rewrite_queue_look(cleave_rewrite_queue_t *queue, cleave_node_t anchor);

/* Adds a match at an anchor, where `refusals` others were refused before. */
CLEAVE_STATUS cleave_rewrite_queue_push(cleave_rewriter_t *rewriter, cleave_node_t anchor, uint32_t refusals,
                                        const cleave_match_answer_t *answer, cleave_error_t *error);
/* Pops the first candidate. *out_is_current: its anchor has not been tried since. False if none is left. */
bool cleave_rewrite_queue_pop(cleave_rewrite_queue_t *queue, cleave_rewrite_candidate_t *out_candidate,
                              bool *out_is_current);

/* Was this match at the anchor refused since the last try? */
bool cleave_rewrite_queue_is_refused(const cleave_rewrite_queue_t *queue, cleave_node_t anchor,
                                     uint64_t hash);
CLEAVE_STATUS cleave_rewrite_queue_refuse(cleave_rewrite_queue_t *queue, cleave_node_t anchor, uint64_t hash,
                                          cleave_error_t *error);

/* Records an application: it took editor->removed, and nodes that are new from here on are its own. */
void cleave_rewrite_queue_applied(cleave_rewriter_t *rewriter);
/* Records that a candidate lost a node to another match of the same rule, if it did. */
CLEAVE_STATUS cleave_rewrite_queue_note_loss(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run,
                                             const cleave_rewrite_candidate_t *candidate,
                                             cleave_error_t *error);

/* ---- rewrite_match.c ---- */

/* Takes a match in hand: fills rewriter->nodes, labels, hashes and outputs. To be released, also if it fails.
 */
CLEAVE_STATUS cleave_rewrite_hold(cleave_rewriter_t *rewriter, const cleave_match_t *match,
                                  cleave_error_t *error);
void cleave_rewrite_release(cleave_rewriter_t *rewriter, const cleave_match_t *match);
/* Is the node one of the match in hand? */
static inline bool cleave_rewrite_is_inside(const cleave_rewriter_t *rewriter, cleave_node_t node) {
  return cleave_node_exists(node) && rewriter->local.items[node.index] != CLEAVE_INDEX_NONE;
}
/* Logs the sizes and constants that the pattern read to find the match. */
CLEAVE_STATUS cleave_rewrite_note_reads(const cleave_rewriter_t *rewriter, const cleave_match_t *match,
                                        cleave_error_t *error);

/* ---- rewrite_apply.c ---- */

/* Replaces a match by its substitute. *out_applied is false if `where` or `replace` leave it as it is; the
 * reason is recorded. */
CLEAVE_STATUS cleave_rewrite_apply(cleave_rewriter_t *rewriter, cleave_rule_run_t *run,
                                   const cleave_match_t *match, bool *out_applied, cleave_error_t *error);

/* ---- rewrite_loops.c ---- */

CLEAVE_STATUS cleave_rewrite_loops_create(const cleave_graph_t *graph, cleave_rewrite_loops_t **out_loops,
                                          cleave_error_t *error);
void cleave_rewrite_loops_destroy(cleave_rewrite_loops_t *loops);

/* Before a change: has the place of the match in hand (rewriter->nodes, hashes, outputs) been in this state
 * before? CLEAVE_ERROR_RULE names the rules. */
CLEAVE_STATUS cleave_rewrite_check_return(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run,
                                          cleave_error_t *error);
/* After it: editor->removed are gone, nodes from first_node on are new, and `to` replaces `from`. */
CLEAVE_STATUS cleave_rewrite_check_growth(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run,
                                          const cleave_substitute_t *substitute, cleave_error_t *error);
/* The value of the original graph that this one replaces. */
uint32_t cleave_rewrite_place(const cleave_rewrite_loops_t *loops, uint32_t value);

/* "rules/a.lua:12: rewrite 'x': message". */
CLEAVE_STATUS cleave_rewrite_fail(const cleave_rule_run_t *run, cleave_status_t status,
                                  const cleave_error_t *cause, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_REWRITE_REWRITE_STATE_H */
