// SPDX-License-Identifier: Apache-2.0
/*
 * Attacks on the sandbox, in the places where a rule file's code runs: while it loads, in each callback, in
 * the graph of a test. A rule's first call is the attack; it ends within its budget, with file and line, and
 * the same rules work in the next call. What an attack is, is one row of a table.
 */
#ifndef CLEAVE_TESTS_ATTACK_CASE_H
#define CLEAVE_TESTS_ATTACK_CASE_H

#include "unit.h"

typedef enum attack_outcome {
  OUT_OF_TIME,
  OUT_OF_MEMORY, /* or of time: callbacks have too little of it to use up all memory */
  FAILS,         /* with the message, or out of time */
  PASSES         /* it does no harm */
} attack_outcome_t;

typedef struct attack {
  const char *name;
  const char *body; /* of a function; begins in line 3 of the file */
  attack_outcome_t outcome;
  const char *message; /* of FAILS: part of it */
} attack_t;

/* In every callback, in the graph of a test, and while loading. */
void attack_everywhere(const attack_t *attacks, size_t count);
/* In one callback each. */
void attack_callbacks(const attack_t *attacks, size_t count);
/* While the file loads. */
void attack_loading(const attack_t *attacks, size_t count);

#define EVERYWHERE(attacks) attack_everywhere((attacks), sizeof(attacks) / sizeof((attacks)[0]))
#define IN_CALLBACKS(attacks) attack_callbacks((attacks), sizeof(attacks) / sizeof((attacks)[0]))
#define WHILE_LOADING(attacks) attack_loading((attacks), sizeof(attacks) / sizeof((attacks)[0]))

#endif /* CLEAVE_TESTS_ATTACK_CASE_H */
