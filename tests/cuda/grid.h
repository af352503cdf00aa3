// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels that the stand-in of NVRTC compiled (nvrtc.c), run on this machine: block after block, the threads
 * of a block as fibres that change at barriers and shuffles. For tests. One grid at a time.
 */
#ifndef CLEAVE_TESTS_GRID_H
#define CLEAVE_TESTS_GRID_H

#include <stddef.h>
#include <stdint.h>

typedef struct grid_module grid_module_t;
typedef struct grid_kernel grid_kernel_t;

enum { GRID_MESSAGE_BYTES = 256, GRID_MAX_THREADS = 1024 };

/* The size of an image, which cuModuleLoadData is not told; 0: this is none. Reads the first 64 bytes. */
size_t grid_image_bytes(const void *image);

/* Loads an image; NULL with a message where it is damaged. A kernel belongs to its module. */
grid_module_t *grid_module_load(const void *image, char message[GRID_MESSAGE_BYTES]);
void grid_module_unload(grid_module_t *module);

/* The kernel of this name; NULL: there is none. */
const grid_kernel_t *grid_module_kernel(grid_module_t *module, const char *name);

/* Bytes of a parameter of the kernel; 0: it has no more. */
size_t grid_kernel_parameter(const grid_kernel_t *kernel, uint32_t index);

/* Runs a kernel; `arguments` has a pointer to each of its parameters, as cuLaunchKernel takes them. Returns
 * 0, or -1 with a message: sizes out of range, or threads that wait for each other for ever. */
int grid_run(const grid_kernel_t *kernel, const uint32_t grid[3], const uint32_t block[3], void **arguments,
             char message[GRID_MESSAGE_BYTES]);

#endif /* CLEAVE_TESTS_GRID_H */
