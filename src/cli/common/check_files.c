// SPDX-License-Identifier: Apache-2.0
// Folders into the rule files below them. Hidden folders and links to folders are left out, so that this
// ends; a file that cannot be read counts as a rule file, so that checking it says why.
#include "cli/common/check_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "system/file.h"

enum { MAX_DEPTH = 16, MAX_PATH = 4096, MAX_TEXT = 4 << 20 };

static cleave_status_t add(cleave_check_files_t *files, const char *path, cleave_error_t *error) {
  char *copy = cleave_copy_text(path, strlen(path));
  cleave_status_t status =
      copy == NULL ? cleave_error_out_of_memory(error) : cleave_array_reserve(&files->paths, 1, error);
  if (status != CLEAVE_OK) {
    cleave_free(copy);
    return status;
  }
  cleave_array_push_reserved(&files->paths, copy);
  return CLEAVE_OK;
}

static bool is_word_character(char c) {
  return c == '_' || isalnum((unsigned char)c) != 0;
}

/* Does the text have the word `ruleset`, not behind a "--" of its line? */
static bool has_ruleset(const char *text, size_t length) {
  static const char WORD[] = "ruleset";
  size_t size = sizeof WORD - 1;
  bool is_comment = false;
  for (size_t k = 0; k + size <= length; k++) {
    is_comment = text[k] != '\n' && (is_comment || (text[k] == '-' && text[k + 1] == '-'));
    if (!is_comment && memcmp(text + k, WORD, size) == 0 && (k == 0 || !is_word_character(text[k - 1])) &&
        (k + size == length || !is_word_character(text[k + size]))) {
      return true;
    }
  }
  return false;
}

static bool is_rule_file(const char *path) {
  cleave_file_t *file = NULL;
  if (cleave_file_read(path, MAX_TEXT, &file, NULL) != CLEAVE_OK) {
    return true;
  }
  bool found = has_ruleset((const char *)cleave_file_data(file), cleave_file_size(file));
  cleave_file_release(file);
  return found;
}

static int is_visible(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static cleave_status_t add_folder(cleave_check_files_t *files, const char *folder, int depth,
                                  cleave_error_t *error) {
  struct dirent **entries = NULL;
  int count = depth < MAX_DEPTH ? scandir(folder, &entries, is_visible, compare_names) : 0;
  if (count < 0) {
    return cleave_error_set(error, CLEAVE_ERROR_IO, "%s: cannot be opened: %s", folder, strerror(errno));
  }
  cleave_status_t status = CLEAVE_OK;
  for (int k = 0; k < count; k++) {
    char path[MAX_PATH];
    struct stat found;
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    int length = snprintf(path, sizeof path, "%s%s%s", folder, slash, entries[k]->d_name);
    free(entries[k]);
    if (status != CLEAVE_OK || length < 0 || length >= MAX_PATH || lstat(path, &found) != 0) {
      continue;
    }
    if (S_ISDIR(found.st_mode)) {
      status = add_folder(files, path, depth + 1, error);
    } else if (cleave_path_has_extension(path, ".lua") && is_rule_file(path)) {
      status = add(files, path, error);
    }
  }
  free(entries);
  return status;
}

cleave_status_t cleave_check_files_list(const cleave_text_list_t *operands, cleave_check_files_t *out_files,
                                        cleave_error_t *error) {
  *out_files = (cleave_check_files_t){0};
  for (size_t k = 0; k < operands->count; k++) {
    const char *path = operands->items[k];
    struct stat found;
    size_t before = out_files->paths.count;
    if (path[0] == '\0' || stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) {
      CLEAVE_TRY(add(out_files, path, error));
      continue;
    }
    CLEAVE_TRY(add_folder(out_files, path, 0, error));
    if (out_files->paths.count == before) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "%s: no rule file in this folder (*.lua that returns a ruleset)", path);
    }
  }
  return CLEAVE_OK;
}

void cleave_check_files_deinit(cleave_check_files_t *files) {
  for (size_t k = 0; k < files->paths.count; k++) {
    cleave_free(files->paths.items[k]);
  }
  cleave_array_free(&files->paths);
}
