/* SPDX-License-Identifier: Apache-2.0 */
/* Calls abort in every run. */
#include "hostile.h"

HOSTILE_RUN("abort_run", abort();)
