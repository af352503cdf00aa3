// SPDX-License-Identifier: Apache-2.0
/*
 * Rules as the partitioner sees them: compiled patterns, and callbacks for what is code. The script layer
 * fills these in from Lua; tests and C users may fill them in by hand.
 *
 * Callbacks get the graph as it was when partitioning began, and never change it. If a callback fails,
 * partitioning ends with its error: file, line, rule. Callbacks of rewrites are the exception: a failure at
 * one match is recorded as a refusal (partition/rewrite/transform.h).
 */
#ifndef CLEAVE_PARTITION_PATTERN_RULESET_H
#define CLEAVE_PARTITION_PATTERN_RULESET_H

#include "partition/pattern/gradient_rule.h"
#include "partition/pattern/pattern.h"
#include "partition/pattern/rule_kind.h"

/* Why something was refused: one line, "" if no reason was given. */
typedef struct cleave_reason {
  char text[256];
} cleave_reason_t;

/* A match of a pattern: what each label is bound to, and the nodes it takes. Borrowed during the call. */
typedef struct cleave_match {
  const cleave_pattern_t *pattern;
  const cleave_node_t
      *label_nodes; /* per label: node; NONE if the label is on a value or its part did not match */
  const cleave_value_t *label_values; /* per label: value (of an OP: its main output), or NONE */
  const cleave_node_t *nodes;         /* in topological order */
  const char *const *node_labels;     /* per node: its label, or "" */
  uint32_t node_count;
} cleave_match_t;

/* The values that a rewrite puts in the place of a match. If it stays empty, the match is left as it is, for
 * `reason`. */
typedef struct cleave_substitute {
  CLEAVE_ARRAY(cleave_value_t) from; /* outputs of nodes of the match; NONE: the one that is read outside */
  CLEAVE_ARRAY(cleave_value_t) to;   /* as `from`: the values that replace them */
  cleave_reason_t reason;
  /* private: */
  CLEAVE_ARRAY(cleave_node_t) producers;
  CLEAVE_ARRAY(uint32_t) uses_before; /* of `to` */
} cleave_substitute_t;

typedef enum cleave_region_mode {
  CLEAVE_REGION_BACKEND,   /* every node that the backend supports; a fuse rule does not grow */
  CLEAVE_REGION_OPS,       /* `ops` */
  CLEAVE_REGION_SUPPORTED, /* `supported` */
  CLEAVE_REGION_SELECTOR   /* `selector` */
} cleave_region_mode_t;

/* Group numbers of `supported`: a node of group k >= 0 joins group k and CLEAVE_GROUP_ANY only. */
#define CLEAVE_GROUP_LIMIT ((int64_t)1 << 52)
#define CLEAVE_GROUP_NONE INT64_MIN /* not supported */
#define CLEAVE_GROUP_ANY ((int64_t)-1)

/* MXNet's SubgraphSelector. `create` makes a new one per seed, which may hold state. If select_input or
 * select_output is NULL, the answer is no; if filter is NULL, all nodes are kept. */
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
  /* Called when a search ends and the same selector begins another one; may be NULL. */
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
  /* Sums; negative if a size that they need is not known. */
  double flops;
  double bytes_in;    /* of the inputs */
  double bytes_out;   /* of the outputs */
  double bytes_saved; /* of values that are made and read inside only, which no longer cross a boundary */
} cleave_proposal_t;

/* The answer of `review` about a proposal. Initially it accepts the whole proposal. */
typedef struct cleave_review {
  bool accept;            /* false: refused, for `reason` */
  cleave_reason_t reason; /* also why nodes are dropped */
  bool *keep;            /* per node of the proposal; cleared nodes are dropped. The rest is reviewed again in
                            connected parts, until one is taken whole. */
  cleave_arena_t *arena; /* for the attributes */
  const cleave_attribute_t *attributes; /* for the region, of any kind but TENSOR; copied, and put in order */
  uint32_t attribute_count;
} cleave_review_t;

typedef struct cleave_rule {
  cleave_rule_kind_t kind;
  const char *name;
  const char *doc;  /* "" if there is none */
  const char *file; /* for messages */
  int32_t line;
  int32_t priority;      /* larger first; equal: in the order of the file */
  void *context;         /* handed to the callbacks */
  const uint64_t *calls; /* counts calls of its functions, for statistics; may be NULL */

  /* FUSE: a pattern; or no pattern, and how to grow, as a REGION has it. A set that grew becomes one fusion,
   * of free nodes alone, once thresholds, `review` and the backend accept it. */
  const cleave_pattern_t *pattern;
  cleave_status_t (*where)(void *context, const cleave_graph_t *graph, const cleave_match_t *match,
                           bool *out_accept, cleave_reason_t *reason,
                           cleave_error_t *error); /* may be NULL */
  const cleave_attribute_t *attributes;            /* for its fusions, of any kind but TENSOR, by name; a
                                                      `review` may give others */
  uint32_t attribute_count;

  /* REGION, and FUSE without a pattern */
  /* Called before and after the rule runs: both are set, or neither. If `begin` fails, `end` is not called.
   */
  cleave_status_t (*begin)(void *context, const cleave_graph_t *graph, cleave_error_t *error);
  void (*end)(void *context);
  cleave_region_mode_t mode;
  const cleave_op_t *const *ops;
  uint32_t op_count;
  cleave_status_t (*supported)(void *context, const cleave_graph_t *graph, cleave_node_t node,
                               int64_t *out_group, cleave_error_t *error);
  const cleave_selector_functions_t *selector;
  bool grows_once; /* the nodes of a set that was refused are no seeds any more */
  cleave_status_t (*review)(void *context, const cleave_proposal_t *proposal, cleave_review_t *review,
                            cleave_error_t *error); /* may be NULL */
  /* A region must reach these before `review` sees it; 0: nothing. The measures are those of
   * cleave_proposal_t. */
  uint32_t min_nodes;
  double min_flops;
  double min_bytes_saved;
  double min_gain; /* cost of the nodes one by one over that of the region, or fusion, on its backend: on cpu,
                      or, of fusions that grow, on that backend too */

  /* REWRITE: `pattern`, `where`, and the function that builds the substitute in the editor's graph. The match
   * is still in that graph; the function may only add to it. */
  cleave_status_t (*replace)(void *context, cleave_editor_t *editor, const cleave_match_t *match,
                             cleave_substitute_t *substitute, cleave_error_t *error);

  /* PASS: changes the editor's graph as it likes. */
  cleave_status_t (*run)(void *context, cleave_editor_t *editor, cleave_error_t *error);

  /* STAGE: fills in stages[node.index], from 0, less than CLEAVE_STAGE_LIMIT. Entries are CLEAVE_INDEX_NONE
   * before; where that is left, the node is in the last of the stages whose values it reads, else in 0. */
  cleave_status_t (*assign)(void *context, const cleave_graph_t *graph, uint32_t *stages,
                            cleave_error_t *error);
} cleave_rule_t;

/* A fuse rule that grows its fusions. */
static inline bool cleave_rule_grows_fusions(const cleave_rule_t *rule) {
  return rule->kind == CLEAVE_RULE_FUSE && rule->pattern == NULL;
}

typedef struct cleave_ruleset {
  const char *name;
  const char *backend; /* that runs its regions: "cpu", "onednn", ... */
  const char *file;
  int32_t line;               /* line of `file` that names the backend; 0 if the caller chose it */
  const cleave_rule_t *rules; /* in the order of the file */
  uint32_t rule_count;
  const cleave_gradient_rule_t *gradients; /* the partitioner does not look at them */
  uint32_t gradient_count;
} cleave_ruleset_t;

#endif /* CLEAVE_PARTITION_PATTERN_RULESET_H */
