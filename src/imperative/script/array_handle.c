// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "imperative/script/array_state.h"
#include "script/builder/builder.h"
#include "tensor/npy.h"

static const char METATABLE_KEY = 'a';

static int collect(lua_State *state) {
  cleave_array_t **array = lua_touserdata(state, 1);
  cleave_array_release(*array);
  *array = NULL;
  return 0;
}

void array_handle_define(lua_State *state) {
  lua_newtable(state);
  lua_pushcfunction(state, collect);
  lua_setfield(state, -2, "__gc");
  lua_pushvalue(state, -1);
  lua_rawsetp(state, LUA_REGISTRYINDEX, &METATABLE_KEY);
}

cleave_array_t **array_handle_push(lua_State *state) {
  cleave_array_t **array = lua_newuserdatauv(state, sizeof *array, 0);
  *array = NULL;
  lua_rawgetp(state, LUA_REGISTRYINDEX, &METATABLE_KEY);
  lua_setmetatable(state, -2);
  return array;
}

cleave_array_t *array_handle_test(lua_State *state, int index) {
  if (lua_type(state, index) != LUA_TUSERDATA || !lua_getmetatable(state, index)) {
    return NULL;
  }
  lua_rawgetp(state, LUA_REGISTRYINDEX, &METATABLE_KEY);
  bool is_array = lua_rawequal(state, -1, -2);
  lua_pop(state, 2);
  return is_array ? *(cleave_array_t **)lua_touserdata(state, index) : NULL;
}

cleave_array_t *array_handle_check(lua_State *state, int index) {
  cleave_array_t *array = array_handle_test(state, index);
  if (array == NULL) {
    cleave_script_raise(state, "expected an array, found a %s", luaL_typename(state, index));
  }
  return array;
}

cleave_array_t *array_handle_constant(lua_State *state, cleave_imperative_t *imperative, int index,
                                      cleave_dtype_t dtype) {
  cleave_array_t **handle = array_handle_push(state);
  cleave_tensor_t *tensor = cleave_builder_read_tensor(state, index, dtype);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_array_create(imperative, tensor->dtype, tensor->rank, tensor->dims,
                                               tensor->data, handle, &error);
  cleave_tensor_release(tensor);
  if (status != CLEAVE_OK) {
    cleave_script_raise_error(state, &error);
  }
  return *handle;
}

/* ---- for lua/cleave/arrays.lua ---- */

static const void *data_of(lua_State *state, cleave_array_t *array) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const void *data = NULL;
  if (cleave_array_data(array, &data, &error) != CLEAVE_OK) {
    cleave_script_raise_error(state, &error);
  }
  return data;
}

/* (anything) -> whether it is an array. */
static int host_is_array(lua_State *state) {
  lua_pushboolean(state, array_handle_test(state, 1) != NULL);
  return 1;
}

/* (array) -> list of its sizes. */
static int host_array_shape(lua_State *state) {
  const cleave_array_t *array = array_handle_check(state, 1);
  lua_createtable(state, array->rank, 0);
  for (int32_t k = 0; k < array->rank; k++) {
    lua_pushinteger(state, array->dims[k]);
    lua_rawseti(state, -2, k + 1);
  }
  return 1;
}

/* (array) -> name of its dtype. */
static int host_array_dtype(lua_State *state) {
  lua_pushstring(state, cleave_dtype_name(array_handle_check(state, 1)->dtype));
  return 1;
}

static int host_array_count(lua_State *state) {
  lua_pushinteger(state, array_handle_check(state, 1)->count);
  return 1;
}

static void push_element(lua_State *state, const cleave_tensor_t *tensor, int64_t index) {
  if (tensor->dtype == CLEAVE_DTYPE_BOOL) {
    lua_pushboolean(state, cleave_tensor_get_int(tensor, index) != 0);
  } else if (cleave_dtype_is_integer(tensor->dtype)) {
    lua_pushinteger(state, cleave_tensor_get_int(tensor, index));
  } else {
    lua_pushnumber(state, cleave_tensor_get_float(tensor, index));
  }
}

/* (array, first, count) -> its elements in a list, row-major from number `first` (from 1) on. Waits. */
static int host_array_elements(lua_State *state) {
  cleave_array_t *array = array_handle_check(state, 1);
  int64_t first = luaL_optinteger(state, 2, 1);
  int64_t count = luaL_optinteger(state, 3, array->count);
  if (first < 1 || count < 0 || count > array->count - (first - 1)) {
    return cleave_script_raise(state, "elements %d to %d of an array of %d", (int)first,
                               (int)(first + count - 1), (int)array->count);
  }
  const cleave_tensor_t tensor = {.dtype = array->dtype,
                                  .rank = array->rank,
                                  .count = array->count,
                                  .bytes = array->bytes,
                                  .data = (void *)(uintptr_t)data_of(state, array)};
  lua_createtable(state, (int)(count < INT32_MAX ? count : INT32_MAX), 0);
  for (int64_t k = 0; k < count; k++) {
    push_element(state, &tensor, first - 1 + k);
    lua_rawseti(state, -2, k + 1);
  }
  return 1;
}

/* (array): waits until it is computed. */
static int host_array_wait(lua_State *state) {
  (void)data_of(state, array_handle_check(state, 1));
  return 0;
}

/* (array, path): writes NumPy's format. */
static int host_array_save(lua_State *state) {
  cleave_array_t *array = array_handle_check(state, 1);
  const char *path = luaL_checkstring(state, 2);
  const void *data = data_of(state, array);
  cleave_tensor_t *tensor = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_tensor_view_t view = cleave_array_view(array);
  view.data = data;
  cleave_status_t status = cleave_tensor_create_borrowed(&view, array->bytes, NULL, &tensor, &error);
  CLEAVE_THEN(status, cleave_npy_write(path, tensor, &error));
  cleave_tensor_release(tensor);
  return status == CLEAVE_OK ? 0 : cleave_script_raise_error(state, &error);
}

/* (path) -> array, of NumPy's format. */
static int host_array_load(lua_State *state) {
  const char *path = luaL_checkstring(state, 1);
  cleave_array_t **handle = array_handle_push(state);
  cleave_tensor_t *tensor = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_npy_read(path, &tensor, &error);
  CLEAVE_THEN(status, cleave_array_create(array_script_of(state)->imperative, tensor->dtype, tensor->rank,
                                          tensor->dims, tensor->data, handle, &error));
  cleave_tensor_release(tensor);
  return status == CLEAVE_OK ? 1 : cleave_script_raise_error(state, &error);
}

void array_handle_register(lua_State *state) {
  static const luaL_Reg functions[] = {{"is_array", host_is_array},
                                       {"array_shape", host_array_shape},
                                       {"array_dtype", host_array_dtype},
                                       {"array_count", host_array_count},
                                       {"array_elements", host_array_elements},
                                       {"array_wait", host_array_wait},
                                       {"array_save", host_array_save},
                                       {"array_load", host_array_load},
                                       {NULL, NULL}};
  luaL_setfuncs(state, functions, 0);
}
