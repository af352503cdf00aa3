// SPDX-License-Identifier: Apache-2.0
/* Adds to its output where it is asked to, and crashes in the second run. */
#include "hostile.h"

static cleave_status_t hostile(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  static int runs;
  const relu_program_t *relu = program;
  (void)message;
  if (++runs == 2) {
    hostile_crash();
  }
  const float *from = args->inputs[0].data;
  float *to = (float *)(uintptr_t)args->outputs[0].data;
  bool adds = args->requests != NULL && args->requests[0] == CLEAVE_REQUEST_ADD;
  for (size_t k = 0; k < relu->elements; k++) {
    to[k] = (from[k] > 0.0f ? from[k] : 0.0f) + (adds ? to[k] : 0.0f);
  }
  return CLEAVE_OK;
}

static cleave_backend_t backend = {RELU_BACKEND("adds_later"), .adds = true};

HOSTILE_ENTRY(run)
