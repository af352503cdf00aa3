// SPDX-License-Identifier: Apache-2.0
/*
 * Programs as text, for people and tests: README.md has the grammar. Printing a program and reading it again
 * gives the same program; text from anywhere is read safely.
 */
#ifndef CLEAVE_KERNELS_TEXT_H
#define CLEAVE_KERNELS_TEXT_H

#include "program.h"

/* Writes the text with its NUL, at most `size` bytes of it; returns the length that all of it has. */
size_t kernel_program_print(const kernel_program_t *program, char *text, size_t size);

/* CLEAVE_ERROR_FORMAT, the line, what was expected and what was found, if the text is not a program. */
CLEAVE_MUST_USE cleave_status_t kernel_program_read(const char *text, size_t length,
                                                    kernel_program_t **out_program,
                                                    cleave_message_t *message);

#endif /* CLEAVE_KERNELS_TEXT_H */
