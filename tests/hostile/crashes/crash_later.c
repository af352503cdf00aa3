// SPDX-License-Identifier: Apache-2.0
/* Computes, and crashes in the third run. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  (void)args;
  static int runs;
  if (++runs == 3) {
    hostile_crash();
  }
}

HOSTILE_RUN("crash_later")
