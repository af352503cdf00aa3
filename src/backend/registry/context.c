// SPDX-License-Identifier: Apache-2.0
// Making, sharing and ending contexts. The process's own is there without being made, and never ends.
// Whatever points to operators of libraries, and every script, is of a context: with the last one that was
// made, the memory that is kept for the process goes, unless something is, or ever was, of the process's own.
#include "backend/registry/context.h"

#include <string.h>

#include "backend/registry/registry_entry.h"
#include "base/memory.h"
#include "base/sized.h"

static cleave_context_t own = {
    .log = CLEAVE_LOG_INIT, .isolation = CLEAVE_ISOLATION_POLICIES_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_mutex_t lives = PTHREAD_MUTEX_INITIALIZER; /* of `made` and `own_is_used` */
static size_t made;
static atomic_bool own_is_used;

static void count_made(bool is_new) {
  (void)pthread_mutex_lock(&lives);
  made += is_new ? 1 : (size_t)-1;
  if (made == 0 && !atomic_load(&own_is_used)) {
    cleave_memory_end();
  }
  (void)pthread_mutex_unlock(&lives);
}

static void use_own(void) {
  if (!atomic_load_explicit(&own_is_used, memory_order_relaxed)) {
    (void)pthread_mutex_lock(&lives);
    atomic_store(&own_is_used, true);
    (void)pthread_mutex_unlock(&lives);
  }
}

cleave_context_t *cleave_context_get(cleave_context_t *context) {
  return context == NULL ? &own : context;
}

cleave_log_t *cleave_context_log(cleave_context_t *context) {
  return &cleave_context_get(context)->log;
}

cleave_status_t cleave_context_create(const cleave_context_options_t *options, cleave_context_t **out_context,
                                      cleave_error_t *error) {
  cleave_context_options_t given = {0};
  *out_context = NULL;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_context_options_t, options, &given, error));
  cleave_context_t *context = cleave_allocate_zeroed(1, sizeof *context);
  CLEAVE_TRY_MEMORY(context, error);
  *context = (cleave_context_t){
      .log = CLEAVE_LOG_INIT, .isolation = CLEAVE_ISOLATION_POLICIES_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};
  count_made(true);
  atomic_init(&context->references, 1);
  context->self = context;
  cleave_log_listen(&context->log, given.log, given.log_context);
  if (given.backend_folders != NULL) {
    context->folders = cleave_copy_text(given.backend_folders, strlen(given.backend_folders));
    if (context->folders == NULL) {
      cleave_context_release(context);
      return cleave_error_out_of_memory(error);
    }
  }
  *out_context = context;
  return CLEAVE_OK;
}

/* Ends backends in the reverse order of their coming; nothing of them is in use. */
static void end_backends(cleave_context_t *context) {
  while (context->entries.count > 0) {
    cleave_registry_entry_t *entry = context->entries.items[--context->entries.count];
    entry->functions->end(entry);
  }
  cleave_array_free(&context->entries);
}

cleave_context_t *cleave_context_retain(cleave_context_t *context) {
  if (context != NULL) {
    (void)atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
  } else {
    use_own();
  }
  return context;
}

void cleave_context_release(cleave_context_t *context) {
  if (context == NULL || atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  end_backends(context);
  cleave_array_free(&context->isolation.list);
  (void)pthread_mutex_destroy(&context->isolation.lock);
  (void)pthread_mutex_destroy(&context->lock);
  (void)pthread_mutex_destroy(&context->log.lock);
  cleave_free(context->folders);
  cleave_free(context);
  count_made(false);
}

void cleave_context_set_script_time(cleave_context_t *context, uint64_t milliseconds) {
  enum { NANOSECONDS = 1000000 };
  cleave_context_t *shared = cleave_context_get(context);
  uint64_t most = UINT64_MAX / NANOSECONDS;
  atomic_store(&shared->script_used, 0);
  atomic_store(&shared->script_limit, (milliseconds < most ? milliseconds : most) * NANOSECONDS);
}

void cleave_context_set_log(cleave_context_t *context, cleave_log_function_t function, void *log_context) {
  cleave_log_listen(cleave_context_log(context), function, log_context);
}
