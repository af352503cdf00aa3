// SPDX-License-Identifier: Apache-2.0
// Winograd's algorithm by kernels/winograd. A convolution is computed so if it saves more time than it costs
// to transform images, and to read weights that are 1.8 or 4 times as large or to transform them in each run.
#include <math.h>
#include <stdio.h>

#include "kernels/amx/thirds.h"
#include "kernels/winograd/winograd.h"
#include "onednn/convolution/convolution.h"
#include "onednn/library/types.h"
#include "onednn/plan/care.h"

enum { PANEL = 16, WINDOW = 3, AREA = WINDOW * WINDOW };

// Windows, and constants of a region, that no cache keeps from one run to the next.
static const double least_windows = 2 << 20;
static const size_t least_constants = (size_t)64 << 20;

// ---- is it faster? ----

// Cycles of one core, as measured: multiplications a cycle, the shares of it that direct convolutions and
// products of tiles reach; moving `lanes` channels of a tile of 2x2 and 4x4 in and out; transforming the
// windows of a channel and 16 outputs, or those of few tiles with reading them; bytes of weights a cycle of
// one of two threads. Direct convolutions of AVX-512 stand for what oneDNN chooses, which may be an algorithm
// of Winograd's, too.
typedef struct speed {
  int32_t lanes;
  double products;
  double direct;
  double tiled;
  double in[2];
  double out[2];
  double expand[2];
  double few;
  double bytes;
} speed_t;

static const speed_t zen3 = {8, 16, 0.93, 0.9, {80, 250}, {60, 160}, {100, 150}, 0, 2};
static const speed_t zen5 = {16, 32, 1.2, 0.85, {60, 200}, {50, 150}, {80, 100}, 100, 6};

static const speed_t *speed_here(void) {
  return kernel_winograd_lanes() == zen5.lanes ? &zen5 : &zen3;
}

static double direct_cycles(const speed_t *speed, double pixels, double inputs, double outputs) {
  double products = WINDOW * WINDOW * inputs * outputs;
  return pixels * products / (speed->products * speed->direct) + products * sizeof(float) / speed->bytes;
}

/* By AMX in thirds, if that pays, in cycles of the processor for which it was measured. */
static double thirds_cycles(const onednn_shape_t *x, const onednn_shape_t *y) {
  const double cycles_per_nanosecond = 2.6;
  const kernel_thirds_t thirds = {.images = y->dims[0],
                                  .depth = x->dims[1],
                                  .columns = y->dims[1],
                                  .x_lines = x->dims[2],
                                  .x_width = x->dims[3],
                                  .y_lines = y->dims[2],
                                  .y_width = y->dims[3],
                                  .sides = {WINDOW, WINDOW},
                                  .stride = 1};
  bool pays = kernel_thirds_runs_here() && kernel_thirds_pay(&thirds);
  return pays ? kernel_thirds_time(&thirds) * cycles_per_nanosecond : INFINITY;
}

static double count_tiles(const onednn_shape_t *y, int32_t tile) {
  return (double)y->dims[0] * ceil((double)y->dims[2] / tile) * ceil((double)y->dims[3] / tile);
}

static kernel_winograd_t results_of(int32_t tile, const onednn_shape_t *y) {
  return (kernel_winograd_t){.tile = tile,
                             .lanes = kernel_winograd_lanes(),
                             .images = y->dims[0],
                             .outputs = y->dims[1],
                             .y = {.height = y->dims[2], .width = y->dims[3]}};
}

// Reading transformed weights, or windows that are transformed for each block of tiles.
static double weights_cycles(int32_t tile, bool windows, const onednn_shape_t *y, double inputs) {
  const speed_t *speed = speed_here();
  const kernel_winograd_t winograd = results_of(tile, y);
  double columns = inputs * ceil((double)y->dims[1] / PANEL);
  if (windows && kernel_winograd_is_few(&winograd)) {
    return columns * speed->few;
  }
  double numbers = windows ? AREA : (double)((tile + 2) * (tile + 2));
  double blocks = windows ? (double)kernel_winograd_cut(&winograd, 1).blocks : 0;
  return columns * (blocks * speed->expand[tile / 4] + numbers * PANEL * sizeof(float) / speed->bytes);
}

static bool takes_windows(const onednn_plan_t *plan, int32_t tile, const onednn_shape_t *y, double inputs) {
  double bytes = inputs * (double)y->dims[1] * AREA * sizeof(float);
  const kernel_winograd_t winograd = results_of(tile, y);
  if (kernel_winograd_is_few(&winograd)) {
    return true;
  }
  return bytes >= least_windows && plan->constant_bytes >= least_constants &&
         weights_cycles(tile, true, y, inputs) <= weights_cycles(tile, false, y, inputs);
}

static double winograd_cycles(const onednn_plan_t *plan, int32_t tile, const onednn_shape_t *y,
                              double inputs) {
  const speed_t *speed = speed_here();
  double outputs = (double)y->dims[1];
  double products = (double)((tile + 2) * (tile + 2)) * inputs * ceil(outputs / PANEL) * PANEL;
  double moves = (inputs * speed->in[tile / 4] + outputs * speed->out[tile / 4]) / speed->lanes;
  return count_tiles(y, tile) * (products / (speed->products * speed->tiled) + moves) +
         weights_cycles(tile, takes_windows(plan, tile, y, inputs), y, inputs);
}

static int32_t fastest_tile(const onednn_plan_t *plan, const onednn_shape_t *x, const onednn_shape_t *y) {
  double inputs = (double)x->dims[1];
  double pixels = (double)(y->dims[0] * y->dims[2] * y->dims[3]);
  double direct = 0.9 * direct_cycles(speed_here(), pixels, inputs, (double)y->dims[1]);
  double least = fmin(direct, thirds_cycles(x, y));
  int32_t best = 0;
  for (int32_t tile = 2; tile <= 4; tile += 2) {
    double cycles = winograd_cycles(plan, tile, y, inputs);
    best = cycles < least ? tile : best;
    least = cycles < least ? cycles : least;
  }
  return best;
}

int32_t onednn_winograd_tile(const onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const onednn_form_t form = onednn_plan_form(plan);
  const int32_t lanes = kernel_winograd_lanes();
  if (lanes == 0 || !onednn_window_of_three(plan, kernel) || onednn_plan_computes(plan) != dnnl_f32 ||
      onednn_plan_stores(plan, kernel->output) != dnnl_f32 ||
      (form.layout != ONEDNN_FORM_DEFAULT && form.layout != ONEDNN_FORM_WINOGRAD)) {
    return 0;
  }
  onednn_shape_t w = onednn_plan_shape(plan, kernel->weights);
  onednn_shape_t y = onednn_plan_shape(plan, plan->region->nodes[kernel->node].outputs[0]);
  if (w.dims[0] % lanes != 0 || w.dims[1] % lanes != 0) {
    return 0;
  }
  if (form.layout == ONEDNN_FORM_WINOGRAD) {
    return form.skipped == 0 ? 4 : (form.skipped == 1 ? 2 : 0);
  }
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  return fastest_tile(plan, &x, &y);
}

// ---- the step ----

typedef struct context {
  kernel_winograd_t winograd;
  kernel_winograd_cut_t cut;
  size_t scratch; /* floats of a slot */
  int64_t slots;
  bool has_bias;
  bool has_sum;
} context_t;

typedef struct body {
  const context_t *context;
  kernel_winograd_data_t data;
  float *scratch;
  onednn_shares_t shares;
} body_t;

static void run_slots(void *opaque, int64_t begin, int64_t end) {
  body_t *body = opaque;
  const context_t *context = body->context;
  for (int64_t slot = begin; slot < end; slot++) {
    float *scratch = body->scratch + (size_t)slot * context->scratch;
    for (int64_t unit = onednn_shares_take(&body->shares, slot); unit >= 0;
         unit = onednn_shares_take(&body->shares, slot)) {
      kernel_winograd_run(&context->winograd, &context->cut, &body->data, unit, scratch);
    }
  }
}

static bool run_winograd(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  const context_t *context = loop->context;
  body_t body = {.context = context};
  uint32_t next = 0;
  body.data.x = data[next++];
  body.data.weights = data[next++];
  body.data.bias = context->has_bias ? data[next++] : NULL;
  body.data.sum = context->has_sum ? data[next++] : NULL;
  body.scratch = data[next++];
  body.data.y = data[next];
  onednn_shares_init(&body.shares, kernel_winograd_units(&context->cut), context->slots);
  crew->host->parallel_for(crew->threads, body.shares.count, 1, run_slots, &body);
  return true;
}

// ---- what it computes ----

// Channels last if the data are so, else in blocks, as oneDNN likes them.
static onednn_layout_t layout_for(const onednn_layout_t *source, const onednn_shape_t *shape) {
  onednn_shape_t x = onednn_layout_shape(source);
  onednn_layout_t last = onednn_layout_channels_last(&x);
  bool is_last = !onednn_layout_is_plain(source) && onednn_layout_equal(source, &last);
  if (is_last) {
    return onednn_layout_channels_last(shape);
  }
  return kernel_winograd_lanes() == 8 ? onednn_layout_blocked_by_8(shape) : onednn_layout_blocked(shape);
}

static kernel_winograd_image_t image_of(const onednn_shape_t *shape, const onednn_layout_t *layout) {
  const int64_t *dims = shape->dims;
  const int64_t lanes = kernel_winograd_lanes();
  bool is_last = onednn_layout_is_strided(layout);
  return (kernel_winograd_image_t){.height = dims[2],
                                   .width = dims[3],
                                   .image = dims[1] * dims[2] * dims[3],
                                   .block = is_last ? lanes : dims[2] * dims[3] * lanes,
                                   .pixel = is_last ? dims[1] : lanes};
}

bool onednn_adds_image(const onednn_plan_t *plan, const onednn_step_request_t *request) {
  const onednn_post_t *post = request->posts;
  if (request->post_count == 0 || post->kind != ONEDNN_POST_BINARY || post->algorithm != dnnl_binary_add) {
    return false;
  }
  onednn_shape_t own = onednn_plan_shape(plan, post->operand);
  return onednn_shape_equal(&own, &request->shape);
}

cleave_status_t onednn_step_result(onednn_plan_t *plan, const onednn_step_request_t *request, uint32_t value,
                                   const onednn_layout_t *layout, const onednn_tensor_t *sum,
                                   onednn_tensor_t *out) {
  // Posts that are left may read it.
  bool homeless = value != CLEAVE_INDEX_NONE && !onednn_plan_has_place(plan, value);
  if (sum == NULL || !homeless || sum->buffer == request->source.buffer || !onednn_plan_is_free(plan, sum)) {
    return onednn_plan_make(plan, value, layout, out);
  }
  *out = *sum;
  onednn_plan_overwrite(plan, out);
  return CLEAVE_OK;
}

// An activation; false: the post is something else.
static bool take_activation(const onednn_post_t *post, kernel_winograd_t *winograd) {
  bool is_relu = post->algorithm == dnnl_eltwise_relu && post->alpha == 0.0F;
  bool is_leaky = post->algorithm == dnnl_eltwise_relu && isfinite(post->alpha);
  bool is_clip = post->algorithm == dnnl_eltwise_clip && post->alpha <= post->beta;
  bool is_swish = post->algorithm == dnnl_eltwise_swish && isfinite(post->alpha) && post->alpha != 0.0F;
  if (post->kind != ONEDNN_POST_ELTWISE || !(is_leaky || is_clip || is_swish)) {
    return false;
  }
  winograd->low = is_relu ? 0.0F : (is_clip ? post->alpha : -INFINITY);
  winograd->high = is_clip ? post->beta : INFINITY;
  winograd->slope = is_leaky && !is_relu ? post->alpha : 1.0F;
  winograd->swish = is_swish ? post->alpha : 0.0F;
  return true;
}

static cleave_status_t fill_context(onednn_plan_t *plan, const onednn_step_request_t *request,
                                    const onednn_layout_t *layout, context_t *context) {
  onednn_shape_t x = onednn_layout_shape(&request->source.layout);
  context->winograd =
      (kernel_winograd_t){.tile = request->tile,
                          .lanes = kernel_winograd_lanes(),
                          .images = x.dims[0],
                          .inputs = x.dims[1],
                          .outputs = request->shape.dims[1],
                          .top = request->top,
                          .left = request->left,
                          .x = image_of(&x, layout),
                          .y = image_of(&request->shape, layout),
                          .low = -INFINITY,
                          .high = INFINITY,
                          .slope = 1.0F,
                          .windows = takes_windows(plan, request->tile, &request->shape, (double)x.dims[1])};
  context->has_bias = request->has_bias;
  context->cut = kernel_winograd_cut(&context->winograd, plan->threads);
  context->scratch = kernel_winograd_scratch(&context->winograd, &context->cut);
  int64_t units = kernel_winograd_units(&context->cut);
  context->slots = units < plan->threads ? units : plan->threads;
  return CLEAVE_OK;
}

static cleave_status_t pack(onednn_plan_t *plan, const onednn_step_request_t *request, bool windows,
                            onednn_tensor_t *out) {
  onednn_shape_t shape = onednn_layout_shape(&request->weights.layout);
  onednn_tensor_t weights = request->weights;
  if (windows) {
    shape = (onednn_shape_t){.rank = 3, .dims = {shape.dims[0], shape.dims[1], AREA}};
    weights.layout = onednn_layout_plain(&shape);
  } else {
    int64_t side = request->tile + WINDOW - 1;
    shape = (onednn_shape_t){.rank = 3, .dims = {shape.dims[0], side * side, shape.dims[1]}};
  }
  out->layout = onednn_layout_panels(&shape);
  return onednn_plan_pack(plan, &weights, out);
}

cleave_status_t onednn_emit_winograd(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                     const onednn_step_request_t *request) {
  onednn_argument_t arguments[6] = {{.name = DNNL_ARG_SRC}, {.name = DNNL_ARG_WEIGHTS}};
  uint32_t count = 2;
  context_t *context = kernel_arena_allocate(plan->arena, 1, sizeof(*context));
  if (context == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  onednn_shape_t x = onednn_layout_shape(&request->source.layout);
  onednn_layout_t source = layout_for(&request->source.layout, &x);
  onednn_layout_t layout = layout_for(&request->source.layout, &request->shape);
  ONEDNN_TRY(fill_context(plan, request, &source, context));
  ONEDNN_TRY(onednn_plan_convert(plan, &request->source, &source, &arguments[0].tensor));
  ONEDNN_TRY(pack(plan, request, context->winograd.windows, &arguments[1].tensor));
  if (request->has_bias) {
    arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_BIAS, .tensor = request->bias};
  }
  uint32_t taken = 0;
  onednn_tensor_t *sum = NULL;
  context->has_sum = onednn_adds_image(plan, request);
  if (context->has_sum) {
    sum = &arguments[count].tensor;
    arguments[count++].name = DNNL_ARG_SRC_1;
    ONEDNN_TRY(onednn_plan_fetch(plan, request->posts[taken++].operand, sum));
    ONEDNN_TRY(onednn_plan_convert(plan, sum, &layout, sum));
  }
  if (taken < request->post_count && take_activation(&request->posts[taken], &context->winograd)) {
    taken++;
  }
  arguments[count].name = DNNL_ARG_SCRATCHPAD;
  onednn_plan_scratch(plan, context->scratch * (size_t)context->slots * sizeof(float),
                      &arguments[count++].tensor);
  uint32_t value = taken == request->post_count ? kernel->output : CLEAVE_INDEX_NONE;
  onednn_tensor_t result;
  ONEDNN_TRY(onednn_step_result(plan, request, value, &layout, sum, &result));
  arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_DST, .tensor = result};
  char label[64];
  (void)snprintf(label, sizeof(label), "conv%s%s winograd %dx%d", context->has_sum ? "+sum" : "",
                 taken > (context->has_sum ? 1U : 0U) ? "+posts" : "", (int)request->tile,
                 (int)request->tile);
  const onednn_loop_t loop = {.run = run_winograd, .context = context, .context_bytes = sizeof(*context)};
  (void)onednn_may_raise(plan);  // for results that are not finite
  ONEDNN_TRY(onednn_plan_loop(plan, &loop, arguments, count, kernel->node, label));
  return onednn_emit_chain(plan, &result, request->posts + taken, request->post_count - taken, kernel->node,
                           kernel->output);
}
