// SPDX-License-Identifier: Apache-2.0
/* Files of the folder of compiled regions: opened only if nobody else can have written them. */
#ifndef CLEAVE_BACKEND_BLOB_BLOB_OWN_H
#define CLEAVE_BACKEND_BLOB_BLOB_OWN_H

#include "base/memory.h"

/* Opens it if it is a regular file of this user (or root) that nobody else can write; links are not followed,
 * and pipes not waited for. *out_exists: there is something of this name. Without it, the error is empty. */
CLEAVE_STATUS cleave_blob_open_own(const char *path, int *out_descriptor, uint64_t *out_size,
                                   bool *out_exists, cleave_error_t *error);

/* `size` bytes from where the descriptor is; an error if there are fewer. */
CLEAVE_STATUS cleave_blob_read_all(int descriptor, void *memory, size_t size, cleave_error_t *error);

/* May the process write files of this size? Past its limit a write would end it with a signal. */
bool cleave_blob_fits_process(uint64_t bytes);

/* The path of a file beside others in `folder`, under a name that no other writer has, in this process or
 * another one: CLEAVE_BLOB_TEMPORARY and more. NULL without memory; free with cleave_free. */
#define CLEAVE_BLOB_TEMPORARY ".writing-"
char *cleave_blob_temporary_path(const char *folder);

#endif /* CLEAVE_BACKEND_BLOB_BLOB_OWN_H */
