// SPDX-License-Identifier: Apache-2.0
/*
 * Building a session, in files by subject: session_slots.c values, session_steps.c programs and steps,
 * session_nodes.c single nodes, session_build.c regions and the whole, session_schedule.c which worker of the
 * host computes what; session_copies.c then puts copies between steps. session_single.c compiles regions once
 * more, for one thread.
 */
#ifndef CLEAVE_RUNTIME_BUILD_SESSION_BUILD_H
#define CLEAVE_RUNTIME_BUILD_SESSION_BUILD_H

#include "runtime/build/session_internal.h"
#include "runtime/lanes/schedule.h"

typedef struct cleave_build {
  cleave_session_t *session;
  const cleave_graph_t *graph;
  cleave_view_builder_t views;
  cleave_arena_t arena; /* of the view at hand */
  uint32_t *value_slot; /* by graph value: the slot that is computed, or NONE */
  const cleave_plan_step_t *order;
  uint32_t order_count;
  cleave_unit_t *units;      /* by item of `order`; NULL unless the host has several workers */
  const cleave_unit_t *unit; /* that is built now, or NULL */
} cleave_build_t;

/* Chooses a worker for all that the host is to compute, if it has several. */
CLEAVE_STATUS cleave_build_schedule(cleave_build_t *build, cleave_error_t *error);

/* ---- slots ---- */

/* Is its shape known before the run? */
bool cleave_build_is_known(const cleave_graph_t *graph, cleave_value_t value);

CLEAVE_STATUS cleave_build_add_slot(cleave_build_t *build, cleave_value_t value, cleave_slot_kind_t kind,
                                    uint32_t place, uint32_t *out_slot, cleave_error_t *error);
/* The slot of a value that a step reads, made for inputs and constants. */
CLEAVE_STATUS cleave_build_input_slot(cleave_build_t *build, cleave_value_t value, uint32_t *out_slot,
                                      cleave_error_t *error);

/* ---- steps ---- */

typedef struct cleave_build_program {
  uint32_t target;
  const cleave_view_t *view;
  const char *node; /* name of a single node, "" for regions */
  bool is_executor;
  bool is_single; /* for one thread, not for those of the session */
} cleave_build_program_t;

/* The program of a view: one that this session or, if there is a cache, another one has compiled for an
 * equal one, or a new one. `message` has the reason of a failure that is the backend's. */
CLEAVE_STATUS cleave_build_get_program(cleave_build_t *build, const cleave_build_program_t *request,
                                       cleave_program_t **out_program, cleave_message_t *message,
                                       cleave_error_t *error);

/* A step over a view: its slots, its backend from step.target. Views and pointers are filled in when memory
 * is planned. */
CLEAVE_STATUS cleave_build_add_step(cleave_build_t *build, const cleave_view_t *view, cleave_step_t step,
                                    cleave_error_t *error);

/* The view of a step that is a whole region, in the arena of `build`. */
CLEAVE_STATUS cleave_build_region_view(cleave_build_t *build, const cleave_step_t *step,
                                       cleave_view_t *out_view, cleave_error_t *error);

/* ---- nodes ---- */

/* A node by itself. Without a region (NULL) it runs on `cpu`. Of a region, on its target, through executors
 * if the backend has them, else as a region of one node; if both are refused, on `cpu`. */
typedef struct cleave_build_node {
  cleave_node_t node;
  const cleave_plan_region_t *region;
  uint32_t region_index;
  uint32_t target;
  bool keeps_views; /* Reshape and its like are steps, too */
} cleave_build_node_t;

/* `reason` has a text if a node of a region runs on `cpu`, not on the region's backend. */
CLEAVE_STATUS cleave_build_add_node(cleave_build_t *build, const cleave_build_node_t *request,
                                    cleave_message_t *reason, cleave_error_t *error);

/* Shapes of all that the node reads and computes are known. */
bool cleave_build_node_is_static(const cleave_graph_t *graph, cleave_node_t node);

#endif /* CLEAVE_RUNTIME_BUILD_SESSION_BUILD_H */
