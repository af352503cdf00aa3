/* SPDX-License-Identifier: Apache-2.0 */
/* Never comes back from initialise. */
#include "hostile.h"

HOSTILE_INITIALISE("hang_start", hostile_hang();)
