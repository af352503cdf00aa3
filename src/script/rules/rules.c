// SPDX-License-Identifier: Apache-2.0
/* Loading a rule file: text -> chunk in a closed environment -> ruleset -> compiled rules. */
#include "script/rules/rules.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "script/rules/compile.h"
#include "script/rules/rules_internal.h"
#include "script/sandbox/host.h"
#include "script/sandbox/include.h"
#include "script/state/embedded.h"
#include "system/file.h"

typedef struct load {
  cleave_context_t *context;
  cleave_rules_t *rules;
  const char *text;
  size_t length;
  const cleave_embedded_file_t *shipped; /* if the text is built in; otherwise NULL */
  cleave_script_settings_t settings;
  cleave_include_source_t source;
  const cleave_rules_listener_t *listener; /* may be NULL */
} load_t;

/* Pushes the settings as a list of { name =, value = }. */
static void push_settings(lua_State *state, const load_t *load) {
  lua_newtable(state);
  for (size_t k = 0; k < load->settings.count; k++) {
    lua_newtable(state);
    lua_pushstring(state, load->settings.items[k].name);
    lua_setfield(state, -2, "name");
    lua_pushstring(state, load->settings.items[k].value);
    lua_setfield(state, -2, "value");
    lua_rawseti(state, -2, (lua_Integer)k + 1);
  }
}

static void read_used(lua_State *state, int settings, const load_t *load) {
  for (size_t k = 0; load->settings.out_used != NULL && k < load->settings.count; k++) {
    lua_rawgeti(state, settings, (lua_Integer)k + 1);
    lua_getfield(state, -1, "used");
    load->settings.out_used[k] = lua_toboolean(state, -1) != 0;
    lua_pop(state, 2);
  }
}

/* Runs the text at the top of the call, with the globals at index 4: replaces them by what it returns. */
static void run_text(lua_State *state, const load_t *load) {
  cleave_script_t *script = cleave_script_of(state);
  cleave_include_t include = {.source = load->source};
  lua_pushvalue(state, 4);
  include.environment = luaL_ref(state, LUA_REGISTRYINDEX);
  if (load->listener != NULL) {
    include.note = load->listener->note;
    include.note_context = load->listener->context;
  }
  if (load->shipped != NULL) {
    cleave_script_load_embedded(state, 0, load->shipped, 4);
  } else {
    cleave_script_load_text(state, load->text, load->length, 4);
  }
  script->include = &include;
  lua_call(state, 0, 1);
  script->include = NULL;
  luaL_unref(state, LUA_REGISTRYINDEX, include.environment);
  lua_replace(state, 4);
}

/* The last line of the source that is not empty; 1 if there is none. */
static int last_line(const char *text, size_t length) {
  int line = 1;
  int last = 1;
  for (size_t k = 0; k < length; k++) {
    bool is_blank = text[k] == ' ' || text[k] == '\t' || text[k] == '\r' || text[k] == '\n';
    last = is_blank ? last : line;
    line += text[k] == '\n';
  }
  return last;
}

/* The name of a rule file without its folder and extension, as `--set FILE.NAME=VALUE` has it. */
static void push_file_name(lua_State *state, const char *path) {
  const char *name = cleave_path_name(path);
  size_t length = strlen(name);
  lua_pushlstring(state, name, cleave_path_has_extension(name, ".lua") ? length - 4 : length);
}

/* Files that come with cleave are bounded, and keep most of what they make: collecting would be in vain. */
static void trust(lua_State *state) {
  (void)cleave_script_trust(state);
  lua_gc(state, LUA_GCSTOP);
}

static void run_load(lua_State *state, void *context) {
  const load_t *load = context;
  if (load->shipped != NULL) {
    trust(state);
  }
  push_settings(state, load);         /* 1 */
  cleave_script_import(state, "dsl"); /* 2 */
  if (load->shipped != NULL && load->settings.leaves_tests_out) {
    lua_getfield(state, 2, "leave_tests_out");
    lua_call(state, 0, 0);
  }
  lua_getfield(state, 2, "compile"); /* 3 */
  lua_getfield(state, 2, "environment");
  lua_call(state, 0, 1); /* 4 */
  run_text(state, load);
  lua_pushvalue(state, 3);
  lua_pushvalue(state, 4);
  lua_pushinteger(state, last_line(load->text, load->length));
  push_file_name(state, load->rules->script->path);
  lua_pushvalue(state, 1);
  lua_call(state, 4, 1);
  cleave_rules_t *rules = load->rules;
  rules->rulesets = cleave_script_compile(state, &rules->arena, rules->script->path, &rules->ruleset_count);
  cleave_declared_read(state, &rules->arena, rules->script->path, &rules->declared);
  read_used(state, 1, load);
  lua_gc(state, LUA_GCRESTART);
}

static cleave_status_t load_rules(const char *name, load_t *load, cleave_rules_t **out_rules,
                                  cleave_error_t *error) {
  *out_rules = NULL;
  for (size_t k = 0; load->settings.out_used != NULL && k < load->settings.count; k++) {
    load->settings.out_used[k] = false;
  }
  cleave_rules_t *rules = cleave_allocate_zeroed(1, sizeof *rules);
  CLEAVE_TRY_MEMORY(rules, error);
  load->rules = rules;
  cleave_status_t status =
      cleave_script_create(name, CLEAVE_ERROR_RULE, cleave_host_register, &rules->script, error);
  if (status == CLEAVE_OK) {
    rules->script->context = load->context;
    status = cleave_script_call(rules->script, run_load, load, CLEAVE_SCRIPT_LOAD_BUDGET, error);
    rules->script->include = NULL; /* an error left run_text */
    cleave_script_set_rule(rules->script, NULL, NULL, 0);
  }
  rules->text = cleave_arena_copy_text(&rules->arena, load->text, load->length); /* for lints */
  rules->length = load->length;
  CLEAVE_THEN(status, rules->text != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error));
  CLEAVE_TRY_OR(status, cleave_rules_destroy(rules));
  *out_rules = rules;
  return CLEAVE_OK;
}

/* The shipped rule file of that name ("onednn", "rules/onednn.lua"), or NULL. */
static const cleave_embedded_file_t *find_shipped(const char *path) {
  char name[160];
  const cleave_embedded_file_t *file = cleave_embedded_find(path);
  if (file != NULL || strchr(path, '/') != NULL || strlen(path) > 100) {
    return file != NULL && strncmp(file->name, "rules/", 6) == 0 ? file : NULL;
  }
  const char *extension = cleave_path_has_extension(path, ".lua") ? "" : ".lua";
  (void)snprintf(name, sizeof name, "rules/%s%s", path, extension);
  return cleave_embedded_find(name);
}

enum { MAX_HINT = sizeof((cleave_nearest_t *)0)->hint };

/* The shipped rule file whose name is almost this one: " (did you mean 'onednn'?)", or "". */
static void resemble_shipped(const char *path, char *out_hint) {
  enum { MAX_DISTANCE = 2 };
  cleave_nearest_t nearest = {.name = NULL};
  char names[2][64] = {""};
  for (const cleave_embedded_file_t *file = cleave_embedded_files; file->name != NULL; file++) {
    if (strncmp(file->name, "rules/", 6) == 0 && strchr(file->name + 6, '/') == NULL) {
      (void)snprintf(names[0], sizeof names[0], "%.*s", (int)strcspn(file->name + 6, "."), file->name + 6);
      cleave_nearest_offer(&nearest, path, names[0]);
      if (nearest.name == names[0]) {
        nearest.name = memcpy(names[1], names[0], sizeof names[1]);
      }
    }
  }
  const char *hint = nearest.distance <= MAX_DISTANCE ? cleave_nearest_hint(&nearest) : "";
  (void)snprintf(out_hint, MAX_HINT, "%s", hint);
}

bool cleave_rules_are_shipped(const char *path) {
  return access(path, F_OK) != 0 && find_shipped(path) != NULL;
}

/* A file, or one that is shipped. `load` has all but the text. */
static cleave_status_t load_path(const char *path, load_t *load, cleave_rules_t **out_rules,
                                 cleave_error_t *error) {
  cleave_file_t *file = NULL;
  cleave_error_t reading = CLEAVE_ERROR_INIT;
  if (load->listener != NULL) {
    load->listener->note(load->listener->context, path);
  }
  cleave_status_t status = cleave_file_read(path, CLEAVE_SCRIPT_TEXT_LIMIT, &file, &reading);
  const cleave_embedded_file_t *shipped = status == CLEAVE_ERROR_IO ? find_shipped(path) : NULL;
  if (shipped != NULL) {
    load->source = CLEAVE_INCLUDE_EMBEDDED;
    load->shipped = shipped;
    load->text = shipped->text;
    load->length = shipped->length;
    return load_rules(shipped->name, load, out_rules, error);
  }
  if (status != CLEAVE_OK) {
    char hint[MAX_HINT] = "";
    if (status == CLEAVE_ERROR_IO) {
      resemble_shipped(path, hint);
    }
    return cleave_error_set(error, status, "%s%s", reading.message, hint);
  }
  load->source = CLEAVE_INCLUDE_FILES;
  load->text = (const char *)cleave_file_data(file);
  load->length = cleave_file_size(file);
  status = load_rules(path, load, out_rules, error);
  cleave_file_release(file);
  return status;
}

cleave_status_t cleave_rules_load(cleave_context_t *context, const cleave_rule_source_t *source,
                                  const cleave_script_settings_t *settings,
                                  const cleave_rules_listener_t *listener, cleave_rules_t **out_rules,
                                  cleave_error_t *error) {
  *out_rules = NULL;
  load_t load = {.context = context,
                 .text = source->text,
                 .length = source->length,
                 .source = CLEAVE_INCLUDE_NOTHING,
                 .listener = listener};
  if (settings != NULL) {
    load.settings = *settings;
  }
  if (source->text != NULL) {
    return load_rules(source->path == NULL ? "rules" : source->path, &load, out_rules, error);
  }
  if (source->path == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "a rule source has neither path nor text");
  }
  return load_path(source->path, &load, out_rules, error);
}

cleave_status_t cleave_rules_load_embedded(cleave_context_t *context, const char *name,
                                           cleave_rules_t **out_rules, cleave_error_t *error) {
  *out_rules = NULL;
  const cleave_embedded_file_t *file = cleave_embedded_find(name);
  if (file == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: no such file comes with cleave", name);
  }
  load_t load = {.context = context,
                 .text = file->text,
                 .length = file->length,
                 .shipped = file,
                 .source = CLEAVE_INCLUDE_EMBEDDED};
  return load_rules(file->name, &load, out_rules, error);
}

const cleave_ruleset_t *cleave_rules_rulesets(const cleave_rules_t *rules, uint32_t *out_count) {
  *out_count = rules->ruleset_count;
  return rules->rulesets;
}

const cleave_declared_t *cleave_rules_declared(const cleave_rules_t *rules) {
  return &rules->declared;
}

void cleave_rules_destroy(cleave_rules_t *rules) {
  if (rules == NULL) {
    return;
  }
  cleave_script_destroy(rules->script);
  cleave_arena_deinit(&rules->arena);
  cleave_free(rules);
}
