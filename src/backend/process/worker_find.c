// SPDX-License-Identifier: Apache-2.0
// The worker program is looked for above the file that this code is in, libcleave or a program that it is
// linked into, and above the program that runs: both are folders of a build or of an installation.
#define _GNU_SOURCE  // dladdr
#include "backend/process/worker_find.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKER CLEAVE_LIBEXECDIR "/cleave/cleave_worker"

enum { MAX_LEVELS = 4 }; /* folders up: lib/<machine>/libcleave.so, tests/<program> */

/* Looks in the folder of `file` and in those above. */
static bool find_above(const char *file, char *path, size_t size) {
  char *folder = realpath(file, NULL);
  bool found = false;
  for (int level = 0; folder != NULL && level < MAX_LEVELS && !found; level++) {
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
      break;
    }
    *slash = '\0';
    int length = snprintf(path, size, "%s/%s", folder, WORKER);
    found = length > 0 && (size_t)length < size && access(path, X_OK) == 0;
  }
  free(folder);
  return found;
}

cleave_status_t cleave_worker_find(char *path, size_t size, cleave_error_t *error) {
  static const char here = 0;
  const char *given = getenv("CLEAVE_WORKER");
  if (given != NULL && given[0] != '\0') {
    int length = snprintf(path, size, "%s", given);
    bool is_there = length > 0 && (size_t)length < size && access(path, X_OK) == 0;
    return is_there ? CLEAVE_OK
                    : cleave_error_set(error, CLEAVE_ERROR_IO, "%s: no program (from CLEAVE_WORKER)", given);
  }
  Dl_info info;
  if ((dladdr(&here, &info) != 0 && info.dli_fname != NULL && strchr(info.dli_fname, '/') != NULL &&
       find_above(info.dli_fname, path, size)) ||
      find_above("/proc/self/exe", path, size)) {
    return CLEAVE_OK;
  }
  int length = snprintf(path, size, "%s", CLEAVE_WORKER_INSTALLED);
  if (length > 0 && (size_t)length < size && access(path, X_OK) == 0) {
    return CLEAVE_OK;
  }
  return cleave_error_set(error, CLEAVE_ERROR_IO,
                          "no program for isolated libraries: looked for '" WORKER
                          "' above the program and at %s; set CLEAVE_WORKER to its path",
                          CLEAVE_WORKER_INSTALLED);
}
