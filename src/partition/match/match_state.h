// SPDX-License-Identifier: Apache-2.0
/* The state of the matcher, private to match*.c. */
#ifndef CLEAVE_PARTITION_MATCH_MATCH_STATE_H
#define CLEAVE_PARTITION_MATCH_MATCH_STATE_H

#include "base/containers/key_set.h"
#include "partition/match/match.h"
#include "partition/pattern/pattern_path.h"

typedef enum goal_kind {
  GOAL_ANCHOR,          /* `pattern` with its first operator at `node` */
  GOAL_FORWARD,         /* `pattern`, whose first operator reads the flow */
  GOAL_FORWARD_NEXT,    /* child `k` of a sequence, and those after it */
  GOAL_FORWARD_REPEAT,  /* `k` repetitions are done */
  GOAL_BACKWARD,        /* `pattern`, whose main output is `value`, or a free input of `node` */
  GOAL_BACKWARD_NEXT,   /* child `k` of a sequence, and those before it */
  GOAL_BACKWARD_REPEAT, /* `k` repetitions are done */
  GOAL_SWAP,            /* choose the order of a commutative operator's inputs */
  GOAL_INPUT,           /* input pattern `k` of `pattern` at `node`, and those after it */
  GOAL_VARIADIC,        /* the VARIADIC `pattern` on the free inputs of `node`, of which `k` are done */
  GOAL_ENTRY,           /* choose a free input of `node` that `pattern` matches backwards */
  GOAL_FLOW,            /* the flow is `value`, or a free input of `node` */
  GOAL_OUTPUT,          /* the flow is what the OUTPUT `pattern` means */
  GOAL_END_FORWARD,     /* `pattern`, which is used again, ends in the flow; it began with `value` */
  GOAL_END_BACKWARD,    /* it begins with the flow */
  GOAL_MEMBER,          /* child `k` of a GROUP, and those after it */
  GOAL_CLIMB,           /* step `k` of path `node` of a member, from `value` */
  GOAL_EXIT             /* the flow may be used outside of the match */
} goal_kind_t;

typedef struct goal {
  uint8_t kind;
  bool swapped; /* inputs 0 and 1; VARIADIC: one input may be left for the operator's predecessor */
  uint32_t pattern;
  uint32_t entry_pattern; /* VALUE or CONSTANT that the entry must match, or NONE */
  uint32_t output;        /* OP: which output the flow is, or NONE: its main output; SWAP and INPUT: not
                             NONE if an input must be left for a predecessor; VARIADIC: the port left, or
                             NONE */
  uint32_t node;          /* position */
  uint32_t k;
  uint32_t link; /* that leads to `value`, or NONE */
  cleave_value_t value;
  uint32_t next;      /* goal after this one, or NONE */
  uint64_t signature; /* of the goal and all after it */
} goal_t;

/* The connection between two parts: what the part before made (forwards), or what the part after reads
 * (backwards). A value, with the link that leads to it or NONE; if the value is NONE, some free input of
 * `node`. */
typedef struct flow {
  cleave_value_t value;
  uint32_t link;
  uint32_t node;
} flow_t;

typedef struct choice {
  uint32_t goal; /* to be tried again, with */
  uint32_t alternative;
  uint32_t goal_count;
  uint32_t trail_count;
  flow_t flow;
} choice_t;

typedef enum trail_kind {
  TRAIL_NODE,          /* bound_nodes[index] was `old` */
  TRAIL_VALUE,         /* bound_values[index] was */
  TRAIL_START,         /* starts[index] was */
  TRAIL_LABEL_NODE,    /* label_nodes[index] was */
  TRAIL_LABEL_VALUE,   /* label_values[index] was */
  TRAIL_SYMBOL,        /* symbol `index` was unbound */
  TRAIL_TAKE,          /* the last of `taken` was added */
  TRAIL_LINK,          /* the last of `links` was added */
  TRAIL_LINK_INTERNAL, /* links[index] was not internal */
  TRAIL_PENDING,       /* the last of `pending` was added */
  TRAIL_EXIT           /* the last of `exits` was added */
} trail_kind_t;

typedef struct trail {
  uint32_t kind;
  uint32_t index;
  uint32_t old;
} trail_t;

/* A node of the match. */
typedef struct taken {
  uint32_t node;    /* position */
  uint32_t pattern; /* OP */
  uint32_t links;   /* last of its inputs that the pattern names, or NONE */
  uint32_t trail;   /* when it was taken: entries of the trail before */
} taken_t;

/* An input of a matched node that the pattern names. */
typedef struct link {
  uint32_t taken;
  uint32_t port;
  uint32_t previous; /* of the same node */
  uint32_t input;    /* input pattern of the OP, or NONE */
  uint32_t label;    /* internal, if this label is that of a node; or NONE */
  uint32_t trail;
  bool internal; /* the pattern says that a matched node produces it */
} link_t;

typedef struct symbol {
  const char *name;
  cleave_dim_t dim;
  bool is_bound;
} symbol_t;

/* A condition, or an expression for a dimension, that waits for its symbols. */
typedef struct pending {
  const cleave_expression_t *expression;
  const uint32_t *symbols; /* of the matcher, per symbol of the expression */
  cleave_dim_t dim;        /* of a SIZE: what it must be */
} pending_t;

/* A goal that was begun and has not failed yet. */
typedef struct frame {
  uint64_t key;
  uint32_t choice_count;
  uint32_t trail_count;
  bool depends; /* on what was bound before it began */
} frame_t;

/* Answer of the filter for an OP at a node. */
typedef struct verdict {
  uint32_t generation; /* 0: free; older than the filter's: free, too */
  uint32_t pattern;
  uint32_t node;
  bool fits;
} verdict_t;

/* The inputs of an operator that are interchangeable with one of them. */
typedef struct interchangeable {
  uint32_t before; /* the last one before, or NONE */
  uint32_t after;  /* how many come after */
} interchangeable_t;

struct cleave_matcher {
  const cleave_contraction_t *contraction;
  const cleave_graph_t *graph;
  /* nodes by operator: table operators by id, then the graph's custom ones */
  uint32_t *op_starts;
  uint32_t *op_positions;
  uint32_t op_key_count; /* operators in op_starts */
  bool is_changing;      /* the graph has changed since the matcher was made */

  /* of the pattern */
  const cleave_pattern_t *pattern;
  cleave_arena_t arena;     /* all of this block */
  uint32_t *labels;         /* per pattern node: label, or NONE */
  bool *label_is_op;        /* per label: an OP has it */
  uint32_t *symbol_starts;  /* per pattern node: first of its dims in symbols_of */
  uint32_t *symbols_of;     /* symbol of a dim, or NONE */
  uint32_t **dim_symbols;   /* as symbols_of: symbols of the dim's expression, or NULL */
  uint32_t **where_symbols; /* per pattern node, and the pattern last: symbols of its condition, or NULL */
  uint32_t
      *repeat_starts; /* per pattern node: in `exclusive`, the parts of this REPEATED or VARIADIC alone */
  uint32_t *exclusive;
  bool *is_reused;                    /* per pattern node: named in several places */
  bool *is_entered;                   /* per pattern node: something may stand before it in a sequence */
  bool *is_single;                    /* per OP: its main output has one reader in the pattern at most */
  uint32_t *input_starts;             /* per pattern node: first of its inputs in `interchangeable` */
  interchangeable_t *interchangeable; /* per input */
  uint32_t *classes;                  /* per pattern node: the first one that is the same to the filter */
  cleave_pattern_paths_t *paths;      /* per pattern node: of a GROUP, per member */
  bool is_tree;                       /* every part is named once, and every label */
  bool has_exits;                     /* the root's values may be used outside, even if they are read
                                         inside */
  uint32_t symbol_count;
  symbol_t *symbols;
  uint32_t *bound_nodes;        /* per pattern node: position */
  cleave_value_t *bound_values; /* per pattern node: of what has children, its main output */
  uint32_t *starts;             /* per pattern node that is reused: where it begins, in `flows`, or NONE */
  uint32_t *label_nodes;        /* per label: position */
  cleave_value_t *label_values;
  cleave_node_t *out_label_nodes; /* for the match that is handed out */
  cleave_value_t *out_label_values;
  CLEAVE_ARRAY(uint32_t) anchors;

  /* symbolic sizes: arithmetic must not add to the graph's own table */
  cleave_dims_t *dims; /* a copy; made when an expression first needs it */
  bool dims_are_old;

  /* the filter's answers for the pattern */
  verdict_t *verdicts; /* open addressing */
  size_t verdict_slots;
  size_t verdict_count;
  uint32_t verdict_generation; /* that verdict_count counts */
  uint32_t generation;
  size_t filter_work; /* answers worked out */
  size_t filter_limit;

  /* of one search */
  uint32_t *owners; /* per position: in `taken`, or NONE */
  size_t owner_count;
  size_t owner_capacity;
  flow_t flow;
  CLEAVE_ARRAY(goal_t) goals;
  CLEAVE_ARRAY(choice_t) choices;
  CLEAVE_ARRAY(trail_t) trail;
  CLEAVE_ARRAY(taken_t) taken;
  CLEAVE_ARRAY(link_t) links;
  CLEAVE_ARRAY(flow_t) flows;
  CLEAVE_ARRAY(pending_t) pending;
  CLEAVE_ARRAY(cleave_value_t) exits;
  bool remembers; /* goals that fail; they are signed then */
  CLEAVE_ARRAY(frame_t) frames;
  size_t depending;              /* that many frames from the first depend on something */
  cleave_key_set_t failures;     /* goals that fail whatever was bound before */
  CLEAVE_ARRAY(uint32_t) sorted; /* in `taken`, topological */
  bool passes_unnamed;           /* of the request */
  cleave_match_edge_t unnamed[CLEAVE_MATCH_MAX_UNNAMED];
  uint32_t unnamed_count;
  CLEAVE_ARRAY(cleave_node_t) nodes; /* of the match */
  CLEAVE_ARRAY(const char *) names;  /* labels of the match's nodes */
  cleave_match_t match;
};

/* The goal that runs: its input and its answer. */
typedef struct step {
  const cleave_match_request_t *request;
  uint32_t index; /* of the goal */
  uint32_t alternative;
  uint32_t next; /* goal to go on with, or NONE */
  bool fits;
  size_t work; /* beyond one step */
} step_t;

/* ---- match_goals.c ---- */

/* A goal with nothing but these. */
goal_t cleave_matcher_goal(goal_kind_t kind, uint32_t pattern, uint32_t next);
/* Adds a goal in front of goal.next; its index in *out. */
CLEAVE_STATUS cleave_matcher_push_goal(cleave_matcher_t *matcher, goal_t goal, uint32_t *out,
                                       cleave_error_t *error);
/* Leaves a choice point: on failure, goal `index` runs again with `alternative`, from the present state. */
CLEAVE_STATUS cleave_matcher_leave_choice(cleave_matcher_t *matcher, uint32_t index, uint32_t alternative,
                                          cleave_error_t *error);
/* Hash of a goal and of those after it. Links are left out: they name edges, which only a complete match is
 * asked about. */
uint64_t cleave_matcher_sign_goal(const cleave_matcher_t *matcher, const goal_t *goal);
/* Notes what a binding replaced: undoing puts `old` back. */
CLEAVE_MUST_USE static inline cleave_status_t cleave_matcher_push_trail(cleave_matcher_t *matcher,
                                                                        trail_kind_t kind, uint32_t index,
                                                                        uint32_t old, cleave_error_t *error) {
  CLEAVE_ARRAY_PUSH(&matcher->trail, ((trail_t){(uint32_t)kind, index, old}), error);
  return CLEAVE_OK;
}
/* Records that failures from here on depend on what was bound when the trail had `trail` entries. 0: on
 * everything. */
void cleave_matcher_depend(cleave_matcher_t *matcher, uint32_t trail);

/* The first use from `use` on by a node whose operator an OP has; counts the uses that it passes. */
cleave_use_t cleave_matcher_next_use(const cleave_matcher_t *matcher, step_t *step, uint32_t pattern,
                                     cleave_use_t use);

/* ---- match_parts.c: the goals that follow the flow, forwards and backwards ---- */

CLEAVE_STATUS cleave_matcher_run_forward(cleave_matcher_t *matcher, step_t *step, cleave_error_t *error);
CLEAVE_STATUS cleave_matcher_run_forward_next(cleave_matcher_t *matcher, step_t *step, cleave_error_t *error);
CLEAVE_STATUS cleave_matcher_run_backward(cleave_matcher_t *matcher, step_t *step, cleave_error_t *error);
CLEAVE_STATUS cleave_matcher_run_backward_next(cleave_matcher_t *matcher, step_t *step,
                                               cleave_error_t *error);
/* END_FORWARD and END_BACKWARD. */
CLEAVE_STATUS cleave_matcher_run_end(cleave_matcher_t *matcher, step_t *step, cleave_error_t *error);

/* ---- match_inputs.c: SWAP, INPUT, VARIADIC and ENTRY ---- */

CLEAVE_STATUS cleave_matcher_run_input(cleave_matcher_t *matcher, step_t *step, cleave_error_t *error);
CLEAVE_STATUS cleave_matcher_run_variadic(cleave_matcher_t *matcher, step_t *step, cleave_error_t *error);
CLEAVE_STATUS cleave_matcher_run_entry(cleave_matcher_t *matcher, step_t *step, cleave_error_t *error);

/* ---- match_group.c: MEMBER, CLIMB and EXIT ---- */

CLEAVE_STATUS cleave_matcher_run_member(cleave_matcher_t *matcher, step_t *step, cleave_error_t *error);
CLEAVE_STATUS cleave_matcher_run_climb(cleave_matcher_t *matcher, step_t *step, cleave_error_t *error);
CLEAVE_STATUS cleave_matcher_run_exit(cleave_matcher_t *matcher, cleave_error_t *error);

/* ---- match_prepare.c, match_interchangeable.c ---- */

/* Index of an operator's nodes in op_starts, or NONE. */
uint32_t cleave_matcher_op_key(const cleave_graph_t *graph, const cleave_op_t *op);
/* Finds interchangeable inputs, when a pattern is set. */
CLEAVE_STATUS cleave_matcher_prepare_interchangeable(cleave_matcher_t *matcher, cleave_error_t *error);

/* ---- match_filter.c ---- */

/* False if no binding lets `pattern` end in `value`, so that it need not be tried. `value` NONE: an input
 * that is left out. */
bool cleave_matcher_may_match(cleave_matcher_t *matcher, uint32_t pattern, cleave_value_t value);
/* May an OP match a node? */
bool cleave_matcher_node_may_match(cleave_matcher_t *matcher, uint32_t pattern, cleave_node_t node);

/* ---- match_bind.c ---- */

/* Undoes all that was bound since the trail had `count` entries. */
void cleave_matcher_undo(cleave_matcher_t *matcher, size_t count);

/* Binds an OP to a node (position) after all tests that need no other node. *out_is_new: it was not bound to
 * that node before. */
CLEAVE_STATUS cleave_matcher_take_node(cleave_matcher_t *matcher, const cleave_match_request_t *request,
                                       uint32_t pattern, uint32_t node, bool *out_is_new, bool *out_fits,
                                       cleave_error_t *error);

/* Binds a VALUE, CONSTANT or OUTPUT; `link` leads to it, or NONE. */
CLEAVE_STATUS cleave_matcher_take_value(cleave_matcher_t *matcher, uint32_t pattern, cleave_value_t value,
                                        uint32_t link, bool *out_fits, cleave_error_t *error);

/* The value that a part is known to end in, or NONE. */
cleave_value_t cleave_matcher_known_value(const cleave_matcher_t *matcher, uint32_t pattern);

/* Binds a part to the value that it ends in, or tests that it is bound to that value. */
CLEAVE_STATUS cleave_matcher_bind_value(cleave_matcher_t *matcher, uint32_t pattern, cleave_value_t value,
                                        bool *out_fits, cleave_error_t *error);
/* Binds where a part that is reused begins. */
CLEAVE_STATUS cleave_matcher_bind_start(cleave_matcher_t *matcher, uint32_t pattern, flow_t start,
                                        cleave_error_t *error);

/* Unbinds the parts of a repetition, for the next one. */
CLEAVE_STATUS cleave_matcher_forget(cleave_matcher_t *matcher, uint32_t repeated, cleave_error_t *error);

/* The link of an input of a taken node that the pattern names, or NONE. */
uint32_t cleave_matcher_find_link(const cleave_matcher_t *matcher, uint32_t node, uint32_t port);
/* Tests that there is no such link; if there is one, the failure depends on it. */
bool cleave_matcher_port_is_free(cleave_matcher_t *matcher, uint32_t node, uint32_t port);
CLEAVE_STATUS cleave_matcher_add_link(cleave_matcher_t *matcher, uint32_t node, uint32_t port, uint32_t input,
                                      bool internal, uint32_t *out_link, cleave_error_t *error);
CLEAVE_STATUS cleave_matcher_mark_internal(cleave_matcher_t *matcher, uint32_t link, uint32_t label,
                                           cleave_error_t *error);
/* An input of a taken node that reads `value` and is free, or that the pattern says a matched node produces:
 * then the same edge is named twice. NONE if there is none. */
uint32_t cleave_matcher_port_of(cleave_matcher_t *matcher, uint32_t node, cleave_value_t value);

/* True if the uses of a main output alone exclude that a match has it inside. */
bool cleave_matcher_has_other_uses(const cleave_matcher_t *matcher, uint32_t pattern, cleave_value_t value);

/* ---- match_sizes.c ---- */

/* Numbers the symbols of all shapes and conditions, when a pattern is set. */
CLEAVE_STATUS cleave_matcher_prepare_sizes(cleave_matcher_t *matcher, cleave_error_t *error);
/* Binds the symbols of a part's shape at a value, and tests what has all its symbols: expressions of the
 * shape, the part's condition. The rest is pending. */
CLEAVE_STATUS cleave_matcher_bind_sizes(cleave_matcher_t *matcher, uint32_t pattern, cleave_value_t value,
                                        bool *out_fits, cleave_error_t *error);
/* Do all pending conditions, and the pattern's own, hold? */
CLEAVE_STATUS cleave_matcher_sizes_hold(cleave_matcher_t *matcher, bool *out_hold, cleave_error_t *error);

/* ---- match_complete.c ---- */

/* Are only allowed outputs of the match used outside, and does the pattern name all edges inside? */
bool cleave_matcher_is_closed(cleave_matcher_t *matcher);

/* Fills matcher->match. */
CLEAVE_STATUS cleave_matcher_describe(cleave_matcher_t *matcher, uint64_t *out_hash, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_MATCH_MATCH_STATE_H */
