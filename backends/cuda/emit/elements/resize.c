// SPDX-License-Identifier: Apache-2.0
// Resize: one pass per axis that changes, from the last to the first, over tables that are constants of the
// plan. Between passes interpolated elements are as wide as they are computed.
#include "kernels/resize/resize.h"

#include <math.h>
#include <stdio.h>

#include "cuda/emit/emit.h"
#include "kernels/convert.h"

enum { BLOCK = 256, MAX_ENTRIES = 1 << 22 /* of the table of an axis */ };

typedef struct resize {
  cuda_plan_t *plan;
  const cleave_node_view_t *node;
  kernel_resize_rule_t rule;
  kernel_resize_axis_t axes[CLEAVE_MAX_RANK];
  cleave_dtype_t dtype;  /* of elements */
  cleave_dtype_t number; /* between passes */
} resize_t;

/* An operand of numbers, which must be constant. */
static cleave_status_t read_numbers(const resize_t *resize, uint32_t input, int64_t room, double *out,
                                    int64_t *out_count) {
  const cleave_tensor_view_t *tensor = cuda_input(resize->plan, resize->node, input);
  *out_count = tensor == NULL ? 0 : cleave_view_element_count(tensor);
  if (*out_count == 0) {
    return CLEAVE_OK;
  }
  const void *data = cuda_plan_data(resize->plan, resize->node->inputs[input]);
  if (data == NULL || *out_count > room) {
    return cuda_plan_refuse(resize->plan, CLEAVE_REASON_CONSTANT,
                            "input %u is not a constant of at most %d numbers", (unsigned)input, (int)room);
  }
  cpu_convert(tensor->dtype, data, CLEAVE_DTYPE_F64, out, *out_count);
  return CLEAVE_OK;
}

static cleave_status_t read_axes(resize_t *resize) {
  const cleave_tensor_view_t *x = cuda_input(resize->plan, resize->node, 0);
  const cleave_tensor_view_t *y = cuda_output(resize->plan, resize->node, 0);
  kernel_resize_numbers_t numbers;
  CUDA_TRY(read_numbers(resize, 1, 2 * CLEAVE_MAX_RANK, numbers.roi, &numbers.roi_count));
  CUDA_TRY(read_numbers(resize, 2, CLEAVE_MAX_RANK, numbers.scales, &numbers.scale_count));
  CUDA_TRY(read_numbers(resize, 3, CLEAVE_MAX_RANK, numbers.sizes, &numbers.size_count));
  if (x->rank != y->rank || cleave_view_element_count(x) == 0) {
    return cuda_plan_refuse(resize->plan, CLEAVE_REASON_SHAPE, "it is empty, or its ranks differ");
  }
  for (int32_t d = 0; d < x->rank; d++) {
    resize->axes[d] = (kernel_resize_axis_t){.in = x->dims[d], .out = y->dims[d], .scale = 1, .roi_end = 1};
  }
  return kernel_resize_scale(&resize->rule, &numbers, x->rank, resize->axes, resize->plan->message);
}

/* The table of an axis as constants: places, and weights in the dtype that is computed in. */
static cleave_status_t make_table(const resize_t *resize, const kernel_resize_axis_t *axis, int64_t taps,
                                  uint32_t *out_slots) {
  cuda_plan_t *plan = resize->plan;
  int64_t entries = axis->out * taps;
  int64_t size = (int64_t)cleave_dtype_size(resize->number);
  int64_t *places = cuda_plan_allocate(plan, (size_t)entries, sizeof *places);
  double *weights = cuda_plan_allocate(plan, (size_t)entries, sizeof *weights);
  int32_t *narrow = cuda_plan_allocate(plan, (size_t)entries, sizeof *narrow);
  void *numbers = cuda_plan_allocate(plan, (size_t)entries, (size_t)size);
  if (places == NULL || weights == NULL || narrow == NULL || numbers == NULL) {
    return cuda_plan_no_memory(plan);
  }
  kernel_resize_table(&resize->rule, axis, taps, places, weights);
  cpu_convert(CLEAVE_DTYPE_I64, places, CLEAVE_DTYPE_I32, narrow, entries);
  cpu_convert(CLEAVE_DTYPE_F64, weights, resize->number, numbers, entries);
  CUDA_TRY(cuda_plan_constant(plan, narrow, entries * (int64_t)sizeof *narrow, &out_slots[0]));
  return cuda_plan_constant(plan, numbers, entries * size, &out_slots[1]);
}

static cleave_status_t emit_pass(const resize_t *resize, int32_t d, uint32_t from, uint32_t to) {
  const kernel_resize_axis_t *axis = &resize->axes[d];
  bool copies = resize->rule.mode == KERNEL_RESIZE_NEAREST;
  bool reads = copies || from == resize->node->inputs[0];
  bool writes = copies || to == resize->node->outputs[0];
  double smallest = ((double)axis->out - 0.5) / (double)axis->in;
  int64_t taps = kernel_resize_taps(&resize->rule, axis->scale);
  char types[256];
  char defines[640];
  uint32_t tables[2] = {0, 0};
  if (taps > kernel_resize_taps(&resize->rule, smallest) || axis->out > MAX_ENTRIES / taps) {
    return cuda_plan_refuse(resize->plan, CLEAVE_REASON_SIZE,
                            "scale %g of axis %d does not fit its sizes, or needs more than %d weights",
                            (double)axis->scale, (int)d, (int)MAX_ENTRIES);
  }
  CUDA_TRY(make_table(resize, axis, taps, tables));
  (void)cuda_text_defines(resize->dtype, types, sizeof types);
  (void)snprintf(defines, sizeof defines,
                 "%s%stypedef %s source;\ntypedef %s target;\n#define FROM_SOURCE(x) %s\n"
                 "#define TO_TARGET(x) %s\n#define OUTSIDE ((number)%.17g)\n",
                 types, copies ? "#define NEAREST\n" : "", reads ? "element" : "number",
                 writes ? "element" : "number", reads ? "widen(x)" : "(x)", writes ? "narrow(x)" : "(x)",
                 resize->rule.extrapolation);
  cuda_kernel_call_t call = {.text = "resize",
                             .label = "Resize",
                             .defines = defines,
                             .pointer_count = 4,
                             .pointers = {{from, 0}, {tables[0], 0}, {tables[1], 0}, {to, 0}},
                             .number_count = 5,
                             .block = BLOCK};
  int64_t outer = 1;
  int64_t inner = 1;
  for (int32_t k = 0; k < cuda_tensor(resize->plan, resize->node->inputs[0])->rank; k++) {
    outer *= k < d ? resize->axes[k].in : 1;
    inner *= k > d ? resize->axes[k].out : 1;
  }
  call.threads = outer * axis->out * inner;
  const int64_t numbers[] = {call.threads, axis->in, axis->out, inner, taps};
  for (uint32_t k = 0; k < call.number_count; k++) {
    call.numbers[k] = numbers[k];
  }
  call.is_wide = call.threads > INT32_MAX - 1024 || outer * axis->in * inner > INT32_MAX - 1024;
  return cuda_plan_kernel(resize->plan, &call);
}

/* The tensor after the pass over axis `d`: those before it are as they were. */
static int64_t count_after(const resize_t *resize, int32_t rank, int32_t d) {
  int64_t count = 1;
  for (int32_t k = 0; k < rank; k++) {
    count *= k < d ? resize->axes[k].in : resize->axes[k].out;
  }
  return count;
}

cleave_status_t cuda_emit_resize(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  resize_t resize = {.plan = plan, .node = node, .dtype = x->dtype};
  CUDA_TRY(kernel_resize_read(node, &resize.rule, plan->message));
  bool copies = resize.rule.mode == KERNEL_RESIZE_NEAREST;
  bool crops = resize.rule.coordinates == KERNEL_RESIZE_TF_CROP_AND_RESIZE;
  if ((!copies && !cpu_dtype_is_float(x->dtype)) || !isfinite(resize.rule.extrapolation)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE,
                            "it interpolates integers, or extrapolation_value is not finite");
  }
  resize.number = copies ? CLEAVE_DTYPE_F32 : kernel_compute_dtype(x->dtype);
  CUDA_TRY(read_axes(&resize));
  int32_t passes[CLEAVE_MAX_RANK];
  int32_t count = 0;
  for (int32_t d = x->rank - 1; d >= 0; d--) {
    const kernel_resize_axis_t *axis = &resize.axes[d];
    if (axis->in != axis->out || (crops && axis->in != 1)) {
      passes[count++] = d;
    }
  }
  if (count == 0) {
    return cuda_emit_view(plan, node);
  }
  int64_t size = (int64_t)cleave_dtype_size(copies ? x->dtype : resize.number);
  uint32_t from = node->inputs[0];
  for (int32_t k = 0; k < count; k++) {
    uint32_t to = node->outputs[0];
    if (k + 1 < count) {
      CUDA_TRY(cuda_plan_scratch(plan, count_after(&resize, x->rank, passes[k]) * size, &to));
    }
    CUDA_TRY(emit_pass(&resize, passes[k], from, to));
    from = to;
  }
  return CLEAVE_OK;
}
