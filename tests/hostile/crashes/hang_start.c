// SPDX-License-Identifier: Apache-2.0
/* Never comes back from initialise. */
#include "hostile.h"

static void misbehave(void) {
  hostile_hang();
}

HOSTILE_INITIALISE("hang_start")
