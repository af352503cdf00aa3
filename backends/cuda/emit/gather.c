// SPDX-License-Identifier: Apache-2.0
// Elements that a tensor of places names.
#include <stdio.h>
#include <string.h>

#include "emit.h"

enum { BLOCK = 256 };

static const char *bits_type(size_t size) {
  return size == 1 ? "u8" : size == 2 ? "u16" : size == 4 ? "u32" : size == 8 ? "u64" : "wide";
}

static cleave_status_t read_axis(cuda_plan_t *plan, const cleave_node_view_t *node, int32_t *out_axis) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *at = cuda_input(plan, node, 1);
  int64_t axis = cleave_view_int(node, "axis", 0);
  axis = axis < 0 ? axis + x->rank : axis;
  if (axis < 0 || axis >= x->rank || (at->dtype != CLEAVE_DTYPE_I32 && at->dtype != CLEAVE_DTYPE_I64)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "expected an axis of the data and indices of int32 or int64");
  }
  *out_axis = (int32_t)axis;
  return CLEAVE_OK;
}

/* Places of constants are known to be inside; others give zeros if they are not. */
cleave_status_t cuda_emit_gather(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *at = cuda_input(plan, node, 1);
  char defines[192];
  int32_t axis = 0;
  CUDA_TRY(read_axis(plan, node, &axis));
  int64_t inner = cuda_product_of(x->dims + axis + 1, x->rank - axis - 1);
  size_t size = cleave_dtype_size(x->dtype);
  while (size < 16 && inner > 0 && inner % 2 == 0) {
    inner /= 2;
    size *= 2;
  }
  (void)snprintf(defines, sizeof defines, "%stypedef %s element;\ntypedef %s place;\n",
                 size == 16 ? "struct alignas(16) wide {\n  u32 words[4];\n};\n" : "", bits_type(size),
                 at->dtype == CLEAVE_DTYPE_I64 ? "i64" : "i32");
  cuda_kernel_call_t call = {.text = "gather",
                             .label = node->op,
                             .defines = defines,
                             .pointer_count = 3,
                             .pointers = {{node->inputs[0], 0}, {node->inputs[1], 0}, {node->outputs[0], 0}},
                             .number_count = 4,
                             .block = BLOCK};
  call.numbers[1] = x->dims[axis];
  call.numbers[2] = cleave_view_element_count(at);
  call.numbers[3] = inner;
  call.threads = cuda_product_of(x->dims, axis) * call.numbers[2] * inner;
  call.numbers[0] = call.threads;
  call.is_wide = call.threads > INT32_MAX - 1024 || cleave_view_element_count(x) > INT32_MAX - 1024;
  return cuda_plan_kernel(plan, &call);
}

cleave_status_t cuda_emit_gather_elements(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *at = cuda_input(plan, node, 1);
  char defines[192];
  int32_t axis = 0;
  int64_t strides[CLEAVE_MAX_RANK];
  CUDA_TRY(read_axis(plan, node, &axis));
  (void)snprintf(defines, sizeof defines, "typedef %s element;\ntypedef %s place;\n#define RANK %d\n",
                 bits_type(cleave_dtype_size(x->dtype)), at->dtype == CLEAVE_DTYPE_I64 ? "i64" : "i32",
                 (int)x->rank);
  cuda_kernel_call_t call = {.text = "gather_elements",
                             .label = node->op,
                             .defines = defines,
                             .pointer_count = 3,
                             .pointers = {{node->inputs[0], 0}, {node->inputs[1], 0}, {node->outputs[0], 0}},
                             .block = BLOCK};
  call.threads = cleave_view_element_count(at);
  call.is_wide = call.threads > INT32_MAX - 1024 || cleave_view_element_count(x) > INT32_MAX - 1024;
  cuda_dense_strides(x->rank, x->dims, strides);
  int64_t *number = call.numbers;
  *number++ = call.threads;
  *number++ = x->dims[axis];
  for (int32_t d = 0; d < x->rank; d++) {
    number[d] = at->dims[d];
    number[x->rank + d] = d == axis ? 0 : strides[d];
  }
  number[2 * x->rank] = strides[axis];
  call.number_count = (uint32_t)(3 + 2 * x->rank);
  return cuda_plan_kernel(plan, &call);
}
