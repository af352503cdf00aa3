// SPDX-License-Identifier: Apache-2.0
/* Models behind the embedding API (cleave/cleave.h), and how rule files run over a graph. */
#ifndef CLEAVE_RUNTIME_MODEL_MODEL_H
#define CLEAVE_RUNTIME_MODEL_MODEL_H

#include "partition/plan/plan.h"
#include "runtime/model/rule_list.h"

/* The graph of a model; it lives as long as the model and does not change. */
const cleave_graph_t *cleave_model_graph(const cleave_model_t *model);

/* How many nodes of the file went before anything else, since no output needs them. */
size_t cleave_model_dead_count(const cleave_model_t *model);

/* A model from a graph, which it takes over, also when it fails; it retains the graph's context. What
 * is dead goes, types are inferred and what is constant is folded, as for models from files. */
CLEAVE_STATUS cleave_model_create_take(cleave_graph_t *graph, cleave_model_t **out_model,
                                       cleave_error_t *error);

/* cleave_model_create_take for a copy of the graph of `origin`. The model retains `origin`, because the
 * graphs share texts. */
CLEAVE_STATUS cleave_model_create_sharing_take(cleave_graph_t *graph, cleave_model_t *origin,
                                               cleave_model_t **out_model, cleave_error_t *error);

/* cleave_model_load of a file that accepts settings which the model script does not know: out_used[k] tells.
 */
CLEAVE_STATUS cleave_model_load_with(cleave_context_t *context, const char *path,
                                     const cleave_model_load_options_t *options, bool *out_used,
                                     cleave_model_t **out_model, cleave_error_t *error);

/* Gives the values of a model the ranges of a file, before anybody else sees the model. */
CLEAVE_STATUS cleave_model_read_ranges(cleave_model_t *model, const char *path, cleave_error_t *error);

/* cleave_model_bind if negative dims stay open, and so does what nothing tells: for rules to look at. */
CLEAVE_STATUS cleave_model_bind_partly(cleave_model_t *model, const cleave_tensor_view_t *const *inputs,
                                       size_t input_count, cleave_model_t **out_model, cleave_error_t *error);

/* What a caller gave, as far as its struct goes; NULL: all zero. Lists are as long as they say. */
CLEAVE_STATUS cleave_partition_request_read(const cleave_partition_request_t *given,
                                            cleave_partition_request_t *out_request, cleave_error_t *error);

/* cleave_model_partition for a graph, which must outlive the plan. `options` may be NULL. *out_script_ms (may
 * be NULL): milliseconds spent on loading the rule files. */
CLEAVE_STATUS cleave_graph_partition(const cleave_graph_t *graph, const cleave_partition_request_t *request,
                                     const cleave_rule_list_options_t *options, cleave_plan_t **out_plan,
                                     double *out_script_ms, cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_MODEL_MODEL_H */
