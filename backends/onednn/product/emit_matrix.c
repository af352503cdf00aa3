// SPDX-License-Identifier: Apache-2.0
// Steps of kernels/matrix.
#include <math.h>

#include "onednn/emit/emit.h"
#include "onednn/plan/care.h"
#include "onednn/product/product.h"

/* Is the first post a sum with a tensor of the result's shape? */
static bool begins_with_sum(const onednn_plan_t *plan, const onednn_matrix_request_t *request) {
  const onednn_post_t *post = request->posts;
  onednn_shape_t shape = onednn_layout_shape(&request->result);
  onednn_shape_t mapped;
  if (request->post_count == 0 || post->kind != ONEDNN_POST_BINARY || post->algorithm != dnnl_binary_add) {
    return false;
  }
  onednn_shape_t own = onednn_plan_shape(plan, post->operand);
  return onednn_broadcast_shape(&own, &request->shape, &shape, &mapped) &&
         onednn_shape_equal(&mapped, &shape);
}

/* What is added, in the result's order; AMX adds float32 and bfloat16 as they are. */
static cleave_status_t fetch_sum(onednn_plan_t *plan, const onednn_matrix_request_t *request,
                                 onednn_tensor_t *sum) {
  onednn_shape_t shape = onednn_layout_shape(&request->result);
  onednn_layout_t layout = request->result;
  ONEDNN_TRY(onednn_plan_fetch(plan, request->posts->operand, sum));
  ONEDNN_TRY(onednn_plan_reshape(plan, sum, &shape, sum));
  if (request->kind == ONEDNN_MATRIX_AMX) {
    dnnl_data_type_t own = sum->layout.data_type;
    layout = onednn_layout_typed(&layout, own == dnnl_bf16 ? own : dnnl_f32);
  }
  return onednn_plan_convert(plan, sum, &layout, sum);
}

/* Bounds by Relu and Clip; false: the post is another one. */
static bool take_bounds(const onednn_post_t *post, kernel_matrix_t *matrix) {
  bool is_relu = post->algorithm == dnnl_eltwise_relu && post->alpha == 0.0F;
  bool is_clip = post->algorithm == dnnl_eltwise_clip && post->alpha <= post->beta;
  if (post->kind != ONEDNN_POST_ELTWISE || (!is_relu && !is_clip)) {
    return false;
  }
  matrix->low = is_relu ? 0.0F : post->alpha;
  matrix->high = is_relu ? INFINITY : post->beta;
  return true;
}

/* Functions for which oneDNN takes longer than our loops while a result is in the first cache; for two of
 * them that is so with AVX2. Behind products by AMX there is nothing else. */
static bool take_function(const onednn_post_t *post, onednn_matrix_kind_t kind, kernel_matrix_t *matrix) {
  if (post->kind != ONEDNN_POST_ELTWISE) {
    return false;
  }
  kernel_op_t op = onednn_loop_operator(post->algorithm, post->alpha);
  switch ((int)op) {
    case KERNEL_GeluErf:
    case KERNEL_HardSwish:
    case KERNEL_LeakyRelu:
    case KERNEL_Sigmoid:
    case KERNEL_Swish: break;
    case KERNEL_GeluTanh:
    case KERNEL_Tanh:
      if (matrix->panel == KERNEL_MATRIX_PANEL_AVX512 && kind != ONEDNN_MATRIX_AMX) {
        return false;
      }
      break;
    default: return false;
  }
  matrix->then = kernel_loops_choose(2)->unary[op][CLEAVE_DTYPE_F32];
  matrix->alpha = (double)post->alpha;
  matrix->beta = (double)post->beta;
  return true;
}

/* Takes bounds or a function. */
static bool take_activation(const onednn_post_t *post, onednn_matrix_kind_t kind, kernel_matrix_t *matrix) {
  return take_bounds(post, matrix) || take_function(post, kind, matrix);
}

static bool takes_all(const onednn_plan_t *plan, const onednn_matrix_request_t *request) {
  kernel_matrix_t unused = request->matrix;
  uint32_t taken = begins_with_sum(plan, request) ? 1 : 0;
  if (taken < request->post_count && take_activation(&request->posts[taken], request->kind, &unused)) {
    taken++;
  }
  if (taken < request->post_count && request->posts[taken].kind == ONEDNN_POST_QUANTIZE) {
    taken++;
  }
  return taken == request->post_count;
}

static cleave_dtype_t dtype_of(dnnl_data_type_t type) {
  switch ((int)type) {
    case dnnl_f32: return CLEAVE_DTYPE_F32;
    case dnnl_bf16: return CLEAVE_DTYPE_BF16;
    case dnnl_u8: return CLEAVE_DTYPE_U8;
    case dnnl_s8: return CLEAVE_DTYPE_I8;
    default: return CLEAVE_DTYPE_UNKNOWN;
  }
}

// With a short depth what is left to do with the sums takes longer than they do, and oneDNN is faster.
bool onednn_amx_suits(const onednn_plan_t *plan, const onednn_matrix_request_t *request) {
  const int64_t least_depth = 512;
  const kernel_matrix_t *matrix = &request->matrix;
  cleave_dtype_t dtype = dtype_of(request->source.layout.data_type);
  bool is_known = dtype != CLEAVE_DTYPE_F32 && dtype != CLEAVE_DTYPE_UNKNOWN &&
                  dtype_of(request->result.data_type) != CLEAVE_DTYPE_UNKNOWN;
  return is_known && kernel_amx_runs_here() && matrix->rows >= KERNEL_AMX_ROWS &&
         matrix->columns >= KERNEL_AMX_PANEL && matrix->depth >= least_depth &&
         matrix->depth % kernel_amx_depth(dtype) == 0 && takes_all(plan, request);
}

static void fill_thirds(const kernel_matrix_t *matrix, kernel_thirds_t *thirds) {
  const kernel_thirds_image_t image = {.block = KERNEL_THIRDS_PANEL};
  *thirds = (kernel_thirds_t){.images = 1,
                              .depth = matrix->depth,
                              .columns = matrix->columns,
                              .x_lines = 1,
                              .x_width = matrix->rows,
                              .y_lines = 1,
                              .y_width = matrix->rows,
                              .sides = {1, 1},
                              .stride = 1,
                              .x = image,
                              .y = image,
                              .sum = image,
                              .activation = {.low = matrix->low, .high = matrix->high},
                              .then = matrix->then,
                              .alpha = matrix->alpha,
                              .beta = matrix->beta};
  thirds->x.pixel = matrix->x_stride;
  thirds->y.pixel = matrix->y_stride;
  thirds->sum.pixel = matrix->sum_stride;
}

bool onednn_thirds_suit(onednn_plan_t *plan, const onednn_matrix_request_t *request) {
  kernel_thirds_t thirds;
  fill_thirds(&request->matrix, &thirds);
  return kernel_thirds_runs_here() && dtype_of(request->source.layout.data_type) == CLEAVE_DTYPE_F32 &&
         dtype_of(request->result.data_type) == CLEAVE_DTYPE_F32 && kernel_thirds_pay(&thirds) &&
         onednn_may_raise(plan);
}

cleave_status_t onednn_amx_pack(onednn_plan_t *plan, const onednn_tensor_t *weights,
                                onednn_matrix_request_t *request) {
  onednn_shape_t shape = onednn_layout_shape(&weights->layout);
  bool is_short = request->source.layout.data_type == dnnl_bf16;
  onednn_layout_t panels = onednn_layout_amx_panels(&shape, is_short ? dnnl_bf16 : dnnl_s8);
  return onednn_plan_convert(plan, weights, &panels, &request->weights);
}

onednn_layout_t onednn_matrix_result(const onednn_layout_t *wanted, const onednn_product_t *product) {
  if (onednn_layout_is_strided(wanted) && wanted->format_desc.blocking.strides[1] == 1) {
    return *wanted;
  }
  onednn_layout_t plain = onednn_layout_plain(&product->kernel);
  return onednn_layout_typed(&plain, wanted->data_type);
}

/* What the context knows of the product, but for thirds, whose own form of it is made of `own`. */
static kernel_matrix_t *matrix_of(onednn_matrix_loop_t *context, kernel_matrix_t *own) {
  switch (context->kind) {
    case ONEDNN_MATRIX_NARROW: return &context->narrow.matrix;
    case ONEDNN_MATRIX_AMX: return &context->amx.matrix;
    case ONEDNN_MATRIX_THIRDS: return own;
    default: return &context->plain;
  }
}

/* Bytes that the loop needs beside its results. */
static size_t scratch_of(const onednn_plan_t *plan, const kernel_matrix_t *matrix,
                         onednn_matrix_loop_t *context) {
  switch (context->kind) {
    case ONEDNN_MATRIX_NARROW:
      return onednn_round_up((size_t)kernel_narrow_sum_count(&context->narrow) * sizeof(float));
    case ONEDNN_MATRIX_THIRDS:
      fill_thirds(matrix, &context->thirds.thirds);
      return onednn_thirds_cut(&context->thirds, plan->threads);
    default: return 0;
  }
}

/* What the step knows before its posts; NULL: out of memory. */
static onednn_matrix_loop_t *make_context(const onednn_plan_t *plan, const onednn_matrix_request_t *request,
                                          kernel_matrix_t *own) {
  onednn_matrix_loop_t *context = kernel_arena_allocate(plan->arena, 1, sizeof(*context));
  if (context == NULL) {
    return NULL;
  }
  *context = (onednn_matrix_loop_t){
      .kind = request->kind, .has_bias = request->has_bias, .has_sum = begins_with_sum(plan, request)};
  if (request->kind == ONEDNN_MATRIX_NARROW) {
    context->narrow = *request->narrow;
  }
  if (request->kind == ONEDNN_MATRIX_AMX) {
    context->amx.x = dtype_of(request->source.layout.data_type);
    context->amx.y = dtype_of(request->result.data_type);
    context->has_scale = context->amx.x != CLEAVE_DTYPE_BF16;
  }
  kernel_matrix_t *matrix = matrix_of(context, own);
  *matrix = request->matrix;
  matrix->low = -INFINITY;
  matrix->high = INFINITY;
  return context;
}

// Has the step before split the same rows, as of queries, keys and values?
static bool is_split_before(const onednn_plan_t *plan, const onednn_thirds_t *thirds,
                            const onednn_tensor_t *source) {
  const onednn_step_t *step = plan->step_count > 0 ? &plan->steps[plan->step_count - 1] : NULL;
  if (step == NULL || step->loop == NULL || step->loop->run != onednn_loop_matrix) {
    return false;
  }
  const onednn_matrix_loop_t *before = step->loop->context;
  const onednn_tensor_t *rows = &step->arguments[0].tensor;
  return before->kind == ONEDNN_MATRIX_THIRDS && rows->buffer == source->buffer &&
         rows->offset == source->offset && onednn_layout_equal(&rows->layout, &source->layout) &&
         onednn_thirds_leave(&before->thirds, thirds);
}

// Fills in what follows the sums, and whether rows are split; the step's label.
static const char *complete_thirds(const onednn_plan_t *plan, const kernel_matrix_t *matrix,
                                   const onednn_tensor_t *source, onednn_thirds_t *thirds) {
  fill_thirds(matrix, &thirds->thirds);
  thirds->is_split = is_split_before(plan, thirds, source);
  return thirds->is_split ? "matmul thirds same rows" : "matmul thirds";
}

cleave_status_t onednn_emit_matrix(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                   const onednn_matrix_request_t *request) {
  kernel_matrix_t own;
  onednn_matrix_loop_t *context = make_context(plan, request, &own);
  if (context == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  kernel_matrix_t *matrix = matrix_of(context, &own);
  onednn_argument_t arguments[7] = {{.name = DNNL_ARG_SRC},
                                    {.name = DNNL_ARG_WEIGHTS, .tensor = request->weights}};
  onednn_tensor_t sum;
  onednn_tensor_t result;
  uint32_t count = 2;
  ONEDNN_TRY(onednn_plan_plain(plan, &request->source, &arguments[0].tensor));
  if (context->has_scale) {
    arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_SRC_2, .tensor = request->scale};
  }
  if (request->has_bias) {
    arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_BIAS, .tensor = request->bias};
  }
  uint32_t taken = context->has_sum ? 1 : 0;
  if (context->has_sum) {
    ONEDNN_TRY(fetch_sum(plan, request, &sum));
    if (context->kind == ONEDNN_MATRIX_AMX) {
      context->amx.sum = dtype_of(sum.layout.data_type);
    }
    arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_SRC_1, .tensor = sum};
  }
  if (context->kind == ONEDNN_MATRIX_NARROW || context->kind == ONEDNN_MATRIX_THIRDS) {
    size_t scratch = scratch_of(plan, matrix, context);
    arguments[count].name = DNNL_ARG_SCRATCHPAD;
    onednn_plan_scratch(plan, scratch, &arguments[count++].tensor);
  }
  if (taken < request->post_count && take_activation(&request->posts[taken], request->kind, matrix)) {
    taken++;
  }
  if (context->kind == ONEDNN_MATRIX_AMX && taken < request->post_count) {
    context->amx.factor = 1.0F / request->posts[taken].alpha;
    context->amx.zero = (int32_t)request->posts[taken++].beta;
  }
  bool is_whole = taken == request->post_count;
  ONEDNN_TRY(
      onednn_plan_make(plan, is_whole ? kernel->output : CLEAVE_INDEX_NONE, &request->result, &result));
  arguments[count++] = (onednn_argument_t){.name = DNNL_ARG_DST, .tensor = result};
  matrix->y_stride = result.layout.format_desc.blocking.strides[0];
  matrix->sum_stride = context->has_sum ? sum.layout.format_desc.blocking.strides[0] : 0;
  const char *label = request->label;
  if (context->kind == ONEDNN_MATRIX_THIRDS) {
    label = complete_thirds(plan, matrix, &arguments[0].tensor, &context->thirds);
  }
  const onednn_loop_t loop = {.run = onednn_loop_matrix,
                              .rank = (int32_t)count,
                              .context = context,
                              .context_bytes = sizeof(*context)};
  ONEDNN_TRY(onednn_plan_loop(plan, &loop, arguments, count, kernel->node, label));
  ONEDNN_TRY(onednn_plan_reshape(plan, &result, &request->shape, &result));
  return onednn_emit_chain(plan, &result, request->posts + taken, request->post_count - taken, kernel->node,
                           kernel->output);
}
