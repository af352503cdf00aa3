/* SPDX-License-Identifier: Apache-2.0 */
/* Time and memory of one interpreter: what script.c needs of script_limits.c. */
#ifndef CLEAVE_SCRIPT_SCRIPT_LIMITS_H
#define CLEAVE_SCRIPT_SCRIPT_LIMITS_H

#include "script/script.h"

/* lua_Alloc over a cleave_script_t. */
void *cleave_script_allocate(void *context, void *memory, size_t old_size, size_t size);

/* Begins a call with all of its budget, in milliseconds. */
void cleave_script_begin(cleave_script_t *script, uint32_t budget);

#endif /* CLEAVE_SCRIPT_SCRIPT_LIMITS_H */
