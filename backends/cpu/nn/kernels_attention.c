// SPDX-License-Identifier: Apache-2.0
// Attention (ONNX 24): softmax(softcap(scale Q K') + mask) V for every head. A block of queries of one head
// is an item of work; each thread has room for the scores of one block, so that they are never all there.
// Keys and values of earlier calls stay where they are: products run over both parts. A head of keys serves
// query_heads / key_heads neighbouring heads of queries. Keys beyond nonpad_kv_seqlen are never read. A few
// queries, as when a text is generated token by token, go through the keys one by one, which is as fast as
// memory is. A row without any key to look at is 0.
#include <math.h>
#include <string.h>

#include "cpu/common/gemm.h"
#include "cpu/common/nn.h"
#include "kernels/vector_math.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, VALID };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

// Queries of a block at most.
#define BLOCK_ROWS 64

// Queries that are few, and products of all scores that are: a short prompt, for which neither packing nor
// loading OpenBLAS pays.
#define FEW_ROWS 4
#define FEW_PRODUCTS (1 << 18)

// Products that are worth a second thread.
#define THREAD_WORK 100000

typedef struct attention_state {
  int64_t query_heads; /* 0: as the inputs have them */
  int64_t key_heads;
  int64_t
      output_mode; /* what output SCORES is: 0 the product, 1 after softcap, 2 after the mask, 3 softmax */
  bool is_causal;
  bool has_scale;
  double scale;
  double softcap; /* 0: none */
} attention_state_t;

/* One operand as matrices [length, size] per batch and head: strides in elements. */
typedef struct matrices {
  int64_t batch_stride;
  int64_t head_stride;
  int64_t row_stride;
} matrices_t;

typedef struct attention_plan {
  const attention_state_t *state;
  double scale;
  int64_t batch;
  int64_t query_heads;
  int64_t key_heads;
  int64_t queries;
  int64_t past; /* keys of earlier calls */
  int64_t keys; /* all */
  int64_t size;
  int64_t value_size;
  int64_t blocks; /* of queries, per head */
  int64_t slots;  /* threads, each with scores of its own */
  bool is_few;
  const cpu_tensor_t *valid; /* keys of each batch that count; NULL: all */
  matrices_t q;
  matrices_t k;
  matrices_t v;
  matrices_t y;
  int64_t mask_strides[4]; /* 0 if the mask broadcasts */
} attention_plan_t;

static cleave_status_t attention_prepare(cpu_prepare_t *prepare, void *opaque, cleave_message_t *message) {
  attention_state_t *state = opaque;
  const cleave_node_view_t *node = prepare->node;
  cleave_dtype_t mask = cpu_input_dtype(prepare, MASK);
  CPU_TRY(cpu_nn_require_float(prepare, Q, message));
  CPU_TRY(cpu_nn_require_same(prepare, K, V, message));
  CPU_TRY(cpu_nn_require_same(prepare, PAST_KEY, PAST_VALUE, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, SCORES, message));
  if (mask != CLEAVE_DTYPE_BOOL) {
    CPU_TRY(cpu_nn_require_same(prepare, MASK, MASK, message));
  }
  if ((cpu_input_dtype(prepare, PAST_KEY) == CLEAVE_DTYPE_UNKNOWN) !=
      (cpu_input_dtype(prepare, PAST_VALUE) == CLEAVE_DTYPE_UNKNOWN)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                       "expected past_key and past_value, found only one of them");
  }
  state->query_heads = cleave_view_int(node, "q_num_heads", 0);
  state->key_heads = cleave_view_int(node, "kv_num_heads", 0);
  state->output_mode = cleave_view_int(node, "qk_matmul_output_mode", 0);
  state->is_causal = cleave_view_int(node, "is_causal", 0) != 0;
  state->softcap = cleave_view_float(node, "softcap", 0);
  state->has_scale = cleave_view_attribute(node, "scale") != NULL;
  state->scale = cleave_view_float(node, "scale", 0);
  cleave_dtype_t valid = cpu_input_dtype(prepare, VALID);
  if (valid != CLEAVE_DTYPE_UNKNOWN && valid != CLEAVE_DTYPE_I64) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "nonpad_kv_seqlen is %s, expected int64",
                       cpu_dtype_name(valid));
  }
  if (valid != CLEAVE_DTYPE_UNKNOWN && (cpu_input_dtype(prepare, PAST_KEY) != CLEAVE_DTYPE_UNKNOWN ||
                                        cpu_output_dtype(prepare, SCORES) != CLEAVE_DTYPE_UNKNOWN)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                       "nonpad_kv_seqlen does not go with past_key or qk_matmul_output");
  }
  if (state->output_mode < 0 || state->output_mode > 3) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "qk_matmul_output_mode is %lld, expected 0 to 3",
                       (long long)state->output_mode);
  }
  return CLEAVE_OK;
}

// Sizes of one operand: [batch, heads, length, size] or, with the heads given, [batch, length, heads * size].
// Wide: three sizes that operands must agree in.
static cleave_status_t read_operand(const cpu_tensor_t *tensor, const char *name, int64_t heads,
                                    int64_t *out_heads, int64_t *out_length, int64_t *out_size,
                                    matrices_t *out, cleave_message_t *message) {
  const int64_t *dims = tensor->dims;
  if (tensor->rank == 4 && (heads < 1 || dims[1] == heads)) {
    *out_heads = dims[1];
    *out_length = dims[2];
    *out_size = dims[3];
    int64_t matrix = cpu_nn_multiply(dims[2], dims[3]);
    *out = (matrices_t){cpu_nn_multiply(dims[1], matrix), matrix, dims[3]};
    return CLEAVE_OK;
  }
  if (tensor->rank != 3 || heads < 1 || dims[2] % heads != 0) {
    return kernel_fail(
        message, CLEAVE_ERROR_SHAPE,
        "%s has rank %d and the number of heads is %lld, expected [batch, heads, length, size] or "
        "[batch, length, heads * size]",
        name, tensor->rank, (long long)heads);
  }
  *out_heads = heads;
  *out_length = dims[1];
  *out_size = dims[2] / heads;
  *out = (matrices_t){cpu_nn_multiply(dims[1], dims[2]), *out_size, dims[2]};
  return CLEAVE_OK;
}

static cleave_status_t check_past(const cpu_call_t *call, attention_plan_t *plan, cleave_message_t *message) {
  const cpu_tensor_t *key = cpu_input(call, PAST_KEY);
  const cpu_tensor_t *value = cpu_input(call, PAST_VALUE);
  if (key == NULL || value == NULL) {
    return CLEAVE_OK;
  }
  bool fits = key->rank == 4 && value->rank == 4 && key->dims[2] == value->dims[2] &&
              key->dims[3] == plan->size && value->dims[3] == plan->value_size;
  for (int32_t d = 0; fits && d < 2; d++) {
    int64_t expected = d == 0 ? plan->batch : plan->key_heads;
    fits = key->dims[d] == expected && value->dims[d] == expected;
  }
  if (!fits || key->dims[2] > INT64_MAX - plan->keys) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "past_key or past_value does not fit K and V");
  }
  plan->past = key->dims[2];
  plan->keys += plan->past;
  return CLEAVE_OK;
}

static cleave_status_t check_valid(const cpu_call_t *call, attention_plan_t *plan,
                                   cleave_message_t *message) {
  plan->valid = cpu_input(call, VALID);
  if (plan->valid == NULL) {
    return CLEAVE_OK;
  }
  if (plan->valid->rank != 1 || plan->valid->dims[0] != plan->batch) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "nonpad_kv_seqlen does not have a number for each batch");
  }
  for (int64_t b = 0; b < plan->batch && plan->valid->data != NULL; b++) {
    int64_t count = cpu_read_int(plan->valid, b);
    if (count < 0 || count > plan->keys) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                         "nonpad_kv_seqlen is %lld, expected 0 to %lld, the keys that there are",
                         (long long)count, (long long)plan->keys);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_mask(const cpu_call_t *call, attention_plan_t *plan, cleave_message_t *message) {
  const cpu_tensor_t *mask = cpu_input(call, MASK);
  const int64_t whole[4] = {plan->batch, plan->query_heads, plan->queries, plan->keys};
  int64_t step = 1;
  if (mask == NULL) {
    return CLEAVE_OK;
  }
  for (int32_t d = mask->rank - 1; d >= 0; d--) {
    int32_t at = 4 - mask->rank + d;
    if (at < 0 || (mask->dims[d] != 1 && mask->dims[d] != whole[at])) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                         "the mask does not broadcast to [%lld, %lld, %lld, %lld]", (long long)whole[0],
                         (long long)whole[1], (long long)whole[2], (long long)whole[3]);
    }
    plan->mask_strides[at] = mask->dims[d] == 1 ? 0 : step;
    step = cpu_nn_multiply(step, mask->dims[d]);
  }
  return CLEAVE_OK;
}

/* Keys that count, of the batch with the most; all while that is not known. */
static int64_t most_keys(const attention_plan_t *plan) {
  bool is_known = plan->valid != NULL && plan->valid->data != NULL;
  int64_t most = is_known ? 0 : plan->keys;
  for (int64_t b = 0; b < plan->batch && is_known; b++) {
    most = cpu_nn_max(most, cpu_read_int(plan->valid, b));
  }
  return most;
}

static cleave_status_t make_plan(const cpu_call_t *call, attention_plan_t *plan, cleave_message_t *message) {
  const attention_state_t *state = call->state;
  const cpu_tensor_t *q = call->inputs[Q];
  const cpu_tensor_t *k = call->inputs[K];
  const cpu_tensor_t *v = call->inputs[V];
  int64_t heads = 0;
  int64_t length = 0;
  int64_t size = 0;
  *plan = (attention_plan_t){.state = state};
  CPU_TRY(read_operand(q, "Q", state->query_heads, &plan->query_heads, &plan->queries, &plan->size, &plan->q,
                       message));
  CPU_TRY(read_operand(k, "K", state->key_heads, &plan->key_heads, &plan->keys, &size, &plan->k, message));
  CPU_TRY(read_operand(v, "V", state->key_heads, &heads, &length, &plan->value_size, &plan->v, message));
  plan->batch = q->dims[0];
  if (k->rank != q->rank || v->rank != q->rank || k->dims[0] != plan->batch || v->dims[0] != plan->batch ||
      size != plan->size || heads != plan->key_heads || length != plan->keys || plan->key_heads < 1 ||
      plan->query_heads % plan->key_heads != 0) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "Q, K and V do not fit together");
  }
  CPU_TRY(check_past(call, plan, message));
  CPU_TRY(check_valid(call, plan, message));
  CPU_TRY(check_mask(call, plan, message));
  plan->scale = state->has_scale ? state->scale : 1 / sqrt((double)cpu_nn_max(plan->size, 1));
  int64_t width = cpu_nn_multiply(plan->query_heads, plan->value_size);
  int64_t matrix = cpu_nn_multiply(plan->queries, plan->value_size);
  int64_t whole = cpu_nn_multiply(plan->queries, width);
  plan->y = q->rank == 3 ? (matrices_t){whole, plan->value_size, width}
                         : (matrices_t){whole, matrix, plan->value_size};
  plan->blocks = plan->queries / BLOCK_ROWS + (plan->queries % BLOCK_ROWS != 0 ? 1 : 0);
  int64_t rows = cpu_nn_min(plan->queries, BLOCK_ROWS);
  int64_t items = cpu_nn_multiply(cpu_nn_multiply(plan->batch, plan->query_heads), plan->blocks);
  int64_t products = cpu_nn_multiply(cpu_nn_multiply(cpu_nn_multiply(items, rows), plan->keys),
                                     cpu_nn_max(plan->size, plan->value_size));
  plan->is_few = plan->past == 0 && (rows <= FEW_ROWS || products <= FEW_PRODUCTS);
  int64_t work = cpu_nn_multiply(cpu_nn_multiply(items, rows),
                                 cpu_nn_multiply(most_keys(plan), plan->size + plan->value_size));
  plan->slots = cpu_nn_max(cpu_nn_min(cpu_nn_min(call->threads, items), work / THREAD_WORK), 1);
  return CLEAVE_OK;
}

static cleave_status_t set_shapes(const cpu_call_t *call, const attention_plan_t *plan,
                                  cleave_message_t *message) {
  const int64_t flat[] = {plan->batch, plan->queries, cpu_nn_multiply(plan->query_heads, plan->value_size)};
  const int64_t split[] = {plan->batch, plan->query_heads, plan->queries, plan->value_size};
  const int64_t key[] = {plan->batch, plan->key_heads, plan->keys, plan->size};
  const int64_t value[] = {plan->batch, plan->key_heads, plan->keys, plan->value_size};
  const int64_t scores[] = {plan->batch, plan->query_heads, plan->queries, plan->keys};
  bool is_flat = call->inputs[Q]->rank == 3;
  const int64_t *const shapes[] = {is_flat ? flat : split, key, value, scores};
  for (uint32_t k = Y; k <= SCORES; k++) {
    if (cpu_output(call, k) != NULL) {
      CPU_TRY(cpu_output_shape(call, k, k == Y && is_flat ? 3 : 4, shapes[k], message));
    }
  }
  return CLEAVE_OK;
}

#define EXP PICK(cpu_expf, exp)
#define TANH PICK(cpu_tanhf, tanh)
#define FOR_REALS "cpu/nn/attention.inc"
#include "cpu/common/for_reals.inc"

static size_t attention_scratch(const cpu_call_t *call) {
  return cpu_nn_scratch_float(call, Q, scratch_f32, scratch_f64);
}

static cleave_status_t attention_run(const cpu_call_t *call, cleave_message_t *message) {
  attention_plan_t plan;
  CPU_TRY(make_plan(call, &plan, message));
  CPU_TRY(set_shapes(call, &plan, message));
  return cpu_nn_run_float(call, message, Q, run_f32, run_f64);
}

static bool attention_multiplies(const cpu_call_t *call) {
  attention_plan_t plan;
  return make_plan(call, &plan, NULL) != CLEAVE_OK || !plan.is_few;
}

const cpu_kernel_t cpu_kernels_attention[] = {
    CPU_KERNEL("Attention", 3, .state_size = sizeof(attention_state_t), .prepare = attention_prepare,
               .scratch = attention_scratch, .run = attention_run, .multiplies = attention_multiplies),
    {.op = NULL},
};
