// SPDX-License-Identifier: Apache-2.0
/*
 * Walks the tables of the DSL and copies their content into an arena. The DSL has checked the content. This
 * code is safe without that: numbers are bounded, and patterns are checked as a whole.
 */
#include "script/rules/compile.h"

#include <string.h>

#include "partition/pattern/named_rules.h"
#include "script/handles/attribute_reader.h"
#include "script/rules/callback.h"
#include "script/state/table_reader.h"

static cleave_region_mode_t mode_of(const char *name) {
  if (name == NULL || strcmp(name, "backend") == 0) {
    return CLEAVE_REGION_BACKEND;
  }
  if (strcmp(name, "ops") == 0) {
    return CLEAVE_REGION_OPS;
  }
  bool selects = strcmp(name, "selector") == 0; /* binding a partitioner sets its mode */
  return selects ? CLEAVE_REGION_SELECTOR : CLEAVE_REGION_SUPPORTED;
}

/* The field `attributes` of the table on top. */
static const cleave_attribute_t *read_attributes(cleave_table_reader_t *reader, uint32_t *out_count) {
  const cleave_attribute_t *attributes = NULL;
  *out_count = 0;
  if (cleave_table_push_field(reader, "attributes") == LUA_TTABLE) {
    attributes = cleave_script_read_attributes(reader->state, -1, reader->arena, "attributes", out_count);
  }
  lua_pop(reader->state, 1);
  return attributes;
}

/* Binds the library's rule that the field `name` names: its callbacks, and the options that they get from
 * this file. */
static bool read_named(cleave_table_reader_t *reader, const char *name, cleave_rule_t *rule,
                       const cleave_script_rule_t *functions) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_named_rule_t named;
  const char *wanted = cleave_table_text(reader, name);
  if (wanted == NULL) {
    return false;
  }
  cleave_named_rule_use_t *use = cleave_table_take(reader, 1, sizeof *use);
  *use = (cleave_named_rule_use_t){.context = cleave_script_of(reader->state)->context,
                                   .name = wanted,
                                   .file = rule->file,
                                   .line = rule->line,
                                   .options = functions->texts,
                                   .option_count = functions->text_count};
  if (cleave_named_rule_find(use->context, rule->kind, wanted, &named, &error) != CLEAVE_OK) {
    cleave_script_raise(reader->state, "%s", error.message);
  }
  rule->context = use;
  rule->calls = NULL;
  named.bind(&named, rule);
  return true;
}

/* How a rule grows, and when that is worth it. */
static void read_growth(cleave_table_reader_t *reader, cleave_rule_t *rule, cleave_script_rule_t *functions) {
  functions->supported = cleave_table_function(reader, "supported");
  functions->selector = cleave_table_function(reader, "selector");
  functions->review = cleave_table_function(reader, "review");
  rule->grows_once = cleave_table_flag(reader, "once");
  rule->mode = mode_of(cleave_table_text(reader, "mode"));
  rule->ops = cleave_table_ops(reader, "ops", &rule->op_count);
  rule->min_nodes = (uint32_t)cleave_table_int(reader, "min_nodes", 0);
  rule->min_flops = cleave_table_number(reader, "min_flops", 0.0, NULL);
  rule->min_bytes_saved = cleave_table_number(reader, "min_bytes_saved", 0.0, NULL);
  rule->min_gain = cleave_table_number(reader, "min_gain", 0.0, NULL);
}

static void read_fuse(cleave_table_reader_t *reader, cleave_rule_t *rule, cleave_script_rule_t *functions) {
  rule->attributes = read_attributes(reader, &rule->attribute_count);
  if (cleave_table_text(reader, "mode") != NULL) {
    read_growth(reader, rule, functions);
    cleave_callbacks_bind_region(rule, functions);
    return;
  }
  functions->where = cleave_table_function(reader, "where");
  rule->pattern = cleave_table_pattern(reader, "pattern", rule->name);
  cleave_callbacks_bind_fuse(rule, functions);
}

static void read_region(cleave_table_reader_t *reader, cleave_rule_t *rule, cleave_script_rule_t *functions) {
  read_growth(reader, rule, functions);
  if (!read_named(reader, "partitioner", rule, functions)) {
    cleave_callbacks_bind_region(rule, functions);
  }
}

static void read_rewrite(cleave_table_reader_t *reader, cleave_rule_t *rule,
                         cleave_script_rule_t *functions) {
  functions->where = cleave_table_function(reader, "where");
  functions->replace = cleave_table_function(reader, "replace");
  rule->pattern = cleave_table_pattern(reader, "pattern", rule->name);
  cleave_callbacks_bind_rewrite(rule, functions);
}

static void read_pass(cleave_table_reader_t *reader, cleave_rule_t *rule, cleave_script_rule_t *functions) {
  functions->run = cleave_table_function(reader, "run");
  if (!read_named(reader, "library", rule, functions)) {
    cleave_callbacks_bind_pass(rule, functions);
  }
}

static void read_stage(cleave_table_reader_t *reader, cleave_rule_t *rule, cleave_script_rule_t *functions) {
  functions->of = cleave_table_function(reader, "of");
  functions->assign = cleave_table_function(reader, "assign");
  cleave_callbacks_bind_stage(rule);
}

/* The kinds of rules, by the word of the DSL. */
static const struct {
  const char *word;
  cleave_rule_kind_t kind;
  void (*read)(cleave_table_reader_t *reader, cleave_rule_t *rule, cleave_script_rule_t *functions);
} KINDS[] = {{"fuse", CLEAVE_RULE_FUSE, read_fuse},
             {"region", CLEAVE_RULE_REGION, read_region},
             {"rewrite", CLEAVE_RULE_REWRITE, read_rewrite},
             {"pass", CLEAVE_RULE_PASS, read_pass},
             {"stage", CLEAVE_RULE_STAGE, read_stage}};

/* The options of the file: their values for functions, and as strings. */
typedef struct option_values {
  int values; /* reference */
  cleave_key_value_t *texts;
  uint32_t count;
} option_values_t;

static option_values_t read_options(cleave_table_reader_t *reader) {
  option_values_t options = {.values = LUA_NOREF};
  (void)cleave_table_push_field(reader, "options");
  options.values = luaL_ref(reader->state, LUA_REGISTRYINDEX);
  uint32_t count = cleave_table_push_list(reader, "option_list");
  options.texts = cleave_table_take(reader, count, sizeof *options.texts);
  for (uint32_t k = 0; k < count; k++) {
    cleave_table_push_item(reader, k);
    const char *key = cleave_table_text(reader, "name");
    const char *value = cleave_table_text(reader, "value");
    if (key != NULL && value != NULL) {
      options.texts[options.count++] = (cleave_key_value_t){.key = key, .value = value};
    }
    lua_pop(reader->state, 1);
  }
  lua_pop(reader->state, 1);
  return options;
}

/* The functions of the rule on top of the stack: none so far. */
static cleave_script_rule_t *take_functions(cleave_table_reader_t *reader, const char *kind,
                                            const char *name) {
  cleave_script_rule_t *functions = cleave_table_take(reader, 1, sizeof *functions);
  *functions = (cleave_script_rule_t){.script = cleave_script_of(reader->state),
                                      .kind = kind,
                                      .name = name,
                                      .place = cleave_table_int(reader, "line", 0),
                                      .where = LUA_NOREF,
                                      .supported = LUA_NOREF,
                                      .selector = LUA_NOREF,
                                      .review = LUA_NOREF,
                                      .replace = LUA_NOREF,
                                      .run = LUA_NOREF,
                                      .of = LUA_NOREF,
                                      .assign = LUA_NOREF,
                                      .apply = LUA_NOREF,
                                      .options = reader->options->values,
                                      .texts = reader->options->texts,
                                      .text_count = reader->options->count,
                                      .calls = cleave_table_take(reader, 1, sizeof(uint64_t))};
  return functions;
}

static void read_rule(cleave_table_reader_t *reader, cleave_rule_t *rule) {
  const char *word = cleave_table_text(reader, "kind");
  size_t kind = 0;
  while (kind < sizeof KINDS / sizeof KINDS[0] && strcmp(KINDS[kind].word, word) != 0) {
    kind++;
  }
  if (kind == sizeof KINDS / sizeof KINDS[0]) {
    cleave_script_raise(reader->state, "no kind of rule is called '%s'", word);
    return;
  }
  rule->kind = KINDS[kind].kind;
  rule->name = cleave_table_text(reader, "name");
  rule->doc = cleave_table_text(reader, "doc");
  rule->line = cleave_table_line(reader, "line", &rule->file);
  rule->priority = cleave_table_int(reader, "priority", 0);
  cleave_script_rule_t *functions = take_functions(reader, KINDS[kind].word, rule->name);
  rule->context = functions;
  rule->calls = functions->calls;
  cleave_script_set_rule(functions->script, functions->kind, rule->name, functions->place);
  KINDS[kind].read(reader, rule, functions);
  cleave_script_set_rule(functions->script, NULL, NULL, 0);
}

static void read_gradient(cleave_table_reader_t *reader, cleave_gradient_rule_t *rule) {
  uint32_t op_count = 0;
  const cleave_op_t *const *ops = cleave_table_ops(reader, "ops", &op_count);
  cleave_script_rule_t *functions = take_functions(reader, "gradient", cleave_table_text(reader, "name"));
  functions->apply = cleave_table_function(reader, "apply");
  rule->op = op_count == 1 ? ops[0] : NULL;
  rule->doc = cleave_table_text(reader, "doc");
  rule->line = cleave_table_line(reader, "line", &rule->file);
  rule->output_count = (uint32_t)cleave_table_int(reader, "outputs", -1);
  cleave_callbacks_bind_gradient(rule, functions);
}

static void read_ruleset(cleave_table_reader_t *reader, cleave_ruleset_t *ruleset) {
  ruleset->name = cleave_table_text(reader, "name");
  ruleset->backend = cleave_table_text(reader, "backend");
  ruleset->line = cleave_table_line(reader, "line", &ruleset->file);
  CLEAVE_TABLE_LIST(reader, "rules", cleave_rule_t, read_rule, ruleset->rules, ruleset->rule_count);
  CLEAVE_TABLE_LIST(reader, "gradients", cleave_gradient_rule_t, read_gradient, ruleset->gradients,
                    ruleset->gradient_count);
}

const cleave_ruleset_t *cleave_script_compile(lua_State *state, cleave_arena_t *arena, const char *file,
                                              uint32_t *out_count) {
  cleave_table_reader_t reader = {.state = state, .arena = arena, .file = file};
  luaL_checktype(state, -1, LUA_TTABLE);
  option_values_t options = read_options(&reader);
  reader.options = &options;
  const cleave_ruleset_t *rulesets = NULL;
  CLEAVE_TABLE_LIST(&reader, "rulesets", cleave_ruleset_t, read_ruleset, rulesets, *out_count);
  return rulesets;
}
