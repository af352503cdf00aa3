/* SPDX-License-Identifier: Apache-2.0 */
/* Writes just before the output. */
#include "hostile.h"

HOSTILE_RUN("writes_before", hostile_write(hostile_memory(&args->outputs[0]) - 16, 16);)
