// SPDX-License-Identifier: Apache-2.0
/* Memory of backends that lives as long as one program, or one question: blocks in a list, given back
 * together. What was handed out never moves. */
#ifndef CLEAVE_KERNELS_ARENA_H
#define CLEAVE_KERNELS_ARENA_H

#include <stddef.h>

typedef struct kernel_arena_block kernel_arena_block_t;

/* All zero is an empty arena. One that begins with a buffer of the caller's, {.at = buffer, .left = sizeof
 * buffer}, asks the system for nothing until the buffer is full. */
typedef struct kernel_arena {
  kernel_arena_block_t *blocks;
  unsigned char *at; /* where the next small piece begins */
  size_t left;       /* bytes from there on */
  size_t total;      /* bytes taken from the system */
} kernel_arena_t;

/* Zeroed memory for `count` elements of `size` bytes, aligned to 64 bytes if it is as large, else to 16; NULL
 * without memory, or if the size overflows. Zero bytes give a valid pointer. */
void *kernel_arena_allocate(kernel_arena_t *arena, size_t count, size_t size);

/* A copy of `text`, or NULL. */
char *kernel_arena_text(kernel_arena_t *arena, const char *text);

/* Gives everything back; the arena is empty then. */
void kernel_arena_free(kernel_arena_t *arena);

#endif /* CLEAVE_KERNELS_ARENA_H */
