// SPDX-License-Identifier: Apache-2.0
#include "cli/run/processes.h"

#include "cli/common/command.h"
#include "cli/common/output.h"
#include "system/threads.h"

int32_t cleave_processes_threads(const cleave_communicator_t *communicator, int64_t asked) {
  int32_t local = communicator == NULL ? 0 : communicator->local_count;
  if (asked > 0 || local < 2) {
    return (int32_t)asked;
  }
  int32_t share = cleave_threads_available() / local;
  return share > 0 ? share : 1;
}

bool cleave_processes_silent(const cleave_communicator_t *communicator) {
  return communicator != NULL && communicator->rank > 0;
}

int cleave_processes_fail(const cleave_communicator_t *communicator, bool is_shared,
                          const cleave_error_t *error) {
  if (communicator == NULL || is_shared) {
    return cleave_processes_silent(communicator) ? CLEAVE_EXIT_FAILURE : cleave_output_error(error);
  }
  cleave_error_t own = CLEAVE_ERROR_INIT;
  (void)cleave_error_set(&own, error->status, "process %d of %d: %s", (int)communicator->rank,
                         (int)communicator->count, error->message);
  int status = cleave_output_error(&own);
  communicator->abort(communicator->self, status);
  return status;
}
