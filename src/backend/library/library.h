// SPDX-License-Identifier: Apache-2.0
/* Accelerator libraries as files: what is looked at before the code of a library runs, and opening it. */
#ifndef CLEAVE_BACKEND_LIBRARY_LIBRARY_H
#define CLEAVE_BACKEND_LIBRARY_LIBRARY_H

#include "base/containers/array.h"
#include "base/status.h"
#include "system/digest.h"

typedef struct cleave_library {
  void *handle; /* of dlopen */
  char *path;   /* absolute, links resolved */
  cleave_backend_entry_t enter;
} cleave_library_t;

/* Opens a shared library for this machine that exports CLEAVE_BACKEND_ENTRY_SYMBOL. Anything else is an error
 * that says what the file is: CLEAVE_ERROR_IO if it cannot be read, CLEAVE_ERROR_FORMAT if it is not
 * a library for this machine, CLEAVE_ERROR_BACKEND if it does not load or has no entry. */
CLEAVE_STATUS cleave_library_open(const char *path, cleave_library_t *out_library, cleave_error_t *error);
void cleave_library_close(cleave_library_t *library);

/* The part of it that runs no code: a regular file, a shared library for this machine, as long as its headers
 * say. A file that is cut off while it is read or loaded is outside of what can be found out. */
CLEAVE_STATUS cleave_library_check_file(const char *path, cleave_error_t *error);

/* Digest of the code and constants that are loaded from the same file as `function`: the same on every
 * machine and in every process that has loaded this build of it. The linker's own digest (its build ID)
 * stands for them if there is one, so that they need not be read. Zeros if it is not found. */
cleave_digest_t cleave_library_digest(void (*function)(void));

/* The digest of a file that this process has not loaded. Zeros if it cannot be read, or is not such a file.
 */
cleave_digest_t cleave_library_digest_file(const char *path);

/* Adds the build ID among these ELF notes; false if there is none, or one that is too short to be a digest.
 */
bool cleave_library_digest_notes(cleave_digest_state_t *state, const unsigned char *notes, size_t bytes,
                                 size_t align);

/* Paths of the files "*.so" in the folders of a list separated by ':' (NULL and "": none), folder by folder,
 * in the order of their names. Folders that cannot be read are left out. The caller frees each path. */
typedef CLEAVE_ARRAY(char *) cleave_path_list_t;
CLEAVE_STATUS cleave_library_list(const char *folders, cleave_path_list_t *paths, cleave_error_t *error);
/* Lists the folder "cleave/backends" that is installed beside libcleave or the program. */
CLEAVE_STATUS cleave_library_list_bundled(cleave_path_list_t *paths, cleave_error_t *error);

#endif /* CLEAVE_BACKEND_LIBRARY_LIBRARY_H */
