// SPDX-License-Identifier: Apache-2.0
/*
 * Runs of steps in lanes, by an engine of their own. Each lane belongs to a device of the engine, as its
 * work or as its copies. Every segment is an operation that is made once and pushed in each run, in the order
 * of the list; a variable for each lane keeps its order, and one for each segment that others wait for keeps
 * theirs. One run at a time.
 */
#ifndef CLEAVE_RUNTIME_LANES_FLOW_H
#define CLEAVE_RUNTIME_LANES_FLOW_H

#include "cleave/engine.h"
#include "runtime/lanes/lanes.h"

typedef struct cleave_flow cleave_flow_t;

/* Where a lane runs. */
typedef struct cleave_flow_lane {
  uint32_t device;
  bool is_copy; /* on the device's copy workers, if it has any */
} cleave_flow_lane_t;

typedef struct cleave_flow_request {
  const cleave_lanes_t *lanes;      /* cut; must outlive the flow */
  const cleave_flow_lane_t *places; /* by lane */
  const cleave_engine_device_t *devices;
  uint32_t device_count;
  /* Runs a step, or puts it into the stream. */
  cleave_status_t (*run)(void *self, uint32_t step, void *stream, cleave_error_t *error);
  void *self;
} cleave_flow_request_t;

/* Starts the threads. */
CLEAVE_MUST_USE cleave_status_t cleave_flow_create(const cleave_flow_request_t *request,
                                                   cleave_flow_t **out_flow, cleave_error_t *error);
/* NULL is a no-op. */
void cleave_flow_destroy(cleave_flow_t *flow);

/* One run, to its end. Steps that need what failed do not run, and neither do those behind it in its lane. Of
 * several failures the one of the lowest step is told; *out_step is CLEAVE_INDEX_NONE if it came out of a
 * stream, where nobody knows whose it is. */
CLEAVE_MUST_USE cleave_status_t cleave_flow_run(cleave_flow_t *flow, uint32_t *out_step,
                                                cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_LANES_FLOW_H */
