/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of an interpreter, its limits, and errors on their way from Lua to C. Nothing here touches Lua outside
 * of a protected call, but for pushing a C function and a pointer, which cannot fail.
 */
#include "script/script.h"

#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "script/embedded.h"
#include "script/host.h"

enum {
  HOOK_INSTRUCTIONS = 500,
  STEPS_PER_CHECK = 20000,
};
#define GROWTH_PER_CHECK ((size_t)8 << 20)

const cleave_embedded_file_t *cleave_embedded_find(const char *name) {
  for (const cleave_embedded_file_t *file = cleave_embedded_files; file->name != NULL; file++) {
    if (strcmp(file->name, name) == 0) {
      return file;
    }
  }
  return NULL;
}

/* ---- limits ---- */

static uint64_t thread_time(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* A thread that had to wait for a processor has not spent its budget: the cheap wall clock tells when to ask
 * for the time worked, and ends what takes ten times as long in any case. */
static bool budget_is_spent(cleave_script_t *script) {
  uint64_t budget = (uint64_t)script->budget * UINT64_C(1000000);
  uint64_t elapsed = cleave_clock_now() - script->wall_start;
  if (!script->expired && elapsed > budget) {
    script->expired = elapsed / 10 > budget || thread_time() - script->work_start > budget;
  }
  return script->expired;
}

static void *allocate(void *context, void *memory, size_t old_size, size_t size) {
  cleave_script_t *script = context;
  size_t old = memory == NULL ? 0 : old_size;
  if (size == 0) {
    cleave_free(memory);
    script->memory_used -= old;
    return NULL;
  }
  if (size > old) {
    size_t growth = size - old;
    if (size > CLEAVE_SCRIPT_BLOCK_LIMIT || growth > CLEAVE_SCRIPT_MEMORY_LIMIT - script->memory_used) {
      script->memory_refused = true;
      return NULL;
    }
    script->memory_since_check += growth;
    if (script->memory_since_check > GROWTH_PER_CHECK) {
      script->memory_since_check = 0;
      if (budget_is_spent(script)) {
        return NULL;
      }
    }
  }
  void *grown = cleave_reallocate(memory, size, 1);
  if (grown == NULL) {
    return size <= old ? memory : NULL; /* Lua relies on shrinking to succeed */
  }
  script->memory_used = script->memory_used - old + size;
  return grown;
}

static int raise_expired(lua_State *state) {
  cleave_script_t *script = cleave_script_of(state);
  if (script->expired_line == 0) {
    script->expired_line = cleave_script_line(state);
  }
  return luaL_error(state, "the time budget of %d ms is spent", (int)script->budget);
}

static void check_budget(lua_State *state, lua_Debug *record) {
  (void)record;
  if (budget_is_spent(cleave_script_of(state))) {
    lua_sethook(state, check_budget, LUA_MASKCOUNT, 1);
    (void)raise_expired(state);
  }
}

void cleave_script_step(lua_State *state, uint32_t steps) {
  cleave_script_t *script = cleave_script_of(state);
  script->steps += steps < STEPS_PER_CHECK ? steps : STEPS_PER_CHECK;
  if (script->steps >= STEPS_PER_CHECK) {
    script->steps = 0;
    if (budget_is_spent(script)) {
      lua_sethook(state, check_budget, LUA_MASKCOUNT, 1);
      (void)raise_expired(state);
    }
  }
}

/* ---- errors ---- */

int cleave_script_line(lua_State *state) {
  const cleave_script_t *script = cleave_script_of(state);
  lua_Debug record;
  for (int level = 0; lua_getstack(state, level, &record) != 0; level++) {
    if (lua_getinfo(state, "Sl", &record) != 0 && record.currentline > 0 &&
        strcmp(record.short_src, script->short_source) == 0) {
      return record.currentline;
    }
  }
  return 0;
}

static int raise_text(lua_State *state, int line, const char *text) {
  const cleave_script_t *script = cleave_script_of(state);
  if (line > 0) {
    lua_pushfstring(state, "%s:%d: %s", script->short_source, line, text);
  } else {
    lua_pushfstring(state, "%s", text);
  }
  return lua_error(state);
}

int cleave_script_raise(lua_State *state, const char *format, ...) {
  char text[768];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return raise_text(state, cleave_script_line(state), text);
}

int cleave_script_raise_at(lua_State *state, int line, const char *format, ...) {
  char text[768];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return raise_text(state, line, text);
}

int cleave_script_raise_error(lua_State *state, const cleave_error_t *error) {
  cleave_script_of(state)->raised = error->status;
  return raise_text(state, cleave_script_line(state), error->message);
}

int cleave_script_raise_checked(lua_State *state, const cleave_error_t *error) {
  cleave_script_of(state)->checked = *error;
  return lua_error(state);
}

void cleave_script_set_rule(cleave_script_t *script, const char *kind, const char *name, int line) {
  script->rule_kind = kind;
  script->rule_name = name;
  script->rule_line = kind != NULL ? line : 0;
}

static cleave_status_t set_error(cleave_script_t *script, cleave_status_t status, int line, const char *text,
                                 cleave_error_t *error) {
  if (error != NULL && error->status == CLEAVE_OK && script->rule_kind != NULL) {
    (void)snprintf(error->rule, sizeof error->rule, "%s", script->rule_name);
  }
  if (script->rule_kind != NULL) {
    return cleave_error_set_at(error, status, script->path, line > 0 ? line : script->rule_line,
                               "%s '%s': %s", script->rule_kind, script->rule_name, text);
  }
  return cleave_error_set_at(error, status, script->path, line, "%s", text);
}

/* Splits "source:12: text" into line and text, where the source is the script. */
static const char *split_place(const cleave_script_t *script, const char *message, int *out_line) {
  size_t length = strlen(script->short_source);
  *out_line = 0;
  if (strncmp(message, script->short_source, length) != 0 || message[length] != ':') {
    return message;
  }
  char *end = NULL;
  long line = strtol(message + length + 1, &end, 10);
  if (end == message + length + 1 || end[0] != ':' || end[1] != ' ' || line <= 0 || line > INT32_MAX) {
    return message;
  }
  *out_line = (int)line;
  return end + 2;
}

/* A message of the host's own modules ("lua/cleave/x.lua:12: text") is about the script's line. */
static const char *skip_module(const char *message) {
  static const char MODULES[] = "lua/cleave/";
  const char *end = strstr(message, ": ");
  return strncmp(message, MODULES, sizeof MODULES - 1) == 0 && end != NULL ? end + 2 : message;
}

/* The error value is on top of the stack. Reads strings only, so nothing here can raise. */
static cleave_status_t convert_error(cleave_script_t *script, int code, cleave_error_t *error) {
  char text[256];
  int line = 0;
  if (script->expired) {
    (void)snprintf(text, sizeof text, "the time budget of %u ms is spent", (unsigned)script->budget);
    return set_error(script, CLEAVE_ERROR_LIMIT, script->expired_line, text, error);
  }
  if (code == LUA_ERRMEM) {
    if (!script->memory_refused) {
      return cleave_error_out_of_memory(error);
    }
    (void)snprintf(text, sizeof text, "more than %d MiB of memory, or more than %d MiB in one piece",
                   (int)(CLEAVE_SCRIPT_MEMORY_LIMIT >> 20), (int)(CLEAVE_SCRIPT_BLOCK_LIMIT >> 20));
    return set_error(script, CLEAVE_ERROR_LIMIT, 0, text, error);
  }
  if (script->checked.status != CLEAVE_OK) {
    if (error != NULL && error->status == CLEAVE_OK) {
      *error = script->checked;
    }
    return script->checked.status;
  }
  cleave_status_t status = script->raised != CLEAVE_OK ? script->raised : script->failure;
  if (lua_type(script->state, -1) != LUA_TSTRING) {
    (void)snprintf(text, sizeof text, "raised a %s value instead of a message",
                   lua_typename(script->state, lua_type(script->state, -1)));
    return set_error(script, status, script->error_line, text, error);
  }
  const char *raised = lua_tostring(script->state, -1);
  const char *message = split_place(script, raised, &line);
  if (skip_module(raised) != raised) {
    message = skip_module(raised);
    line = script->error_line;
  }
  return set_error(script, status, line, message, error);
}

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

/* Message handler: only notes where the script was. */
static int note_line(lua_State *state) {
  cleave_script_of(state)->error_line = cleave_script_line(state);
  return 1;
}

cleave_status_t cleave_script_call(cleave_script_t *script, cleave_script_body_t body, void *context,
                                   uint32_t budget, cleave_error_t *error) {
  call_t call = {.body = body, .context = context};
  lua_State *state = script->state;
  script->budget = budget;
  script->wall_start = cleave_clock_now();
  script->work_start = thread_time();
  script->expired = false;
  script->expired_line = 0;
  script->error_line = 0;
  script->steps = 0;
  script->memory_since_check = 0;
  script->memory_refused = false;
  script->raised = CLEAVE_OK;
  script->checked.status = CLEAVE_OK;
  script->call_serial++;
  lua_sethook(state, check_budget, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
  lua_pushcfunction(state, note_line);
  lua_pushcfunction(state, run_body);
  lua_pushlightuserdata(state, &call);
  int code = lua_pcall(state, 1, 0, 1);
  cleave_status_t status = CLEAVE_OK;
  if (code != LUA_OK || script->expired) {
    status = convert_error(script, code, error);
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
    const char *chunk = lua_pushfstring(state, "@%s", path);
    if (luaL_loadbufferx(state, file->text, file->length, chunk, "t") != LUA_OK) {
      lua_error(state);
    }
    cleave_script_push_host(state);
    lua_pushcfunction(state, import_from_lua);
    lua_call(state, 2, 1);
    lua_replace(state, -3);
    lua_pop(state, 1);
    lua_pushvalue(state, -1);
    lua_setfield(state, -3, name);
  }
  lua_remove(state, -2);
}

/* The text in two pieces: a script's `return ruleset { ... }` would be a tail call, and the line that it
 * stands on be lost to messages; a variable to be closed, on the same first line, makes it an ordinary call.
 */
typedef struct source {
  const char *pieces[2];
  size_t lengths[2];
  int next;
} source_t;

static const char *read_source(lua_State *state, void *context, size_t *out_length) {
  source_t *source = context;
  (void)state;
  if (source->next == 2) {
    *out_length = 0;
    return NULL;
  }
  *out_length = source->lengths[source->next];
  return source->pieces[source->next++];
}

void cleave_script_load_text(lua_State *state, const char *text, size_t length, int environment) {
  cleave_script_t *script = cleave_script_of(state);
  environment = lua_absindex(state, environment);
  if (length > CLEAVE_SCRIPT_TEXT_LIMIT) {
    script->raised = CLEAVE_ERROR_LIMIT;
    luaL_error(state, "a script of %d KiB, expected at most %d KiB", (int)(length >> 10),
               (int)(CLEAVE_SCRIPT_TEXT_LIMIT >> 10));
    return;
  }
  static const char HEAD[] = "local _ <close> = nil ";
  const char *chunk = lua_pushfstring(state, "@%s", script->path);
  source_t source = {.pieces = {HEAD, text}, .lengths = {sizeof HEAD - 1, length}};
  if (length > 0 && text[0] == LUA_SIGNATURE[0]) {
    luaL_error(state, "expected Lua text, found a compiled chunk");
  }
  if (lua_load(state, read_source, &source, chunk, "t") != LUA_OK) {
    lua_error(state);
  }
  lua_remove(state, -2);
  lua_pushvalue(state, environment);
  if (lua_setupvalue(state, -2, 1) == NULL) {
    lua_pop(state, 1);
  }
}

/* How Lua will show the path in messages. */
static void find_short_source(lua_State *state) {
  cleave_script_t *script = cleave_script_of(state);
  lua_Debug record;
  const char *chunk = lua_pushfstring(state, "@%s", script->path);
  if (luaL_loadbufferx(state, "", 0, chunk, "t") != LUA_OK) {
    lua_error(state);
  }
  if (lua_getinfo(state, ">S", &record) != 0) {
    (void)snprintf(script->short_source, sizeof script->short_source, "%s", record.short_src);
  }
  lua_pop(state, 1);
}

static void open_state(lua_State *state, void *context) {
  (void)context;
  static const luaL_Reg LIBRARIES[] = {{LUA_GNAME, luaopen_base},
                                       {LUA_STRLIBNAME, luaopen_string},
                                       {LUA_TABLIBNAME, luaopen_table},
                                       {LUA_MATHLIBNAME, luaopen_math},
                                       {LUA_COLIBNAME, luaopen_coroutine}};
  find_short_source(state);
  for (size_t k = 0; k < sizeof LIBRARIES / sizeof LIBRARIES[0]; k++) {
    luaL_requiref(state, LIBRARIES[k].name, LIBRARIES[k].func, 1);
    lua_pop(state, 1);
  }
  lua_newtable(state);
  lua_rawsetp(state, LUA_REGISTRYINDEX, &MODULES_KEY);
  lua_newtable(state);
  cleave_host_register(state);
  lua_rawsetp(state, LUA_REGISTRYINDEX, &HOST_KEY);
}

cleave_status_t cleave_script_create(const char *path, cleave_status_t failure, cleave_script_t **out_script,
                                     cleave_error_t *error) {
  *out_script = NULL;
  cleave_script_t *script = cleave_allocate_zeroed(1, sizeof *script);
  if (script == NULL) {
    return cleave_error_out_of_memory(error);
  }
  script->failure = failure;
  script->path = cleave_copy_text(path, strlen(path));
  script->state = script->path != NULL ? lua_newstate(allocate, script) : NULL;
  if (script->state == NULL) {
    cleave_script_destroy(script);
    return cleave_error_out_of_memory(error);
  }
  *(cleave_script_t **)lua_getextraspace(script->state) = script;
  cleave_status_t status = cleave_script_call(script, open_state, NULL, CLEAVE_SCRIPT_LOAD_BUDGET, error);
  if (status != CLEAVE_OK) {
    cleave_script_destroy(script);
    return status;
  }
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
  cleave_free((void *)(uintptr_t)script->path);
  cleave_free(script);
}
