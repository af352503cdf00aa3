// SPDX-License-Identifier: Apache-2.0
// Col2Im: columns of windows are added up to the image that they come from.
#include "kernels/convert.h"
#include "windows.h"

enum { BLOCK = 256 };

/* The window whose columns x holds; its places are those of the windows. */
static cleave_status_t read_window(cuda_plan_t *plan, const cleave_node_view_t *node,
                                   cuda_window_t *out_window) {
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int64_t sizes[CLEAVE_MAX_RANK];
  uint32_t counts[4] = {0, 0, 0, 0};
  int32_t axes = y->rank - 2;
  CUDA_TRY(cuda_read_ints(plan, node, 2, sizes, CLEAVE_MAX_RANK, &counts[0]));
  const int64_t *strides = cleave_view_ints(node, "strides", &counts[1]);
  const int64_t *dilations = cleave_view_ints(node, "dilations", &counts[2]);
  const int64_t *pads = cleave_view_ints(node, "pads", &counts[3]);
  *out_window = (cuda_window_t){.axes = axes};
  if (axes < 1 || axes > CUDA_MAX_AXES || counts[0] != (uint32_t)axes ||
      (counts[1] != 0 && counts[1] != (uint32_t)axes) || (counts[2] != 0 && counts[2] != (uint32_t)axes) ||
      (counts[3] != 0 && counts[3] != 2 * (uint32_t)axes)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "1 to %d spatial axes are supported", CUDA_MAX_AXES);
  }
  for (int32_t d = 0; d < axes; d++) {
    cuda_window_t *window = out_window;
    window->in[d] = y->dims[2 + d];
    window->size[d] = sizes[d];
    window->stride[d] = counts[1] != 0 ? strides[d] : 1;
    window->dilation[d] = counts[2] != 0 ? dilations[d] : 1;
    window->before[d] = counts[3] != 0 ? pads[d] : 0;
    window->after[d] = counts[3] != 0 ? pads[axes + d] : 0;
    if (sizes[d] < 1 || window->stride[d] < 1 || window->dilation[d] < 1 || window->before[d] < 0 ||
        window->after[d] < 0 || sizes[d] > INT32_MAX || window->dilation[d] > INT32_MAX) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE, "its windows are empty, or its pads negative");
    }
    int64_t room =
        window->in[d] + window->before[d] + window->after[d] - (sizes[d] - 1) * window->dilation[d] - 1;
    window->out[d] = room < 0 ? 0 : room / window->stride[d] + 1;
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_emit_col2im(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  cuda_window_t window;
  char defines[448];
  CUDA_TRY(read_window(plan, node, &window));
  int64_t places = cuda_product_of(window.out, window.axes);
  int64_t taps = cuda_product_of(window.size, window.axes);
  if (!cpu_dtype_is_float(x->dtype) || x->rank != 3 || x->dims[0] != y->dims[0] || x->dims[2] != places ||
      x->dims[1] != taps * y->dims[1]) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "its columns do not fit the image, or are no floating-point numbers");
  }
  cuda_window_defines(&window, x->dtype, defines, sizeof defines);
  cuda_kernel_call_t call = {.text = "col2im",
                             .label = node->op,
                             .defines = defines,
                             .pointer_count = 2,
                             .pointers = {{node->inputs[0], 0}, {node->outputs[0], 0}},
                             .threads = cleave_view_element_count(y),
                             .number_count = 2,
                             .block = BLOCK};
  call.numbers[0] = call.threads;
  call.numbers[1] = places;
  call.is_wide = cuda_is_wide(call.threads) || cuda_is_wide(cleave_view_element_count(x));
  cuda_window_numbers(&window, &call);
  return cuda_plan_kernel(plan, &call);
}
