// SPDX-License-Identifier: Apache-2.0
/* Lines for whoever embeds cleave: the log of a context (cleave_context_set_log in cleave/cleave.h). Dropped
 * if nobody listens. */
#ifndef CLEAVE_SYSTEM_LOG_H
#define CLEAVE_SYSTEM_LOG_H

#include <pthread.h>

#include "base/status.h"

/* One listener, under a lock, so that it may be taken away while others log. */
typedef struct cleave_log {
  pthread_mutex_t lock;
  cleave_log_function_t listener; /* NULL: nobody listens */
  void *listener_context;
} cleave_log_t;

#define CLEAVE_LOG_INIT \
  { PTHREAD_MUTEX_INITIALIZER, NULL, NULL }

/* NULL takes the listener away: nobody is in it any more when this returns. Thread-safe. */
void cleave_log_listen(cleave_log_t *log, cleave_log_function_t listener, void *context);

/* One line without its end. Thread-safe; allocates nothing. */
void cleave_log(cleave_log_t *log, cleave_log_level_t level, const char *format, ...) CLEAVE_PRINTF(3, 4);

#endif /* CLEAVE_SYSTEM_LOG_H */
