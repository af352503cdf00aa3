// SPDX-License-Identifier: Apache-2.0
/*
 * The content of a plan file, independent of a graph: a node is a position in topological order with operator
 * and name, a value is the position of its producer and an output. Plans are written from documents, read
 * into them, rebuilt from them for a model, and compared as documents, so that two files can be compared with
 * no model at hand. A document read from outside is well-formed: indices into its own lists are in range,
 * kinds are known, every position stands in exactly one step. cleave_plan_rebuild finds out if it fits a
 * graph.
 */
#ifndef CLEAVE_PARTITION_PLAN_PLAN_DOCUMENT_H
#define CLEAVE_PARTITION_PLAN_PLAN_DOCUMENT_H

#include "partition/plan/plan.h"

typedef struct cleave_document_node {
  uint32_t position; /* in the topological order of the graph */
  const char *op;
  const char *name;  /* "" if it has none */
  const char *label; /* in a fusion: the pattern's name for it, or "" */
} cleave_document_node_t;

typedef struct cleave_document_value {
  uint32_t position; /* of the producer; CLEAVE_INDEX_NONE: an input of the graph */
  uint32_t index;    /* output of the producer, or number among the inputs */
  const char *name;
} cleave_document_value_t;

typedef struct cleave_document_fusion {
  uint32_t rule;
  uint32_t node_count; /* at least 1 */
  cleave_document_node_t *nodes;
  uint32_t attribute_count;
  const cleave_attribute_t *attributes;
} cleave_document_fusion_t;

typedef struct cleave_document_region {
  const char *name;
  const char *backend;
  uint32_t rule;
  uint32_t input_count;
  cleave_document_value_t *inputs;
  uint32_t output_count;
  cleave_document_value_t *outputs;
  uint32_t fusion_count;
  cleave_document_fusion_t *fusions;
  uint32_t node_count; /* at least 1 */
  cleave_document_node_t *nodes;
  uint32_t attribute_count;
  const cleave_attribute_t *attributes;
} cleave_document_region_t;

typedef struct cleave_document_step {
  uint32_t region; /* or CLEAVE_INDEX_NONE */
  cleave_document_node_t node;
  uint32_t stage; /* 0 if the graph is not cut into stages */
} cleave_document_step_t;

typedef struct cleave_document_note {
  cleave_plan_note_kind_t kind;
  uint32_t rule;
  cleave_document_node_t node;
  const char *reason;
} cleave_document_note_t;

/* An input of the graph: its name, and its type as text: "float32[1, 3, 224, 224]". */
typedef struct cleave_document_input {
  const char *name;
  const char *type;
} cleave_document_input_t;

typedef struct cleave_plan_document {
  cleave_arena_t arena; /* holds all below */
  const char *place;    /* file or name, for messages */
  const char *version;  /* of cleave, that made the plan */
  const char *graph_name;
  uint64_t graph_hash;
  uint32_t node_count; /* of the graph */
  uint32_t graph_input_count;
  cleave_document_input_t *graph_inputs;
  uint32_t setting_count;
  const cleave_setting_t *settings;
  uint32_t rule_count;
  cleave_plan_rule_t *rules;
  cleave_edits_t *edits; /* how rules made the graph out of the model's; NULL: it is the model's */
  bool owns_edits;
  uint32_t region_count;
  cleave_document_region_t *regions; /* in the order of the steps */
  uint32_t step_count;
  cleave_document_step_t *steps;
  uint32_t stage_count; /* 0: the graph is not cut */
  uint32_t note_count;
  cleave_document_note_t *notes;
} cleave_plan_document_t;

void cleave_plan_document_destroy(cleave_plan_document_t *document);

/* Fills in nodes[position] for each position that the document speaks of: there are document->node_count. */
void cleave_plan_document_list(const cleave_plan_document_t *document, const cleave_document_node_t **nodes);

/* The document of a plan. Strings and attributes are borrowed: the plan and its graph must outlive it. */
CLEAVE_STATUS cleave_plan_document_create(const cleave_plan_t *plan, cleave_plan_document_t **out_document,
                                          cleave_error_t *error);

/* Types of a graph's inputs as documents have them, in `arena`. */
CLEAVE_STATUS cleave_document_inputs(const cleave_graph_t *graph, cleave_arena_t *arena,
                                     cleave_document_input_t **out_inputs, cleave_error_t *error);

/* The shape in such a type; false if a size or the rank is open. `out_dims` has room for CLEAVE_MAX_RANK. */
bool cleave_document_input_shape(const cleave_document_input_t *input, int32_t *out_rank, int64_t *out_dims);

/* plan_json.c: the document as JSON. Format "cleave-plan", version 1. */
CLEAVE_STATUS cleave_plan_document_print(const cleave_plan_document_t *document, cleave_text_t *text,
                                         cleave_error_t *error);

/* A stage of a plan as a graph of its own: the nodes of the stage alone, added in the topological order of
 * the plan's graph. */
typedef struct cleave_stage_graph {
  const cleave_plan_t *plan;
  uint32_t number;
  const cleave_graph_t *graph;
  const cleave_value_t *inputs; /* of that graph, as values of the plan's graph */
  uint32_t input_count;
} cleave_stage_graph_t;

/* plan_stage.c: what the plan says about one stage, for the graph of the stage. Strings and attributes are
 * borrowed as by cleave_plan_document_create, also by the plan that it is rebuilt into. */
CLEAVE_STATUS cleave_plan_document_take_stage(const cleave_stage_graph_t *stage,
                                              cleave_plan_document_t **out_document, cleave_error_t *error);

/* Dissolves the regions that have a reason (`reasons` is per region; NULL: it stays): their nodes become
 * steps of their own in its place, and a note of kind `backend` at the first node of each says why. */
CLEAVE_STATUS cleave_plan_document_dissolve(cleave_plan_document_t *document, const char *const *reasons,
                                            cleave_error_t *error);

#endif /* CLEAVE_PARTITION_PLAN_PLAN_DOCUMENT_H */
