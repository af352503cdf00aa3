// SPDX-License-Identifier: Apache-2.0
/*
 * A unit is what one call of XNNPACK's subgraph interface (or a short chain of them) computes: a node alone,
 * or a fusion of a head with what is folded into it. Constant factors and terms per channel (batch norm among
 * them) go into the weights of a product, Relu and Clip into the bounds of its output.
 */
#ifndef XNNPACK_UNIT_H
#define XNNPACK_UNIT_H

#include <stdarg.h>

#include "cleave/backend.h"

/* What XNNPACK can say of a tensor's rank, and the most nodes that are folded into a head. */
#define XNNPACK_MAX_RANK 6
#define UNIT_MAX_FOLDED 4

/* How the elements of a value of rank 4 lie in memory. Values of other ranks are plain. */
typedef enum form {
  FORM_PLAIN = 0, /* as ONNX has it: NCHW */
  FORM_LAST = 1,  /* channels last: NHWC */
  FORM_COUNT = 2
} form_t;

/* In which form an operator reads and writes. */
typedef enum unit_class {
  CLASS_SPATIAL,   /* channels last */
  CLASS_POINTWISE, /* any, the same everywhere */
  CLASS_PLAIN      /* plain */
} unit_class_t;

typedef struct operator operator_t;

typedef struct unit {
  const cleave_region_view_t *region;
  const operator_t *operator;
  const cleave_node_view_t *head;
  uint32_t folded_count;
  const cleave_node_view_t *folded[UNIT_MAX_FOLDED]; /* factors and terms per output channel, in order */
  uint32_t input;                                    /* value that the head reads first */
  uint32_t output;                                   /* value that the unit writes */
  float minimum, maximum;                            /* bounds of the output */
} unit_t;

/* Refuses: code and text. Returns CLEAVE_ERROR_UNSUPPORTED. */
cleave_status_t xnnpack_refuse(cleave_message_t *reason, cleave_reason_code_t code, const char *format, ...);

/* The unit of one node, or of the `count` nodes of a fusion in topological order. CLEAVE_ERROR_UNSUPPORTED
 * where they are not a head with foldable nodes behind it, or XNNPACK cannot compute it. With `open`, the
 * first dimension (the batch) of any value may be unknown. */
cleave_status_t xnnpack_unit_read(const cleave_region_view_t *region, const uint32_t *nodes, uint32_t count,
                                  bool open, unit_t *out_unit, cleave_message_t *reason);

/* Class of the unit's operator, where it depends on ranks and attributes too. */
unit_class_t xnnpack_unit_class(const unit_t *unit);

/* Output channels, of units that have weights. */
int64_t xnnpack_unit_channels(const unit_t *unit);

/* The factors and terms of the folded nodes per output channel: y = scale * product + shift. Both have room
 * for all channels; `scale` starts as ones, `shift` as the bias of the head. */
void xnnpack_unit_fold(const unit_t *unit, int64_t channels, float *scale, float *shift);

/* What a BatchNormalization with constant statistics does to a channel: y = factor * x + term. */
void xnnpack_batch_norm_at(const cleave_region_view_t *region, const cleave_node_view_t *node,
                           int64_t channel, float *factor, float *term);

/* Bounds that a Relu or Clip stands for. CLEAVE_ERROR_UNSUPPORTED where they are not constant, or not in
 * order. */
cleave_status_t xnnpack_read_bounds(const cleave_region_view_t *region, const cleave_node_view_t *node,
                                    float *minimum, float *maximum, cleave_message_t *reason);

/* Element `index` of constant float32 data, which may be unaligned. */
float xnnpack_constant_at(const cleave_tensor_view_t *tensor, int64_t index);

/* Whole numbers that an operator has as attribute `name` or, in later operator sets, as constant input
 * `input`: up to `room` of them. Returns how many there are; -1 where they are not constant, or more than
 * there is room for. */
int32_t xnnpack_read_integers(const unit_t *unit, const char *name, uint32_t input, int32_t room,
                              int64_t *to);

/* The constant's own data, which lives as long as a program, or NULL where it is not aligned for floats. */
const float *xnnpack_constant_in_place(const cleave_tensor_view_t *tensor);

#endif /* XNNPACK_UNIT_H */
