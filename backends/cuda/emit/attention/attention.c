// SPDX-License-Identifier: Apache-2.0
// Attention (ONNX 24): softmax(softcap(scale Q K') + mask) V for every head, as one kernel that never stores
// scores. Matrices are read where they lie, heads apart or side by side. Keys and values of earlier calls are
// put before the new ones first, as the node's outputs have them anyway.
#include "attention.h"

#include <math.h>

#include "kernels/convert.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, VALID };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

typedef struct reader {
  cuda_plan_t *plan;
  const cleave_node_view_t *node;
  cuda_attention_t *attention;
} reader_t;

static cuda_pointer_t input_of(const reader_t *self, uint32_t index) {
  bool is_there = cuda_input(self->plan, self->node, index) != NULL;
  return (cuda_pointer_t){is_there ? self->node->inputs[index] : CUDA_NO_SLOT, 0};
}

static cleave_status_t refuse_sizes(const reader_t *self) {
  return cuda_plan_refuse(self->plan, CLEAVE_REASON_SHAPE, "its operands do not fit together");
}

/* ---- what is given ---- */

static cleave_status_t check_dtypes(const reader_t *self) {
  for (uint32_t k = Q; k <= VALID; k++) {
    const cleave_tensor_view_t *tensor = cuda_input(self->plan, self->node, k);
    cleave_dtype_t dtype = k == VALID ? CLEAVE_DTYPE_I64 : self->attention->dtype;
    if (tensor != NULL && tensor->dtype != dtype && !(k == MASK && tensor->dtype == CLEAVE_DTYPE_BOOL)) {
      return cuda_plan_refuse(self->plan, CLEAVE_REASON_DTYPE, "its operands are not of one dtype");
    }
  }
  return cpu_dtype_is_float(self->attention->dtype)
             ? CLEAVE_OK
             : cuda_plan_refuse(self->plan, CLEAVE_REASON_DTYPE,
                                "its operands are not floating-point numbers");
}

/* [batch, heads, length, size], or [batch, length, heads * size] with the number of heads as an attribute. */
static cleave_status_t read_matrices(const reader_t *self, uint32_t index, int64_t heads,
                                     int64_t out_sizes[3], cuda_matrices_t *out_matrices) {
  const cleave_tensor_view_t *tensor = cuda_input(self->plan, self->node, index);
  if (tensor == NULL || tensor->rank != cuda_input(self->plan, self->node, Q)->rank ||
      tensor->dims[0] != self->attention->batches || (tensor->rank != 3 && tensor->rank != 4)) {
    return refuse_sizes(self);
  }
  const int64_t *dims = tensor->dims;
  bool is_flat = tensor->rank == 3;
  if (is_flat && (heads < 1 || dims[2] % heads != 0)) {
    return cuda_plan_refuse(self->plan, CLEAVE_REASON_SHAPE, "it does not say how many heads there are");
  }
  out_sizes[0] = is_flat ? heads : dims[1];
  out_sizes[1] = is_flat ? dims[1] : dims[2];
  out_sizes[2] = is_flat ? dims[2] / heads : dims[3];
  *out_matrices = (cuda_matrices_t){.at = input_of(self, index),
                                    .batch = cuda_product_of(dims + 1, tensor->rank - 1),
                                    .head = is_flat ? out_sizes[2] : dims[2] * dims[3],
                                    .row = is_flat ? dims[2] : dims[3]};
  return CLEAVE_OK;
}

static cleave_status_t read_operands(const reader_t *self) {
  cuda_attention_t *a = self->attention;
  int64_t query_heads = cleave_view_int(self->node, "q_num_heads", 0);
  int64_t key_heads = cleave_view_int(self->node, "kv_num_heads", 0);
  int64_t q[3];
  int64_t k[3];
  int64_t v[3];
  CUDA_TRY(read_matrices(self, Q, query_heads, q, &a->q));
  CUDA_TRY(read_matrices(self, K, key_heads, k, &a->k));
  CUDA_TRY(read_matrices(self, V, key_heads, v, &a->v));
  a->query_heads = q[0];
  a->queries = q[1];
  a->size = q[2];
  a->key_heads = k[0];
  a->keys = k[1];
  a->value_size = v[2];
  if (k[2] != a->size || v[0] != a->key_heads || v[1] != a->keys || a->key_heads < 1 ||
      a->query_heads % a->key_heads != 0) {
    return refuse_sizes(self);
  }
  int64_t width = a->query_heads * a->value_size;
  bool is_flat = cuda_input(self->plan, self->node, Q)->rank == 3;
  a->y = (cuda_matrices_t){.at = {self->node->outputs[Y], 0},
                           .batch = a->queries * width,
                           .head = is_flat ? a->value_size : a->queries * a->value_size,
                           .row = is_flat ? width : a->value_size};
  return CLEAVE_OK;
}

/* It broadcasts to [batch, heads, queries, all keys]. */
static cleave_status_t read_mask(const reader_t *self) {
  cuda_attention_t *a = self->attention;
  const cleave_tensor_view_t *mask = cuda_input(self->plan, self->node, MASK);
  const int64_t whole[4] = {a->batches, a->query_heads, a->queries, a->keys};
  int64_t stride = 1;
  a->mask = input_of(self, MASK);
  if (mask == NULL) {
    return CLEAVE_OK;
  }
  a->mask_dtype = mask->dtype;
  for (int32_t d = mask->rank - 1; d >= 0; d--) {
    int32_t at = 4 - mask->rank + d;
    if (at < 0 || (mask->dims[d] != 1 && mask->dims[d] != whole[at])) {
      return cuda_plan_refuse(self->plan, CLEAVE_REASON_SHAPE, "the mask does not broadcast to the scores");
    }
    a->mask_strides[at] = mask->dims[d] == 1 ? 0 : stride;
    stride *= mask->dims[d];
  }
  return CLEAVE_OK;
}

static cleave_status_t read_numbers(const reader_t *self) {
  cuda_attention_t *a = self->attention;
  double own = 1 / sqrt((double)(a->size > 1 ? a->size : 1));
  const cleave_tensor_view_t *valid = cuda_input(self->plan, self->node, VALID);
  a->is_causal = cleave_view_int(self->node, "is_causal", 0) != 0;
  a->scale =
      cleave_view_attribute(self->node, "scale") != NULL ? cleave_view_float(self->node, "scale", 0) : own;
  a->softcap = cleave_view_float(self->node, "softcap", 0);
  a->valid = input_of(self, VALID);
  if (!isfinite(a->scale) || !isfinite(a->softcap)) {
    return cuda_plan_refuse(self->plan, CLEAVE_REASON_ATTRIBUTE, "scale or softcap is not a finite number");
  }
  if (valid != NULL && (valid->rank != 1 || valid->dims[0] != a->batches || a->past > 0)) {
    return cuda_plan_refuse(self->plan, CLEAVE_REASON_SHAPE, "nonpad_kv_seqlen does not fit");
  }
  return CLEAVE_OK;
}

/* ---- keys and values of earlier calls ---- */

/* Rows `first` and following of a tensor [batch, heads of keys, all keys, size]. */
static cleave_status_t move_rows(const reader_t *self, const cuda_matrices_t *from, int64_t rows,
                                 int64_t first, int64_t size, uint32_t to) {
  const cuda_attention_t *a = self->attention;
  int64_t bytes = (int64_t)cleave_dtype_size(a->dtype);
  const cuda_move_t move = {.label = a->label,
                            .dtype = a->dtype,
                            .rank = 4,
                            .dims = {a->batches, a->key_heads, rows, size},
                            .from_strides = {from->batch, from->head, from->row, 1},
                            .to_strides = {a->key_heads * a->keys * size, a->keys * size, size, 1},
                            .from = from->at,
                            .to = {to, first * size * bytes}};
  return cuda_emit_move(self->plan, &move);
}

/* Joins what was there before and what is new, if the node wants both together, or the kernel reads both. */
static cleave_status_t join_past(const reader_t *self, uint32_t past, uint32_t output, int64_t size,
                                 cuda_matrices_t *matrices) {
  const cuda_attention_t *a = self->attention;
  bool is_wanted = cuda_output(self->plan, self->node, output) != NULL;
  uint32_t slot = is_wanted ? self->node->outputs[output] : CUDA_NO_SLOT;
  if (!is_wanted && a->past == 0) {
    return CLEAVE_OK;
  }
  if (!is_wanted) {
    int64_t count = a->batches * a->key_heads * a->keys * size;
    CUDA_TRY(cuda_plan_scratch(self->plan, count * (int64_t)cleave_dtype_size(a->dtype), &slot));
  }
  CUDA_TRY(move_rows(self, matrices, a->keys - a->past, a->past, size, slot));
  if (a->past == 0) {
    return CLEAVE_OK;
  }
  const cuda_matrices_t before = {.at = input_of(self, past),
                                  .batch = a->key_heads * a->past * size,
                                  .head = a->past * size,
                                  .row = size};
  CUDA_TRY(move_rows(self, &before, a->past, 0, size, slot));
  *matrices = (cuda_matrices_t){
      .at = {slot, 0}, .batch = a->key_heads * a->keys * size, .head = a->keys * size, .row = size};
  return CLEAVE_OK;
}

static cleave_status_t read_past(const reader_t *self) {
  cuda_attention_t *a = self->attention;
  const cleave_tensor_view_t *key = cuda_input(self->plan, self->node, PAST_KEY);
  const cleave_tensor_view_t *value = cuda_input(self->plan, self->node, PAST_VALUE);
  if ((key == NULL) != (value == NULL)) {
    return refuse_sizes(self);
  }
  if (key == NULL) {
    return CLEAVE_OK;
  }
  bool fits = key->rank == 4 && value->rank == 4 && key->dims[0] == a->batches &&
              value->dims[0] == a->batches && key->dims[1] == a->key_heads &&
              value->dims[1] == a->key_heads && key->dims[2] == value->dims[2] && key->dims[3] == a->size &&
              value->dims[3] == a->value_size;
  if (!fits) {
    return refuse_sizes(self);
  }
  a->past = key->dims[2];
  a->keys += a->past;
  return CLEAVE_OK;
}

cleave_status_t cuda_emit_attention(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *q = cuda_input(plan, node, Q);
  const cleave_tensor_view_t *y = cuda_output(plan, node, Y);
  if (q == NULL || q->rank < 1) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "it has no queries");
  }
  cuda_attention_t attention = {.label = node->op, .dtype = q->dtype, .batches = q->dims[0]};
  const reader_t self = {plan, node, &attention};
  if (cuda_output(plan, node, SCORES) != NULL) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its scores are wanted, which are nowhere in memory");
  }
  CUDA_TRY(check_dtypes(&self));
  CUDA_TRY(read_operands(&self));
  CUDA_TRY(read_past(&self));
  CUDA_TRY(read_mask(&self));
  CUDA_TRY(read_numbers(&self));
  CUDA_TRY(join_past(&self, PAST_KEY, PRESENT_KEY, attention.size, &attention.k));
  CUDA_TRY(join_past(&self, PAST_VALUE, PRESENT_VALUE, attention.value_size, &attention.v));
  int64_t count = y == NULL ? 0 : cleave_view_element_count(y);
  if (count == 0) {
    return CLEAVE_OK;
  }
  return attention.keys == 0
             ? cuda_emit_zeros(plan, node->op, attention.y.at, count * (int64_t)cleave_dtype_size(q->dtype))
             : cuda_attention_compute(plan, &attention);
}
