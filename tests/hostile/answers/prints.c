// SPDX-License-Identifier: Apache-2.0
/* Prints what nobody asked for, on both streams. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  (void)args;
  for (int k = 0; k < 2000; k++) {
    (void)printf("line %d of many that this library prints\n", k);
  }
  (void)fflush(stdout);
  (void)fprintf(stderr, "and this\n");
}

HOSTILE_RUN("prints")
