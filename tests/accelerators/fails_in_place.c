// SPDX-License-Identifier: Apache-2.0
/* Wants to write over its input, does, and fails. */
#include "relu.h"

static const cleave_inplace_pair_t inplace[] = {{0, 0}};

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  cleave_status_t status = relu_compile(state, region, options, out_program, message);
  if (status == CLEAVE_OK) {
    relu_program_t *program = *out_program;
    program->info.inplace = inplace;
    program->info.inplace_count = 1;
  }
  return status;
}

static cleave_status_t run(void *memory, const cleave_run_args_t *args, cleave_message_t *message) {
  relu_compute(memory, args, 7.0f);
  (void)snprintf(message->text, sizeof message->text, "the device is too hot");
  return CLEAVE_ERROR_BACKEND;
}

static cleave_backend_t backend = {RELU_BACKEND("fails_in_place")};

RELU_ENTRY(backend.compile = compile; backend.run = run)
