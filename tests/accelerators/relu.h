// SPDX-License-Identifier: Apache-2.0
/*
 * What the test libraries have in common: a backend that runs single float32 Relu nodes of known shape. Each
 * library takes RELU_BACKEND and makes one thing wrong.
 */
#ifndef CLEAVE_TESTS_ACCELERATORS_RELU_H
#define CLEAVE_TESTS_ACCELERATORS_RELU_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/backend.h"

typedef struct relu_program {
  cleave_program_info_t info;
  size_t elements;
} relu_program_t;

static inline cleave_status_t relu_initialise(const cleave_host_t *host, void **out_state,
                                              cleave_message_t *message) {
  (void)host;
  (void)message;
  *out_state = malloc(64); /* so that a leak would be seen */
  return *out_state == NULL ? CLEAVE_ERROR_OUT_OF_MEMORY : CLEAVE_OK;
}

static inline void relu_destroy(void *state) {
  free(state);
}

static inline cleave_status_t relu_supports(void *state, const cleave_region_view_t *region,
                                            cleave_message_t *reason) {
  (void)state;
  bool yes = region->node_count == 1 && cleave_view_text_equal(region->nodes[0].op, "Relu") &&
             region->input_count == 1 && region->values[region->inputs[0]].tensor.dtype == CLEAVE_DTYPE_F32 &&
             cleave_view_element_count(&region->values[region->inputs[0]].tensor) >= 0;
  if (!yes) {
    (void)snprintf(reason->text, sizeof reason->text, "only one float32 Relu of known shape");
  }
  return yes ? CLEAVE_OK : CLEAVE_ERROR_UNSUPPORTED;
}

static inline cleave_status_t relu_compile(void *state, const cleave_region_view_t *region,
                                           const cleave_compile_options_t *options, void **out_program,
                                           cleave_message_t *message) {
  (void)options;
  if (relu_supports(state, region, message) != CLEAVE_OK) {
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  relu_program_t *program = calloc(1, sizeof *program);
  if (program == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->info.size = sizeof program->info;
  program->elements = (size_t)cleave_view_element_count(&region->values[region->inputs[0]].tensor);
  *out_program = program;
  return CLEAVE_OK;
}

static inline void relu_unload(void *program) {
  free(program);
}

static inline const cleave_program_info_t *relu_info(const void *program) {
  return &((const relu_program_t *)program)->info;
}

/* out[k] = max(x[k], 0) + offset */
static inline void relu_compute(const relu_program_t *program, const cleave_run_args_t *args, float offset) {
  const char *from = args->inputs[0].data;
  char *to = (char *)(uintptr_t)args->outputs[0].data;
  for (size_t k = 0; k < program->elements; k++) {
    float x;
    memcpy(&x, from + k * sizeof x, sizeof x);
    x = (x > 0.0f ? x : 0.0f) + offset;
    memcpy(to + k * sizeof x, &x, sizeof x);
  }
}

static inline cleave_status_t relu_run(void *program, const cleave_run_args_t *args,
                                       cleave_message_t *message) {
  (void)message;
  relu_compute(program, args, 0.0f);
  return CLEAVE_OK;
}

#define RELU_BACKEND(backend_name)                                                                        \
  .size = sizeof(cleave_backend_t), .abi_major = CLEAVE_BACKEND_ABI_MAJOR,                                \
  .abi_minor = CLEAVE_BACKEND_ABI_MINOR, .name = (backend_name), .version = "1", .description = "a test", \
  .initialise = relu_initialise, .destroy = relu_destroy, .supports = relu_supports,                      \
  .compile = relu_compile, .unload = relu_unload, .info = relu_info, .run = relu_run

/* The entry of a library, which makes some changes to its `backend` first. */
#define RELU_ENTRY(changes)                                                            \
  const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor, \
                                               cleave_message_t *message) {            \
    (void)abi_major;                                                                   \
    (void)abi_minor;                                                                   \
    (void)message;                                                                     \
    changes;                                                                           \
    return &backend;                                                                   \
  }

#endif /* CLEAVE_TESTS_ACCELERATORS_RELU_H */
