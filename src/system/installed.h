// SPDX-License-Identifier: Apache-2.0
/* Files of cleave's own that are installed beside it, or lie in the same build. */
#ifndef CLEAVE_SYSTEM_INSTALLED_H
#define CLEAVE_SYSTEM_INSTALLED_H

#include <stdbool.h>
#include <stddef.h>

/* The path of <libexec>/cleave/NAME, looked for above the file that this code is in, libcleave or a program
 * that it is linked into, above the program that runs, and where it was to be installed. False: it is not
 * there, or its path is longer. */
bool cleave_installed_find(const char *name, char *path, size_t size);

/* The folder where it was to be installed, for messages. */
const char *cleave_installed_folder(void);

#endif /* CLEAVE_SYSTEM_INSTALLED_H */
