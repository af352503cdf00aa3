// SPDX-License-Identifier: Apache-2.0
/* A path in a list is whole: entries whose path is too long are left out. */
#include "cli/tests/paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_PATH = 4096 };

cleave_status_t cleave_paths_add(cleave_paths_t *paths, const char *path, cleave_error_t *error) {
  CLEAVE_TRY(cleave_array_reserve(paths, 1, error));
  char *copy = cleave_copy_text(path, strlen(path));
  CLEAVE_TRY_MEMORY(copy, error);
  cleave_array_push_reserved(paths, copy);
  return CLEAVE_OK;
}

static int is_visible(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

cleave_status_t cleave_paths_list(cleave_paths_t *paths, const char *folder, const char *prefix,
                                  cleave_error_t *error) {
  struct dirent **entries = NULL;
  int count = scandir(folder, &entries, is_visible, compare_names);
  if (count < 0) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "%s: cannot be opened: %s", folder, strerror(errno));
  }
  cleave_status_t status = CLEAVE_OK;
  const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
  for (int k = 0; k < count; k++) {
    char path[MAX_PATH];
    int length = snprintf(path, sizeof path, "%s%s%s", folder, slash, entries[k]->d_name);
    if (status == CLEAVE_OK && length > 0 && length < MAX_PATH &&
        strncmp(entries[k]->d_name, prefix, strlen(prefix)) == 0) {
      status = cleave_paths_add(paths, path, error);
    }
    free(entries[k]);
  }
  free(entries);
  return status;
}

void cleave_paths_deinit(cleave_paths_t *paths) {
  for (size_t k = 0; k < paths->count; k++) {
    cleave_free(paths->items[k]);
  }
  cleave_array_free(paths);
}
