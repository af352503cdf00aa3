// SPDX-License-Identifier: Apache-2.0
/* From Lua errors to C errors: what script.c needs of script_error.c. */
#ifndef CLEAVE_SCRIPT_STATE_SCRIPT_ERROR_H
#define CLEAVE_SCRIPT_STATE_SCRIPT_ERROR_H

#include "script/state/script.h"

/* Forgets the error of the last call. */
void cleave_script_errors_begin(cleave_script_t *script);

/* Fills in the error of a call that ended with `code`; its value is on top of the stack. Only reads strings,
 * so nothing here can raise. */
cleave_status_t cleave_script_convert_error(cleave_script_t *script, int code, cleave_error_t *error);

#endif /* CLEAVE_SCRIPT_STATE_SCRIPT_ERROR_H */
