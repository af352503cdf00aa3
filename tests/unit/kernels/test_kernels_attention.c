// SPDX-License-Identifier: Apache-2.0
// Attention by blocks of queries against the definition in double, for every instruction set of this
// processor: sizes around those of blocks and vectors, masks, special values.
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/attention/attention.h"
#include "unit.h"

enum { INSTRUCTION_SETS = 3 };

typedef struct operands {
  kernel_attention_t attention;
  float *q;
  float *k;
  float *v;
  float *mask; /* [batch, heads, keys, queries]; or NULL */
  float *y;
  float *expected;
} operands_t;

static float *random_floats(int64_t count) {
  float *data = malloc((size_t)count * sizeof(float));
  for (int64_t i = 0; i < count; i++) {
    data[i] = (float)(rand() % 4001 - 2000) / 800.0F;
  }
  return data;
}

/* Heads apart, or side by side in rows. */
static void set_strides(int64_t *strides, int64_t heads, int64_t length, int64_t size, bool apart) {
  strides[0] = heads * length * size;
  strides[1] = apart ? length * size : size;
  strides[2] = apart ? size : heads * size;
  strides[3] = 1;
}

static operands_t make(int64_t queries, int64_t keys, int64_t size, int64_t value_size, int64_t heads,
                       int64_t key_heads) {
  operands_t o = {.attention = {.batch = 2,
                                .heads = heads,
                                .key_heads = key_heads,
                                .queries = queries,
                                .keys = keys,
                                .size = size,
                                .value_size = value_size,
                                .scale = 0.25F}};
  kernel_attention_t *a = &o.attention;
  bool apart = queries % 2 == 0;
  set_strides(a->q_strides, heads, queries, size, apart);
  set_strides(a->k_strides, key_heads, keys, size, !apart);
  set_strides(a->v_strides, key_heads, keys, value_size, apart);
  set_strides(a->y_strides, heads, queries, value_size, apart);
  o.q = random_floats(2 * heads * queries * size);
  o.k = random_floats(2 * key_heads * keys * size);
  o.v = random_floats(2 * key_heads * keys * value_size);
  o.y = random_floats(2 * heads * queries * value_size);
  o.expected = random_floats(2 * heads * queries * value_size);
  return o;
}

static void release(operands_t *o) {
  free(o->q);
  free(o->k);
  free(o->v);
  free(o->mask);
  free(o->y);
  free(o->expected);
}

/* One row by the definition: probabilities first, then their product with all values. */
static void expect_row(const operands_t *o, int64_t b, int64_t h, int64_t r, double *p) {
  const kernel_attention_t *a = &o->attention;
  int64_t kh = h / (a->heads / a->key_heads);
  const float *q = o->q + b * a->q_strides[0] + h * a->q_strides[1] + r * a->q_strides[2];
  const float *k = o->k + b * a->k_strides[0] + kh * a->k_strides[1];
  const float *v = o->v + b * a->v_strides[0] + kh * a->v_strides[1];
  float *y = o->expected + b * a->y_strides[0] + h * a->y_strides[1] + r * a->y_strides[2];
  double most = -INFINITY;
  double sum = 0;
  for (int64_t i = 0; i < a->keys; i++) {
    double s = 0;
    for (int64_t d = 0; d < a->size; d++) {
      s += (double)q[d] * (double)k[i * a->k_strides[2] + d];
    }
    s *= (double)a->scale;
    s = a->softcap > 0 ? (double)a->softcap * tanh(s / (double)a->softcap) : s;
    if (o->mask != NULL) {
      const int64_t *m = a->mask_strides;
      s += (double)o->mask[b * m[0] + h * m[1] + r * m[2] + i * m[3]];
    }
    p[i] = a->is_causal && i > r ? -INFINITY : s;
    most = p[i] > most ? p[i] : most;
  }
  for (int64_t i = 0; i < a->keys; i++) {
    p[i] = p[i] == -INFINITY ? 0 : exp(p[i] - most);
    sum += p[i];
  }
  for (int64_t j = 0; j < a->value_size; j++) {
    double result = 0;
    for (int64_t i = 0; i < a->keys; i++) {
      result += (sum == 0 ? 0 : p[i] / sum) * (double)v[i * a->v_strides[2] + j];
    }
    y[j] = (float)result;
  }
}

static void check(operands_t *o) {
  const kernel_attention_t *a = &o->attention;
  const kernel_attention_data_t data = {.q = o->q, .k = o->k, .v = o->v, .mask = o->mask, .y = o->y};
  double *p = malloc((size_t)a->keys * sizeof(double));
  int64_t count = a->batch * a->heads * a->queries * a->value_size;
  float *scratch = malloc(kernel_attention_scratch(a) * sizeof(float));
  for (int64_t row = 0; row < a->batch * a->heads * a->queries; row++) {
    expect_row(o, row / a->queries / a->heads, row / a->queries % a->heads, row % a->queries, p);
  }
  for (int limit = 0; limit < INSTRUCTION_SETS; limit++) {
    const kernel_attention_loops_t *loops = kernel_attention_choose(limit);
    memset(o->y, 0x7f, (size_t)count * sizeof(float));
    memset(scratch, 0xff, kernel_attention_scratch(a) * sizeof(float));
    for (int64_t item = kernel_attention_items(a); item-- > 0;) {
      loops->block(a, &data, item, scratch);
    }
    for (int64_t i = 0; i < count; i++) {
      bool same = isnan(o->expected[i])
                      ? isnan(o->y[i])
                      : fabsf(o->y[i] - o->expected[i]) <= 1e-5F * fabsf(o->expected[i]) + 1e-5F;
      ck_assert_msg(same, "%s, %lld queries, %lld keys: element %lld is %g, expected %g", loops->name,
                    (long long)a->queries, (long long)a->keys, (long long)i, (double)o->y[i],
                    (double)o->expected[i]);
    }
  }
  free(scratch);
  free(p);
}

UNIT_TEST(attends_over_sizes_around_blocks_and_vectors) {
  static const int64_t sizes[][4] = {{1, 1, 1, 1},      {1, 130, 64, 64}, {3, 64, 8, 5},
                                     {16, 65, 33, 7},   {49, 49, 32, 32}, {64, 64, 16, 16},
                                     {65, 129, 24, 70}, {130, 31, 4, 130}};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    operands_t o = make(sizes[k][0], sizes[k][1], sizes[k][2], sizes[k][3], 3, 3);
    check(&o);
    o.attention.is_causal = true;
    check(&o);
    o.attention.softcap = 1.5F;
    check(&o);
    release(&o);
  }
}

UNIT_TEST(serves_several_heads_of_queries_by_one_of_keys) {
  operands_t o = make(20, 70, 8, 8, 6, 2);
  check(&o);
  release(&o);
}

UNIT_TEST(adds_masks_that_broadcast_and_that_do_not) {
  operands_t o = make(70, 66, 8, 8, 2, 2);
  o.mask = random_floats(2 * 2 * 70 * 66);
  static const int64_t strides[][4] = {{2 * 70 * 66, 70 * 66, 1, 70}, /* queries next to each other */
                                       {2 * 70 * 66, 70 * 66, 66, 1},
                                       {66, 0, 0, 1}, /* of keys */
                                       {0, 70, 1, 0}, /* of queries */
                                       {0, 0, 0, 0}};
  for (size_t k = 0; k < sizeof strides / sizeof *strides; k++) {
    memcpy(o.attention.mask_strides, strides[k], sizeof strides[k]);
    check(&o);
  }
  release(&o);
}

UNIT_TEST(gives_0_for_queries_that_see_no_key_and_raises_no_flag) {
  operands_t o = make(70, 130, 8, 8, 1, 1);
  const int64_t strides[] = {0, 0, 130, 1};
  o.mask = random_floats(70 * 130);
  memcpy(o.attention.mask_strides, strides, sizeof strides);
  for (int64_t i = 0; i < 70 * 130; i++) {
    int64_t row = i / 130;
    int64_t key = i % 130;
    bool hidden = row == 3 || row == 69 || (row == 5 && key < 64) || (row == 6 && key >= 64);
    o.mask[i] = hidden ? -INFINITY : o.mask[i];
  }
  (void)feclearexcept(FE_INVALID);
  check(&o);
  ck_assert_int_eq(fetestexcept(FE_INVALID), 0);
  ck_assert_float_eq(o.y[3 * 8], 0.0F);
  release(&o);
}

UNIT_TEST(keeps_nan_and_infinities) {
  operands_t o = make(70, 200, 8, 8, 1, 1);
  o.attention.is_causal = true;
  o.v[199 * 8 + 3] = INFINITY; /* that no query sees: 0 times infinity */
  o.v[100 * 8 + 5] = NAN;
  check(&o);
  ck_assert(isnan(o.y[3]) && isnan(o.y[5]) && !isnan(o.y[4]));
  o.k[20 * 8] = NAN;
  o.k[30 * 8] = INFINITY;
  o.q[40 * 8] = -INFINITY;
  check(&o);
  release(&o);
}

/* Sums of values that are not divided yet would overflow. */
UNIT_TEST(attends_to_values_near_the_largest_number) {
  operands_t o = make(5, 100, 4, 4, 1, 1);
  for (int64_t i = 0; i < 2 * 100 * 4; i++) {
    o.v[i] = FLT_MAX / 2;
  }
  check(&o);
  ck_assert(isfinite(o.y[0]));
  release(&o);
}

UNIT_SUITE("kernels_attention")
