// SPDX-License-Identifier: Apache-2.0
// One listener for the process, under a lock, so that it may be taken away while others log.
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cleave_log_function_t listener;
static void *listener_context;

void cleave_set_log(cleave_log_function_t function, void *context) {
  (void)pthread_mutex_lock(&lock);
  listener = function;
  listener_context = context;
  (void)pthread_mutex_unlock(&lock);
}

void cleave_log(cleave_log_level_t level, const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  (void)pthread_mutex_lock(&lock);
  if (listener != NULL) {
    listener(listener_context, level, line);
  }
  (void)pthread_mutex_unlock(&lock);
}
