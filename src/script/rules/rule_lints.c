// SPDX-License-Identifier: Apache-2.0
/* Lints of a rule file: lua/cleave/lint.lua examines the compiled file, C copies its lints. */
#include <string.h>

#include "script/rules/rules_internal.h"
#include "script/state/embedded.h"
#include "script/state/table_reader.h"

typedef struct lint_call {
  const cleave_rules_t *rules;
  cleave_arena_t *arena;
  cleave_lint_t *lints;
  uint32_t count;
} lint_call_t;

static cleave_lint_level_t level_of(const char *name) {
  if (name != NULL && strcmp(name, "error") == 0) {
    return CLEAVE_LINT_ERROR;
  }
  return name != NULL && strcmp(name, "warning") == 0 ? CLEAVE_LINT_WARNING : CLEAVE_LINT_NOTE;
}

/* Pushes the sources of the rule file and of the files that it includes, by index from 0; false for a file
 * that no longer exists. */
static void push_texts(lua_State *state, const cleave_rules_t *rules) {
  const cleave_script_t *script = rules->script;
  lua_newtable(state);
  for (uint32_t k = 0; k < script->file_count; k++) {
    const cleave_script_file_t *file = &script->files[k];
    const cleave_embedded_file_t *embedded = cleave_embedded_find(file->path);
    if (k == 0) {
      lua_pushlstring(state, rules->text, rules->length);
    } else if (file->content != NULL) {
      lua_pushlstring(state, (const char *)cleave_file_data(file->content), cleave_file_size(file->content));
    } else if (embedded != NULL) {
      lua_pushlstring(state, embedded->text, embedded->length);
    } else {
      lua_pushboolean(state, false);
    }
    lua_rawseti(state, -2, (lua_Integer)k);
  }
}

static void run_lint(lua_State *state, void *context) {
  lint_call_t *call = context;
  cleave_script_import(state, "lint"); /* 1 */
  lua_getfield(state, 1, "run");
  lua_rawgeti(state, LUA_REGISTRYINDEX, cleave_rules_declared(call->rules)->file);
  push_texts(state, call->rules);
  lua_call(state, 2, 1); /* 2: the list */
  cleave_table_reader_t reader = {.state = state, .arena = call->arena, .file = ""};
  call->count = (uint32_t)lua_rawlen(state, 2);
  call->lints = cleave_table_take(&reader, call->count, sizeof *call->lints);
  for (uint32_t k = 0; k < call->count; k++) {
    cleave_table_push_item(&reader, k);
    const char *code = cleave_table_text(&reader, "code");
    const char *message = cleave_table_text(&reader, "message");
    call->lints[k] = (cleave_lint_t){.level = level_of(cleave_table_text(&reader, "level")),
                                     .code = code == NULL ? "" : code,
                                     .message = message == NULL ? "" : message};
    call->lints[k].line = cleave_table_line(&reader, "line", &call->lints[k].file);
    lua_pop(state, 1);
  }
}

cleave_status_t cleave_rules_lint(cleave_rules_t *rules, cleave_arena_t *arena,
                                  const cleave_lint_t **out_lints, uint32_t *out_count,
                                  cleave_error_t *error) {
  lint_call_t call = {.rules = rules, .arena = arena};
  *out_lints = NULL;
  *out_count = 0;
  if (rules->script != NULL) {
    CLEAVE_TRY(cleave_script_call(rules->script, run_lint, &call, CLEAVE_SCRIPT_LOAD_BUDGET, error));
  }
  *out_lints = call.lints;
  *out_count = call.count;
  return CLEAVE_OK;
}
