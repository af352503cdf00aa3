// SPDX-License-Identifier: Apache-2.0
/* Computes, and writes just behind the output. */
#include "hostile.h"

static void misbehave(const relu_program_t *relu, const cleave_run_args_t *args) {
  hostile_write(hostile_memory(&args->outputs[0]) + relu->elements * sizeof(float), 16);
}

HOSTILE_RUN("writes_behind")
