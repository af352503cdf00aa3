// SPDX-License-Identifier: Apache-2.0
// Resize (opset 19) of tensors of any rank. Sizes follow from the shapes alone, so that scratch memory can be
// planned; scales, sizes and the region of interest are read when running. Interpolation is one pass per axis
// (resize.inc), in float32 or float64; nearest is one gather for elements of any type.
#include <math.h>
#include <string.h>

#include "cpu/common/nn.h"
#include "kernels/convert.h"
#include "kernels/resize/resize.h"
#include "kernels/vector_math.h"

typedef struct resize_plan {
  int32_t rank;
  int64_t count;  // elements of the output; 0: nothing to do
  kernel_resize_axis_t axes[CLEAVE_MAX_RANK];
  int64_t taps[CLEAVE_MAX_RANK];
  bool skip[CLEAVE_MAX_RANK];  // nothing changes along this axis
  int32_t passes;
  int64_t buffer_count;  // elements of the largest tensor between two passes
} resize_plan_t;

typedef struct resize_memory {
  int64_t *indices[CLEAVE_MAX_RANK];
  double *weights[CLEAVE_MAX_RANK];
  void *buffers[2];
} resize_memory_t;

// Scales are not known yet: taps are enough for the smallest scale that gives this output size.
static cleave_status_t resize_plan(const cpu_call_t *call, resize_plan_t *out_plan,
                                   cleave_message_t *message) {
  const kernel_resize_rule_t *rule = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  const cpu_tensor_t *y = call->outputs[0];
  resize_plan_t plan = {.rank = x->rank, .count = y->count};
  if (x->rank != y->rank || (x->count == 0 && y->count != 0)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "output of rank %d does not fit input of rank %d",
                       y->rank, x->rank);
  }
  for (int32_t d = 0; d < x->rank; d++) {
    plan.axes[d] = (kernel_resize_axis_t){.in = x->dims[d], .out = y->dims[d], .scale = 1, .roi_end = 1};
    double smallest = ((double)y->dims[d] - 0.5) / (double)cpu_nn_max(x->dims[d], 1);
    plan.taps[d] = kernel_resize_taps(rule, smallest);
    bool crop = rule->coordinates == KERNEL_RESIZE_TF_CROP_AND_RESIZE;
    plan.skip[d] = x->dims[d] == y->dims[d] && (!crop || x->dims[d] == 1);
  }
  int64_t size = 1;
  for (int32_t d = 0; d < x->rank; d++) {
    size *= x->dims[d];
  }
  for (int32_t d = x->rank - 1; d >= 0 && plan.count > 0; d--) {
    size = size / x->dims[d] * y->dims[d];
    plan.passes += plan.skip[d] ? 0 : 1;
    plan.buffer_count = cpu_nn_max(plan.buffer_count, size);
  }
  *out_plan = plan;
  return CLEAVE_OK;
}

static size_t resize_layout(const resize_plan_t *plan, size_t element, unsigned char *base,
                            resize_memory_t *out_memory) {
  cpu_carver_t carver = {base, 0};
  for (int32_t d = 0; d < plan->rank; d++) {
    int64_t entries = cpu_nn_multiply(plan->axes[d].out, plan->taps[d]);
    out_memory->indices[d] = cpu_nn_carve(&carver, entries, sizeof(int64_t));
    out_memory->weights[d] = cpu_nn_carve(&carver, entries, sizeof(double));
  }
  for (int k = 0; k < 2; k++) {
    out_memory->buffers[k] = cpu_nn_carve(&carver, plan->passes > k + 1 ? plan->buffer_count : 0, element);
  }
  return carver.used;
}

static int64_t read_numbers(const cpu_call_t *call, uint32_t input, int64_t room, double *out) {
  const cpu_tensor_t *tensor = cpu_input(call, input);
  int64_t count = tensor == NULL ? 0 : tensor->count;
  for (int64_t k = 0; k < count && k < room; k++) {
    out[k] =
        cpu_dtype_is_integer(tensor->dtype) ? (double)cpu_read_int(tensor, k) : cpu_read_float(tensor, k);
  }
  return count;
}

static cleave_status_t read_scales(const cpu_call_t *call, resize_plan_t *plan, cleave_message_t *message) {
  kernel_resize_numbers_t numbers;
  numbers.roi_count = read_numbers(call, 1, 2 * CLEAVE_MAX_RANK, numbers.roi);
  numbers.scale_count = read_numbers(call, 2, CLEAVE_MAX_RANK, numbers.scales);
  numbers.size_count = read_numbers(call, 3, CLEAVE_MAX_RANK, numbers.sizes);
  return kernel_resize_scale(call->state, &numbers, plan->rank, plan->axes, message);
}

static cleave_status_t resize_tables(const cpu_call_t *call, resize_plan_t *plan, resize_memory_t *out_memory,
                                     size_t element, cleave_message_t *message) {
  const kernel_resize_rule_t *rule = call->state;
  CPU_TRY(read_scales(call, plan, message));
  (void)resize_layout(plan, element, call->scratch, out_memory);
  for (int32_t d = 0; d < plan->rank; d++) {
    int64_t taps = kernel_resize_taps(rule, plan->axes[d].scale);
    if (taps > plan->taps[d]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                         "scale %g of axis %d does not fit %lld of %lld element%s",
                         (double)plan->axes[d].scale, d, (long long)plan->axes[d].out,
                         (long long)plan->axes[d].in, KERNEL_PLURAL(plan->axes[d].in));
    }
    plan->taps[d] = taps;
    kernel_resize_table(rule, &plan->axes[d], taps, out_memory->indices[d], out_memory->weights[d]);
  }
  return CLEAVE_OK;
}

#define FOR_REALS "cpu/signal/resize.inc"
#include "cpu/common/for_reals.inc"

// ---- nearest ------------------------------------------------------------------------------------------

typedef struct nearest {
  const resize_plan_t *plan;
  const resize_memory_t *memory;
  const unsigned char *x;
  unsigned char *y;
  size_t element;
  unsigned char outside[8];
} nearest_t;

// Items are lines: all axes but the last.
static void nearest_lines(void *context, int64_t begin, int64_t end) {
  const nearest_t *c = context;
  int32_t last = c->plan->rank - 1;
  int64_t out = c->plan->axes[last].out;
  const int64_t *columns = c->memory->indices[last];
  for (int64_t line = begin; line < end; line++) {
    int64_t rest = line;
    int64_t offset = 0;
    int64_t step = c->plan->axes[last].in;
    bool inside = true;
    for (int32_t d = last - 1; d >= 0; d--) {
      int64_t at = c->memory->indices[d][rest % c->plan->axes[d].out];
      inside = inside && at >= 0;
      offset += at * step;
      step *= c->plan->axes[d].in;
      rest /= c->plan->axes[d].out;
    }
    unsigned char *to = c->y + (size_t)(line * out) * c->element;
    const unsigned char *from = inside ? c->x + (size_t)offset * c->element : NULL;
    if (from != NULL && c->element == 4) {
      for (int64_t o = 0; o < out; o++) {
        memcpy(to + 4 * o, columns[o] < 0 ? c->outside : from + 4 * columns[o], 4);
      }
    } else {
      for (int64_t o = 0; o < out; o++) {
        bool there = from != NULL && columns[o] >= 0;
        memcpy(to + (size_t)o * c->element, there ? from + (size_t)columns[o] * c->element : c->outside,
               c->element);
      }
    }
  }
}

static cleave_status_t nearest_run(const cpu_call_t *call, cleave_message_t *message) {
  const kernel_resize_rule_t *rule = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  cpu_tensor_t *y = call->outputs[0];
  resize_plan_t plan;
  resize_memory_t memory;
  CPU_TRY(resize_plan(call, &plan, message));
  nearest_t context = {.plan = &plan, .memory = &memory, .x = x->data, .y = y->data};
  context.element = cleave_dtype_size(x->dtype);
  if (plan.count == 0 || plan.rank == 0) {
    if (plan.count > 0) {
      memcpy(y->data, x->data, context.element);
    }
    return CLEAVE_OK;
  }
  plan.passes = 0;
  CPU_TRY(resize_tables(call, &plan, &memory, 1, message));
  cpu_tensor_t outside = {.dtype = x->dtype, .count = 1, .data = context.outside};
  cpu_write_float(&outside, 0, rule->extrapolation);
  int64_t line = plan.axes[plan.rank - 1].out;
  cpu_parallel(call, plan.count / line, cpu_nn_grain(line), nearest_lines, &context);
  return CLEAVE_OK;
}

static size_t nearest_scratch(const cpu_call_t *call) {
  resize_plan_t plan;
  resize_memory_t memory;
  if (resize_plan(call, &plan, NULL) != CLEAVE_OK || plan.count == 0) {
    return 0;
  }
  plan.passes = 0;
  return resize_layout(&plan, 1, NULL, &memory);
}

// ---- integers -----------------------------------------------------------------------------------------

// Cuts towards zero, within what the type holds.
static double limit_to(cleave_dtype_t dtype, double value) {
  switch (dtype) {
    case CLEAVE_DTYPE_U8: return trunc(fmin(fmax(value, 0), UINT8_MAX));
    case CLEAVE_DTYPE_I8: return trunc(fmin(fmax(value, INT8_MIN), INT8_MAX));
    case CLEAVE_DTYPE_U16: return trunc(fmin(fmax(value, 0), UINT16_MAX));
    case CLEAVE_DTYPE_I16: return trunc(fmin(fmax(value, INT16_MIN), INT16_MAX));
    case CLEAVE_DTYPE_U32: return trunc(fmin(fmax(value, 0), UINT32_MAX));
    case CLEAVE_DTYPE_I32: return trunc(fmin(fmax(value, INT32_MIN), INT32_MAX));
    case CLEAVE_DTYPE_U64: return trunc(fmax(value, 0));
    default: return trunc(value);
  }
}

// Interpolates a float64 copy.
static cleave_status_t integer_run(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *x = call->inputs[0];
  cpu_tensor_t *y = call->outputs[0];
  resize_plan_t plan;
  resize_memory_t memory;
  CPU_TRY(resize_plan(call, &plan, message));
  if (plan.count == 0) {
    return CLEAVE_OK;
  }
  cpu_carver_t carver = {call->scratch, 0};
  double *from = cpu_nn_carve(&carver, x->count, sizeof(double));
  double *to = cpu_nn_carve(&carver, y->count, sizeof(double));
  cpu_call_t inner = *call;
  inner.scratch = (unsigned char *)call->scratch + carver.used;
  CPU_TRY(resize_tables(&inner, &plan, &memory, sizeof(double), message));
  for (int64_t k = 0; k < x->count; k++) {
    from[k] = cpu_read_float(x, k);
  }
  interpolate_all_f64(&inner, &plan, &memory, from, to);
  for (int64_t k = 0; k < y->count; k++) {
    cpu_write_float(y, k, limit_to(y->dtype, to[k]));
  }
  return CLEAVE_OK;
}

static size_t integer_scratch(const cpu_call_t *call) {
  cpu_carver_t carver = {NULL, 0};
  (void)cpu_nn_carve(&carver, call->inputs[0]->count, sizeof(double));
  (void)cpu_nn_carve(&carver, call->outputs[0]->count, sizeof(double));
  size_t more = interpolate_scratch_f64(call);
  return more > SIZE_MAX - carver.used ? SIZE_MAX : carver.used + more;
}

// ---- the operator -------------------------------------------------------------------------------------

static cleave_status_t resize_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  CPU_TRY(kernel_resize_read(prepare->node, state, message));
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  if (dtype == CLEAVE_DTYPE_STRING || cleave_dtype_size(dtype) == 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "input of dtype %s is not supported",
                       cpu_dtype_name(dtype));
  }
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  if (cpu_input_dtype(prepare, 1) != CLEAVE_DTYPE_UNKNOWN) {
    CPU_TRY(cpu_nn_require_float(prepare, 1, message));
  }
  kernel_resize_rule_t *rule = state; /* the node may be gone when it runs */
  return cpu_prepare_ints(prepare, "axes", &rule->axes, &rule->axis_count);
}

static size_t resize_scratch(const cpu_call_t *call) {
  const kernel_resize_rule_t *rule = call->state;
  if (rule->mode == KERNEL_RESIZE_NEAREST) {
    return nearest_scratch(call);
  }
  if (!cpu_nn_is_float(call->inputs[0]->dtype)) {
    return integer_scratch(call);
  }
  return cpu_nn_scratch_float(call, 0, interpolate_scratch_f32, interpolate_scratch_f64);
}

static cleave_status_t resize_run(const cpu_call_t *call, cleave_message_t *message) {
  const kernel_resize_rule_t *rule = call->state;
  CPU_TRY(cpu_nn_check_outputs(call, message));
  if (rule->mode == KERNEL_RESIZE_NEAREST) {
    return nearest_run(call, message);
  }
  if (!cpu_nn_is_float(call->inputs[0]->dtype)) {
    return integer_run(call, message);
  }
  return cpu_nn_run_float(call, message, 0, interpolate_run_f32, interpolate_run_f64);
}

const cpu_kernel_t cpu_kernels_resize[] = {
    CPU_KERNEL("Resize", 1, .state_size = sizeof(kernel_resize_rule_t), .prepare = resize_prepare,
               .scratch = resize_scratch, .run = resize_run),
    {.op = NULL},
};
