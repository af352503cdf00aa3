// SPDX-License-Identifier: Apache-2.0
/* Files: mapped read-only and shared by whatever points into them; written whole or not at all. */
#ifndef CLEAVE_SYSTEM_FILE_H
#define CLEAVE_SYSTEM_FILE_H

#include "base/memory.h"

/* A regular file in memory. `data` lives until the last release. A file that is truncated by somebody else
 * while it is mapped is outside of what can be defended: replace model files by renaming. */
typedef struct cleave_file cleave_file_t;

CLEAVE_STATUS cleave_file_open(const char *path, cleave_file_t **out_file, cleave_error_t *error);
/* Reads the content into memory, for small files that people edit while they are in use. At most
 * `limit` bytes; CLEAVE_ERROR_LIMIT beyond. */
CLEAVE_STATUS cleave_file_read(const char *path, size_t limit, cleave_file_t **out_file,
                               cleave_error_t *error);
/* Reads the file `name` below `folder` in the same way ("" is the current one). CLEAVE_ERROR_INVALID_ARGUMENT
 * if the name is absolute, has a part "..", or leads out of the folder through a symbolic link. */
CLEAVE_STATUS cleave_file_read_below(const char *folder, const char *name, size_t limit,
                                     cleave_file_t **out_file, cleave_error_t *error);
/* Maps the file `name` in the folder of the file `path`. With all links resolved it must lie below that
 * folder, or below the one in which the file `path` itself lies (a cache may keep files elsewhere, and link
 * to them). Errors as above. */
CLEAVE_STATUS cleave_file_open_beside(const char *path, const char *name, cleave_file_t **out_file,
                                      cleave_error_t *error);
cleave_file_t *cleave_file_retain(cleave_file_t *file);
void cleave_file_release(cleave_file_t *file);
/* Never NULL, also for an empty file. */
const unsigned char *cleave_file_data(const cleave_file_t *file);
size_t cleave_file_size(const cleave_file_t *file);
const char *cleave_file_path(const cleave_file_t *file);

/* Lets go of the memory behind [data, data + bytes) and of what was mapped around it, as far as it lies in
 * mapped files: it is read from them again when somebody looks at it. Other memory is left alone.
 * Thread-safe. */
void cleave_file_drop_pages(const void *data, size_t bytes);

/* Makes a folder; one that is there already is fine. */
CLEAVE_STATUS cleave_folder_make(const char *path, cleave_error_t *error);

/* The identity of a stretch of a mapped file, as long as nobody writes to the file. */
typedef struct cleave_file_identity {
  uint64_t device;
  uint64_t inode;
  uint64_t size;
  int64_t written_ns; /* since 1970 */
  int64_t changed_ns;
  uint64_t offset;
} cleave_file_identity_t;

/* False if the memory is not that of a file, or of one that was changed in the last two seconds before it was
 * opened: then it may change again within a tick of the clock. Thread-safe. */
bool cleave_file_identify(const void *data, size_t bytes, cleave_file_identity_t *out_identity);

/* Identifies a whole file that is open, as it is now. */
bool cleave_file_identify_open(int descriptor, cleave_file_identity_t *out_identity);

/* Writes beside the path and renames, so that readers see the old content or the new. A file that is replaced
 * keeps its mode, a new one has what the process's umask leaves; a symbolic link stays, and the file behind
 * it is replaced. */
CLEAVE_STATUS cleave_file_write(const char *path, const void *data, size_t length, cleave_error_t *error);

/* Writes content in parts, one after the other, in the same way. `lasts`: they are on the disk when the call
 * returns, under this name, so that losing power does not lose both contents. */
typedef struct cleave_file_part {
  const void *data;
  size_t size;
} cleave_file_part_t;
CLEAVE_STATUS cleave_file_write_parts(const char *path, const cleave_file_part_t *parts, size_t count,
                                      bool lasts, cleave_error_t *error);

/* Folder part of a path with its slash, or "" ; length through *out_length. Points into `path`. */
const char *cleave_path_folder(const char *path, size_t *out_length);
/* Last part of a path. Points into `path`. */
const char *cleave_path_name(const char *path);
/* Does the path end in `extension` (".onnx"), whatever the case? */
bool cleave_path_has_extension(const char *path, const char *extension);
/* Is the path relative, and without a part ".."? */
bool cleave_path_stays_below(const char *path);

#endif /* CLEAVE_SYSTEM_FILE_H */
