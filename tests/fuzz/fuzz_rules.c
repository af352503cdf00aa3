// SPDX-License-Identifier: Apache-2.0
// Rule files for libFuzzer: what loads is run over a small graph, and its tests are built. Every outcome is
// good but a crash, a leak, an error without a message, and a call that does not end. Built by the preset
// `fuzz`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "graph/verify.h"
#include "partition/partition.h"
#include "script/declared.h"
#include "script/model_script.h"
#include "script/rules.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { MOST_MS = 300 }; /* of all scripts, for one input */

static void fail(const char *what, const cleave_error_t *error) {
  (void)fprintf(stderr, "%s: status %d: '%s'\n", what, (int)error->status, error->message);
  abort();
}

/* conv -> batch norm -> add -> relu, and a gelu beside it. */
static cleave_graph_t *make_graph(void) {
  static const char TEXT[] =
      "local x = g.input('x', 'float32', { 1, 4, 8, 8 })\n"
      "local y = g.batch_norm(g.Conv(x, g.weight { 4, 4, 3, 3 }, { pads = { 1, 1, 1, 1 } }))\n"
      "y = g.Relu(y + x)\n"
      "local z = g.MatMul(y, g.weight { 8, 8, fan_in = 8 })\n"
      "return z * 0.5 * (g.Erf(z / 1.41421356) + 1), g.Softmax(y)\n";
  char path[64];
  cleave_graph_t *graph = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  (void)snprintf(path, sizeof path, "fuzz_sample_%ld.lua", (long)getpid());
  if (cleave_file_write(path, TEXT, sizeof TEXT - 1, &error) != CLEAVE_OK ||
      cleave_model_script_load(NULL, path, NULL, 0, 0, NULL, &graph, &error) != CLEAVE_OK) {
    fail("the sample", &error);
  }
  (void)unlink(path);
  return graph;
}

static void check(cleave_status_t status, const cleave_error_t *error) {
  if (status != CLEAVE_OK && (error->message[0] == '\0' || strchr(error->message, '\n') != NULL)) {
    fail("no message of one line", error);
  }
}

static void run_over(const cleave_rules_t *rules, const cleave_graph_t *graph) {
  uint32_t count = 0;
  const cleave_ruleset_t *sets[1] = {cleave_rules_rulesets(rules, &count)};
  cleave_plan_t *plan = NULL;
  cleave_partition_options_t options = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  check(cleave_partition(graph, sets, 1, &options, &plan, &error), &error);
  cleave_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  static cleave_graph_t *sample;
  sample = sample == NULL ? make_graph() : sample;
  cleave_rules_t *rules = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_context_set_script_time(NULL, MOST_MS);
  cleave_status_t status =
      cleave_rules_load_text(NULL, "fuzz.lua", (const char *)data, size, NULL, 0, NULL, &rules, &error);
  check(status, &error);
  if (status != CLEAVE_OK) {
    return 0;
  }
  run_over(rules, sample);
  const cleave_declared_t *declared = cleave_rules_declared(rules);
  for (uint32_t k = 0; k < declared->test_count && k < 4; k++) {
    cleave_graph_t *graph = NULL;
    cleave_error_t problem = CLEAVE_ERROR_INIT;
    cleave_status_t built = cleave_rules_build_test(rules, &declared->tests[k], &graph, &problem);
    check(built, &problem);
    if (built == CLEAVE_OK) {
      run_over(rules, graph);
    }
    cleave_graph_destroy(graph);
  }
  cleave_rules_destroy(rules);
  return 0;
}
