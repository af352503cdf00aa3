// SPDX-License-Identifier: Apache-2.0
/* Which instructions the loops of this folder may use on this processor. */
#ifndef CLEAVE_KERNELS_INSTRUCTIONS_H
#define CLEAVE_KERNELS_INSTRUCTIONS_H

#include <stdbool.h>

enum { KERNEL_PLAIN, KERNEL_AVX2, KERNEL_AVX512, KERNEL_AMX };

/* The best that the processor has, at most `limit` and what the environment allows. AVX2 comes with FMA
 * and F16C; AVX-512 is F, BW, DQ and VL. Of AMX kernel_amx_runs_here tells. */
int kernel_instructions(int limit);

/* The instructions that the environment allows, which is read once: CLEAVE_INSTRUCTIONS=plain, =avx2 or
 * =avx512, in letters of any case; anything else allows all. With it a processor computes the same bits as
 * one that has no more, and tests reach the loops for it. */
int kernel_instructions_allowed(void);

/* Does software gain by fetching what it reads next from memory? Not on AMD's Zen 3 and 4, whose
 * own prefetchers do better alone. */
bool kernel_gains_by_fetching(void);

/* Is it one of Intel's? For choices between two codes that were measured on those. */
bool kernel_is_intel(void);

#endif /* CLEAVE_KERNELS_INSTRUCTIONS_H */
