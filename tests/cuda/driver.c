// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcuda, for tests: devices, contexts, memory, copies, modules and launches. Kernels are
// those of the stand-in of NVRTC, run by grid.c. Signatures are those of the driver, with the types of the
// backend's header.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "stand_in.h"

enum { MAX_CONTEXTS = 16, MAX_PARAMETERS = 64 };

struct CUctx_st {
  int32_t device;
  unsigned users;
};

struct CUmod_st {
  grid_module_t *module;
  int32_t device;
};

static struct CUctx_st contexts[STAND_IN_MAX_DEVICES];
static bool is_initialised;
static _Thread_local cuda_context_t stack[MAX_CONTEXTS];
static _Thread_local int depth;

int32_t stand_in_device(void) {
  return depth > 0 ? stack[depth - 1]->device : -1;
}

static int device_count(void) {
  long count = stand_in_number("CLEAVE_CUDA_DEVICES", 1);
  return count < 0 ? 0 : count > STAND_IN_MAX_DEVICES ? STAND_IN_MAX_DEVICES : (int)count;
}

/* Declares and begins an entry point. */
#define ENTRY(name, ...)                           \
  STAND_IN_EXPORT cuda_result_t name(__VA_ARGS__); \
  cuda_result_t name(__VA_ARGS__)
#define ENTER(name)                       \
  int32_t result = stand_in_enter(#name); \
  if (result != CUDA_SUCCESS_) {          \
    return stand_in_leave(result);        \
  }
#define ENTER_CONTEXT(name)                      \
  ENTER(name)                                    \
  if (stand_in_device() < 0) {                   \
    return stand_in_leave(CUDA_INVALID_CONTEXT); \
  }

/* ---- devices ---- */

ENTRY(cuInit, unsigned flags) {
  ENTER(cuInit)
  is_initialised = true;
  return stand_in_leave(flags != 0            ? CUDA_INVALID_VALUE
                        : device_count() == 0 ? CUDA_NO_DEVICE
                                              : CUDA_SUCCESS_);
}

ENTRY(cuDriverGetVersion, int *version) {
  ENTER(cuDriverGetVersion)
  *version = (int)stand_in_number("CLEAVE_CUDA_DRIVER", 13000);
  return stand_in_leave(CUDA_SUCCESS_);
}

static const struct {
  int32_t result;
  const char *name;
  const char *text;
} errors[] = {{0, "CUDA_SUCCESS", "no error"},
              {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
              {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
              {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
              {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
              {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
              {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
              {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
              {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
              {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
              {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}};

static int32_t find_error(cuda_result_t wanted, bool wants_name, const char **out_text) {
  for (size_t k = 0; k < sizeof errors / sizeof errors[0]; k++) {
    if (errors[k].result == wanted) {
      *out_text = wants_name ? errors[k].name : errors[k].text;
      return CUDA_SUCCESS_;
    }
  }
  *out_text = NULL;
  return CUDA_INVALID_VALUE;
}

ENTRY(cuGetErrorName, cuda_result_t error, const char **name) {
  return find_error(error, true, name);
}

ENTRY(cuGetErrorString, cuda_result_t error, const char **text) {
  return find_error(error, false, text);
}

ENTRY(cuDeviceGetCount, int *count) {
  ENTER(cuDeviceGetCount)
  *count = device_count();
  return stand_in_leave(is_initialised ? CUDA_SUCCESS_ : CUDA_NOT_INITIALIZED);
}

ENTRY(cuDeviceGet, cuda_device_t *device, int number) {
  ENTER(cuDeviceGet)
  *device = number;
  return stand_in_leave(number >= 0 && number < device_count() ? CUDA_SUCCESS_ : CUDA_INVALID_DEVICE);
}

ENTRY(cuDeviceGetName, char *name, int size, cuda_device_t device) {
  ENTER(cuDeviceGetName)
  (void)snprintf(name, (size_t)size, "Stand-in %d", (int)device);
  return stand_in_leave(CUDA_SUCCESS_);
}

ENTRY(cuDeviceGetAttribute, int *value, int attribute, cuda_device_t device) {
  ENTER(cuDeviceGetAttribute)
  int capability = (int)stand_in_number("CLEAVE_CUDA_CAPABILITY", 90);
  (void)device;
  *value = attribute == CUDA_ATTRIBUTE_CAPABILITY_MAJOR   ? capability / 10
           : attribute == CUDA_ATTRIBUTE_CAPABILITY_MINOR ? capability % 10
                                                          : 4;
  return stand_in_leave(CUDA_SUCCESS_);
}

ENTRY(cuDeviceTotalMem_v2, size_t *bytes, cuda_device_t device) {
  ENTER(cuDeviceTotalMem_v2)
  (void)device;
  *bytes = (size_t)stand_in_number("CLEAVE_CUDA_MEMORY", 1L << 34);
  return stand_in_leave(CUDA_SUCCESS_);
}

/* ---- contexts ---- */

ENTRY(cuDevicePrimaryCtxRetain, cuda_context_t *context, cuda_device_t device) {
  ENTER(cuDevicePrimaryCtxRetain)
  contexts[device].device = device;
  contexts[device].users++;
  *context = &contexts[device];
  return stand_in_leave(CUDA_SUCCESS_);
}

ENTRY(cuDevicePrimaryCtxRelease_v2, cuda_device_t device) {
  (void)stand_in_enter("cuDevicePrimaryCtxRelease_v2");
  bool is_held = contexts[device].users > 0;
  contexts[device].users -= is_held;
  return stand_in_leave(is_held ? CUDA_SUCCESS_ : CUDA_INVALID_CONTEXT);
}

ENTRY(cuCtxPushCurrent_v2, cuda_context_t context) {
  if (context == NULL || context->users == 0 || depth >= MAX_CONTEXTS) {
    return CUDA_INVALID_CONTEXT;
  }
  stack[depth++] = context;
  return CUDA_SUCCESS_;
}

ENTRY(cuCtxPopCurrent_v2, cuda_context_t *context) {
  if (depth == 0) {
    return CUDA_INVALID_CONTEXT;
  }
  *context = stack[--depth];
  return CUDA_SUCCESS_;
}

/* ---- memory ---- */

ENTRY(cuMemAlloc_v2, cuda_address_t *address, size_t bytes) {
  ENTER_CONTEXT(cuMemAlloc_v2)
  return stand_in_leave(stand_in_allocate(stand_in_device(), bytes, address));
}

ENTRY(cuMemFree_v2, cuda_address_t address) {
  (void)stand_in_enter("cuMemFree_v2");
  return stand_in_leave(stand_in_free(address));
}

ENTRY(cuMemHostAlloc, void **memory, size_t bytes, unsigned flags) {
  ENTER_CONTEXT(cuMemHostAlloc)
  (void)flags;
  *memory = stand_in_pin(bytes);
  return stand_in_leave(*memory != NULL ? CUDA_SUCCESS_ : CUDA_OUT_OF_MEMORY);
}

ENTRY(cuMemFreeHost, void *memory) {
  (void)stand_in_enter("cuMemFreeHost");
  return stand_in_leave(stand_in_unpin(memory) ? CUDA_SUCCESS_ : CUDA_INVALID_VALUE);
}

typedef struct copy {
  void *to;
  const void *from;
  size_t bytes;
  unsigned char own[]; /* what was there when the call was made, of memory that is not pinned */
} copy_t;

static int32_t run_copy(void *context) {
  const copy_t *copy = context;
  memcpy(copy->to, copy->from, copy->bytes);
  return CUDA_SUCCESS_;
}

static int32_t copy_now(void *to, const void *from, size_t bytes) {
  stand_in_open(stand_in_device());
  memcpy(to, from, bytes);
  stand_in_close(stand_in_device());
  return CUDA_SUCCESS_;
}

static int32_t copy_later(void *to, const void *from, size_t bytes, bool keeps, cuda_stream_t stream) {
  copy_t *copy = malloc(sizeof *copy + (keeps ? bytes : 0));
  if (copy == NULL) {
    return CUDA_OUT_OF_MEMORY;
  }
  *copy = (copy_t){.to = to, .from = keeps ? copy->own : from, .bytes = bytes};
  if (keeps) {
    memcpy(copy->own, from, bytes);
  }
  return stand_in_enqueue(stream, run_copy, copy);
}

static bool holds(cuda_address_t address, size_t bytes) {
  return stand_in_holds(stand_in_device(), address, bytes);
}

ENTRY(cuMemcpyHtoD_v2, cuda_address_t to, const void *from, size_t bytes) {
  ENTER_CONTEXT(cuMemcpyHtoD_v2)
  return stand_in_leave(holds(to, bytes) ? copy_now((void *)(uintptr_t)to, from, bytes) : CUDA_INVALID_VALUE);
}

ENTRY(cuMemcpyDtoH_v2, void *to, cuda_address_t from, size_t bytes) {
  ENTER_CONTEXT(cuMemcpyDtoH_v2)
  return stand_in_leave(holds(from, bytes) ? copy_now(to, (const void *)(uintptr_t)from, bytes)
                                           : CUDA_INVALID_VALUE);
}

ENTRY(cuMemcpyHtoDAsync_v2, cuda_address_t to, const void *from, size_t bytes, cuda_stream_t stream) {
  ENTER_CONTEXT(cuMemcpyHtoDAsync_v2)
  if (!holds(to, bytes) || stand_in_is_capturing(stream)) {
    return stand_in_leave(CUDA_INVALID_VALUE);
  }
  return stand_in_leave(
      copy_later((void *)(uintptr_t)to, from, bytes, !stand_in_is_pinned(from, bytes), stream));
}

ENTRY(cuMemcpyDtoHAsync_v2, void *to, cuda_address_t from, size_t bytes, cuda_stream_t stream) {
  ENTER_CONTEXT(cuMemcpyDtoHAsync_v2)
  if (!holds(from, bytes) || stand_in_is_capturing(stream)) {
    return stand_in_leave(CUDA_INVALID_VALUE);
  }
  if (stand_in_is_pinned(to, bytes)) {
    return stand_in_leave(copy_later(to, (const void *)(uintptr_t)from, bytes, false, stream));
  }
  result = stand_in_drain(stream);
  return stand_in_leave(result == CUDA_SUCCESS_ ? copy_now(to, (const void *)(uintptr_t)from, bytes)
                                                : result);
}

ENTRY(cuMemcpyDtoDAsync_v2, cuda_address_t to, cuda_address_t from, size_t bytes, cuda_stream_t stream) {
  ENTER_CONTEXT(cuMemcpyDtoDAsync_v2)
  return stand_in_leave(
      holds(to, bytes) && holds(from, bytes)
          ? copy_later((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, false, stream)
          : CUDA_INVALID_VALUE);
}

typedef struct fill {
  void *to;
  size_t bytes;
  unsigned char value;
} fill_t;

static int32_t run_fill(void *context) {
  const fill_t *fill = context;
  memset(fill->to, fill->value, fill->bytes);
  return CUDA_SUCCESS_;
}

ENTRY(cuMemsetD8Async, cuda_address_t to, unsigned char value, size_t bytes, cuda_stream_t stream) {
  ENTER_CONTEXT(cuMemsetD8Async)
  fill_t *fill = holds(to, bytes) ? malloc(sizeof *fill) : NULL;
  if (fill == NULL) {
    return stand_in_leave(CUDA_INVALID_VALUE);
  }
  *fill = (fill_t){(void *)(uintptr_t)to, bytes, value};
  return stand_in_leave(stand_in_enqueue(stream, run_fill, fill));
}

/* ---- modules and launches ---- */

ENTRY(cuModuleLoadData, cuda_module_t *module, const void *image) {
  ENTER_CONTEXT(cuModuleLoadData)
  char message[GRID_MESSAGE_BYTES];
  cuda_module_t own = calloc(1, sizeof *own);
  if (own == NULL) {
    return stand_in_leave(CUDA_OUT_OF_MEMORY);
  }
  own->device = stand_in_device();
  own->module = grid_module_load(image, message);
  if (own->module == NULL) {
    free(own);
    return stand_in_leave(CUDA_INVALID_IMAGE);
  }
  *module = own;
  return stand_in_leave(CUDA_SUCCESS_);
}

ENTRY(cuModuleUnload, cuda_module_t module) {
  (void)stand_in_enter("cuModuleUnload");
  grid_module_unload(module->module);
  free(module);
  return stand_in_leave(CUDA_SUCCESS_);
}

/* A function is the kernel of the grid: contexts of functions are not looked at. */
ENTRY(cuModuleGetFunction, cuda_function_t *function, cuda_module_t module, const char *name) {
  ENTER_CONTEXT(cuModuleGetFunction)
  const grid_kernel_t *kernel = grid_module_kernel(module->module, name);
  *function = (cuda_function_t)(uintptr_t)kernel;
  return stand_in_leave(kernel != NULL && module->device == stand_in_device() ? CUDA_SUCCESS_
                                                                              : CUDA_NOT_FOUND);
}

typedef struct launch {
  const grid_kernel_t *kernel;
  uint32_t grid[3];
  uint32_t block[3];
  void *parameters[MAX_PARAMETERS];
  _Alignas(16) unsigned char bytes[];
} launch_t;

static int32_t run_launch(void *context) {
  launch_t *launch = context;
  char message[GRID_MESSAGE_BYTES];
  if (grid_run(launch->kernel, launch->grid, launch->block, launch->parameters, message) != 0) {
    (void)fprintf(stderr, "stand-in of libcuda: %s\n", message);
    return CUDA_LAUNCH_FAILED;
  }
  return CUDA_SUCCESS_;
}

static size_t round_up(size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

/* A launch keeps the values of its parameters. */
static launch_t *make_launch(const grid_kernel_t *kernel, void **parameters) {
  size_t total = 0;
  uint32_t count = 0;
  while (count < MAX_PARAMETERS && grid_kernel_parameter(kernel, count) > 0) {
    total += round_up(grid_kernel_parameter(kernel, count++));
  }
  launch_t *launch = calloc(1, sizeof *launch + total);
  size_t at = 0;
  for (uint32_t k = 0; k < count && launch != NULL; k++) {
    launch->parameters[k] = launch->bytes + at;
    memcpy(launch->parameters[k], parameters[k], grid_kernel_parameter(kernel, k));
    at += round_up(grid_kernel_parameter(kernel, k));
  }
  return launch;
}

ENTRY(cuLaunchKernel, cuda_function_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda_stream_t stream,
      void **parameters, void **extra) {
  ENTER_CONTEXT(cuLaunchKernel)
  const unsigned most = 65535;
  if (function == NULL || extra != NULL || shared_bytes > 0 || grid_x == 0 || grid_y == 0 || grid_z == 0 ||
      block_x * block_y * block_z == 0 || block_x * block_y * block_z > GRID_MAX_THREADS ||
      grid_x > INT32_MAX || grid_y > most || grid_z > most) {
    return stand_in_leave(CUDA_INVALID_VALUE);
  }
  launch_t *launch = make_launch((const grid_kernel_t *)(const void *)function, parameters);
  if (launch == NULL) {
    return stand_in_leave(CUDA_OUT_OF_MEMORY);
  }
  launch->kernel = (const grid_kernel_t *)(const void *)function;
  memcpy(launch->grid, (uint32_t[]){grid_x, grid_y, grid_z}, sizeof launch->grid);
  memcpy(launch->block, (uint32_t[]){block_x, block_y, block_z}, sizeof launch->block);
  return stand_in_leave(stand_in_enqueue(stream, run_launch, launch));
}
