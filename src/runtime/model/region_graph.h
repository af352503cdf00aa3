// SPDX-License-Identifier: Apache-2.0
/* Regions and models: a region from a file as a model with its plan, and regions of a plan as files. */
#ifndef CLEAVE_RUNTIME_MODEL_REGION_GRAPH_H
#define CLEAVE_RUNTIME_MODEL_REGION_GRAPH_H

#include "backend/region/region_json.h"

/* The region as a graph of its own, whose inputs and outputs are the region's. Nodes have the
 * indices that they have in the view. Constants that were left out are drawn, evenly between 0 and 0.1,
 * integers 0: the same ones every time. CLEAVE_ERROR_UNSUPPORTED if an operator is of another version than
 * this program's. The graph is its own. */
CLEAVE_STATUS cleave_region_file_graph(const cleave_region_file_t *region, cleave_graph_t **out_graph,
                                       cleave_error_t *error);

/* The plan that the region came from, as far as it is about the region: one region of its name with its
 * fusions, on `backend` (NULL: the one in the text, else "cpu"). `graph` is of cleave_region_file_graph,
 * simplified or bound; CLEAVE_ERROR_MISMATCH if nodes went in that. With `fallback`, what the backend
 * refuses runs node by node; otherwise that is CLEAVE_ERROR_UNSUPPORTED. */
CLEAVE_STATUS cleave_region_file_plan(const cleave_region_file_t *region, const cleave_graph_t *graph,
                                      const char *backend, bool fallback, cleave_plan_t **out_plan,
                                      cleave_error_t *error);

/* Region `index` of a plan as backends see it before sizes are bound. */
CLEAVE_STATUS cleave_plan_print_region(const cleave_plan_t *plan, uint32_t index,
                                       const cleave_region_json_options_t *options, cleave_text_t *text,
                                       cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_MODEL_REGION_GRAPH_H */
