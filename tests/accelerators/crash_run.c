/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes in every run. */
#include "hostile.h"

HOSTILE_RUN("crash_run", hostile_crash();)
