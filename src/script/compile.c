/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the tables of the DSL and copies what they say into an arena. The DSL has checked the content; what
 * is read here still cannot break anything: numbers are bounded, and the pattern is checked as a whole.
 */
#include "script/compile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "script/host.h"

typedef struct reader {
  lua_State *state;
  cleave_arena_t *arena;
  const char *file;
} reader_t;

static void *take(reader_t *reader, size_t count, size_t size) {
  void *memory = cleave_arena_allocate(reader->arena, count > 0 ? count : 1, size);
  if (memory == NULL) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_error_out_of_memory(&error);
    cleave_script_raise_error(reader->state, &error);
  }
  return memory;
}

/* ---- fields of the table on top of the stack ---- */

static int push_field(reader_t *reader, const char *name) {
  luaL_checkstack(reader->state, 8, NULL);
  return lua_getfield(reader->state, -1, name);
}

static const char *copy_text_at_top(reader_t *reader) {
  size_t length = 0;
  const char *text = luaL_checklstring(reader->state, -1, &length);
  char *copy = cleave_arena_copy_text(reader->arena, text, length);
  if (copy == NULL) {
    (void)take(reader, SIZE_MAX, SIZE_MAX);
  }
  return copy;
}

static const char *read_text(reader_t *reader, const char *name) {
  const char *text = NULL;
  if (push_field(reader, name) == LUA_TSTRING) {
    text = copy_text_at_top(reader);
  }
  lua_pop(reader->state, 1);
  return text;
}

static int32_t read_int(reader_t *reader, const char *name, int32_t otherwise) {
  lua_Integer value = push_field(reader, name) == LUA_TNUMBER ? lua_tointeger(reader->state, -1) : otherwise;
  lua_pop(reader->state, 1);
  return value < INT32_MIN || value > INT32_MAX ? otherwise : (int32_t)value;
}

static double read_number(reader_t *reader, const char *name, double otherwise, bool *out_found) {
  bool found = push_field(reader, name) == LUA_TNUMBER;
  double value = found ? lua_tonumber(reader->state, -1) : otherwise;
  lua_pop(reader->state, 1);
  if (out_found != NULL) {
    *out_found = found;
  }
  return value;
}

static bool read_flag(reader_t *reader, const char *name) {
  (void)push_field(reader, name);
  bool value = lua_toboolean(reader->state, -1) != 0;
  lua_pop(reader->state, 1);
  return value;
}

/* Pushes the list of that name, or an empty one; returns its length. */
static uint32_t push_list(reader_t *reader, const char *name) {
  if (push_field(reader, name) != LUA_TTABLE) {
    lua_pop(reader->state, 1);
    lua_newtable(reader->state);
  }
  return (uint32_t)lua_rawlen(reader->state, -1);
}

static void push_item(reader_t *reader, uint32_t index) {
  luaL_checkstack(reader->state, 8, NULL);
  lua_rawgeti(reader->state, -1, (lua_Integer)index + 1);
}

/* ---- patterns ---- */

static const cleave_op_t *const *read_ops(reader_t *reader, uint32_t *out_count) {
  uint32_t count = push_list(reader, "ops");
  const cleave_op_t **ops = take(reader, count, sizeof *ops);
  for (uint32_t k = 0; k < count; k++) {
    push_item(reader, k);
    luaL_checktype(reader->state, -1, LUA_TLIGHTUSERDATA);
    ops[k] = lua_touserdata(reader->state, -1);
    lua_pop(reader->state, 1);
  }
  lua_pop(reader->state, 1);
  *out_count = count;
  return ops;
}

static void read_literal(reader_t *reader, cleave_pattern_literal_t *literal) {
  lua_State *state = reader->state;
  if (lua_type(state, -1) == LUA_TSTRING) {
    literal->text = copy_text_at_top(reader);
    return;
  }
  literal->is_list = lua_istable(state, -1);
  literal->count = literal->is_list ? (uint32_t)lua_rawlen(state, -1) : 1;
  double *numbers = take(reader, literal->count, sizeof *numbers);
  for (uint32_t k = 0; k < literal->count; k++) {
    if (literal->is_list) {
      push_item(reader, k);
      numbers[k] = lua_tonumber(state, -1);
      lua_pop(state, 1);
    } else {
      numbers[k] = lua_tonumber(state, -1);
    }
  }
  literal->numbers = numbers;
}

static void read_attribute_test(reader_t *reader, cleave_attribute_test_t *test) {
  const char *kind = read_text(reader, "kind");
  test->name = read_text(reader, "name");
  if (strcmp(kind, "absent") == 0) {
    test->kind = CLEAVE_ATTRIBUTE_TEST_ABSENT;
  } else if (strcmp(kind, "range") == 0) {
    test->kind = CLEAVE_ATTRIBUTE_TEST_RANGE;
    test->low = read_number(reader, "low", -INFINITY, NULL);
    test->high = read_number(reader, "high", INFINITY, NULL);
  } else {
    test->kind = CLEAVE_ATTRIBUTE_TEST_EQUAL;
    test->value_count = push_list(reader, "values");
    cleave_pattern_literal_t *values = take(reader, test->value_count, sizeof *values);
    for (uint32_t k = 0; k < test->value_count; k++) {
      push_item(reader, k);
      read_literal(reader, &values[k]);
      lua_pop(reader->state, 1);
    }
    lua_pop(reader->state, 1);
    test->values = values;
  }
}

static void read_type(reader_t *reader, cleave_type_test_t *type) {
  uint32_t count = push_list(reader, "dtypes");
  for (uint32_t k = 0; k < count; k++) {
    push_item(reader, k);
    lua_Integer dtype = lua_tointeger(reader->state, -1);
    lua_pop(reader->state, 1);
    type->dtypes |= dtype > 0 && dtype < 32 ? UINT32_C(1) << dtype : 0;
  }
  lua_pop(reader->state, 1);
  type->rank = read_int(reader, "rank", -1);
  if (push_field(reader, "dims") == LUA_TTABLE) {
    uint32_t rank = (uint32_t)lua_rawlen(reader->state, -1);
    cleave_dim_test_t *dims = take(reader, rank, sizeof *dims);
    for (uint32_t k = 0; k < rank; k++) {
      push_item(reader, k);
      dims[k].symbol = read_text(reader, "symbol");
      dims[k].size = push_field(reader, "size") == LUA_TNUMBER ? lua_tointeger(reader->state, -1) : -1;
      lua_pop(reader->state, 2);
    }
    type->dims = dims;
  }
  lua_pop(reader->state, 1);
}

static void read_inputs(reader_t *reader, cleave_pattern_node_t *node) {
  node->input_count = push_list(reader, "inputs");
  cleave_pattern_input_t *inputs = take(reader, node->input_count, sizeof *inputs);
  for (uint32_t k = 0; k < node->input_count; k++) {
    push_item(reader, k);
    int32_t port = read_int(reader, "port", -1);
    inputs[k].port = port < 0 ? CLEAVE_PATTERN_PORT_ANY : (uint32_t)port;
    inputs[k].pattern = (uint32_t)read_int(reader, "pattern", -1);
    lua_pop(reader->state, 1);
  }
  lua_pop(reader->state, 1);
  node->inputs = inputs;
}

static void read_children(reader_t *reader, cleave_pattern_node_t *node) {
  node->child_count = push_list(reader, "children");
  uint32_t *children = take(reader, node->child_count, sizeof *children);
  for (uint32_t k = 0; k < node->child_count; k++) {
    push_item(reader, k);
    children[k] = (uint32_t)lua_tointeger(reader->state, -1);
    lua_pop(reader->state, 1);
  }
  lua_pop(reader->state, 1);
  node->children = children;
}

static cleave_pattern_kind_t kind_of(const char *name) {
  static const struct {
    const char *name;
    cleave_pattern_kind_t kind;
  } KINDS[] = {{"value", CLEAVE_PATTERN_VALUE},       {"constant", CLEAVE_PATTERN_CONSTANT},
               {"sequence", CLEAVE_PATTERN_SEQUENCE}, {"maybe", CLEAVE_PATTERN_MAYBE},
               {"oneof", CLEAVE_PATTERN_ONEOF},       {"repeated", CLEAVE_PATTERN_REPEATED}};
  for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
    if (strcmp(name, KINDS[k].name) == 0) {
      return KINDS[k].kind;
    }
  }
  return CLEAVE_PATTERN_OP;
}

static void read_node(reader_t *reader, cleave_pattern_node_t *node) {
  node->kind = kind_of(read_text(reader, "kind"));
  node->label = read_text(reader, "label");
  node->line = read_int(reader, "line", 0);
  node->shared = read_flag(reader, "shared");
  node->output = (uint32_t)read_int(reader, "output", 0);
  node->ops = read_ops(reader, &node->op_count);
  read_inputs(reader, node);
  node->attribute_count = push_list(reader, "attributes");
  cleave_attribute_test_t *tests = take(reader, node->attribute_count, sizeof *tests);
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    push_item(reader, k);
    read_attribute_test(reader, &tests[k]);
    lua_pop(reader->state, 1);
  }
  lua_pop(reader->state, 1);
  node->attributes = tests;
  read_type(reader, &node->type);
  node->constant.scalar = read_flag(reader, "scalar");
  node->constant.all_equal = read_flag(reader, "all_equal");
  node->constant.value = read_number(reader, "value", 0, &node->constant.has_value);
  node->constant.tolerance = read_number(reader, "tolerance", 0, NULL);
  read_children(reader, node);
  node->min = (uint32_t)read_int(reader, "min", 1);
  node->max = (uint32_t)read_int(reader, "max", 1);
}

/* Labels in the order of pattern nodes, each once. */
static void collect_labels(reader_t *reader, cleave_pattern_t *pattern) {
  const char **labels = take(reader, pattern->node_count, sizeof *labels);
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    const char *label = pattern->nodes[k].label;
    uint32_t known = 0;
    while (label != NULL && known < pattern->label_count && strcmp(labels[known], label) != 0) {
      known++;
    }
    if (label != NULL && known == pattern->label_count) {
      labels[pattern->label_count++] = label;
    }
  }
  pattern->labels = labels;
}

static const cleave_pattern_t *read_pattern(reader_t *reader, const char *rule) {
  cleave_pattern_t *pattern = take(reader, 1, sizeof *pattern);
  pattern->root = (uint32_t)read_int(reader, "root", 0);
  pattern->node_count = push_list(reader, "nodes");
  cleave_pattern_node_t *nodes = take(reader, pattern->node_count, sizeof *nodes);
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    push_item(reader, k);
    read_node(reader, &nodes[k]);
    lua_pop(reader->state, 1);
  }
  lua_pop(reader->state, 1);
  pattern->nodes = nodes;
  collect_labels(reader, pattern);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (cleave_pattern_check(pattern, reader->file, rule, &error) != CLEAVE_OK) {
    (void)snprintf(error.rule, sizeof error.rule, "%s", rule);
    cleave_script_raise_checked(reader->state, &error);
  }
  return pattern;
}

/* ---- rules ---- */

static int read_function(reader_t *reader, const char *name) {
  if (push_field(reader, name) != LUA_TFUNCTION) {
    lua_pop(reader->state, 1);
    return LUA_NOREF;
  }
  return luaL_ref(reader->state, LUA_REGISTRYINDEX);
}

static cleave_region_mode_t mode_of(const char *name) {
  if (name == NULL || strcmp(name, "backend") == 0) {
    return CLEAVE_REGION_BACKEND;
  }
  if (strcmp(name, "ops") == 0) {
    return CLEAVE_REGION_OPS;
  }
  return strcmp(name, "supported") == 0 ? CLEAVE_REGION_SUPPORTED : CLEAVE_REGION_SELECTOR;
}

static void read_rule(reader_t *reader, int options, cleave_rule_t *rule) {
  cleave_script_rule_t *functions = take(reader, 1, sizeof *functions);
  rule->kind = strcmp(read_text(reader, "kind"), "fuse") == 0 ? CLEAVE_RULE_FUSE : CLEAVE_RULE_REGION;
  rule->name = read_text(reader, "name");
  rule->doc = read_text(reader, "doc");
  rule->file = reader->file;
  rule->line = read_int(reader, "line", 0);
  rule->priority = read_int(reader, "priority", 0);
  functions->script = cleave_script_of(reader->state);
  functions->kind = rule->kind == CLEAVE_RULE_FUSE ? "fuse" : "region";
  functions->name = rule->name;
  functions->line = rule->line;
  functions->options = options;
  functions->where = read_function(reader, "where");
  functions->supported = read_function(reader, "supported");
  functions->selector = read_function(reader, "selector");
  functions->review = read_function(reader, "review");
  cleave_script_set_rule(functions->script, functions->kind, rule->name, rule->line);
  if (rule->kind == CLEAVE_RULE_FUSE) {
    luaL_checktype(reader->state, (push_field(reader, "pattern"), -1), LUA_TTABLE);
    rule->pattern = read_pattern(reader, rule->name);
    lua_pop(reader->state, 1);
  } else {
    const char *mode = read_text(reader, "mode");
    rule->mode = mode_of(mode);
    rule->ops = read_ops(reader, &rule->op_count);
    rule->min_nodes = (uint32_t)read_int(reader, "min_nodes", 0);
  }
  cleave_script_set_rule(functions->script, NULL, NULL, 0);
  cleave_script_bind(rule, functions);
}

void cleave_script_compile(lua_State *state, cleave_arena_t *arena, const char *file,
                           cleave_ruleset_t *out_ruleset) {
  reader_t reader = {.state = state, .arena = arena, .file = file};
  luaL_checktype(state, -1, LUA_TTABLE);
  out_ruleset->name = read_text(&reader, "name");
  out_ruleset->backend = read_text(&reader, "backend");
  out_ruleset->file = file;
  (void)push_field(&reader, "options");
  int options = luaL_ref(state, LUA_REGISTRYINDEX);
  out_ruleset->rule_count = push_list(&reader, "rules");
  cleave_rule_t *rules = take(&reader, out_ruleset->rule_count, sizeof *rules);
  for (uint32_t k = 0; k < out_ruleset->rule_count; k++) {
    push_item(&reader, k);
    read_rule(&reader, options, &rules[k]);
    lua_pop(state, 1);
  }
  lua_pop(state, 1);
  out_ruleset->rules = rules;
}
