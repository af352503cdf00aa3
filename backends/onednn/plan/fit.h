// SPDX-License-Identifier: Apache-2.0
/*
 * Fitting a chain of posts into one primitive. The emitter says how to make the primitive descriptor for
 * given attributes and result layout; onednn_fit finds the longest prefix of the posts for which oneDNN has
 * an optimised implementation (its reference ones are a thousand times slower), decides between the
 * in-place `sum` and a binary post-op, adds the step and returns what is left of the chain.
 */
#ifndef ONEDNN_FIT_H
#define ONEDNN_FIT_H

#include "onednn/plan/plan.h"

/* Makes a primitive descriptor. `result` is the layout of the result, which may be `any`. */
typedef dnnl_status_t (*onednn_describe_fn_t)(void *context, dnnl_engine_t engine,
                                              const_dnnl_primitive_attr_t attributes,
                                              const onednn_layout_t *result, dnnl_primitive_desc_t *out);

/* The arguments of the primitive apart from the result and posts, for the layouts the descriptor chose. */
typedef cleave_status_t (*onednn_arguments_fn_t)(onednn_plan_t *plan, void *context,
                                                 const_dnnl_primitive_desc_t description,
                                                 onednn_argument_t *arguments, uint32_t *count);

enum { ONEDNN_MAX_OWN_ARGUMENTS = 8 };

typedef struct onednn_request {
  const char *what; /* for labels and messages */
  uint32_t node;
  onednn_describe_fn_t describe;
  onednn_arguments_fn_t arguments;
  void *context;
  const onednn_post_t *posts;
  uint32_t post_count;
  onednn_shape_t shape; /* of the result, as the graph sees it */
  onednn_shape_t
      kernel_shape; /* of the result, as the primitive sees it: `shape` with dims merged or ones added */
  onednn_layout_t
      result;     /* of kernel_shape; may be `any`; without a post that quantizes, integers are float32 */
  uint32_t value; /* that the result is when all posts fit, or CLEAVE_INDEX_NONE */
  const onednn_tensor_t
      *in_place; /* an operand that the result may overwrite if free, same layout; or NULL */
  const onednn_tensor_t *sources[2]; /* operands that a `sum` must not overwrite; NULL if none */
  bool can_sum;
  bool is_backward;     /* a deconvolution: most implementations are slow with posts */
  uint32_t later_count; /* posts behind post_count that later steps compute: what they read stays */
  const onednn_quantized_t *quantized; /* a product of 8-bit integers, or NULL */
  bool match_blocks; /* broadcast operands of posts need the blocking of the result (binary primitives) */
} onednn_request_t;

typedef enum onednn_effort {
  ONEDNN_FIT_ALWAYS, /* adds the step, by a reference implementation if there is no other */
  ONEDNN_FIT_FAST,   /* adds no step if there is only a reference implementation */
  ONEDNN_FIT_WHOLE   /* adds a step only if it is fast and takes all posts */
} onednn_effort_t;

typedef struct onednn_fitted {
  onednn_tensor_t result; /* kernel_shape */
  uint32_t posts;         /* how many of them are in it */
  bool declined;          /* no step was added */
} onednn_fitted_t;

/* CLEAVE_ERROR_UNSUPPORTED if oneDNN has no implementation at all, and `effort` is ONEDNN_FIT_ALWAYS. */
CLEAVE_MUST_USE cleave_status_t onednn_fit(onednn_plan_t *plan, const onednn_request_t *request,
                                           onednn_effort_t effort, onednn_fitted_t *fitted);

/* The shape of an operand that broadcasts to `shape`, as a primitive sees it whose result `shape` has
 * become `kernel_shape`. False if merged dims would have to be broadcast in part, or if the operand
 * would enlarge the result. */
bool onednn_broadcast_shape(const onednn_shape_t *operand, const onednn_shape_t *shape,
                            const onednn_shape_t *kernel_shape, onednn_shape_t *out);

/* Scale and shift per channel of an inference BatchNormalization: two vectors of `channels` floats. */
CLEAVE_MUST_USE cleave_status_t onednn_normalize_vectors(onednn_plan_t *plan, uint32_t node, int64_t channels,
                                                         float *scale, float *shift);

#endif /* ONEDNN_FIT_H */
