// SPDX-License-Identifier: Apache-2.0
// Folding of what follows a product or convolution into its weights and bias: batch normalization, scalar
// factors, and additions or multiplications of constants with one entry per channel.
#include "onednn/emit/emit.h"

#include <string.h>

// A constant with one entry per channel (or one at all), read as a vector.
static bool channel_constant(const onednn_plan_t *plan, uint32_t value, const onednn_shape_t *shape,
                             int32_t axis, float *out) {
  const cleave_value_view_t *view = &plan->region->values[value];
  onednn_shape_t own = onednn_shape_of(view);
  if (!onednn_is_constant(view) || view->tensor.dtype != CLEAVE_DTYPE_F32 || own.rank > shape->rank ||
      !onednn_shape_known(&own)) {
    return false;
  }
  onednn_shape_t aligned = onednn_shape_pad(&own, shape->rank);
  int64_t channels = shape->dims[axis];
  for (int32_t d = 0; d < shape->rank; d++) {
    if (aligned.dims[d] != 1 && (d != axis || aligned.dims[d] != channels)) {
      return false;
    }
  }
  if (aligned.dims[axis] == channels) {
    onednn_floats(view, out, (size_t)channels);
    return true;
  }
  onednn_floats(view, out, 1);
  for (int64_t c = 1; c < channels; c++) {
    out[c] = out[0];
  }
  return true;
}

static void apply(dnnl_alg_kind_t algorithm, int64_t channels, const float *operand, float *scale,
                  float *shift) {
  for (int64_t c = 0; c < channels; c++) {
    if (algorithm == dnnl_binary_add) {
      shift[c] += operand[c];
    } else if (algorithm == dnnl_binary_sub) {
      shift[c] -= operand[c];
    } else {
      float factor = algorithm == dnnl_binary_mul ? operand[c] : 1.0F / operand[c];
      scale[c] *= factor;
      shift[c] *= factor;
    }
  }
}

// Wide: a kernel's sizes, and the three results.
cleave_status_t onednn_fold_posts(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                  const onednn_shape_t *shape, int32_t axis, bool may_scale, float *scale,
                                  float *shift, uint32_t *folded) {
  int64_t channels = shape->dims[axis];
  float *factors = kernel_arena_allocate(plan->arena, (size_t)channels, 2 * sizeof(float));
  *folded = 0;
  if (factors == NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while folding");
  }
  float *offsets = factors + channels;
  for (uint32_t k = 0; k < kernel->post_count; k++) {
    const onednn_post_t *post = &kernel->posts[k];
    if (post->kind == ONEDNN_POST_ELTWISE) {
      if (post->algorithm != dnnl_eltwise_linear || (!may_scale && post->alpha != 1.0F)) {
        return CLEAVE_OK;
      }
      for (int64_t c = 0; c < channels; c++) {
        scale[c] *= post->alpha;
        shift[c] = shift[c] * post->alpha + post->beta;
      }
    } else if (post->kind == ONEDNN_POST_BINARY) {
      bool shifts = post->algorithm == dnnl_binary_add || post->algorithm == dnnl_binary_sub;
      bool scales = post->algorithm == dnnl_binary_mul || post->algorithm == dnnl_binary_div;
      if (!(shifts || (scales && may_scale)) ||
          !channel_constant(plan, post->operand, shape, axis, factors)) {
        return CLEAVE_OK;
      }
      apply(post->algorithm, channels, factors, scale, shift);
    } else {
      if (post->kind != ONEDNN_POST_NORMALIZE || !may_scale || axis != 1) {
        return CLEAVE_OK;
      }
      ONEDNN_TRY(onednn_normalize_vectors(plan, post->node, channels, factors, offsets));
      apply(dnnl_binary_mul, channels, factors, scale, shift);
      apply(dnnl_binary_add, channels, offsets, scale, shift);
    }
    *folded = k + 1;
  }
  return CLEAVE_OK;
}
