// SPDX-License-Identifier: Apache-2.0
/* Time and memory of one interpreter: what script.c needs of script_limits.c. */
#ifndef CLEAVE_SCRIPT_STATE_SCRIPT_LIMITS_H
#define CLEAVE_SCRIPT_STATE_SCRIPT_LIMITS_H

#include "script/state/script.h"

/* lua_Alloc over a cleave_script_t. */
void *cleave_script_allocate(void *context, void *memory, size_t old_size, size_t size);

/* Begins a call with all of its budget, in milliseconds. */
void cleave_script_begin(cleave_script_t *script, uint32_t budget);
/* Ends a call: its time counts against the context's total. */
void cleave_script_finish(cleave_script_t *script);

#endif /* CLEAVE_SCRIPT_STATE_SCRIPT_LIMITS_H */
