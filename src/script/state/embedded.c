// SPDX-License-Identifier: Apache-2.0
/* Lua does not check compiled code. This code is part of the program, like its machine code; other code, from
 * files or scripts, is never loaded. Releases of Lua 5.4 share one version number of code, but not always its
 * meaning: a shared library of Lua that was replaced after the build gets the text. */
#include "script/state/embedded.h"

#include <lauxlib.h>
#include <string.h>

const cleave_embedded_file_t *cleave_embedded_find(const char *name) {
  for (const cleave_embedded_file_t *file = cleave_embedded_files; file->name != NULL; file++) {
    if (strcmp(file->name, name) == 0) {
      return file;
    }
  }
  return NULL;
}

bool cleave_embedded_push_code(lua_State *state, const cleave_embedded_file_t *file) {
  if (strcmp(cleave_embedded_lua, lua_ident) != 0) {
    return false;
  }
  if (luaL_loadbufferx(state, file->code, file->code_length, file->name, "b") != LUA_OK) {
    lua_error(state);
  }
  return true;
}
