// SPDX-License-Identifier: Apache-2.0
/* What rule files compile to, their options, and where they are found. */
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
  return cleave_rules_load(
      NULL, &(cleave_rule_source_t){.path = "r.lua", .text = text, .length = strlen(text)},
      &(cleave_script_settings_t){.items = settings, .count = count, .out_used = used}, NULL, rules, error);
}

static cleave_status_t load(const char *text, cleave_rules_t **rules, cleave_error_t *error) {
  return load_with(text, NULL, 0, NULL, rules, error);
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

UNIT_SUITE("script rules")
