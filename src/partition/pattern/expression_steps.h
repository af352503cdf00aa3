// SPDX-License-Identifier: Apache-2.0
/* Instructions of compiled expressions: private to expression.c and expression_parse.c. */
#ifndef CLEAVE_PARTITION_PATTERN_EXPRESSION_STEPS_H
#define CLEAVE_PARTITION_PATTERN_EXPRESSION_STEPS_H

enum {
  CLEAVE_EXPRESSION_STACK = 32, /* most values at a time */
  CLEAVE_EXPRESSION_STEPS = 256 /* of one expression */
};

/* Postfix: each takes its operands from the stack and leaves one result. */
enum {
  CLEAVE_STEP_NUMBER,
  CLEAVE_STEP_SYMBOL,
  CLEAVE_STEP_NEGATE,
  CLEAVE_STEP_NOT,
  CLEAVE_STEP_AND,
  CLEAVE_STEP_OR,
  CLEAVE_STEP_ADD,
  CLEAVE_STEP_SUBTRACT,
  CLEAVE_STEP_MULTIPLY,
  CLEAVE_STEP_DIVIDE, /* unknown if there is a remainder */
  CLEAVE_STEP_FLOOR,
  CLEAVE_STEP_REST,
  CLEAVE_STEP_EQUAL, /* this and those after it compare */
  CLEAVE_STEP_DIFFERENT,
  CLEAVE_STEP_LESS,
  CLEAVE_STEP_AT_MOST,
  CLEAVE_STEP_MORE,
  CLEAVE_STEP_AT_LEAST
};

#endif /* CLEAVE_PARTITION_PATTERN_EXPRESSION_STEPS_H */
