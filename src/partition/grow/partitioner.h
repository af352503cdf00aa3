// SPDX-License-Identifier: Apache-2.0
/* The state of the driver while it makes a plan: private to src/partition/grow. */
#ifndef CLEAVE_PARTITION_GROW_PARTITIONER_H
#define CLEAVE_PARTITION_GROW_PARTITIONER_H

#include "graph/contraction/contraction.h"
#include "partition/grow/boundary_log.h"
#include "partition/grow/partition.h"
#include "partition/match/match.h"

/* The state of a node so far. */
enum {
  CLEAVE_NODE_FREE = 0,
  CLEAVE_NODE_FUSED = 1, /* in a fusion of the ruleset at work, and in no region yet */
  CLEAVE_NODE_TAKEN = 2  /* in a region */
};

typedef struct cleave_found_fusion {
  uint32_t rule;    /* in plan->rules */
  uint32_t ruleset; /* number */
  uint32_t first;   /* in fusion_nodes and fusion_labels */
  uint32_t count;
  uint32_t region; /* or NONE so far */
  const cleave_rule_t *source;
  const cleave_attribute_t *attributes; /* of the rule, or in the plan's arena */
  uint32_t attribute_count;
} cleave_found_fusion_t;

typedef struct cleave_found_region {
  uint32_t rule;
  uint32_t ruleset;
  uint32_t first; /* in region_nodes */
  uint32_t count;
  const cleave_attribute_t *attributes; /* in the plan's arena */
  uint32_t attribute_count;
} cleave_found_region_t;

/* Answers of a backend for single nodes. */
typedef struct cleave_support_cache {
  const char *backend;
  uint8_t *answers; /* per position: 0 not asked, 1 yes, 2 no */
  struct cleave_support_cache *next;
} cleave_support_cache_t;

typedef struct cleave_partitioner {
  const cleave_graph_t *graph;
  const cleave_partition_options_t *options;
  uint32_t max_notes;
  cleave_contraction_t *contraction; /* fusions and regions are its groups */
  cleave_matcher_t *matcher;         /* made at the first fuse rule */
  cleave_plan_t *plan;               /* rules are filled in; its arena takes all texts */

  /* the ruleset at work */
  const cleave_ruleset_t *ruleset;
  uint32_t ruleset_number;
  uint32_t first_rule; /* in plan->rules */

  uint8_t *states;     /* per position */
  uint32_t *fusion_of; /* per position: in fusions, or NONE */
  uint32_t *region_of; /* per position: in regions, or NONE */
  uint32_t *stages;    /* per position; NULL: the graph is not cut into stages */
  uint32_t stage_count;
  CLEAVE_ARRAY(cleave_found_fusion_t) fusions;
  CLEAVE_ARRAY(uint32_t) fusion_nodes; /* positions, ascending per fusion */
  CLEAVE_ARRAY(const char *) fusion_labels;
  CLEAVE_ARRAY(cleave_found_region_t) regions;
  CLEAVE_ARRAY(uint32_t) region_nodes; /* positions, ascending per region */
  CLEAVE_ARRAY(cleave_plan_note_t) notes;
  cleave_support_cache_t *support;

  /* boundaries of sets (boundary.c) */
  uint32_t *value_marks; /* per value: the set that saw it last */
  uint32_t boundary_count;
  CLEAVE_ARRAY(cleave_value_t) inputs;
  CLEAVE_ARRAY(cleave_value_t) outputs;

  CLEAVE_ARRAY(uint32_t) scratch; /* positions */

  /* sets that are being split (split.c); made at the first one */
  int64_t *set_numbers;  /* per position: 0 inside, CLEAVE_GROUP_NONE outside */
  uint32_t *set_parents; /* per position: union-find of parts */
  uint32_t *set_levels;  /* per representative */
  uint32_t *set_marks; /* per representative: split_count of the split that saw it last, and what it knows */
  uint32_t split_count;
  size_t split_steps_left; /* of the rule at work */
} cleave_partitioner_t;

/* ---- partitioner.c ---- */

CLEAVE_STATUS cleave_partitioner_create(const cleave_graph_t *graph,
                                        const cleave_partition_options_t *options,
                                        cleave_partitioner_t **out_partitioner, cleave_error_t *error);
void cleave_partitioner_destroy(cleave_partitioner_t *partitioner);

/* Keeps a note while there is room. `position` is what it is about. */
CLEAVE_STATUS cleave_partitioner_note(cleave_partitioner_t *partitioner, cleave_plan_note_kind_t kind,
                                      uint32_t position, uint32_t rule, cleave_error_t *error,
                                      const char *format, ...) CLEAVE_PRINTF(6, 7);

/* Records in the log, if there is one, that a rule did not take a node. */
CLEAVE_STATUS cleave_partitioner_stop(cleave_partitioner_t *partitioner, uint32_t position, uint32_t rule,
                                      cleave_stop_cause_t cause, const char *text, cleave_error_t *error);

/* Is this node of the operator that the caller assumes to be supported? */
bool cleave_partitioner_assumes(const cleave_partitioner_t *partitioner, uint32_t position);

/* May the rule look at this node? Not if it is in a region; to grow a fusion, not if it is in one either. */
static inline bool cleave_partitioner_is_open(const cleave_partitioner_t *partitioner,
                                              const cleave_rule_t *rule, uint32_t position) {
  return partitioner->states[position] <
         (cleave_rule_grows_fusions(rule) ? CLEAVE_NODE_FUSED : CLEAVE_NODE_TAKEN);
}

/* Records that the rule met a node that is not open. */
CLEAVE_STATUS cleave_partitioner_stop_taken(cleave_partitioner_t *partitioner, uint32_t position,
                                            uint32_t rule, cleave_error_t *error);

/* Does the ruleset's backend run these nodes as one kernel of the rule? `labels` as in cleave_fusion_set_t.
 */
CLEAVE_STATUS cleave_partitioner_supports_fusion(const cleave_partitioner_t *partitioner,
                                                 const cleave_fusion_set_t *set, bool *out_yes,
                                                 cleave_reason_t *reason, cleave_error_t *error);

/* Does the caller allow that a rule takes these nodes (cleave_partition_options_t.allow)? */
bool cleave_partitioner_allows(const cleave_partitioner_t *partitioner, uint32_t rule,
                               const cleave_node_t *nodes, uint32_t count);

/* Does the ruleset's backend run this one node? Asked once per node and backend. The first refusal of a node
 * is noted. */
CLEAVE_STATUS cleave_partitioner_supports_node(cleave_partitioner_t *partitioner, uint32_t position,
                                               uint32_t rule, bool *out_yes, cleave_error_t *error);

/* Name for notes, "relu1" or "Relu#12". Written into `buffer`, which is returned. */
const char *cleave_partitioner_label(const cleave_partitioner_t *partitioner, uint32_t position, char *buffer,
                                     size_t size);

/* ---- stage.c ---- */

/* Runs the stage rule of the rulesets, if there is one. Two are an error, and so are a stage without nodes,
 * and one that reads what a later one makes. */
CLEAVE_STATUS cleave_partitioner_stage(cleave_partitioner_t *partitioner,
                                       const cleave_ruleset_t *const *rulesets, uint32_t count,
                                       cleave_error_t *error);

/* Are the nodes in several stages? Fills in which, then. */
bool cleave_partitioner_crosses(const cleave_partitioner_t *partitioner, const cleave_node_t *nodes,
                                uint32_t count, cleave_reason_t *reason);

/* ---- fuse.c ---- */

/* Matches a fuse rule (plan->rules[rule]) everywhere and keeps what is accepted. */
CLEAVE_STATUS cleave_partitioner_fuse(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                      uint32_t rule_index, cleave_error_t *error);

/* ---- region.c ---- */

/* Grows the regions of a region rule, or the fusions of a fuse rule that grows. */
CLEAVE_STATUS cleave_partitioner_region(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                        uint32_t rule_index, cleave_error_t *error);

/* ---- settle.c ---- */

/* A contracted group, named by one of its positions, becomes a region (of a fuse rule: a fusion) if it
 * reaches the rule's thresholds and `review` accepts it; otherwise it is dissolved into its units. If
 * `review` keeps only a part, the connected parts of it are decided in the same way. */
CLEAVE_STATUS cleave_partitioner_settle(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                        uint32_t rule_index, uint32_t position, cleave_error_t *error);

/* Every fusion of the ruleset that no region took becomes a region of its own. */
CLEAVE_STATUS cleave_partitioner_own_regions(cleave_partitioner_t *partitioner, cleave_error_t *error);

/* ---- review.c ---- */

/* A set of nodes that a rule would take. */
typedef struct cleave_candidate {
  const cleave_rule_t *rule;
  uint32_t rule_index; /* in plan->rules */
  const uint32_t *positions;
  uint32_t count;
} cleave_candidate_t;

/* Applies the rule's thresholds to a set, then its `review`, which may drop nodes. The caller initialises
 * `review` to accept the whole set; its `keep` is per position. *out_by_threshold is set if a threshold
 * refused. */
CLEAVE_STATUS cleave_partitioner_review(cleave_partitioner_t *partitioner,
                                        const cleave_candidate_t *candidate, cleave_review_t *review,
                                        bool *out_by_threshold, cleave_error_t *error);

/* ---- grow.c ---- */

/* Regions over all units of one group number each; for modes BACKEND, OPS and SUPPORTED. */
CLEAVE_STATUS cleave_partitioner_grow(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                      uint32_t rule_index, cleave_error_t *error);

/* ---- select.c ---- */

/* Regions by a selector's search from every seed. */
CLEAVE_STATUS cleave_partitioner_select(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                        uint32_t rule_index, cleave_error_t *error);

/* ---- split.c ---- */

/* Contracts a set of units (positions, ascending) into connected groups that close no cycle: first its
 * connected parts. A part that would close a cycle is cut into levels, as in grow.c, whose groups are joined
 * again if that closes no cycle. When the rule's budget of steps is spent, units stay single, and a note says
 * so. */
CLEAVE_STATUS cleave_partitioner_split(cleave_partitioner_t *partitioner, uint32_t rule_index,
                                       const uint32_t *positions, uint32_t count, cleave_error_t *error);

/* ---- merge.c ---- */

/* Joins neighbouring groups that may be one region, in their order, wherever that closes no cycle. `groups`:
 * representatives, in order; `numbers`: per position, groups with equal numbers may join,
 * CLEAVE_GROUP_NONE: never. `edge_count`: edges of the set, for a budget of steps that keeps it linear. Cuts
 * that a cycle forces are noted. */
CLEAVE_STATUS cleave_partitioner_merge(cleave_partitioner_t *partitioner, uint32_t rule_index,
                                       const uint32_t *groups, uint32_t count, const int64_t *numbers,
                                       size_t edge_count, cleave_error_t *error);

/* ---- boundary.c ---- */

/* Inputs and outputs of a set of nodes (positions, ascending) into partitioner->inputs and outputs: run-time
 * values from outside in order of first use; values used outside in order of producer. A position is inside
 * if its entry in `member_of` is `member`. */
CLEAVE_STATUS cleave_partitioner_find_boundary(cleave_partitioner_t *partitioner, const uint32_t *positions,
                                               uint32_t count, const uint32_t *member_of, uint32_t member,
                                               cleave_error_t *error);

/* ---- plan_build.c ---- */

/* Turns what was found into the plan: execution order, names, boundaries. */
CLEAVE_STATUS cleave_partitioner_finish(cleave_partitioner_t *partitioner, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_GROW_PARTITIONER_H */
