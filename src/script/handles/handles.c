// SPDX-License-Identifier: Apache-2.0
/* Makes and checks handles. A table with weak values keeps one userdata per node as long as it is referenced;
 * the table is emptied when another graph is used. */
#include "script/handles/handles.h"

#include <string.h>

#include "base/text.h"

static const char CACHE_KEY = 'c';
static const char METATABLES_KEY = 't';
static const char CONTENT[] = "content"; /* field of a metatable */
static const char *const KIND_NAMES[CLEAVE_HANDLE_KIND_COUNT] = {
    "node", "value", "graph", "match", "subgraph", "attributes", "inputs", "outputs"};

static uint64_t next_serial(cleave_script_t *script) {
  return script->serial + 1;
}

void cleave_handles_enter(cleave_script_t *script, const cleave_graph_t *graph, const void *subject) {
  bool same = script->seen.graph == graph->identity && script->seen.nodes == graph->nodes.items &&
              script->seen.uses == graph->uses.items && script->seen.node_count == graph->nodes.count &&
              script->seen.value_count == graph->values.count &&
              script->seen.use_count == graph->uses.count &&
              script->seen.live_node_count == graph->live_node_count;
  if (!same) {
    script->serial = next_serial(script);
    script->seen.graph = graph->identity;
    script->seen.nodes = graph->nodes.items;
    script->seen.uses = graph->uses.items;
    script->seen.node_count = graph->nodes.count;
    script->seen.value_count = graph->values.count;
    script->seen.use_count = graph->uses.count;
    script->seen.live_node_count = graph->live_node_count;
  }
  script->graph = graph;
  script->subject = subject;
}

void cleave_handles_leave(cleave_script_t *script) {
  script->graph = NULL;
  script->subject = NULL;
}

void cleave_handles_forget(cleave_script_t *script) {
  script->seen.graph = 0;
}

/* ---- fields ---- */

/* The metatable has fields by their names. Its other entries are no light userdata. */
const cleave_handle_field_t *cleave_handle_find_field(lua_State *state) {
  (void)lua_getmetatable(state, 1);
  lua_pushvalue(state, 2);
  const cleave_handle_field_t *field =
      lua_rawget(state, -2) == LUA_TLIGHTUSERDATA ? lua_touserdata(state, -1) : NULL;
  lua_pop(state, 2);
  return field;
}

/* __index of a kind that has fields alone. Upvalues: kind, fields. */
static int index_fields(lua_State *state) {
  cleave_handle_kind_t kind = (cleave_handle_kind_t)lua_tointeger(state, lua_upvalueindex(1));
  const cleave_handle_field_t *fields = lua_touserdata(state, lua_upvalueindex(2));
  const cleave_handle_t *handle = cleave_handle_check(state, 1, kind);
  if (lua_type(state, 2) != LUA_TSTRING) {
    return cleave_script_raise(state, "a %s has named fields, found a %s as the name", KIND_NAMES[kind],
                               luaL_typename(state, 2));
  }
  const cleave_handle_field_t *field = cleave_handle_find_field(state);
  if (field != NULL) {
    field->push(state, handle);
    return 1;
  }
  const char *name = lua_tostring(state, 2);
  cleave_nearest_t nearest = {0};
  for (field = fields; field->name != NULL; field++) {
    cleave_nearest_offer(&nearest, name, field->name);
  }
  return cleave_script_raise(state, "a %s has no field '%s'%s", KIND_NAMES[kind], name,
                             cleave_nearest_hint(&nearest));
}

/* ---- metatables ---- */

static int refuse_change(lua_State *state) {
  const cleave_handle_t *handle = lua_touserdata(state, 1);
  return cleave_script_raise(state, "a %s cannot be changed", KIND_NAMES[handle->kind]);
}

static int handles_are_equal(lua_State *state) {
  const cleave_handle_t *a = lua_touserdata(state, 1);
  const cleave_handle_t *b = lua_touserdata(state, 2);
  bool equal = lua_type(state, 1) == LUA_TUSERDATA && lua_type(state, 2) == LUA_TUSERDATA &&
               a->kind == b->kind && a->index == b->index && a->serial == b->serial;
  lua_pushboolean(state, equal);
  return 1;
}

static int handle_to_text(lua_State *state) {
  const cleave_script_t *script = cleave_script_of(state);
  const cleave_handle_t *handle = lua_touserdata(state, 1);
  char label[96];
  bool live = script->graph != NULL && handle->serial == script->serial;
  if (live && handle->kind == CLEAVE_HANDLE_NODE) {
    cleave_node_t node = {handle->index};
    lua_pushfstring(state, "%s '%s'", cleave_node_op(script->graph, node)->name,
                    cleave_node_label(script->graph, node, label, sizeof label));
  } else if (live && handle->kind == CLEAVE_HANDLE_VALUE) {
    lua_pushfstring(state, "value '%s'", cleave_value_name(script->graph, (cleave_value_t){handle->index}));
  } else {
    lua_pushstring(state, KIND_NAMES[handle->kind]);
  }
  return 1;
}

/* Lua takes pointers without const. */
static void push_pointer(lua_State *state, const void *pointer) {
  lua_pushlightuserdata(state, (void *)(uintptr_t)pointer);
}

void cleave_handle_define(lua_State *state, cleave_handle_kind_t kind,
                          const cleave_handle_definition_t *definition) {
  if (lua_rawgetp(state, LUA_REGISTRYINDEX, &METATABLES_KEY) == LUA_TNIL) {
    lua_pop(state, 1);
    lua_newtable(state);
    lua_pushvalue(state, -1);
    lua_rawsetp(state, LUA_REGISTRYINDEX, &METATABLES_KEY);
  }
  lua_newtable(state);
  for (const cleave_handle_field_t *field = definition->fields; field != NULL && field->name != NULL;
       field++) {
    push_pointer(state, field);
    lua_setfield(state, -2, field->name);
  }
  lua_pushinteger(state, (lua_Integer)kind);
  push_pointer(state, definition->fields);
  lua_pushcclosure(state, definition->index != NULL ? definition->index : index_fields, 2);
  lua_setfield(state, -2, "__index");
  lua_pushcfunction(state, refuse_change);
  lua_setfield(state, -2, "__newindex");
  lua_pushcfunction(state, handles_are_equal);
  lua_setfield(state, -2, "__eq");
  lua_pushcfunction(state, handle_to_text);
  lua_setfield(state, -2, "__tostring");
  if (definition->length != NULL) {
    lua_pushcfunction(state, definition->length);
    lua_setfield(state, -2, "__len");
  }
  if (definition->content != NULL) {
    lua_pushcfunction(state, definition->content);
    lua_setfield(state, -2, CONTENT);
  }
  lua_pushstring(state, KIND_NAMES[kind]);
  lua_setfield(state, -2, "__name");
  lua_pushboolean(state, false);
  lua_setfield(state, -2, "__metatable");
  lua_rawseti(state, -2, (lua_Integer)kind);
  lua_pop(state, 1);
}

void cleave_handle_push_metatable(lua_State *state, cleave_handle_kind_t kind) {
  (void)lua_rawgetp(state, LUA_REGISTRYINDEX, &METATABLES_KEY);
  (void)lua_rawgeti(state, -1, (lua_Integer)kind);
  lua_remove(state, -2);
}

static void push_handle(lua_State *state, cleave_handle_kind_t kind, uint32_t index, uint64_t serial) {
  cleave_handle_t *handle = lua_newuserdatauv(state, sizeof *handle, 0);
  handle->kind = kind;
  handle->index = index;
  handle->serial = serial;
  cleave_handle_push_metatable(state, kind);
  lua_setmetatable(state, -2);
}

/* The cache is a table [1] = serial it belongs to (a float, out of the way of indices), [2 * index + kind].
 */
static void push_cache(lua_State *state) {
  const cleave_script_t *script = cleave_script_of(state);
  if (lua_rawgetp(state, LUA_REGISTRYINDEX, &CACHE_KEY) == LUA_TTABLE) {
    lua_pushliteral(state, "serial");
    lua_rawget(state, -2);
    bool current = lua_tointeger(state, -1) == (lua_Integer)script->serial;
    lua_pop(state, 1);
    if (current) {
      return;
    }
  }
  lua_pop(state, 1);
  lua_newtable(state);
  lua_newtable(state);
  lua_pushliteral(state, "v");
  lua_setfield(state, -2, "__mode");
  lua_setmetatable(state, -2);
  lua_pushinteger(state, (lua_Integer)script->serial);
  lua_setfield(state, -2, "serial");
  lua_pushvalue(state, -1);
  lua_rawsetp(state, LUA_REGISTRYINDEX, &CACHE_KEY);
}

static void push_cached(lua_State *state, cleave_handle_kind_t kind, uint32_t index) {
  luaL_checkstack(state, 8, NULL);
  push_cache(state);
  lua_Integer key = (lua_Integer)index * 2 + (kind == CLEAVE_HANDLE_VALUE ? 1 : 0);
  if (lua_rawgeti(state, -1, key) == LUA_TNIL) {
    lua_pop(state, 1);
    push_handle(state, kind, index, cleave_script_of(state)->serial);
    lua_pushvalue(state, -1);
    lua_rawseti(state, -3, key);
  }
  lua_remove(state, -2);
}

void cleave_handle_push_node(lua_State *state, cleave_node_t node) {
  if (cleave_node_exists(node)) {
    push_cached(state, CLEAVE_HANDLE_NODE, node.index);
  } else {
    lua_pushnil(state);
  }
}

void cleave_handle_push_value(lua_State *state, cleave_value_t value) {
  if (cleave_value_exists(value)) {
    push_cached(state, CLEAVE_HANDLE_VALUE, value.index);
  } else {
    lua_pushnil(state);
  }
}

void cleave_handle_push_graph(lua_State *state) {
  push_handle(state, CLEAVE_HANDLE_GRAPH, 0, cleave_script_of(state)->serial);
}

void cleave_handle_push_match(lua_State *state) {
  push_handle(state, CLEAVE_HANDLE_MATCH, 0, cleave_script_of(state)->call_serial);
}

void cleave_handle_push_proposal(lua_State *state) {
  push_handle(state, CLEAVE_HANDLE_PROPOSAL, 0, cleave_script_of(state)->call_serial);
}

void cleave_handle_push_view(lua_State *state, cleave_handle_kind_t kind, const cleave_handle_t *node) {
  push_handle(state, kind, node->index, node->serial);
}

void cleave_handle_push_nodes(lua_State *state, const cleave_node_t *nodes, uint32_t count) {
  lua_createtable(state, (int)(count < INT32_MAX ? count : INT32_MAX), 0);
  for (uint32_t k = 0; k < count; k++) {
    cleave_handle_push_node(state, nodes[k]);
    lua_rawseti(state, -2, (lua_Integer)k + 1);
    cleave_script_step(state, 4);
  }
}

void cleave_handle_push_values(lua_State *state, const cleave_value_t *values, uint32_t count) {
  lua_createtable(state, (int)(count < INT32_MAX ? count : INT32_MAX), 0);
  for (uint32_t k = 0; k < count; k++) {
    cleave_handle_push_value(state, values[k]);
    lua_rawseti(state, -2, (lua_Integer)k + 1);
    cleave_script_step(state, 4);
  }
}

/* ---- checking ---- */

static bool is_live(const cleave_graph_t *graph, const cleave_handle_t *handle) {
  if (handle->kind == CLEAVE_HANDLE_GRAPH) {
    return true;
  }
  if (handle->kind == CLEAVE_HANDLE_VALUE) {
    return handle->index < graph->values.count && !graph->values.items[handle->index].is_removed;
  }
  return cleave_node_is_live(graph, (cleave_node_t){handle->index});
}

bool cleave_handle_is_removed(lua_State *state, const cleave_handle_t *handle) {
  const cleave_script_t *script = cleave_script_of(state);
  return script->graph != NULL && handle->serial == script->serial && !is_live(script->graph, handle);
}

cleave_handle_t *cleave_handle_check(lua_State *state, int index, cleave_handle_kind_t kind) {
  const cleave_script_t *script = cleave_script_of(state);
  cleave_handle_t *handle = lua_touserdata(state, index);
  if (lua_type(state, index) != LUA_TUSERDATA || handle->kind != kind) {
    bool other = lua_type(state, index) == LUA_TUSERDATA;
    cleave_script_raise(state, "expected a %s, found a %s", KIND_NAMES[kind],
                        other ? KIND_NAMES[handle->kind] : luaL_typename(state, index));
    return NULL;
  }
  bool of_call = kind == CLEAVE_HANDLE_MATCH || kind == CLEAVE_HANDLE_PROPOSAL;
  bool current =
      of_call ? script->subject != NULL && handle->serial == script->call_serial
              : script->graph != NULL && handle->serial == script->serial && is_live(script->graph, handle);
  if (!current) {
    cleave_script_raise(state, "this %s is no longer valid: %s", KIND_NAMES[kind],
                        of_call ? "it lives as long as the call that it was made for"
                                : "it is of another graph, or was removed");
  }
  return handle;
}

cleave_node_t cleave_handle_check_node(lua_State *state, int index) {
  return (cleave_node_t){cleave_handle_check(state, index, CLEAVE_HANDLE_NODE)->index};
}

bool cleave_handle_is(lua_State *state, int index, cleave_handle_kind_t kind) {
  const cleave_handle_t *handle = lua_touserdata(state, index);
  return lua_type(state, index) == LUA_TUSERDATA && lua_rawlen(state, index) == sizeof *handle &&
         handle->kind == kind;
}

void cleave_handle_open(lua_State *state, int index) {
  if (lua_type(state, index) == LUA_TUSERDATA && luaL_getmetafield(state, index, CONTENT) != LUA_TNIL) {
    lua_pushvalue(state, index);
    lua_call(state, 1, 1);
    lua_replace(state, index);
  }
}

bool cleave_handle_less(lua_State *state, int a, int b) {
  const cleave_handle_t *left = lua_touserdata(state, a);
  const cleave_handle_t *right = lua_touserdata(state, b);
  if (left->serial != right->serial) {
    return left->serial < right->serial;
  }
  if (left->kind != right->kind) {
    return left->kind < right->kind;
  }
  return left->index < right->index;
}
