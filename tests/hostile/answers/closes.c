// SPDX-License-Identifier: Apache-2.0
/* Closes every descriptor of its process. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  (void)args;
  for (int fd = 0; fd < 64; fd++) {
    (void)close(fd);
  }
}

HOSTILE_RUN("closes")
