// SPDX-License-Identifier: Apache-2.0
// cleave version: what this program is made of.

#include "backend/registry/registry.h"
#include "cli/common/arguments.h"
#include "cli/common/command.h"
#include "cli/common/common.h"
#include "cli/common/output.h"

static int run(cleave_arguments_t *arguments) {
  int status = CLEAVE_EXIT_OK;
  if (cleave_arguments_parse(arguments, NULL, 0, &status)) {
    cleave_print("cleave %s\n", cleave_version());
    for (uint32_t k = 0; k < cleave_registry_count(cleave_common_context()); k++) {
      const cleave_backend_handle_t *handle = NULL;
      cleave_error_t error = CLEAVE_ERROR_INIT;
      if (cleave_registry_find(cleave_common_context(), cleave_registry_name(cleave_common_context(), k),
                               &handle, &error) == CLEAVE_OK) {
        cleave_print("  %-10s %s (%s)\n", handle->backend->name, handle->backend->description,
                     handle->backend->version);
      } else {
        cleave_print("  %-10s not usable: %s\n", cleave_registry_name(cleave_common_context(), k),
                     error.message);
      }
    }
  }
  return status;
}

CLEAVE_COMMAND_DEFINE(version, 90, NULL, run, "print versions of the program and its backends",
                      "Prints the version, and the backends with theirs.")
