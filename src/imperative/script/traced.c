// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <string.h>

#include "imperative/compile.h"
#include "imperative/script/array_state.h"
#include "script/handles/handles.h"

static void raise_if_failed(lua_State *state, cleave_status_t status, const cleave_error_t *error) {
  if (status != CLEAVE_OK) {
    cleave_script_raise_error(state, error);
  }
}

/* The builder goes on with another graph, which it takes over: nothing is known of its values yet. */
static void use_graph(lua_State *state, cleave_graph_t *graph) {
  array_script_t *script = array_script_of(state);
  cleave_script_t *interpreter = cleave_script_of(state);
  cleave_graph_destroy(script->builder.graph);
  script->builder.graph = graph;
  script->builder.facts.count = 0;
  cleave_arena_deinit(&script->builder.arena);
  cleave_handles_leave(interpreter);
  cleave_handles_enter(interpreter, graph, NULL);
}

/* (): the graph is new, and values of the one before are stale. */
static int host_trace_begin(lua_State *state) {
  cleave_graph_t *graph = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  raise_if_failed(state, cleave_graph_create(&graph, &error), &error);
  graph->context = cleave_script_of(state)->context;
  use_graph(state, graph);
  return 0;
}

/* (array) -> value: an input of the array's type. */
static int host_trace_input(lua_State *state) {
  const cleave_array_t *array = array_handle_check(state, 1);
  cleave_graph_t *graph = array_script_of(state)->builder.graph;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_value_t value = CLEAVE_VALUE_NONE;
  char name[32];
  (void)snprintf(name, sizeof name, "input_%zu", graph->inputs.count);
  raise_if_failed(state,
                  cleave_graph_add_input(graph, name, array->dtype, array->rank, array->dims, &value, &error),
                  &error);
  cleave_handle_push_value(state, value);
  return 1;
}

/* (array) -> value: a constant with what the array contains. Waits for it. */
static int host_trace_constant(lua_State *state) {
  cleave_array_t *array = array_handle_check(state, 1);
  array_script_t *script = array_script_of(state);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const void *data = NULL;
  raise_if_failed(state, cleave_array_data(array, &data, &error), &error);
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value = CLEAVE_VALUE_NONE;
  cleave_status_t status = cleave_tensor_create(array->dtype, array->rank, array->dims, &tensor, &error);
  if (status == CLEAVE_OK) {
    char name[32];
    memcpy(tensor->data, data, array->bytes);
    cleave_tensor_touch(tensor);
    (void)snprintf(name, sizeof name, "constant_%u", (unsigned)script->builder.constant_count++);
    status = cleave_graph_add_constant(script->builder.graph, name, tensor, &value, &error);
    cleave_tensor_release(tensor);
  }
  raise_if_failed(state, status, &error);
  cleave_handle_push_value(state, value);
  return 1;
}

static int collect(lua_State *state) {
  imperative_operator_t **compiled = lua_touserdata(state, 1);
  imperative_operator_release(*compiled);
  *compiled = NULL;
  return 0;
}

/* (has_gradients, values ...) -> the compiled function, whose outputs they are; then the gradients of the
 * first by all inputs. */
static int host_trace_end(lua_State *state) {
  array_script_t *script = array_script_of(state);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const imperative_graph_options_t options = {
      .rules = script->rules, .rule_count = script->rule_count, .has_gradients = lua_toboolean(state, 1)};
  int count = lua_gettop(state);
  for (int k = 2; k <= count; k++) {
    char name[32];
    (void)snprintf(name, sizeof name, "output_%d", k - 2);
    const cleave_value_t value = {cleave_handle_check(state, k, CLEAVE_HANDLE_VALUE)->index};
    raise_if_failed(state, cleave_graph_add_output(script->builder.graph, name, value, &error), &error);
  }
  imperative_operator_t **compiled = lua_newuserdatauv(state, sizeof *compiled, 0);
  *compiled = NULL;
  lua_createtable(state, 0, 1);
  lua_pushcfunction(state, collect);
  lua_setfield(state, -2, "__gc");
  lua_setmetatable(state, -2);
  cleave_graph_t *fresh = NULL;
  raise_if_failed(state, cleave_graph_create(&fresh, &error), &error);
  cleave_graph_t *graph = script->builder.graph;
  script->builder.graph = NULL;
  use_graph(state, fresh);
  raise_if_failed(state, imperative_compile_graph_take(script->imperative, graph, &options, compiled, &error),
                  &error);
  return 1;
}

/* (compiled, arrays ...) -> arrays. */
static int host_run_traced(lua_State *state) {
  array_script_t *script = array_script_of(state);
  imperative_operator_t *const *compiled = lua_touserdata(state, 1);
  uint32_t input_count = (*compiled)->input_count;
  int output_count = (int)(*compiled)->output_count;
  luaL_checkstack(state, 2 * output_count + 8, NULL);
  cleave_array_t **inputs = lua_newuserdatauv(state, ((size_t)input_count + 1) * sizeof *inputs, 0);
  cleave_array_t **outputs = lua_newuserdatauv(state, ((size_t)output_count + 1) * sizeof *outputs, 0);
  for (uint32_t k = 0; k < input_count; k++) {
    inputs[k] = array_handle_check(state, (int)k + 2);
  }
  int first = lua_gettop(state) + 1;
  for (int k = 0; k < output_count; k++) {
    (void)array_handle_push(state);
  }
  cleave_error_t error = CLEAVE_ERROR_INIT;
  char place[ARRAY_PLACE_BYTES];
  raise_if_failed(state,
                  imperative_operator_run(script->imperative, *compiled, "a compiled function",
                                          array_place(state, place), inputs, outputs, &error),
                  &error);
  for (int k = 0; k < output_count; k++) {
    *(cleave_array_t **)lua_touserdata(state, first + k) = outputs[k];
  }
  return output_count;
}

void traced_register(lua_State *state) {
  static const luaL_Reg functions[] = {
      {"trace_begin", host_trace_begin},       {"trace_input", host_trace_input},
      {"trace_constant", host_trace_constant}, {"trace_end", host_trace_end},
      {"run_traced", host_run_traced},         {NULL, NULL}};
  luaL_setfuncs(state, functions, 0);
}
