/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What isolated libraries add to cleave. Functions of their definitions get nothing that tells which library
 * they are of, so whoever has the definition calls these in their place; those of executors and selectors are
 * in the definition. A failure is the library's, or the loss of its process.
 */
#ifndef CLEAVE_BACKEND_ISOLATE_ISOLATE_EXTENSIONS_H
#define CLEAVE_BACKEND_ISOLATE_ISOLATE_EXTENSIONS_H

#include "backend/isolate/isolate.h"

/* The turn of a partitioner: the process has the graph, and the options. */
typedef struct cleave_isolate_turn cleave_isolate_turn_t;

/* `partitioner` is one of an isolated library's; `graph` must stay as it is until the turn ends. */
CLEAVE_MUST_USE cleave_status_t cleave_isolate_turn_begin(const cleave_custom_partitioner_t *partitioner,
                                                          const cleave_region_view_t *graph,
                                                          const cleave_key_value_t *options,
                                                          uint32_t option_count,
                                                          cleave_isolate_turn_t **out_turn,
                                                          cleave_message_t *message);
/* NULL is welcome. */
void cleave_isolate_turn_end(cleave_isolate_turn_t *turn);

/* `supported`, `create_selector` and `review` of the definition. */
CLEAVE_MUST_USE cleave_status_t cleave_isolate_turn_supported(cleave_isolate_turn_t *turn, int64_t *groups,
                                                              cleave_message_t *message);
CLEAVE_MUST_USE cleave_status_t cleave_isolate_turn_select(cleave_isolate_turn_t *turn, void **out_selector,
                                                           cleave_message_t *message);
CLEAVE_MUST_USE cleave_status_t cleave_isolate_turn_review(cleave_isolate_turn_t *turn,
                                                           const cleave_region_view_t *region, bool *keep,
                                                           void (*attach)(void *context, const char *key,
                                                                          const char *value),
                                                           void *context, cleave_message_t *message);

/* The process of the turn is lost, and so selectors answer "no": the reason, in `message`. */
bool cleave_isolate_turn_is_lost(const cleave_isolate_turn_t *turn, cleave_message_t *message);

/* `run` of the definition. What it does to the graph goes through `editor`. */
CLEAVE_MUST_USE cleave_status_t cleave_isolate_pass(const cleave_custom_pass_t *pass,
                                                    const cleave_graph_editor_t *editor,
                                                    const cleave_key_value_t *options, uint32_t option_count,
                                                    cleave_message_t *message);

/* `create` of the definition. */
CLEAVE_MUST_USE cleave_status_t cleave_isolate_create_kernel(const cleave_custom_operator_t *definition,
                                                             const cleave_region_view_t *node,
                                                             const cleave_compile_options_t *options,
                                                             void **out_executor, cleave_message_t *message);

#endif /* CLEAVE_BACKEND_ISOLATE_ISOLATE_EXTENSIONS_H */
