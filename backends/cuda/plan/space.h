// SPDX-License-Identifier: Apache-2.0
/*
 * Offsets in one block of memory for what comes and goes: the lowest free range that holds it. Free ranges
 * never touch each other. Taking and giving take log n steps, however many ranges there are.
 */
#ifndef CLEAVE_CUDA_SPACE_H
#define CLEAVE_CUDA_SPACE_H

#include <stdbool.h>
#include <stdint.h>

enum { CUDA_NO_RANGE = UINT32_MAX };

typedef struct cuda_range {
  int64_t offset;
  int64_t bytes;
  int64_t most; /* bytes of the largest range of this tree */
  uint32_t low; /* trees of lower and of higher offsets, or CUDA_NO_RANGE */
  uint32_t high;
  uint32_t rank; /* no smaller than those of the trees below */
} cuda_range_t;

typedef struct cuda_space {
  cuda_range_t *ranges; /* room for one with each call */
  uint32_t count;
  uint32_t root; /* CUDA_NO_RANGE at first */
  int64_t end;   /* of all that was ever taken */
} cuda_space_t;

int64_t cuda_space_take(cuda_space_t *space, int64_t bytes);
void cuda_space_give(cuda_space_t *space, int64_t offset, int64_t bytes);

#endif /* CLEAVE_CUDA_SPACE_H */
