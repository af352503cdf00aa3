// SPDX-License-Identifier: Apache-2.0
/* Random graphs under random rules of every kind, for tests: regions, fusions by patterns and by growing,
 * stages, selectors with and without state, reviews that trim, backends that refuse. */
#ifndef CLEAVE_TESTS_RANDOM_RULES_H
#define CLEAVE_TESTS_RANDOM_RULES_H

#include "partition/grow/partition.h"

enum { RANDOM_RULES_MAX_NODES = 48, RANDOM_RULES_MAX = 4 };

typedef struct random_rules {
  cleave_graph_t *graph; /* the caller's */
  const cleave_ruleset_t *list[2];
  uint32_t count; /* of rulesets */
  cleave_partition_options_t options;
  cleave_ruleset_t rulesets[2];
  /* Per rule: a pattern none of whose operators is shared. */
  bool is_closed[2][RANDOM_RULES_MAX];
} random_rules_t;

/* The same seed, which is not 0, gives the same. Static: one of it at a time in a test process. */
const random_rules_t *random_rules_draw(uint64_t seed);

#endif /* CLEAVE_TESTS_RANDOM_RULES_H */
