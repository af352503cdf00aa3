// SPDX-License-Identifier: Apache-2.0
/* Leaves a process behind that keeps all descriptors, and crashes. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  (void)args;
  hostile_fork();
  hostile_crash();
}

HOSTILE_RUN("forks_crash")
