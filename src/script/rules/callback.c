// SPDX-License-Identifier: Apache-2.0
/* Calls a rule's Lua function with a budget and handles, and reads its results. */
#include "script/rules/callback.h"

#include <stdio.h>

cleave_status_t cleave_callback_call(const cleave_script_rule_t *rule, const cleave_graph_t *graph,
                                     const cleave_callback_t *call, cleave_error_t *error) {
  uint32_t budget = call->budget != 0 ? call->budget : CLEAVE_SCRIPT_CALLBACK_BUDGET;
  *rule->calls += 1;
  cleave_script_set_rule(rule->script, rule->kind, rule->name, rule->place);
  cleave_handles_enter(rule->script, graph, call->subject);
  rule->script->node = call->node;
  cleave_status_t status = cleave_script_call(rule->script, call->body, call->context, budget, error);
  rule->script->node = CLEAVE_NODE_NONE;
  cleave_handles_leave(rule->script);
  cleave_script_set_rule(rule->script, NULL, NULL, 0);
  return status;
}

cleave_status_t cleave_callback_edit(const cleave_script_rule_t *rule, cleave_builder_t *builder,
                                     cleave_editor_t *editor, const cleave_callback_t *call,
                                     cleave_error_t *error) {
  cleave_script_t *script = rule->script;
  builder->graph = editor->graph;
  builder->editor = editor;
  builder->data_bytes = editor->data_bytes;
  script->owner = builder;
  cleave_status_t status = cleave_callback_call(rule, editor->graph, call, error);
  script->owner = NULL;
  cleave_handles_forget(script);
  return status;
}

void cleave_callback_push(lua_State *state, int reference) {
  lua_rawgeti(state, LUA_REGISTRYINDEX, reference);
}

/* Reads the results from index 1 on: a verdict, and perhaps a reason. Nil counts as false, because `and`
 * yields it for missing fields. */
void cleave_callback_verdict(lua_State *state, const char *function, bool *out_accept,
                             cleave_reason_t *reason) {
  if (lua_gettop(state) == 0) {
    cleave_script_raise(state, "%s returned nothing, expected true or false", function);
  }
  if (!lua_isboolean(state, 1) && !lua_isnil(state, 1)) {
    cleave_script_raise(state, "%s returned a %s, expected true or false%s", function,
                        luaL_typename(state, 1), reason == NULL ? "" : " (and why not)");
  }
  *out_accept = lua_toboolean(state, 1) != 0;
  if (reason != NULL && lua_gettop(state) >= 2 && !lua_isnil(state, 2)) {
    if (lua_type(state, 2) != LUA_TSTRING) {
      cleave_script_raise(state, "%s returned a %s as the reason, expected a string", function,
                          luaL_typename(state, 2));
    }
    (void)snprintf(reason->text, sizeof reason->text, "%s", lua_tostring(state, 2));
  }
}
