// SPDX-License-Identifier: Apache-2.0
/* Functions of C for the DSL's modules: operators and their ports and attributes, with hints for unknown
 * names. */
#include "script/sandbox/host.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ops/ops.h"
#include "partition/pattern/expression.h"
#include "script/handles/handles.h"
#include "script/state/embedded.h"

/* (name) -> operator, or nil and a hint. */
static int host_op(lua_State *state) {
  const char *name = luaL_checkstring(state, 1);
  char hint[128];
  const cleave_op_t *op = cleave_op_find_full(name);
  if (op != NULL) {
    lua_pushlightuserdata(state, (void *)(uintptr_t)op);
    return 1;
  }
  lua_pushnil(state);
  lua_pushstring(state, cleave_op_hint(name, hint, sizeof hint));
  return 2;
}

/* (beginning) -> names of operators */
static int host_operators(lua_State *state) {
  size_t length = 0;
  const char *beginning = luaL_checklstring(state, 1, &length);
  lua_Integer count = 0;
  lua_newtable(state);
  for (int id = 0; id < CLEAVE_OP_COUNT; id++) {
    const char *name = cleave_op_get((cleave_op_id_t)id)->name;
    if (strncmp(name, beginning, length) == 0) {
      lua_pushstring(state, name);
      lua_rawseti(state, -2, ++count);
    }
  }
  return 1;
}

static const cleave_op_t *check_op(lua_State *state, int index) {
  luaL_checktype(state, index, LUA_TLIGHTUSERDATA);
  return lua_touserdata(state, index);
}

static int push_missing(lua_State *state, cleave_nearest_t *nearest) {
  lua_pushnil(state);
  lua_pushstring(state, cleave_nearest_hint(nearest));
  return 2;
}

static int push_port(lua_State *state, uint32_t index, const cleave_op_port_t *ports, uint32_t count,
                     const char *name) {
  if (index != CLEAVE_INDEX_NONE) {
    lua_pushinteger(state, index);
    return 1;
  }
  cleave_nearest_t nearest = {0};
  for (uint32_t k = 0; k < count; k++) {
    cleave_nearest_offer(&nearest, name, ports[k].name);
  }
  if (nearest.name != NULL) {
    return push_missing(state, &nearest);
  }
  lua_pushnil(state);
  lua_pushstring(state, count > 0 ? " (it has " : " (it has none)");
  for (uint32_t k = 0; k < count; k++) {
    lua_pushfstring(state, "%s%s", ports[k].name, k + 1 < count ? ", " : ")");
    lua_concat(state, 2);
  }
  return 2;
}

/* (operator, name) -> index, or nil and a hint. */
static int host_input(lua_State *state) {
  const cleave_op_t *op = check_op(state, 1);
  const char *name = luaL_checkstring(state, 2);
  return push_port(state, cleave_op_input_index(op, name), op->inputs, op->input_count, name);
}

static int host_output(lua_State *state) {
  const cleave_op_t *op = check_op(state, 1);
  const char *name = luaL_checkstring(state, 2);
  return push_port(state, cleave_op_output_index(op, name), op->outputs, op->output_count, name);
}

/* (operator, name) -> kind, or nil and a hint. */
static int host_attribute(lua_State *state) {
  const cleave_op_t *op = check_op(state, 1);
  const char *name = luaL_checkstring(state, 2);
  const cleave_op_attribute_t *attribute = cleave_op_find_attribute(op, name);
  if (attribute != NULL) {
    lua_pushinteger(state, (lua_Integer)attribute->value.kind);
    lua_pushstring(state, cleave_host_kind_name(attribute->value.kind));
    return 2;
  }
  cleave_nearest_t nearest = {0};
  for (uint32_t k = 0; k < op->attribute_count; k++) {
    cleave_nearest_offer(&nearest, name, op->attributes[k].value.name);
  }
  return push_missing(state, &nearest);
}

const char *cleave_host_kind_name(cleave_attribute_kind_t kind) {
  switch (kind) {
    case CLEAVE_ATTRIBUTE_INT: return "integer";
    case CLEAVE_ATTRIBUTE_FLOAT: return "number";
    case CLEAVE_ATTRIBUTE_STRING: return "string";
    case CLEAVE_ATTRIBUTE_INTS: return "list of integers";
    case CLEAVE_ATTRIBUTE_FLOATS: return "list of numbers";
    case CLEAVE_ATTRIBUTE_STRINGS: return "list of strings";
    case CLEAVE_ATTRIBUTE_TENSOR: return "tensor";
  }
  return "attribute";
}

/* (operator) -> number of inputs or outputs in its schema; is the last one variadic? */
static int host_input_count(lua_State *state) {
  const cleave_op_t *op = check_op(state, 1);
  lua_pushinteger(state, op->input_count);
  lua_pushboolean(state,
                  op->input_count > 0 && op->inputs[op->input_count - 1].kind == CLEAVE_OP_INPUT_VARIADIC);
  return 2;
}

static int host_output_count(lua_State *state) {
  const cleave_op_t *op = check_op(state, 1);
  lua_pushinteger(state, op->output_count);
  lua_pushboolean(state,
                  op->output_count > 0 && op->outputs[op->output_count - 1].kind == CLEAVE_OP_INPUT_VARIADIC);
  return 2;
}

static int host_is_commutative(lua_State *state) {
  lua_pushboolean(state, (check_op(state, 1)->flags & CLEAVE_OP_COMMUTATIVE) != 0);
  return 1;
}

const char *cleave_host_dtype_hint(const char *name, char *buffer, size_t size) {
  cleave_nearest_t nearest = {0};
  for (int k = 1; k <= CLEAVE_DTYPE_BF16; k++) {
    if (cleave_dtype_is_valid(k)) {
      cleave_nearest_offer(&nearest, name, cleave_dtype_name((cleave_dtype_t)k));
    }
  }
  size_t used = (size_t)snprintf(buffer, size, "%s", cleave_nearest_hint(&nearest));
  const char *before = "; there are ";
  for (int k = 1; k <= CLEAVE_DTYPE_BF16; k++) {
    if (cleave_dtype_is_valid(k) && used < size) {
      used +=
          (size_t)snprintf(buffer + used, size - used, "%s%s", before, cleave_dtype_name((cleave_dtype_t)k));
      before = ", ";
    }
  }
  return buffer;
}

/* (name) -> number of a dtype, or nil and a hint. */
static int host_dtype(lua_State *state) {
  const char *name = luaL_checkstring(state, 1);
  cleave_dtype_t dtype = cleave_dtype_find(name);
  char hint[CLEAVE_HOST_DTYPE_HINT];
  if (dtype != CLEAVE_DTYPE_UNKNOWN) {
    lua_pushinteger(state, (lua_Integer)dtype);
    return 1;
  }
  lua_pushnil(state);
  lua_pushstring(state, cleave_host_dtype_hint(name, hint, sizeof hint));
  return 2;
}

/* (wanted, list of candidates) -> " (did you mean 'x'?)" or "". */
static int host_hint(lua_State *state) {
  const char *wanted = luaL_checkstring(state, 1);
  cleave_nearest_t nearest = {0};
  luaL_checktype(state, 2, LUA_TTABLE);
  lua_Integer count = (lua_Integer)lua_rawlen(state, 2);
  lua_settop(state, 2);
  for (lua_Integer k = 1; k <= count; k++) {
    if (lua_rawgeti(state, 2, k) == LUA_TSTRING) {
      cleave_nearest_offer(&nearest, wanted, lua_tostring(state, -1));
    }
    lua_pop(state, 1); /* the list keeps the string alive */
  }
  lua_pushstring(state, cleave_nearest_hint(&nearest));
  return 1;
}

/* The running place: a line of the script, or of a file that it includes. */
static int host_line(lua_State *state) {
  lua_pushinteger(state, cleave_script_place(state));
  return 1;
}

/* (place) -> text for messages: "line 12", or "parts/conv.lua:12" for a file that the script includes. */
static int host_place_text(lua_State *state) {
  int place = (int)luaL_checkinteger(state, 1);
  const cleave_script_t *script = cleave_script_of(state);
  if (cleave_place_file(place) == 0) {
    lua_pushfstring(state, "line %d", cleave_place_line(place));
  } else {
    lua_pushfstring(state, "%s:%d", cleave_script_path_at(script, place), cleave_place_line(place));
  }
  return 1;
}

/* (place, message): raises an error at a place of the script; 0: the one that is running. */
static int host_fail(lua_State *state) {
  int place = (int)luaL_checkinteger(state, 1);
  const char *message = luaL_checkstring(state, 2);
  return cleave_script_raise_at(state, place > 0 ? place : cleave_script_place(state), "%s", message);
}

/* (message): raises an error about the file as a whole. */
static int host_fail_file(lua_State *state) {
  return cleave_script_raise_at(state, 0, "%s", luaL_checkstring(state, 1));
}

/* (kind, name, line) or (): the rule at work, for messages. */
static int host_rule(lua_State *state) {
  cleave_script_t *script = cleave_script_of(state);
  if (lua_isnoneornil(state, 1)) {
    cleave_script_set_rule(script, NULL, NULL, 0);
    return 0;
  }
  for (int k = 0; k < 2; k++) {
    (void)snprintf(script->rule_text[k], sizeof script->rule_text[k], "%s", luaL_checkstring(state, k + 1));
  }
  cleave_script_set_rule(script, script->rule_text[0], script->rule_text[1],
                         (int)luaL_checkinteger(state, 3));
  return 0;
}

/* (prefix) -> names of the modules lua/cleave/<prefix>*.lua, in order. */
static int host_modules(lua_State *state) {
  size_t length = 0;
  const char *prefix = luaL_checklstring(state, 1, &length);
  static const char FOLDER[] = "lua/cleave/";
  size_t folder = sizeof FOLDER - 1;
  lua_Integer count = 0;
  lua_newtable(state);
  for (const cleave_embedded_file_t *file = cleave_embedded_files; file->name != NULL; file++) {
    const char *name = file->name + folder;
    size_t extension = sizeof ".lua" - 1;
    if (strncmp(file->name, FOLDER, folder) == 0 && strncmp(name, prefix, length) == 0 &&
        strlen(name) > extension) {
      lua_pushlstring(state, name, strlen(name) - extension);
      lua_rawseti(state, -2, ++count);
    }
  }
  return 1;
}

/* (table of metamethods): operators of strings. */
static int host_extend_texts(lua_State *state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_pushliteral(state, "");
  if (lua_getmetatable(state, -1) == 0) {
    return 0;
  }
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    lua_pushvalue(state, -2);
    lua_insert(state, -2);
    lua_rawset(state, -4);
  }
  return 0;
}

/* (text, is_condition) -> what is wrong with an expression, or nil. */
static int host_expression(lua_State *state) {
  const char *text = luaL_checkstring(state, 1);
  cleave_expression_kind_t kind =
      lua_toboolean(state, 2) ? CLEAVE_EXPRESSION_CONDITION : CLEAVE_EXPRESSION_SIZE;
  const cleave_expression_t *expression = NULL;
  cleave_arena_t arena = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_expression_compile(&arena, text, 0, kind, &expression, &error);
  cleave_arena_deinit(&arena);
  if (status == CLEAVE_ERROR_RULE) {
    lua_pushstring(state, error.message);
    return 1;
  }
  return status == CLEAVE_OK ? 0 : cleave_script_raise_error(state, &error);
}

void cleave_host_register(lua_State *state) {
  static const luaL_Reg FUNCTIONS[] = {{"op", host_op},
                                       {"operators", host_operators},
                                       {"input", host_input},
                                       {"output", host_output},
                                       {"input_count", host_input_count},
                                       {"output_count", host_output_count},
                                       {"is_commutative", host_is_commutative},
                                       {"attribute", host_attribute},
                                       {"dtype", host_dtype},
                                       {"expression", host_expression},
                                       {"hint", host_hint},
                                       {"line", host_line},
                                       {"place_text", host_place_text},
                                       {"fail", host_fail},
                                       {"fail_file", host_fail_file},
                                       {"rule", host_rule},
                                       {"modules", host_modules},
                                       {"extend_texts", host_extend_texts},
                                       {NULL, NULL}};
  luaL_setfuncs(state, FUNCTIONS, 0);
  cleave_sandbox_register(state);
  cleave_handles_register(state);
  cleave_function_info_register(state);
  cleave_text_match_register(state);
  cleave_include_register(state);
  cleave_print_register(state);
}
