// SPDX-License-Identifier: Apache-2.0

#include "imperative/script/array_state.h"
#include "script/builder/invocation.h"

/* dtype of a number among the inputs: for pointwise operators, that of the other inputs. */
static cleave_dtype_t number_dtype(const cleave_invocation_t *call) {
  if ((call->op->flags & CLEAVE_OP_POINTWISE) == 0) {
    return CLEAVE_DTYPE_UNKNOWN;
  }
  for (int k = 1; k <= call->positional_count; k++) {
    const cleave_array_t *array = array_handle_test(call->state, k);
    if (array != NULL && array->dtype != CLEAVE_DTYPE_BOOL) {
      return array->dtype;
    }
  }
  return CLEAVE_DTYPE_UNKNOWN;
}

/* The array at an index of the stack, or one made of what is there, pushed. */
static cleave_array_t *read_input(const cleave_invocation_t *call, int index, uint32_t port) {
  lua_State *state = call->state;
  cleave_array_t *array = array_handle_test(state, index);
  if (array != NULL) {
    return array;
  }
  int type = lua_type(state, index);
  if (type != LUA_TNUMBER && type != LUA_TBOOLEAN && type != LUA_TTABLE) {
    char place[CLEAVE_INVOCATION_NAME];
    cleave_script_raise(state, "%s: expected an array, found a %s",
                        cleave_invocation_place(call, port, place), luaL_typename(state, index));
  }
  cleave_dtype_t dtype = type == LUA_TTABLE ? CLEAVE_DTYPE_UNKNOWN : number_dtype(call);
  array = array_handle_constant(state, array_script_of(state)->imperative, index, dtype);
  array->is_literal = true;
  return array;
}

/* An attribute that is a tensor: kept by the graph of constants. */
static void read_tensor(const cleave_invocation_t *call, const cleave_op_attribute_t *schema,
                        cleave_attribute_t *attribute) {
  lua_State *state = call->state;
  if (!lua_istable(state, -1) && lua_type(state, -1) != LUA_TNUMBER && !lua_isboolean(state, -1)) {
    cleave_invocation_raise_kind(call, schema, -1);
  }
  const cleave_graph_t *graph = array_script_of(state)->builder.graph;
  cleave_value_t value = cleave_builder_constant(state, -1, CLEAVE_DTYPE_UNKNOWN, NULL);
  attribute->held = cleave_graph_value(graph, value)->tensor;
}

static int64_t element_count(const cleave_invocation_t *call, int index) {
  const cleave_array_t *array = array_handle_test(call->state, index);
  if (array != NULL) {
    return array->count;
  }
  return lua_istable(call->state, index) ? (int64_t)lua_rawlen(call->state, index) : -1;
}

/* (operator, inputs ..., table?) -> arrays. */
static int host_call_arrays(lua_State *state) {
  cleave_invocation_t call = {.state = state, .read_tensor = read_tensor, .element_count = element_count};
  array_script_t *script = array_script_of(state);
  luaL_checktype(state, 1, LUA_TLIGHTUSERDATA);
  call.op = lua_touserdata(state, 1);
  lua_remove(state, 1);
  script->builder.data_bytes = 0; /* the limit is for one call */
  cleave_invocation_read(&call);
  luaL_checkstack(state, 2 * (int)call.input_count + 2 * call.output_count + 16, NULL);
  cleave_array_t **inputs = lua_newuserdatauv(state, ((size_t)call.input_count + 1) * sizeof *inputs, 0);
  cleave_array_t **outputs = lua_newuserdatauv(state, (size_t)call.output_count * sizeof *outputs, 0);
  for (uint32_t k = 0; k < call.input_count; k++) {
    inputs[k] = call.inputs[k] != 0 ? read_input(&call, call.inputs[k], k) : NULL;
  }
  int first = lua_gettop(state) + 1;
  for (int k = 0; k < call.output_count; k++) {
    (void)array_handle_push(state);
  }
  cleave_error_t error = CLEAVE_ERROR_INIT;
  char place[ARRAY_PLACE_BYTES];
  const imperative_request_t request = {.op = call.op,
                                        .inputs = inputs,
                                        .input_count = call.input_count,
                                        .attributes = call.attributes,
                                        .attribute_count = call.attribute_count,
                                        .output_count = (uint32_t)call.output_count};
  if (cleave_imperative_call(script->imperative, &request, array_place(state, place), outputs, &error) !=
      CLEAVE_OK) {
    return cleave_script_raise_error(state, &error);
  }
  for (int k = 0; k < call.output_count; k++) {
    *(cleave_array_t **)lua_touserdata(state, first + k) = outputs[k];
  }
  return call.output_count;
}

/* (number, boolean or table, dtype?) -> array. */
static int host_array(lua_State *state) {
  array_script_t *script = array_script_of(state);
  cleave_dtype_t dtype = CLEAVE_DTYPE_UNKNOWN;
  if (!lua_isnoneornil(state, 2)) {
    dtype = cleave_builder_check_dtype(state, 2);
  }
  script->builder.data_bytes = 0;
  (void)array_handle_constant(state, script->imperative, 1, dtype);
  return 1;
}

/* (shape, dtype) -> array of zeros. */
static int host_array_zeros(lua_State *state) {
  int64_t dims[CLEAVE_MAX_RANK];
  int32_t rank = cleave_builder_check_shape(state, 1, dims);
  cleave_dtype_t dtype = cleave_builder_check_dtype(state, 2);
  cleave_array_t **handle = array_handle_push(state);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_array_create(array_script_of(state)->imperative, dtype, rank, dims, NULL, handle, &error) !=
      CLEAVE_OK) {
    return cleave_script_raise_error(state, &error);
  }
  return 1;
}

/* (): waits for all calls. */
static int host_arrays_wait(lua_State *state) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_imperative_wait(array_script_of(state)->imperative, &error) != CLEAVE_OK) {
    return cleave_script_raise_error(state, &error);
  }
  return 0;
}

/* () -> calls, compiled operators, bytes of arrays. */
static int host_arrays_count(lua_State *state) {
  cleave_imperative_counters_t counters = {.size = sizeof counters};
  cleave_imperative_count(array_script_of(state)->imperative, &counters);
  lua_pushinteger(state, (lua_Integer)counters.calls);
  lua_pushinteger(state, (lua_Integer)counters.compiled);
  lua_pushinteger(state, (lua_Integer)counters.array_bytes);
  return 3;
}

void array_calls_register(lua_State *state) {
  static const luaL_Reg functions[] = {{"call_arrays", host_call_arrays},   {"array", host_array},
                                       {"array_zeros", host_array_zeros},   {"arrays_wait", host_arrays_wait},
                                       {"arrays_count", host_arrays_count}, {NULL, NULL}};
  luaL_setfuncs(state, functions, 0);
}
