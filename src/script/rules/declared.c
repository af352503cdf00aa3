// SPDX-License-Identifier: Apache-2.0
/* Reads what lua/cleave/dsl.lua found out about a file: rules, options, tests. */
#include "script/rules/declared.h"

#include <string.h>

#include "script/rules/rules_internal.h"
#include "script/state/table_reader.h"

static const char *text_or_empty(cleave_table_reader_t *reader, const char *name) {
  const char *text = cleave_table_text(reader, name);
  return text == NULL ? "" : text;
}

static void read_rule(cleave_table_reader_t *reader, cleave_declared_rule_t *rule) {
  *rule = (cleave_declared_rule_t){.kind = text_or_empty(reader, "kind"),
                                   .name = text_or_empty(reader, "name"),
                                   .doc = text_or_empty(reader, "doc"),
                                   .priority = cleave_table_int(reader, "priority", 0),
                                   .enabled = cleave_table_flag(reader, "enabled"),
                                   .ruleset = text_or_empty(reader, "ruleset"),
                                   .backend = text_or_empty(reader, "backend")};
  rule->line = cleave_table_line(reader, "line", &rule->file);
}

static void read_option(cleave_table_reader_t *reader, cleave_declared_option_t *option) {
  *option = (cleave_declared_option_t){.name = cleave_table_text(reader, "name"),
                                       .type = text_or_empty(reader, "kind"),
                                       .value = text_or_empty(reader, "value"),
                                       .fallback = text_or_empty(reader, "default"),
                                       .range = text_or_empty(reader, "range"),
                                       .doc = text_or_empty(reader, "doc"),
                                       .line = cleave_table_line(reader, "line", NULL)};
}

/* ---- tests ---- */

static cleave_expectation_kind_t kind_of(const char *name) {
  static const struct {
    const char *name;
    cleave_expectation_kind_t kind;
  } KINDS[] = {{"label", CLEAVE_EXPECT_LABEL},     {"op", CLEAVE_EXPECT_OP},
               {"regions", CLEAVE_EXPECT_REGIONS}, {"fusions", CLEAVE_EXPECT_FUSIONS},
               {"left", CLEAVE_EXPECT_LEFT},       {"refused", CLEAVE_EXPECT_REFUSED}};
  for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
    if (strcmp(KINDS[k].name, name) == 0) {
      return KINDS[k].kind;
    }
  }
  return CLEAVE_EXPECT_RULE;
}

static void read_expectation(cleave_table_reader_t *reader, cleave_expectation_t *expectation) {
  *expectation = (cleave_expectation_t){.kind = kind_of(text_or_empty(reader, "what")),
                                        .rule = cleave_table_text(reader, "rule"),
                                        .text = cleave_table_text(reader, "label"),
                                        .low = cleave_table_int(reader, "low", 0),
                                        .high = cleave_table_int(reader, "high", 0)};
}

static void read_setting(cleave_table_reader_t *reader, cleave_setting_t *setting) {
  *setting =
      (cleave_setting_t){.name = text_or_empty(reader, "name"), .value = text_or_empty(reader, "value")};
}

static void read_input(cleave_table_reader_t *reader, cleave_test_input_t *input) {
  *input = (cleave_test_input_t){.name = text_or_empty(reader, "name")};
  input->low = cleave_table_number(reader, "low", 0.0, &input->has_range);
  input->high = cleave_table_number(reader, "high", 0.0, NULL);
}

static void read_test(cleave_table_reader_t *reader, cleave_rule_test_t *test) {
  *test = (cleave_rule_test_t){.name = text_or_empty(reader, "name"),
                               .doc = text_or_empty(reader, "doc"),
                               .calibrate = cleave_table_flag(reader, "calibrate"),
                               .equal = cleave_table_flag(reader, "equal"),
                               .gradient = cleave_table_int(reader, "gradient", 0),
                               .rtol = cleave_table_number(reader, "rtol", -1.0, NULL),
                               .atol = cleave_table_number(reader, "atol", -1.0, NULL)};
  test->line = cleave_table_line(reader, "line", &test->file);
  CLEAVE_TABLE_LIST(reader, "settings", cleave_setting_t, read_setting, test->settings, test->setting_count);
  CLEAVE_TABLE_LIST(reader, "expectations", cleave_expectation_t, read_expectation, test->expectations,
                    test->expectation_count);
  CLEAVE_TABLE_LIST(reader, "inputs", cleave_test_input_t, read_input, test->inputs, test->input_count);
  lua_pushvalue(reader->state, -1);
  test->entry = luaL_ref(reader->state, LUA_REGISTRYINDEX);
}

void cleave_declared_read(lua_State *state, cleave_arena_t *arena, const char *file,
                          cleave_declared_t *out_declared) {
  cleave_table_reader_t reader = {.state = state, .arena = arena, .file = file};
  luaL_checktype(state, -1, LUA_TTABLE);
  CLEAVE_TABLE_LIST(&reader, "declared", cleave_declared_rule_t, read_rule, out_declared->rules,
                    out_declared->rule_count);
  CLEAVE_TABLE_LIST(&reader, "option_list", cleave_declared_option_t, read_option, out_declared->options,
                    out_declared->option_count);
  CLEAVE_TABLE_LIST(&reader, "tests", cleave_rule_test_t, read_test, out_declared->tests,
                    out_declared->test_count);
  lua_pushvalue(state, -1);
  out_declared->file = luaL_ref(state, LUA_REGISTRYINDEX);
}
