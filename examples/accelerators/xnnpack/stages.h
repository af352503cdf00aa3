// SPDX-License-Identifier: Apache-2.0
/* In which form every value of a region is made, and where that makes it necessary to cut. */
#ifndef XNNPACK_STAGES_H
#define XNNPACK_STAGES_H

#include "builder.h"

/* Are NCHW and NHWC the same bytes? So where there is one channel, or one pixel, or no channels. */
bool xnnpack_forms_are_same(const cleave_tensor_view_t *tensor);

/* Decides the form of each value and the stage of each unit, and lists buffers and conversions of the
 * program. stages[k] is of units[k]; returns how many there are in *out_count. */
cleave_status_t xnnpack_stages_assign(builder_t *builder, const unit_t *units, uint32_t unit_count,
                                      int32_t *stages, uint32_t *out_count);

/* The form in which a unit reads and writes values of rank 4. */
form_t xnnpack_unit_form(const builder_t *builder, const unit_t *unit);

/* A failure of XNNPACK as a status, with a text. */
cleave_status_t xnnpack_status(enum xnn_status status, const char *what, const char *name,
                               cleave_message_t *message);

#endif /* XNNPACK_STAGES_H */
