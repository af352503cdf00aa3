// SPDX-License-Identifier: Apache-2.0
/*
 * The conformance sweep: small graphs on every backend against the same graphs unpartitioned on `cpu`.
 *
 * A case is a graph as text (sweep_graph.h). What the backend refuses is counted under its reason and runs
 * on `cpu`; what it accepted must compile, run, and give the numbers of `cpu`, twice with different inputs,
 * the second time from unaligned memory; and once more from a graph that does not know the sizes of its
 * inputs before the session is made.
 */
#ifndef CLEAVE_TESTS_SWEEP_H
#define CLEAVE_TESTS_SWEEP_H

#include "partition/grow/partition.h"
#include "script/rules/rules.h"
#include "sweep_graph.h"

typedef struct sweep sweep_t;

/* One file each: void sweep_<name>(sweep_t *sweep). */
#define SWEEP_SUBJECTS(X) \
  X(pointwise)            \
  X(types)                \
  X(window)               \
  X(product)              \
  X(reduction)            \
  X(movement)             \
  X(recurrent)            \
  X(epilogue)             \
  X(spelling)             \
  X(fusion)               \
  X(indices)              \
  X(selection)            \
  X(images)               \
  X(rest)                 \
  X(attention)            \
  X(random)

#define SWEEP_DECLARE(name) void sweep_##name(sweep_t *sweep);
SWEEP_SUBJECTS(SWEEP_DECLARE)
#undef SWEEP_DECLARE

/* Every node that the backend supports goes into a region. */
void sweep_nodes(sweep_t *sweep, const char *format, ...) CLEAVE_PRINTF(2, 3);
/* rules/<backend>.lua; backends without rules are left out. */
void sweep_rules(sweep_t *sweep, const char *format, ...) CLEAVE_PRINTF(2, 3);
/* The same, and the largest fusion of the plan has exactly `nodes` nodes (0: there is none). */
void sweep_fused(sweep_t *sweep, uint32_t nodes, const char *format, ...) CLEAVE_PRINTF(3, 4);
/* The same, if these are the rules of `backend`; those of others may fuse more or less. */
void sweep_fused_by(sweep_t *sweep, const char *backend, uint32_t nodes, const char *format, ...)
    CLEAVE_PRINTF(4, 5);

/* Threads of the sessions from now on; 0, as a subject starts: one, and two for every eighth case. */
void sweep_set_threads(sweep_t *sweep, int32_t threads);
/* Factor on the tolerances from now on; a subject starts with 1. For what amplifies rounding. */
void sweep_set_slack(sweep_t *sweep, double slack);

/* Seeded numbers below `bound`; a subject starts at the same state in every run. */
uint32_t sweep_below(sweep_t *sweep, uint32_t bound);

#endif /* CLEAVE_TESTS_SWEEP_H */
