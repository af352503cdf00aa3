// SPDX-License-Identifier: Apache-2.0
/* Einsum equations, parsed. */
#ifndef CLEAVE_OPS_CONTEXT_EINSUM_H
#define CLEAVE_OPS_CONTEXT_EINSUM_H

#include "ops/context/infer_context.h"

#define CLEAVE_EINSUM_LETTERS 52
#define CLEAVE_EINSUM_TERMS 16

typedef struct cleave_einsum_term {
  char letters[CLEAVE_MAX_RANK];
  int32_t count;
  int32_t ellipsis; /* letters before it; -1: there is none */
} cleave_einsum_term_t;

typedef struct cleave_einsum {
  cleave_einsum_term_t terms[CLEAVE_EINSUM_TERMS];
  uint32_t term_count;
  cleave_einsum_term_t output; /* the default one if the equation has no arrow */
} cleave_einsum_t;

/* Reads an equation of at most `term_limit` operands; false if it is malformed. */
bool cleave_einsum_parse(const char *equation, uint32_t term_limit, cleave_einsum_t *out_einsum);

/* 0..51 for a letter. */
uint32_t cleave_einsum_letter(char letter);

#endif /* CLEAVE_OPS_CONTEXT_EINSUM_H */
