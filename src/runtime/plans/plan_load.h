// SPDX-License-Identifier: Apache-2.0
/* Plans from files, for a graph: what cleave_plan_load does behind the embedding API. */
#ifndef CLEAVE_RUNTIME_PLANS_PLAN_LOAD_H
#define CLEAVE_RUNTIME_PLANS_PLAN_LOAD_H

#include "cleave/cleave.h"
#include "partition/plan/plan_document.h"

/* The document in a file: a plan as JSON, or the one that an exported ONNX model brings. `graph` (may be
 * NULL) is the one that it will be a plan of: a model that was written in another operator set comes back
 * without attributes that say nothing there, so that the hash of what was written is not asked for.
 * *out_document stays NULL without an error if a model brings no plan and `must` is false. */
CLEAVE_STATUS cleave_plan_document_open(const char *path, const cleave_graph_t *graph, bool must,
                                        cleave_plan_document_t **out_document, cleave_error_t *error);

/* The plan that a document holds, for `graph`. Without `fallback`, a region whose backend is missing or
 * refuses a part of it is an error (CLEAVE_ERROR_UNSUPPORTED) that names both; with it, its nodes run one by
 * one and a note says why. Uses the document up: it can only be destroyed afterwards. */
CLEAVE_STATUS cleave_plan_load_document(cleave_plan_document_t *document, const cleave_graph_t *graph,
                                        bool fallback, cleave_plan_t **out_plan, cleave_error_t *error);

/* cleave_plan_load_document for a model. If the document is about the model bound to other sizes than this
 * one is, it is loaded for those and taken over to this model's (as cleave_plan_rebase does). */
CLEAVE_STATUS cleave_plan_load_for(cleave_plan_document_t *document, cleave_model_t *model, bool fallback,
                                   cleave_plan_t **out_plan, cleave_error_t *error);

/* cleave_plan_rebase without asking the backends. */
CLEAVE_STATUS cleave_plan_take_over(const cleave_plan_t *plan, cleave_model_t *model,
                                    cleave_plan_t **out_plan, cleave_error_t *error);

/* Shows every fusion and node of every region to its backend. *out_reasons, in `arena`: by region, why its
 * backend refuses it, or NULL. Without `fallback` the first refusal is an error (CLEAVE_ERROR_UNSUPPORTED),
 * after `place`. */
CLEAVE_STATUS cleave_plan_check_regions(const cleave_plan_t *plan, const char *place, bool fallback,
                                        cleave_arena_t *arena, const char ***out_reasons, bool *out_any,
                                        cleave_error_t *error);

/* Asks them without fallback. CLEAVE_ERROR_UNSUPPORTED tells the first refusal, or a backend that is missing,
 * after `place`. */
CLEAVE_STATUS cleave_plan_ask_backends(const cleave_plan_t *plan, const char *place, cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_PLANS_PLAN_LOAD_H */
