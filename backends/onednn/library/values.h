// SPDX-License-Identifier: Apache-2.0
/*
 * Readers of the nodes and values a region view shows: names, constants (whose data may be unaligned), shapes
 * that may be partly unknown, and how one shape broadcasts to another (numpy's rules, as ONNX uses them).
 */
#ifndef ONEDNN_VALUES_H
#define ONEDNN_VALUES_H

#include "onednn/library/support.h"

/* A shape by value. rank -1: unknown; dims < 0: unknown. */
typedef struct onednn_shape {
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
} onednn_shape_t;

/* The node's name, or its operator if it has none. */
const char *onednn_node_name(const cleave_node_view_t *node);

/* Is it this operator of ONNX itself? */
bool onednn_node_is(const cleave_node_view_t *node, const char *op);

bool onednn_is_constant(const cleave_value_view_t *value);
onednn_shape_t onednn_shape_of(const cleave_value_view_t *value);

/* Every dimension is known. */
bool onednn_shape_known(const onednn_shape_t *shape);
bool onednn_shape_equal(const onednn_shape_t *a, const onednn_shape_t *b);

/* Product of the known dims; only for shapes with onednn_shape_known. */
int64_t onednn_shape_count(const onednn_shape_t *shape);

/* Does every known dim say that the shape has exactly one element? False if that is unknown. */
bool onednn_shape_is_single(const onednn_shape_t *shape);

/* Could `operand` broadcast to `target` without enlarging it? Unknown dims count as fitting. */
bool onednn_shape_fits(const onednn_shape_t *operand, const onednn_shape_t *target);

/* The element of a constant of one element and a numeric dtype. */
bool onednn_scalar(const cleave_value_view_t *value, double *out);

/* A constant list (rank 1, or a scalar) of I32 or I64. `count` is at most CLEAVE_MAX_RANK. */
bool onednn_integers(const cleave_value_view_t *value, int64_t out[CLEAVE_MAX_RANK], uint32_t *count);

/* A constant list of F32 or F64, at most CLEAVE_MAX_RANK entries. */
bool onednn_numbers(const cleave_value_view_t *value, double out[CLEAVE_MAX_RANK], uint32_t *count);

/* Is it a constant of float16 or bfloat16? */
bool onednn_is_short(const cleave_value_view_t *value);

/* Copies `count` elements out of a constant of F32, F16 or BF16. */
void onednn_floats(const cleave_value_view_t *value, float *out, size_t count);

/* Checks that dims are positive, and that their product and its bytes stay far below the end of size_t. */
CLEAVE_MUST_USE cleave_status_t onednn_check_size(const cleave_value_view_t *value,
                                                  cleave_message_t *message);

/* `axis` (negative counts from the end) in [0, rank), or -1. */
int32_t onednn_axis(int64_t axis, int32_t rank);

#endif /* ONEDNN_VALUES_H */
