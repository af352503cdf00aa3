// SPDX-License-Identifier: Apache-2.0
// A rule of a library at work: its library is in use, and its failures name it.
#include <stdio.h>

#include "backend/registry/registry_entry.h"

cleave_status_t cleave_library_rule_enter(cleave_rule_kind_t kind, const cleave_named_rule_use_t *use,
                                          cleave_library_rule_t *out_rule, cleave_error_t *error) {
  cleave_named_rule_t named;
  *out_rule = (cleave_library_rule_t){0};
  CLEAVE_TRY(cleave_named_rule_find(use->context, kind, use->name, &named, error));
  out_rule->library = named.owner;
  cleave_registry_retain(out_rule->library);
  if (kind == CLEAVE_RULE_PASS) {
    out_rule->pass = named.definition;
  } else {
    out_rule->partitioner = named.definition;
  }
  return CLEAVE_OK;
}

void cleave_library_rule_leave(const cleave_library_rule_t *rule) {
  if (rule->library != NULL) {
    cleave_registry_release(rule->library);
  }
}

cleave_status_t cleave_library_rule_fail(const cleave_library_rule_t *rule,
                                         const cleave_named_rule_use_t *use, const char *function,
                                         cleave_status_t status, cleave_message_t *message,
                                         cleave_error_t *error) {
  char place[256];
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  message->text[sizeof message->text - 1] = '\0';
  (void)snprintf(place, sizeof place, "%s '%s' of library '%s': %s",
                 rule->pass != NULL ? "pass" : "partitioner",
                 rule->pass != NULL ? rule->pass->name : rule->partitioner->name,
                 rule->library->backend->name, function);
  status = cleave_registry_fail(&failure, status, place, message);
  return use->file == NULL || use->file[0] == '\0'
             ? cleave_error_set(error, status, "%s", failure.message)
             : cleave_error_set_at(error, status, use->file, use->line, "%s", failure.message);
}
