// SPDX-License-Identifier: Apache-2.0
/*
 * How a member of a GROUP is found: paths from a value or node that it shares with a member before it,
 * through the readers of that value, to an operator of the member from which the whole member can be matched.
 * The paths are computed from the pattern alone.
 */
#ifndef CLEAVE_PARTITION_PATTERN_PATTERN_PATH_H
#define CLEAVE_PARTITION_PATTERN_PATTERN_PATH_H

#include "partition/pattern/pattern.h"

enum { CLEAVE_PATTERN_MAX_PATHS = 32, CLEAVE_PATTERN_LONGEST_PATH = 16 };

typedef struct cleave_pattern_hop {
  uint32_t pattern; /* OP that reads the value so far */
  uint32_t output;  /* its output that the next one reads */
} cleave_pattern_hop_t;

/* From `start` on, hops[0] reads its value, and so on; the last hop is the operator to begin with. No hops:
 * `start` is that operator itself. */
typedef struct cleave_pattern_path {
  uint32_t start;   /* OP, OUTPUT, VALUE or CONSTANT that an earlier member has, too, or one with its label */
  uint32_t output;  /* of an OP: the output to start from, or NONE: its main output */
  bool is_backward; /* the last hop is the member's last operator, not its first */
  uint32_t hop_count;
  cleave_pattern_hop_t hops[CLEAVE_PATTERN_LONGEST_PATH];
} cleave_pattern_path_t;

typedef struct cleave_pattern_paths {
  const cleave_pattern_path_t *items; /* of all members, in order of members */
  uint32_t *starts;                   /* per member, and one more; NULL: no group */
} cleave_pattern_paths_t;

/* Finds the paths of all members of a GROUP except the first; the pattern has passed all other checks.
 * CLEAVE_ERROR_RULE, with the number of the member, if a member shares nothing with those before it. */
CLEAVE_STATUS cleave_pattern_find_paths(const cleave_pattern_t *pattern, uint32_t group,
                                        cleave_arena_t *arena, cleave_pattern_paths_t *out_paths,
                                        cleave_error_t *error);

#endif /* CLEAVE_PARTITION_PATTERN_PATTERN_PATH_H */
