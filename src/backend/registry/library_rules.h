// SPDX-License-Identifier: Apache-2.0
/* Partitioners and passes of loaded libraries as rules: of rule files, and by themselves. */
#ifndef CLEAVE_BACKEND_REGISTRY_LIBRARY_RULES_H
#define CLEAVE_BACKEND_REGISTRY_LIBRARY_RULES_H

#include "backend/registry/registry.h"
#include "base/text.h"
#include "partition/pattern/named_rules.h"

/* Checks what a library brings and adds it, all or nothing. */
CLEAVE_MUST_USE cleave_status_t cleave_library_rules_take(const cleave_backend_handle_t *library,
                                                          cleave_error_t *error);
void cleave_library_rules_leave(const cleave_backend_handle_t *library);

/* The text of a rule file that uses all passes and partitioners of the library `name` of a context, in order,
 * each partitioner as a ruleset on the backend that it asks for; or the one that "name/part" means. Settings
 * become options of it. *out_found: false, and no text, where no library of that name brings
 * rules; CLEAVE_ERROR_RULE where it has no such part. */
CLEAVE_MUST_USE cleave_status_t cleave_library_rules_text(cleave_context_t *context, const char *name,
                                                          const cleave_setting_t *settings,
                                                          size_t setting_count, cleave_text_t *text,
                                                          bool *out_found, cleave_error_t *error);

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
