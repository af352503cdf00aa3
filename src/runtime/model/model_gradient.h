// SPDX-License-Identifier: Apache-2.0
/* Models with gradients, by rule files that are loaded already. */
#ifndef CLEAVE_RUNTIME_MODEL_MODEL_GRADIENT_H
#define CLEAVE_RUNTIME_MODEL_MODEL_GRADIENT_H

#include "runtime/model/rule_list.h"

/* The arguments of cleave_model_gradient. */
typedef struct cleave_gradient_order {
  const char *loss;
  const char *const *wrt;
  size_t wrt_count;
  /* Gradient rules in the place of those that come with cleave; backends of its regions are asked first.
   * NULL: none. */
  const cleave_rule_list_t *list;
  bool open;    /* as in cleave_gradient_options_t */
  bool partial; /* names that get no gradient are passed over, as without names */
  double recompute;
  cleave_recompute_report_t *out_recompute;
} cleave_gradient_order_t;

CLEAVE_STATUS cleave_model_gradient_by(cleave_model_t *model, const cleave_gradient_order_t *order,
                                       cleave_model_t **out_model, cleave_error_t *error);

/* Adds to a graph, whose types are inferred, the gradients of a value by the rules that come with cleave
 * (partition/gradient/gradient.h). The graph must be discarded if this fails. */
CLEAVE_STATUS cleave_graph_add_gradients(cleave_graph_t *graph, cleave_value_t loss,
                                         const cleave_value_t *wrt, size_t wrt_count,
                                         cleave_value_t *out_gradients, cleave_error_t *error);

/* The rule files that were loaded. Borrowed. */
const cleave_rule_list_t *cleave_rule_files_list(const cleave_rule_files_t *files);

/* Does one of the files declare an option of this name? */
bool cleave_rule_files_have_option(const cleave_rule_files_t *files, const char *name);

/* The graph of a model's file, before anything was folded, with the sizes that the model was bound to: a copy
 * to change. Its constants have the names of the file, and not all types are inferred. */
CLEAVE_STATUS cleave_model_copy_source(const cleave_model_t *model, cleave_graph_t **out_graph,
                                       cleave_error_t *error);

/* An output of the graph by its name, or any other value by its own, of floating-point numbers. `what` is
 * for messages: "loss". */
CLEAVE_STATUS cleave_gradient_find_value(const cleave_graph_t *graph, const char *what, const char *name,
                                         cleave_value_t *out_value, cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_MODEL_MODEL_GRADIENT_H */
