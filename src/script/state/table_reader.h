// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the plain tables that the DSL's modules make, field by field, and copies strings and lists into an
 * arena. All functions work on the table on top of the stack, and raise when memory is short.
 */
#ifndef CLEAVE_SCRIPT_STATE_TABLE_READER_H
#define CLEAVE_SCRIPT_STATE_TABLE_READER_H

#include "base/arena.h"
#include "partition/pattern/pattern.h"
#include "script/state/script.h"

typedef struct cleave_table_reader {
  lua_State *state;
  cleave_arena_t *arena;
  const char *file;                    /* for messages */
  const struct option_values *options; /* of the file; NULL except in compile.c */
} cleave_table_reader_t;

/* Zeroed memory of the arena. */
void *cleave_table_take(cleave_table_reader_t *reader, size_t count, size_t size);

/* Pushes a field; its Lua type. */
int cleave_table_push_field(cleave_table_reader_t *reader, const char *name);
/* Pushes the list of that name, or an empty one; returns its length. */
uint32_t cleave_table_push_list(cleave_table_reader_t *reader, const char *name);
/* Pushes element `index`, from 0, of the list on top. */
void cleave_table_push_item(cleave_table_reader_t *reader, uint32_t index);
/* Reads the list under `name`, with read(reader, &element) on the table of each element. */
#define CLEAVE_TABLE_LIST(reader, name, type, read, out_items, out_count) \
  do {                                                                    \
    uint32_t count_ = cleave_table_push_list((reader), (name));           \
    type *items_ = cleave_table_take((reader), count_, sizeof(type));     \
    for (uint32_t k_ = 0; k_ < count_; k_++) {                            \
      cleave_table_push_item((reader), k_);                               \
      read((reader), &items_[k_]);                                        \
      lua_pop((reader)->state, 1);                                        \
    }                                                                     \
    lua_pop((reader)->state, 1);                                          \
    (out_items) = items_;                                                 \
    (out_count) = count_;                                                 \
  } while (0)

/* A copy of the string on top of the stack. */
const char *cleave_table_copy_text_at_top(cleave_table_reader_t *reader);
/* A copy of the field, or NULL if it is not a string. */
const char *cleave_table_text(cleave_table_reader_t *reader, const char *name);
int32_t cleave_table_int(cleave_table_reader_t *reader, const char *name, int32_t fallback);
/* Reads a place as returned by host.line: the line, 0 if there is none, and (unless `out_file` is NULL) the
 * path of its file, which is valid as long as the interpreter. */
int32_t cleave_table_line(cleave_table_reader_t *reader, const char *name, const char **out_file);
/* `out_found` may be NULL. */
double cleave_table_number(cleave_table_reader_t *reader, const char *name, double fallback, bool *out_found);
bool cleave_table_flag(cleave_table_reader_t *reader, const char *name);
/* The field as a reference into the registry, or LUA_NOREF if it is not a function. */
int cleave_table_function(cleave_table_reader_t *reader, const char *name);
/* Operators: a list of the operator table's entries. */
const cleave_op_t *const *cleave_table_ops(cleave_table_reader_t *reader, const char *name,
                                           uint32_t *out_count);

/* The pattern under `name`, checked; raises with its line (compile_pattern.c). */
const cleave_pattern_t *cleave_table_pattern(cleave_table_reader_t *reader, const char *name,
                                             const char *rule);

#endif /* CLEAVE_SCRIPT_STATE_TABLE_READER_H */
