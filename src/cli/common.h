/* SPDX-License-Identifier: Apache-2.0 */
/* Options that every command has: libraries to load. */
#ifndef CLEAVE_CLI_COMMON_H
#define CLEAVE_CLI_COMMON_H

#include "cli/arguments.h"

extern const cleave_option_t cleave_common_options[];
extern const size_t cleave_common_option_count;

/* Does what the common options say, once a command line is parsed. The exit status; an error is printed. */
int cleave_common_apply(void);
void cleave_common_free(void);

#endif /* CLEAVE_CLI_COMMON_H */
