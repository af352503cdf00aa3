// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX Runtime: small models with results that can be worked out by hand, and what is refused.
// Larger ones are compared with ONNX Runtime in tests/scripts/runs/test_onnxruntime.sh.
#include <stdio.h>

#include "onnx_builder.h"
#include "session_case.h"
#include "unit.h"

#define FLOATS(...) \
  (const float[]) { \
    __VA_ARGS__     \
  }

static void begin(onnx_builder_t *b) {
  onnx_begin(b, 10, 23);
  onnx_opset(b, "com.microsoft", 1);
}

// A node whose attributes follow.
static void put(onnx_builder_t *b, const char *op, const char *inputs, const char *outputs) {
  onnx_node(b, op, inputs, outputs);
  onnx_domain(b, "com.microsoft");
}

static void put_floats(onnx_builder_t *b, const char *name, const char *dims, size_t count,
                       const float *values) {
  onnx_floats(b, name, dims, values, count);
}

static void put_ints(onnx_builder_t *b, const char *name, const char *dims, int64_t value) {
  onnx_ints(b, name, dims, &value, 1);
}

// int32, as ONNX Runtime wants lengths; constants have int64.
static void put_int32(onnx_builder_t *b, const char *name, const char *dims, int64_t value) {
  put_ints(b, "wide", dims, value);
  onnx_node(b, "Cast", "wide", name);
  onnx_int(b, "to", CLEAVE_DTYPE_I32);
  onnx_end_node(b);
}

// Runs the model, whose constants say everything, and compares its outputs, one after the other.
static void expect(onnx_builder_t *b, const float *values, int64_t count) {
  session_case_t c = {0};
  unit_ok(onnx_read(b, &c.graph, e));
  session_case_infer(&c);
  session_case_compile(&c, NULL);
  session_case_run(&c);
  int64_t k = 0;
  for (uint32_t output = 0; output < c.graph->outputs.count; output++) {
    cleave_tensor_view_t view = session_case_view(&c, output);
    int64_t elements = 1;
    for (int32_t d = 0; d < view.rank; d++) {
      elements *= view.dims[d];
    }
    for (int64_t element = 0; element < elements; element++, k++) {
      ck_assert_int_lt(k, count);
      double found = view.dtype == CLEAVE_DTYPE_U8 ? (double)((const uint8_t *)view.data)[element]
                                                   : (double)session_case_value(&c, output, element);
      ck_assert_double_eq_tol(found, (double)values[k], 1e-5);
    }
  }
  ck_assert_int_eq(k, count);
  session_case_deinit(&c);
}

static void expect_activation(const char *op, const char *inputs, float expected) {
  onnx_builder_t b;
  begin(&b);
  put_floats(&b, "x", "1", 1, FLOATS(0.25f));
  put_floats(&b, "b", "1", 1, FLOATS(0.75f));
  put_floats(&b, "one", "1", 1, FLOATS(1));
  put(&b, op, inputs, "y");
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1");
  expect(&b, &expected, 1);
}

UNIT_TEST(activations_are_those_of_one) {
  expect_activation("Gelu", "one", 0.8413447f);
  expect_activation("BiasGelu", "x b", 0.8413447f);
  expect_activation("FastGelu", "x b", 0.8411920f);
  expect_activation("FastGelu", "one", 0.8411920f);
  expect_activation("QuickGelu", "one", 0.8457958f);
}

UNIT_TEST(a_fused_convolution_adds_and_then_clips) {
  onnx_builder_t b;
  begin(&b);
  put_floats(&b, "x", "1 1 1 3", 3, FLOATS(1, 2, 3));
  put_floats(&b, "w", "1 1 1 1", 1, FLOATS(2));
  put_floats(&b, "b", "1", 1, FLOATS(1));
  put_floats(&b, "z", "1 1 1 3", 3, FLOATS(-4, 0.5f, 0));
  put(&b, "FusedConv", "x w b z", "y");
  onnx_text(&b, "activation", "Clip");
  onnx_float_list(&b, "activation_params", FLOATS(0, 6), 2);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  expect(&b, FLOATS(0, 5.5f, 6), 3);
}

UNIT_TEST(fused_products_transpose_scale_and_activate) {
  onnx_builder_t b;
  begin(&b);
  put_floats(&b, "a", "2 1", 2, FLOATS(1, 2));
  put_floats(&b, "b", "2 2", 4, FLOATS(1, 2, 3, -4));
  put(&b, "FusedMatMul", "a b", "y");
  onnx_int(&b, "transA", 1);
  onnx_int(&b, "transB", 1);
  onnx_float(&b, "alpha", 0.5f);
  onnx_end_node(&b);
  put(&b, "FusedGemm", "a b", "z");
  onnx_int(&b, "transA", 1);
  onnx_text(&b, "activation", "LeakyRelu");
  onnx_float(&b, "activation_alpha", 0.5f);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  onnx_output(&b, "z", CLEAVE_DTYPE_F32, NULL);
  expect(&b, FLOATS(2.5f, -2.5f, 7, -3), 4);
}

UNIT_TEST(what_is_skipped_is_added_before_it_is_normalised) {
  onnx_builder_t b;
  begin(&b);
  put_floats(&b, "x", "1 1 2", 2, FLOATS(1, 3));
  put_floats(&b, "s", "1 1 2", 2, FLOATS(1, 1));
  put_floats(&b, "c", "2", 2, FLOATS(0, 2));
  put_floats(&b, "g", "2", 2, FLOATS(1, 2));
  put_floats(&b, "b", "2", 2, FLOATS(0, 1));
  put(&b, "SkipLayerNormalization", "x s g b c", "y - - t");
  onnx_end_node(&b);
  put(&b, "SkipSimplifiedLayerNormalization", "x s g c", "z - - u");
  onnx_end_node(&b);
  onnx_simple(&b, "SimplifiedLayerNormalization", "t g", "v");
  const char *outputs[] = {"y", "t", "z", "u", "v"};
  for (size_t k = 0; k < 5; k++) {
    onnx_output(&b, outputs[k], CLEAVE_DTYPE_F32, NULL);
  }
  expect(&b, FLOATS(-1, 3, 2, 6, 0.4472136f, 2.6832816f, 2, 6, 0.4472135f, 2.683281f), 10);
}

UNIT_TEST(embeddings_are_added_and_normalised) {
  onnx_builder_t b;
  begin(&b);
  put_int32(&b, "i", "1 1", 1);
  put_floats(&b, "w", "2 2", 4, FLOATS(9, 9, 1, 3));
  put_floats(&b, "p", "2 2", 4, FLOATS(1, 1, 9, 9));
  put_floats(&b, "g", "2", 2, FLOATS(1, 1));
  put(&b, "EmbedLayerNormalization", "i - w p - g g", "y - e");
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  onnx_output(&b, "e", CLEAVE_DTYPE_F32, NULL);
  expect(&b, FLOATS(0, 2, 2, 4), 4);
}

static void expect_turned(const char *domain, const char *inputs, int64_t interleaved,
                          const float *expected) {
  onnx_builder_t b;
  begin(&b);
  put_floats(&b, "x", "1 1 1 4", 4, FLOATS(1, 2, 3, 4));
  put_floats(&b, "c", "2 2", 4, FLOATS(9, 9, 0, 1));
  put_floats(&b, "s", "2 2", 4, FLOATS(9, 9, 1, 0));
  put_ints(&b, "p", "1 1", 1);
  put_ints(&b, "o", "1", 1);
  onnx_node(&b, "RotaryEmbedding", inputs, "y");
  onnx_domain(&b, domain);
  onnx_int(&b, "interleaved", interleaved);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  expect(&b, expected, 4);
}

UNIT_TEST(rotary_embeddings_turn_halves_or_neighbours) {
  expect_turned("com.microsoft", "x p c s", 0, FLOATS(-3, 2, 1, 4));
  expect_turned("com.microsoft", "x o c s", 0, FLOATS(-3, 2, 1, 4));
  expect_turned("com.microsoft", "x p c s", 1, FLOATS(-2, 1, 3, 4));
  expect_turned("", "x c s p", 0, FLOATS(-3, 2, 1, 4));
  expect_turned("", "x c s p", 1, FLOATS(-2, 1, 3, 4));
}

// Equal scores: what comes out is the mean of the values that count.
UNIT_TEST(attention_projects_and_looks_back) {
  onnx_builder_t b;
  begin(&b);
  put_floats(&b, "x", "1 2 1", 2, FLOATS(2, 4));
  put_floats(&b, "w", "1 3", 3, FLOATS(0, 0, 1));
  put(&b, "Attention", "x w", "y p");
  onnx_int(&b, "num_heads", 1);
  onnx_int(&b, "unidirectional", 1);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  onnx_output(&b, "p", CLEAVE_DTYPE_F32, NULL);
  expect(&b, FLOATS(2, 3, 0, 0, 2, 4), 6);
}

UNIT_TEST(heads_do_not_see_what_the_lengths_leave_out) {
  onnx_builder_t b;
  begin(&b);
  put_floats(&b, "q", "1 1 1", 1, FLOATS(1));
  put_floats(&b, "k", "1 3 1", 3, FLOATS(0, 0, 100));
  put_floats(&b, "v", "1 3 1", 3, FLOATS(1, 3, 50));
  put_int32(&b, "m", "1", 2);
  put(&b, "MultiHeadAttention", "q k v - m", "y");
  onnx_int(&b, "num_heads", 1);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  expect(&b, FLOATS(2), 1);
}

static void expect_groups(int64_t window, float expected) {
  onnx_builder_t b;
  begin(&b);
  put_floats(&b, "q", "1 1 1", 1, FLOATS(1));
  put_floats(&b, "k", "1 1 1", 1, FLOATS(0));
  put_floats(&b, "v", "1 1 1", 1, FLOATS(8));
  put_floats(&b, "r", "1 1 4 1", 4, FLOATS(0, 0, 9, 9));
  put_floats(&b, "s", "1 1 4 1", 4, FLOATS(1, 3, 7, 7));
  put_ints(&b, "two", "1", 2);
  put_ints(&b, "three", "1", 3);
  put(&b, "GroupQueryAttention", "q k v r s two three", "y - p");
  onnx_int(&b, "num_heads", 1);
  onnx_int(&b, "kv_num_heads", 1);
  onnx_int(&b, "local_window_size", window);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  onnx_output(&b, "p", CLEAVE_DTYPE_F32, NULL);
  expect(&b, (const float[]){expected, 1, 3, 8, 7}, 5);
}

UNIT_TEST(groups_write_behind_what_a_buffer_holds) {
  expect_groups(-1, 4);
  expect_groups(2, 5.5f);
}

UNIT_TEST(integers_are_computed_with_as_what_they_stand_for) {
  onnx_builder_t b;
  begin(&b);
  onnx_bytes(&b, "a", "1", (uint8_t[]){130}, 1);
  onnx_bytes(&b, "c", "1", (uint8_t[]){140}, 1);
  onnx_bytes(&b, "z", "", (uint8_t[]){128}, 1);
  onnx_bytes(&b, "o", "", (uint8_t[]){10}, 1);
  put_floats(&b, "half", "", 1, FLOATS(0.5f));
  put_floats(&b, "quarter", "", 1, FLOATS(0.25f));
  put_floats(&b, "one", "", 1, FLOATS(1));
  put(&b, "QLinearAdd", "a half z c quarter z one o", "sum");
  onnx_end_node(&b);
  put(&b, "QLinearConcat", "one o a half z c quarter z", "both");
  onnx_int(&b, "axis", 0);
  onnx_end_node(&b);
  onnx_bytes(&b, "w", "2 1", (uint8_t[]){1, 2}, 2);
  put_floats(&b, "x", "1 2", 2, FLOATS(255, 0));
  put(&b, "DynamicQuantizeMatMul", "x w half - one", "y");
  onnx_end_node(&b);
  onnx_output(&b, "sum", CLEAVE_DTYPE_U8, NULL);
  onnx_output(&b, "both", CLEAVE_DTYPE_U8, NULL);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  expect(&b, FLOATS(14, 11, 13, 128.5f), 4);
}

/* ---- refusals ---- */

// A node that reads x, whose shape is known, and w, whose shape is not. `attribute` has `value`; NULL: none.
static void refuse(const char *op, const char *inputs, const char *attribute, int64_t value,
                   const char *reason) {
  char message[200];
  onnx_builder_t b;
  begin(&b);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "1 2 4");
  onnx_input(&b, "w", CLEAVE_DTYPE_F32, NULL);
  put(&b, op, inputs, "y z");
  if (attribute != NULL) {
    onnx_int(&b, attribute, value);
  }
  onnx_int(&b, "num_heads", 2);
  onnx_int(&b, "kv_num_heads", 2);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  onnx_output(&b, "z", CLEAVE_DTYPE_F32, NULL);
  (void)snprintf(message, sizeof message, "model: node 'y': operator '%s' of opset 1: %s", op, reason);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED, message);
}

UNIT_TEST(what_has_no_meaning_in_onnx_is_refused) {
  refuse("FusedMatMul", "x x", "transBatchA", 1, "it is read with transBatchA = 0 alone");
  refuse("FusedMatMul", "x w", "transB", 1, "the rank of an operand to transpose is not known");
  refuse("SkipLayerNormalization", "x x x", NULL, 0, "it is not read with output 1");
  refuse("EmbedLayerNormalization", "x - x x - x x", "mask_index_type", 2,
         "it is read with mask_index_type = 0 alone");
  refuse("Attention", "x x", "do_rotary", 1, "it is read with do_rotary = 0 alone");
  refuse("Attention", "x w", NULL, 0,
         "the width of its weights is not known, or none of queries, keys and values");
  refuse("MultiHeadAttention", "x x w", NULL, 0,
         "expected queries of rank 3 with keys and values of rank 3, or of rank 4 without bias and past");
  refuse("MultiHeadAttention", "x x x - - - - - x", NULL, 0, "it is not read with input 8");
  refuse("MultiHeadAttention", "x x x - w", NULL, 0, "expected a mask of rank 1, 2 or 3");
  refuse("GroupQueryAttention", "x x x - - x x - - - - x", NULL, 0, "it is not read with input 11");
  refuse("GroupQueryAttention", "x - - - - x x", NULL, 0,
         "the width of its packed queries, keys and values is not known");
  refuse("GroupQueryAttention", "x x x - - x x w w", "do_rotary", 1,
         "how much of a head it turns is not known");
  refuse("RotaryEmbedding", "x w x x", NULL, 0, "expected positions of rank 1 or 2");
  refuse("QLinearConcat", "x x x", NULL, 0, "expected two inputs, then three for each of up to 64 parts");
  refuse("QLinearGlobalAveragePool", "x x x x x", "channels_last", 1,
         "it is read with channels_last = 0 alone");
}

UNIT_TEST(inputs_that_must_be_there_are_missed) {
  static const char *const ops[] = {
      "Gelu",       "FusedConv",          "FusedMatMul",          "SkipLayerNormalization",
      "Attention",  "MultiHeadAttention", "GroupQueryAttention",  "RotaryEmbedding",
      "QLinearAdd", "QLinearConcat",      "DynamicQuantizeMatMul"};
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
    onnx_builder_t b;
    cleave_graph_t *graph = NULL;
    begin(&b);
    put(&b, ops[k], "-", "y");
    onnx_int(&b, "num_heads", 2);
    onnx_int(&b, "kv_num_heads", 2);
    onnx_end_node(&b);
    onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
    cleave_error_t error = CLEAVE_ERROR_INIT;
    ck_assert_msg(onnx_read(&b, &graph, &error) != CLEAVE_OK, "%s", ops[k]);
    ck_assert_ptr_null(graph);
  }
}

UNIT_SUITE("onnx_microsoft")
