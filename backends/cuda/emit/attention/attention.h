// SPDX-License-Identifier: Apache-2.0
/* Attention: what a node says, read once, and the kernels that compute it. */
#ifndef CLEAVE_CUDA_ATTENTION_H
#define CLEAVE_CUDA_ATTENTION_H

#include "cuda/emit/emit.h"

/* Matrices [length, size] of each batch and head. Strides in elements; columns are neighbours. */
typedef struct cuda_matrices {
  cuda_pointer_t at;
  int64_t batch;
  int64_t head;
  int64_t row;
} cuda_matrices_t;

typedef struct cuda_attention {
  const char *label;
  cleave_dtype_t dtype;
  int64_t batches;
  int64_t query_heads;
  int64_t key_heads;
  int64_t queries;
  int64_t keys; /* all: those of the past first */
  int64_t past;
  int64_t size;
  int64_t value_size;
  cuda_matrices_t q;
  cuda_matrices_t k;
  cuda_matrices_t v;
  cuda_matrices_t y;
  cuda_pointer_t mask; /* slot CUDA_NO_SLOT: none */
  cleave_dtype_t mask_dtype;
  int64_t mask_strides[4]; /* batch, head, query, key; 0 where it broadcasts */
  cuda_pointer_t valid;    /* how many keys of each batch count, int64; slot CUDA_NO_SLOT: all */
  bool is_causal;
  double scale;
  double softcap; /* 0: none */
} cuda_attention_t;

/* Steps for y, which is not empty. */
CLEAVE_MUST_USE cleave_status_t cuda_attention_compute(cuda_plan_t *plan, const cuda_attention_t *attention);

/* How the work is shared out, and what the text of a kernel is compiled for. */
typedef struct cuda_attention_tiles {
  bool is_mma;         /* by tensor cores */
  int32_t threads;     /* of a block */
  int32_t rows;        /* of a block; a row is a query of one of the heads that a head of keys serves */
  int32_t keys;        /* of a tile */
  int32_t slice;       /* columns of values that a block computes */
  int32_t slices;      /* of all columns */
  int32_t own_rows;    /* of a thread; without tensor cores */
  int32_t neighbours;  /* columns of a thread that lie side by side; without tensor cores */
  int32_t query_warps; /* with tensor cores */
  int32_t key_warps;
  int64_t split; /* keys of each split */
  int64_t splits;
} cuda_attention_tiles_t;

cuda_attention_tiles_t cuda_attention_find_tiles(const cuda_plan_t *plan, const cuda_attention_t *attention);

#endif /* CLEAVE_CUDA_ATTENTION_H */
