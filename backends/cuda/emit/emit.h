// SPDX-License-Identifier: Apache-2.0
/*
 * From nodes to steps. Each family of operators has a file; an operator that no file has is lowered to a
 * program of kernels/ or refused. All functions add to the plan, and refuse with the node's name.
 */
#ifndef CLEAVE_CUDA_EMIT_H
#define CLEAVE_CUDA_EMIT_H

#include "cuda/plan/plan.h"
#include "kernels/lower/lower.h"

/* All steps of the region. */
CLEAVE_MUST_USE cleave_status_t cuda_emit_region(cuda_plan_t *plan);

/* Whether the region can be run as far as that is known, where sizes are not. */
CLEAVE_MUST_USE cleave_status_t cuda_emit_guess(const cleave_region_view_t *region,
                                                cleave_message_t *message);

/* ---- what families share ---- */

typedef cleave_status_t (*cuda_emit_t)(cuda_plan_t *plan, const cleave_node_view_t *node);

static inline const cleave_tensor_view_t *cuda_tensor(const cuda_plan_t *plan, uint32_t value) {
  return &plan->region->values[value].tensor;
}

/* Input or output `index`, or NULL if it is left out. */
static inline const cleave_tensor_view_t *cuda_input(const cuda_plan_t *plan, const cleave_node_view_t *node,
                                                     uint32_t index) {
  return index >= node->input_count || node->inputs[index] == CLEAVE_INDEX_NONE
             ? NULL
             : cuda_tensor(plan, node->inputs[index]);
}

static inline const cleave_tensor_view_t *cuda_output(const cuda_plan_t *plan, const cleave_node_view_t *node,
                                                      uint32_t index) {
  return index >= node->output_count || node->outputs[index] == CLEAVE_INDEX_NONE
             ? NULL
             : cuda_tensor(plan, node->outputs[index]);
}

/* Integers of a constant input, at most `room`; *out_count 0 if it is left out. */
CLEAVE_MUST_USE cleave_status_t cuda_read_ints(cuda_plan_t *plan, const cleave_node_view_t *node,
                                               uint32_t index, int64_t *out_ints, uint32_t room,
                                               uint32_t *out_count);

/* Strides of a dense tensor, in elements. */
void cuda_dense_strides(int32_t rank, const int64_t *dims, int64_t *out_strides);

/* Product of sizes. */
int64_t cuda_product_of(const int64_t *dims, int32_t count);

/* The lines of a tensor along one of its axes, whose elements are `inner` apart. */
typedef struct cuda_lines {
  int64_t elements; /* of all lines */
  int64_t length;
  int64_t inner;
  bool is_rows; /* a block of threads for each, which lies in one piece; else a thread */
} cuda_lines_t;

cuda_lines_t cuda_lines_of(const cleave_tensor_view_t *x, int64_t axis);

/* A kernel from the first input to the first output with the numbers: lines, their length, `inner`. Its text
 * gets `defines`, which say ROWS. */
CLEAVE_MUST_USE cleave_status_t cuda_emit_lines(cuda_plan_t *plan, const cleave_node_view_t *node,
                                                const char *text, const char *defines,
                                                const cuda_lines_t *lines);

/* "typedef u32 element;": elements of so many bytes, 1 to 16, that are only moved. */
const char *cuda_word_type(int64_t size);

/* The largest elements, in bytes, of which blocks of `*inner` elements of `size` bytes are made; `*inner`
 * becomes their number. */
int64_t cuda_widen_block(int64_t size, int64_t *inner);

/* "i32" or "i64" of a tensor of places; NULL if its dtype is another one. */
const char *cuda_place_type(const cleave_tensor_view_t *places);

/* Whether indices of so many elements need 64 bits. */
static inline bool cuda_is_wide(int64_t count) {
  return count > INT32_MAX - 1024;
}

/* A copy of elements between strided tensors. */
typedef struct cuda_move {
  const char *label;
  cleave_dtype_t dtype;
  int32_t rank;
  int64_t dims[2 * CLEAVE_MAX_RANK];
  int64_t from_strides[2 * CLEAVE_MAX_RANK]; /* elements */
  int64_t to_strides[2 * CLEAVE_MAX_RANK];
  cuda_pointer_t from;
  cuda_pointer_t to;
} cuda_move_t;

CLEAVE_MUST_USE cleave_status_t cuda_emit_move(cuda_plan_t *plan, const cuda_move_t *move);

/* Zeros, from `to` on. */
CLEAVE_MUST_USE cleave_status_t cuda_emit_zeros(cuda_plan_t *plan, const char *label, cuda_pointer_t to,
                                                int64_t bytes);

/* The `keep` first elements of each row of `length`, largest or smallest first, equal ones as they lie; NaN
 * is the largest. Rows have elements that are `inner` apart, and lie as those of a tensor do. */
typedef struct cuda_order {
  const char *label;
  cleave_dtype_t dtype;
  bool is_largest;
  uint32_t from;    /* slots */
  uint32_t values;  /* or CUDA_NO_SLOT, likewise the next */
  uint32_t indices; /* int64: places along the row */
  int64_t rows;
  int64_t inner;
  int64_t length; /* fewer than 2^32 - 1 */
  int64_t keep;
} cuda_order_t;

CLEAVE_MUST_USE cleave_status_t cuda_emit_order(cuda_plan_t *plan, const cuda_order_t *order);

/* ---- channels last (layouts.c) ---- */

/* Do convolutions of images of this dtype have channels last? */
bool cuda_layout_wants_last(const cuda_plan_t *plan, cleave_dtype_t dtype);
/* Are the elements of a slot nowhere but in one with channels last? */
static inline bool cuda_layout_is_lacking(const cuda_plan_t *plan, uint32_t slot) {
  return plan->slots[slot].is_lacking;
}
/* The slot that has the images of `slot` with channels last; it is made if there is none. `dims`: N, C, H, W.
 */
CLEAVE_MUST_USE cleave_status_t cuda_layout_read_last(cuda_plan_t *plan, uint32_t slot, cleave_dtype_t dtype,
                                                      const int64_t *dims, uint32_t *out_slot);
/* A slot for the images of `slot`, which somebody is about to write with channels last. */
CLEAVE_MUST_USE cleave_status_t cuda_layout_write_last(cuda_plan_t *plan, uint32_t slot, cleave_dtype_t dtype,
                                                       const int64_t *dims, uint32_t *out_slot);
/* From here on the slot has its elements in their own order. */
CLEAVE_MUST_USE cleave_status_t cuda_layout_need(cuda_plan_t *plan, uint32_t slot);
/* Does so for all inputs of a node. */
CLEAVE_MUST_USE cleave_status_t cuda_layout_need_inputs(cuda_plan_t *plan, const cleave_node_view_t *node);
/* cuda_plan_program in the order in which the inputs lie. The program may become another one. */
CLEAVE_MUST_USE cleave_status_t cuda_emit_program(cuda_plan_t *plan, cuda_program_call_t *call);

/* Programs out of parts, for families that build their own: values of `program`, by number. */
typedef struct cuda_builder {
  cuda_plan_t *plan;
  kernel_program_t *program;
  cuda_program_call_t *call;
} cuda_builder_t;

CLEAVE_MUST_USE cleave_status_t cuda_builder_init(cuda_builder_t *builder, cuda_plan_t *plan,
                                                  const char *label, int32_t rank, int32_t reduced);
void cuda_builder_deinit(cuda_builder_t *builder);
/* A load of a dense tensor; axes per axis of the space, as kernel_program_input takes them. `dims` lives as
 * long as the builder. */
CLEAVE_MUST_USE cleave_status_t cuda_builder_load(cuda_builder_t *builder, cleave_dtype_t dtype,
                                                  cuda_pointer_t from, const int8_t *axes, int32_t rank,
                                                  const int64_t *dims, uint32_t *out_value);
CLEAVE_MUST_USE cleave_status_t cuda_builder_apply(cuda_builder_t *builder, kernel_op_t op, uint32_t x,
                                                   uint32_t y, uint32_t *out_value);
CLEAVE_MUST_USE cleave_status_t cuda_builder_number(cuda_builder_t *builder, cleave_dtype_t dtype,
                                                    double number, uint32_t *out_value);
CLEAVE_MUST_USE cleave_status_t cuda_builder_store(cuda_builder_t *builder, cleave_dtype_t dtype,
                                                   uint32_t value, cuda_pointer_t to);

/* ---- families ---- */

/* kernel_lower for nodes of the plan's region or of another one. */
CLEAVE_MUST_USE cleave_status_t cuda_lower(cuda_plan_t *plan, const cleave_region_view_t *region,
                                           const uint32_t *nodes, uint32_t count,
                                           kernel_lowered_t *out_lowered);
/* Nodes as one program of `region`, in whose values' place are `slots`; NULL, if it is the plan's. */
CLEAVE_MUST_USE cleave_status_t cuda_emit_lowered(cuda_plan_t *plan, const cleave_region_view_t *region,
                                                  const uint32_t *nodes, uint32_t count,
                                                  const uint32_t *slots);

/* A product, by cuBLASLt or a kernel of ours; bias and activation only where cuda_product_is_fast. */
bool cuda_product_is_fast(const cuda_plan_t *plan, cleave_dtype_t dtype);
CLEAVE_MUST_USE cleave_status_t cuda_emit_product(cuda_plan_t *plan, const char *label,
                                                  const cuda_product_t *product, cuda_pointer_t a,
                                                  cuda_pointer_t b, cuda_pointer_t d, cuda_pointer_t bias);

/* The nodes that a fusion puts behind the product that it begins with. */
typedef struct cuda_epilogue {
  uint32_t bias;     /* value, or CUDA_NO_SLOT */
  uint32_t residual; /* the same: behind a convolution, of its result's shape */
  uint32_t activation;
  uint32_t result; /* value that the product makes then */
} cuda_epilogue_t;

CLEAVE_MUST_USE cleave_status_t cuda_emit_matmul(cuda_plan_t *plan, const cleave_node_view_t *node,
                                                 const cuda_epilogue_t *epilogue);
CLEAVE_MUST_USE cleave_status_t cuda_emit_gemm(cuda_plan_t *plan, const cleave_node_view_t *node,
                                               const cuda_epilogue_t *epilogue);
/* Without its bias, into slot `to`. `w` is a slot with weights of the same shape. */
CLEAVE_MUST_USE cleave_status_t cuda_emit_convolution(cuda_plan_t *plan, const cleave_node_view_t *node,
                                                      uint32_t w, uint32_t to);

/* ArgMax or ArgMin along an axis, the last place of several. */
CLEAVE_MUST_USE cleave_status_t cuda_emit_last_argument(cuda_plan_t *plan, const cleave_node_view_t *node,
                                                        int32_t axis);

/* Can it be computed with bias, residual and Relu in one call? */
bool cuda_convolution_is_whole(cuda_plan_t *plan, const cleave_node_view_t *node);
CLEAVE_MUST_USE cleave_status_t cuda_emit_whole_convolution(cuda_plan_t *plan, const cleave_node_view_t *node,
                                                            uint32_t w, const cuda_epilogue_t *epilogue);

/* Like cuda_emit_convolution, makes the result of a node without its bias, from weights `w` into slot `to`.
 */
typedef cleave_status_t (*cuda_unbiased_t)(cuda_plan_t *plan, const cleave_node_view_t *node, uint32_t w,
                                           uint32_t to);
/* Emits the node with a bias of each channel, which is its input 2, if it is there. */
CLEAVE_MUST_USE cleave_status_t cuda_emit_biased(cuda_plan_t *plan, const cleave_node_view_t *node,
                                                 cuda_unbiased_t emit);

/* A fusion that begins with Conv, MatMul or Gemm. */
bool cuda_is_product(const cleave_node_view_t *node);
CLEAVE_MUST_USE cleave_status_t cuda_emit_fused_product(cuda_plan_t *plan, const uint32_t *nodes,
                                                        uint32_t count);

#define CUDA_EMIT_OPERATORS(X)                  \
  X(Conv, conv)                                 \
  X(ConvTranspose, transposed_conv)             \
  X(ConvGradWeight, conv_weights)               \
  X(MatMul, matmul_alone)                       \
  X(Gemm, gemm_alone)                           \
  X(MaxPool, pool)                              \
  X(AveragePool, pool)                          \
  X(LRN, lrn)                                   \
  X(LpPool, pool)                               \
  X(MaxPoolGrad, pool_back)                     \
  X(AveragePoolGrad, pool_back)                 \
  X(ReluGrad, relu_back)                        \
  X(GlobalAveragePool, global_pool)             \
  X(GlobalMaxPool, global_pool)                 \
  X(BatchNormalization, batch_norm)             \
  X(BatchNormalizationTraining, batch_training) \
  X(BatchNormalizationGrad, batch_norm_back)    \
  X(InstanceNormalization, group_norm)          \
  X(GroupNormalization, group_norm)             \
  X(Softmax, softmax)                           \
  X(LogSoftmax, softmax)                        \
  X(ArgMax, argument)                           \
  X(ArgMin, argument)                           \
  X(ReduceSum, reduce)                          \
  X(ReduceMean, reduce)                         \
  X(ReduceMax, reduce)                          \
  X(ReduceMin, reduce)                          \
  X(ReduceProd, reduce)                         \
  X(ReduceSumSquare, reduce)                    \
  X(ReduceL1, reduce)                           \
  X(ReduceL2, reduce)                           \
  X(ReduceLogSum, reduce)                       \
  X(ReduceLogSumExp, reduce)                    \
  X(Reshape, view)                              \
  X(Flatten, view)                              \
  X(Squeeze, view)                              \
  X(Unsqueeze, view)                            \
  X(Identity, view)                             \
  X(After, view)                                \
  X(Dropout, dropout)                           \
  X(Transpose, transpose)                       \
  X(Slice, slice)                               \
  X(Concat, concat)                             \
  X(Split, split)                               \
  X(Expand, expand)                             \
  X(Tile, tile)                                 \
  X(Pad, pad)                                   \
  X(DepthToSpace, depth_to_space)               \
  X(SpaceToDepth, space_to_depth)               \
  X(RNN, recurrent)                             \
  X(GRU, recurrent)                             \
  X(LSTM, recurrent)                            \
  X(Resize, resize)                             \
  X(Gather, gather)                             \
  X(GatherElements, gather_elements)            \
  X(GatherND, gather_nd)                        \
  X(ScatterElements, scatter_elements)          \
  X(ScatterND, scatter_nd)                      \
  X(Trilu, trilu)                               \
  X(EyeLike, eye_like)                          \
  X(OneHot, one_hot)                            \
  X(CumSum, running_sum)                        \
  X(ReverseSequence, reverse_sequence)          \
  X(CenterCropPad, center_crop_pad)             \
  X(TopK, top)                                  \
  X(Hardmax, hardmax)                           \
  X(TensorScatter, tensor_scatter)              \
  X(MaxUnpool, max_unpool)                      \
  X(QuantizeLinear, quantize)                   \
  X(DequantizeLinear, dequantize)               \
  X(Div, divide)                                \
  X(Mod, modulo)                                \
  X(BitShift, shift)                            \
  X(Pow, power)                                 \
  X(RandomNormal, random)                       \
  X(RandomNormalLike, random)                   \
  X(RandomUniform, random)                      \
  X(RandomUniformLike, random)                  \
  X(Bernoulli, bernoulli)                       \
  X(DFT, dft)                                   \
  X(STFT, stft)                                 \
  X(Col2Im, col2im)                             \
  X(GridSample, grid_sample)                    \
  X(AffineGrid, affine_grid)                    \
  X(RoiAlign, roi_align)                        \
  X(MaxRoiPool, roi_pool)                       \
  X(Attention, attention)

#define CUDA_EMIT_DECLARE(op, name) \
  cleave_status_t cuda_emit_##name(cuda_plan_t *plan, const cleave_node_view_t *node);
CUDA_EMIT_OPERATORS(CUDA_EMIT_DECLARE)
#undef CUDA_EMIT_DECLARE

#endif /* CLEAVE_CUDA_EMIT_H */
