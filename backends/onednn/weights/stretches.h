// SPDX-License-Identifier: Apache-2.0
/*
 * Large weights are packed in stretches along their outermost dimension, so that no more than one stretch of
 * the model's file is in memory beside the packed weights.
 */
#ifndef ONEDNN_STRETCHES_H
#define ONEDNN_STRETCHES_H

#include "onednn/library/layout.h"

typedef struct onednn_stretches {
  const onednn_layout_t *from;
  const onednn_layout_t *to;
  int32_t axis;   /* outermost of `from` */
  int64_t length; /* of a stretch; the last one may be shorter */
  int64_t count;
} onednn_stretches_t;

typedef struct onednn_stretch {
  int64_t range[2];     /* along the axis: first, end */
  onednn_layout_t from; /* layouts of the part */
  onednn_layout_t to;   /* as a whole if it is one of oneDNN's for Winograd's algorithm */
  size_t from_offset;   /* where they begin, in bytes */
  size_t to_offset;
  size_t from_bytes; /* from the first element to the end of the last one */
} onednn_stretch_t;

/* The stretches of packing `from` to `to`; false if it is one step only: small, or a layout that has no parts
 * on its own. Both layouts outlive the result. */
bool onednn_stretches_of(const onednn_layout_t *from, const onednn_layout_t *to, onednn_stretches_t *out);

/* Stretch `index`. */
bool onednn_stretches_at(const onednn_stretches_t *stretches, int64_t index, onednn_stretch_t *out);

#endif /* ONEDNN_STRETCHES_H */
