// SPDX-License-Identifier: Apache-2.0
/* Callbacks of `stage`: of(node, options) for each node, or assign(graph, options) once. */
#include "graph/order.h"
#include "script/rules/callback.h"

typedef struct stage_call {
  const cleave_script_rule_t *rule;
  cleave_node_t node; /* of */
  uint32_t *stages;
} stage_call_t;

/* Sets the stage of a node to what is on top of the stack, which stays there. */
static void read_stage(lua_State *state, const stage_call_t *call, const char *function, cleave_node_t node) {
  if (!lua_isinteger(state, -1)) {
    cleave_script_raise(state, "%s returned a %s, expected the number of a stage, from 0 to %d", function,
                        luaL_typename(state, -1), CLEAVE_STAGE_LIMIT - 1);
  }
  lua_Integer number = lua_tointeger(state, -1);
  if (number < 0 || number >= CLEAVE_STAGE_LIMIT) {
    cleave_script_raise(state, "%s returned stage %lld, expected 0 to %d", function, (long long)number,
                        CLEAVE_STAGE_LIMIT - 1);
  }
  call->stages[node.index] = (uint32_t)number;
}

static void run_of(lua_State *state, void *context) {
  const stage_call_t *call = context;
  cleave_callback_push(state, call->rule->of);
  cleave_handle_push_node(state, call->node);
  cleave_callback_push(state, call->rule->options);
  lua_call(state, 2, 1);
  if (lua_toboolean(state, -1)) {
    read_stage(state, call, "of", call->node);
  }
}

/* A table with nodes as keys; those that are not in it have no number. */
static void run_assign(lua_State *state, void *context) {
  const stage_call_t *call = context;
  cleave_callback_push(state, call->rule->assign);
  cleave_handle_push_graph(state);
  cleave_callback_push(state, call->rule->options);
  lua_call(state, 2, 1);
  if (!lua_istable(state, -1)) {
    cleave_script_raise(state, "assign returned a %s, expected a table: stages by node",
                        luaL_typename(state, -1));
  }
  int table = lua_gettop(state);
  lua_pushnil(state);
  while (lua_next(state, table) != 0) {
    if (lua_type(state, -2) != LUA_TUSERDATA) {
      cleave_script_raise(state, "assign returned a table with a %s as a key, expected nodes",
                          luaL_typename(state, -2));
    }
    read_stage(state, call, "assign", cleave_handle_check_node(state, -2));
    lua_pop(state, 1);
    cleave_script_step(state, 4);
  }
}

static cleave_status_t assign_all(const cleave_graph_t *graph, stage_call_t *call, cleave_error_t *error) {
  return cleave_callback_call(
      call->rule, graph,
      &(cleave_callback_t){
          .node = CLEAVE_NODE_NONE, .body = run_assign, .context = call, .budget = CLEAVE_SCRIPT_PASS_BUDGET},
      error);
}

static cleave_status_t ask_each(const cleave_graph_t *graph, stage_call_t *call, cleave_error_t *error) {
  cleave_node_t *order = cleave_allocate(graph->live_node_count + 1, sizeof *order);
  cleave_status_t status = order == NULL ? cleave_error_out_of_memory(error)
                                         : cleave_graph_topological_order(graph, order, NULL, error);
  for (size_t k = 0; k < graph->live_node_count && status == CLEAVE_OK; k++) {
    call->node = order[k];
    status = cleave_callback_call(
        call->rule, graph, &(cleave_callback_t){.node = order[k], .body = run_of, .context = call}, error);
  }
  cleave_free(order);
  return status;
}

static cleave_status_t assign(void *context, const cleave_graph_t *graph, uint32_t *stages,
                              cleave_error_t *error) {
  stage_call_t call = {.rule = context, .stages = stages};
  return call.rule->assign != LUA_NOREF ? assign_all(graph, &call, error) : ask_each(graph, &call, error);
}

void cleave_callbacks_bind_stage(cleave_rule_t *rule) {
  rule->assign = assign;
}
