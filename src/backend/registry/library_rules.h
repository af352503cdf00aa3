// SPDX-License-Identifier: Apache-2.0
/* Partitioners and passes of loaded libraries as rules. */
#ifndef CLEAVE_BACKEND_REGISTRY_LIBRARY_RULES_H
#define CLEAVE_BACKEND_REGISTRY_LIBRARY_RULES_H

#include "backend/registry/registry.h"
#include "partition/pattern/named_rules.h"
#include "partition/rewrite/editor.h"

/* Checks what a library brings and adds it, all or nothing. */
CLEAVE_MUST_USE cleave_status_t cleave_library_rules_take(const cleave_backend_handle_t *library,
                                                          cleave_error_t *error);
void cleave_library_rules_leave(const cleave_backend_handle_t *library);

/* Asks a backend that has `backward` for the gradients of a region. CLEAVE_ERROR_UNSUPPORTED, with `reason`
 * alone: it has none of this region. */
CLEAVE_MUST_USE cleave_status_t cleave_library_backward(const cleave_backend_handle_t *library,
                                                        cleave_editor_t *editor,
                                                        cleave_backward_request_t *request,
                                                        cleave_message_t *reason, cleave_error_t *error);

/* ---- shared by the files that bind ---- */

/* What stands behind a named rule. */
typedef struct cleave_library_rule {
  const cleave_backend_handle_t *library; /* retained while in use */
  const cleave_custom_partitioner_t *partitioner;
  const cleave_custom_pass_t *pass;
} cleave_library_rule_t;

/* Looks it up again, and retains the library. */
CLEAVE_MUST_USE cleave_status_t cleave_library_rule_enter(cleave_rule_kind_t kind,
                                                          const cleave_named_rule_use_t *use,
                                                          cleave_library_rule_t *out_rule,
                                                          cleave_error_t *error);
void cleave_library_rule_leave(const cleave_library_rule_t *rule);

void cleave_library_partitioner_bind(const cleave_named_rule_t *named, cleave_rule_t *rule);
void cleave_library_pass_bind(const cleave_named_rule_t *named, cleave_rule_t *rule);

/* "partitioner 'x' of library 'y': <function>: <message>" as an error, with a status that a rule may have. */
cleave_status_t cleave_library_rule_fail(const cleave_library_rule_t *rule,
                                         const cleave_named_rule_use_t *use, const char *function,
                                         cleave_status_t status, cleave_message_t *message,
                                         cleave_error_t *error);

#endif /* CLEAVE_BACKEND_REGISTRY_LIBRARY_RULES_H */
