// SPDX-License-Identifier: Apache-2.0
// What emitters compute from shapes and constants.
#include "emit.h"
#include "kernels/convert.h"

cleave_status_t cuda_read_ints(cuda_plan_t *plan, const cleave_node_view_t *node, uint32_t index,
                               int64_t *out_ints, uint32_t room, uint32_t *out_count) {
  const cleave_tensor_view_t *tensor = cuda_input(plan, node, index);
  *out_count = 0;
  if (tensor == NULL) {
    return CLEAVE_OK;
  }
  const void *data = cuda_plan_data(plan, node->inputs[index]);
  int64_t count = cleave_view_element_count(tensor);
  if (data == NULL || !cpu_dtype_is_integer(tensor->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_CONSTANT, "input %u is not a constant of integers",
                            (unsigned)index);
  }
  if (count < 0 || count > room) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "input %u has more than %u elements", (unsigned)index,
                            (unsigned)room);
  }
  cpu_convert(tensor->dtype, data, CLEAVE_DTYPE_I64, out_ints, count);
  *out_count = (uint32_t)count;
  return CLEAVE_OK;
}

void cuda_dense_strides(int32_t rank, const int64_t *dims, int64_t *out_strides) {
  int64_t stride = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    out_strides[d] = stride;
    stride *= dims[d] > 0 ? dims[d] : 1;
  }
}

int64_t cuda_product_of(const int64_t *dims, int32_t count) {
  int64_t result = 1;
  for (int32_t k = 0; k < count; k++) {
    result *= dims[k];
  }
  return result;
}

enum { BLOCK = 256, SHORT_ROW = 32 };

cuda_lines_t cuda_lines_of(const cleave_tensor_view_t *x, int64_t axis) {
  cuda_lines_t lines = {.elements = cleave_view_element_count(x), .length = 1, .inner = 1};
  if (x->rank > 0) {
    lines.length = x->dims[axis];
    lines.inner = cuda_product_of(x->dims + axis + 1, x->rank - (int32_t)axis - 1);
  }
  lines.is_rows = lines.inner == 1 && lines.length > SHORT_ROW;
  return lines;
}

cleave_status_t cuda_emit_lines(cuda_plan_t *plan, const cleave_node_view_t *node, const char *text,
                                const char *defines, const cuda_lines_t *lines) {
  cuda_kernel_call_t call = {
      .text = text,
      .label = node->op,
      .defines = defines,
      .is_wide = cuda_is_wide(lines->elements),
      .pointer_count = 2,
      .pointers = {{node->inputs[0], 0}, {node->outputs[0], 0}},
      .number_count = 3,
      .numbers = {lines->length > 0 ? lines->elements / lines->length : 0, lines->length, lines->inner},
      .block = BLOCK};
  call.threads = call.numbers[0] * (lines->is_rows ? BLOCK : 1);
  return cuda_plan_kernel(plan, &call);
}

int64_t cuda_widen_block(int64_t size, int64_t *inner) {
  while (size < 16 && *inner > 0 && *inner % 2 == 0) {
    *inner /= 2;
    size *= 2;
  }
  return size;
}

const char *cuda_place_type(const cleave_tensor_view_t *places) {
  return places->dtype == CLEAVE_DTYPE_I64 ? "i64" : places->dtype == CLEAVE_DTYPE_I32 ? "i32" : NULL;
}
