/* SPDX-License-Identifier: Apache-2.0 */
/* Ends its process in a run, as if all were well. */
#include "hostile.h"

HOSTILE_RUN("exit_run", exit(0);)
