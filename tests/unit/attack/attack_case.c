// SPDX-License-Identifier: Apache-2.0
/* Attacks, their places, and what must come out. */
#include "attack_case.h"

#include "graph/verify.h"
#include "runtime/model/rule_list.h"
#include "script/rules/declared.h"
#include "system/clock.h"

/* ---- places where code runs ---- */

typedef struct place {
  const char *name;
  const char *text;  /* of the ruleset, with `once` as the function that attacks when it is first called */
  bool builds_graph; /* the code runs when the test's graph is built */
} place_t;

#define TEST_GRAPH                                                                                    \
  "  test 'graph' { graph = function(g, x) return g.Relu(g.Exp(g.Relu(x))) end, inputs = { { 4 } }, " \
  "expect = {} },\n"

static const place_t PLACES[] = {
    {"where", TEST_GRAPH "  fuse 'r' { pattern = op { 'Relu', as = 'x' }, where = once },\n", false},
    {"supported", TEST_GRAPH "  region 'r' { supported = once },\n", false},
    {"selector",
     TEST_GRAPH "  region 'r' { selector = function() once() return { select = function() return true end } "
                "end },\n",
     false},
    {"select", TEST_GRAPH "  region 'r' { selector = function() return { select = once } end },\n", false},
    {"select_output",
     TEST_GRAPH "  region 'r' { selector = function() return { select = function() return true end, "
                "select_output = once, select_input = once } end },\n",
     false},
    {"filter",
     TEST_GRAPH "  region 'r' { selector = function() return { select = function() return true end, "
                "filter = function(nodes) once() return nodes end } end },\n",
     false},
    {"review", TEST_GRAPH "  region 'r' { ops = { 'Relu', 'Exp' }, review = once },\n", false},
    {"replace",
     TEST_GRAPH
     "  rewrite 'r' { pattern = op { 'Exp', inputs = { any 'x' } }, replace = function(m, g) once() return "
     "g.Sin(m.x) end },\n",
     false},
    {"pass", TEST_GRAPH "  pass 'r' { run = function(graph) once() end },\n", false},
    {"test graph",
     "  test 'r' { graph = function(g, x) once() return g.Relu(x) end, inputs = { { 4 } }, expect = {} },\n"
     "  fuse 'f' { pattern = op 'Relu' },\n",
     true},
};
enum { PLACE_COUNT = sizeof PLACES / sizeof PLACES[0] };

static void write_rules(char *text, size_t size, const attack_t *attack, const char *ruleset) {
  int length = snprintf(text, size,
                        "local calls = 0\n"
                        "local function attack(...)\n"
                        "%s\n"
                        "end\n"
                        "local function once(...)\n"
                        "  calls = calls + 1\n"
                        "  if calls == 1 then local ok, why = true, attack(...) return ok end\n"
                        "  return true\n"
                        "end\n"
                        "return ruleset { name = 'a', backend = 'cpu',\n"
                        "%s}\n",
                        attack->body, ruleset);
  ck_assert_int_lt(length, (int)size);
}

static const char RULES_PATH[] = "a.lua";

static cleave_status_t load(cleave_rule_list_t *list, const char *text, cleave_error_t *error) {
  cleave_rule_source_t source = {.path = RULES_PATH, .text = text, .length = strlen(text)};
  cleave_status_t status = cleave_rule_list_load(
      list, NULL,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
      NULL, error);
  list->stops_at_mistakes = true; /* those of `replace` are seen like all others */
  return status;
}

static cleave_status_t build_graph(const cleave_rule_list_t *list, cleave_graph_t **graph,
                                   cleave_error_t *error) {
  const cleave_declared_t *declared = cleave_rules_declared(list->files[0]);
  ck_assert_uint_eq(declared->test_count, 1);
  return cleave_rules_build_test(list->files[0], &declared->tests[0], graph, error);
}

/* One call of the code: the graph is built where it is NULL, and the rules run over it. */
static cleave_status_t run_rules(const cleave_rule_list_t *list, cleave_graph_t **graph,
                                 cleave_error_t *error) {
  if (*graph == NULL) {
    CLEAVE_TRY(build_graph(list, graph, error));
  }
  cleave_plan_t *plan = NULL;
  CLEAVE_TRY(cleave_rule_list_partition(list, *graph, &plan, error));
  cleave_plan_destroy(plan);
  return CLEAVE_OK;
}

/* ---- what must come out ---- */

enum { SLOWEST_MS = 20000 }; /* on a machine that does other things, under a sanitizer */

static void check_outcome(const attack_t *attack, const char *where, cleave_status_t status,
                          const cleave_error_t *error, uint64_t start) {
  double took = cleave_clock_ms(start, cleave_clock_now());
  bool is_late = strstr(error->message, "the time budget of") != NULL;
  bool is_full = strstr(error->message, "more than 256 MiB of memory") != NULL ||
                 strstr(error->message, "more than 32 MiB of memory in one piece") != NULL ||
                 strstr(error->message, "more than 1 MiB in one string") != NULL;
  bool good = false;
  switch (attack->outcome) {
    case OUT_OF_TIME: good = status == CLEAVE_ERROR_LIMIT && is_late; break;
    case OUT_OF_MEMORY: good = status == CLEAVE_ERROR_LIMIT && (is_late || is_full); break;
    case FAILS:
      good = (status == CLEAVE_ERROR_RULE && strstr(error->message, attack->message) != NULL) ||
             (status == CLEAVE_ERROR_LIMIT && is_late);
      break;
    case PASSES: good = status == CLEAVE_OK; break;
  }
  ck_assert_msg(good, "%s in %s: status %d: %s", attack->name, where, (int)status, error->message);
  ck_assert_msg(took < SLOWEST_MS, "%s in %s took %.0f ms", attack->name, where, took);
  if (status != CLEAVE_OK) {
    ck_assert_msg(error->line >= 1 && strncmp(error->message, "a.lua:", 6) == 0, "%s in %s: no line in '%s'",
                  attack->name, where, error->message);
    ck_assert_msg(strchr(error->message, '\n') == NULL, "%s in %s: '%s'", attack->name, where,
                  error->message);
  }
}

static void attack_place(const attack_t *attack, const place_t *place) {
  static char text[16384];
  cleave_rule_list_t list = {0};
  cleave_graph_t *graph = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  write_rules(text, sizeof text, attack, place->text);
  unit_ok(load(&list, text, e));
  if (!place->builds_graph) {
    unit_ok(build_graph(&list, &graph, e));
  }
  uint64_t start = cleave_clock_now();
  cleave_status_t status = run_rules(&list, &graph, &error);
  check_outcome(attack, place->name, status, &error, start);
  /* The same interpreter works on. */
  cleave_error_t again = CLEAVE_ERROR_INIT;
  status = run_rules(&list, &graph, &again);
  ck_assert_msg(status == CLEAVE_OK, "%s in %s, afterwards: %s", attack->name, place->name, again.message);
  unit_ok(cleave_graph_verify(graph, e));
  cleave_graph_destroy(graph);
  cleave_rule_list_deinit(&list);
}

static void attack_load(const attack_t *attack) {
  static char text[16384];
  cleave_rule_list_t list = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  write_rules(text, sizeof text, attack, "  doc = once() and '' or '',\n");
  uint64_t start = cleave_clock_now();
  cleave_status_t status = load(&list, text, &error);
  check_outcome(attack, "load", status, &error, start);
  cleave_rule_list_deinit(&list);
}

void attack_loading(const attack_t *attacks, size_t count) {
  for (size_t k = 0; k < count; k++) {
    attack_load(&attacks[k]);
  }
}

void attack_callbacks(const attack_t *attacks, size_t count) {
  static const size_t WHICH[] = {0, 1, 6, 7};
  for (size_t k = 0; k < count; k++) {
    attack_place(&attacks[k], &PLACES[WHICH[k % 4]]);
  }
}

void attack_everywhere(const attack_t *attacks, size_t count) {
  for (size_t k = 0; k < count; k++) {
    for (size_t p = 0; p < PLACE_COUNT; p++) {
      attack_place(&attacks[k], &PLACES[p]);
    }
    attack_load(&attacks[k]);
  }
}
