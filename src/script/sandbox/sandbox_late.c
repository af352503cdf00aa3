// SPDX-License-Identifier: Apache-2.0
/*
 * Events that a script adds to a metatable after it was set: `setmetatable(o, self); self.__index = self`.
 * The interpreter sees a copy of the metatable (sandbox.c); for every event that was missing then, the copy
 * has a function that looks it up in the script's own table, and behaves like Lua if it is still missing.
 */
#include <string.h>

#include "script/sandbox/host.h"

/* A copy holds the script's own metatable under this key. Scripts can neither name it nor come across it. */
static const char ORIGINAL_KEY = 'o';

void cleave_sandbox_set_original(lua_State *state) {
  lua_rawsetp(state, -2, &ORIGINAL_KEY);
}

int cleave_sandbox_push_original(lua_State *state) {
  return lua_rawgetp(state, -1, &ORIGINAL_KEY);
}

/* The events that may be added later, with Lua's error message for a missing event, if it is an error. */
static const struct {
  const char *name;
  const char *error;
} EVENTS[] = {{"__index", NULL},
              {"__newindex", NULL},
              {"__eq", NULL},
              {"__len", NULL},
              {"__tostring", NULL},
              {"__call", "attempt to call a %s value"},
              {"__concat", "attempt to concatenate a %s value"},
              {"__lt", "attempt to compare a %s value"},
              {"__le", "attempt to compare a %s value"},
              {"__unm", "attempt to perform arithmetic on a %s value"},
              {"__add", "attempt to perform arithmetic on a %s value"},
              {"__sub", "attempt to perform arithmetic on a %s value"},
              {"__mul", "attempt to perform arithmetic on a %s value"},
              {"__div", "attempt to perform arithmetic on a %s value"},
              {"__mod", "attempt to perform arithmetic on a %s value"},
              {"__pow", "attempt to perform arithmetic on a %s value"},
              {"__idiv", "attempt to perform arithmetic on a %s value"},
              {"__band", "attempt to perform bitwise operation on a %s value"},
              {"__bor", "attempt to perform bitwise operation on a %s value"},
              {"__bxor", "attempt to perform bitwise operation on a %s value"},
              {"__bnot", "attempt to perform bitwise operation on a %s value"},
              {"__shl", "attempt to perform bitwise operation on a %s value"},
              {"__shr", "attempt to perform bitwise operation on a %s value"}};
enum { EVENT_COUNT = sizeof EVENTS / sizeof EVENTS[0], INDEX = 0, NEWINDEX, EQUAL, LENGTH, TEXT, CALL };

static int call_event(lua_State *state);

/* Pushes the operand's present handler for the event; false, and nothing is pushed, if there is none. */
static bool push_handler(lua_State *state, int operand, const char *event) {
  if (lua_getmetatable(state, operand) == 0) {
    return false;
  }
  if (cleave_sandbox_push_original(state) == LUA_TTABLE) {
    lua_replace(state, -2);
  } else {
    lua_pop(state, 1);
  }
  lua_pushstring(state, event);
  (void)lua_rawget(state, -2);
  lua_remove(state, -2);
  if (lua_isnil(state, -1) || lua_tocfunction(state, -1) == call_event) {
    lua_pop(state, 1);
    return false;
  }
  return true;
}

/* Does with the operands on the stack what Lua does without the event. */
static int do_without(lua_State *state, int event) {
  switch (event) {
    case INDEX: lua_pushnil(state); return 1;
    case NEWINDEX:
      lua_settop(state, 3);
      lua_rawset(state, 1);
      return 0;
    case EQUAL: lua_pushboolean(state, false); return 1;
    case LENGTH: lua_pushinteger(state, (lua_Integer)lua_rawlen(state, 1)); return 1;
    case TEXT: lua_pushstring(state, luaL_typename(state, 1)); return 1;
    default: break;
  }
  int culprit = lua_istable(state, 1) ? 1 : 2;
  return luaL_error(state, EVENTS[event].error, luaL_typename(state, culprit));
}

static int finish_event(lua_State *state, int status, lua_KContext context) {
  (void)status;
  (void)context;
  return lua_gettop(state);
}

static int call_event(lua_State *state) {
  int event = (int)lua_tointeger(state, lua_upvalueindex(1));
  bool is_binary = event > CALL || event == EQUAL;
  if (!push_handler(state, 1, EVENTS[event].name) &&
      !(is_binary && push_handler(state, 2, EVENTS[event].name))) {
    return do_without(state, event);
  }
  if (event <= NEWINDEX && !lua_isfunction(state, -1)) {
    lua_replace(state, 1); /* followed by the key and perhaps a value */
    if (event == INDEX) {
      lua_settop(state, 2);
      lua_gettable(state, 1);
      return 1;
    }
    lua_settop(state, 3);
    lua_settable(state, 1);
    return 0;
  }
  lua_insert(state, 1);
  lua_callk(state, lua_gettop(state) - 1, LUA_MULTRET, 0, finish_event);
  return finish_event(state, LUA_OK, 0);
}

void cleave_sandbox_push_late(lua_State *state, const char *name) {
  for (int event = 0; event < EVENT_COUNT; event++) {
    if (strcmp(EVENTS[event].name, name) == 0) {
      lua_pushinteger(state, event);
      lua_pushcclosure(state, call_event, 1);
      return;
    }
  }
  lua_pushnil(state);
}
