// SPDX-License-Identifier: Apache-2.0
/* Computes through its workspace, of which it uses more than it asked for. */
#include "hostile.h"

enum { WORKSPACE_BYTES = 100 };

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  cleave_status_t status = relu_compile(state, region, options, out_program, message);
  if (status == CLEAVE_OK) {
    ((relu_program_t *)*out_program)->info.workspace_bytes = WORKSPACE_BYTES;
  }
  return status;
}

static cleave_status_t hostile(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  hostile_write(args->workspace, WORKSPACE_BYTES + 8);
  return relu_run(program, args, message);
}

static cleave_backend_t backend = {RELU_BACKEND("writes_workspace")};

RELU_ENTRY(backend.compile = compile; backend.run = hostile)
