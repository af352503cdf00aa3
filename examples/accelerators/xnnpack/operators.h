// SPDX-License-Identifier: Apache-2.0
/*
 * What XNNPACK computes: a table of ONNX operators, each with a check, which knows what the library lacks,
 * and an emitter, which defines the nodes of XNNPACK's subgraph. An emitter is called with checked units
 * only.
 */
#ifndef XNNPACK_OPERATORS_H
#define XNNPACK_OPERATORS_H

#include "builder.h"
#include "unit.h"

struct operator{
  const char *name;
  unit_class_t class;
  bool has_weights; /* input 1 is packed: factors and terms per channel fold into it */
  bool has_bounds;  /* XNNPACK clips the output on its own */
  cleave_status_t (*check)(const unit_t *unit, cleave_message_t *reason);
  cleave_status_t (*emit)(const unit_t *unit, builder_t *builder);
};

/* The operator of domain ai.onnx, or NULL. */
const operator_t *xnnpack_operator_find(const char *name);

/* emit/emit_convolution.c */
cleave_status_t xnnpack_check_convolution(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_convolution(const unit_t *unit, builder_t *builder);
cleave_status_t xnnpack_check_deconvolution(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_deconvolution(const unit_t *unit, builder_t *builder);

/* emit/emit_product.c */
cleave_status_t xnnpack_check_product(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_product(const unit_t *unit, builder_t *builder);

/* emit/emit_pooling.c */
cleave_status_t xnnpack_check_pooling(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_pooling(const unit_t *unit, builder_t *builder);
cleave_status_t xnnpack_check_global_pooling(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_global_pooling(const unit_t *unit, builder_t *builder);
cleave_status_t xnnpack_check_mean(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_mean(const unit_t *unit, builder_t *builder);

/* emit/emit_pointwise.c */
cleave_status_t xnnpack_check_unary(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_unary(const unit_t *unit, builder_t *builder);
cleave_status_t xnnpack_check_binary(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_binary(const unit_t *unit, builder_t *builder);
cleave_status_t xnnpack_check_batch_norm(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_batch_norm(const unit_t *unit, builder_t *builder);

/* emit/emit_view.c */
cleave_status_t xnnpack_check_pad(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_pad(const unit_t *unit, builder_t *builder);
cleave_status_t xnnpack_check_softmax(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_softmax(const unit_t *unit, builder_t *builder);
cleave_status_t xnnpack_check_view(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_view(const unit_t *unit, builder_t *builder);
cleave_status_t xnnpack_check_depth_to_space(const unit_t *unit, cleave_message_t *reason);
cleave_status_t xnnpack_emit_depth_to_space(const unit_t *unit, builder_t *builder);

#endif /* XNNPACK_OPERATORS_H */
