/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes in initialise. */
#include "hostile.h"

HOSTILE_INITIALISE("crash_start", hostile_crash();)
