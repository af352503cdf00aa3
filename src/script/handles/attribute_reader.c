// SPDX-License-Identifier: Apache-2.0
/* Checks and copies tables of attributes. All memory is from the arena, so that an error leaks nothing. */
#include "script/handles/attribute_reader.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_ATTRIBUTES = 64, LONGEST_NAME = 63, LONGEST_LIST = 65536 };

static void *take(lua_State *state, cleave_arena_t *arena, size_t count, size_t size) {
  void *memory = cleave_arena_allocate(arena, count + 1, size);
  if (memory == NULL) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_error_out_of_memory(&error);
    cleave_script_raise_error(state, &error);
  }
  return memory;
}

static const char *copy_text(lua_State *state, cleave_arena_t *arena, int index, size_t *out_length) {
  const char *text = lua_tolstring(state, index, out_length);
  char *copy = take(state, arena, *out_length, 1);
  memcpy(copy, text, *out_length);
  return copy;
}

static double finite_number(lua_State *state, int index, const char *what, const char *name, double most) {
  double number = lua_tonumber(state, index);
  if (!(fabs(number) <= most)) {
    cleave_script_raise(state, "%s: attribute '%s' is a number that is not finite%s", what, name,
                        isfinite(number) ? " in 32 bits" : "");
  }
  return number;
}

/* The kind of the list on top of the stack, from its elements. */
static cleave_attribute_kind_t list_kind(lua_State *state, const char *what, const char *name,
                                         lua_Integer count) {
  cleave_attribute_kind_t kind = CLEAVE_ATTRIBUTE_INTS;
  bool has_text = false;
  bool has_number = false;
  for (lua_Integer k = 1; k <= count; k++) {
    int type = lua_geti(state, -1, k);
    if (type != LUA_TNUMBER && type != LUA_TBOOLEAN && type != LUA_TSTRING) {
      cleave_script_raise(state, "%s: attribute '%s' has a %s in its list, expected numbers or strings", what,
                          name, luaL_typename(state, -1));
    }
    has_text = has_text || type == LUA_TSTRING;
    has_number = has_number || type != LUA_TSTRING;
    kind = type == LUA_TNUMBER && !lua_isinteger(state, -1) ? CLEAVE_ATTRIBUTE_FLOATS : kind;
    lua_pop(state, 1);
    cleave_script_step(state, 2);
  }
  if (has_text && has_number) {
    cleave_script_raise(state, "%s: attribute '%s' is a list of numbers and strings, expected one of them",
                        what, name);
  }
  return has_text ? CLEAVE_ATTRIBUTE_STRINGS : kind;
}

static int64_t integer_at(lua_State *state, int index) {
  return lua_isboolean(state, index) ? lua_toboolean(state, index) : lua_tointeger(state, index);
}

/* Raises if the plain table on top of the stack has other keys than 1 to `count`. */
static void check_is_list(lua_State *state, const char *what, const char *name, lua_Integer count) {
  if (lua_getmetatable(state, -1) != 0) {
    lua_pop(state, 1); /* a list of the host's, with its length */
    return;
  }
  lua_pushnil(state);
  while (lua_next(state, -2) != 0) {
    lua_pop(state, 1);
    if (!lua_isinteger(state, -1) || lua_tointeger(state, -1) < 1 || lua_tointeger(state, -1) > count) {
      const char *key = lua_isinteger(state, -1) ? lua_pushfstring(state, "%I", lua_tointeger(state, -1))
                        : lua_type(state, -1) == LUA_TSTRING
                            ? lua_pushfstring(state, "'%s'", lua_tostring(state, -1))
                            : luaL_typename(state, -1);
      cleave_script_raise(state, "%s: attribute '%s' is a table with the key %s, expected a list", what, name,
                          key);
    }
    cleave_script_step(state, 2);
  }
}

/* The list on top of the stack. */
static void read_list(lua_State *state, cleave_arena_t *arena, const char *what,
                      cleave_attribute_t *attribute) {
  lua_Integer count = luaL_len(state, -1);
  if (count > LONGEST_LIST) {
    cleave_script_raise(state, "%s: attribute '%s' is a list of %lld, expected at most %d", what,
                        attribute->name, (long long)count, LONGEST_LIST);
  }
  count = count > 0 ? count : 0;
  check_is_list(state, what, attribute->name, count);
  attribute->kind = list_kind(state, what, attribute->name, count);
  attribute->count = (uint32_t)count;
  int64_t *ints = NULL;
  float *floats = NULL;
  const char **texts = NULL;
  if (attribute->kind == CLEAVE_ATTRIBUTE_INTS) {
    attribute->ints = ints = take(state, arena, (size_t)count, sizeof *ints);
  } else if (attribute->kind == CLEAVE_ATTRIBUTE_FLOATS) {
    attribute->floats = floats = take(state, arena, (size_t)count, sizeof *floats);
  } else {
    attribute->strings = texts = take(state, arena, (size_t)count, sizeof *texts);
  }
  for (lua_Integer k = 0; k < count; k++) {
    lua_geti(state, -1, k + 1);
    if (ints != NULL) {
      ints[k] = integer_at(state, -1);
    } else if (floats != NULL) {
      floats[k] = lua_isboolean(state, -1)
                      ? (float)lua_toboolean(state, -1)
                      : (float)finite_number(state, -1, what, attribute->name, (double)FLT_MAX);
    } else {
      size_t length = 0;
      texts[k] = copy_text(state, arena, -1, &length);
      if (strlen(texts[k]) != length) {
        cleave_script_raise(state, "%s: attribute '%s' has a string with a zero byte", what, attribute->name);
      }
    }
    lua_pop(state, 1);
    cleave_script_step(state, 2);
  }
}

/* The value on top of the stack. */
static void read_value(lua_State *state, cleave_arena_t *arena, const char *what,
                       cleave_attribute_t *attribute) {
  size_t length = 0;
  switch (lua_type(state, -1)) {
    case LUA_TBOOLEAN:
      attribute->kind = CLEAVE_ATTRIBUTE_INT;
      attribute->i = lua_toboolean(state, -1);
      break;
    case LUA_TNUMBER:
      if (lua_isinteger(state, -1)) {
        attribute->kind = CLEAVE_ATTRIBUTE_INT;
        attribute->i = lua_tointeger(state, -1);
      } else {
        attribute->kind = CLEAVE_ATTRIBUTE_FLOAT;
        attribute->f = finite_number(state, -1, what, attribute->name, DBL_MAX);
      }
      break;
    case LUA_TSTRING:
      attribute->kind = CLEAVE_ATTRIBUTE_STRING;
      attribute->s = copy_text(state, arena, -1, &length);
      attribute->count = (uint32_t)length;
      break;
    case LUA_TTABLE: read_list(state, arena, what, attribute); break;
    default:
      cleave_script_raise(
          state, "%s: attribute '%s' is a %s, expected a number, a string, a boolean or a list of them", what,
          attribute->name, luaL_typename(state, -1));
  }
}

const cleave_attribute_t *cleave_script_read_attributes(lua_State *state, int index, cleave_arena_t *arena,
                                                        const char *what, uint32_t *out_count) {
  uint32_t count = 0;
  index = lua_absindex(state, index);
  luaL_checkstack(state, 8, NULL);
  cleave_attribute_t *attributes = take(state, arena, MAX_ATTRIBUTES, sizeof *attributes);
  lua_pushnil(state);
  while (lua_next(state, index) != 0) {
    if (lua_type(state, -2) != LUA_TSTRING) {
      cleave_script_raise(state, "%s: attributes have names, found a %s as a key", what,
                          luaL_typename(state, -2));
    }
    size_t length = 0;
    const char *name = copy_text(state, arena, -2, &length);
    if (length == 0 || length > LONGEST_NAME || strlen(name) != length) {
      cleave_script_raise(state, "%s: a name of an attribute has %d byte%s, expected 1 to %d and no zero",
                          what, (int)length, CLEAVE_PLURAL(length), LONGEST_NAME);
    }
    if (count == MAX_ATTRIBUTES) {
      cleave_script_raise(state, "%s: more than %d attributes", what, MAX_ATTRIBUTES);
    }
    attributes[count] = (cleave_attribute_t){.name = name};
    read_value(state, arena, what, &attributes[count]);
    count++;
    lua_pop(state, 1);
    cleave_script_step(state, 4);
  }
  *out_count = count;
  return attributes;
}
