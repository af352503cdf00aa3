// SPDX-License-Identifier: Apache-2.0
/*
 * Runs of steps in lanes, by an engine of their own. Each lane belongs to a device of the engine, as its
 * work or as its copies. Every segment is an operation that is made once and pushed in each run, in the order
 * of the list; a variable for each lane keeps its order, and one for each segment that others wait for keeps
 * theirs. One run at a time.
 */
#ifndef CLEAVE_RUNTIME_LANES_FLOW_H
#define CLEAVE_RUNTIME_LANES_FLOW_H

#include "base/containers/array.h"
#include "cleave/engine.h"

/* lanes.c: The order of steps that run side by side. Steps have numbers in the order of the list, which is a
 * topological one, and a lane each: those of a lane run one after the other, in that order. A step starts
 * when the steps that it reads from have ended, in whatever lane. All else may overlap, so memory is used
 * again only by steps that are known to start later. */

/* Step `step` waits until step `before`, of another lane, has ended. */
typedef struct cleave_lane_wait {
  uint32_t step;
  uint32_t before;
} cleave_lane_wait_t;

/* Steps of one lane with nothing to wait for but at the first, and nothing that others wait for but at the
 * last: order[first] to order[first + count - 1]. */
typedef struct cleave_segment {
  uint32_t lane;
  uint32_t first;
  uint32_t count;
  uint32_t first_wait; /* in `awaited`: segments */
  uint32_t wait_count;
  bool is_awaited; /* by a segment of another lane */
} cleave_segment_t;

typedef struct cleave_lanes {
  uint32_t lane_count;
  uint32_t step_count;
  uint32_t step_capacity;
  uint32_t *lane;  /* by step */
  uint32_t *known; /* by step and lane: so many steps of the list, if of the lane, have ended */
  uint32_t *last;  /* by lane: its last step so far, + 1 */
  uint32_t *best;  /* by lane: for the step that is added */
  CLEAVE_ARRAY(cleave_lane_wait_t) waits; /* by step */
  uint32_t *order;                        /* steps by segment */
  CLEAVE_ARRAY(cleave_segment_t) segments;
  CLEAVE_ARRAY(uint32_t) awaited;
} cleave_lanes_t;

/* All zero before. */
CLEAVE_STATUS cleave_lanes_init(cleave_lanes_t *lanes, uint32_t lane_count, uint32_t step_count,
                                cleave_error_t *error);
void cleave_lanes_deinit(cleave_lanes_t *lanes);

/* The next step; `before` are the steps that it reads from or must follow for another reason. */
CLEAVE_STATUS cleave_lanes_add(cleave_lanes_t *lanes, uint32_t lane, const uint32_t *before,
                               uint32_t before_count, cleave_error_t *error);

/* By lane: steps with lower numbers than this have ended when the step starts. */
static inline const uint32_t *cleave_lanes_known(const cleave_lanes_t *lanes, uint32_t step) {
  return lanes->known + (size_t)step * lanes->lane_count;
}

/* Are there two steps in different lanes below `lane_limit` of which neither waits for the other? */
bool cleave_lanes_overlap(const cleave_lanes_t *lanes, uint32_t lane_limit);

/* After the last step. Segments come in the order of their first steps. */
CLEAVE_STATUS cleave_lanes_cut(cleave_lanes_t *lanes, cleave_error_t *error);

typedef struct cleave_flow cleave_flow_t;

/* The workers that a lane runs on. */
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
CLEAVE_STATUS cleave_flow_create(const cleave_flow_request_t *request, cleave_flow_t **out_flow,
                                 cleave_error_t *error);
/* NULL is a no-op. */
void cleave_flow_destroy(cleave_flow_t *flow);

/* One run, to its end. Steps that need what failed do not run, and neither do those behind it in its lane. Of
 * several failures the one of the lowest step is told; *out_step is CLEAVE_INDEX_NONE if a stream
 * reported it, because the step is then unknown. */
CLEAVE_STATUS cleave_flow_run(cleave_flow_t *flow, uint32_t *out_step, cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_LANES_FLOW_H */
