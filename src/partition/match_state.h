/* SPDX-License-Identifier: Apache-2.0 */
/* What the matcher keeps: private to match.c and match_prepare.c. */
#ifndef CLEAVE_PARTITION_MATCH_STATE_H
#define CLEAVE_PARTITION_MATCH_STATE_H

#include "partition/match.h"

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
  GOAL_ENTRY,           /* choose a free input of `node` that `pattern` matches backwards */
  GOAL_FLOW             /* the flow is `value`, or a free input of `node` */
} goal_kind_t;

typedef struct goal {
  uint8_t kind;
  bool swapped;
  uint32_t pattern;
  uint32_t entry_pattern; /* VALUE or CONSTANT that the entry must match, or NONE */
  uint32_t node;          /* position */
  uint32_t k;
  uint32_t link; /* that leads to `value`, or NONE */
  cleave_value_t value;
  uint32_t next; /* goal after this one, or NONE */
} goal_t;

typedef struct choice {
  uint32_t goal; /* to be tried again, with */
  uint32_t alternative;
  uint32_t goal_count;
  uint32_t trail_count;
  cleave_value_t flow;
  uint32_t flow_link;
  uint32_t flow_node;
} choice_t;

typedef enum trail_kind {
  TRAIL_NODE,         /* bound_nodes[index] was `old` */
  TRAIL_VALUE,        /* bound_values[index] was */
  TRAIL_LABEL_NODE,   /* label_nodes[index] was */
  TRAIL_LABEL_VALUE,  /* label_values[index] was */
  TRAIL_SYMBOL,       /* symbol `index` was unbound */
  TRAIL_TAKE,         /* the last of `taken` was added */
  TRAIL_LINK,         /* the last of `links` was added */
  TRAIL_LINK_INTERNAL /* links[index] was not internal */
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
  uint32_t links;   /* last of its inputs that are spoken for, or NONE */
} taken_t;

/* An input of a matched node that the pattern speaks of. */
typedef struct link {
  uint32_t taken;
  uint32_t port;
  uint32_t previous; /* of the same node */
  bool internal;     /* the pattern says that a matched node produces it */
} link_t;

typedef struct symbol {
  const char *name;
  cleave_dim_t dim;
  bool is_bound;
} symbol_t;

struct cleave_matcher {
  const cleave_contraction_t *contraction;
  const cleave_graph_t *graph;
  /* nodes by operator: table operators by id, then the graph's custom ones */
  uint32_t *op_starts;
  uint32_t *op_positions;

  /* of the pattern */
  const cleave_pattern_t *pattern;
  cleave_arena_t arena;    /* all of this block */
  uint32_t *labels;        /* per pattern node: label, or NONE */
  bool *label_is_op;       /* per label: an OP has it */
  uint32_t *symbol_starts; /* per pattern node: first of its dims in symbols_of */
  uint32_t *symbols_of;    /* symbol of a dim, or NONE */
  uint32_t
      *repeat_starts; /* per pattern node: in `exclusive`, the parts that belong to this REPEATED alone */
  uint32_t *exclusive;
  bool is_tree; /* every part is used once: a matched output that is not shared has one use */
  uint32_t symbol_count;
  symbol_t *symbols;
  uint32_t *bound_nodes;        /* per pattern node: position */
  cleave_value_t *bound_values; /* per pattern node */
  uint32_t *label_nodes;        /* per label: position */
  cleave_value_t *label_values;
  cleave_node_t *out_label_nodes; /* for the match that is handed out */
  cleave_value_t *out_label_values;
  CLEAVE_ARRAY(uint32_t) anchors;

  /* of one search */
  uint32_t *owners; /* per position: in `taken`, or NONE */
  size_t owner_count;
  size_t owner_capacity;
  /* What the part before produced (forwards), or the part after reads (backwards): a value, with the link
   * that leads to it or NONE; or, where the value is NONE, some free input of flow_node. */
  cleave_value_t flow;
  uint32_t flow_link;
  uint32_t flow_node;
  CLEAVE_ARRAY(goal_t) goals;
  CLEAVE_ARRAY(choice_t) choices;
  CLEAVE_ARRAY(trail_t) trail;
  CLEAVE_ARRAY(taken_t) taken;
  CLEAVE_ARRAY(link_t) links;
  CLEAVE_ARRAY(uint32_t) sorted;     /* in `taken`, topological */
  CLEAVE_ARRAY(cleave_node_t) nodes; /* of the match */
  CLEAVE_ARRAY(const char *) names;  /* labels of the match's nodes */
  cleave_match_t match;
};

/* ---- match_bind.c ---- */

/* Undoes all that was bound since the trail had `count` entries. */
void cleave_matcher_undo(cleave_matcher_t *matcher, size_t count);

/* Binds an OP to a node (position) after all tests that need no other node. *out_is_new: it was not bound to
 * that node before. */
CLEAVE_MUST_USE cleave_status_t cleave_matcher_take_node(cleave_matcher_t *matcher,
                                                         const cleave_match_request_t *request,
                                                         uint32_t pattern, uint32_t node, bool *out_is_new,
                                                         bool *out_fits, cleave_error_t *error);

/* Binds a VALUE or CONSTANT; `link` leads to it, or NONE. */
CLEAVE_MUST_USE cleave_status_t cleave_matcher_take_value(cleave_matcher_t *matcher, uint32_t pattern,
                                                          cleave_value_t value, uint32_t link, bool *out_fits,
                                                          cleave_error_t *error);

/* Binds a part to the value that it ends in, or tells whether it is bound to that one. */
CLEAVE_MUST_USE cleave_status_t cleave_matcher_bind_value(cleave_matcher_t *matcher, uint32_t pattern,
                                                          cleave_value_t value, bool *out_fits,
                                                          cleave_error_t *error);

/* What the parts of a repetition are bound to is free again for the next one. */
CLEAVE_MUST_USE cleave_status_t cleave_matcher_forget(cleave_matcher_t *matcher, uint32_t repeated,
                                                      cleave_error_t *error);

/* Inputs of taken nodes that the pattern speaks of. */
bool cleave_matcher_port_is_free(const cleave_matcher_t *matcher, uint32_t node, uint32_t port);
CLEAVE_MUST_USE cleave_status_t cleave_matcher_add_link(cleave_matcher_t *matcher, uint32_t node,
                                                        uint32_t port, bool internal, uint32_t *out_link,
                                                        cleave_error_t *error);
CLEAVE_MUST_USE cleave_status_t cleave_matcher_mark_internal(cleave_matcher_t *matcher, uint32_t link,
                                                             cleave_error_t *error);

/* True where the uses of a main output alone tell that no match can have it inside. */
bool cleave_matcher_has_other_uses(const cleave_matcher_t *matcher, uint32_t pattern, cleave_value_t value);

/* Is nothing of the match used outside but what may be, and are all edges inside those of the pattern? */
bool cleave_matcher_is_closed(const cleave_matcher_t *matcher);

/* Fills matcher->match. */
CLEAVE_MUST_USE cleave_status_t cleave_matcher_describe(cleave_matcher_t *matcher, uint64_t *out_hash,
                                                        cleave_error_t *error);

#endif /* CLEAVE_PARTITION_MATCH_STATE_H */
