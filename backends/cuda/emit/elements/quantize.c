// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear with any scales. What a program of kernels/ can say, with one scale or
// one for each index of the last axis, is one, which also reads images as they lie.
#include <stdio.h>
#include <string.h>

#include "cuda/emit/emit.h"
#include "kernels/convert.h"
#include "kernels/cuda/expression.h"

enum { BLOCK = 256 };

/* How the scales of a node lie: the numbers behind `count` of quantize.cu. */
typedef struct scales {
  int form; /* SCALES of quantize.cu */
  int64_t axis;
  int64_t inner;
  int64_t group;
  int64_t groups;
} scales_t;

static cleave_status_t read_scales(cuda_plan_t *plan, const cleave_node_view_t *node, scales_t *out_scales) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *scale = cuda_input(plan, node, 1);
  const cleave_tensor_view_t *zero = cuda_input(plan, node, 2);
  int64_t block = cleave_view_int(node, "block_size", 0);
  int64_t axis = cleave_view_int(node, "axis", 1);
  int64_t count = cleave_view_element_count(scale);
  *out_scales = (scales_t){.axis = 1, .inner = 1, .group = 1, .groups = 1};
  if (zero != NULL && cleave_view_element_count(zero) != count) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "it has other numbers of scales and zero points");
  }
  if (block == 0 && count == 1) {
    return CLEAVE_OK;
  }
  axis = axis < 0 ? axis + x->rank : axis;
  if (axis < 0 || axis >= x->rank || block < 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its axis is outside of the shape");
  }
  out_scales->form = block > 0 ? 2 : 1;
  out_scales->axis = x->dims[axis];
  out_scales->inner = cuda_product_of(x->dims + axis + 1, x->rank - (int32_t)axis - 1);
  out_scales->group = block > 0 ? block : 1;
  out_scales->groups = (out_scales->axis + out_scales->group - 1) / out_scales->group;
  int64_t expected = out_scales->groups;
  if (block > 0) {
    expected *= cuda_product_of(x->dims, (int32_t)axis) * out_scales->inner;
  }
  return count == expected || cleave_view_element_count(x) == 0
             ? CLEAVE_OK
             : cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its scales do not fit the data");
}

/* What kernels/lower takes. */
static bool is_lowered(const cuda_plan_t *plan, const cleave_node_view_t *node, bool quantizes) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *scale = cuda_input(plan, node, 1);
  const cleave_tensor_view_t *numbers = quantizes ? x : cuda_output(plan, node, 0);
  const cleave_tensor_view_t *integers = quantizes ? cuda_output(plan, node, 0) : x;
  int64_t axis = cleave_view_int(node, "axis", 1);
  bool is_last = scale->rank == 1 && (axis < 0 ? axis + x->rank : axis) == x->rank - 1;
  return numbers->dtype == CLEAVE_DTYPE_F32 && scale->dtype == CLEAVE_DTYPE_F32 &&
         cleave_dtype_size(integers->dtype) <= 2 && cleave_view_int(node, "block_size", 0) == 0 &&
         (scale->rank == 0 || is_last);
}

static const char *widening(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F16 ? "half_to_float" : dtype == CLEAVE_DTYPE_BF16 ? "bfloat_to_float" : "";
}

/* Bounds of integers of at most 32 bits. */
static void write_bounds(cuda_writer_t *writer, cleave_dtype_t dtype) {
  int bits = 8 * (int)cleave_dtype_size(dtype);
  bool is_signed = dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_I16;
  cuda_write(writer, "#define LOW %d.0\n#define HIGH %d.0\n", is_signed ? -(1 << (bits - 1)) : 0,
             is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1);
}

/* A product of a few bits is exact in float, so that it is rounded once in either type. */
static void write_product(cuda_writer_t *writer, cleave_dtype_t from, cleave_dtype_t to) {
  bool is_float = cleave_dtype_size(from) == 1 ? to != CLEAVE_DTYPE_F64
                                               : cleave_dtype_size(from) == 2 && to == CLEAVE_DTYPE_F32;
  const char *rounding = to == CLEAVE_DTYPE_F16    ? (is_float ? "float_to_half(x)" : "double_to_half(x)")
                         : to == CLEAVE_DTYPE_BF16 ? (is_float ? "float_to_bfloat(x)" : "double_to_bfloat(x)")
                                                   : "(target)(x)";
  cuda_write(writer, "typedef %s exact;\n#define to_target(x) %s\n", is_float ? "float" : "double", rounding);
}

static cleave_status_t emit_own(cuda_plan_t *plan, const cleave_node_view_t *node, bool quantizes) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *scale = cuda_input(plan, node, 1);
  const cleave_tensor_view_t *zero = cuda_input(plan, node, 2);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  scales_t scales;
  CUDA_TRY(cuda_layout_need_inputs(plan, node));
  CUDA_TRY(read_scales(plan, node, &scales));
  cuda_writer_t defines = {0};
  cuda_write(&defines, "typedef %s element;\n#define widen(x) %s(x)\ntypedef %s target;\n",
             cuda_type(x->dtype), widening(x->dtype), cuda_type(y->dtype));
  cuda_write(&defines, "typedef %s scale_element;\n#define widen_scale(x) %s(x)\n", cuda_type(scale->dtype),
             widening(scale->dtype));
  cuda_write(&defines,
             "#define ZEROS %d\ntypedef %s zero_element;\n#define DEQUANTIZES %d\n#define SCALES %d\n",
             zero != NULL, cuda_type(zero != NULL ? zero->dtype : CLEAVE_DTYPE_I8), !quantizes, scales.form);
  if (quantizes) {
    write_bounds(&defines, y->dtype);
  } else {
    write_product(&defines, x->dtype, y->dtype);
  }
  cuda_kernel_call_t call = {.text = "quantize",
                             .label = node->op,
                             .defines = defines.text,
                             .pointer_count = 2,
                             .pointers = {{node->inputs[0], 0}, {node->inputs[1], 0}},
                             .threads = cleave_view_element_count(x),
                             .number_count = 5,
                             .numbers = {0, scales.axis, scales.inner, scales.group, scales.groups},
                             .block = BLOCK};
  if (zero != NULL) {
    call.pointers[call.pointer_count++] = (cuda_pointer_t){node->inputs[2], 0};
  }
  call.pointers[call.pointer_count++] = (cuda_pointer_t){node->outputs[0], 0};
  call.numbers[0] = call.threads;
  call.is_wide = cuda_is_wide(call.threads) || cuda_is_wide(scales.group);
  cleave_status_t status = defines.failed ? cuda_plan_no_memory(plan) : cuda_plan_kernel(plan, &call);
  cuda_writer_deinit(&defines);
  return status;
}

static bool is_quantized(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_U8 || dtype == CLEAVE_DTYPE_I16 ||
         dtype == CLEAVE_DTYPE_U16;
}

cleave_status_t cuda_emit_quantize(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *zero = cuda_input(plan, node, 2);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  if (!cpu_dtype_is_float(cuda_input(plan, node, 0)->dtype) ||
      !cpu_dtype_is_float(cuda_input(plan, node, 1)->dtype) || !is_quantized(y->dtype) ||
      (zero != NULL && zero->dtype != y->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE,
                            "it is not from floating-point numbers to integers of 8 or 16 bits");
  }
  return is_lowered(plan, node, true) ? cuda_emit_lowered(plan, plan->region, &plan->node, 1, NULL)
                                      : emit_own(plan, node, true);
}

cleave_status_t cuda_emit_dequantize(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *zero = cuda_input(plan, node, 2);
  if ((!is_quantized(x->dtype) && x->dtype != CLEAVE_DTYPE_I32) ||
      !cpu_dtype_is_float(cuda_input(plan, node, 1)->dtype) ||
      !cpu_dtype_is_float(cuda_output(plan, node, 0)->dtype) || (zero != NULL && zero->dtype != x->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE,
                            "it is not from integers of 8 or 16 bits or int32 to floating-point numbers");
  }
  return is_lowered(plan, node, false) ? cuda_emit_lowered(plan, plan->region, &plan->node, 1, NULL)
                                       : emit_own(plan, node, false);
}
