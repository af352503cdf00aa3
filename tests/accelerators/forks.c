/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves a process behind that keeps all descriptors. */
#include "hostile.h"

HOSTILE_RUN(
    "forks", if (fork() == 0) {
      for (;;) {
        (void)pause();
      }
    })
