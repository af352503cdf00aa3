// SPDX-License-Identifier: Apache-2.0
/* Fields of a node: operator, types, attributes, inputs and outputs by schema name or position, users. */

#include "base/text.h"
#include "ops/ops.h"
#include "script/handles/handles.h"

static const cleave_graph_t *graph_of(lua_State *state) {
  return cleave_script_of(state)->graph;
}

static cleave_node_t node_of(const cleave_handle_t *handle) {
  return (cleave_node_t){handle->index};
}

/* A field that one call pushes, of `graph` and `node`. */
#define PUSH(name, call)                                                     \
  static void push_##name(lua_State *state, const cleave_handle_t *handle) { \
    const cleave_graph_t *graph = graph_of(state);                           \
    cleave_node_t node = node_of(handle);                                    \
    (void)graph, (void)node, (call);                                         \
  }

void cleave_handle_push_amount(lua_State *state, double amount) {
  if (amount >= 0.0) {
    lua_pushnumber(state, amount);
  } else {
    lua_pushnil(state);
  }
}

PUSH(op, lua_pushstring(state, cleave_node_op(graph, node)->name))
PUSH(domain, lua_pushstring(state, cleave_node_op(graph, node)->domain))
PUSH(name, lua_pushstring(state, cleave_node_name(graph, node)))
PUSH(index, lua_pushinteger(state, handle->index))

static void push_dtype(lua_State *state, const cleave_handle_t *handle) {
  cleave_value_t value = cleave_node_output(graph_of(state), node_of(handle), 0);
  cleave_dtype_t dtype = cleave_value_exists(value)
                             ? (cleave_dtype_t)cleave_graph_value(graph_of(state), value)->dtype
                             : CLEAVE_DTYPE_UNKNOWN;
  lua_pushstring(state, cleave_dtype_name(dtype));
}

PUSH(shape, cleave_handle_push_shape(state, graph, cleave_node_output(graph, node, 0)))

static void push_rank(lua_State *state, const cleave_handle_t *handle) {
  cleave_value_t value = cleave_node_output(graph_of(state), node_of(handle), 0);
  int rank = cleave_value_exists(value) ? cleave_graph_value(graph_of(state), value)->rank : -1;
  if (rank >= 0) {
    lua_pushinteger(state, rank);
  } else {
    lua_pushnil(state);
  }
}

static void push_flops(lua_State *state, const cleave_handle_t *handle) {
  const cleave_graph_t *graph = graph_of(state);
  uint32_t inputs = cleave_node_input_count(graph, node_of(handle));
  for (uint32_t k = inputs + cleave_node_output_count(graph, node_of(handle)); k > 0; k--) {
    cleave_handle_note_sizes(state,
                             k > inputs ? cleave_node_output(graph, node_of(handle), k - 1 - inputs)
                                        : cleave_node_input(graph, node_of(handle), k - 1),
                             "flops");
  }
  cleave_handle_push_amount(state, cleave_op_flops(graph, node_of(handle)));
}

PUSH(attributes, cleave_handle_push_view(state, CLEAVE_HANDLE_ATTRIBUTES, handle))
PUSH(inputs, cleave_handle_push_view(state, CLEAVE_HANDLE_INPUTS, handle))
PUSH(outputs, cleave_handle_push_view(state, CLEAVE_HANDLE_OUTPUTS, handle))

/* Nodes that read an output, each once, in the order of outputs and then of uses. */
static void push_users(lua_State *state, const cleave_handle_t *handle) {
  const cleave_graph_t *graph = graph_of(state);
  lua_Integer count = 0;
  lua_newtable(state);
  lua_newtable(state); /* seen: handle -> true */
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node_of(handle)); k++) {
    cleave_use_t use = cleave_value_first_use(graph, cleave_node_output(graph, node_of(handle), k));
    for (; cleave_use_exists(use); use = cleave_use_next(graph, use)) {
      cleave_node_t user = cleave_use_node(graph, use);
      cleave_script_step(state, 4);
      if (!cleave_node_exists(user)) {
        continue;
      }
      cleave_handle_push_node(state, user);
      lua_pushvalue(state, -1);
      if (lua_rawget(state, -3) == LUA_TNIL) {
        lua_pushvalue(state, -2);
        lua_pushboolean(state, true);
        lua_rawset(state, -5);
        lua_pushvalue(state, -2);
        lua_rawseti(state, -5, ++count);
      }
      lua_pop(state, 2);
    }
  }
  lua_pop(state, 1);
}

int cleave_handle_raise_attribute(lua_State *state, const cleave_op_t *op, const char *name) {
  cleave_nearest_t nearest = {0};
  for (uint32_t k = 0; k < op->attribute_count; k++) {
    cleave_nearest_offer(&nearest, name, op->attributes[k].value.name);
  }
  return cleave_script_raise(state, "operator '%s' has no attribute '%s'%s", op->name, name,
                             cleave_nearest_hint(&nearest));
}

int cleave_handle_raise_port(lua_State *state, const cleave_op_t *op, const char *name, bool is_input) {
  const cleave_op_port_t *ports = is_input ? op->inputs : op->outputs;
  uint32_t count = is_input ? op->input_count : op->output_count;
  cleave_nearest_t nearest = {0};
  for (uint32_t k = 0; k < count; k++) {
    cleave_nearest_offer(&nearest, name, ports[k].name);
  }
  return cleave_script_raise(state, "operator '%s' has no %s '%s'%s", op->name, is_input ? "input" : "output",
                             name, cleave_nearest_hint(&nearest));
}

/* Value of an attribute by name: the node's own, else its default, else nil. A name that the schema does not
 * have is an error, except for custom operators. */
static int push_attribute_named(lua_State *state, const cleave_handle_t *handle, const char *name) {
  const cleave_graph_t *graph = graph_of(state);
  const cleave_op_t *op = cleave_node_op(graph, node_of(handle));
  if (cleave_op_has_schema(op) && cleave_op_find_attribute(op, name) == NULL) {
    return cleave_handle_raise_attribute(state, op, name);
  }
  cleave_attribute_t attribute;
  bool has_value = cleave_op_effective_attribute(graph, node_of(handle), name, &attribute);
  cleave_handle_push_attribute(state, has_value ? &attribute : NULL);
  return 1;
}

static int call_attr(lua_State *state) {
  const cleave_handle_t *handle = cleave_handle_check(state, 1, CLEAVE_HANDLE_NODE);
  return push_attribute_named(state, handle, luaL_checkstring(state, 2));
}

PUSH(attr, lua_pushcfunction(state, call_attr))

const cleave_handle_field_t cleave_node_handle_fields[] = {
    {"op", push_op, "string", "name of its operator"},
    {"name", push_name, "string", "for people; nothing is identified by it"},
    {"dtype", push_dtype, "cleave.dtype|\"unknown\"", "of its first output"},
    {"shape", push_shape, "(integer|string)[]?", "of its first output: sizes, names of open ones, \"?\""},
    {"rank", push_rank, "integer?", "of its first output; nil: not known"},
    {"inputs", push_inputs, "cleave.ports",
     "values by schema name or place; nil if left out; #, pairs and table.unpack go by place"},
    {"outputs", push_outputs, "cleave.ports", "as inputs"},
    {"attrs", push_attributes, "cleave.attributes",
     "by name; those that are not written have their defaults; pairs has what is written, as has a new node "
     "that gets them: g.Cast(x, node.attrs)"},
    {"attr", push_attr, "fun(self: cleave.node, name: string): any", "an attribute by name"},
    {"users", push_users, "cleave.node[]", "that read an output, each once"},
    {"flops", push_flops, "number?", "to compute; nil: a size is not known"},
    {"index", push_index, "integer", "number in the graph"},
    {"domain", push_domain, "string", "of the operator; \"\" is ONNX's own"},
    {NULL, NULL, NULL, NULL}};

/* The attributes that the node carries itself. */
int cleave_attributes_handle_content(lua_State *state) {
  const cleave_handle_t *handle = cleave_handle_check(state, 1, CLEAVE_HANDLE_ATTRIBUTES);
  const cleave_node_record_t *node = cleave_graph_node(graph_of(state), node_of(handle));
  lua_createtable(state, 0, node->attribute_count);
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    cleave_handle_push_attribute(state, &node->attributes[k]);
    lua_setfield(state, -2, node->attributes[k].name);
    cleave_script_step(state, 2);
  }
  return 1;
}

int cleave_attributes_handle_index(lua_State *state) {
  const cleave_handle_t *handle = cleave_handle_check(state, 1, CLEAVE_HANDLE_ATTRIBUTES);
  return push_attribute_named(state, handle, luaL_checkstring(state, 2));
}

/* ---- inputs and outputs ---- */

static cleave_value_t port_at(const cleave_graph_t *graph, const cleave_handle_t *handle, uint32_t index) {
  return handle->kind == CLEAVE_HANDLE_INPUTS ? cleave_node_input(graph, node_of(handle), index)
                                              : cleave_node_output(graph, node_of(handle), index);
}

static uint32_t port_count(const cleave_graph_t *graph, const cleave_handle_t *handle) {
  return handle->kind == CLEAVE_HANDLE_INPUTS ? cleave_node_input_count(graph, node_of(handle))
                                              : cleave_node_output_count(graph, node_of(handle));
}

static int index_port(lua_State *state, cleave_handle_kind_t kind) {
  const cleave_handle_t *handle = cleave_handle_check(state, 1, kind);
  const cleave_graph_t *graph = graph_of(state);
  const cleave_op_t *op = cleave_node_op(graph, node_of(handle));
  bool inputs = kind == CLEAVE_HANDLE_INPUTS;
  uint32_t index = CLEAVE_INDEX_NONE;
  if (lua_isinteger(state, 2)) {
    lua_Integer position = lua_tointeger(state, 2);
    index = position >= 1 && position <= UINT16_MAX ? (uint32_t)position - 1 : CLEAVE_INDEX_NONE;
  } else {
    const char *name = luaL_checkstring(state, 2);
    index = inputs ? cleave_op_input_index(op, name) : cleave_op_output_index(op, name);
    if (index == CLEAVE_INDEX_NONE) {
      return cleave_handle_raise_port(state, op, name, inputs);
    }
  }
  cleave_handle_push_value(state, port_at(graph, handle, index));
  return 1;
}

static int count_ports(lua_State *state, cleave_handle_kind_t kind) {
  lua_pushinteger(state, port_count(graph_of(state), cleave_handle_check(state, 1, kind)));
  return 1;
}

/* By place; those that are left out are nil. */
static int list_ports(lua_State *state, cleave_handle_kind_t kind) {
  const cleave_handle_t *handle = cleave_handle_check(state, 1, kind);
  uint32_t count = port_count(graph_of(state), handle);
  lua_createtable(state, (int)count, 0);
  for (uint32_t k = 0; k < count; k++) {
    cleave_handle_push_value(state, port_at(graph_of(state), handle, k));
    lua_rawseti(state, -2, (lua_Integer)k + 1);
    cleave_script_step(state, 2);
  }
  return 1;
}

int cleave_inputs_handle_index(lua_State *state) {
  return index_port(state, CLEAVE_HANDLE_INPUTS);
}

int cleave_outputs_handle_index(lua_State *state) {
  return index_port(state, CLEAVE_HANDLE_OUTPUTS);
}

int cleave_inputs_handle_length(lua_State *state) {
  return count_ports(state, CLEAVE_HANDLE_INPUTS);
}

int cleave_outputs_handle_length(lua_State *state) {
  return count_ports(state, CLEAVE_HANDLE_OUTPUTS);
}

int cleave_inputs_handle_content(lua_State *state) {
  return list_ports(state, CLEAVE_HANDLE_INPUTS);
}

int cleave_outputs_handle_content(lua_State *state) {
  return list_ports(state, CLEAVE_HANDLE_OUTPUTS);
}
