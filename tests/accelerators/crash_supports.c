/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes when it is asked. */
#include "hostile.h"

HOSTILE_SUPPORTS("crash_supports", hostile_crash();)
