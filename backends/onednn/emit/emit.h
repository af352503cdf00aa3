// SPDX-License-Identifier: Apache-2.0
/*
 * One function per kind of kernel: fetches its operands, adds its steps, binds its result. All shapes are
 * known and positive here.
 */
#ifndef ONEDNN_EMIT_H
#define ONEDNN_EMIT_H

#include "onednn/plan/constants.h"
#include "onednn/plan/fit.h"
#include "onednn/plan/tensors.h"
#include "onednn/units/windows.h"

CLEAVE_MUST_USE cleave_status_t onednn_emit_pooling(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_pointwise(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_layer_normalization(onednn_plan_t *plan,
                                                                const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_softmax(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_lrn(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_reduction(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_resampling(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_prelu(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_concat(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_reshape(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_transpose(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_slice(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_gather(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_split(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_recurrent(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_attention(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_shuffle(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_generated(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_gradient(onednn_plan_t *plan, const onednn_kernel_t *kernel);
CLEAVE_MUST_USE cleave_status_t onednn_emit_statistics(onednn_plan_t *plan, const onednn_kernel_t *kernel);

/* emit_quantize_loop.c: float32 becomes the integers of `value` (or CLEAVE_INDEX_NONE) by a post that
 * quantizes; a chain that adds two tensors of integers, `*done` if the kernel is one. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_quantize_loop(onednn_plan_t *plan, const onednn_tensor_t *source,
                                                          const onednn_post_t *post, uint32_t value,
                                                          onednn_tensor_t *out);
CLEAVE_MUST_USE cleave_status_t onednn_emit_add_bytes(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                      bool *done);

/* Applies the posts to `start` with primitives of their own and binds the result to `value`. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_chain(onednn_plan_t *plan, const onednn_tensor_t *start,
                                                  const onednn_post_t *posts, uint32_t count, uint32_t node,
                                                  uint32_t value);

/* emit_post_loop.c, emit_loop.c: what oneDNN computes wrongly, with loops of our own. One post, with the
 * result for `value` (or CLEAVE_INDEX_NONE); maxima and minima of `source`, whose shape is `from`, over what
 * is 1 in `to`; softmax over the middle dimension of a plain tensor of rank 3; a max pooling. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_post_loop(onednn_plan_t *plan, const onednn_tensor_t *source,
                                                      const onednn_post_t *post, uint32_t value,
                                                      onednn_tensor_t *out);
CLEAVE_MUST_USE cleave_status_t onednn_emit_extreme_loop(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                         const onednn_tensor_t *source,
                                                         const onednn_shape_t *to, dnnl_alg_kind_t algorithm);
/* emit_pixels.c, for float32 images with channels last: is the tensor one, and are there factors for its
 * channels; the mean over its pixels; its channels times the factors, into `out`. */
bool onednn_scales_channels(const onednn_plan_t *plan, const onednn_tensor_t *source,
                            const onednn_shape_t *factors);
bool onednn_has_pixels(const onednn_plan_t *plan, const onednn_tensor_t *tensor);
CLEAVE_MUST_USE cleave_status_t onednn_emit_pixel_means(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                        const onednn_tensor_t *source, onednn_tensor_t *out);
CLEAVE_MUST_USE cleave_status_t onednn_emit_scale_channels(onednn_plan_t *plan, const onednn_tensor_t *source,
                                                           const onednn_tensor_t *factors, uint32_t node,
                                                           uint32_t value, onednn_tensor_t *out);
CLEAVE_MUST_USE cleave_status_t onednn_emit_sum_loop(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                     const onednn_tensor_t *source, const onednn_shape_t *to,
                                                     dnnl_alg_kind_t algorithm);
CLEAVE_MUST_USE cleave_status_t onednn_emit_softmax_loop(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                         const onednn_tensor_t *source,
                                                         dnnl_alg_kind_t algorithm);
CLEAVE_MUST_USE cleave_status_t onednn_emit_max_pool_loop(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                          const onednn_window_t *window,
                                                          const onednn_shape_t *to);

/* A step that looks whether a max pooling met nothing but minus infinities. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_watch(onednn_plan_t *plan, const onednn_tensor_t *result,
                                                  uint32_t node);

/* Completes onednn_fit: emits the posts that did not fit, and binds the result. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_rest(onednn_plan_t *plan, const onednn_request_t *request,
                                                 const onednn_fitted_t *fitted, uint32_t value);

/* The tensor itself if it has no gaps, else a plain copy; as float32, or in the type in which it is stored.
 */
CLEAVE_MUST_USE cleave_status_t onednn_emit_dense(onednn_plan_t *plan, uint32_t value, bool as_stored,
                                                  onednn_tensor_t *out);

/* Leading posts that are a scale and shift per channel, gathered: x -> scale[c] x + shift[c]. `axis` is the
 * channel dimension of `shape`. Both vectors have shape->dims[axis] entries, set by the caller to the
 * identity (or what goes before). Returns how many posts they hold. Without `may_scale` only shifts are
 * gathered. */
CLEAVE_MUST_USE cleave_status_t onednn_fold_posts(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                  const onednn_shape_t *shape, int32_t axis, bool may_scale,
                                                  float *scale, float *shift, uint32_t *folded);

#endif /* ONEDNN_EMIT_H */
