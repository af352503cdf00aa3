// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns: the flat lists of lua/cleave/compile.lua -> cleave_pattern_t. The Lua side has checked the
 * content. This code is safe without that: numbers are bounded, and the pattern is checked as a whole.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "script/state/table_reader.h"

enum { MAX_LABELS = 1024 };

static void read_literal(cleave_table_reader_t *reader, cleave_pattern_literal_t *literal) {
  lua_State *state = reader->state;
  if (lua_type(state, -1) == LUA_TSTRING) {
    literal->text = cleave_table_copy_text_at_top(reader);
    return;
  }
  literal->is_list = lua_istable(state, -1);
  literal->count = literal->is_list ? (uint32_t)lua_rawlen(state, -1) : 1;
  double *numbers = cleave_table_take(reader, literal->count, sizeof *numbers);
  for (uint32_t k = 0; k < literal->count; k++) {
    if (literal->is_list) {
      cleave_table_push_item(reader, k);
      numbers[k] = lua_tonumber(state, -1);
      lua_pop(state, 1);
    } else {
      numbers[k] = lua_tonumber(state, -1);
    }
  }
  literal->numbers = numbers;
}

static void read_attribute_test(cleave_table_reader_t *reader, cleave_attribute_test_t *test) {
  const char *kind = cleave_table_text(reader, "kind");
  test->name = cleave_table_text(reader, "name");
  if (strcmp(kind, "absent") == 0) {
    test->kind = CLEAVE_ATTRIBUTE_TEST_ABSENT;
  } else if (strcmp(kind, "range") == 0) {
    test->kind = CLEAVE_ATTRIBUTE_TEST_RANGE;
    test->low = cleave_table_number(reader, "low", -INFINITY, NULL);
    test->high = cleave_table_number(reader, "high", INFINITY, NULL);
  } else {
    test->kind = CLEAVE_ATTRIBUTE_TEST_EQUAL;
    test->or_absent = cleave_table_flag(reader, "or_absent");
    CLEAVE_TABLE_LIST(reader, "values", cleave_pattern_literal_t, read_literal, test->values,
                      test->value_count);
  }
}

/* The field as an expression, or NULL if there is none. */
static const cleave_expression_t *read_expression(cleave_table_reader_t *reader, const char *name,
                                                  cleave_expression_kind_t kind, int32_t line) {
  const cleave_expression_t *expression = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const char *text = cleave_table_text(reader, name);
  if (text != NULL &&
      cleave_expression_compile(reader->arena, text, line, kind, &expression, &error) != CLEAVE_OK) {
    cleave_script_raise_error(reader->state, &error);
  }
  return expression;
}

static void read_type(cleave_table_reader_t *reader, int32_t line, cleave_type_test_t *type) {
  uint32_t count = cleave_table_push_list(reader, "dtypes");
  for (uint32_t k = 0; k < count; k++) {
    cleave_table_push_item(reader, k);
    lua_Integer dtype = lua_tointeger(reader->state, -1);
    lua_pop(reader->state, 1);
    type->dtypes |= dtype > 0 && dtype < 32 ? UINT32_C(1) << dtype : 0;
  }
  lua_pop(reader->state, 1);
  type->rank = cleave_table_int(reader, "rank", -1);
  if (cleave_table_push_field(reader, "dims") == LUA_TTABLE) {
    uint32_t rank = (uint32_t)lua_rawlen(reader->state, -1);
    cleave_dim_test_t *dims = cleave_table_take(reader, rank, sizeof *dims);
    for (uint32_t k = 0; k < rank; k++) {
      cleave_table_push_item(reader, k);
      dims[k].symbol = cleave_table_text(reader, "symbol");
      dims[k].expression = read_expression(reader, "expression", CLEAVE_EXPRESSION_SIZE, line);
      dims[k].size =
          cleave_table_push_field(reader, "size") == LUA_TNUMBER ? lua_tointeger(reader->state, -1) : -1;
      lua_pop(reader->state, 2);
    }
    type->dims = dims;
  }
  lua_pop(reader->state, 1);
}

static void read_number(cleave_table_reader_t *reader, double *number) {
  *number = lua_tonumber(reader->state, -1);
}

static void read_constant(cleave_table_reader_t *reader, cleave_constant_test_t *constant) {
  constant->scalar = cleave_table_flag(reader, "scalar");
  constant->all_equal = cleave_table_flag(reader, "all_equal");
  constant->value = cleave_table_number(reader, "value", 0, &constant->has_value);
  constant->tolerance = cleave_table_number(reader, "tolerance", 0, NULL);
  constant->is_list = cleave_table_flag(reader, "is_list");
  constant->has_range = cleave_table_flag(reader, "has_range");
  constant->low = cleave_table_number(reader, "low", -INFINITY, NULL);
  constant->high = cleave_table_number(reader, "high", INFINITY, NULL);
  CLEAVE_TABLE_LIST(reader, "values", double, read_number, constant->values, constant->value_count);
}

static void read_input(cleave_table_reader_t *reader, cleave_pattern_input_t *input) {
  int32_t port = cleave_table_int(reader, "port", -1);
  input->port = cleave_table_flag(reader, "variadic") ? CLEAVE_PATTERN_PORT_VARIADIC
                : port < 0                            ? CLEAVE_PATTERN_PORT_ANY
                                                      : (uint32_t)port;
  input->pattern = (uint32_t)cleave_table_int(reader, "pattern", -1);
}

static void read_index(cleave_table_reader_t *reader, uint32_t *index) {
  *index = (uint32_t)lua_tointeger(reader->state, -1);
}

static cleave_pattern_kind_t kind_of(const char *name) {
  static const struct {
    const char *name;
    cleave_pattern_kind_t kind;
  } KINDS[] = {{"value", CLEAVE_PATTERN_VALUE},       {"constant", CLEAVE_PATTERN_CONSTANT},
               {"sequence", CLEAVE_PATTERN_SEQUENCE}, {"maybe", CLEAVE_PATTERN_MAYBE},
               {"oneof", CLEAVE_PATTERN_ONEOF},       {"repeated", CLEAVE_PATTERN_REPEATED},
               {"absent", CLEAVE_PATTERN_ABSENT},     {"output", CLEAVE_PATTERN_OUTPUT},
               {"variadic", CLEAVE_PATTERN_VARIADIC}, {"group", CLEAVE_PATTERN_GROUP}};
  for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
    if (strcmp(name, KINDS[k].name) == 0) {
      return KINDS[k].kind;
    }
  }
  return CLEAVE_PATTERN_OP;
}

static void read_node(cleave_table_reader_t *reader, cleave_pattern_node_t *node) {
  node->kind = kind_of(cleave_table_text(reader, "kind"));
  node->label = cleave_table_text(reader, "label");
  node->line = cleave_table_line(reader, "line", &node->file);
  node->shared = cleave_table_flag(reader, "shared");
  node->output = (uint32_t)cleave_table_int(reader, "output", 0);
  node->ops = cleave_table_ops(reader, "ops", &node->op_count);
  CLEAVE_TABLE_LIST(reader, "inputs", cleave_pattern_input_t, read_input, node->inputs, node->input_count);
  CLEAVE_TABLE_LIST(reader, "attributes", cleave_attribute_test_t, read_attribute_test, node->attributes,
                    node->attribute_count);
  read_type(reader, node->line, &node->type);
  node->where = read_expression(reader, "where", CLEAVE_EXPRESSION_CONDITION, node->line);
  read_constant(reader, &node->constant);
  CLEAVE_TABLE_LIST(reader, "children", uint32_t, read_index, node->children, node->child_count);
  node->min = (uint32_t)cleave_table_int(reader, "min", 1);
  node->max = (uint32_t)cleave_table_int(reader, "max", 1);
}

/* Labels in the order of pattern nodes, each once. */
static void collect_labels(cleave_table_reader_t *reader, cleave_pattern_t *pattern) {
  const char **labels = cleave_table_take(reader, pattern->node_count, sizeof *labels);
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    const char *label = pattern->nodes[k].label;
    uint32_t known = 0;
    while (label != NULL && known < pattern->label_count && strcmp(labels[known], label) != 0) {
      known++;
    }
    if (label != NULL && known == pattern->label_count) {
      labels[pattern->label_count++] = label;
      if (known > MAX_LABELS) {
        cleave_script_raise(reader->state, "a pattern has more than %d labels", MAX_LABELS);
      }
    }
  }
  pattern->labels = labels;
}

const cleave_pattern_t *cleave_table_pattern(cleave_table_reader_t *reader, const char *name,
                                             const char *rule) {
  luaL_checktype(reader->state, (cleave_table_push_field(reader, name), -1), LUA_TTABLE);
  cleave_pattern_t *pattern = cleave_table_take(reader, 1, sizeof *pattern);
  pattern->root = (uint32_t)cleave_table_int(reader, "root", 0);
  CLEAVE_TABLE_LIST(reader, "nodes", cleave_pattern_node_t, read_node, pattern->nodes, pattern->node_count);
  pattern->where =
      read_expression(reader, "where", CLEAVE_EXPRESSION_CONDITION, cleave_table_line(reader, "line", NULL));
  lua_pop(reader->state, 1);
  collect_labels(reader, pattern);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const char *kind = cleave_script_of(reader->state)->rule_kind;
  char subject[128];
  (void)snprintf(subject, sizeof subject, "%s '%s'", kind == NULL ? "pattern" : kind, rule);
  if (cleave_pattern_check_of(pattern, reader->file, subject, &error) != CLEAVE_OK) {
    (void)snprintf(error.rule, sizeof error.rule, "%s", rule);
    cleave_script_raise_checked(reader->state, &error);
  }
  return pattern;
}
