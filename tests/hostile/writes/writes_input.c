// SPDX-License-Identifier: Apache-2.0
/* Writes into its input. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  (void)relu;
  hostile_write(hostile_memory(&args->inputs[0]), 4);
}

HOSTILE_RUN("writes_input")
