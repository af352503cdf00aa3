// SPDX-License-Identifier: Apache-2.0
/* The kinds of rules. Graph rules (rewrite, pass) change the graph before the others decide about it. */
#ifndef CLEAVE_PARTITION_PATTERN_RULE_KIND_H
#define CLEAVE_PARTITION_PATTERN_RULE_KIND_H

#include <stdbool.h>

typedef enum cleave_rule_kind {
  CLEAVE_RULE_FUSE,
  CLEAVE_RULE_REGION,
  CLEAVE_RULE_REWRITE,
  CLEAVE_RULE_PASS
} cleave_rule_kind_t;

/* The word of the rule language: "fuse", "region", "rewrite", "pass". */
const char *cleave_rule_kind_name(cleave_rule_kind_t kind);

static inline bool cleave_rule_kind_changes_graph(cleave_rule_kind_t kind) {
  return kind == CLEAVE_RULE_REWRITE || kind == CLEAVE_RULE_PASS;
}

#endif /* CLEAVE_PARTITION_PATTERN_RULE_KIND_H */
