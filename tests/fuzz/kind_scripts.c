// SPDX-License-Identifier: Apache-2.0
// Model scripts: operators with any arguments, changed. What loads verifies, and is run as a model.
#include "damage.h"
#include "fuzz.h"
#include "graph/verify.h"
#include "runtime/model/model.h"

enum { MAX_MS = 100 };
static const unsigned STATUSES = FUZZ_STATUS(RULE) | FUZZ_STATUS(LIMIT) | FUZZ_STATUS(FORMAT) |
                                 FUZZ_STATUS(SHAPE) | FUZZ_STATUS(UNSUPPORTED);

static size_t damage(char *data, size_t size, size_t room) {
  return fuzz_rules.damage(data, size, room);
}

static fuzz_outcome_t use_graph(cleave_graph_t *graph) {
  cleave_model_t *model = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  fuzz_ok(cleave_graph_verify(graph, e));
  cleave_status_t status = cleave_model_create_take(graph, &model, &error);
  fuzz_check(status, &error, STATUSES);
  bool ran = status == CLEAVE_OK && fuzz_run_model(model, NULL, NULL);
  cleave_model_release(model);
  return ran ? FUZZ_USED : FUZZ_READ;
}

static fuzz_outcome_t run(const void *data, size_t size) {
  cleave_graph_t *graph = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_context_set_script_time(NULL, MAX_MS);
  cleave_status_t status = fuzz_build(data, size, &graph, &error);
  cleave_context_set_script_time(NULL, 0);
  fuzz_check(status, &error, STATUSES);
  return status == CLEAVE_OK ? use_graph(graph) : FUZZ_REFUSED;
}

const fuzz_kind_t fuzz_scripts = {fuzz_draw_script, damage, run};
