// SPDX-License-Identifier: Apache-2.0
/*
 * Inside a context (cleave_context_create in cleave/cleave.h): the log, the backends, and which libraries are
 * to be isolated. Models, rule files and handles of backends point to the context that they are of; NULL is
 * the process's own, everywhere but here.
 */
#ifndef CLEAVE_BACKEND_REGISTRY_CONTEXT_H
#define CLEAVE_BACKEND_REGISTRY_CONTEXT_H

#include <stdatomic.h>

#include "backend/registry/registry_entry.h"
#include "backend/registry/registry.h"
#include "base/array.h"
#include "system/log.h"

/* What backends of a context are offered; a pointer to `table` is one to all of it. */
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
