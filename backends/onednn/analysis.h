// SPDX-License-Identifier: Apache-2.0
/*
 * What a region means, before any layout is chosen: the list of kernels. A kernel is one oneDNN primitive
 * (or a view, which is none) with the chain of pointwise steps, its posts, that oneDNN applies to the
 * result before it stores it. `supports` asks for the kernels of one node or fusion and looks at the
 * outcome; `compile` asks for all and emits them. A fusion is recognised from its nodes and edges alone,
 * never from the name of its rule.
 */
#ifndef ONEDNN_ANALYSIS_H
#define ONEDNN_ANALYSIS_H

#include "expand.h"

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
  ONEDNN_SHUFFLE,  /* channels of groups dealt out one by one: `shuffle` */
  ONEDNN_RECURRENT /* RNN, GRU, LSTM: a function of this backend */
} onednn_kind_t;

typedef enum onednn_post_kind {
  ONEDNN_POST_ELTWISE,  /* x = algorithm(x; alpha, beta), as dnnl_eltwise_* define them */
  ONEDNN_POST_BINARY,   /* x = algorithm(x, operand), operand broadcast to x */
  ONEDNN_POST_NORMALIZE /* inference BatchNormalization `node`, whose inputs 1 to 4 are constant */
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
  uint32_t weights;  /* PRODUCT: second input, after what was folded into it */
  uint32_t output;   /* result after all posts, or the first one; SPLIT: see the node */
  uint32_t pad_node; /* a Pad folded into a convolution or pooling, or CLEAVE_INDEX_NONE */
  float input_scale; /* PRODUCT: the product of scalar factors of the inputs */
  uint32_t scale;    /* LAYER_NORMALIZATION: values, or CLEAVE_INDEX_NONE */
  uint32_t shift;
  float epsilon;
  int32_t axis;                    /* LAYER_NORMALIZATION: first normalised axis, may be negative */
  const onednn_shuffle_t *shuffle; /* SHUFFLE */
  uint32_t post_count;
  onednn_post_t posts[ONEDNN_MAX_POSTS];
} onednn_kernel_t;

typedef struct onednn_analysis {
  const cleave_region_view_t *region; /* expanded */
  onednn_expansion_t expansion;
  onednn_arena_t *arena;
  cleave_message_t *message;
  const uint32_t *use_starts; /* value_count + 1 offsets into `uses` */
  const uint32_t *uses;       /* nodes, one entry per input slot */
  const uint32_t *unit_of;    /* per node: index of its fusion, or fusion_count + node */
  uint32_t kernel_count;
  onednn_kernel_t *kernels; /* in an order in which they can run */
} onednn_analysis_t;

/* Nodes that belong together: one fusion, or one node. */
typedef struct onednn_unit {
  onednn_analysis_t *analysis;
  uint32_t id; /* as in unit_of */
  uint32_t fusion;
  const uint32_t *nodes; /* in topological order */
  uint32_t count;
  bool *taken; /* per entry of `nodes`: part of the kernel already */
} onednn_unit_t;

/* Analyses all units of the region. All memory comes from `arena`. A unit that oneDNN cannot express is
 * CLEAVE_ERROR_UNSUPPORTED with the reason in `message`. */
CLEAVE_MUST_USE cleave_status_t onednn_analyse(const cleave_region_view_t *region, onednn_arena_t *arena,
                                               cleave_message_t *message, onednn_analysis_t *out);

/* recognise.c: the kernel of a unit. */
CLEAVE_MUST_USE cleave_status_t onednn_recognise(onednn_unit_t *unit, onednn_kernel_t *kernel);

/* recognise_shuffle.c: a unit that is a channel shuffle. `*found` is false where it has no Transpose between
 * views. */
CLEAVE_MUST_USE cleave_status_t onednn_recognise_shuffle(onednn_unit_t *unit, onednn_kernel_t *kernel,
                                                         bool *found);

/* ---- small questions ------------------------------------------------------------------------------ */

const cleave_node_view_t *onednn_node(const onednn_analysis_t *analysis, uint32_t node);
const cleave_value_view_t *onednn_value(const onednn_analysis_t *analysis, uint32_t value);

/* The node's name, or its operator where it has none. */
const char *onednn_node_name(const cleave_node_view_t *node);
bool onednn_node_is(const cleave_node_view_t *node, const char *op);

/* Number of input slots that read the value. */
uint32_t onednn_use_count(const onednn_analysis_t *analysis, uint32_t value);

/* Entry of unit->nodes that holds `node`, or CLEAVE_INDEX_NONE. */
uint32_t onednn_unit_find(const onednn_unit_t *unit, uint32_t node);

/* Is the value read outside the unit, or an output of the region? */
bool onednn_unit_leaks(const onednn_unit_t *unit, uint32_t value);

/* Is the value made by a node of the unit? */
bool onednn_unit_makes(const onednn_unit_t *unit, uint32_t value);

/* ---- pointwise steps (pointwise.c) ---------------------------------------------------------------- */

/* Appends; a linear step is merged with a linear one before it, and dropped when it changes nothing.
 * False when the list is full. */
bool onednn_post_append(onednn_kernel_t *kernel, onednn_post_t post);
bool onednn_post_linear(onednn_kernel_t *kernel, double scale, double shift, uint32_t node);

/* Is the operator one that posts can express for some operands? */
bool onednn_pointwise_known(const cleave_node_view_t *node);

/* Is it arithmetic of two or more operands, any of which may be the one that the post is applied to? Of all
 * other operators that is the first input. */
bool onednn_pointwise_arithmetic(const cleave_node_view_t *node);

/* Appends what `node` does to the value `current`, which it reads in one slot or in all of them.
 * CLEAVE_ERROR_UNSUPPORTED, with the reason, where no post-op does that. */
CLEAVE_MUST_USE cleave_status_t onednn_pointwise_node(onednn_unit_t *unit, uint32_t node, uint32_t current,
                                                      onednn_kernel_t *kernel);

/* ---- operators (operators.c) ---------------------------------------------------------------------- */

typedef struct onednn_operator {
  const char *name;
  onednn_kind_t kind;
  bool takes_posts;
  /* Refuses what the primitive cannot do; fills the fields of its kind. NULL: nothing to check. */
  cleave_status_t (*check)(const onednn_analysis_t *analysis, const cleave_node_view_t *node,
                           onednn_kernel_t *kernel);
} onednn_operator_t;

/* The entry, or NULL for an operator the backend does not know. */
const onednn_operator_t *onednn_operator_find(const char *name);

#endif /* ONEDNN_ANALYSIS_H */
