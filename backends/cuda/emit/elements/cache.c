// SPDX-License-Identifier: Apache-2.0
// TensorScatter: rows of a cache of keys or values.
#include <stdio.h>
#include <string.h>

#include "cuda/emit/emit.h"

enum { BLOCK = 256, MAX_DEFINES = 192 };

static bool fits(const cleave_tensor_view_t *cache, const cleave_tensor_view_t *update,
                 const cleave_tensor_view_t *first, int64_t axis) {
  bool fits = axis > 0 && axis < cache->rank && update->rank == cache->rank &&
              (first == NULL || (first->rank == 1 && first->dims[0] == cache->dims[0]));
  for (int32_t d = 0; fits && d < cache->rank; d++) {
    fits = d == axis ? update->dims[d] <= cache->dims[d] : update->dims[d] == cache->dims[d];
  }
  return fits;
}

cleave_status_t cuda_emit_tensor_scatter(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *cache = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *update = cuda_input(plan, node, 1);
  const cleave_tensor_view_t *first = cuda_input(plan, node, 2);
  const char *mode = cleave_view_string(node, "mode", "linear");
  const char *place = first == NULL ? "i64" : cuda_place_type(first);
  int64_t axis = cleave_view_int(node, "axis", -2);
  axis = axis < 0 ? axis + cache->rank : axis;
  bool is_circular = strcmp(mode, "circular") == 0;
  if (!is_circular && strcmp(mode, "linear") != 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE, "its mode is unknown");
  }
  if (place == NULL || update->dtype != cache->dtype) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE,
                            "its indices are neither int32 nor int64, or its update has another dtype");
  }
  if (!fits(cache, update, first, axis)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its axis, update or indices do not fit the cache");
  }
  int32_t behind = cache->rank - (int32_t)axis - 1;
  int64_t inner = cuda_product_of(cache->dims + axis + 1, behind);
  int64_t size = cuda_widen_block((int64_t)cleave_dtype_size(cache->dtype), &inner);
  char defines[MAX_DEFINES];
  (void)snprintf(defines, sizeof defines, "%stypedef %s place;\n#define INDICES %d\n#define CIRCULAR %d\n",
                 cuda_word_type(size), place, first != NULL, is_circular);
  cuda_kernel_call_t call = {.text = "tensor_scatter",
                             .label = node->op,
                             .defines = defines,
                             .pointer_count = 2,
                             .pointers = {{node->inputs[0], 0}, {node->inputs[1], 0}},
                             .threads = cuda_product_of(cache->dims, (int32_t)axis + 1) * inner,
                             .number_count = 5,
                             .numbers = {0, cache->dims[axis], update->dims[axis], inner,
                                         cuda_product_of(cache->dims + 1, (int32_t)axis - 1)},
                             .block = BLOCK};
  if (first != NULL) {
    call.pointers[call.pointer_count++] = (cuda_pointer_t){node->inputs[2], 0};
  }
  call.pointers[call.pointer_count++] = (cuda_pointer_t){node->outputs[0], 0};
  call.numbers[0] = call.threads;
  call.is_wide = cuda_is_wide(call.threads);
  return cuda_plan_kernel(plan, &call);
}
