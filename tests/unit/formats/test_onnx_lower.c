// SPDX-License-Identifier: Apache-2.0
/*
 * Operators in operator sets that lack them: what is written reads back as the same graph, and the function
 * bodies, run as they stand, give what the operators give.
 */
#include <math.h>
#include <unistd.h>

#include "formats/onnx/onnx.h"
#include "graph/compare/structural_hash.h"
#include "ops/infer.h"
#include "script/model_script.h"
#include "session_case.h"
#include "system/file.h"
#include "unit.h"

/* A model script over x: float32[2, 6, 4, 4], s: float32[2, 4, 6] and axes: int64[1], all three or the first
 * two or one of them; `since` is the first operator set that needs no function for it. */
typedef struct lower_case {
  int32_t since;
  const char *text;
} lower_case_t;

#define X "local x = g.input('x', 'float32', { 2, 6, 4, 4 })\n"
#define S "local x = g.input('s', 'float32', { 2, 4, 6 })\n"
#define AXES X "local axes = g.input('axes', 'int64', { 1 })\n"
#define ATTENTION                                                                                          \
  "local q = g.input('q', 'float32', { 2, 4, 3, 8 })\nlocal k = g.input('k', 'float32', { 2, 2, 5, 8 })\n" \
  "local v = g.input('v', 'float32', { 2, 2, 5, 6 })\n"
#define FLAT                                                                                           \
  "local q = g.input('q', 'float32', { 2, 3, 32 })\nlocal k = g.input('k', 'float32', { 2, 5, 16 })\n" \
  "local v = g.input('v', 'float32', { 2, 5, 8 })\n"

static const lower_case_t cases[] = {
    {20, X "return g.Gelu(x)"},
    {20, X "return g.Gelu(x, { approximate = 'tanh' })"},
    {20, X "return g.Cast(g.Gelu(g.Cast(x, { to = 10 })), { to = 1 })"},
    {14, X "return g.HardSwish(x)"},
    {18, X "return g.Mish(x)"},
    {24, X "return g.Swish(x)"},
    {24, X "return g.Swish(x, { alpha = 1.75 })"},
    {17,
     X "return g.LayerNormalization(x, g.normal { 4, 4 }, g.normal { 4, 4 }, { axis = 2, epsilon = 0.125 })"},
    {17, X "return g.LayerNormalization(x, g.normal { 4 })"},
    {23, X "return g.RMSNormalization(x, g.normal { 6, 4, 4 }, { axis = 1 })"},
    {23, X "return g.Cast(g.RMSNormalization(g.Cast(x, { to = 10 }), g.Cast(g.normal { 4 }, { to = 10 })), { "
           "to = 1 })"},
    {21, X "return g.GroupNormalization(x, g.normal { 6 }, g.normal { 6 }, { num_groups = 3 })"},
    {15, X "return g.Shape(x, { start = 1, ['end'] = -1 })"},
    {18, S "return g.Split(x, { axis = -1, num_outputs = 4 })"},
    {18, AXES "return g.ReduceMean(x, axes), g.ReduceL1(x, axes, { keepdims = 0 }), g.ReduceL2(x, axes)"},
    {18,
     AXES "return g.ReduceLogSumExp(x, axes), g.ReduceSumSquare(x, axes), g.ReduceLogSum(g.Abs(x), axes)"},
    {18, X "return g.Pad(x, { 1, 2 }, 0.5, { -1 })"},
    {18, X "return g.Pad(x, { 1, 1, 2, 2 }, nil, { 3, 1 }, { mode = 'reflect' })"},
    {14, X "return g.Trilu(x), g.Trilu(x, 1, { upper = 0 }), g.Trilu(x, -2)"},
    {14, X "return g.Cast(g.Relu(g.Cast(x, { to = 6 })), { to = 1 })"},
    {14, X "return g.Cast(g.Mul(g.Cast(x, { to = 3 }), g.Cast(x, { to = 3 })), { to = 1 })"},
    {16, X "return g.Cast(g.LeakyRelu(g.Cast(x, { to = 16 })), { to = 1 })"},
    {20, X "return g.ReduceMax(g.Greater(x, 1.0), { 2, 3 })"},
    {15, X "return g.Cast(g.CastLike(x, g.constant({ 1 }, 'int32')), { to = 1 })"},
    {14, S "return g.GRU(x, g.normal { 1, 15, 6 }, g.normal { 1, 15, 5 }, { hidden_size = 5, layout = 1 })"},
    {14, S "return g.LSTM(x, g.normal { 1, 20, 6 }, g.normal { 1, 20, 5 }, nil, nil, g.normal { 2, 1, 5 },\n"
           "  g.normal { 2, 1, 5 }, { hidden_size = 5, layout = 1 })"},
    {23, ATTENTION "return g.Attention(q, k, v)"},
    {23, ATTENTION "return g.Attention(q, k, v, g.normal { 3, 5 }, { softcap = 2.0, scale = 0.25 })"},
    {23, ATTENTION "local mask = g.Greater(g.normal { 2, 1, 3, 5 }, -1.0)\n"
                   "return g.Attention(q, k, v, mask)"},
    {23, ATTENTION
     "return g.Attention(q, k, v, nil, g.normal { 2, 2, 7, 8 }, g.normal { 2, 2, 7, 6 }, { is_causal = 1 })"},
    {23, FLAT "return g.Attention(q, k, v, { q_num_heads = 4, kv_num_heads = 2, is_causal = 1 })"},
    {17, AXES "local n = g.Squeeze(g.Add(axes, 5), { 0 })\n"
              "return g.HannWindow(n), g.HammingWindow(n, { periodic = 0 }), g.BlackmanWindow(n)"},
    {17, AXES "return g.HannWindow(g.Squeeze(axes, { 0 }), { periodic = 0, output_datatype = 7 })"},
    {20, X "return g.AffineGrid(g.normal { 2, 2, 3 }, { 2, 3, 4, 5 })"},
    {20, X "local theta = g.Slice(g.Squeeze(g.Slice(x, { 0 }, { 1 }, { 2 }), { 2 }), { 0 }, { 2 }, { 1 })\n"
           "return g.AffineGrid(g.Slice(theta, { 0 }, { 3 }, { 2 }), { 2, 1, 1, 5 })"},
    {20, X "return g.AffineGrid(g.normal { 2, 3, 4 }, { 2, 3, 4, 1, 5 }, { align_corners = 1 })"},
    {18, X "return g.CenterCropPad(x, { 3, 5, 7, 3 }), g.CenterCropPad(x, { 9, 1 }, { axes = { -1, 1 } })"},
    {15, X "return g.Bernoulli(g.Sigmoid(x), { seed = 3.0 })"},
    /* no operator set has it */
    {99, X "local bytes = g.Cast(g.Abs(x * 16), { to = 2 })\n"
           "return g.Cast(g.UnpackBits(bytes, { bits = 4, count = 31, signed = 1 }), { to = 1 }),\n"
           "  g.Cast(g.UnpackBits(bytes, { axis = -1, bits = 2, count = 16, transposed = 1 }), { to = 1 }),\n"
           "  g.Cast(g.UnpackBits(bytes, { axis = 0, bits = 8, count = 3, signed = 1 }), { to = 1 })"},
    /* forms that older nodes have */
    {13, X "return g.ReduceMax(x, { 1, -1 }), g.Split(x, { axis = 1, num_outputs = 3 })"},
    {13, X "return g.Softmax(g.Clip(x, nil, 6.0), { axis = 1 }), g.Resize(x, nil, { 1.0, 1.0, 2.0, 2.0 })"},
};

static cleave_graph_t *load(const char *text) {
  cleave_graph_t *graph = NULL;
  char path[64];
  (void)snprintf(path, sizeof path, "/tmp/cleave_lower_%ld.lua", (long)getpid());
  unit_ok(cleave_file_write(path, text, strlen(text), e));
  unit_ok(cleave_model_script_load(NULL, path, NULL, 0, &graph, e));
  (void)unlink(path);
  return graph;
}

static uint64_t hash_of(const cleave_graph_t *graph) {
  uint64_t hash = 0;
  unit_ok(cleave_graph_hash(graph, &hash, e));
  return hash;
}

/* A session over the graph, which it takes, on the same drawn inputs each time; after a run. */
static session_case_t run_take(cleave_graph_t *graph) {
  session_case_t c = session_case_create();
  cleave_graph_destroy(c.graph);
  c.graph = graph;
  for (size_t k = 0; k < graph->inputs.count; k++) {
    const cleave_value_record_t *record = cleave_graph_value(graph, graph->inputs.items[k]);
    if (record->dtype == CLEAVE_DTYPE_I64) {
      session_case_feed_ints(&c, record->rank, record->dims, (int64_t[]){2});
      continue;
    }
    cleave_tensor_t *tensor = NULL;
    unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, record->rank, record->dims, &tensor, e));
    cleave_tensor_fill_normal(tensor, 7 + k, 0.0, 2.0);
    session_case_feed(&c, record->rank, record->dims, tensor->data);
    cleave_tensor_release(tensor);
  }
  session_case_compile(&c, NULL);
  session_case_run(&c);
  return c;
}

static double number(const cleave_tensor_view_t *view, int64_t k) {
  switch (view->dtype) {
    case CLEAVE_DTYPE_F32: return (double)((const float *)view->data)[k];
    case CLEAVE_DTYPE_I64: return (double)((const int64_t *)view->data)[k];
    case CLEAVE_DTYPE_BOOL: return (double)((const bool *)view->data)[k];
    default: ck_abort_msg("dtype %d", (int)view->dtype); return 0.0;
  }
}

/* All outputs are close: `tolerance` absolute and relative. */
static void expect_close(const session_case_t *found, const session_case_t *expected, double tolerance,
                         const char *text, int32_t opset) {
  ck_assert_uint_eq(found->graph->outputs.count, expected->graph->outputs.count);
  for (uint32_t o = 0; o < expected->graph->outputs.count; o++) {
    cleave_tensor_view_t a = session_case_view(found, o);
    cleave_tensor_view_t b = session_case_view(expected, o);
    ck_assert_int_eq(a.dtype, b.dtype);
    ck_assert_int_eq(cleave_view_element_count(&a), cleave_view_element_count(&b));
    for (int64_t k = 0; k < cleave_view_element_count(&b); k++) {
      double x = number(&a, k);
      double y = number(&b, k);
      ck_assert_msg(fabs(x - y) <= tolerance * (1.0 + fabs(y)), "%s in opset %d: output %u: %g, expected %g",
                    text, (int)opset, (unsigned)o, x, y);
    }
  }
}

/* The same model whose functions stand for nothing: readers run their bodies. Returns how many names were
 * changed. */
static size_t hide_operators(cleave_text_t *bytes) {
  static const char domain[] = CLEAVE_ONNX_OPERATOR_DOMAIN;
  size_t length = sizeof domain - 1;
  size_t count = 0;
  for (size_t k = 0; k + length <= bytes->length; k++) {
    if (memcmp(bytes->data + k, domain, length) == 0) {
      bytes->data[k] = 'X';
      count++;
    }
  }
  return count;
}

static void check_case(const lower_case_t *c, int32_t opset, const session_case_t *expected) {
  cleave_onnx_write_options_t options = {.opset_version = opset};
  cleave_infer_options_t infer = {0};
  cleave_text_t bytes = {0};
  cleave_graph_t *back = NULL;
  unit_ok(cleave_onnx_write_text(expected->graph, &options, &bytes, e));
  unit_ok(cleave_onnx_read_memory(bytes.data, bytes.length, "model", NULL, &back, e));
  unit_ok(cleave_graph_infer(back, &infer, NULL, e));
  ck_assert_msg(hash_of(back) == hash_of(expected->graph), "%s in opset %d comes back another", c->text,
                (int)opset);
  ck_assert_int_eq(back->opset_version, opset);
  cleave_graph_destroy(back);
  size_t hidden = hide_operators(&bytes);
  ck_assert_msg((hidden > 0) == (opset < c->since), "%s in opset %d: %zu functions", c->text, (int)opset,
                hidden);
  unit_ok(cleave_onnx_read_memory(bytes.data, bytes.length, "model", NULL, &back, e));
  unit_ok(cleave_graph_infer(back, &infer, NULL, e));
  session_case_t found = run_take(back);
  bool is_half = strstr(c->text, "to = 10") != NULL || strstr(c->text, "to = 16") != NULL;
  expect_close(&found, expected, is_half ? 1e-2 : 1e-5, c->text, opset);
  session_case_deinit(&found);
  cleave_text_deinit(&bytes);
}

UNIT_TEST(bodies_give_what_the_operators_give_in_every_opset) {
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    session_case_t expected = run_take(load(cases[k].text));
    for (int32_t opset = 13; opset <= 24; opset++) {
      check_case(&cases[k], opset, &expected);
    }
    session_case_deinit(&expected);
  }
}

UNIT_TEST(equal_bodies_are_one_function) {
  cleave_graph_t *graph = load(X "return g.Gelu(g.Gelu(x)), g.Gelu(x, { approximate = 'tanh' })");
  cleave_onnx_write_options_t options = {.opset_version = 17};
  cleave_text_t bytes = {0};
  unit_ok(cleave_onnx_write_text(graph, &options, &bytes, e));
  /* an import and a definition for each of two functions, three calls, and the import of the model */
  ck_assert_uint_eq(hide_operators(&bytes), 2 + 3 + 1);
  cleave_text_deinit(&bytes);
  cleave_graph_destroy(graph);
}

UNIT_TEST(attributes_that_came_later_go_if_they_say_what_is_the_case_anyway) {
  cleave_graph_t *graph =
      load(X
           "return g.Reshape(g.AveragePool(x, { kernel_shape = { 2, 2 }, dilations = { 1, 1 } }),\n"
           "  { 2, -1 }, { allowzero = 0 })");
  cleave_onnx_write_options_t options = {.opset_version = 13};
  cleave_text_t bytes = {0};
  cleave_graph_t *back = NULL;
  unit_ok(cleave_onnx_write_text(graph, &options, &bytes, e));
  unit_ok(cleave_onnx_read_memory(bytes.data, bytes.length, "model", NULL, &back, e));
  ck_assert_uint_eq(hide_operators(&bytes), 0);
  ck_assert_uint_eq(back->live_node_count, 2);
  ck_assert_uint_eq(cleave_graph_node(back, (cleave_node_t){0})->attribute_count, 1);
  ck_assert_uint_eq(cleave_graph_node(back, (cleave_node_t){1})->attribute_count, 0);
  cleave_text_deinit(&bytes);
  cleave_graph_destroy(graph);
  cleave_graph_destroy(back);
}

static void refuses(const char *text, int32_t opset, const char *message) {
  cleave_graph_t *graph = load(text);
  cleave_onnx_write_options_t options = {.opset_version = opset};
  cleave_text_t bytes = {0};
  unit_fails(cleave_onnx_write_text(graph, &options, &bytes, e), CLEAVE_ERROR_UNSUPPORTED, message);
  ck_assert_uint_eq(bytes.length, 0);
  cleave_text_deinit(&bytes);
  cleave_graph_destroy(graph);
}

UNIT_TEST(what_has_no_older_spelling_is_refused_with_the_opset_that_has_it) {
  refuses(X "return g.BitwiseNot(g.Cast(x, { to = 6 }))", 17,
          "node 'BitwiseNot_0': operator 'BitwiseNot' (opset 18) cannot be written in opset 17: it came with "
          "opset 18; "
          "opset 18 can");
  refuses(X "return g.AveragePool(x, { kernel_shape = { 2, 2 }, dilations = { 2, 2 } })", 13,
          "node 'AveragePool_0': operator 'AveragePool' (opset 22) cannot be written in opset 13: it is "
          "dilated; opset 19 "
          "can");
  refuses(X "return g.Resize(x, nil, { 1, 1, 0.5, 0.5 }, { antialias = 1, mode = 'linear' })", 17,
          "node 'Resize_0': operator 'Resize' (opset 19) cannot be written in opset 17: it has no attribute "
          "'antialias'; "
          "opset 18 can");
  refuses(AXES "return g.ReduceProd(x, axes)", 17,
          "node 'ReduceProd_0': operator 'ReduceProd' (opset 18) cannot be written in opset 17: its axes are "
          "not constant; "
          "opset 18 can");
  refuses(
      X "return g.QuantizeLinear(x, g.constant(0.5, 'float32'), g.constant(0, 'int16'))", 17,
      "node 'QuantizeLinear_0': operator 'QuantizeLinear' (opset 21) cannot be written in opset 17: it has "
      "no form for int16 'y'; opset 21 can");
}

UNIT_SUITE("onnx_lower")
