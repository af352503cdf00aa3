// SPDX-License-Identifier: Apache-2.0
// A build and an installation have the same folders below their roots, so that files are looked for in the
// folders above.
#define _GNU_SOURCE  // dladdr
#include "system/installed.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LEVELS = 4 }; /* folders up: lib/<machine>/libcleave.so, tests/<program> */

static bool is_there(const char *folder, const char *name, char *path, size_t size) {
  int length = snprintf(path, size, "%s/%s", folder, name);
  return length > 0 && (size_t)length < size && access(path, R_OK) == 0;
}

/* Looks in the folder of `file` and in those above. */
static bool find_above(const char *file, const char *name, char *path, size_t size) {
  char *folder = realpath(file, NULL);
  bool found = false;
  for (int level = 0; folder != NULL && level < MAX_LEVELS && !found; level++) {
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
      break;
    }
    *slash = '\0';
    char below[256];
    int length = snprintf(below, sizeof below, CLEAVE_LIBEXECDIR "/cleave/%s", name);
    found = length > 0 && (size_t)length < sizeof below && is_there(folder, below, path, size);
  }
  free(folder);
  return found;
}

bool cleave_installed_find(const char *name, char *path, size_t size) {
  static const char here = 0;
  Dl_info info;
  bool found = dladdr(&here, &info) != 0 && info.dli_fname != NULL && strchr(info.dli_fname, '/') != NULL &&
               find_above(info.dli_fname, name, path, size);
  return found || find_above("/proc/self/exe", name, path, size) ||
         is_there(CLEAVE_INSTALLED_FOLDER, name, path, size);
}

const char *cleave_installed_folder(void) {
  return CLEAVE_INSTALLED_FOLDER;
}
