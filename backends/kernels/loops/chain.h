// SPDX-License-Identifier: Apache-2.0
/*
 * Operators on float32 in a row, of which each takes the result of the one before: eight vectors at a time go
 * through all of them in registers. A link is one step; it ends with a jump into the next one.
 */
#ifndef CLEAVE_KERNELS_CHAIN_H
#define CLEAVE_KERNELS_CHAIN_H

#include "kernels/program.h"

enum {
  KERNEL_CHAIN_COST =
      2, /* an operator that costs more is a loop over the block, one with two operands no link */
  KERNEL_BLOCK = 128,     /* most elements that go through a chain at a time, for any instruction set */
  KERNEL_WHOLE_LINKS = 6, /* most links of a chain that is one loop */
  KERNEL_WHOLE_CHAINS = 5,
};

/* The operands of an operator: the result before (ACC), a tile in memory, or one element. */
typedef enum kernel_form {
  KERNEL_FORM_ACC_TILE,
  KERNEL_FORM_TILE_ACC,
  KERNEL_FORM_ACC_SINGLE,
  KERNEL_FORM_SINGLE_ACC,
  KERNEL_FORM_ACC_ACC,
  KERNEL_FORM_COUNT
} kernel_form_t;

/* The function of a link; its real type has vectors, and is known to chain.inc alone. */
typedef void (*kernel_link_function_t)(void);

typedef struct kernel_link {
  kernel_link_function_t run;
  unsigned char *data; /* operand or result in memory; NULL: there is none */
  int64_t row_step;    /* bytes from row to row */
  float alpha;         /* also a single operand that is the same for all rows */
  float beta;
} kernel_link_t;

/* Goes through links over `count` elements. The first one loads, the last one is `end`. */
typedef void (*kernel_chain_run_t)(const kernel_link_t *links, int64_t count);

/* A chain of these links as one loop. NULL behind the last of fewer. */
typedef struct kernel_whole_chain {
  kernel_link_function_t links[KERNEL_WHOLE_LINKS];
  kernel_chain_run_t run;
  bool is_foreseen; /* it takes so long that processors fetch what it reads by themselves */
} kernel_whole_chain_t;

typedef struct kernel_chain_loops {
  kernel_chain_run_t run; /* any chain */
  kernel_link_function_t load;
  kernel_link_function_t load_single;
  kernel_link_function_t store;
  kernel_link_function_t stream; /* past the caches; needs memory aligned to 64 bytes */
  kernel_link_function_t fetch;  /* into the cache, for what reads it later */
  kernel_link_function_t claim;  /* the same for what writes it later */
  kernel_link_function_t end;
  /* NULL: the operator is not for chains. */
  kernel_link_function_t unary[KERNEL_OP_COUNT];
  kernel_link_function_t binary[KERNEL_OP_COUNT][KERNEL_FORM_COUNT];
  kernel_whole_chain_t whole[KERNEL_WHOLE_CHAINS]; /* what rows are often made of */
} kernel_chain_loops_t;

#endif /* CLEAVE_KERNELS_CHAIN_H */
