// SPDX-License-Identifier: Apache-2.0
/*
 * A stand-in for libnvrtc, for tests: the system's compiler makes a shared library of the text, for this
 * machine (prelude.hpp), and its bytes are the cubin, which grid.h runs. Options are checked as NVRTC checks
 * them, as far as they are known here.
 *
 * Errors on demand, by the environment as it is when a call is made:
 *   CLEAVE_NVRTC_REAL=PATH      the real library compiles every text, too, for sm_80 and sm_90
 *   CLEAVE_NVRTC_EMPTY=1        kernels do nothing: all that counts is whether the real library compiles them
 *   CLEAVE_NVRTC_FAIL=create|compile|option|memory|internal[:N]   the call fails; with N, the Nth such call
 *                               alone
 *   CLEAVE_NVRTC_VERSION=12.8                                     what nvrtcVersion says; 13.0 else
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvrtc_check.h"

#define EXPORT __attribute__((visibility("default")))

typedef enum nvrtcResult {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_INTERNAL_ERROR = 11
} nvrtcResult;

typedef struct program {
  char *text;
  char *log;
  char *image;
  size_t image_bytes;
  bool has_cubin; /* a real architecture was asked for */
} * nvrtcProgram;

EXPORT const char *nvrtcGetErrorString(nvrtcResult result);
EXPORT nvrtcResult nvrtcVersion(int *major, int *minor);
EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name,
                                      int header_count, const char *const *headers, const char *const *names);
EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program);
EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count, const char *const *options);
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size);
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin);
EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size);
EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx);
EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size);
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log);
EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *count);
EXPORT nvrtcResult nvrtcGetSupportedArchs(int *architectures);

static const int architectures[] = {75, 80, 86, 89, 90, 100, 120};
enum { ARCHITECTURE_COUNT = sizeof architectures / sizeof architectures[0] };

/* ---- errors on demand ---- */

static bool fails_now(const char *what, int *calls) {
  const char *wanted = getenv("CLEAVE_NVRTC_FAIL");
  size_t length = strlen(what);
  ++*calls;
  if (wanted == NULL || strncmp(wanted, what, length) != 0 ||
      (wanted[length] != '\0' && wanted[length] != ':')) {
    return false;
  }
  return wanted[length] == '\0' || atoi(wanted + length + 1) == *calls;
}

const char *nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
    case NVRTC_SUCCESS: return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY: return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_PROGRAM_CREATION_FAILURE: return "NVRTC_ERROR_PROGRAM_CREATION_FAILURE";
    case NVRTC_ERROR_INVALID_INPUT: return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_ERROR_INVALID_PROGRAM: return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_INVALID_OPTION: return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_COMPILATION: return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_INTERNAL_ERROR: return "NVRTC_ERROR_INTERNAL_ERROR";
  }
  return "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcVersion(int *major, int *minor) {
  if (major == NULL || minor == NULL) {
    return NVRTC_ERROR_INVALID_INPUT;
  }
  *major = 13;
  *minor = 0;
  const char *wanted = getenv("CLEAVE_NVRTC_VERSION");
  if (wanted != NULL) {
    char *end = NULL;
    *major = (int)strtol(wanted, &end, 10);
    *minor = *end == '.' ? (int)strtol(end + 1, NULL, 10) : 0;
  }
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  *count = ARCHITECTURE_COUNT;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *out) {
  memcpy(out, architectures, sizeof architectures);
  return NVRTC_SUCCESS;
}

/* ---- programs ---- */

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name, int header_count,
                               const char *const *headers, const char *const *names) {
  static int calls;
  (void)name;
  (void)headers;
  (void)names;
  if (program == NULL || text == NULL || header_count != 0) {
    return NVRTC_ERROR_INVALID_INPUT;
  }
  if (fails_now("create", &calls)) {
    return NVRTC_ERROR_PROGRAM_CREATION_FAILURE;
  }
  *program = calloc(1, sizeof **program);
  if (*program != NULL) {
    (*program)->text = strdup(text);
    (*program)->log = strdup("");
  }
  return *program == NULL || (*program)->text == NULL ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  if (program == NULL || *program == NULL) {
    return NVRTC_ERROR_INVALID_PROGRAM;
  }
  free((*program)->text);
  free((*program)->log);
  free((*program)->image);
  free(*program);
  *program = NULL;
  return NVRTC_SUCCESS;
}

static void say(nvrtcProgram program, const char *text) {
  free(program->log);
  program->log = strdup(text);
}

static bool begins(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* sm_90, compute_80 and their like; *out_real: an architecture, not only an instruction set. */
static bool read_architecture(const char *text, bool *out_real) {
  *out_real = begins(text, "sm_");
  const char *number = *out_real ? text + 3 : begins(text, "compute_") ? text + 8 : NULL;
  for (int k = 0; number != NULL && k < ARCHITECTURE_COUNT; k++) {
    char known[16];
    snprintf(known, sizeof known, "%d", architectures[k]);
    size_t length = strlen(known);
    if (begins(number, known) && (number[length] == '\0' || strcmp(number + length, "a") == 0)) {
      return true;
    }
  }
  return false;
}

static nvrtcResult read_options(nvrtcProgram program, int count, const char *const *options) {
  static const char *const known[] = {"--std=",
                                      "-std=",
                                      "--use_fast_math",
                                      "-use_fast_math",
                                      "--fmad=",
                                      "-fmad=",
                                      "--minimal",
                                      "-minimal",
                                      "-default-device",
                                      "--device-as-default-execution-space",
                                      "-lineinfo",
                                      "--generate-line-info",
                                      "-D",
                                      "--ftz=",
                                      "--prec-div=",
                                      "--prec-sqrt=",
                                      "--extra-device-vectorization",
                                      "--restrict",
                                      "--split-compile=",
                                      "--no-cache"};
  char line[256];
  for (int k = 0; k < count; k++) {
    const char *option = options[k];
    const char *architecture = begins(option, "--gpu-architecture=") ? option + 19
                               : begins(option, "-arch=")            ? option + 6
                                                                     : NULL;
    bool is_known = architecture != NULL && read_architecture(architecture, &program->has_cubin);
    for (size_t n = 0; architecture == NULL && n < sizeof known / sizeof known[0]; n++) {
      size_t length = strlen(known[n]);
      bool is_open = known[n][length - 1] == '=' || strcmp(known[n], "-D") == 0;
      is_known = is_known || (is_open ? begins(option, known[n]) : strcmp(option, known[n]) == 0);
    }
    if (!is_known) {
      snprintf(line, sizeof line, "nvrtc: error: unrecognized option %s found\n", option);
      say(program, line);
      return NVRTC_ERROR_INVALID_OPTION;
    }
  }
  return NVRTC_SUCCESS;
}

/* ---- compiling ---- */

static bool is_empty(void) {
  const char *wanted = getenv("CLEAVE_NVRTC_EMPTY");
  return wanted != NULL && wanted[0] != '\0';
}

/* The text, and for each kernel a function that takes pointers to its arguments. */
static bool write_source(nvrtcProgram program, const char *path) {
  FILE *file = fopen(path, "w");
  if (file == NULL) {
    return false;
  }
  const bool empty = is_empty();
  if (!empty) {
    fprintf(file, "#line 1 \"kernel.cu\"\n%s\n#line 1 \"stand-in\"\n", program->text);
  }
  for (const char *at = strstr(program->text, "__global__"); at != NULL; at = strstr(at + 1, "__global__")) {
    const char *open = strchr(at, '(');
    const char *bounds = strstr(at, "__launch_bounds__");
    if (open != NULL && bounds != NULL && bounds < open) {
      open = strchr(strchr(open, ')') != NULL ? strchr(open, ')') : open, '(');
    }
    if (open == NULL) {
      break;
    }
    const char *end = open;
    while (end > at && end[-1] == ' ') {
      end--;
    }
    const char *begin = end;
    while (begin > at && (begin[-1] == '_' || (begin[-1] >= '0' && begin[-1] <= '9') ||
                          (begin[-1] >= 'a' && begin[-1] <= 'z') || (begin[-1] >= 'A' && begin[-1] <= 'Z'))) {
      begin--;
    }
    int length = (int)(end - begin);
    if (empty) {
      fprintf(file, "GRID_EXPORT void grid_call_%.*s(void **) {}\n", length, begin);
      fprintf(file, "GRID_EXPORT unsigned long grid_parameter_%.*s(unsigned) { return 0; }\n", length, begin);
      continue;
    }
    fprintf(file, "GRID_EXPORT void grid_call_%.*s(void **arguments) { grid_call(%.*s, arguments); }\n",
            length, begin, length, begin);
    fprintf(file,
            "GRID_EXPORT unsigned long grid_parameter_%.*s(unsigned k) { return grid_parameter(%.*s, k); }\n",
            length, begin, length, begin);
  }
  return fclose(file) == 0;
}

static char *read_file(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    return NULL;
  }
  char *bytes = NULL;
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  if (size >= 0 && fseek(file, 0, SEEK_SET) == 0) {
    bytes = calloc(1, (size_t)size + 1);
  }
  if (bytes != NULL && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
    free(bytes);
    bytes = NULL;
  }
  fclose(file);
  *out_size = bytes != NULL ? (size_t)size : 0;
  return bytes;
}

/* The compiler, with its messages in a file; what preloads a sanitizer into this process is not for it. */
static int run_compiler(const char *source, const char *library, const char *log) {
  const char *arguments[] = {STAND_IN_COMPILER,
                             "-x",
                             "c++",
                             "-std=c++17",
#ifdef STAND_IN_SANITIZE
                             "-O0", /* takes two thirds of the time to compile */
#else
                             "-O1",
#endif
                             "-w",
                             "-fPIC",
                             "-shared",
                             "-nostdlib", /* a linker that need not look into the library of C++ */
                             "-nostdinc",
                             "-nostdinc++",
                             "-fvisibility=hidden",
                             "-ffp-contract=off",
                             "-fno-exceptions",
                             "-Wl,-Bsymbolic",
                             "-include",
                             STAND_IN_PRELUDE,
#ifdef STAND_IN_SANITIZE
                             "-fsanitize=" STAND_IN_SANITIZE,
                             "-fno-sanitize-recover=all",
#endif
                             source,
                             "-o",
                             library,
                             "-lm",
                             "-lc",
                             "-lgcc",
                             NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  extern char **environ;
  pid_t child = 0;
  int status = -1;
  int failed =
      posix_spawnp(&child, STAND_IN_COMPILER, &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  while (failed == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return failed == 0 ? status : -1;
}

static nvrtcResult compile(nvrtcProgram program) {
  char folder[] = "/tmp/cleave_nvrtc_XXXXXX";
  char source[64];
  char library[64];
  char log[64];
  if (mkdtemp(folder) == NULL) {
    return NVRTC_ERROR_INTERNAL_ERROR;
  }
  snprintf(source, sizeof source, "%s/kernel.cu", folder);
  snprintf(library, sizeof library, "%s/kernel.so", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  nvrtcResult result = NVRTC_ERROR_INTERNAL_ERROR;
  if (write_source(program, source)) {
    result = run_compiler(source, library, log) == 0 ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
    size_t size = 0;
    char *text = read_file(log, &size);
    if (text != NULL) {
      free(program->log);
      program->log = text;
    }
  }
  if (result == NVRTC_SUCCESS) {
    free(program->image);
    program->image = read_file(library, &program->image_bytes);
    result = program->image != NULL ? NVRTC_SUCCESS : NVRTC_ERROR_INTERNAL_ERROR;
  }
  unlink(source);
  unlink(library);
  unlink(log);
  rmdir(folder);
  return result;
}

/* Kernels that do nothing are the same if their names are: they are compiled once. */
static nvrtcResult compile_empty(nvrtcProgram program) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static struct program kept;
  static const char *const only = "cleave_kernel("; /* whatever has one kernel, of this name */
  const char *first = strstr(program->text, "__global__");
  bool is_usual = first != NULL && strstr(first + 1, "__global__") == NULL && strstr(first, only) != NULL;
  if (!is_usual) {
    return compile(program);
  }
  (void)pthread_mutex_lock(&lock);
  nvrtcResult result = NVRTC_SUCCESS;
  if (kept.image == NULL) {
    kept.text = program->text;
    result = compile(&kept);
    kept.text = NULL;
  }
  if (result == NVRTC_SUCCESS) {
    free(program->image);
    program->image = malloc(kept.image_bytes);
    program->image_bytes = kept.image_bytes;
    result = program->image == NULL ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_SUCCESS;
  }
  if (result == NVRTC_SUCCESS) {
    memcpy(program->image, kept.image, kept.image_bytes);
  }
  (void)pthread_mutex_unlock(&lock);
  return result;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count, const char *const *options) {
  static int compiles;
  static int checks;
  static int allocations;
  static int failures;
  if (program == NULL) {
    return NVRTC_ERROR_INVALID_PROGRAM;
  }
  program->has_cubin = false;
  if (fails_now("memory", &allocations)) {
    return NVRTC_ERROR_OUT_OF_MEMORY;
  }
  if (fails_now("internal", &failures)) {
    return NVRTC_ERROR_INTERNAL_ERROR;
  }
  if (fails_now("option", &checks)) {
    say(program, "nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
    return NVRTC_ERROR_INVALID_OPTION;
  }
  if (fails_now("compile", &compiles)) {
    say(program,
        "kernel.cu(1): error: this is a failure on demand\n\n1 error detected in the compilation of "
        "\"kernel.cu\".\n");
    return NVRTC_ERROR_COMPILATION;
  }
  char *log = NULL;
  if (!nvrtc_check(program->text, option_count, options, &log)) {
    say(program, log == NULL ? "error: the real NVRTC cannot be opened\n" : log);
    free(log);
    return NVRTC_ERROR_COMPILATION;
  }
  nvrtcResult result = read_options(program, option_count, options);
  if (result != NVRTC_SUCCESS) {
    return result;
  }
  return is_empty() ? compile_empty(program) : compile(program);
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size) {
  if (program == NULL || program->image == NULL) {
    return NVRTC_ERROR_INVALID_PROGRAM;
  }
  *size = program->has_cubin ? program->image_bytes : 0;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin) {
  if (program == NULL || program->image == NULL || !program->has_cubin) {
    return NVRTC_ERROR_INVALID_PROGRAM;
  }
  memcpy(cubin, program->image, program->image_bytes);
  return NVRTC_SUCCESS;
}

/* What a driver would compile for its device: the same bytes. */
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size) {
  if (program == NULL || program->image == NULL) {
    return NVRTC_ERROR_INVALID_PROGRAM;
  }
  *size = program->image_bytes;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx) {
  if (program == NULL || program->image == NULL) {
    return NVRTC_ERROR_INVALID_PROGRAM;
  }
  memcpy(ptx, program->image, program->image_bytes);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size) {
  if (program == NULL || program->log == NULL) {
    return NVRTC_ERROR_INVALID_PROGRAM;
  }
  *size = strlen(program->log) + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) {
  if (program == NULL || program->log == NULL) {
    return NVRTC_ERROR_INVALID_PROGRAM;
  }
  memcpy(log, program->log, strlen(program->log) + 1);
  return NVRTC_SUCCESS;
}
