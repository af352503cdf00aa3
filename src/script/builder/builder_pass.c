// SPDX-License-Identifier: Apache-2.0
/*
 * The words of passes that change existing nodes: replace, remove, set_input, set_attribute, set_output. All
 * go through the editor, which checks and logs them.
 */
#include <string.h>

#include "base/text.h"
#include "script/builder/builder.h"
#include "script/handles/handles.h"
#include "script/sandbox/host.h"

/* The builder's editor; raises if the graph cannot be changed. */
static cleave_editor_t *editor_of(lua_State *state, const char *word) {
  cleave_editor_t *editor = cleave_builder_of(state)->editor;
  if (editor == NULL) {
    cleave_script_raise(state, "%s changes an existing graph: it is for passes", word);
    return NULL;
  }
  if (editor->only_adds) {
    cleave_script_raise(state,
                        "%s is for passes: a rewrite builds from new nodes, and returns what takes the place "
                        "of the match",
                        word);
  }
  editor->line = cleave_script_line(state);
  return editor;
}

static cleave_value_t check_value(lua_State *state, int index, const char *what) {
  cleave_value_t value = cleave_builder_read_value(state, index, CLEAVE_DTYPE_UNKNOWN, what);
  if (!cleave_value_exists(value)) {
    cleave_script_raise(state, "%s: expected a value, found nothing", what);
  }
  return value;
}

/* (from, to): readers of `from` read `to`. */
static int host_replace_uses(lua_State *state) {
  cleave_editor_t *editor = editor_of(state, "g.replace");
  cleave_value_t from = check_value(state, 1, "g.replace: what is replaced");
  cleave_value_t to = check_value(state, 2, "g.replace: what replaces it");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_builder_raise_if_failed(state, cleave_editor_replace_uses(editor, from, to, &error), &error);
  return 0;
}

/* (node) */
static int host_remove_node(lua_State *state) {
  cleave_editor_t *editor = editor_of(state, "g.remove");
  cleave_node_t node = cleave_handle_check_node(state, 1);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_builder_raise_if_failed(state, cleave_editor_remove_node(editor, node, &error), &error);
  cleave_handle_forget_order(state);
  return 0;
}

/* Input of a node by the name of its schema, or by its place from 1. */
static uint32_t check_port(lua_State *state, int index, const cleave_graph_t *graph, cleave_node_t node) {
  const cleave_op_t *op = cleave_node_op(graph, node);
  if (lua_isinteger(state, index)) {
    lua_Integer place = lua_tointeger(state, index);
    uint32_t count = cleave_node_input_count(graph, node);
    if (place < 1 || place > (lua_Integer)count) {
      cleave_script_raise(state, "g.set_input: operator '%s' has %d input%s here: there is no input %d",
                          op->name, (int)count, CLEAVE_PLURAL(count), (int)place);
    }
    return (uint32_t)place - 1;
  }
  const char *name = luaL_checkstring(state, index);
  uint32_t port = cleave_op_input_index(op, name);
  if (port == CLEAVE_INDEX_NONE) {
    (void)cleave_handle_raise_port(state, op, name, true);
  }
  return port;
}

/* (node, input, value or nil) */
static int host_set_input(lua_State *state) {
  cleave_editor_t *editor = editor_of(state, "g.set_input");
  cleave_node_t node = cleave_handle_check_node(state, 1);
  uint32_t port = check_port(state, 2, editor->graph, node);
  lua_settop(state, 3);
  cleave_value_t value =
      cleave_builder_read_value(state, 3, CLEAVE_DTYPE_UNKNOWN, "g.set_input: what it reads");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_builder_raise_if_failed(state, cleave_editor_set_input(editor, node, port, value, &error), &error);
  cleave_handle_forget_order(state);
  return 0;
}

/* (node, name, value) */
static int host_set_attribute(lua_State *state) {
  cleave_editor_t *editor = editor_of(state, "g.set_attribute");
  cleave_node_t node = cleave_handle_check_node(state, 1);
  const char *name = luaL_checkstring(state, 2);
  const cleave_op_t *op = cleave_node_op(editor->graph, node);
  const cleave_op_attribute_t *schema = cleave_op_find_attribute(op, name);
  if (schema == NULL) {
    return cleave_handle_raise_attribute(state, op, name);
  }
  cleave_attribute_t attribute;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  lua_settop(state, 3);
  cleave_builder_read_attribute(state, op, schema, &attribute);
  cleave_builder_raise_if_failed(state, cleave_editor_set_attribute(editor, node, &attribute, &error),
                                 &error);
  return 0;
}

/* Output of the graph by name, or by its place from 1. */
static uint32_t check_output(lua_State *state, int index, const cleave_graph_t *graph) {
  if (lua_isinteger(state, index)) {
    lua_Integer place = lua_tointeger(state, index);
    if (place < 1 || (lua_Unsigned)place > graph->outputs.count) {
      cleave_script_raise(state, "g.set_output: the graph has %d output%s: there is no output %d",
                          (int)graph->outputs.count, CLEAVE_PLURAL(graph->outputs.count), (int)place);
    }
    return (uint32_t)place - 1;
  }
  const char *name = luaL_checkstring(state, index);
  cleave_nearest_t nearest = {0};
  for (size_t k = 0; k < graph->outputs.count; k++) {
    const char *known = cleave_graph_output_name(graph, k);
    if (strcmp(known, name) == 0) {
      return (uint32_t)k;
    }
    cleave_nearest_offer(&nearest, name, known);
  }
  cleave_script_raise(state, "g.set_output: the graph has no output '%s'%s", name,
                      cleave_nearest_hint(&nearest));
  return 0;
}

/* (name or place, value) */
static int host_set_output(lua_State *state) {
  cleave_editor_t *editor = editor_of(state, "g.set_output");
  uint32_t output = check_output(state, 1, editor->graph);
  cleave_value_t value = check_value(state, 2, "g.set_output: what it is");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_builder_raise_if_failed(state, cleave_editor_set_output(editor, output, value, &error), &error);
  return 0;
}

void cleave_builder_register_pass_words(lua_State *state) {
  static const luaL_Reg FUNCTIONS[] = {
      {"replace_uses", host_replace_uses},   {"remove_node", host_remove_node}, {"set_input", host_set_input},
      {"set_attribute", host_set_attribute}, {"set_output", host_set_output},   {NULL, NULL}};
  luaL_setfuncs(state, FUNCTIONS, 0);
}
