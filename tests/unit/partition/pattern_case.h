// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns by hand, for tests: one pattern at a time per test process, its parts in the order of the calls.
 * Line numbers of parts count from 1. Mind that C does not say which argument of a call comes first.
 */
#ifndef CLEAVE_TESTS_PATTERN_CASE_H
#define CLEAVE_TESTS_PATTERN_CASE_H

#include "partition/pattern/pattern.h"

enum { PATTERN_CASE_MAX_PARTS = 64, PATTERN_CASE_MAX_CHILDREN = 8 };

/* The parts, to be changed where the functions below do not say enough. */
extern cleave_pattern_node_t parts[PATTERN_CASE_MAX_PARTS];

#define ANY CLEAVE_PATTERN_PORT_ANY

/* An operator of "Relu,Clip"; labels may be NULL. All return the index of the part. */
uint32_t op(const char *names, const char *label);
uint32_t value(const char *label);
uint32_t constant(const char *label);
/* Adds an input to an operator; returns `part`. */
uint32_t input(uint32_t part, uint32_t port, uint32_t pattern);
uint32_t group(cleave_pattern_kind_t kind, uint32_t count, const uint32_t *children);
uint32_t maybe(uint32_t child);
uint32_t repeated(uint32_t child, uint32_t min, uint32_t max);

#define SEQUENCE(...)                                                                  \
  group(CLEAVE_PATTERN_SEQUENCE, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), \
        (uint32_t[]){__VA_ARGS__})
#define ONEOF(...) \
  group(CLEAVE_PATTERN_ONEOF, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

cleave_pattern_t pattern_of(uint32_t root);

/* Conv >> maybe(BatchNormalization) >> maybe(Add) >> maybe(Relu, Clip or Sigmoid); labels conv, bn, sum with
 * value residual, act. */
uint32_t conv_chain(void);

#endif /* CLEAVE_TESTS_PATTERN_CASE_H */
