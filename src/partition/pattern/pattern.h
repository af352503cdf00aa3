// SPDX-License-Identifier: Apache-2.0
/*
 * A compiled pattern: data that C matches without calling back. The script layer builds it once per rule
 * file.
 *
 * A pattern is a small graph of pattern nodes. A pattern node that is reached twice (the same Lua table used
 * in two places, or two nodes with one label) must match the same graph node or value both times.
 *
 *  OP        a graph node: one of `ops` (none given: any operator), its attributes, type and inputs
 *  VALUE     any value
 *  CONSTANT  a value with constant data
 *  ABSENT    no value: an optional input that is left out. Only as an input, or an alternative for one
 *  SEQUENCE  children c0 >> c1 >> ...: each reads the main output of the one before on some input that its
 * own `inputs` leave free; nothing else reads it, and it is not a graph output, unless the producer is
 * `shared` MAYBE     child 0, or nothing (tried in this order: longest match first) ONEOF     the first child
 * that lets the whole pattern match REPEATED  child 0 in sequence with itself, `min` to `max` times, longest
 * first OUTPUT    output `output` of the node that child 0, an OP, matches VARIADIC     only as an input with
 * port VARIADIC: `min` to `max` inputs, all that no other input pattern speaks of, nor what stands before the
 * OP in a sequence, match child 0, each on its own (what child 0 binds for one is free again for the next)
 * GROUP     the root, or an alternative of it: all children, side by side. Each but the first has a value or
 * node in common with one before it, by which it is found. What a child ends in may be used outside
 *
 * The main output of a pattern is output `output` of its last OP.
 *
 * Sizes have names (symbols), one set for the whole pattern: the first dimension that a symbol stands for
 * binds it, and it is the same size everywhere. Conditions (`where`) are tested as soon as their symbols are
 * bound; those with a symbol that the complete match leaves unbound do not hold.
 */
#ifndef CLEAVE_PARTITION_PATTERN_PATTERN_H
#define CLEAVE_PARTITION_PATTERN_PATTERN_H

#include "ops/ops.h"
#include "partition/pattern/expression.h"

typedef enum cleave_pattern_kind {
  CLEAVE_PATTERN_OP,
  CLEAVE_PATTERN_VALUE,
  CLEAVE_PATTERN_CONSTANT,
  CLEAVE_PATTERN_ABSENT,
  CLEAVE_PATTERN_SEQUENCE, /* this and those after it have children */
  CLEAVE_PATTERN_MAYBE,
  CLEAVE_PATTERN_ONEOF,
  CLEAVE_PATTERN_REPEATED,
  CLEAVE_PATTERN_OUTPUT,
  CLEAVE_PATTERN_VARIADIC,
  CLEAVE_PATTERN_GROUP
} cleave_pattern_kind_t;

#define CLEAVE_PATTERN_PORT_ANY UINT32_MAX             /* any input that is still free */
#define CLEAVE_PATTERN_PORT_VARIADIC (UINT32_MAX - 1u) /* all that are still free; the last of `inputs` */

typedef struct cleave_pattern_input {
  uint32_t port; /* input index of the operator's schema, or PORT_ANY, or PORT_VARIADIC with a VARIADIC */
  uint32_t pattern;
} cleave_pattern_input_t;

typedef enum cleave_attribute_test_kind {
  CLEAVE_ATTRIBUTE_TEST_EQUAL, /* equal to one of `values` (numbers, lists or strings); a default value
                                  counts */
  CLEAVE_ATTRIBUTE_TEST_RANGE, /* low <= value <= high, for numbers; a default value counts */
  CLEAVE_ATTRIBUTE_TEST_ABSENT /* the node does not carry it, whatever its default */
} cleave_attribute_test_kind_t;

/* A number, a string or a list of numbers, compared with an attribute of any kind. */
typedef struct cleave_pattern_literal {
  const char *text;      /* not NULL: a string */
  const double *numbers; /* if `text` is NULL: `count` numbers; is_list distinguishes [2] from 2 */
  uint32_t count;
  bool is_list;
} cleave_pattern_literal_t;

typedef struct cleave_attribute_test {
  const char *name;
  cleave_attribute_test_kind_t kind;
  const cleave_pattern_literal_t *values;
  uint32_t value_count;
  bool or_absent; /* EQUAL: passes also if the node does not carry it */
  double low;
  double high;
} cleave_attribute_test_t;

/* One dimension of a shape test. */
typedef struct cleave_dim_test {
  int64_t size;                          /* >= 0: this size; -1: see symbol */
  const char *symbol;                    /* bound by the first dimension that it stands for, equal in all
                                            others; NULL: see expression */
  const cleave_expression_t *expression; /* a SIZE of bound symbols; NULL: anything */
} cleave_dim_test_t;

/* A test of the type of an OP's main output, a VALUE or a CONSTANT. */
typedef struct cleave_type_test {
  uint32_t dtypes;               /* bit set by cleave_dtype_t; 0: any */
  int32_t rank;                  /* -1: any */
  const cleave_dim_test_t *dims; /* rank entries, or NULL */
} cleave_type_test_t;

/* A test of the content of a CONSTANT. */
typedef struct cleave_constant_test {
  bool scalar;    /* one element */
  bool all_equal; /* all elements the same */
  bool has_value; /* every element within tolerance of `value` */
  double value;
  double tolerance;     /* absolute; of `value` and `values` */
  const double *values; /* NULL: see value */
  uint32_t value_count;
  bool is_list;   /* `values` are all elements, in order; otherwise each element is near one of `values` */
  bool has_range; /* low <= every element <= high */
  double low;
  double high;
} cleave_constant_test_t;

typedef struct cleave_pattern_node {
  cleave_pattern_kind_t kind;
  const char *label; /* name of the capture; NULL: none */
  int32_t line;      /* of the rule file, */
  const char *file;  /* or of the file that it includes; NULL: the rule's own */
  bool shared;       /* OP: its outputs may be used outside of the match */
  uint32_t output;   /* OP: which output its readers in the pattern mean, usually 0; OUTPUT: which one */
  uint32_t op_count;
  const cleave_op_t *const *ops; /* OP */
  uint32_t input_count;
  const cleave_pattern_input_t *inputs; /* OP; other inputs of the graph node are free */
  uint32_t attribute_count;
  const cleave_attribute_test_t *attributes;
  cleave_type_test_t type;
  const cleave_expression_t *where; /* CONDITION over sizes, or NULL; OP, VALUE and CONSTANT */
  cleave_constant_test_t constant;
  uint32_t child_count;
  const uint32_t *children; /* from SEQUENCE on */
  uint32_t min;             /* REPEATED and VARIADIC */
  uint32_t max;
} cleave_pattern_node_t;

/* All memory belongs to the builder's arena. */
typedef struct cleave_pattern {
  const cleave_pattern_node_t *nodes;
  uint32_t node_count;
  uint32_t root;
  const char *const *labels; /* distinct, in order of appearance */
  uint32_t label_count;
  const cleave_expression_t *where; /* CONDITION over the sizes of all parts, or NULL */
} cleave_pattern_t;

/* Has a part children (rather than being a node or value itself)? */
static inline bool cleave_pattern_has_children(const cleave_pattern_node_t *node) {
  return node->kind >= CLEAVE_PATTERN_SEQUENCE;
}

/* Is a part a value that no node of the match has to make? */
static inline bool cleave_pattern_is_value(const cleave_pattern_node_t *node) {
  return node->kind == CLEAVE_PATTERN_VALUE || node->kind == CLEAVE_PATTERN_CONSTANT;
}

/* Checks the structure (indices, no cycles, bounded depth, REPEATED and MAYBE not empty, a first operator to
 * anchor on) before the pattern is used. CLEAVE_ERROR_RULE with the line. */
CLEAVE_STATUS cleave_pattern_check(const cleave_pattern_t *pattern, const char *file, const char *rule,
                                   cleave_error_t *error);

/* cleave_pattern_check for a rule of any kind: messages name it `subject`, like "rewrite 'gelu'". */
CLEAVE_STATUS cleave_pattern_check_of(const cleave_pattern_t *pattern, const char *file, const char *subject,
                                      cleave_error_t *error);

#endif /* CLEAVE_PARTITION_PATTERN_PATTERN_H */
