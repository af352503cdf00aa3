// SPDX-License-Identifier: Apache-2.0
/*
 * A plan: what the rules decided about one graph. Regions are disjoint sets of nodes that one backend runs;
 * fusions are disjoint sets that one kernel computes, each whole inside one region. With all regions
 * contracted the graph is acyclic, and `steps` is a topological order of what remains. Immutable once made.
 */
#ifndef CLEAVE_PARTITION_PLAN_PLAN_H
#define CLEAVE_PARTITION_PLAN_PLAN_H

#include "graph/edits.h"
#include "partition/pattern/rule_kind.h"

typedef struct cleave_plan_rule {
  const char *ruleset;
  const char *backend;
  const char *name;
  const char *file;
  int32_t line;
  cleave_rule_kind_t kind;
  /* counts */
  uint32_t tries;   /* anchors looked at (fuse), seeds (region) */
  uint32_t matches; /* fusions or regions that are in the plan */
  uint32_t refused; /* by where, backend, review or for acyclicity */
  /* statistics of one run, for people: not part of the plan's decisions or of its file */
  uint64_t structural_hits; /* complete matches of the pattern, before `where` and the backend were asked */
  uint64_t lua_calls;       /* calls of the rule's functions */
  uint64_t nanoseconds;     /* wall clock spent in the rule, its functions included */
} cleave_plan_rule_t;

typedef struct cleave_plan_fusion {
  uint32_t rule;   /* in plan->rules */
  uint32_t region; /* in plan->regions */
  uint32_t node_count;
  const cleave_node_t *nodes; /* topological */
  const char *const *labels;  /* per node */
  uint32_t attribute_count;
  const cleave_attribute_t *attributes; /* of its rule, for the backend; by name, no tensors */
} cleave_plan_fusion_t;

typedef struct cleave_plan_region {
  const char *name;    /* unique: "island_0" */
  const char *backend; /* "onednn" */
  uint32_t rule;       /* in plan->rules: the region rule, or the fuse rule of a fusion that no region took */
  uint32_t node_count;
  const cleave_node_t *nodes; /* topological */
  uint32_t fusion_count;
  const uint32_t *fusions; /* in plan->fusions */
  uint32_t input_count;
  const cleave_value_t
      *inputs; /* run-time values from outside, each once: in order of first use in `nodes` */
  uint32_t output_count;
  const cleave_value_t *outputs; /* values used outside, each once: in order of producer, then output index */
  uint32_t attribute_count;
  const cleave_attribute_t *attributes; /* from `review`, for the backend; by name, no tensors */
} cleave_plan_region_t;

typedef enum cleave_plan_note_kind {
  CLEAVE_PLAN_NOTE_WHERE,     /* `where` returned false */
  CLEAVE_PLAN_NOTE_BACKEND,   /* the backend refused a fusion or node */
  CLEAVE_PLAN_NOTE_REVIEW,    /* `review` refused a region */
  CLEAVE_PLAN_NOTE_THRESHOLD, /* a set is below a threshold of the rule: `min_nodes` and the like */
  CLEAVE_PLAN_NOTE_CYCLE,     /* a set was split, or refused, because contracting it would close a cycle */
  CLEAVE_PLAN_NOTE_FILTER,    /* `filter` dropped the node */
  CLEAVE_PLAN_NOTE_TAKEN,     /* lost to another match */
  CLEAVE_PLAN_NOTE_LIMIT,     /* a search was ended by its budget */
  CLEAVE_PLAN_NOTE_LEFT_OUT,  /* the caller of the partitioner did not allow it */
  CLEAVE_PLAN_NOTE_STAGE,     /* its nodes are in several stages */
  CLEAVE_PLAN_NOTE_OUTPUT     /* an output of the graph has another type than the model's */
} cleave_plan_note_kind_t;

typedef struct cleave_plan_note {
  cleave_plan_note_kind_t kind;
  cleave_node_t node; /* that it is about */
  uint32_t rule;      /* in plan->rules */
  const char *reason;
} cleave_plan_note_t;

typedef struct cleave_plan_step {
  uint32_t region;    /* in plan->regions, or CLEAVE_INDEX_NONE */
  cleave_node_t node; /* a node outside all regions, which `cpu` runs */
} cleave_plan_step_t;

typedef struct cleave_plan {
  cleave_arena_t arena;         /* holds all below */
  const cleave_graph_t *source; /* the graph that was given to the rules; borrowed, must outlive the plan */
  const cleave_graph_t *graph;  /* that the plan is about: the source, or `rewritten` */
  cleave_graph_t *rewritten;    /* owned: what rewrite and pass rules made of the source; NULL: nothing */
  cleave_edits_t *edits;        /* owned: how, and what they left; NULL: there were no such rules */
  uint64_t graph_hash;
  uint32_t setting_count; /* given to the rule files and the model script */
  const cleave_setting_t *settings;
  uint32_t rule_count;
  cleave_plan_rule_t *rules;
  uint32_t region_count;
  const cleave_plan_region_t *regions; /* in execution order */
  uint32_t fusion_count;
  const cleave_plan_fusion_t *fusions; /* in execution order */
  uint32_t note_count;
  const cleave_plan_note_t *notes; /* in order of events */
  uint32_t step_count;
  const cleave_plan_step_t *steps;
  const uint32_t *node_region; /* per node index: region, or CLEAVE_INDEX_NONE */
  const uint32_t *node_fusion; /* per node index: fusion, or CLEAVE_INDEX_NONE */
  /* Stages feed later ones only, and no region crosses from one to another. */
  uint32_t stage_count;       /* 0: the graph is not cut into stages; otherwise 2 or more */
  const uint32_t *node_stage; /* per node index; NULL: the graph is not cut */
} cleave_plan_t;

/* A copy of attributes for a region or fusion of a plan, in order of their names. Tensors and equal names are
 * errors. NULL for none. */
CLEAVE_STATUS cleave_plan_copy_attributes(cleave_arena_t *arena, const cleave_attribute_t *attributes,
                                          uint32_t count, const cleave_attribute_t **out_attributes,
                                          cleave_error_t *error);

void cleave_plan_destroy(cleave_plan_t *plan);

/* Copies the decisions of a plan for a graph with the ids and the structure of plan->graph
 * (graph/compare/same_structure.h). That graph and `source` must outlive the result. The caller adds the log
 * of rewrites. Nothing of `plan` is shared; the result has been checked. */
CLEAVE_STATUS cleave_plan_copy(const cleave_plan_t *plan, const cleave_graph_t *source,
                               const cleave_graph_t *graph, cleave_plan_t **out_plan, cleave_error_t *error);

/* "where", "backend", "review", "threshold", "cycle", "filter", "taken", "limit", "left out", "stage",
 * "output". */
const char *cleave_plan_note_name(cleave_plan_note_kind_t kind);

/* The content of a stage, and what it sends in a run. Bytes are negative if a size is not known. */
typedef struct cleave_plan_stage {
  uint32_t nodes;
  uint32_t regions;
  uint32_t sent_values; /* to later stages; one that two of them read counts twice */
  double sent_bytes;
  double weight_bytes; /* constants that it reads */
} cleave_plan_stage_t;

/* plan_stage.c: by stage; the caller frees the list (cleave_free). */
CLEAVE_STATUS cleave_plan_measure_stages(const cleave_plan_t *plan, cleave_plan_stage_t **out_stages,
                                         cleave_error_t *error);

enum { CLEAVE_PLACE_SIZE = 1100 };
/* Rule files that include the same file have its rules each: such rules are the same by kind, name, place and
 * backend. */
bool cleave_plan_rule_is_same(const cleave_plan_t *plan, uint32_t rule, uint32_t other);
/* The rule with the counts of all that are the same. False: it is counted with an earlier one. */
bool cleave_plan_rule_total(const cleave_plan_t *plan, uint32_t rule, cleave_plan_rule_t *out_total);

/* "rules/a.lua:12", or "a library" for a rule that a library brings, in the caller's buffer of
 * CLEAVE_PLACE_SIZE. */
const char *cleave_rule_place(const char *file, int32_t line, char *buffer);

/* Checks all that a plan promises, from the graph alone: every node in one step, regions and fusions
 * disjoint, connected and whole, inputs and outputs complete and in order, steps in an order that runs.
 * CLEAVE_ERROR_INTERNAL with the first thing that is wrong. */
CLEAVE_STATUS cleave_plan_check(const cleave_plan_t *plan, cleave_error_t *error);

/* Prints what graph rules left as it is: one line per rule and reason, at most `most` lines. */
void cleave_plan_print_refusals(const cleave_edits_t *edits, uint32_t most, cleave_text_t *text);

/* The plan as JSON (format "cleave-plan", version 1) or as text for people. The same plan gives the same
 * bytes. */
CLEAVE_STATUS cleave_plan_print_json(const cleave_plan_t *plan, cleave_text_t *text, cleave_error_t *error);
CLEAVE_STATUS cleave_plan_print_text(const cleave_plan_t *plan, cleave_text_t *text, cleave_error_t *error);

#endif /* CLEAVE_PARTITION_PLAN_PLAN_H */
