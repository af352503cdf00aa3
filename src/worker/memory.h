// SPDX-License-Identifier: Apache-2.0
/* Memory that a library gets: buffers between pages that cannot be touched, and constants that cannot be
 * written. */
#ifndef CLEAVE_WORKER_MEMORY_H
#define CLEAVE_WORKER_MEMORY_H

#include "base/array.h"
#include "worker/fault.h"

/* ---- buffers of a program ---- */

typedef struct worker_buffer {
  size_t bytes;
  bool is_input;  /* can be read only */
  uint32_t index; /* of the input or output, for messages */
} worker_buffer_t;

typedef struct worker_area {
  unsigned char *memory; /* reserved; buffers lie apart in it */
  size_t reserved;
  uint32_t count;
  cleave_area_part_t *parts;
  unsigned char **data;   /* per part: the buffer */
  worker_range_t *ranges; /* per part */
} worker_area_t;

/* Maps `fd`, which holds these buffers one behind the other. */
CLEAVE_MUST_USE cleave_status_t worker_area_map(worker_area_t *area, int fd, const worker_buffer_t *buffers,
                                                uint32_t count, cleave_error_t *error);
void worker_area_unmap(worker_area_t *area);

/* ---- scratch memory, one for all programs ---- */

typedef struct worker_scratch {
  unsigned char *memory; /* reserved */
  size_t reserved;
  cleave_area_part_t part;
  unsigned char *data;
} worker_scratch_t;

/* Makes it at least this large. CLEAVE_ERROR_OUT_OF_MEMORY leaves it as it was. */
CLEAVE_MUST_USE cleave_status_t worker_scratch_reserve(worker_scratch_t *scratch, size_t bytes);
void worker_scratch_free(worker_scratch_t *scratch);

/* ---- constants ---- */

typedef struct worker_constant {
  uint32_t id;
  size_t bytes;
  void *data;
} worker_constant_t;

typedef struct worker_constants {
  CLEAVE_ARRAY(worker_constant_t) items; /* ids rise */
} worker_constants_t;

/* Takes over what `fd` holds. */
CLEAVE_MUST_USE cleave_status_t worker_constants_add(worker_constants_t *constants, uint32_t id, size_t bytes,
                                                     int fd, cleave_error_t *error);
void worker_constants_drop(worker_constants_t *constants, uint32_t id);
/* NULL if there is none of this number. */
const void *worker_constants_get(worker_constants_t *constants, uint32_t id, size_t *out_bytes);
/* Whoever asks owns it from now on, and unmaps its bytes: the worker does not know it any more. */
void *worker_constants_take(worker_constants_t *constants, uint32_t id, size_t *out_bytes);
/* For cleave_region_read. */
const void *worker_constants_find(void *constants, uint32_t id, size_t bytes);
void worker_constants_deinit(worker_constants_t *constants);

#endif /* CLEAVE_WORKER_MEMORY_H */
