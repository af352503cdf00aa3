// SPDX-License-Identifier: Apache-2.0
// Post-ops. Each candidate prefix of the chain is described with descriptors only; operands are converted,
// and constants made, when a candidate has won.
#include "onednn/plan/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "onednn/library/types.h"
#include "onednn/plan/care.h"
#include "onednn/plan/constants.h"
#include "onednn/plan/tensors.h"

// One post-op of oneDNN that reads memory.
typedef struct operand {
  int position;            // in dnnl_post_ops
  uint32_t post;           // index into the request's posts
  int part;                // of a normalization: 0 scale, 1 shift
  onednn_shape_t shape;    // as the primitive sees it
  dnnl_data_type_t type;   // in which it is stored
  bool full;               // the shape of the result: has its layout
  onednn_layout_t layout;  // once the layout of the result is known
} operand_t;

typedef struct candidate {
  dnnl_primitive_attr_t attributes;
  dnnl_primitive_desc_t description;
  operand_t operands[2 * ONEDNN_MAX_POSTS];
  int operand_count;
  bool sum;  // the first post is a sum with the memory of its operand
  float sum_scale;
  dnnl_data_type_t sum_type;
  onednn_layout_t result;
} candidate_t;

static void discard(candidate_t *candidate) {
  if (candidate->attributes != NULL) {
    (void)dnnl_primitive_attr_destroy(candidate->attributes);
  }
  if (candidate->description != NULL) {
    (void)dnnl_primitive_desc_destroy(candidate->description);
  }
  candidate->attributes = NULL;
  candidate->description = NULL;
}

bool onednn_broadcast_shape(const onednn_shape_t *operand, const onednn_shape_t *shape,
                            const onednn_shape_t *kernel_shape, onednn_shape_t *out) {
  if (operand->rank > shape->rank || !onednn_shape_fits(operand, shape)) {
    // Ones in front of the operand change nothing but the rank.
    onednn_shape_t cut = *operand;
    int32_t extra = operand->rank - shape->rank;
    for (int32_t d = 0; d < extra; d++) {
      if (operand->dims[d] != 1) {
        return false;
      }
    }
    if (extra <= 0) {
      return false;
    }
    cut.rank = shape->rank;
    memmove(cut.dims, operand->dims + extra, (size_t)shape->rank * sizeof(int64_t));
    return onednn_broadcast_shape(&cut, shape, kernel_shape, out);
  }
  onednn_shape_t aligned = onednn_shape_pad(operand, shape->rank);
  out->rank = kernel_shape->rank;
  int32_t d = 0;
  for (int32_t k = 0; k < kernel_shape->rank; k++) {
    int64_t product = 1;
    int full = -1;
    while (product < kernel_shape->dims[k] && d < shape->rank) {
      if (shape->dims[d] != 1) {
        int covers = aligned.dims[d] != 1 ? 1 : 0;
        if (full >= 0 && full != covers) {
          return false;
        }
        full = covers;
        product *= shape->dims[d];
      }
      d++;
    }
    if (product != kernel_shape->dims[k]) {
      return false;
    }
    out->dims[k] = full == 1 ? product : 1;
  }
  return true;
}

cleave_status_t onednn_normalize_vectors(onednn_plan_t *plan, uint32_t node, int64_t channels, float *scale,
                                         float *shift) {
  const cleave_node_view_t *view = &plan->region->nodes[node];
  double epsilon = cleave_view_float(view, "epsilon", 1e-5);
  float values[4];
  for (uint32_t k = 1; k < 5; k++) {
    const cleave_value_view_t *vector = cleave_view_input(plan->region, view, k);
    if (cleave_view_element_count(&vector->tensor) != channels) {
      return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE,
                         "BatchNormalization '%s': expected %lld channel%s", onednn_node_name(view),
                         (long long)channels, KERNEL_PLURAL(channels));
    }
  }
  for (int64_t c = 0; c < channels; c++) {
    for (uint32_t k = 0; k < 4; k++) {
      const cleave_value_view_t *vector = cleave_view_input(plan->region, view, k + 1);
      memcpy(&values[k], (const char *)vector->tensor.data + (size_t)c * sizeof(float), sizeof(float));
    }
    double factor = (double)values[0] / sqrt((double)values[3] + epsilon);
    scale[c] = (float)factor;
    shift[c] = (float)((double)values[1] - factor * (double)values[2]);
  }
  return CLEAVE_OK;
}

static onednn_shape_t channel_shape(const onednn_shape_t *shape) {
  onednn_shape_t channels = *shape;
  for (int32_t d = 0; d < shape->rank; d++) {
    channels.dims[d] = d == 1 ? shape->dims[1] : 1;
  }
  return channels;
}

// oneDNN 2.6 finds the element of a broadcast operand by counting places of the result, which is right if
// channels follow the batch, as in plain and blocked layouts, or come last. In others it reads past the end.
static bool broadcasts_well(const onednn_layout_t *result) {
  if (!onednn_layout_is_strided(result) || onednn_layout_is_plain(result)) {
    return true;
  }
  onednn_shape_t shape = onednn_layout_shape(result);
  int32_t order[CLEAVE_MAX_RANK] = {0};
  for (int32_t d = 1; d < shape.rank; d++) {
    order[d] = d + 1 < shape.rank ? d + 1 : 1;
  }
  onednn_layout_t last = onednn_layout_ordered(&shape, order);
  return onednn_layout_equal(result, &last);
}

// Layout of an operand: that of the result if it has its shape, plain (or blocked alike) otherwise.
static bool operand_layout(const onednn_request_t *request, const onednn_layout_t *result,
                           operand_t *operand) {
  if (result->format_kind == dnnl_format_kind_any) {
    operand->layout =
        operand->full ? onednn_layout_any(&operand->shape) : onednn_layout_plain(&operand->shape);
    operand->layout = onednn_layout_typed(&operand->layout, operand->type);
    return true;
  }
  if (operand->full) {
    operand->layout = onednn_layout_typed(result, operand->type);
    return true;
  }
  if (!onednn_shape_is_single(&operand->shape) && !broadcasts_well(result)) {
    return false;
  }
  if (request->match_blocks && !onednn_shape_is_single(&operand->shape)) {
    bool known = onednn_layout_like(result, &operand->shape, &operand->layout);
    operand->layout = onednn_layout_typed(&operand->layout, operand->type);
    return known;
  }
  operand->layout = onednn_layout_plain(&operand->shape);
  operand->layout = onednn_layout_typed(&operand->layout, operand->type);
  return true;
}

// The type in which a post reads its operand: that in which it is stored, unless integers stand for numbers.
static dnnl_data_type_t type_of(const onednn_plan_t *plan, const onednn_post_t *post) {
  const onednn_binding_t *binding = post->kind == ONEDNN_POST_BINARY ? &plan->bindings[post->operand] : NULL;
  return binding != NULL && binding->bound && binding->tensor.quantization == NULL
             ? binding->tensor.layout.data_type
             : dnnl_f32;
}

static bool quantizes(const onednn_request_t *request, uint32_t count) {
  return count > 0 && request->posts[count - 1].kind == ONEDNN_POST_QUANTIZE;
}

// The layout of the result with the first `count` posts: without the one that makes integers it is float32.
static onednn_layout_t result_layout(const onednn_request_t *request, uint32_t count,
                                     const onednn_layout_t *result) {
  bool numbers = onednn_type_is_byte(result->data_type) && quantizes(request, request->post_count) &&
                 count < request->post_count;
  return numbers ? onednn_layout_typed(result, dnnl_f32) : *result;
}

// Wide: one post-op, as oneDNN wants to know it.
static bool add_operand(const onednn_plan_t *plan, const onednn_request_t *request, candidate_t *candidate,
                        dnnl_post_ops_t ops, uint32_t post, int part, dnnl_alg_kind_t algorithm,
                        const onednn_shape_t *shape, const onednn_layout_t *result) {
  operand_t *operand = &candidate->operands[candidate->operand_count];
  operand->position = dnnl_post_ops_len(ops);
  operand->post = post;
  operand->part = part;
  operand->type = type_of(plan, &request->posts[post]);
  if (!onednn_broadcast_shape(shape, &request->shape, &request->kernel_shape, &operand->shape)) {
    return false;
  }
  operand->full = onednn_shape_equal(&operand->shape, &request->kernel_shape);
  if (operand->position >= ONEDNN_MAX_POSTS || !operand_layout(request, result, operand) ||
      onednn_append_binary(ops, algorithm, &operand->layout) != dnnl_success) {
    return false;
  }
  candidate->operand_count++;
  return true;
}

// The code that oneDNN 2.6 generates for post-ops keeps one set of parameters per algorithm: the same
// algorithm twice with other parameters would compute with those of the first.
static bool repeats(const onednn_post_t *posts, uint32_t index) {
  for (uint32_t k = 0; k < index; k++) {
    if (posts[k].kind == ONEDNN_POST_ELTWISE && posts[k].algorithm == posts[index].algorithm &&
        (posts[index].kind == ONEDNN_POST_QUANTIZE || posts[k].alpha != posts[index].alpha ||
         posts[k].beta != posts[index].beta)) {
      return true;
    }
  }
  return false;
}

static bool append_posts(onednn_plan_t *plan, const onednn_request_t *request, uint32_t count,
                         const onednn_layout_t *result, candidate_t *candidate, dnnl_post_ops_t ops) {
  candidate->operand_count = 0;
  for (uint32_t k = 0; k < count; k++) {
    const onednn_post_t *post = &request->posts[k];
    if (k == 0 && candidate->sum) {
      if (onednn_append_sum(ops, candidate->sum_scale, candidate->sum_type) != dnnl_success) {
        return false;
      }
    } else if (post->kind == ONEDNN_POST_QUANTIZE) {
      bool changes = post->alpha != 1.0F || post->beta != 0.0F;
      if (request->quantized == NULL || repeats(request->posts, k) ||
          (changes &&
           onednn_append_eltwise(ops, dnnl_eltwise_linear, 1.0F / post->alpha, post->beta) != dnnl_success)) {
        return false;
      }
    } else if (post->kind == ONEDNN_POST_ELTWISE) {
      if (dnnl_post_ops_len(ops) >= ONEDNN_MAX_POSTS || repeats(request->posts, k) ||
          onednn_append_eltwise(ops, post->algorithm, post->alpha, post->beta) != dnnl_success) {
        return false;
      }
    } else if (post->kind == ONEDNN_POST_BINARY) {
      onednn_shape_t shape = onednn_plan_shape(plan, post->operand);
      if (!add_operand(plan, request, candidate, ops, k, 0, post->algorithm, &shape, result)) {
        return false;
      }
    } else {
      onednn_shape_t shape = channel_shape(&request->shape);
      if (!add_operand(plan, request, candidate, ops, k, 0, dnnl_binary_mul, &shape, result) ||
          !add_operand(plan, request, candidate, ops, k, 1, dnnl_binary_add, &shape, result)) {
        return false;
      }
    }
  }
  return true;
}

// Describes the primitive with the first `count` posts for one result layout. False: not possible.
static bool describe(onednn_plan_t *plan, const onednn_request_t *request, uint32_t count,
                     const onednn_layout_t *result, candidate_t *candidate) {
  dnnl_post_ops_t ops = NULL;
  discard(candidate);
  if (dnnl_primitive_attr_create(&candidate->attributes) != dnnl_success ||
      dnnl_primitive_attr_set_scratchpad_mode(candidate->attributes, dnnl_scratchpad_mode_user) !=
          dnnl_success ||
      dnnl_post_ops_create(&ops) != dnnl_success) {
    discard(candidate);
    return false;
  }
  const onednn_layout_t typed = result_layout(request, count, result);
  bool ok = append_posts(plan, request, count, &typed, candidate, ops) &&
            dnnl_primitive_attr_set_post_ops(candidate->attributes, ops) == dnnl_success &&
            (request->quantized == NULL ||
             onednn_set_quantized(candidate->attributes, request->quantized) == dnnl_success) &&
            request->describe(request->context, plan->engine, candidate->attributes, &typed,
                              &candidate->description) == dnnl_success;
  (void)dnnl_post_ops_destroy(ops);
  if (!ok) {
    discard(candidate);
    return false;
  }
  return onednn_query_layout(candidate->description, dnnl_query_dst_md, &candidate->result);
}

// The "simple" implementations compute posts one number at a time, and that of the resampling reads operands
// of posts at places of the plain layout, whatever the layout is. A deconvolution is the backward pass of a
// convolution, by whose name it goes, and computes posts behind it in the same way; "brg" ones are their own.
static bool is_fast(const_dnnl_primitive_desc_t description, const onednn_request_t *request,
                    uint32_t posts) {
  bool is_slow = onednn_is_named(description, "simple") ||
                 (request->is_backward && !onednn_is_named(description, "brg"));
  return !onednn_is_reference(description) && (posts == 0 || !is_slow);
}

// Describes the candidate, and once more with the layout that oneDNN chose if operands must have it.
static bool settle(onednn_plan_t *plan, const onednn_request_t *request, uint32_t count,
                   candidate_t *candidate) {
  if (!describe(plan, request, count, &request->result, candidate)) {
    return false;
  }
  if (request->result.format_kind == dnnl_format_kind_any && candidate->operand_count > 0) {
    onednn_layout_t chosen = candidate->result;
    return describe(plan, request, count, &chosen, candidate);
  }
  return true;
}

// Are elements of the operand those of the result? Integers may have another sign, and get their scale.
static bool sums_type(const onednn_request_t *request, const onednn_tensor_t *tensor) {
  if (tensor->quantization == NULL) {
    return tensor->layout.data_type == request->result.data_type;
  }
  return request->quantized != NULL && quantizes(request, request->post_count) &&
         tensor->quantization->zero_point == 0 && tensor->quantization->scales == NULL;
}

// May the first post be a sum into the memory of its operand?
static bool sum_possible(onednn_plan_t *plan, const onednn_request_t *request, onednn_tensor_t *tensor) {
  if (!request->can_sum || request->post_count == 0 || request->posts[0].kind != ONEDNN_POST_BINARY ||
      request->posts[0].algorithm != dnnl_binary_add ||
      onednn_is_constant(&plan->region->values[request->posts[0].operand])) {
    return false;
  }
  onednn_shape_t shape = onednn_plan_shape(plan, request->posts[0].operand);
  if (!onednn_shape_equal(&shape, &request->shape) ||
      onednn_plan_stored(plan, request->posts[0].operand, tensor) != CLEAVE_OK ||
      !sums_type(request, tensor) || !onednn_plan_is_free(plan, tensor)) {
    return false;
  }
  for (int k = 0; k < 2; k++) {
    if (request->sources[k] != NULL && request->sources[k]->buffer == tensor->buffer) {
      return false;
    }
  }
  for (uint32_t k = 1; k < request->post_count; k++) {
    onednn_tensor_t other;
    if (request->posts[k].kind == ONEDNN_POST_BINARY &&
        (onednn_plan_stored(plan, request->posts[k].operand, &other) != CLEAVE_OK ||
         other.buffer == tensor->buffer)) {
      return false;
    }
  }
  return true;
}

static cleave_status_t operand_tensor(onednn_plan_t *plan, const onednn_request_t *request,
                                      const operand_t *operand, onednn_tensor_t *out) {
  const onednn_post_t *post = &request->posts[operand->post];
  onednn_tensor_t own;
  if (post->kind == ONEDNN_POST_BINARY) {
    ONEDNN_TRY(onednn_plan_stored(plan, post->operand, &own));
    if (own.quantization != NULL) {
      ONEDNN_TRY(onednn_plan_fetch(plan, post->operand, &own));
    }
  } else {
    int64_t channels = onednn_shape_count(&operand->shape);
    onednn_layout_t plain = onednn_layout_plain(&operand->shape);
    onednn_tensor_t pair[2];
    float *data[2] = {NULL, NULL};
    ONEDNN_TRY(onednn_plan_constant(plan, &plain, &pair[0], &data[0]));
    ONEDNN_TRY(onednn_plan_constant(plan, &plain, &pair[1], &data[1]));
    ONEDNN_TRY(onednn_normalize_vectors(plan, post->node, channels, data[0], data[1]));
    own = pair[operand->part];
  }
  ONEDNN_TRY(onednn_plan_reshape(plan, &own, &operand->shape, &own));
  return onednn_plan_convert(plan, &own, &operand->layout, out);
}

static cleave_status_t place_result(onednn_plan_t *plan, const onednn_request_t *request,
                                    const candidate_t *candidate, const onednn_tensor_t *sum, bool complete,
                                    onednn_tensor_t *out) {
  if (candidate->sum) {
    onednn_tensor_t viewed;
    ONEDNN_TRY(onednn_plan_reshape(plan, sum, &request->kernel_shape, &viewed));
    const onednn_layout_t own = onednn_layout_typed(&candidate->result, viewed.layout.data_type);
    ONEDNN_TRY(onednn_plan_convert(plan, &viewed, &own, out));
    out->layout = candidate->result;
    out->quantization = NULL;
    onednn_plan_overwrite(plan, out);
    return CLEAVE_OK;
  }
  uint32_t value = complete ? request->value : CLEAVE_INDEX_NONE;
  if (request->in_place != NULL && !onednn_plan_has_place(plan, value) &&
      onednn_plan_is_free(plan, request->in_place) &&
      onednn_layout_equal(&request->in_place->layout, &candidate->result)) {
    *out = *request->in_place;
    out->layout = candidate->result;
    out->quantization = NULL;
    return CLEAVE_OK;
  }
  return onednn_plan_make(plan, value, &candidate->result, out);
}

// Overwriting an operand is only right if nothing else in the step reads its buffer.
static uint32_t count_readers(const onednn_argument_t *arguments, uint32_t count,
                              const onednn_tensor_t *result) {
  uint32_t readers = 0;
  for (uint32_t k = 0; k < count; k++) {
    readers += arguments[k].tensor.buffer == result->buffer ? 1 : 0;
  }
  return readers;
}

// Nor may a post that a later step computes read it, by another name of the same memory.
static bool read_later(const onednn_plan_t *plan, const onednn_request_t *request, uint32_t count,
                       const onednn_tensor_t *result) {
  for (uint32_t k = count; k < request->post_count + request->later_count; k++) {
    const onednn_post_t *post = &request->posts[k];
    if (post->kind == ONEDNN_POST_BINARY && plan->bindings[post->operand].bound &&
        plan->bindings[post->operand].tensor.buffer == result->buffer) {
      return true;
    }
  }
  return false;
}

static cleave_status_t emit(onednn_plan_t *plan, const onednn_request_t *request, candidate_t *candidate,
                            const onednn_tensor_t *sum, uint32_t count, onednn_fitted_t *fitted) {
  onednn_argument_t arguments[ONEDNN_MAX_OWN_ARGUMENTS + 2 * ONEDNN_MAX_POSTS + 1];
  uint32_t used = 0;
  ONEDNN_TRY(request->arguments(plan, request->context, candidate->description, arguments, &used));
  for (int k = 0; k < candidate->operand_count; k++) {
    const operand_t *operand = &candidate->operands[k];
    onednn_argument_t *argument = &arguments[used++];
    argument->name = DNNL_ARG_ATTR_MULTIPLE_POST_OP(operand->position) | DNNL_ARG_SRC_1;
    ONEDNN_TRY(operand_tensor(plan, request, operand, &argument->tensor));
  }
  ONEDNN_TRY(place_result(plan, request, candidate, sum, count == request->post_count, &fitted->result));
  if (!candidate->sum && request->in_place != NULL && fitted->result.buffer == request->in_place->buffer) {
    if (count_readers(arguments, used, &fitted->result) > 1 ||
        read_later(plan, request, count, &fitted->result)) {
      ONEDNN_TRY(onednn_plan_make(plan, CLEAVE_INDEX_NONE, &candidate->result, &fitted->result));
    } else {
      onednn_plan_overwrite(plan, &fitted->result);
    }
  }
  if (candidate->sum && count_readers(arguments, used, &fitted->result) > 0) {
    // The sum's operand, converted, is what the primitive itself reads.
    onednn_tensor_t shared = fitted->result;
    ONEDNN_TRY(onednn_plan_make(plan, CLEAVE_INDEX_NONE, &candidate->result, &fitted->result));
    ONEDNN_TRY(onednn_plan_copy(plan, &shared, &fitted->result));
  }
  arguments[used++] = (onednn_argument_t){.name = DNNL_ARG_DST, .tensor = fitted->result};
  char label[64];
  (void)snprintf(label, sizeof(label), "%s%s%s", request->what, candidate->sum ? "+sum" : "",
                 count > (candidate->sum ? 1U : 0U) ? "+posts" : "");
  dnnl_primitive_desc_t description = candidate->description;
  candidate->description = NULL;
  fitted->posts = count;
  return onednn_plan_step(plan, description, arguments, used, request->node, label);
}

cleave_status_t onednn_fit(onednn_plan_t *plan, const onednn_request_t *request, onednn_effort_t effort,
                           onednn_fitted_t *fitted) {
  candidate_t candidate = {.attributes = NULL, .description = NULL};
  onednn_tensor_t sum;
  bool may_sum = sum_possible(plan, request, &sum);
  candidate.sum_scale = may_sum && sum.quantization != NULL ? sum.quantization->scale : 1.0F;
  candidate.sum_type = may_sum && sum.quantization != NULL ? sum.layout.data_type : dnnl_data_type_undef;
  uint32_t count = onednn_posts_allowed(plan, request->posts, request->post_count);
  bool settled = false;
  memset(fitted, 0, sizeof(*fitted));
  if (effort == ONEDNN_FIT_WHOLE && count < request->post_count) {
    fitted->declined = true;
    return CLEAVE_OK;
  }
  for (;;) {
    candidate.sum = may_sum && count > 0 && (sum.quantization == NULL || count == request->post_count);
    settled = settle(plan, request, count, &candidate);
    if (!settled || onednn_is_reference(candidate.description)) {
      candidate.sum = false;
      settled = settle(plan, request, count, &candidate);
    }
    bool fast = settled && is_fast(candidate.description, request, count);
    if (count == 0 || fast || effort == ONEDNN_FIT_WHOLE) {
      fitted->declined = !fast && effort != ONEDNN_FIT_ALWAYS;
      break;
    }
    count--;
  }
  cleave_status_t status = CLEAVE_OK;
  if (!fitted->declined) {
    status = settled ? emit(plan, request, &candidate, &sum, count, fitted)
                     : kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED,
                                   "%s '%s': oneDNN has no implementation", request->what,
                                   onednn_node_name(&plan->region->nodes[request->node]));
  }
  discard(&candidate);
  return status;
}
