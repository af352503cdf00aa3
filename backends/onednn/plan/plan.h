// SPDX-License-Identifier: Apache-2.0
/*
 * A region on its way to a program: where every value lives and which primitives run, in order. Emitters
 * (emit/) take kernels one after the other, fetch tensors, convert layouts if they must, add steps and
 * bind results (tensors.h). Memory is only named here (buffers with the steps that touch them); memory_plan.h
 * gives workspace offsets at the end, and program/ turns the plan into what `run` executes.
 *
 * A buffer may serve several tensors: views, and results that overwrite an operand nothing needs any more.
 */
#ifndef ONEDNN_PLAN_H
#define ONEDNN_PLAN_H

#include "kernels/show/texts.h"
#include "onednn/analysis/analysis.h"
#include "onednn/analysis/precision.h"
#include "onednn/analysis/quantization.h"
#include "onednn/library/form.h"
#include "onednn/library/layout.h"
#include "onednn/library/making.h"
#include "onednn/loops/loops.h"
#include "onednn/weights/image.h"
#include "onednn/weights/packed.h"

typedef enum onednn_place {
  ONEDNN_WORKSPACE,
  ONEDNN_INPUT,   /* memory of region input `index` */
  ONEDNN_OUTPUT,  /* memory of region output `index` */
  ONEDNN_CONSTANT /* `data`, known while compiling */
} onednn_place_t;

/* Writes the content of a constant. */
typedef void (*onednn_fill_fn_t)(const void *context, float *out);

typedef struct onednn_buffer {
  onednn_place_t place;
  uint32_t index;
  size_t bytes;
  size_t offset;       /* in the workspace, once planned */
  uint32_t first_step; /* CLEAVE_INDEX_NONE: no step touches it */
  uint32_t last_step;
  uint32_t live_until; /* the last kernel that reads a value in it */
  void *data;          /* CONSTANT; writable only if the plan allocated it; NULL if `fill` has yet to run */
  onednn_content_t content; /* CONSTANT: what it holds, to find packed forms of it again */
  onednn_slab_t *slab;      /* CONSTANT: that `data` lies in, or NULL */
  onednn_fill_fn_t fill;    /* CONSTANT: makes the content when it is first needed; or NULL */
  const void *fill_context;
  bool is_kept;                      /* CONSTANT: `data` lies in the plan's image */
  const cleave_value_view_t *source; /* CONSTANT: of the model, that the content comes from; or NULL */
  struct onednn_variant *variants;   /* copies of what it holds, the newest first */
  uint32_t copy_of;                  /* the buffer that has it among its variants, or CLEAVE_INDEX_NONE */
} onednn_buffer_t;

typedef struct onednn_tensor {
  onednn_layout_t layout;
  uint32_t buffer;
  size_t offset; /* bytes from the start of the buffer */
  /* The numbers that its 8-bit integers stand for; NULL: the elements are what they are. Lives as long as the
   * plan. */
  const onednn_quantization_t *quantization;
} onednn_tensor_t;

typedef struct onednn_argument {
  int name; /* DNNL_ARG_* */
  onednn_tensor_t tensor;
} onednn_argument_t;

typedef struct onednn_step {
  uint32_t made; /* number of its primitive in the plan's making; CLEAVE_INDEX_NONE: `loop` */
  const onednn_loop_t *loop;
  onednn_argument_t *arguments;
  uint32_t argument_count;
  uint32_t node;
  uint32_t fusion;
  uint32_t kernel; /* that it was added for */
  bool serial;     /* one thread computes it */
  bool untidy;     /* what lies in its scratch memory, its last argument, may raise the flag (care.h) */
  char *label;
} onednn_step_t;

/* Special values, as care.h explains. */
typedef enum onednn_care {
  ONEDNN_CARE_NONE, /* as oneDNN's fastest code has them */
  ONEDNN_CARE_FLAG, /* right, or the flag "invalid" is raised */
  ONEDNN_CARE_EXACT /* right */
} onednn_care_t;

/* The layout that the reader of a value prefers; producers that can write any strides follow it. */
typedef enum onednn_preferred {
  ONEDNN_PREFER_ANY,
  ONEDNN_PREFER_PLAIN,
  ONEDNN_PREFER_ORDER /* so that a Transpose after it is plain */
} onednn_preferred_t;

typedef struct onednn_binding {
  bool bound;
  onednn_preferred_t preferred;
  int32_t order[CLEAVE_MAX_RANK];
  uint32_t home;     /* region output whose memory the value may be written to, or CLEAVE_INDEX_NONE */
  uint32_t output;   /* region output that the value is, or CLEAVE_INDEX_NONE */
  uint32_t last_use; /* kernel */
  uint32_t slot_of;  /* Concat result that has a part for the value, or CLEAVE_INDEX_NONE */
  int32_t slot_axis;
  int64_t slot_start;   /* along the axis */
  uint32_t slot_buffer; /* of a Concat result: where its parts are written, or CLEAVE_INDEX_NONE */
  size_t slot_offset;
  onednn_layout_t slot_layout;
  onednn_tensor_t tensor;
} onednn_binding_t;

/* `from` has been copied to `to`, which has another layout. */
typedef struct onednn_variant {
  onednn_tensor_t from;
  onednn_tensor_t to;
  struct onednn_variant *next;
} onednn_variant_t;

/* A constant in the form that steps read, which may be kept for later processes. */
typedef struct onednn_packing {
  uint64_t identity;
  uint32_t buffer;
} onednn_packing_t;

typedef struct onednn_plan {
  const cleave_region_view_t *region;
  const onednn_analysis_t *analysis;
  kernel_arena_t *arena;
  cleave_message_t *message;
  const cleave_host_t *host;
  int32_t threads; /* that compiling may use */
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  onednn_care_t care;
  onednn_precision_t precision;  /* of kernels and values */
  bool raises;                   /* some step may raise the flag */
  onednn_tensor_t statistics[2]; /* mean and variance of the batch normalization in training at work */
  bool blocked;                  /* images are in blocks of 16 channels */
  bool channels_last;            /* convolutions are asked for channels last first */
  uint32_t kernel;               /* the one being emitted */
  const onednn_form_t *forms;    /* per kernel, or NULL: all have the default form */
  bool *formed;                  /* per kernel: oneDNN computes it in its form */
  onednn_binding_t *bindings;    /* per value */
  onednn_buffer_t *buffers;
  uint32_t buffer_count;
  uint32_t buffer_capacity;
  onednn_step_t *steps;
  uint32_t step_count;
  uint32_t step_capacity;
  onednn_making_t making; /* the primitives of the steps */
  uint32_t scratchpad;    /* buffer all primitives share, alive throughout */
  onednn_store_t *store;
  kernel_texts_t *texts;
  size_t constant_bytes; /* of all constants of the region */
  onednn_slab_t **slabs; /* that constants lie in, each once; the program takes them over */
  uint32_t slab_count;
  uint32_t slab_capacity;
  onednn_slab_t *own; /* of the slabs: the one being filled, or NULL */
  float *scratch;     /* for constants that are needed only to pack them */
  size_t scratch_bytes;
  uint32_t scratch_buffer; /* that the scratch holds, or CLEAVE_INDEX_NONE */
  size_t persistent_bytes;
  const onednn_image_t *image; /* constants that an earlier process has packed, or NULL */
  uintptr_t left_begin;        /* of constants whose memory is still to be let go, */
  uintptr_t left_end;          /* and what lies between them; 0: none */
  onednn_packing_t *packings;  /* in the order in which they were asked for */
  uint32_t packing_count;
  uint32_t packing_capacity;
} onednn_plan_t;

/* All programs of a backend state share this. */
typedef struct onednn_base {
  const cleave_host_t *host;
  dnnl_engine_t engine;
  onednn_store_t *store;         /* that packed constants come from and go to */
  kernel_texts_t *texts;         /* of generated kernels, for people */
  const onednn_image_t *image;   /* that they come from first, or NULL; outlives the program */
  const onednn_tuning_t *tuning; /* forms of the kernels, or NULL; outlives the program */
  struct onednn_survey *survey;  /* filled in by compiling, or NULL (survey.h) */
} onednn_base_t;

/* `analysis` of the same region, all shapes known. After a failure too, onednn_plan_deinit releases
 * primitives and slabs that no program took. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_init(onednn_plan_t *plan, const onednn_analysis_t *analysis,
                                                 const onednn_base_t *base, dnnl_stream_t stream,
                                                 int32_t threads, onednn_care_t care);
void onednn_plan_deinit(onednn_plan_t *plan);

/* The type in which the current kernel multiplies, that in which a value is to be stored, and that of its own
 * elements; a temporary (CLEAVE_INDEX_NONE) is float32. */
dnnl_data_type_t onednn_plan_computes(const onednn_plan_t *plan);
dnnl_data_type_t onednn_plan_stores(const onednn_plan_t *plan, uint32_t value);
dnnl_data_type_t onednn_plan_type(const onednn_plan_t *plan, uint32_t value);

/* The form of the current kernel. */
onednn_form_t onednn_plan_form(const onednn_plan_t *plan);

/* The layouts in which a convolution in this form reads data that lie in the layout `data`, and writes images
 * of `shape`; false if it is the default form, or if they cannot be so. */
bool onednn_form_layouts(const onednn_form_t *form, const onednn_layout_t *data, const onednn_shape_t *shape,
                         onednn_layout_t *out_source, onednn_layout_t *out_result);

/* The shape of a value, with rank at least 1. */
onednn_shape_t onednn_plan_shape(const onednn_plan_t *plan, uint32_t value);

/* A failure with the name of the region. */
cleave_status_t onednn_plan_out_of_memory(const onednn_plan_t *plan);

CLEAVE_MUST_USE cleave_status_t onednn_plan_add_buffer(onednn_plan_t *plan, onednn_place_t place,
                                                       uint32_t index, size_t bytes, uint32_t *out);

/* Adds a slab to the plan's, which gets the caller's reference, also if it is there already. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_adopt(onednn_plan_t *plan, onednn_slab_t *slab);

/* Notes that the buffer has a packed constant; where an earlier process has kept it, it is there now. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_note_packing(onednn_plan_t *plan, uint32_t buffer,
                                                         uint64_t identity);

/* Whether a tensor is constant. */
bool onednn_plan_is_constant(const onednn_plan_t *plan, const onednn_tensor_t *tensor);

/* Adds the primitive of `description` (destroyed here, also on failure) with its arguments and the shared
 * scratchpad. `what` begins the label. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_step(onednn_plan_t *plan, dnnl_primitive_desc_t description,
                                                 const onednn_argument_t *arguments, uint32_t count,
                                                 uint32_t node, const char *what);

/* Adds a loop of our own; its arguments have the names that primitives use, in the order of the loop's data.
 */
CLEAVE_MUST_USE cleave_status_t onednn_plan_loop(onednn_plan_t *plan, const onednn_loop_t *loop,
                                                 const onednn_argument_t *arguments, uint32_t count,
                                                 uint32_t node, const char *label);

/* `bytes` of the scratchpad that all steps share, as a tensor. */
void onednn_plan_scratch(onednn_plan_t *plan, size_t bytes, onednn_tensor_t *out);

#endif /* ONEDNN_PLAN_H */
