/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broken and senseless scripts. Rule files: those that ship, with bytes and words changed, removed and
 * inserted, and chunks that call the words with random arguments; what loads is run over a small graph. Model
 * scripts: every operator with random arguments. The outcome must be a result, or one line that says what is
 * wrong. The generator is seeded, so that a failure comes again; the time is bounded.
 */
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "graph/verify.h"
#include "partition/partition.h"
#include "script/embedded.h"
#include "script/model_script.h"
#include "unit.h"

enum { ROUNDS = 3000 };
static const double budget_ms = 4000.0;

static uint64_t random_state = 88172645463325252U;

static uint64_t random_below(uint64_t bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % bound;
}

static const char *pick(const char *const *list, size_t count) {
  return list[random_below(count)];
}

#define PICK(list) pick((list), sizeof(list) / sizeof((list)[0]))

static void check_error(cleave_status_t status, const cleave_error_t *error, const char *text) {
  ck_assert_msg(status == CLEAVE_ERROR_RULE || status == CLEAVE_ERROR_LIMIT ||
                    status == CLEAVE_ERROR_FORMAT || status == CLEAVE_ERROR_SHAPE ||
                    status == CLEAVE_ERROR_UNSUPPORTED,
                "status %d: %s\n%s", status, error->message, text);
  ck_assert_msg(error->message[0] != '\0' && strchr(error->message, '\n') == NULL, "'%s'\n%s", error->message,
                text);
}

/* conv -> batch norm -> add -> relu, and a gelu beside it. */
static cleave_graph_t *sample_graph(void) {
  static const char TEXT[] =
      "local x = g.input('x', 'float32', { 1, 4, 8, 8 })\n"
      "local y = g.batch_norm(g.Conv(x, g.weight { 4, 4, 3, 3 }, { pads = { 1, 1, 1, 1 } }))\n"
      "y = g.Relu(y + x)\n"
      "local z = g.MatMul(y, g.weight { 8, 8, fan_in = 8 })\n"
      "return z * 0.5 * (g.Erf(z / 1.41421356) + 1), g.Softmax(y)\n";
  char path[64];
  cleave_graph_t *graph = NULL;
  (void)snprintf(path, sizeof path, "sample_%ld.lua", (long)getpid());
  unit_ok(cleave_file_write(path, TEXT, sizeof TEXT - 1, e));
  unit_ok(cleave_model_script_load(NULL, path, NULL, 0, 0, NULL, &graph, e));
  (void)unlink(path);
  return graph;
}

static bool try_rules(const char *text, size_t length, const cleave_graph_t *graph) {
  cleave_rules_t *rules = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_rules_load_text(NULL, "f.lua", text, length, NULL, 0, NULL, &rules, &error);
  if (status != CLEAVE_OK) {
    check_error(status, &error, text);
    return false;
  }
  uint32_t set_count = 0;
  const cleave_ruleset_t *sets[1] = {cleave_rules_rulesets(rules, &set_count)};
  cleave_plan_t *plan = NULL;
  cleave_partition_options_t options = {0};
  status = cleave_partition(graph, sets, 1, &options, &plan, &error);
  if (status != CLEAVE_OK) {
    check_error(status, &error, text);
  }
  cleave_plan_destroy(plan);
  cleave_rules_destroy(rules);
  return true;
}

/* ---- rule files with mistakes ---- */

static const char *const WORDS[] = {"op",
                                    "any",
                                    "constant",
                                    "maybe",
                                    "oneof",
                                    "repeated",
                                    "range",
                                    "absent",
                                    "fuse \"x\"",
                                    "region",
                                    ">>",
                                    "|",
                                    "{",
                                    "}",
                                    "(",
                                    ")",
                                    ",",
                                    "=",
                                    "nil",
                                    "true",
                                    "1e308",
                                    "-1",
                                    "0",
                                    "'Conv'",
                                    "'Add'",
                                    "\"\"",
                                    "where",
                                    "pattern",
                                    "inputs",
                                    "attrs",
                                    "as",
                                    "function() return nope end",
                                    "ruleset",
                                    "return",
                                    "end",
                                    "{}",
                                    "0/0",
                                    "1 << 62",
                                    "...",
                                    "options",
                                    "local x <close> = 1",
                                    "goto",
                                    "setmetatable({}, {})",
                                    "error({})",
                                    "pcall(error)",
                                    "tostring",
                                    "pairs {}",
                                    "string.rep('x', 99)"};

static void mutate(cleave_text_t *out, const char *text, size_t length) {
  size_t at = random_below(length + 1);
  size_t cut = random_below(4) == 0 ? random_below(40) : random_below(3);
  size_t after = at + cut < length ? at + cut : length;
  cleave_text_append(out, text, at);
  switch (random_below(3)) {
    case 0: cleave_text_format(out, " %s ", PICK(WORDS)); break;
    case 1: cleave_text_format(out, "%c", (char)random_below(256)); break;
    default: break;
  }
  cleave_text_append(out, text + after, length - after);
}

UNIT_TEST(outlives_rule_files_with_mistakes) {
  cleave_graph_t *graph = sample_graph();
  const cleave_embedded_file_t *files[16];
  size_t count = 0;
  size_t loaded = 0;
  size_t rounds = 0;
  for (const cleave_embedded_file_t *file = cleave_embedded_files; file->name != NULL; file++) {
    if (strncmp(file->name, "rules/", 6) == 0 && count < 16) {
      files[count++] = file;
    }
  }
  uint64_t start = cleave_clock_now();
  for (; rounds < ROUNDS && cleave_clock_ms(start, cleave_clock_now()) < budget_ms; rounds++) {
    const cleave_embedded_file_t *file = files[random_below(count)];
    cleave_text_t text = {0};
    mutate(&text, file->text, file->length);
    for (uint64_t more = random_below(3); more > 0; more--) {
      cleave_text_t again = {0};
      mutate(&again, text.data, text.length);
      cleave_text_deinit(&text);
      text = again;
    }
    loaded += try_rules(cleave_text_get(&text), text.length, graph) ? 1 : 0;
    cleave_text_deinit(&text);
  }
  ck_assert_uint_gt(rounds, 20);
  ck_assert_uint_gt(loaded, 0);
  ck_assert_uint_lt(loaded, rounds);
  cleave_graph_destroy(graph);
}

UNIT_TEST(outlives_rule_files_cut_anywhere) {
  cleave_graph_t *graph = sample_graph();
  const cleave_embedded_file_t *file = cleave_embedded_find("rules/conv_bn_relu.lua");
  ck_assert_ptr_nonnull(file);
  uint64_t start = cleave_clock_now();
  for (size_t length = 0; length < file->length && cleave_clock_ms(start, cleave_clock_now()) < budget_ms;
       length += 1 + random_below(5)) {
    (void)try_rules(file->text, length, graph);
  }
  cleave_graph_destroy(graph);
}

/* ---- words with any arguments ---- */

static const char *const CALLS[] = {"op",
                                    "any",
                                    "constant",
                                    "maybe",
                                    "oneof",
                                    "one_of",
                                    "repeated",
                                    "range",
                                    "variadic",
                                    "output",
                                    "group",
                                    "ruleset",
                                    "strategy",
                                    "fuse",
                                    "region",
                                    "rewrite",
                                    "pass",
                                    "test",
                                    "include",
                                    "require",
                                    "next",
                                    "table.move",
                                    "table.insert",
                                    "string.byte",
                                    "coroutine.create",
                                    "coroutine.close",
                                    "getmetatable",
                                    "option.integer",
                                    "option.enum",
                                    "option.list",
                                    "option.boolean",
                                    "string.format",
                                    "table.concat",
                                    "setmetatable",
                                    "pairs",
                                    "select",
                                    "string.find",
                                    "string.gsub",
                                    "table.sort",
                                    "xpcall",
                                    "coroutine.wrap",
                                    "tostring",
                                    "table.unpack",
                                    "string.rep",
                                    "math.max",
                                    "string.gmatch"};
static const char *const LEAVES[] = {"nil",
                                     "true",
                                     "0",
                                     "1",
                                     "-1",
                                     "2.5",
                                     "1e308",
                                     "0/0",
                                     "math.mininteger",
                                     "'Conv'",
                                     "'Relu'",
                                     "'x'",
                                     "''",
                                     "'%d+'",
                                     "{}",
                                     "absent",
                                     "present",
                                     "{ __index = pairs, __close = next, __call = op }",
                                     "coroutine.running()",
                                     "function(...) return ... end",
                                     "op 'Conv'",
                                     "any 'x'",
                                     "print",
                                     "pairs",
                                     "{ 'Conv', as = 'c' }",
                                     "{ 1, 2, 3 }",
                                     "{ min = 1 }",
                                     "{ { {} } }",
                                     "'\\0\\255'",
                                     "('a'):rep(300)"};
static const char *const KEYS[] = {"as",       "inputs",  "attrs",    "dtype",   "rank",      "shape",
                                   "shared",   "output",  "name",     "pattern", "where",     "ops",
                                   "min",      "max",     "when",     "value",   "tolerance", "scalar",
                                   "priority", "enabled", "selector", "options", "group"};

static void expression(cleave_text_t *out, int depth) {
  switch (depth == 0 ? 0 : random_below(6)) {
    case 0:
    case 1: cleave_text_add(out, PICK(LEAVES)); return;
    case 2:
      cleave_text_add(out, "(");
      expression(out, depth - 1);
      cleave_text_add(out, random_below(2) == 0 ? " >> " : " | ");
      expression(out, depth - 1);
      cleave_text_add(out, ")");
      return;
    case 3:
      cleave_text_add(out, "{");
      for (uint64_t k = random_below(4); k > 0; k--) {
        if (random_below(3) != 0) {
          cleave_text_format(out, "%s = ", PICK(KEYS));
        }
        expression(out, depth - 1);
        cleave_text_add(out, ", ");
      }
      cleave_text_add(out, "}");
      return;
    default:
      cleave_text_format(out, "%s(", PICK(CALLS));
      for (uint64_t k = random_below(4); k > 0; k--) {
        expression(out, depth - 1);
        cleave_text_add(out, k > 1 ? ", " : "");
      }
      cleave_text_add(out, ")");
      return;
  }
}

UNIT_TEST(outlives_words_with_any_arguments) {
  cleave_graph_t *graph = sample_graph();
  uint64_t start = cleave_clock_now();
  for (int round = 0; round < ROUNDS && cleave_clock_ms(start, cleave_clock_now()) < budget_ms; round++) {
    cleave_text_t text = {0};
    cleave_text_add(&text,
                    "local found = { name = 'r' }\nlocal function try(f)\n"
                    "  local ok, value = pcall(f)\n"
                    "  if ok and random == nil then found[#found + 1] = value end\nend\n");
    for (int k = 0; k < 20; k++) {
      cleave_text_add(&text, "pcall(function() local v = ");
      expression(&text, 4);
      cleave_text_add(&text, "\nreturn v end)\n");
    }
    cleave_text_add(&text, "return ruleset { name = 'r', fuse 'x' { pattern = ");
    expression(&text, 4);
    cleave_text_add(&text, " }, region 'g' ");
    expression(&text, 3);
    cleave_text_add(&text, " }\n");
    (void)try_rules(cleave_text_get(&text), text.length, graph);
    cleave_text_deinit(&text);
  }
  cleave_graph_destroy(graph);
}

/* ---- operators with any arguments ---- */

static const char *const VALUES[] = {"x",
                                     "i",
                                     "s",
                                     "v",
                                     "n",
                                     "nil",
                                     "1",
                                     "-1",
                                     "0.5",
                                     "true",
                                     "{ 1 }",
                                     "{ -1 }",
                                     "{ 0, 1 }",
                                     "{ 2, 3, 4 }",
                                     "{ 1.5 }",
                                     "{ { 1, 2 }, { 3, 4 } }",
                                     "g.weight { 4, 4, 3, 3 }",
                                     "g.weight { 8, 8 }",
                                     "g.zeros { 0, 3 }",
                                     "g.ones { 4 }",
                                     "x",
                                     "v",
                                     "g.constant({ 1, 1, 1, 1 }, 'int64')"};
static const char *const ATTRIBUTE_VALUES[] = {"0",
                                               "1",
                                               "-1",
                                               "2",
                                               "3.5",
                                               "true",
                                               "'x'",
                                               "{}",
                                               "{ 1 }",
                                               "{ 1, 1 }",
                                               "{ 2, 2, 2, 2 }",
                                               "{ -1 }",
                                               "1 << 40",
                                               "math.mininteger",
                                               "{ 0, 0 }",
                                               "x",
                                               "'float32'",
                                               "'linear'",
                                               "'SAME_UPPER'",
                                               "1e300"};

static void operator_call(cleave_text_t *text, const cleave_op_t *op) {
  cleave_text_format(text, "pcall(function() return g[%c%s%c](", '"', op->name, '"');
  uint64_t inputs = random_below(op->input_count + 2);
  for (uint64_t k = 0; k < inputs; k++) {
    cleave_text_format(text, "%s, ", PICK(VALUES));
  }
  cleave_text_add(text, "{ ");
  for (uint32_t k = 0; k < op->attribute_count; k++) {
    if (op->attributes[k].required || random_below(3) == 0) {
      cleave_text_format(text, "[%c%s%c] = %s, ", '"', op->attributes[k].value.name, '"',
                         PICK(ATTRIBUTE_VALUES));
    }
  }
  if (random_below(4) == 0) {
    cleave_text_format(text, "outputs = %d, ", (int)random_below(4));
  }
  cleave_text_add(text, "}) end)\n");
}

UNIT_TEST(outlives_operators_with_any_arguments) {
  char path[64];
  (void)snprintf(path, sizeof path, "operators_%ld.lua", (long)getpid());
  uint64_t start = cleave_clock_now();
  size_t built = 0;
  for (int round = 0; round < ROUNDS && cleave_clock_ms(start, cleave_clock_now()) < budget_ms; round++) {
    cleave_text_t text = {0};
    cleave_text_add(&text,
                    "local x = g.input('x', 'float32', { 1, 4, 8, 8 })\n"
                    "local i = g.input('i', 'int64', { 2, 3 })\n"
                    "local s = g.input('s', 'float32', {})\n"
                    "local v = g.input('v', 'float32', { 'N', 4 })\n"
                    "local n = g.input('n', 'float32', { '?', '?', 8 })\n"
                    "g.output('x', g.Relu(x))\n");
    for (int k = 0; k < 60; k++) {
      operator_call(&text, cleave_op_get((cleave_op_id_t)random_below(CLEAVE_OP_COUNT)));
    }
    cleave_graph_t *graph = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    unit_ok(cleave_file_write(path, cleave_text_get(&text), text.length, e));
    cleave_status_t status = cleave_model_script_load(NULL, path, NULL, 0, 0, NULL, &graph, &error);
    if (status == CLEAVE_OK) {
      unit_ok(cleave_graph_verify(graph, e));
      built++;
    } else {
      check_error(status, &error, cleave_text_get(&text));
    }
    cleave_graph_destroy(graph);
    cleave_text_deinit(&text);
  }
  (void)unlink(path);
  ck_assert_uint_gt(built, 0);
}

UNIT_MAIN("fuzz scripts")
