// SPDX-License-Identifier: Apache-2.0
/*
 * Operators as functions: positional inputs, then a table of attributes and inputs by name. One function
 * serves all operators, by their schemas.
 */
#include "script/builder/builder.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "ops/ops.h"
#include "script/builder/invocation.h"
#include "script/handles/handles.h"
#include "script/sandbox/host.h"

/* One call of an operator that adds a node. */
typedef struct invocation {
  cleave_invocation_t read;
  cleave_builder_t *builder;
  char name[CLEAVE_INVOCATION_NAME];
  cleave_value_t *inputs; /* memory of Lua's */
} invocation_t;

/* ---- inputs ---- */

/* A node stands for the value that it makes, if that is one. */
static cleave_value_t read_handle(lua_State *state, int index) {
  const cleave_handle_t *handle = lua_touserdata(state, index);
  if (lua_rawlen(state, index) == sizeof *handle && handle->kind == CLEAVE_HANDLE_NODE) {
    const cleave_graph_t *graph = cleave_builder_of(state)->graph;
    cleave_node_t node = cleave_handle_check_node(state, index);
    if (cleave_node_output_count(graph, node) == 1) {
      return cleave_node_output(graph, node, 0);
    }
  }
  return (cleave_value_t){cleave_handle_check(state, index, CLEAVE_HANDLE_VALUE)->index};
}

/* dtype of a number among the inputs: for pointwise operators, that of the other inputs. */
static cleave_dtype_t number_dtype(const cleave_invocation_t *call) {
  if ((call->op->flags & CLEAVE_OP_POINTWISE) == 0) {
    return CLEAVE_DTYPE_UNKNOWN;
  }
  const cleave_graph_t *graph = cleave_builder_of(call->state)->graph;
  for (int k = 1; k <= call->positional_count; k++) {
    if (lua_type(call->state, k) == LUA_TUSERDATA) {
      cleave_value_t value = read_handle(call->state, k);
      cleave_dtype_t dtype = (cleave_dtype_t)cleave_graph_value(graph, value)->dtype;
      if (dtype != CLEAVE_DTYPE_BOOL) {
        return dtype;
      }
    }
  }
  return CLEAVE_DTYPE_UNKNOWN;
}

cleave_value_t cleave_builder_read_value(lua_State *state, int index, cleave_dtype_t number_dtype,
                                         const char *what) {
  switch (lua_type(state, index)) {
    case LUA_TNIL: return CLEAVE_VALUE_NONE;
    case LUA_TUSERDATA: return read_handle(state, index);
    case LUA_TNUMBER:
    case LUA_TBOOLEAN: return cleave_builder_constant(state, index, number_dtype, NULL);
    case LUA_TTABLE: return cleave_builder_constant(state, index, CLEAVE_DTYPE_UNKNOWN, NULL);
    default:
      cleave_script_raise(state, "%s: expected a value, found a %s", what, luaL_typename(state, index));
      return CLEAVE_VALUE_NONE;
  }
}

/* The value at a stack index as an input. */
static cleave_value_t read_input(const cleave_invocation_t *call, int index, uint32_t port) {
  char what[CLEAVE_INVOCATION_NAME];
  return cleave_builder_read_value(call->state, index, number_dtype(call),
                                   cleave_invocation_place(call, port, what));
}

static void read_tensor(const cleave_invocation_t *call, const cleave_op_attribute_t *schema,
                        cleave_attribute_t *attribute) {
  cleave_value_t value = read_input(call, lua_gettop(call->state), 0);
  const cleave_graph_t *graph = cleave_builder_of(call->state)->graph;
  attribute->held = cleave_value_exists(value) ? cleave_graph_value(graph, value)->tensor : NULL;
  if (attribute->held == NULL) {
    cleave_invocation_raise_kind(call, schema, -1);
  }
}

static int64_t element_count(const cleave_invocation_t *call, int index) {
  if (lua_istable(call->state, index)) {
    return (int64_t)lua_rawlen(call->state, index);
  }
  if (lua_type(call->state, index) != LUA_TUSERDATA) {
    return -1;
  }
  const cleave_graph_t *graph = cleave_builder_of(call->state)->graph;
  const cleave_tensor_t *tensor = cleave_graph_value(graph, read_handle(call->state, index))->tensor;
  return tensor != NULL ? tensor->count : -1;
}

void cleave_builder_read_attribute(lua_State *state, const cleave_op_t *op,
                                   const cleave_op_attribute_t *schema, cleave_attribute_t *attribute) {
  const cleave_invocation_t call = {
      .state = state, .op = op, .read_tensor = read_tensor, .element_count = element_count};
  *attribute = (cleave_attribute_t){0};
  cleave_invocation_read_attribute(&call, schema, attribute);
}

/* ---- names ---- */

static void read_name(invocation_t *call) {
  lua_State *state = call->read.state;
  if (call->read.table != 0 && lua_getfield(state, call->read.table, "name") != LUA_TNIL) {
    if (lua_type(state, -1) != LUA_TSTRING) {
      cleave_script_raise(state, "%s: name: expected a string, found a %s", call->read.op->name,
                          luaL_typename(state, -1));
    }
    (void)snprintf(call->name, sizeof call->name, "%s", lua_tostring(state, -1));
    if (call->builder->editor != NULL) {
      char base[CLEAVE_INVOCATION_NAME];
      memcpy(base, call->name, sizeof base);
      (void)cleave_editor_unique_name(call->builder->editor, base, call->name, sizeof call->name);
    }
    lua_pop(state, 1);
    return;
  }
  if (call->builder->editor != NULL) {
    char base[CLEAVE_INVOCATION_NAME];
    (void)snprintf(base, sizeof base, "%.63s/%.60s", call->builder->editor->rule, call->read.op->name);
    (void)cleave_editor_unique_name(call->builder->editor, base, call->name, sizeof call->name);
    return;
  }
  uint32_t number = call->read.op->id < CLEAVE_OP_COUNT ? call->builder->counters[call->read.op->id]++ : 0;
  (void)snprintf(call->name, sizeof call->name, "%s_%u", call->read.op->name, (unsigned)number);
}

static cleave_status_t name_outputs(const invocation_t *call, cleave_node_t node, cleave_error_t *error) {
  char name[CLEAVE_INVOCATION_NAME + 16];
  for (int k = 0; k < call->read.output_count; k++) {
    cleave_value_t value = cleave_node_output(call->builder->graph, node, (uint32_t)k);
    (void)snprintf(name, sizeof name, k == 0 ? "%s" : "%s:%d", call->name, k);
    CLEAVE_TRY(cleave_graph_set_value_name(call->builder->graph, value, name, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t finish_node(const invocation_t *call, cleave_node_t node, cleave_error_t *error) {
  for (uint32_t k = 0; k < call->read.attribute_count; k++) {
    CLEAVE_TRY(cleave_graph_set_attribute(call->builder->graph, node, &call->read.attributes[k], error));
  }
  CLEAVE_TRY(name_outputs(call, node, error));
  CLEAVE_TRY(cleave_op_check(call->builder->graph, node, CLEAVE_ERROR_FORMAT, error));
  return cleave_builder_infer(call->read.state, node, error);
}

static cleave_status_t add_node(const invocation_t *call, cleave_node_t *out_node, cleave_error_t *error) {
  cleave_graph_t *graph = call->builder->graph;
  cleave_editor_t *editor = call->builder->editor;
  if (editor != NULL) {
    editor->line = cleave_script_line(call->read.state);
    cleave_edit_t edit = {.name = call->name,
                          .inputs = call->inputs,
                          .input_count = call->read.input_count,
                          .output_count = (uint32_t)call->read.output_count,
                          .attributes = call->read.attributes,
                          .attribute_count = call->read.attribute_count};
    return cleave_editor_add_node(editor, call->read.op, &edit, out_node, error);
  }
  CLEAVE_TRY(cleave_graph_add_node(graph, call->read.op, call->name, call->inputs, call->read.input_count,
                                   (size_t)call->read.output_count, out_node, error));
  graph->nodes.items[out_node->index].line = cleave_script_line(call->read.state);
  cleave_status_t status = finish_node(call, *out_node, error);
  if (status != CLEAVE_OK) {
    cleave_graph_remove_node(graph, *out_node);
  }
  return status;
}

/* (operator, inputs ..., table or attributes of a node?) -> outputs. */
static int host_add_node(lua_State *state) {
  invocation_t call = {.read = {.state = state, .read_tensor = read_tensor, .element_count = element_count},
                       .builder = cleave_builder_of(state)};
  luaL_checktype(state, 1, LUA_TLIGHTUSERDATA);
  call.read.op = lua_touserdata(state, 1);
  lua_remove(state, 1);
  cleave_invocation_read(&call.read);
  luaL_checkstack(state, 16, NULL);
  call.inputs = lua_newuserdatauv(state, ((size_t)call.read.input_count + 1) * sizeof *call.inputs, 0);
  for (uint32_t k = 0; k < call.read.input_count; k++) {
    int index = call.read.inputs[k];
    call.inputs[k] = index != 0 ? read_input(&call.read, index, k) : CLEAVE_VALUE_NONE;
  }
  read_name(&call);

  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_node_t node = CLEAVE_NODE_NONE;
  cleave_graph_t *graph = call.builder->graph;
  if (graph->values.count >= CLEAVE_BUILDER_VALUE_LIMIT) {
    cleave_builder_raise_full(state);
  }
  if (add_node(&call, &node, &error) != CLEAVE_OK) {
    return cleave_script_raise_error(state, &error);
  }
  luaL_checkstack(state, call.read.output_count, NULL);
  for (int k = 0; k < call.read.output_count; k++) {
    cleave_handle_push_value(state, cleave_node_output(graph, node, (uint32_t)k));
  }
  return call.read.output_count;
}

/* (table of metamethods): operators of values: x + y. */
static int host_extend_values(lua_State *state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  cleave_handle_push_metatable(state, CLEAVE_HANDLE_VALUE);
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    lua_pushvalue(state, -2);
    lua_insert(state, -2);
    lua_rawset(state, 2);
  }
  return 0;
}

void cleave_builder_register_operators(lua_State *state) {
  lua_pushcfunction(state, host_extend_values);
  lua_setfield(state, -2, "extend_values");
  lua_pushcfunction(state, host_add_node);
  lua_setfield(state, -2, "add_node");
}
