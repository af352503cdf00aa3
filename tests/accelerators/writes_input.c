/* SPDX-License-Identifier: Apache-2.0 */
/* Writes into its input. */
#include "hostile.h"

HOSTILE_RUN("writes_input", hostile_write(hostile_memory(&args->inputs[0]), 4);)
