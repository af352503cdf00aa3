// SPDX-License-Identifier: Apache-2.0
/*
 * Builds the XNNPACK subgraphs of a region. This XNNPACK cannot transpose, so a region is cut into stages:
 * within a stage every value has the form it is made in, and between two stages values change theirs. Mostly
 * there is one stage, and values are converted at the region's border only.
 */
#ifndef XNNPACK_BUILDER_H
#define XNNPACK_BUILDER_H

#include <xnnpack.h>

#include "program.h"
#include "unit.h"

/* A value of the region while stages are built. */
typedef struct value_state {
  bool wants_last;           /* where there is a choice, channels last */
  form_t form;               /* it is made in */
  int32_t stage;             /* that makes it; -1: an input of the region */
  bool crosses;              /* read in a later stage, or outside */
  size_t buffer[FORM_COUNT]; /* 1 + buffer of the program that has it in this form; 0: none */
  uint32_t id[FORM_COUNT];   /* in the subgraph of the current stage, or XNN_INVALID_VALUE_ID */
} value_state_t;

typedef struct builder {
  const cleave_region_view_t *region;
  program_t *program;
  cleave_message_t *message;
  const unit_t *unit; /* at hand, for messages */
  value_state_t *values;
  int32_t stage;
  xnn_subgraph_t subgraph;
  form_t form; /* in which the unit at hand computes */
  size_t external_count;
  struct xnn_external_value *externals; /* of the current stage: buffers by id */
} builder_t;

/* Compiles the units, in topological order, into the stages, buffers and conversions of the program. */
cleave_status_t xnnpack_build(const cleave_region_view_t *region, const unit_t *units, uint32_t unit_count,
                              pthreadpool_t pool, program_t *program, cleave_message_t *message);

/* A status of XNNPACK as one of cleave, with a text that names `what` and the unit at hand. */
cleave_status_t xnnpack_builder_check(builder_t *builder, enum xnn_status status, const char *what);

/* The id of a value in a form: made in this stage, brought from an earlier one, or a constant, which is
 * packed in that form (channels last: with its rank raised to 4). */
cleave_status_t xnnpack_builder_use(builder_t *builder, uint32_t value, form_t form, uint32_t *out_id);

/* The id under which the unit makes its output. */
cleave_status_t xnnpack_builder_output(builder_t *builder, form_t form, uint32_t *out_id);

/* A float32 tensor between the calls of one unit, with sizes as XNNPACK sees them. */
cleave_status_t xnnpack_builder_temporary(builder_t *builder, size_t rank, const size_t *dims,
                                          uint32_t *out_id);

/* Room for `count` floats that live as long as the program; XNN_EXTRA_BYTES lie behind them. */
cleave_status_t xnnpack_builder_allocate(builder_t *builder, int64_t count, float **out_floats);
/* A constant tensor: `data` lives as long as the program. */
cleave_status_t xnnpack_builder_static(builder_t *builder, size_t rank, const size_t *dims, const float *data,
                                       uint32_t *out_id);

/* Sizes of a value as XNNPACK sees them in a form; a scalar is one element. Returns the rank. */
size_t xnnpack_dims(const cleave_tensor_view_t *tensor, form_t form, size_t dims[XNNPACK_MAX_RANK]);

#endif /* XNNPACK_BUILDER_H */
