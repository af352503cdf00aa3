// SPDX-License-Identifier: Apache-2.0
/* Fails in every run. */
#include "relu.h"

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  (void)program;
  (void)args;
  (void)snprintf(message->text, sizeof message->text, "the device is too hot");
  return CLEAVE_ERROR_BACKEND;
}

static cleave_backend_t backend = {RELU_BACKEND("fails")};

RELU_ENTRY(backend.run = run)
