// SPDX-License-Identifier: Apache-2.0
/*
 * Attention of ONNX Runtime as Attention of ONNX, and rotary embeddings of both. Attention has masks of
 * several forms, of which all become one that is added to the scores; GroupQueryAttention keeps keys and
 * values in buffers, each row of a batch with a length of its own.
 */
#include <math.h>

#include "formats/onnx/read/onnx_maker.h"

#define NONE CLEAVE_ONNX_NONE
#define MAKE CLEAVE_MAKE
#define LIST CLEAVE_MAKE_LIST

typedef cleave_onnx_maker_t maker_t;

static const int64_t swap[] = {0, 2, 1, 3};

/* [batch, length, heads * size] as [batch, heads, length, size], and back. */
static cleave_value_t split_heads(maker_t *m, cleave_value_t x, int64_t heads) {
  return cleave_make_transpose(m, MAKE(m, "Reshape", x, LIST(m, 0, 0, heads, -1)), swap, 4);
}

static cleave_value_t join_heads(maker_t *m, cleave_value_t x) {
  return MAKE(m, "Reshape", cleave_make_transpose(m, x, swap, 4), LIST(m, 0, 0, -1));
}

static int64_t count_heads(maker_t *m, const char *name) {
  int64_t heads = cleave_onnx_call_int(m->call, name, 0);
  if (heads < 1 || heads > INT32_MAX) {
    cleave_make_refuse(m, "its number of heads is not above 0");
  }
  return heads;
}

/* Consecutive parts of the last axis: the first output of a Split, whose other outputs are its results. */
static cleave_value_t split_last(maker_t *m, cleave_value_t x, const int64_t *sizes, uint32_t count) {
  cleave_value_t part =
      cleave_make_node(m, "Split", (const cleave_value_t[]){x, cleave_make_list(m, sizes, count)}, 2, count);
  cleave_make_int(m, "axis", -1);
  return part;
}

/* ---- rotary embeddings ---- */

typedef struct rotary {
  cleave_value_t cosine; /* as they broadcast to half of what is turned */
  cleave_value_t sine;
  int64_t size; /* of a head; -1: not known, all of it is turned */
  int64_t turned;
  bool is_interleaved; /* neighbours turn, not halves */
} rotary_t;

/* Pairs (a, b) become (a cos - b sin, b cos + a sin). x: [.., .., .., size]. */
static cleave_value_t rotate(maker_t *m, const rotary_t *rotary, cleave_value_t x) {
  cleave_value_t rest = NONE;
  int64_t half = rotary->turned / 2;
  if (rotary->size > rotary->turned) {
    const int64_t sizes[] = {rotary->turned, rotary->size - rotary->turned};
    x = split_last(m, x, sizes, 2);
    rest = cleave_make_result(m, 1);
  }
  if (rotary->is_interleaved) { /* [.., 2, half]: halves again */
    static const int64_t turn[] = {0, 1, 2, 4, 3};
    x = cleave_make_transpose(m, MAKE(m, "Reshape", x, LIST(m, 0, 0, 0, half, 2)), turn, 5);
    x = MAKE(m, "Reshape", x, LIST(m, 0, 0, 0, 2 * half));
  }
  cleave_value_t a = split_last(m, x, (const int64_t[]){half, half}, 2);
  cleave_value_t b = cleave_make_result(m, 1);
  cleave_value_t first = MAKE(m, "Sub", MAKE(m, "Mul", a, rotary->cosine), MAKE(m, "Mul", b, rotary->sine));
  cleave_value_t second = MAKE(m, "Add", MAKE(m, "Mul", b, rotary->cosine), MAKE(m, "Mul", a, rotary->sine));
  if (rotary->is_interleaved) {
    first = MAKE(m, "Unsqueeze", first, LIST(m, -1));
    second = MAKE(m, "Unsqueeze", second, LIST(m, -1));
  }
  cleave_value_t y = MAKE(m, "Concat", first, second);
  cleave_make_int(m, "axis", -1);
  y = rotary->is_interleaved ? MAKE(m, "Reshape", y, LIST(m, 0, 0, 0, 2 * half)) : y;
  if (cleave_value_exists(rest)) {
    y = MAKE(m, "Concat", y, rest);
    cleave_make_int(m, "axis", -1);
  }
  return y;
}

/* Rows of the caches [longest, half] at the places [batch, length], with an axis for the heads. */
static void look_up(maker_t *m, rotary_t *rotary, cleave_value_t cosine, cleave_value_t sine,
                    cleave_value_t places, int64_t head_axis) {
  cosine = cleave_value_exists(places) ? MAKE(m, "Gather", cosine, places) : cosine;
  sine = cleave_value_exists(places) ? MAKE(m, "Gather", sine, places) : sine;
  rotary->cosine = MAKE(m, "Unsqueeze", cosine, LIST(m, head_axis));
  rotary->sine = MAKE(m, "Unsqueeze", sine, LIST(m, head_axis));
}

/* How much of each head turns, from the attribute or the caches, which have half of that; false: not known.
 */
static bool measure(maker_t *m, rotary_t *rotary, cleave_value_t cosine) {
  rotary->turned = cleave_onnx_call_int(m->call, "rotary_embedding_dim", 0);
  if (rotary->turned == 0) {
    rotary->turned = 2 * cleave_make_dim(m, cosine, -1);
  }
  if (rotary->turned < 2 || rotary->turned % 2 != 0 || rotary->turned > INT32_MAX) {
    cleave_make_refuse(m, "how much of a head it turns is not known");
    return false;
  }
  return true;
}

static void embed(maker_t *m, cleave_value_t cosine, cleave_value_t sine, cleave_value_t places) {
  cleave_value_t x = cleave_make_input(m, 0);
  int32_t rank = cleave_make_rank(m, x);
  int64_t heads = cleave_onnx_call_int(m->call, "num_heads", 0);
  rotary_t rotary = {.is_interleaved = cleave_onnx_call_int(m->call, "interleaved", 0) != 0};
  if (rank != 3 && rank != 4) {
    cleave_make_refuse(m, "expected data of rank 3 or 4");
    return;
  }
  if (!measure(m, &rotary, cosine)) {
    return;
  }
  int64_t width = cleave_make_dim(m, x, -1);
  if (rank == 3 && heads <= 0) { /* all of each head turns */
    rotary.size = rotary.turned;
    x = MAKE(m, "Reshape", x, LIST(m, 0, 0, -1, rotary.turned));
  } else if (rank == 3) {
    rotary.size = width > 0 ? width / heads : -1;
    x = MAKE(m, "Reshape", x, LIST(m, 0, 0, heads, -1));
  } else {
    rotary.size = width;
  }
  if (rotary.size < rotary.turned) {
    cleave_make_refuse(m, "the size of its heads is not known, or less than what it turns");
    return;
  }
  look_up(m, &rotary, cosine, sine, places, rank == 3 ? 2 : 1);
  cleave_value_t y = rotate(m, &rotary, x);
  cleave_make_output(m, 0, rank == 3 ? MAKE(m, "Reshape", y, LIST(m, 0, 0, -1)) : y);
}

/* X, positions [batch, length] or an offset [1], cosines, sines. */
void cleave_onnx_mean_rotary_embedding(maker_t *m) {
  cleave_value_t x = cleave_make_input(m, 0);
  cleave_value_t places = cleave_make_input(m, 1);
  int32_t rank = cleave_make_rank(m, places);
  cleave_make_expect(m, "is_packed_batching", 0);
  if (rank != 1 && rank != 2) {
    cleave_make_refuse(m, "expected positions of rank 1 or 2");
    return;
  }
  if (rank == 1) { /* the first position of every row */
    int64_t axis = cleave_make_rank(m, x) == 3 ? 1 : 2;
    places = MAKE(m, "Add", cleave_make_range(m, cleave_make_size(m, x, axis)), places);
    places = MAKE(m, "Unsqueeze", places, LIST(m, 0));
  }
  embed(m, cleave_make_input(m, 2), cleave_make_input(m, 3), places);
}

/* Of ONNX: X, cosines, sines, positions. Without positions the caches are [batch, length, half]. */
void cleave_onnx_mean_rotary_embedding_23(maker_t *m) {
  embed(m, cleave_make_input(m, 1), cleave_make_input(m, 2), cleave_make_input(m, 3));
}

/* ---- masks ---- */

/* 0 where `allowed` is true, else the number of the attribute. */
static cleave_value_t filter(maker_t *m, cleave_value_t like, cleave_value_t allowed) {
  double number = cleave_onnx_call_float(m->call, "mask_filter_value", -10000.0);
  return MAKE(m, "Where", allowed, cleave_make_number(m, like, 0.0), cleave_make_number(m, like, number));
}

/* Mask and bias, as they are added to scores [batch, heads, queries, keys]. The mask says per key, or per
 * query and key, whether it counts, or how many keys of a row do. `keys` is how many there are, as int64[1].
 */
static cleave_value_t mask_scores(maker_t *m, cleave_value_t mask, cleave_value_t bias, cleave_value_t keys) {
  cleave_value_t q = cleave_make_input(m, 0);
  int32_t rank = cleave_make_rank(m, mask);
  if (!cleave_value_exists(mask)) {
    return bias;
  }
  if (rank == 1 &&
      (cleave_make_dim(m, mask, 0) < 0 || cleave_make_dim(m, mask, 0) != cleave_make_dim(m, q, 0))) {
    cleave_make_refuse(m, "its mask of rank 1 does not have one length for each row of a known batch");
    return NONE;
  }
  if (rank < 1 || rank > 3) {
    cleave_make_refuse(m, "expected a mask of rank 1, 2 or 3");
    return NONE;
  }
  cleave_value_t allowed =
      rank == 1 ? MAKE(m, "Less", cleave_make_range(m, keys),
                       MAKE(m, "Unsqueeze", cleave_make_cast(m, mask, CLEAVE_DTYPE_I64), LIST(m, 1)))
                : cleave_make_cast(m, mask, CLEAVE_DTYPE_BOOL);
  allowed =
      rank == 3 ? MAKE(m, "Unsqueeze", allowed, LIST(m, 1)) : MAKE(m, "Unsqueeze", allowed, LIST(m, 1, 2));
  return cleave_make_sum(m, filter(m, q, allowed), bias);
}

/* The node Attention with the call's scale; its results are those of the node. */
static cleave_value_t attend(maker_t *m, const cleave_value_t *inputs, uint32_t input_count, int64_t heads,
                             int64_t key_heads, bool is_flat) {
  cleave_value_t y = cleave_make_node(m, "Attention", inputs, input_count,
                                      input_count > 4 && cleave_value_exists(inputs[4]) ? 3 : 1);
  double scale = cleave_onnx_call_float(m->call, "scale", 0.0);
  if (scale != 0.0) {
    cleave_make_float(m, "scale", scale);
  }
  if (is_flat) {
    cleave_make_int(m, "q_num_heads", heads);
    cleave_make_int(m, "kv_num_heads", key_heads);
  }
  if (cleave_onnx_call_int(m->call, "unidirectional", 0) != 0) {
    cleave_make_int(m, "is_causal", 1);
  }
  return y;
}

/* Size of an axis, with that of the past if there is one. */
static cleave_value_t count_keys(maker_t *m, cleave_value_t keys, int64_t axis, cleave_value_t past) {
  cleave_value_t count = cleave_make_size(m, keys, axis);
  return cleave_value_exists(past) ? MAKE(m, "Add", count, cleave_make_size(m, past, 2)) : count;
}

/* ---- Attention: projections and attention ---- */

/* Widths of queries, keys and values in the projection; false: not known. */
static bool read_widths(maker_t *m, int64_t heads, int64_t *widths) {
  uint32_t count = 0;
  const int64_t *given = cleave_onnx_call_ints(m->call, "qkv_hidden_sizes", &count);
  int64_t width = cleave_make_dim(m, cleave_make_input(m, 1), 1);
  for (int k = 0; k < 3; k++) {
    widths[k] = count == 3 ? given[k] : width / 3;
    if (width < 3 || widths[k] < 1 || widths[k] % heads != 0) {
      cleave_make_refuse(m, "the width of its weights is not known, or none of queries, keys and values");
      return false;
    }
  }
  return true;
}

/* One of the two halves of the past, [2, batch, heads, length, size]. */
static cleave_value_t half_of(maker_t *m, cleave_value_t past, int64_t index) {
  return cleave_value_exists(past) ? MAKE(m, "Gather", past, cleave_make_index(m, index)) : NONE;
}

void cleave_onnx_mean_attention(maker_t *m) {
  enum { X, WEIGHTS, BIAS, MASK, PAST, SCORE_BIAS, PAST_LENGTH };
  int64_t heads = count_heads(m, "num_heads");
  int64_t widths[3] = {0};
  cleave_make_expect(m, "do_rotary", 0);
  cleave_make_expect(m, "past_present_share_buffer", 0);
  cleave_make_without(m, PAST_LENGTH, PAST_LENGTH);
  if (m->status != CLEAVE_OK || !read_widths(m, heads, widths)) {
    return;
  }
  cleave_value_t past = cleave_make_input(m, PAST);
  cleave_value_t x = MAKE(m, "MatMul", cleave_make_input(m, X), cleave_make_input(m, WEIGHTS));
  cleave_value_t q = split_last(m, cleave_make_sum(m, x, cleave_make_input(m, BIAS)), widths, 3);
  cleave_value_t k = cleave_make_result(m, 1);
  cleave_value_t v = cleave_make_result(m, 2);
  cleave_value_t past_key = half_of(m, past, 0);
  cleave_value_t past_value = half_of(m, past, 1);
  cleave_value_t mask = mask_scores(m, cleave_make_input(m, MASK), cleave_make_input(m, SCORE_BIAS),
                                    cleave_make_has(m, MASK) ? count_keys(m, x, 1, past_key) : NONE);
  bool is_kept = cleave_onnx_call_output_used(m->call, 1);
  if (is_kept && !cleave_value_exists(past)) { /* heads apart, for the output */
    q = split_heads(m, q, heads);
    k = split_heads(m, k, heads);
    v = split_heads(m, v, heads);
    cleave_make_output(m, 0,
                       join_heads(m, attend(m, (const cleave_value_t[]){q, k, v, mask}, 4, 0, 0, false)));
  } else {
    const cleave_value_t inputs[] = {q, k, v, mask, past_key, past_value};
    cleave_make_output(m, 0, attend(m, inputs, cleave_value_exists(past) ? 6 : 4, heads, heads, true));
    k = cleave_value_exists(past) ? cleave_make_result(m, 1) : k;
    v = cleave_value_exists(past) ? cleave_make_result(m, 2) : v;
  }
  if (is_kept) {
    k = MAKE(m, "Unsqueeze", k, LIST(m, 0));
    v = MAKE(m, "Unsqueeze", v, LIST(m, 0));
    cleave_value_t present = MAKE(m, "Concat", k, v);
    cleave_make_int(m, "axis", 0);
    cleave_make_output(m, 1, present);
  }
}

/* ---- MultiHeadAttention ---- */

/* Adds the parts of a bias [3 * width]. */
static void add_bias(maker_t *m, cleave_value_t *q, cleave_value_t *k, cleave_value_t *v,
                     cleave_value_t bias) {
  const int64_t widths[] = {cleave_make_dim(m, *q, -1), cleave_make_dim(m, *k, -1),
                            cleave_make_dim(m, *v, -1)};
  if (widths[0] < 1 || widths[1] < 1 || widths[2] < 1) {
    cleave_make_refuse(m, "it has a bias, and the width of queries, keys or values is not known");
    return;
  }
  cleave_value_t part = split_last(m, bias, widths, 3);
  cleave_value_t second = cleave_make_result(m, 1);
  cleave_value_t third = cleave_make_result(m, 2);
  *q = MAKE(m, "Add", *q, part);
  *k = MAKE(m, "Add", *k, second);
  *v = MAKE(m, "Add", *v, third);
}

void cleave_onnx_mean_multi_head_attention(maker_t *m) {
  enum { Q, K, V, BIAS, MASK, SCORE_BIAS, PAST_KEY, PAST_VALUE, PAST_LENGTH, INDIRECTION };
  int64_t heads = count_heads(m, "num_heads");
  cleave_value_t q = cleave_make_input(m, Q);
  cleave_value_t k = cleave_make_input(m, K);
  cleave_value_t v = cleave_make_input(m, V);
  cleave_value_t past = cleave_make_input(m, PAST_KEY);
  int32_t rank = cleave_make_rank(m, k);
  cleave_make_without(m, PAST_LENGTH, INDIRECTION);
  if (cleave_make_rank(m, q) != 3 || (rank != 3 && rank != 4) || cleave_make_rank(m, v) != rank ||
      (rank == 4 && (cleave_make_has(m, BIAS) || cleave_make_has(m, PAST_KEY)))) {
    cleave_make_refuse(m,
                       "expected queries of rank 3 with keys and values of rank 3, or of rank 4 without bias "
                       "and past");
  }
  if (m->status == CLEAVE_OK && cleave_make_has(m, BIAS)) {
    add_bias(m, &q, &k, &v, cleave_make_input(m, BIAS));
  }
  cleave_value_t mask =
      mask_scores(m, cleave_make_input(m, MASK), cleave_make_input(m, SCORE_BIAS),
                  cleave_make_has(m, MASK) ? count_keys(m, k, rank == 3 ? 1 : 2, past) : NONE);
  bool is_kept = cleave_onnx_call_output_used(m->call, 1) || cleave_onnx_call_output_used(m->call, 2);
  if (cleave_value_exists(past)) {
    const cleave_value_t inputs[] = {q, k, v, mask, past, cleave_make_input(m, PAST_VALUE)};
    cleave_make_output(m, 0, attend(m, inputs, 6, heads, heads, true));
    k = cleave_make_result(m, 1);
    v = cleave_make_result(m, 2);
  } else if (rank == 4 || is_kept) {
    q = split_heads(m, q, heads);
    k = rank == 4 ? k : split_heads(m, k, heads);
    v = rank == 4 ? v : split_heads(m, v, heads);
    cleave_make_output(m, 0,
                       join_heads(m, attend(m, (const cleave_value_t[]){q, k, v, mask}, 4, 0, 0, false)));
  } else {
    cleave_make_output(m, 0, attend(m, (const cleave_value_t[]){q, k, v, mask}, 4, heads, heads, true));
  }
  if (is_kept) {
    cleave_make_output(m, 1, k);
    cleave_make_output(m, 2, v);
  }
}

/* ---- GroupQueryAttention ---- */

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LAST, TOTAL, COSINE, SINE, PLACES, SCORE_BIAS, SINK };

typedef struct groups {
  int64_t heads;
  int64_t key_heads;
  int64_t size;            /* of a head, or -1 */
  cleave_value_t past;     /* int64[batch]: how many keys came before, of each row */
  cleave_value_t places;   /* int64[batch, length]: of the new ones */
  cleave_value_t capacity; /* int64[1]: of what is kept */
  cleave_value_t count;    /* int64[batch]: how many of it are keys, or NONE: all */
} groups_t;

/* New keys or values behind those of each row, in a buffer that has room for all. */
static cleave_value_t keep(maker_t *m, const groups_t *groups, cleave_value_t fresh, uint32_t past) {
  if (!cleave_make_has(m, past)) {
    return fresh;
  }
  cleave_value_t old = cleave_make_input(m, past);
  cleave_value_t room = MAKE(m, "Sub", groups->capacity, cleave_make_size(m, old, 2));
  cleave_value_t pads = MAKE(m, "Concat", LIST(m, 0), room);
  cleave_make_int(m, "axis", 0);
  old = MAKE(m, "Pad", old, pads, NONE, LIST(m, 2));
  cleave_value_t kept = MAKE(m, "TensorScatter", old, fresh, groups->past);
  return kept;
}

/* What queries see: keys at their place and before, of which no more than a window. [batch, 1, queries,
 * keys]. */
static cleave_value_t see(maker_t *m, const groups_t *groups) {
  int64_t window = cleave_onnx_call_int(m->call, "local_window_size", -1);
  cleave_value_t keys = cleave_make_range(m, groups->capacity);
  cleave_value_t at = MAKE(m, "Unsqueeze", groups->places, LIST(m, 1, 3));
  cleave_value_t allowed = MAKE(m, "LessOrEqual", keys, at);
  if (window > 0) {
    cleave_value_t first = MAKE(m, "Sub", at, cleave_make_index(m, window));
    allowed = MAKE(m, "And", allowed, MAKE(m, "Greater", keys, first));
  }
  if (!cleave_make_has(m, SCORE_BIAS)) {
    return allowed;
  }
  cleave_value_t bias = cleave_make_input(m, SCORE_BIAS);
  return MAKE(m, "Where", allowed, bias, cleave_make_number(m, bias, -INFINITY));
}

/* Queries, keys and values with their heads apart; packed ones are all in the first input. */
static void take_apart(maker_t *m, groups_t *groups, cleave_value_t *parts) {
  int64_t width = cleave_make_dim(m, cleave_make_input(m, QUERY), -1);
  bool is_packed = !cleave_make_has(m, KEY);
  int64_t heads = groups->heads + (is_packed ? 2 * groups->key_heads : 0);
  groups->size = width > 0 && width % heads == 0 ? width / heads : -1;
  for (uint32_t k = QUERY; k <= VALUE; k++) {
    parts[k] = cleave_make_input(m, k);
  }
  if (is_packed && groups->size < 0) {
    cleave_make_refuse(m, "the width of its packed queries, keys and values is not known");
    return;
  }
  if (is_packed) {
    const int64_t sizes[] = {groups->heads * groups->size, groups->key_heads * groups->size,
                             groups->key_heads * groups->size};
    parts[QUERY] = split_last(m, parts[QUERY], sizes, 3);
    parts[KEY] = cleave_make_result(m, 1);
    parts[VALUE] = cleave_make_result(m, 2);
  }
  for (uint32_t k = QUERY; k <= VALUE; k++) {
    parts[k] = split_heads(m, parts[k], k == QUERY ? groups->heads : groups->key_heads);
  }
}

static void turn(maker_t *m, const groups_t *groups, cleave_value_t *parts) {
  rotary_t rotary = {.size = groups->size,
                     .is_interleaved = cleave_onnx_call_int(m->call, "rotary_interleaved", 0) != 0};
  if (!measure(m, &rotary, cleave_make_input(m, COSINE))) {
    return;
  }
  if (rotary.size < rotary.turned) {
    cleave_make_refuse(m, "the size of its heads is not known, or less than what it turns");
    return;
  }
  cleave_value_t places = cleave_make_has(m, PLACES) ? cleave_make_input(m, PLACES) : groups->places;
  look_up(m, &rotary, cleave_make_input(m, COSINE), cleave_make_input(m, SINE), places, 1);
  parts[QUERY] = rotate(m, &rotary, parts[QUERY]);
  parts[KEY] = rotate(m, &rotary, parts[KEY]);
}

/* Each row has `last` + 1 keys, and as many less what is new came before; of a first prompt that is padded,
 * none did. */
static void measure_past(maker_t *m, groups_t *groups) {
  cleave_value_t length = cleave_make_size(m, cleave_make_input(m, QUERY), 1);
  cleave_value_t last = cleave_make_cast(m, cleave_make_input(m, LAST), CLEAVE_DTYPE_I64);
  last = MAKE(m, "Reshape", last, LIST(m, -1));
  cleave_value_t all = MAKE(m, "Add", last, cleave_make_index(m, 1));
  groups->past = MAKE(m, "Max", MAKE(m, "Sub", all, length), cleave_make_index(m, 0));
  groups->places =
      MAKE(m, "Add", MAKE(m, "Unsqueeze", groups->past, LIST(m, 1)), cleave_make_range(m, length));
  groups->capacity = length;
  if (cleave_make_has(m, PAST_KEY)) {
    cleave_value_t total = cleave_make_cast(m, cleave_make_input(m, TOTAL), CLEAVE_DTYPE_I64);
    total = MAKE(m, "Reshape", total, LIST(m, 1));
    groups->capacity = MAKE(m, "Max", total, cleave_make_size(m, cleave_make_input(m, PAST_KEY), 2));
    groups->count = MAKE(m, "Add", groups->past, length);
  }
}

void cleave_onnx_mean_group_query_attention(maker_t *m) {
  groups_t groups = {
      .heads = count_heads(m, "num_heads"), .key_heads = count_heads(m, "kv_num_heads"), .count = NONE};
  cleave_value_t parts[3] = {NONE, NONE, NONE};
  cleave_make_expect(m, "causal", 1);
  cleave_make_expect(m, "unidirectional", 1);
  cleave_make_expect(m, "smooth_softmax", 0);
  cleave_make_expect(m, "sliding_window_cache", 0);
  cleave_make_expect(m, "qk_output", 0);
  cleave_make_without(m, SINK, 15);
  if (cleave_make_rank(m, cleave_make_input(m, QUERY)) != 3) {
    cleave_make_refuse(m, "expected queries of rank 3");
  }
  if (m->status != CLEAVE_OK) {
    return;
  }
  take_apart(m, &groups, parts);
  measure_past(m, &groups);
  if (cleave_onnx_call_int(m->call, "do_rotary", 0) != 0) {
    turn(m, &groups, parts);
  }
  cleave_value_t keys = keep(m, &groups, parts[KEY], PAST_KEY);
  cleave_value_t values = keep(m, &groups, parts[VALUE], PAST_VALUE);
  const cleave_value_t inputs[] = {parts[QUERY], keys, values, see(m, &groups), NONE, NONE, groups.count};
  cleave_value_t y = attend(m, inputs, cleave_value_exists(groups.count) ? 7 : 4, 0, 0, false);
  cleave_make_copy(m, "softcap");
  cleave_make_output(m, 0, join_heads(m, y));
  cleave_make_output(m, 1, keys);
  cleave_make_output(m, 2, values);
}
