// SPDX-License-Identifier: Apache-2.0
/* Information about a script's function: its parameters and lines. */
#include "script/sandbox/host.h"

/* (function) -> { parameters = names, vararg =, first =, last = (lines), place = of the first, file = index
 * of the script's file, or nil if it is not defined in the script }. */
static int host_function_info(lua_State *state) {
  luaL_checktype(state, 1, LUA_TFUNCTION);
  lua_Debug record;
  lua_settop(state, 1);
  lua_pushvalue(state, 1);
  if (lua_getinfo(state, ">Su", &record) == 0) {
    return cleave_script_raise(state, "the function has no description");
  }
  lua_newtable(state); /* 2 */
  lua_pushinteger(state, record.linedefined);
  lua_setfield(state, 2, "first");
  lua_pushinteger(state, record.lastlinedefined);
  lua_setfield(state, 2, "last");
  lua_pushboolean(state, record.isvararg);
  lua_setfield(state, 2, "vararg");
  int place = cleave_script_place_of(cleave_script_of(state), record.source,
                                     record.linedefined > 0 ? record.linedefined : 1);
  lua_pushinteger(state, place);
  lua_setfield(state, 2, "place");
  if (place > 0) {
    lua_pushinteger(state, cleave_place_file(place));
    lua_setfield(state, 2, "file");
  }
  lua_newtable(state); /* 3 */
  for (int k = 1; k <= record.nparams; k++) {
    lua_pushvalue(state, 1); /* looked at on top of the stack */
    const char *name = lua_getlocal(state, NULL, k);
    lua_pushstring(state, name == NULL ? "?" : name);
    lua_rawseti(state, 3, k);
    lua_pop(state, 1);
  }
  lua_setfield(state, 2, "parameters");
  return 1;
}

void cleave_function_info_register(lua_State *state) {
  lua_pushcfunction(state, host_function_info);
  lua_setfield(state, -2, "function_info");
}
