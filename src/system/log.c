// SPDX-License-Identifier: Apache-2.0
#include "system/log.h"

#include <stdarg.h>

#include "base/show.h"

void cleave_log_listen(cleave_log_t *log, cleave_log_function_t listener, void *context) {
  (void)pthread_mutex_lock(&log->lock);
  log->listener = listener;
  log->listener_context = context;
  (void)pthread_mutex_unlock(&log->lock);
}

void cleave_log(cleave_log_t *log, cleave_log_level_t level, const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  (void)cleave_show_list(line, sizeof line, format, arguments);
  va_end(arguments);
  (void)pthread_mutex_lock(&log->lock);
  if (log->listener != NULL) {
    log->listener(log->listener_context, level, line);
  }
  (void)pthread_mutex_unlock(&log->lock);
}
