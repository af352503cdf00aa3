// SPDX-License-Identifier: Apache-2.0
/*
 * The forms of a served model: bound to the sizes of one request, of two, four and so on, and partitioned for
 * each, since rules may decide by sizes.
 */
#ifndef CLEAVE_RUNTIME_SERVE_FORMS_H
#define CLEAVE_RUNTIME_SERVE_FORMS_H

#include "base/status.h"

enum { CLEAVE_MAX_BATCH = 1024, CLEAVE_MAX_FORMS = 12 }; /* 1, 2, 4, ..., 1024, and a limit in between */

typedef struct cleave_form {
  uint32_t requests;
  cleave_model_t *model;
  cleave_plan_t *plan; /* of the model; NULL: every operator runs on `cpu` */
} cleave_form_t;

typedef struct cleave_forms {
  cleave_form_t items[CLEAVE_MAX_FORMS]; /* by number of requests; the first is one request */
  uint32_t count;
} cleave_forms_t;

/* The types of one request, as cleave_server_create takes them. */
typedef struct cleave_form_source {
  cleave_model_t *model;
  const cleave_partition_request_t *request; /* or NULL */
  const cleave_tensor_view_t *const *inputs; /* or NULL */
  size_t input_count;
  const bool *known; /* per setting of the request, or NULL: no rule file needs to declare it */
} cleave_form_source_t;

/* Forms for up to `limit` requests, 1 to CLEAVE_MAX_BATCH. Also if it fails, they must be deinitialised.
 * Errors are those of cleave_server_create. */
CLEAVE_STATUS cleave_forms_init(cleave_forms_t *forms, const cleave_form_source_t *source, uint32_t limit,
                                cleave_error_t *error);
void cleave_forms_deinit(cleave_forms_t *forms);

/* The largest form that `waiting` (at least 1) requests fill. */
uint32_t cleave_forms_choose(const cleave_forms_t *forms, uint64_t waiting);

#endif /* CLEAVE_RUNTIME_SERVE_FORMS_H */
