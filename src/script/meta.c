// SPDX-License-Identifier: Apache-2.0
/* Gives lua/cleave/meta.lua the tables of C as Lua tables, and copies the files that it makes. */
#include "script/meta.h"

#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"
#include "script/builder/builder.h"
#include "script/handles/handles.h"
#include "script/sandbox/host.h"
#include "script/state/table_reader.h"

static void set_text(lua_State *state, const char *key, const char *text) {
  lua_pushstring(state, text);
  lua_setfield(state, -2, key);
}

/* ---- fields of handles ---- */

static void push_fields(lua_State *state, const cleave_handle_field_t *fields) {
  lua_newtable(state);
  for (lua_Integer k = 0; fields[k].name != NULL; k++) {
    lua_newtable(state);
    set_text(state, "name", fields[k].name);
    set_text(state, "type", fields[k].type);
    set_text(state, "doc", fields[k].doc);
    lua_rawseti(state, -2, k + 1);
  }
}

/* () -> { node = { { name, type, doc } ... }, value =, graph =, match =, sub = }. */
static int host_handle_fields(lua_State *state) {
  lua_newtable(state);
  push_fields(state, cleave_node_handle_fields);
  lua_setfield(state, -2, "node");
  push_fields(state, cleave_value_handle_fields);
  lua_setfield(state, -2, "value");
  push_fields(state, cleave_graph_handle_fields);
  lua_setfield(state, -2, "graph");
  push_fields(state, cleave_match_handle_fields);
  lua_setfield(state, -2, "match");
  push_fields(state, cleave_proposal_handle_fields);
  lua_setfield(state, -2, "sub");
  return 1;
}

/* ---- operators ---- */

static void push_ports(lua_State *state, const cleave_op_port_t *ports, uint32_t count) {
  static const char *const KINDS[] = {"required", "optional", "variadic"};
  lua_newtable(state);
  for (uint32_t k = 0; k < count; k++) {
    lua_newtable(state);
    set_text(state, "name", ports[k].name);
    set_text(state, "kind", KINDS[ports[k].kind]);
    lua_rawseti(state, -2, (lua_Integer)k + 1);
  }
}

static void push_attributes(lua_State *state, const cleave_op_t *op) {
  static const char *const SHAPED[] = {"", "%d per axis", "%d per side", "as the weight", "reversed"};
  lua_newtable(state);
  for (uint32_t k = 0; k < op->attribute_count; k++) {
    const cleave_op_attribute_t *attribute = &op->attributes[k];
    lua_newtable(state);
    set_text(state, "name", attribute->value.name);
    set_text(state, "kind", cleave_host_kind_name(attribute->value.kind));
    lua_pushboolean(state, attribute->required);
    lua_setfield(state, -2, "required");
    if (attribute->has_default) {
      cleave_handle_push_attribute(state, &attribute->value);
      lua_setfield(state, -2, "default");
    }
    if (attribute->shaped != CLEAVE_OP_SHAPED_NONE) {
      lua_pushfstring(state, SHAPED[attribute->shaped], (int)attribute->fill);
      lua_setfield(state, -2, "shaped");
    }
    lua_rawseti(state, -2, (lua_Integer)k + 1);
  }
}

static int compare_names(const void *a, const void *b) {
  const cleave_op_t *const *left = a;
  const cleave_op_t *const *right = b;
  int order = strcmp((*left)->name, (*right)->name);
  return order != 0 ? order : strcmp((*left)->domain, (*right)->domain);
}

/* () -> list of { name, domain, version, inputs, outputs, attributes }, by name. */
static int host_operators(lua_State *state) {
  const cleave_op_t *ops[CLEAVE_OP_COUNT];
  for (int k = 0; k < CLEAVE_OP_COUNT; k++) {
    ops[k] = cleave_op_get((cleave_op_id_t)k);
  }
  qsort((void *)ops, CLEAVE_OP_COUNT, sizeof ops[0], compare_names);
  lua_newtable(state);
  for (int k = 0; k < CLEAVE_OP_COUNT; k++) {
    lua_newtable(state);
    set_text(state, "name", ops[k]->name);
    set_text(state, "domain", ops[k]->domain);
    lua_pushinteger(state, ops[k]->since_version);
    lua_setfield(state, -2, "version");
    push_ports(state, ops[k]->inputs, ops[k]->input_count);
    lua_setfield(state, -2, "inputs");
    push_ports(state, ops[k]->outputs, ops[k]->output_count);
    lua_setfield(state, -2, "outputs");
    push_attributes(state, ops[k]);
    lua_setfield(state, -2, "attributes");
    lua_rawseti(state, -2, k + 1);
  }
  return 1;
}

/* () -> names of all dtypes. */
static int host_dtype_names(lua_State *state) {
  lua_Integer count = 0;
  lua_newtable(state);
  for (int k = 1; k <= CLEAVE_DTYPE_BF16; k++) {
    if (cleave_dtype_is_valid(k)) {
      lua_pushstring(state, cleave_dtype_name((cleave_dtype_t)k));
      lua_rawseti(state, -2, ++count);
    }
  }
  return 1;
}

/* ---- texts ---- */

typedef struct generation {
  cleave_arena_t *arena;
  cleave_meta_text_t *texts;
  uint32_t count;
} generation_t;

static int compare_texts(const void *a, const void *b) {
  const cleave_meta_text_t *left = a;
  const cleave_meta_text_t *right = b;
  return strcmp(left->name, right->name);
}

static void read_texts(lua_State *state, generation_t *generation) {
  cleave_table_reader_t reader = {.state = state, .arena = generation->arena, .file = ""};
  uint32_t count = 0;
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    count++;
    lua_pop(state, 1);
  }
  generation->texts = cleave_table_take(&reader, count, sizeof *generation->texts);
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    cleave_meta_text_t *text = &generation->texts[generation->count++];
    text->length = lua_rawlen(state, -1);
    text->text = cleave_table_copy_text_at_top(&reader);
    lua_pop(state, 1);
    text->name = cleave_table_copy_text_at_top(&reader);
  }
  qsort(generation->texts, count, sizeof *generation->texts, compare_texts);
}

static void run_generate(lua_State *state, void *context) {
  static const luaL_Reg FUNCTIONS[] = {{"handle_fields", host_handle_fields},
                                       {"operators", host_operators},
                                       {"dtype_names", host_dtype_names},
                                       {NULL, NULL}};
  cleave_script_push_host(state);
  luaL_setfuncs(state, FUNCTIONS, 0);
  cleave_builder_register(state);
  lua_settop(state, 0);
  cleave_script_import(state, "meta");
  lua_getfield(state, 1, "generate");
  lua_call(state, 0, 1);
  lua_replace(state, 1);
  luaL_checktype(state, 1, LUA_TTABLE);
  read_texts(state, context);
}

cleave_status_t cleave_meta_generate(cleave_arena_t *arena, const cleave_meta_text_t **out_texts,
                                     uint32_t *out_count, cleave_error_t *error) {
  cleave_script_t *script = NULL;
  generation_t generation = {.arena = arena};
  *out_texts = NULL;
  *out_count = 0;
  CLEAVE_TRY(cleave_script_create("meta", CLEAVE_ERROR_RULE, cleave_host_register, &script, error));
  cleave_status_t status =
      cleave_script_call(script, run_generate, &generation, CLEAVE_SCRIPT_MODEL_BUDGET, error);
  cleave_script_destroy(script);
  if (status == CLEAVE_OK) {
    *out_texts = generation.texts;
    *out_count = generation.count;
  }
  return status;
}
