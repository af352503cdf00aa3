// SPDX-License-Identifier: Apache-2.0
/* Returns what is no status, and a message without an end. */
#include "hostile.h"

static cleave_status_t hostile(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  (void)program;
  (void)args;
  memset(message->text, 'x', sizeof message->text);
  return (cleave_status_t)77;
}

static cleave_backend_t backend = {RELU_BACKEND("bad_status")};

HOSTILE_ENTRY(run)
