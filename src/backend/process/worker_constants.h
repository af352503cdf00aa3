// SPDX-License-Identifier: Apache-2.0
/*
 * Constants that a worker process has: each is handed over once, however often regions with it are shown,
 * and stays as long as a program reads it; some others are kept for the next question about them. All under
 * the lock of the worker.
 */
#ifndef CLEAVE_BACKEND_PROCESS_WORKER_CONSTANTS_H
#define CLEAVE_BACKEND_PROCESS_WORKER_CONSTANTS_H

#include "base/array.h"
#include "base/status.h"

struct cleave_worker;

/* A constant by its version, which no other has. */
typedef struct cleave_worker_constant {
  uint64_t version; /* 0: not to be found again */
  size_t bytes;
  uint32_t id;
  uint32_t users; /* programs */
  uint32_t next;  /* of the same bucket, or CLEAVE_INDEX_NONE */
} cleave_worker_constant_t;

enum { CLEAVE_CONSTANT_BUCKETS = 256 };

typedef struct cleave_worker_constants {
  CLEAVE_ARRAY(cleave_worker_constant_t) items; /* in the order in which they came */
  CLEAVE_ARRAY(uint32_t) used;                  /* ids in the region that was written last, each once */
  uint32_t buckets[CLEAVE_CONSTANT_BUCKETS];    /* index in `items` plus 1, or 0 */
  uint32_t last_id;
  size_t idle_bytes; /* of those without users */
} cleave_worker_constants_t;

static inline void cleave_worker_constants_deinit(cleave_worker_constants_t *constants) {
  cleave_array_free(&constants->items);
  cleave_array_free(&constants->used);
}

/* Before a region is written: lets go of constants that nothing uses, if they are many. */
void cleave_worker_constants_begin(struct cleave_worker *worker);

/* For cleave_region_write; the context is the worker. */
CLEAVE_MUST_USE cleave_status_t cleave_worker_constants_share(void *worker,
                                                              const cleave_tensor_view_t *tensor,
                                                              size_t bytes, uint32_t *out_id,
                                                              cleave_error_t *error);

/* Hands over data for a moment: *out_id is CLEAVE_INDEX_NONE if there is none. Between cleave_worker_begin
 * and cleave_worker_end, before the request is written; take_back after it. */
CLEAVE_MUST_USE cleave_status_t cleave_worker_constants_lend(struct cleave_worker *worker, const void *data,
                                                             size_t bytes, uint32_t *out_id,
                                                             cleave_error_t *error);
void cleave_worker_constants_take_back(struct cleave_worker *worker, uint32_t id);

/* A program that was compiled from the region that was written last keeps what it uses: *out_ids is owned by
 * the caller. */
CLEAVE_MUST_USE cleave_status_t cleave_worker_constants_keep(struct cleave_worker *worker, uint32_t **out_ids,
                                                             uint32_t *out_count);
void cleave_worker_constants_release(struct cleave_worker *worker, const uint32_t *ids, uint32_t count);

#endif /* CLEAVE_BACKEND_PROCESS_WORKER_CONSTANTS_H */
