// SPDX-License-Identifier: Apache-2.0
// Failures, checked sizes and the arena. The arena never moves what it handed out.
#include "onednn/library/support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct onednn_arena_block {
  onednn_arena_block_t *next;
  size_t capacity;
  size_t used;
};

enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = 16 };

cleave_status_t onednn_fail(cleave_message_t *message, cleave_status_t status, const char *format, ...) {
  if (message != NULL) {
    va_list list;
    va_start(list, format);
    if (vsnprintf(message->text, sizeof(message->text), format, list) < 0) {
      message->text[0] = '\0';
    }
    va_end(list);
  }
  return status;
}

static const char *status_text(dnnl_status_t status) {
  switch ((int)status) {
    case dnnl_success: return "success";
    case dnnl_out_of_memory: return "out of memory";
    case dnnl_invalid_arguments: return "invalid arguments";
    case dnnl_unimplemented: return "not implemented";
    case dnnl_runtime_error: return "run-time error";
    case dnnl_not_required: return "not required";
    default: return "an unknown status";
  }
}

cleave_status_t onednn_check(dnnl_status_t status, const char *what, cleave_message_t *message) {
  if (status == dnnl_success) {
    return CLEAVE_OK;
  }
  cleave_status_t code = CLEAVE_ERROR_BACKEND;
  if (status == dnnl_out_of_memory) {
    code = CLEAVE_ERROR_OUT_OF_MEMORY;
  } else if (status == dnnl_unimplemented) {
    code = CLEAVE_ERROR_UNSUPPORTED;
  }
  return onednn_fail(message, code, "%s: oneDNN says '%s'", what, status_text(status));
}

bool onednn_multiply(size_t a, size_t b, size_t *out) {
  if (b != 0 && a > SIZE_MAX / b) {
    return false;
  }
  *out = a * b;
  return true;
}

bool onednn_add(size_t a, size_t b, size_t *out) {
  if (a > SIZE_MAX - b) {
    return false;
  }
  *out = a + b;
  return true;
}

size_t onednn_round_up(size_t bytes) {
  return (bytes + 63U) & ~(size_t)63U;
}

void onednn_arena_init(onednn_arena_t *arena) {
  arena->blocks = NULL;
  arena->used = 0;
}

void onednn_arena_deinit(onednn_arena_t *arena) {
  while (arena->blocks != NULL) {
    onednn_arena_block_t *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
  arena->used = 0;
}

static size_t header_bytes(void) {
  return (sizeof(onednn_arena_block_t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void *from_new_block(onednn_arena_t *arena, size_t bytes) {
  size_t capacity = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
  size_t whole = 0;
  if (!onednn_add(capacity, header_bytes(), &whole)) {
    return NULL;
  }
  onednn_arena_block_t *block = malloc(whole);
  if (block == NULL) {
    return NULL;
  }
  block->next = arena->blocks;
  block->capacity = capacity;
  block->used = bytes;
  arena->blocks = block;
  return (unsigned char *)block + header_bytes();
}

void *onednn_arena_allocate(onednn_arena_t *arena, size_t count, size_t size) {
  size_t bytes = 0;
  if (!onednn_multiply(count, size, &bytes) || !onednn_add(bytes, ALIGNMENT, &bytes)) {
    return NULL;
  }
  bytes = bytes / ALIGNMENT * ALIGNMENT;
  void *memory = NULL;
  onednn_arena_block_t *block = arena->blocks;
  if (block == NULL && bytes <= sizeof(arena->first) - arena->used) {
    memory = arena->first + arena->used;
    arena->used += bytes;
  } else if (block != NULL && bytes <= block->capacity - block->used) {
    memory = (unsigned char *)block + header_bytes() + block->used;
    block->used += bytes;
  } else {
    memory = from_new_block(arena, bytes);
  }
  if (memory != NULL) {
    memset(memory, 0, bytes);
  }
  return memory;
}

char *onednn_arena_text(onednn_arena_t *arena, const char *text) {
  size_t length = strlen(text);
  char *copy = onednn_arena_allocate(arena, length + 1, 1);
  if (copy != NULL) {
    memcpy(copy, text, length);
  }
  return copy;
}
