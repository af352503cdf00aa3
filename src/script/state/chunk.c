// SPDX-License-Identifier: Apache-2.0
#include "script/state/chunk.h"

#include <stdlib.h>
#include <string.h>

static bool load(lua_State *state, const char *text, size_t length) {
  const char *name = lua_pushfstring(state, "@%s", cleave_script_of(state)->path);
  int code = luaL_loadbufferx(state, text, length, name, "t");
  lua_remove(state, -2);
  return code == LUA_OK;
}

/* Does the message say that the text ended too early? */
static bool ends_early(lua_State *state) {
  static const char MARK[] = "<eof>";
  size_t length = 0;
  const char *message = lua_tolstring(state, -1, &length);
  return message != NULL && length >= sizeof MARK - 1 &&
         strcmp(message + length - (sizeof MARK - 1), MARK) == 0;
}

bool cleave_chunk_load(lua_State *state, const cleave_chunk_t *chunk) {
  if (chunk->length > CLEAVE_SCRIPT_TEXT_LIMIT) {
    cleave_script_raise(state, "more than %d bytes in one piece", (int)CLEAVE_SCRIPT_TEXT_LIMIT);
  }
  if (memchr(chunk->text, 0, chunk->length) != NULL) {
    cleave_script_raise(state, "a zero byte in the text");
  }
  // Tries the chunk as an expression first; "return" is on the first line, so that line numbers stay the
  // same.
  const char *expression = lua_pushfstring(state, "return %s", chunk->text);
  bool is_loaded = load(state, expression, chunk->length + 7);
  if (!is_loaded) {
    lua_pop(state, 1);
    is_loaded = load(state, chunk->text, chunk->length);
  }
  lua_remove(state, -2);
  if (is_loaded) {
    return true;
  }
  if (!ends_early(state)) {
    lua_error(state);
  }
  lua_pop(state, 1);
  return false;
}

void cleave_chunk_run(lua_State *state, int show) {
  int below = lua_gettop(state) - 1;
  lua_call(state, 0, LUA_MULTRET);
  int count = lua_gettop(state) - below;
  if (count > 0) {
    luaL_checkstack(state, 1, NULL);
    lua_pushvalue(state, show);
    lua_insert(state, below + 1);
    lua_call(state, count, 0);
  }
}

cleave_status_t cleave_chunk_error(const cleave_script_t *script, const cleave_chunk_t *chunk,
                                   const cleave_error_t *inner, cleave_error_t *error) {
  const char *text = inner->message;
  size_t name = strlen(script->path);
  if (atomic_load(&script->is_ended)) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "interrupted");
  }
  if (strncmp(text, script->path, name) != 0 || text[name] != ':') {
    return cleave_error_set(error, inner->status, "%s", text);
  }
  char *end = NULL;
  text += name + 1;
  long line = strtol(text, &end, 10);
  bool has_line = end != text && *end == ':';
  text = has_line ? end + 1 : text;
  text += *text == ' ';
  if (has_line && memchr(chunk->text, '\n', chunk->length) != NULL) {
    return cleave_error_set(error, inner->status, "line %ld: %s", line, text);
  }
  return cleave_error_set(error, inner->status, "%s", text);
}
