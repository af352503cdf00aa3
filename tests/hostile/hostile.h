// SPDX-License-Identifier: Apache-2.0
/*
 * Libraries that misbehave in one place: each macro below makes the backend of relu.h, with a
 * function `misbehave` of the library called first in one of its functions. They are for processes of their
 * own.
 */
#ifndef CLEAVE_TESTS_HOSTILE_HOSTILE_H
#define CLEAVE_TESTS_HOSTILE_HOSTILE_H

#include <signal.h>
#include <unistd.h>

#include "relu.h"

/* An address that nobody has, which the compiler cannot see. */
static inline volatile int *hostile_address(void) {
  static volatile uintptr_t low = 16;
  return (volatile int *)low;
}

static inline void hostile_crash(void) {
  *hostile_address() = 1;
}

static inline void hostile_hang(void) {
  volatile bool goes_on = true;
  while (goes_on) {
    (void)usleep(1000);
  }
}

/* The memory of an output or input, to write into. */
static inline unsigned char *hostile_memory(const cleave_tensor_view_t *tensor) {
  return (unsigned char *)(uintptr_t)tensor->data;
}

/* Writes without being seen by sanitizers of the library's own code. */
static inline void hostile_write(unsigned char *memory, size_t bytes) {
  for (volatile size_t k = 0; k < bytes; k++) {
    *(volatile unsigned char *)(memory + k) = 0x5a;
  }
}

#define HOSTILE_ENTRY(field) RELU_ENTRY(backend.field = hostile)

/* A process of the library's that stays. */
static inline void hostile_fork(void) {
  if (fork() == 0) {
    hostile_hang();
  }
}

#define HOSTILE_RUN(library)                                                                                \
  static cleave_status_t hostile(void *program, const cleave_run_args_t *args, cleave_message_t *message) { \
    misbehave(program, args);                                                                               \
    return relu_run(program, args, message);                                                                \
  }                                                                                                         \
  static cleave_backend_t backend = {RELU_BACKEND(library)};                                                \
  HOSTILE_ENTRY(run)

#define HOSTILE_SUPPORTS(library)                                                 \
  static cleave_status_t hostile(void *state, const cleave_region_view_t *region, \
                                 cleave_message_t *reason) {                      \
    misbehave();                                                                  \
    return relu_supports(state, region, reason);                                  \
  }                                                                               \
  static cleave_backend_t backend = {RELU_BACKEND(library)};                      \
  HOSTILE_ENTRY(supports)

#define HOSTILE_COMPILE(library)                                                              \
  static cleave_status_t hostile(void *state, const cleave_region_view_t *region,             \
                                 const cleave_compile_options_t *options, void **out_program, \
                                 cleave_message_t *message) {                                 \
    misbehave();                                                                              \
    return relu_compile(state, region, options, out_program, message);                        \
  }                                                                                           \
  static cleave_backend_t backend = {RELU_BACKEND(library)};                                  \
  HOSTILE_ENTRY(compile)

#define HOSTILE_INITIALISE(library)                                                                        \
  static cleave_status_t hostile(const cleave_host_t *host, void **out_state, cleave_message_t *message) { \
    misbehave();                                                                                           \
    return relu_initialise(host, out_state, message);                                                      \
  }                                                                                                        \
  static cleave_backend_t backend = {RELU_BACKEND(library)};                                               \
  HOSTILE_ENTRY(initialise)

#endif /* CLEAVE_TESTS_HOSTILE_HOSTILE_H */
