// SPDX-License-Identifier: Apache-2.0
// What training has beside inference: statistics of a batch normalization, and gradients by oneDNN's backward
// primitives. Images keep the layout that they have; weights get the one that oneDNN chooses.
#include "onednn/emit/emit.h"

#include <string.h>

#include "onednn/plan/loop_step.h"
#include "onednn/units/windows.h"

static bool is(const cleave_node_view_t *node, const char *op) {
  return strcmp(node->op, op) == 0;
}

// Makes a primitive descriptor with `attributes` in the maker.
typedef dnnl_status_t (*describe_fn_t)(const onednn_maker_t *maker, const void *context);

static dnnl_status_t describe(const onednn_plan_t *plan, describe_fn_t call, const void *context,
                              dnnl_primitive_desc_t *out) {
  dnnl_primitive_attr_t attributes = NULL;
  *out = NULL;
  dnnl_status_t status = dnnl_primitive_attr_create(&attributes);
  if (status != dnnl_success) {
    return status;
  }
  status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
  if (status == dnnl_success) {
    const onednn_maker_t maker = {.engine = plan->engine, .attributes = attributes, .out = out};
    status = call(&maker, context);
  }
  (void)dnnl_primitive_attr_destroy(attributes);
  return status;
}

// An argument that is read, in the layout that the primitive has for it.
static cleave_status_t read_as(onednn_plan_t *plan, const_dnnl_primitive_desc_t description,
                               dnnl_query_t what, const onednn_tensor_t *tensor, int name,
                               onednn_argument_t *out) {
  onednn_layout_t layout;
  if (!onednn_query_layout(description, what, &layout)) {
    return onednn_check(dnnl_runtime_error, "the layouts of a gradient", plan->message);
  }
  out->name = name;
  return onednn_plan_convert(plan, tensor, &layout, &out->tensor);
}

// One that is written, for `value`.
static cleave_status_t write_as(onednn_plan_t *plan, const_dnnl_primitive_desc_t description,
                                dnnl_query_t what, uint32_t value, int name, onednn_argument_t *out) {
  onednn_layout_t layout;
  if (!onednn_query_layout(description, what, &layout)) {
    return onednn_check(dnnl_runtime_error, "the layouts of a gradient", plan->message);
  }
  out->name = name;
  return onednn_plan_make(plan, value, &layout, &out->tensor);
}

// ---- weights of a convolution ----

typedef struct weights_context {
  onednn_layout_t source;
  onednn_layout_t weights;
  onednn_layout_t result;
  onednn_window_t window;
} weights_context_t;

static onednn_geometry_t geometry_of(const onednn_window_t *window) {
  return (onednn_geometry_t){.kernel = window->kernel,
                             .strides = window->strides,
                             .dilations = window->dilations,
                             .pad_begin = window->pad_begin,
                             .pad_end = window->pad_end};
}

static dnnl_status_t describe_weights(const onednn_maker_t *maker, const void *opaque) {
  const weights_context_t *context = opaque;
  const onednn_operands_t operands = {
      .source = &context->source, .weights = &context->weights, .result = &context->result};
  const onednn_geometry_t geometry = geometry_of(&context->window);
  return onednn_make_convolution_weights(maker, &operands, &geometry);
}

// Is there fast code for these layouts? If not, there is no description.
static bool describe_fast(const onednn_plan_t *plan, weights_context_t *context, dnnl_primitive_desc_t *out) {
  if (describe(plan, describe_weights, context, out) == dnnl_success && !onednn_is_reference(*out)) {
    return true;
  }
  if (*out != NULL) {
    (void)dnnl_primitive_desc_destroy(*out);
  }
  return false;
}

// Images in blocks of 16 channels if the region is for them and oneDNN has fast code, else as it chooses, in
// the type that the kernel computes in if there is fast code for that. The gradient is float32 always.
static dnnl_status_t choose_weights(const onednn_plan_t *plan, weights_context_t *context,
                                    const onednn_tensor_t *images, dnnl_primitive_desc_t *out) {
  onednn_shape_t x = onednn_layout_shape(&images[0].layout);
  onednn_shape_t y = onednn_layout_shape(&images[1].layout);
  onednn_layout_t source = onednn_layout_any(&x);
  onednn_layout_t result = onednn_layout_any(&y);
  if (plan->blocked) {
    bool first = onednn_layout_is_plain(&images[0].layout) && x.dims[1] < 16;
    context->source = first ? source : onednn_layout_blocked(&x);
    context->result = onednn_layout_blocked(&y);
    if (describe_fast(plan, context, out)) {
      return dnnl_success;
    }
  }
  dnnl_data_type_t type = onednn_plan_computes(plan);
  context->source = onednn_layout_typed(&source, type);
  context->result = onednn_layout_typed(&result, type);
  if (type != dnnl_f32 && describe_fast(plan, context, out)) {
    return dnnl_success;
  }
  context->source = source;
  context->result = result;
  return describe(plan, describe_weights, context, out);
}

static cleave_status_t convolution_weights(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                           const cleave_node_view_t *node) {
  onednn_shape_t shape = onednn_plan_shape(plan, kernel->output);
  onednn_shape_t grouped = shape;
  int64_t groups = cleave_view_int(node, "group", 1);
  weights_context_t context;
  onednn_tensor_t images[2];
  onednn_argument_t arguments[3];
  dnnl_primitive_desc_t description = NULL;
  if (groups > 1) {
    grouped.rank++;
    grouped.dims[0] = groups;
    grouped.dims[1] = shape.dims[0] / groups;
    memcpy(grouped.dims + 2, shape.dims + 1, (size_t)(shape.rank - 1) * sizeof(int64_t));
  }
  for (uint32_t k = 0; k < 2; k++) {
    ONEDNN_TRY(onednn_plan_stored(plan, node->inputs[k], &images[k]));
  }
  onednn_shape_t x = onednn_layout_shape(&images[0].layout);
  onednn_shape_t y = onednn_layout_shape(&images[1].layout);
  ONEDNN_TRY(onednn_window_forward(node, shape.dims + 2, NULL, &x, &y, &context.window, plan->message));
  context.weights = onednn_layout_any(&grouped);
  ONEDNN_TRY(onednn_check(choose_weights(plan, &context, images, &description),
                          "the gradient of a convolution's weights", plan->message));
  cleave_status_t status =
      read_as(plan, description, dnnl_query_src_md, &images[0], DNNL_ARG_SRC, &arguments[0]);
  if (status == CLEAVE_OK) {
    status = read_as(plan, description, dnnl_query_diff_dst_md, &images[1], DNNL_ARG_DIFF_DST, &arguments[1]);
  }
  if (status == CLEAVE_OK) {
    status = write_as(plan, description, dnnl_query_diff_weights_md, kernel->output, DNNL_ARG_DIFF_WEIGHTS,
                      &arguments[2]);
  }
  if (status != CLEAVE_OK) {
    (void)dnnl_primitive_desc_destroy(description);
    return status;
  }
  ONEDNN_TRY(onednn_plan_step(plan, description, arguments, 3, kernel->node, "conv weights"));
  return onednn_plan_bind(plan, kernel->output, &arguments[2].tensor);
}

// ---- poolings ----

typedef struct pooling_context {
  dnnl_alg_kind_t algorithm;
  onednn_layout_t source;
  onednn_layout_t result;
  onednn_window_t window;
  dnnl_primitive_desc_t forward;
} pooling_context_t;

static dnnl_status_t describe_places(const onednn_maker_t *maker, const void *opaque) {
  const pooling_context_t *context = opaque;
  const onednn_geometry_t geometry = geometry_of(&context->window);
  return onednn_make_max_pooling_with_places(maker, &context->source, &context->result, &geometry);
}

static dnnl_status_t describe_pooling(const onednn_maker_t *maker, const void *opaque) {
  const pooling_context_t *context = opaque;
  const onednn_geometry_t geometry = geometry_of(&context->window);
  return onednn_make_pooling_gradient(maker, context->algorithm, &context->source, &context->result,
                                      &geometry, context->forward);
}

// Pools once more: the places of the maxima, for `description`, which is the gradient. The result is not
// needed.
static cleave_status_t find_places(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                   const pooling_context_t *context, const onednn_tensor_t *x,
                                   onednn_tensor_t *out) {
  onednn_argument_t arguments[3] = {{.name = DNNL_ARG_SRC, .tensor = *x}};
  dnnl_primitive_desc_t again = NULL;
  ONEDNN_TRY(onednn_check(describe(plan, describe_places, context, &again), "a max pooling", plan->message));
  cleave_status_t status =
      write_as(plan, again, dnnl_query_dst_md, CLEAVE_INDEX_NONE, DNNL_ARG_DST, &arguments[1]);
  if (status == CLEAVE_OK) {
    status =
        write_as(plan, again, dnnl_query_workspace_md, CLEAVE_INDEX_NONE, DNNL_ARG_WORKSPACE, &arguments[2]);
  }
  if (status != CLEAVE_OK) {
    (void)dnnl_primitive_desc_destroy(again);
    return status;
  }
  *out = arguments[2].tensor;
  return onednn_plan_step(plan, again, arguments, 3, kernel->node, "maxpool places");
}

static cleave_status_t pooling_step(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                    pooling_context_t *context, const onednn_tensor_t *x,
                                    const onednn_tensor_t *dy) {
  onednn_argument_t arguments[3];
  uint32_t count = 2;
  dnnl_primitive_desc_t description = NULL;
  if (context->algorithm == dnnl_pooling_max) {
    ONEDNN_TRY(onednn_check(describe(plan, describe_places, context, &context->forward), "a max pooling",
                            plan->message));
  }
  dnnl_status_t made = describe(plan, describe_pooling, context, &description);
  if (context->forward != NULL) {
    (void)dnnl_primitive_desc_destroy(context->forward);
  }
  ONEDNN_TRY(onednn_check(made, "the gradient of a pooling", plan->message));
  cleave_status_t status =
      read_as(plan, description, dnnl_query_diff_dst_md, dy, DNNL_ARG_DIFF_DST, &arguments[0]);
  if (status == CLEAVE_OK) {
    status =
        write_as(plan, description, dnnl_query_diff_src_md, kernel->output, DNNL_ARG_DIFF_SRC, &arguments[1]);
  }
  if (status == CLEAVE_OK && context->algorithm == dnnl_pooling_max) {
    arguments[count].name = DNNL_ARG_WORKSPACE;
    status = find_places(plan, kernel, context, x, &arguments[count++].tensor);
  }
  if (status != CLEAVE_OK) {
    (void)dnnl_primitive_desc_destroy(description);
    return status;
  }
  ONEDNN_TRY(onednn_plan_step(plan, description, arguments, count, kernel->node, "pool gradient"));
  return onednn_plan_bind(plan, kernel->output, &arguments[1].tensor);
}

static cleave_status_t pooling(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                               const cleave_node_view_t *node) {
  bool is_max = is(node, "MaxPoolGrad");
  bool with_padding = cleave_view_int(node, "count_include_pad", 0) != 0;
  onednn_shape_t x = onednn_plan_shape(plan, kernel->output);
  onednn_shape_t y = onednn_plan_shape(plan, node->inputs[0]);
  onednn_tensor_t source = {.buffer = 0};
  onednn_tensor_t dy;
  pooling_context_t context = {.algorithm = is_max         ? dnnl_pooling_max
                                            : with_padding ? dnnl_pooling_avg_include_padding
                                                           : dnnl_pooling_avg_exclude_padding};
  ONEDNN_TRY(onednn_emit_dense(plan, node->inputs[0], false, &dy));
  if (is_max) {
    ONEDNN_TRY(onednn_emit_dense(plan, node->inputs[1], false, &source));
  }
  ONEDNN_TRY(onednn_window_forward(node, NULL, NULL, &x, &y, &context.window, plan->message));
  const onednn_layout_t *like = is_max ? &source.layout : &dy.layout;
  if (!onednn_layout_like(like, &x, &context.source) || !onednn_layout_like(like, &y, &context.result)) {
    context.source = onednn_layout_plain(&x);
    context.result = onednn_layout_plain(&y);
  }
  if (is_max) {
    ONEDNN_TRY(onednn_plan_convert(plan, &source, &context.source, &source));
  }
  return pooling_step(plan, kernel, &context, &source, &dy);
}

// ---- batch normalization ----

typedef struct norm_context {
  onednn_layout_t data;
  float epsilon;
} norm_context_t;

static dnnl_status_t describe_norm(const onednn_maker_t *maker, const void *opaque) {
  const norm_context_t *context = opaque;
  return onednn_make_batch_normalization_gradient(maker, &context->data, context->epsilon);
}

// Version 2 counts a shift among the inputs, which it does not read.
static bool wants_shift(const_dnnl_primitive_desc_t description, int others) {
  int count = 0;
  return dnnl_primitive_desc_query(description, dnnl_query_num_of_inputs_s32, 0, &count) == dnnl_success &&
         count > others;
}

static cleave_status_t batch_normalization(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                           const cleave_node_view_t *node) {
  static const int inputs[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_SRC, DNNL_ARG_SCALE, DNNL_ARG_MEAN,
                               DNNL_ARG_VARIANCE};
  static const int outputs[] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT};
  enum { INPUTS = 5, OUTPUTS = 3 };
  onednn_argument_t arguments[INPUTS + OUTPUTS + 1];
  uint32_t count = INPUTS + OUTPUTS;
  onednn_tensor_t x;
  dnnl_primitive_desc_t description = NULL;
  ONEDNN_TRY(onednn_emit_dense(plan, node->inputs[1], false, &x));
  norm_context_t context = {.data = x.layout, .epsilon = (float)cleave_view_float(node, "epsilon", 1e-5)};
  for (uint32_t k = 0; k < INPUTS; k++) {
    arguments[k].name = inputs[k];
    ONEDNN_TRY(onednn_plan_fetch(plan, node->inputs[k], &arguments[k].tensor));
    const onednn_tensor_t own = arguments[k].tensor;
    ONEDNN_TRY(k < 2 ? onednn_plan_convert(plan, &own, &x.layout, &arguments[k].tensor)
                     : onednn_plan_plain(plan, &own, &arguments[k].tensor));
  }
  for (uint32_t k = 0; k < OUTPUTS; k++) {
    onednn_argument_t *argument = &arguments[INPUTS + k];
    onednn_shape_t shape = onednn_plan_shape(plan, node->inputs[k == 0 ? 1 : 2]);
    onednn_layout_t layout = k == 0 ? x.layout : onednn_layout_plain(&shape);
    bool is_wanted = k < node->output_count && node->outputs[k] != CLEAVE_INDEX_NONE;
    argument->name = outputs[k];
    ONEDNN_TRY(
        onednn_plan_make(plan, is_wanted ? node->outputs[k] : CLEAVE_INDEX_NONE, &layout, &argument->tensor));
  }
  ONEDNN_TRY(onednn_check(describe(plan, describe_norm, &context, &description),
                          "the gradient of a batch normalization", plan->message));
  if (wants_shift(description, INPUTS)) {
    arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_SHIFT, .tensor = arguments[2].tensor};
  }
  ONEDNN_TRY(onednn_plan_step(plan, description, arguments, count, kernel->node, "batchnorm gradient"));
  for (uint32_t k = 0; k < OUTPUTS && k < node->output_count; k++) {
    if (node->outputs[k] != CLEAVE_INDEX_NONE) {
      ONEDNN_TRY(onednn_plan_bind(plan, node->outputs[k], &arguments[INPUTS + k].tensor));
    }
  }
  return CLEAVE_OK;
}

// Tells the loop where images, channels and pixels of a tensor lie; other layouts than those of images become
// plain.
static cleave_status_t find_channels(onednn_plan_t *plan, onednn_tensor_t *x, onednn_loop_t *loop) {
  onednn_shape_t shape = onednn_layout_shape(&x->layout);
  int64_t pixels = 1;
  for (int32_t d = 2; d < shape.rank; d++) {
    pixels *= shape.dims[d];
  }
  int64_t blocks = (shape.dims[1] + 15) / 16;
  onednn_layout_t blocked = onednn_layout_blocked(&shape);
  onednn_layout_t last = onednn_layout_channels_last(&shape);
  loop->dims[0] = shape.dims[0];
  loop->dims[1] = shape.dims[1];
  loop->dims[2] = pixels;
  bool is_image = shape.rank > 2;
  if (is_image && onednn_layout_equal(&x->layout, &blocked)) {
    memcpy(loop->strides[0], (int64_t[]){blocks * pixels * 16, pixels * 16, 16}, 3 * sizeof(int64_t));
  } else if ((is_image && onednn_layout_equal(&x->layout, &last)) || pixels == 1) {
    int64_t channels = shape.dims[1];
    memcpy(loop->strides[0], (int64_t[]){channels * pixels, 16, channels}, 3 * sizeof(int64_t));
    return is_image ? CLEAVE_OK : onednn_plan_plain(plan, x, x);
  } else {
    memcpy(loop->strides[0], (int64_t[]){shape.dims[1] * pixels, pixels, 1}, 3 * sizeof(int64_t));
    return onednn_plan_plain(plan, x, x);
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_emit_statistics(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  static const uint32_t outputs[] = {3, 4, 1, 2};
  enum { INPUTS = 3, OUTPUTS = 4 };
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_argument_t arguments[INPUTS + OUTPUTS];
  onednn_loop_t loop = {
      .run = onednn_loop_statistics, .rank = 3, .alpha = (float)cleave_view_float(node, "momentum", 0.9)};
  onednn_tensor_t x;
  ONEDNN_TRY(onednn_emit_dense(plan, kernel->source, false, &x));
  ONEDNN_TRY(find_channels(plan, &x, &loop));
  arguments[0].tensor = x;
  for (uint32_t k = 1; k < INPUTS; k++) {
    onednn_tensor_t own;
    ONEDNN_TRY(onednn_plan_fetch(plan, node->inputs[k + 2], &own));
    ONEDNN_TRY(onednn_plan_plain(plan, &own, &arguments[k].tensor));
  }
  onednn_shape_t vector = {.rank = 1, .dims = {loop.dims[1]}};
  onednn_layout_t plain = onednn_layout_plain(&vector);
  for (uint32_t k = 0; k < OUTPUTS; k++) {
    uint32_t value = outputs[k] < node->output_count ? node->outputs[outputs[k]] : CLEAVE_INDEX_NONE;
    ONEDNN_TRY(onednn_plan_make(plan, value, &plain, &arguments[INPUTS + k].tensor));
  }
  for (uint32_t k = 0; k < INPUTS + OUTPUTS; k++) {
    arguments[k].name = k < INPUTS ? DNNL_ARG_MULTIPLE_SRC + (int)k : DNNL_ARG_MULTIPLE_DST + (int)k;
  }
  ONEDNN_TRY(
      onednn_plan_loop(plan, &loop, arguments, INPUTS + OUTPUTS, kernel->node, "batchnorm statistics"));
  for (uint32_t k = 0; k < OUTPUTS; k++) {
    if (outputs[k] < node->output_count && node->outputs[outputs[k]] != CLEAVE_INDEX_NONE) {
      ONEDNN_TRY(onednn_plan_bind(plan, node->outputs[outputs[k]], &arguments[INPUTS + k].tensor));
    }
  }
  plan->statistics[0] = arguments[INPUTS].tensor;
  plan->statistics[1] = arguments[INPUTS + 1].tensor;
  return onednn_emit_chain(plan, &x, kernel->posts, kernel->post_count, kernel->node, kernel->output);
}

// ---- Relu ----

static cleave_status_t relu(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                            const cleave_node_view_t *node) {
  onednn_tensor_t dy;
  onednn_tensor_t y;
  onednn_tensor_t dx;
  ONEDNN_TRY(onednn_emit_dense(plan, node->inputs[0], false, &dy));
  ONEDNN_TRY(onednn_emit_dense(plan, node->inputs[1], false, &y));
  if (onednn_layout_is_plain(&y.layout)) {
    ONEDNN_TRY(onednn_plan_convert(plan, &y, &dy.layout, &y));
  } else {
    ONEDNN_TRY(onednn_plan_convert(plan, &dy, &y.layout, &dy));
  }
  ONEDNN_TRY(onednn_plan_make(plan, kernel->output, &dy.layout, &dx));
  const onednn_loop_t loop = {.run = onednn_loop_relu_gradient,
                              .rank = 1,
                              .dims = {(int64_t)(onednn_md_bytes(&dy.layout) / sizeof(float))}};
  ONEDNN_TRY(onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){&dy, &y, &dx}, 3, kernel->node,
                              "relu gradient"));
  return onednn_plan_bind(plan, kernel->output, &dx);
}

cleave_status_t onednn_emit_gradient(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  return is(node, "ConvGradWeight")           ? convolution_weights(plan, kernel, node)
         : is(node, "BatchNormalizationGrad") ? batch_normalization(plan, kernel, node)
         : is(node, "ReluGrad")               ? relu(plan, kernel, node)
                                              : pooling(plan, kernel, node);
}
