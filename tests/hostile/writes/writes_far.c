// SPDX-License-Identifier: Apache-2.0
/* Writes far behind the output. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  hostile_write(hostile_memory(&args->outputs[0]) + 5000, 16);
}

HOSTILE_RUN("writes_far")
