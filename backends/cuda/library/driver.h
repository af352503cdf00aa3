// SPDX-License-Identifier: Apache-2.0
/*
 * The part of the CUDA driver, libcuda.so.1, that is called: types, numbers and entry points, so that no
 * toolkit is needed to build. Names of symbols are those that the driver exports for CUDA 11.8 to 13;
 * tests/cuda compares the numbers with the toolkit's headers where these are installed.
 */
#ifndef CLEAVE_CUDA_DRIVER_H
#define CLEAVE_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cuda_result_t;
typedef int32_t cuda_device_t;
typedef uint64_t cuda_address_t;
typedef struct CUctx_st *cuda_context_t;
typedef struct CUmod_st *cuda_module_t;
typedef struct CUfunc_st *cuda_function_t;
typedef struct CUstream_st *cuda_stream_t;
typedef struct CUevent_st *cuda_event_t;
typedef struct CUgraph_st *cuda_graph_t;
typedef struct CUgraphExec_st *cuda_graph_exec_t;

enum {
  CUDA_SUCCESS_ = 0,
  CUDA_INVALID_VALUE = 1,
  CUDA_OUT_OF_MEMORY = 2,
  CUDA_NOT_INITIALIZED = 3,
  CUDA_NO_DEVICE = 100,
  CUDA_INVALID_DEVICE = 101,
  CUDA_INVALID_IMAGE = 200,
  CUDA_INVALID_CONTEXT = 201,
  CUDA_INVALID_HANDLE = 400,
  CUDA_NOT_FOUND = 500,
  CUDA_ILLEGAL_ADDRESS = 700,
  CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_LAUNCH_FAILED = 719,
  CUDA_DEVICE_UNAVAILABLE = 46,
  CUDA_CAPTURE_INVALIDATED = 901
};

enum {
  CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
  CUDA_ATTRIBUTE_CAPABILITY_MAJOR = 75,
  CUDA_ATTRIBUTE_CAPABILITY_MINOR = 76
};

enum { CUDA_STREAM_NON_BLOCKING = 1 };
enum { CUDA_EVENT_DISABLE_TIMING = 2 };
enum { CUDA_CAPTURE_RELAXED = 2 };

/* X(member, symbol, parameters) */
#define CUDA_DRIVER_ENTRIES(X)                                                                           \
  X(init, cuInit, (unsigned flags))                                                                      \
  X(version, cuDriverGetVersion, (int *version))                                                         \
  X(error_name, cuGetErrorName, (cuda_result_t result, const char **name))                               \
  X(error_string, cuGetErrorString, (cuda_result_t result, const char **text))                           \
  X(device_count, cuDeviceGetCount, (int *count))                                                        \
  X(device_get, cuDeviceGet, (cuda_device_t * device, int number))                                       \
  X(device_name, cuDeviceGetName, (char *name, int size, cuda_device_t device))                          \
  X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, cuda_device_t device))           \
  X(device_memory, cuDeviceTotalMem_v2, (size_t * bytes, cuda_device_t device))                          \
  X(context_retain, cuDevicePrimaryCtxRetain, (cuda_context_t * context, cuda_device_t device))          \
  X(context_release, cuDevicePrimaryCtxRelease_v2, (cuda_device_t device))                               \
  X(context_push, cuCtxPushCurrent_v2, (cuda_context_t context))                                         \
  X(context_pop, cuCtxPopCurrent_v2, (cuda_context_t * context))                                         \
  X(memory_alloc, cuMemAlloc_v2, (cuda_address_t * address, size_t bytes))                               \
  X(memory_free, cuMemFree_v2, (cuda_address_t address))                                                 \
  X(host_alloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                           \
  X(host_free, cuMemFreeHost, (void *memory))                                                            \
  X(copy_to, cuMemcpyHtoD_v2, (cuda_address_t to, const void *from, size_t bytes))                       \
  X(copy_from, cuMemcpyDtoH_v2, (void *to, cuda_address_t from, size_t bytes))                           \
  X(copy_to_async, cuMemcpyHtoDAsync_v2,                                                                 \
    (cuda_address_t to, const void *from, size_t bytes, cuda_stream_t stream))                           \
  X(copy_from_async, cuMemcpyDtoHAsync_v2,                                                               \
    (void *to, cuda_address_t from, size_t bytes, cuda_stream_t stream))                                 \
  X(copy_async, cuMemcpyDtoDAsync_v2,                                                                    \
    (cuda_address_t to, cuda_address_t from, size_t bytes, cuda_stream_t stream))                        \
  X(memory_set_async, cuMemsetD8Async,                                                                   \
    (cuda_address_t to, unsigned char value, size_t bytes, cuda_stream_t stream))                        \
  X(stream_create, cuStreamCreate, (cuda_stream_t * stream, unsigned flags))                             \
  X(stream_destroy, cuStreamDestroy_v2, (cuda_stream_t stream))                                          \
  X(stream_wait, cuStreamSynchronize, (cuda_stream_t stream))                                            \
  X(stream_wait_event, cuStreamWaitEvent, (cuda_stream_t stream, cuda_event_t event, unsigned flags))    \
  X(stream_begin_capture, cuStreamBeginCapture_v2, (cuda_stream_t stream, int mode))                     \
  X(stream_end_capture, cuStreamEndCapture, (cuda_stream_t stream, cuda_graph_t * graph))                \
  X(event_create, cuEventCreate, (cuda_event_t * event, unsigned flags))                                 \
  X(event_destroy, cuEventDestroy_v2, (cuda_event_t event))                                              \
  X(event_record, cuEventRecord, (cuda_event_t event, cuda_stream_t stream))                             \
  X(event_wait, cuEventSynchronize, (cuda_event_t event))                                                \
  X(event_elapsed, cuEventElapsedTime, (float *milliseconds, cuda_event_t begin, cuda_event_t end))      \
  X(module_load, cuModuleLoadData, (cuda_module_t * module, const void *image))                          \
  X(module_unload, cuModuleUnload, (cuda_module_t module))                                               \
  X(module_function, cuModuleGetFunction,                                                                \
    (cuda_function_t * function, cuda_module_t module, const char *name))                                \
  X(launch, cuLaunchKernel,                                                                              \
    (cuda_function_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,      \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda_stream_t stream, void **parameters, \
     void **extra))                                                                                      \
  X(graph_instantiate, cuGraphInstantiateWithFlags,                                                      \
    (cuda_graph_exec_t * exec, cuda_graph_t graph, unsigned long long flags))                            \
  X(graph_launch, cuGraphLaunch, (cuda_graph_exec_t exec, cuda_stream_t stream))                         \
  X(graph_destroy, cuGraphDestroy, (cuda_graph_t graph))                                                 \
  X(graph_exec_destroy, cuGraphExecDestroy, (cuda_graph_exec_t exec))

typedef struct cuda_driver {
#define CUDA_ENTRY(member, symbol, parameters) cuda_result_t(*member) parameters;
  CUDA_DRIVER_ENTRIES(CUDA_ENTRY)
#undef CUDA_ENTRY
} cuda_driver_t;

#endif /* CLEAVE_CUDA_DRIVER_H */
