// SPDX-License-Identifier: Apache-2.0
// Attention (ONNX 24). Queries, keys and values are [batch, heads, length, size], or [batch, length,
// heads * size] with the numbers of heads as attributes. Key heads serve several query heads each.

#include "ops/context/infer_context.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, VALID };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

/* The sizes that a node tells; UNKNOWN if nothing does. */
typedef struct sizes {
  cleave_dim_t batch;
  cleave_dim_t query_heads;
  cleave_dim_t key_heads;
  cleave_dim_t queries;
  cleave_dim_t keys; /* all: those of the past first */
  cleave_dim_t size;
  cleave_dim_t value_size;
} sizes_t;

static cleave_dim_t divide(const cleave_infer_t *infer, cleave_dim_t whole, int64_t parts) {
  return parts > 0 ? cleave_infer_divide(infer, whole, parts) : CLEAVE_DIM_UNKNOWN;
}

/* [batch, length, heads * size]: the numbers of heads are attributes. */
static cleave_status_t read_flat(cleave_infer_t *infer, sizes_t *sizes, cleave_error_t *error) {
  static const char *const names[] = {"q_num_heads", "kv_num_heads", "kv_num_heads"};
  for (uint32_t k = Q; k <= V; k++) {
    int64_t heads = cleave_infer_int(infer, names[k], 0);
    cleave_dim_t width = cleave_fact_dim(cleave_infer_input(infer, k), 2);
    if (heads < 1) {
      return cleave_infer_fail(infer, error, "inputs of rank 3 need %s, a number above 0", names[k]);
    }
    if (cleave_dim_is_known(width) && width % heads != 0) {
      return cleave_infer_fail(infer, error, "%lld column%s of input %u cannot be split into %lld head%s",
                               (long long)width, CLEAVE_PLURAL(width), (unsigned)k, (long long)heads,
                               CLEAVE_PLURAL(heads));
    }
  }
  sizes->query_heads = cleave_infer_int(infer, names[Q], 0);
  sizes->key_heads = cleave_infer_int(infer, names[K], 0);
  sizes->queries = cleave_fact_dim(cleave_infer_input(infer, Q), 1);
  sizes->size = divide(infer, cleave_fact_dim(cleave_infer_input(infer, Q), 2), sizes->query_heads);
  sizes->value_size = divide(infer, cleave_fact_dim(cleave_infer_input(infer, V), 2), sizes->key_heads);
  cleave_dim_t key_size = divide(infer, cleave_fact_dim(cleave_infer_input(infer, K), 2), sizes->key_heads);
  if (cleave_dim_is_known(key_size) && cleave_dim_is_known(sizes->size) && key_size != sizes->size) {
    return cleave_infer_fail(infer, error, "heads of %lld column%s in Q, but of %lld in K",
                             (long long)sizes->size, CLEAVE_PLURAL(sizes->size), (long long)key_size);
  }
  sizes->size = sizes->size == CLEAVE_DIM_UNKNOWN ? key_size : sizes->size;
  return cleave_infer_same_dim(infer, cleave_infer_input(infer, K), 1, cleave_infer_input(infer, V), 1,
                               error);
}

/* [batch, heads, length, size]; the attributes may repeat the numbers of heads. */
static cleave_status_t read_split(cleave_infer_t *infer, sizes_t *sizes, cleave_error_t *error) {
  cleave_fact_t *q = cleave_infer_input(infer, Q);
  cleave_fact_t *k = cleave_infer_input(infer, K);
  cleave_fact_t *v = cleave_infer_input(infer, V);
  int64_t query_heads = cleave_infer_int(infer, "q_num_heads", 0);
  int64_t key_heads = cleave_infer_int(infer, "kv_num_heads", 0);
  if (query_heads > 0) {
    CLEAVE_TRY(cleave_infer_set_dim(infer, q, 1, query_heads, error));
  }
  if (key_heads > 0) {
    CLEAVE_TRY(cleave_infer_set_dim(infer, k, 1, key_heads, error));
  }
  CLEAVE_TRY(cleave_infer_same_dim(infer, k, 1, v, 1, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, k, 2, v, 2, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, q, 3, k, 3, error));
  sizes->query_heads = cleave_fact_dim(q, 1);
  sizes->key_heads = cleave_fact_dim(k, 1);
  sizes->queries = cleave_fact_dim(q, 2);
  sizes->size = cleave_fact_dim(q, 3);
  sizes->value_size = cleave_fact_dim(v, 3);
  return CLEAVE_OK;
}

static cleave_status_t read_sizes(cleave_infer_t *infer, int32_t rank, sizes_t *sizes,
                                  cleave_error_t *error) {
  cleave_fact_t *q = cleave_infer_input(infer, Q);
  for (uint32_t k = K; k <= V; k++) {
    CLEAVE_TRY(cleave_infer_same_dim(infer, q, 0, cleave_infer_input(infer, k), 0, error));
  }
  CLEAVE_TRY(rank == 3 ? read_flat(infer, sizes, error) : read_split(infer, sizes, error));
  if (cleave_dim_is_known(sizes->query_heads) && cleave_dim_is_known(sizes->key_heads) &&
      (sizes->key_heads < 1 || sizes->query_heads % sizes->key_heads != 0)) {
    return cleave_infer_fail(infer, error, "%lld head%s of keys cannot serve %lld head%s of queries",
                             (long long)sizes->key_heads, CLEAVE_PLURAL(sizes->key_heads),
                             (long long)sizes->query_heads, CLEAVE_PLURAL(sizes->query_heads));
  }
  sizes->batch = cleave_fact_dim(q, 0);
  sizes->keys = cleave_fact_dim(cleave_infer_input(infer, K), rank == 3 ? 1 : 2);
  return CLEAVE_OK;
}

/* Keys and values of earlier calls come before the new ones; `keys` becomes the number of all. */
static cleave_status_t read_past(cleave_infer_t *infer, sizes_t *sizes, cleave_error_t *error) {
  cleave_fact_t *key = cleave_infer_input(infer, PAST_KEY);
  cleave_fact_t *value = cleave_infer_input(infer, PAST_VALUE);
  if ((key == NULL) != (value == NULL)) {
    return cleave_infer_fail(infer, error, "expected past_key and past_value, found only one of them");
  }
  if (key == NULL) {
    return CLEAVE_OK;
  }
  for (uint32_t k = PAST_KEY; k <= PAST_VALUE; k++) {
    cleave_dim_t dims[] = {sizes->batch, sizes->key_heads, CLEAVE_DIM_UNKNOWN,
                           k == PAST_KEY ? sizes->size : sizes->value_size};
    CLEAVE_TRY(cleave_infer_same_dtype(infer, cleave_infer_input(infer, k == PAST_KEY ? K : V),
                                       cleave_infer_input(infer, k), error));
    CLEAVE_TRY(cleave_infer_set_shape(infer, cleave_infer_input(infer, k), 4, dims, error));
  }
  CLEAVE_TRY(cleave_infer_same_dim(infer, key, 2, value, 2, error));
  sizes->keys = cleave_infer_add(infer, sizes->keys, cleave_fact_dim(key, 2));
  return CLEAVE_OK;
}

/* How many keys of each batch count: those from the first on, the rest of K and V is padding. */
static cleave_status_t read_valid(cleave_infer_t *infer, const sizes_t *sizes, cleave_error_t *error) {
  cleave_fact_t *valid = cleave_infer_input(infer, VALID);
  if (valid == NULL) {
    return CLEAVE_OK;
  }
  if (cleave_infer_input(infer, PAST_KEY) != NULL) {
    return cleave_infer_fail(infer, error, "expected nonpad_kv_seqlen or past_key, found both");
  }
  CLEAVE_TRY(cleave_infer_set_dtype(infer, valid, CLEAVE_DTYPE_I64, error));
  return cleave_infer_set_shape(infer, valid, 1, &sizes->batch, error);
}

/* The mask broadcasts to [batch, query heads, queries, keys]. */
static cleave_status_t check_mask(cleave_infer_t *infer, const sizes_t *sizes, cleave_error_t *error) {
  cleave_fact_t *mask = cleave_infer_input(infer, MASK);
  const cleave_dim_t whole[] = {sizes->batch, sizes->query_heads, sizes->queries, sizes->keys};
  if (cleave_fact_rank(mask) < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_check_rank(infer, mask, 0, 4, error));
  if (cleave_fact_dtype(mask) != CLEAVE_DTYPE_BOOL) {
    CLEAVE_TRY(cleave_infer_same_dtype(infer, cleave_infer_input(infer, Q), mask, error));
  }
  for (int32_t d = 0; d < mask->rank; d++) {
    cleave_dim_t expected = whole[4 - mask->rank + d];
    cleave_dim_t found = mask->dims[d];
    if (cleave_dim_is_known(expected) && cleave_dim_is_known(found) && found != 1 && found != expected) {
      return cleave_infer_fail(infer, error,
                               "dimension %d of the mask is %lld, which does not broadcast to %lld", (int)d,
                               (long long)found, (long long)expected);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_attention(cleave_infer_t *infer, cleave_error_t *error) {
  sizes_t sizes = {.batch = CLEAVE_DIM_UNKNOWN};
  CLEAVE_TRY(cleave_infer_types(infer, "q q v > q q v q", error));
  int32_t rank = -1;
  for (uint32_t k = Q; k <= V; k++) {
    int32_t found = cleave_fact_rank(cleave_infer_input(infer, k));
    CLEAVE_TRY(cleave_infer_check_rank(infer, cleave_infer_input(infer, k), 3, 4, error));
    rank = rank < 0 ? found : rank;
  }
  if (rank < 0) {
    return CLEAVE_OK;
  }
  for (uint32_t k = Q; k <= V; k++) {
    CLEAVE_TRY(cleave_infer_set_rank(infer, cleave_infer_input(infer, k), rank, error));
  }
  CLEAVE_TRY(read_sizes(infer, rank, &sizes, error));
  CLEAVE_TRY(read_past(infer, &sizes, error));
  CLEAVE_TRY(read_valid(infer, &sizes, error));
  CLEAVE_TRY(check_mask(infer, &sizes, error));
  const cleave_dim_t flat[] = {sizes.batch, sizes.queries,
                               cleave_infer_multiply(infer, sizes.query_heads, sizes.value_size)};
  const cleave_dim_t split[] = {sizes.batch, sizes.query_heads, sizes.queries, sizes.value_size};
  const cleave_dim_t key[] = {sizes.batch, sizes.key_heads, sizes.keys, sizes.size};
  const cleave_dim_t value[] = {sizes.batch, sizes.key_heads, sizes.keys, sizes.value_size};
  const cleave_dim_t scores[] = {sizes.batch, sizes.query_heads, sizes.queries, sizes.keys};
  CLEAVE_TRY(
      cleave_infer_set_shape(infer, cleave_infer_output(infer, Y), rank, rank == 3 ? flat : split, error));
  CLEAVE_TRY(cleave_infer_set_shape(infer, cleave_infer_output(infer, PRESENT_KEY), 4, key, error));
  CLEAVE_TRY(cleave_infer_set_shape(infer, cleave_infer_output(infer, PRESENT_VALUE), 4, value, error));
  return cleave_infer_set_shape(infer, cleave_infer_output(infer, SCORES), 4, scores, error);
}
