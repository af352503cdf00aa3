// SPDX-License-Identifier: Apache-2.0
/*
 * Creation and destruction of an interpreter, calls into it, its modules and its source. Nothing here touches
 * Lua outside of a protected call except for pushing a C function and a pointer, which cannot fail.
 */
#include "script/state/script.h"

#include <lualib.h>
#include <stdio.h>
#include <string.h>

#include "script/state/embedded.h"

/* Bytes of source that the parser gets at once; the clock is read in between. */
enum { TEXT_PIECE = 512 };

/* ---- calls ---- */

typedef struct call {
  cleave_script_body_t body;
  void *context;
} call_t;

static int run_body(lua_State *state) {
  const call_t *call = lua_touserdata(state, 1);
  lua_settop(state, 0);
  call->body(state, call->context);
  return 0;
}

cleave_status_t cleave_script_call(cleave_script_t *script, cleave_script_body_t body, void *context,
                                   uint32_t budget, cleave_error_t *error) {
  call_t call = {.body = body, .context = context};
  lua_State *state = script->state;
  cleave_script_errors_begin(script);
  cleave_script_begin(script, budget);
  script->call_serial++;
  lua_pushcfunction(state, cleave_script_note_place);
  lua_pushcfunction(state, run_body);
  lua_pushlightuserdata(state, &call);
  int code = lua_pcall(state, 1, 0, 1);
  cleave_script_finish(script);
  cleave_status_t status = CLEAVE_OK;
  if (code != LUA_OK || script->end != CLEAVE_SCRIPT_RUNS) {
    status = cleave_script_convert_error(script, code, error);
  }
  lua_settop(state, 0);
  return status;
}

/* ---- modules and scripts ---- */

static const char HOST_KEY = 'h';
static const char MODULES_KEY = 'm';

void cleave_script_push_host(lua_State *state) {
  lua_rawgetp(state, LUA_REGISTRYINDEX, &HOST_KEY);
}

static int import_from_lua(lua_State *state) {
  cleave_script_import(state, luaL_checkstring(state, 1));
  return 1;
}

/* Pushes what the module returns. Its chunk only makes tables and functions, so its instructions are not
 * counted; those of its functions are, when scripts call them. */
static void run_module(lua_State *state, const cleave_embedded_file_t *file) {
  if (!cleave_embedded_push_code(state, file)) {
    const char *chunk = lua_pushfstring(state, "@%s", file->name);
    if (luaL_loadbufferx(state, file->text, file->length, chunk, "t") != LUA_OK) {
      lua_error(state);
    }
    lua_remove(state, -2);
  }
  cleave_script_push_host(state);
  lua_pushcfunction(state, import_from_lua);
  bool was_counted = cleave_script_trust(state);
  int code = lua_pcall(state, 2, 1, 0);
  if (was_counted) {
    cleave_script_watch(state);
  }
  if (code != LUA_OK) {
    lua_error(state);
  }
}

void cleave_script_import(lua_State *state, const char *name) {
  luaL_checkstack(state, 8, NULL);
  lua_rawgetp(state, LUA_REGISTRYINDEX, &MODULES_KEY);
  if (lua_getfield(state, -1, name) == LUA_TNIL) {
    lua_pop(state, 1);
    const char *path = lua_pushfstring(state, "lua/cleave/%s.lua", name);
    const cleave_embedded_file_t *file = cleave_embedded_find(path);
    if (file == NULL) {
      luaL_error(state, "no module '%s'", path);
      return;
    }
    run_module(state, file);
    lua_replace(state, -2);
    lua_pushvalue(state, -1);
    lua_setfield(state, -3, name);
  }
  lua_remove(state, -2);
}

/* ---- text ---- */

typedef struct source {
  const char *text;
  size_t length;
  bool has_begun;
} source_t;

static const char *read_source(lua_State *state, void *context, size_t *out_length) {
  source_t *source = context;
  if (!source->has_begun) {
    source->has_begun = true;
    *out_length = sizeof CLEAVE_SCRIPT_HEAD - 1;
    return CLEAVE_SCRIPT_HEAD;
  }
  const char *piece = source->text;
  size_t length = source->length < TEXT_PIECE ? source->length : TEXT_PIECE;
  cleave_script_step(state, UINT32_MAX);
  source->text += length;
  source->length -= length;
  *out_length = length;
  return length > 0 ? piece : NULL;
}

static bool is_word_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Scripts must not use the name of the environment: they could declare it again, which some releases of Lua
 * compile wrongly. Strings and comments may not contain it either. */
static void refuse_environment(lua_State *state, uint32_t file, const char *text, size_t length) {
  static const char NAME[] = "_ENV";
  size_t size = sizeof NAME - 1;
  int line = 1;
  for (size_t k = 0; k + size <= length; k++) {
    line += text[k] == '\n' ? 1 : 0;
    if (text[k] == '_' && memcmp(text + k, NAME, size) == 0 && (k == 0 || !is_word_character(text[k - 1])) &&
        (k + size == length || !is_word_character(text[k + size]))) {
      cleave_script_raise_at(state, (int)(file << CLEAVE_PLACE_LINE_BITS) | line, "'%s' is not available",
                             NAME);
    }
  }
}

/* An error of the parser is on top. If it has no line (too deep), the line of the source read so far is used.
 */
static void raise_syntax(lua_State *state, int code, uint32_t file, const char *text, const char *end) {
  const char *source = cleave_script_of(state)->files[file].short_source;
  cleave_script_pass_end_on(state);
  if (code != LUA_ERRMEM && lua_type(state, -1) == LUA_TSTRING &&
      strncmp(lua_tostring(state, -1), source, strlen(source)) != 0) {
    int line = 1;
    for (const char *at = text; at < end; at++) {
      line += *at == '\n' ? 1 : 0;
    }
    cleave_script_raise_at(state, (int)(file << CLEAVE_PLACE_LINE_BITS) | line, "%s",
                           lua_tostring(state, -1));
  }
  lua_error(state);
}

/* Sets the environment of the chunk on top. */
static void set_environment(lua_State *state, int environment) {
  lua_pushvalue(state, environment);
  if (lua_setupvalue(state, -2, 1) == NULL) {
    lua_pop(state, 1);
  }
}

void cleave_script_load_file(lua_State *state, uint32_t file, const char *text, size_t length,
                             int environment) {
  cleave_script_t *script = cleave_script_of(state);
  const char *path = script->files[file].path;
  environment = lua_absindex(state, environment);
  if (length > CLEAVE_SCRIPT_TEXT_LIMIT) {
    script->raised = CLEAVE_ERROR_LIMIT;
    luaL_error(state, "a script of %d KiB, expected at most %d KiB", (int)(length >> 10),
               (int)(CLEAVE_SCRIPT_TEXT_LIMIT >> 10));
    return;
  }
  if (length > 0 && text[0] == LUA_SIGNATURE[0]) {
    luaL_error(state, "%s%sexpected Lua text, found a compiled chunk", file > 0 ? path : "",
               file > 0 ? ": " : "");
  }
  refuse_environment(state, file, text, length);
  source_t source = {.text = text, .length = length};
  const char *chunk = lua_pushfstring(state, "@%s", path);
  int code = lua_load(state, read_source, &source, chunk, "t");
  if (code != LUA_OK) {
    raise_syntax(state, code, file, text, source.text);
  }
  lua_remove(state, -2);
  set_environment(state, environment);
}

void cleave_script_load_text(lua_State *state, const char *text, size_t length, int environment) {
  cleave_script_load_file(state, 0, text, length, environment);
}

void cleave_script_load_embedded(lua_State *state, uint32_t file, const cleave_embedded_file_t *embedded,
                                 int environment) {
  environment = lua_absindex(state, environment);
  if (cleave_embedded_push_code(state, embedded)) {
    set_environment(state, environment);
  } else {
    cleave_script_load_file(state, file, embedded->text, embedded->length, environment);
  }
}

/* How Lua will show the path in messages. */
static void find_short_source(lua_State *state, cleave_script_file_t *file) {
  lua_Debug record;
  const char *chunk = lua_pushfstring(state, "@%s", file->path);
  if (luaL_loadbufferx(state, "", 0, chunk, "t") != LUA_OK) {
    lua_error(state);
  }
  if (lua_getinfo(state, ">S", &record) != 0) {
    (void)snprintf(file->short_source, sizeof file->short_source, "%s", record.short_src);
  }
  lua_pop(state, 1);
}

uint32_t cleave_script_add_file(lua_State *state, const char *path) {
  cleave_script_t *script = cleave_script_of(state);
  if (script->file_count == CLEAVE_SCRIPT_FILE_LIMIT) {
    script->raised = CLEAVE_ERROR_LIMIT;
    cleave_script_raise(state, "more than %d files", CLEAVE_SCRIPT_FILE_LIMIT);
  }
  cleave_script_file_t *file = &script->files[script->file_count];
  file->path = cleave_copy_text(path, strlen(path));
  if (file->path == NULL) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_error_out_of_memory(&error);
    cleave_script_raise_error(state, &error);
  }
  script->file_count++;
  find_short_source(state, file);
  return script->file_count - 1;
}

/* ---- life ---- */

typedef struct opening {
  void (*register_host)(lua_State *state);
} opening_t;

static void open_state(lua_State *state, void *context) {
  const opening_t *opening = context;
  static const luaL_Reg LIBRARIES[] = {{LUA_GNAME, luaopen_base},
                                       {LUA_STRLIBNAME, luaopen_string},
                                       {LUA_TABLIBNAME, luaopen_table},
                                       {LUA_MATHLIBNAME, luaopen_math},
                                       {LUA_COLIBNAME, luaopen_coroutine}};
  find_short_source(state, &cleave_script_of(state)->files[0]);
  for (size_t k = 0; k < sizeof LIBRARIES / sizeof LIBRARIES[0]; k++) {
    luaL_requiref(state, LIBRARIES[k].name, LIBRARIES[k].func, 1);
    lua_pop(state, 1);
  }
  lua_newtable(state);
  lua_rawsetp(state, LUA_REGISTRYINDEX, &MODULES_KEY);
  lua_newtable(state);
  opening->register_host(state);
  lua_rawsetp(state, LUA_REGISTRYINDEX, &HOST_KEY);
}

cleave_status_t cleave_script_create(const char *path, cleave_status_t failure,
                                     void (*register_host)(lua_State *state), cleave_script_t **out_script,
                                     cleave_error_t *error) {
  *out_script = NULL;
  cleave_script_t *script = cleave_allocate_zeroed(1, sizeof *script);
  CLEAVE_TRY_MEMORY(script, error);
  script->failure = failure;
  script->node = CLEAVE_NODE_NONE;
  script->files[0].path = cleave_copy_text(path, strlen(path));
  script->path = script->files[0].path;
  script->file_count = 1;
  script->state = script->path != NULL ? lua_newstate(cleave_script_allocate, script) : NULL;
  if (script->state == NULL) {
    cleave_script_destroy(script);
    return cleave_error_out_of_memory(error);
  }
  *(cleave_script_t **)lua_getextraspace(script->state) = script;
  opening_t opening = {.register_host = register_host};
  CLEAVE_TRY_OR(cleave_script_call(script, open_state, &opening, CLEAVE_SCRIPT_LOAD_BUDGET, error),
                cleave_script_destroy(script));
  *out_script = script;
  return CLEAVE_OK;
}

void cleave_script_destroy(cleave_script_t *script) {
  if (script == NULL) {
    return;
  }
  if (script->state != NULL) {
    lua_close(script->state);
  }
  for (uint32_t k = 0; k < script->file_count; k++) {
    cleave_free(script->files[k].path);
    cleave_file_release(script->files[k].content);
  }
  cleave_free(script);
}
