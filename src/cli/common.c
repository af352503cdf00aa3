// SPDX-License-Identifier: Apache-2.0
// --load PATH, or NAME=PATH where the library is to have another name than its own.
#include "cli/common.h"

#include <string.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "runtime/registry.h"

static cleave_text_list_t libraries;

const cleave_option_t cleave_common_options[] = {
    {"load", 0, CLEAVE_OPTION_LIST, "[NAME=]LIBRARY",
     "load an accelerator library; rule files name it as their backend, by its own name or by NAME; may be "
     "given many times. Libraries in the folders of CLEAVE_BACKEND_PATH are found by name",
     &libraries},
};
const size_t cleave_common_option_count = sizeof cleave_common_options / sizeof cleave_common_options[0];

static cleave_status_t load(const char *text, cleave_error_t *error) {
  size_t length = strcspn(text, "=/");
  if (text[length] != '=') {
    return cleave_registry_load(text, NULL, error);
  }
  char *name = cleave_copy_text(text, length);
  if (name == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_status_t status = cleave_registry_load(text + length + 1, name, error);
  cleave_free(name);
  return status;
}

int cleave_common_apply(void) {
  for (size_t k = 0; k < libraries.count; k++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    if (load(libraries.items[k], &error) != CLEAVE_OK) {
      return cleave_output_error(&error);
    }
  }
  return CLEAVE_EXIT_OK;
}

void cleave_common_free(void) {
  cleave_free((void *)libraries.items);
  libraries = (cleave_text_list_t){0};
}
