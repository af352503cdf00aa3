// SPDX-License-Identifier: Apache-2.0
/* Crashes while it compiles. */
#include "hostile.h"

static void misbehave(void) {
  hostile_crash();
}

HOSTILE_COMPILE("crash_compile")
