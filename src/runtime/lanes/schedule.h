// SPDX-License-Identifier: Apache-2.0
/*
 * Which worker of the host computes what, decided by estimated times before anything is compiled: each unit
 * goes, in order, to the worker that can start it first (list scheduling).
 */
#ifndef CLEAVE_RUNTIME_LANES_SCHEDULE_H
#define CLEAVE_RUNTIME_LANES_SCHEDULE_H

#include "base/containers/array.h"

/* A region or a node, which is computed in one piece. */
typedef struct cleave_unit {
  double ns;             /* estimated, on one thread */
  bool is_elsewhere;     /* on a device: it takes no worker's time */
  uint32_t first_before; /* in `before` of the request: units that it reads from */
  uint32_t before_count;
  uint32_t worker; /* out */
  bool is_beside;  /* out: for most of its time another worker computes too */
  double start;    /* out */
  double end;
  uint32_t next; /* out: the unit that its worker computes after it, or CLEAVE_INDEX_NONE */
} cleave_unit_t;

/* `units` in topological order. */
CLEAVE_STATUS cleave_schedule(cleave_unit_t *units, size_t unit_count, const uint32_t *before,
                              uint32_t worker_count, cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_LANES_SCHEDULE_H */
