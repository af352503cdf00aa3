// SPDX-License-Identifier: Apache-2.0
/* Callbacks of `selector`: the table of functions that selector(graph, options) returns, one for each seed.
 */
#include <string.h>

#include "base/text.h"
#include "script/rules/callback.h"

typedef enum method { SELECT, SELECT_INPUT, SELECT_OUTPUT, FILTER, RESET, METHOD_COUNT } method_t;

static const char *const METHOD_NAMES[METHOD_COUNT] = {"select", "select_input", "select_output", "filter",
                                                       "reset"};

/* A selector, which one call of the selector function returned. */
typedef struct selector {
  const cleave_script_rule_t *rule;
  const cleave_graph_t *graph;
  int methods[METHOD_COUNT]; /* registry references, or LUA_NOREF */
} selector_t;

static void check_method_name(lua_State *state, const char *name) {
  cleave_nearest_t nearest = {0};
  for (int k = 0; k < METHOD_COUNT; k++) {
    if (strcmp(METHOD_NAMES[k], name) == 0) {
      return;
    }
  }
  for (int k = 0; k < METHOD_COUNT; k++) {
    cleave_nearest_offer(&nearest, name, METHOD_NAMES[k]);
  }
  cleave_script_raise(state, "the selector has an unknown function '%s'%s", name,
                      cleave_nearest_hint(&nearest));
}

static void check_methods(lua_State *state) {
  if (!lua_istable(state, 1)) {
    cleave_script_raise(state, "selector returned a %s, expected a table with select",
                        luaL_typename(state, 1));
  }
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    if (lua_type(state, -2) != LUA_TSTRING || !lua_isfunction(state, -1)) {
      cleave_script_raise(state, "selector returned an entry that is not a named function");
    }
    check_method_name(state, lua_tostring(state, -2));
    lua_pop(state, 1);
  }
  if (lua_getfield(state, 1, METHOD_NAMES[SELECT]) == LUA_TNIL) {
    cleave_script_raise(state, "the selector has no function 'select'");
  }
  lua_pop(state, 1);
}

static void run_create(lua_State *state, void *context) {
  selector_t *selector = context;
  cleave_callback_push(state, selector->rule->selector);
  cleave_handle_push_graph(state);
  cleave_callback_push(state, selector->rule->options);
  lua_call(state, 2, 1);
  check_methods(state);
  for (int k = 0; k < METHOD_COUNT; k++) {
    if (lua_getfield(state, 1, METHOD_NAMES[k]) == LUA_TNIL) {
      lua_pop(state, 1);
    } else {
      selector->methods[k] = luaL_ref(state, LUA_REGISTRYINDEX);
    }
  }
}

static void selector_destroy(void *context, void *memory) {
  selector_t *selector = memory;
  (void)context;
  for (int k = 0; k < METHOD_COUNT; k++) {
    luaL_unref(selector->rule->script->state, LUA_REGISTRYINDEX, selector->methods[k]);
  }
  cleave_free(selector);
}

static cleave_status_t selector_create(void *context, const cleave_graph_t *graph, void **out_selector,
                                       cleave_error_t *error) {
  selector_t *selector = cleave_allocate(1, sizeof *selector);
  CLEAVE_TRY_MEMORY(selector, error);
  *selector = (selector_t){.rule = context, .graph = graph};
  for (int k = 0; k < METHOD_COUNT; k++) {
    selector->methods[k] = LUA_NOREF;
  }
  cleave_status_t status = cleave_callback_call(
      context, graph, &(cleave_callback_t){.node = CLEAVE_NODE_NONE, .body = run_create, .context = selector},
      error);
  CLEAVE_TRY_OR(status, selector_destroy(context, selector));
  *out_selector = selector;
  return CLEAVE_OK;
}

typedef struct select_call {
  const selector_t *selector;
  method_t method;
  cleave_node_t nodes[2];
  int node_count;
  bool yes;
} select_call_t;

static void run_select(lua_State *state, void *context) {
  select_call_t *call = context;
  cleave_callback_push(state, call->selector->methods[call->method]);
  for (int k = 0; k < call->node_count; k++) {
    cleave_handle_push_node(state, call->nodes[k]);
  }
  lua_call(state, call->node_count, LUA_MULTRET);
  if (call->method != RESET) {
    cleave_callback_verdict(state, METHOD_NAMES[call->method], &call->yes, NULL);
  }
}

static cleave_status_t call_selector(select_call_t *call, bool *out_yes, cleave_error_t *error) {
  const selector_t *selector = call->selector;
  *out_yes = false;
  if (selector->methods[call->method] == LUA_NOREF) {
    return CLEAVE_OK;
  }
  cleave_node_t node = call->node_count > 0 ? call->nodes[call->node_count - 1] : CLEAVE_NODE_NONE;
  CLEAVE_TRY(cleave_callback_call(selector->rule, selector->graph,
                                  &(cleave_callback_t){.node = node, .body = run_select, .context = call},
                                  error));
  *out_yes = call->yes;
  return CLEAVE_OK;
}

static cleave_status_t selector_select(void *selector, cleave_node_t node, bool *out_yes,
                                       cleave_error_t *error) {
  select_call_t call = {.selector = selector, .method = SELECT, .nodes = {node}, .node_count = 1};
  return call_selector(&call, out_yes, error);
}

static cleave_status_t selector_select_input(void *selector, cleave_node_t node, cleave_node_t input,
                                             bool *out_yes, cleave_error_t *error) {
  select_call_t call = {
      .selector = selector, .method = SELECT_INPUT, .nodes = {node, input}, .node_count = 2};
  return call_selector(&call, out_yes, error);
}

static cleave_status_t selector_select_output(void *selector, cleave_node_t node, cleave_node_t output,
                                              bool *out_yes, cleave_error_t *error) {
  select_call_t call = {
      .selector = selector, .method = SELECT_OUTPUT, .nodes = {node, output}, .node_count = 2};
  return call_selector(&call, out_yes, error);
}

static cleave_status_t selector_reset(void *selector, cleave_error_t *error) {
  select_call_t call = {.selector = selector, .method = RESET};
  bool unused = false;
  return call_selector(&call, &unused, error);
}

typedef struct filter_call {
  const selector_t *selector;
  const cleave_node_t *candidates;
  uint32_t count;
  bool *keep;
} filter_call_t;

/* The function gets the candidates as a list and returns the list of those to keep. */
static void run_filter(lua_State *state, void *context) {
  filter_call_t *call = context;
  cleave_callback_push(state, call->selector->methods[FILTER]);
  cleave_handle_push_nodes(state, call->candidates, call->count);
  lua_call(state, 1, 1);
  if (!lua_istable(state, 1)) {
    cleave_script_raise(state, "filter returned a %s, expected a list of nodes", luaL_typename(state, 1));
  }
  lua_newtable(state); /* 2: node index -> place among the candidates */
  for (uint32_t k = 0; k < call->count; k++) {
    lua_pushinteger(state, k);
    lua_rawseti(state, 2, call->candidates[k].index);
    call->keep[k] = false;
  }
  lua_Integer kept = (lua_Integer)lua_rawlen(state, 1);
  for (lua_Integer k = 1; k <= kept; k++) {
    lua_rawgeti(state, 1, k);
    cleave_node_t node = cleave_handle_check_node(state, -1);
    if (lua_rawgeti(state, 2, node.index) == LUA_TNIL) {
      cleave_script_raise(state, "filter returned a node that is not a candidate");
    }
    call->keep[lua_tointeger(state, -1)] = true;
    lua_pop(state, 2);
    cleave_script_step(state, 4);
  }
}

static cleave_status_t selector_filter(void *memory, const cleave_node_t *candidates, uint32_t count,
                                       bool *keep, cleave_error_t *error) {
  const selector_t *selector = memory;
  if (selector->methods[FILTER] == LUA_NOREF) {
    for (uint32_t k = 0; k < count; k++) {
      keep[k] = true;
    }
    return CLEAVE_OK;
  }
  filter_call_t call = {.selector = selector, .candidates = candidates, .count = count, .keep = keep};
  return cleave_callback_call(
      selector->rule, selector->graph,
      &(cleave_callback_t){.node = candidates[0], .body = run_filter, .context = &call}, error);
}

const cleave_selector_functions_t cleave_callbacks_selector = {.create = selector_create,
                                                               .destroy = selector_destroy,
                                                               .select = selector_select,
                                                               .select_input = selector_select_input,
                                                               .select_output = selector_select_output,
                                                               .reset = selector_reset,
                                                               .filter = selector_filter};
