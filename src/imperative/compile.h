// SPDX-License-Identifier: Apache-2.0
/* From a call to a model of one node and its session. */
#ifndef CLEAVE_IMPERATIVE_COMPILE_H
#define CLEAVE_IMPERATIVE_COMPILE_H

#include "imperative/operators.h"

/* Types of the outputs if the content of these inputs (arrays that were computed) is known. *out_known: it
 * tells all of their shapes. */
CLEAVE_STATUS imperative_infer(cleave_imperative_t *imperative, const imperative_request_t *request,
                               const bool *is_constant, imperative_type_t *outputs, bool *out_known,
                               cleave_error_t *error);

/* The fewest inputs whose content tells the shapes; none if only a run does. All were computed. */
CLEAVE_STATUS imperative_find_constants(cleave_imperative_t *imperative, const imperative_request_t *request,
                                        bool *is_constant, imperative_type_t *outputs, cleave_error_t *error);
/* May the content of this input tell anything about shapes? */
bool imperative_may_tell(const imperative_request_t *request, uint32_t input);

/* Makes model, plan and session, with compiled->is_constant. */
CLEAVE_STATUS imperative_compile(cleave_imperative_t *imperative, const imperative_request_t *request,
                                 imperative_operator_t *compiled, cleave_error_t *error);

/* How a whole graph is compiled. */
typedef struct imperative_graph_options {
  const cleave_rule_source_t *rules; /* that partition it; without any, the backend gets what it supports */
  size_t rule_count;
  /* After its outputs come the gradients of the first, summed, by each floating-point input. */
  bool has_gradients;
} imperative_graph_options_t;

/* Compiles a whole graph, which it takes over, also when it fails. Its inputs and outputs are those of the
 * graph. The caller has the reference. */
CLEAVE_STATUS imperative_compile_graph_take(cleave_imperative_t *imperative, cleave_graph_t *graph,
                                            const imperative_graph_options_t *options,
                                            imperative_operator_t **out_compiled, cleave_error_t *error);

#endif /* CLEAVE_IMPERATIVE_COMPILE_H */
