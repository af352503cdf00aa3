// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the statements of a random graph, one operator over earlier values at a time. Numbers stay near one:
 * weights are scaled, products of two values squashed, quotients left out.
 */
#ifndef CLEAVE_TESTS_SWEEP_MAKER_H
#define CLEAVE_TESTS_SWEEP_MAKER_H

#include "sweep.h"

enum { SWEEP_MAX_VALUES = 64, SWEEP_MAKER_RANK = 5 };

typedef struct sweep_value {
  int rank;
  int dims[SWEEP_MAKER_RANK];
  int uses;
} sweep_value_t;

typedef struct sweep_maker {
  sweep_t *sweep;     /* its random numbers */
  cleave_text_t text; /* the graph so far: "v0 = ...; v1 = ..." */
  sweep_value_t values[SWEEP_MAX_VALUES];
  int count;
  int constants; /* names given so far */
} sweep_maker_t;

/* v<count> is graph input `name` of this shape. */
void sweep_maker_input(sweep_maker_t *maker, int name, const sweep_value_t *shape);

/* Tries one operator over values so far, the later ones more often. False: it did not fit. */
bool sweep_maker_step(sweep_maker_t *maker);

#endif /* CLEAVE_TESTS_SWEEP_MAKER_H */
