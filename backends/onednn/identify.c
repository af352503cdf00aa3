// SPDX-License-Identifier: Apache-2.0
// Which function of one number a group of nodes is. Exporters spell gelu, swish, mish or hard-swish in many
// orders; all of them agree as functions, so the group is evaluated in double precision on points that cover
// the curved part and both ends, and compared with the algorithms of oneDNN, times a constant. The closest
// pair of those algorithms, the two gelus, differ by 4.7e-4; the tolerance is a twentieth of that.
#include <math.h>
#include <string.h>

#include "analysis.h"

enum { POINTS = 30, MAX_GROUP = 24 };

static const double points[POINTS] = {-24,  -14, -9,   -6,   -4.5, -3.6, -3,   -2.5, -2,  -1.6,
                                      -1.2, -1,  -0.7, -0.4, -0.1, 0,    0.15, 0.35, 0.6, 0.85,
                                      1,    1.4, 1.9,  2,    2.6,  3.1,  3.9,  5.5,  11,  24};
enum { POINT_MINUS_ONE = 11, POINT_ZERO = 15, POINT_ONE = 20, POINT_TWO = 23, POINT_LAST = 29 };

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static double softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double clip(double x, double low, double high) {
  return fmin(fmax(x, low), high);
}

static double gelu_tanh(double x) {
  return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double gelu_erf(double x) {
  return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}

static double hard_swish(double x) {
  return x * clip(x + 3, 0, 6) / 6;
}

typedef enum numeric_op {
  OP_NONE,
  OP_ADD,
  OP_SUB,
  OP_MUL,
  OP_DIV,
  OP_POW,
  OP_MAX,
  OP_MIN,
  OP_SUM,
  OP_ABS,
  OP_CLIP,
  OP_ELU,
  OP_ERF,
  OP_EXP,
  OP_HARD_SIGMOID,
  OP_HARD_SWISH,
  OP_IDENTITY,
  OP_LEAKY_RELU,
  OP_LOG,
  OP_NEG,
  OP_RECIPROCAL,
  OP_RELU,
  OP_SIGMOID,
  OP_SOFTPLUS,
  OP_SQRT,
  OP_TANH
} numeric_op_t;

static const struct {
  const char *name;
  numeric_op_t op;
} numeric_names[] = {
    {"Abs", OP_ABS},
    {"Add", OP_ADD},
    {"Clip", OP_CLIP},
    {"Div", OP_DIV},
    {"Elu", OP_ELU},
    {"Erf", OP_ERF},
    {"Exp", OP_EXP},
    {"HardSigmoid", OP_HARD_SIGMOID},
    {"HardSwish", OP_HARD_SWISH},
    {"Identity", OP_IDENTITY},
    {"LeakyRelu", OP_LEAKY_RELU},
    {"Log", OP_LOG},
    {"Max", OP_MAX},
    {"Min", OP_MIN},
    {"Mul", OP_MUL},
    {"Neg", OP_NEG},
    {"Pow", OP_POW},
    {"Reciprocal", OP_RECIPROCAL},
    {"Relu", OP_RELU},
    {"Sigmoid", OP_SIGMOID},
    {"Softplus", OP_SOFTPLUS},
    {"Sqrt", OP_SQRT},
    {"Sub", OP_SUB},
    {"Sum", OP_SUM},
    {"Tanh", OP_TANH},
};

static numeric_op_t numeric_op(const cleave_node_view_t *node) {
  for (size_t k = 0; node->domain[0] == '\0' && k < sizeof(numeric_names) / sizeof(numeric_names[0]); k++) {
    if (strcmp(numeric_names[k].name, node->op) == 0) {
      return numeric_names[k].op;
    }
  }
  return OP_NONE;
}

bool onednn_pointwise_numeric(const cleave_node_view_t *node) {
  return numeric_op(node) != OP_NONE && node->input_count >= 1 && node->output_count == 1;
}

static double unary(const cleave_node_view_t *node, numeric_op_t op, double x) {
  switch (op) {
    case OP_ABS: return fabs(x);
    case OP_ELU: return x > 0 ? x : cleave_view_float(node, "alpha", 1) * expm1(x);
    case OP_ERF: return erf(x);
    case OP_EXP: return exp(x);
    case OP_HARD_SIGMOID:
      return clip(cleave_view_float(node, "alpha", 0.2) * x + cleave_view_float(node, "beta", 0.5), 0, 1);
    case OP_HARD_SWISH: return hard_swish(x);
    case OP_LEAKY_RELU: return x > 0 ? x : cleave_view_float(node, "alpha", 0.01) * x;
    case OP_LOG: return log(x);
    case OP_NEG: return -x;
    case OP_RECIPROCAL: return 1 / x;
    case OP_RELU: return fmax(x, 0);
    case OP_SIGMOID: return sigmoid(x);
    case OP_SOFTPLUS: return softplus(x);
    case OP_SQRT: return sqrt(x);
    case OP_TANH: return tanh(x);
    default: return x;
  }
}

static double binary(numeric_op_t op, double a, double b) {
  switch (op) {
    case OP_ADD:
    case OP_SUM: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_POW: return pow(a, b);
    case OP_MAX: return fmax(a, b);
    default: return fmin(a, b);
  }
}

typedef struct samples {
  double at[POINTS];
} samples_t;

// Values of one operand of a node: the input, an earlier node of the group, or a scalar constant.
static bool operand_samples(const onednn_analysis_t *analysis, const uint32_t *nodes, uint32_t done,
                            uint32_t input, uint32_t operand, const samples_t *computed, samples_t *out) {
  const cleave_value_view_t *value = &analysis->region->values[operand];
  double c = 0;
  if (operand == input) {
    memcpy(out->at, points, sizeof(points));
    return true;
  }
  for (uint32_t k = 0; k < done; k++) {
    if (nodes[k] == value->producer) {
      *out = computed[k];
      return true;
    }
  }
  if (!onednn_scalar(value, &c)) {
    return false;
  }
  for (int p = 0; p < POINTS; p++) {
    out->at[p] = c;
  }
  return true;
}

static bool clip_samples(const onednn_analysis_t *analysis, const cleave_node_view_t *node, samples_t *x) {
  double bounds[2] = {-INFINITY, INFINITY};
  for (uint32_t k = 0; k < 2; k++) {
    const cleave_value_view_t *bound = cleave_view_input(analysis->region, node, k + 1);
    if (bound != NULL && !onednn_scalar(bound, &bounds[k])) {
      return false;
    }
  }
  for (int p = 0; p < POINTS; p++) {
    x->at[p] = clip(x->at[p], bounds[0], bounds[1]);
  }
  return true;
}

static bool evaluate(const onednn_analysis_t *analysis, const uint32_t *nodes, uint32_t count, uint32_t input,
                     samples_t *computed) {
  for (uint32_t n = 0; n < count; n++) {
    const cleave_node_view_t *node = &analysis->region->nodes[nodes[n]];
    numeric_op_t op = numeric_op(node);
    samples_t *result = &computed[n];
    if (op == OP_NONE || node->inputs[0] == CLEAVE_INDEX_NONE ||
        !operand_samples(analysis, nodes, n, input, node->inputs[0], computed, result)) {
      return false;
    }
    if (op == OP_CLIP) {
      if (!clip_samples(analysis, node, result)) {
        return false;
      }
      continue;
    }
    bool is_binary = op <= OP_SUM;
    if (is_binary == (node->input_count < 2) && op != OP_SUM && op != OP_MAX && op != OP_MIN) {
      return false;
    }
    for (uint32_t k = 1; is_binary && k < node->input_count; k++) {
      samples_t other;
      if (node->inputs[k] == CLEAVE_INDEX_NONE ||
          !operand_samples(analysis, nodes, n, input, node->inputs[k], computed, &other)) {
        return false;
      }
      for (int p = 0; p < POINTS; p++) {
        result->at[p] = binary(op, result->at[p], other.at[p]);
      }
    }
    for (int p = 0; !is_binary && p < POINTS; p++) {
      result->at[p] = unary(node, op, result->at[p]);
    }
  }
  return true;
}

static double candidate(dnnl_alg_kind_t algorithm, double x, double alpha) {
  switch (algorithm) {
    case dnnl_eltwise_gelu_erf: return gelu_erf(x);
    case dnnl_eltwise_gelu_tanh: return gelu_tanh(x);
    case dnnl_eltwise_hardswish: return hard_swish(x);
    case dnnl_eltwise_mish: return x * tanh(softplus(x));
    case dnnl_eltwise_swish: return x * sigmoid(alpha * x);
    case dnnl_eltwise_square: return x * x;
    case dnnl_eltwise_relu: return x > 0 ? x : alpha * x;
    case dnnl_eltwise_pow: return pow(x, alpha);
    default: return x;
  }
}

static bool agrees(const samples_t *f, dnnl_alg_kind_t algorithm, double alpha, double scale) {
  for (int p = 0; p < POINTS; p++) {
    double g = scale * candidate(algorithm, points[p], alpha);
    if (!(fabs(f->at[p] - g) <= 2e-5 * fabs(scale) * (1 + fabs(g / scale)))) {
      return false;
    }
  }
  return true;
}

// The parameter that an algorithm would need to go through the samples; 0 for those without one.
static double parameter(dnnl_alg_kind_t algorithm, const samples_t *f, double scale) {
  if (algorithm == dnnl_eltwise_swish) {
    double s = f->at[POINT_ONE] / scale;
    return s > 0 && s < 1 ? log(s / (1 - s)) : NAN;
  }
  if (algorithm == dnnl_eltwise_relu) {
    return -f->at[POINT_MINUS_ONE] / scale;
  }
  return algorithm == dnnl_eltwise_pow ? 3 : 0;
}

bool onednn_pointwise_group(const onednn_analysis_t *analysis, const uint32_t *nodes, uint32_t count,
                            uint32_t input, uint32_t output, onednn_kernel_t *kernel) {
  static const dnnl_alg_kind_t algorithms[] = {
      dnnl_eltwise_linear,    dnnl_eltwise_gelu_erf, dnnl_eltwise_gelu_tanh,
      dnnl_eltwise_hardswish, dnnl_eltwise_mish,     dnnl_eltwise_swish,
      dnnl_eltwise_square,    dnnl_eltwise_relu,     dnnl_eltwise_pow,
  };
  samples_t computed[MAX_GROUP];
  if (count == 0 || count > MAX_GROUP || !evaluate(analysis, nodes, count, input, computed) ||
      analysis->region->values[output].producer != nodes[count - 1]) {
    return false;
  }
  const samples_t *f = &computed[count - 1];
  for (size_t k = 0; k < sizeof(algorithms) / sizeof(algorithms[0]); k++) {
    // At 24 every one of the swish family is its argument to 1e-8; the others have no parameter.
    int at = algorithms[k] == dnnl_eltwise_swish ? POINT_LAST : POINT_TWO;
    double scale = f->at[at] / candidate(algorithms[k], points[at], 3);
    double alpha = parameter(algorithms[k], f, scale);
    if (!isfinite(scale) || scale == 0 || !isfinite(alpha) || !agrees(f, algorithms[k], alpha, scale)) {
      continue;
    }
    if (fabs(scale - 1) < 1e-5) {
      scale = 1;
    }
    onednn_post_t post = {.kind = ONEDNN_POST_ELTWISE,
                          .algorithm = algorithms[k],
                          .alpha = algorithms[k] == dnnl_eltwise_pow || algorithms[k] == dnnl_eltwise_linear
                                       ? 1.0F
                                       : (float)alpha,
                          .beta = algorithms[k] == dnnl_eltwise_pow ? (float)alpha : 0.0F,
                          .operand = CLEAVE_INDEX_NONE,
                          .node = nodes[0]};
    return onednn_post_append(kernel, post) && onednn_post_linear(kernel, scale, 0, nodes[0]);
  }
  return false;
}
