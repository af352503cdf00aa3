/* SPDX-License-Identifier: Apache-2.0 */
/* Names of libraries that are to be isolated when they are loaded (cleave_backend_isolate). Thread-safe. */
#ifndef CLEAVE_BACKEND_REGISTRY_ISOLATION_H
#define CLEAVE_BACKEND_REGISTRY_ISOLATION_H

#include <pthread.h>

#include "base/array.h"
#include "base/status.h"

typedef struct cleave_isolation_wish {
  char name[64];
  cleave_isolation_options_t options;
} cleave_isolation_wish_t;

/* Those of a context. */
typedef struct cleave_isolation_wishes {
  pthread_mutex_t lock;
  CLEAVE_ARRAY(cleave_isolation_wish_t) list;
} cleave_isolation_wishes_t;

#define CLEAVE_ISOLATION_WISHES_INIT \
  { .lock = PTHREAD_MUTEX_INITIALIZER }

/* Is this library to be isolated? `name` NULL: is any? *out_options as they were given. */
bool cleave_isolation_find(cleave_context_t *context, const char *name,
                           cleave_isolation_options_t *out_options);

/* Forgets all, with the context. */
void cleave_isolation_end(cleave_context_t *context);

#endif /* CLEAVE_BACKEND_REGISTRY_ISOLATION_H */
