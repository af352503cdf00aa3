// SPDX-License-Identifier: Apache-2.0
/*
 * The differences of two plans: nodes that moved to another place, rules that gained or lost matches,
 * fusions of other shapes, regions that were split, merged or changed, settings. The plans may be of
 * different graphs: nodes are matched by position if the graphs are the same, otherwise by operator and name;
 * nodes without a unique name are matched by operator and order.
 *
 * The place of a node is its stage, its backend, its region and the rule of its fusion. The new region that
 * shares most nodes with an old one is its successor; a node in the successor of its region has not moved.
 */
#ifndef CLEAVE_PARTITION_PLAN_DIFF_PLAN_DIFF_H
#define CLEAVE_PARTITION_PLAN_DIFF_PLAN_DIFF_H

#include "partition/plan/plan_document.h"

typedef struct cleave_diff_place {
  const char *backend;
  const char *region; /* "" outside of regions */
  const char *fusion; /* name of the fuse rule, or "" */
  uint32_t stage;     /* NONE: the plan is not cut into stages */
} cleave_diff_place_t;

typedef struct cleave_diff_node {
  uint32_t before; /* positions; NONE: only in the other plan's graph */
  uint32_t after;
  const char *op;
  const char *name;
  cleave_diff_place_t place_before;
  cleave_diff_place_t place_after;
} cleave_diff_node_t;

typedef struct cleave_diff_rule {
  const cleave_plan_rule_t *before; /* NULL: the rule is new */
  const cleave_plan_rule_t *after;  /* NULL: it is gone */
} cleave_diff_rule_t;

/* Fusions of one rule and shape: "Conv+BatchNormalization+Relu". */
typedef struct cleave_diff_shape {
  const char *rule;
  const char *shape;
  uint32_t before;
  uint32_t after;
} cleave_diff_shape_t;

typedef enum cleave_diff_region_kind {
  CLEAVE_DIFF_REGION_NEW,
  CLEAVE_DIFF_REGION_GONE,
  CLEAVE_DIFF_REGION_CHANGED, /* one became one with other nodes, another backend, rule or attributes */
  CLEAVE_DIFF_REGION_SPLIT,
  CLEAVE_DIFF_REGION_MERGED,
  CLEAVE_DIFF_REGION_REGROUPED /* several became several others */
} cleave_diff_region_kind_t;

typedef struct cleave_diff_region {
  cleave_diff_region_kind_t kind;
  const char *why; /* CHANGED: "nodes", "backend", "rule", "attributes" */
  uint32_t before_count;
  const cleave_document_region_t **before;
  uint32_t after_count;
  const cleave_document_region_t **after;
} cleave_diff_region_t;

typedef struct cleave_diff_setting {
  const char *name;
  const char *before; /* NULL: not set */
  const char *after;
} cleave_diff_setting_t;

typedef struct cleave_plan_diff {
  cleave_arena_t arena;
  const cleave_plan_document_t *before;
  const cleave_plan_document_t *after;
  bool same; /* all decisions are the same: the lists below are empty, except for rules with equal counters */
  bool same_graph;
  uint32_t matched_count; /* nodes that are in both graphs */
  uint32_t by_name_count; /* of these, by operator and name */
  uint32_t node_count;    /* nodes that moved, then nodes of one graph only */
  uint32_t moved_count;
  cleave_diff_node_t *nodes;
  uint32_t rule_count; /* all rules, in the order of the plan after; gone ones last */
  cleave_diff_rule_t *rules;
  uint32_t shape_count; /* whose numbers differ */
  cleave_diff_shape_t *shapes;
  uint32_t region_count; /* those that differ */
  cleave_diff_region_t *regions;
  uint32_t setting_count; /* those that differ */
  cleave_diff_setting_t *settings;
} cleave_plan_diff_t;

/* Both documents are borrowed and must outlive the difference. */
CLEAVE_STATUS cleave_plan_diff_create(const cleave_plan_document_t *before,
                                      const cleave_plan_document_t *after, cleave_plan_diff_t **out_diff,
                                      cleave_error_t *error);
void cleave_plan_diff_destroy(cleave_plan_diff_t *diff);

/* plan_diff_nodes.c: the new position of every old position, or NONE, and the reverse. Arrays in the arena.
 */
CLEAVE_STATUS cleave_plan_diff_match(cleave_plan_diff_t *diff, uint32_t **out_after_of,
                                     uint32_t **out_before_of, cleave_error_t *error);

/* plan_diff_regions.c: fills in `regions`, and the successor of every old region (NONE if it has none). */
CLEAVE_STATUS cleave_plan_diff_regions(cleave_plan_diff_t *diff, const uint32_t *after_of,
                                       uint32_t **out_heirs, cleave_error_t *error);

/* Prints lines for people with aligned columns; "the plans are the same" if they are. The same difference
 * gives the same bytes. */
CLEAVE_STATUS cleave_plan_diff_print_text(const cleave_plan_diff_t *diff, cleave_text_t *text,
                                          cleave_error_t *error);
/* One JSON object on one line, without a newline. */
CLEAVE_STATUS cleave_plan_diff_print_json(const cleave_plan_diff_t *diff, cleave_text_t *text,
                                          cleave_error_t *error);

/* "new", "gone", "changed", "split", "merged", "regrouped". */
const char *cleave_diff_region_kind_name(cleave_diff_region_kind_t kind);

#endif /* CLEAVE_PARTITION_PLAN_DIFF_PLAN_DIFF_H */
