// SPDX-License-Identifier: Apache-2.0
/*
 * Programs as CUDA kernels in tests: their text compiled by the stand-in of NVRTC (tests/cuda) and run on
 * this machine.
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

#endif /* CLEAVE_TESTS_CUDA_CASE_H */
