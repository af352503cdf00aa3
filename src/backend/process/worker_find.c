// SPDX-License-Identifier: Apache-2.0
#include "backend/process/worker_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "system/installed.h"

static const char WORKER[] = "cleave_worker";

cleave_status_t cleave_worker_find(char *path, size_t size, cleave_error_t *error) {
  const char *given = getenv("CLEAVE_WORKER");
  if (given != NULL && given[0] != '\0') {
    int length = snprintf(path, size, "%s", given);
    bool is_there = length > 0 && (size_t)length < size && access(path, X_OK) == 0;
    return is_there ? CLEAVE_OK
                    : cleave_error_set(error, CLEAVE_ERROR_IO, "%s: no program (from CLEAVE_WORKER)", given);
  }
  if (cleave_installed_find(WORKER, path, size) && access(path, X_OK) == 0) {
    return CLEAVE_OK;
  }
  return cleave_error_set(error, CLEAVE_ERROR_IO,
                          "no program for isolated libraries: looked for '" CLEAVE_LIBEXECDIR
                          "/cleave/%s' above the program and at %s; set CLEAVE_WORKER to its path",
                          WORKER, cleave_installed_folder());
}
