// SPDX-License-Identifier: Apache-2.0
/* Ends its process in a run, as if all were well. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  (void)args;
  exit(0);
}

HOSTILE_RUN("exit_run")
