// SPDX-License-Identifier: Apache-2.0
/*
 * Operators of ONNX Runtime (domain com.microsoft, docs/ContribOperators.md there) that its optimizer and the
 * builders of generative models write: the table, and the meanings of activations, normalisations and fused
 * products. Inputs and attributes that have no meaning in ONNX's operators are refused.
 */
#include <string.h>

#include "formats/onnx/read/onnx_maker.h"
#include "ops/ops.h"

#define NONE CLEAVE_ONNX_NONE
#define MAKE CLEAVE_MAKE

typedef cleave_onnx_maker_t maker_t;

/* ---- activations ---- */

static void gelu(maker_t *m) {
  cleave_value_t x = cleave_make_sum(m, cleave_make_input(m, 0), cleave_make_input(m, 1));
  cleave_make_output(m, 0, MAKE(m, "Gelu", x));
}

static void fast_gelu(maker_t *m) {
  cleave_value_t x = cleave_make_sum(m, cleave_make_input(m, 0), cleave_make_input(m, 1));
  cleave_value_t y = MAKE(m, "Gelu", x);
  cleave_make_text(m, "approximate", "tanh");
  cleave_make_output(m, 0, y);
}

static void quick_gelu(maker_t *m) {
  cleave_value_t y = MAKE(m, "Swish", cleave_make_input(m, 0));
  cleave_make_float(m, "alpha", cleave_onnx_call_float(m->call, "alpha", 1.702));
  cleave_make_output(m, 0, y);
}

/* Numbers of a fused activation: of FusedConv in one list, of FusedGemm in attributes. */
static double activation_number(const maker_t *m, uint32_t index, double fallback) {
  static const char *const names[] = {"activation_alpha", "activation_beta"};
  const cleave_attribute_t *list = cleave_onnx_call_attribute(m->call, "activation_params");
  if (list != NULL && list->kind == CLEAVE_ATTRIBUTE_FLOATS) {
    return index < list->count ? (double)list->floats[index] : fallback;
  }
  return cleave_onnx_call_float(m->call, names[index], fallback);
}

/* `activation` of the call, with its numbers, and the first output. */
static void finish_activated(maker_t *m, cleave_value_t x) {
  static const struct {
    const char *name;
    const char *numbers[2];
    double defaults[2];
  } known[] = {
      {"Relu", {NULL, NULL}, {0.0, 0.0}},
      {"Sigmoid", {NULL, NULL}, {0.0, 0.0}},
      {"Tanh", {NULL, NULL}, {0.0, 0.0}},
      {"LeakyRelu", {"alpha", NULL}, {0.01, 0.0}},
      {"Elu", {"alpha", NULL}, {1.0, 0.0}},
      {"HardSigmoid", {"alpha", "beta"}, {0.2, 0.5}},
      {"Softplus", {NULL, NULL}, {0.0, 0.0}},
      {"Softsign", {NULL, NULL}, {0.0, 0.0}},
      {"ThresholdedRelu", {"alpha", NULL}, {1.0, 0.0}},
  };
  const char *name = cleave_onnx_call_text(m->call, "activation", "");
  if (name[0] == '\0') {
    cleave_make_output(m, 0, x);
    return;
  }
  if (strcmp(name, "Clip") == 0) {
    cleave_make_output(m, 0,
                       MAKE(m, "Clip", x, cleave_make_number(m, x, activation_number(m, 0, 0.0)),
                            cleave_make_number(m, x, activation_number(m, 1, 0.0))));
    return;
  }
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    if (strcmp(known[k].name, name) == 0) {
      cleave_value_t y = MAKE(m, name, x);
      for (uint32_t n = 0; n < 2 && known[k].numbers[n] != NULL; n++) {
        cleave_make_float(m, known[k].numbers[n], activation_number(m, n, known[k].defaults[n]));
      }
      cleave_make_output(m, 0, y);
      return;
    }
  }
  cleave_make_refuse(m, "its activation is not known");
}

/* ---- products ---- */

/* Conv, plus a value of the same shape, then an activation. */
static void fused_conv(maker_t *m) {
  cleave_value_t y =
      MAKE(m, "Conv", cleave_make_input(m, 0), cleave_make_input(m, 1), cleave_make_input(m, 2));
  cleave_make_copy(m, "auto_pad dilations group kernel_shape pads strides");
  finish_activated(m, cleave_make_sum(m, y, cleave_make_input(m, 3)));
}

static void fused_gemm(maker_t *m) {
  cleave_value_t y =
      MAKE(m, "Gemm", cleave_make_input(m, 0), cleave_make_input(m, 1), cleave_make_input(m, 2));
  cleave_make_copy(m, "alpha beta transA transB");
  finish_activated(m, y);
}

/* An operand, its last two axes exchanged if the attribute says so. */
static cleave_value_t operand(maker_t *m, uint32_t index, const char *name) {
  cleave_value_t value = cleave_make_input(m, index);
  int32_t rank = cleave_make_rank(m, value);
  int64_t perm[CLEAVE_MAX_RANK];
  if (cleave_onnx_call_int(m->call, name, 0) == 0 || (rank >= 0 && rank < 2)) {
    return value;
  }
  if (rank < 0) {
    cleave_make_refuse(m, "the rank of an operand to transpose is not known");
    return value;
  }
  for (int32_t d = 0; d < rank; d++) {
    perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
  }
  return cleave_make_transpose(m, value, perm, (size_t)rank);
}

static void fused_matmul(maker_t *m) {
  cleave_make_expect(m, "transBatchA", 0);
  cleave_make_expect(m, "transBatchB", 0);
  cleave_value_t a = operand(m, 0, "transA");
  cleave_value_t b = operand(m, 1, "transB");
  cleave_value_t y = MAKE(m, "MatMul", a, b);
  double alpha = cleave_onnx_call_float(m->call, "alpha", 1.0);
  cleave_make_output(m, 0, alpha == 1.0 ? y : MAKE(m, "Mul", y, cleave_make_number(m, y, alpha)));
}

/* ---- normalisations ---- */

static cleave_value_t normalise(maker_t *m, const char *op, cleave_value_t x, cleave_value_t scale,
                                cleave_value_t bias, double epsilon) {
  cleave_value_t y = MAKE(m, op, x, scale, bias);
  cleave_make_float(m, "epsilon", cleave_onnx_call_float(m->call, "epsilon", epsilon));
  return y;
}

static void simplified_layer_norm(maker_t *m) {
  cleave_value_t y =
      normalise(m, "RMSNormalization", cleave_make_input(m, 0), cleave_make_input(m, 1), NONE, 1e-5);
  cleave_make_copy(m, "axis stash_type");
  cleave_make_output(m, 0, y);
}

/* Input, skip and bias together are normalised, and are the fourth output. */
static void skip_norm(maker_t *m, const char *op, cleave_value_t beta, uint32_t bias) {
  cleave_value_t sum = MAKE(m, "Add", cleave_make_input(m, 0), cleave_make_input(m, 1));
  sum = cleave_make_sum(m, sum, cleave_make_input(m, bias));
  cleave_make_output(m, 3, sum);
  cleave_make_output(m, 0, normalise(m, op, sum, cleave_make_input(m, 2), beta, 1e-12));
}

static void skip_layer_norm(maker_t *m) {
  skip_norm(m, "LayerNormalization", cleave_make_input(m, 3), 4);
}

static void skip_simplified_layer_norm(maker_t *m) {
  skip_norm(m, "RMSNormalization", NONE, 3);
}

/* Inputs of EmbedLayerNormalization. */
enum { IDS, SEGMENT_IDS, WORDS, PLACES, SEGMENTS, GAMMA, BETA, MASK, PLACE_IDS };

/* How many tokens of each row count; 0 without a mask. */
static cleave_value_t count_tokens(maker_t *m) {
  if (cleave_make_has(m, MASK)) {
    cleave_value_t count = MAKE(m, "ReduceSum", cleave_make_input(m, MASK), CLEAVE_MAKE_LIST(m, 1));
    cleave_make_int(m, "keepdims", 0);
    return count;
  }
  cleave_value_t zero = cleave_make_cast(m, cleave_make_index(m, 0), CLEAVE_DTYPE_I32);
  return MAKE(m, "Expand", zero, cleave_make_size(m, cleave_make_input(m, IDS), 0));
}

static void embed_layer_norm(maker_t *m) {
  cleave_make_expect(m, "mask_index_type", 0);
  cleave_value_t places = cleave_make_has(m, PLACE_IDS)
                              ? cleave_make_input(m, PLACE_IDS)
                              : cleave_make_range(m, cleave_make_size(m, cleave_make_input(m, IDS), 1));
  cleave_value_t sum = MAKE(m, "Gather", cleave_make_input(m, WORDS), cleave_make_input(m, IDS));
  sum = MAKE(m, "Add", sum, MAKE(m, "Gather", cleave_make_input(m, PLACES), places));
  if (cleave_make_has(m, SEGMENT_IDS)) {
    sum = MAKE(m, "Add", sum,
               MAKE(m, "Gather", cleave_make_input(m, SEGMENTS), cleave_make_input(m, SEGMENT_IDS)));
  }
  cleave_make_output(m, 2, sum);
  cleave_make_output(m, 0,
                     normalise(m, "LayerNormalization", sum, cleave_make_input(m, GAMMA),
                               cleave_make_input(m, BETA), 1e-12));
  if (cleave_onnx_call_output_used(m->call, 1)) {
    cleave_make_output(m, 1, count_tokens(m));
  }
}

/* ---- the table ---- */

static const struct {
  const char *names; /* with blanks between them */
  bool is_default;   /* ONNX Runtime writes it into the default domain, too */
  cleave_onnx_meaning_t meaning;
} meanings[] = {
    {"Gelu BiasGelu", false, gelu},
    {"FastGelu", false, fast_gelu},
    {"QuickGelu", false, quick_gelu},
    {"FusedConv", false, fused_conv},
    {"FusedGemm", false, fused_gemm},
    {"FusedMatMul TransposeMatMul", false, fused_matmul},
    {"SimplifiedLayerNormalization", true, simplified_layer_norm},
    {"SkipLayerNormalization", false, skip_layer_norm},
    {"SkipSimplifiedLayerNormalization", false, skip_simplified_layer_norm},
    {"EmbedLayerNormalization", false, embed_layer_norm},
    {"Attention", false, cleave_onnx_mean_attention},
    {"MultiHeadAttention", false, cleave_onnx_mean_multi_head_attention},
    {"GroupQueryAttention", false, cleave_onnx_mean_group_query_attention},
    {"RotaryEmbedding", false, cleave_onnx_mean_rotary_embedding},
    {"QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu", false, cleave_onnx_mean_q_linear},
    {"QLinearConcat", false, cleave_onnx_mean_q_linear_concat},
    {"QLinearGlobalAveragePool", false, cleave_onnx_mean_q_linear_pool},
    {"DynamicQuantizeMatMul", false, cleave_onnx_mean_dynamic_quantize_matmul},
    {"MatMulIntegerToFloat", false, cleave_onnx_mean_matmul_integer_to_float},
    {"QuantizeLinear DequantizeLinear", false, cleave_onnx_mean_quantize},
    {"GatherBlockQuantized", false, cleave_onnx_mean_gather_block_quantized},
};

cleave_onnx_meaning_t cleave_onnx_find_microsoft(const cleave_onnx_node_t *node) {
  bool is_default = node->domain[0] == '\0';
  if (!is_default &&
      (strcmp(node->domain, "com.microsoft") != 0 || cleave_op_find(node->domain, node->op_type) != NULL)) {
    return NULL; /* of another set, or of a library that brings it */
  }
  for (size_t k = 0; k < sizeof meanings / sizeof *meanings; k++) {
    if ((!is_default || meanings[k].is_default) && cleave_text_has_word(meanings[k].names, node->op_type)) {
      return meanings[k].meaning;
    }
  }
  return NULL;
}
