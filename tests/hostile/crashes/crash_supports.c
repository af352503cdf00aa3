// SPDX-License-Identifier: Apache-2.0
/* Crashes when it is asked. */
#include "hostile.h"

static void misbehave(void) {
  hostile_crash();
}

HOSTILE_SUPPORTS("crash_supports")
