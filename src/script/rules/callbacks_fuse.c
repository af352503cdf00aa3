// SPDX-License-Identifier: Apache-2.0
/* Callbacks of `fuse`: where(m, options). */
#include "script/rules/callback.h"

typedef struct where_call {
  const cleave_script_rule_t *rule;
  bool accept;
  cleave_reason_t *reason;
} where_call_t;

static void run_where(lua_State *state, void *context) {
  where_call_t *call = context;
  cleave_callback_push(state, call->rule->where);
  cleave_handle_push_match(state);
  cleave_callback_push(state, call->rule->options);
  lua_call(state, 2, LUA_MULTRET);
  cleave_callback_verdict(state, "where", &call->accept, call->reason);
}

static cleave_status_t where(void *context, const cleave_graph_t *graph, const cleave_match_t *match,
                             bool *out_accept, cleave_reason_t *reason, cleave_error_t *error) {
  where_call_t call = {.rule = context, .reason = reason};
  CLEAVE_TRY(cleave_callback_call(
      context, graph,
      &(cleave_callback_t){.subject = match, .node = match->nodes[0], .body = run_where, .context = &call},
      error));
  *out_accept = call.accept;
  return CLEAVE_OK;
}

void cleave_callbacks_bind_fuse(cleave_rule_t *rule, const cleave_script_rule_t *functions) {
  rule->where = functions->where != LUA_NOREF ? where : NULL;
}
