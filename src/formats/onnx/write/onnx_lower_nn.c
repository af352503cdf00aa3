// SPDX-License-Identifier: Apache-2.0
/* Bodies of normalisations, recurrent layers that start with the batch, and attention, as ONNX defines them.
 * Statistics are taken in the type of `stash_type`, float32, or in float64 if the data has that. */
#include <math.h>

#include "formats/onnx/write/onnx_lowering.h"

#define NONE CLEAVE_VALUE_NONE

static cleave_value_t unary(cleave_lowering_t *l, const char *op, cleave_value_t x) {
  return cleave_lowering_emit(l, op, x, NONE, NONE);
}

static cleave_value_t binary(cleave_lowering_t *l, const char *op, cleave_value_t a, cleave_value_t b) {
  return cleave_lowering_emit(l, op, a, b, NONE);
}

static cleave_dtype_t stash_of(cleave_lowering_t *l) {
  cleave_dtype_t dtype = cleave_lowering_dtype(l, 0);
  if (dtype == CLEAVE_DTYPE_UNKNOWN) {
    cleave_lowering_refuse(l, "its element type is not known");
  }
  return dtype == CLEAVE_DTYPE_F64 ? CLEAVE_DTYPE_F64 : CLEAVE_DTYPE_F32;
}

static cleave_value_t mean_over(cleave_lowering_t *l, cleave_value_t x, const int64_t *axes, size_t count) {
  cleave_value_t mean = binary(l, "ReduceMean", x, cleave_lowering_ints(l, axes, count));
  cleave_lowering_set_int(l, "keepdims", 1);
  return mean;
}

/* 1 / sqrt(mean of squares + epsilon) */
static cleave_value_t inverse_deviation(cleave_lowering_t *l, cleave_value_t x, cleave_dtype_t stash,
                                        const int64_t *axes, size_t count) {
  double epsilon = cleave_op_float(l->source, l->node, "epsilon", 1e-5);
  cleave_value_t squares = mean_over(l, binary(l, "Mul", x, x), axes, count);
  cleave_value_t sum = binary(l, "Add", squares, cleave_lowering_number(l, stash, epsilon));
  return unary(l, "Reciprocal", unary(l, "Sqrt", sum));
}

/* The axes from `axis` on, counted from the back; 0 if the rank says not how many. */
static size_t last_axes(cleave_lowering_t *l, int64_t *axes) {
  int64_t axis = cleave_op_int(l->source, l->node, "axis", -1);
  int32_t rank = cleave_lowering_rank(l, 0);
  axis = axis >= 0 ? axis - rank : axis;
  if (axis >= 0 || axis < -CLEAVE_MAX_RANK || rank < 0) {
    cleave_lowering_refuse(l, "its rank is not known");
    return 0;
  }
  for (int64_t k = axis; k < 0; k++) {
    axes[k - axis] = k;
  }
  return (size_t)-axis;
}

void cleave_lower_layer_normalization(cleave_lowering_t *l) {
  int64_t axes[CLEAVE_MAX_RANK];
  size_t count = last_axes(l, axes);
  cleave_dtype_t dtype = cleave_lowering_dtype(l, 0);
  cleave_dtype_t stash = stash_of(l);
  cleave_value_t x = cleave_lowering_cast(l, cleave_lowering_input(l, 0), dtype, stash);
  cleave_value_t mean = mean_over(l, x, axes, count);
  cleave_value_t centred = binary(l, "Sub", x, mean);
  cleave_value_t inverse = inverse_deviation(l, centred, stash, axes, count);
  cleave_value_t y = cleave_lowering_cast(l, binary(l, "Mul", centred, inverse), stash, dtype);
  y = binary(l, "Mul", y, cleave_lowering_input(l, 1));
  cleave_value_t bias = cleave_lowering_input(l, 2);
  cleave_lowering_output(l, cleave_value_exists(bias) ? binary(l, "Add", y, bias) : y);
  uint32_t output_count = cleave_node_output_count(l->source, l->node);
  if (output_count > 1) {
    cleave_lowering_output(l, mean);
  }
  if (output_count > 2) {
    cleave_lowering_output(l, inverse);
  }
}

void cleave_lower_rms_normalization(cleave_lowering_t *l) {
  int64_t axes[CLEAVE_MAX_RANK];
  size_t count = last_axes(l, axes);
  cleave_dtype_t dtype = cleave_lowering_dtype(l, 0);
  cleave_dtype_t stash = stash_of(l);
  cleave_value_t x = cleave_lowering_cast(l, cleave_lowering_input(l, 0), dtype, stash);
  cleave_value_t y = binary(l, "Mul", x, inverse_deviation(l, x, stash, axes, count));
  y = cleave_lowering_cast(l, y, stash, dtype);
  cleave_lowering_output(l, binary(l, "Mul", y, cleave_lowering_input(l, 1)));
}

/* One number per channel, as it broadcasts to the data. */
static cleave_value_t per_channel(cleave_lowering_t *l, uint32_t index) {
  int64_t axes[CLEAVE_MAX_RANK];
  int32_t rank = cleave_lowering_rank(l, 0);
  for (int32_t d = 2; d < rank; d++) {
    axes[d - 2] = d - 1;
  }
  cleave_value_t value = cleave_lowering_input(l, index);
  return rank > 2 ? binary(l, "Unsqueeze", value, cleave_lowering_ints(l, axes, (size_t)rank - 2)) : value;
}

void cleave_lower_group_normalization(cleave_lowering_t *l) {
  static const int64_t last = -1;
  int64_t dims[3] = {0, cleave_op_int(l->source, l->node, "num_groups", 1), -1};
  cleave_dtype_t dtype = cleave_lowering_dtype(l, 0);
  cleave_dtype_t stash = stash_of(l);
  if (cleave_lowering_rank(l, 0) < 2) {
    cleave_lowering_refuse(l, "its rank is not known");
    return;
  }
  cleave_value_t x = cleave_lowering_input(l, 0);
  cleave_value_t y = cleave_lowering_cast(l, cleave_lowering_reshape(l, x, dims, 3), dtype, stash);
  y = binary(l, "Sub", y, mean_over(l, y, &last, 1));
  y = binary(l, "Mul", y, inverse_deviation(l, y, stash, &last, 1));
  y = cleave_lowering_cast(l, binary(l, "Reshape", y, unary(l, "Shape", x)), stash, dtype);
  cleave_lowering_output(l, binary(l, "Add", binary(l, "Mul", y, per_channel(l, 1)), per_channel(l, 2)));
}

/* Lowers, for inference, one with several element types: it is computed in float32 or float64. */
void cleave_lower_batch_normalization(cleave_lowering_t *l) {
  cleave_dtype_t dtype = cleave_lowering_dtype(l, 0);
  cleave_dtype_t stash = stash_of(l);
  cleave_value_t parts[5];
  if (cleave_node_output_count(l->source, l->node) != 1 ||
      cleave_op_int(l->source, l->node, "training_mode", 0) != 0 || cleave_lowering_rank(l, 0) < 2) {
    cleave_lowering_refuse(l, "it trains, or its rank is not known");
    return;
  }
  for (uint32_t k = 1; k < 5; k++) {
    parts[k] = cleave_lowering_cast(l, per_channel(l, k), cleave_lowering_dtype(l, k), stash);
  }
  double epsilon = cleave_op_float(l->source, l->node, "epsilon", 1e-5);
  cleave_value_t deviation =
      unary(l, "Sqrt", binary(l, "Add", parts[4], cleave_lowering_number(l, stash, epsilon)));
  cleave_value_t y = cleave_lowering_cast(l, cleave_lowering_input(l, 0), dtype, stash);
  y = binary(l, "Div", binary(l, "Sub", y, parts[3]), deviation);
  y = binary(l, "Add", binary(l, "Mul", y, parts[1]), parts[2]);
  cleave_lowering_output(l, cleave_lowering_cast(l, y, stash, dtype));
}

/* LSTM, GRU and RNN with layout 1: [batch, time, ...] goes in and out. */
void cleave_lower_recurrent(cleave_lowering_t *l) {
  static const int64_t swap[] = {1, 0, 2};
  static const int64_t sequence[] = {2, 0, 1, 3};
  const cleave_node_record_t *record = cleave_graph_node(l->source, l->node);
  cleave_value_t inputs[8];
  if (l->input_count > 8) {
    cleave_lowering_refuse(l, "it has too many inputs");
    return;
  }
  for (uint32_t k = 0; k < l->input_count; k++) {
    bool has_batch = k == 0 || k == 5 || k == 6; /* X, initial_h, initial_c */
    inputs[k] = l->inputs[k];
    if (has_batch && cleave_value_exists(inputs[k])) {
      inputs[k] = cleave_lowering_transpose(l, inputs[k], swap, 3);
    }
  }
  if (l->status == CLEAVE_OK) {
    l->status = cleave_graph_add_node(l->graph, record->op, NULL, inputs, l->input_count,
                                      record->output_count, &l->last, l->error);
  }
  for (uint32_t k = 0; k < record->attribute_count && l->status == CLEAVE_OK; k++) {
    l->status = cleave_graph_set_attribute(l->graph, l->last, &record->attributes[k], l->error);
  }
  cleave_lowering_set_int(l, "layout", 0);
  cleave_node_t node = l->last;
  for (uint32_t k = 0; k < record->output_count && l->status == CLEAVE_OK; k++) {
    cleave_value_t y = cleave_node_output(l->graph, node, k);
    cleave_lowering_output(
        l, k == 0 ? cleave_lowering_transpose(l, y, sequence, 4) : cleave_lowering_transpose(l, y, swap, 3));
  }
}

/* ---- attention ---- */

typedef struct heads {
  bool is_flat; /* [batch, length, heads * size] in place of [batch, heads, length, size] */
  int64_t queries;
  int64_t keys;
  int64_t size; /* of a head of queries and keys */
} heads_t;

static heads_t count_heads(cleave_lowering_t *l) {
  heads_t heads = {.is_flat = cleave_lowering_rank(l, 0) == 3};
  heads.queries =
      heads.is_flat ? cleave_op_int(l->source, l->node, "q_num_heads", -1) : cleave_lowering_dim(l, 0, 1);
  heads.keys =
      heads.is_flat ? cleave_op_int(l->source, l->node, "kv_num_heads", -1) : cleave_lowering_dim(l, 1, 1);
  int64_t width = cleave_lowering_dim(l, 0, heads.is_flat ? 2 : 3);
  heads.size = heads.is_flat && heads.queries > 0 && width > 0 ? width / heads.queries : width;
  if (cleave_lowering_rank(l, 0) < 3 || heads.queries <= 0 || heads.keys <= 0 || heads.size <= 0 ||
      heads.queries % heads.keys != 0 || heads.queries / heads.keys > 1024 || heads.queries > 1 << 16) {
    cleave_lowering_refuse(l, "the number of its heads, or their size, is not known");
  }
  return heads;
}

static cleave_value_t split_heads(cleave_lowering_t *l, const heads_t *heads, uint32_t index, int64_t count) {
  static const int64_t perm[] = {0, 2, 1, 3};
  int64_t dims[] = {0, 0, count, -1};
  cleave_value_t value = cleave_lowering_input(l, index);
  return heads->is_flat ? cleave_lowering_transpose(l, cleave_lowering_reshape(l, value, dims, 4), perm, 4)
                        : value;
}

/* Keys or values with those of earlier calls before them. */
static cleave_value_t with_past(cleave_lowering_t *l, cleave_value_t value, uint32_t past) {
  if (!cleave_value_exists(cleave_lowering_input(l, past))) {
    return value;
  }
  value = binary(l, "Concat", cleave_lowering_input(l, past), value);
  cleave_lowering_set_int(l, "axis", 2);
  return value;
}

/* One head of keys serves several neighbouring heads of queries. */
static cleave_value_t repeat_heads(cleave_lowering_t *l, const heads_t *heads, cleave_value_t value) {
  int64_t *places = cleave_arena_allocate(&l->graph->arena, (size_t)heads->queries, sizeof *places);
  if (places == NULL) {
    l->status = cleave_error_out_of_memory(l->error);
    return value;
  }
  if (heads->queries == heads->keys) {
    return value;
  }
  for (int64_t k = 0; k < heads->queries; k++) {
    places[k] = k / (heads->queries / heads->keys);
  }
  value = binary(l, "Gather", value, cleave_lowering_ints(l, places, (size_t)heads->queries));
  cleave_lowering_set_int(l, "axis", 1);
  return value;
}

static cleave_value_t masked_by(cleave_lowering_t *l, cleave_value_t scores, cleave_value_t allowed) {
  return cleave_lowering_emit(l, "Where", allowed, scores,
                              cleave_lowering_number(l, cleave_lowering_dtype(l, 0), -INFINITY));
}

/* Dimension `d` of a value of rank 4, as a scalar. */
static cleave_value_t size_of(cleave_lowering_t *l, cleave_value_t value, int64_t d) {
  return binary(l, "Gather", unary(l, "Shape", value),
                cleave_lowering_number(l, CLEAVE_DTYPE_I64, (double)d));
}

static cleave_value_t count_to(cleave_lowering_t *l, cleave_value_t size) {
  return cleave_lowering_emit(l, "Range", cleave_lowering_number(l, CLEAVE_DTYPE_I64, 0.0), size,
                              cleave_lowering_number(l, CLEAVE_DTYPE_I64, 1.0));
}

/* Query i sees keys up to i, and those of earlier calls. */
static cleave_value_t mask_future(cleave_lowering_t *l, cleave_value_t scores) {
  static const int64_t one = 1;
  cleave_value_t past = cleave_lowering_input(l, 4);
  cleave_value_t rows = count_to(l, size_of(l, scores, 2));
  cleave_value_t columns = count_to(l, size_of(l, scores, 3));
  rows = cleave_value_exists(past) ? binary(l, "Add", rows, size_of(l, past, 2)) : rows;
  rows = binary(l, "Unsqueeze", rows, cleave_lowering_ints(l, &one, 1));
  return masked_by(l, scores, binary(l, "LessOrEqual", columns, rows));
}

/* The rest of the keys of a batch is padding. */
static cleave_value_t mask_padding(cleave_lowering_t *l, cleave_value_t scores, cleave_value_t valid) {
  static const int64_t axes[] = {1, 2, 3};
  cleave_value_t columns = count_to(l, size_of(l, scores, 3));
  valid = binary(l, "Unsqueeze", valid, cleave_lowering_ints(l, axes, 3));
  return masked_by(l, scores, binary(l, "Less", columns, valid));
}

static cleave_value_t mask_scores(cleave_lowering_t *l, cleave_value_t scores) {
  cleave_value_t mask = cleave_lowering_input(l, 3);
  if (cleave_value_exists(mask)) {
    scores = cleave_lowering_dtype(l, 3) == CLEAVE_DTYPE_BOOL ? masked_by(l, scores, mask)
                                                              : binary(l, "Add", scores, mask);
  }
  cleave_value_t valid = cleave_lowering_input(l, 6);
  scores = cleave_value_exists(valid) ? mask_padding(l, scores, valid) : scores;
  return cleave_op_int(l->source, l->node, "is_causal", 0) != 0 ? mask_future(l, scores) : scores;
}

static cleave_value_t cap_scores(cleave_lowering_t *l, cleave_value_t scores) {
  double cap = cleave_op_float(l->source, l->node, "softcap", 0.0);
  if (cap == 0.0) {
    return scores;
  }
  cleave_value_t number = cleave_lowering_number(l, cleave_lowering_dtype(l, 0), cap);
  return binary(l, "Mul", unary(l, "Tanh", binary(l, "Div", scores, number)), number);
}

static cleave_value_t soft(cleave_lowering_t *l, cleave_value_t scores) {
  cleave_dtype_t dtype = cleave_lowering_dtype(l, 0);
  cleave_dtype_t precision = (cleave_dtype_t)cleave_op_int(l->source, l->node, "softmax_precision", dtype);
  cleave_value_t y = unary(l, "Softmax", cleave_lowering_cast(l, scores, dtype, precision));
  cleave_lowering_set_int(l, "axis", -1);
  return cleave_lowering_cast(l, y, precision, dtype);
}

void cleave_lower_attention(cleave_lowering_t *l) {
  static const int64_t perm[] = {0, 2, 1, 3};
  static const int64_t turned[] = {0, 1, 3, 2};
  static const int64_t flat[] = {0, 0, -1};
  heads_t heads = count_heads(l);
  (void)stash_of(l);
  if (l->reason != NULL) {
    return;
  }
  double scale = cleave_op_float(l->source, l->node, "scale", 1.0 / sqrt((double)heads.size));
  cleave_value_t steps[4]; /* by qk_matmul_output_mode */
  cleave_value_t q = split_heads(l, &heads, 0, heads.queries);
  cleave_value_t keys = with_past(l, split_heads(l, &heads, 1, heads.keys), 4);
  cleave_value_t values = with_past(l, split_heads(l, &heads, 2, heads.keys), 5);
  q = binary(l, "Mul", q, cleave_lowering_number(l, cleave_lowering_dtype(l, 0), scale));
  cleave_value_t k = cleave_lowering_transpose(l, repeat_heads(l, &heads, keys), turned, 4);
  steps[0] = binary(l, "MatMul", q, k);
  steps[1] = cap_scores(l, steps[0]);
  steps[2] = mask_scores(l, steps[1]);
  steps[3] = soft(l, steps[2]);
  cleave_value_t y = binary(l, "MatMul", steps[3], repeat_heads(l, &heads, values));
  y = heads.is_flat ? cleave_lowering_reshape(l, cleave_lowering_transpose(l, y, perm, 4), flat, 3) : y;
  int64_t mode = cleave_op_int(l->source, l->node, "qk_matmul_output_mode", 0);
  cleave_value_t outputs[] = {y, keys, values, steps[mode >= 0 && mode < 4 ? mode : 0]};
  uint32_t output_count = cleave_node_output_count(l->source, l->node);
  for (uint32_t o = 0; o < output_count && o < 4; o++) {
    cleave_lowering_output(l, outputs[o]);
  }
}
