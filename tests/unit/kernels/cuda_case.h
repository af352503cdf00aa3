// SPDX-License-Identifier: Apache-2.0
/*
 * Programs as CUDA kernels in tests: their text compiled by the stand-in of NVRTC (tests/cuda) and run on
 * this machine, or compiled by NVRTC itself.
 */
#ifndef CLEAVE_TESTS_CUDA_CASE_H
#define CLEAVE_TESTS_CUDA_CASE_H

#include "kernel_case.h"
#include "kernels/cuda/cuda.h"

/* Prepares a call over the space that the inputs make. */
void cuda_case_prepare(const kernel_cuda_t *kernel, const kernel_tensor_t *inputs, void *const *outputs,
                       kernel_cuda_launch_t *out_launch);

/* Runs the program on the stand-in; a text is compiled once per process. */
void cuda_case_run(const kernel_program_t *program, const kernel_tensor_t *inputs, void *const *outputs);

/* NVRTC, of the loader or $CUDA_PATH. NULL: there is none, which it prints. */
typedef struct cuda_case_nvrtc cuda_case_nvrtc_t;
const cuda_case_nvrtc_t *cuda_case_nvrtc(void);

/* Compiles the text of a variant for an architecture ("sm_90"); fails the test with log and text where it
 * does not compile. Returns milliseconds. */
double cuda_case_compile(const cuda_case_nvrtc_t *nvrtc, const kernel_cuda_t *kernel,
                         const kernel_cuda_variant_t *variant, const char *architecture);

#endif /* CLEAVE_TESTS_CUDA_CASE_H */
