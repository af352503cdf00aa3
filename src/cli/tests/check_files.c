// SPDX-License-Identifier: Apache-2.0
// Folders into the rule files below them. Hidden folders and links to folders are left out, so that this
// ends; a file that cannot be read counts as a rule file, so that checking it says why.
#include "cli/tests/check_files.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "system/file.h"

enum { MAX_TEXT = 4 << 20 };

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

static cleave_status_t add_folder(cleave_paths_t *files, const char *folder, int depth,
                                  cleave_error_t *error) {
  if (depth == 0) {
    return CLEAVE_OK;
  }
  cleave_paths_t entries = {0};
  cleave_status_t status = cleave_paths_list(&entries, folder, "", error);
  for (size_t k = 0; k < entries.count && status == CLEAVE_OK; k++) {
    const char *path = entries.items[k];
    struct stat found;
    if (lstat(path, &found) != 0) {
      continue;
    }
    if (S_ISDIR(found.st_mode)) {
      status = add_folder(files, path, depth - 1, error);
    } else if (cleave_path_has_extension(path, ".lua") && is_rule_file(path)) {
      status = cleave_paths_add(files, path, error);
    }
  }
  cleave_paths_deinit(&entries);
  return status;
}

cleave_status_t cleave_check_files_list(const cleave_text_list_t *operands, cleave_paths_t *out_files,
                                        cleave_error_t *error) {
  *out_files = (cleave_paths_t){0};
  for (size_t k = 0; k < operands->count; k++) {
    const char *path = operands->items[k];
    struct stat found;
    size_t before = out_files->count;
    if (path[0] == '\0' || stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) {
      CLEAVE_TRY(cleave_paths_add(out_files, path, error));
      continue;
    }
    CLEAVE_TRY(add_folder(out_files, path, CLEAVE_PATHS_MAX_DEPTH, error));
    if (out_files->count == before) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "%s: no rule file in this folder (*.lua that returns a ruleset)", path);
    }
  }
  return CLEAVE_OK;
}
