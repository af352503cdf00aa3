// SPDX-License-Identifier: Apache-2.0
/* Model scripts: Lua text that builds a graph with the operators by name. */
#ifndef CLEAVE_SCRIPT_MODEL_SCRIPT_H
#define CLEAVE_SCRIPT_MODEL_SCRIPT_H

#include "graph/graph.h"
#include "script/rules/rules.h"

/* Runs the script and returns the graph it built, of `context`, with types inferred. Weights are drawn from
 * `seed` (0: the script's own default). Settings become the script's `options`; one that the script never
 * reads is not an error here. `settings` may be NULL. Errors carry the script's file:line. */
CLEAVE_STATUS cleave_model_script_load(cleave_context_t *context, const char *path,
                                       const cleave_script_settings_t *settings, uint64_t seed,
                                       cleave_graph_t **out_graph, cleave_error_t *error);

#endif /* CLEAVE_SCRIPT_MODEL_SCRIPT_H */
