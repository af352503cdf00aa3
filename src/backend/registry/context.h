// SPDX-License-Identifier: Apache-2.0
/*
 * Inside a context (cleave_context_create in cleave/cleave.h): the log, the backends, and which libraries are
 * to be isolated. Models, rule files and handles of backends point to the context that they are of; NULL is
 * the process's own, everywhere but here.
 */
#ifndef CLEAVE_BACKEND_REGISTRY_CONTEXT_H
#define CLEAVE_BACKEND_REGISTRY_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend/registry/registry.h"
#include "base/containers/array.h"
#include "base/status.h"
#include "system/log.h"

/* isolation_policy.c: Which libraries are isolated when they are loaded, and how (cleave_backend_isolate).
 * Thread-safe. */

typedef struct cleave_isolation_policy {
  char name[64];
  cleave_isolation_options_t options;
} cleave_isolation_policy_t;

/* The policies of a context. */
typedef struct cleave_isolation_policies {
  pthread_mutex_t lock;
  CLEAVE_ARRAY(cleave_isolation_policy_t) list;
} cleave_isolation_policies_t;

#define CLEAVE_ISOLATION_POLICIES_INIT \
  { .lock = PTHREAD_MUTEX_INITIALIZER }

/* Is this library to be isolated? `name` NULL: is any? *out_options as they were given. */
bool cleave_isolation_policy_find(cleave_context_t *context, const char *name,
                                  cleave_isolation_options_t *out_options);

/* The library of this name is isolated from now on, as the options say. */
CLEAVE_STATUS cleave_isolation_policy_set(cleave_context_t *context, const char *name,
                                          const cleave_isolation_options_t *options, cleave_error_t *error);

/* The functions that backends of a context can call; a pointer to `table` is one to all of it. */
typedef struct cleave_context_host {
  cleave_host_t table;
  cleave_log_t *log;
} cleave_context_host_t;

struct cleave_context {
  atomic_int references;
  struct cleave_context *self; /* what others point to: NULL for the process's own */
  cleave_log_t log;
  cleave_isolation_policies_t isolation;
  atomic_ullong script_limit; /* nanoseconds of cleave_context_set_script_time; 0: none */
  atomic_ullong script_used;
  /* The registry's, under its lock. */
  pthread_mutex_t lock;
  CLEAVE_ARRAY(struct cleave_registry_entry *) entries; /* linked-in ones first */
  cleave_context_host_t host;
  bool has_linked;   /* the linked-in ones are entered */
  bool has_searched; /* the folders */
  char *folders; /* to search, separated by ':'; NULL: CLEAVE_BACKEND_PATH and those of the installation */
};

/* The context that a pointer means: `context`, or the process's own for NULL. */
cleave_context_t *cleave_context_get(cleave_context_t *context);

/* Its log. */
cleave_log_t *cleave_context_log(cleave_context_t *context);

#endif /* CLEAVE_BACKEND_REGISTRY_CONTEXT_H */
