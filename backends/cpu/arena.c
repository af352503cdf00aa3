// SPDX-License-Identifier: Apache-2.0
// Program memory: small pieces are cut from shared blocks, large ones get a block of their own. The first
// block of the list is the one that small pieces are cut from.
#include "cpu/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 8192, LARGE_BYTES = 2048 };

struct cpu_arena_block {
  cpu_arena_block_t *next;
  size_t used;
  size_t size;
  unsigned char padding[64 - 3 * sizeof(size_t)];
};

_Static_assert(sizeof(cpu_arena_block_t) == 64, "the memory after the head of a block is 64-byte aligned");

static cpu_arena_block_t *add_block(cpu_arena_t *arena, size_t size) {
  if (size > SIZE_MAX / 2) {
    return NULL;
  }
  size_t whole = (sizeof(cpu_arena_block_t) + size + 63) / 64 * 64;
  cpu_arena_block_t *block = aligned_alloc(64, whole);
  if (block == NULL) {
    return NULL;
  }
  memset(block, 0, whole);
  block->size = whole - sizeof(cpu_arena_block_t);
  arena->total += whole;
  return block;
}

void *cpu_arena_allocate(cpu_arena_t *arena, size_t bytes) {
  if (bytes >= LARGE_BYTES) {
    cpu_arena_block_t *block = add_block(arena, bytes);
    if (block == NULL) {
      return NULL;
    }
    block->used = block->size;
    if (arena->blocks == NULL) {
      arena->blocks = block;
    } else {
      block->next = arena->blocks->next;
      arena->blocks->next = block;
    }
    return block + 1;
  }
  size_t align = bytes >= 64 ? 64 : 16;
  size_t start = arena->blocks == NULL ? 0 : (arena->blocks->used + align - 1) / align * align;
  if (arena->blocks == NULL || start + bytes > arena->blocks->size) {
    cpu_arena_block_t *block = add_block(arena, BLOCK_BYTES);
    if (block == NULL) {
      return NULL;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    start = 0;
  }
  arena->blocks->used = start + bytes;
  return (unsigned char *)(arena->blocks + 1) + start;
}

void *cpu_arena_array(cpu_arena_t *arena, size_t count, size_t size) {
  if (size != 0 && count > SIZE_MAX / size) {
    return NULL;
  }
  return cpu_arena_allocate(arena, count * size);
}

char *cpu_arena_text(cpu_arena_t *arena, const char *text) {
  size_t length = strlen(text);
  char *copy = cpu_arena_allocate(arena, length + 1);
  if (copy != NULL) {
    memcpy(copy, text, length);
  }
  return copy;
}

void cpu_arena_free(cpu_arena_t *arena) {
  cpu_arena_block_t *block = arena->blocks;
  while (block != NULL) {
    cpu_arena_block_t *next = block->next;
    free(block);
    block = next;
  }
  *arena = (cpu_arena_t){0};
}
