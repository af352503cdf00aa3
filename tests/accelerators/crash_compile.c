/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes while it compiles. */
#include "hostile.h"

HOSTILE_COMPILE("crash_compile", hostile_crash();)
