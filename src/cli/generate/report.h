// SPDX-License-Identifier: Apache-2.0
/* Prints the results of `cleave generate`. */
#ifndef CLEAVE_CLI_GENERATE_REPORT_H
#define CLEAVE_CLI_GENERATE_REPORT_H

#include "cli/generate/generation.h"

/* The times are sorted here. */
void cleave_generation_print(cleave_generation_t *generation);
/* The exit status. */
int cleave_generation_print_json(cleave_generation_t *generation);

#endif /* CLEAVE_CLI_GENERATE_REPORT_H */
