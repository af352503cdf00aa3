// SPDX-License-Identifier: Apache-2.0
/*
 * Editor definitions and reference tables, generated from what the words, handles and operators are made of:
 * the schema of the words (lua/cleave/schema.lua), the fields of handles (handles.h), the list of operators.
 */
#ifndef CLEAVE_SCRIPT_META_H
#define CLEAVE_SCRIPT_META_H

#include "base/arena.h"

typedef struct cleave_meta_text {
  const char *name; /* "meta/words.lua", "OPERATORS.md", "table: fields", ".luacheckrc" */
  const char *text; /* ends in a line break */
  size_t length;
} cleave_meta_text_t;

/* All texts, in order of their names, in `arena`. */
CLEAVE_STATUS cleave_meta_generate(cleave_arena_t *arena, const cleave_meta_text_t **out_texts,
                                   uint32_t *out_count, cleave_error_t *error);

#endif /* CLEAVE_SCRIPT_META_H */
