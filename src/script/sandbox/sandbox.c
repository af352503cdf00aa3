// SPDX-License-Identifier: Apache-2.0
/*
 * Replacements for base functions that could leave the sandbox or its limits: metatables have neither
 * finalisers nor weak references (collections of many weak tables take quadratic time), and no string shows
 * an address.
 */
#include "script/sandbox/host.h"

/* ---- metatables ---- */

/* The interpreter never sees a script's own metatable, but a copy of the events that are in it when it is
 * set: so a finaliser or weak references cannot be added later (other events can: sandbox_late.c). The copy
 * hangs on the table that it was made
 * of, under a key that scripts can neither name nor come across. */
static const char COPY_KEY = 'p';

static void push_copy(lua_State *state, int original) {
  static const char *const EVENTS[] = {
      "__index", "__newindex", "__call", "__eq",  "__lt",    "__le",       "__len",  "__concat",   "__unm",
      "__add",   "__sub",      "__mul",  "__div", "__mod",   "__pow",      "__idiv", "__band",     "__bor",
      "__bxor",  "__bnot",     "__shl",  "__shr", "__close", "__tostring", "__name", "__metatable"};
  if (lua_rawgetp(state, original, &COPY_KEY) == LUA_TNIL) {
    lua_pop(state, 1);
    lua_newtable(state);
    lua_pushvalue(state, original);
    cleave_sandbox_set_original(state);
    lua_pushvalue(state, -1);
    lua_rawsetp(state, original, &COPY_KEY);
  }
  for (size_t k = 0; k < sizeof EVENTS / sizeof EVENTS[0]; k++) {
    lua_pushstring(state, EVENTS[k]);
    lua_pushvalue(state, -1);
    if (lua_rawget(state, original) == LUA_TNIL) {
      lua_pop(state, 1);
      cleave_sandbox_push_late(state, EVENTS[k]);
    }
    lua_rawset(state, -3);
  }
}

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
    /* A chain of callable tables is refused, because Lua follows it within one instruction, in quadratic
     * time. */
    lua_pushliteral(state, "__call");
    if (lua_rawget(state, 2) != LUA_TNIL && !lua_isfunction(state, -1)) {
      return luaL_error(state, "'__call' is a %s, expected a function", luaL_typename(state, -1));
    }
    lua_pop(state, 1);
    push_copy(state, 2);
  }
  lua_setmetatable(state, 1);
  lua_settop(state, 1);
  return 1;
}

static int host_getmetatable(lua_State *state) {
  luaL_checkany(state, 1);
  if (!lua_istable(state, 1) || lua_getmetatable(state, 1) == 0) {
    lua_pushnil(state);
    return 1;
  }
  lua_pushliteral(state, "__metatable");
  if (lua_rawget(state, -2) == LUA_TNIL) {
    lua_pop(state, 1);
    (void)cleave_sandbox_push_original(state); /* nil for a metatable of the host's */
  }
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

/* (count): counts that many steps of a loop in C. */
static int host_step(lua_State *state) {
  lua_Integer count = luaL_checkinteger(state, 1);
  cleave_script_step(state, count < 0 ? 0 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count);
  return 0;
}

void cleave_sandbox_register(lua_State *state) {
  static const luaL_Reg FUNCTIONS[] = {{"setmetatable", host_setmetatable},
                                       {"getmetatable", host_getmetatable},
                                       {"tostring", host_tostring},
                                       {"list_size", host_list_size},
                                       {"is_handle", host_is_handle},
                                       {"step", host_step},
                                       {NULL, NULL}};
  luaL_setfuncs(state, FUNCTIONS, 0);
  cleave_sandbox_register_coroutines(state);
  cleave_sandbox_register_lists(state);
  /* "".x finds the string functions, but scripts cannot get their table. */
  lua_pushliteral(state, "");
  if (lua_getmetatable(state, -1) != 0) {
    lua_pushboolean(state, false);
    lua_setfield(state, -2, "__metatable");
    lua_pop(state, 1);
  }
  lua_pop(state, 1);
}
