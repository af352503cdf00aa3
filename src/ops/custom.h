// SPDX-License-Identifier: Apache-2.0
/*
 * Operators that loaded libraries bring: entries like those of the table, found by cleave_op_find under
 * domain and name, with a schema parsed from the library's texts. An entry lives until the last context ends
 * (backend/registry/context.c), since graphs point to it; when its library goes it stays without a
 * definition, and the same library loaded again takes it over. Names are the process's, definitions are a
 * context's (cleave.h): the same library may be loaded in several, and an operator is known to all of them,
 * but computed only if its library is.
 *
 * Entries may be found and read on any thread. Adding and removing are the registry's, under its lock.
 */
#ifndef CLEAVE_OPS_CUSTOM_H
#define CLEAVE_OPS_CUSTOM_H

#include "ops/ops.h"

/* "domain.name": how scripts write it, and messages. */
const char *cleave_custom_op_full_name(const cleave_op_t *op);

/* Adds the operators of a library to a context, all or none. CLEAVE_ERROR_BACKEND says which definition is
 * wrong and why: the texts do not parse, a function is missing, or the operator is ONNX's or another
 * library's. `owner` is any pointer that stands for the library in this context; `library` its name. */
CLEAVE_STATUS cleave_custom_ops_add(cleave_context_t *context,
                                    const cleave_custom_operator_t *const *definitions, uint32_t count,
                                    const char *library, void *owner, cleave_error_t *error);
/* The definitions of an owner are gone. */
void cleave_custom_ops_remove(const void *owner);

/* The library's definition of an operator, and its owner (`out_owner` may be NULL). NULL if the operator is
 * no library's, or if its library is not loaded in this context. */
const cleave_custom_operator_t *cleave_custom_op_definition(const cleave_op_t *op, cleave_context_t *context,
                                                            void **out_owner);

/* Name of the library that brought the operator, loaded or not; "" for others. */
const char *cleave_custom_op_library(const cleave_op_t *op);

/* The operators of libraries that are loaded in any context, one after the other: NULL begins, NULL ends. */
const cleave_op_t *cleave_custom_op_next(const cleave_op_t *op);
/* The one of them with this domain and name, or NULL. */
const cleave_op_t *cleave_custom_op_find(const char *domain, const char *name);

/* Does the operator mean the same in this version of its domain's operator set? CLEAVE_ERROR_UNSUPPORTED: it
 * is a library's, which declares other versions, with both. */
CLEAVE_STATUS cleave_custom_op_check_version(const cleave_op_t *op, int32_t version, cleave_error_t *error);

/* CLEAVE_ERROR_UNSUPPORTED: why nothing computes a node of this operator, which has CLEAVE_OP_ID_CUSTOM: its
 * library was unloaded, or came after the model, or is another context's, or nobody brought one. */
cleave_status_t cleave_custom_op_fail(const cleave_op_t *op, cleave_error_t *error);

/* ---- private to src/ops ---- */

/* The ports and attributes of a definition, checked, in memory of `arena` (custom_schema.c). */
CLEAVE_STATUS cleave_custom_op_parse(const cleave_custom_operator_t *definition, const char *place,
                                     cleave_arena_t *arena, cleave_op_t *out_op, cleave_error_t *error);

#endif /* CLEAVE_OPS_CUSTOM_H */
