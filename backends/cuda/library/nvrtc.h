// SPDX-License-Identifier: Apache-2.0
/* The entry points of NVRTC 11.8 to 13 that are called. */
#ifndef CLEAVE_CUDA_NVRTC_H
#define CLEAVE_CUDA_NVRTC_H

#include <stddef.h>
#include <stdint.h>

typedef struct _nvrtcProgram *cuda_nvrtc_program_t;

enum { CUDA_NVRTC_INVALID_OPTION = 5, CUDA_NVRTC_COMPILATION = 6 };

/* X(result, member, symbol, parameters) */
#define CUDA_NVRTC_ENTRIES(X)                                                                 \
  X(const char *, error_string, nvrtcGetErrorString, (int32_t result))                        \
  X(int32_t, version, nvrtcVersion, (int *major, int *minor))                                 \
  X(int32_t, create, nvrtcCreateProgram,                                                      \
    (cuda_nvrtc_program_t * program, const char *text, const char *name, int header_count,    \
     const char *const *headers, const char *const *names))                                   \
  X(int32_t, destroy, nvrtcDestroyProgram, (cuda_nvrtc_program_t * program))                  \
  X(int32_t, compile, nvrtcCompileProgram,                                                    \
    (cuda_nvrtc_program_t program, int option_count, const char *const *options))             \
  X(int32_t, cubin_size, nvrtcGetCUBINSize, (cuda_nvrtc_program_t program, size_t * size))    \
  X(int32_t, cubin, nvrtcGetCUBIN, (cuda_nvrtc_program_t program, char *cubin))               \
  X(int32_t, ptx_size, nvrtcGetPTXSize, (cuda_nvrtc_program_t program, size_t * size))        \
  X(int32_t, ptx, nvrtcGetPTX, (cuda_nvrtc_program_t program, char *ptx))                     \
  X(int32_t, log_size, nvrtcGetProgramLogSize, (cuda_nvrtc_program_t program, size_t * size)) \
  X(int32_t, log, nvrtcGetProgramLog, (cuda_nvrtc_program_t program, char *log))              \
  X(int32_t, architecture_count, nvrtcGetNumSupportedArchs, (int *count))                     \
  X(int32_t, architectures, nvrtcGetSupportedArchs, (int *architectures))

typedef struct cuda_nvrtc {
#define CUDA_ENTRY(result, member, symbol, parameters) result(*member) parameters;
  CUDA_NVRTC_ENTRIES(CUDA_ENTRY)
#undef CUDA_ENTRY
} cuda_nvrtc_t;

#endif /* CLEAVE_CUDA_NVRTC_H */
