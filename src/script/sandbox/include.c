// SPDX-License-Identifier: Apache-2.0
/*
 * Files that rule files include. Names are relative to the folder of the loaded rule file, whichever file
 * includes them; their target must be below that folder after symbolic links are resolved (system/file). The
 * content belongs to the script, so that nothing leaks if an error is raised.
 */
#include "script/sandbox/include.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "script/sandbox/host.h"
#include "script/state/embedded.h"

enum { LONGEST_NAME = 200 };

static const char RESULTS_KEY = 'i'; /* of the registry: index of the file -> what it returned */

/* Is it a valid name: parts of letters, digits and the like with "/" in between and ".lua" at the end, none
 * of which begins with a dot? */
static bool is_good_name(const char *name, size_t length) {
  if (length > LONGEST_NAME || strlen(name) != length || !cleave_path_has_extension(name, ".lua")) {
    return false;
  }
  for (size_t k = 0; k < length; k++) {
    bool starts = k == 0 || name[k - 1] == '/';
    if ((unsigned char)name[k] < ' ' || name[k] == '\\' || (starts && (name[k] == '/' || name[k] == '.'))) {
      return false;
    }
  }
  return true;
}

static const char *check_name(lua_State *state, const char *word, const char *name, size_t length) {
  if (!is_good_name(name, length)) {
    cleave_script_raise(state,
                        "%s '%.*s': expected the path of a .lua file below the folder of the rule file, like "
                        "'parts/conv.lua'",
                        word, (int)(length < LONGEST_NAME ? length : LONGEST_NAME), name);
  }
  return name;
}

/* "a.lua -> b.lua -> a.lua", from the file that is being included already. */
static void raise_cycle(lua_State *state, const cleave_include_t *include, uint32_t file) {
  const cleave_script_t *script = cleave_script_of(state);
  char text[512] = "";
  size_t length = 0;
  bool begun = false;
  for (uint32_t k = 0; k <= include->depth && length < sizeof text; k++) {
    begun = begun || include->chain[k] == file;
    if (begun) {
      length += (size_t)snprintf(text + length, sizeof text - length, "%s -> ",
                                 script->files[include->chain[k]].path);
    }
  }
  cleave_script_raise(state, "files include each other: %s%s", text, script->files[file].path);
}

static void raise_failed(lua_State *state, const char *word, const char *name, cleave_error_t *error) {
  cleave_script_of(state)->raised =
      error->status == CLEAVE_ERROR_LIMIT || error->status == CLEAVE_ERROR_OUT_OF_MEMORY ? error->status
                                                                                         : CLEAVE_OK;
  cleave_script_raise(state, "%s '%s': %s", word, name, error->message);
}

/* Opens a file, which may have an index already, and pushes the environment and its chunk. */
static uint32_t push_chunk(lua_State *state, const char *word, const char *name, const char *path,
                           uint32_t file) {
  cleave_script_t *script = cleave_script_of(state);
  const cleave_include_t *include = script->include;
  if (file == CLEAVE_INDEX_NONE) {
    file = cleave_script_add_file(state, path);
  }
  lua_rawgeti(state, LUA_REGISTRYINDEX, include->environment);
  if (include->source == CLEAVE_INCLUDE_EMBEDDED) {
    const cleave_embedded_file_t *embedded = cleave_embedded_find(path);
    if (embedded == NULL) {
      cleave_script_raise(state, "%s '%s': no such file comes with cleave", word, name);
      return 0;
    }
    cleave_script_load_embedded(state, file, embedded, -1);
    return file;
  }
  if (include->note != NULL) {
    include->note(include->note_context, path);
  }
  const char *folder = lua_pushlstring(state, path, strlen(path) - strlen(name));
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_file_release(script->files[file].content);
  script->files[file].content = NULL;
  cleave_status_t status =
      cleave_file_read_below(folder, name, CLEAVE_SCRIPT_TEXT_LIMIT, &script->files[file].content, &error);
  lua_pop(state, 1);
  if (status != CLEAVE_OK) {
    raise_failed(state, word, name, &error);
    return 0;
  }
  const cleave_file_t *content = script->files[file].content;
  cleave_script_load_file(state, file, (const char *)cleave_file_data(content), cleave_file_size(content),
                          -1);
  return file;
}

/* Index of the file, or NONE if it was not included before. */
static uint32_t find_file(const cleave_script_t *script, const char *path) {
  for (uint32_t k = 0; k < script->file_count; k++) {
    if (strcmp(script->files[k].path, path) == 0) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* Runs a chunk and leaves the result on the stack. The chain of files is restored even if it fails. */
static void run_chunk(lua_State *state, uint32_t file) {
  cleave_script_t *script = cleave_script_of(state);
  cleave_include_t *include = script->include;
  include->chain[++include->depth] = file;
  lua_pushcfunction(state, cleave_script_note_place);
  lua_insert(state, -2);
  int code = lua_pcall(state, 0, 1, -2);
  include->depth--;
  if (code != LUA_OK) {
    cleave_script_pass_end_on(state);
    script->error_is_placed = true;
    lua_error(state);
  }
  lua_remove(state, -2);
  if (lua_isnil(state, -1)) {
    lua_pop(state, 1);
    lua_pushboolean(state, true);
  }
}

static void push_results(lua_State *state) {
  if (lua_rawgetp(state, LUA_REGISTRYINDEX, &RESULTS_KEY) == LUA_TNIL) {
    lua_pop(state, 1);
    lua_newtable(state);
    lua_pushvalue(state, -1);
    lua_rawsetp(state, LUA_REGISTRYINDEX, &RESULTS_KEY);
  }
}

static int include_file(lua_State *state, const char *word, const char *name) {
  cleave_script_t *script = cleave_script_of(state);
  const cleave_include_t *include = script->include;
  luaL_checkstack(state, 16, NULL);
  if (include == NULL) {
    return cleave_script_raise(
        state, "%s '%s': files are included while the rule file loads, not in its functions", word, name);
  }
  if (include->source == CLEAVE_INCLUDE_NOTHING) {
    return cleave_script_raise(state, "%s '%s': only rules from a file can include others", word, name);
  }
  size_t folder = 0;
  (void)cleave_path_folder(script->path, &folder);
  lua_pushlstring(state, script->path, folder);
  const char *path = lua_pushfstring(state, "%s%s", lua_tostring(state, -1), name);
  uint32_t file = find_file(script, path);
  for (uint32_t k = 0; k <= include->depth; k++) {
    if (include->chain[k] == file) {
      raise_cycle(state, include, file);
    }
  }
  if (file != CLEAVE_INDEX_NONE) {
    push_results(state);
    if (lua_rawgeti(state, -1, file) != LUA_TNIL) {
      return 1;
    }
    lua_pop(state, 2); /* it failed when it was included before */
  }
  if (include->depth == CLEAVE_SCRIPT_INCLUDE_DEPTH) {
    return cleave_script_raise(state, "%s '%s': more than %d files that include each other in a row", word,
                               name, CLEAVE_SCRIPT_INCLUDE_DEPTH);
  }
  file = push_chunk(state, word, name, path, file);
  lua_remove(state, -2); /* the environment */
  run_chunk(state, file);
  push_results(state);
  lua_pushvalue(state, -2);
  lua_rawseti(state, -2, file);
  lua_pop(state, 1);
  return 1;
}

/* (path) -> what the file returned. */
static int host_include(lua_State *state) {
  size_t length = 0;
  if (lua_type(state, 1) != LUA_TSTRING) {
    return cleave_script_raise(state, "include: expected the path of a file, found a %s",
                               luaL_typename(state, 1));
  }
  const char *name = lua_tolstring(state, 1, &length);
  return include_file(state, "include", check_name(state, "include", name, length));
}

/* ("parts.conv") -> what parts/conv.lua returned. */
static int host_require(lua_State *state) {
  size_t length = 0;
  if (lua_type(state, 1) != LUA_TSTRING) {
    return cleave_script_raise(state, "require: expected the name of a file, found a %s",
                               luaL_typename(state, 1));
  }
  const char *name = lua_tolstring(state, 1, &length);
  if (length > LONGEST_NAME || strlen(name) != length || strchr(name, '/') != NULL) {
    return cleave_script_raise(state, "require '%.*s': expected a name like 'parts.conv'", LONGEST_NAME,
                               name);
  }
  char path[LONGEST_NAME + 8];
  (void)snprintf(path, sizeof path, "%s.lua", name);
  for (size_t k = 0; k < length; k++) {
    path[k] = path[k] == '.' ? '/' : path[k];
  }
  return include_file(state, "require", check_name(state, "require", path, length + 4));
}

void cleave_include_register(lua_State *state) {
  static const luaL_Reg FUNCTIONS[] = {{"include", host_include}, {"require", host_require}, {NULL, NULL}};
  luaL_setfuncs(state, FUNCTIONS, 0);
}
