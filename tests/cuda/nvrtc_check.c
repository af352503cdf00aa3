// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "nvrtc_check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/library/nvrtc.h"

enum { MAX_OPTIONS = 8, FIRST_WITH_CACHE = 128 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_nvrtc_t real;

#define SYMBOL(result, member, symbol, parameters) {#symbol, offsetof(cuda_nvrtc_t, member)},
static const struct {
  const char *name;
  size_t offset;
} symbols[] = {CUDA_NVRTC_ENTRIES(SYMBOL)};

static bool open_library(const char *path) {
  void *library = real.create != NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  for (size_t k = 0; library != NULL && k < sizeof symbols / sizeof symbols[0]; k++) {
    void *found = dlsym(library, symbols[k].name);
    memcpy((char *)&real + symbols[k].offset, &found, sizeof found);
  }
  return real.create != NULL;
}

static bool compile(const char *text, int count, const char **options, const char *architecture,
                    char **out_log) {
  cuda_nvrtc_program_t program = NULL;
  size_t size = 0;
  options[count] = architecture;
  int32_t result = real.create(&program, text, "kernel.cu", 0, NULL, NULL);
  result = result == 0 ? real.compile(program, count + 1, options) : result;
  if (result != 0 && program != NULL && real.log_size(program, &size) == 0) {
    *out_log = calloc(1, size + 1);
    (void)real.log(program, *out_log);
  }
  if (program != NULL) {
    (void)real.destroy(&program);
  }
  return result == 0;
}

bool nvrtc_check(const char *text, int option_count, const char *const *options, char **out_log) {
  const char *path = getenv("CLEAVE_NVRTC_REAL");
  const char *own[MAX_OPTIONS + 2];
  int count = 0;
  bool is_older = false; /* NVRTC 13 begins with sm_75 */
  *out_log = NULL;
  if (path == NULL || path[0] == '\0') {
    return true;
  }
  for (int k = 0; k < option_count && count < MAX_OPTIONS; k++) {
    if (strncmp(options[k], "--gpu-architecture=", 19) != 0) {
      own[count++] = options[k];
    } else {
      is_older = strncmp(options[k] + 19, "sm_7", 4) == 0;
    }
  }
  (void)pthread_mutex_lock(&lock);
  bool is_fine = open_library(path);
  int major = 0;
  int minor = 0;
  if (is_fine && real.version(&major, &minor) == 0 && major * 10 + minor >= FIRST_WITH_CACHE) {
    own[count++] = "--no-cache"; /* it would ask libcuda, which is the stand-in, for what that lacks */
  }
  is_fine = is_fine && compile(text, count, own, "--gpu-architecture=sm_80", out_log) &&
            compile(text, count, own, "--gpu-architecture=sm_90", out_log) &&
            (!is_older || compile(text, count, own, "--gpu-architecture=sm_75", out_log));
  (void)pthread_mutex_unlock(&lock);
  return is_fine;
}
