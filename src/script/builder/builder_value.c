// SPDX-License-Identifier: Apache-2.0
/*
 * Inputs, outputs and constants of a model under construction. Random numbers depend only on the model's seed
 * and on the constant's name, or its number among the unnamed ones.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "script/builder/builder.h"
#include "script/handles/handles.h"
#include "script/sandbox/host.h"

enum { LONGEST_NAME = 1024 };

/* ---- shapes and dtypes ---- */

cleave_dtype_t cleave_builder_check_dtype(lua_State *state, int index) {
  const char *name = luaL_checkstring(state, index);
  cleave_dtype_t dtype = cleave_dtype_find(name);
  if (dtype == CLEAVE_DTYPE_UNKNOWN) {
    char hint[CLEAVE_HOST_DTYPE_HINT];
    cleave_script_raise(state, "dtype '%s' is unknown%s", name,
                        cleave_host_dtype_hint(name, hint, sizeof hint));
  }
  return dtype;
}

static cleave_dtype_t check_dtype(lua_State *state, int index, cleave_dtype_t fallback) {
  return lua_isnoneornil(state, index) ? fallback : cleave_builder_check_dtype(state, index);
}

/* A list of sizes; with `symbols`, of names of dimensions and "?" too. Returns the rank. */
static int32_t check_shape(lua_State *state, int index, bool symbols, cleave_dim_t *dims) {
  if (!lua_istable(state, index)) {
    cleave_script_raise(state, "expected a shape like {1, 3, 224, 224}, found a %s",
                        luaL_typename(state, index));
  }
  size_t rank = lua_rawlen(state, index);
  if (rank > CLEAVE_MAX_RANK) {
    cleave_script_raise(state, "a shape of %d dimension%s, expected at most %d", (int)rank,
                        CLEAVE_PLURAL(rank), CLEAVE_MAX_RANK);
  }
  for (size_t k = 0; k < rank; k++) {
    lua_rawgeti(state, index, (lua_Integer)k + 1);
    if (lua_isinteger(state, -1) && lua_tointeger(state, -1) >= 0) {
      dims[k] = lua_tointeger(state, -1);
    } else if (symbols && lua_type(state, -1) == LUA_TSTRING && lua_rawlen(state, -1) > 0 &&
               lua_rawlen(state, -1) <= LONGEST_NAME) {
      const char *name = lua_tostring(state, -1);
      dims[k] = strcmp(name, "?") == 0
                    ? CLEAVE_DIM_UNKNOWN
                    : cleave_dims_symbol(cleave_builder_of(state)->graph->dims, name, strlen(name));
    } else {
      const char *found = lua_type(state, -1) == LUA_TTABLE ? "a table" : luaL_tolstring(state, -1, NULL);
      cleave_script_raise(state, "dimension %d of a shape: expected a size%s, found %s", (int)k + 1,
                          symbols ? " or a name" : "", found);
    }
    lua_pop(state, 1);
  }
  return (int32_t)rank;
}

int32_t cleave_builder_check_shape(lua_State *state, int index, int64_t *dims) {
  return check_shape(state, index, false, dims);
}

/* ---- inputs and outputs ---- */

/* Adds an input to an existing graph. */
static int add_input(lua_State *state, cleave_editor_t *editor, const char *name, cleave_dtype_t dtype,
                     int32_t rank) {
  cleave_edit_dim_t dims[CLEAVE_MAX_RANK];
  cleave_value_t value = CLEAVE_VALUE_NONE;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (editor->only_adds) {
    return cleave_script_raise(state,
                               "a substitute cannot have a new input of the graph: that is for a pass");
  }
  for (int32_t d = 0; d < rank; d++) {
    lua_rawgeti(state, 3, d + 1); /* stays on the stack: symbols are its strings */
    bool is_size = lua_isinteger(state, -1);
    bool is_open = !is_size && strcmp(lua_tostring(state, -1), "?") == 0;
    dims[d].size = is_size ? lua_tointeger(state, -1) : -1;
    dims[d].symbol = is_size || is_open ? NULL : lua_tostring(state, -1);
  }
  editor->line = cleave_script_line(state);
  cleave_builder_raise_if_failed(
      state, cleave_editor_add_input(editor, name, dtype, rank, dims, &value, &error), &error);
  cleave_handle_push_value(state, value);
  return 1;
}

/* Raises if the graph is not a new model. */
static void check_is_model(lua_State *state, const char *what, const char *instead) {
  if (cleave_builder_of(state)->editor != NULL) {
    cleave_script_raise(state, "%s is for model scripts%s", what, instead);
  }
}

/* A name at an index of the stack, of bounded length. */
static const char *check_name(lua_State *state, int index) {
  size_t length = 0;
  const char *name = luaL_checklstring(state, index, &length);
  if (length > LONGEST_NAME) {
    cleave_script_raise(state, "a name of %d byte%s, expected at most %d", (int)length, CLEAVE_PLURAL(length),
                        (int)LONGEST_NAME);
  }
  return name;
}

/* (name, dtype, shape) -> value. */
static int host_input_value(lua_State *state) {
  const char *name = check_name(state, 1);
  cleave_dtype_t dtype = check_dtype(state, 2, CLEAVE_DTYPE_UNKNOWN);
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = check_shape(state, 3, true, dims);
  if (cleave_builder_of(state)->editor != NULL) {
    luaL_checkstack(state, CLEAVE_MAX_RANK + 4, NULL);
    return add_input(state, cleave_builder_of(state)->editor, name, dtype, rank);
  }
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_value_t value = CLEAVE_VALUE_NONE;
  cleave_builder_raise_if_failed(
      state, cleave_graph_add_input(cleave_builder_of(state)->graph, name, dtype, rank, dims, &value, &error),
      &error);
  cleave_handle_push_value(state, value);
  return 1;
}

/* (name, value). */
static int host_output_value(lua_State *state) {
  const char *name = luaL_checkstring(state, 1);
  check_is_model(state, "g.output", " (g.set_output changes what an output of the graph is)");
  cleave_value_t value = {cleave_handle_check(state, 2, CLEAVE_HANDLE_VALUE)->index};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_builder_raise_if_failed(
      state, cleave_graph_add_output(cleave_builder_of(state)->graph, name, value, &error), &error);
  return 0;
}

/* () -> how many outputs there are. */
static int host_graph_output_count(lua_State *state) {
  lua_pushinteger(state, (lua_Integer)cleave_builder_of(state)->graph->outputs.count);
  return 1;
}

/* ---- constants ---- */

static size_t data_limit(const cleave_builder_t *builder) {
  if (builder->data_limit > 0) {
    return builder->data_limit;
  }
  return builder->editor != NULL ? CLEAVE_EDITOR_DATA_LIMIT : CLEAVE_BUILDER_DATA_LIMIT;
}

static void raise_too_large(lua_State *state, const char *what) {
  size_t limit = data_limit(cleave_builder_of(state));
  bool is_large = limit >> 30 > 0;
  cleave_script_raise(state, "%s: more than %d %s in all constants", what,
                      (int)(limit >> (is_large ? 30 : 20)), is_large ? "GiB" : "MiB");
}

void cleave_builder_charge(lua_State *state, size_t bytes) {
  cleave_builder_t *builder = cleave_builder_of(state);
  cleave_script_step(state, (uint32_t)(bytes / 64));
  if (builder->data_bytes > data_limit(builder) || bytes > data_limit(builder) - builder->data_bytes) {
    raise_too_large(state, "an attribute of this size");
  }
  builder->data_bytes += bytes;
}

static cleave_tensor_t *create_tensor(lua_State *state, cleave_dtype_t dtype, int32_t rank,
                                      const int64_t *dims) {
  cleave_builder_t *builder = cleave_builder_of(state);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_tensor_t *tensor = NULL;
  int64_t count = 0;
  size_t bytes = 0;
  bool fits = dtype != CLEAVE_DTYPE_STRING && cleave_shape_element_count(rank, dims, &count) &&
              cleave_size_multiply((size_t)count, cleave_dtype_size(dtype), &bytes) &&
              builder->data_bytes <= data_limit(builder) &&
              bytes <= data_limit(builder) - builder->data_bytes;
  if (!fits) {
    raise_too_large(state, "a constant of this size");
  }
  if (builder->editor != NULL && bytes > CLEAVE_BUILDER_RULE_DATA_LIMIT) {
    cleave_script_raise(state, "a constant of this size: more than %d MiB in one constant of a rule",
                        (int)(CLEAVE_BUILDER_RULE_DATA_LIMIT >> 20));
  }
  cleave_builder_raise_if_failed(state, cleave_tensor_create(dtype, rank, dims, &tensor, &error), &error);
  builder->data_bytes += bytes;
  return tensor;
}

void cleave_builder_raise_full(lua_State *state) {
  cleave_script_of(state)->raised = CLEAVE_ERROR_LIMIT;
  cleave_script_raise(state, "a model of more than %d values", CLEAVE_BUILDER_VALUE_LIMIT);
}

/* Takes the tensor over. No function between its creation and this one raises. */
static cleave_value_t add_constant_take(lua_State *state, cleave_tensor_t *tensor, const char *name) {
  cleave_builder_t *builder = cleave_builder_of(state);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (builder->graph->values.count >= CLEAVE_BUILDER_VALUE_LIMIT) {
    cleave_tensor_release(tensor);
    cleave_builder_raise_full(state);
  }
  cleave_value_t value = CLEAVE_VALUE_NONE;
  cleave_status_t status = CLEAVE_OK;
  char place[160];
  if (builder->editor != NULL) {
    char base[96];
    (void)snprintf(base, sizeof base, "%.63s/constant", builder->editor->rule);
    (void)cleave_editor_unique_name(builder->editor, name != NULL ? name : base, place, sizeof place);
    status = cleave_editor_add_constant(builder->editor, place, tensor, &value, &error);
  } else {
    (void)snprintf(place, sizeof place, "constant_%u", (unsigned)builder->constant_count++);
    status = cleave_graph_add_constant(builder->graph, name != NULL ? name : place, tensor, &value, &error);
  }
  cleave_tensor_release(tensor);
  cleave_builder_raise_if_failed(state, status, &error);
  return value;
}

/* Shape of a nested table: the lengths of the first list at each level. */
static int32_t table_shape(lua_State *state, int index, int64_t *dims) {
  int32_t rank = 0;
  lua_pushvalue(state, index);
  while (lua_istable(state, -1)) {
    if (rank == CLEAVE_MAX_RANK) {
      cleave_script_raise(state, "a table nested more than %d deep", CLEAVE_MAX_RANK);
    }
    dims[rank++] = (int64_t)lua_rawlen(state, -1);
    lua_rawgeti(state, -1, 1);
    lua_remove(state, -2);
  }
  lua_pop(state, 1);
  return rank;
}

typedef struct walk {
  lua_State *state;
  const int64_t *dims;
  int32_t rank;
  cleave_tensor_t *tensor; /* NULL: only look */
  int64_t next;
  bool all_integers;
  bool all_booleans;
} walk_t;

/* Checks or copies the element or list on top of the stack. Raises only while checking. */
static void walk_table(walk_t *walk, int32_t level) {
  lua_State *state = walk->state;
  if (level < walk->rank) {
    if (walk->tensor == NULL &&
        (!lua_istable(state, -1) || (int64_t)lua_rawlen(state, -1) != walk->dims[level])) {
      cleave_script_raise(state, "a table that is not an array: lists of one level differ in length");
    }
    for (int64_t k = 0; k < walk->dims[level]; k++) {
      if (walk->tensor == NULL) {
        cleave_script_step(state, 1);
      }
      lua_rawgeti(state, -1, k + 1);
      walk_table(walk, level + 1);
      lua_pop(state, 1);
    }
    return;
  }
  if (walk->tensor == NULL) {
    if (lua_type(state, -1) == LUA_TUSERDATA) {
      cleave_script_raise(state,
                          "a list of numbers is a constant, and this one has a value in it: inputs are "
                          "separate arguments, as in g.Concat(a, b, { axis = 1 })");
    }
    if (!lua_isboolean(state, -1) && lua_type(state, -1) != LUA_TNUMBER) {
      cleave_script_raise(state, "an element of a constant: expected a number, found a %s",
                          luaL_typename(state, -1));
    }
    walk->all_booleans = walk->all_booleans && lua_isboolean(state, -1);
    walk->all_integers = walk->all_integers && (lua_isinteger(state, -1) || lua_isboolean(state, -1));
    cleave_script_step(state, 1);
    return;
  }
  int64_t place = walk->next++;
  if (walk->tensor->dtype == CLEAVE_DTYPE_I64 && lua_isinteger(state, -1)) {
    ((int64_t *)walk->tensor->data)[place] = lua_tointeger(state, -1);
  } else {
    double number = lua_isboolean(state, -1) ? (double)lua_toboolean(state, -1) : lua_tonumber(state, -1);
    cleave_tensor_set_float(walk->tensor, place, number);
  }
}

cleave_tensor_t *cleave_builder_read_tensor(lua_State *state, int index, cleave_dtype_t dtype) {
  int64_t dims[CLEAVE_MAX_RANK];
  luaL_checkstack(state, 2 * CLEAVE_MAX_RANK + 8, NULL);
  index = lua_absindex(state, index);
  walk_t walk = {.state = state, .dims = dims, .all_integers = true, .all_booleans = true};
  walk.rank = table_shape(state, index, dims);
  lua_pushvalue(state, index);
  walk_table(&walk, 0);
  if (dtype == CLEAVE_DTYPE_UNKNOWN) {
    bool is_boolean = walk.all_booleans && (walk.rank == 0 || dims[walk.rank - 1] > 0); /* {} has integers */
    dtype = is_boolean ? CLEAVE_DTYPE_BOOL : walk.all_integers ? CLEAVE_DTYPE_I64 : CLEAVE_DTYPE_F32;
  }
  if (cleave_dtype_is_integer(dtype) && !walk.all_integers) {
    cleave_script_raise(state, "a constant of dtype %s with a fraction", cleave_dtype_name(dtype));
  }
  walk.tensor = create_tensor(state, dtype, walk.rank, dims);
  walk_table(&walk, 0);
  lua_pop(state, 1);
  return walk.tensor;
}

cleave_value_t cleave_builder_constant(lua_State *state, int index, cleave_dtype_t dtype, const char *name) {
  return add_constant_take(state, cleave_builder_read_tensor(state, index, dtype), name);
}

static const char *optional_name(lua_State *state, int index) {
  return lua_isnoneornil(state, index) ? NULL : check_name(state, index);
}

/* (number or table, dtype?, name?) -> value. */
static int host_constant_value(lua_State *state) {
  cleave_dtype_t dtype = check_dtype(state, 2, CLEAVE_DTYPE_UNKNOWN);
  cleave_value_t value = cleave_builder_constant(state, 1, dtype, optional_name(state, 3));
  cleave_handle_push_value(state, value);
  return 1;
}

static uint64_t draw_seed(const cleave_builder_t *builder, const char *name) {
  uint64_t place = name != NULL ? cleave_hash_bytes(CLEAVE_HASH_SEED, name, strlen(name))
                                : (uint64_t)builder->constant_count;
  return cleave_hash_combine(builder->seed, place);
}

/* (kind, shape, dtype?, name?, a, b) -> value; kinds: "fill" with a, "normal" of mean a and deviation b,
 * "uniform" from a to b. */
static int host_draw(lua_State *state) {
  static const char *const KINDS[] = {"fill", "normal", "uniform", NULL};
  cleave_builder_t *builder = cleave_builder_of(state);
  int kind = luaL_checkoption(state, 1, NULL, KINDS);
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = check_shape(state, 2, false, dims);
  cleave_dtype_t dtype = check_dtype(state, 3, CLEAVE_DTYPE_F32);
  const char *name = optional_name(state, 4);
  double a = luaL_optnumber(state, 5, 0);
  double b = luaL_optnumber(state, 6, 0);
  if (!isfinite(a) || !isfinite(b)) {
    return cleave_script_raise(state, "expected finite numbers to draw from");
  }
  cleave_tensor_t *tensor = create_tensor(state, dtype, rank, dims);
  uint64_t seed = draw_seed(builder, name);
  if (kind == 1) {
    cleave_tensor_fill_normal(tensor, seed, a, b);
  } else if (kind == 2) {
    cleave_tensor_fill_uniform(tensor, seed, a, b);
  } else if (a != 0) {
    for (int64_t k = 0; k < tensor->count; k++) {
      cleave_tensor_set_float(tensor, k, a);
    }
  }
  cleave_handle_push_value(state, add_constant_take(state, tensor, name));
  return 1;
}

/* (seed): sets the script's own seed, which is used if the caller gave none. */
static int host_seed(lua_State *state) {
  cleave_builder_t *builder = cleave_builder_of(state);
  lua_Integer seed = luaL_checkinteger(state, 1);
  check_is_model(state, "g.seed", "");
  if (!builder->seed_is_given) {
    builder->seed = (uint64_t)seed;
  }
  return 0;
}

/* (name): of the graph. */
static int host_graph_name(lua_State *state) {
  cleave_builder_t *builder = cleave_builder_of(state);
  size_t length = 0;
  const char *name = luaL_checklstring(state, 1, &length);
  check_is_model(state, "g.name", "");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_builder_raise_if_failed(
      state, cleave_strings_add(&builder->graph->strings, name, length, &builder->graph->name, &error),
      &error);
  return 0;
}

void cleave_builder_register_values(lua_State *state) {
  static const luaL_Reg FUNCTIONS[] = {{"input_value", host_input_value},
                                       {"output_value", host_output_value},
                                       {"graph_output_count", host_graph_output_count},
                                       {"constant_value", host_constant_value},
                                       {"draw", host_draw},
                                       {"seed", host_seed},
                                       {"graph_name", host_graph_name},
                                       {NULL, NULL}};
  luaL_setfuncs(state, FUNCTIONS, 0);
}
