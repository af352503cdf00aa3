// SPDX-License-Identifier: Apache-2.0
/*
 * From text to a kernel on a device: looked for in memory, then on disk, then compiled by NVRTC. What is
 * compiled is a cubin of the device's architecture, known by text, options, architecture and version of
 * NVRTC.
 */
#ifndef CLEAVE_CUDA_COMPILER_H
#define CLEAVE_CUDA_COMPILER_H

#include "cuda/device/state.h"
#include "cuda/store/store.h"
#include "kernels/show/texts.h"

typedef struct cuda_compiler cuda_compiler_t;

enum { CUDA_MAX_OPTIONS = 6 };

typedef struct cuda_source {
  const char *text;
  const char *entry;          /* name of the kernel */
  const char *const *options; /* for NVRTC, beside the architecture; at most CUDA_MAX_OPTIONS */
  int32_t option_count;
  const char *nodes; /* that the kernel computes, for people: printable, one line */
} cuda_source_t;

CLEAVE_MUST_USE cleave_status_t cuda_compiler_create(cuda_state_t *state, cuda_compiler_t **out_compiler,
                                                     cleave_message_t *message);
/* Unloads all modules. Before contexts go. */
void cuda_compiler_destroy(cuda_compiler_t *compiler);

/* The kernel, which lives as long as the compiler. CLEAVE_ERROR_UNSUPPORTED: NVRTC refuses the text; the log
 * has it, and what NVRTC says. Thread-safe, in the context of the device. */
CLEAVE_MUST_USE cleave_status_t cuda_compiler_get(cuda_compiler_t *compiler, uint32_t device,
                                                  const cuda_source_t *source, cuda_function_t *out_function,
                                                  cleave_message_t *message);

/* The texts of all kernels. */
kernel_texts_t *cuda_compiler_texts(cuda_compiler_t *compiler);

typedef struct cuda_compiler_counts {
  uint64_t compiled; /* by NVRTC */
  uint64_t from_disk;
  uint64_t in_memory; /* found there */
} cuda_compiler_counts_t;

cuda_compiler_counts_t cuda_compiler_count(cuda_compiler_t *compiler);

/* ---- what the files of this room share ---- */

/* nvrtc.c: for --gpu-architecture, "sm_90"; *out_ptx: the driver has to finish the work. */
CLEAVE_MUST_USE cleave_status_t cuda_nvrtc_architecture(cuda_state_t *state, int32_t capability,
                                                        char *out_name, size_t size, bool *out_ptx,
                                                        cleave_message_t *message);
CLEAVE_MUST_USE cleave_status_t cuda_nvrtc_compile(cuda_state_t *state, const cuda_source_t *source,
                                                   const char *architecture, bool wants_ptx,
                                                   cuda_image_t *out_image, cleave_message_t *message);

#endif /* CLEAVE_CUDA_COMPILER_H */
