// SPDX-License-Identifier: Apache-2.0
// Elements that a tensor of places names. Places of constants are known to be inside; others give zeros if
// they are not.
#include <stdio.h>
#include <string.h>

#include "cuda/emit/emit.h"

enum { BLOCK = 256, MAX_DEFINES = 192 };

typedef struct gather {
  char defines[MAX_DEFINES];
  cuda_kernel_call_t call;
} gather_t;

/* A kernel of `text` over data, places and result, with elements of `size` bytes; lines of `more` before it.
 */
static cleave_status_t begin_gather(cuda_plan_t *plan, const cleave_node_view_t *node, const char *text,
                                    int64_t size, const char *more, gather_t *out_gather) {
  const char *type = cuda_place_type(cuda_input(plan, node, 1));
  bool is_wide = cuda_is_wide(cleave_view_element_count(cuda_output(plan, node, 0)));
  if (type == NULL) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "its indices are neither int32 nor int64");
  }
  for (uint32_t k = 0; k < 2; k++) {
    is_wide = is_wide || cuda_is_wide(cleave_view_element_count(cuda_input(plan, node, k)));
  }
  (void)snprintf(out_gather->defines, MAX_DEFINES, "%stypedef %s place;\n%s", cuda_word_type(size), type,
                 more);
  out_gather->call =
      (cuda_kernel_call_t){.text = text,
                           .label = node->op,
                           .defines = out_gather->defines,
                           .is_wide = is_wide,
                           .pointer_count = 3,
                           .pointers = {{node->inputs[0], 0}, {node->inputs[1], 0}, {node->outputs[0], 0}},
                           .block = BLOCK};
  return CLEAVE_OK;
}

static cleave_status_t read_axis(cuda_plan_t *plan, const cleave_node_view_t *node, int32_t *out_axis) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t axis = cleave_view_int(node, "axis", 0);
  axis = axis < 0 ? axis + x->rank : axis;
  if (axis < 0 || axis >= x->rank) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its axis is outside of the shape");
  }
  *out_axis = (int32_t)axis;
  return CLEAVE_OK;
}

cleave_status_t cuda_emit_gather(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  gather_t gather;
  int32_t axis = 0;
  CUDA_TRY(read_axis(plan, node, &axis));
  int64_t inner = cuda_product_of(x->dims + axis + 1, x->rank - axis - 1);
  int64_t size = cuda_widen_block((int64_t)cleave_dtype_size(x->dtype), &inner);
  CUDA_TRY(begin_gather(plan, node, "gather", size, "", &gather));
  gather.call.number_count = 4;
  gather.call.numbers[1] = x->dims[axis];
  gather.call.numbers[2] = cleave_view_element_count(cuda_input(plan, node, 1));
  gather.call.numbers[3] = inner;
  gather.call.threads = cuda_product_of(x->dims, axis) * gather.call.numbers[2] * inner;
  gather.call.numbers[0] = gather.call.threads;
  return cuda_plan_kernel(plan, &gather.call);
}

cleave_status_t cuda_emit_gather_elements(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *at = cuda_input(plan, node, 1);
  char rank[32];
  gather_t gather;
  int32_t axis = 0;
  int64_t strides[CLEAVE_MAX_RANK];
  CUDA_TRY(read_axis(plan, node, &axis));
  (void)snprintf(rank, sizeof rank, "#define RANK %d\n", (int)x->rank);
  CUDA_TRY(begin_gather(plan, node, "gather_elements", (int64_t)cleave_dtype_size(x->dtype), rank, &gather));
  gather.call.threads = cleave_view_element_count(at);
  cuda_dense_strides(x->rank, x->dims, strides);
  int64_t *number = gather.call.numbers;
  *number++ = gather.call.threads;
  *number++ = x->dims[axis];
  for (int32_t d = 0; d < x->rank; d++) {
    number[d] = at->dims[d];
    number[x->rank + d] = d == axis ? 0 : strides[d];
  }
  number[2 * x->rank] = strides[axis];
  gather.call.number_count = (uint32_t)(3 + 2 * x->rank);
  return cuda_plan_kernel(plan, &gather.call);
}

cleave_status_t cuda_emit_gather_nd(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *at = cuda_input(plan, node, 1);
  int64_t batch = cleave_view_int(node, "batch_dims", 0);
  int64_t depth = at->rank < 1 ? 0 : at->dims[at->rank - 1];
  char tuple[32];
  gather_t gather;
  int64_t strides[CLEAVE_MAX_RANK];
  if (batch < 0 || batch >= at->rank || depth < 1 || depth > x->rank - batch) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its tuples do not fit the data");
  }
  int32_t first = (int32_t)(batch + depth);
  int64_t inner = cuda_product_of(x->dims + first, x->rank - first);
  int64_t size = cuda_widen_block((int64_t)cleave_dtype_size(x->dtype), &inner);
  (void)snprintf(tuple, sizeof tuple, "#define DEPTH %d\n", (int)depth);
  CUDA_TRY(begin_gather(plan, node, "gather_nd", size, tuple, &gather));
  cuda_dense_strides((int32_t)depth, x->dims + batch, strides);
  gather.call.threads = cuda_product_of(at->dims, at->rank - 1) * inner;
  gather.call.numbers[0] = gather.call.threads;
  gather.call.numbers[1] = inner;
  gather.call.numbers[2] = cuda_product_of(at->dims + batch, at->rank - 1 - (int32_t)batch);
  gather.call.numbers[3] = cuda_product_of(x->dims + batch, (int32_t)depth) * inner;
  for (int64_t d = 0; d < depth; d++) {
    gather.call.numbers[4 + d] = x->dims[batch + d];
    gather.call.numbers[4 + depth + d] = strides[d] * inner;
  }
  gather.call.number_count = (uint32_t)(4 + 2 * depth);
  return cuda_plan_kernel(plan, &gather.call);
}
