// SPDX-License-Identifier: Apache-2.0
// Single operators: a program of one node with scratch memory of its own. Constants are among its inputs, and
// so come with every execution.
#include "program.h"

static cleave_status_t get_executor(void *state, const cleave_region_view_t *node,
                                    const cleave_compile_options_t *options, void **out_executor,
                                    cleave_message_t *message) {
  mirror_t *mirror = state;
  mirror_program_t *program = NULL;
  cleave_status_t status = mirror_program_create(mirror, node, options, true, &program, message);
  mirror_count(&mirror->counters.executors, status == CLEAVE_OK);
  *out_executor = program;
  return status;
}

static void release_executor(void *executor) {
  mirror_program_destroy(executor);
}

static cleave_status_t execute(void *executor, const cleave_run_args_t *args, cleave_message_t *message) {
  return mirror_program_launch(executor, args, message);
}

const cleave_backend_imperative_t mirror_imperative = {.size = sizeof mirror_imperative,
                                                       .get_executor = get_executor,
                                                       .release_executor = release_executor,
                                                       .execute = execute};
