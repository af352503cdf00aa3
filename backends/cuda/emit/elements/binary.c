// SPDX-License-Identifier: Apache-2.0
// Division, remainders and powers of integers, and shifts, which programs of kernels/ do not have. Those of
// floating-point numbers are programs, except for remainders with the sign of the divisor.
#include <string.h>

#include "cuda/emit/emit.h"
#include "kernels/convert.h"
#include "kernels/cuda/expression.h"

enum { BLOCK = 256 };

/* Strides of a tensor along the axes of the result: 0 where it is repeated. */
static bool find_strides(const cleave_tensor_view_t *tensor, const cleave_tensor_view_t *y,
                         int64_t *out_strides) {
  int64_t dense[CLEAVE_MAX_RANK];
  cuda_dense_strides(tensor->rank, tensor->dims, dense);
  for (int32_t d = 0; d < y->rank; d++) {
    int32_t own = d - (y->rank - tensor->rank);
    out_strides[d] = own < 0 || tensor->dims[own] == 1 ? 0 : dense[own];
    if (own >= 0 && tensor->dims[own] != 1 && tensor->dims[own] != y->dims[d]) {
      return false;
    }
  }
  return tensor->rank <= y->rank;
}

/* `wide`: the type that the second operand, and if it is "i64" the first one, is computed in; NULL: that of
 * the first one. */
static void write_defines(cuda_writer_t *writer, const cleave_tensor_view_t *x, const cleave_tensor_view_t *z,
                          const char *wide, const char *operation) {
  char types[256];
  (void)cuda_text_defines(x->dtype, types, sizeof types);
  cuda_write(writer, "%stypedef %s other;\n#define widen_other(x) %s\n", types, cuda_type(z->dtype),
             z->dtype == CLEAVE_DTYPE_F16    ? "half_to_float(x)"
             : z->dtype == CLEAVE_DTYPE_BF16 ? "bfloat_to_float(x)"
                                             : "(x)");
  cuda_write(writer, "typedef %s operand;\n#define OPERATION %s\n", wide != NULL ? wide : "number",
             operation);
}

static cleave_status_t emit_binary(cuda_plan_t *plan, const cleave_node_view_t *node, const char *wide,
                                   const char *operation) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *z = cuda_input(plan, node, 1);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int32_t rank = y->rank > 0 ? y->rank : 1;
  int64_t strides[2][CLEAVE_MAX_RANK] = {{0}, {0}};
  if (!find_strides(x, y, strides[0]) || !find_strides(z, y, strides[1]) || y->dtype != x->dtype ||
      (wide == NULL && z->dtype != x->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its operands do not broadcast to the result");
  }
  CUDA_TRY(cuda_layout_need_inputs(plan, node));
  cuda_writer_t defines = {0};
  write_defines(&defines, x, z, wide, operation);
  cuda_write(&defines, "#define RANK %d\n", (int)rank);
  cuda_kernel_call_t call = {.text = "binary",
                             .label = node->op,
                             .defines = defines.text,
                             .pointer_count = 3,
                             .pointers = {{node->inputs[0], 0}, {node->inputs[1], 0}, {node->outputs[0], 0}},
                             .threads = cleave_view_element_count(y),
                             .number_count = (uint32_t)(1 + 3 * rank),
                             .block = BLOCK};
  call.numbers[0] = call.threads;
  call.is_wide = cuda_is_wide(call.threads);
  for (int32_t d = 0; d < rank; d++) {
    call.numbers[1 + d] = y->rank > 0 ? y->dims[d] : 1;
    call.numbers[1 + rank + d] = strides[0][d];
    call.numbers[1 + 2 * rank + d] = strides[1][d];
  }
  cleave_status_t status = defines.failed ? cuda_plan_no_memory(plan) : cuda_plan_kernel(plan, &call);
  cuda_writer_deinit(&defines);
  return status;
}

static cleave_status_t lowered(cuda_plan_t *plan) {
  return cuda_emit_lowered(plan, plan->region, &plan->node, 1, NULL);
}

cleave_status_t cuda_emit_divide(cuda_plan_t *plan, const cleave_node_view_t *node) {
  return cpu_dtype_is_integer(cuda_input(plan, node, 0)->dtype)
             ? emit_binary(plan, node, NULL, "divide(a, b)")
             : lowered(plan);
}

cleave_status_t cuda_emit_modulo(cuda_plan_t *plan, const cleave_node_view_t *node) {
  bool is_float = cpu_dtype_is_float(cuda_input(plan, node, 0)->dtype);
  bool truncates = cleave_view_int(node, "fmod", 0) != 0;
  return is_float && truncates
             ? lowered(plan)
             : emit_binary(plan, node, NULL, truncates ? "remainder_of(a, b)" : "modulo(a, b)");
}

cleave_status_t cuda_emit_shift(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const char *direction = cleave_view_string(node, "direction", "");
  cleave_dtype_t dtype = cuda_input(plan, node, 0)->dtype;
  bool is_left = strcmp(direction, "LEFT") == 0;
  if ((!is_left && strcmp(direction, "RIGHT") != 0) ||
      (dtype != CLEAVE_DTYPE_U8 && dtype != CLEAVE_DTYPE_U16 && dtype != CLEAVE_DTYPE_U32 &&
       dtype != CLEAVE_DTYPE_U64)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE, "it has no direction, or numbers with a sign");
  }
  return emit_binary(plan, node, NULL, is_left ? "shift_left(a, b)" : "shift_right(a, b)");
}

cleave_status_t cuda_emit_power(cuda_plan_t *plan, const cleave_node_view_t *node) {
  cleave_dtype_t base = cuda_input(plan, node, 0)->dtype;
  cleave_dtype_t exponent = cuda_input(plan, node, 1)->dtype;
  bool is_integer = cpu_dtype_is_integer(base) && cpu_dtype_is_integer(exponent);
  if (is_integer && (base == CLEAVE_DTYPE_U64 || exponent == CLEAVE_DTYPE_U64)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "it has numbers of 64 bits without a sign");
  }
  return is_integer ? emit_binary(plan, node, "i64", "power((i64)a, b)") : lowered(plan);
}
