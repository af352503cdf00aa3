// SPDX-License-Identifier: Apache-2.0
// Built-in Lua files are compiled when cleave is built: the code is that of their text, and no load parses
// them.
#include "script/state/embedded.h"

#include <lauxlib.h>
#include <pthread.h>

#include "base/text.h"
#include "script/rules/declared.h"
#include "script/rules/rules.h"
#include "unit.h"

static const char TEXT[] = "return ruleset { name = 'r', fuse 'x' { pattern = op 'Conv' >> op 'Relu' } }";

static cleave_status_t load(const char *text, cleave_error_t *error) {
  cleave_rules_t *rules = NULL;
  cleave_status_t status =
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "r.lua", .text = text, .length = strlen(text)},
                        NULL, NULL, &rules, error);
  cleave_rules_destroy(rules);
  return status;
}

static int append(lua_State *state, const void *data, size_t size, void *context) {
  (void)state;
  cleave_text_append(context, data, size);
  return 0;
}

/* Makes the code again, with the Lua of this process. */
UNIT_TEST(the_code_of_every_file_is_that_of_its_text) {
  ck_assert_str_eq(cleave_embedded_lua, lua_ident);
  lua_State *state = luaL_newstate();
  int count = 0;
  for (const cleave_embedded_file_t *file = cleave_embedded_files; file->name != NULL; file++, count++) {
    bool is_rule = strncmp(file->name, "rules/", 6) == 0;
    const char *text = lua_pushfstring(state, "%s%s", is_rule ? CLEAVE_SCRIPT_HEAD : "", file->text);
    const char *chunk = lua_pushfstring(state, "@%s", file->name);
    ck_assert_int_eq(luaL_loadbufferx(state, text, strlen(text), chunk, "t"), LUA_OK);
    cleave_text_t code = {0};
    ck_assert_int_eq(lua_dump(state, append, &code, 0), 0);
    ck_assert_msg(code.length == file->code_length && memcmp(code.data, file->code, code.length) == 0,
                  "%s: the code is not that of the text", file->name);
    cleave_text_deinit(&code);
    lua_settop(state, 0);
  }
  lua_close(state);
  ck_assert_int_gt(count, 20);
}

/* Code of the modules ran without a hook; the script's own code, and functions of modules that call it, are
 * counted again. */
UNIT_TEST(scripts_are_limited_after_the_modules_ran) {
  static const char *const ENDLESS[] = {
      "while true do end",
      "local t = setmetatable({}, { __index = function() while true do end end })\n"
      "return ruleset { name = 'r', fuse 'x' { pattern = op(t) } }",
      "return ruleset { name = 'r', pcall(function() while true do end end) }",
  };
  for (size_t k = 0; k < sizeof ENDLESS / sizeof ENDLESS[0]; k++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    ck_assert_int_eq(load(ENDLESS[k], &error), CLEAVE_ERROR_LIMIT);
    ck_assert_msg(strstr(error.message, "the time budget of 2000 ms is spent") != NULL, "%s", error.message);
  }
}

UNIT_TEST(a_shipped_file_loads_by_its_name) {
  cleave_rules_t *rules = NULL;
  unit_ok(cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "onednn"}, NULL, NULL, &rules, e));
  uint32_t count = 0;
  (void)cleave_rules_rulesets(rules, &count);
  ck_assert_uint_gt(count, 0);
  cleave_rules_destroy(rules);
}

static cleave_rules_t *load_without_tests(const cleave_rule_source_t *source, bool leaves_tests_out) {
  const cleave_script_settings_t settings = {.leaves_tests_out = leaves_tests_out};
  cleave_rules_t *rules = NULL;
  unit_ok(cleave_rules_load(NULL, source, &settings, NULL, &rules, e));
  return rules;
}

UNIT_TEST(a_shipped_file_without_its_tests_has_the_same_rules) {
  const cleave_rule_source_t source = {.path = "onednn"};
  cleave_rules_t *whole = load_without_tests(&source, false);
  cleave_rules_t *bare = load_without_tests(&source, true);
  ck_assert_uint_gt(cleave_rules_declared(whole)->test_count, 50);
  ck_assert_uint_eq(cleave_rules_declared(bare)->test_count, 0);
  ck_assert_uint_eq(cleave_rules_declared(bare)->rule_count, cleave_rules_declared(whole)->rule_count);
  ck_assert_uint_eq(cleave_rules_declared(bare)->option_count, cleave_rules_declared(whole)->option_count);
  uint32_t count = 0;
  uint32_t bare_count = 0;
  const cleave_ruleset_t *rulesets = cleave_rules_rulesets(whole, &count);
  const cleave_ruleset_t *bare_rulesets = cleave_rules_rulesets(bare, &bare_count);
  ck_assert_uint_eq(bare_count, count);
  for (uint32_t k = 0; k < count; k++) {
    ck_assert_uint_eq(bare_rulesets[k].rule_count, rulesets[k].rule_count);
    for (uint32_t r = 0; r < rulesets[k].rule_count; r++) {
      ck_assert_str_eq(bare_rulesets[k].rules[r].name, rulesets[k].rules[r].name);
      ck_assert_int_eq(bare_rulesets[k].rules[r].line, rulesets[k].rules[r].line);
    }
  }
  cleave_rules_destroy(whole);
  cleave_rules_destroy(bare);
}

/* Mistakes in tests of a user's file are found whenever it is loaded. */
UNIT_TEST(a_file_of_a_user_keeps_its_tests) {
  static const char WITH_TEST[] =
      "return ruleset { name = 'r', fuse 'x' { pattern = op 'Relu' },\n"
      "  test 'it fuses' { graph = function(g, a) return g.Relu(a) end,\n"
      "    expect = { x = 1 } } }";
  const cleave_rule_source_t source = {.path = "r.lua", .text = WITH_TEST, .length = sizeof WITH_TEST - 1};
  cleave_rules_t *rules = load_without_tests(&source, true);
  ck_assert_uint_eq(cleave_rules_declared(rules)->test_count, 1);
  cleave_rules_destroy(rules);
}

UNIT_TEST(messages_are_the_same_in_every_load) {
  static const char BROKEN[] = "return ruleset {\n  name = 'r', fuse 'x' { pattern = op 'Convv' } }";
  for (int k = 0; k < 3; k++) {
    unit_fails(load(BROKEN, e), CLEAVE_ERROR_RULE,
               "r.lua:2: fuse 'x': operator 'Convv' is unknown (did you mean 'Conv'?)");
  }
}

UNIT_TEST(a_first_load_without_memory_spoils_nothing) {
  bool failed = true;
  for (int64_t countdown = 0; failed; countdown += 37) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(countdown);
    failed = load(TEXT, &error) != CLEAVE_OK;
    (void)cleave_memory_fail_after(-1);
  }
  unit_ok(load(TEXT, e));
}

static void *load_in_thread(void *context) {
  (void)context;
  for (int k = 0; k < 3; k++) {
    unit_ok(load(TEXT, e));
  }
  return NULL;
}

UNIT_TEST(threads_may_load_first_together) {
  pthread_t threads[4];
  for (int k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, load_in_thread, NULL), 0);
  }
  for (int k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
  }
}

UNIT_SUITE("embedded")
