/* SPDX-License-Identifier: Apache-2.0 */
/* Writes far behind the output. */
#include "hostile.h"

HOSTILE_RUN("writes_far", hostile_write(hostile_memory(&args->outputs[0]) + 5000, 16);)
