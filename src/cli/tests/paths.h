// SPDX-License-Identifier: Apache-2.0
/* Lists of paths, which own their strings. */
#ifndef CLEAVE_CLI_FILES_PATHS_H
#define CLEAVE_CLI_FILES_PATHS_H

#include "base/containers/array.h"

enum { CLEAVE_PATHS_MAX_DEPTH = 16 };

typedef CLEAVE_ARRAY(char *) cleave_paths_t;

/* Appends a copy. */
CLEAVE_STATUS cleave_paths_add(cleave_paths_t *paths, const char *path, cleave_error_t *error);
/* Appends the visible entries of a folder whose names start with `prefix`, sorted by name. */
CLEAVE_STATUS cleave_paths_list(cleave_paths_t *paths, const char *folder, const char *prefix,
                                cleave_error_t *error);
void cleave_paths_deinit(cleave_paths_t *paths);

#endif /* CLEAVE_CLI_FILES_PATHS_H */
