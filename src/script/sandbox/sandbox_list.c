// SPDX-License-Identifier: Apache-2.0
/*
 * Walking and sorting tables: in an order that depends neither on addresses nor on hash seeds, with every
 * step counted, and correct whatever a comparison function answers.
 */
#include <string.h>

#include "script/handles/handles.h"
#include "script/sandbox/host.h"

/* ---- the order of keys ---- */

enum { OBJECT = 4, LONGEST_SORTED = 1000000 };

/* Order: numbers, strings, booleans, handles by index; a single table or function may be the last. */
static int key_class(lua_State *state, int index) {
  switch (lua_type(state, index)) {
    case LUA_TNUMBER: return 0;
    case LUA_TSTRING: return 1;
    case LUA_TBOOLEAN: return 2;
    case LUA_TUSERDATA: return 3;
    default: return OBJECT;
  }
}

static bool key_less(lua_State *state, int a, int b) {
  int a_class = key_class(state, a);
  int b_class = key_class(state, b);
  if (a_class != b_class) {
    return a_class < b_class;
  }
  switch (a_class) {
    case 0: return lua_compare(state, a, b, LUA_OPLT) != 0;
    case 1: {
      size_t a_length = 0;
      size_t b_length = 0;
      const char *a_text = lua_tolstring(state, a, &a_length);
      const char *b_text = lua_tolstring(state, b, &b_length);
      size_t shorter = a_length < b_length ? a_length : b_length;
      cleave_script_step(state, (uint32_t)(shorter / 64));
      int order = memcmp(a_text, b_text, shorter);
      return order != 0 ? order < 0 : a_length < b_length;
    }
    case 2: return lua_toboolean(state, a) < lua_toboolean(state, b);
    case 3: return cleave_handle_less(state, a, b);
    default: return false;
  }
}

static bool list_less(lua_State *state, int list, lua_Integer a, lua_Integer b) {
  lua_rawgeti(state, list, a);
  lua_rawgeti(state, list, b);
  bool less = key_less(state, -2, -1);
  lua_pop(state, 2);
  return less;
}

static void list_swap(lua_State *state, int list, lua_Integer a, lua_Integer b) {
  lua_rawgeti(state, list, a);
  lua_rawgeti(state, list, b);
  lua_rawseti(state, list, a);
  lua_rawseti(state, list, b);
}

/* Heap sort: no recursion, and n log n steps for any input. */
static void sort_keys(lua_State *state, int list, lua_Integer count) {
  lua_Integer start = count / 2;
  lua_Integer end = count;
  while (end > 1) {
    if (start > 0) {
      start--;
    } else {
      end--;
      list_swap(state, list, 1, end + 1);
    }
    cleave_script_step(state, 16);
    for (lua_Integer root = start; 2 * root + 1 < end;) {
      lua_Integer child = 2 * root + 1;
      if (child + 1 < end && list_less(state, list, child + 1, child + 2)) {
        child++;
      }
      if (!list_less(state, list, root + 1, child + 1)) {
        break;
      }
      list_swap(state, list, root + 1, child + 1);
      root = child;
    }
  }
}

/* Is the key on top visible to scripts? Tables and functions are ordered only relative to other kinds of
 * keys. */
static bool is_visible(lua_State *state, lua_Integer *objects) {
  if (lua_type(state, -1) == LUA_TLIGHTUSERDATA) {
    return false;
  }
  if (key_class(state, -1) == OBJECT && ++*objects > 1) {
    luaL_error(state, "keys of type %s have no order: keep them in a list", luaL_typename(state, -1));
  }
  return true;
}

/* Upvalues: table, sorted keys, position. Keys that have been removed since are skipped. */
static int next_pair(lua_State *state) {
  for (;;) {
    lua_Integer position = lua_tointeger(state, lua_upvalueindex(3)) + 1;
    lua_pushinteger(state, position);
    lua_replace(state, lua_upvalueindex(3));
    if (lua_rawgeti(state, lua_upvalueindex(2), position) == LUA_TNIL) {
      return 1;
    }
    lua_pushvalue(state, -1);
    if (lua_rawget(state, lua_upvalueindex(1)) != LUA_TNIL) {
      return 2;
    }
    lua_pop(state, 2);
  }
}

static int host_pairs(lua_State *state) {
  cleave_handle_open(state, 1);
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_settop(state, 1);
  lua_newtable(state);
  lua_Integer count = 0;
  lua_Integer objects = 0;
  bool sorted = true;
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    lua_pop(state, 1);
    cleave_script_step(state, 2);
    if (!is_visible(state, &objects)) {
      continue;
    }
    lua_pushvalue(state, -1);
    lua_rawseti(state, 2, ++count);
    if (sorted && count > 1) {
      lua_rawgeti(state, 2, count - 1);
      sorted = key_less(state, -1, -2);
      lua_pop(state, 1);
    }
  }
  if (!sorted) {
    sort_keys(state, 2, count);
  }
  lua_pushinteger(state, 0);
  lua_pushcclosure(state, next_pair, 3);
  return 1;
}

/* (table, key?) -> the first key, or the one that follows, and its value; nil at the end. In the order of
 * pairs, and so in time that is proportional to the table. */
static int host_next(lua_State *state) {
  cleave_handle_open(state, 1);
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_settop(state, 2);
  bool first = lua_isnil(state, 2);
  lua_Integer objects = 0;
  lua_pushnil(state); /* 3: the best so far */
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    lua_pop(state, 1);
    cleave_script_step(state, 4);
    if (is_visible(state, &objects) && (first || key_less(state, 2, -1)) &&
        (lua_isnil(state, 3) || key_less(state, -1, 3))) {
      lua_copy(state, -1, 3);
    }
  }
  lua_settop(state, 3);
  if (lua_isnil(state, 3)) {
    return 1;
  }
  lua_pushvalue(state, 3);
  (void)lua_rawget(state, 1);
  return 2;
}

/* ---- sort ---- */

/* Is the value at `a` less than the one at `b`? By `less` at index 2 or, if it is nil, by Lua's order with
 * strings by their bytes. */
static bool sorts_before(lua_State *state, int a, int b) {
  cleave_script_step(state, 8);
  if (!lua_isnil(state, 2)) {
    lua_pushvalue(state, 2);
    lua_pushvalue(state, a);
    lua_pushvalue(state, b);
    lua_call(state, 2, 1);
    bool before = lua_toboolean(state, -1) != 0;
    lua_pop(state, 1);
    return before;
  }
  if (lua_type(state, a) == LUA_TSTRING && lua_type(state, b) == LUA_TSTRING) {
    return key_less(state, a, b);
  }
  return lua_compare(state, a, b, LUA_OPLT) != 0;
}

/* Merges from[start, middle) and from[middle, end) into `to`; equal ones stay in their order. */
static void merge(lua_State *state, int from, int to, lua_Integer start, lua_Integer middle,
                  lua_Integer end) {
  lua_Integer left = start;
  lua_Integer right = middle;
  for (lua_Integer k = start; k < end; k++) {
    bool take_right = left == middle;
    if (left < middle && right < end) {
      lua_rawgeti(state, from, right);
      lua_rawgeti(state, from, left);
      take_right = sorts_before(state, lua_absindex(state, -2), lua_absindex(state, -1));
      lua_pop(state, 2);
    }
    lua_rawgeti(state, from, take_right ? right++ : left++);
    lua_rawseti(state, to, k);
    cleave_script_step(state, 2);
  }
}

/* (list, less?): sorts a plain list. Sorts copies, so that `less` may change the list meanwhile. */
static int host_sort(lua_State *state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  if (!lua_isnoneornil(state, 2)) {
    luaL_checktype(state, 2, LUA_TFUNCTION);
  }
  lua_settop(state, 2);
  lua_Integer count = (lua_Integer)lua_rawlen(state, 1);
  if (count > LONGEST_SORTED) {
    return luaL_error(state, "table.sort: a list of more than %d entries", LONGEST_SORTED);
  }
  lua_createtable(state, (int)count, 0); /* 3 */
  lua_createtable(state, (int)count, 0); /* 4 */
  for (lua_Integer k = 1; k <= count; k++) {
    lua_rawgeti(state, 1, k);
    lua_rawseti(state, 3, k);
    cleave_script_step(state, 2);
  }
  int from = 3;
  for (lua_Integer width = 1; width < count; width *= 2) {
    for (lua_Integer start = 1; start <= count; start += 2 * width) {
      lua_Integer middle = start + width <= count ? start + width : count + 1;
      lua_Integer end = middle + width <= count ? middle + width : count + 1;
      merge(state, from, 7 - from, start, middle, end);
    }
    from = 7 - from;
  }
  for (lua_Integer k = 1; k <= count; k++) {
    lua_rawgeti(state, from, k);
    lua_rawseti(state, 1, k);
    cleave_script_step(state, 2);
  }
  return 0;
}

/* ---- many results ---- */

static lua_Integer check_results(lua_State *state, lua_Integer first, lua_Integer last) {
  if (first > last) {
    return 0;
  }
  lua_Unsigned more = (lua_Unsigned)last - (lua_Unsigned)first;
  if (more >= CLEAVE_SCRIPT_RESULT_LIMIT) {
    return luaL_error(state, "too many results to unpack");
  }
  luaL_checkstack(state, (int)more + 1, "too many results to unpack");
  cleave_script_step(state, (uint32_t)more + 1);
  return (lua_Integer)more + 1;
}

/* (list, first?, last?) -> its entries; the list is plain, or inputs or outputs of a node. */
static int host_unpack(lua_State *state) {
  lua_Integer first = luaL_optinteger(state, 2, 1);
  lua_Integer last = lua_isnoneornil(state, 3) ? luaL_len(state, 1) : luaL_checkinteger(state, 3);
  cleave_handle_open(state, 1);
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_Integer count = check_results(state, first, last);
  for (lua_Integer k = 0; k < count; k++) {
    lua_rawgeti(state, 1, first + k);
  }
  return (int)count;
}

/* (text, first?, last?) -> bytes. */
static int host_byte(lua_State *state) {
  size_t length = 0;
  const char *text = luaL_checklstring(state, 1, &length);
  lua_Integer size = (lua_Integer)length;
  lua_Integer first = luaL_optinteger(state, 2, 1);
  lua_Integer last = luaL_optinteger(state, 3, first);
  first = first > 0 ? first : first == 0 || first < -size ? 1 : size + first + 1;
  last = last > size ? size : last >= 0 ? last : last < -size ? 0 : size + last + 1;
  lua_Integer count = check_results(state, first, last);
  for (lua_Integer k = 0; k < count; k++) {
    lua_pushinteger(state, (unsigned char)text[first + k - 1]);
  }
  return (int)count;
}

void cleave_sandbox_register_lists(lua_State *state) {
  static const luaL_Reg FUNCTIONS[] = {{"pairs", host_pairs},   {"next", host_next}, {"sort", host_sort},
                                       {"unpack", host_unpack}, {"byte", host_byte}, {NULL, NULL}};
  luaL_setfuncs(state, FUNCTIONS, 0);
}
