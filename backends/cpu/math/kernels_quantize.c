// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear (opset 21: per tensor, per axis, per block; 8, 16 and 32-bit integers) and
// DynamicQuantizeLinear. y = saturate(round_half_even(x / scale) + zero_point); x = (y - zero_point) * scale.
#include <math.h>

#include "cpu/common/nn.h"
#include "kernels/vector_math.h"

typedef struct quantize_state {
  int64_t axis;
  int64_t block;
} quantize_state_t;

// The place of the scale of an element: [outer, axis, inner] with scales [outer or 1, groups, inner or 1].
typedef struct quantize_plan {
  int64_t axis_length;
  int64_t inner;
  int64_t group;  // elements of the axis that share a scale
  int64_t groups;
  bool per_tensor;
  bool blocked;  // scales differ along the other axes too
} quantize_plan_t;

typedef struct quantize {
  const cpu_tensor_t *from;
  const cpu_tensor_t *scale;
  const cpu_tensor_t *zero_point;  // or NULL
  cpu_tensor_t *to;
  quantize_plan_t plan;
} quantize_t;

static int64_t scale_index(const quantize_plan_t *plan, int64_t element) {
  if (plan->per_tensor) {
    return 0;
  }
  int64_t group = element / plan->inner % plan->axis_length / plan->group;
  if (!plan->blocked) {
    return group;
  }
  int64_t outer = element / (plan->inner * plan->axis_length);
  return (outer * plan->groups + group) * plan->inner + element % plan->inner;
}

static cleave_status_t quantize_plan(const cpu_call_t *call, quantize_plan_t *out_plan,
                                     cleave_message_t *message) {
  const quantize_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  const cpu_tensor_t *scale = call->inputs[1];
  const cpu_tensor_t *zero_point = cpu_input(call, 2);
  quantize_plan_t plan = {.axis_length = 1, .inner = 1, .group = 1};
  plan.per_tensor = state->block == 0 && scale->count == 1;
  if (!plan.per_tensor) {
    int32_t axis = 0;
    CPU_TRY(cpu_find_axis(state->axis, x->rank, &axis, message));
    plan.axis_length = cpu_nn_max(x->dims[axis], 1);
    plan.inner = cpu_nn_max(cpu_nn_span(x, axis + 1, x->rank), 1);
    plan.blocked = state->block > 0;
    plan.group = plan.blocked ? state->block : 1;
    plan.groups = (plan.axis_length - 1) / plan.group + 1;
    int64_t expected =
        plan.blocked ? cpu_nn_multiply(x->count / plan.axis_length, plan.groups) : x->dims[axis];
    CPU_TRY(cpu_nn_check_count("scale", scale, expected, message));
  }
  if (zero_point != NULL) {
    CPU_TRY(cpu_nn_check_count("zero point", zero_point, scale->count, message));
  }
  *out_plan = plan;
  return cpu_nn_check_same_dims(x, call->outputs[0], message);
}

static void integer_limits(cleave_dtype_t dtype, double *out_low, double *out_high) {
  switch (dtype) {
    case CLEAVE_DTYPE_U8: *out_low = 0, *out_high = UINT8_MAX; break;
    case CLEAVE_DTYPE_I8: *out_low = INT8_MIN, *out_high = INT8_MAX; break;
    case CLEAVE_DTYPE_U16: *out_low = 0, *out_high = UINT16_MAX; break;
    case CLEAVE_DTYPE_I16: *out_low = INT16_MIN, *out_high = INT16_MAX; break;
    default: *out_low = INT32_MIN, *out_high = INT32_MAX; break;
  }
}

static void quantize_elements(const quantize_t *c, int64_t begin, int64_t end) {
  double low = 0;
  double high = 0;
  integer_limits(c->to->dtype, &low, &high);
  for (int64_t k = begin; k < end; k++) {
    int64_t at = scale_index(&c->plan, k);
    double zero_point = c->zero_point != NULL ? (double)cpu_read_int(c->zero_point, at) : 0;
    // The quotient is that of float32, so that ties fall as in other runtimes.
    float quotient = (float)cpu_read_float(c->from, k) / (float)cpu_read_float(c->scale, at);
    double value = nearbyint((double)quotient) + zero_point;
    cpu_write_float(c->to, k, value >= low ? (value <= high ? value : high) : low);
  }
}

static void dequantize_elements(const quantize_t *c, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; k++) {
    int64_t at = scale_index(&c->plan, k);
    int64_t zero_point = c->zero_point != NULL ? cpu_read_int(c->zero_point, at) : 0;
    double value = (double)(cpu_read_int(c->from, k) - zero_point) * cpu_read_float(c->scale, at);
    cpu_write_float(c->to, k, value);
  }
}

// ---- float32 to and from 8 bits, as weights are folded --------------------------------------------------

// Elements from one on whose scales are the same (`step` 0), or follow each other (1).
typedef struct stretch {
  int64_t count;
  int64_t scale;
  int64_t step;
} stretch_t;

static stretch_t stretch_from(const quantize_plan_t *plan, int64_t element, int64_t end) {
  stretch_t stretch = {.count = end - element, .scale = scale_index(plan, element)};
  if (plan->per_tensor) {
    return stretch;
  }
  int64_t rest = plan->inner - element % plan->inner;
  stretch.step = plan->blocked ? 1 : 0;
  if (plan->inner == 1) {
    int64_t at = element % plan->axis_length;
    rest = plan->axis_length - at;
    rest = plan->blocked && plan->group - at % plan->group < rest ? plan->group - at % plan->group : rest;
    stretch.step = plan->blocked ? 0 : 1;
  }
  stretch.count = rest < stretch.count ? rest : stretch.count;
  return stretch;
}

// 1.5 * 2^23: adding it leaves the nearest integer, ties to even, in the low bits, of numbers below 2^22.
static const float rounder = 12582912.0F;

// Bounds are integers less the zero point, so that they may come before the rounding. NaN is the lowest.
static inline int32_t nearest(float quotient, float low, float high, float zero) {
  float value = quotient > low - zero ? quotient : low - zero;
  value = value < high - zero ? value : high - zero;
  return (int32_t)((value + rounder) - rounder + zero);
}

#define BYTES(type, low_bound, high_bound)                                                                   \
  CPU_VECTOR static void quantize_same_##type(const float *x, const float *scale, const type *zero, type *y, \
                                              int64_t count) {                                               \
    const float low = low_bound, high = high_bound, divisor = scale[0], point = zero[0];                     \
    for (int64_t k = 0; k < count; k++) {                                                                    \
      y[k] = (type)nearest(x[k] / divisor, low, high, point);                                                \
    }                                                                                                        \
  }                                                                                                          \
  CPU_VECTOR static void quantize_each_##type(const float *x, const float *scale, const type *zero, type *y, \
                                              int64_t count) {                                               \
    const float low = low_bound, high = high_bound;                                                          \
    for (int64_t k = 0; k < count; k++) {                                                                    \
      y[k] = (type)nearest(x[k] / scale[k], low, high, zero[k]);                                             \
    }                                                                                                        \
  }                                                                                                          \
  CPU_VECTOR static void dequantize_same_##type(const type *x, const float *scale, const type *zero,         \
                                                float *y, int64_t count) {                                   \
    const float factor = scale[0];                                                                           \
    const int32_t point = zero[0];                                                                           \
    for (int64_t k = 0; k < count; k++) {                                                                    \
      y[k] = (float)(x[k] - point) * factor;                                                                 \
    }                                                                                                        \
  }                                                                                                          \
  CPU_VECTOR static void dequantize_each_##type(const type *x, const float *scale, const type *zero,         \
                                                float *y, int64_t count) {                                   \
    for (int64_t k = 0; k < count; k++) {                                                                    \
      y[k] = (float)(x[k] - zero[k]) * scale[k];                                                             \
    }                                                                                                        \
  }                                                                                                          \
  static void quantize_##type(const quantize_t *c, int64_t begin, int64_t end) {                             \
    stretch_t part;                                                                                          \
    for (int64_t k = begin; k < end; k += part.count) {                                                      \
      part = stretch_from(&c->plan, k, end);                                                                 \
      const type *zero = zeros_of(c, &part);                                                                 \
      (part.step == 0 ? quantize_same_##type : quantize_each_##type)(                                        \
          (const float *)c->from->data + k, (const float *)c->scale->data + part.scale, zero,                \
          (type *)c->to->data + k, part.count);                                                              \
    }                                                                                                        \
  }                                                                                                          \
  static void dequantize_##type(const quantize_t *c, int64_t begin, int64_t end) {                           \
    stretch_t part;                                                                                          \
    for (int64_t k = begin; k < end; k += part.count) {                                                      \
      part = stretch_from(&c->plan, k, end);                                                                 \
      const type *zero = zeros_of(c, &part);                                                                 \
      (part.step == 0 ? dequantize_same_##type : dequantize_each_##type)(                                    \
          (const type *)c->from->data + k, (const float *)c->scale->data + part.scale, zero,                 \
          (float *)c->to->data + k, part.count);                                                             \
    }                                                                                                        \
  }

// Zero points of a stretch. Without any it gets zeros, of which there are 256, and may become shorter.
static const void *zeros_of(const quantize_t *c, stretch_t *part) {
  static const uint8_t none[256];
  if (c->zero_point != NULL) {
    return (const uint8_t *)c->zero_point->data + part->scale;
  }
  part->count = part->step == 0 || part->count < (int64_t)sizeof none ? part->count : (int64_t)sizeof none;
  return none;
}

BYTES(int8_t, INT8_MIN, INT8_MAX)
BYTES(uint8_t, 0, UINT8_MAX)

// The loop for these dtypes, or NULL.
static void (*byte_loop(const quantize_t *c, bool quantizes))(const quantize_t *, int64_t, int64_t) {
  const cpu_tensor_t *numbers = quantizes ? c->from : c->to;
  const cpu_tensor_t *integers = quantizes ? c->to : c->from;
  if (numbers->dtype != CLEAVE_DTYPE_F32 || c->scale->dtype != CLEAVE_DTYPE_F32) {
    return NULL;
  }
  switch (integers->dtype) {
    case CLEAVE_DTYPE_I8: return quantizes ? quantize_int8_t : dequantize_int8_t;
    case CLEAVE_DTYPE_U8: return quantizes ? quantize_uint8_t : dequantize_uint8_t;
    default: return NULL;
  }
}

// ---- both -------------------------------------------------------------------------------------------------

static void quantize_part(void *context, int64_t begin, int64_t end) {
  const quantize_t *c = context;
  void (*loop)(const quantize_t *, int64_t, int64_t) = byte_loop(c, true);
  (loop != NULL ? loop : quantize_elements)(c, begin, end);
}

static void dequantize_part(void *context, int64_t begin, int64_t end) {
  const quantize_t *c = context;
  void (*loop)(const quantize_t *, int64_t, int64_t) = byte_loop(c, false);
  (loop != NULL ? loop : dequantize_elements)(c, begin, end);
}

static cleave_status_t run_elements(const cpu_call_t *call, cleave_parallel_fn_t body,
                                    cleave_message_t *message) {
  CPU_TRY(cpu_output_shape(call, 0, call->inputs[0]->rank, call->inputs[0]->dims, message));
  quantize_t context = {call->inputs[0], call->inputs[1], cpu_input(call, 2), call->outputs[0], {0}};
  CPU_TRY(quantize_plan(call, &context.plan, message));
  cpu_parallel(call, context.from->count, 4096, body, &context);
  return CLEAVE_OK;
}

static cleave_status_t quantize_run(const cpu_call_t *call, cleave_message_t *message) {
  return run_elements(call, quantize_part, message);
}

static cleave_status_t dequantize_run(const cpu_call_t *call, cleave_message_t *message) {
  return run_elements(call, dequantize_part, message);
}

#define QUANTIZED \
  (CPU_NN_BYTES | CPU_NN_ONE(CLEAVE_DTYPE_U16) | CPU_NN_ONE(CLEAVE_DTYPE_I16) | CPU_NN_ONE(CLEAVE_DTYPE_I32))

static cleave_status_t prepare_layout(const cpu_prepare_t *prepare, quantize_state_t *state,
                                      cleave_message_t *message) {
  state->axis = cleave_view_int(prepare->node, "axis", 1);
  state->block = cleave_view_int(prepare->node, "block_size", 0);
  if (state->block < 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "block_size is %lld, expected 0 or more",
                       (long long)state->block);
  }
  return CLEAVE_OK;
}

static cleave_status_t quantize_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  CPU_TRY(cpu_nn_require_dtype(prepare, 0, CPU_NN_FLOATS | CPU_NN_ONE(CLEAVE_DTYPE_I32), message));
  CPU_TRY(cpu_nn_require_dtype(prepare, 1, CPU_NN_FLOATS | CPU_NN_ONE(CLEAVE_DTYPE_I32), message));
  cleave_dtype_t dtype = cpu_output_dtype(prepare, 0);
  if ((QUANTIZED >> (uint32_t)dtype & 1u) == 0 || dtype == CLEAVE_DTYPE_I32) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "output of dtype %s is not supported",
                       cpu_dtype_name(dtype));
  }
  if (cpu_input_dtype(prepare, 2) != CLEAVE_DTYPE_UNKNOWN && cpu_input_dtype(prepare, 2) != dtype) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "zero point is %s, expected %s",
                       cpu_dtype_name(cpu_input_dtype(prepare, 2)), cpu_dtype_name(dtype));
  }
  return prepare_layout(prepare, state, message);
}

static cleave_status_t dequantize_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  CPU_TRY(cpu_nn_require_dtype(prepare, 0, QUANTIZED, message));
  CPU_TRY(cpu_nn_require_float(prepare, 1, message));
  CPU_TRY(cpu_nn_require_same(prepare, 2, 2, message));
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_FLOATS, message));
  return prepare_layout(prepare, state, message);
}

// ---- DynamicQuantizeLinear ----------------------------------------------------------------------------

static cleave_status_t dynamic_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)state;
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_ONE(CLEAVE_DTYPE_U8), message));
  CPU_TRY(cpu_nn_require_output(prepare, 1, CPU_NN_ONE(CLEAVE_DTYPE_F32), message));
  CPU_TRY(cpu_nn_require_output(prepare, 2, CPU_NN_ONE(CLEAVE_DTYPE_U8), message));
  return cpu_nn_require_dtype(prepare, 0, CPU_NN_ONE(CLEAVE_DTYPE_F32), message);
}

enum { LANES = 64, PARTS = 64, PART = 8192 /* elements, at least */ };

typedef struct range {
  float low;
  float high;
} range_t;

// The range of numbers and of zero; a NaN is in none.
CPU_VECTOR static range_t range_of(const float *x, int64_t count) {
  float low[LANES] = {0};
  float high[LANES] = {0};
  int64_t k = 0;
  for (; k + LANES <= count; k += LANES) {
    for (int lane = 0; lane < LANES; lane++) {
      low[lane] = x[k + lane] < low[lane] ? x[k + lane] : low[lane];
      high[lane] = x[k + lane] > high[lane] ? x[k + lane] : high[lane];
    }
  }
  range_t range = {0};
  for (; k < count; k++) {
    range.low = x[k] < range.low ? x[k] : range.low;
    range.high = x[k] > range.high ? x[k] : range.high;
  }
  for (int lane = 0; lane < LANES; lane++) {
    range.low = low[lane] < range.low ? low[lane] : range.low;
    range.high = high[lane] > range.high ? high[lane] : range.high;
  }
  return range;
}

typedef struct dynamic {
  const float *x;
  uint8_t *y;
  int64_t count;
  int64_t parts;
  float scale;
  uint8_t zero_point;
  range_t ranges[PARTS];
} dynamic_t;

static void dynamic_range(void *context, int64_t begin, int64_t end) {
  dynamic_t *c = context;
  for (int64_t part = begin; part < end; part++) {
    int64_t first = c->count * part / c->parts;
    c->ranges[part] = range_of(c->x + first, c->count * (part + 1) / c->parts - first);
  }
}

static void dynamic_part(void *context, int64_t begin, int64_t end) {
  const dynamic_t *c = context;
  quantize_same_uint8_t(c->x + begin, &c->scale, &c->zero_point, c->y + begin, end - begin);
}

static cleave_status_t dynamic_run(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *x = call->inputs[0];
  cpu_tensor_t *y = cpu_output(call, 0);
  cpu_tensor_t *scale_out = cpu_output(call, 1);
  cpu_tensor_t *zero_out = cpu_output(call, 2);
  CPU_TRY(cpu_nn_check_outputs(call, message));
  dynamic_t context = {.x = x->data, .count = x->count, .parts = (x->count - 1) / PART + 1};
  context.parts = context.parts < PARTS ? context.parts : PARTS;
  cpu_parallel(call, context.parts, 1, dynamic_range, &context);
  range_t range = {0};
  for (int64_t part = 0; part < context.parts; part++) {
    range.low = context.ranges[part].low < range.low ? context.ranges[part].low : range.low;
    range.high = context.ranges[part].high > range.high ? context.ranges[part].high : range.high;
  }
  float scale = (range.high - range.low) / 255;
  // The range contains zero, so that the quotient is in [0, 255]; an empty range has no scale of its own.
  float zero = scale > 0 ? nearbyintf(-range.low / scale) : 0;
  context.scale = scale > 0 ? scale : 1;
  context.zero_point = (uint8_t)(zero >= 0 ? (zero <= UINT8_MAX ? zero : UINT8_MAX) : 0);
  if (scale_out != NULL) {
    CPU_TRY(cpu_nn_check_count("scale", scale_out, 1, message));
    *(float *)scale_out->data = scale;
  }
  if (zero_out != NULL) {
    CPU_TRY(cpu_nn_check_count("zero point", zero_out, 1, message));
    *(uint8_t *)zero_out->data = context.zero_point;
  }
  if (y != NULL) {
    CPU_TRY(cpu_nn_check_same_dims(x, y, message));
    context.y = y->data;
    cpu_parallel(call, x->count, 4096, dynamic_part, &context);
  }
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_quantize[] = {
    CPU_KERNEL("QuantizeLinear", 2, .state_size = sizeof(quantize_state_t), .prepare = quantize_prepare,
               .run = quantize_run),
    CPU_KERNEL("DequantizeLinear", 2, .state_size = sizeof(quantize_state_t), .prepare = dequantize_prepare,
               .run = dequantize_run),
    CPU_KERNEL("DynamicQuantizeLinear", 1, .prepare = dynamic_prepare, .run = dynamic_run),
    {.op = NULL},
};
