// SPDX-License-Identifier: Apache-2.0
/*
 * Scaled dot-product attention, softmax(scale Q K' + mask) V, by blocks of queries of one head: the scores of
 * a block and some keys lie in the first cache, and no more of them is ever in memory. The largest score of
 * each query so far and the sum of its exponentials go along from keys to keys (Milakov and Gimelshein,
 * "Online normalizer calculation for softmax"; Dao et al., "FlashAttention"). Defined by ONNX, Attention of
 * opset 23, in float32, without keys of earlier calls.
 *
 * Special values are those of the operator: a NaN reaches whatever depends on it, also through a probability
 * of 0; queries whose scores are all minus infinity get 0.
 */
#ifndef CLEAVE_KERNELS_ATTENTION_H
#define CLEAVE_KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strides are in elements: batch, head, row, column. Sizes are at least 1. */
typedef struct kernel_attention {
  int64_t batch;
  int64_t heads;
  int64_t key_heads; /* divides `heads`: each serves as many heads in a row */
  int64_t queries;
  int64_t keys;
  int64_t size;       /* of a query and a key */
  int64_t value_size; /* of a value and a result */
  float scale;
  float softcap;  /* scores become softcap tanh(score / softcap); 0: they stay */
  bool is_causal; /* query r sees keys 0 to r */
  int64_t q_strides[4];
  int64_t k_strides[4];
  int64_t v_strides[4];
  int64_t y_strides[4];
  int64_t mask_strides[4]; /* columns are keys; 0 where it is broadcast; fastest if that of rows is 0 or 1 */
} kernel_attention_t;

typedef struct kernel_attention_data {
  const float *q;
  const float *k;
  const float *v;
  const float *mask; /* added to the scores; or NULL */
  float *y;
} kernel_attention_data_t;

typedef struct kernel_attention_loops {
  const char *name;
  /* Block `item` of kernel_attention_items; no block depends on another. */
  void (*block)(const kernel_attention_t *attention, const kernel_attention_data_t *data, int64_t item,
                float *scratch);
} kernel_attention_loops_t;

/* The best for this processor; `limit` 0 allows plain C alone, 1 AVX2 as well, 2 everything. */
const kernel_attention_loops_t *kernel_attention_choose(int limit);

/* How many blocks there are. */
int64_t kernel_attention_items(const kernel_attention_t *attention);

/* How many floats a block needs as scratch memory, in any alignment; 0 if that is no size. */
size_t kernel_attention_scratch(const kernel_attention_t *attention);

/* Queries of a block, and keys whose scores are there at a time. */
enum { KERNEL_ATTENTION_ROWS = 64, KERNEL_ATTENTION_KEYS = 64 };

#endif /* CLEAVE_KERNELS_ATTENTION_H */
