// SPDX-License-Identifier: Apache-2.0
/* Fields of a value, and how shapes, attributes and small constants become Lua values. */
#include <stdio.h>
#include <string.h>

#include "graph/print.h"
#include "ops/ops.h"
#include "script/handles/handles.h"

enum { LARGEST_READABLE = 4096 };

static const cleave_graph_t *graph_of(lua_State *state) {
  return cleave_script_of(state)->graph;
}

static cleave_value_t value_of(const cleave_handle_t *handle) {
  return (cleave_value_t){handle->index};
}

/* A field that one call pushes, of `graph` and `value`. */
#define PUSH(name, call)                                                     \
  static void push_##name(lua_State *state, const cleave_handle_t *handle) { \
    const cleave_graph_t *graph = graph_of(state);                           \
    cleave_value_t value = value_of(handle);                                 \
    (void)graph, (void)value, (call);                                        \
  }

void cleave_handle_note_sizes(lua_State *state, cleave_value_t value, const char *what) {
  cleave_script_t *script = cleave_script_of(state);
  const cleave_graph_t *graph = script->graph;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (!cleave_value_exists(value) || cleave_value_is_constant(graph, value)) {
    return;
  }
  if (graph->is_sized && cleave_graph_note_read(graph, value, &error) != CLEAVE_OK) {
    cleave_script_raise_error(state, &error);
  }
  if (cleave_value_bytes(graph, value) >= 0.0) {
    return;
  }
  cleave_text_t text = {0};
  cleave_value_describe_open(graph, value, &text);
  (void)snprintf(script->open, sizeof script->open, "%s%s%.160s%s", what == NULL ? "" : what,
                 what == NULL ? "" : " is nil: ", cleave_text_get(&text),
                 what == NULL ? "; type(size) == 'number' tests for it" : "");
  cleave_text_deinit(&text);
}

void cleave_handle_push_shape(lua_State *state, const cleave_graph_t *graph, cleave_value_t value) {
  cleave_handle_note_sizes(state, value, NULL);
  if (!cleave_value_exists(value) || cleave_graph_value(graph, value)->rank < 0) {
    lua_pushnil(state);
    return;
  }
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  lua_createtable(state, record->rank, 0);
  for (int k = 0; k < record->rank; k++) {
    cleave_dim_t dim = record->dims[k];
    if (cleave_dim_is_known(dim)) {
      lua_pushinteger(state, dim);
    } else {
      char place[128];
      cleave_text_t text = {0};
      cleave_dim_print(graph->dims, dim, &text);
      size_t length = text.length < sizeof place - 1 ? text.length : sizeof place - 1;
      memcpy(place, cleave_text_get(&text), length);
      cleave_text_deinit(&text); /* before anything can raise */
      lua_pushlstring(state, place, length);
    }
    lua_rawseti(state, -2, k + 1);
  }
}

static void push_element(lua_State *state, const cleave_tensor_t *tensor, int64_t index) {
  if (tensor->dtype == CLEAVE_DTYPE_STRING) {
    lua_pushstring(state, ((const char *const *)tensor->data)[index]);
  } else if (tensor->dtype == CLEAVE_DTYPE_BOOL) {
    lua_pushboolean(state, cleave_tensor_get_int(tensor, index) != 0);
  } else if (cleave_dtype_is_integer(tensor->dtype)) {
    lua_pushinteger(state, cleave_tensor_get_int(tensor, index));
  } else {
    lua_pushnumber(state, cleave_tensor_get_float(tensor, index));
  }
}

/* Pushes a tensor's elements as a flat list, or as a number for a scalar. */
static void push_tensor(lua_State *state, const cleave_tensor_t *tensor) {
  if (tensor->count > LARGEST_READABLE) {
    cleave_script_raise(state, "a constant of %lld element%s, expected at most %d to read",
                        (long long)tensor->count, CLEAVE_PLURAL(tensor->count), (int)LARGEST_READABLE);
    return;
  }
  if (tensor->rank == 0) {
    push_element(state, tensor, 0);
    return;
  }
  lua_createtable(state, (int)tensor->count, 0);
  for (int64_t k = 0; k < tensor->count; k++) {
    push_element(state, tensor, k);
    lua_rawseti(state, -2, k + 1);
  }
}

void cleave_handle_push_attribute(lua_State *state, const cleave_attribute_t *attribute) {
  if (attribute == NULL) {
    lua_pushnil(state);
    return;
  }
  if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    push_tensor(state, attribute->held);
    return;
  }
  bool is_list = cleave_attribute_is_list(attribute);
  if (is_list) {
    lua_newtable(state);
  }
  for (uint32_t k = 0; k < cleave_attribute_item_count(attribute); k++) {
    cleave_attribute_t item = cleave_attribute_item(attribute, k);
    switch (item.kind) {
      case CLEAVE_ATTRIBUTE_INT: lua_pushinteger(state, item.i); break;
      case CLEAVE_ATTRIBUTE_FLOAT: lua_pushnumber(state, item.f); break;
      default: lua_pushlstring(state, item.s, item.count); break;
    }
    if (is_list) {
      lua_rawseti(state, -2, (lua_Integer)k + 1);
      cleave_script_step(state, 1);
    }
  }
}

static void push_dtype(lua_State *state, const cleave_handle_t *handle) {
  uint8_t dtype = cleave_graph_value(graph_of(state), value_of(handle))->dtype;
  lua_pushstring(state, cleave_dtype_name((cleave_dtype_t)dtype));
}

PUSH(shape, cleave_handle_push_shape(state, graph, value))

static void push_rank(lua_State *state, const cleave_handle_t *handle) {
  int rank = cleave_graph_value(graph_of(state), value_of(handle))->rank;
  if (rank >= 0) {
    lua_pushinteger(state, rank);
  } else {
    lua_pushnil(state);
  }
}

static void push_range(lua_State *state, const cleave_handle_t *handle) {
  const cleave_value_record_t *record = cleave_graph_value(graph_of(state), value_of(handle));
  if (!record->has_range) {
    lua_pushnil(state);
    return;
  }
  lua_createtable(state, 0, 2);
  lua_pushnumber(state, (double)record->low);
  lua_setfield(state, -2, "min");
  lua_pushnumber(state, (double)record->high);
  lua_setfield(state, -2, "max");
}

PUSH(name, lua_pushstring(state, cleave_value_name(graph, value)))
PUSH(index, lua_pushinteger(state, handle->index))
PUSH(is_constant, lua_pushboolean(state, cleave_value_is_constant(graph, value)))
PUSH(is_input, lua_pushboolean(state, cleave_graph_value(graph, value)->is_input))
PUSH(is_output, lua_pushboolean(state, cleave_value_is_output(graph, value)))
PUSH(producer, cleave_handle_push_node(state, cleave_value_producer(graph, value)))
PUSH(uses_count, lua_pushinteger(state, cleave_graph_value(graph, value)->use_count))

/* Readers in the order of uses; a node that reads the value twice is listed twice. Graph outputs are left
 * out. */
static void push_users(lua_State *state, const cleave_handle_t *handle) {
  const cleave_graph_t *graph = graph_of(state);
  lua_Integer count = 0;
  lua_newtable(state);
  cleave_use_t use = cleave_value_first_use(graph, value_of(handle));
  for (; cleave_use_exists(use); use = cleave_use_next(graph, use)) {
    if (cleave_node_exists(cleave_use_node(graph, use))) {
      cleave_handle_push_node(state, cleave_use_node(graph, use));
      lua_rawseti(state, -2, ++count);
    }
    cleave_script_step(state, 4);
  }
}

static int call_value(lua_State *state) {
  const cleave_handle_t *handle = cleave_handle_check(state, 1, CLEAVE_HANDLE_VALUE);
  const cleave_tensor_t *tensor = cleave_graph_value(graph_of(state), value_of(handle))->tensor;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (tensor == NULL) {
    lua_pushnil(state);
    return 1;
  }
  if (cleave_graph_note_read(graph_of(state), value_of(handle), &error) != CLEAVE_OK) {
    cleave_script_raise_error(state, &error);
  }
  push_tensor(state, tensor);
  return 1;
}

PUSH(value, lua_pushcfunction(state, call_value))

const cleave_handle_field_t cleave_value_handle_fields[] = {
    {"dtype", push_dtype, "cleave.dtype|\"unknown\"", "of its elements"},
    {"shape", push_shape, "(integer|string)[]?", "sizes, names of open ones, \"?\"; nil: rank not known"},
    {"rank", push_rank, "integer?", "number of dimensions; nil: not known"},
    {"range", push_range, "{ min: number, max: number }?",
     "between which its elements lie, by `--ranges`; nil: not known"},
    {"name", push_name, "string", "for people"},
    {"is_constant", push_is_constant, "boolean", "a weight or number of the model"},
    {"is_input", push_is_input, "boolean", "of the model"},
    {"is_output", push_is_output, "boolean", "of the model"},
    {"producer", push_producer, "cleave.node?", "the node that makes it"},
    {"uses_count", push_uses_count, "integer", "inputs of nodes and outputs of the model that read it"},
    {"users", push_users, "cleave.node[]", "in order; a node that reads it twice is listed twice"},
    {"value", push_value, "fun(self: cleave.value): number|boolean|string|table|nil",
     "content of a constant of at most 4096 elements"},
    {"index", push_index, "integer", "number in the graph"},
    {NULL, NULL, NULL, NULL}};
