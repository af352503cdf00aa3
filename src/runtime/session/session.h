// SPDX-License-Identifier: Apache-2.0
/*
 * A session: a plan compiled on its backends for concrete input shapes, with all memory planned, ready to
 * run many times. The public functions (inputs, run, outputs) are declared in cleave/cleave.h; this header
 * adds what the program and the tests need.
 *
 * What is in a session: steps in execution order, each one region on its backend, one node on `cpu` or on its
 * region's backend, or a copy between host memory and a device. Nodes whose shapes are known only at run time
 * (they depend on data) are dynamic steps: shapes are inferred from the data at hand, programs are compiled
 * when a shape comes up first, memory only grows.
 */
#ifndef CLEAVE_RUNTIME_SESSION_SESSION_H
#define CLEAVE_RUNTIME_SESSION_SESSION_H

#include "partition/plan/plan.h"
#include "runtime/build/statistics.h"

/* Compiles. `plan` NULL: every node is a step on `cpu`; otherwise a plan of `graph`. Both are borrowed, must
 * outlive the session and not change; any number of sessions may share them, on any threads. `inputs[k]`
 * gives dtype and shape of graph input k as for cleave_graph_bind (src/runtime/model/bind.h); its data is not
 * used. Options may be NULL. CLEAVE_ERROR_UNSUPPORTED names the operator, node and reason if a node runs
 * nowhere. */
CLEAVE_STATUS cleave_session_create_planned(const cleave_graph_t *graph, const cleave_plan_t *plan,
                                            const cleave_tensor_view_t *const *inputs, size_t input_count,
                                            const cleave_session_options_t *options,
                                            cleave_session_t **out_session, cleave_error_t *error);

/* The graph that runs: the caller's, or the bound copy of it. */
const cleave_graph_t *cleave_session_graph(const cleave_session_t *session);

cleave_session_memory_t cleave_session_memory(const cleave_session_t *session); /* of the host */

uint32_t cleave_session_device_count(const cleave_session_t *session);
cleave_session_device_t cleave_session_device(const cleave_session_t *session, uint32_t index);

/* One step, for profiles. Times are of the last run, and 0 unless the session profiles. */
typedef struct cleave_session_step {
  const char *name;   /* of the region or node; of the value that is copied */
  const char *op;     /* of a node; "" for a region; "copy to mirror:0" or "copy from mirror:0" */
  const char *target; /* the backend, with the device if it has devices: "cpu", "mirror:0" */
  const char *backend;
  uint32_t region;    /* in the plan, or CLEAVE_INDEX_NONE; of a single node, too, if it is of one */
  cleave_node_t node; /* of a step of one node; NONE for others */
  bool is_dynamic;
  bool is_copy;
  size_t copied_bytes;
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t part_count; /* what the backend says about its own steps */
  const cleave_step_time_t *parts;
  const cleave_node_t *nodes; /* graph nodes by the `node` of parts */
  uint32_t node_count;
} cleave_session_step_t;
uint32_t cleave_session_step_count(const cleave_session_t *session);
cleave_session_step_t cleave_session_step(const cleave_session_t *session, uint32_t index);

/* Writes to the host memory of values and outputs, so that the first run does not wait for it. Before that
 * run only. */
void cleave_session_touch(cleave_session_t *session);

#endif /* CLEAVE_RUNTIME_SESSION_SESSION_H */
