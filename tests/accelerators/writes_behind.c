/* SPDX-License-Identifier: Apache-2.0 */
/* Computes, and writes just behind the output. */
#include "hostile.h"

HOSTILE_RUN("writes_behind",
            hostile_write(hostile_memory(&args->outputs[0]) + relu->elements * sizeof(float), 16);)
