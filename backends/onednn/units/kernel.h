// SPDX-License-Identifier: Apache-2.0
/*
 * A kernel: one oneDNN primitive (or a view, which is none) with the chain of pointwise steps, its posts,
 * that oneDNN applies to the result before it stores it. Layouts are not chosen yet.
 */
#ifndef ONEDNN_KERNEL_H
#define ONEDNN_KERNEL_H

#include "onednn/library/values.h"

/* oneDNN takes at most this many post-ops. */
#define ONEDNN_MAX_POSTS 32

typedef enum onednn_kind {
  ONEDNN_CONVOLUTION,
  ONEDNN_DECONVOLUTION,
  ONEDNN_PRODUCT,   /* MatMul, Gemm */
  ONEDNN_POOLING,   /* and ReduceMean, ReduceMax over all spatial dims */
  ONEDNN_POINTWISE, /* posts applied to `source`; everything elementwise, BatchNormalization among it */
  ONEDNN_LAYER_NORMALIZATION,
  ONEDNN_SOFTMAX,
  ONEDNN_LRN,
  ONEDNN_REDUCTION,
  ONEDNN_RESAMPLING,
  ONEDNN_PRELU,
  ONEDNN_CONCAT,
  ONEDNN_RESHAPE, /* the same elements in the same order under another shape */
  ONEDNN_TRANSPOSE,
  ONEDNN_SLICE,
  ONEDNN_GATHER, /* one constant index */
  ONEDNN_SPLIT,
  ONEDNN_SHUFFLE,    /* channels of groups dealt out one by one: `shuffle` */
  ONEDNN_RECURRENT,  /* RNN, GRU, LSTM: a function of this backend */
  ONEDNN_ATTENTION,  /* by blocks of queries: a loop of our own */
  ONEDNN_GENERATED,  /* a program of kernels/: pointwise operators with what reduces their rows */
  ONEDNN_GRADIENT,   /* of weights of a convolution, of a pooling, of a batch normalization, of Relu */
  ONEDNN_DEQUANTIZE, /* numbers that are stored as 8-bit integers: no step of its own */
  ONEDNN_STATISTICS  /* BatchNormalizationTraining: the statistics; posts normalize by them */
} onednn_kind_t;

typedef enum onednn_post_kind {
  ONEDNN_POST_ELTWISE,   /* x = algorithm(x; alpha, beta), as dnnl_eltwise_* define them */
  ONEDNN_POST_BINARY,    /* x = algorithm(x, operand), operand broadcast to x */
  ONEDNN_POST_NORMALIZE, /* inference BatchNormalization `node`, whose inputs 1 to 4 are constant */
  ONEDNN_POST_QUANTIZE   /* the last one: x = x / alpha + beta, rounded to the 8-bit integers of its result */
} onednn_post_kind_t;

typedef struct onednn_post {
  onednn_post_kind_t kind;
  dnnl_alg_kind_t algorithm;
  float alpha;
  float beta;
  uint32_t operand; /* value */
  uint32_t node;    /* where it came from */
} onednn_post_t;

/* Most groups of a channel shuffle, and most values that it reads and makes together. */
enum { ONEDNN_SHUFFLE_GROUPS = 16, ONEDNN_SHUFFLE_VALUES = 8 };

/* Images [N, C, H, W]. The channels of all sources, one after the other, are groups of the same size; channel
 * i of group k becomes channel i groups + k of the result, of which each part takes those from its start on.
 */
typedef struct onednn_shuffle {
  int64_t groups;
  uint32_t source_count;
  uint32_t part_count;
  uint32_t sources[ONEDNN_SHUFFLE_VALUES];
  uint32_t parts[ONEDNN_SHUFFLE_VALUES];
  int64_t starts[ONEDNN_SHUFFLE_VALUES];
} onednn_shuffle_t;

typedef struct onednn_kernel {
  onednn_kind_t kind;
  uint32_t node;     /* the node that gives attributes and further inputs */
  uint32_t fusion;   /* or CLEAVE_INDEX_NONE */
  uint32_t source;   /* first input, after what was folded into it */
  uint32_t weights;  /* PRODUCT: second input, after what was folded into it; what a Cast of them reads */
  uint32_t output;   /* result after all posts, or the first one; SPLIT: see the node */
  uint32_t pad_node; /* a Pad folded into a convolution or pooling, or CLEAVE_INDEX_NONE */
  float input_scale; /* PRODUCT: the product of scalar factors of the inputs */
  uint32_t scale;    /* LAYER_NORMALIZATION: values, or CLEAVE_INDEX_NONE */
  uint32_t shift;
  float epsilon;
  int32_t axis;                    /* LAYER_NORMALIZATION: first normalised axis, may be negative */
  const onednn_shuffle_t *shuffle; /* SHUFFLE */
  bool fast_math;                  /* GENERATED: functions with fewer digits */
  uint32_t post_count;
  onednn_post_t posts[ONEDNN_MAX_POSTS];
} onednn_kernel_t;

/* Appends; a linear step is merged with a linear one before it, and dropped if it changes nothing. False if
 * the list is full. */
bool onednn_post_append(onednn_kernel_t *kernel, onednn_post_t post);
bool onednn_post_eltwise(onednn_kernel_t *kernel, dnnl_alg_kind_t algorithm, double alpha, double beta,
                         uint32_t node);
bool onednn_post_linear(onednn_kernel_t *kernel, double scale, double shift, uint32_t node);

#endif /* ONEDNN_KERNEL_H */
