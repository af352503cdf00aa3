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
  cleave_arena_t arena;              /* of texts of the records */
  CLEAVE_ARRAY(cleave_backward_region_t) records;
} cleave_backward_t;

/* Does a backend, by its name, have gradients of its own? If not, this is recorded once. */
CLEAVE_MUST_USE cleave_status_t cleave_backward_has(cleave_backward_t *backward, const cleave_graph_t *graph,
                                                    const char *backend, bool *out_has,
                                                    cleave_error_t *error);

/* Begins, with the plan of a graph that has no gradients yet; takes the plan over, also if this fails. Must
 * be deinitialised. */
CLEAVE_MUST_USE cleave_status_t cleave_backward_start_take(cleave_backward_t *backward, cleave_plan_t *plan,
                                                           cleave_error_t *error);
void cleave_backward_deinit(cleave_backward_t *backward);

#endif /* CLEAVE_BACKEND_PROGRAM_BACKWARD_H */
