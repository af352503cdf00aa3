// SPDX-License-Identifier: Apache-2.0
/*
 * Operators that were compiled for the types and attributes of a call: a model of one node and a session that
 * runs it. Inputs whose content decides about shapes (of Reshape, Slice) are constants of the model, and part
 * of what it was compiled for.
 */
#ifndef CLEAVE_IMPERATIVE_OPERATORS_H
#define CLEAVE_IMPERATIVE_OPERATORS_H

#include "imperative/imperative.h"

typedef struct imperative_type {
  cleave_dtype_t dtype;
  int32_t rank; /* -1: only a run tells the shape */
  int64_t dims[CLEAVE_MAX_RANK];
} imperative_type_t;

struct imperative_operator {
  imperative_operator_t *next; /* of its bucket */
  uint64_t hash;
  unsigned char *key;
  size_t key_bytes;
  _Atomic uint32_t references;
  /* Per input: its content is constant. If there are any and there is no session, the operator is looked up
   * with the content of these. */
  bool *is_constant;
  uint32_t input_count;
  uint32_t output_count;
  imperative_type_t *outputs;
  cleave_model_t *model;
  cleave_plan_t *plan;
  cleave_session_t *session; /* NULL: the content of inputs is missing */
  pthread_mutex_t running;   /* held by who runs the session */
};

/* The compiled operator, with a reference: one that is kept, or a new one. It may wait for inputs whose
 * content decides about shapes. */
CLEAVE_STATUS imperative_operator_get(cleave_imperative_t *imperative, const imperative_request_t *request,
                                      imperative_operator_t **out_operator, cleave_error_t *error);
/* NULL is a no-op (compile.c). */
void imperative_operator_release(imperative_operator_t *compiled);

/* Runs it on arrays of its types (calls.c): `outputs` gets new ones. Waits if only the run tells a shape. */
CLEAVE_STATUS imperative_operator_run(cleave_imperative_t *imperative, imperative_operator_t *compiled,
                                      const char *name, const char *place, cleave_array_t *const *inputs,
                                      cleave_array_t **outputs, cleave_error_t *error);

/* Memory of calls that have run (calls.c). */
void imperative_calls_free(cleave_imperative_t *imperative);

/* Gives up the references of the table. */
void imperative_table_clear(cleave_imperative_t *imperative);

#endif /* CLEAVE_IMPERATIVE_OPERATORS_H */
