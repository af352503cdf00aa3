// SPDX-License-Identifier: Apache-2.0
/* Fields of the graph, of a match (`where`) and of a proposed region (`review`). */
#include <string.h>

#include "base/text.h"
#include "graph/order.h"
#include "script/handles/handles.h"

static const cleave_graph_t *graph_of(lua_State *state) {
  return cleave_script_of(state)->graph;
}

/* A field that one call pushes, of `graph` and, in `review`, of `proposal`. */
#define PUSH(name, call)                                                     \
  static void push_##name(lua_State *state, const cleave_handle_t *handle) { \
    const cleave_graph_t *graph = graph_of(state);                           \
    const cleave_proposal_t *proposal = cleave_script_of(state)->subject;    \
    (void)handle, (void)graph, (void)proposal, (call);                       \
  }

/* ---- graph ---- */

/* The list of nodes in topological order, made once per graph. */
static const char ORDER_KEY = 'o';

void cleave_handle_forget_order(lua_State *state) {
  lua_pushnil(state);
  lua_rawsetp(state, LUA_REGISTRYINDEX, &ORDER_KEY);
}

static void push_order(lua_State *state) {
  const cleave_script_t *script = cleave_script_of(state);
  const cleave_graph_t *graph = script->graph;
  if (lua_rawgetp(state, LUA_REGISTRYINDEX, &ORDER_KEY) == LUA_TTABLE) {
    lua_getfield(state, -1, "serial");
    bool current = lua_tointeger(state, -1) == (lua_Integer)script->serial;
    lua_pop(state, 1);
    if (current) {
      lua_getfield(state, -1, "nodes");
      lua_remove(state, -2);
      return;
    }
  }
  lua_pop(state, 1);
  size_t count = graph->live_node_count;
  cleave_node_t *order = lua_newuserdatauv(state, (count + 1) * sizeof *order, 0);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_graph_topological_order(graph, order, NULL, &error) != CLEAVE_OK) {
    cleave_script_raise_error(state, &error);
  }
  cleave_handle_push_nodes(state, order, (uint32_t)count);
  lua_newtable(state);
  lua_pushvalue(state, -2);
  lua_setfield(state, -2, "nodes");
  lua_pushinteger(state, (lua_Integer)script->serial);
  lua_setfield(state, -2, "serial");
  lua_rawsetp(state, LUA_REGISTRYINDEX, &ORDER_KEY);
  lua_remove(state, -2);
}

/* A copy, since scripts may change lists. */
static void push_graph_nodes(lua_State *state, const cleave_handle_t *handle) {
  (void)handle;
  push_order(state);
  lua_Integer count = (lua_Integer)lua_rawlen(state, -1);
  lua_createtable(state, (int)count, 0);
  for (lua_Integer k = 1; k <= count; k++) {
    lua_rawgeti(state, -2, k);
    lua_rawseti(state, -2, k);
    cleave_script_step(state, 1);
  }
  lua_remove(state, -2);
}

/* Upvalues: list, position. Nodes that a pass removed since the list was made are skipped. */
static int next_node(lua_State *state) {
  lua_Integer position = lua_tointeger(state, lua_upvalueindex(2));
  const cleave_handle_t *handle = NULL;
  do {
    lua_settop(state, 0);
    lua_rawgeti(state, lua_upvalueindex(1), ++position);
    handle = lua_touserdata(state, 1);
    cleave_script_step(state, 1);
  } while (handle != NULL && cleave_handle_is_removed(state, handle));
  lua_pushinteger(state, position);
  lua_replace(state, lua_upvalueindex(2));
  return 1;
}

static int call_topological(lua_State *state) {
  (void)cleave_handle_check(state, 1, CLEAVE_HANDLE_GRAPH);
  push_order(state);
  lua_pushinteger(state, 0);
  lua_pushcclosure(state, next_node, 2);
  return 1;
}

PUSH(topological, lua_pushcfunction(state, call_topological))
PUSH(graph_name, lua_pushstring(state, cleave_strings_text(&graph->strings, graph->name)))
PUSH(graph_inputs, cleave_handle_push_values(state, graph->inputs.items, (uint32_t)graph->inputs.count))

static void push_graph_outputs(lua_State *state, const cleave_handle_t *handle) {
  (void)handle;
  lua_newtable(state);
  for (size_t k = 0; k < graph_of(state)->outputs.count; k++) {
    cleave_handle_push_value(state, cleave_graph_output(graph_of(state), k));
    lua_rawseti(state, -2, (lua_Integer)k + 1);
  }
}

PUSH(graph_node_count, lua_pushinteger(state, (lua_Integer)graph->live_node_count))

const cleave_handle_field_t cleave_graph_handle_fields[] = {
    {"nodes", push_graph_nodes, "cleave.node[]", "in topological order"},
    {"topological", push_topological, "fun(self: cleave.graph): fun(): cleave.node?", "the same, for loops"},
    {"name", push_graph_name, "string", "of the model"},
    {"inputs", push_graph_inputs, "cleave.value[]", "of the model"},
    {"outputs", push_graph_outputs, "cleave.value[]", "of the model"},
    {"node_count", push_graph_node_count, "integer", "how many nodes there are"},
    {NULL, NULL, NULL, NULL}};

/* ---- match ---- */

static void push_match_nodes(lua_State *state, const cleave_handle_t *handle) {
  const cleave_match_t *match = cleave_script_of(state)->subject;
  (void)handle;
  cleave_handle_push_nodes(state, match->nodes, match->node_count);
}

const cleave_handle_field_t cleave_match_handle_fields[] = {
    {"nodes", push_match_nodes, "cleave.node[]", "all that it takes, in topological order"},
    {NULL, NULL, NULL, NULL}};

int cleave_match_handle_index(lua_State *state) {
  const cleave_handle_t *handle = cleave_handle_check(state, 1, CLEAVE_HANDLE_MATCH);
  const cleave_match_t *match = cleave_script_of(state)->subject;
  const char *name = luaL_checkstring(state, 2);
  for (uint32_t k = 0; k < match->pattern->label_count; k++) {
    if (strcmp(match->pattern->labels[k], name) == 0) {
      if (cleave_node_exists(match->label_nodes[k])) {
        cleave_handle_push_node(state, match->label_nodes[k]);
      } else {
        cleave_handle_push_value(state, match->label_values[k]);
      }
      return 1;
    }
  }
  const cleave_handle_field_t *field = cleave_handle_find_field(state);
  if (field != NULL) {
    field->push(state, handle);
    return 1;
  }
  cleave_nearest_t nearest = {0};
  for (uint32_t k = 0; k < match->pattern->label_count; k++) {
    cleave_nearest_offer(&nearest, name, match->pattern->labels[k]);
  }
  for (field = cleave_match_handle_fields; field->name != NULL; field++) {
    cleave_nearest_offer(&nearest, name, field->name);
  }
  return cleave_script_raise(state, "the pattern has no label '%s'%s", name, cleave_nearest_hint(&nearest));
}

/* ---- proposal ---- */

static const cleave_proposal_t *proposal_of(lua_State *state) {
  return cleave_script_of(state)->subject;
}

PUSH(proposal_nodes, cleave_handle_push_nodes(state, proposal->nodes, proposal->node_count))
PUSH(proposal_inputs, cleave_handle_push_values(state, proposal->inputs, proposal->input_count))
PUSH(proposal_outputs, cleave_handle_push_values(state, proposal->outputs, proposal->output_count))

/* A sum over the proposal, or nil if a size is not known. */
static void push_amount(lua_State *state, const char *what, double amount) {
  const cleave_proposal_t *proposal = proposal_of(state);
  const cleave_graph_t *graph = proposal->graph;
  for (uint32_t k = proposal->node_count; k > 0 && amount < 0.0; k--) { /* the first one counts */
    cleave_handle_note_sizes(state, cleave_node_output(graph, proposal->nodes[k - 1], 0), what);
  }
  for (uint32_t k = proposal->input_count; k > 0 && amount < 0.0; k--) {
    cleave_handle_note_sizes(state, proposal->inputs[k - 1], what);
  }
  cleave_handle_push_amount(state, amount);
}

PUSH(proposal_flops, push_amount(state, "flops", proposal->flops))
PUSH(proposal_bytes_in, push_amount(state, "bytes_in", proposal->bytes_in))
PUSH(proposal_bytes_out, push_amount(state, "bytes_out", proposal->bytes_out))
PUSH(proposal_bytes_saved, push_amount(state, "bytes_saved", proposal->bytes_saved))
PUSH(proposal_rule, lua_pushstring(state, proposal->rule))
PUSH(proposal_backend, lua_pushstring(state, proposal->backend))
PUSH(proposal_node_count, lua_pushinteger(state, proposal->node_count))
PUSH(proposal_fusion_count, lua_pushinteger(state, proposal->fusion_count))

const cleave_handle_field_t cleave_proposal_handle_fields[] = {
    {"nodes", push_proposal_nodes, "cleave.node[]", "in topological order"},
    {"inputs", push_proposal_inputs, "cleave.value[]", "that it reads at run time"},
    {"outputs", push_proposal_outputs, "cleave.value[]", "that others read"},
    {"flops", push_proposal_flops, "number?", "to compute; nil: a size is not known"},
    {"node_count", push_proposal_node_count, "integer", "how many nodes it has"},
    {"fusion_count", push_proposal_fusion_count, "integer", "how many fusions it has"},
    {"bytes_in", push_proposal_bytes_in, "number?", "that come in; nil: a size is not known"},
    {"bytes_out", push_proposal_bytes_out, "number?", "that go out; nil as well"},
    {"bytes_saved", push_proposal_bytes_saved, "number?",
     "written and read again without the region; nil as well"},
    {"rule", push_proposal_rule, "string", "the rule that proposes it"},
    {"backend", push_proposal_backend, "string", "that would run it"},
    {NULL, NULL, NULL, NULL}};
