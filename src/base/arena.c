// SPDX-License-Identifier: Apache-2.0
/* Arena of growing blocks. What is handed out is zeroed and aligned to 16 bytes. */
#include "base/arena.h"

#include <stdio.h>
#include <string.h>

enum { ARENA_ALIGNMENT = 16, ARENA_FIRST_BLOCK = 4096, ARENA_LARGEST_STEP = 1 << 20 };

struct cleave_arena_block {
  cleave_arena_block_t *older;
  size_t bytes;
};

static size_t header_bytes(void) {
  return (sizeof(cleave_arena_block_t) + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1);
}

static bool add_block(cleave_arena_t *arena, size_t bytes) {
  size_t header = header_bytes();
  size_t room = arena->blocks == NULL ? ARENA_FIRST_BLOCK : arena->blocks->bytes * 2;
  room = room > ARENA_LARGEST_STEP ? ARENA_LARGEST_STEP : room;
  room = room < bytes ? bytes : room;
  size_t total = 0;
  if (!cleave_size_add(room, header, &total)) {
    return false;
  }
  cleave_arena_block_t *block = cleave_allocate(total, 1);
  if (block == NULL) {
    return false;
  }
  block->older = arena->blocks;
  block->bytes = room;
  arena->blocks = block;
  arena->next = (char *)block + header;
  arena->left = room;
  arena->total += total;
  return true;
}

void *cleave_arena_allocate(cleave_arena_t *arena, size_t count, size_t size) {
  size_t bytes = 0;
  if (!cleave_size_multiply(count, size, &bytes) || bytes > SIZE_MAX - ARENA_ALIGNMENT) {
    return NULL;
  }
  bytes = (bytes + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1);
  bytes = bytes == 0 ? ARENA_ALIGNMENT : bytes;
  if (arena->left < bytes && !add_block(arena, bytes)) {
    return NULL;
  }
  void *memory = arena->next;
  arena->next += bytes;
  arena->left -= bytes;
  return memset(memory, 0, bytes);
}

void *cleave_arena_copy(cleave_arena_t *arena, const void *data, size_t bytes) {
  void *copy = cleave_arena_allocate(arena, bytes, 1);
  if (copy != NULL && bytes > 0) {
    memcpy(copy, data, bytes);
  }
  return copy;
}

char *cleave_arena_copy_text(cleave_arena_t *arena, const char *text, size_t length) {
  char *copy = length < SIZE_MAX ? cleave_arena_allocate(arena, length + 1, 1) : NULL;
  if (copy != NULL && length > 0) {
    memcpy(copy, text, length);
  }
  return copy;
}

char *cleave_arena_format(cleave_arena_t *arena, const char *format, ...) {
  va_list arguments;
  va_list again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  char *text = length >= 0 ? cleave_arena_allocate(arena, (size_t)length + 1, 1) : NULL;
  if (text != NULL) {
    (void)vsnprintf(text, (size_t)length + 1, format, again);
  }
  va_end(again);
  va_end(arguments);
  return text;
}

void cleave_arena_reset(cleave_arena_t *arena) {
  cleave_arena_block_t *newest = arena->blocks;
  if (newest == NULL) {
    return;
  }
  cleave_arena_t older = {.blocks = newest->older};
  cleave_arena_deinit(&older);
  newest->older = NULL;
  arena->next = (char *)newest + header_bytes();
  arena->left = newest->bytes;
  arena->total = newest->bytes + header_bytes();
}

void cleave_arena_join(cleave_arena_t *arena, cleave_arena_t *from) {
  if (arena->blocks == NULL) {
    *arena = *from;
    *from = (cleave_arena_t){0};
    return;
  }
  // It goes behind the oldest block, so that the newest is still the one that is being filled.
  cleave_arena_block_t *oldest = arena->blocks;
  while (oldest->older != NULL) {
    oldest = oldest->older;
  }
  oldest->older = from->blocks;
  arena->total += from->total;
  *from = (cleave_arena_t){0};
}

void cleave_arena_deinit(cleave_arena_t *arena) {
  cleave_arena_block_t *block = arena->blocks;
  while (block != NULL) {
    cleave_arena_block_t *older = block->older;
    cleave_free(block);
    block = older;
  }
  *arena = (cleave_arena_t){0};
}
