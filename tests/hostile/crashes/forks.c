// SPDX-License-Identifier: Apache-2.0
/* Leaves processes behind that keep all descriptors. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  (void)args;
  hostile_fork();
}

HOSTILE_RUN("forks")
