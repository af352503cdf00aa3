// SPDX-License-Identifier: Apache-2.0
/* Programs as text, for people and tests: README.md has the grammar. */
#ifndef CLEAVE_KERNELS_TEXT_H
#define CLEAVE_KERNELS_TEXT_H

#include "program.h"

/* Writes the text with its NUL, at most `size` bytes of it; returns the length that all of it has. */
size_t kernel_program_print(const kernel_program_t *program, char *text, size_t size);

#endif /* CLEAVE_KERNELS_TEXT_H */
