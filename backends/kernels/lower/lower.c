// SPDX-License-Identifier: Apache-2.0
// Nodes become values of a program, one after the other; pointwise operators.
#include "lower.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/convert.h"
#include "lowering.h"

/* ---- pointwise operators ---- */

static cleave_status_t lower_fold(lowering_t *lowering, const cleave_node_view_t *node, kernel_op_t op,
                                  uint32_t *out_value) {
  KERNEL_TRY(kernel_lower_operand(lowering, node, 0, out_value));
  for (uint32_t k = 1; k < node->input_count; k++) {
    uint32_t operand = 0;
    KERNEL_TRY(kernel_lower_operand(lowering, node, k, &operand));
    KERNEL_TRY(kernel_lower_binary(lowering, op, *out_value, operand, out_value));
  }
  return CLEAVE_OK;
}

static cleave_status_t lower_clip(lowering_t *lowering, const cleave_node_view_t *node, uint32_t *out_value) {
  KERNEL_TRY(kernel_lower_operand(lowering, node, 0, out_value));
  for (uint32_t k = 1; k < 3; k++) {
    const cleave_value_view_t *bound = cleave_view_input(lowering->region, node, k);
    uint32_t operand = 0;
    if (bound == NULL) {
      continue;
    }
    if (cleave_view_element_count(&bound->tensor) != 1) {
      return kernel_lower_refuse(node, "a bound is not a scalar", lowering->message);
    }
    KERNEL_TRY(kernel_lower_operand(lowering, node, k, &operand));
    KERNEL_TRY(kernel_lower_binary(lowering, k == 1 ? KERNEL_AtLeast : KERNEL_AtMost, *out_value, operand,
                                   out_value));
  }
  return CLEAVE_OK;
}

static cleave_status_t lower_mean(lowering_t *lowering, const cleave_node_view_t *node, uint32_t *out_value) {
  uint32_t count = 0;
  KERNEL_TRY(lower_fold(lowering, node, KERNEL_Add, out_value));
  cleave_dtype_t dtype = lowering->program->values[*out_value].dtype;
  KERNEL_TRY(kernel_lower_number(lowering, dtype, (double)node->input_count, &count));
  return node->input_count == 1 ? CLEAVE_OK
                                : kernel_lower_binary(lowering, KERNEL_Div, *out_value, count, out_value);
}

/* The base decides the dtype. Squares and cubes are products. */
static cleave_status_t lower_power(lowering_t *lowering, const cleave_node_view_t *node,
                                   uint32_t *out_value) {
  uint32_t base = 0;
  uint32_t exponent = 0;
  KERNEL_TRY(kernel_lower_operand(lowering, node, 0, &base));
  KERNEL_TRY(kernel_lower_operand(lowering, node, 1, &exponent));
  const kernel_value_t *number = &lowering->program->values[exponent];
  cleave_dtype_t dtype = lowering->program->values[base].dtype;
  double value = 0;
  if (!cpu_dtype_is_float(dtype) || number->dtype == CLEAVE_DTYPE_BOOL) {
    return kernel_lower_refuse(node, "only powers of floating-point numbers are supported",
                               lowering->message);
  }
  if (number->op == KERNEL_CONSTANT) {
    cpu_convert(number->dtype, &number->bits, CLEAVE_DTYPE_F64, &value, 1);
  }
  if (value == 2.0 || value == 3.0) {
    KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Mul, base, base, out_value));
    return value == 2.0 ? CLEAVE_OK : kernel_lower_binary(lowering, KERNEL_Mul, *out_value, base, out_value);
  }
  KERNEL_TRY(kernel_program_cast(lowering->program, dtype, exponent, &exponent, lowering->message));
  return kernel_lower_binary(lowering, KERNEL_Pow, base, exponent, out_value);
}

static cleave_status_t lower_cast(lowering_t *lowering, const cleave_node_view_t *node, uint32_t *out_value) {
  uint32_t operand = 0;
  const cleave_value_view_t *output = cleave_view_output(lowering->region, node, 0);
  KERNEL_TRY(kernel_lower_operand(lowering, node, 0, &operand));
  return output == NULL ? kernel_lower_refuse(node, "the result is not used", lowering->message)
                        : kernel_program_cast(lowering->program, output->tensor.dtype, operand, out_value,
                                              lowering->message);
}

static cleave_status_t lower_where(lowering_t *lowering, const cleave_node_view_t *node,
                                   uint32_t *out_value) {
  uint32_t operands[3] = {0, 0, 0};
  for (uint32_t k = 0; k < 3; k++) {
    KERNEL_TRY(kernel_lower_operand(lowering, node, k, &operands[k]));
  }
  return kernel_program_apply(lowering->program, KERNEL_WHERE, operands, 0, 0, out_value, lowering->message);
}

/* NaN alone is not equal to itself. */
static cleave_status_t lower_is_nan(lowering_t *lowering, const cleave_node_view_t *node,
                                    uint32_t *out_value) {
  uint32_t x = 0;
  KERNEL_TRY(kernel_lower_operand(lowering, node, 0, &x));
  KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Equal, x, x, out_value));
  return kernel_lower_unary(lowering, KERNEL_Not, *out_value, out_value);
}

/* Equal to an infinity of a sign that is looked for; without such, to both. */
static cleave_status_t lower_is_infinite(lowering_t *lowering, const cleave_node_view_t *node,
                                         uint32_t *out_value) {
  const double infinities[2] = {INFINITY, -INFINITY};
  bool wanted[2] = {cleave_view_int(node, "detect_positive", 1) != 0,
                    cleave_view_int(node, "detect_negative", 1) != 0};
  uint32_t found[2] = {0, 0};
  uint32_t x = 0;
  KERNEL_TRY(kernel_lower_operand(lowering, node, 0, &x));
  cleave_dtype_t dtype = lowering->program->values[x].dtype;
  if (!cpu_dtype_is_float(dtype)) {
    return kernel_lower_refuse(node, "it has no floating-point numbers", lowering->message);
  }
  for (int k = 0; k < 2; k++) {
    KERNEL_TRY(kernel_lower_number(lowering, dtype, infinities[k], &found[k]));
    KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Equal, x, found[k], &found[k]));
  }
  *out_value = found[wanted[0] ? 0 : 1];
  return wanted[0] != wanted[1] ? CLEAVE_OK
                                : kernel_lower_binary(lowering, wanted[0] ? KERNEL_Or : KERNEL_And, found[0],
                                                      found[1], out_value);
}

/* One scale for all, or one per element along the last axis. */
static cleave_status_t read_scale(lowering_t *lowering, const cleave_node_view_t *node, uint32_t *out_scale) {
  const cleave_value_view_t *x = cleave_view_input(lowering->region, node, 0);
  const cleave_value_view_t *scale = cleave_view_input(lowering->region, node, 1);
  int64_t axis = cleave_view_int(node, "axis", 1);
  bool is_one = scale != NULL && cleave_view_element_count(&scale->tensor) == 1;
  bool is_last = x != NULL && scale != NULL && scale->tensor.rank == 1 &&
                 (axis < 0 ? axis + x->tensor.rank : axis) == x->tensor.rank - 1;
  if ((!is_one && !is_last) || cleave_view_int(node, "block_size", 0) != 0 ||
      scale->tensor.dtype != CLEAVE_DTYPE_F32) {
    return kernel_lower_refuse(node, "its scale is neither one float32 nor along the last axis",
                               lowering->message);
  }
  return kernel_lower_operand(lowering, node, 1, out_scale);
}

static cleave_status_t read_zero_point(lowering_t *lowering, const cleave_node_view_t *node,
                                       uint32_t *out_zero) {
  KERNEL_TRY(kernel_lower_operand(lowering, node, 2, out_zero));
  return kernel_program_cast(lowering->program, CLEAVE_DTYPE_F32, *out_zero, out_zero, lowering->message);
}

/* The nearest integer to x / scale, and the zero point, within the bounds of the type. */
static cleave_status_t lower_quantize(lowering_t *lowering, const cleave_node_view_t *node,
                                      uint32_t *out_value) {
  static const struct {
    cleave_dtype_t dtype;
    double low;
    double high;
  } BOUNDS[] = {{CLEAVE_DTYPE_I8, INT8_MIN, INT8_MAX},
                {CLEAVE_DTYPE_U8, 0, UINT8_MAX},
                {CLEAVE_DTYPE_I16, INT16_MIN, INT16_MAX},
                {CLEAVE_DTYPE_U16, 0, UINT16_MAX}};
  const cleave_value_view_t *x = cleave_view_input(lowering->region, node, 0);
  const cleave_value_view_t *y = cleave_view_output(lowering->region, node, 0);
  uint32_t value = 0;
  uint32_t other = 0;
  for (size_t k = 0; k < sizeof BOUNDS / sizeof BOUNDS[0]; k++) {
    if (x == NULL || x->tensor.dtype != CLEAVE_DTYPE_F32 || y == NULL || y->tensor.dtype != BOUNDS[k].dtype) {
      continue;
    }
    KERNEL_TRY(kernel_lower_operand(lowering, node, 0, &value));
    KERNEL_TRY(read_scale(lowering, node, &other));
    KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Div, value, other, &value));
    KERNEL_TRY(kernel_lower_unary(lowering, KERNEL_Round, value, &value));
    if (cleave_view_input(lowering->region, node, 2) != NULL) {
      KERNEL_TRY(read_zero_point(lowering, node, &other));
      KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Add, value, other, &value));
    }
    KERNEL_TRY(kernel_lower_number(lowering, CLEAVE_DTYPE_F32, BOUNDS[k].low, &other));
    KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_AtLeast, other, value, &value)); /* NaN is the lowest */
    KERNEL_TRY(kernel_lower_number(lowering, CLEAVE_DTYPE_F32, BOUNDS[k].high, &other));
    KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_AtMost, value, other, &value));
    return kernel_program_cast(lowering->program, BOUNDS[k].dtype, value, out_value, lowering->message);
  }
  return kernel_lower_refuse(node, "it is not from float32 to integers of 8 or 16 bits", lowering->message);
}

static cleave_status_t lower_dequantize(lowering_t *lowering, const cleave_node_view_t *node,
                                        uint32_t *out_value) {
  const cleave_value_view_t *x = cleave_view_input(lowering->region, node, 0);
  const cleave_value_view_t *y = cleave_view_output(lowering->region, node, 0);
  uint32_t value = 0;
  uint32_t other = 0;
  if (x == NULL || cleave_dtype_size(x->tensor.dtype) > 2 || cpu_dtype_is_float(x->tensor.dtype) ||
      y == NULL || y->tensor.dtype != CLEAVE_DTYPE_F32) {
    return kernel_lower_refuse(node, "it is not from integers of 8 or 16 bits to float32", lowering->message);
  }
  KERNEL_TRY(kernel_lower_operand(lowering, node, 0, &value));
  KERNEL_TRY(kernel_program_cast(lowering->program, CLEAVE_DTYPE_F32, value, &value, lowering->message));
  if (cleave_view_input(lowering->region, node, 2) != NULL) {
    KERNEL_TRY(read_zero_point(lowering, node, &other));
    KERNEL_TRY(kernel_lower_binary(lowering, KERNEL_Sub, value, other, &value));
  }
  KERNEL_TRY(read_scale(lowering, node, &other));
  return kernel_lower_binary(lowering, KERNEL_Mul, value, other, out_value);
}

/* An operator of the list, with its attributes. */
static cleave_status_t lower_listed(lowering_t *lowering, const cleave_node_view_t *node, kernel_op_t op,
                                    uint32_t *out_value) {
  const kernel_op_info_t *info = kernel_op_info(op);
  uint32_t operands[3] = {0, 0, 0};
  for (uint32_t k = 0; k < info->operand_count; k++) {
    KERNEL_TRY(kernel_lower_operand(lowering, node, k, &operands[k]));
  }
  double alpha = info->alpha_name == NULL ? 0 : cleave_view_float(node, info->alpha_name, info->alpha);
  double beta = info->beta_name == NULL ? 0 : cleave_view_float(node, info->beta_name, info->beta);
  return kernel_program_apply(lowering->program, op, operands, alpha, beta, out_value, lowering->message);
}

static cleave_status_t lower_pointwise(lowering_t *lowering, const cleave_node_view_t *node,
                                       uint32_t *out_value) {
  static const struct {
    const char *op;
    cleave_status_t (*lower)(lowering_t *lowering, const cleave_node_view_t *node, uint32_t *out_value);
  } SPECIAL[] = {{"Clip", lower_clip},
                 {"Mean", lower_mean},
                 {"Pow", lower_power},
                 {"Cast", lower_cast},
                 {"CastLike", lower_cast},
                 {"Where", lower_where},
                 {"IsNaN", lower_is_nan},
                 {"IsInf", lower_is_infinite},
                 {"QuantizeLinear", lower_quantize},
                 {"DequantizeLinear", lower_dequantize}};
  for (size_t k = 0; k < sizeof SPECIAL / sizeof SPECIAL[0]; k++) {
    if (cleave_view_text_equal(SPECIAL[k].op, node->op)) {
      return SPECIAL[k].lower(lowering, node, out_value);
    }
  }
  if (cleave_view_text_equal(node->op, "Identity")) {
    return kernel_lower_operand(lowering, node, 0, out_value);
  }
  bool is_sum = cleave_view_text_equal(node->op, "Sum");
  if (is_sum || cleave_view_text_equal(node->op, "Max") || cleave_view_text_equal(node->op, "Min")) {
    return lower_fold(lowering, node, is_sum ? KERNEL_Add : kernel_op_find(node->op), out_value);
  }
  const char *name = node->op;
  if (cleave_view_text_equal(name, "Gelu")) {
    const char *mode = cleave_view_string(node, "approximate", "none");
    name = cleave_view_text_equal(mode, "tanh") ? "GeluTanh" : "GeluErf";
  }
  if (cleave_view_text_equal(name, "Mod") && cleave_view_int(node, "fmod", 0) != 0) {
    name = "Fmod";
  }
  kernel_op_t op = kernel_op_find(name);
  bool is_listed = op != KERNEL_OP_COUNT && kernel_op_info(op)->kind != KERNEL_KIND_SPECIAL &&
                   kernel_op_info(op)->kind != KERNEL_KIND_REDUCTION;
  op = lowering->lowered->fast_math ? kernel_op_fast(op) : op;
  return is_listed ? lower_listed(lowering, node, op, out_value)
                   : kernel_lower_refuse(node, "the operator is not pointwise", lowering->message);
}

/* ---- the walk ---- */

/* The space is what all results broadcast to; rows are the last axes that some node reduces. */
static cleave_status_t find_space(lowering_t *lowering, uint32_t node_count, const uint32_t *nodes) {
  for (int32_t d = 0; d < CLEAVE_MAX_RANK; d++) {
    lowering->dims[d] = 1;
  }
  for (uint32_t k = 0; k < node_count; k++) {
    const cleave_node_view_t *node = &lowering->region->nodes[nodes[k]];
    if (node->domain != NULL && node->domain[0] != '\0' && !cleave_view_text_equal(node->domain, "ai.onnx")) {
      return kernel_lower_refuse(node, "the operator is not one of ONNX", lowering->message);
    }
    int32_t reduced = 0;
    int64_t groups = 0;
    KERNEL_TRY(kernel_lower_axes(lowering->region, node, &reduced, &groups, lowering->message));
    if (reduced > 0 && lowering->reduced > 0 &&
        (reduced != lowering->reduced || groups != lowering->groups)) {
      return kernel_lower_refuse(node, "it reduces other axes than the nodes before", lowering->message);
    }
    lowering->reduced = reduced > 0 ? reduced : lowering->reduced;
    lowering->groups = reduced > 0 ? groups : lowering->groups;
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
      uint32_t index = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
      if (index == CLEAVE_INDEX_NONE) {
        continue;
      }
      const cleave_tensor_view_t *tensor = &lowering->region->values[index].tensor;
      if (cleave_view_element_count(tensor) < 0) {
        return kernel_lower_refuse(node, "a shape is not known", lowering->message);
      }
      bool counts = !kernel_lower_is_view(node) && (i >= node->input_count || (i == 0 && reduced > 0));
      for (int32_t d = 0; counts && d < tensor->rank; d++) {
        /* If ranks differ, some result does not have the shape of the space, and is refused for it. */
        lowering->rank = tensor->rank > lowering->rank ? tensor->rank : lowering->rank;
        lowering->dims[d] = tensor->dims[d] != 1 ? tensor->dims[d] : lowering->dims[d];
      }
    }
  }
  return lowering->reduced <= lowering->rank ? CLEAVE_OK
                                             : kernel_fail(lowering->message, CLEAVE_ERROR_UNSUPPORTED,
                                                           "rows have more axes than the results");
}

/* The axes of the space: those of the results, with axis 1 in groups if there are any. */
static cleave_status_t make_program(lowering_t *lowering) {
  int32_t extra = lowering->groups > 0 ? 1 : 0;
  int64_t *dims = lowering->lowered->dims;
  memcpy(dims, lowering->dims, sizeof lowering->dims);
  if (extra > 0 && lowering->rank == CLEAVE_MAX_RANK) {
    return kernel_fail(lowering->message, CLEAVE_ERROR_UNSUPPORTED, "groups of channels in rank %d",
                       CLEAVE_MAX_RANK);
  }
  for (int32_t d = lowering->rank; d > 1 && extra > 0; d--) {
    dims[d] = d > 2 ? dims[d - 1] : dims[1] / lowering->groups;
  }
  dims[1] = extra > 0 ? lowering->groups : dims[1];
  KERNEL_TRY(kernel_program_create(lowering->rank + extra, lowering->reduced, &lowering->lowered->program,
                                   lowering->message));
  lowering->program = lowering->lowered->program;
  return CLEAVE_OK;
}

static cleave_status_t lower_nodes(lowering_t *lowering, uint32_t node_count, const uint32_t *nodes) {
  KERNEL_TRY(find_space(lowering, node_count, nodes));
  KERNEL_TRY(make_program(lowering));
  for (uint32_t k = 0; k < node_count; k++) {
    const cleave_node_view_t *node = &lowering->region->nodes[nodes[k]];
    bool is_done = false;
    uint32_t value = 0;
    if (kernel_lower_is_view(node)) {
      for (uint32_t o = 0; o < node->output_count; o++) {
        if (node->outputs[o] != CLEAVE_INDEX_NONE) {
          lowering->viewers[node->outputs[o]] = nodes[k];
        }
      }
      continue;
    }
    KERNEL_TRY(kernel_lower_rows(lowering, node, &is_done));
    if (!is_done) {
      KERNEL_TRY(lower_pointwise(lowering, node, &value));
      KERNEL_TRY(kernel_lower_result(lowering, node, 0, value));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t kernel_lowerer_create(const cleave_region_view_t *region, kernel_arena_t *arena,
                                      kernel_lowerer_t **out_lowerer, cleave_message_t *message) {
  lowerer_t *lowerer = kernel_arena_allocate(arena, 1, sizeof *lowerer);
  uint32_t *values = kernel_arena_allocate(arena, region->value_count, 3 * sizeof *values);
  bool *inside = kernel_arena_allocate(arena, region->node_count, sizeof *inside);
  *out_lowerer = lowerer;
  if (lowerer == NULL || values == NULL || inside == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for kernels of a region");
  }
  *lowerer = (lowerer_t){.region = region,
                         .values = values,
                         .viewers = values + region->value_count,
                         .readers = values + 2 * (size_t)region->value_count,
                         .inside = inside};
  memset(values, 0xff, 2 * region->value_count * sizeof *values); /* CLEAVE_INDEX_NONE */
  for (uint32_t n = 0; n < region->node_count; n++) {
    for (uint32_t i = 0; i < region->nodes[n].input_count; i++) {
      if (region->nodes[n].inputs[i] != CLEAVE_INDEX_NONE) {
        lowerer->readers[region->nodes[n].inputs[i]]++;
      }
    }
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    lowerer->readers[region->outputs[k]]++;
  }
  return CLEAVE_OK;
}

/* Takes the node into the kernel, or out of it again. */
static void set_inside(const lowerer_t *lowerer, uint32_t index, bool is_inside) {
  const cleave_node_view_t *node = &lowerer->region->nodes[index];
  if (lowerer->inside[index] == is_inside) {
    return;
  }
  lowerer->inside[index] = is_inside;
  for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
    bool is_input = i < node->input_count;
    uint32_t value = is_input ? node->inputs[i] : node->outputs[i - node->input_count];
    if (value != CLEAVE_INDEX_NONE) {
      lowerer->values[value] = CLEAVE_INDEX_NONE;
      lowerer->viewers[value] = CLEAVE_INDEX_NONE;
      lowerer->readers[value] += !is_input ? 0 : is_inside ? UINT32_MAX : 1;
    }
  }
}

/* Outputs are what others read. */
static cleave_status_t lower_outputs(lowering_t *lowering, const uint32_t *readers, uint32_t node_count,
                                     const uint32_t *nodes) {
  for (uint32_t k = 0; k < node_count; k++) {
    const cleave_node_view_t *node = &lowering->region->nodes[nodes[k]];
    for (uint32_t o = 0; o < node->output_count; o++) {
      uint32_t value = node->outputs[o];
      if (value == CLEAVE_INDEX_NONE || readers[value] == 0) {
        continue;
      }
      if (lowering->viewers[value] != CLEAVE_INDEX_NONE) {
        uint32_t loaded = lowering->values[value];
        if (loaded == CLEAVE_INDEX_NONE) {
          KERNEL_TRY(kernel_lower_load(lowering, node, value, &loaded));
        }
        KERNEL_TRY(kernel_lower_result(lowering, node, o, loaded));
      }
      const cleave_tensor_view_t *tensor = &lowering->region->values[value].tensor;
      uint32_t output = lowering->program->output_count;
      KERNEL_TRY(kernel_program_output(lowering->program, tensor->dtype, lowering->values[value], false,
                                       lowering->message));
      lowering->lowered->outputs[output] = value;
    }
  }
  return CLEAVE_OK;
}

cleave_status_t kernel_lower(kernel_lowerer_t *lowerer, uint32_t node_count, const uint32_t *nodes,
                             kernel_lowered_t *out_lowered, cleave_message_t *message) {
  *out_lowered = (kernel_lowered_t){.fast_math = out_lowered->fast_math,
                                    .region = lowerer->region,
                                    .node_count = node_count,
                                    .nodes = nodes};
  lowering_t lowering = {.region = lowerer->region,
                         .lowered = out_lowered,
                         .values = lowerer->values,
                         .viewers = lowerer->viewers,
                         .inside = lowerer->inside,
                         .message = message};
  for (uint32_t k = 0; k < node_count; k++) {
    set_inside(lowerer, nodes[k], true);
  }
  cleave_status_t status = lower_nodes(&lowering, node_count, nodes);
  status = status == CLEAVE_OK ? lower_outputs(&lowering, lowerer->readers, node_count, nodes) : status;
  for (uint32_t k = 0; k < node_count; k++) {
    set_inside(lowerer, nodes[k], false);
  }
  if (status != CLEAVE_OK) {
    kernel_program_destroy(out_lowered->program);
    out_lowered->program = NULL;
  }
  /* Nodes that no program can compute are unsupported, not invalid. */
  return status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY ? status : CLEAVE_ERROR_UNSUPPORTED;
}
