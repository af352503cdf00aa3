/* SPDX-License-Identifier: Apache-2.0 */
/* Computes, and crashes in the third run. */
#include "hostile.h"

static int runs;

HOSTILE_RUN(
    "crash_later", if (++runs == 3) { hostile_crash(); })
