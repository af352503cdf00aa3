// SPDX-License-Identifier: Apache-2.0
// How attention is shared out over blocks. Many queries: 64 rows a block, so that keys are read seldom. Few
// of them: smaller blocks, whose warps share the keys, and, if there are many keys, several blocks for the
// same rows. Shared memory is below 48 KB, and below 36 KB where that can be, so that several blocks fit.
#include "attention.h"

enum {
  MAX_SLICE = 256,
  GOOD_BYTES = 36 * 1024,
  MAX_BYTES = 47 * 1024,
  WARPS = 4,
  FEW_BLOCKS = 128, /* about one for each multiprocessor */
  SPLIT_KEYS = 256, /* that are worth a block */
  MAX_SPLITS = 64
};

static int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t parts_of(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

static int64_t whole(int64_t count, int64_t unit) {
  return parts_of(count, unit) * unit;
}

static int64_t row_count(const cuda_attention_t *attention) {
  return attention->query_heads / attention->key_heads * attention->queries;
}

static int64_t block_count(const cuda_attention_t *attention, int64_t rows, int64_t slices) {
  return attention->batches * attention->key_heads * parts_of(row_count(attention), rows) * slices;
}

/* Values of one block, in whole units. */
static void slice_values(const cuda_attention_t *attention, int64_t unit, cuda_attention_tiles_t *tiles) {
  int64_t slices = parts_of(attention->value_size, MAX_SLICE);
  tiles->slices = (int32_t)slices;
  tiles->slice = (int32_t)whole(parts_of(attention->value_size, slices), unit);
}

/* ---- by tensor cores ---- */

/* Bytes of a key and its values in shared memory. */
static int64_t line_bytes(const cuda_attention_t *attention, const cuda_attention_tiles_t *tiles) {
  int64_t bytes = (int64_t)cleave_dtype_size(attention->dtype);
  return (whole(attention->size, 32 / bytes) + tiles->slice) * bytes + 32;
}

static bool find_mma(const cuda_attention_t *attention, cuda_attention_tiles_t *tiles) {
  int64_t rows = row_count(attention);
  int64_t keys = 64;
  int64_t warps = WARPS;
  slice_values(attention, attention->dtype == CLEAVE_DTYPE_F32 ? 8 : 16, tiles);
  int64_t line = line_bytes(attention, tiles);
  while (keys > 16 && (keys / 2 >= attention->keys || keys * line > GOOD_BYTES)) {
    keys /= 2;
  }
  if (keys * line > MAX_BYTES) {
    return false;
  }
  while (warps > 1 && (rows <= 8 * warps || block_count(attention, 16 * warps, tiles->slices) < FEW_BLOCKS)) {
    warps /= 2;
  }
  tiles->is_mma = true;
  tiles->keys = (int32_t)keys;
  tiles->query_warps = (int32_t)warps;
  tiles->key_warps = (int32_t)min64(WARPS / warps, keys / 16);
  tiles->rows = 16 * tiles->query_warps;
  tiles->threads = 32 * tiles->query_warps * tiles->key_warps;
  return true;
}

/* ---- by products in registers ---- */

/* The most neighbours that make the values no more than an eighth wider. */
static void slice_for_threads(const cuda_attention_t *attention, int32_t most,
                              cuda_attention_tiles_t *tiles) {
  tiles->neighbours = most;
  for (;;) {
    slice_values(attention, (int64_t)16 * tiles->neighbours, tiles);
    int64_t computed = (int64_t)tiles->slice * tiles->slices;
    if (tiles->neighbours == 1 || computed * 8 <= attention->value_size * 9) {
      return;
    }
    tiles->neighbours /= 2;
  }
}

static void find_plain(const cuda_attention_t *attention, cuda_attention_tiles_t *tiles) {
  bool is_double = attention->dtype == CLEAVE_DTYPE_F64;
  slice_for_threads(attention, is_double ? 2 : 4, tiles);
  tiles->is_mma = false;
  tiles->keys = is_double ? 32 : 64;
  tiles->rows = is_double ? 32 : 64;
  while (tiles->rows > 16 && (row_count(attention) <= tiles->rows / 2 ||
                              block_count(attention, tiles->rows, tiles->slices) < FEW_BLOCKS)) {
    tiles->rows /= 2;
  }
  tiles->own_rows = tiles->rows == 16 || is_double ? 2 : tiles->rows == 64 && tiles->slice <= 128 ? 8 : 4;
  tiles->threads = tiles->rows / tiles->own_rows * 16;
}

/* ---- both ---- */

static bool has_mma(const cuda_plan_t *plan, const cuda_attention_t *attention) {
  bool is_half = attention->dtype == CLEAVE_DTYPE_F16 || attention->dtype == CLEAVE_DTYPE_BF16;
  return plan->options.has_mma && attention->size > 0 &&
         (is_half || (attention->dtype == CLEAVE_DTYPE_F32 && plan->options.tf32));
}

static void split_keys(const cuda_attention_t *attention, cuda_attention_tiles_t *tiles) {
  int64_t blocks = block_count(attention, tiles->rows, tiles->slices);
  int64_t splits = min64(min64(FEW_BLOCKS / blocks, attention->keys / SPLIT_KEYS), MAX_SPLITS);
  splits = splits < 1 ? 1 : splits;
  tiles->split = whole(parts_of(attention->keys, splits), tiles->keys);
  tiles->splits = parts_of(attention->keys, tiles->split);
}

cuda_attention_tiles_t cuda_attention_find_tiles(const cuda_plan_t *plan, const cuda_attention_t *attention) {
  cuda_attention_tiles_t tiles = {.own_rows = 1, .neighbours = 1, .query_warps = 1, .key_warps = 1};
  if (!has_mma(plan, attention) || !find_mma(attention, &tiles)) {
    find_plain(attention, &tiles);
  }
  split_keys(attention, &tiles);
  return tiles;
}
