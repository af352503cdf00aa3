// SPDX-License-Identifier: Apache-2.0
// Operators that know where an element lies: triangles, diagonals and ones at places; running sums and
// reversed sequences.
#include <stdio.h>
#include <string.h>

#include "cuda/emit/emit.h"
#include "kernels/convert.h"
#include "kernels/cuda/expression.h"

enum { BLOCK = 256, MAX_DEFINES = 384 };

/* ---- by diagonals ---- */

typedef enum diagonal_mode { DIAGONAL_FROM, DIAGONAL_UP_TO, DIAGONAL_ALONE } diagonal_mode_t;

static cleave_status_t emit_diagonal(cuda_plan_t *plan, const cleave_node_view_t *node, diagonal_mode_t mode,
                                     int64_t k) {
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  const double one = 1.0;
  uint64_t bits = 0;
  char defines[MAX_DEFINES];
  (void)snprintf(defines, sizeof defines, "%s#define MODE %d\n",
                 cuda_word_type((int64_t)cleave_dtype_size(y->dtype)), (int)mode);
  cuda_kernel_call_t call = {.text = "diagonal",
                             .label = node->op,
                             .defines = defines,
                             .threads = cleave_view_element_count(y),
                             .block = BLOCK};
  int64_t rows = y->dims[y->rank - 2];
  int64_t columns = y->dims[y->rank - 1];
  cpu_convert(CLEAVE_DTYPE_F64, &one, y->dtype, &bits, 1);
  if (mode != DIAGONAL_ALONE) {
    call.pointers[call.pointer_count++] = (cuda_pointer_t){node->inputs[0], 0};
  }
  call.pointers[call.pointer_count++] = (cuda_pointer_t){node->outputs[0], 0};
  call.is_wide = cuda_is_wide(call.threads);
  call.numbers[0] = call.threads;
  call.numbers[1] = rows;
  call.numbers[2] = columns;
  call.numbers[3] = k < -rows ? -rows : k > columns ? columns : k;
  call.numbers[4] = (int64_t)(int32_t)(uint32_t)bits;
  call.numbers[5] = (int64_t)(int32_t)(uint32_t)(bits >> 32);
  call.number_count = mode == DIAGONAL_ALONE ? 6 : 4;
  return cuda_plan_kernel(plan, &call);
}

cleave_status_t cuda_emit_trilu(cuda_plan_t *plan, const cleave_node_view_t *node) {
  int64_t k = 0;
  uint32_t count = 0;
  CUDA_TRY(cuda_read_ints(plan, node, 1, &k, 1, &count));
  if (cuda_input(plan, node, 0)->rank < 2) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its input is no matrix");
  }
  bool is_upper = cleave_view_int(node, "upper", 1) != 0;
  return emit_diagonal(plan, node, is_upper ? DIAGONAL_FROM : DIAGONAL_UP_TO, count > 0 ? k : 0);
}

cleave_status_t cuda_emit_eye_like(cuda_plan_t *plan, const cleave_node_view_t *node) {
  if (cuda_output(plan, node, 0)->rank != 2) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its input is no matrix");
  }
  return emit_diagonal(plan, node, DIAGONAL_ALONE, cleave_view_int(node, "k", 0));
}

/* ---- ones at places ---- */

cleave_status_t cuda_emit_one_hot(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *at = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *values = cuda_input(plan, node, 2);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int64_t axis = cleave_view_int(node, "axis", -1);
  axis = axis < 0 ? axis + y->rank : axis;
  if (axis < 0 || axis >= y->rank || y->rank != at->rank + 1 || cleave_view_element_count(values) != 2) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its axis or its values do not fit");
  }
  bool is_real = at->dtype == CLEAVE_DTYPE_F32 || at->dtype == CLEAVE_DTYPE_F64;
  if (values->dtype != y->dtype || (cpu_dtype_is_float(at->dtype) && !is_real)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE,
                            "its indices are floats of 16 bits, or its values have "
                            "another dtype than the result");
  }
  char defines[MAX_DEFINES];
  (void)snprintf(defines, sizeof defines, "%stypedef %s place;\ntypedef %s exact;\n#define whole(x) %s\n",
                 cuda_word_type((int64_t)cleave_dtype_size(y->dtype)), cuda_type(at->dtype),
                 is_real ? "double" : "i64", is_real ? "trunc((double)(x))" : "(i64)(x)");
  cuda_kernel_call_t call = {.text = "one_hot",
                             .label = node->op,
                             .defines = defines,
                             .pointer_count = 3,
                             .pointers = {{node->inputs[0], 0}, {node->inputs[2], 0}, {node->outputs[0], 0}},
                             .number_count = 3,
                             .threads = cleave_view_element_count(y),
                             .block = BLOCK};
  call.is_wide = cuda_is_wide(call.threads);
  call.numbers[0] = call.threads;
  call.numbers[1] = y->dims[axis];
  call.numbers[2] = cuda_product_of(y->dims + axis + 1, y->rank - (int32_t)axis - 1);
  return cuda_plan_kernel(plan, &call);
}

/* ---- along an axis ---- */

/* The lines before the text: sums of floats are double, those of integers wrap in 64 bits; either is narrowed
 * once. */
static void write_sums(char *defines, cleave_dtype_t dtype, const cleave_node_view_t *node, bool is_rows) {
  const char *widen = dtype == CLEAVE_DTYPE_F16    ? "half_to_float(x)"
                      : dtype == CLEAVE_DTYPE_BF16 ? "bfloat_to_float(x)"
                                                   : "(x)";
  const char *narrow = dtype == CLEAVE_DTYPE_F16    ? "double_to_half(x)"
                       : dtype == CLEAVE_DTYPE_BF16 ? "double_to_bfloat(x)"
                                                    : "(element)(x)";
  (void)snprintf(defines, MAX_DEFINES,
                 "typedef %s element;\ntypedef %s total;\n#define widen(x) %s\n#define narrow(x) %s\n"
                 "#define ROWS %d\n#define EXCLUSIVE %d\n#define REVERSE %d\n",
                 cuda_type(dtype), cpu_dtype_is_float(dtype) ? "double" : "u64", widen, narrow, is_rows,
                 cleave_view_int(node, "exclusive", 0) != 0, cleave_view_int(node, "reverse", 0) != 0);
}

cleave_status_t cuda_emit_running_sum(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t axis = 0;
  uint32_t count = 0;
  char defines[MAX_DEFINES];
  CUDA_TRY(cuda_read_ints(plan, node, 1, &axis, 1, &count));
  int32_t rank = x->rank == 0 ? 1 : x->rank;
  axis = axis < 0 ? axis + rank : axis;
  if (count != 1 || axis < 0 || axis >= rank || x->dtype == CLEAVE_DTYPE_BOOL) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "its axis is outside of the shape, or it adds up bools");
  }
  const cuda_lines_t lines = cuda_lines_of(x, axis);
  write_sums(defines, x->dtype, node, lines.is_rows);
  return cuda_emit_lines(plan, node, "running_sum", defines, &lines);
}

cleave_status_t cuda_emit_reverse_sequence(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *lengths = cuda_input(plan, node, 1);
  int64_t time_axis = cleave_view_int(node, "time_axis", 0);
  int64_t batch_axis = cleave_view_int(node, "batch_axis", 1);
  bool fits = (time_axis == 0 && batch_axis == 1) || (time_axis == 1 && batch_axis == 0);
  if (!fits || x->rank < 2 || lengths->dtype != CLEAVE_DTYPE_I64 ||
      cleave_view_element_count(lengths) != x->dims[batch_axis]) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "its axes are not the first two, or its lengths do not fit");
  }
  int64_t inner = cuda_product_of(x->dims + 2, x->rank - 2);
  int64_t size = cuda_widen_block((int64_t)cleave_dtype_size(x->dtype), &inner);
  cuda_kernel_call_t call = {.text = "reverse",
                             .label = node->op,
                             .defines = cuda_word_type(size),
                             .threads = x->dims[0] * x->dims[1] * inner,
                             .pointer_count = 3,
                             .pointers = {{node->inputs[0], 0}, {node->inputs[1], 0}, {node->outputs[0], 0}},
                             .number_count = 5,
                             .block = BLOCK};
  call.is_wide = cuda_is_wide(call.threads);
  call.numbers[0] = call.threads;
  call.numbers[1] = x->dims[time_axis];
  call.numbers[2] = time_axis == 0 ? x->dims[1] * inner : inner;
  call.numbers[3] = x->dims[batch_axis];
  call.numbers[4] = batch_axis == 0 ? x->dims[1] * inner : inner;
  return cuda_plan_kernel(plan, &call);
}
