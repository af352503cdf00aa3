// SPDX-License-Identifier: Apache-2.0
/* The questions of the partitioner, answered by the registry's backends. */
#ifndef CLEAVE_BACKEND_PROGRAM_SUPPORTS_H
#define CLEAVE_BACKEND_PROGRAM_SUPPORTS_H

#include "backend/region/view.h"

/* Answers cleave_partition_options_t.supports from the registry's backends. */
typedef struct cleave_supports {
  cleave_view_builder_t builder;
  cleave_arena_t arena;
  const struct cleave_backend_handle *handle; /* of the backend asked last */
} cleave_supports_t;

void cleave_supports_init(cleave_supports_t *supports, const cleave_graph_t *graph);
void cleave_supports_deinit(cleave_supports_t *supports);

/* For cleave_partition_options_t.supports; `context` is a cleave_supports_t of the same graph. A backend that
 * does not exist or does not start is an error, not a refusal. */
CLEAVE_STATUS cleave_supports_ask(void *context, const char *backend, const cleave_graph_t *graph,
                                  const cleave_fusion_set_t *set, bool *out_yes, cleave_reason_t *reason,
                                  cleave_error_t *error);

/* For cleave_partition_options_t.cost, with the same context. */
CLEAVE_STATUS cleave_supports_cost(void *context, const cleave_region_set_t *set, double *out_nanoseconds,
                                   bool *out_known, cleave_reason_t *reason, cleave_error_t *error);

/* For cleave_partition_options_t.review, with the same context. */
CLEAVE_STATUS cleave_supports_review(void *context, const cleave_region_set_t *set, bool *keep, bool *out_yes,
                                     cleave_reason_t *reason, cleave_error_t *error);

#endif /* CLEAVE_BACKEND_PROGRAM_SUPPORTS_H */
