// SPDX-License-Identifier: Apache-2.0

#include "imperative/record.h"
#include "imperative/script/array_state.h"

static int collect(lua_State *state) {
  cleave_record_t **record = lua_touserdata(state, 1);
  cleave_record_destroy(*record);
  *record = NULL;
  return 0;
}

/* () -> record, which is open. */
static int host_record_begin(lua_State *state) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_record_t **record = lua_newuserdatauv(state, sizeof(cleave_record_t *), 0);
  *record = NULL;
  lua_createtable(state, 0, 1);
  lua_pushcfunction(state, collect);
  lua_setfield(state, -2, "__gc");
  lua_setmetatable(state, -2);
  if (cleave_record_begin(array_script_of(state)->imperative, record, &error) != CLEAVE_OK) {
    return cleave_script_raise_error(state, &error);
  }
  return 1;
}

static cleave_record_t *check_record(lua_State *state, int index) {
  luaL_checktype(state, index, LUA_TUSERDATA);
  return *(cleave_record_t **)lua_touserdata(state, index);
}

static int host_record_end(lua_State *state) {
  cleave_record_end(check_record(state, 1));
  return 0;
}

/* (whether calls pause from here on, or go on) */
static int host_record_pause(lua_State *state) {
  if (lua_toboolean(state, 1)) {
    cleave_record_pause();
  } else {
    cleave_record_resume();
  }
  return 0;
}

static int host_record_is_on(lua_State *state) {
  lua_pushboolean(state, record_is_on());
  return 1;
}

/* The arrays of a list on the stack, in memory of Lua's, pushed; NULL where it has none. */
static cleave_array_t **read_list(lua_State *state, int index, uint32_t count) {
  cleave_array_t **arrays = lua_newuserdatauv(state, ((size_t)count + 1) * sizeof(cleave_array_t *), 0);
  for (uint32_t k = 0; k < count; k++) {
    lua_rawgeti(state, index, (lua_Integer)k + 1);
    arrays[k] = lua_toboolean(state, -1) ? array_handle_check(state, -1) : NULL;
    lua_pop(state, 1); /* the list holds it */
  }
  return arrays;
}

/* (record, parameters, results, heads) -> list of gradients, by parameter. */
static int host_record_gradient(lua_State *state) {
  const array_script_t *script = array_script_of(state);
  cleave_record_t *record = check_record(state, 1);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  uint32_t parameter_count = (uint32_t)lua_rawlen(state, 2);
  uint32_t result_count = (uint32_t)lua_rawlen(state, 3);
  const cleave_record_request_t request = {.size = sizeof request,
                                           .parameters = read_list(state, 2, parameter_count),
                                           .parameter_count = parameter_count,
                                           .results = read_list(state, 3, result_count),
                                           .heads = read_list(state, 4, result_count),
                                           .result_count = result_count,
                                           .rules = script->rules,
                                           .rule_count = script->rule_count};
  cleave_array_t **gradients =
      lua_newuserdatauv(state, ((size_t)parameter_count + 1) * sizeof(cleave_array_t *), 0);
  lua_createtable(state, (int)parameter_count, 0);
  int list = lua_gettop(state);
  for (uint32_t k = 0; k < parameter_count; k++) {
    (void)array_handle_push(state);
    lua_rawseti(state, list, (lua_Integer)k + 1);
  }
  if (cleave_record_gradient(record, &request, gradients, &error) != CLEAVE_OK) {
    return cleave_script_raise_error(state, &error);
  }
  for (uint32_t k = 0; k < parameter_count; k++) {
    lua_rawgeti(state, list, (lua_Integer)k + 1);
    *(cleave_array_t **)lua_touserdata(state, -1) = gradients[k];
    lua_pop(state, 1);
  }
  return 1;
}

void recorded_register(lua_State *state) {
  static const luaL_Reg functions[] = {
      {"record_begin", host_record_begin},       {"record_end", host_record_end},
      {"record_pause", host_record_pause},       {"record_is_on", host_record_is_on},
      {"record_gradient", host_record_gradient}, {NULL, NULL}};
  luaL_setfuncs(state, functions, 0);
}
