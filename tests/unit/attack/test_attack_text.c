// SPDX-License-Identifier: Apache-2.0
/*
 * Attacks by the text of a rule file: on the parser, which runs no hook, and on what Lua can count to; and by
 * graphs that tests build, whose memory is not the interpreter's.
 */
#include "base/text.h"
#include "script/rules/declared.h"
#include "script/state/script.h"
#include "system/clock.h"
#include "unit.h"

#define END "\nreturn ruleset { name = 'r', fuse 'f' { pattern = 'Conv' } }\n"

static cleave_status_t load(const cleave_text_t *text, cleave_error_t *error) {
  cleave_rules_t *rules = NULL;
  ck_assert(!text->failed);
  cleave_status_t status = cleave_rules_load(
      NULL, &(cleave_rule_source_t){.path = "r.lua", .text = text->data, .length = text->length}, NULL, NULL,
      &rules, error);
  cleave_rules_destroy(rules);
  return status;
}

static void repeat(cleave_text_t *text, const char *part, size_t count) {
  for (size_t k = 0; k < count; k++) {
    cleave_text_add(text, part);
  }
}

/* head, `count` times part, tail; what comes out is this status, and a message with this part. */
static void expect(const char *head, const char *part, size_t count, const char *tail, cleave_status_t status,
                   const char *message) {
  cleave_text_t text = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_text_add(&text, head);
  repeat(&text, part, count);
  cleave_text_add(&text, tail);
  cleave_status_t found = load(&text, &error);
  ck_assert_msg(found == status, "%.40s: status %d: %s", part, (int)found, error.message);
  ck_assert_msg(strstr(error.message, message) != NULL, "%.40s: '%s'", part, error.message);
  ck_assert_msg(strlen(error.message) < sizeof error.message, "%.40s", part);
  cleave_text_deinit(&text);
}

/* ---- the parser ---- */

UNIT_TEST(nesting_of_every_kind_is_bounded) {
  expect("local x = ", "(", 100000, "", CLEAVE_ERROR_RULE, "r.lua:1: C stack overflow");
  expect("local x = ", "{", 100000, "", CLEAVE_ERROR_RULE, "r.lua:1: C stack overflow");
  expect("", "do ", 100000, "", CLEAVE_ERROR_RULE, "r.lua:1: C stack overflow");
  expect("", "function() ", 1000, "", CLEAVE_ERROR_RULE, "r.lua:1: ");
  expect("local x = ", "-", 400000, "1", CLEAVE_ERROR_RULE, "r.lua:1: ");
  expect("local x = ", "not ", 100000, "1", CLEAVE_ERROR_RULE, "r.lua:1: C stack overflow");
  expect("local x = 1", " .. 1", 100000, "", CLEAVE_ERROR_RULE, "r.lua:1: C stack overflow");
  expect("local x = 2", " ^ 2", 100000, "", CLEAVE_ERROR_RULE, "r.lua:1: C stack overflow");
  expect("local x = op", "'a'", 100000, "", CLEAVE_ERROR_RULE, "r.lua:1: ");
  expect("local x ", "= 1 ", 10, "", CLEAVE_ERROR_RULE, "r.lua:1: ");
}

UNIT_TEST(variables_and_constants_are_bounded) {
  expect("", "local x\n", 300, END, CLEAVE_ERROR_RULE, "too many local variables");
  cleave_text_t text = {0};
  cleave_text_add(&text, "local t = {}\n");
  for (int f = 0; f < 2; f++) {
    for (int k = 0; k < 150; k++) {
      cleave_text_format(&text, "local v%d_%d = %d\n", f, k, k);
    }
    cleave_text_add(&text, "t.f = function()\n");
  }
  cleave_text_add(&text, "return function() return 0");
  for (int f = 0; f < 2; f++) {
    for (int k = 0; k < 150; k++) {
      cleave_text_format(&text, " + v%d_%d", f, k);
    }
  }
  cleave_text_add(&text, " end end end" END);
  unit_fails_with(load(&text, e), CLEAVE_ERROR_RULE, "too many upvalues");
  cleave_text_deinit(&text);
  text = (cleave_text_t){0};
  cleave_text_add(&text, "local t = {");
  for (int k = 0; k < 40000; k++) {
    cleave_text_format(&text, "%d.5,'c%d',\n", k, k);
  }
  cleave_text_add(&text, "}\nassert(t[80000] == 'c39999' and t[1] == 0.5)" END);
  unit_ok(load(&text, e));
  cleave_text_deinit(&text);
}

UNIT_TEST(long_lines_and_tokens_are_read) {
  expect("local x = '", "x", 500000, "'\nassert(#x == 500000)" END, CLEAVE_OK, "");
  expect("local ", "x", 500000, " = 1" END, CLEAVE_OK, "");
  expect("local x = 1", "0", 300, "\nassert(x >= 1e300)" END, CLEAVE_OK, "");
  expect("local x = 1", "0", 500000, "" END, CLEAVE_OK, "");
  expect("local x = 0x", "f", 500000, "\nassert(x == -1)" END, CLEAVE_OK, "");
  expect("local x = 1", "e", 500000, END, CLEAVE_ERROR_RULE, "malformed number");
  expect("--[[", "x\n", 200000, "]]" END, CLEAVE_OK, "");
  expect("--[[", "x", 500000, END, CLEAVE_ERROR_RULE, "unfinished long comment");
  expect("--", "x", 500000, END, CLEAVE_OK, "");
  expect("local x = '", "\\z ", 200000, "'" END, CLEAVE_OK, "");
  expect("", "\n", 500000, "local x = opp 'Conv'", CLEAVE_ERROR_RULE, "r.lua:500001: unknown word 'opp'");
  expect("local x = ", "~", 1, "", CLEAVE_ERROR_RULE, "r.lua:1: unexpected symbol near <eof>");
  expect("", "x", 500000, "", CLEAVE_ERROR_RULE, "r.lua:1: syntax error near <eof>");
}

UNIT_TEST(a_file_is_of_bounded_size) {
  expect("", "\n", CLEAVE_SCRIPT_TEXT_LIMIT + 1, "", CLEAVE_ERROR_LIMIT, "a script of 1024 KiB");
}

UNIT_TEST(bytes_that_are_no_text_are_refused_or_read) {
  static const char *const HEADS[] = {"\x1bLua",    "\x1b",     "\xef\xbb\xbf-- utf-8",
                                      "#!/bin/lua", "\xff\xfe", "\x80"};
  for (size_t k = 0; k < sizeof HEADS / sizeof HEADS[0]; k++) {
    cleave_text_t text = {0};
    cleave_error_t error = CLEAVE_ERROR_INIT;
    cleave_text_format(&text, "%s" END, HEADS[k]);
    cleave_status_t status = load(&text, &error);
    ck_assert_msg(status == CLEAVE_OK || status == CLEAVE_ERROR_RULE, "%zu: %s", k, error.message);
    cleave_text_deinit(&text);
  }
  cleave_text_t zeros = {0};
  cleave_text_append(&zeros, "local x = 'a\0b' assert(#x == 3)", 31);
  cleave_text_add(&zeros, END);
  unit_ok(load(&zeros, e));
  cleave_text_deinit(&zeros);
}

/* Each name is looked up in all functions around it: the parser, in which no hook runs, would take minutes.
 */
UNIT_TEST(slow_parsing_ends_with_the_budget) {
  cleave_text_t text = {0};
  for (int depth = 0; depth < 150; depth++) {
    cleave_text_add(&text, "local a");
    repeat(&text, ",a", 150);
    cleave_text_add(&text, " local function f()\n");
  }
  while (text.length < 900000) {
    cleave_text_add(&text, "b=b ");
  }
  uint64_t start = cleave_clock_now();
  unit_fails_with(load(&text, e), CLEAVE_ERROR_LIMIT, "the time budget of 2000 ms is spent");
  ck_assert_double_lt(cleave_clock_ms(start, cleave_clock_now()), 30000.0);
  cleave_text_deinit(&text);
}

/* Lists of jumps are walked to their end for each new one. */
UNIT_TEST(long_lists_of_jumps_end_with_the_budget) {
  uint64_t start = cleave_clock_now();
  expect("local a local b = a", " and a", 160000, END, CLEAVE_ERROR_LIMIT,
         "the time budget of 2000 ms is spent");
  expect("local a if a then", " elseif a then", 70000, " end" END, CLEAVE_ERROR_LIMIT,
         "the time budget of 2000 ms is spent");
  ck_assert_double_lt(cleave_clock_ms(start, cleave_clock_now()), 60000.0);
}

UNIT_TEST(many_labels_end) {
  cleave_text_t text = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  for (int k = 0; k < 30000; k++) {
    cleave_text_format(&text, "goto l%d ", k);
  }
  for (int k = 0; k < 30000; k++) {
    cleave_text_format(&text, "::l%d:: ", k);
  }
  cleave_text_add(&text, END);
  cleave_status_t status = load(&text, &error);
  ck_assert_msg(status == CLEAVE_ERROR_RULE || status == CLEAVE_ERROR_LIMIT || status == CLEAVE_OK, "%s",
                error.message);
  cleave_text_deinit(&text);
}

UNIT_TEST(the_name_of_the_environment_is_no_word) {
  expect("", "local _ENV <const> = 200; return x", 1, "", CLEAVE_ERROR_RULE,
         "r.lua:1: '_ENV' is not available");
  expect("\n\n", "_ENV.x = 1", 1, "", CLEAVE_ERROR_RULE, "r.lua:3: '_ENV' is not available");
  expect("", "local x_ENV, _ENVx = 1, 2", 1, END, CLEAVE_OK, "");
}

/* ---- graphs of tests ---- */

static void expect_graph(const char *body, cleave_status_t status, const char *message) {
  cleave_text_t text = {0};
  cleave_rules_t *rules = NULL;
  cleave_graph_t *graph = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_text_format(&text,
                     "return ruleset { name = 'r', fuse 'f' { pattern = 'Conv' },\n"
                     "  test 't' { graph = function(g, x)\n%s\nreturn g.Relu(x) end, expect = {} } }\n",
                     body);
  unit_ok(cleave_rules_load(
      NULL, &(cleave_rule_source_t){.path = "r.lua", .text = text.data, .length = text.length}, NULL, NULL,
      &rules, e));
  const cleave_declared_t *declared = cleave_rules_declared(rules);
  cleave_status_t found = cleave_rules_build_test(rules, &declared->tests[0], &graph, &error);
  /* On a busy machine the clock may come first. */
  bool is_late = strstr(error.message, "r.lua:3: test 't': the time budget of 2000 ms is spent") != NULL;
  ck_assert_msg(is_late || found == status, "%s: status %d: %s", body, (int)found, error.message);
  ck_assert_msg(is_late || strstr(error.message, message) != NULL, "%s: '%s'", body, error.message);
  cleave_graph_destroy(graph);
  cleave_rules_destroy(rules);
  cleave_text_deinit(&text);
}

UNIT_TEST(memory_of_a_graph_is_bounded) {
  expect_graph("g.zeros { 1 << 30 }", CLEAVE_ERROR_RULE,
               "r.lua:3: test 't': a constant of this size: more than 256 MiB");
  expect_graph("for k = 1, 1000 do g.zeros { 1 << 20 } end", CLEAVE_ERROR_RULE, "more than 256 MiB");
  expect_graph("g.normal { math.maxinteger, 4 }", CLEAVE_ERROR_RULE, "more than 256 MiB");
  expect_graph("g.constant(1, 'int64', ('x'):rep(100000))", CLEAVE_ERROR_RULE, "a name of 100000 bytes");
  expect_graph("g.input(('x'):rep(100000), 'float32', { 1 })", CLEAVE_ERROR_RULE, "a name of 100000 bytes");
  expect_graph("g.input('y', 'float32', { ('x'):rep(100000) })", CLEAVE_ERROR_RULE, "dimension 1 of a shape");
  expect_graph("while true do g.Relu(x) end", CLEAVE_ERROR_LIMIT, "r.lua:3: test 't': ");
}

UNIT_TEST(constants_made_of_shared_tables_end) {
  expect_graph(
      "local t = {} for d = 1, 7 do local u = {} for k = 1, 1000 do u[k] = t end t = u end g.constant(t)",
      CLEAVE_ERROR_LIMIT, "r.lua:3: test 't': the time budget of 2000 ms is spent");
  expect_graph(
      "local t = { 1 } for d = 1, 7 do local u = {} for k = 1, 1000 do u[k] = t end t = u end g.constant(t)",
      CLEAVE_ERROR_LIMIT, "r.lua:3: test 't': the time budget of 2000 ms is spent");
  expect_graph("local t = {} t[1] = t g.constant(t)", CLEAVE_ERROR_RULE, "nested more than 8 deep");
}

UNIT_SUITE("attacks by text")
