// SPDX-License-Identifier: Apache-2.0
/*
 * Options for backends, sorted by backend: what a session was given (cleave_session_options_t), as the
 * backends' `compile` wants it. Of the same key of a backend, the option that was given last counts.
 */
#ifndef CLEAVE_BACKEND_PROGRAM_BACKEND_OPTIONS_H
#define CLEAVE_BACKEND_PROGRAM_BACKEND_OPTIONS_H

#include "backend/registry/registry.h"
#include "base/arena.h"

/* The options of one backend. */
typedef struct cleave_backend_options {
  const char *backend;
  uint32_t device; /* that the option `device` names; otherwise 0 */
  uint32_t count;
  cleave_key_value_t *items; /* by key; `device` is not among them */
  bool is_used;              /* somebody asked for them */
} cleave_backend_options_t;

/* All zero is an empty table. */
typedef struct cleave_backend_option_table {
  uint32_t count;
  cleave_backend_options_t *items;
} cleave_backend_option_table_t;

/* Copies into `arena`; the backends are those of `context`. Errors name the option ("option 'mirror.device':
 * ..."): a backend that does not exist or does not start, a device or a key that it does not have. */
CLEAVE_STATUS cleave_backend_option_table_build(cleave_context_t *context,
                                                const cleave_backend_option_t *options, uint32_t count,
                                                cleave_arena_t *arena,
                                                cleave_backend_option_table_t *out_table,
                                                cleave_error_t *error);

/* Sets device and options of `compile` to those for a backend, which borrow from the table. */
void cleave_backend_option_table_apply(cleave_backend_option_table_t *table, const char *backend,
                                       cleave_compile_options_t *compile);

/* CLEAVE_ERROR_INVALID_ARGUMENT if the backend has no such device: "backend 'x' has 2 devices, there is no
 * device 3". One without devices of its own has device 0, the host; one that has such functions, but finds no
 * device, has failed: CLEAVE_ERROR_BACKEND. */
CLEAVE_STATUS cleave_backend_check_device(const cleave_backend_handle_t *handle, uint64_t device,
                                          cleave_error_t *error);

/* The number of a device of the backend, from text. */
CLEAVE_STATUS cleave_backend_read_device(const cleave_backend_handle_t *handle, const char *text,
                                         uint32_t *out_device, cleave_error_t *error);

/* That of the attribute `device` of a region: a number, or a text of its digits, which is all that a
 * partitioner of a library can attach. Whether the backend has it is not asked. */
CLEAVE_STATUS cleave_backend_device_of(const cleave_attribute_view_t *attribute, uint32_t *out_device,
                                       cleave_error_t *error);

/* CLEAVE_ERROR_INVALID_ARGUMENT if programs of the backend have no option of this key, with those that
 * they have. */
CLEAVE_STATUS cleave_backend_check_option(const cleave_backend_handle_t *handle, const char *key,
                                          cleave_error_t *error);

/* The hash of device, options, threads and profile: if it differs, so do the programs. */
uint64_t cleave_compile_options_hash(const cleave_compile_options_t *options);

#endif /* CLEAVE_BACKEND_PROGRAM_BACKEND_OPTIONS_H */
