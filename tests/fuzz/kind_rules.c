// SPDX-License-Identifier: Apache-2.0
// Rule files: those that ship, changed, and chunks that call the words with random arguments. What loads is
// run over the sample, and so are its tests over their own graphs. All scripts of one input share a budget of
// time, so that an endless loop costs no more.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "damage.h"
#include "fuzz.h"
#include "partition/grow/partition.h"
#include "runtime/model/model.h"
#include "script/rules/declared.h"
#include "script/state/embedded.h"

enum { MAX_MS = 100, MAX_TESTS = 4, MAX_FILES = 16 };
static const unsigned STATUSES = FUZZ_STATUS(RULE) | FUZZ_STATUS(LIMIT) | FUZZ_STATUS(FORMAT) |
                                 FUZZ_STATUS(SHAPE) | FUZZ_STATUS(UNSUPPORTED);

static void draw(cleave_text_t *out) {
  static const cleave_embedded_file_t *files[MAX_FILES];
  static size_t count;
  if (count == 0) {
    for (const cleave_embedded_file_t *file = cleave_embedded_files; file->name != NULL; file++) {
      if (strncmp(file->name, "rules/", 6) == 0 && count < MAX_FILES) {
        files[count++] = file;
      }
    }
  }
  size_t index = damage_random(count + 4);
  if (index < count) {
    cleave_text_append(out, files[index]->text, files[index]->length);
  } else {
    fuzz_draw_rules(out);
  }
}

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

static size_t damage(char *data, size_t size, size_t room) {
  size_t at = damage_random(size + 1);
  size_t cut = damage_random(4) == 0 ? damage_random(40) : damage_random(3);
  size_t after = at + cut < size ? at + cut : size;
  char middle[64] = "";
  size_t length = 0;
  switch (damage_random(3)) {
    case 0:
      length = (size_t)snprintf(middle, sizeof middle, " %s ",
                                WORDS[damage_random(sizeof WORDS / sizeof WORDS[0])]);
      break;
    case 1:
      middle[0] = (char)damage_random(256);
      length = 1;
      break;
    default: break;
  }
  if (at + length + (size - after) > room) {
    return size;
  }
  memmove(data + at + length, data + after, size - after);
  memcpy(data + at, middle, length);
  return at + length + (size - after);
}

static void run_over(const cleave_rules_t *rules, const cleave_graph_t *graph) {
  uint32_t count = 0;
  const cleave_ruleset_t *sets[1] = {cleave_rules_rulesets(rules, &count)};
  const cleave_partition_options_t options = {0};
  cleave_plan_t *plan = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_partition(graph, sets, 1, &options, &plan, &error);
  fuzz_check(status, &error, STATUSES);
  if (status == CLEAVE_OK) {
    fuzz_ok(cleave_plan_check(plan, e));
  }
  cleave_plan_destroy(plan);
}

static fuzz_outcome_t run(const void *data, size_t size) {
  const cleave_graph_t *sample = cleave_model_graph(fuzz_sample());
  cleave_rules_t *rules = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  char *copy = fuzz_copy(data, size);
  cleave_context_set_script_time(NULL, MAX_MS);
  cleave_status_t status =
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = "f.lua", .text = copy, .length = size}, NULL,
                        NULL, &rules, &error);
  free(copy);
  fuzz_check(status, &error, STATUSES);
  if (status == CLEAVE_OK) {
    run_over(rules, sample);
    const cleave_declared_t *declared = cleave_rules_declared(rules);
    for (uint32_t k = 0; k < declared->test_count && k < MAX_TESTS; k++) {
      cleave_graph_t *graph = NULL;
      cleave_error_t problem = CLEAVE_ERROR_INIT;
      cleave_status_t built = cleave_rules_build_test(rules, &declared->tests[k], &graph, &problem);
      fuzz_check(built, &problem, STATUSES);
      if (built == CLEAVE_OK) {
        run_over(rules, graph);
      }
      cleave_graph_destroy(graph);
    }
  }
  cleave_rules_destroy(rules);
  cleave_context_set_script_time(NULL, 0);
  return status == CLEAVE_OK ? FUZZ_USED : FUZZ_REFUSED;
}

const fuzz_kind_t fuzz_rules = {draw, damage, run};
