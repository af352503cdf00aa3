// SPDX-License-Identifier: Apache-2.0
/*
 * Programs of backends/kernels from text, whose grammar is in the README there. Reading what
 * kernel_program_print has written gives the same program; text from anywhere is read safely.
 */
#ifndef CLEAVE_TESTS_PROGRAM_READ_H
#define CLEAVE_TESTS_PROGRAM_READ_H

#include "kernels/text.h"

/* CLEAVE_ERROR_FORMAT, the line, what was expected and what was found, if the text is not a program. */
CLEAVE_MUST_USE cleave_status_t kernel_program_read(const char *text, size_t length,
                                                    kernel_program_t **out_program,
                                                    cleave_message_t *message);

#endif /* CLEAVE_TESTS_PROGRAM_READ_H */
