// SPDX-License-Identifier: Apache-2.0
/* What a region is compiled to: XNNPACK runtimes in stages, own buffers between them, conversions of layout.
 */
#ifndef XNNPACK_PROGRAM_H
#define XNNPACK_PROGRAM_H

#include <xnnpack.h>

#include "cleave/backend.h"
#include "layout.h"

/* From or to whom a conversion moves. */
typedef enum conversion_place {
  PLACE_INPUT, /* input `index` of the region into buffer `to` */
  PLACE_STAGE, /* buffer `index` into buffer `to`, before stage `stage` */
  PLACE_OUTPUT /* buffer `index` to output `to` of the region */
} conversion_place_t;

typedef struct conversion {
  conversion_place_t place;
  int32_t stage;
  size_t index, to;
  shuffle_t shuffle;
} conversion_t;

typedef struct program {
  cleave_program_info_t info;
  uint32_t stage_count;
  xnn_runtime_t *stages;
  size_t conversion_count, conversion_capacity;
  conversion_t *conversions; /* in the order they run */
  size_t buffer_count, buffer_capacity;
  float **buffers; /* XNN_EXTRA_BYTES more than the value has */
  size_t static_count, static_capacity;
  float **statics; /* packed weights and other constants */
  bool profile;
  cleave_step_time_t
      *steps; /* a step per input conversions, stage with its conversions, output conversions */
  char (*labels)[64];
} program_t;

#endif /* XNNPACK_PROGRAM_H */
