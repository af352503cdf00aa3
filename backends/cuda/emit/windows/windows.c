// SPDX-License-Identifier: Apache-2.0
// Windows, and poolings over them.
#include "windows.h"

#include <stdio.h>
#include <string.h>

#include "kernels/convert.h"

enum { BLOCK = 256 };

static int64_t listed(const cleave_node_view_t *node, const char *name, uint32_t index, int64_t otherwise) {
  uint32_t count = 0;
  const int64_t *ints = cleave_view_ints(node, name, &count);
  return index < count ? ints[index] : otherwise;
}

/* SAME: as much padding as the result needs, the odd one at the end or at the begin. */
static void find_pads(const cleave_node_view_t *node, cuda_window_t *window, int32_t d) {
  const char *mode = cleave_view_string(node, "auto_pad", "NOTSET");
  window->before[d] = listed(node, "pads", (uint32_t)d, 0);
  window->after[d] = listed(node, "pads", (uint32_t)(window->axes + d), 0);
  if (strcmp(mode, "VALID") == 0) {
    window->before[d] = 0;
    window->after[d] = 0;
  } else if (strncmp(mode, "SAME", 4) == 0) {
    int64_t reach = (window->size[d] - 1) * window->dilation[d] + 1;
    int64_t total = (window->out[d] - 1) * window->stride[d] + reach - window->in[d];
    total = total > 0 ? total : 0;
    window->before[d] = strcmp(mode, "SAME_LOWER") == 0 ? total - total / 2 : total / 2;
    window->after[d] = total - window->before[d];
  }
}

// Wide: the two tensors, and the sizes of the window.
cleave_status_t cuda_window_between(cuda_plan_t *plan, const cleave_node_view_t *node,
                                    const cleave_tensor_view_t *x, const cleave_tensor_view_t *y,
                                    const int64_t *sizes, cuda_window_t *out_window) {
  cuda_window_t *window = out_window;
  memset(window, 0, sizeof *window);
  window->axes = x->rank - 2;
  if (window->axes < 1 || window->axes > CUDA_MAX_AXES || y == NULL || y->rank != x->rank) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "1 to %d spatial axes are supported", CUDA_MAX_AXES);
  }
  for (int32_t d = 0; d < window->axes; d++) {
    window->in[d] = x->dims[d + 2];
    window->out[d] = y->dims[d + 2];
    window->size[d] = sizes[d];
    window->stride[d] = listed(node, "strides", (uint32_t)d, 1);
    window->dilation[d] = listed(node, "dilations", (uint32_t)d, 1);
    find_pads(node, window, d);
  }
  return CLEAVE_OK;
}

bool cuda_window_is_even(const cuda_window_t *window) {
  bool is_even = true;
  for (int32_t d = 0; d < window->axes; d++) {
    int64_t room = window->in[d] + 2 * window->before[d] - ((window->size[d] - 1) * window->dilation[d] + 1);
    is_even =
        is_even && window->before[d] >= 0 && room >= 0 && window->out[d] == room / window->stride[d] + 1;
  }
  return is_even;
}

void cuda_window_axes(const cuda_window_t *window, const int64_t *numbers, cuda_kernel_call_t *call) {
  memcpy(call->numbers + call->number_count, numbers, (size_t)window->axes * sizeof *numbers);
  call->number_count += (uint32_t)window->axes;
}

void cuda_window_defines(const cuda_window_t *window, cleave_dtype_t dtype, char *out_text, size_t size) {
  int used = cuda_text_defines(dtype, out_text, size);
  (void)snprintf(
      out_text + used, size - (size_t)used,
      "#define AXES %d\n#define WINDOW_FIELDS index in[AXES], out[AXES], window[AXES], stride[AXES], "
      "dilation[AXES], before[AXES]\n",
      (int)window->axes);
}

void cuda_window_numbers(const cuda_window_t *window, cuda_kernel_call_t *call) {
  cuda_window_axes(window, window->in, call);
  cuda_window_axes(window, window->out, call);
  cuda_window_axes(window, window->size, call);
  cuda_window_axes(window, window->stride, call);
  cuda_window_axes(window, window->dilation, call);
  cuda_window_axes(window, window->before, call);
}

static cleave_status_t check_pool(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  uint32_t count = 0;
  (void)cleave_view_ints(node, "kernel_shape", &count);
  if (count != (uint32_t)(x->rank - 2)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE,
                            "kernel_shape does not have an entry for each spatial axis");
  }
  if (!cpu_dtype_is_float(x->dtype) && strcmp(node->op, "MaxPool") != 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "expected floating-point numbers");
  }
  return CLEAVE_OK;
}

/* The value that a search for a largest element begins with. */
static const char *lowest_of(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_I8 ? "-128" : dtype == CLEAVE_DTYPE_U8 ? "0" : "__int_as_float(0xff800000)";
}

cleave_status_t cuda_emit_pool(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *outputs[2] = {cuda_output(plan, node, 0), cuda_output(plan, node, 1)};
  const cleave_tensor_view_t *y = outputs[0] != NULL ? outputs[0] : outputs[1];
  cuda_window_t window;
  char types[448];
  char defines[704];
  uint32_t count = 0;
  CUDA_TRY(check_pool(plan, node));
  bool is_last = outputs[1] == NULL && x->rank == 4 && cuda_layout_is_lacking(plan, node->inputs[0]);
  uint32_t slots[2] = {node->inputs[0], outputs[0] != NULL ? node->outputs[0] : node->outputs[1]};
  if (is_last) {
    CUDA_TRY(cuda_layout_read_last(plan, slots[0], x->dtype, x->dims, &slots[0]));
    CUDA_TRY(cuda_layout_write_last(plan, slots[1], x->dtype, y->dims, &slots[1]));
  } else {
    CUDA_TRY(cuda_layout_need(plan, slots[0]));
  }
  CUDA_TRY(cuda_window_between(plan, node, x, y, cleave_view_ints(node, "kernel_shape", &count), &window));
  int mode = strcmp(node->op, "MaxPool") == 0 ? 0 : strcmp(node->op, "AveragePool") == 0 ? 1 : 2;
  int indices = outputs[1] == NULL ? 0 : cleave_view_int(node, "storage_order", 0) != 0 ? 2 : 1;
  cuda_window_defines(&window, x->dtype, types, sizeof types);
  (void)snprintf(defines, sizeof defines,
                 "%stypedef %s accumulator;\n#define MODE %d\n#define P %lld\n#define COUNTS_BORDER %d\n"
                 "#define LOWEST %s\n#define INDICES %d\n#define VALUES %d\n#define CHANNELS_LAST %d\n",
                 types, x->dtype == CLEAVE_DTYPE_F64 ? "double" : "float", mode,
                 (long long)cleave_view_int(node, "p", 2), (int)cleave_view_int(node, "count_include_pad", 0),
                 lowest_of(x->dtype), indices, outputs[0] != NULL ? 1 : 0, is_last ? 1 : 0);
  cuda_kernel_call_t call = {.text = "pool",
                             .label = node->op,
                             .defines = defines,
                             .pointer_count = 2,
                             .pointers = {{slots[0], 0}, {slots[1], 0}},
                             .block = BLOCK};
  if (outputs[0] != NULL && outputs[1] != NULL) {
    call.pointers[call.pointer_count++] = (cuda_pointer_t){node->outputs[1], 0};
  }
  call.threads = cleave_view_element_count(y);
  call.is_wide = call.threads > INT32_MAX - 1024 || cleave_view_element_count(x) > INT32_MAX - 1024;
  call.numbers[call.number_count++] = call.threads;
  call.numbers[call.number_count++] = x->dims[1];
  cuda_window_numbers(&window, &call);
  cuda_window_axes(&window, window.after, &call);
  return cuda_plan_kernel(plan, &call);
}

/* ---- windows over channels ---- */

cleave_status_t cuda_emit_lrn(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  int64_t size = cleave_view_int(node, "size", 0);
  if (x->rank < 2 || size < 1 || size > INT32_MAX / 2) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "it has no channels, or no window over them");
  }
  if (!cpu_dtype_is_float(x->dtype)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "expected floating-point numbers");
  }
  char types[256];
  char defines[448];
  (void)cuda_text_defines(x->dtype, types, sizeof types);
  (void)snprintf(defines, sizeof defines,
                 "%s#define WINDOW %lld\n#define SCALE %.17g\n#define BETA %.17g\n#define BIAS %.17g\n",
                 types, (long long)size, cleave_view_float(node, "alpha", 1e-4) / (double)size,
                 cleave_view_float(node, "beta", 0.75), cleave_view_float(node, "bias", 1.0));
  cuda_kernel_call_t call = {.text = "lrn",
                             .label = node->op,
                             .defines = defines,
                             .threads = cleave_view_element_count(x),
                             .pointer_count = 2,
                             .pointers = {{node->inputs[0], 0}, {node->outputs[0], 0}},
                             .number_count = 3,
                             .block = BLOCK};
  call.is_wide = call.threads > INT32_MAX - 1024;
  call.numbers[0] = call.threads;
  call.numbers[1] = x->dims[1];
  call.numbers[2] = cuda_product_of(x->dims + 2, x->rank - 2);
  return cuda_plan_kernel(plan, &call);
}
