// SPDX-License-Identifier: Apache-2.0
// The operator Attention: numbers of queries and keys around those of tiles, sizes of heads around those of
// steps of tensor cores, every form of operands and masks, in every dtype.
#include <stdio.h>

#include "sweep.h"
#include "sweep_case.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const dtypes[] = {"f32", "f16", "bf16", "f64"};

/* ---- sizes ---- */

typedef struct form {
  int batches, query_heads, key_heads, queries, keys, size, value_size;
} form_t;

static const form_t forms[] = {
    {1, 1, 1, 1, 1, 1, 1},      {2, 3, 3, 7, 5, 8, 6},       {1, 2, 2, 17, 33, 16, 16},
    {1, 2, 1, 64, 64, 32, 32},  {1, 1, 1, 65, 129, 64, 64},  {1, 4, 2, 9, 70, 40, 24},
    {1, 2, 2, 3, 67, 80, 72},   {1, 1, 1, 16, 48, 128, 128}, {1, 1, 1, 20, 37, 136, 200},
    {1, 1, 1, 5, 19, 256, 256}, {1, 1, 1, 4, 35, 20, 300},   {1, 6, 2, 1, 90, 64, 64},
    {3, 2, 2, 33, 31, 24, 40},  {1, 1, 1, 34, 16, 300, 33},  {65, 2, 2, 49, 49, 32, 32},
    {1, 2, 2, 2, 1100, 16, 9},
};

/* "q:f16[1,2,3,4], k..., v...", heads apart, or side by side with `out_attributes` that say how many. */
static void write_operands(const form_t *form, const char *dtype, bool is_flat, char *out_text, size_t size,
                           char out_attributes[64]) {
  const form_t *f = form;
  if (is_flat) {
    (void)snprintf(out_attributes, 64, "q_num_heads=%d, kv_num_heads=%d, ", f->query_heads, f->key_heads);
    (void)snprintf(out_text, size, "q:%s[%d,%d,%d], k:%s[%d,%d,%d], v:%s[%d,%d,%d]", dtype, f->batches,
                   f->queries, f->query_heads * f->size, dtype, f->batches, f->keys, f->key_heads * f->size,
                   dtype, f->batches, f->keys, f->key_heads * f->value_size);
    return;
  }
  out_attributes[0] = '\0';
  (void)snprintf(out_text, size, "q:%s[%d,%d,%d,%d], k:%s[%d,%d,%d,%d], v:%s[%d,%d,%d,%d]", dtype, f->batches,
                 f->query_heads, f->queries, f->size, dtype, f->batches, f->key_heads, f->keys, f->size,
                 dtype, f->batches, f->key_heads, f->keys, f->value_size);
}

/* A mask of kind 0 none, 1 added, 2 added per key, 3 bools, 4 bools per batch and key, 5 no keys for some
 * queries. */
static void write_mask(const form_t *f, const char *dtype, int kind, char *out_text, size_t size) {
  out_text[0] = '\0';
  if (kind == 1) {
    (void)snprintf(out_text, size, ", m:%s[%d,%d,%d,%d]", dtype, f->batches, f->query_heads, f->queries,
                   f->keys);
  } else if (kind == 2) {
    (void)snprintf(out_text, size, ", m:%s[%d]", dtype, f->keys);
  } else if (kind == 3) {
    (void)snprintf(out_text, size, ", Greater(m[%d,1,%d], #-1)", f->query_heads, f->keys);
  } else if (kind == 4) {
    (void)snprintf(out_text, size, ", Greater(m[%d,1,1,%d], #0)", f->batches, f->keys);
  } else if (kind == 5) {
    (void)snprintf(out_text, size, ", Greater(m[%d,1], #0)", f->queries);
  }
}

static void one(sweep_t *sweep, size_t f, size_t d, int mask, const char *attributes) {
  char operands[256];
  char heads[64];
  char text[96];
  write_operands(&forms[f], dtypes[d], (f + (size_t)mask) % 2 == 0, operands, sizeof operands, heads);
  write_mask(&forms[f], dtypes[d], mask, text, sizeof text);
  sweep_nodes(sweep, "Attention{%s%s}(%s%s)", heads, attributes, operands, text);
}

/* ---- what else there is ---- */

static void keys_of_earlier_calls(sweep_t *sweep, const char *dtype) {
  sweep_nodes(sweep,
              "y, k2, v2 = Attention{is_causal=1}(q:%s[1,4,3,16], k:%s[1,2,3,16], v:%s[1,2,3,8], _, "
              "p:%s[1,2,9,16], r:%s[1,2,9,8]) -> y, k2, v2",
              dtype, dtype, dtype, dtype, dtype);
  sweep_nodes(
      sweep,
      "y, k2, v2 = Attention{q_num_heads=2, kv_num_heads=2}(q:%s[2,5,32], k:%s[2,5,32], v:%s[2,5,16], "
      "m:%s[5,26], p:%s[2,2,21,16], r:%s[2,2,21,8]) -> y",
      dtype, dtype, dtype, dtype, dtype, dtype);
  sweep_nodes(sweep,
              "y, k2, v2 = Attention{q_num_heads=2, kv_num_heads=1}(q:%s[2,5,32], k:%s[2,6,16], v:%s[2,6,8]) "
              "-> y, k2, v2",
              dtype, dtype, dtype);
  sweep_nodes(sweep, "Attention{q_num_heads=4, kv_num_heads=2}(q:%s[2,3,32], k:%s[2,0,16], v:%s[2,0,16])",
              dtype, dtype, dtype);
  sweep_nodes(sweep,
              "y, k2, v2 = Attention(q:%s[1,1,2,4], k:%s[1,1,2,4], v:%s[1,1,2,4], _, p:%s[1,1,0,4], "
              "r:%s[1,1,0,4]) -> y, k2, v2",
              dtype, dtype, dtype, dtype, dtype);
}

static void padded_keys(sweep_t *sweep, const char *dtype) {
  sweep_nodes(sweep, "Attention(q:%s[3,2,5,16], k:%s[3,2,70,16], v:%s[3,2,70,16], _, _, _, #[70,0,33])",
              dtype, dtype, dtype);
  sweep_nodes(sweep,
              "Attention{q_num_heads=4, kv_num_heads=2, is_causal=1}(q:%s[2,40,32], k:%s[2,40,16], "
              "v:%s[2,40,16], m:%s[40], _, _, #[7,40])",
              dtype, dtype, dtype, dtype);
  sweep_nodes(sweep, "Attention(q:%s[2,1,1,8], k:%s[2,1,1030,8], v:%s[2,1,1030,8], _, _, _, #[1030,300])",
              dtype, dtype, dtype);
}

static void nothing(sweep_t *sweep, const char *dtype) {
  sweep_nodes(sweep, "Attention(q:%s[2,3,0,8], k:%s[2,3,5,8], v:%s[2,3,5,6])", dtype, dtype, dtype);
  sweep_nodes(sweep, "Attention(q:%s[2,3,7,8], k:%s[2,3,0,8], v:%s[2,3,0,6])", dtype, dtype, dtype);
  sweep_nodes(sweep, "Attention(q:%s[2,3,7,8], k:%s[2,3,5,8], v:%s[2,3,5,0])", dtype, dtype, dtype);
  sweep_nodes(sweep, "Attention(q:%s[2,3,7,0], k:%s[2,3,5,0], v:%s[2,3,5,6])", dtype, dtype, dtype);
  sweep_nodes(sweep, "Attention(q:%s[0,3,7,8], k:%s[0,3,5,8], v:%s[0,3,5,6])", dtype, dtype, dtype);
}

/* In a region with others: views and moves of heads before and behind, and values that others read. */
static void among_others(sweep_t *sweep, const char *dtype) {
  sweep_nodes(
      sweep,
      "s = Attention{scale=0.125}(Transpose{perm=[0,2,1,3]}(Reshape(x:%s[2,18,48], #[0,0,3,16])), "
      "Transpose{perm=[0,2,1,3]}(Reshape(x, #[0,0,3,16])), Transpose{perm=[0,2,1,3]}(Reshape(z:%s[2,18,48], "
      "#[0,0,3,16]))); Relu(Reshape(Transpose{perm=[0,2,1,3]}(s), #[0,0,48]))",
      dtype, dtype);
  sweep_nodes(sweep,
              "a, b, c = Split{axis=2, num_outputs=3}(x:%s[2,19,96]); Add(Attention{q_num_heads=2, "
              "kv_num_heads=2, is_causal=1}(a, b, c), a)",
              dtype);
}

void sweep_attention(sweep_t *sweep) {
  static const char *const attributes[] = {"scale=0.2", "is_causal=1", "softcap=1.5, scale=0.5",
                                           "is_causal=1, softcap=3"};
  for (size_t d = 0; d < COUNT(dtypes); d++) {
    for (size_t f = 0; f < COUNT(forms); f++) {
      one(sweep, f, d, (int)((f + d) % 6), attributes[(f + d) % COUNT(attributes)]);
      one(sweep, f, d, (int)((f + d + 3) % 6), attributes[(f + d + 1 + f / 4) % COUNT(attributes)]);
    }
    keys_of_earlier_calls(sweep, dtypes[d]);
    padded_keys(sweep, dtypes[d]);
    nothing(sweep, dtypes[d]);
    among_others(sweep, dtypes[d]);
  }
  /* Infinities as masks, and products that differ much. */
  sweep_nodes(sweep, "Attention(q[1,2,5,8], k[1,2,40,8], v[1,2,40,8], Log(Relu(m[2,5,40])))");
  sweep_nodes(sweep, "Attention{scale=30.0}(q[1,2,20,8], k[1,2,90,8], v[1,2,90,8])");
  if (!sweep->gradients) { /* numbers this low absorb what finite differences change */
    sweep_nodes(
        sweep,
        "Attention(q[1,1,3,8], k[1,1,20,8], v[1,1,20,8], Mul(Cast{to=1}(Less(m[3,1], #0)), #-3.4e38))");
  }
  sweep_nodes(sweep, "Attention(q![1,1,20,8], k[1,1,20,8], v[1,1,20,8])");
}
