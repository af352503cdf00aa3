// SPDX-License-Identifier: Apache-2.0
/* Rule files: what they compile to, and the exact message for everything that can be wrong in one. */
#include "script/rules/rules.h"

#include "unit.h"

/* The one ruleset of a file without named rulesets. */
static const cleave_ruleset_t *ruleset_of(const cleave_rules_t *rules) {
  uint32_t count = 0;
  const cleave_ruleset_t *rulesets = cleave_rules_rulesets(rules, &count);
  ck_assert_uint_eq(count, 1);
  return rulesets;
}

static cleave_status_t load_with(const char *text, const cleave_setting_t *settings, size_t count, bool *used,
                                 cleave_rules_t **rules, cleave_error_t *error) {
  return cleave_rules_load(NULL,
                           &(cleave_rule_source_t){.path = "r.lua", .text = text, .length = strlen(text)},
                           &(cleave_script_settings_t){settings, count, used}, NULL, rules, error);
}

static cleave_status_t load(const char *text, cleave_rules_t **rules, cleave_error_t *error) {
  return load_with(text, NULL, 0, NULL, rules, error);
}

typedef struct mistake {
  const char *text;
  const char *message;
  const char *rule; /* in the error; NULL: none */
} mistake_t;

static void check_mistakes(const mistake_t *mistakes, size_t count, const char *head, const char *tail) {
  for (size_t k = 0; k < count; k++) {
    char text[1024];
    cleave_rules_t *rules = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)snprintf(text, sizeof text, "%s%s%s", head, mistakes[k].text, tail);
    ck_assert_msg(load(text, &rules, &error) == CLEAVE_ERROR_RULE, "%s: status %d %s", text, error.status,
                  error.message);
    ck_assert_ptr_null(rules);
    ck_assert_str_eq(error.message, mistakes[k].message);
    ck_assert_str_eq(error.rule, mistakes[k].rule != NULL ? mistakes[k].rule : "");
    ck_assert_str_eq(error.file, "r.lua");
  }
}

/* ---- mistakes ---- */

UNIT_TEST(says_what_is_wrong_in_an_operator) {
  static const mistake_t MISTAKES[] = {
      {"op 'Convv'", "r.lua:3: fuse 'x': operator 'Convv' is unknown (did you mean 'Conv'?)", "x"},
      {"op { 'Conv', 'Reluu' }", "r.lua:3: fuse 'x': operator 'Reluu' is unknown (did you mean 'Relu'?)",
       "x"},
      {"op { 'Conv', az = 'x' }", "r.lua:3: fuse 'x': op has no key 'az' (did you mean 'as'?)", "x"},
      {"op { 'Conv', strides = { 1, 1 } }",
       "r.lua:3: fuse 'x': op has no key 'strides' (attributes go into attrs = { strides = ... })", "x"},
      {"op { 'Conv', attrs = { stride = { 1, 1 } } }",
       "r.lua:3: fuse 'x': operator 'Conv' has no attribute 'stride' (did you mean 'strides'?)", "x"},
      {"op { 'Conv', attrs = { strides = 1 } }",
       "r.lua:3: fuse 'x': attribute 'strides': expected a value of kind list of integers, found 1", "x"},
      {"op { 'Conv', attrs = { group = 1.5 } }",
       "r.lua:3: fuse 'x': attribute 'group': expected a value of kind integer, found 1.5", "x"},
      {"op { 'Conv', attrs = { auto_pad = 3 } }",
       "r.lua:3: fuse 'x': attribute 'auto_pad': expected a value of kind string, found 3", "x"},
      {"op { 'Conv', attrs = { strides = range { min = 2 } } }",
       "r.lua:3: fuse 'x': attribute 'strides': a range fits numbers, this is a list of integers", "x"},
      {"op { 'Conv', attrs = { group = one_of { 1, 'x' } } }",
       "r.lua:3: fuse 'x': attribute 'group': expected a value of kind integer, found 'x'", "x"},
      {"op { attrs = { group = 1 } }", "r.lua:3: fuse 'x': op: attribute 'group' is named, but no operator",
       "x"},
      {"op { 'Conv', inputs = { weight = constant 'w' } }",
       "r.lua:3: fuse 'x': operator 'Conv' has no input 'weight' (it has X, W, B)", "x"},
      {"op { 'BatchNormalization', inputs = { input_meen = constant 'm' } }",
       "r.lua:3: fuse 'x': operator 'BatchNormalization' has no input 'input_meen' (did you mean "
       "'input_mean'?)",
       "x"},
      {"op { 'Conv', inputs = { w = 'w' } }",
       "r.lua:3: fuse 'x': op: input 'w' is the string 'w' (write any 'w', constant 'w' or op 'w')", "x"},
      {"op { 'Conv', inputs = { any 'a', any 'b', any 'c', any 'd' } }",
       "r.lua:3: fuse 'x': operator 'Conv' has 3 inputs, the pattern gives 4", "x"},
      {"op { 'Conv', inputs = { w = constant 'w', any 'x', any 'y' } }",
       "r.lua:3: fuse 'x': op: input 2 is given twice", "x"},
      {"op { { 'Conv', 'Gemm' }, inputs = { B = any 'x' } }",
       "r.lua:3: fuse 'x': input 'B' is input 3 of 'Conv' but 2 of 'Gemm'", "x"},
      {"op { 'Conv', dtype = 'float33' }",
       "r.lua:3: fuse 'x': op: dtype 'float33' is unknown (did you mean 'float32'?); there are float32, "
       "uint8, int8, uint16, int16, int32, int64, string, bool, float16, float64, uint32, uint64, bfloat16",
       "x"},
      {"op { 'Conv', rank = 9 }", "r.lua:3: fuse 'x': op: rank is 9, expected 0 to 8", "x"},
      {"op { 'Conv', rank = 3, shape = { 'N', 'C' } }",
       "r.lua:3: fuse 'x': op: rank is 3, but shape has 2 dimensions", "x"},
      {"op { 'Conv', shape = { 'N', -1 } }",
       "r.lua:3: fuse 'x': op: shape: expected a size, a name or '?', found -1", "x"},
      {"op { 'Conv', as = 'a b' }",
       "r.lua:3: fuse 'x': op: as: 'a b' is not a name (letters, digits, '_', '-' and '.', at most 63)", "x"},
      {"op { 'Conv', shared = 1 }", "r.lua:3: fuse 'x': op: shared: expected a boolean, found 1", "x"},
      {"op { 'Conv', output = 2 }",
       "r.lua:3: fuse 'x': operator 'Conv' has 1 outputs, the pattern asks for output 2", "x"},
      {"op { 'Conv', output = 'Z' }",
       "r.lua:3: fuse 'x': operator 'Conv' has no output 'Z' (did you mean 'Y'?)", "x"},
  };
  check_mistakes(MISTAKES, sizeof MISTAKES / sizeof MISTAKES[0],
                 "return ruleset { name = 'r',\n fuse 'x' {\n pattern = ", " } }");
}

UNIT_TEST(says_what_is_wrong_in_a_pattern) {
  static const mistake_t MISTAKES[] = {
      {"maybe(op 'Conv')", "r.lua:2: fuse 'x': pattern must begin with an operator", "x"},
      {"any 'x'", "r.lua:2: fuse 'x': pattern must begin with an operator", "x"},
      {"any { name = 'x' } >> op 'Relu'", "r.lua:2: fuse 'x': any has no key 'name'", "x"},
      {"constant { tolerance = 1 } >> op 'Relu'",
       "r.lua:2: fuse 'x': constant: tolerance is given, but no value", "x"},
      {"constant { valeu = 1 } >> op 'Relu'",
       "r.lua:2: fuse 'x': constant has no key 'valeu' (did you mean 'value'?)", "x"},
      {"op 'Conv' >> 3", "r.lua:2: '>>': expected a pattern or the name of an operator, found 3", NULL},
      {"op 'Conv' >> nil", "r.lua:2: '>>': expected a pattern or the name of an operator, found nothing",
       NULL},
      {"op 'Conv' | {}", "r.lua:2: '|': expected a pattern or the name of an operator, found a table", NULL},
      {"op 'Conv' >> one_of { 1 }",
       "r.lua:2: '>>': expected a pattern or the name of an operator, found a list of values", NULL},
      {"op 'Conv' >> function() return 1 end",
       "r.lua:2: '>>': what the function returned: expected a pattern or the name of an operator, found 1",
       NULL},
      {"3", "r.lua:2: fuse 'x': pattern: expected a pattern or the name of an operator, found 3", "x"},
      {"nil", "r.lua:2: fuse 'x': no pattern, and none of ops, supported and selector", "x"},
      {"op 'Conv' >> any 'x'", "r.lua:2: fuse 'x': only the first part of a sequence can be a value", "x"},
      {"op 'Conv' >> repeated { op 'Relu', min = 3, max = 2 }",
       "r.lua:2: fuse 'x': repeated: 3 to 2 times, expected 0 <= min <= max, 1 <= max <= 4096", "x"},
      {"op 'Conv' >> repeated { op 'Relu', mix = 3 }",
       "r.lua:2: repeated has no key 'mix' (did you mean 'min'?)", NULL},
      {"op 'Conv' >> repeated(maybe(op 'Relu'))", "r.lua:2: fuse 'x': 'repeated' needs an operator in it",
       "x"},
      {"op 'Conv' >> oneof {}", "r.lua:2: oneof: expected at least one alternative", NULL},
      {"op 'Conv' >> maybe {}",
       "r.lua:2: maybe: expected one pattern, found 0 (write maybe(a >> b) for one after the other, maybe(a "
       "| b) for one of them)",
       NULL},
      {"op 'Conv' >> maybe { op 'Relu', when = 1 }",
       "r.lua:2: fuse 'x': maybe: when: expected a boolean, found 1", "x"},
      {"range { min = 2, mux = 3 }", "r.lua:2: range has no key 'mux' (did you mean 'max'?)", NULL},
      {"op(3)", "r.lua:2: op: expected a table, found 3", NULL},
      {"op { 'Conv', inputs = { x = op { 'Relu', inputs = { y = any 'z' } } } }",
       "r.lua:2: fuse 'x': operator 'Relu' has no input 'y' (did you mean 'X'?)", "x"},
      {"op 'Conv', were = function() end",
       "r.lua:2: fuse 'x': fuse has no key 'were' (did you mean 'where'?)", "x"},
      {"op 'Conv', where = true",
       "r.lua:2: fuse 'x': where: expected a function or a condition as a string, found true", "x"},
      {"op 'Conv', priority = 1.5", "r.lua:2: fuse 'x': priority: expected an integer, found 1.5", "x"},
      {"op 'Conv', enabled = 'yes'", "r.lua:2: fuse 'x': enabled: expected a boolean, found 'yes'", "x"},
      {"op 'Conv', doc = 7", "r.lua:2: fuse 'x': doc: expected a string, found 7", "x"},
  };
  check_mistakes(MISTAKES, sizeof MISTAKES / sizeof MISTAKES[0],
                 "return ruleset { name = 'r',\n fuse 'x' { pattern = ", " } }");
}

UNIT_TEST(says_what_is_wrong_in_a_ruleset) {
  static const mistake_t MISTAKES[] = {
      {"return 5", "r.lua:1: the file returns 5: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"", "r.lua:1: the file returns nothing: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"return op 'Conv'",
       "r.lua:1: the file returns a pattern: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"return fuse 'x' { pattern = op 'Conv' }",
       "r.lua:1: the file returns a fuse: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"-- one\n\nlocal x = 2\n\n",
       "r.lua:3: the file returns nothing: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"\nlocal r = ruleset { name = 'r' }\nlocal x = 1",
       "r.lua:2: the ruleset is made, but not returned: write 'return ruleset { ... }'", NULL},
      {"return ruleset { name = 'r',\n ruleset 'a' { ruleset 'b' {} } }",
       "r.lua:2: ruleset 'a': entry 1 is a ruleset, expected fuse, gradient, pass, region, rewrite, stage or "
       "test",
       NULL},
      {"return ruleset { name = 'r',\n ruleset 'a' {}, strategy 'a' {} }",
       "r.lua:2: ruleset 'a' is defined twice, first in line 2", NULL},
      {"return ruleset 'a' {}",
       "r.lua:1: the file returns a ruleset: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"\nlocal p = 'Conv' >> 'Relu'",
       "r.lua:2: 'Conv' >> 'Relu': neither side is a pattern (write op 'Conv' >> 'Relu')", NULL},
      {"local p = 'Conv' | 'Gemm'",
       "r.lua:1: 'Conv' | 'Gemm': neither side is a pattern (write op 'Conv' | 'Gemm')", NULL},
      {"\n\nlocal p = maybe { 'Add', 'Relu' }",
       "r.lua:3: maybe: expected one pattern, found 2 (write maybe(a >> b) for one after the other, "
       "maybe(a | b) for one of them)",
       NULL},
      {"return ruleset { name = 'r',\n options = { m = option.enum('a', 'doc', { 'a', {} }) } }",
       "r.lua:2: option.enum: choice 2 is a table, expected a string", NULL},
      {"return ruleset { name = 'r',\n options = { m = option.enum('a', 'doc', {}) } }",
       "r.lua:2: option.enum: expected a list of the choices as third argument", NULL},
      {"\nlocal m = option.number(0/0, 'doc')",
       "r.lua:2: option.number: default is not a number, expected a number", NULL},
      {"\nlocal m = option.number(1, 'doc', { max = 0/0 })",
       "r.lua:2: option.number: max is not a number, expected a number", NULL},
      {"\nlocal m = option.integer(1, 'doc', { min = 2, max = 1 })",
       "r.lua:2: option.integer: min is 2, more than max, which is 1", NULL},
      {"return ruleset {}", "r.lua:1: ruleset: name: expected a string, found nothing", NULL},
      {"return ruleset { name = 'r', bakend = 'cpu' }",
       "r.lua:1: ruleset has no key 'bakend' (did you mean 'backend'?)", NULL},
      {"return ruleset { name = 'r', backend = 5 }", "r.lua:1: ruleset: backend: expected a string, found 5",
       NULL},
      {"return ruleset { name = 'r',\n\n fuse 'x' }",
       "r.lua:1: ruleset: entry 1 is a function, expected fuse, gradient, pass, region, rewrite, stage or "
       "test "
       "(fuse 'name' "
       "without { ... "
       "}?)",
       NULL},
      {"return ruleset { name = 'r', 'x' }",
       "r.lua:1: ruleset: entry 1 is 'x', expected fuse, gradient, pass, region, rewrite, stage or test",
       NULL},
      {"return ruleset { name = 'r',\nregion 'g' {},\nregion 'g' {} }",
       "r.lua:3: region 'g' is defined twice, first in line 2", NULL},
      {"return ruleset { name = 'r', region 'g' { ops = { 'Cnv' } } }",
       "r.lua:1: region 'g': operator 'Cnv' is unknown (did you mean 'Conv'?)", "g"},
      {"return ruleset { name = 'r', region 'g' { opps = { 'Conv' } } }",
       "r.lua:1: region 'g': region has no key 'opps' (did you mean 'ops'?)", "g"},
      {"return ruleset { name = 'r', region 'g' { ops = {}, selector = function() end } }",
       "r.lua:1: region 'g': has both ops and selector, expected one of ops, supported, selector and "
       "partitioner",
       "g"},
      {"return ruleset { name = 'r', region 'g' { ops = 'Conv' } }",
       "r.lua:1: region 'g': ops: expected a table, found 'Conv'", "g"},
      {"return ruleset { name = 'r', region 'g' { min_nodes = -1 } }",
       "r.lua:1: region 'g': min_nodes is -1, expected 0 to 2147483647", "g"},
      {"return ruleset { name = 'r', options = { x = 3 } }",
       "r.lua:1: options: 'x' is 3, expected option.boolean(...) or its like", NULL},
      {"return ruleset { name = 'r', options = { x = option.integer(3.5) } }",
       "r.lua:1: option.integer: default is 3.5, expected an integer", NULL},
      {"return ruleset { name = 'r', options = { x = option.number(3, 'd', { 5, 7 }) } }",
       "r.lua:1: option.number: default is 3, expected 5 to 7", NULL},
      {"return ruleset { name = 'r', options = { x = option.enum('a', 'd') } }",
       "r.lua:1: option.enum: expected a list of the choices as third argument", NULL},
      {"return ruleset { name = 'r', options = { x = option.enum('a', 'd', { 'b', 'c' }) } }",
       "r.lua:1: option.enum: default is 'a', expected one of b, c", NULL},
      {"return ruleset { name = 'r', test 'a b' { graph = 1 } }",
       "r.lua:1: test 'a b': graph: expected a function, found 1", "a b"},
      {"return ruleset { name = 'r', test 'a b' { grph = 1 } }",
       "r.lua:1: test 'a b': test has no key 'grph' (did you mean 'graph'?)", "a b"},
      {"local unused = op { 'Conv',\n attrs = { bad = 1 } }\nreturn ruleset { name = 'r' }",
       "r.lua:1: operator 'Conv' has no attribute 'bad'", NULL},
      {"fuse 'a b' {}", "r.lua:1: fuse: 'a b' is not a name (letters, digits, '_', '-' and '.', at most 63)",
       NULL},
      {"local t = {} t.t = t op(t)", "r.lua:1: tables are nested more than 8 deep", NULL},
      {"local p = op 'Relu' for k = 1, 5000 do p = p >> op 'Relu' end",
       "r.lua:1: '>>': more than 1000 parts in a row", NULL},
      {"local p = op 'Relu' for k = 1, 70 do p = oneof { p } end return ruleset { name = 'r', fuse 'x' { "
       "pattern "
       "= p } }",
       "r.lua:1: fuse 'x': the pattern is nested more than 64 deep", "x"},
      {"local function f(x) return nil .. x end\nlocal p = op 'Relu' >> f",
       "r.lua:1: attempt to concatenate a nil value; called at line 2", NULL},
  };
  check_mistakes(MISTAKES, sizeof MISTAKES / sizeof MISTAKES[0], "", "");
}

UNIT_TEST(keeps_long_paths_whole_in_messages) {
  static const char PATH[] = "/a/very/long/path/that/lua/would/show/cut/off/in/its/own/messages/rules.lua";
  static const char TEXT[] = "\nlocal p = opp 'x'";
  cleave_rules_t *rules = NULL;
  unit_fails(
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = PATH, .text = TEXT, .length = sizeof TEXT - 1},
                        NULL, NULL, &rules, e),
      CLEAVE_ERROR_RULE,
      "/a/very/long/path/that/lua/would/show/cut/off/in/its/own/messages/rules.lua:2: unknown word 'opp' "
      "(did you mean 'op'?)");
}

/* ---- what comes out ---- */

static const cleave_pattern_node_t *root_of(const cleave_rule_t *rule) {
  return &rule->pattern->nodes[rule->pattern->root];
}

static const cleave_pattern_node_t *child_of(const cleave_rule_t *rule, const cleave_pattern_node_t *node,
                                             uint32_t index) {
  ck_assert_uint_lt(index, node->child_count);
  return &rule->pattern->nodes[node->children[index]];
}

UNIT_TEST(compiles_the_rules_of_the_readme) {
  cleave_rules_t *rules = NULL;
  unit_ok(
      load("local conv = op { 'Conv', as = 'conv', inputs = { w = constant 'w' } }\n"
           "local bn = op { 'BatchNormalization', as = 'bn' }\n"
           "local sum = op { 'Add', as = 'sum', inputs = { any 'residual' } }\n"
           "local act = op { { 'Relu', 'Clip' }, as = 'act' }\n"
           "return ruleset {\n"
           "  name = 'conv_bn_relu', backend = 'onednn',\n"
           "  options = { residual = option.boolean(true, 'fuse the residual add') },\n"
           "  fuse 'conv_bn_act' {\n"
           "    doc = 'All of it.',\n"
           "    pattern = conv >> maybe(bn) >> maybe(sum) >> maybe(act),\n"
           "    where = function(m) return m.conv.dtype == 'float32' end,\n"
           "  },\n"
           "  region 'island' { ops = { 'Conv', 'MaxPool' }, review = function() return true end,\n"
           "    min_nodes = 3, priority = 5 },\n"
           "  test 'folds the batch norm' { graph = function() end, expect = { conv_bn_act = 1 } },\n"
           "}\n",
           &rules, e));
  const cleave_ruleset_t *set = ruleset_of(rules);
  ck_assert_str_eq(set->name, "conv_bn_relu");
  ck_assert_str_eq(set->backend, "onednn");
  ck_assert_str_eq(set->file, "r.lua");
  ck_assert_uint_eq(set->rule_count, 2);

  const cleave_rule_t *fuse = &set->rules[0];
  ck_assert_int_eq(fuse->kind, CLEAVE_RULE_FUSE);
  ck_assert_str_eq(fuse->name, "conv_bn_act");
  ck_assert_str_eq(fuse->doc, "All of it.");
  ck_assert_int_eq(fuse->line, 8);
  ck_assert_int_eq(fuse->priority, 0);
  ck_assert(fuse->where != NULL);
  const cleave_pattern_node_t *root = root_of(fuse);
  ck_assert_int_eq(root->kind, CLEAVE_PATTERN_SEQUENCE);
  ck_assert_uint_eq(root->child_count, 4);
  ck_assert_uint_eq(fuse->pattern->label_count, 6);

  const cleave_pattern_node_t *conv = child_of(fuse, root, 0);
  ck_assert_int_eq(conv->kind, CLEAVE_PATTERN_OP);
  ck_assert_str_eq(conv->label, "conv");
  ck_assert_int_eq(conv->line, 1);
  ck_assert_uint_eq(conv->op_count, 1);
  ck_assert_ptr_eq(conv->ops[0], cleave_op_get(CLEAVE_OP_Conv));
  ck_assert_uint_eq(conv->input_count, 1);
  ck_assert_uint_eq(conv->inputs[0].port, 1);
  const cleave_pattern_node_t *weight = &fuse->pattern->nodes[conv->inputs[0].pattern];
  ck_assert_int_eq(weight->kind, CLEAVE_PATTERN_CONSTANT);
  ck_assert_str_eq(weight->label, "w");

  const cleave_pattern_node_t *sum = child_of(fuse, child_of(fuse, root, 2), 0);
  ck_assert_uint_eq(sum->inputs[0].port, CLEAVE_PATTERN_PORT_ANY);
  ck_assert_int_eq(fuse->pattern->nodes[sum->inputs[0].pattern].kind, CLEAVE_PATTERN_VALUE);
  const cleave_pattern_node_t *act = child_of(fuse, child_of(fuse, root, 3), 0);
  ck_assert_uint_eq(act->op_count, 2);
  ck_assert_ptr_eq(act->ops[1], cleave_op_get(CLEAVE_OP_Clip));

  const cleave_rule_t *region = &set->rules[1];
  ck_assert_int_eq(region->kind, CLEAVE_RULE_REGION);
  ck_assert_int_eq(region->mode, CLEAVE_REGION_OPS);
  ck_assert_uint_eq(region->op_count, 2);
  ck_assert_uint_eq(region->min_nodes, 3);
  ck_assert_int_eq(region->priority, 5);
  ck_assert(region->review != NULL);
  ck_assert(region->supported == NULL);
  cleave_rules_destroy(rules);
}

UNIT_TEST(compiles_attribute_and_type_tests) {
  cleave_rules_t *rules = NULL;
  unit_ok(
      load("return ruleset { name = 'r', fuse 'x' { pattern = op { 'Conv',\n"
           "  attrs = { strides = { 2, 2 }, group = range { min = 2 }, dilations = absent,\n"
           "    auto_pad = oneof { 'NOTSET', 'VALID' } },\n"
           "  dtype = { 'float32', 'float16' }, shape = { 'N', 64, '?', 'N' }, shared = true, output = 1,\n"
           "  inputs = { X = constant { value = 0.5, tolerance = 0.1, scalar = true } } } } }",
           &rules, e));
  const cleave_rule_t *rule = &ruleset_of(rules)->rules[0];
  const cleave_pattern_node_t *node = root_of(rule);
  ck_assert_uint_eq(node->attribute_count, 4); /* in the order of names */
  ck_assert_str_eq(node->attributes[0].name, "auto_pad");
  ck_assert_int_eq(node->attributes[0].kind, CLEAVE_ATTRIBUTE_TEST_EQUAL);
  ck_assert_uint_eq(node->attributes[0].value_count, 2);
  ck_assert_str_eq(node->attributes[0].values[1].text, "VALID");
  ck_assert_int_eq(node->attributes[1].kind, CLEAVE_ATTRIBUTE_TEST_ABSENT);
  ck_assert_str_eq(node->attributes[2].name, "group");
  ck_assert_int_eq(node->attributes[2].kind, CLEAVE_ATTRIBUTE_TEST_RANGE);
  ck_assert_double_eq(node->attributes[2].low, 2);
  ck_assert(node->attributes[2].high > 1e300);
  ck_assert(node->attributes[3].values[0].is_list);
  ck_assert_uint_eq(node->attributes[3].values[0].count, 2);
  ck_assert_double_eq(node->attributes[3].values[0].numbers[1], 2);
  ck_assert_uint_eq(node->type.dtypes, 1U << CLEAVE_DTYPE_F32 | 1U << CLEAVE_DTYPE_F16);
  ck_assert_int_eq(node->type.rank, 4);
  ck_assert_str_eq(node->type.dims[0].symbol, "N");
  ck_assert_int_eq(node->type.dims[1].size, 64);
  ck_assert_ptr_null(node->type.dims[2].symbol);
  ck_assert_int_eq(node->type.dims[2].size, -1);
  ck_assert(node->shared);
  ck_assert_uint_eq(node->output, 0);
  const cleave_pattern_node_t *constant = &rule->pattern->nodes[node->inputs[0].pattern];
  ck_assert(constant->constant.scalar && constant->constant.has_value && !constant->constant.all_equal);
  ck_assert_double_eq(constant->constant.value, 0.5);
  ck_assert_double_eq(constant->constant.tolerance, 0.1);
  cleave_rules_destroy(rules);
}

UNIT_TEST(takes_numbers_texts_and_functions_as_patterns) {
  cleave_rules_t *rules = NULL;
  unit_ok(load(
      "local function silu(x) return op { 'Mul', inputs = { x, op { 'Sigmoid', inputs = { x } } } } end\n"
      "return ruleset { name = 'r',\n"
      "  fuse 'f' { pattern = op 'Conv' >> silu },\n"
      "  fuse 't' { pattern = op 'Conv' >> 'Relu' },\n"
      "  fuse 'n' { pattern = op { 'Pow', inputs = { Y = 3 } } },\n"
      "  fuse 'o' { pattern = oneof { 'Relu', op 'Tanh' } >> repeated { 'Exp' | op 'Log', max = 7 } },\n"
      "  fuse 's' { pattern = 'Softmax' },\n"
      "}",
      &rules, e));
  const cleave_ruleset_t *set = ruleset_of(rules);
  ck_assert_uint_eq(set->rule_count, 5);
  const cleave_pattern_node_t *mul = root_of(&set->rules[0]);
  ck_assert_ptr_eq(mul->ops[0], cleave_op_get(CLEAVE_OP_Mul));
  ck_assert_uint_eq(mul->input_count, 2);
  const cleave_pattern_node_t *sigmoid = &set->rules[0].pattern->nodes[mul->inputs[1].pattern];
  ck_assert_uint_eq(sigmoid->inputs[0].pattern, mul->inputs[0].pattern); /* the same part */
  ck_assert_uint_eq(set->rules[0].pattern->node_count, 3);
  ck_assert_ptr_eq(child_of(&set->rules[1], root_of(&set->rules[1]), 1)->ops[0],
                   cleave_op_get(CLEAVE_OP_Relu));
  const cleave_pattern_node_t *pow = root_of(&set->rules[2]);
  const cleave_pattern_node_t *three = &set->rules[2].pattern->nodes[pow->inputs[0].pattern];
  ck_assert_uint_eq(pow->inputs[0].port, 1);
  ck_assert(three->kind == CLEAVE_PATTERN_CONSTANT && three->constant.scalar && three->constant.has_value);
  ck_assert_double_eq(three->constant.value, 3);
  const cleave_pattern_node_t *repeated = child_of(&set->rules[3], root_of(&set->rules[3]), 1);
  ck_assert_int_eq(repeated->kind, CLEAVE_PATTERN_REPEATED);
  ck_assert_uint_eq(repeated->min, 1);
  ck_assert_uint_eq(repeated->max, 7);
  ck_assert_int_eq(child_of(&set->rules[3], repeated, 0)->kind, CLEAVE_PATTERN_ONEOF);
  ck_assert_ptr_eq(root_of(&set->rules[4])->ops[0], cleave_op_get(CLEAVE_OP_Softmax));
  cleave_rules_destroy(rules);
}

UNIT_TEST(binds_one_table_to_one_part) {
  cleave_rules_t *rules = NULL;
  unit_ok(
      load("local x = op 'Relu'\n"
           "return ruleset { name = 'r', fuse 'x' { pattern = op { 'Add', inputs = { x, x } } } }",
           &rules, e));
  const cleave_rule_t *rule = &ruleset_of(rules)->rules[0];
  ck_assert_uint_eq(rule->pattern->node_count, 2);
  ck_assert_uint_eq(root_of(rule)->inputs[0].pattern, root_of(rule)->inputs[1].pattern);
  cleave_rules_destroy(rules);
}

/* ---- options ---- */

static const char OPTIONS[] =
    "local ops = option.list({ 'Exp', 'Sin' }, 'operators')\n"
    "local count = option.integer(2, 'nodes', { 1, 9 })\n"
    "local sum = option.boolean(true)\n"
    "local mode = option.enum('fast', 'how', { 'fast', 'slow' })\n"
    "return ruleset { name = 'r',\n"
    "  options = { ops = ops, count = count, sum = sum, mode = mode, scale = option.number(0.5) },\n"
    "  region 'g' { ops = ops, min_nodes = count },\n"
    "  fuse 'x' { pattern = op 'Conv' >> maybe { op 'Add', when = sum } >> op 'Relu' },\n"
    "  fuse 'y' { pattern = op 'Conv', enabled = function(o) return o.mode == 'slow' and o.scale > 1 end },\n"
    "}";

UNIT_TEST(takes_defaults_and_settings) {
  cleave_rules_t *rules = NULL;
  unit_ok(load(OPTIONS, &rules, e));
  const cleave_ruleset_t *set = ruleset_of(rules);
  ck_assert_uint_eq(set->rule_count, 2);
  ck_assert_uint_eq(set->rules[0].op_count, 2);
  ck_assert_uint_eq(set->rules[0].min_nodes, 2);
  ck_assert_uint_eq(root_of(&set->rules[1])->child_count, 3);
  cleave_rules_destroy(rules);

  const cleave_setting_t settings[] = {{"ops", "Cos, Tan,Exp"}, {"count", "7"}, {"sum", "no"},
                                       {"mode", "slow"},        {"scale", "2"}, {"other", "1"}};
  bool used[6] = {false, false, false, false, false, true};
  unit_ok(load_with(OPTIONS, settings, 6, used, &rules, e));
  set = ruleset_of(rules);
  ck_assert_uint_eq(set->rule_count, 3);
  ck_assert_uint_eq(set->rules[0].op_count, 3);
  ck_assert_ptr_eq(set->rules[0].ops[0], cleave_op_get(CLEAVE_OP_Cos));
  ck_assert_uint_eq(set->rules[0].min_nodes, 7);
  ck_assert_uint_eq(root_of(&set->rules[1])->child_count, 2);
  for (int k = 0; k < 6; k++) {
    ck_assert_int_eq(used[k], k < 5);
  }
  cleave_rules_destroy(rules);
}

UNIT_TEST(refuses_settings_that_do_not_fit) {
  static const struct {
    cleave_setting_t setting;
    const char *message;
  } CASES[] = {
      {{"count", "ten"},
       "r.lua:2: option 'count': set to 'ten', expected integer (--set r.count=VALUE is for this file "
       "alone)"},
      {{"count", "2.5"},
       "r.lua:2: option 'count': set to '2.5', expected integer (--set r.count=VALUE is for this file "
       "alone)"},
      {{"count", "10"},
       "r.lua:2: option 'count': set to '10', expected 1 to 9 (--set r.count=VALUE is for this file alone)"},
      {{"sum", "maybe"},
       "r.lua:3: option 'sum': set to 'maybe', expected boolean (--set r.sum=VALUE is for this file alone)"},
      {{"mode", "slw"},
       "r.lua:4: option 'mode': set to 'slw', expected one of fast, slow (--set r.mode=VALUE is for this "
       "file alone)"},
      {{"ops", "Exp,Snh"}, "r.lua:7: region 'g': operator 'Snh' is unknown (did you mean 'Sinh'?)"},
  };
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    cleave_rules_t *rules = NULL;
    unit_fails(load_with(OPTIONS, &CASES[k].setting, 1, NULL, &rules, e), CLEAVE_ERROR_RULE,
               CASES[k].message);
  }
}

/* ---- files ---- */

UNIT_TEST(finds_shipped_rules_by_name) {
  static const char *const NAMES[] = {"onednn", "conv_bn_relu", "contain_ops", "rules/onednn.lua"};
  for (size_t k = 0; k < sizeof NAMES / sizeof NAMES[0]; k++) {
    cleave_rules_t *rules = NULL;
    unit_ok(cleave_rules_load(NULL, &(cleave_rule_source_t){.path = NAMES[k]}, NULL, NULL, &rules, e));
    ck_assert_uint_gt(ruleset_of(rules)->rule_count, 0);
    cleave_rules_destroy(rules);
  }
  cleave_rules_t *rules = NULL;
  unit_fails_with(cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "onednnn"}, NULL, NULL, &rules, e),
                  CLEAVE_ERROR_IO, "onednnn: ");
  unit_fails_with(
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "lua/cleave/dsl.lua"}, NULL, NULL, &rules, e),
      CLEAVE_ERROR_IO, "lua/cleave/dsl.lua: ");
}

UNIT_TEST(knows_every_word_of_the_readme) {
  cleave_rules_t *rules = NULL;
  unit_ok(cleave_rules_load(NULL,
                            &(cleave_rule_source_t){.path = CLEAVE_SOURCE_DIR "/tests/lua/rules_words.lua"},
                            NULL, NULL, &rules, e));
  ck_assert_uint_eq(ruleset_of(rules)->rule_count, 6 + 19);
  cleave_rules_destroy(rules);
}

UNIT_TEST(survives_every_failing_allocation) {
  for (int64_t k = 0; k < 200000; k = k < 900 ? k + 1 : k + 53) {
    cleave_rules_t *rules = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(k);
    cleave_status_t status = load(OPTIONS, &rules, &error);
    (void)cleave_memory_fail_after(-1);
    if (status == CLEAVE_OK) {
      cleave_rules_destroy(rules);
      ck_assert_int_gt(k, 900);
      return;
    }
    ck_assert_ptr_null(rules);
    ck_assert_int_eq(status, CLEAVE_ERROR_OUT_OF_MEMORY);
  }
  ck_abort_msg("never succeeded");
}

UNIT_MAIN("script rules")
