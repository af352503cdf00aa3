// SPDX-License-Identifier: Apache-2.0
/* Inside a model, for the files that make models: model.c, and model_constants.c, which makes those with
 * other constants. */
#ifndef CLEAVE_RUNTIME_MODEL_MODEL_INTERNAL_H
#define CLEAVE_RUNTIME_MODEL_MODEL_INTERNAL_H

#include <stdatomic.h>

#include "backend/region/region_json.h"
#include "runtime/model/model.h"

struct cleave_model {
  atomic_int references;
  cleave_context_t *context; /* retained; NULL: the process's own */
  cleave_graph_t *graph;     /* folded; what everybody else sees */
  /* The graph before anything was folded: what constants are set in. NULL: `graph` is it. Of a bound model:
   * the origin's. */
  cleave_graph_t *unfolded;
  uint32_t *constants; /* cleave_model_constant: values of the graph that has those of the file */
  uint32_t constant_count;
  size_t dead_count;      /* cleave_model_dead_count */
  cleave_model_t *texts;  /* retained: whose graph has the texts and lists that the graphs share; NULL: own */
  cleave_model_t *origin; /* retained: a bound model's graph is a copy of its graph; NULL: not bound */
  cleave_region_file_t *region;       /* that the model was made of; NULL: none, or look at the origin's */
  cleave_arena_t arena;               /* of the lists below */
  cleave_backward_region_t *backward; /* owned; cleave_model_backward */
  uint32_t backward_count;
  /* The tensors that a bound model was bound to, by input; NULL if the model said everything. */
  const cleave_tensor_view_t **bound_inputs;
  size_t bound_count;
};

/* A model of a context and of a graph, which it takes over, also when it fails; the graph may come later. */
CLEAVE_STATUS cleave_model_wrap_take(cleave_context_t *context, cleave_graph_t *graph,
                                     cleave_model_t **out_model, cleave_error_t *error);

/* Lists the constants of a model that is not bound, once its graphs are there. */
CLEAVE_STATUS cleave_model_list_constants(cleave_model_t *model, cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_MODEL_MODEL_INTERNAL_H */
