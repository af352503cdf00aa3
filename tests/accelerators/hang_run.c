/* SPDX-License-Identifier: Apache-2.0 */
/* Never comes back from a run. */
#include "hostile.h"

HOSTILE_RUN("hang_run", hostile_hang();)
