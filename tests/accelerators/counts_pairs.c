// SPDX-License-Identifier: Apache-2.0
/* Counts pairs of inputs and outputs in one memory, and does not list them. */
#include "relu.h"

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  cleave_status_t status = relu_compile(state, region, options, out_program, message);
  if (status == CLEAVE_OK) {
    ((relu_program_t *)*out_program)->info.inplace_count = 7;
  }
  return status;
}

static cleave_backend_t backend = {RELU_BACKEND("counts_pairs")};

RELU_ENTRY(backend.compile = compile)
