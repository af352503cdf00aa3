// SPDX-License-Identifier: Apache-2.0
/* Leaves a process behind that prints without end, and crashes. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  (void)args;
  if (fork() == 0) {
    volatile bool goes_on = true;
    while (goes_on) {
      (void)printf("a line of a process that nobody waits for\n");
    }
  }
  hostile_crash();
}

HOSTILE_RUN("prints_on")
