// SPDX-License-Identifier: Apache-2.0
/*
 * An inference function sees this of its node: facts about its inputs and outputs, and functions that add
 * to them. A fact only ever gets more precise (unknown -> symbolic -> a number); whoever states something
 * that contradicts a number gets CLEAVE_ERROR_SHAPE with node, port, expected and found. So the order in
 * which nodes are visited does not matter, and the fixed point is reached after few visits.
 *
 * An inference function states what the definition of its operator says, in both directions, whatever is
 * known at that moment; it is called again when more is. It must cope with facts that are NULL (left-out
 * inputs, unused outputs): all functions here take NULL for "left out" and do nothing.
 *
 * Attributes and dims come from files: every function checks ranges, and arithmetic is overflow-checked.
 */
#ifndef CLEAVE_OPS_CONTEXT_INFER_CONTEXT_H
#define CLEAVE_OPS_CONTEXT_INFER_CONTEXT_H

#include "ops/infer.h"

/* Tensors with at most this many elements are followed element by element. */
#define CLEAVE_ELEMENT_LIMIT 256

typedef enum cleave_element_kind {
  CLEAVE_ELEMENT_UNKNOWN,
  CLEAVE_ELEMENT_INT,   /* i: of integer and bool tensors */
  CLEAVE_ELEMENT_FLOAT, /* f: of float32 and float64 tensors, rounded to the dtype */
  CLEAVE_ELEMENT_SYMBOL /* symbol / divisor: divisor is 1 in integer tensors */
} cleave_element_kind_t;

/* One element of a small tensor, as far as it is known. */
typedef struct cleave_element {
  uint8_t kind;      /* cleave_element_kind_t */
  bool non_negative; /* of SYMBOL: made from sizes by +, *, / only, so never below zero */
  int32_t divisor;   /* of SYMBOL: >= 1 */
  union {
    int64_t i;
    double f;
    cleave_dim_t symbol; /* < CLEAVE_DIM_UNKNOWN */
  };
} cleave_element_t;

/* The facts about one value. */
typedef struct cleave_fact {
  cleave_dim_t *dims;            /* `rank` entries; NULL if rank <= 0 */
  cleave_element_t *elements;    /* NULL: nothing is known of the content, or it was not asked for yet */
  const cleave_tensor_t *tensor; /* constant data, or NULL */
  int8_t rank;                   /* -1: unknown */
  uint8_t dtype;                 /* cleave_dtype_t */
  bool changed;                  /* since the driver looked */
} cleave_fact_t;

struct cleave_infer {
  const cleave_graph_t *graph;
  cleave_node_t node;
  const cleave_op_t *op;
  cleave_fact_t **inputs; /* NULL entries: left out */
  cleave_fact_t **outputs;
  uint32_t input_count;
  uint32_t output_count;
  cleave_dims_t *dims;   /* NULL: no symbols, as at run time */
  cleave_arena_t *arena; /* for dims and elements of facts */
  bool assume_equal;     /* operands of unknown rank do not broadcast */
  bool wants_assumption; /* set by broadcasts that only an assumption could bring further */
};

/* ---- reading ---- */

static inline cleave_fact_t *cleave_infer_input(const cleave_infer_t *infer, uint32_t index) {
  return index < infer->input_count ? infer->inputs[index] : NULL;
}
static inline cleave_fact_t *cleave_infer_output(const cleave_infer_t *infer, uint32_t index) {
  return index < infer->output_count ? infer->outputs[index] : NULL;
}
/* -1: unknown, or left out. */
static inline int32_t cleave_fact_rank(const cleave_fact_t *fact) {
  return fact != NULL ? fact->rank : -1;
}
static inline cleave_dtype_t cleave_fact_dtype(const cleave_fact_t *fact) {
  return fact != NULL ? (cleave_dtype_t)fact->dtype : CLEAVE_DTYPE_UNKNOWN;
}
/* UNKNOWN if the rank is not known, or too small. */
static inline cleave_dim_t cleave_fact_dim(const cleave_fact_t *fact, int32_t axis) {
  return axis >= 0 && axis < cleave_fact_rank(fact) ? fact->dims[axis] : CLEAVE_DIM_UNKNOWN;
}
/* Number of elements if all dims are numbers; -1 otherwise. */
int64_t cleave_fact_count(const cleave_fact_t *fact);

/* Elements of a small tensor in row-major order, cleave_fact_count of them; NULL if nothing is known of
 * them. Reads constants of numeric dtype. */
const cleave_element_t *cleave_infer_elements(cleave_infer_t *infer, cleave_fact_t *fact);

/* All elements as numbers: true, with the count, if the tensor is small and all are known integers.
 * Room for CLEAVE_ELEMENT_LIMIT. */
bool cleave_infer_ints(cleave_infer_t *infer, cleave_fact_t *fact, int64_t *values, uint32_t *out_count);
/* The only element of a tensor as a known integer. */
bool cleave_infer_scalar_int(cleave_infer_t *infer, cleave_fact_t *fact, int64_t *out_value);

/* Attributes of the node, defaults of the schema included. */
int64_t cleave_infer_int(const cleave_infer_t *infer, const char *name, int64_t fallback);
const char *cleave_infer_text(const cleave_infer_t *infer, const char *name, const char *fallback);
/* The attribute's list, or NULL with count 0. */
const int64_t *cleave_infer_int_list(const cleave_infer_t *infer, const char *name, uint32_t *out_count);

/* The dtype that an attribute asks for, or `fallback` if it is absent; an error if it is none. */
CLEAVE_STATUS cleave_infer_dtype_attribute(const cleave_infer_t *infer, const char *name,
                                           cleave_dtype_t fallback, cleave_dtype_t *out_dtype,
                                           cleave_error_t *error);

/* ---- stating; `fact` may be NULL ---- */

CLEAVE_STATUS cleave_infer_set_dtype(cleave_infer_t *infer, cleave_fact_t *fact, cleave_dtype_t dtype,
                                     cleave_error_t *error);
CLEAVE_STATUS cleave_infer_set_rank(cleave_infer_t *infer, cleave_fact_t *fact, int32_t rank,
                                    cleave_error_t *error);
/* The rank must be known, or else nothing is stated. */
CLEAVE_STATUS cleave_infer_set_dim(cleave_infer_t *infer, cleave_fact_t *fact, int32_t axis, cleave_dim_t dim,
                                   cleave_error_t *error);
/* rank -1 states nothing; unknown dims neither. */
CLEAVE_STATUS cleave_infer_set_shape(cleave_infer_t *infer, cleave_fact_t *fact, int32_t rank,
                                     const cleave_dim_t *dims, cleave_error_t *error);
/* Both have the same dtype, shape, dim. What one knows, the other gets. */
CLEAVE_STATUS cleave_infer_same_dtype(cleave_infer_t *infer, cleave_fact_t *a, cleave_fact_t *b,
                                      cleave_error_t *error);
CLEAVE_STATUS cleave_infer_same_shape(cleave_infer_t *infer, cleave_fact_t *a, cleave_fact_t *b,
                                      cleave_error_t *error);
CLEAVE_STATUS cleave_infer_same_dim(cleave_infer_t *infer, cleave_fact_t *a, int32_t a_axis, cleave_fact_t *b,
                                    int32_t b_axis, cleave_error_t *error);
/* Same dtype and shape. */
CLEAVE_STATUS cleave_infer_same_type(cleave_infer_t *infer, cleave_fact_t *a, cleave_fact_t *b,
                                     cleave_error_t *error);
/* Content of a value whose shape is known by now; `count` elements. Nothing is stated if the count does
 * not fit the shape, or is above CLEAVE_ELEMENT_LIMIT. */
CLEAVE_STATUS cleave_infer_set_elements(cleave_infer_t *infer, cleave_fact_t *fact,
                                        const cleave_element_t *elements, int64_t count,
                                        cleave_error_t *error);

/* infer_types.c: states types of ports, "F[bn4] F[b?n] > L[?3]": the inputs, '>', the outputs, with blanks
 * between them. A port is a dtype: a small letter, the same wherever that letter is, B bool, F float32, I
 * int32, L int64, U uint8, '-' if nothing is said; then ":s" if its shape is the same wherever that letter
 * is; then sizes: a small letter likewise, a digit, '?' if nothing is said, and '*' at the end if there may
 * be more. */
CLEAVE_STATUS cleave_infer_types(cleave_infer_t *infer, const char *types, cleave_error_t *error);

/* NumPy broadcast of the operands into `output`, and back. */
CLEAVE_STATUS cleave_infer_broadcast(cleave_infer_t *infer, cleave_fact_t *const *operands,
                                     uint32_t operand_count, cleave_fact_t *output, cleave_error_t *error);

/* Dims that a shape operand (of Reshape, Expand: an int64 vector) asks for. *out_rank is -1 if even their
 * number is unknown; else `dims` (room for CLEAVE_MAX_RANK) has what is known of them. Elements below
 * `lowest` (-1 or 0) are an error; -1 comes out as UNKNOWN. */
CLEAVE_STATUS cleave_infer_shape_operand(cleave_infer_t *infer, cleave_fact_t *fact, int64_t lowest,
                                         int32_t *out_rank, cleave_dim_t *dims, cleave_error_t *error);

/* ---- checking ---- */

/* CLEAVE_ERROR_SHAPE: "node 'x' (Conv): <text>". */
cleave_status_t cleave_infer_fail(const cleave_infer_t *infer, cleave_error_t *error, const char *format, ...)
    CLEAVE_PRINTF(3, 4);
/* Makes a negative axis positive; an error if it is outside [-rank, rank). */
CLEAVE_STATUS cleave_infer_axis(const cleave_infer_t *infer, int64_t axis, int32_t rank, int32_t *out_axis,
                                cleave_error_t *error);
/* An error unless the rank is unknown or within [low, high]. */
CLEAVE_STATUS cleave_infer_check_rank(const cleave_infer_t *infer, const cleave_fact_t *fact, int32_t low,
                                      int32_t high, cleave_error_t *error);
/* An error if a number of known ranks lies above CLEAVE_MAX_RANK. */
CLEAVE_STATUS cleave_infer_rank_in_range(const cleave_infer_t *infer, int64_t rank, cleave_error_t *error);

/* ---- arithmetic on dims: symbols are allowed; UNKNOWN if the result is not known or negative ---- */

cleave_dim_t cleave_infer_add(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b);
/* a + b for a number b of either sign. */
cleave_dim_t cleave_infer_offset(const cleave_infer_t *infer, cleave_dim_t a, int64_t b);
cleave_dim_t cleave_infer_subtract(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b);
cleave_dim_t cleave_infer_multiply(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b);
/* Floor and ceiling of a / b, b > 0. */
cleave_dim_t cleave_infer_divide(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b);
cleave_dim_t cleave_infer_divide_up(const cleave_infer_t *infer, cleave_dim_t a, cleave_dim_t b);
/* Product of `count` dims. */
cleave_dim_t cleave_infer_product(const cleave_infer_t *infer, const cleave_dim_t *dims, int32_t count);

/* ---- elements (src/ops/context/elements.c) ---- */

/* A size as an element, and back: UNKNOWN if the element is not a size. */
cleave_element_t cleave_element_of_dim(cleave_dim_t dim);
cleave_dim_t cleave_element_dim(const cleave_element_t *element);
static inline cleave_element_t cleave_element_of_int(int64_t value) {
  return (cleave_element_t){.kind = CLEAVE_ELEMENT_INT, .divisor = 1, .i = value};
}
/* Is the element followed at all for this dtype? (Integers, bool, float32 and float64.) */
bool cleave_element_follows(cleave_dtype_t dtype);
/* An element of a constant. */
cleave_element_t cleave_element_of_tensor(const cleave_tensor_t *tensor, int64_t index);
/* The value of the element in another dtype. */
cleave_element_t cleave_element_cast(const cleave_infer_t *infer, const cleave_element_t *element,
                                     cleave_dtype_t from, cleave_dtype_t to);
/* The node's operator (one of the pointwise ones) on `count` operands of this dtype; UNKNOWN if it is not
 * followed. */
cleave_element_t cleave_element_apply(const cleave_infer_t *infer, cleave_dtype_t dtype,
                                      const cleave_element_t *operands, uint32_t count);

/* floor(dim * factor) for a float element, as Resize computes sizes (numbers in float32); UNKNOWN if that
 * is not known. */
cleave_dim_t cleave_element_scale(const cleave_infer_t *infer, cleave_dim_t dim,
                                  const cleave_element_t *factor);

/* Elements of `output` from those of broadcast operands, through cleave_element_apply. */
CLEAVE_STATUS cleave_infer_fold_pointwise(cleave_infer_t *infer, cleave_fact_t *const *operands,
                                          uint32_t count, cleave_fact_t *output, cleave_error_t *error);
/* The elements of `output` are those of `input` in the same order (Reshape, Identity). */
CLEAVE_STATUS cleave_infer_fold_copy(cleave_infer_t *infer, cleave_fact_t *input, cleave_fact_t *output,
                                     cleave_error_t *error);

/* Element k of `output` is element places[k] of `input`; `count` of them, all in range. */
CLEAVE_STATUS cleave_infer_fold_places(cleave_infer_t *infer, cleave_fact_t *input, cleave_fact_t *output,
                                       const int64_t *places, int64_t count, cleave_error_t *error);
/* From the coordinates of an element of the output to those of the input's; false: that is not known. */
typedef bool (*cleave_infer_source_fn_t)(const void *context, int64_t *at);
/* Elements of `output` from those of `input`, if they are known and few. */
CLEAVE_STATUS cleave_infer_fold_from(cleave_infer_t *infer, cleave_fact_t *input, cleave_fact_t *output,
                                     cleave_infer_source_fn_t source, const void *context,
                                     cleave_error_t *error);
/* Are both small enough to follow, with elements known of the input? Then cleave_fact_count of either is at
 * most CLEAVE_ELEMENT_LIMIT. */
bool cleave_infer_can_fold(cleave_infer_t *infer, cleave_fact_t *input, const cleave_fact_t *output);
/* Coordinates of the element at row-major `place`, and back. Dims are numbers, none 0. */
void cleave_infer_unravel(int64_t place, int32_t rank, const cleave_dim_t *dims, int64_t *coordinates);
int64_t cleave_infer_ravel(int32_t rank, const cleave_dim_t *dims, const int64_t *coordinates);

/* ---- the functions of operators ---- */

/* Operators of libraries: asks the library, forwards only. */
CLEAVE_STATUS cleave_infer_custom(cleave_infer_t *infer, cleave_error_t *error);

/* The functions of op_list.inc. */

#define CLEAVE_OP(name, domain, since, inputs, outputs, attributes, infer, flops, flags) \
  cleave_status_t cleave_infer_##infer(cleave_infer_t *, cleave_error_t *);              \
  double cleave_flops_##flops(const cleave_graph_t *, uint32_t);
#include "ops/op_list.inc"
#undef CLEAVE_OP

#endif /* CLEAVE_OPS_CONTEXT_INFER_CONTEXT_H */
