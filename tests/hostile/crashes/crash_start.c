// SPDX-License-Identifier: Apache-2.0
/* Crashes in initialise. */
#include "hostile.h"

static void misbehave(void) {
  hostile_crash();
}

HOSTILE_INITIALISE("crash_start")
