/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacements for base functions that could leave the sandbox or its limits: error handlers run after the
 * stack has unwound (a handler that runs inside of the hook could not be stopped), metatables carry no
 * finalisers, and `pairs` goes in an order that does not depend on addresses or hash seeds.
 */
#include <string.h>

#include "script/handles.h"
#include "script/host.h"

/* ---- pcall and xpcall ---- */

static int finish_pcall(lua_State *state, int status, lua_KContext extra) {
  if (status == LUA_OK || status == LUA_YIELD) {
    return lua_gettop(state) - (int)extra;
  }
  cleave_script_of(state)->raised = CLEAVE_OK;
  lua_pushboolean(state, false);
  lua_insert(state, -2);
  return 2;
}

static int host_pcall(lua_State *state) {
  luaL_checkany(state, 1);
  lua_pushboolean(state, true);
  lua_insert(state, 1);
  int status = lua_pcallk(state, lua_gettop(state) - 2, LUA_MULTRET, 0, 0, finish_pcall);
  return finish_pcall(state, status, 0);
}

static int finish_xpcall(lua_State *state, int status, lua_KContext extra) {
  if (status == LUA_OK || status == LUA_YIELD) {
    return lua_gettop(state) - (int)extra;
  }
  cleave_script_of(state)->raised = CLEAVE_OK;
  /* 1: handler, top: error */
  lua_pushvalue(state, 1);
  lua_insert(state, -2);
  lua_call(state, 1, 1);
  lua_pushboolean(state, false);
  lua_insert(state, -2);
  return 2;
}

static int host_xpcall(lua_State *state) {
  luaL_checktype(state, 2, LUA_TFUNCTION);
  lua_pushvalue(state, 2);
  lua_insert(state, 1); /* handler, function, handler, arguments */
  lua_remove(state, 3);
  lua_pushboolean(state, true);
  lua_insert(state, 2); /* handler, true, function, arguments */
  int status = lua_pcallk(state, lua_gettop(state) - 3, LUA_MULTRET, 0, 1, finish_xpcall);
  return finish_xpcall(state, status, 1);
}

/* ---- metatables ---- */

static int host_setmetatable(lua_State *state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  luaL_argexpected(state, lua_isnil(state, 2) || lua_istable(state, 2), 2, "nil or table");
  lua_settop(state, 2);
  if (luaL_getmetafield(state, 1, "__metatable") != LUA_TNIL) {
    return luaL_error(state, "cannot change a protected metatable");
  }
  if (lua_istable(state, 2)) {
    static const char *const REFUSED[] = {"__gc", "__mode"};
    for (size_t k = 0; k < sizeof REFUSED / sizeof REFUSED[0]; k++) {
      lua_pushstring(state, REFUSED[k]);
      if (lua_rawget(state, 2) != LUA_TNIL) {
        return luaL_error(state, "'%s' is not available", REFUSED[k]);
      }
      lua_pop(state, 1);
    }
  }
  lua_settop(state, 2);
  lua_setmetatable(state, 1);
  return 1;
}

static int host_getmetatable(lua_State *state) {
  luaL_checkany(state, 1);
  if (!lua_istable(state, 1) || lua_getmetatable(state, 1) == 0) {
    lua_pushnil(state);
    return 1;
  }
  (void)luaL_getmetafield(state, 1, "__metatable"); /* pushes nothing where there is none */
  return 1;
}

/* ---- tostring: no addresses ---- */

static int host_tostring(lua_State *state) {
  luaL_checkany(state, 1);
  switch (lua_type(state, 1)) {
    case LUA_TTABLE:
    case LUA_TUSERDATA:
      if (luaL_getmetafield(state, 1, "__tostring") != LUA_TNIL) {
        luaL_tolstring(state, 1, NULL);
        return 1;
      }
      lua_pushstring(state, luaL_typename(state, 1));
      return 1;
    case LUA_TFUNCTION:
    case LUA_TTHREAD:
    case LUA_TLIGHTUSERDATA: lua_pushstring(state, luaL_typename(state, 1)); return 1;
    default: luaL_tolstring(state, 1, NULL); return 1;
  }
}

/* ---- pairs ---- */

/* Numbers, then strings, booleans, handles by index, and the rest as they come. */
static int key_class(lua_State *state, int index) {
  switch (lua_type(state, index)) {
    case LUA_TNUMBER: return 0;
    case LUA_TSTRING: return 1;
    case LUA_TBOOLEAN: return 2;
    case LUA_TUSERDATA: return 3;
    default: return 4;
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
      int order = memcmp(a_text, b_text, a_length < b_length ? a_length : b_length);
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

/* Heap sort: no recursion, and n log n whatever the input. */
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

/* Upvalues: table, sorted keys, position. Keys that are gone by now are left out. */
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
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_settop(state, 1);
  lua_newtable(state);
  lua_Integer count = 0;
  bool sorted = true;
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    lua_pop(state, 1);
    lua_pushvalue(state, -1);
    lua_rawseti(state, 2, ++count);
    if (sorted && count > 1) {
      lua_rawgeti(state, 2, count - 1);
      sorted = key_less(state, -1, -2);
      lua_pop(state, 1);
    }
    cleave_script_step(state, 2);
  }
  if (!sorted) {
    sort_keys(state, 2, count);
  }
  lua_pushinteger(state, 0);
  lua_pushcclosure(state, next_pair, 3);
  return 1;
}

/* Length of a list, whatever its metatable says. */
static int host_list_size(lua_State *state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_pushinteger(state, (lua_Integer)lua_rawlen(state, 1));
  return 1;
}

/* Is the value at 1 a handle? Handles are the only userdata. */
static int host_is_handle(lua_State *state) {
  lua_pushboolean(state, lua_type(state, 1) == LUA_TUSERDATA);
  return 1;
}

void cleave_sandbox_register(lua_State *state) {
  static const luaL_Reg FUNCTIONS[] = {{"pcall", host_pcall},
                                       {"xpcall", host_xpcall},
                                       {"setmetatable", host_setmetatable},
                                       {"getmetatable", host_getmetatable},
                                       {"tostring", host_tostring},
                                       {"pairs", host_pairs},
                                       {"list_size", host_list_size},
                                       {"is_handle", host_is_handle},
                                       {NULL, NULL}};
  luaL_setfuncs(state, FUNCTIONS, 0);
  /* "".x goes to the string functions, but nobody gets at their table. */
  lua_pushliteral(state, "");
  if (lua_getmetatable(state, -1) != 0) {
    lua_pushboolean(state, false);
    lua_setfield(state, -2, "__metatable");
    lua_pop(state, 1);
  }
  lua_pop(state, 1);
}
