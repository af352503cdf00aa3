// SPDX-License-Identifier: Apache-2.0
#include "cuda_case.h"

#include <dlfcn.h>

#include "grid.h"
#include "kernels/cuda/phases.h"
#include "kernels/execute/space.h"
#include "unit.h"

typedef struct program *nvrtc_program_t;

typedef struct nvrtc {
  int (*create)(nvrtc_program_t *program, const char *text, const char *name, int header_count,
                const char *const *headers, const char *const *names);
  int (*destroy)(nvrtc_program_t *program);
  int (*compile)(nvrtc_program_t program, int option_count, const char *const *options);
  int (*cubin_size)(nvrtc_program_t program, size_t *size);
  int (*cubin)(nvrtc_program_t program, char *cubin);
  int (*log_size)(nvrtc_program_t program, size_t *size);
  int (*log)(nvrtc_program_t program, char *log);
} nvrtc_t;

static bool bind(void *library, nvrtc_t *out) {
  struct {
    const char *name;
    void *to;
  } symbols[] = {{"nvrtcCreateProgram", &out->create},   {"nvrtcDestroyProgram", &out->destroy},
                 {"nvrtcCompileProgram", &out->compile}, {"nvrtcGetCUBINSize", &out->cubin_size},
                 {"nvrtcGetCUBIN", &out->cubin},         {"nvrtcGetProgramLogSize", &out->log_size},
                 {"nvrtcGetProgramLog", &out->log}};
  for (size_t k = 0; k < sizeof symbols / sizeof symbols[0]; k++) {
    void *found = dlsym(library, symbols[k].name);
    if (found == NULL) {
      return false;
    }
    memcpy(symbols[k].to, &found, sizeof found);
  }
  return true;
}

static const nvrtc_t *stand_in(void) {
  static nvrtc_t self;
  if (self.create == NULL) {
    void *library = dlopen(CLEAVE_BINARY_DIR "/tests/cuda/libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL && bind(library, &self), "%s", dlerror());
  }
  return &self;
}

/* Compiles; the cubin is the caller's. */
static char *compile(const nvrtc_t *nvrtc, const char *text, const kernel_cuda_variant_t *variant,
                     const char *architecture) {
  char target[64];
  const char *const options[] = {"--std=c++17", target, "--use_fast_math"};
  snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
  nvrtc_program_t program = NULL;
  ck_assert_int_eq(nvrtc->create(&program, text, "kernel.cu", 0, NULL, NULL), 0);
  int result = nvrtc->compile(program, variant->fast_math != 0 ? 3 : 2, options);
  if (result != 0) {
    size_t size = 0;
    nvrtc->log_size(program, &size);
    char *log = calloc(1, size + 1);
    nvrtc->log(program, log);
    ck_abort_msg("NVRTC error %d for %s:\n%s\n%s", result, architecture, log, text);
  }
  size_t size = 0;
  ck_assert_int_eq(nvrtc->cubin_size(program, &size), 0);
  ck_assert_uint_gt(size, 0);
  char *cubin = malloc(size);
  ck_assert_int_eq(nvrtc->cubin(program, cubin), 0);
  nvrtc->destroy(&program);
  return cubin;
}

void cuda_case_prepare(const kernel_cuda_t *kernel, const kernel_tensor_t *inputs, void *const *outputs,
                       kernel_cuda_launch_t *out_launch) {
  cleave_message_t message = {0};
  int64_t dims[CLEAVE_MAX_RANK];
  ck_assert_msg(kernel_program_space(&kernel->program, inputs, dims, &message) == CLEAVE_OK, "%s",
                message.text);
  const kernel_cuda_call_t call = {.inputs = inputs, .outputs = outputs, .dims = dims};
  ck_assert_msg(kernel_cuda_prepare(kernel, &call, out_launch, &message) == CLEAVE_OK, "%s", message.text);
}

/* Kernels of this process; their modules stay loaded until it ends. */
typedef struct compiled {
  char *text;
  grid_module_t *module;
  const grid_kernel_t *kernel;
  struct compiled *next;
} compiled_t;

static const grid_kernel_t *find_kernel(const kernel_cuda_t *kernel, const kernel_cuda_variant_t *variant) {
  static compiled_t *all;
  cleave_message_t message;
  char *text = NULL;
  char reason[GRID_MESSAGE_BYTES];
  ck_assert_int_eq(kernel_cuda_text(kernel, variant, "a test", &text, &message), CLEAVE_OK);
  for (compiled_t *at = all; at != NULL; at = at->next) {
    if (strcmp(at->text, text) == 0) {
      free(text);
      return at->kernel;
    }
  }
  char *image = compile(stand_in(), text, variant, "sm_90");
  grid_module_t *module = grid_module_load(image, reason);
  ck_assert_msg(module != NULL, "%s", reason);
  free(image);
  compiled_t *fresh = malloc(sizeof *fresh);
  *fresh = (compiled_t){
      .text = text, .module = module, .kernel = grid_module_kernel(module, KERNEL_CUDA_ENTRY), .next = all};
  ck_assert_ptr_nonnull(fresh->kernel);
  all = fresh;
  return fresh->kernel;
}

void cuda_case_run(const kernel_program_t *program, const kernel_tensor_t *inputs, void *const *outputs) {
  cleave_message_t message = {0};
  char reason[GRID_MESSAGE_BYTES];
  kernel_cuda_t *kernel = NULL;
  kernel_cuda_launch_t launch;
  ck_assert_int_eq(kernel_cuda_create(program, false, &kernel, &message), CLEAVE_OK);
  cuda_case_prepare(kernel, inputs, outputs, &launch);
  if (launch.grid > 0) {
    const uint32_t grid[3] = {launch.grid, 1, 1};
    const uint32_t block[3] = {launch.block, 1, 1};
    void *arguments[] = {launch.arguments};
    const grid_kernel_t *found = find_kernel(kernel, &launch.variant);
    ck_assert_msg(grid_run(found, grid, block, arguments, reason) == 0, "%s", reason);
  }
  kernel_cuda_destroy(kernel);
}
