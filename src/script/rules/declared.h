// SPDX-License-Identifier: Apache-2.0
/*
 * The declarations of a rule file: its rules (also those that are switched off), its options, and its
 * tests. Everything is copied into the arena of the loaded file; a test's graph is built by its function when
 * asked for.
 */
#ifndef CLEAVE_SCRIPT_RULES_DECLARED_H
#define CLEAVE_SCRIPT_RULES_DECLARED_H

#include "base/arena.h"
#include "graph/graph.h"
#include "script/rules/rules.h"

typedef struct cleave_declared_rule {
  const char *kind; /* word of the DSL: "fuse" */
  const char *name;
  const char *doc;  /* "" if there is none */
  const char *file; /* that contains it: the rule file, or one that it includes */
  int32_t line;
  int32_t priority;
  bool enabled;
  const char *ruleset; /* that it belongs to */
  const char *backend;
} cleave_declared_rule_t;

typedef struct cleave_declared_option {
  const char *name; /* NULL: declared, but not in `options` of the ruleset, so that nothing can set it */
  const char *type; /* "boolean", "integer", "number", "string", "enum", "list" */
  const char *value;
  const char *fallback; /* the default */
  const char *range;    /* for people; "" if any value is allowed */
  const char *doc;
  int32_t line;
} cleave_declared_option_t;

typedef enum cleave_expectation_kind {
  CLEAVE_EXPECT_RULE,    /* matches of `rule` */
  CLEAVE_EXPECT_LABEL,   /* nodes that took part in `rule` under the label `text` */
  CLEAVE_EXPECT_OP,      /* nodes of operator `text` in the graph that the rules made */
  CLEAVE_EXPECT_REGIONS, /* regions in all */
  CLEAVE_EXPECT_FUSIONS,
  CLEAVE_EXPECT_LEFT,   /* nodes in no region */
  CLEAVE_EXPECT_REFUSED /* refusals of `rule` with `text` in their reason */
} cleave_expectation_kind_t;

typedef struct cleave_expectation {
  cleave_expectation_kind_t kind;
  const char *rule; /* or NULL */
  const char *text; /* or NULL */
  int32_t low;      /* allowed counts */
  int32_t high;     /* INT32_MAX: no bound */
} cleave_expectation_t;

/* An input of a test's graph that the test declared. */
typedef struct cleave_test_input {
  const char *name;
  bool has_range;
  double low; /* drawn uniformly from [low, high); without: as cleave_rule_check says */
  double high;
  bool is_given; /* not differentiated by */
} cleave_test_input_t;

typedef struct cleave_rule_test {
  const char *name; /* a sentence */
  const char *doc;
  const char *file;
  int32_t line;
  uint32_t setting_count;
  const cleave_setting_t *settings; /* `options` of the test, as strings */
  uint32_t expectation_count;
  const cleave_expectation_t *expectations;
  uint32_t input_count;
  const cleave_test_input_t *inputs; /* the first inputs of the graph, in order */
  bool calibrate;                    /* values have the ranges of a run on the inputs */
  bool equal;                        /* run it, and compare with `cpu` */
  double rtol; /* both negative: bounds of the rounding errors (tools/verify/rounding.h); one: by dtype */
  double atol;
  int32_t gradient; /* the highest order of gradients that are compared with finite differences; 0: none */
  int entry;        /* reference of its table in the registry */
} cleave_rule_test_t;

typedef struct cleave_declared {
  uint32_t rule_count;
  const cleave_declared_rule_t *rules; /* in the order of the file */
  uint32_t option_count;
  const cleave_declared_option_t *options;
  uint32_t test_count;
  const cleave_rule_test_t *tests;
  int file; /* reference of the compiled file's table in the registry, for lints */
} cleave_declared_t;

/* The declarations of a loaded rule file; they live as long as it does. */
const cleave_declared_t *cleave_rules_declared(const cleave_rules_t *rules);

/* Builds the graph of one of its tests, with types inferred; the caller owns it. The function runs with the
 * budget of loading a file; errors carry its file:line and the test's name. */
CLEAVE_STATUS cleave_rules_build_test(cleave_rules_t *rules, const cleave_rule_test_t *test,
                                      cleave_graph_t **out_graph, cleave_error_t *error);

/* Something in a rule file that an author would like to know. */
typedef enum cleave_lint_level {
  CLEAVE_LINT_NOTE,
  CLEAVE_LINT_WARNING,
  CLEAVE_LINT_ERROR
} cleave_lint_level_t;

typedef struct cleave_lint {
  cleave_lint_level_t level;
  const char *file;
  int32_t line;
  const char *code;    /* short and stable: "unused-option" */
  const char *message; /* one line, with the rule's name */
} cleave_lint_t;

/* Finds likely mistakes in the source of the file and its rules (lua/cleave/lint.lua). The lints are in
 * `arena`. */
CLEAVE_STATUS cleave_rules_lint(cleave_rules_t *rules, cleave_arena_t *arena, const cleave_lint_t **out_lints,
                                uint32_t *out_count, cleave_error_t *error);

#endif /* CLEAVE_SCRIPT_RULES_DECLARED_H */
