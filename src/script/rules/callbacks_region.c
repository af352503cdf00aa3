// SPDX-License-Identifier: Apache-2.0
/* Callbacks of `region`: supported(node, options) and review(sub, options). */
#include <stdio.h>

#include "script/handles/attribute_reader.h"
#include "script/rules/callback.h"

/* ---- review ---- */

typedef struct review_call {
  const cleave_script_rule_t *rule;
  const cleave_proposal_t *proposal;
  cleave_review_t *review;
} review_call_t;

/* Clears `keep`, then sets it for the nodes that are in the table at index 1: a list, or a set with nodes as
 * keys. */
static void read_kept(lua_State *state, const review_call_t *call) {
  const cleave_proposal_t *proposal = call->proposal;
  luaL_checkstack(state, 8, NULL);
  lua_newtable(state); /* node index -> place in the proposal */
  int places = lua_gettop(state);
  for (uint32_t k = 0; k < proposal->node_count; k++) {
    lua_pushinteger(state, k);
    lua_rawseti(state, places, proposal->nodes[k].index);
    call->review->keep[k] = false;
  }
  cleave_script_step(state, proposal->node_count);
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    bool in_list = lua_isinteger(state, -2);
    if (lua_type(state, in_list ? -1 : -2) != LUA_TUSERDATA) {
      cleave_script_raise(state,
                          "review returned a table with a %s where a node was expected (first comes what to "
                          "keep, then the attributes)",
                          luaL_typename(state, in_list ? -1 : -2));
    }
    cleave_node_t node = cleave_handle_check_node(state, in_list ? -1 : -2);
    if (lua_rawgeti(state, places, node.index) == LUA_TNIL) {
      cleave_script_raise(state, "review returned a node that is not in the region");
    }
    call->review->keep[lua_tointeger(state, -1)] = in_list || lua_toboolean(state, -2);
    lua_pop(state, 2);
    cleave_script_step(state, 4);
  }
  lua_pop(state, 1);
}

/* A verdict (true, false, or the nodes to keep), then a reason (a string) or attributes (a table). */
static void run_review(lua_State *state, void *context) {
  review_call_t *call = context;
  cleave_review_t *review = call->review;
  cleave_callback_push(state, call->rule->review);
  cleave_handle_push_proposal(state);
  cleave_callback_push(state, call->rule->options);
  lua_call(state, 2, LUA_MULTRET);
  int count = lua_gettop(state);
  if (count == 0) {
    cleave_script_raise(state, "review returned nothing, expected true, false or nodes to keep");
  }
  if (lua_istable(state, 1)) {
    read_kept(state, call);
  } else if (lua_isboolean(state, 1) || lua_isnil(state, 1)) {
    review->accept = lua_toboolean(state, 1);
  } else {
    cleave_script_raise(state, "review returned a %s, expected true, false or nodes to keep",
                        luaL_typename(state, 1));
  }
  for (int k = 2; k <= count; k++) {
    if (lua_type(state, k) == LUA_TSTRING) {
      (void)snprintf(review->reason.text, sizeof review->reason.text, "%s", lua_tostring(state, k));
    } else if (lua_istable(state, k)) {
      review->attributes =
          cleave_script_read_attributes(state, k, review->arena, "review", &review->attribute_count);
    } else if (!lua_isnil(state, k)) {
      cleave_script_raise(state,
                          "review returned a %s, expected a string (the reason) or a table (attributes)",
                          luaL_typename(state, k));
    }
  }
}

static cleave_status_t review(void *context, const cleave_proposal_t *proposal, cleave_review_t *review,
                              cleave_error_t *error) {
  review_call_t call = {.rule = context, .proposal = proposal, .review = review};
  return cleave_callback_call(
      context, proposal->graph,
      &(cleave_callback_t){
          .subject = proposal, .node = proposal->nodes[0], .body = run_review, .context = &call},
      error);
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
    if ((call->group < 0 && call->group != CLEAVE_GROUP_ANY) || call->group >= CLEAVE_GROUP_LIMIT) {
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
  CLEAVE_TRY(cleave_callback_call(
      context, graph, &(cleave_callback_t){.node = node, .body = run_supported, .context = &call}, error));
  *out_group = call.group;
  return CLEAVE_OK;
}

void cleave_callbacks_bind_region(cleave_rule_t *rule, const cleave_script_rule_t *functions) {
  rule->supported = functions->supported != LUA_NOREF ? supported : NULL;
  rule->selector = functions->selector != LUA_NOREF ? &cleave_callbacks_selector : NULL;
  rule->review = functions->review != LUA_NOREF ? review : NULL;
}
