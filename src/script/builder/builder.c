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
#include "script/handles/handles.h"
#include "script/sandbox/host.h"

enum { MAX_PORTS = 1024, NAME_SIZE = 128 };

/* One call of an operator, on the Lua stack: 1 .. positional_count are inputs. */
typedef struct invocation {
  lua_State *state;
  cleave_builder_t *builder;
  const cleave_op_t *op;
  int positional_count;
  int table; /* index of the attribute table; 0: none */
  int output_count;
  char name[NAME_SIZE];
  cleave_value_t *inputs; /* memory of Lua's */
  uint32_t input_count;
  cleave_attribute_t *attributes; /* memory of Lua's */
  uint32_t attribute_count;
} invocation_t;

static bool is_variadic(const cleave_op_port_t *ports, uint32_t count) {
  return count > 0 && ports[count - 1].kind == CLEAVE_OP_INPUT_VARIADIC;
}

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
static cleave_dtype_t number_dtype(const invocation_t *call) {
  if ((call->op->flags & CLEAVE_OP_POINTWISE) == 0) {
    return CLEAVE_DTYPE_UNKNOWN;
  }
  for (int k = 1; k <= call->positional_count; k++) {
    if (lua_type(call->state, k) == LUA_TUSERDATA) {
      cleave_value_t value = read_handle(call->state, k);
      cleave_dtype_t dtype = (cleave_dtype_t)cleave_graph_value(call->builder->graph, value)->dtype;
      if (dtype != CLEAVE_DTYPE_BOOL) {
        return dtype;
      }
    }
  }
  return CLEAVE_DTYPE_UNKNOWN;
}

static const char *port_name(const cleave_op_t *op, uint32_t index) {
  if (op->input_count == 0) {
    return "value"; /* of a tensor attribute */
  }
  return op->inputs[index < op->input_count ? index : op->input_count - 1].name;
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
static cleave_value_t read_input(const invocation_t *call, int index, uint32_t port) {
  char what[NAME_SIZE];
  (void)snprintf(what, sizeof what, "%s: input '%s'", call->op->name, port_name(call->op, port));
  return cleave_builder_read_value(call->state, index, number_dtype(call), what);
}

static void read_positional(invocation_t *call) {
  const cleave_op_t *op = call->op;
  uint32_t given = (uint32_t)call->positional_count;
  if (given > op->input_count && !is_variadic(op->inputs, op->input_count)) {
    cleave_script_raise(call->state, "%s: expected at most %d inputs, found %d", op->name,
                        (int)op->input_count, call->positional_count);
  }
  for (uint32_t k = 0; k < given; k++) {
    call->inputs[k] = read_input(call, (int)k + 1, k);
    if (cleave_value_exists(call->inputs[k])) {
      call->input_count = k + 1;
    }
  }
}

/* ---- the table: inputs and attributes by name ---- */

static bool is_reserved(const char *key) {
  return strcmp(key, "name") == 0 || strcmp(key, "outputs") == 0;
}

/* Index of the input that a key names, unless it names an attribute. */
static uint32_t input_of_key(const cleave_op_t *op, const char *key) {
  if (is_reserved(key) || cleave_op_find_attribute(op, key) != NULL) {
    return CLEAVE_INDEX_NONE;
  }
  return cleave_op_input_index(op, key);
}

static void refuse_key(const invocation_t *call, const char *key) {
  cleave_nearest_t nearest = {0};
  char hint[128];
  for (uint32_t k = 0; k < call->op->attribute_count; k++) {
    cleave_nearest_offer(&nearest, key, call->op->attributes[k].value.name);
  }
  for (uint32_t k = 0; k < call->op->input_count; k++) {
    cleave_nearest_offer(&nearest, key, call->op->inputs[k].name);
  }
  cleave_script_raise(call->state, "operator '%s' has no attribute or input '%s'%s", call->op->name, key,
                      cleave_nearest_hint(&nearest, hint, sizeof hint));
}

static void read_named_inputs(invocation_t *call) {
  lua_State *state = call->state;
  lua_pushnil(state);
  while (lua_next(state, call->table) != 0) {
    if (lua_type(state, -2) != LUA_TSTRING) {
      cleave_script_raise(state, "%s: the table of attributes has a list entry", call->op->name);
    }
    const char *key = lua_tostring(state, -2);
    uint32_t port = input_of_key(call->op, key);
    if (port != CLEAVE_INDEX_NONE) {
      if (cleave_value_exists(call->inputs[port])) {
        cleave_script_raise(state, "%s: input '%s' is given twice", call->op->name, key);
      }
      call->inputs[port] = read_input(call, lua_gettop(state), port);
      call->input_count = call->input_count > port ? call->input_count : port + 1;
    } else if (!is_reserved(key) && cleave_op_find_attribute(call->op, key) == NULL) {
      refuse_key(call, key);
    }
    lua_pop(state, 1);
  }
}

static void raise_kind(const invocation_t *call, const cleave_op_attribute_t *attribute, int index) {
  cleave_script_raise(call->state, "%s: attribute '%s': expected a %s, found a %s", call->op->name,
                      attribute->value.name, cleave_host_kind_name(attribute->value.kind),
                      luaL_typename(call->state, index));
}

/* Fills in a list attribute from the table on top of the stack, into memory of Lua's (left on the stack). */
static void read_list(const invocation_t *call, const cleave_op_attribute_t *schema,
                      cleave_attribute_t *attribute) {
  lua_State *state = call->state;
  int list = lua_gettop(state);
  if (!lua_istable(state, list)) {
    raise_kind(call, schema, list);
  }
  size_t count = lua_rawlen(state, list);
  if (count > 65536) {
    cleave_script_raise(state, "%s: attribute '%s': a list of %d entries", call->op->name, schema->value.name,
                        (int)(count < INT32_MAX ? count : INT32_MAX));
  }
  lua_pushnil(state);
  for (size_t keys = 0; lua_next(state, list) != 0; keys++) {
    lua_pop(state, 1);
    if (keys >= count || !lua_isinteger(state, -1)) {
      cleave_script_raise(
          state, "%s: attribute '%s': expected a %s, found a table with other keys than 1 to %d",
          call->op->name, schema->value.name, cleave_host_kind_name(schema->value.kind), (int)count);
    }
  }
  attribute->count = (uint32_t)count;
  cleave_builder_charge(state, count * sizeof(int64_t));
  void *memory = lua_newuserdatauv(state, (count + 1) * sizeof(int64_t), 0);
  int64_t *ints = memory;
  float *floats = memory;
  const char **strings = memory;
  for (size_t k = 0; k < count; k++) {
    lua_rawgeti(state, list, (lua_Integer)k + 1);
    if (schema->value.kind == CLEAVE_ATTRIBUTE_INTS && lua_isinteger(state, -1)) {
      ints[k] = lua_tointeger(state, -1);
    } else if (schema->value.kind == CLEAVE_ATTRIBUTE_FLOATS && lua_type(state, -1) == LUA_TNUMBER) {
      floats[k] = (float)lua_tonumber(state, -1);
    } else if (schema->value.kind == CLEAVE_ATTRIBUTE_STRINGS && lua_type(state, -1) == LUA_TSTRING) {
      cleave_builder_charge(state, lua_rawlen(state, -1));
      strings[k] = lua_tostring(state, -1);
    } else {
      raise_kind(call, schema, -1);
    }
    lua_pop(state, 1);
  }
  attribute->ints = memory;
}

static int64_t read_int(const invocation_t *call, const cleave_op_attribute_t *schema) {
  lua_State *state = call->state;
  if (lua_isboolean(state, -1)) {
    return lua_toboolean(state, -1);
  }
  if (lua_type(state, -1) == LUA_TSTRING) { /* Cast's `to`, and others that take a dtype by its number */
    cleave_dtype_t dtype = cleave_dtype_find(lua_tostring(state, -1));
    if (dtype != CLEAVE_DTYPE_UNKNOWN) {
      return dtype;
    }
  }
  if (!lua_isinteger(state, -1)) {
    raise_kind(call, schema, -1);
  }
  return lua_tointeger(state, -1);
}

/* The value on top of the stack as an attribute. What it points to is on the stack, too. */
static void read_attribute(const invocation_t *call, const cleave_op_attribute_t *schema,
                           cleave_attribute_t *attribute) {
  lua_State *state = call->state;
  attribute->name = schema->value.name;
  attribute->kind = schema->value.kind;
  switch (schema->value.kind) {
    case CLEAVE_ATTRIBUTE_INT: attribute->i = read_int(call, schema); return;
    case CLEAVE_ATTRIBUTE_FLOAT:
      if (lua_type(state, -1) != LUA_TNUMBER) {
        raise_kind(call, schema, -1);
      }
      attribute->f = lua_tonumber(state, -1);
      return;
    case CLEAVE_ATTRIBUTE_STRING: {
      size_t length = 0;
      if (lua_type(state, -1) != LUA_TSTRING) {
        raise_kind(call, schema, -1);
      }
      attribute->s = lua_tolstring(state, -1, &length);
      cleave_builder_charge(state, length);
      attribute->count = (uint32_t)length;
      return;
    }
    case CLEAVE_ATTRIBUTE_TENSOR: {
      cleave_value_t value = read_input(call, lua_gettop(state), 0);
      bool exists = cleave_value_exists(value);
      attribute->tensor = exists ? cleave_graph_value(call->builder->graph, value)->tensor : NULL;
      if (attribute->tensor == NULL) {
        raise_kind(call, schema, -1);
      }
      return;
    }
    default: read_list(call, schema, attribute); return;
  }
}

void cleave_builder_read_attribute(lua_State *state, const cleave_op_t *op,
                                   const cleave_op_attribute_t *schema, cleave_attribute_t *attribute) {
  invocation_t call = {.state = state, .builder = cleave_builder_of(state), .op = op};
  *attribute = (cleave_attribute_t){0};
  read_attribute(&call, schema, attribute);
}

/* Reads all attributes of the table before the node is made, so that an error leaves no node behind. */
static void read_attributes(invocation_t *call) {
  lua_State *state = call->state;
  uint32_t most = call->table != 0 ? call->op->attribute_count : 0;
  call->attributes = lua_newuserdatauv(state, ((size_t)most + 1) * sizeof *call->attributes, 0);
  luaL_checkstack(state, 2 * (int)most + 8, NULL);
  for (uint32_t k = 0; k < most; k++) {
    if (lua_getfield(state, call->table, call->op->attributes[k].value.name) == LUA_TNIL) {
      lua_pop(state, 1);
      continue;
    }
    call->attributes[call->attribute_count] = (cleave_attribute_t){0};
    read_attribute(call, &call->op->attributes[k], &call->attributes[call->attribute_count++]);
  }
}

/* ---- outputs and names ---- */

static int named_output_count(const invocation_t *call) {
  int count = 0;
  if (call->table != 0 && lua_getfield(call->state, call->table, "outputs") != LUA_TNIL) {
    lua_Integer wanted = lua_isinteger(call->state, -1) ? lua_tointeger(call->state, -1) : -1;
    bool variadic = is_variadic(call->op->outputs, call->op->output_count);
    if (wanted < 1 || wanted > (variadic ? MAX_PORTS : (lua_Integer)call->op->output_count)) {
      cleave_script_raise(call->state, "%s: outputs: expected 1 to %d", call->op->name,
                          variadic ? MAX_PORTS : (int)call->op->output_count);
    }
    count = (int)wanted;
  }
  return count;
}

/* The number of outputs from Split's attribute or second input. */
static int split_output_count(const invocation_t *call) {
  int count = 0;
  if (call->table != 0 && lua_getfield(call->state, call->table, "num_outputs") != LUA_TNIL) {
    lua_Integer wanted = lua_isinteger(call->state, -1) ? lua_tointeger(call->state, -1) : 0;
    count = wanted >= 1 && wanted <= MAX_PORTS ? (int)wanted : 0;
  } else if (call->input_count > 1 && cleave_value_exists(call->inputs[1])) {
    const cleave_tensor_t *sizes = cleave_graph_value(call->builder->graph, call->inputs[1])->tensor;
    count = sizes != NULL && sizes->count >= 1 && sizes->count <= MAX_PORTS ? (int)sizes->count : 0;
  }
  if (count == 0) {
    cleave_script_raise(call->state, "%s: how many outputs? (num_outputs = n, or outputs = n)",
                        call->op->name);
  }
  return count;
}

static void read_outputs(invocation_t *call) {
  call->output_count = named_output_count(call);
  if (call->output_count > 0) {
    return;
  }
  if (is_variadic(call->op->outputs, call->op->output_count)) {
    call->output_count = split_output_count(call);
    return;
  }
  while ((uint32_t)call->output_count < call->op->output_count &&
         call->op->outputs[call->output_count].kind == CLEAVE_OP_INPUT_REQUIRED) {
    call->output_count++;
  }
  call->output_count = call->output_count > 0 ? call->output_count : 1;
}

static void read_name(invocation_t *call) {
  lua_State *state = call->state;
  if (call->table != 0 && lua_getfield(state, call->table, "name") != LUA_TNIL) {
    if (lua_type(state, -1) != LUA_TSTRING) {
      cleave_script_raise(state, "%s: name: expected a string, found a %s", call->op->name,
                          luaL_typename(state, -1));
    }
    (void)snprintf(call->name, sizeof call->name, "%s", lua_tostring(state, -1));
    if (call->builder->editor != NULL) {
      char base[NAME_SIZE];
      memcpy(base, call->name, sizeof base);
      (void)cleave_editor_unique_name(call->builder->editor, base, call->name, sizeof call->name);
    }
    lua_pop(state, 1);
    return;
  }
  if (call->builder->editor != NULL) {
    char base[NAME_SIZE];
    (void)snprintf(base, sizeof base, "%.63s/%.60s", call->builder->editor->rule, call->op->name);
    (void)cleave_editor_unique_name(call->builder->editor, base, call->name, sizeof call->name);
    return;
  }
  uint32_t number = call->op->id < CLEAVE_OP_COUNT ? call->builder->counters[call->op->id]++ : 0;
  (void)snprintf(call->name, sizeof call->name, "%s_%u", call->op->name, (unsigned)number);
}

static cleave_status_t name_outputs(const invocation_t *call, cleave_node_t node, cleave_error_t *error) {
  char name[NAME_SIZE + 16];
  for (int k = 0; k < call->output_count; k++) {
    cleave_value_t value = cleave_node_output(call->builder->graph, node, (uint32_t)k);
    (void)snprintf(name, sizeof name, k == 0 ? "%s" : "%s:%d", call->name, k);
    CLEAVE_TRY(cleave_graph_set_value_name(call->builder->graph, value, name, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t finish_node(const invocation_t *call, cleave_node_t node, cleave_error_t *error) {
  for (uint32_t k = 0; k < call->attribute_count; k++) {
    CLEAVE_TRY(cleave_graph_set_attribute(call->builder->graph, node, &call->attributes[k], error));
  }
  CLEAVE_TRY(name_outputs(call, node, error));
  CLEAVE_TRY(cleave_op_check(call->builder->graph, node, error));
  return cleave_builder_infer(call->state, node, error);
}

static cleave_status_t add_node(const invocation_t *call, cleave_node_t *out_node, cleave_error_t *error) {
  cleave_graph_t *graph = call->builder->graph;
  cleave_editor_t *editor = call->builder->editor;
  if (editor != NULL) {
    editor->line = cleave_script_line(call->state);
    return cleave_editor_add_node(editor, call->op, call->name, call->inputs, call->input_count,
                                  (size_t)call->output_count, call->attributes, call->attribute_count,
                                  out_node, error);
  }
  CLEAVE_TRY(cleave_graph_add_node(graph, call->op, call->name, call->inputs, call->input_count,
                                   (size_t)call->output_count, out_node, error));
  graph->nodes.items[out_node->index].line = cleave_script_line(call->state);
  cleave_status_t status = finish_node(call, *out_node, error);
  if (status != CLEAVE_OK) {
    cleave_graph_remove_node(graph, *out_node);
  }
  return status;
}

/* A trailing table contains attributes, unless it is a list of numbers, which is a constant. */
static bool is_attribute_table(lua_State *state, int index) {
  return lua_istable(state, index) && lua_rawlen(state, index) == 0;
}

/* (operator, inputs ..., table?) -> outputs. */
static int host_add_node(lua_State *state) {
  invocation_t call = {.state = state, .builder = cleave_builder_of(state)};
  luaL_checktype(state, 1, LUA_TLIGHTUSERDATA);
  call.op = lua_touserdata(state, 1);
  lua_remove(state, 1);
  call.positional_count = lua_gettop(state);
  if (call.positional_count > 0 && is_attribute_table(state, call.positional_count)) {
    call.table = call.positional_count--;
  }
  if (call.positional_count > MAX_PORTS) {
    return cleave_script_raise(state, "%s: more than %d inputs", call.op->name, MAX_PORTS);
  }
  luaL_checkstack(state, 16, NULL);
  size_t room = (size_t)call.positional_count + call.op->input_count + 1;
  call.inputs = lua_newuserdatauv(state, room * sizeof *call.inputs, 0);
  for (size_t k = 0; k < room; k++) {
    call.inputs[k] = CLEAVE_VALUE_NONE;
  }
  read_positional(&call);
  if (call.table != 0) {
    read_named_inputs(&call);
  }
  read_outputs(&call);
  read_attributes(&call);
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
  luaL_checkstack(state, call.output_count, NULL);
  for (int k = 0; k < call.output_count; k++) {
    cleave_handle_push_value(state, cleave_node_output(graph, node, (uint32_t)k));
  }
  return call.output_count;
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
