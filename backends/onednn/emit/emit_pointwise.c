// SPDX-License-Identifier: Apache-2.0
// Chains of pointwise steps without a product in front, and what a primitive in front could not take. Each
// round makes one primitive from the first step and lets it take as many of the rest as it can. Plain
// tensors are seen with as few dimensions as the broadcasts allow, since oneDNN is fast for few patterns
// only; tensors in a layout of oneDNN's keep it.
#include "onednn/emit/emit.h"

#include <string.h>

#include "onednn/plan/care.h"

cleave_status_t onednn_emit_rest(onednn_plan_t *plan, const onednn_request_t *request,
                                 const onednn_fitted_t *fitted, uint32_t value) {
  onednn_tensor_t result;
  ONEDNN_TRY(onednn_plan_reshape(plan, &fitted->result, &request->shape, &result));
  return onednn_emit_chain(plan, &result, request->posts + fitted->posts, request->post_count - fitted->posts,
                           request->node, value);
}

// Is it without blocks, or blocked as images are? Transposed blocks are not: oneDNN 2.6 takes them for those
// of an image, in its binary primitive with posts, and if channels only fill a block.
static bool blocks_channels(const onednn_layout_t *layout) {
  onednn_shape_t shape = onednn_layout_shape(layout);
  onednn_layout_t like;
  return onednn_layout_is_strided(layout) || onednn_layout_like(layout, &shape, &like);
}

cleave_status_t onednn_emit_dense(onednn_plan_t *plan, uint32_t value, bool as_stored, onednn_tensor_t *out) {
  onednn_tensor_t tensor;
  ONEDNN_TRY(onednn_plan_stored(plan, value, &tensor));
  if (!as_stored) {
    ONEDNN_TRY(onednn_plan_typed(plan, &tensor, dnnl_f32, &tensor));
  }
  bool dense = onednn_layout_is_dense(&tensor.layout) || !onednn_layout_is_strided(&tensor.layout);
  if (dense && blocks_channels(&tensor.layout)) {
    *out = tensor;
    return CLEAVE_OK;
  }
  return onednn_plan_plain(plan, &tensor, out);
}

typedef struct chain {
  onednn_tensor_t current;
  const onednn_post_t *posts; /* still to do */
  uint32_t count;
  uint32_t node;
  uint32_t value; /* for the last result */
} chain_t;

// Shapes of the operands of the posts from `first` on, for onednn_shape_collapse.
static uint32_t operand_shapes(const onednn_plan_t *plan, const onednn_post_t *posts, uint32_t count,
                               const onednn_shape_t *shape, onednn_shape_t *out) {
  uint32_t used = 0;
  for (uint32_t k = 0; k < count; k++) {
    if (posts[k].kind == ONEDNN_POST_BINARY) {
      onednn_shape_t own = onednn_plan_shape(plan, posts[k].operand);
      if (own.rank <= shape->rank && onednn_shape_fits(&own, shape)) {
        out[used++] = own;
      }
    } else if (posts[k].kind == ONEDNN_POST_NORMALIZE && shape->rank > 1) {
      onednn_shape_t own = *shape;
      for (int32_t d = 0; d < own.rank; d++) {
        own.dims[d] = d == 1 ? own.dims[d] : 1;
      }
      out[used++] = own;
    }
  }
  return used;
}

typedef struct eltwise_context {
  const onednn_post_t *post;
  onednn_tensor_t source;
} eltwise_context_t;

static dnnl_status_t describe_eltwise(void *opaque, dnnl_engine_t engine,
                                      const_dnnl_primitive_attr_t attributes, const onednn_layout_t *result,
                                      dnnl_primitive_desc_t *out) {
  const eltwise_context_t *context = opaque;
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_eltwise(&maker, context->post->algorithm, result, context->post->alpha,
                             context->post->beta);
}

static cleave_status_t eltwise_arguments(onednn_plan_t *plan, void *opaque,
                                         const_dnnl_primitive_desc_t description,
                                         onednn_argument_t *arguments, uint32_t *count) {
  (void)plan;
  (void)description;
  const eltwise_context_t *context = opaque;
  arguments[0] = (onednn_argument_t){.name = DNNL_ARG_SRC, .tensor = context->source};
  *count = 1;
  return CLEAVE_OK;
}

// Moves the chain past what a request computed.
static cleave_status_t advance(onednn_plan_t *plan, chain_t *chain, const onednn_request_t *request,
                               const onednn_fitted_t *fitted, uint32_t posts) {
  chain->posts += posts;
  chain->count -= posts;
  return onednn_plan_reshape(plan, &fitted->result, &request->shape, &chain->current);
}

// Dense layouts stay; others become plain. Plain tensors get the collapsed shape.
static cleave_status_t prepare(onednn_plan_t *plan, onednn_tensor_t *tensor, const onednn_shape_t *operands,
                               uint32_t count, onednn_shape_t *kernel_shape) {
  onednn_shape_t shape = onednn_layout_shape(&tensor->layout);
  *kernel_shape = shape;
  bool gaps = onednn_layout_is_strided(&tensor->layout) && !onednn_layout_is_dense(&tensor->layout);
  if (gaps || !blocks_channels(&tensor->layout)) {
    ONEDNN_TRY(onednn_plan_plain(plan, tensor, tensor));
  }
  if (onednn_layout_is_plain(&tensor->layout)) {
    *kernel_shape = onednn_shape_collapse(&shape, operands, count);
    return onednn_plan_reshape(plan, tensor, kernel_shape, tensor);
  }
  return CLEAVE_OK;
}

static cleave_status_t emit_eltwise(onednn_plan_t *plan, chain_t *chain) {
  onednn_shape_t operands[ONEDNN_MAX_POSTS + 2];
  onednn_shape_t shape = onednn_layout_shape(&chain->current.layout);
  uint32_t count = operand_shapes(plan, chain->posts, chain->count, &shape, operands);
  eltwise_context_t context = {.post = chain->posts, .source = chain->current};
  onednn_request_t request = {.what = "eltwise",
                              .node = chain->node,
                              .describe = describe_eltwise,
                              .arguments = eltwise_arguments,
                              .context = &context,
                              .posts = chain->posts + 1,
                              .post_count = chain->count - 1,
                              .shape = shape,
                              .value = chain->value,
                              .match_blocks = true};
  onednn_fitted_t fitted;
  ONEDNN_TRY(prepare(plan, &context.source, operands, count, &request.kernel_shape));
  request.result = context.source.layout;
  request.in_place = &context.source;
  ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_ALWAYS, &fitted));
  return advance(plan, chain, &request, &fitted, 1 + fitted.posts);
}

typedef struct binary_context {
  dnnl_alg_kind_t algorithm;
  onednn_tensor_t left;
  onednn_tensor_t right;
} binary_context_t;

static dnnl_status_t describe_binary(void *opaque, dnnl_engine_t engine,
                                     const_dnnl_primitive_attr_t attributes, const onednn_layout_t *result,
                                     dnnl_primitive_desc_t *out) {
  const binary_context_t *context = opaque;
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_binary(&maker, context->algorithm, &context->left.layout, &context->right.layout,
                            result);
}

static cleave_status_t binary_arguments(onednn_plan_t *plan, void *opaque,
                                        const_dnnl_primitive_desc_t description, onednn_argument_t *arguments,
                                        uint32_t *count) {
  (void)plan;
  (void)description;
  const binary_context_t *context = opaque;
  arguments[0] = (onednn_argument_t){.name = DNNL_ARG_SRC_0, .tensor = context->left};
  arguments[1] = (onednn_argument_t){.name = DNNL_ARG_SRC_1, .tensor = context->right};
  *count = 2;
  return CLEAVE_OK;
}

// Are there channels that only fill a block? oneDNN 2.6's binary primitive then writes over numbers that it
// has yet to read, so its result needs memory of its own; and in blocks of 8 it loses its posts.
static bool has_short_blocks(const onednn_layout_t *layout) {
  return layout->format_kind == dnnl_blocked && layout->format_desc.blocking.inner_nblks > 0 &&
         layout->format_desc.blocking.inner_blks[0] != 16;
}

// Both operands in layouts that a binary primitive with this result layout takes.
// Wide: the operands of one kernel.
static cleave_status_t align(onednn_plan_t *plan, onednn_request_t *request, binary_context_t *context,
                             const onednn_shape_t *operands, uint32_t count, bool plain, bool *possible) {
  onednn_shape_t right_shape = onednn_layout_shape(&context->right.layout);
  onednn_shape_t mapped;
  onednn_layout_t layout;
  *possible = true;
  if (plain || (onednn_layout_is_padded(&context->left.layout) && has_short_blocks(&context->left.layout))) {
    ONEDNN_TRY(onednn_plan_plain(plan, &context->left, &context->left));
  }
  request->in_place = onednn_layout_is_padded(&context->left.layout) ? NULL : &context->left;
  ONEDNN_TRY(prepare(plan, &context->left, operands, count, &request->kernel_shape));
  request->result = context->left.layout;
  if (!onednn_broadcast_shape(&right_shape, &request->shape, &request->kernel_shape, &mapped)) {
    *possible = false;
    return CLEAVE_OK;
  }
  ONEDNN_TRY(onednn_plan_reshape(plan, &context->right, &mapped, &context->right));
  if (onednn_shape_equal(&mapped, &request->kernel_shape)) {
    layout = context->left.layout;
  } else if (onednn_shape_is_single(&mapped) || onednn_layout_is_plain(&context->left.layout)) {
    layout = onednn_layout_plain(&mapped);
  } else if (!onednn_layout_like(&context->left.layout, &mapped, &layout)) {
    *possible = false;
    return CLEAVE_OK;
  }
  return onednn_plan_convert(plan, &context->right, &layout, &context->right);
}

// Shapes broadcast against each other: neither operand has the shape of the result.
static cleave_status_t align_mutual(onednn_plan_t *plan, onednn_request_t *request,
                                    binary_context_t *context) {
  onednn_tensor_t *sides[2] = {&context->left, &context->right};
  request->kernel_shape = request->shape;
  request->result = onednn_layout_plain(&request->shape);
  request->in_place = NULL;
  for (int k = 0; k < 2; k++) {
    onednn_shape_t own = onednn_layout_shape(&sides[k]->layout);
    onednn_shape_t padded = onednn_shape_pad(&own, request->shape.rank);
    ONEDNN_TRY(onednn_plan_reshape(plan, sides[k], &padded, sides[k]));
    ONEDNN_TRY(onednn_plan_plain(plan, sides[k], sides[k]));
  }
  return CLEAVE_OK;
}

static bool broadcast_result(const onednn_shape_t *a, const onednn_shape_t *b, onednn_shape_t *out) {
  int32_t rank = a->rank > b->rank ? a->rank : b->rank;
  onednn_shape_t pa = onednn_shape_pad(a, rank);
  onednn_shape_t pb = onednn_shape_pad(b, rank);
  *out = pa;
  for (int32_t d = 0; d < rank; d++) {
    if (pa.dims[d] != pb.dims[d] && pa.dims[d] != 1 && pb.dims[d] != 1) {
      return false;
    }
    out->dims[d] = pa.dims[d] == 1 ? pb.dims[d] : pa.dims[d];
  }
  return true;
}

// A tensor in one of oneDNN's layouts next to a plain one of the same shape: the layout spreads.
static bool prefers(const onednn_tensor_t *left, const onednn_tensor_t *right) {
  return onednn_layout_is_plain(&left->layout) && onednn_layout_is_dense(&right->layout) &&
         !onednn_layout_is_plain(&right->layout);
}

// posts[] of the request when the operands of a subtraction or division change places.
static dnnl_alg_kind_t turned(dnnl_alg_kind_t algorithm, uint32_t node, onednn_post_t *extra,
                              uint32_t *extra_count) {
  *extra = (onednn_post_t){.kind = ONEDNN_POST_ELTWISE, .operand = CLEAVE_INDEX_NONE, .node = node};
  *extra_count = 1;
  if (algorithm == dnnl_binary_sub) {
    extra->algorithm = dnnl_eltwise_linear;
    extra->alpha = -1;
  } else if (algorithm == dnnl_binary_div) {
    extra->algorithm = dnnl_eltwise_pow;
    extra->alpha = 1;
    extra->beta = -1;
  } else {
    *extra_count = 0;
  }
  return algorithm;
}

/* The step that turns the operands around did not fit: it becomes the first step of what is left. */
static cleave_status_t emit_turned(onednn_plan_t *plan, chain_t *chain, const onednn_request_t *request,
                                   const onednn_fitted_t *fitted, uint32_t extra) {
  chain_t rest = *chain;
  rest.posts = request->posts;
  rest.count = request->post_count;
  ONEDNN_TRY(onednn_plan_reshape(plan, &fitted->result, &request->shape, &rest.current));
  ONEDNN_TRY(emit_eltwise(plan, &rest));
  uint32_t done = request->post_count - rest.count;
  chain->current = rest.current;
  chain->posts += 1 + done - extra;
  chain->count -= 1 + done - extra;
  return CLEAVE_OK;
}

// Long: one request, from its operands to what was left of the chain.
static cleave_status_t emit_binary(onednn_plan_t *plan, chain_t *chain) {
  const onednn_post_t *post = chain->posts;
  onednn_post_t posts[ONEDNN_MAX_POSTS + 1];
  onednn_shape_t operands[ONEDNN_MAX_POSTS + 2];
  onednn_shape_t shape;
  onednn_tensor_t operand;
  uint32_t extra = 0;
  ONEDNN_TRY(onednn_plan_fetch(plan, post->operand, &operand));
  onednn_shape_t own = onednn_layout_shape(&chain->current.layout);
  onednn_shape_t other = onednn_layout_shape(&operand.layout);
  if (!broadcast_result(&own, &other, &shape)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "'%s': its operands do not broadcast",
                       onednn_node_name(&plan->region->nodes[post->node]));
  }
  onednn_shape_t own_padded = onednn_shape_pad(&own, shape.rank);
  onednn_shape_t other_padded = onednn_shape_pad(&other, shape.rank);
  bool own_full = onednn_shape_equal(&own_padded, &shape);
  bool other_full = onednn_shape_equal(&other_padded, &shape);
  bool is_last = chain->count == 1 && post->algorithm == dnnl_binary_mul;
  bool scales = is_last && own_full && onednn_scales_channels(plan, &chain->current, &other_padded);
  if (scales || (is_last && other_full && onednn_scales_channels(plan, &operand, &own_padded))) {
    const onednn_tensor_t source = scales ? chain->current : operand;
    const onednn_tensor_t factors = scales ? operand : chain->current;
    chain->count = 0;
    return onednn_emit_scale_channels(plan, &source, &factors, chain->node, chain->value, &chain->current);
  }
  bool swap = other_full && (!own_full || prefers(&chain->current, &operand));
  binary_context_t context = {.algorithm = post->algorithm,
                              .left = swap ? operand : chain->current,
                              .right = swap ? chain->current : operand};
  if (swap) {
    context.algorithm = turned(post->algorithm, post->node, &posts[0], &extra);
  }
  memcpy(posts + extra, chain->posts + 1, (chain->count - 1) * sizeof(onednn_post_t));
  onednn_request_t request = {.what = "binary",
                              .node = chain->node,
                              .describe = describe_binary,
                              .arguments = binary_arguments,
                              .context = &context,
                              .posts = posts,
                              .post_count = extra + chain->count - 1,
                              .shape = shape,
                              .value = chain->value,
                              .in_place = &context.left,
                              .match_blocks = true};
  onednn_fitted_t fitted;
  ONEDNN_TRY(onednn_plan_reshape(plan, &context.left, swap ? &other_padded : &own_padded, &context.left));
  const binary_context_t before = context;
  uint32_t count = operand_shapes(plan, posts, request.post_count, &shape, operands);
  operands[count++] = onednn_layout_shape(&context.right.layout);
  for (int plain = 0; plain < 2; plain++) {
    bool possible = true;
    context = before;
    if (own_full || other_full) {
      ONEDNN_TRY(align(plan, &request, &context, operands, count, plain == 1, &possible));
    } else {
      ONEDNN_TRY(align_mutual(plan, &request, &context));
    }
    if (!possible && plain == 0) {
      continue;
    }
    ONEDNN_TRY(onednn_fit(plan, &request, plain == 0 ? ONEDNN_FIT_FAST : ONEDNN_FIT_ALWAYS, &fitted));
    if (!fitted.declined) {
      break;
    }
  }
  if (fitted.posts < extra) {
    return emit_turned(plan, chain, &request, &fitted, extra);
  }
  return advance(plan, chain, &request, &fitted, 1 + fitted.posts - extra);
}

typedef struct normalize_context {
  onednn_tensor_t source;
  onednn_tensor_t vectors[4]; /* scale, shift, mean, variance */
  float epsilon;
  bool relu;
} normalize_context_t;

static dnnl_status_t describe_normalize(void *opaque, dnnl_engine_t engine,
                                        const_dnnl_primitive_attr_t attributes, const onednn_layout_t *result,
                                        dnnl_primitive_desc_t *out) {
  const normalize_context_t *context = opaque;
  unsigned flags = dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift;
  const onednn_maker_t maker = {.engine = engine, .attributes = attributes, .out = out};
  return onednn_make_batch_normalization(&maker, result, context->epsilon,
                                         context->relu ? flags | dnnl_fuse_norm_relu : flags);
}

static cleave_status_t normalize_arguments(onednn_plan_t *plan, void *opaque,
                                           const_dnnl_primitive_desc_t description,
                                           onednn_argument_t *arguments, uint32_t *count) {
  static const int names[4] = {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE};
  (void)plan;
  (void)description;
  const normalize_context_t *context = opaque;
  arguments[0] = (onednn_argument_t){.name = DNNL_ARG_SRC, .tensor = context->source};
  for (int k = 0; k < 4; k++) {
    arguments[k + 1] = (onednn_argument_t){.name = names[k], .tensor = context->vectors[k]};
  }
  *count = 5;
  return CLEAVE_OK;
}

static cleave_status_t emit_normalize(onednn_plan_t *plan, chain_t *chain) {
  const cleave_node_view_t *node = &plan->region->nodes[chain->posts->node];
  normalize_context_t context = {.source = chain->current,
                                 .epsilon = (float)cleave_view_float(node, "epsilon", 1e-5)};
  uint32_t posts = 1;
  if (chain->count > 1 && chain->posts[1].kind == ONEDNN_POST_ELTWISE &&
      chain->posts[1].algorithm == dnnl_eltwise_relu && chain->posts[1].alpha == 0.0F &&
      onednn_may_raise(plan)) {
    context.relu = true;
    posts = 2;
  }
  // In training, mean and variance are those of the data, which a step before computed.
  bool is_own = strcmp(node->op, "BatchNormalizationTraining") == 0;
  for (uint32_t k = 0; k < (is_own ? 2 : 4); k++) {
    ONEDNN_TRY(onednn_plan_fetch(plan, node->inputs[k + 1], &context.vectors[k]));
  }
  if (is_own) {
    memcpy(context.vectors + 2, plan->statistics, sizeof plan->statistics);
  }
  bool gaps =
      onednn_layout_is_strided(&context.source.layout) && !onednn_layout_is_dense(&context.source.layout);
  if (gaps || !blocks_channels(&context.source.layout)) {
    ONEDNN_TRY(onednn_plan_plain(plan, &context.source, &context.source));
  }
  onednn_shape_t shape = onednn_layout_shape(&context.source.layout);
  onednn_request_t request = {.what = context.relu ? "batchnorm+relu" : "batchnorm",
                              .node = chain->node,
                              .describe = describe_normalize,
                              .arguments = normalize_arguments,
                              .context = &context,
                              .posts = chain->posts + posts,
                              .later_count = chain->count - posts,
                              .shape = shape,
                              .kernel_shape = shape,
                              .result = context.source.layout,
                              .value = chain->count == posts ? chain->value : CLEAVE_INDEX_NONE,
                              .in_place = &context.source};
  onednn_fitted_t fitted;
  ONEDNN_TRY(onednn_fit(plan, &request, ONEDNN_FIT_ALWAYS, &fitted));
  return advance(plan, chain, &request, &fitted, posts);
}

// Would the numbers become the same integers again?
static bool keeps_integers(const onednn_plan_t *plan, const onednn_tensor_t *tensor,
                           const onednn_post_t *post) {
  const onednn_quantization_t to = {.scale = post->alpha, .zero_point = (int32_t)post->beta};
  return post->kind == ONEDNN_POST_QUANTIZE && tensor->quantization != NULL &&
         onednn_quantization_equal(tensor->quantization, &to) &&
         tensor->layout.data_type == onednn_plan_type(plan, plan->region->nodes[post->node].outputs[0]);
}

cleave_status_t onednn_emit_chain(onednn_plan_t *plan, const onednn_tensor_t *start,
                                  const onednn_post_t *posts, uint32_t count, uint32_t node, uint32_t value) {
  chain_t chain = {.current = *start, .posts = posts, .count = count, .node = node, .value = value};
  if (count == 1 && keeps_integers(plan, start, posts)) {
    chain.current.quantization = NULL;
    return onednn_plan_bind(plan, value, &chain.current);
  }
  if (count > 0) {
    ONEDNN_TRY(onednn_plan_typed(plan, start, dnnl_f32, &chain.current));
  }
  while (chain.count > 0) {
    onednn_post_kind_t kind = chain.posts->kind;
    if (kind == ONEDNN_POST_QUANTIZE) {
      ONEDNN_TRY(onednn_emit_quantize_loop(plan, &chain.current, chain.posts, value, &chain.current));
      break;
    }
    if (onednn_posts_allowed(plan, chain.posts, 1) == 0) {
      uint32_t own = chain.count == 1 ? value : CLEAVE_INDEX_NONE;
      ONEDNN_TRY(onednn_emit_post_loop(plan, &chain.current, chain.posts, own, &chain.current));
      chain.posts++;
      chain.count--;
      continue;
    }
    ONEDNN_TRY(kind == ONEDNN_POST_BINARY    ? emit_binary(plan, &chain)
               : kind == ONEDNN_POST_ELTWISE ? emit_eltwise(plan, &chain)
                                             : emit_normalize(plan, &chain));
  }
  return onednn_plan_bind(plan, value, &chain.current);
}

cleave_status_t onednn_emit_pointwise(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  onednn_tensor_t start;
  bool done = false;
  ONEDNN_TRY(onednn_emit_add_bytes(plan, kernel, &done));
  if (done) {
    return CLEAVE_OK;
  }
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->source, &start));
  return onednn_emit_chain(plan, &start, kernel->posts, kernel->post_count, kernel->node, kernel->output);
}
