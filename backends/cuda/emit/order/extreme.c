// SPDX-License-Identifier: Apache-2.0
// Hardmax, and the place of the last one of several largest or smallest elements; the first one is a program
// of kernels/.
#include <stdio.h>
#include <string.h>

#include "cuda/emit/emit.h"
#include "kernels/convert.h"

enum { MAX_DEFINES = 384 };

static cleave_status_t emit_extreme(cuda_plan_t *plan, const cleave_node_view_t *node, int32_t axis,
                                    bool is_argument) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cuda_lines_t lines = cuda_lines_of(x, axis);
  char defines[MAX_DEFINES];
  int used = cuda_text_defines(x->dtype, defines, sizeof defines);
  (void)snprintf(defines + used, sizeof defines - (size_t)used,
                 "#define ROWS %d\n#define ARGUMENT %d\n#define LARGEST %d\n#define LAST %d\n", lines.is_rows,
                 is_argument, strcmp(node->op, "ArgMin") != 0, is_argument);
  return cuda_emit_lines(plan, node, "extreme", defines, &lines);
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
