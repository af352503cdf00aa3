// SPDX-License-Identifier: Apache-2.0
// Steps of kernels for AVX-512: windows of one pixel, which are products of the pixels of an image with the
// weights, by kernels/matrix, which reaches 0.93 of what a core can where oneDNN's code reaches 0.8;
// depthwise ones; and any window by AMX in thirds. Images stay in the order that they have.
#include <math.h>
#include <stdio.h>

#include "kernels/amx/thirds.h"
#include "kernels/depthwise/depthwise.h"
#include "kernels/instructions.h"
#include "kernels/matrix/wide.h"
#include "onednn/convolution/convolution.h"
#include "onednn/plan/care.h"

enum { PANEL = KERNEL_WIDE_PANEL };

// ---- may it be computed so? ----

static bool is_one_pixel(const onednn_window_t *window) {
  bool is_one = window->rank == 2;
  for (int32_t d = 0; is_one && d < window->rank; d++) {
    is_one = window->kernel[d] == 1 && window->strides[d] == 1 && window->pad_begin[d] == 0 &&
             window->pad_end[d] == 0;
  }
  return is_one;
}

// Is it in blocks of 16 channels, or channels last, with pixels of an image that follow each other?
static bool is_known_order(const onednn_layout_t *layout) {
  onednn_shape_t shape = onednn_layout_shape(layout);
  onednn_layout_t blocked = onednn_layout_blocked(&shape);
  onednn_layout_t last = onednn_layout_channels_last(&shape);
  return onednn_layout_equal(layout, &blocked) || onednn_layout_equal(layout, &last);
}

/* Is the post an activation of the kernels for AVX-512, and which? */
static bool takes_activation(const onednn_post_t *post, kernel_activation_t *activation) {
  *activation = (kernel_activation_t){.low = -INFINITY, .high = INFINITY};
  if (post->kind != ONEDNN_POST_ELTWISE) {
    return false;
  }
  switch (post->algorithm) {
    case dnnl_eltwise_relu: activation->low = 0.0F; return post->alpha == 0.0F;
    case dnnl_eltwise_clip:
      activation->low = post->alpha;
      activation->high = post->beta;
      return post->alpha <= post->beta;
    case dnnl_eltwise_swish:
      activation->kind = KERNEL_SWISH;
      activation->alpha = post->alpha;
      return isfinite(post->alpha);
    case dnnl_eltwise_logistic:
      activation->kind = KERNEL_SIGMOID;
      activation->alpha = 1.0F;
      return true;
    case dnnl_eltwise_hardswish:
      activation->kind = KERNEL_GATE;
      activation->alpha = 1.0F / 6.0F;
      activation->beta = 0.5F;
      return true;
    default: return false;
  }
}

static bool takes_all_posts(const onednn_plan_t *plan, const onednn_step_request_t *request) {
  kernel_activation_t unused;
  uint32_t taken = onednn_adds_image(plan, request) ? 1 : 0;
  taken += taken < request->post_count && takes_activation(&request->posts[taken], &unused) ? 1 : 0;
  return taken == request->post_count;
}

// float32 throughout, in the default form, with constant weights.
static bool is_plain_kernel(const onednn_plan_t *plan, const onednn_kernel_t *kernel,
                            const onednn_step_request_t *request) {
  return kernel->kind == ONEDNN_CONVOLUTION && onednn_plan_form(plan).layout == ONEDNN_FORM_DEFAULT &&
         onednn_plan_computes(plan) == dnnl_f32 && onednn_plan_stores(plan, kernel->output) == dnnl_f32 &&
         request->source.layout.data_type == dnnl_f32 &&
         onednn_is_constant(&plan->region->values[kernel->weights]) && takes_all_posts(plan, request);
}

static bool has_groups(const onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  return cleave_view_int(&plan->region->nodes[kernel->node], "group", 1) != 1;
}

static bool is_depthwise(const onednn_plan_t *plan, const onednn_kernel_t *kernel,
                         const onednn_window_t *window, const onednn_step_request_t *request) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  int64_t channels = request->shape.dims[1];
  return window->rank == 2 && cleave_view_int(node, "group", 1) == channels &&
         onednn_layout_shape(&request->source.layout).dims[1] == channels && !window->dilated &&
         (window->kernel[0] == 3 || window->kernel[0] == 5) && window->kernel[1] == window->kernel[0] &&
         window->strides[0] <= 2 && window->strides[1] == window->strides[0] &&
         !onednn_adds_image(plan, request);
}

// Are products faster than oneDNN? Measurements say so for activations for which oneDNN takes twice the time,
// for few pixels, and for blocks of channels of which the last is not full: oneDNN multiplies all of it. On
// Intel's processors they are for several threads and large products in blocks, too: a thread mostly reads
// what it has written, as kernels/winograd and kernels/depthwise share pixels in the same way.
static bool pays(const onednn_plan_t *plan, const onednn_step_request_t *request) {
  const int64_t few = 256;
  const int64_t large = 20000000;
  kernel_activation_t activation;
  bool adds = onednn_adds_image(plan, request);
  bool acts = request->post_count > (adds ? 1U : 0U) &&
              takes_activation(&request->posts[adds ? 1 : 0], &activation) &&
              activation.kind != KERNEL_BOUNDS;
  int64_t pixels = request->shape.dims[2] * request->shape.dims[3];
  bool is_blocked = !onednn_layout_is_strided(&request->source.layout);
  int64_t channels = onednn_layout_shape(&request->source.layout).dims[1];
  bool is_padded = is_blocked && channels % PANEL != 0;
  bool is_large = pixels * channels * request->shape.dims[1] >= large;
  bool is_shared = is_blocked && is_large && plan->threads > 1 && kernel_is_intel();
  return acts || pixels <= few || is_padded || is_shared;
}

// ---- images ----

// The order that the image has, or that of the region.
static bool is_channels_last(const onednn_plan_t *plan, const onednn_layout_t *layout) {
  return is_known_order(layout) ? onednn_layout_is_strided(layout) : !plan->blocked;
}

static int64_t stored_channels(int64_t channels, bool is_last) {
  return is_last ? channels : (channels + PANEL - 1) / PANEL * PANEL;
}

static kernel_depthwise_image_t image_of(const onednn_shape_t *shape, bool is_last) {
  const int64_t *dims = shape->dims;
  return (kernel_depthwise_image_t){.height = dims[2],
                                    .width = dims[3],
                                    .image = stored_channels(dims[1], is_last) * dims[2] * dims[3],
                                    .block = is_last ? PANEL : dims[2] * dims[3] * PANEL,
                                    .pixel = is_last ? dims[1] : PANEL};
}

static kernel_thirds_image_t thirds_image(const onednn_shape_t *shape, bool is_last) {
  const kernel_depthwise_image_t image = image_of(shape, is_last);
  return (kernel_thirds_image_t){
      .image = image.image, .line = image.width * image.pixel, .pixel = image.pixel, .block = image.block};
}

static void fill_thirds(const onednn_window_t *window, const onednn_step_request_t *request, bool is_last,
                        kernel_thirds_t *thirds) {
  onednn_shape_t x = onednn_layout_shape(&request->source.layout);
  const int64_t *y = request->shape.dims;
  *thirds = (kernel_thirds_t){.images = x.dims[0],
                              .depth = x.dims[1],
                              .columns = y[1],
                              .x_lines = x.dims[2],
                              .x_width = x.dims[3],
                              .y_lines = y[2],
                              .y_width = y[3],
                              .sides = {window->kernel[0], window->kernel[1]},
                              .stride = window->strides[0],
                              .top = request->top,
                              .left = request->left,
                              .x = thirds_image(&x, is_last),
                              .y = thirds_image(&request->shape, is_last),
                              .sum = thirds_image(&request->shape, is_last),
                              .is_filled = !is_last,
                              .activation = {.low = -INFINITY, .high = INFINITY}};
  if (is_one_pixel(window)) {
    thirds->x_width = thirds->y_width *= thirds->y_lines;
    thirds->x_lines = thirds->y_lines = 1;
  }
}

// ---- which kernel suits? ----

static bool suits_thirds(onednn_plan_t *plan, const onednn_kernel_t *kernel, const onednn_window_t *window,
                         const onednn_step_request_t *request) {
  bool is_window = window->rank == 2 && !window->dilated && window->strides[0] == window->strides[1] &&
                   window->kernel[0] <= KERNEL_THIRDS_SIDE && window->kernel[1] <= KERNEL_THIRDS_SIDE;
  if (!kernel_thirds_runs_here() || !is_window || has_groups(plan, kernel)) {
    return false;
  }
  kernel_thirds_t thirds;
  fill_thirds(window, request, is_channels_last(plan, &request->source.layout), &thirds);
  return kernel_thirds_pay(&thirds) && onednn_may_raise(plan);
}

onednn_wide_kind_t onednn_wide_suits(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                     const onednn_window_t *window, const onednn_step_request_t *request) {
  if (!is_plain_kernel(plan, kernel, request)) {
    return ONEDNN_WIDE_NONE;
  }
  if (suits_thirds(plan, kernel, window, request)) {
    return ONEDNN_WIDE_THIRDS;
  }
  if (!kernel_wide_runs_here() || !is_known_order(&request->source.layout)) {
    return ONEDNN_WIDE_NONE;
  }
  if (!has_groups(plan, kernel) && is_one_pixel(window)) {
    return pays(plan, request) ? ONEDNN_WIDE_PRODUCT : ONEDNN_WIDE_NONE;
  }
  return is_depthwise(plan, kernel, window, request) ? ONEDNN_WIDE_DEPTHWISE : ONEDNN_WIDE_NONE;
}

// ---- the step ----

typedef struct context {
  onednn_wide_kind_t kind;
  union {
    struct {
      kernel_wide_t wide;
      kernel_wide_cut_t wide_cut;
    };
    struct {
      kernel_depthwise_t depthwise;
      kernel_depthwise_cut_t depthwise_cut;
    };
    onednn_thirds_t thirds;
  };
  int64_t units;
  bool has_bias;
  bool has_sum;
} context_t;

typedef struct body {
  const context_t *context;
  kernel_wide_data_t data;
  onednn_shares_t shares;
} body_t;

static void run_units(void *opaque, int64_t begin, int64_t end) {
  body_t *body = opaque;
  const context_t *context = body->context;
  const kernel_depthwise_data_t data = {
      .x = body->data.x, .weights = body->data.weights, .bias = body->data.bias, .y = body->data.y};
  for (; begin < end; begin++) {
    for (int64_t unit = onednn_shares_take(&body->shares, begin); unit >= 0;
         unit = onednn_shares_take(&body->shares, begin)) {
      if (context->kind == ONEDNN_WIDE_DEPTHWISE) {
        kernel_depthwise_run(&context->depthwise, &context->depthwise_cut, &data, unit);
      } else {
        kernel_wide_run(&context->wide, &context->wide_cut, &body->data, unit);
      }
    }
  }
}

static bool run_wide(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  const context_t *context = loop->context;
  body_t body = {.context = context};
  uint32_t next = 0;
  body.data.x = data[next++];
  body.data.weights = data[next++];
  body.data.bias = context->has_bias ? data[next++] : NULL;
  body.data.sum = context->has_sum ? data[next++] : NULL;
  float *scratch = context->kind == ONEDNN_WIDE_THIRDS ? data[next++] : NULL;
  body.data.y = data[next];
  if (context->kind == ONEDNN_WIDE_THIRDS) {
    const kernel_thirds_data_t thirds = {.x = body.data.x,
                                         .weights = body.data.weights,
                                         .bias = body.data.bias,
                                         .sum = body.data.sum,
                                         .y = body.data.y};
    onednn_thirds_run(&context->thirds, crew, &thirds, scratch);
    return true;
  }
  onednn_shares_init(&body.shares, context->units, crew->threads);
  crew->host->parallel_for(crew->threads, body.shares.count, 1, run_units, &body);
  return true;
}

static void fill_product(const onednn_plan_t *plan, const onednn_step_request_t *request, bool is_last,
                         context_t *context) {
  const int64_t *dims = request->shape.dims;
  int64_t pixels = dims[2] * dims[3];
  int64_t depth = onednn_layout_shape(&request->source.layout).dims[1];
  context->wide = (kernel_wide_t){.images = is_last ? 1 : dims[0],
                                  .rows = is_last ? dims[0] * pixels : pixels,
                                  .columns = dims[1],
                                  .depth = depth,
                                  .x_image = stored_channels(depth, is_last) * pixels,
                                  .x_row = is_last ? depth : PANEL,
                                  .x_block = is_last ? PANEL : pixels * PANEL,
                                  .w_panel = depth * PANEL,
                                  .w_ahead = 2 * depth * PANEL,
                                  .y_image = stored_channels(dims[1], is_last) * pixels,
                                  .y_row = is_last ? dims[1] : PANEL,
                                  .y_panel = is_last ? PANEL : pixels * PANEL,
                                  .is_filled = !is_last,
                                  .activation = {.low = -INFINITY, .high = INFINITY}};
  context->wide_cut = kernel_wide_cut(&context->wide, plan->threads);
  context->units = kernel_wide_units(&context->wide, &context->wide_cut);
}

static void fill_depthwise(const onednn_plan_t *plan, const onednn_window_t *window,
                           const onednn_step_request_t *request, bool is_last, context_t *context) {
  onednn_shape_t x = onednn_layout_shape(&request->source.layout);
  context->depthwise = (kernel_depthwise_t){.side = (int32_t)window->kernel[0],
                                            .stride = (int32_t)window->strides[0],
                                            .images = x.dims[0],
                                            .channels = x.dims[1],
                                            .top = request->top,
                                            .left = request->left,
                                            .x = image_of(&x, is_last),
                                            .y = image_of(&request->shape, is_last),
                                            .is_filled = !is_last,
                                            .activation = {.low = -INFINITY, .high = INFINITY}};
  context->depthwise_cut = kernel_depthwise_cut(&context->depthwise, plan->threads);
  context->units = kernel_depthwise_units(&context->depthwise, &context->depthwise_cut);
}

/* Fills in what the kernel is; the bytes of memory that it needs while it runs. */
static size_t fill_context(const onednn_plan_t *plan, const onednn_window_t *window,
                           const onednn_step_request_t *request, bool is_last, context_t *context) {
  switch (context->kind) {
    case ONEDNN_WIDE_DEPTHWISE: fill_depthwise(plan, window, request, is_last, context); return 0;
    case ONEDNN_WIDE_THIRDS:
      fill_thirds(window, request, is_last, &context->thirds.thirds);
      return onednn_thirds_cut(&context->thirds, plan->threads);
    default: fill_product(plan, request, is_last, context); return 0;
  }
}

static kernel_activation_t *activation_of(context_t *context) {
  switch (context->kind) {
    case ONEDNN_WIDE_DEPTHWISE: return &context->depthwise.activation;
    case ONEDNN_WIDE_THIRDS: return &context->thirds.thirds.activation;
    default: return &context->wide.activation;
  }
}

// Panels of 16 outputs; places of the window lie one behind the other, each with its channels.
static cleave_status_t pack(onednn_plan_t *plan, const onednn_step_request_t *request, int64_t channels,
                            onednn_tensor_t *out) {
  onednn_shape_t own = onednn_layout_shape(&request->weights.layout);
  int64_t outputs = request->shape.dims[1];
  int64_t places = onednn_shape_count(&own) / (outputs * channels);
  const int64_t strides[] = {channels * places, 1, places};
  const onednn_shape_t matrix = {.rank = 3, .dims = {outputs, places, channels}};
  onednn_tensor_t weights = request->weights;
  weights.layout = onednn_layout_strided(&matrix, strides);
  out->layout = onednn_layout_panels(&matrix);
  return onednn_plan_pack(plan, &weights, out);
}

static onednn_layout_t layout_for(const onednn_shape_t *shape, bool is_last) {
  return is_last ? onednn_layout_channels_last(shape) : onednn_layout_blocked(shape);
}

cleave_status_t onednn_emit_wide(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                 const onednn_window_t *window, const onednn_step_request_t *request,
                                 onednn_wide_kind_t kind) {
  static const char *const names[] = {[ONEDNN_WIDE_PRODUCT] = "products",
                                      [ONEDNN_WIDE_DEPTHWISE] = "depthwise",
                                      [ONEDNN_WIDE_THIRDS] = "thirds"};
  onednn_argument_t arguments[6] = {{.name = DNNL_ARG_SRC}, {.name = DNNL_ARG_WEIGHTS}};
  uint32_t count = 2;
  context_t *context = kernel_arena_allocate(plan->arena, 1, sizeof(*context));
  if (context == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  bool is_last = is_channels_last(plan, &request->source.layout);
  onednn_shape_t x = onednn_layout_shape(&request->source.layout);
  onednn_layout_t source = layout_for(&x, is_last);
  onednn_layout_t layout = layout_for(&request->shape, is_last);
  *context =
      (context_t){.kind = kind, .has_bias = request->has_bias, .has_sum = onednn_adds_image(plan, request)};
  size_t scratch = fill_context(plan, window, request, is_last, context);
  ONEDNN_TRY(onednn_plan_convert(plan, &request->source, &source, &arguments[0].tensor));
  ONEDNN_TRY(pack(plan, request, kind == ONEDNN_WIDE_DEPTHWISE ? 1 : x.dims[1], &arguments[1].tensor));
  if (request->has_bias) {
    arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_BIAS, .tensor = request->bias};
  }
  uint32_t taken = 0;
  onednn_tensor_t *sum = NULL;
  if (context->has_sum) {
    sum = &arguments[count].tensor;
    arguments[count++].name = DNNL_ARG_SRC_1;
    ONEDNN_TRY(onednn_plan_fetch(plan, request->posts[taken++].operand, sum));
    ONEDNN_TRY(onednn_plan_convert(plan, sum, &layout, sum));
  }
  if (scratch > 0) {
    arguments[count].name = DNNL_ARG_SCRATCHPAD;
    onednn_plan_scratch(plan, scratch, &arguments[count++].tensor);
  }
  bool acts = taken < request->post_count && takes_activation(&request->posts[taken], activation_of(context));
  onednn_tensor_t result;
  ONEDNN_TRY(onednn_step_result(plan, request, kernel->output, &layout, sum, &result));
  arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_DST, .tensor = result};
  char label[64];
  (void)snprintf(label, sizeof(label), "conv%s%s %s %s", context->has_sum ? "+sum" : "", acts ? "+posts" : "",
                 is_last ? "acdb" : "aBcd16b", names[kind]);
  const onednn_loop_t loop = {.run = run_wide, .context = context, .context_bytes = sizeof(*context)};
  ONEDNN_TRY(onednn_plan_loop(plan, &loop, arguments, count, kernel->node, label));
  return onednn_emit_chain(plan, &result, NULL, 0, kernel->node, kernel->output);
}
