// SPDX-License-Identifier: Apache-2.0
// Conv and ConvTranspose of one to three spatial axes, with groups, for float types, and ConvGradWeight.
// Shapes are checked against each other before anything is read; the numeric code is in conv.inc.
#include <string.h>

#include "cpu/common/gemm.h"
#include "cpu/common/nn.h"
#include "cpu/common/window.h"
#include "kernels/vector_math.h"

// One tile of columns; small enough to stay in the cache between building and multiplying it.
#define CONV_TILE_BYTES ((int64_t)2 << 20)

// Fewer columns than this make a product inefficient.
#define CONV_NARROW 96

typedef struct conv_state {
  cpu_window_t window;
  int64_t groups;
  uint32_t output_padding_count;
  int64_t output_padding[CPU_WINDOW_AXES];
  bool has_output_shape;
} conv_state_t;

// The decisions that depend on shapes. For ConvTranspose the geometry is that of the convolution it reverses,
// from output to input.
typedef struct conv_plan {
  cpu_geometry_t geometry;
  int64_t groups;
  int64_t out_channels;
  int64_t rows;    // of the column matrix of one group
  int64_t tile;    // output positions built at once
  int64_t tiles;   // of one group of one image
  int64_t slots;   // threads that work on tiles of their own; 1: all work on the same
  bool direct;     // the image is its own column matrix
  bool depthwise;  // one input channel per group
} conv_plan_t;

// Tiles run side by side if there is one for every thread that is not too narrow; otherwise (small images
// with many channels) threads share one tile, and split its product by output channels.
static void plan_tiles(conv_plan_t *plan, int64_t threads) {
  int64_t positions = cpu_nn_max(plan->geometry.out_count, 1);
  int64_t images = cpu_nn_multiply(plan->geometry.batch, plan->groups);
  int64_t most =
      cpu_nn_max(CONV_TILE_BYTES / (int64_t)sizeof(float) / cpu_nn_max(plan->rows, 1), CONV_NARROW);
  plan->tiles = (positions - 1) / most + 1;
  if (images < threads) {
    int64_t wanted = (plan->tiles + threads - 1) / threads * threads;
    plan->tiles = positions / wanted >= CONV_NARROW ? wanted : plan->tiles;
  }
  plan->tile = (positions - 1) / plan->tiles + 1;
  plan->tiles = (positions - 1) / plan->tile + 1;
  plan->slots = threads > 1 && cpu_nn_multiply(images, plan->tiles) >= threads ? threads : 1;
}

static int64_t tile_width(int64_t rows, int64_t positions) {
  int64_t width = CONV_TILE_BYTES / (int64_t)sizeof(float) / (rows > 0 ? rows : 1);
  return cpu_nn_max(cpu_nn_min(cpu_nn_max(width, 64), positions), 1);
}

static cleave_status_t check_bias(const cpu_call_t *call, int64_t channels, cleave_message_t *message) {
  const cpu_tensor_t *bias = cpu_input(call, 2);
  return bias == NULL ? CLEAVE_OK : cpu_nn_check_count("bias", bias, channels, message);
}

// The image is its own column matrix: one tap, which reads everything in order.
static bool is_direct(const cpu_geometry_t *g) {
  bool direct = g->kernel_count == 1 && g->in_count == g->out_count;
  for (int axis = 0; axis < CPU_WINDOW_AXES; axis++) {
    direct = direct && g->stride[axis] == 1 && g->pad[axis] == 0;
  }
  return direct;
}

static cleave_status_t conv_plan(const cpu_call_t *call, conv_plan_t *out_plan, cleave_message_t *message) {
  const conv_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  const cpu_tensor_t *w = call->inputs[1];
  const cpu_tensor_t *y = call->outputs[0];
  conv_plan_t plan = {.groups = state->groups};
  if (w->rank != x->rank || w->rank < 3) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "weights have rank %d, the input has %d", w->rank,
                       x->rank);
  }
  CPU_TRY(cpu_window_resolve(&state->window, x, y, w->dims + 2, &plan.geometry, message));
  const cpu_geometry_t *g = &plan.geometry;
  CPU_TRY(cpu_window_check_output(&state->window, g, message));
  plan.out_channels = w->dims[0];
  if (g->channels % plan.groups != 0 || plan.out_channels % plan.groups != 0 ||
      w->dims[1] != g->channels / plan.groups || y->dims[0] != g->batch || y->dims[1] != plan.out_channels) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                       "%lld channel%s in %lld group%s cannot have weights [%lld, %lld]",
                       (long long)g->channels, KERNEL_PLURAL(g->channels), (long long)plan.groups,
                       KERNEL_PLURAL(plan.groups), (long long)w->dims[0], (long long)w->dims[1]);
  }
  CPU_TRY(check_bias(call, plan.out_channels, message));
  plan.rows = w->dims[1] * g->kernel_count;
  plan.direct = is_direct(g);
  plan.depthwise = !plan.direct && w->dims[1] == 1 && plan.groups > 1;
  plan_tiles(&plan, call->threads);
  *out_plan = plan;
  return CLEAVE_OK;
}

// Plans the convolution from x to y whose weights get a gradient from that of y.
static cleave_status_t weight_plan(const cpu_call_t *call, conv_plan_t *out_plan, cleave_message_t *message) {
  const conv_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  const cpu_tensor_t *dy = call->inputs[1];
  const cpu_tensor_t *dw = call->outputs[0];
  conv_plan_t plan = {.groups = state->groups};
  if (dw->rank != x->rank || dy->rank != x->rank || x->rank < 3) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "weights have rank %d, the input %d, its result %d",
                       dw->rank, x->rank, dy->rank);
  }
  CPU_TRY(cpu_window_resolve(&state->window, x, dy, dw->dims + 2, &plan.geometry, message));
  const cpu_geometry_t *g = &plan.geometry;
  plan.out_channels = dw->dims[0];
  if (g->channels % plan.groups != 0 || plan.out_channels % plan.groups != 0 ||
      dw->dims[1] != g->channels / plan.groups || dy->dims[0] != g->batch ||
      dy->dims[1] != plan.out_channels) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                       "%lld channel%s in %lld group%s cannot have weights [%lld, %lld]",
                       (long long)g->channels, KERNEL_PLURAL(g->channels), (long long)plan.groups,
                       KERNEL_PLURAL(plan.groups), (long long)dw->dims[0], (long long)dw->dims[1]);
  }
  plan.rows = dw->dims[1] * g->kernel_count;
  plan.direct = is_direct(g);
  plan.tile = plan.direct ? cpu_nn_max(g->out_count, 1) : tile_width(plan.rows, g->out_count);
  *out_plan = plan;
  return CLEAVE_OK;
}

// Padding of ConvTranspose follows from the output size if auto_pad or output_shape fix that.
static cleave_status_t transpose_pads(const conv_state_t *state, cpu_geometry_t *g,
                                      cleave_message_t *message) {
  cpu_auto_pad_t auto_pad = state->window.auto_pad;
  bool from_output =
      state->has_output_shape || auto_pad == CPU_PAD_SAME_UPPER || auto_pad == CPU_PAD_SAME_LOWER;
  for (int32_t axis = 0; axis < CPU_WINDOW_AXES; axis++) {
    int32_t k = axis - (CPU_WINDOW_AXES - g->spatial);
    int64_t more = k >= 0 && state->output_padding_count != 0 ? state->output_padding[k] : 0;
    int64_t reach = (g->kernel[axis] - 1) * g->dilation[axis] + 1;
    int64_t full = g->stride[axis] * (g->out[axis] - 1) + more + reach;
    if (from_output) {
      int64_t total = cpu_nn_max(full - g->in[axis], 0);
      g->pad[axis] = auto_pad == CPU_PAD_SAME_UPPER ? total / 2 : total - total / 2;
      g->pad_end[axis] = total - g->pad[axis];
    } else if (g->out[axis] > 0 && g->in[axis] != full - g->pad[axis] - g->pad_end[axis]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                         "output has %lld element%s on spatial axis %d, expected %lld",
                         (long long)g->in[axis], KERNEL_PLURAL(g->in[axis]), k,
                         (long long)(full - g->pad[axis] - g->pad_end[axis]));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t transpose_plan(const cpu_call_t *call, conv_plan_t *out_plan,
                                      cleave_message_t *message) {
  const conv_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  const cpu_tensor_t *w = call->inputs[1];
  const cpu_tensor_t *y = call->outputs[0];
  conv_plan_t plan = {.groups = state->groups};
  if (w->rank != x->rank || w->rank < 3) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "weights have rank %d, the input has %d", w->rank,
                       x->rank);
  }
  cpu_window_t window = state->window;
  if (window.auto_pad != CPU_PAD_EXPLICIT) {
    window.pad_count = 0;
  }
  // SAME is resolved below from the formula of ConvTranspose.
  window.auto_pad = CPU_PAD_EXPLICIT;
  CPU_TRY(cpu_window_resolve(&window, y, x, w->dims + 2, &plan.geometry, message));
  cpu_geometry_t *g = &plan.geometry;
  if (state->output_padding_count != 0 && state->output_padding_count != (uint32_t)g->spatial) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "output_padding has %u entr%s, expected %d",
                       state->output_padding_count, KERNEL_BY_COUNT(state->output_padding_count, "y", "ies"),
                       g->spatial);
  }
  CPU_TRY(transpose_pads(state, g, message));
  plan.out_channels = cpu_nn_multiply(w->dims[1], plan.groups);
  if (x->dims[1] % plan.groups != 0 || w->dims[0] != x->dims[1] || y->dims[0] != x->dims[0] ||
      y->dims[1] != plan.out_channels) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                       "%lld channel%s in %lld group%s cannot have weights [%lld, %lld]",
                       (long long)x->dims[1], KERNEL_PLURAL(x->dims[1]), (long long)plan.groups,
                       KERNEL_PLURAL(plan.groups), (long long)w->dims[0], (long long)w->dims[1]);
  }
  CPU_TRY(check_bias(call, plan.out_channels, message));
  plan.rows = w->dims[1] * g->kernel_count;
  plan.tile = tile_width(plan.rows, g->out_count);
  *out_plan = plan;
  return CLEAVE_OK;
}

#define FOR_REALS "cpu/nn/conv.inc"
#include "cpu/common/for_reals.inc"

static cleave_status_t conv_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  conv_state_t *conv = state;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_float(prepare, 1, message));
  CPU_TRY(cpu_nn_require_same(prepare, 1, 2, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  CPU_TRY(cpu_window_prepare(prepare, &conv->window, message));
  conv->groups = cleave_view_int(prepare->node, "group", 1);
  if (conv->groups < 1) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "group is %lld, expected at least 1",
                       (long long)conv->groups);
  }
  uint32_t count = 0;
  const int64_t *padding = cleave_view_ints(prepare->node, "output_padding", &count);
  for (uint32_t k = 0; k < count; k++) {
    if (count > CPU_WINDOW_AXES || padding[k] < 0 || padding[k] >= CPU_NN_MAX_EXTENT) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "output_padding is out of range");
    }
    conv->output_padding[k] = padding[k];
  }
  conv->output_padding_count = count;
  (void)cleave_view_ints(prepare->node, "output_shape", &count);
  conv->has_output_shape = count > 0;
  return CLEAVE_OK;
}

static cleave_status_t weight_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  CPU_TRY(cpu_nn_require_same(prepare, 1, 1, message));
  return conv_prepare(prepare, state, message);
}

const cpu_kernel_t cpu_kernels_conv[] = {
    CPU_KERNEL("Conv", 2, .state_size = sizeof(conv_state_t), .prepare = conv_prepare,
               CPU_FLOAT_SCRATCH(conv_scratch), CPU_FLOAT_RUN(conv_run), .multiplies = cpu_gemm_multiplies),
    CPU_KERNEL("ConvTranspose", 2, .state_size = sizeof(conv_state_t), .prepare = conv_prepare,
               CPU_FLOAT_SCRATCH(transpose_scratch), CPU_FLOAT_RUN(transpose_run),
               .multiplies = cpu_gemm_multiplies),
    CPU_KERNEL("ConvGradWeight", 2, .domain = "cleave", .state_size = sizeof(conv_state_t),
               .prepare = weight_prepare, CPU_FLOAT_SCRATCH(weight_scratch), CPU_FLOAT_RUN(weight_run),
               .multiplies = cpu_gemm_multiplies),
    {.op = NULL},
};
