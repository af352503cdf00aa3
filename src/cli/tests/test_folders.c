// SPDX-License-Identifier: Apache-2.0
/* A folder with a model is a test, and is not searched for others. */
#include "cli/tests/test_folders.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "system/file.h"

static bool is_folder(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static bool has_model(const char *folder) {
  char path[4096];
  struct stat found;
  int length = snprintf(path, sizeof path, "%s/model.onnx", folder);
  return length > 0 && (size_t)length < sizeof path && stat(path, &found) == 0;
}

static cleave_status_t find(cleave_paths_t *tests, const char *folder, const char *only, int depth,
                            cleave_error_t *error) {
  if (has_model(folder)) {
    bool is_wanted = only == NULL || strstr(cleave_path_name(folder), only) != NULL;
    return is_wanted ? cleave_paths_add(tests, folder, error) : CLEAVE_OK;
  }
  if (depth == 0) {
    return CLEAVE_OK;
  }
  cleave_paths_t entries = {0};
  cleave_status_t status = cleave_paths_list(&entries, folder, "", error);
  for (size_t k = 0; k < entries.count && status == CLEAVE_OK; k++) {
    status = is_folder(entries.items[k]) ? find(tests, entries.items[k], only, depth - 1, error) : CLEAVE_OK;
  }
  cleave_paths_deinit(&entries);
  return status;
}

cleave_status_t cleave_test_folders_find(cleave_paths_t *tests, const char *folder, const char *only,
                                         cleave_error_t *error) {
  return find(tests, folder, only, CLEAVE_PATHS_MAX_DEPTH, error);
}

cleave_status_t cleave_test_folders_sets(cleave_paths_t *sets, const char *test, cleave_error_t *error) {
  cleave_paths_t entries = {0};
  cleave_status_t status = cleave_paths_list(&entries, test, "test_data_set_", error);
  for (size_t k = 0; k < entries.count && status == CLEAVE_OK; k++) {
    status = is_folder(entries.items[k]) ? cleave_paths_add(sets, entries.items[k], error) : CLEAVE_OK;
  }
  cleave_paths_deinit(&entries);
  return status;
}
