/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of `region`: supported(node, options) and review(sub, options). */
#include "script/callback.h"

/* ---- review ---- */

typedef struct review_call {
  const cleave_script_rule_t *rule;
  bool accept;
  cleave_reason_t *reason;
} review_call_t;

static void run_review(lua_State *state, void *context) {
  review_call_t *call = context;
  cleave_callback_push(state, call->rule->review);
  cleave_handle_push_proposal(state);
  cleave_callback_push(state, call->rule->options);
  lua_call(state, 2, LUA_MULTRET);
  cleave_callback_verdict(state, "review", &call->accept, call->reason);
}

static cleave_status_t review(void *context, const cleave_proposal_t *proposal, bool *out_accept,
                              cleave_reason_t *reason, cleave_error_t *error) {
  review_call_t call = {.rule = context, .reason = reason};
  CLEAVE_TRY(cleave_callback_call(context, proposal->graph, proposal, run_review, &call, error));
  *out_accept = call.accept;
  return CLEAVE_OK;
}

/* ---- supported ---- */

typedef struct supported_call {
  const cleave_script_rule_t *rule;
  cleave_node_t node;
  int64_t group;
} supported_call_t;

static void run_supported(lua_State *state, void *context) {
  supported_call_t *call = context;
  cleave_callback_push(state, call->rule->supported);
  cleave_handle_push_node(state, call->node);
  cleave_callback_push(state, call->rule->options);
  lua_call(state, 2, 1);
  if (lua_isinteger(state, -1)) {
    call->group = lua_tointeger(state, -1);
    if (call->group < 0 && call->group != CLEAVE_GROUP_ANY) {
      cleave_script_raise(state,
                          "supported returned %lld, expected false, true, -1 (any group) or a group from 0",
                          (long long)call->group);
    }
  } else if (lua_isboolean(state, -1) || lua_isnil(state, -1)) {
    call->group = lua_toboolean(state, -1) ? CLEAVE_GROUP_ANY : CLEAVE_GROUP_NONE;
  } else {
    cleave_script_raise(state,
                        "supported returned a %s, expected false, true, -1 (any group) or a group from 0",
                        luaL_typename(state, -1));
  }
}

static cleave_status_t supported(void *context, const cleave_graph_t *graph, cleave_node_t node,
                                 int64_t *out_group, cleave_error_t *error) {
  supported_call_t call = {.rule = context, .node = node};
  CLEAVE_TRY(cleave_callback_call(context, graph, NULL, run_supported, &call, error));
  *out_group = call.group;
  return CLEAVE_OK;
}

void cleave_callbacks_bind_region(cleave_rule_t *rule, const cleave_script_rule_t *functions) {
  rule->supported = functions->supported != LUA_NOREF ? supported : NULL;
  rule->selector = functions->selector != LUA_NOREF ? &cleave_callbacks_selector : NULL;
  rule->review = functions->review != LUA_NOREF ? review : NULL;
}
