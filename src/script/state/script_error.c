// SPDX-License-Identifier: Apache-2.0
/*
 * Places in a script's files, and errors, which are raised with a place and reported with file:line, rule and
 * message. A script may consist of several files, so a place is a number that encodes file and line
 * (script.h).
 */
#include "script/state/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/registry/context.h"
#include "base/text.h"
#include "graph/graph.h"

/* ---- places ---- */

static int place_in(uint32_t file, int line) {
  int last = (1 << CLEAVE_PLACE_LINE_BITS) - 1;
  return (int)(file << CLEAVE_PLACE_LINE_BITS) | (line < last ? line : last);
}

int cleave_script_place_of(const cleave_script_t *script, const char *source, int line) {
  for (uint32_t k = 0; k < script->file_count && source[0] == '@'; k++) {
    if (strcmp(source + 1, script->files[k].path) == 0) {
      return place_in(k, line);
    }
  }
  return 0;
}

/* The places on the stack, the innermost first, up to the main chunk of a file; 0 after the last. */
static void places_on_stack(lua_State *state, int most, int *places) {
  const cleave_script_t *script = cleave_script_of(state);
  lua_Debug record;
  int count = 0;
  bool is_text = false;
  for (int level = 0; !is_text && count < most && lua_getstack(state, level, &record) != 0; level++) {
    if (lua_getinfo(state, "Sl", &record) != 0 && record.currentline > 0) {
      places[count] = cleave_script_place_of(script, record.source, record.currentline);
      is_text = places[count] != 0 && strcmp(record.what, "main") == 0;
      count += places[count] != 0;
    }
  }
  for (; count < most; count++) {
    places[count] = 0;
  }
}

static int place_on_stack(lua_State *state) {
  int place = 0;
  places_on_stack(state, 1, &place);
  return place;
}

/* If a coroutine has no function of the script yet: the place where the script resumed it. */
int cleave_script_place(lua_State *state) {
  int place = place_on_stack(state);
  lua_State *main = cleave_script_of(state)->state;
  return place == 0 && state != main && main != NULL ? place_on_stack(main) : place;
}

int cleave_script_line(lua_State *state) {
  return cleave_place_line(cleave_script_place(state));
}

static const cleave_script_file_t *file_of(const cleave_script_t *script, int place) {
  uint32_t index = (uint32_t)cleave_place_file(place);
  return &script->files[index < script->file_count ? index : 0];
}

const char *cleave_script_path_at(const cleave_script_t *script, int place) {
  return file_of(script, place)->path;
}

/* ---- raising ---- */

static int raise_text(lua_State *state, int place, const char *text) {
  if (place > 0) {
    lua_pushfstring(state, "%s:%d: %s", file_of(cleave_script_of(state), place)->short_source,
                    cleave_place_line(place), text);
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
  return raise_text(state, cleave_script_place(state), text);
}

int cleave_script_raise_at(lua_State *state, int place, const char *format, ...) {
  char text[768];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return raise_text(state, place, text);
}

int cleave_script_raise_error(lua_State *state, const cleave_error_t *error) {
  cleave_script_of(state)->raised = error->status;
  return raise_text(state, cleave_script_place(state), error->message);
}

int cleave_script_raise_checked(lua_State *state, const cleave_error_t *error) {
  cleave_script_of(state)->checked = *error;
  return lua_error(state);
}

void cleave_script_set_rule(cleave_script_t *script, const char *kind, const char *name, int place) {
  script->rule_kind = kind;
  script->rule_name = name;
  script->rule_place = kind != NULL ? place : 0;
}

/* ---- from Lua to C ---- */

void cleave_script_errors_begin(cleave_script_t *script) {
  script->error_place = 0;
  memset(script->error_calls, 0, sizeof script->error_calls);
  script->error_is_placed = false;
  script->raised = CLEAVE_OK;
  script->checked.status = CLEAVE_OK;
  script->open[0] = '\0';
}

int cleave_script_note_place(lua_State *state) {
  cleave_script_t *script = cleave_script_of(state);
  if (!script->error_is_placed) {
    script->error_place = cleave_script_place(state);
    places_on_stack(state, CLEAVE_SCRIPT_MAX_CALLS, script->error_calls);
  }
  return 1;
}

/* Adds the callers of the function that failed at `place`, and the node that the call was about. */
static void add_origin(const cleave_script_t *script, int place, cleave_text_t *text) {
  const int *calls = script->error_calls;
  int k = 0;
  while (k < CLEAVE_SCRIPT_MAX_CALLS && calls[k] != place) {
    k++;
  }
  const char *before = "; called at ";
  for (k++; k < CLEAVE_SCRIPT_MAX_CALLS && calls[k] != 0; k++) {
    bool same_file = cleave_place_file(calls[k]) == cleave_place_file(place);
    const char *path = same_file ? "line " : file_of(script, calls[k])->path;
    cleave_text_format(text, "%s%s%s%d", before, path, same_file ? "" : ":", cleave_place_line(calls[k]));
    before = ", from ";
  }
  if (script->graph != NULL && cleave_node_exists(script->node)) {
    char label[96];
    cleave_text_format(text, "; at %s '%s'", cleave_node_op(script->graph, script->node)->name,
                       cleave_node_label(script->graph, script->node, label, sizeof label));
  }
}

static cleave_status_t set_error(cleave_script_t *script, cleave_status_t status, int place, const char *text,
                                 cleave_error_t *error) {
  cleave_text_t origin = {0};
  add_origin(script, place, &origin);
  if (script->rule_kind == NULL) {
    (void)cleave_error_set_at(error, status, file_of(script, place)->path, cleave_place_line(place), "%s%s",
                              text, cleave_text_get(&origin));
  } else {
    if (error != NULL && error->status == CLEAVE_OK) {
      (void)snprintf(error->rule, sizeof error->rule, "%s", script->rule_name);
    }
    place = place > 0 ? place : script->rule_place;
    (void)cleave_error_set_at(error, status, file_of(script, place)->path, cleave_place_line(place),
                              "%s '%s': %s%s", script->rule_kind, script->rule_name, text,
                              cleave_text_get(&origin));
  }
  cleave_text_deinit(&origin);
  return status;
}

/* Splits "source:12: text" into place and text, if the source is a file of the script. */
static const char *split_place(const cleave_script_t *script, const char *message, int *out_place) {
  *out_place = 0;
  for (uint32_t k = 0; k < script->file_count; k++) {
    const char *source = script->files[k].short_source;
    size_t length = strlen(source);
    if (length == 0 || strncmp(message, source, length) != 0 || message[length] != ':') {
      continue;
    }
    char *end = NULL;
    long line = strtol(message + length + 1, &end, 10);
    if (end == message + length + 1 || end[0] != ':' || end[1] != ' ' || line <= 0 || line > INT32_MAX) {
      continue;
    }
    *out_place = place_in(k, (int)line);
    /* Long paths may look the same when they are cut. */
    int noted = script->error_place;
    if (noted > 0 && strcmp(file_of(script, noted)->short_source, source) == 0 &&
        cleave_place_line(noted) == (int)line) {
      *out_place = noted;
    }
    return end + 2;
  }
  return message;
}

/* A message of the host's own modules ("lua/cleave/x.lua:12: text") is about the script's line. */
static const char *skip_module(const char *message) {
  static const char MODULES[] = "lua/cleave/";
  const char *end = strstr(message, ": ");
  return strncmp(message, MODULES, sizeof MODULES - 1) == 0 && end != NULL ? end + 2 : message;
}

static cleave_status_t convert_end(cleave_script_t *script, cleave_error_t *error) {
  char text[192];
  if (script->end == CLEAVE_SCRIPT_OUT_OF_TIME) {
    (void)snprintf(text, sizeof text, "the time budget of %u ms is spent", (unsigned)script->budget);
  } else if (script->end == CLEAVE_SCRIPT_OUT_OF_TOTAL) {
    uint64_t limit = atomic_load(&cleave_context_get(script->context)->script_limit);
    (void)snprintf(text, sizeof text, "the %llu ms that all calls of scripts may take together are spent",
                   (unsigned long long)(limit / 1000000));
  } else if (script->end == CLEAVE_SCRIPT_OUT_OF_CLOCK) {
    (void)snprintf(text, sizeof text,
                   "the time budget of %u ms by the clock is spent, with less than %u ms of work done: the "
                   "machine is too busy",
                   (unsigned)CLEAVE_SCRIPT_WALL_LIMIT(script->budget), (unsigned)script->budget);
  } else if (script->end == CLEAVE_SCRIPT_OUT_OF_STRING) {
    (void)snprintf(text, sizeof text, "more than %d MiB in one string",
                   (int)(CLEAVE_SCRIPT_STRING_LIMIT >> 20));
  } else if (script->end == CLEAVE_SCRIPT_OUT_OF_BLOCK) {
    (void)snprintf(text, sizeof text, "more than %d MiB of memory in one piece",
                   (int)(CLEAVE_SCRIPT_BLOCK_LIMIT >> 20));
  } else {
    (void)snprintf(text, sizeof text, "more than %d MiB of memory", (int)(CLEAVE_SCRIPT_MEMORY_LIMIT >> 20));
  }
  return set_error(script, CLEAVE_ERROR_LIMIT, script->end_place, text, error);
}

/* Is it Lua's message about arithmetic on nil, or on the name of a size? */
static bool is_about_open(const char *message) {
  static const char *const PARTS[] = {"a nil value",       "nil with",        "with nil",
                                      "a 'string' with",   "with a 'string'", "string with number",
                                      "number with string"};
  if (strstr(message, "attempt to ") == NULL) {
    return false;
  }
  for (size_t k = 0; k < sizeof PARTS / sizeof PARTS[0]; k++) {
    if (strstr(message, PARTS[k]) != NULL) {
      return true;
    }
  }
  return false;
}

cleave_status_t cleave_script_convert_error(cleave_script_t *script, int code, cleave_error_t *error) {
  char text[256];
  int place = 0;
  if (code == LUA_ERRMEM && script->memory_refused && script->end == CLEAVE_SCRIPT_RUNS) {
    script->end = CLEAVE_SCRIPT_OUT_OF_MEMORY;
  }
  if (script->end != CLEAVE_SCRIPT_RUNS) {
    return convert_end(script, error);
  }
  if (code == LUA_ERRMEM) {
    return cleave_error_out_of_memory(error);
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
    return set_error(script, status, script->error_place, text, error);
  }
  const char *raised = lua_tostring(script->state, -1);
  const char *message = split_place(script, raised, &place);
  if (skip_module(raised) != raised) {
    message = skip_module(raised);
    place = script->error_place;
  }
  if (script->open[0] != '\0' && is_about_open(message)) {
    char hinted[sizeof error->message];
    (void)snprintf(hinted, sizeof hinted, "%.400s; %s", message, script->open);
    return set_error(script, status, place, hinted, error);
  }
  return set_error(script, status, place, message, error);
}
