// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that lives as long as a program of the reference backend: blocks in a list, given back together.
 */
#ifndef CLEAVE_CPU_ARENA_H
#define CLEAVE_CPU_ARENA_H

#include <stddef.h>

typedef struct cpu_arena_block cpu_arena_block_t;

typedef struct cpu_arena {
  cpu_arena_block_t *blocks;
  size_t total; /* bytes taken from the system */
} cpu_arena_t;

/* Zeroed memory, 64-byte aligned if it is 64 bytes or more, else 16; NULL when there is none left.
 * Zero bytes give a valid pointer. */
void *cpu_arena_allocate(cpu_arena_t *arena, size_t bytes);

/* `count` elements of `size` bytes; NULL also if the product overflows. */
void *cpu_arena_array(cpu_arena_t *arena, size_t count, size_t size);

/* A copy of `text`; NULL when there is no memory left. */
char *cpu_arena_text(cpu_arena_t *arena, const char *text);

void cpu_arena_free(cpu_arena_t *arena);

#endif /* CLEAVE_CPU_ARENA_H */
