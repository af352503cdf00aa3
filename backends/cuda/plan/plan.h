// SPDX-License-Identifier: Apache-2.0
/*
 * A region becomes slots (places in memory) and steps in order. A plan is made without a device, so
 * that it also answers whether a region can be run; programs (program/) compile its steps.
 *
 * Slot v is value v of the region; further ones are scratch memory and constants of the plan's own.
 * Everything that a plan holds belongs to it, except for the content of the region's constants.
 */
#ifndef CLEAVE_CUDA_PLAN_H
#define CLEAVE_CUDA_PLAN_H

#include "cuda/device/state.h"
#include "kernels/arena.h"
#include "kernels/cuda/cuda.h"
#include "kernels/lower/lower.h"

enum { CUDA_MAX_POINTERS = 8, CUDA_MAX_NUMBERS = 64, CUDA_NO_SLOT = UINT32_MAX };

typedef enum cuda_slot_kind {
  CUDA_SLOT_NONE,  /* nobody made it yet */
  CUDA_SLOT_INPUT, /* of the region; `index` says which */
  CUDA_SLOT_OUTPUT,
  CUDA_SLOT_CONSTANT, /* `data`; `offset` among the constants of the program once somebody reads it */
  CUDA_SLOT_MEMORY,   /* `offset` in the workspace */
  CUDA_SLOT_VIEW      /* the same bytes as slot `index` */
} cuda_slot_kind_t;

/* Images of another slot with channels last: [N, H, W, C] instead of [N, C, H, W]. */
typedef struct cuda_images {
  uint32_t slot;
  cleave_dtype_t dtype;
  int64_t dims[4]; /* N, C, H, W */
} cuda_images_t;

typedef struct cuda_slot {
  cuda_slot_kind_t kind;
  uint32_t index;
  int64_t bytes;
  int64_t offset;
  const void *data;
  bool is_used;          /* a constant that a step reads */
  cuda_images_t *images; /* the same with channels last, or NULL */
  bool is_lacking;       /* the elements are only there */
  uint32_t first;        /* steps, the first and the last one that touch it */
  uint32_t last;
} cuda_slot_t;

/* An address that a step uses: a slot and bytes from its begin. */
typedef struct cuda_pointer {
  uint32_t slot;
  int64_t offset;
} cuda_pointer_t;

typedef enum cuda_step_kind {
  CUDA_STEP_KERNEL,
  CUDA_STEP_PRODUCT,
  CUDA_STEP_CONVOLUTION,
  CUDA_STEP_POOL_BACK,
  CUDA_STEP_NORM_BACK,
  CUDA_STEP_COPY
} cuda_step_kind_t;

/* d = alpha * op(a) * op(b) (+ bias of each column), row-major, `batches` times; pointers are a, b, d,
 * workspace, bias. */
typedef struct cuda_product {
  cleave_dtype_t dtype;
  bool transposes[2];
  int64_t rows, columns, inner;
  int64_t strides[3];       /* elements from one row to the next of a, b and d, as they lie in memory */
  int64_t batch_strides[3]; /* elements */
  int64_t batches;
  double alpha;
  bool has_bias;
  uint32_t activation; /* CUDA_BLAS_EPILOGUE_..., or 0 */
  bool uses_tf32;
} cuda_product_t;

/* The tensor that a step of a convolution computes from the others. */
typedef enum cuda_direction {
  CUDA_DIRECTION_FORWARD, /* y */
  CUDA_DIRECTION_DATA,    /* x, the gradient of the data, of w and y */
  CUDA_DIRECTION_WEIGHTS  /* w, the gradient of the weights, of x and y */
} cuda_direction_t;

/* The activation of y = activation(conv(x, w) + residual + bias), if a forward convolution computes all of it
 * in one call. */
typedef enum cuda_whole {
  CUDA_WHOLE_NOT, /* no more than y */
  CUDA_WHOLE_PLAIN,
  CUDA_WHOLE_RELU
} cuda_whole_t;

/* Pointers are x, w, y, workspace, bias, residual; the last two, if it is whole, and the last may be nowhere.
 */
typedef struct cuda_convolution {
  cuda_direction_t direction;
  cleave_dtype_t dtype;
  int32_t spatial;
  int32_t x[CLEAVE_MAX_RANK], w[CLEAVE_MAX_RANK], y[CLEAVE_MAX_RANK];
  int32_t pads[CLEAVE_MAX_RANK], strides[CLEAVE_MAX_RANK], dilations[CLEAVE_MAX_RANK];
  int32_t groups;
  bool uses_tf32;
  bool is_last; /* all tensors have channels last */
  cuda_whole_t whole;
} cuda_convolution_t;

/* The gradient of an average pooling; pointers are dy and dx. */
typedef struct cuda_pooling {
  cleave_dtype_t dtype;
  int32_t spatial;
  int32_t x[CLEAVE_MAX_RANK], y[CLEAVE_MAX_RANK];
  int32_t sizes[CLEAVE_MAX_RANK], pads[CLEAVE_MAX_RANK], strides[CLEAVE_MAX_RANK];
  bool counts_border;
} cuda_pooling_t;

/* The gradients of batch normalization; pointers are dy, x, scale, mean, 1 / sqrt(variance + epsilon), dx,
 * and the gradients of scale and shift. All of channels have f64 if x has, or else f32. */
typedef struct cuda_norm {
  cleave_dtype_t dtype;
  int32_t images, channels, places;
  double epsilon;
} cuda_norm_t;

enum { CUDA_WORKSPACE_POINTER = 3, CUDA_BIAS_POINTER = 4, CUDA_RESIDUAL_POINTER = 5 };

typedef struct cuda_step {
  cuda_step_kind_t kind;
  uint32_t node;
  uint32_t fusion;
  char label[48];
  cuda_pointer_t *pointers;
  uint32_t pointer_count;
  /* a kernel: pointers come first in its arguments, 8 bytes each */
  char *text;
  bool fast_math;
  uint32_t grid;
  uint32_t block;
  unsigned char *arguments;
  uint32_t argument_bytes;
  cuda_product_t *product;
  cuda_convolution_t *convolution;
  cuda_pooling_t *pooling;
  cuda_norm_t *norm;
  int64_t bytes; /* of a copy, from pointer 0 to pointer 1 */
} cuda_step_t;

/* Whether convolutions have channels last. */
typedef enum cuda_channels {
  CUDA_CHANNELS_AUTO, /* if tensor cores compute them, which want that */
  CUDA_CHANNELS_FIRST,
  CUDA_CHANNELS_LAST
} cuda_channels_t;

typedef struct cuda_plan_options {
  bool is_dry; /* without texts: only whether it can be done */
  bool has_blas;
  bool has_dnn;
  bool has_whole; /* convolutions with bias, residual and activation */
  bool has_mma;   /* tensor cores as compute capability 8.0 has them */
  bool tf32;
  bool fast_math;
  cuda_channels_t channels;
} cuda_plan_options_t;

typedef struct cuda_plan {
  const cleave_region_view_t *region; /* while the plan is made */
  cuda_plan_options_t options;
  uint32_t *readers; /* per value of the region: inputs of nodes, and outputs of the region, that it is */
  cuda_slot_t *slots;
  uint32_t slot_count;
  uint32_t slot_room;
  cuda_step_t *steps;
  uint32_t step_count;
  uint32_t step_room;
  uint32_t node; /* that steps are made for */
  uint32_t fusion;
  int64_t workspace_bytes;
  int64_t constant_bytes;
  kernel_arena_t arena;
  kernel_lowerer_t *lowerer; /* of the region, as soon as a kernel needed one */
  cleave_message_t *message;
} cuda_plan_t;

/* Slots of the region's values: inputs, constants, outputs. */
CLEAVE_MUST_USE cleave_status_t cuda_plan_init(cuda_plan_t *plan, const cleave_region_view_t *region,
                                               cuda_plan_options_t options, cleave_message_t *message);
void cuda_plan_deinit(cuda_plan_t *plan);

/* Zeroed memory that belongs to the plan, or NULL. */
void *cuda_plan_allocate(cuda_plan_t *plan, size_t count, size_t size);

/* "Conv 'name': what", for the node that steps are made for. */
CLEAVE_MUST_USE cleave_status_t cuda_plan_refuse(cuda_plan_t *plan, cleave_reason_code_t code,
                                                 const char *format, ...)
    __attribute__((format(printf, 3, 4)));
CLEAVE_MUST_USE cleave_status_t cuda_plan_no_memory(cuda_plan_t *plan);

/* Scratch memory, for the steps that use it. */
CLEAVE_MUST_USE cleave_status_t cuda_plan_scratch(cuda_plan_t *plan, int64_t bytes, uint32_t *out_slot);
/* A constant of the plan's own; `data` belongs to it. */
CLEAVE_MUST_USE cleave_status_t cuda_plan_constant(cuda_plan_t *plan, const void *data, int64_t bytes,
                                                   uint32_t *out_slot);
/* Value `value` has the bytes of slot `of`: no work, unless it is an output. */
CLEAVE_MUST_USE cleave_status_t cuda_plan_view(cuda_plan_t *plan, uint32_t value, uint32_t of);

/* The slot that has the bytes. */
uint32_t cuda_plan_root(const cuda_plan_t *plan, uint32_t slot);

/* The elements of a slot, on the host: NULL if it is not a constant. */
const void *cuda_plan_data(const cuda_plan_t *plan, uint32_t slot);

CLEAVE_MUST_USE cleave_status_t cuda_plan_step(cuda_plan_t *plan, cuda_step_kind_t kind, const char *label,
                                               const cuda_pointer_t *pointers, uint32_t count,
                                               cuda_step_t **out_step);

/* A kernel of texts/. `defines` are lines before its text. */
typedef struct cuda_kernel_call {
  const char *text; /* "copy" of texts/elements/copy.cu */
  const char *label;
  const char *defines;
  bool is_wide; /* indices have 64 bits */
  uint32_t pointer_count;
  cuda_pointer_t pointers[CUDA_MAX_POINTERS];
  uint32_t number_count; /* of type index, behind the pointers */
  int64_t numbers[CUDA_MAX_NUMBERS];
  int64_t threads; /* in all */
  uint32_t block;
} cuda_kernel_call_t;

CLEAVE_MUST_USE cleave_status_t cuda_plan_kernel(cuda_plan_t *plan, const cuda_kernel_call_t *call);

/* A program of kernels/ over slots. A NULL in `dims` of a tensor is not allowed; `data` is left out. */
typedef struct cuda_program_call {
  kernel_program_t *program;
  const char *label;
  kernel_tensor_t inputs[KERNEL_MAX_TENSORS];
  cuda_pointer_t input_pointers[KERNEL_MAX_TENSORS];
  cuda_pointer_t output_pointers[KERNEL_MAX_TENSORS];
} cuda_program_call_t;

CLEAVE_MUST_USE cleave_status_t cuda_plan_program(cuda_plan_t *plan, const cuda_program_call_t *call);

/* Copies bytes from one slot to another. */
CLEAVE_MUST_USE cleave_status_t cuda_plan_copy(cuda_plan_t *plan, cuda_pointer_t from, cuda_pointer_t to,
                                               int64_t bytes);

/* ---- order.c ---- */

/* All of the region, each behind what it reads: fusions by their numbers, nodes that are in none by theirs
 * behind these. */
CLEAVE_MUST_USE cleave_status_t cuda_plan_order(cuda_plan_t *plan, const uint32_t **out_units,
                                                uint32_t *out_count);

/* ---- part.c ---- */

/* Nodes of a fusion behind a bias of each channel. */
typedef struct cuda_bias {
  const uint32_t *nodes;
  uint32_t count;
  uint32_t value; /* of the region, with the bias in it */
  uint32_t raw;   /* slots: the value without it, and the bias */
  uint32_t bias;
} cuda_bias_t;

/* A region of its own for some nodes. */
typedef struct cuda_part {
  cleave_region_view_t region;
  const uint32_t *nodes; /* all of them */
  const uint32_t *slots; /* of the plan, per value */
} cuda_part_t;

/* The nodes behind an Add of the bias; its memory is that of the arena. */
CLEAVE_MUST_USE cleave_status_t cuda_plan_part(cuda_plan_t *plan, const cuda_bias_t *call,
                                               kernel_arena_t *arena, cuda_part_t *out_part);

/* ---- memory.c ---- */

/* When all steps are there: outputs that are views are copied, memory is shared out. */
CLEAVE_MUST_USE cleave_status_t cuda_plan_finish(cuda_plan_t *plan);
/* Places in the workspace for all slots that steps touch; once more, after scratch slots have changed their
 * sizes. */
CLEAVE_MUST_USE cleave_status_t cuda_plan_share_memory(cuda_plan_t *plan);

static inline int64_t cuda_round_up(int64_t bytes) {
  return (bytes + CUDA_ALIGNMENT - 1) / CUDA_ALIGNMENT * CUDA_ALIGNMENT;
}

/* ---- texts.c ---- */

/* The text of a kernel of texts/, or NULL. */
const char *cuda_text_find(const char *name);

/* The lines that texts begin with: types, `element` and `number` (what it is computed in), `widen` and
 * `narrow`. */
int cuda_text_defines(cleave_dtype_t dtype, char *out_text, size_t size);

#endif /* CLEAVE_CUDA_PLAN_H */
