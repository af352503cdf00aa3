// SPDX-License-Identifier: Apache-2.0
/* Never comes back from a run. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  (void)args;
  hostile_hang();
}

HOSTILE_RUN("hang_run")
