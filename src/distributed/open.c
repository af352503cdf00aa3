// SPDX-License-Identifier: Apache-2.0
// The library for MPI is loaded when a starter of MPI programs started this process: others do not pay for
// it, neither at their start nor by what has to be installed.
#include <dlfcn.h>
#include <stdlib.h>

#include "distributed/communicator.h"
#include "system/installed.h"

static const char LIBRARY[] = "cleave_mpi.so";
enum { PATH_SIZE = 4096 };

/* Variables of Open MPI, of MPICH and those that descend from it, and of starters by PMIx. */
static const char *const VARIABLES[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};

static const char *find_starter(void) {
  for (size_t k = 0; k < sizeof VARIABLES / sizeof VARIABLES[0]; k++) {
    if (getenv(VARIABLES[k]) != NULL) {
      return VARIABLES[k];
    }
  }
  return NULL;
}

typedef cleave_status_t (*open_t)(cleave_communicator_t **out_communicator, cleave_message_t *message);

/* The library stays loaded: MPI's threads and handlers at exit are its own. */
static cleave_status_t load(const char *path, open_t *out_open, cleave_error_t *error) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* parts of Open MPI look for symbols of others */
  void *symbol = handle == NULL ? NULL : dlsym(handle, "cleave_mpi_open");
  if (symbol == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "%s: %s", path, dlerror());
  }
  *(void **)out_open = symbol;
  return CLEAVE_OK;
}

cleave_status_t cleave_communicator_open(cleave_communicator_t **out_communicator, cleave_error_t *error) {
  char path[PATH_SIZE];
  cleave_message_t message = {.text = "MPI does not start"};
  open_t open = NULL;
  const char *starter = find_starter();
  *out_communicator = NULL;
  if (starter == NULL) {
    return CLEAVE_OK;
  }
  if (!cleave_installed_find(LIBRARY, path, sizeof path)) {
    return cleave_error_set(
        error, CLEAVE_ERROR_UNSUPPORTED,
        "this process is one of several that MPI started (%s is set), and cleave was built "
        "without MPI: no %s above the program or in %s",
        starter, LIBRARY, cleave_installed_folder());
  }
  CLEAVE_TRY(load(path, &open, error));
  cleave_status_t status = open(out_communicator, &message);
  message.text[sizeof message.text - 1] = '\0';
  return status == CLEAVE_OK ? CLEAVE_OK : cleave_error_set(error, status, "%s", message.text);
}

void cleave_communicator_close(cleave_communicator_t *communicator) {
  if (communicator != NULL) {
    communicator->close(communicator->self);
  }
}
