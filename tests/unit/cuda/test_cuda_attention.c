// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU: which kernel computes it, how it is shared out over blocks, and what it does not
// compute. That results are those of cpu is for the sweep (tests/conformance/subjects/sweep_attention.c) to
// say, except for float32 by tensor cores, which no node asks for by itself.
#include <math.h>

#include "cuda/emit/attention/attention.h"
#include "gpu_case.h"

/* ---- plans ---- */

enum { Q, K, V, Y, PRESENT_KEY, PRESENT_VALUE, SCORES, VALUES };

/* A region of one node with queries, keys and values as inputs; `outputs` of its outputs are there. */
typedef struct attention_case {
  int64_t batches, query_heads, key_heads, queries, keys, size, value_size;
  cleave_dtype_t dtype;
  uint32_t outputs;
  int64_t dims[VALUES][4];
  cleave_value_view_t values[VALUES];
  cleave_node_view_t node;
  cleave_region_view_t region;
  cuda_plan_t plan;
  cleave_message_t message;
} attention_case_t;

static cleave_status_t make_plan(attention_case_t *c, cuda_plan_options_t options) {
  static const uint32_t inputs[3] = {Q, K, V};
  static const uint32_t outputs[4] = {Y, PRESENT_KEY, PRESENT_VALUE, SCORES};
  const int64_t dims[VALUES][4] = {{c->batches, c->query_heads, c->queries, c->size},
                                   {c->batches, c->key_heads, c->keys, c->size},
                                   {c->batches, c->key_heads, c->keys, c->value_size},
                                   {c->batches, c->query_heads, c->queries, c->value_size},
                                   {c->batches, c->key_heads, c->keys, c->size},
                                   {c->batches, c->key_heads, c->keys, c->value_size},
                                   {c->batches, c->query_heads, c->queries, c->keys}};
  memcpy(c->dims, dims, sizeof dims);
  for (uint32_t v = 0; v < VALUES; v++) {
    const cleave_tensor_view_t tensor = {
        .size = sizeof tensor, .dtype = c->dtype, .rank = 4, .dims = c->dims[v]};
    c->values[v] = (cleave_value_view_t){
        .size = sizeof c->values[v], .name = "", .producer = v < Y ? CLEAVE_INDEX_NONE : 0, .tensor = tensor};
  }
  c->node = (cleave_node_view_t){.size = sizeof c->node,
                                 .op = "Attention",
                                 .domain = "",
                                 .name = "",
                                 .opset_version = 23,
                                 .input_count = 3,
                                 .output_count = c->outputs,
                                 .inputs = inputs,
                                 .outputs = outputs,
                                 .fusion = CLEAVE_INDEX_NONE};
  c->region = (cleave_region_view_t){.size = CLEAVE_REGION_VIEW_SIZE_REQUIRED,
                                     .name = "",
                                     .rule = "",
                                     .values = c->values,
                                     .nodes = &c->node,
                                     .value_count = VALUES,
                                     .node_count = 1,
                                     .input_count = 3,
                                     .inputs = inputs,
                                     .output_count = c->outputs,
                                     .outputs = outputs};
  cleave_status_t status = cuda_plan_init(&c->plan, &c->region, options, &c->message);
  return status == CLEAVE_OK ? cuda_emit_region(&c->plan) : status;
}

static attention_case_t case_of(cleave_dtype_t dtype, int64_t batches, int64_t queries, int64_t keys,
                                int64_t size) {
  return (attention_case_t){.batches = batches,
                            .query_heads = 12,
                            .key_heads = 12,
                            .queries = queries,
                            .keys = keys,
                            .size = size,
                            .value_size = size,
                            .dtype = dtype,
                            .outputs = 1};
}

/* Does the first kernel's text have this? */
static bool has_text(cleave_dtype_t dtype, cuda_plan_options_t options, const char *text) {
  attention_case_t c = case_of(dtype, 2, 128, 128, 64);
  ck_assert_msg(make_plan(&c, options) == CLEAVE_OK, "%s", c.message.text);
  ck_assert_uint_eq(c.plan.step_count, 1);
  ck_assert_ptr_nonnull(c.plan.steps[0].text);
  bool is_there = strstr(c.plan.steps[0].text, text) != NULL;
  cuda_plan_deinit(&c.plan);
  return is_there;
}

UNIT_TEST(tensor_cores_compute_it_where_they_are_and_where_rounding_is_allowed) {
  const cuda_plan_options_t none = {.tf32 = true};
  const cuda_plan_options_t exact = {.has_mma = true};
  const cuda_plan_options_t rounded = {.has_mma = true, .tf32 = true};
  ck_assert(has_text(CLEAVE_DTYPE_F16, exact, "mma.sync"));
  ck_assert(has_text(CLEAVE_DTYPE_F16, exact, "#define FORM 0"));
  ck_assert(has_text(CLEAVE_DTYPE_BF16, exact, "#define FORM 1"));
  ck_assert(has_text(CLEAVE_DTYPE_F32, rounded, "#define FORM 2"));
  ck_assert(!has_text(CLEAVE_DTYPE_F32, exact, "mma.sync"));
  ck_assert(!has_text(CLEAVE_DTYPE_F64, rounded, "mma.sync"));
  ck_assert(!has_text(CLEAVE_DTYPE_F16, none, "mma.sync"));
  ck_assert(!has_text(CLEAVE_DTYPE_BF16, none, "mma.sync"));
  ck_assert(!has_text(CLEAVE_DTYPE_F32, none, "mma.sync"));
}

UNIT_TEST(scores_have_no_memory) {
  static const cleave_dtype_t dtypes[] = {CLEAVE_DTYPE_F32, CLEAVE_DTYPE_F16};
  for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
    attention_case_t c = case_of(dtypes[k], 32, 512, 512, 64);
    ck_assert_msg(make_plan(&c, (cuda_plan_options_t){.is_dry = true, .has_mma = true}) == CLEAVE_OK, "%s",
                  c.message.text);
    ck_assert_uint_eq(c.plan.step_count, 1);
    ck_assert_uint_eq(c.plan.slot_count, VALUES);
    cuda_plan_deinit(&c.plan);
  }
}

UNIT_TEST(one_query_with_many_keys_is_shared_out_over_blocks) {
  attention_case_t c = case_of(CLEAVE_DTYPE_F16, 1, 1, 8192, 64);
  ck_assert_msg(make_plan(&c, (cuda_plan_options_t){.is_dry = true, .has_mma = true}) == CLEAVE_OK, "%s",
                c.message.text);
  ck_assert_uint_eq(c.plan.step_count, 2);
  ck_assert_uint_ge(c.plan.steps[0].grid, 100);
  ck_assert_int_le(c.plan.slots[VALUES].bytes, INT64_C(12) * 64 * (64 + 2) * 4);
  cuda_plan_deinit(&c.plan);
}

UNIT_TEST(keys_and_values_that_are_outputs_are_copied) {
  attention_case_t c = case_of(CLEAVE_DTYPE_F32, 1, 16, 16, 8);
  c.outputs = 3;
  ck_assert_msg(make_plan(&c, (cuda_plan_options_t){.is_dry = true}) == CLEAVE_OK, "%s", c.message.text);
  ck_assert_uint_eq(c.plan.step_count, 3);
  ck_assert_int_eq(c.plan.steps[0].kind, CUDA_STEP_COPY);
  ck_assert_int_eq(c.plan.steps[1].kind, CUDA_STEP_COPY);
  cuda_plan_deinit(&c.plan);
}

UNIT_TEST(scores_that_are_wanted_are_refused) {
  attention_case_t c = case_of(CLEAVE_DTYPE_F32, 1, 16, 16, 8);
  c.outputs = 4;
  ck_assert_int_eq(make_plan(&c, (cuda_plan_options_t){.is_dry = true}), CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_msg(strstr(c.message.text, "scores are wanted") != NULL, "%s", c.message.text);
  cuda_plan_deinit(&c.plan);
}

UNIT_TEST(operands_of_more_than_2_31_elements_have_indices_of_64_bits) {
  attention_case_t small = case_of(CLEAVE_DTYPE_F16, 1, 128, 128, 64);
  attention_case_t large = case_of(CLEAVE_DTYPE_F16, 64, 65536, 65536, 64);
  const cuda_plan_options_t options = {.has_mma = true};
  ck_assert_int_eq(make_plan(&small, options), CLEAVE_OK);
  ck_assert_int_eq(make_plan(&large, options), CLEAVE_OK);
  ck_assert_ptr_nonnull(strstr(small.plan.steps[0].text, "typedef i32 index;"));
  ck_assert_ptr_nonnull(strstr(large.plan.steps[0].text, "typedef i64 index;"));
  cuda_plan_deinit(&small.plan);
  cuda_plan_deinit(&large.plan);
}

/* ---- tiles ---- */

/* Bytes of shared memory, as the texts reckon them. */
static int64_t shared_bytes(const cuda_attention_t *a, const cuda_attention_tiles_t *t) {
  int64_t bytes = (int64_t)cleave_dtype_size(a->dtype);
  if (t->is_mma) {
    int64_t step = 32 / bytes;
    int64_t depth = (a->size + step - 1) / step * step;
    int64_t tile = t->keys * (depth + t->slice + 2 * (16 / bytes)) * bytes;
    int64_t join = t->key_warps > 1 ? t->query_warps * (t->slice / 8 * 4 + 4) * INT64_C(32 * 4) : 0;
    return tile > join ? tile : join;
  }
  int64_t size = a->dtype == CLEAVE_DTYPE_F64 ? 8 : 4;
  int64_t lanes = 16 / size;
  int64_t room = 32 * (t->rows + lanes + t->keys + lanes);
  ck_assert_int_ge(room, 4 * (int64_t)t->slice);
  return (room + t->keys * (t->rows + lanes)) * size;
}

static void check_tiles(const cuda_attention_t *a, const cuda_attention_tiles_t *t) {
  ck_assert_int_le(shared_bytes(a, t), 48 * 1024);
  ck_assert_int_le(t->threads, 256);
  ck_assert_int_eq(t->threads % 32, 0);
  ck_assert_int_le(t->slice, 256);
  ck_assert_int_ge((int64_t)t->slice * t->slices, a->value_size);
  ck_assert_int_lt((int64_t)t->slice * (t->slices - 1), a->value_size);
  ck_assert_int_ge(t->split * t->splits, a->keys);
  ck_assert_int_lt(t->split * (t->splits - 1), a->keys);
  ck_assert_int_eq(t->split % t->keys, 0);
  if (t->is_mma) {
    ck_assert_int_eq(t->rows, 16 * t->query_warps);
    ck_assert_int_eq(t->threads, 32 * t->query_warps * t->key_warps);
    ck_assert_int_eq(t->keys % (16 * t->key_warps), 0);
    ck_assert_int_eq(t->slice % (a->dtype == CLEAVE_DTYPE_F32 ? 8 : 16), 0);
  } else {
    ck_assert_int_eq(t->threads, t->rows / t->own_rows * 16);
    ck_assert_int_eq(t->slice % (16 * t->neighbours), 0);
  }
}

UNIT_TEST(tiles_fit_into_shared_memory_whatever_the_sizes_are) {
  static const int64_t sizes[] = {1, 8, 33, 64, 80, 128, 200, 256, 300, 512, 1000};
  static const int64_t lengths[] = {1, 5, 16, 40, 197, 1024, 5000};
  static const cleave_dtype_t dtypes[] = {CLEAVE_DTYPE_F16, CLEAVE_DTYPE_BF16, CLEAVE_DTYPE_F32,
                                          CLEAVE_DTYPE_F64};
  enum { SIZES = sizeof sizes / sizeof sizes[0], LENGTHS = sizeof lengths / sizeof lengths[0] };
  for (int k = 0; k < SIZES * SIZES * LENGTHS * LENGTHS * 4 * 2 * 2; k++) {
    int rest = k;
    const cuda_plan_t plan = {.options = {.has_mma = k % 2 == 0, .tf32 = true}};
    rest /= 2;
    const cuda_attention_t a = {.dtype = dtypes[rest % 4],
                                .batches = rest / 4 % 2 == 0 ? 1 : 32,
                                .query_heads = 12,
                                .key_heads = 4,
                                .size = sizes[rest / 8 % SIZES],
                                .value_size = sizes[rest / 8 / SIZES % SIZES],
                                .queries = lengths[rest / 8 / SIZES / SIZES % LENGTHS],
                                .keys = lengths[rest / 8 / SIZES / SIZES / LENGTHS % LENGTHS]};
    const cuda_attention_tiles_t tiles = cuda_attention_find_tiles(&plan, &a);
    check_tiles(&a, &tiles);
  }
}

/* ---- float32 by tensor cores ---- */

enum { HEADS = 2, QUERIES = 20, KEYS = 37, SIZE = 24, VALUE_SIZE = 12 };
static float q_data[HEADS * QUERIES * SIZE];
static float k_data[HEADS * KEYS * SIZE];
static float v_data[HEADS * KEYS * VALUE_SIZE];

static void fill(float *data, int count, uint32_t state) {
  for (int k = 0; k < count; k++) {
    state = state * 1664525u + 1013904223u;
    data[k] = (float)(state >> 8) / (float)(1 << 23) - 1.0f;
  }
}

static double expected_at(int head, int query, int column) {
  double scores[KEYS];
  double total = 0;
  double sum = 0;
  for (int k = 0; k < KEYS; k++) {
    scores[k] = 0;
    for (int d = 0; d < SIZE; d++) {
      scores[k] +=
          (double)q_data[(head * QUERIES + query) * SIZE + d] * (double)k_data[(head * KEYS + k) * SIZE + d];
    }
    double weight = exp(scores[k] / sqrt(SIZE));
    total += weight;
    sum += weight * (double)v_data[(head * KEYS + k) * VALUE_SIZE + column];
  }
  return sum / total;
}

/* The largest difference to what is expected. */
static double largest_error(const char *tf32) {
  static const int64_t q_dims[4] = {1, HEADS, QUERIES, SIZE};
  static const int64_t k_dims[4] = {1, HEADS, KEYS, SIZE};
  static const int64_t v_dims[4] = {1, HEADS, KEYS, VALUE_SIZE};
  const cleave_backend_option_t option = {.backend = "cuda", .key = "tf32", .value = tf32};
  const cleave_session_options_t options = {
      .size = sizeof options, .threads = 1, .backend_options = &option, .backend_option_count = 1};
  session_case_t c = session_case_create();
  cleave_value_t q = session_case_input(&c, "q", CLEAVE_DTYPE_F32, 4, q_dims);
  cleave_value_t k = session_case_input(&c, "k", CLEAVE_DTYPE_F32, 4, k_dims);
  cleave_value_t v = session_case_input(&c, "v", CLEAVE_DTYPE_F32, 4, v_dims);
  double largest = 0;
  session_case_output(&c, session_case_node(&c, "Attention", "y", q, k, v));
  session_case_infer(&c);
  session_case_partition(&c, "Attention", "cuda");
  session_case_feed(&c, 4, q_dims, q_data);
  session_case_feed(&c, 4, k_dims, k_data);
  session_case_feed(&c, 4, v_dims, v_data);
  session_case_compile(&c, &options);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 0);
  session_case_run(&c);
  for (int n = 0; n < HEADS * QUERIES * VALUE_SIZE; n++) {
    double wanted = expected_at(n / VALUE_SIZE / QUERIES, n / VALUE_SIZE % QUERIES, n % VALUE_SIZE);
    double difference = fabs((double)session_case_value(&c, 0, n) - wanted);
    largest = difference > largest ? difference : largest;
  }
  session_case_deinit(&c);
  return largest;
}

UNIT_TEST(float32_is_exact_and_rounded_to_tf32_if_that_is_asked_for) {
  gpu_case_stand_ins(NULL);
  fill(q_data, HEADS * QUERIES * SIZE, 1);
  fill(k_data, HEADS * KEYS * SIZE, 2);
  fill(v_data, HEADS * KEYS * VALUE_SIZE, 3);
  double exact = largest_error("0");
  double rounded = largest_error("1");
  ck_assert_msg(exact < 1e-6, "%g", exact);
  ck_assert_msg(rounded > 1e-5 && rounded < 1e-3, "%g", rounded);
}

UNIT_SUITE("cuda attention")
