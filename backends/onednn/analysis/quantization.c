// SPDX-License-Identifier: Apache-2.0
// What QuantizeLinear and DequantizeLinear say, and which products may multiply the integers themselves.
#include "onednn/analysis/quantization.h"

#include <math.h>
#include <string.h>

#include "onednn/analysis/bits.h"
#include "onednn/library/types.h"

typedef const onednn_analysis_t analysis_t;
typedef const cleave_node_view_t node_t;

static cleave_status_t refuse(analysis_t *analysis, node_t *node, const char *why) {
  return kernel_fail(analysis->message, CLEAVE_ERROR_UNSUPPORTED, "%s '%s': %s", node->op,
                     onednn_node_name(node), why);
}

static bool is_scale(float scale) {
  return scale > 0 && isfinite(scale);
}

// Element `index` of a constant of 8-bit integers.
static int32_t byte_at(const cleave_value_view_t *value, int64_t index) {
  const unsigned char *data = value->tensor.data;
  return value->tensor.dtype == CLEAVE_DTYPE_I8 ? (int32_t)(signed char)data[index] : (int32_t)data[index];
}

static cleave_status_t read_scales(analysis_t *analysis, node_t *node, const cleave_value_view_t *scale,
                                   onednn_quantization_t *out) {
  float *scales = kernel_arena_allocate(analysis->arena, (size_t)out->count, sizeof(float));
  if (scales == NULL) {
    return kernel_fail(analysis->message, CLEAVE_ERROR_OUT_OF_MEMORY,
                       "out of memory while analysing a region");
  }
  onednn_floats(scale, scales, (size_t)out->count);
  for (int64_t k = 0; k < out->count; k++) {
    if (!is_scale(scales[k])) {
      return refuse(analysis, node, "a scale is not a positive number");
    }
  }
  out->scale = scales[0];
  out->scales = out->count > 1 || out->block > 0 ? scales : NULL;
  return CLEAVE_OK;
}

// Scales have the shape of the integers, except along the axis, where there is one per block.
static bool blocks_fit(const cleave_value_view_t *integers, const cleave_value_view_t *scale,
                       const onednn_quantization_t *numbers) {
  onednn_shape_t shape = onednn_shape_of(integers);
  onednn_shape_t own = onednn_shape_of(scale);
  bool fits = numbers->axis >= 0 && own.rank == shape.rank && onednn_shape_known(&shape);
  for (int32_t d = 0; fits && d < shape.rank; d++) {
    int64_t expected =
        d == numbers->axis ? (shape.dims[d] + numbers->block - 1) / numbers->block : shape.dims[d];
    fits = own.dims[d] == expected;
  }
  return fits;
}

int64_t onednn_quantization_index(const onednn_quantization_t *numbers, const onednn_shape_t *shape,
                                  int64_t index) {
  if (numbers->scales == NULL) {
    return 0;
  }
  int64_t inner = 1;
  for (int32_t d = numbers->axis + 1; d < shape->rank; d++) {
    inner *= shape->dims[d];
  }
  int64_t length = shape->dims[numbers->axis];
  int64_t at = index / inner % length;
  if (numbers->block == 0) {
    return at;
  }
  int64_t groups = (length - 1) / numbers->block + 1;
  return (index / inner / length * groups + at / numbers->block) * inner + index % inner;
}

static cleave_status_t read_zeros(analysis_t *analysis, node_t *node, const cleave_value_view_t *zero,
                                  onednn_quantization_t *out) {
  if (zero == NULL) {
    return CLEAVE_OK;
  }
  if (!onednn_is_constant(zero) || !onednn_type_is_byte(onednn_type_of(zero->tensor.dtype)) ||
      cleave_view_element_count(&zero->tensor) != out->count) {
    return refuse(analysis, node, "its zero point is not a constant of 8-bit integers, one per scale");
  }
  out->zero_point = byte_at(zero, 0);
  bool differ = false;
  for (int64_t k = 1; k < out->count; k++) {
    differ = differ || byte_at(zero, k) != out->zero_point;
  }
  if (!differ) {
    return CLEAVE_OK;
  }
  int32_t *zeros = kernel_arena_allocate(analysis->arena, (size_t)out->count, sizeof(int32_t));
  for (int64_t k = 0; k < out->count && zeros != NULL; k++) {
    zeros[k] = byte_at(zero, k);
  }
  out->zeros = zeros;
  return zeros != NULL ? CLEAVE_OK
                       : kernel_fail(analysis->message, CLEAVE_ERROR_OUT_OF_MEMORY,
                                     "out of memory while analysing a region");
}

cleave_status_t onednn_quantization_read(const onednn_analysis_t *analysis, const cleave_node_view_t *node,
                                         onednn_quantization_t *out) {
  bool reads = onednn_node_is(node, "DequantizeLinear");
  const cleave_value_view_t *integers =
      reads ? cleave_view_input(analysis->region, node, 0) : cleave_view_output(analysis->region, node, 0);
  const cleave_value_view_t *numbers =
      reads ? cleave_view_output(analysis->region, node, 0) : cleave_view_input(analysis->region, node, 0);
  const cleave_value_view_t *scale = cleave_view_input(analysis->region, node, 1);
  *out = (onednn_quantization_t){.scale = 1};
  if (integers == NULL || numbers == NULL || !onednn_type_is_byte(onednn_type_of(integers->tensor.dtype)) ||
      numbers->tensor.dtype != CLEAVE_DTYPE_F32) {
    return refuse(analysis, node, "expected 8-bit integers and float32");
  }
  if (scale == NULL || !onednn_is_constant(scale) || scale->tensor.dtype != CLEAVE_DTYPE_F32) {
    return refuse(analysis, node, "its scale is not a float32 constant");
  }
  out->count = cleave_view_element_count(&scale->tensor);
  out->block = cleave_view_int(node, "block_size", 0);
  if (out->block != 0) {
    out->axis = onednn_axis(cleave_view_int(node, "axis", 1), integers->tensor.rank);
    if (out->block < 0 || !blocks_fit(integers, scale, out)) {
      return refuse(analysis, node, "its scales do not fit its blocks");
    }
  } else if (out->count > 1) {
    onednn_shape_t shape = onednn_shape_of(integers);
    out->axis = shape.rank > 0 ? onednn_axis(cleave_view_int(node, "axis", 1), shape.rank) : -1;
    if (out->axis < 0 || shape.dims[out->axis] != out->count) {
      return refuse(analysis, node, "its scales do not fit its axis");
    }
  }
  if (out->count < 1) {
    return refuse(analysis, node, "it has no scale");
  }
  ONEDNN_TRY(read_scales(analysis, node, scale, out));
  return read_zeros(analysis, node, cleave_view_input(analysis->region, node, 2), out);
}

bool onednn_quantization_equal(const onednn_quantization_t *a, const onednn_quantization_t *b) {
  return a->scales == NULL && b->scales == NULL && a->scale == b->scale && a->zero_point == b->zero_point;
}

static const cleave_attribute_view_t *attribute_of(const cleave_region_view_t *region, uint32_t fusion,
                                                   const char *name) {
  return fusion < region->fusion_count ? cleave_view_fusion_attribute(region, fusion, name) : NULL;
}

bool onednn_multiplies_bytes(const cleave_region_view_t *region, uint32_t fusion) {
  const cleave_attribute_view_t *attribute = attribute_of(region, fusion, "precision");
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_STRING &&
         cleave_view_text_equal(attribute->s, "int8");
}

bool onednn_keeps_weights(const cleave_region_view_t *region, uint32_t fusion) {
  const cleave_attribute_view_t *attribute = attribute_of(region, fusion, "weights");
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_STRING &&
         !cleave_view_text_equal(attribute->s, "float32");
}

// The dimension of the weights that is the product's output; -1: one that has several in it.
static int32_t output_axis(node_t *node, int32_t rank) {
  if (onednn_node_is(node, "Conv")) {
    return 0;
  }
  return onednn_node_is(node, "Gemm") && cleave_view_int(node, "transB", 0) != 0 ? 0 : rank - 1;
}

// Sums of two products stay within 16 bits.
static bool are_small(const cleave_value_view_t *weights) {
  const signed char *data = weights->tensor.data;
  int64_t count = cleave_view_element_count(&weights->tensor);
  for (int64_t k = 0; k < count; k++) {
    if (data[k] < -64 || data[k] > 64) {
      return false;
    }
  }
  return true;
}

static cleave_status_t check_weights(analysis_t *analysis, node_t *node) {
  const cleave_region_view_t *region = analysis->region;
  uint32_t producer = region->values[node->inputs[1]].producer;
  onednn_quantization_t weights;
  if (producer == CLEAVE_INDEX_NONE || !onednn_node_is(&region->nodes[producer], "DequantizeLinear")) {
    return refuse(analysis, node, "its weights are not 8-bit integers");
  }
  node_t *maker = &region->nodes[producer];
  const cleave_value_view_t *integers = cleave_view_input(region, maker, 0);
  ONEDNN_TRY(onednn_quantization_read(analysis, maker, &weights));
  if (integers->tensor.dtype != CLEAVE_DTYPE_I8) {
    return refuse(analysis, node, "its weights are unsigned; oneDNN multiplies signed ones");
  }
  if (weights.zero_point != 0 || weights.zeros != NULL) {
    return refuse(analysis, node, "its weights have zero points; oneDNN multiplies symmetric ones");
  }
  if (weights.scales != NULL && (weights.block > 0 || !onednn_is_constant(integers) ||
                                 weights.axis != output_axis(node, integers->tensor.rank))) {
    return refuse(analysis, node, "the scales of its weights are not those of output channels");
  }
  const char *saturates = onednn_bytes_saturate();
  return saturates == NULL || (onednn_is_constant(integers) && are_small(integers))
             ? CLEAVE_OK
             : kernel_fail(analysis->message, CLEAVE_ERROR_UNSUPPORTED,
                           "%s '%s': %s, without which weights beyond 64, or not constant, would saturate",
                           node->op, onednn_node_name(node), saturates);
}

cleave_status_t onednn_quantization_check(const onednn_unit_t *unit) {
  analysis_t *analysis = unit->analysis;
  const cleave_region_view_t *region = analysis->region;
  bool multiplies = onednn_multiplies_bytes(region, unit->fusion);
  for (uint32_t k = 0; k < unit->count && unit->count > 1; k++) {
    node_t *node = &region->nodes[unit->nodes[k]];
    if (onednn_node_is(node, "DequantizeLinear")) {
      onednn_quantization_t numbers;
      ONEDNN_TRY(onednn_quantization_read(analysis, node, &numbers));
      if (onednn_unit_makes(unit, node->inputs[0])) {
        return refuse(analysis, node, "the fusion makes the integers that it reads");
      }
    }
    if (onednn_unpacks(node)) {
      onednn_bits_t bits;
      ONEDNN_TRY(onednn_bits_read(region, node, &bits, analysis->message));
    }
    if (multiplies &&
        (onednn_node_is(node, "Conv") || onednn_node_is(node, "Gemm") || onednn_node_is(node, "MatMul"))) {
      ONEDNN_TRY(check_weights(analysis, node));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_quantization_post(onednn_unit_t *unit, uint32_t index, onednn_kernel_t *kernel) {
  analysis_t *analysis = unit->analysis;
  node_t *node = &analysis->region->nodes[index];
  onednn_quantization_t numbers;
  ONEDNN_TRY(onednn_quantization_read(analysis, node, &numbers));
  if (numbers.scales != NULL) {
    return refuse(analysis, node, "it has a scale per index of an axis");
  }
  const onednn_post_t post = {.kind = ONEDNN_POST_QUANTIZE,
                              .algorithm = dnnl_eltwise_linear,
                              .alpha = numbers.scale,
                              .beta = (float)numbers.zero_point,
                              .operand = CLEAVE_INDEX_NONE,
                              .node = index};
  return onednn_post_append(kernel, post) ? CLEAVE_OK : refuse(analysis, node, "too many post-ops");
}
