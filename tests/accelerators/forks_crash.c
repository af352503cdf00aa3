/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves a process behind that keeps all descriptors, and crashes. */
#include "hostile.h"

HOSTILE_RUN(
    "forks_crash", if (fork() == 0) {
      for (;;) {
        (void)pause();
      }
    } hostile_crash();)
