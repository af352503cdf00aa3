// SPDX-License-Identifier: Apache-2.0
/* The builder as scripts get it: its host functions, and `g` of lua/cleave/builder.lua around them. */
#include "script/builder/builder.h"

void cleave_builder_register(lua_State *state) {
  cleave_builder_register_operators(state);
  cleave_builder_register_values(state);
  cleave_builder_register_pass_words(state);
}

void cleave_builder_push(lua_State *state) {
  cleave_script_push_host(state);
  if (lua_getfield(state, -1, "add_node") == LUA_TNIL) {
    lua_pop(state, 1);
    cleave_builder_register(state);
  } else {
    lua_pop(state, 1);
  }
  lua_pop(state, 1);
  cleave_script_import(state, "builder");
  lua_getfield(state, -1, "g");
  lua_remove(state, -2);
}
