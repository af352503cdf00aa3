// SPDX-License-Identifier: Apache-2.0
/* The kinds of rules. Graph rules (rewrite, pass) change the graph before the others decide about it; then a
 * stage rule says which nodes run on which machine, and no fusion or region crosses from one to another. */
#ifndef CLEAVE_PARTITION_PATTERN_RULE_KIND_H
#define CLEAVE_PARTITION_PATTERN_RULE_KIND_H

#include <stdbool.h>

typedef enum cleave_rule_kind {
  CLEAVE_RULE_FUSE,
  CLEAVE_RULE_REGION,
  CLEAVE_RULE_REWRITE,
  CLEAVE_RULE_PASS,
  CLEAVE_RULE_STAGE
} cleave_rule_kind_t;

/* Stages of a model, at most. */
enum { CLEAVE_STAGE_LIMIT = 1024 };

/* The word of the rule language: "fuse", "region", "rewrite", "pass", "stage". */
const char *cleave_rule_kind_name(cleave_rule_kind_t kind);

static inline bool cleave_rule_kind_changes_graph(cleave_rule_kind_t kind) {
  return kind == CLEAVE_RULE_REWRITE || kind == CLEAVE_RULE_PASS;
}

/* Does what it makes run on the backend of its ruleset? */
static inline bool cleave_rule_kind_has_backend(cleave_rule_kind_t kind) {
  return kind == CLEAVE_RULE_FUSE || kind == CLEAVE_RULE_REGION;
}

#endif /* CLEAVE_PARTITION_PATTERN_RULE_KIND_H */
