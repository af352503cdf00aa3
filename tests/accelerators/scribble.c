/* SPDX-License-Identifier: Apache-2.0 */
/* Computes, and writes beyond the end of the output. */
#include "relu.h"

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  const relu_program_t *relu = program;
  (void)message;
  relu_compute(program, args, 0.0f);
  memset((char *)(uintptr_t)args->outputs[0].data + relu->elements * sizeof(float), 0x5a, 64);
  return CLEAVE_OK;
}

static cleave_backend_t backend = {RELU_BACKEND("scribble")};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_major;
  (void)abi_minor;
  (void)message;
  backend.run = run;
  return &backend;
}
