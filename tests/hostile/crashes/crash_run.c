// SPDX-License-Identifier: Apache-2.0
/* Crashes in every run. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  (void)args;
  hostile_crash();
}

HOSTILE_RUN("crash_run")
