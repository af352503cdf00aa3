// SPDX-License-Identifier: Apache-2.0
/*
 * Programs as CUDA text, and how such a kernel is launched. Nothing here needs CUDA: the text has no
 * includes, for NVRTC, and a launch is numbers. A kernel is known by its program and a variant: what its text
 * depends on beside the program. Sizes and strides are arguments, so that a call of another shape needs
 * another kernel only where its variant differs.
 *
 * Steady state: kernel_cuda_prepare per call, whose variant finds a compiled kernel. It allocates nothing.
 * All functions are free of shared state; a kernel_cuda_t does not change once it is made.
 */
#ifndef CLEAVE_KERNELS_CUDA_H
#define CLEAVE_KERNELS_CUDA_H

#include "kernels/execute/execute.h"

#define KERNEL_CUDA_ENTRY "cleave_kernel"

enum {
  KERNEL_CUDA_MAX_LANES = 16,
  KERNEL_CUDA_ARGUMENT_BYTES = 4064, /* what every driver takes */
};

/* How a tensor is accessed by a thread, a chunk of consecutive elements at a time. */
typedef enum kernel_cuda_access {
  KERNEL_CUDA_ABSENT,      /* not at all */
  KERNEL_CUDA_ONE,         /* one element per row; without reductions, one */
  KERNEL_CUDA_DENSE,       /* dense along the row, the chunk at once */
  KERNEL_CUDA_DENSE_EACH,  /* dense along the row, element by element */
  KERNEL_CUDA_STRIDED,     /* by strides; a chunk lies together */
  KERNEL_CUDA_STRIDED_ONE, /* by strides; one element for the chunk */
  KERNEL_CUDA_STRIDED_EACH /* by strides, element by element */
} kernel_cuda_access_t;

/* All bytes count: variants are compared and hashed as memory. */
typedef struct kernel_cuda_variant {
  int32_t rank;       /* axes of the space, merged */
  int32_t row_rank;   /* the last of these, which a row runs along; without reductions all of them */
  int32_t lanes;      /* elements of a chunk */
  int32_t threads;    /* of a row; 0: nothing is reduced */
  int32_t chunks;     /* per thread, of a row that is kept in registers; 0: each phase reads its row again */
  uint8_t is_wide;    /* indices have 64 bits */
  uint8_t whole_runs; /* the last axis has whole chunks */
  uint8_t fast_math;
  uint8_t zero;                        /* no padding */
  uint8_t inputs[KERNEL_MAX_TENSORS];  /* kernel_cuda_access_t */
  uint8_t moves[KERNEL_MAX_TENSORS];   /* inputs: bit d, the stride along merged axis d is not 0 */
  uint8_t outputs[KERNEL_MAX_TENSORS]; /* kernel_cuda_access_t: ABSENT, ONE, DENSE or DENSE_EACH */
  uint8_t
      along[KERNEL_MAX_TENSORS]; /* inputs: 1 + the merged axis along which it is a part of a load, or 0 */
} kernel_cuda_variant_t;

typedef struct kernel_cuda kernel_cuda_t;

/* A program made ready for text and launches; it is copied. `fast_math` trades digits of functions for speed.
 */
CLEAVE_MUST_USE cleave_status_t kernel_cuda_create(const kernel_program_t *program, bool fast_math,
                                                   kernel_cuda_t **out_kernel, cleave_message_t *message);
void kernel_cuda_destroy(kernel_cuda_t *kernel);

typedef struct kernel_cuda_call {
  const kernel_tensor_t *inputs; /* `data` is an address of the device: its alignment is looked at */
  void *const *outputs;          /* dense, addresses of the device; NULL: nobody wants it */
  const int64_t *dims;           /* of the space (kernel_program_space) */
} kernel_cuda_call_t;

typedef struct kernel_cuda_launch {
  kernel_cuda_variant_t variant;
  uint32_t grid;         /* blocks, along x; 0: there is nothing to do */
  uint32_t block;        /* threads, along x */
  uint32_t shared_bytes; /* of dynamic shared memory: 0 today */
  uint32_t argument_bytes;
  /* The one parameter of the kernel, a struct by value: kernelParams = {arguments}. */
  _Alignas(16) unsigned char arguments[KERNEL_CUDA_ARGUMENT_BYTES];
} kernel_cuda_launch_t;

/* CLEAVE_ERROR_LIMIT: too many tensors for the arguments of a kernel, or too many blocks. Elements are
 * aligned to their size. */
CLEAVE_MUST_USE cleave_status_t kernel_cuda_prepare(const kernel_cuda_t *kernel,
                                                    const kernel_cuda_call_t *call,
                                                    kernel_cuda_launch_t *out_launch,
                                                    cleave_message_t *message);

/* The text of a kernel whose name is KERNEL_CUDA_ENTRY: the same bytes for the same program, variant and
 * title. `title` goes into its first comment, and says which nodes it is of; it may have several lines.
 * *out_text is the caller's (free). */
CLEAVE_MUST_USE cleave_status_t kernel_cuda_text(const kernel_cuda_t *kernel,
                                                 const kernel_cuda_variant_t *variant, const char *title,
                                                 char **out_text, cleave_message_t *message);

#endif /* CLEAVE_KERNELS_CUDA_H */
