// SPDX-License-Identifier: Apache-2.0
/*
 * What libraries add to cleave, from definitions in the test itself: they are taken up as if the library
 * `cpu` had brought them. And models as Lua text that are partitioned and run. Any failure fails the test.
 */
#ifndef CLEAVE_TESTS_LIBRARY_CASE_H
#define CLEAVE_TESTS_LIBRARY_CASE_H

#include "backend/registry/extensions.h"
#include "cleave/cleave.h"

/* Takes up extensions; `out_extensions` is for cleave_extensions_remove. */
CLEAVE_MUST_USE cleave_status_t library_case_add(const cleave_backend_extensions_t *brought,
                                                 cleave_extensions_t **out_extensions, cleave_error_t *error);
/* The same for operators only, partitioners only, passes only: one of each. They stay until the process ends.
 */
void library_case_operator(const cleave_custom_operator_t *definition);
void library_case_partitioner(const cleave_custom_partitioner_t *definition);
void library_case_pass(const cleave_custom_pass_t *definition);

/* Operator my.test.Op, version 1, whose outputs have the type of its first input; the texts are borrowed. */
cleave_custom_operator_t library_case_same(const char *inputs, const char *outputs, const char *attributes);

/* A model script, of a context (NULL: the process's own); the caller releases the model. */
cleave_model_t *library_case_model_in(cleave_context_t *context, const char *text);
cleave_model_t *library_case_model(const char *text);
/* The same, or NULL where reading it fails. */
cleave_model_t *library_case_model_or_none(const char *text);
/* The same where reading it fails. */
void library_case_model_fails(const char *text, cleave_status_t status, const char *part);

/* A plan by a rule file as text or, without spaces, by name; up to two settings "name=value", or NULL. */
CLEAVE_MUST_USE cleave_status_t library_case_partition(cleave_model_t *model, const char *rules,
                                                       const char *first, const char *second,
                                                       cleave_plan_t **out_plan, cleave_error_t *error);

/* A session over float32 inputs, all of one shape, that hold the same data. */
cleave_session_t *library_case_session(cleave_model_t *model, const cleave_plan_t *plan, int32_t rank,
                                       const int64_t *dims, const float *data,
                                       const cleave_session_options_t *options);
/* Runs, and compares a float32 output bit by bit with `count` numbers. */
void library_case_run(cleave_session_t *session, uint32_t output, const float *expected, int64_t count);
/* The only element of an int64 output. */
int64_t library_case_int(cleave_session_t *session, uint32_t output);

#endif /* CLEAVE_TESTS_LIBRARY_CASE_H */
