// SPDX-License-Identifier: Apache-2.0
// Hardmax, and the place of the last one of several largest or smallest elements; the first one is a program
// of kernels/.
#include <stdio.h>
#include <string.h>

#include "cuda/emit/emit.h"
#include "kernels/convert.h"

enum { BLOCK = 256, SHORT_ROW = 32, MAX_DEFINES = 384 };

static cleave_status_t emit_extreme(cuda_plan_t *plan, const cleave_node_view_t *node, int32_t axis,
                                    bool is_argument) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t elements = cleave_view_element_count(x);
  int64_t length = x->dims[axis];
  int64_t inner = cuda_product_of(x->dims + axis + 1, x->rank - axis - 1);
  bool is_rows = inner == 1 && length > SHORT_ROW;
  char defines[MAX_DEFINES];
  int used = cuda_text_defines(x->dtype, defines, sizeof defines);
  (void)snprintf(defines + used, sizeof defines - (size_t)used,
                 "#define ROWS %d\n#define ARGUMENT %d\n#define LARGEST %d\n#define LAST %d\n", is_rows,
                 is_argument, strcmp(node->op, "ArgMin") != 0, is_argument);
  cuda_kernel_call_t call = {.text = "extreme",
                             .label = node->op,
                             .defines = defines,
                             .is_wide = cuda_is_wide(elements),
                             .pointer_count = 2,
                             .pointers = {{node->inputs[0], 0}, {node->outputs[0], 0}},
                             .number_count = 3,
                             .numbers = {length > 0 ? elements / length : 0, length, inner},
                             .block = BLOCK};
  call.threads = call.numbers[0] * (is_rows ? BLOCK : 1);
  return cuda_plan_kernel(plan, &call);
}

cleave_status_t cuda_emit_last_argument(cuda_plan_t *plan, const cleave_node_view_t *node, int32_t axis) {
  return emit_extreme(plan, node, axis, true);
}

cleave_status_t cuda_emit_hardmax(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t axis = cleave_view_int(node, "axis", -1);
  axis = axis < 0 ? axis + x->rank : axis;
  if (axis < 0 || axis >= x->rank || !cpu_dtype_is_float(x->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "its axis is outside of the shape, or it has no floating-point numbers");
  }
  return emit_extreme(plan, node, (int32_t)axis, false);
}
