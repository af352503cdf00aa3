// SPDX-License-Identifier: Apache-2.0
/*
 * Structs of the embedding API that begin with `size`, copied in and out by the policy that cleave/cleave.h
 * states: what only one of the two sides knows is left out, and what is shorter than the struct ever was is
 * refused. A field that is added must not begin in the padding behind the last one: callers of before count
 * the padding to their size.
 */
#ifndef CLEAVE_BASE_SIZED_H
#define CLEAVE_BASE_SIZED_H

#include "base/status.h"

/* The last field of each struct in its first version: they stay as they are when fields are added. */
#define CLEAVE_FIRST_cleave_allocator_t context
#define CLEAVE_FIRST_cleave_backend_info_t reason
#define CLEAVE_FIRST_cleave_communicator_t close
#define CLEAVE_FIRST_cleave_context_options_t backend_folders
#define CLEAVE_FIRST_cleave_engine_counters_t variables
#define CLEAVE_FIRST_cleave_engine_options_t trace_self
#define CLEAVE_FIRST_cleave_evaluation_t accuracy
#define CLEAVE_FIRST_cleave_gradient_options_t out_recompute
#define CLEAVE_FIRST_cleave_imperative_counters_t pool_bytes
#define CLEAVE_FIRST_cleave_imperative_options_t pool_bytes
#define CLEAVE_FIRST_cleave_isolation_options_t fallback
#define CLEAVE_FIRST_cleave_isolation_t reason
#define CLEAVE_FIRST_cleave_model_load_options_t ranges
#define CLEAVE_FIRST_cleave_operation_info_t priority
#define CLEAVE_FIRST_cleave_partition_request_t backend
#define CLEAVE_FIRST_cleave_plan_load_options_t length
#define CLEAVE_FIRST_cleave_port_t tensor
#define CLEAVE_FIRST_cleave_record_request_t rule_count
#define CLEAVE_FIRST_cleave_recompute_report_t node_count
#define CLEAVE_FIRST_cleave_rules_watch_options_t input_count
#define CLEAVE_FIRST_cleave_server_counts_t repeated
#define CLEAVE_FIRST_cleave_server_options_t batch_window_us
#define CLEAVE_FIRST_cleave_session_options_t workers
#define CLEAVE_FIRST_cleave_stream_functions_t destroy_event
#define CLEAVE_FIRST_cleave_train_backward_report_t reason
#define CLEAVE_FIRST_cleave_train_communication_t waited_ms
#define CLEAVE_FIRST_cleave_train_options_t scale_steps
#define CLEAVE_FIRST_cleave_train_precision_report_t reason
#define CLEAVE_FIRST_cleave_train_step_t is_skipped
#define CLEAVE_FIRST_cleave_why_options_t format

/* Bytes of the first version. */
#define CLEAVE_SIZED_FIRST(type) (offsetof(type, CLEAVE_FIRST_##type) + sizeof((type){0}.CLEAVE_FIRST_##type))

/* Is the struct of a caller as long as its first version? CLEAVE_ERROR_INVALID_ARGUMENT says what to set. */
#define CLEAVE_SIZED_CHECK(type, given, error) \
  cleave_sized_check(                          \
      #type, CLEAVE_SIZED_FIRST(type), (const type *) { (given) } -> size, (error))

/* A caller's struct, checked and copied over `known`, which holds what is meant by fields that the caller
 * does not have. NULL changes nothing. */
#define CLEAVE_SIZED_IN(type, given, known, error)                                                           \
  cleave_sized_in(#type, CLEAVE_SIZED_FIRST(type), (const type *){(given)}, (type *){(known)}, sizeof(type), \
                  (error))

/* What cleave found, copied over the struct of a caller, who may have none (NULL), as far as its size goes.
 * The size stays. */
#define CLEAVE_SIZED_OUT(type, found, given) \
  cleave_sized_out((const type *){(found)}, sizeof(type), (type *){(given)})

CLEAVE_STATUS cleave_sized_check(const char *type, size_t first, size_t size, cleave_error_t *error);
CLEAVE_STATUS cleave_sized_in(const char *type, size_t first, const void *given, void *known, size_t bytes,
                              cleave_error_t *error);
void cleave_sized_out(const void *found, size_t bytes, void *given);

/* ---- lists ---- */

/* A list of `count` that is NULL is CLEAVE_ERROR_INVALID_ARGUMENT, with its name. */
CLEAVE_STATUS cleave_list_check(const char *name, const void *list, size_t count, cleave_error_t *error);

#endif /* CLEAVE_BASE_SIZED_H */
