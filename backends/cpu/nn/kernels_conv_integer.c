// SPDX-License-Identifier: Apache-2.0
// ConvInteger and QLinearConv: convolutions of 8-bit integers with zero points, summed in int32. Padding
// stands for the zero point, so that it adds nothing.
#include <math.h>

#include "cpu/common/nn.h"
#include "cpu/common/window.h"

typedef struct integer_state {
  cpu_window_t window;
  int64_t groups;
  bool quantized;  // QLinearConv
} integer_state_t;

// Input positions of both operators: QLinearConv has scales in between, and a bias.
typedef struct operands {
  const cpu_tensor_t *x;
  const cpu_tensor_t *w;
  const cpu_tensor_t *x_zero;  // or NULL
  const cpu_tensor_t *w_zero;  // or NULL; one, or one per output channel
  const cpu_tensor_t *x_scale;
  const cpu_tensor_t *w_scale;
  const cpu_tensor_t *y_scale;
  const cpu_tensor_t *y_zero;
  const cpu_tensor_t *bias;  // or NULL
} operands_t;

typedef struct integer_conv {
  operands_t operands;
  cpu_geometry_t geometry;
  int64_t groups;
  int64_t out_channels;
  cpu_tensor_t *y;
} integer_conv_t;

static operands_t find_operands(const cpu_call_t *call, bool quantized) {
  if (quantized) {
    return (operands_t){.x = call->inputs[0],
                        .x_scale = call->inputs[1],
                        .x_zero = call->inputs[2],
                        .w = call->inputs[3],
                        .w_scale = call->inputs[4],
                        .w_zero = call->inputs[5],
                        .y_scale = call->inputs[6],
                        .y_zero = call->inputs[7],
                        .bias = cpu_input(call, 8)};
  }
  return (operands_t){
      .x = call->inputs[0], .w = call->inputs[1], .x_zero = cpu_input(call, 2), .w_zero = cpu_input(call, 3)};
}

static cleave_status_t check_parameter(const char *name, const cpu_tensor_t *tensor, int64_t channels,
                                       cleave_message_t *message) {
  return tensor == NULL || tensor->count == 1 ? CLEAVE_OK
                                              : cpu_nn_check_count(name, tensor, channels, message);
}

static cleave_status_t integer_plan(const cpu_call_t *call, integer_conv_t *out_conv,
                                    cleave_message_t *message) {
  const integer_state_t *state = call->state;
  integer_conv_t conv = {.groups = state->groups, .y = call->outputs[0]};
  conv.operands = find_operands(call, state->quantized);
  const operands_t *o = &conv.operands;
  if (o->w->rank != o->x->rank || o->w->rank < 3) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "weights have rank %d, the input has %d", o->w->rank,
                       o->x->rank);
  }
  CPU_TRY(cpu_window_resolve(&state->window, o->x, conv.y, o->w->dims + 2, &conv.geometry, message));
  CPU_TRY(cpu_window_check_output(&state->window, &conv.geometry, message));
  conv.out_channels = o->w->dims[0];
  if (conv.geometry.channels % conv.groups != 0 || conv.out_channels % conv.groups != 0 ||
      o->w->dims[1] != conv.geometry.channels / conv.groups || conv.y->dims[0] != conv.geometry.batch ||
      conv.y->dims[1] != conv.out_channels) {
    return kernel_fail(
        message, CLEAVE_ERROR_SHAPE, "%lld channel%s in %lld group%s cannot have weights [%lld, %lld]",
        (long long)conv.geometry.channels, KERNEL_PLURAL(conv.geometry.channels), (long long)conv.groups,
        KERNEL_PLURAL(conv.groups), (long long)o->w->dims[0], (long long)o->w->dims[1]);
  }
  CPU_TRY(check_parameter("zero point of x", o->x_zero, 1, message));
  CPU_TRY(check_parameter("zero point of w", o->w_zero, conv.out_channels, message));
  CPU_TRY(check_parameter("scale of x", o->x_scale, 1, message));
  CPU_TRY(check_parameter("scale of w", o->w_scale, conv.out_channels, message));
  CPU_TRY(check_parameter("scale of y", o->y_scale, 1, message));
  CPU_TRY(check_parameter("zero point of y", o->y_zero, 1, message));
  if (o->bias != NULL) {
    CPU_TRY(cpu_nn_check_count("bias", o->bias, conv.out_channels, message));
  }
  *out_conv = conv;
  return CLEAVE_OK;
}

// A parameter that is given once, or once per channel.
static int64_t read_zero(const cpu_tensor_t *tensor, int64_t channel) {
  return tensor == NULL ? 0 : cpu_read_int(tensor, tensor->count == 1 ? 0 : channel);
}

static int32_t dot_window(const integer_conv_t *c, int64_t plane, int64_t channel, int64_t position) {
  const cpu_geometry_t *g = &c->geometry;
  int64_t group_in = g->channels / c->groups;
  int64_t first = plane + channel / (c->out_channels / c->groups) * group_in;
  int32_t x_zero = (int32_t)read_zero(c->operands.x_zero, 0);
  int32_t w_zero = (int32_t)read_zero(c->operands.w_zero, channel);
  uint32_t sum = 0;
  for (int64_t row = 0; row < group_in * g->kernel[0] * g->kernel[1]; row++) {
    int64_t in = row / (g->kernel[0] * g->kernel[1]);
    int64_t kd = row / g->kernel[1] % g->kernel[0];
    int64_t kh = row % g->kernel[1];
    int64_t d = position / (g->out[2] * g->out[1]) * g->stride[0] - g->pad[0] + kd * g->dilation[0];
    int64_t h = position / g->out[2] % g->out[1] * g->stride[1] - g->pad[1] + kh * g->dilation[1];
    if (d < 0 || d >= g->in[0] || h < 0 || h >= g->in[1]) {
      continue;
    }
    int64_t from = (first + in) * g->in_count + (d * g->in[1] + h) * g->in[2];
    int64_t weight = (channel * group_in + in) * g->kernel_count + (kd * g->kernel[1] + kh) * g->kernel[2];
    for (int64_t kw = 0; kw < g->kernel[2]; kw++) {
      int64_t w = position % g->out[2] * g->stride[2] - g->pad[2] + kw * g->dilation[2];
      if (w >= 0 && w < g->in[2]) {
        int32_t product = (cpu_read_byte(c->operands.x, from + w) - x_zero) *
                          (cpu_read_byte(c->operands.w, weight + kw) - w_zero);
        sum += (uint32_t)product;
      }
    }
  }
  return (int32_t)sum;
}

static void integer_planes(void *context, int64_t begin, int64_t end) {
  const integer_conv_t *c = context;
  const operands_t *o = &c->operands;
  for (int64_t item = begin; item < end; item++) {
    int64_t channel = item % c->out_channels;
    int64_t plane = item / c->out_channels * c->geometry.channels;
    double factor = 1;
    if (o->y_scale != NULL) {
      factor = cpu_read_float(o->x_scale, 0) *
               cpu_read_float(o->w_scale, o->w_scale->count == 1 ? 0 : channel) /
               cpu_read_float(o->y_scale, 0);
    }
    for (int64_t position = 0; position < c->geometry.out_count; position++) {
      int64_t at = item * c->geometry.out_count + position;
      int32_t sum = dot_window(c, plane, channel, position);
      if (o->y_scale == NULL) {
        ((int32_t *)c->y->data)[at] = sum;
        continue;
      }
      double value = (double)sum + (o->bias != NULL ? (double)cpu_read_int(o->bias, channel) : 0);
      value = nearbyint(value * factor) + (double)read_zero(o->y_zero, 0);
      bool is_signed = c->y->dtype == CLEAVE_DTYPE_I8;
      double low = is_signed ? INT8_MIN : 0;
      double high = is_signed ? INT8_MAX : UINT8_MAX;
      cpu_write_float(c->y, at, value >= low ? (value <= high ? value : high) : low);
    }
  }
}

static cleave_status_t integer_run(const cpu_call_t *call, cleave_message_t *message) {
  integer_conv_t conv;
  CPU_TRY(cpu_nn_check_outputs(call, message));
  CPU_TRY(integer_plan(call, &conv, message));
  int64_t cost = conv.geometry.out_count * conv.geometry.kernel_count;
  cpu_parallel(call, conv.geometry.batch * conv.out_channels, cpu_nn_grain(cost), integer_planes, &conv);
  return CLEAVE_OK;
}

static cleave_status_t prepare_window(const cpu_prepare_t *prepare, integer_state_t *state, bool quantized,
                                      cleave_message_t *message) {
  state->quantized = quantized;
  state->groups = cleave_view_int(prepare->node, "group", 1);
  if (state->groups < 1) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "group is %lld, expected at least 1",
                       (long long)state->groups);
  }
  return cpu_window_prepare(prepare, &state->window, message);
}

static cleave_status_t integer_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_ONE(CLEAVE_DTYPE_I32), message));
  CPU_TRY(cpu_nn_require_dtype(prepare, 0, CPU_NN_BYTES, message));
  CPU_TRY(cpu_nn_require_dtype(prepare, 1, CPU_NN_BYTES, message));
  return prepare_window(prepare, state, false, message);
}

static cleave_status_t quantized_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  static const uint32_t dtypes[] = {CPU_NN_BYTES,  CPU_NN_FLOATS, CPU_NN_BYTES,  CPU_NN_BYTES,
                                    CPU_NN_FLOATS, CPU_NN_BYTES,  CPU_NN_FLOATS, CPU_NN_BYTES};
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_BYTES, message));
  for (uint32_t k = 0; k < 8; k++) {
    CPU_TRY(cpu_nn_require_dtype(prepare, k, dtypes[k], message));
  }
  if (cpu_input_dtype(prepare, 8) != CLEAVE_DTYPE_UNKNOWN) {
    CPU_TRY(cpu_nn_require_dtype(prepare, 8, CPU_NN_ONE(CLEAVE_DTYPE_I32), message));
  }
  return prepare_window(prepare, state, true, message);
}

const cpu_kernel_t cpu_kernels_conv_integer[] = {
    CPU_KERNEL("ConvInteger", 2, .state_size = sizeof(integer_state_t), .prepare = integer_prepare,
               .run = integer_run),
    CPU_KERNEL("QLinearConv", 8, .state_size = sizeof(integer_state_t), .prepare = quantized_prepare,
               .run = integer_run),
    {.op = NULL},
};
