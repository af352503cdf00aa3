// SPDX-License-Identifier: Apache-2.0
#include "script/builder/invocation.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ops/ops.h"
#include "script/builder/builder.h"
#include "script/handles/handles.h"
#include "script/sandbox/host.h"

static bool is_variadic(const cleave_op_port_t *ports, uint32_t count) {
  return count > 0 && ports[count - 1].kind == CLEAVE_OP_INPUT_VARIADIC;
}

/* ---- inputs ---- */

static const char *port_name(const cleave_op_t *op, uint32_t index) {
  if (op->input_count == 0) {
    return "value"; /* of a tensor attribute */
  }
  return op->inputs[index < op->input_count ? index : op->input_count - 1].name;
}

const char *cleave_invocation_place(const cleave_invocation_t *call, uint32_t port,
                                    char buffer[CLEAVE_INVOCATION_NAME]) {
  (void)snprintf(buffer, CLEAVE_INVOCATION_NAME, "%s: input '%s'", call->op->name, port_name(call->op, port));
  return buffer;
}

static void give_input(cleave_invocation_t *call, uint32_t port, int index) {
  if (lua_isnil(call->state, index)) {
    return;
  }
  call->inputs[port] = index;
  call->input_count = call->input_count > port ? call->input_count : port + 1;
}

static void read_positional(cleave_invocation_t *call) {
  const cleave_op_t *op = call->op;
  uint32_t given = (uint32_t)call->positional_count;
  if (given > op->input_count && !is_variadic(op->inputs, op->input_count)) {
    cleave_script_raise(call->state, "%s: expected at most %d input%s, found %d", op->name,
                        (int)op->input_count, CLEAVE_PLURAL(op->input_count), call->positional_count);
  }
  for (uint32_t k = 0; k < given; k++) {
    give_input(call, k, (int)k + 1);
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

static void refuse_key(const cleave_invocation_t *call, const char *key) {
  cleave_nearest_t nearest = {0};
  for (uint32_t k = 0; k < call->op->attribute_count; k++) {
    cleave_nearest_offer(&nearest, key, call->op->attributes[k].value.name);
  }
  for (uint32_t k = 0; k < call->op->input_count; k++) {
    cleave_nearest_offer(&nearest, key, call->op->inputs[k].name);
  }
  cleave_script_raise(call->state, "operator '%s' has no attribute or input '%s'%s", call->op->name, key,
                      cleave_nearest_hint(&nearest));
}

/* Values of inputs stay on the stack. */
static void read_named_inputs(cleave_invocation_t *call) {
  lua_State *state = call->state;
  luaL_checkstack(state, (int)call->op->input_count + 8, NULL);
  lua_pushnil(state);
  while (lua_next(state, call->table) != 0) {
    if (lua_type(state, -2) != LUA_TSTRING) {
      cleave_script_raise(state, "%s: the table of attributes has a list entry", call->op->name);
    }
    const char *key = lua_tostring(state, -2);
    uint32_t port = input_of_key(call->op, key);
    if (port == CLEAVE_INDEX_NONE) {
      if (!is_reserved(key) && cleave_op_find_attribute(call->op, key) == NULL) {
        refuse_key(call, key);
      }
      lua_pop(state, 1);
      continue;
    }
    if (call->inputs[port] != 0) {
      cleave_script_raise(state, "%s: input '%s' is given twice", call->op->name, key);
    }
    lua_insert(state, -2); /* the key is at the top again, for lua_next */
    give_input(call, port, lua_gettop(state) - 1);
  }
}

void cleave_invocation_raise_kind(const cleave_invocation_t *call, const cleave_op_attribute_t *attribute,
                                  int index) {
  cleave_script_raise(call->state, "%s: attribute '%s': expected a %s, found a %s", call->op->name,
                      attribute->value.name, cleave_host_kind_name(attribute->value.kind),
                      luaL_typename(call->state, index));
}

/* Fills in a list attribute from the table on top of the stack, into memory of Lua's (left on the stack). */
static void read_list(const cleave_invocation_t *call, const cleave_op_attribute_t *schema,
                      cleave_attribute_t *attribute) {
  lua_State *state = call->state;
  int list = lua_gettop(state);
  if (!lua_istable(state, list)) {
    cleave_invocation_raise_kind(call, schema, list);
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
      cleave_invocation_raise_kind(call, schema, -1);
    }
    lua_pop(state, 1);
  }
  cleave_attribute_set_list(attribute, memory);
}

static int64_t read_int(const cleave_invocation_t *call, const cleave_op_attribute_t *schema) {
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
    cleave_invocation_raise_kind(call, schema, -1);
  }
  return lua_tointeger(state, -1);
}

void cleave_invocation_read_attribute(const cleave_invocation_t *call, const cleave_op_attribute_t *schema,
                                      cleave_attribute_t *attribute) {
  lua_State *state = call->state;
  attribute->name = schema->value.name;
  attribute->kind = schema->value.kind;
  switch (schema->value.kind) {
    case CLEAVE_ATTRIBUTE_INT: attribute->i = read_int(call, schema); return;
    case CLEAVE_ATTRIBUTE_FLOAT:
      if (lua_type(state, -1) != LUA_TNUMBER) {
        cleave_invocation_raise_kind(call, schema, -1);
      }
      attribute->f = lua_tonumber(state, -1);
      return;
    case CLEAVE_ATTRIBUTE_STRING: {
      size_t length = 0;
      if (lua_type(state, -1) != LUA_TSTRING) {
        cleave_invocation_raise_kind(call, schema, -1);
      }
      attribute->s = lua_tolstring(state, -1, &length);
      cleave_builder_charge(state, length);
      attribute->count = (uint32_t)length;
      return;
    }
    case CLEAVE_ATTRIBUTE_TENSOR: call->read_tensor(call, schema, attribute); return;
    default: read_list(call, schema, attribute); return;
  }
}

/* The attributes that the node of a handle carries. They stay in its graph. */
static void take_attributes(cleave_invocation_t *call) {
  const cleave_handle_t *handle = lua_touserdata(call->state, call->node);
  const cleave_node_record_t *node =
      cleave_graph_node(cleave_script_of(call->state)->graph, (cleave_node_t){handle->index});
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    cleave_attribute_t *attribute = &call->attributes[call->attribute_count];
    *attribute = node->attributes[k];
    const cleave_op_attribute_t *schema = cleave_op_find_attribute(call->op, attribute->name);
    if (schema == NULL) {
      cleave_handle_raise_attribute(call->state, call->op, attribute->name);
      return;
    }
    if (schema->value.kind != attribute->kind) {
      cleave_script_raise(call->state, "%s: attribute '%s': expected a %s, found a %s", call->op->name,
                          attribute->name, cleave_host_kind_name(schema->value.kind),
                          cleave_host_kind_name(attribute->kind));
    }
    call->attribute_count++;
  }
}

/* Reads all attributes before the node is made, so that an error leaves no node behind. */
static void read_attributes(cleave_invocation_t *call) {
  lua_State *state = call->state;
  uint32_t most = call->op->attribute_count;
  call->attributes = lua_newuserdatauv(state, ((size_t)most + 1) * sizeof *call->attributes, 0);
  luaL_checkstack(state, 2 * (int)most + 8, NULL);
  if (call->node != 0) {
    take_attributes(call);
  }
  for (uint32_t k = 0; call->table != 0 && k < most; k++) {
    if (lua_getfield(state, call->table, call->op->attributes[k].value.name) == LUA_TNIL) {
      lua_pop(state, 1);
      continue;
    }
    call->attributes[call->attribute_count] = (cleave_attribute_t){0};
    cleave_invocation_read_attribute(call, &call->op->attributes[k],
                                     &call->attributes[call->attribute_count++]);
  }
}

/* ---- outputs ---- */

static int named_output_count(const cleave_invocation_t *call) {
  int count = 0;
  if (call->table != 0 && lua_getfield(call->state, call->table, "outputs") != LUA_TNIL) {
    lua_Integer wanted = lua_isinteger(call->state, -1) ? lua_tointeger(call->state, -1) : -1;
    bool variadic = is_variadic(call->op->outputs, call->op->output_count);
    if (wanted < 1 || wanted > (variadic ? CLEAVE_INVOCATION_PORTS : (lua_Integer)call->op->output_count)) {
      cleave_script_raise(call->state, "%s: outputs: expected 1 to %d", call->op->name,
                          variadic ? CLEAVE_INVOCATION_PORTS : (int)call->op->output_count);
    }
    count = (int)wanted;
  }
  return count;
}

/* The number of outputs from Split's attribute or second input. */
static int split_output_count(const cleave_invocation_t *call) {
  int count = 0;
  const cleave_attribute_t *wanted = NULL;
  for (uint32_t k = 0; k < call->attribute_count; k++) {
    wanted = strcmp(call->attributes[k].name, "num_outputs") == 0 ? &call->attributes[k] : wanted;
  }
  if (wanted != NULL) {
    count = wanted->i >= 1 && wanted->i <= CLEAVE_INVOCATION_PORTS ? (int)wanted->i : 0;
  } else if (call->input_count > 1 && call->inputs[1] != 0) {
    int64_t sizes = call->element_count(call, call->inputs[1]);
    count = sizes >= 1 && sizes <= CLEAVE_INVOCATION_PORTS ? (int)sizes : 0;
  }
  if (count == 0) {
    cleave_script_raise(call->state, "%s: how many outputs? (num_outputs = n, or outputs = n)",
                        call->op->name);
  }
  return count;
}

static void read_outputs(cleave_invocation_t *call) {
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

/* A trailing table contains attributes, unless it is a list of numbers, which is a constant. */
static bool is_attribute_table(lua_State *state, int index) {
  return lua_istable(state, index) && lua_rawlen(state, index) == 0;
}

void cleave_invocation_read(cleave_invocation_t *call) {
  lua_State *state = call->state;
  call->positional_count = lua_gettop(state);
  if (call->positional_count > 0 && is_attribute_table(state, call->positional_count)) {
    call->table = call->positional_count--;
  } else if (call->positional_count > 0 &&
             cleave_handle_is(state, call->positional_count, CLEAVE_HANDLE_ATTRIBUTES)) {
    call->node = call->positional_count--;
    (void)cleave_handle_check(state, call->node, CLEAVE_HANDLE_ATTRIBUTES);
  }
  if (call->positional_count > CLEAVE_INVOCATION_PORTS) {
    cleave_script_raise(state, "%s: more than %d inputs", call->op->name, CLEAVE_INVOCATION_PORTS);
  }
  luaL_checkstack(state, 16, NULL);
  size_t room = (size_t)call->positional_count + call->op->input_count + 1;
  call->inputs = lua_newuserdatauv(state, room * sizeof *call->inputs, 0);
  memset(call->inputs, 0, room * sizeof *call->inputs);
  read_positional(call);
  if (call->table != 0) {
    read_named_inputs(call);
  }
  read_attributes(call);
  read_outputs(call);
}
