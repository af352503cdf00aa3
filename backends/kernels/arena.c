// SPDX-License-Identifier: Apache-2.0
// Small pieces are cut from the block at hand, large ones get a block of their own.
#include "kernels/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 8192, LARGE_BYTES = 2048, LINE = 64 };

struct kernel_arena_block {
  _Alignas(LINE) kernel_arena_block_t *next;
};

static void *add_block(kernel_arena_t *arena, size_t bytes) {
  size_t whole = (sizeof(kernel_arena_block_t) + bytes + LINE - 1) / LINE * LINE;
  kernel_arena_block_t *block = aligned_alloc(LINE, whole);
  if (block == NULL) {
    return NULL;
  }
  block->next = arena->blocks;
  arena->blocks = block;
  arena->total += whole;
  return block + 1;
}

void *kernel_arena_allocate(kernel_arena_t *arena, size_t count, size_t size) {
  if (size != 0 && count > SIZE_MAX / 2 / size) {
    return NULL;
  }
  size_t bytes = count * size + (count == 0 || size == 0);
  size_t align = bytes >= LINE ? LINE : 16;
  size_t gap = (align - (uintptr_t)arena->at % align) % align;
  unsigned char *memory = arena->at;
  if (arena->left >= gap && bytes <= arena->left - gap) {
    memory += gap;
    arena->at += gap + bytes;
    arena->left -= gap + bytes;
  } else {
    bool is_large = bytes >= LARGE_BYTES;
    memory = add_block(arena, is_large ? bytes : BLOCK_BYTES);
    if (memory != NULL && !is_large) {
      arena->at = memory + bytes;
      arena->left = BLOCK_BYTES - bytes;
    }
  }
  return memory == NULL ? NULL : memset(memory, 0, bytes);
}

char *kernel_arena_text(kernel_arena_t *arena, const char *text) {
  size_t length = strlen(text);
  char *copy = kernel_arena_allocate(arena, length + 1, 1);
  return copy == NULL ? NULL : memcpy(copy, text, length);
}

void kernel_arena_free(kernel_arena_t *arena) {
  while (arena->blocks != NULL) {
    kernel_arena_block_t *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
  *arena = (kernel_arena_t){0};
}
