// SPDX-License-Identifier: Apache-2.0
// The operators that are a primitive or a view of their own, and what of each oneDNN can do. Pointwise
// operators are in pointwise.c. Shapes may be partly unknown here: only what is known can refuse.
#include "onednn/analysis/operators.h"

#include <string.h>

#include "cpu/recurrent/recurrent.h"
#include "onednn/analysis/quantization.h"
#include "onednn/units/windows.h"

typedef const onednn_analysis_t analysis_t;
typedef const cleave_node_view_t node_t;

static cleave_status_t refuse(analysis_t *analysis, node_t *node, const char *why) {
  return kernel_fail(analysis->message, CLEAVE_ERROR_UNSUPPORTED, "%s '%s': %s", node->op,
                     onednn_node_name(node), why);
}

static onednn_shape_t input_shape(analysis_t *analysis, node_t *node, uint32_t index) {
  const cleave_value_view_t *value = cleave_view_input(analysis->region, node, index);
  onednn_shape_t unknown = {.rank = -1, .dims = {0}};
  return value != NULL ? onednn_shape_of(value) : unknown;
}

static bool used(analysis_t *analysis, node_t *node, uint32_t output) {
  const cleave_value_view_t *value = cleave_view_output(analysis->region, node, output);
  return value != NULL && (value->is_output || onednn_use_count(analysis, node->outputs[output]) > 0);
}

static cleave_status_t check_convolution(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  onednn_shape_t x = input_shape(analysis, node, 0);
  onednn_shape_t w = input_shape(analysis, node, 1);
  if (node->input_count < 2 || w.rank < 0) {
    return refuse(analysis, node, "the rank of its weights is unknown");
  }
  if (w.rank < 3 || w.rank > 5 || (x.rank >= 0 && x.rank != w.rank)) {
    return refuse(analysis, node, "expected one to three spatial dimensions, the same in data and weights");
  }
  if (!onednn_shape_known(&w)) {
    return refuse(analysis, node, "the shape of its weights is unknown");
  }
  int64_t groups = cleave_view_int(node, "group", 1);
  if (groups < 1 || w.dims[0] % groups != 0) {
    return refuse(analysis, node, "its group does not divide the channels");
  }
  const cleave_value_view_t *bias = cleave_view_input(analysis->region, node, 2);
  if (bias != NULL && bias->tensor.rank != 1) {
    return refuse(analysis, node, "its bias is not a vector");
  }
  kernel->weights = node->inputs[1];
  ONEDNN_TRY(onednn_window_check(node, w.rank - 2, analysis->message));
  onednn_shape_t out = onednn_shape_of(&analysis->region->values[node->outputs[0]]);
  onednn_window_t window;
  if (onednn_node_is(node, "ConvTranspose") && onednn_shape_known(&x) && onednn_shape_known(&out)) {
    return onednn_window_transposed(node, w.dims + 2, &x, &out, &window, analysis->message);
  }
  return CLEAVE_OK;
}

static cleave_status_t check_matmul(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  onednn_shape_t a = input_shape(analysis, node, 0);
  onednn_shape_t b = input_shape(analysis, node, 1);
  if (a.rank == 0 || b.rank == 0) {
    return refuse(analysis, node, "an operand is a scalar");
  }
  if (a.rank < 0 && b.rank < 0) {
    return refuse(analysis, node, "the ranks of both operands are unknown");
  }
  kernel->weights = node->inputs[1];
  return CLEAVE_OK;
}

static cleave_status_t check_gemm(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  onednn_shape_t a = input_shape(analysis, node, 0);
  onednn_shape_t b = input_shape(analysis, node, 1);
  if ((a.rank >= 0 && a.rank != 2) || (b.rank >= 0 && b.rank != 2)) {
    return refuse(analysis, node, "expected matrices");
  }
  double alpha = cleave_view_float(node, "alpha", 1);
  double beta = cleave_view_float(node, "beta", 1);
  uint32_t index = kernel->node;
  kernel->weights = node->inputs[1];
  const cleave_value_view_t *c = cleave_view_input(analysis->region, node, 2);
  if (c == NULL || beta == 0) {
    kernel->input_scale = (float)alpha;
    return CLEAVE_OK;
  }
  onednn_shape_t out = onednn_shape_of(&analysis->region->values[node->outputs[0]]);
  onednn_shape_t shape = onednn_shape_of(c);
  if (shape.rank > 2 || !onednn_shape_fits(&shape, &out)) {
    return refuse(analysis, node, "its C does not broadcast to the product");
  }
  // alpha AB + beta C = beta (alpha / beta AB + C): the outer factors fold into packed weights.
  double scalar = 0;
  kernel->input_scale = (float)(alpha / beta);
  onednn_post_t add = {
      .kind = ONEDNN_POST_BINARY, .algorithm = dnnl_binary_add, .operand = node->inputs[2], .node = index};
  bool fits = onednn_scalar(c, &scalar) ? onednn_post_linear(kernel, 1, scalar, index)
                                        : onednn_post_append(kernel, add);
  return fits && onednn_post_linear(kernel, beta, 0, index) ? CLEAVE_OK
                                                            : refuse(analysis, node, "too many post-ops");
}

static cleave_status_t check_pooling(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  onednn_shape_t x = input_shape(analysis, node, 0);
  if (x.rank < 0) {
    return refuse(analysis, node, "the rank of its input is unknown");
  }
  if (x.rank < 3 || x.rank > 5) {
    return refuse(analysis, node, "expected one to three spatial dimensions");
  }
  if (strncmp(node->op, "Global", 6) == 0) {
    return CLEAVE_OK;
  }
  if (used(analysis, node, 1)) {
    return refuse(analysis, node, "its indices are used");
  }
  bool average = onednn_node_is(node, "AveragePool");
  if (average && cleave_view_int(node, "ceil_mode", 0) != 0 &&
      cleave_view_int(node, "count_include_pad", 0) != 0) {
    return refuse(analysis, node, "ceil_mode and count_include_pad are both set");
  }
  return onednn_window_check(node, x.rank - 2, analysis->message);
}

static cleave_status_t check_reduction(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  onednn_shape_t x = input_shape(analysis, node, 0);
  bool axes[CLEAVE_MAX_RANK] = {false};
  if (x.rank < 0) {
    return refuse(analysis, node, "the rank of its input is unknown");
  }
  if (!onednn_reduced_axes(analysis->region, node, x.rank, axes)) {
    return refuse(analysis, node, "its axes are not constant");
  }
  bool spatial = x.rank >= 3 && x.rank <= 5 && !axes[0] && !axes[1];
  bool powers = onednn_node_is(node, "ReduceL1") || onednn_node_is(node, "ReduceL2") ||
                onednn_node_is(node, "ReduceSumSquare");
  int count = 0;
  for (int32_t d = 0; d < x.rank; d++) {
    spatial = spatial && (d < 2 || axes[d]);
    // A sum of one element is a view, unless the element changes.
    count += axes[d] && !(powers && x.dims[d] == 1) ? 1 : 0;
  }
  if (count == 0) {
    return refuse(analysis, node, "nothing to reduce");
  }
  if (x.rank > 6) {
    return refuse(analysis, node, "expected at most rank 6");
  }
  if (spatial && (onednn_node_is(node, "ReduceMean") || onednn_node_is(node, "ReduceMax"))) {
    kernel->kind = ONEDNN_POOLING;
  }
  return CLEAVE_OK;
}

static cleave_status_t check_softmax(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  onednn_shape_t x = input_shape(analysis, node, 0);
  if (x.rank < 0) {
    return refuse(analysis, node, "the rank of its input is unknown");
  }
  bool flattens = node->opset_version < 13;
  int32_t axis = onednn_axis(cleave_view_int(node, "axis", flattens ? 1 : -1), x.rank);
  if (axis < 0) {
    return refuse(analysis, node, "its axis is out of range");
  }
  if (flattens && axis != x.rank - 1) {
    return refuse(analysis, node, "before opset 13 it is over several dimensions");
  }
  return CLEAVE_OK;
}

static cleave_status_t check_lrn(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  onednn_shape_t x = input_shape(analysis, node, 0);
  if (x.rank != 4) {
    return refuse(analysis, node, "expected rank 4");
  }
  return cleave_view_int(node, "size", 0) % 2 == 1 ? CLEAVE_OK : refuse(analysis, node, "an even size");
}

// Scale and shift, if their shapes are known, are one number for each that is normalized together.
static bool fits_normalized(analysis_t *analysis, uint32_t value, const onednn_shape_t *x, int32_t axis) {
  onednn_shape_t own = onednn_shape_of(&analysis->region->values[value]);
  int64_t count = 1;
  for (int32_t d = axis; d < x->rank; d++) {
    if (x->dims[d] < 0 || !onednn_shape_known(&own)) {
      return true;
    }
    count *= x->dims[d];
  }
  return onednn_shape_count(&own) == count;
}

static cleave_status_t check_layer_normalization(analysis_t *analysis, node_t *node,
                                                 onednn_kernel_t *kernel) {
  if (used(analysis, node, 1) || used(analysis, node, 2)) {
    return refuse(analysis, node, "its statistics are used");
  }
  if (node->input_count < 2) {
    return refuse(analysis, node, "its scale is missing");
  }
  kernel->axis = (int32_t)cleave_view_int(node, "axis", -1);
  kernel->epsilon = (float)cleave_view_float(node, "epsilon", 1e-5);
  kernel->scale = node->inputs[1];
  kernel->shift = node->input_count > 2 ? node->inputs[2] : CLEAVE_INDEX_NONE;
  onednn_shape_t x = input_shape(analysis, node, 0);
  if (x.rank >= 0 && onednn_axis(kernel->axis, x.rank) < 1) {
    return refuse(analysis, node, "its axis is out of range, or the first");
  }
  for (uint32_t k = 1; k < node->input_count && k < 3 && x.rank >= 0; k++) {
    if (node->inputs[k] != CLEAVE_INDEX_NONE &&
        !fits_normalized(analysis, node->inputs[k], &x, onednn_axis(kernel->axis, x.rank))) {
      return refuse(analysis, node, "its scale or bias does not have the normalized shape");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_prelu(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  onednn_shape_t x = input_shape(analysis, node, 0);
  onednn_shape_t slope = input_shape(analysis, node, 1);
  if (x.rank < 0 || x.rank > 5) {
    return refuse(analysis, node, "expected a known rank up to 5");
  }
  return onednn_shape_fits(&slope, &x) ? CLEAVE_OK
                                       : refuse(analysis, node, "its slope does not broadcast to the data");
}

static cleave_status_t check_resize(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  return onednn_resize_check(analysis->region, node, analysis->message);
}

static cleave_status_t check_concat(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  onednn_shape_t x = onednn_shape_of(&analysis->region->values[node->outputs[0]]);
  if (x.rank < 1 || onednn_axis(cleave_view_int(node, "axis", 0), x.rank) < 0) {
    return refuse(analysis, node, "its axis is out of range, or its rank is unknown");
  }
  return CLEAVE_OK;
}

// The integers in input `index`, which must be constant if present.
static cleave_status_t check_constant_input(analysis_t *analysis, node_t *node, uint32_t index) {
  const cleave_value_view_t *value = cleave_view_input(analysis->region, node, index);
  int64_t list[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  if (value == NULL || onednn_integers(value, list, &count)) {
    return CLEAVE_OK;
  }
  return kernel_fail(analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                     "%s '%s': its input '%s' is not a short constant list of integers", node->op,
                     onednn_node_name(node), value->name);
}

static cleave_status_t check_reshape(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  return check_constant_input(analysis, node, 1);
}

static cleave_status_t check_transpose(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  return input_shape(analysis, node, 0).rank >= 0
             ? CLEAVE_OK
             : refuse(analysis, node, "the rank of its input is unknown");
}

static cleave_status_t check_slice(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  for (uint32_t k = 1; k < node->input_count; k++) {
    ONEDNN_TRY(check_constant_input(analysis, node, k));
  }
  const cleave_value_view_t *steps = cleave_view_input(analysis->region, node, 4);
  const cleave_value_view_t *axes = cleave_view_input(analysis->region, node, 3);
  onednn_shape_t x = input_shape(analysis, node, 0);
  onednn_shape_t y = onednn_shape_of(&analysis->region->values[node->outputs[0]]);
  int64_t list[CLEAVE_MAX_RANK];
  int64_t axis_list[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  uint32_t axis_count = 0;
  if (x.rank < 0) {
    return refuse(analysis, node, "the rank of its input is unknown");
  }
  if (steps != NULL && onednn_integers(steps, list, &count)) {
    bool named = axes != NULL && onednn_integers(axes, axis_list, &axis_count) && axis_count == count;
    for (uint32_t k = 0; k < count; k++) {
      int32_t axis = onednn_axis(named ? axis_list[k] : (int64_t)k, x.rank);
      if (list[k] < 1) {
        return refuse(analysis, node, "a negative step");
      }
      // Strides that overlap the next row, even if no element does, are none for oneDNN.
      if (list[k] > 1 && axis > 0 &&
          (y.rank != x.rank || x.dims[axis] < 0 || y.dims[axis] < 0 ||
           (y.dims[axis] > 0 && list[k] > x.dims[axis] / y.dims[axis]))) {
        return refuse(analysis, node, "its steps do not divide a row, so that it is no view");
      }
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_gather(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  const cleave_value_view_t *index = cleave_view_input(analysis->region, node, 1);
  double one = 0;
  if (index == NULL || !onednn_scalar(index, &one)) {
    return refuse(analysis, node, "only a Gather of one constant index is a view");
  }
  onednn_shape_t x = input_shape(analysis, node, 0);
  return x.rank >= 1 && onednn_axis(cleave_view_int(node, "axis", 0), x.rank) >= 0
             ? CLEAVE_OK
             : refuse(analysis, node, "its axis is out of range, or the rank of its input is unknown");
}

static cleave_status_t check_split(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  ONEDNN_TRY(check_constant_input(analysis, node, 1));
  return input_shape(analysis, node, 0).rank >= 0
             ? CLEAVE_OK
             : refuse(analysis, node, "the rank of its input is unknown");
}

// Only a Pad that adds nothing is a view; others are folded into the pooling or convolution after them.
static cleave_status_t check_pad(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  int64_t pads[2 * CLEAVE_MAX_RANK];
  onednn_shape_t x = input_shape(analysis, node, 0);
  if (x.rank < 0 || !onednn_pads_of(analysis->region, node, x.rank, pads)) {
    return refuse(analysis, node, "its pads are not constant");
  }
  for (int32_t d = 0; d < 2 * x.rank; d++) {
    if (pads[d] != 0) {
      return refuse(analysis, node, "oneDNN pads only inside a convolution or an average pooling");
    }
  }
  return CLEAVE_OK;
}

// Weights are packed when the region is compiled. Lengths of sequences are integers, which regions do not
// carry.
static cleave_status_t check_recurrent(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  static const uint32_t weights[] = {1, 2, 3, 7};
  cpu_recurrent_t recurrent;
  (void)kernel;
  for (size_t k = 0; k < sizeof(weights) / sizeof(weights[0]); k++) {
    const cleave_value_view_t *value = cleave_view_input(analysis->region, node, weights[k]);
    if (value == NULL ? weights[k] <= 2 : !onednn_is_constant(value)) {
      return refuse(analysis, node, "its weights are not constant");
    }
    if (value != NULL && value->tensor.dtype != CLEAVE_DTYPE_F32) {
      return refuse(analysis, node, "its weights are not float32");
    }
  }
  if (cleave_view_input(analysis->region, node, 4) != NULL) {
    return refuse(analysis, node, "lengths of sequences are known only at run time");
  }
  return cpu_recurrent_read(node, &recurrent, analysis->message);
}

// ---- training ----

static cleave_status_t check_images(analysis_t *analysis, node_t *node, uint32_t index, int32_t least) {
  onednn_shape_t x = input_shape(analysis, node, index);
  return x.rank >= least && x.rank <= 5
             ? CLEAVE_OK
             : refuse(analysis, node, "the rank of its images is unknown, or not supported");
}

static cleave_status_t check_weights_gradient(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  ONEDNN_TRY(check_images(analysis, node, 0, 3));
  ONEDNN_TRY(check_images(analysis, node, 1, 3));
  onednn_shape_t dy = input_shape(analysis, node, 1);
  int64_t groups = cleave_view_int(node, "group", 1);
  if (groups < 1 || (dy.dims[1] >= 0 && dy.dims[1] % groups != 0)) {
    return refuse(analysis, node, "its group does not divide the channels");
  }
  return onednn_window_check(node, dy.rank - 2, analysis->message);
}

static cleave_status_t check_pooling_gradient(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  ONEDNN_TRY(check_images(analysis, node, 0, 3));
  if (cleave_view_int(node, "ceil_mode", 0) != 0 && cleave_view_int(node, "count_include_pad", 0) != 0) {
    return refuse(analysis, node, "ceil_mode and count_include_pad are both set");
  }
  return onednn_window_check(node, input_shape(analysis, node, 0).rank - 2, analysis->message);
}

static cleave_status_t check_relu_gradient(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  return input_shape(analysis, node, 0).rank >= 0 ? CLEAVE_OK
                                                  : refuse(analysis, node, "its rank is not known");
}

static cleave_status_t check_norm_gradient(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  (void)kernel;
  return check_images(analysis, node, 1, 2);
}

// The first post normalizes by statistics, which are known only after the node has computed them.
static cleave_status_t check_statistics(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  const onednn_post_t post = {
      .kind = ONEDNN_POST_NORMALIZE, .operand = CLEAVE_INDEX_NONE, .node = kernel->node};
  ONEDNN_TRY(check_images(analysis, node, 0, 2));
  return onednn_post_append(kernel, post) ? CLEAVE_OK : refuse(analysis, node, "too many post-ops");
}

static cleave_status_t check_dequantize(analysis_t *analysis, node_t *node, onednn_kernel_t *kernel) {
  onednn_quantization_t numbers;
  (void)kernel;
  ONEDNN_TRY(onednn_quantization_read(analysis, node, &numbers));
  return numbers.scales == NULL || onednn_is_constant(cleave_view_input(analysis->region, node, 0))
             ? CLEAVE_OK
             : refuse(analysis, node, "it has a scale per index of an axis, and its input is no constant");
}

// Sorted by name.
static const onednn_operator_t operators[] = {
    {"After", ONEDNN_RESHAPE, false, true, NULL},
    {"Attention", ONEDNN_ATTENTION, false, false, NULL},
    {"AveragePool", ONEDNN_POOLING, true, false, check_pooling},
    {"AveragePoolGrad", ONEDNN_GRADIENT, false, false, check_pooling_gradient},
    {"BatchNormalizationGrad", ONEDNN_GRADIENT, false, false, check_norm_gradient},
    {"BatchNormalizationTraining", ONEDNN_STATISTICS, true, false, check_statistics},
    {"Concat", ONEDNN_CONCAT, false, true, check_concat},
    {"Conv", ONEDNN_CONVOLUTION, true, false, check_convolution},
    {"ConvGradWeight", ONEDNN_GRADIENT, false, false, check_weights_gradient},
    {"ConvTranspose", ONEDNN_DECONVOLUTION, true, false, check_convolution},
    {"DequantizeLinear", ONEDNN_DEQUANTIZE, false, false, check_dequantize},
    {"Flatten", ONEDNN_RESHAPE, false, true, NULL},
    {"GRU", ONEDNN_RECURRENT, false, false, check_recurrent},
    {"Gather", ONEDNN_GATHER, false, true, check_gather},
    {"Gemm", ONEDNN_PRODUCT, true, false, check_gemm},
    {"GlobalAveragePool", ONEDNN_POOLING, true, false, check_pooling},
    {"GlobalMaxPool", ONEDNN_POOLING, true, false, check_pooling},
    {"LRN", ONEDNN_LRN, false, false, check_lrn},
    {"LSTM", ONEDNN_RECURRENT, false, false, check_recurrent},
    {"LayerNormalization", ONEDNN_LAYER_NORMALIZATION, false, false, check_layer_normalization},
    {"LogSoftmax", ONEDNN_SOFTMAX, false, false, check_softmax},
    {"MatMul", ONEDNN_PRODUCT, true, false, check_matmul},
    {"MaxPool", ONEDNN_POOLING, true, false, check_pooling},
    {"MaxPoolGrad", ONEDNN_GRADIENT, false, false, check_pooling_gradient},
    {"PRelu", ONEDNN_PRELU, false, false, check_prelu},
    {"Pad", ONEDNN_RESHAPE, false, false, check_pad},
    {"RNN", ONEDNN_RECURRENT, false, false, check_recurrent},
    {"ReduceL1", ONEDNN_REDUCTION, true, false, check_reduction},
    {"ReduceL2", ONEDNN_REDUCTION, true, false, check_reduction},
    {"ReduceMax", ONEDNN_REDUCTION, true, false, check_reduction},
    {"ReduceMean", ONEDNN_REDUCTION, true, false, check_reduction},
    {"ReduceMin", ONEDNN_REDUCTION, true, false, check_reduction},
    {"ReduceProd", ONEDNN_REDUCTION, true, false, check_reduction},
    {"ReduceSum", ONEDNN_REDUCTION, true, false, check_reduction},
    {"ReduceSumSquare", ONEDNN_REDUCTION, true, false, check_reduction},
    {"ReluGrad", ONEDNN_GRADIENT, false, false, check_relu_gradient},
    {"Reshape", ONEDNN_RESHAPE, false, true, check_reshape},
    {"Resize", ONEDNN_RESAMPLING, true, false, check_resize},
    {"Slice", ONEDNN_SLICE, false, true, check_slice},
    {"Softmax", ONEDNN_SOFTMAX, false, false, check_softmax},
    {"Split", ONEDNN_SPLIT, false, true, check_split},
    {"Squeeze", ONEDNN_RESHAPE, false, true, check_reshape},
    {"Transpose", ONEDNN_TRANSPOSE, false, true, check_transpose},
    {"Unsqueeze", ONEDNN_RESHAPE, false, true, check_reshape},
};

const onednn_operator_t *onednn_operator_find(const char *name) {
  size_t low = 0;
  size_t high = sizeof(operators) / sizeof(operators[0]);
  while (low < high) {
    size_t middle = (low + high) / 2;
    int order = strcmp(operators[middle].name, name);
    if (order == 0) {
      return &operators[middle];
    }
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return NULL;
}
