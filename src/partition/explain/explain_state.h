// SPDX-License-Identifier: Apache-2.0
/*
 * The state of the explainer: private to explain*.c.
 *
 * A pattern is taken apart into constraints, each a single requirement on the graph. A trial is the pattern
 * with some constraints dropped and some choices made. It is built as a pattern of its own and given to the
 * matcher, so that the matcher alone decides what matches. A constraint is at fault if the pattern matches
 * without it and does not match with it.
 */
#ifndef CLEAVE_PARTITION_EXPLAIN_EXPLAIN_STATE_H
#define CLEAVE_PARTITION_EXPLAIN_EXPLAIN_STATE_H

#include "graph/contraction/contraction.h"
#include "partition/explain/explain.h"
#include "partition/match/match.h"

typedef enum constraint_kind {
  CONSTRAINT_CHILD, /* child `index` of a SEQUENCE or GROUP is present */
  CONSTRAINT_INPUT, /* input pattern `index` of an OP is present; for a part that was met before: it is the
                       same one */
  CONSTRAINT_OPS,   /* the operator is one of those */
  CONSTRAINT_ATTRIBUTE, /* test `index` */
  CONSTRAINT_DTYPE,
  CONSTRAINT_RANK,
  CONSTRAINT_DIM, /* dimension `index` of the shape */
  CONSTRAINT_CONSTANT,
  CONSTRAINT_SCALAR,
  CONSTRAINT_ALL_EQUAL,
  CONSTRAINT_CONTENT,   /* value, values or range of a constant */
  CONSTRAINT_LABEL,     /* a value with this label is the same as the others */
  CONSTRAINT_UNSHARED,  /* the OP's outputs have no other readers */
  CONSTRAINT_MIN_COUNT, /* `min` of REPEATED and VARIADIC */
  CONSTRAINT_MAX_COUNT, /* `max` */
  CONSTRAINT_WHERE,     /* condition of the part */
  CONSTRAINT_EDGES,     /* of the pattern: no node of the match reads another one but as the pattern says */
  CONSTRAINT_WHERE_ALL  /* condition of the pattern */
} constraint_kind_t;

typedef struct constraint {
  uint8_t kind; /* constraint_kind_t */
  uint32_t part;
  uint32_t index;
} constraint_t;

typedef enum constraint_state {
  CONSTRAINT_STRICT,  /* asked for, and not looked into: inside of a unit */
  CONSTRAINT_OPEN,    /* not asked for yet */
  CONSTRAINT_KEPT,    /* asked for */
  CONSTRAINT_DROPPED, /* at fault */
  CONSTRAINT_PASSED   /* CHILD and INPUT: asked for behind one more node, which is at fault */
} constraint_state_t;

#define CHOICE_NONE UINT16_MAX /* ONEOF: all alternatives as they are; MAYBE: as it is */

enum {
  EDGE_SAME = 1,     /* an INPUT whose part was met before */
  EDGE_BACKWARDS = 2 /* a CHILD that comes before the one it was met from */
};

typedef struct trial {
  uint8_t *states;   /* per constraint */
  uint8_t *edges;    /* per constraint CHILD and INPUT: how the walk came along, as EDGE_ bits */
  uint16_t *choices; /* per part: the alternative of a ONEOF, 0 for a MAYBE that must be there */
} trial_t;

/* The quality of a trial. */
typedef struct tally {
  uint32_t matched; /* operators of the pattern that are as required */
  uint32_t total;
  uint32_t mismatches;
} tally_t;

struct cleave_explainer {
  const cleave_graph_t *graph;
  const struct cleave_history *history; /* may be NULL */
  cleave_contraction_t *contraction;
  cleave_matcher_t *matcher;
  size_t steps_left;        /* of the rule */
  size_t anchor_steps_left; /* of the anchor */
  bool is_exhausted;        /* a search was given up */

  /* the pattern */
  const cleave_pattern_t *pattern;
  cleave_arena_t pattern_arena;
  constraint_t *constraints;
  uint32_t constraint_count;
  uint32_t
      *constraint_starts; /* per part, and one more: there CONSTRAINT_EDGES is, and WHERE_ALL behind it */
  uint32_t *parents;      /* per part: one that refers to it, or NONE */
  bool is_tree;           /* no operator is referred to twice */
  bool has_group;         /* its members may be found through parts with one label */

  /* the walk over a trial */
  uint8_t *seen;      /* per part */
  uint32_t *skeleton; /* constraints CHILD and INPUT, in the order in which they are decided */
  uint32_t skeleton_count;
  uint32_t *details; /* the others, of what the skeleton has */
  uint32_t detail_count;

  cleave_arena_t trial_arena; /* trials of one anchor */
  cleave_arena_t build_arena; /* the pattern built last */
  cleave_pattern_node_t *built;
  uint32_t built_count;
  cleave_pattern_t trial_pattern;
  bool passes_unnamed; /* the trial has no CONSTRAINT_EDGES */

  cleave_explain_judge_t judge;
  void *judge_context;
  size_t inputs_left; /* of matches that the judge may still be asked about */

  CLEAVE_ARRAY(uint32_t) anchors; /* positions */
};

/* ---- explain_constraint.c ---- */

/* Takes a checked pattern apart. */
CLEAVE_STATUS cleave_explainer_take_apart(cleave_explainer_t *explainer, const cleave_pattern_t *pattern,
                                          cleave_error_t *error);

/* The part that `part` stands for under the choices of the trial. */
uint32_t cleave_explainer_resolve(const cleave_explainer_t *explainer, const trial_t *trial, uint32_t part);

/* Lists the constraints that apply under a trial's choices, and marks the parts that are reached. Parts
 * behind a dropped edge are left out. STRICT constraints become OPEN. */
void cleave_explainer_walk(cleave_explainer_t *explainer, trial_t *trial);

static inline uint32_t cleave_explainer_edges_constraint(const cleave_explainer_t *explainer) {
  return explainer->constraint_starts[explainer->pattern->node_count];
}

/* The constraint of a kind and index, or NONE. */
uint32_t cleave_explainer_constraint(const cleave_explainer_t *explainer, uint32_t part,
                                     constraint_kind_t kind, uint32_t index);

/* A trial with all constraints STRICT and no choices. ONEOF and MAYBE parts are units until a choice is made.
 */
CLEAVE_STATUS cleave_explainer_trial_create(cleave_explainer_t *explainer, trial_t *out_trial,
                                            cleave_error_t *error);
CLEAVE_STATUS cleave_explainer_trial_copy(cleave_explainer_t *explainer, const trial_t *trial,
                                          trial_t *out_trial, cleave_error_t *error);

/* The smallest number of operators that a part stands for, without those that were counted before. */
uint32_t cleave_explainer_least_ops(cleave_explainer_t *explainer, const trial_t *trial, uint32_t part);

/* ---- explain_build.c ---- */

/* The trial as a pattern, in explainer->trial_pattern. `names_all`: every part has a label of its own,
 * "#12", unless operators share one. */
CLEAVE_STATUS cleave_explainer_build(cleave_explainer_t *explainer, const trial_t *trial, bool names_all,
                                     cleave_error_t *error);

/* Change explainer->built, for trials and for edits. NONE or NULL if memory is short. */
uint32_t cleave_explainer_add_part(cleave_explainer_t *explainer, cleave_pattern_node_t part);
uint32_t *cleave_explainer_own_children(cleave_explainer_t *explainer, uint32_t part, uint32_t extra);
cleave_pattern_input_t *cleave_explainer_own_inputs(cleave_explainer_t *explainer, uint32_t part,
                                                    uint32_t extra);
/* `part`, or any value. */
uint32_t cleave_explainer_add_choice(cleave_explainer_t *explainer, uint32_t part);
/* `a` and `b` as children of a new part. */
uint32_t cleave_explainer_add_group(cleave_explainer_t *explainer, cleave_pattern_kind_t kind, uint32_t a,
                                    uint32_t b);
/* Copies the pattern into explainer->built, with room for more parts. */
CLEAVE_STATUS cleave_explainer_copy_parts(cleave_explainer_t *explainer, cleave_error_t *error);

/* Makes explainer->trial_pattern from explainer->built; parts without references become values that accept
 * anything. */
CLEAVE_STATUS cleave_explainer_finish_parts(cleave_explainer_t *explainer, bool names_all,
                                            cleave_error_t *error);

/* Matches explainer->trial_pattern at a position. The answer has no match if it does not match, or if the
 * trial is not a valid pattern (a group whose members no longer share anything). */
CLEAVE_STATUS cleave_explainer_probe(cleave_explainer_t *explainer, uint32_t anchor,
                                     cleave_match_answer_t *answer, cleave_error_t *error);

/* ---- explain_grow.c ---- */

/* Finds the matching trial at an anchor that has most of the pattern. In the trial arena. */
CLEAVE_STATUS cleave_explainer_grow(cleave_explainer_t *explainer, uint32_t anchor, uint32_t focus,
                                    cleave_explain_depth_t depth, trial_t *out_trial, tally_t *out_tally,
                                    bool *out_found, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_EXPLAIN_EXPLAIN_STATE_H */
