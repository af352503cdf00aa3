// SPDX-License-Identifier: Apache-2.0
/*
 * Why regions end where they end: for every edge across the boundary of a region, what kept the neighbour
 * out; and how the plan would change if one more operator were supported. The report is made by partitioning
 * again with a log, and once more for every operator in question; without a request nothing is recorded.
 */
#ifndef CLEAVE_PARTITION_REPORT_BOUNDARY_REPORT_H
#define CLEAVE_PARTITION_REPORT_BOUNDARY_REPORT_H

#include "partition/grow/boundary_log.h"

/* A value that crosses the boundary of a region, and one neighbour. */
typedef struct cleave_boundary_edge {
  uint32_t region; /* in plan->regions */
  bool is_input;   /* true: the neighbour makes the value; false: it reads it */
  cleave_value_t value;
  cleave_node_t inside;  /* the first node of the region that reads it, or the one that makes it */
  cleave_node_t outside; /* the neighbour; NONE: the model's own input or output */
  uint32_t other;        /* the neighbour's region, or CLEAVE_INDEX_NONE */
  cleave_stop_cause_t cause;
  const char *reason;
  double bytes; /* of the value; negative: not known */
} cleave_boundary_edge_t;

/* Edges of one region and side that have the same reason and the same operator outside. */
typedef struct cleave_boundary_group {
  uint32_t region;
  bool is_input;
  cleave_stop_cause_t cause;
  const char *reason;
  const cleave_op_t *op; /* of the neighbours; NULL: the model itself */
  uint32_t example;      /* the first edge, in edges */
  uint32_t edge_count;
  uint32_t value_count;   /* different values */
  uint32_t unknown_count; /* of them, those with unknown size */
  double bytes;           /* of the others */
} cleave_boundary_group_t;

/* The plan, had this operator been one that the region rules name and the backends run. */
typedef struct cleave_what_if {
  const cleave_op_t *op;
  uint32_t node_count;   /* of the operator, outside of regions */
  uint32_t region_count; /* there would be */
  uint32_t merged_count; /* regions of today that would share a region with another one */
  double bytes_less;     /* that cross boundaries between parts of the plan; may be negative */
} cleave_what_if_t;

typedef struct cleave_boundary_report {
  cleave_arena_t arena;
  cleave_plan_t *plan;                          /* owned; the same as cleave_partition makes */
  cleave_boundary_log_t *log;                   /* owned */
  CLEAVE_ARRAY(cleave_boundary_edge_t) edges;   /* by region; inputs first; in order of the region's values */
  CLEAVE_ARRAY(cleave_boundary_group_t) groups; /* by region; inputs first; most bytes first */
  CLEAVE_ARRAY(cleave_what_if_t) what_ifs;      /* most merged first, then most bytes */
  double bytes;           /* that cross boundaries between parts of the plan, each value once */
  uint32_t unknown_count; /* values among them whose size is not known */
} cleave_boundary_report_t;

/* Partitions as cleave_partition does, and reports. `options` may be NULL; its `log` and `assume` are not
 * used. */
CLEAVE_STATUS cleave_boundary_report_create(const cleave_graph_t *graph,
                                            const cleave_ruleset_t *const *rulesets, uint32_t ruleset_count,
                                            const cleave_partition_options_t *options,
                                            cleave_boundary_report_t **out_report, cleave_error_t *error);
void cleave_boundary_report_destroy(cleave_boundary_report_t *report);

/* For boundary_report.c: fills in what_ifs, bytes and unknown_count (boundary_assume.c). */
CLEAVE_STATUS cleave_boundary_report_assume(cleave_boundary_report_t *report,
                                            const cleave_ruleset_t *const *rulesets, uint32_t ruleset_count,
                                            const cleave_partition_options_t *options, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_REPORT_BOUNDARY_REPORT_H */
