// SPDX-License-Identifier: Apache-2.0
/*
 * Callbacks of `rewrite`: replace(m, g, options), and of `pass`: run(graph, options, g). While they run, `g`
 * adds to the graph through its editor.
 */
#include <string.h>

#include "base/text.h"
#include "script/builder/builder.h"
#include "script/rules/callback.h"

typedef struct edit_call {
  const cleave_script_rule_t *rule;
  const cleave_match_t *match;
  cleave_substitute_t *substitute;
  cleave_editor_t *editor; /* of a pass */
  size_t first_edit;       /* that it makes */
  cleave_builder_t builder;
} edit_call_t;

static cleave_status_t call_editing(edit_call_t *call, cleave_editor_t *editor, cleave_script_body_t body,
                                    uint32_t budget, cleave_error_t *error) {
  cleave_callback_t edit = {.subject = call->match,
                            .node = call->match != NULL ? call->match->nodes[0] : CLEAVE_NODE_NONE,
                            .body = body,
                            .context = call,
                            .budget = budget};
  return cleave_callback_edit(call->rule, &call->builder, editor, &edit, error);
}

/* ---- replace ---- */

/* All memory belongs to the substitute, so that raising is safe. */
static void add_pair(lua_State *state, cleave_substitute_t *substitute, cleave_value_t from,
                     cleave_value_t to) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_array_reserve(&substitute->from, 1, &error) != CLEAVE_OK ||
      cleave_array_reserve(&substitute->to, 1, &error) != CLEAVE_OK) {
    cleave_script_raise_error(state, &error);
  }
  cleave_array_push_reserved(&substitute->from, from);
  cleave_array_push_reserved(&substitute->to, to);
}

/* Finds the value that a label of the pattern stands for in the match. */
static cleave_value_t find_label(lua_State *state, const cleave_match_t *match, const char *name) {
  cleave_nearest_t nearest = {0};
  for (uint32_t k = 0; k < match->pattern->label_count; k++) {
    if (strcmp(match->pattern->labels[k], name) == 0) {
      if (!cleave_value_exists(match->label_values[k])) {
        cleave_script_raise(state, "replace returned a value for '%s', which took no part in the match",
                            name);
      }
      return match->label_values[k];
    }
    cleave_nearest_offer(&nearest, name, match->pattern->labels[k]);
  }
  cleave_script_raise(state, "replace returned a value for '%s', which is not a label of the pattern%s", name,
                      cleave_nearest_hint(&nearest));
  return CLEAVE_VALUE_NONE;
}

static void read_table(lua_State *state, edit_call_t *call) {
  bool is_list = lua_rawlen(state, 1) > 0;
  bool is_empty = true;
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    is_empty = false;
    if (is_list || lua_type(state, -2) != LUA_TSTRING) {
      cleave_script_raise(state, "replace returned a list, expected a value, or a table label = value");
    }
    cleave_value_t from = find_label(state, call->match, lua_tostring(state, -2));
    int top = lua_gettop(state);
    cleave_value_t to =
        cleave_builder_read_value(state, top, CLEAVE_DTYPE_UNKNOWN, "replace: what it returns");
    lua_settop(state, top);
    add_pair(state, call->substitute, from, to);
    lua_pop(state, 1);
    cleave_script_step(state, 4);
  }
  if (is_empty) {
    cleave_script_raise(state,
                        "replace returned an empty table, expected a value, or nil to leave the match");
  }
}

static void run_replace(lua_State *state, void *context) {
  edit_call_t *call = context;
  cleave_callback_push(state, call->rule->replace);
  cleave_handle_push_match(state);
  cleave_builder_push(state);
  cleave_callback_push(state, call->rule->options);
  lua_call(state, 3, LUA_MULTRET);
  static const char EXPECTED[] =
      "expected a value, a table label = value, or nil (and why) to leave the match";
  if (lua_gettop(state) == 0) {
    cleave_script_raise(state, "replace returned nothing, %s", EXPECTED);
  }
  if (!lua_toboolean(state, 1)) {
    bool accept = false;
    cleave_callback_verdict(state, "replace", &accept, &call->substitute->reason);
    return;
  }
  luaL_checkstack(state, 16, NULL);
  if (lua_type(state, 1) == LUA_TTABLE) {
    read_table(state, call);
    return;
  }
  if (lua_type(state, 1) != LUA_TUSERDATA) {
    cleave_script_raise(state, "replace returned a %s, %s", luaL_typename(state, 1), EXPECTED);
  }
  add_pair(state, call->substitute, CLEAVE_VALUE_NONE,
           cleave_builder_read_value(state, 1, CLEAVE_DTYPE_UNKNOWN, "replace: what it returns"));
}

static cleave_status_t replace(void *context, cleave_editor_t *editor, const cleave_match_t *match,
                               cleave_substitute_t *substitute, cleave_error_t *error) {
  edit_call_t call = {.rule = context, .match = match, .substitute = substitute};
  return call_editing(&call, editor, run_replace, CLEAVE_SCRIPT_CALLBACK_BUDGET, error);
}

void cleave_callbacks_bind_rewrite(cleave_rule_t *rule, const cleave_script_rule_t *functions) {
  cleave_callbacks_bind_fuse(rule, functions); /* where */
  rule->replace = functions->replace != LUA_NOREF ? replace : NULL;
}

/* ---- pass ---- */

static void run_pass(lua_State *state, void *context) {
  edit_call_t *call = context;
  cleave_callback_push(state, call->rule->run);
  cleave_handle_push_graph(state);
  cleave_callback_push(state, call->rule->options);
  cleave_builder_push(state);
  lua_call(state, 3, LUA_MULTRET);
  if (lua_gettop(state) == 0 || (lua_isnil(state, 1) && lua_isnoneornil(state, 2))) {
    return;
  }
  bool accept = false;
  cleave_callback_verdict(state, "run", &accept, &call->editor->refusal);
  if (accept) {
    call->editor->refusal.text[0] = '\0';
    return;
  }
  if (call->editor->refusal.text[0] == '\0') {
    cleave_script_raise(state, "run returned false without a reason");
  }
  if (call->editor->log->items.count > call->first_edit) {
    cleave_script_raise(state, "run returned %s and a reason, but it changed the graph",
                        lua_isnil(state, 1) ? "nil" : "false");
  }
}

static cleave_status_t run(void *context, cleave_editor_t *editor, cleave_error_t *error) {
  edit_call_t call = {.rule = context, .editor = editor, .first_edit = editor->log->items.count};
  return call_editing(&call, editor, run_pass, CLEAVE_SCRIPT_PASS_BUDGET, error);
}

void cleave_callbacks_bind_pass(cleave_rule_t *rule, const cleave_script_rule_t *functions) {
  rule->run = functions->run != LUA_NOREF ? run : NULL;
}
