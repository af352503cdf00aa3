// SPDX-License-Identifier: Apache-2.0
/* Which libraries are isolated when they are loaded, and how (cleave_backend_isolate). Thread-safe. */
#ifndef CLEAVE_BACKEND_REGISTRY_ISOLATION_POLICY_H
#define CLEAVE_BACKEND_REGISTRY_ISOLATION_POLICY_H

#include <pthread.h>

#include "base/array.h"
#include "base/status.h"

typedef struct cleave_isolation_policy {
  char name[64];
  cleave_isolation_options_t options;
} cleave_isolation_policy_t;

/* Those of a context. */
typedef struct cleave_isolation_policies {
  pthread_mutex_t lock;
  CLEAVE_ARRAY(cleave_isolation_policy_t) list;
} cleave_isolation_policies_t;

#define CLEAVE_ISOLATION_POLICIES_INIT \
  { .lock = PTHREAD_MUTEX_INITIALIZER }

/* Is this library to be isolated? `name` NULL: is any? *out_options as they were given. */
bool cleave_isolation_policy_find(cleave_context_t *context, const char *name,
                                  cleave_isolation_options_t *out_options);

/* The library of this name is isolated from now on, as the options say (NULL: as usual). */
CLEAVE_MUST_USE cleave_status_t cleave_isolation_policy_set(cleave_context_t *context, const char *name,
                                                            const cleave_isolation_options_t *options,
                                                            cleave_error_t *error);

/* The options with all fields that this program knows; zeros for those that are younger than the caller. */
cleave_isolation_options_t cleave_isolation_options_copy(const cleave_isolation_options_t *options);

#endif /* CLEAVE_BACKEND_REGISTRY_ISOLATION_POLICY_H */
