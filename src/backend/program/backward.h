// SPDX-License-Identifier: Apache-2.0
/* Gradients of regions by their backends: the questions of partition/gradient, answered by the registry's
 * backends. */
#ifndef CLEAVE_BACKEND_PROGRAM_BACKWARD_H
#define CLEAVE_BACKEND_PROGRAM_BACKWARD_H

#include "backend/region/view.h"
#include "partition/gradient/gradient.h"
#include "partition/plan/plan.h"

/* The regions of a graph that gets gradients. */
typedef struct cleave_backward {
  cleave_plan_t *plan; /* owned; NULL: no backend is asked */
  cleave_node_t *order;
  cleave_gradient_regions_t regions; /* for a request, if there is a plan */
  uint32_t taken;                    /* regions whose backend added their gradients */
  uint32_t refused;                  /* regions whose nodes' rules did, since their backend would not */
  char reason[320];                  /* what the first backend said that was not asked, or refused; "" */
} cleave_backward_t;

/* Does a backend, by its name, have gradients of its own? If not, the reason is noted, unless there is one.
 */
bool cleave_backward_has(cleave_backward_t *backward, const cleave_graph_t *graph, const char *backend);

/* Begins, with the plan of a graph that has no gradients yet; takes the plan over, also if this fails. Must
 * be deinitialised. */
CLEAVE_MUST_USE cleave_status_t cleave_backward_start_take(cleave_backward_t *backward, cleave_plan_t *plan,
                                                           cleave_error_t *error);
void cleave_backward_deinit(cleave_backward_t *backward);

#endif /* CLEAVE_BACKEND_PROGRAM_BACKWARD_H */
