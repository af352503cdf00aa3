// SPDX-License-Identifier: Apache-2.0
/*
 * A log of where growth stopped. The partitioner fills it in if the caller asks for it
 * (cleave_partition_options_t.log); boundary_report.c reads it. A rule that did not take a node leaves one
 * entry about the node; a cut between two sets of one rule leaves one entry about the pair.
 */
#ifndef CLEAVE_PARTITION_GROW_BOUNDARY_LOG_H
#define CLEAVE_PARTITION_GROW_BOUNDARY_LOG_H

#include "graph/graph.h"
#include "partition/grow/partition.h"

typedef enum cleave_stop_cause {
  CLEAVE_STOP_MODEL,     /* an input or output of the model */
  CLEAVE_STOP_OPS,       /* not in `ops` */
  CLEAVE_STOP_SUPPORTED, /* `supported` said false */
  CLEAVE_STOP_GROUP,     /* `supported` gave another group */
  CLEAVE_STOP_BACKEND,   /* the backend cannot run it */
  CLEAVE_STOP_REGION,    /* in a region before the rule came */
  CLEAVE_STOP_CYCLE,     /* together they would close a cycle */
  CLEAVE_STOP_LIMIT,     /* a search was given up */
  CLEAVE_STOP_SELECTOR,  /* the selector refused */
  CLEAVE_STOP_FILTER,    /* `filter` dropped it */
  CLEAVE_STOP_REVIEW,    /* `review` refused or dropped it */
  CLEAVE_STOP_THRESHOLD, /* too small for min_nodes, min_flops, ... */
  CLEAVE_STOP_CALLER,    /* the caller of the partitioner left it out */
  CLEAVE_STOP_STAGE,     /* in another stage */
  CLEAVE_STOP_NO_RULE    /* no region rule took the fusion */
} cleave_stop_cause_t;

/* "model", "ops", "supported", "group", "backend", "region", "cycle", "limit", "selector", "filter",
 * "review", "threshold", "left out", "stage", "no rule". */
const char *cleave_stop_cause_name(cleave_stop_cause_t cause);

typedef struct cleave_stop {
  cleave_stop_cause_t cause;
  uint32_t rule;    /* in plan->rules */
  uint32_t next;    /* older entry of the same node, or CLEAVE_INDEX_NONE */
  const char *text; /* the reason in words */
} cleave_stop_t;

/* Two nodes whose sets stay apart. */
typedef struct cleave_cut {
  cleave_node_t nodes[2];
  cleave_node_t outside; /* on the path that would close a cycle; NONE: the search was given up */
  uint32_t rule;
} cleave_cut_t;

struct cleave_boundary_log {
  cleave_arena_t arena;
  uint32_t *first; /* per node index: the newest entry in stops, or CLEAVE_INDEX_NONE */
  CLEAVE_ARRAY(cleave_stop_t) stops;
  CLEAVE_ARRAY(cleave_cut_t) cuts;
};

CLEAVE_STATUS cleave_boundary_log_create(const cleave_graph_t *graph, cleave_boundary_log_t **out_log,
                                         cleave_error_t *error);
void cleave_boundary_log_destroy(cleave_boundary_log_t *log);

/* If the log is NULL, nothing is recorded. `text` is copied. */
CLEAVE_STATUS cleave_boundary_log_stop(cleave_boundary_log_t *log, cleave_node_t node, uint32_t rule,
                                       cleave_stop_cause_t cause, const char *text, cleave_error_t *error);
CLEAVE_STATUS cleave_boundary_log_cut(cleave_boundary_log_t *log, const cleave_cut_t *cut,
                                      cleave_error_t *error);

/* The newest entry about a node of this rule (CLEAVE_INDEX_NONE: of any rule), or NULL. */
const cleave_stop_t *cleave_boundary_log_find(const cleave_boundary_log_t *log, cleave_node_t node,
                                              uint32_t rule);

#endif /* CLEAVE_PARTITION_GROW_BOUNDARY_LOG_H */
