// SPDX-License-Identifier: Apache-2.0
/* CPU_TEST: a test with the reference backend, initialised, as `cpu`. */
#ifndef CLEAVE_TESTS_CPU_TEST_H
#define CLEAVE_TESTS_CPU_TEST_H

#include "op_case.h"
#include "unit.h"

__attribute__((unused)) static op_backend_t cpu;

#define CPU_TEST(name)             \
  static void name##_on_cpu(void); \
  UNIT_TEST(name) {                \
    cpu = op_backend_cpu();        \
    name##_on_cpu();               \
    op_backend_destroy(&cpu);      \
  }                                \
  static void name##_on_cpu(void)

#endif /* CLEAVE_TESTS_CPU_TEST_H */
