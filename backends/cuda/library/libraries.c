// SPDX-License-Identifier: Apache-2.0
// Opening by name. Libraries stay open: NVIDIA's do not stand being closed while their threads live.
#include "libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_NAMES = 4, MAX_PATH = 512 };

typedef struct symbol {
  const char *name;
  size_t offset; /* of the member, in the struct of the library */
} symbol_t;

#define DRIVER_SYMBOL(member, symbol, parameters) {#symbol, offsetof(cuda_driver_t, member)},
#define NVRTC_SYMBOL(result, member, symbol, parameters) {#symbol, offsetof(cuda_nvrtc_t, member)},
#define BLAS_SYMBOL(result, member, symbol, parameters) {#symbol, offsetof(cuda_blas_t, member)},
#define DNN_SYMBOL(result, member, symbol, parameters) {#symbol, offsetof(cuda_dnn_t, member)},
static const symbol_t driver_symbols[] = {CUDA_DRIVER_ENTRIES(DRIVER_SYMBOL){NULL, 0}};
static const symbol_t nvrtc_symbols[] = {CUDA_NVRTC_ENTRIES(NVRTC_SYMBOL){NULL, 0}};
static const symbol_t blas_symbols[] = {CUDA_BLAS_ENTRIES(BLAS_SYMBOL){NULL, 0}};
static const symbol_t dnn_symbols[] = {CUDA_DNN_ENTRIES(DNN_SYMBOL){NULL, 0}};

static const struct {
  const char *name;
  const char *files[MAX_NAMES]; /* the newest first */
  size_t member;                /* of cuda_libraries_t */
  const symbol_t *symbols;
} known[CUDA_LIBRARY_COUNT] = {
    {"libcuda", {"libcuda.so.1", "libcuda.so"}, offsetof(cuda_libraries_t, driver), driver_symbols},
    {"libnvrtc",
     {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"},
     offsetof(cuda_libraries_t, nvrtc),
     nvrtc_symbols},
    {"libcublasLt",
     {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"},
     offsetof(cuda_libraries_t, blas),
     blas_symbols},
    {"libcudnn",
     {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"},
     offsetof(cuda_libraries_t, dnn),
     dnn_symbols},
};

bool cuda_libraries_init(cuda_libraries_t *libraries) {
  memset(libraries, 0, sizeof *libraries);
  return pthread_mutex_init(&libraries->lock, NULL) == 0;
}

void cuda_libraries_deinit(cuda_libraries_t *libraries) {
  (void)pthread_mutex_destroy(&libraries->lock);
}

const char *cuda_library_name(cuda_library_id_t id) {
  return known[id].name;
}

static void *open_in(const char *folder, size_t length, cuda_library_id_t id) {
  char path[MAX_PATH];
  for (size_t k = 0; k < MAX_NAMES && known[id].files[k] != NULL; k++) {
    int written = length == 0
                      ? snprintf(path, sizeof path, "%s", known[id].files[k])
                      : snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, known[id].files[k]);
    void *handle = written > 0 && (size_t)written < sizeof path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (handle != NULL) {
      return handle;
    }
  }
  return NULL;
}

/* Folders beside those of the loader: in which alone to look (CLEAVE_CUDA_PATH), or where toolkits lie. */
enum { MAX_FOLDERS = 16 };
typedef struct folders {
  bool are_all; /* the loader is not asked */
  size_t count;
  char paths[MAX_FOLDERS][MAX_PATH];
} folders_t;

static void add_folders(folders_t *folders, const char *list, const char *behind) {
  for (const char *at = list; at != NULL && *at != '\0' && folders->count < MAX_FOLDERS;) {
    size_t length = strcspn(at, ":");
    int written = snprintf(folders->paths[folders->count], MAX_PATH, "%.*s%s", (int)length, at, behind);
    folders->count += length > 0 && written > 0 && written < MAX_PATH;
    at += length + (at[length] == ':');
  }
}

static void find_folders(folders_t *out_folders) {
  const char *wanted = getenv("CLEAVE_CUDA_PATH");
  out_folders->count = 0;
  out_folders->are_all = wanted != NULL && wanted[0] != '\0';
  if (out_folders->are_all) {
    add_folders(out_folders, wanted, "");
    return;
  }
  static const char *const behind[] = {"/lib64", "/lib"};
  for (size_t k = 0; k < sizeof behind / sizeof behind[0]; k++) {
    add_folders(out_folders, getenv("CUDA_PATH"), behind[k]);
    add_folders(out_folders, "/usr/local/cuda", behind[k]);
  }
}

static void *open_library(cuda_library_id_t id) {
  folders_t folders;
  find_folders(&folders);
  void *handle = folders.are_all ? NULL : open_in("", 0, id);
  for (size_t k = 0; handle == NULL && k < folders.count; k++) {
    handle = open_in(folders.paths[k], strlen(folders.paths[k]), id);
  }
  return handle;
}

static bool bind(cuda_libraries_t *libraries, cuda_library_id_t id) {
  cuda_library_t *library = &libraries->items[id];
  char *members = (char *)libraries + known[id].member;
  for (const symbol_t *symbol = known[id].symbols; symbol->name != NULL; symbol++) {
    void *found = dlsym(library->handle, symbol->name);
    if (found == NULL) {
      (void)snprintf(library->reason, sizeof library->reason, "%s is too old: it has no %s", known[id].name,
                     symbol->name);
      return false;
    }
    memcpy(members + symbol->offset, &found, sizeof found);
  }
  return true;
}

static void try_library(cuda_libraries_t *libraries, cuda_library_id_t id) {
  cuda_library_t *library = &libraries->items[id];
  library->was_tried = true;
  library->handle = open_library(id);
  if (library->handle == NULL) {
    size_t at =
        (size_t)snprintf(library->reason, sizeof library->reason, "%s was not found (", known[id].name);
    for (size_t k = 0; k < MAX_NAMES && known[id].files[k] != NULL && at < sizeof library->reason; k++) {
      at += (size_t)snprintf(library->reason + at, sizeof library->reason - at, "%s%s", k == 0 ? "" : ", ",
                             known[id].files[k]);
    }
    if (at < sizeof library->reason) {
      (void)snprintf(library->reason + at, sizeof library->reason - at, ")");
    }
  } else if (!bind(libraries, id)) {
    (void)dlclose(library->handle);
    library->handle = NULL;
  }
}

bool cuda_library_open(cuda_libraries_t *libraries, cuda_library_id_t id) {
  (void)pthread_mutex_lock(&libraries->lock);
  if (!libraries->items[id].was_tried) {
    try_library(libraries, id);
  }
  bool is_there = libraries->items[id].handle != NULL;
  (void)pthread_mutex_unlock(&libraries->lock);
  return is_there;
}

bool cuda_library_is_there(cuda_libraries_t *libraries, cuda_library_id_t id) {
  folders_t folders;
  find_folders(&folders);
  for (size_t k = 0; k < folders.count; k++) {
    for (size_t n = 0; n < MAX_NAMES && known[id].files[n] != NULL; n++) {
      char path[2 * MAX_PATH];
      (void)snprintf(path, sizeof path, "%s/%s", folders.paths[k], known[id].files[n]);
      if (access(path, R_OK) == 0) {
        return true;
      }
    }
  }
  return cuda_library_open(libraries, id);
}

const char *cuda_blas_status_text(int32_t status) {
  switch (status) {
    case 1: return "not initialised";
    case 3: return "out of memory";
    case 7: return "invalid value";
    case 8: return "architecture mismatch";
    case 13: return "execution failed";
    case 14: return "internal error";
    case 15: return "not supported";
    default: return "unknown status";
  }
}
