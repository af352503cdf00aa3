// SPDX-License-Identifier: Apache-2.0
// Isolation policies of a context: the last one of a name counts.
#include "backend/registry/context.h"

#include <stdio.h>
#include <string.h>

static cleave_status_t add(cleave_isolation_policies_t *policies, const char *name,
                           const cleave_isolation_options_t *options, cleave_error_t *error) {
  cleave_isolation_policy_t policy = {.options = *options};
  (void)snprintf(policy.name, sizeof policy.name, "%s", name);
  for (size_t k = 0; k < policies->list.count; k++) {
    if (strcmp(policies->list.items[k].name, policy.name) == 0) {
      policies->list.items[k] = policy;
      return CLEAVE_OK;
    }
  }
  CLEAVE_ARRAY_PUSH(&policies->list, policy, error);
  return CLEAVE_OK;
}

bool cleave_isolation_policy_find(cleave_context_t *context, const char *name,
                                  cleave_isolation_options_t *out_options) {
  cleave_isolation_policies_t *policies = &cleave_context_get(context)->isolation;
  bool found = false;
  (void)pthread_mutex_lock(&policies->lock);
  for (size_t k = 0; k < policies->list.count && !found; k++) {
    found = name == NULL || strcmp(policies->list.items[k].name, name) == 0;
    if (found) {
      *out_options = policies->list.items[k].options;
    }
  }
  (void)pthread_mutex_unlock(&policies->lock);
  return found;
}

cleave_status_t cleave_isolation_policy_set(cleave_context_t *context, const char *name,
                                            const cleave_isolation_options_t *options,
                                            cleave_error_t *error) {
  cleave_isolation_policies_t *policies = &cleave_context_get(context)->isolation;
  if (name[0] == '\0' || strlen(name) >= sizeof((cleave_isolation_policy_t *)0)->name) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "'%.80s' is not a name for a backend",
                            name);
  }
  (void)pthread_mutex_lock(&policies->lock);
  cleave_status_t status = add(policies, name, options, error);
  (void)pthread_mutex_unlock(&policies->lock);
  return status;
}
