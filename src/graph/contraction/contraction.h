// SPDX-License-Identifier: Apache-2.0
/*
 * Node sets contracted to groups, with one incremental topological order over the groups. The graph with
 * every group contracted is acyclic at all times: a set that would close a cycle is not contracted, and
 * stays as it was.
 *
 * Nodes are named by their position, 0 .. node_count - 1, in the topological order of the graph. A group is
 * named by the position of one of its members (its representative), which changes when groups join. The
 * graph must stay unchanged while the contraction lives.
 */
#ifndef CLEAVE_GRAPH_CONTRACTION_CONTRACTION_H
#define CLEAVE_GRAPH_CONTRACTION_CONTRACTION_H

#include "base/memory.h"
#include "graph/graph.h"

/* order_list.c: A linked list of the numbers 0 .. count - 1 (or some of them) that can tell in constant time
 * which of two comes first: every element has a label, and labels increase along the list. */

typedef struct cleave_order_list {
  uint32_t sentinel; /* before the first and after the last; label 0 */
  uint64_t *labels;
  uint32_t *before;
  uint32_t *after;
  uint64_t gap; /* of cleave_order_list_append */
} cleave_order_list_t;

/* All of 0 .. count - 1, in this order. */
CLEAVE_STATUS cleave_order_list_init(cleave_order_list_t *list, uint32_t count, cleave_error_t *error);
void cleave_order_list_deinit(cleave_order_list_t *list);

/* Empties the list, to be filled with `count` appends at most. */
void cleave_order_list_start(cleave_order_list_t *list, uint32_t count);
void cleave_order_list_append(cleave_order_list_t *list, uint32_t element);

void cleave_order_list_remove(cleave_order_list_t *list, uint32_t element);
/* Puts `count` elements, which are in no list, after `element` (may be the sentinel), in their order. */
void cleave_order_list_insert_after(cleave_order_list_t *list, uint32_t element, const uint32_t *elements,
                                    size_t count);
/* `replacement`, which is in no list, takes the place and label of `element`; nothing if they are the same.
 */
void cleave_order_list_replace(cleave_order_list_t *list, uint32_t element, uint32_t replacement);

/* Read the first block freely; change nothing. */
typedef struct cleave_contraction {
  const cleave_graph_t *graph;
  uint32_t node_count;
  cleave_node_t *nodes; /* per position */
  uint32_t *positions;  /* per node index; CLEAVE_INDEX_NONE if removed */
  /* Producers of the inputs (by input, duplicates kept), and users of the outputs (by output, then use), of
   * position p: items [start[p], start[p + 1]). Graph inputs, constants and graph outputs do not occur. */
  uint32_t *producer_start;
  uint32_t *producers;
  uint32_t *user_start;
  uint32_t *users;
  uint32_t *next_member; /* ring of the members of a group */
  uint32_t *sizes;       /* members, at the representative */

  /* private */
  uint32_t *parents;         /* union-find */
  cleave_order_list_t order; /* of representatives: labels increase along every edge between groups */
  uint32_t *marks;           /* 4 * search number + what the search knows of the group */
  uint32_t search;
  CLEAVE_ARRAY(uint32_t) roots; /* scratch of searches */
  CLEAVE_ARRAY(uint32_t) forward;
  CLEAVE_ARRAY(uint32_t) backward;
} cleave_contraction_t;

/* Every live node is a group of its own. CLEAVE_ERROR_FORMAT if the graph has a cycle. */
CLEAVE_STATUS cleave_contraction_create(const cleave_graph_t *graph, cleave_contraction_t **out_contraction,
                                        cleave_error_t *error);
void cleave_contraction_destroy(cleave_contraction_t *contraction);

/* Representative of the group of a position. */
static inline uint32_t cleave_contraction_group(const cleave_contraction_t *contraction, uint32_t position) {
  uint32_t *parents = contraction->parents;
  while (parents[position] != position) {
    parents[position] = parents[parents[position]];
    position = parents[position];
  }
  return position;
}

/* A number that grows along the order over groups. Changes whenever something is contracted or dissolved. */
static inline uint64_t cleave_contraction_label(const cleave_contraction_t *contraction, uint32_t group) {
  return contraction->order.labels[group];
}

/* Walks the representatives in order; CLEAVE_INDEX_NONE after the last. */
static inline uint32_t cleave_contraction_first(const cleave_contraction_t *contraction) {
  uint32_t first = contraction->order.after[contraction->node_count];
  return first == contraction->node_count ? CLEAVE_INDEX_NONE : first;
}
static inline uint32_t cleave_contraction_next(const cleave_contraction_t *contraction, uint32_t group) {
  uint32_t next = contraction->order.after[group];
  return next == contraction->node_count ? CLEAVE_INDEX_NONE : next;
}

typedef enum cleave_contraction_outcome {
  CLEAVE_CONTRACTION_DONE,  /* contracted, or: may be contracted */
  CLEAVE_CONTRACTION_CYCLE, /* would close a cycle */
  CLEAVE_CONTRACTION_LIMIT  /* not known within the step limit */
} cleave_contraction_outcome_t;

typedef struct cleave_contraction_result {
  cleave_contraction_outcome_t outcome;
  uint32_t
      outside;  /* CYCLE: position of a node outside of the set, on a path that leaves it and comes back */
  size_t steps; /* edges looked at */
} cleave_contraction_result_t;

/* Makes one group of the groups of all `count` positions (one or more; duplicates are allowed). The search
 * for a path that leaves the set and comes back goes forwards from the set and backwards from it in turns,
 * and ends when either side is exhausted within the span of the set in the order; there is none if the last
 * entry of the set comes before its first exit, as in every set whose entries reach its exits.
 * `step_limit`: edges to look at before giving up; SIZE_MAX: none. */
CLEAVE_STATUS cleave_contraction_contract(cleave_contraction_t *contraction, const uint32_t *positions,
                                          uint32_t count, size_t step_limit,
                                          cleave_contraction_result_t *result, cleave_error_t *error);

/* Answers the same question without contracting. */
CLEAVE_STATUS cleave_contraction_check(cleave_contraction_t *contraction, const uint32_t *positions,
                                       uint32_t count, size_t step_limit, cleave_contraction_result_t *result,
                                       cleave_error_t *error);

/* Contracts by levels, linear and without any search. `levels` per representative must not decrease along
 * an edge between groups. Groups that `joins` and are tied by an edge within one level become one group; a
 * group that joins must not have an edge within its level to or from one that does not. */
CLEAVE_STATUS cleave_contraction_contract_levels(cleave_contraction_t *contraction, const uint32_t *levels,
                                                 const bool *joins, cleave_error_t *error);

/* Makes the members of a group single groups again, at its place in the order. What was contracted into the
 * group before can be contracted again. */
CLEAVE_STATUS cleave_contraction_dissolve(cleave_contraction_t *contraction, uint32_t position,
                                          cleave_error_t *error);

#endif /* CLEAVE_GRAPH_CONTRACTION_CONTRACTION_H */
