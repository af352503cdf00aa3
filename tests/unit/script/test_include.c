// SPDX-License-Identifier: Apache-2.0
/* Files that rule files include: what they give, where they may lie, and what messages say about them. */
#include "script/sandbox/include.h"

#include <sys/stat.h>
#include <unistd.h>

#include "graph/graph.h"
#include "partition/grow/partition.h"
#include "script/rules/declared.h"
#include "script/rules/rules.h"
#include "script/state/embedded.h"
#include "system/file.h"
#include "unit.h"

/* Each test runs in a folder of its own; what it makes there is listed here, and removed in reverse order. */
enum { MAX_PATHS = 96 };
static char folder[64];
static char made[MAX_PATHS][96];
static int made_count;

static void note_made(const char *path) {
  ck_assert_int_lt(made_count, MAX_PATHS);
  (void)snprintf(made[made_count++], sizeof made[0], "%s", path);
}

static void begin(void) {
  (void)snprintf(folder, sizeof folder, "include_XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ck_assert_int_eq(chdir(folder), 0);
}

static void end(void) {
  while (made_count > 0) {
    (void)remove(made[--made_count]);
  }
  ck_assert_int_eq(chdir(".."), 0);
  ck_assert_int_eq(rmdir(folder), 0);
}

static void make_folder(const char *path) {
  ck_assert_int_eq(mkdir(path, 0755), 0);
  note_made(path);
}

static void make_link(const char *target, const char *path) {
  ck_assert_int_eq(symlink(target, path), 0);
  note_made(path);
}

static void write_file(const char *path, const char *text) {
  unit_ok(cleave_file_write(path, text, strlen(text), e));
  note_made(path);
}

static cleave_status_t load(const char *path, cleave_error_t *error) {
  cleave_rules_t *rules = NULL;
  cleave_status_t status =
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = path}, NULL, NULL, &rules, error);
  cleave_rules_destroy(rules);
  return status;
}

#define SET "return ruleset { name = 'r', fuse 'f' { pattern = p } }\n"

/* ---- what is included ---- */

UNIT_TEST(include_and_require_give_what_the_file_returned) {
  begin();
  make_folder("parts");
  write_file("parts/conv.lua", "return { conv = op 'Conv', act = op 'Relu' }\n");
  write_file("parts/nothing.lua", "local x = 1\n");
  write_file("r.lua",
             "local a = include 'parts/conv.lua'\n"
             "local b = require 'parts.conv'\n"
             "assert(a == b, 'one load runs a file once')\n"
             "assert(include 'parts/nothing.lua' == true)\n"
             "assert(require 'parts.nothing' == true)\n"
             "local p = a.conv >> a.act\n" SET);
  unit_ok(load("r.lua", e));
  end();
}

/* "name/ruleset on backend" of each rule that the file declares. */
static void declares(const char *path, const char *expected) {
  cleave_rules_t *rules = NULL;
  cleave_text_t text = {0};
  unit_ok(cleave_rules_load(NULL, &(cleave_rule_source_t){.path = path}, NULL, NULL, &rules, e));
  const cleave_declared_t *declared = cleave_rules_declared(rules);
  for (uint32_t k = 0; k < declared->rule_count; k++) {
    cleave_text_format(&text, "%s%s on %s", k == 0 ? "" : ", ", declared->rules[k].name,
                       declared->rules[k].backend);
  }
  ck_assert_str_eq(cleave_text_get(&text), expected);
  cleave_text_deinit(&text);
  cleave_rules_destroy(rules);
}

UNIT_TEST(a_list_of_rules_is_an_entry_in_its_place) {
  begin();
  write_file("two.lua",
             "local o = option.boolean(true, 'doc')\n"
             "return { options = { o = o }, helper = 1, region 'a' {}, { region 'b' { enabled = o } } }\n");
  write_file("own.lua",
             "return ruleset { name = 'own', backend = 'onednn', include 'two.lua', "
             "ruleset 'rest' { backend = 'cpu', region 'c' {} } }\n");
  write_file("list.lua",
             "return ruleset { name = 'r', region 'x' {}, include 'two.lua', region 'y' {},\n"
             " ruleset 'z' { backend = 'onednn', {} } }\n");
  declares("list.lua", "x on cpu, a on cpu, b on cpu, y on cpu");
  /* Its own backend, if nothing around it says one. */
  write_file("whole.lua", "return ruleset { name = 'r', region 'x' {}, include 'own.lua', region 'y' {} }\n");
  declares("whole.lua", "x on cpu, a on onednn, b on onednn, c on cpu, y on cpu");
  write_file("says.lua", "return ruleset { name = 'r', backend = 'cpu', include 'own.lua' }\n");
  declares("says.lua", "a on cpu, b on cpu, c on cpu");
  write_file("named.lua",
             "return ruleset { name = 'r', ruleset 'n' { include 'flat.lua' }, "
             "ruleset 'm' { backend = 'cpu', region 'y' {} } }\n");
  write_file("flat.lua", "return ruleset { name = 'flat', backend = 'onednn', include 'two.lua' }\n");
  declares("named.lua", "a on onednn, b on onednn, y on cpu");
  cleave_setting_t off = {.name = "o", .value = "false"};
  cleave_rules_t *rules = NULL;
  unit_ok(cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "whole.lua"},
                            &(cleave_script_settings_t){.items = &off, .count = 1}, NULL, &rules, e));
  ck_assert(cleave_rules_declared(rules)->rules[1].enabled);
  ck_assert(!cleave_rules_declared(rules)->rules[2].enabled);
  cleave_rules_destroy(rules);
  end();
}

UNIT_TEST(included_files_are_found_from_the_folder_of_the_rule_file) {
  begin();
  make_folder("rules");
  make_folder("rules/parts");
  write_file("rules/parts/a.lua", "return require 'parts.b'\n");
  write_file("rules/parts/b.lua", "return op 'Conv'\n");
  write_file("rules/r.lua", "local p = require 'parts.a'\n" SET);
  unit_ok(load("rules/r.lua", e));
  end();
}

UNIT_TEST(included_files_run_in_the_same_closed_environment) {
  begin();
  write_file("io.lua", "return io.open('/etc/passwd')\n");
  write_file("global.lua", "\nshared = 1\n");
  write_file("env.lua", "local _ENV = {}\n");
  write_file("r.lua", "include 'io.lua'\n");
  unit_fails(load("r.lua", e), CLEAVE_ERROR_RULE, "io.lua:1: 'io' is not available in a rule file");
  write_file("s.lua", "include 'global.lua'\n");
  unit_fails(load("s.lua", e), CLEAVE_ERROR_RULE,
             "global.lua:2: global 'shared' is assigned (write 'local shared')");
  write_file("t.lua", "include 'env.lua'\n");
  unit_fails(load("t.lua", e), CLEAVE_ERROR_RULE, "env.lua:1: '_ENV' is not available");
  end();
}

/* ---- messages ---- */

UNIT_TEST(errors_name_the_included_file_and_its_line) {
  begin();
  make_folder("parts");
  write_file("parts/syntax.lua", "\nlocal x = = 1\n");
  write_file("parts/words.lua", "\n\nreturn op { 'Conv', as = 3 }\n");
  write_file("parts/word.lua", "local p = opp 'Conv'\n");
  write_file("parts/raise.lua", "\nerror { 1 }\n");
  write_file("1.lua", "include 'parts/syntax.lua'\n");
  unit_fails(load("1.lua", e), CLEAVE_ERROR_RULE, "parts/syntax.lua:2: unexpected symbol near '='");
  write_file("2.lua", "local p = include 'parts/words.lua'\n" SET);
  unit_fails(load("2.lua", e), CLEAVE_ERROR_RULE,
             "parts/words.lua:3: fuse 'f': op: as: expected a string, found 3");
  write_file("3.lua", "include 'parts/word.lua'\n");
  unit_fails(load("3.lua", e), CLEAVE_ERROR_RULE,
             "parts/word.lua:1: unknown word 'opp' (did you mean 'op'?)");
  write_file("4.lua", "\n\ninclude 'parts/raise.lua'\n");
  unit_fails(load("4.lua", e), CLEAVE_ERROR_RULE,
             "parts/raise.lua:2: raised a table value instead of a message");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(load("2.lua", &error), CLEAVE_ERROR_RULE);
  ck_assert_str_eq(error.file, "parts/words.lua");
  ck_assert_int_eq(error.line, 3);
  ck_assert_str_eq(error.rule, "f");
  end();
}

UNIT_TEST(rules_know_the_file_that_they_stand_in) {
  begin();
  write_file("parts.lua", "\n\nreturn fuse 'inner' { pattern = op 'Conv' >> op 'Relu' }\n");
  write_file("r.lua",
             "return ruleset { name = 'r',\n  require 'parts',\n  fuse 'outer' { pattern = op 'Add' } }\n");
  cleave_rules_t *rules = NULL;
  uint32_t count = 0;
  unit_ok(cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "r.lua"}, NULL, NULL, &rules, e));
  const cleave_ruleset_t *set = cleave_rules_rulesets(rules, &count);
  ck_assert_uint_eq(set->rule_count, 2);
  ck_assert_str_eq(set->rules[0].file, "parts.lua");
  ck_assert_int_eq(set->rules[0].line, 3);
  ck_assert_str_eq(set->rules[1].file, "r.lua");
  ck_assert_int_eq(set->rules[1].line, 3);
  cleave_rules_destroy(rules);
  write_file("twice.lua",
             "return ruleset { name = 'r',\n  require 'parts',\n  fuse 'inner' { pattern = op 'Add' } }\n");
  unit_fails(load("twice.lua", e), CLEAVE_ERROR_RULE,
             "twice.lua:3: fuse 'inner' is defined twice, first in parts.lua:3");
  end();
}

UNIT_TEST(errors_of_a_callback_name_the_included_file) {
  begin();
  write_file("test.lua", "return function(m)\n  return m.nope\nend\n");
  write_file("r.lua",
             "return ruleset { name = 'r',\n"
             "  fuse 'f' { pattern = op { 'Relu', as = 'x' }, where = require 'test' } }\n");
  cleave_rules_t *rules = NULL;
  cleave_graph_t *graph = NULL;
  cleave_plan_t *plan = NULL;
  uint32_t count = 0;
  unit_ok(cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "r.lua"}, NULL, NULL, &rules, e));
  unit_ok(cleave_graph_create(&graph, e));
  cleave_value_t x = CLEAVE_VALUE_NONE;
  cleave_node_t node = CLEAVE_NODE_NONE;
  const cleave_ruleset_t *sets = cleave_rules_rulesets(rules, &count);
  cleave_dim_t dims[1] = {4};
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 1, dims, &x, e));
  unit_ok(cleave_graph_add_node(graph, sets->rules[0].pattern->nodes[0].ops[0], "relu", &x, 1, 1, &node, e));
  unit_ok(cleave_graph_add_output(graph, "y", cleave_node_output(graph, node, 0), e));
  cleave_partition_options_t options = {0};
  unit_fails(cleave_partition(graph, &sets, 1, &options, &plan, e), CLEAVE_ERROR_RULE,
             "test.lua:2: fuse 'f': the pattern has no label 'nope' (did you mean 'nodes'?); at Relu 'relu'");
  cleave_graph_destroy(graph);
  cleave_rules_destroy(rules);
  end();
}

/* ---- where files may lie ---- */

UNIT_TEST(refuses_names_that_lead_out_of_the_folder) {
  static const char *const NAMES[] = {"../x.lua",       "/etc/x.lua", "parts/../../x.lua", "./x.lua",
                                      "parts//x.lua",   "x.txt",      ".hidden.lua",       "parts/.x.lua",
                                      "parts\\\\x.lua", "",           "x\\0y.lua",         "a\\nb.lua"};
  begin();
  for (size_t k = 0; k < sizeof NAMES / sizeof NAMES[0]; k++) {
    char text[128];
    (void)snprintf(text, sizeof text, "\ninclude '%s'\n", NAMES[k]);
    unit_ok(cleave_file_write("r.lua", text, strlen(text), e));
    unit_fails_with(load("r.lua", e), CLEAVE_ERROR_RULE,
                    "expected the path of a .lua file below the folder of the rule file");
  }
  note_made("r.lua");
  static const char *const MODULES[] = {"..x", "parts/x", ".x", "a..b"};
  for (size_t k = 0; k < sizeof MODULES / sizeof MODULES[0]; k++) {
    char text[128];
    (void)snprintf(text, sizeof text, "require '%s'\n", MODULES[k]);
    unit_ok(cleave_file_write("r.lua", text, strlen(text), e));
    unit_fails_with(load("r.lua", e), CLEAVE_ERROR_RULE, "r.lua:1: require '");
  }
  write_file("s.lua", "include(7)\n");
  unit_fails(load("s.lua", e), CLEAVE_ERROR_RULE,
             "s.lua:1: include: expected the path of a file, found a number");
  write_file("t.lua", "require(nil)\n");
  unit_fails(load("t.lua", e), CLEAVE_ERROR_RULE,
             "t.lua:1: require: expected the name of a file, found a nil");
  end();
}

UNIT_TEST(refuses_links_that_lead_out_of_the_folder) {
  begin();
  write_file("secret.lua", "return 'secret'\n");
  make_folder("rules");
  make_folder("rules/parts");
  make_link("../secret.lua", "rules/direct.lua");
  make_link("../..", "rules/parts/up");
  make_link("real.lua", "rules/parts/inside.lua");
  make_link("gone.lua", "rules/parts/nowhere.lua");
  write_file("rules/parts/real.lua", "return op 'Conv'\n");
  write_file("rules/1.lua", "include 'direct.lua'\n");
  unit_fails(load("rules/1.lua", e), CLEAVE_ERROR_RULE,
             "rules/1.lua:1: include 'direct.lua': 'direct.lua' leads out of the folder 'rules/'");
  write_file("rules/2.lua", "include 'parts/up/secret.lua'\n");
  unit_fails_with(load("rules/2.lua", e), CLEAVE_ERROR_RULE, "leads out of the folder 'rules/'");
  write_file("rules/3.lua", "local p = include 'parts/inside.lua'\n" SET);
  unit_ok(load("rules/3.lua", e));
  write_file("rules/4.lua", "include 'parts/nowhere.lua'\n");
  unit_fails_with(load("rules/4.lua", e), CLEAVE_ERROR_RULE, "cannot be opened: No such file");
  end();
}

UNIT_TEST(refuses_what_is_no_file) {
  begin();
  make_folder("folder.lua");
  ck_assert_int_eq(mkfifo("pipe.lua", 0644), 0);
  note_made("pipe.lua");
  write_file("1.lua", "\ninclude 'missing.lua'\n");
  unit_fails(load("1.lua", e), CLEAVE_ERROR_RULE,
             "1.lua:2: include 'missing.lua': 'missing.lua' cannot be opened: No such file or directory");
  write_file("2.lua", "include 'folder.lua'\n");
  unit_fails_with(load("2.lua", e), CLEAVE_ERROR_RULE, "not a regular file");
  write_file("3.lua", "include 'pipe.lua'\n");
  unit_fails_with(load("3.lua", e), CLEAVE_ERROR_RULE, "not a regular file");
  unit_fails_with(load("pipe.lua", e), CLEAVE_ERROR_IO, "not a regular file");
  end();
}

UNIT_TEST(refuses_compiled_chunks_in_included_files) {
  begin();
  write_file("code.lua", "\x1bLua");
  write_file("r.lua", "include 'code.lua'\n");
  unit_fails(load("r.lua", e), CLEAVE_ERROR_RULE,
             "r.lua:1: code.lua: expected Lua text, found a compiled chunk");
  end();
}

UNIT_TEST(rule_text_from_memory_includes_nothing) {
  static const char TEXT[] = "\ninclude 'x.lua'\n";
  cleave_rules_t *rules = NULL;
  unit_fails(cleave_rules_load(
                 NULL, &(cleave_rule_source_t){.path = "r.lua", .text = TEXT, .length = sizeof TEXT - 1},
                 NULL, NULL, &rules, e),
             CLEAVE_ERROR_RULE, "r.lua:2: include 'x.lua': only rules from a file can include others");
}

UNIT_TEST(callbacks_include_nothing) {
  begin();
  write_file("x.lua", "return 1\n");
  write_file("r.lua",
             "return ruleset { name = 'r', options = { o = option.boolean(true, 'x') },\n"
             "  fuse 'f' { pattern = op 'Conv', enabled = function() return include 'x.lua' end } }\n");
  unit_fails(load("r.lua", e), CLEAVE_ERROR_RULE,
             "r.lua:2: fuse 'f': include 'x.lua': files are included while the rule file loads, not in its "
             "functions");
  end();
}

typedef struct noted {
  char paths[8][64];
  int count;
} noted_t;

static void note(void *context, const char *path) {
  noted_t *noted = context;
  ck_assert_int_lt(noted->count, 8);
  (void)snprintf(noted->paths[noted->count++], sizeof noted->paths[0], "%s", path);
}

UNIT_TEST(shipped_rules_include_shipped_files_only) {
  unit_ok(load("onednn", e));
  noted_t noted = {.count = 0};
  cleave_rules_listener_t listener = {note, &noted};
  cleave_rules_t *rules = NULL;
  unit_ok(cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "onednn"}, NULL, &listener, &rules, e));
  ck_assert_int_eq(noted.count, 1);
  ck_assert_str_eq(noted.paths[0], "onednn");
  cleave_rules_destroy(rules);
}

/* ---- limits ---- */

UNIT_TEST(names_the_chain_of_files_that_include_each_other) {
  begin();
  write_file("a.lua", "include 'b.lua'\n");
  write_file("b.lua", "\ninclude 'c.lua'\n");
  write_file("c.lua", "\n\ninclude 'b.lua'\n");
  write_file("r.lua", "include 'a.lua'\n");
  write_file("self.lua", "include 'self.lua'\n");
  unit_fails(load("r.lua", e), CLEAVE_ERROR_RULE,
             "c.lua:3: files include each other: b.lua -> c.lua -> b.lua");
  unit_fails(load("self.lua", e), CLEAVE_ERROR_RULE,
             "self.lua:1: files include each other: self.lua -> self.lua");
  end();
}

UNIT_TEST(a_failed_file_may_be_included_again) {
  begin();
  write_file("bad.lua", "error 'no'\n");
  write_file("good.lua", "return op 'Conv'\n");
  write_file("r.lua",
             "for k = 1, 20 do\n"
             "  local ok, message = pcall(include, 'bad.lua')\n"
             "  assert(not ok and message == 'bad.lua:1: no', message)\n"
             "end\n"
             "local p = include 'good.lua'\n" SET);
  unit_ok(load("r.lua", e));
  write_file("s.lua", "pcall(include, 'bad.lua')\n\nerror { 1 }\n");
  unit_fails(load("s.lua", e), CLEAVE_ERROR_RULE, "s.lua:3: raised a table value instead of a message");
  end();
}

UNIT_TEST(bounds_number_and_depth_of_files) {
  begin();
  char name[32];
  char text[64];
  for (int k = 0; k < 20; k++) {
    (void)snprintf(name, sizeof name, "deep_%d.lua", k);
    (void)snprintf(text, sizeof text, "include 'deep_%d.lua'\n", k + 1);
    write_file(name, text);
  }
  unit_fails(load("deep_0.lua", e), CLEAVE_ERROR_RULE,
             "deep_16.lua:1: include 'deep_17.lua': more than 16 files that include each other in a row");
  for (int k = 0; k < 64; k++) {
    (void)snprintf(name, sizeof name, "wide_%d.lua", k);
    write_file(name, "return 1\n");
  }
  write_file("wide.lua", "for k = 0, 63 do include('wide_' .. k .. '.lua') end\n");
  unit_fails(load("wide.lua", e), CLEAVE_ERROR_LIMIT, "wide.lua:1: more than 64 files");
  end();
}

UNIT_TEST(bounds_the_size_of_a_file) {
  begin();
  size_t size = CLEAVE_SCRIPT_TEXT_LIMIT + 1024;
  char *text = malloc(size);
  ck_assert_ptr_nonnull(text);
  memset(text, '\n', size);
  unit_ok(cleave_file_write("big.lua", text, size, e));
  note_made("big.lua");
  free(text);
  write_file("r.lua", "include 'big.lua'\n");
  unit_fails_with(load("r.lua", e), CLEAVE_ERROR_LIMIT, "a file of 1025 KiB, expected at most 1024 KiB");
  unit_fails_with(load("big.lua", e), CLEAVE_ERROR_LIMIT, "a file of 1025 KiB, expected at most 1024 KiB");
  end();
}

UNIT_TEST(a_loop_in_an_included_file_ends_with_its_line) {
  begin();
  write_file("loop.lua", "\n\nwhile true do end\n");
  write_file("r.lua", "while true do pcall(include, 'loop.lua') end\n");
  unit_fails(load("r.lua", e), CLEAVE_ERROR_LIMIT, "loop.lua:3: the time budget of 2000 ms is spent");
  end();
}

/* ---- the list of files ---- */

UNIT_TEST(a_listener_learns_of_the_files_that_were_read) {
  begin();
  make_folder("rules");
  write_file("rules/a.lua", "return op 'Conv'\n");
  write_file("rules/r.lua", "local p = include 'a.lua'\nassert(require 'a' == p)\n" SET);
  noted_t noted = {.count = 0};
  cleave_rules_listener_t listener = {note, &noted};
  cleave_rules_t *rules = NULL;
  unit_ok(
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "rules/r.lua"}, NULL, &listener, &rules, e));
  ck_assert_int_eq(noted.count, 2);
  ck_assert_str_eq(noted.paths[0], "rules/r.lua");
  ck_assert_str_eq(noted.paths[1], "rules/a.lua");
  cleave_rules_destroy(rules);
  end();
}

UNIT_TEST(a_listener_learns_of_files_also_when_loading_fails) {
  begin();
  write_file("broken.lua", "local = 1\n");
  write_file("r.lua", "include 'broken.lua'\n");
  write_file("s.lua", "include 'missing.lua'\n");
  noted_t noted = {.count = 0};
  cleave_rules_listener_t listener = {note, &noted};
  cleave_rules_t *rules = NULL;
  unit_fails_with(
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "r.lua"}, NULL, &listener, &rules, e),
      CLEAVE_ERROR_RULE, "broken.lua:1:");
  unit_fails_with(
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "s.lua"}, NULL, &listener, &rules, e),
      CLEAVE_ERROR_RULE, "missing.lua");
  unit_fails_with(
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "gone.lua"}, NULL, &listener, &rules, e),
      CLEAVE_ERROR_IO, "gone.lua");
  ck_assert_int_eq(noted.count, 5);
  static const char *const EXPECTED[] = {"r.lua", "broken.lua", "s.lua", "missing.lua", "gone.lua"};
  for (int k = 0; k < 5; k++) {
    ck_assert_str_eq(noted.paths[k], EXPECTED[k]);
  }
  end();
}

UNIT_SUITE("include")
