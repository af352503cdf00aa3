// SPDX-License-Identifier: Apache-2.0
/* Arena: memory that is freed all at once. Pointers stay valid until then. */
#ifndef CLEAVE_BASE_ARENA_H
#define CLEAVE_BASE_ARENA_H

#include "base/memory.h"

typedef struct cleave_arena_block cleave_arena_block_t;

/* All zero is an empty arena. */
typedef struct cleave_arena {
  cleave_arena_block_t *blocks;
  char *next;
  size_t left;
  size_t total; /* bytes taken from the system */
} cleave_arena_t;

/* Zeroed memory of `count` elements of `size` bytes, aligned for any type; NULL when there is none. */
void *cleave_arena_allocate(cleave_arena_t *arena, size_t count, size_t size)
    __attribute__((warn_unused_result));

/* Copies; NULL when there is no memory. A text ends in NUL. */
void *cleave_arena_copy(cleave_arena_t *arena, const void *data, size_t bytes)
    __attribute__((warn_unused_result));
char *cleave_arena_copy_text(cleave_arena_t *arena, const char *text, size_t length)
    __attribute__((warn_unused_result));
char *cleave_arena_format(cleave_arena_t *arena, const char *format, ...) CLEAVE_PRINTF(2, 3)
    __attribute__((warn_unused_result));

/* Takes back all that was handed out, and keeps the newest block for what comes next. */
void cleave_arena_reset(cleave_arena_t *arena);

/* Moves all that `from` holds over to `arena`; `from` is empty afterwards. */
void cleave_arena_join(cleave_arena_t *arena, cleave_arena_t *from);

void cleave_arena_deinit(cleave_arena_t *arena);

#endif /* CLEAVE_BASE_ARENA_H */
