/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules as the partitioner sees them: compiled patterns, and callbacks for what is code. The script layer
 * fills these in from Lua; tests and C users may fill them in by hand.
 *
 * Callbacks get the graph as it was when partitioning began, and never change it. A callback that fails ends
 * the partitioning with its error: file, line, rule. Those of rewrites are the exception: what fails at one
 * match is a refusal on record (partition/rewrite/transform.h).
 */
#ifndef CLEAVE_PARTITION_PATTERN_RULESET_H
#define CLEAVE_PARTITION_PATTERN_RULESET_H

#include "partition/pattern/pattern.h"
#include "partition/pattern/rule_kind.h"

/* Why something was refused: one line, "" where no reason was given. */
typedef struct cleave_reason {
  char text[256];
} cleave_reason_t;

/* A match of a pattern: what each label is bound to, and the nodes it takes. Borrowed during the call. */
typedef struct cleave_match {
  const cleave_pattern_t *pattern;
  const cleave_node_t
      *label_nodes; /* per label: node, or NONE where the label is a value or did not take part */
  const cleave_value_t *label_values; /* per label: value (of an OP: its main output), or NONE */
  const cleave_node_t *nodes;         /* in topological order */
  const char *const *node_labels;     /* per node: its label, or "" */
  uint32_t node_count;
} cleave_match_t;

/* Changes a graph, by words that keep a log of what they do (partition/rewrite/editor.h). */
typedef struct cleave_editor cleave_editor_t;

/* What a rewrite puts in the place of a match. It starts empty: leave the match as it is, for `reason`. */
typedef struct cleave_substitute {
  CLEAVE_ARRAY(cleave_value_t) from; /* outputs of nodes of the match; NONE: the one that is read outside */
  CLEAVE_ARRAY(cleave_value_t) to;   /* as `from`: what their readers read instead */
  cleave_reason_t reason;
  /* private: */
  CLEAVE_ARRAY(cleave_node_t) producers;
  CLEAVE_ARRAY(uint32_t) uses_before; /* of `to` */
} cleave_substitute_t;

typedef enum cleave_region_mode {
  CLEAVE_REGION_BACKEND,   /* every node that the backend supports */
  CLEAVE_REGION_OPS,       /* `ops` */
  CLEAVE_REGION_SUPPORTED, /* `supported` */
  CLEAVE_REGION_SELECTOR   /* `selector` */
} cleave_region_mode_t;

/* Group numbers of `supported`: a node of group k >= 0 joins group k and CLEAVE_GROUP_ANY only. */
#define CLEAVE_GROUP_NONE INT64_MIN /* not supported */
#define CLEAVE_GROUP_ANY ((int64_t)-1)

/* MXNet's SubgraphSelector. `create` makes a fresh one per seed, so that state lives in it. NULL functions:
 * select_input and select_output answer no, filter keeps all. */
typedef struct cleave_selector_functions {
  cleave_status_t (*create)(void *context, const cleave_graph_t *graph, void **out_selector,
                            cleave_error_t *error);
  void (*destroy)(void *context, void *selector);
  cleave_status_t (*select)(void *selector, cleave_node_t node, bool *out_yes, cleave_error_t *error);
  /* `input` produces a value that `node` (already in) reads; `output` reads one that `node` produces. */
  cleave_status_t (*select_input)(void *selector, cleave_node_t node, cleave_node_t input, bool *out_yes,
                                  cleave_error_t *error);
  cleave_status_t (*select_output)(void *selector, cleave_node_t node, cleave_node_t output, bool *out_yes,
                                   cleave_error_t *error);
  /* Called when a search ends and the same selector starts over on another seed; may be NULL. */
  cleave_status_t (*reset)(void *selector, cleave_error_t *error);
  /* Clears `keep[k]` of candidates to drop; candidates in topological order. */
  cleave_status_t (*filter)(void *selector, const cleave_node_t *candidates, uint32_t count, bool *keep,
                            cleave_error_t *error);
} cleave_selector_functions_t;

/* A proposed region, for `review`. */
typedef struct cleave_proposal {
  const cleave_graph_t *graph;
  const cleave_node_t *nodes; /* topological */
  uint32_t node_count;
  uint32_t fusion_count;
  const cleave_value_t *inputs; /* run-time inputs */
  uint32_t input_count;
  const cleave_value_t *outputs;
  uint32_t output_count;
  const char *rule;
  const char *backend;
  /* Sums; negative if a size that counts is not known. */
  double flops;
  double bytes_in;    /* of the inputs */
  double bytes_out;   /* of the outputs */
  double bytes_saved; /* of values that are made and read inside only: no boundary sees them any more */
} cleave_proposal_t;

/* What `review` says of a proposal. It starts as "take it whole". */
typedef struct cleave_review {
  bool accept;            /* false: refused, for `reason` */
  cleave_reason_t reason; /* also why nodes are dropped */
  bool *keep; /* per node of the proposal; what is cleared is dropped. The rest comes back for review
                 in connected parts, until one is taken whole. */
  cleave_arena_t *arena;                /* for the attributes */
  const cleave_attribute_t *attributes; /* for the region, of any kind but TENSOR; copied, and put in order */
  uint32_t attribute_count;
} cleave_review_t;

typedef struct cleave_rule {
  cleave_rule_kind_t kind;
  const char *name;
  const char *doc;  /* "" where none */
  const char *file; /* for messages */
  int32_t line;
  int32_t priority;      /* larger first; equal: in the order of the file */
  void *context;         /* handed to the callbacks */
  const uint64_t *calls; /* counts calls of its functions, for statistics; NULL: nobody counts */

  /* FUSE */
  const cleave_pattern_t *pattern;
  cleave_status_t (*where)(void *context, const cleave_graph_t *graph, const cleave_match_t *match,
                           bool *out_accept, cleave_reason_t *reason,
                           cleave_error_t *error); /* may be NULL */
  const cleave_attribute_t *attributes;            /* for its fusions, of any kind but TENSOR, by name */
  uint32_t attribute_count;

  /* REGION */
  /* Around the rule's turn: both, or neither. Where `begin` fails, `end` is not called. */
  cleave_status_t (*begin)(void *context, const cleave_graph_t *graph, cleave_error_t *error);
  void (*end)(void *context);
  cleave_region_mode_t mode;
  const cleave_op_t *const *ops;
  uint32_t op_count;
  cleave_status_t (*supported)(void *context, const cleave_graph_t *graph, cleave_node_t node,
                               int64_t *out_group, cleave_error_t *error);
  const cleave_selector_functions_t *selector;
  cleave_status_t (*review)(void *context, const cleave_proposal_t *proposal, cleave_review_t *review,
                            cleave_error_t *error); /* may be NULL */
  /* What a region must reach before `review` sees it; 0: nothing. Measures as in cleave_proposal_t. */
  uint32_t min_nodes;
  double min_flops;
  double min_bytes_saved;
  double min_gain; /* cost of the nodes on cpu over the cost of the region on its backend */

  /* REWRITE: `pattern`, `where`, and what builds the substitute in the editor's graph, which still has the
   * match; it may only add to that graph. */
  cleave_status_t (*replace)(void *context, cleave_editor_t *editor, const cleave_match_t *match,
                             cleave_substitute_t *substitute, cleave_error_t *error);

  /* PASS: changes the editor's graph as it likes. */
  cleave_status_t (*run)(void *context, cleave_editor_t *editor, cleave_error_t *error);
} cleave_rule_t;

typedef struct cleave_ruleset {
  const char *name;
  const char *backend; /* that runs its regions: "cpu", "onednn", ... */
  const char *file;
  int32_t line;               /* in `file`, that names the backend; 0 where the caller gave it */
  const cleave_rule_t *rules; /* in the order of the file */
  uint32_t rule_count;
} cleave_ruleset_t;

#endif /* CLEAVE_PARTITION_PATTERN_RULESET_H */
