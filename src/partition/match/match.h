// SPDX-License-Identifier: Apache-2.0
/*
 * The matcher: finds what a compiled pattern matches at an anchor, the graph node that takes the pattern's
 * first operator. Backtracking without recursion, with a budget of steps: neither the size of the graph nor a
 * pathological pattern can make it hang or overflow.
 *
 * A match has exactly the edges that the pattern names: no matched node reads a value of another matched node
 * unless the pattern says so. The outputs of a matched node are used inside the match only and are not graph
 * outputs. The main outputs of sinks (nodes that no matched node reads) and nodes whose pattern is `shared`
 * are exempt. Different operators of the pattern take different nodes, unless they have one label. A label
 * inside `repeated` is bound to the last repetition.
 */
#ifndef CLEAVE_PARTITION_MATCH_MATCH_H
#define CLEAVE_PARTITION_MATCH_MATCH_H

#include "graph/contraction/contraction.h"
#include "partition/pattern/ruleset.h"

typedef struct cleave_matcher cleave_matcher_t;

/* Works on the nodes of `contraction`, which must outlive it. Only its graph, nodes, positions and node_count
 * are read, not its groups. If the graph changes, new nodes get the positions after the last one
 * (cleave_matcher_grow); removed nodes keep theirs, and are not anchors. */
CLEAVE_STATUS cleave_matcher_create(const cleave_contraction_t *contraction, cleave_matcher_t **out_matcher,
                                    cleave_error_t *error);
void cleave_matcher_destroy(cleave_matcher_t *matcher);

/* To be called after every change of the graph. The contraction may have more nodes than before;
 * cleave_matcher_anchors does not return them. */
CLEAVE_STATUS cleave_matcher_grow(cleave_matcher_t *matcher, cleave_error_t *error);

/* The pattern (checked, borrowed) that the next calls match. */
CLEAVE_STATUS cleave_matcher_set_pattern(cleave_matcher_t *matcher, const cleave_pattern_t *pattern,
                                         cleave_error_t *error);

/* Positions that can be anchors of the pattern, ascending. Found through an index of nodes by operator: free
 * of cost if the operators do not occur. Borrowed until the pattern changes. */
CLEAVE_STATUS cleave_matcher_anchors(cleave_matcher_t *matcher, const uint32_t **out_positions,
                                     uint32_t *out_count, cleave_error_t *error);

typedef struct cleave_match_request {
  uint32_t anchor;       /* position */
  const uint8_t *states; /* per position, or NULL. Nodes with a state of */
  uint8_t blocked_from;  /* this or more cannot be matched */
  size_t step_limit;
  /* Called with every complete match and its hash; false: look for the next one. May be NULL. */
  bool (*accept)(void *context, const cleave_match_t *match, uint64_t hash);
  void *context;
  bool passes_unnamed; /* allows edges that the pattern does not name (for explanations) */
} cleave_match_request_t;

enum { CLEAVE_MATCH_MAX_UNNAMED = 8 }; /* with more, there is no match */

/* Input `index` of a matched node, made by another matched node, that the pattern does not name. */
typedef struct cleave_match_edge {
  cleave_node_t node;
  uint32_t index;
} cleave_match_edge_t;

typedef struct cleave_match_answer {
  const cleave_match_t *match;        /* NULL: none; borrowed until the next call */
  const cleave_match_edge_t *unnamed; /* of the match, if the request allows them; borrowed likewise */
  uint32_t unnamed_count;
  uint64_t hash; /* of nodes and labels' values */
  bool limit;    /* ended by the step limit */
  size_t steps;
} cleave_match_answer_t;

/* The first match at an anchor: alternatives in the order of the pattern, longest first. */
CLEAVE_STATUS cleave_matcher_match(cleave_matcher_t *matcher, const cleave_match_request_t *request,
                                   cleave_match_answer_t *answer, cleave_error_t *error);

/* Hash of nodes in topological order: the same for all matches of a rule that have the same nodes, whatever
 * parts of the pattern these stand for. */
uint64_t cleave_match_hash_nodes(const cleave_node_t *nodes, uint32_t count);

#endif /* CLEAVE_PARTITION_MATCH_MATCH_H */
