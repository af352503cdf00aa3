// SPDX-License-Identifier: Apache-2.0
/*
 * Changes of a graph as data: a log that says, step by step, what rules did to a copy of a graph. Ids are
 * handed out in order and never again, so the same steps on the same graph name the same nodes and values:
 * the log replays without the rules, and tells afterwards what each of them took and made.
 *
 * The log only records; who performs a step and checks it is partition/rewrite/editor.h.
 */
#ifndef CLEAVE_GRAPH_EDITS_H
#define CLEAVE_GRAPH_EDITS_H

#include "graph/graph.h"

typedef enum cleave_edit_kind {
  CLEAVE_EDIT_ADD_NODE,      /* op, name, inputs, outputs, attributes; makes node `node` */
  CLEAVE_EDIT_ADD_CONSTANT,  /* name, tensor; makes value `value` */
  CLEAVE_EDIT_ADD_INPUT,     /* name, dtype, shape; makes value `value` */
  CLEAVE_EDIT_REPLACE_USES,  /* readers of `other` read `value`; those that `value` was made of since node
                                `index` was the next one keep reading `other` */
  CLEAVE_EDIT_SET_INPUT,     /* input `index` of `node` is `value` (NONE: left out) */
  CLEAVE_EDIT_SET_ATTRIBUTE, /* attribute of `node` */
  CLEAVE_EDIT_SET_OUTPUT,    /* graph output `index` is `value` */
  CLEAVE_EDIT_REMOVE_NODE,   /* `node`, whose outputs nothing reads */
  CLEAVE_EDIT_NAME_NODE,     /* `node` is called `name` */
  CLEAVE_EDIT_NAME_VALUE,    /* `value` is called `name` */
  CLEAVE_EDIT_READ_CONSTANT, /* changes nothing: the rule acted on the content of constant `value` */
  CLEAVE_EDIT_READ_SIZES, /* changes nothing: the rule acted on the sizes of `value`, in a graph that is_sized
                           */
  CLEAVE_EDIT_FOLD        /* types are inferred anew, what is constant is computed, what is dead goes */
} cleave_edit_kind_t;

enum { CLEAVE_EDIT_KIND_COUNT = CLEAVE_EDIT_FOLD + 1 };

/* One dimension of a new input. */
typedef struct cleave_edit_dim {
  int64_t size;       /* >= 0, or -1: see symbol */
  const char *symbol; /* NULL: unknown */
} cleave_edit_dim_t;

/* One step. Fields that a kind does not speak of are 0, or NONE. All memory belongs to the log. */
typedef struct cleave_edit {
  cleave_edit_kind_t kind;
  cleave_node_t node;
  cleave_value_t value;
  cleave_value_t other;
  uint32_t index;
  int32_t line; /* of the script that asked for it; 0: not known */
  const char *name;
  const char *op; /* ADD_NODE */
  const char *domain;
  uint32_t input_count; /* ADD_NODE */
  const cleave_value_t *inputs;
  uint32_t output_count;    /* ADD_NODE */
  uint32_t attribute_count; /* ADD_NODE, SET_ATTRIBUTE (one) */
  const cleave_attribute_t *attributes;
  cleave_tensor_t *tensor; /* ADD_CONSTANT; retained by the log */
  cleave_dtype_t dtype;    /* ADD_INPUT */
  int32_t rank;            /* ADD_INPUT; -1: unknown */
  const cleave_edit_dim_t *dims;
} cleave_edit_t;

/* One application of a rule: the steps first_edit .. first_edit + edit_count - 1. */
typedef struct cleave_edit_group {
  uint32_t rule;     /* in cleave_edits_t.rules; NONE: folding after a rule */
  const char *place; /* name of the node that it was about, as it was then; "" for passes */
  uint32_t first_edit;
  uint32_t edit_count;
  uint32_t nodes_taken; /* removed */
  uint32_t nodes_made;
} cleave_edit_group_t;

/* A match that a rule left as it is. */
typedef struct cleave_edit_refusal {
  uint32_t rule;
  const char *place;
  const char *reason;
} cleave_edit_refusal_t;

typedef struct cleave_edit_rule {
  const char *kind; /* "rewrite", "pass" */
  const char *name;
  const char *file;
  int32_t line;
  uint32_t number;  /* among all rules: in plan->rules */
  uint32_t tries;   /* anchors looked at, runs of a pass */
  uint32_t matches; /* applications */
  uint32_t refused;
  /* statistics of the run, for people: no part of the log as JSON */
  uint64_t structural_hits; /* complete matches, before `where` was asked */
  uint64_t lua_calls;
  uint64_t nanoseconds; /* in the rule, folding after it included */
  uint32_t mistakes;    /* of those refused: the rule failed there */
  const char *mistake;  /* the first, with its place; NULL: none */
} cleave_edit_rule_t;

/* The log. Read it freely. */
typedef struct cleave_edits {
  cleave_arena_t arena;  /* holds all texts, lists and attributes */
  uint64_t source_hash;  /* cleave_graph_hash of the graph that was changed */
  uint32_t source_nodes; /* its bounds of ids */
  uint32_t source_values;
  uint64_t result_hash; /* of what came out */
  CLEAVE_ARRAY(cleave_edit_rule_t) rules;
  CLEAVE_ARRAY(cleave_edit_t) items;
  CLEAVE_ARRAY(cleave_edit_group_t) groups;
  CLEAVE_ARRAY(cleave_edit_refusal_t) refusals; /* the first CLEAVE_EDITS_MAX_REFUSALS */
  CLEAVE_ARRAY(cleave_tensor_t *) tensors;      /* retained */
} cleave_edits_t;

#define CLEAVE_EDITS_MAX_REFUSALS 10000

CLEAVE_STATUS cleave_edits_create(cleave_edits_t **out_edits, cleave_error_t *error);
void cleave_edits_destroy(cleave_edits_t *edits);

/* A log that shares nothing with this one but the tensors. */
CLEAVE_STATUS cleave_edits_copy(const cleave_edits_t *edits, cleave_edits_t **out_edits,
                                cleave_error_t *error);

/* Appends a copy of a step, with copies of all that it points to; tensors are retained. */
CLEAVE_STATUS cleave_edits_add(cleave_edits_t *edits, const cleave_edit_t *edit, cleave_error_t *error);

/* Appends a rule; texts are copied. *out_rule: its number. */
CLEAVE_STATUS cleave_edits_add_rule(cleave_edits_t *edits, const cleave_edit_rule_t *rule, uint32_t *out_rule,
                                    cleave_error_t *error);

/* Begins a group at the steps to come; the place is copied. The last group that was begun is ended by
 * cleave_edits_end, which counts its nodes, or drops it if nothing was added. */
CLEAVE_STATUS cleave_edits_begin(cleave_edits_t *edits, uint32_t rule, const char *place,
                                 cleave_error_t *error);
void cleave_edits_end(cleave_edits_t *edits);

/* Forgets the steps after the first `count`. */
void cleave_edits_truncate(cleave_edits_t *edits, size_t count);

CLEAVE_STATUS cleave_edits_refuse(cleave_edits_t *edits, uint32_t rule, const char *place, const char *reason,
                                  cleave_error_t *error);

/* Counts a mistake of a rule, and keeps the first. */
CLEAVE_STATUS cleave_edits_note_mistake(cleave_edits_t *edits, uint32_t rule, const char *place,
                                        const char *reason, cleave_error_t *error);

/* Refusals of one rule for one reason, each place once. */
typedef struct cleave_edit_refusals {
  uint32_t rule;
  uint32_t count;
  const char *place; /* of the first */
  const char *reason;
} cleave_edit_refusals_t;

/* Puts the refusals together, in order of the first of each group, in at most `size` groups. *out_more:
 * refusals that are in none of them. */
CLEAVE_STATUS cleave_edits_group_refusals(const cleave_edits_t *edits, cleave_edit_refusals_t *groups,
                                          uint32_t size, uint32_t *out_count, uint32_t *out_more,
                                          cleave_error_t *error);

/* Nodes that applications of a rule took, by the rule's number among all rules. */
uint32_t cleave_edits_nodes_taken(const cleave_edits_t *edits, uint32_t number);

/* "add_node", "replace_uses", ... */
const char *cleave_edit_kind_name(cleave_edit_kind_t kind);

#endif /* CLEAVE_GRAPH_EDITS_H */
