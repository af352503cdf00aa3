// SPDX-License-Identifier: Apache-2.0
/* Fields of plain tables, copied into an arena. */
#include "script/state/table_reader.h"

void *cleave_table_take(cleave_table_reader_t *reader, size_t count, size_t size) {
  void *memory = cleave_arena_allocate(reader->arena, count > 0 ? count : 1, size);
  if (memory == NULL) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_error_out_of_memory(&error);
    cleave_script_raise_error(reader->state, &error);
  }
  return memory;
}

/* ---- fields of the table on top of the stack ---- */

int cleave_table_push_field(cleave_table_reader_t *reader, const char *name) {
  luaL_checkstack(reader->state, 8, NULL);
  return lua_getfield(reader->state, -1, name);
}

const char *cleave_table_copy_text_at_top(cleave_table_reader_t *reader) {
  size_t length = 0;
  const char *text = luaL_checklstring(reader->state, -1, &length);
  char *copy = cleave_arena_copy_text(reader->arena, text, length);
  if (copy == NULL) {
    (void)cleave_table_take(reader, SIZE_MAX, SIZE_MAX);
  }
  return copy;
}

const char *cleave_table_text(cleave_table_reader_t *reader, const char *name) {
  const char *text = NULL;
  if (cleave_table_push_field(reader, name) == LUA_TSTRING) {
    text = cleave_table_copy_text_at_top(reader);
  }
  lua_pop(reader->state, 1);
  return text;
}

int32_t cleave_table_int(cleave_table_reader_t *reader, const char *name, int32_t fallback) {
  lua_Integer value =
      cleave_table_push_field(reader, name) == LUA_TNUMBER ? lua_tointeger(reader->state, -1) : fallback;
  lua_pop(reader->state, 1);
  return value < INT32_MIN || value > INT32_MAX ? fallback : (int32_t)value;
}

int32_t cleave_table_line(cleave_table_reader_t *reader, const char *name, const char **out_file) {
  int place = cleave_table_int(reader, name, 0);
  if (out_file != NULL) {
    *out_file = cleave_script_path_at(cleave_script_of(reader->state), place);
  }
  return cleave_place_line(place);
}

double cleave_table_number(cleave_table_reader_t *reader, const char *name, double fallback,
                           bool *out_found) {
  bool found = cleave_table_push_field(reader, name) == LUA_TNUMBER;
  double value = found ? lua_tonumber(reader->state, -1) : fallback;
  lua_pop(reader->state, 1);
  if (out_found != NULL) {
    *out_found = found;
  }
  return value;
}

bool cleave_table_flag(cleave_table_reader_t *reader, const char *name) {
  (void)cleave_table_push_field(reader, name);
  bool value = lua_toboolean(reader->state, -1) != 0;
  lua_pop(reader->state, 1);
  return value;
}

uint32_t cleave_table_push_list(cleave_table_reader_t *reader, const char *name) {
  if (cleave_table_push_field(reader, name) != LUA_TTABLE) {
    lua_pop(reader->state, 1);
    lua_newtable(reader->state);
  }
  return (uint32_t)lua_rawlen(reader->state, -1);
}

void cleave_table_push_item(cleave_table_reader_t *reader, uint32_t index) {
  luaL_checkstack(reader->state, 8, NULL);
  cleave_script_step(reader->state, 4);
  lua_rawgeti(reader->state, -1, (lua_Integer)index + 1);
}

const cleave_op_t *const *cleave_table_ops(cleave_table_reader_t *reader, const char *name,
                                           uint32_t *out_count) {
  uint32_t count = cleave_table_push_list(reader, name);
  const cleave_op_t **ops = cleave_table_take(reader, count, sizeof *ops);
  for (uint32_t k = 0; k < count; k++) {
    cleave_table_push_item(reader, k);
    luaL_checktype(reader->state, -1, LUA_TLIGHTUSERDATA);
    ops[k] = lua_touserdata(reader->state, -1);
    lua_pop(reader->state, 1);
  }
  lua_pop(reader->state, 1);
  *out_count = count;
  return ops;
}

int cleave_table_function(cleave_table_reader_t *reader, const char *name) {
  if (cleave_table_push_field(reader, name) != LUA_TFUNCTION) {
    lua_pop(reader->state, 1);
    return LUA_NOREF;
  }
  return luaL_ref(reader->state, LUA_REGISTRYINDEX);
}
