// SPDX-License-Identifier: Apache-2.0
/* Logs from a thread that never ends. */
#include <pthread.h>

#include "hostile.h"

static const cleave_host_t *log_host;

static void *talk(void *context) {
  (void)context;
  for (;;) {
    log_host->log(log_host, 2, "still here");
    (void)usleep(200);
  }
  return NULL;
}

static cleave_status_t hostile(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  pthread_t thread;
  log_host = host;
  if (pthread_create(&thread, NULL, talk, NULL) != 0) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  return relu_initialise(host, out_state, message);
}

static cleave_backend_t backend = {RELU_BACKEND("threads")};

HOSTILE_ENTRY(initialise)
