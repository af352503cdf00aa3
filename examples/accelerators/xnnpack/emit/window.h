// SPDX-License-Identifier: Apache-2.0
/* Windows of convolutions and poolings over height and width, with all padding explicit. */
#ifndef XNNPACK_WINDOW_H
#define XNNPACK_WINDOW_H

#include "unit.h"

typedef struct window {
  uint32_t kernel[2], stride[2], dilation[2];
  uint32_t begin[2], end[2]; /* padding: top and left, bottom and right */
  bool widened;              /* ceil_mode put more behind the input than the model says */
} window_t;

/* The window of a unit whose input and output have rank 4 with known height and width. `kernel` holds its
 * size. CLEAVE_ERROR_UNSUPPORTED where XNNPACK has no such window. */
cleave_status_t xnnpack_window_read(const unit_t *unit, const int64_t kernel[2], window_t *out_window,
                                    cleave_message_t *reason);

#endif /* XNNPACK_WINDOW_H */
