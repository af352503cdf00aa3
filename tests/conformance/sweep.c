// SPDX-License-Identifier: Apache-2.0
// The driver of the sweep. A case runs on every backend; nothing that a backend accepted may fail, and all
// that it refused is printed with its reason at the end of a subject.
//
//   sweep [--verbose] [--backend NAME] [--case TEXT | SUBJECT...]
//
// --verbose prints each case before it runs, which tells where a crash was; --case runs one text alone, both
// as single nodes and by the rules.
#include "sweep.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/check.h"
#include "runtime/registry.h"
#include "runtime/view.h"

enum { LONGEST_CASE = 16384, MOST_REASONS = 512, MOST_BACKENDS = 8, MOST_OUTPUTS = 64, ROUNDS = 2 };
enum { ANY_FUSION = UINT32_MAX };

typedef struct reason {
  char text[256];
  char example[160];
  uint32_t count;
} reason_t;

typedef struct tally {
  uint32_t cases;
  uint32_t refused; /* cases in which the backend takes no node */
  uint32_t failed;
  double worst; /* largest part of the tolerance that a case used */
} tally_t;

struct sweep {
  const char *only_backend; /* or NULL */
  bool verbose;
  const char *subject;
  int32_t threads;
  double slack;
  uint64_t random;
  tally_t tally;
  reason_t reasons[MOST_REASONS];
  size_t reason_count;
  char text[LONGEST_CASE]; /* of the case at work */
  cleave_rules_t *rules[MOST_BACKENDS];
};

typedef struct expectation {
  bool by_rules;
  uint32_t fusion; /* nodes of the largest fusion, or ANY_FUSION */
} expectation_t;

/* Of a session run: inputs, and copies of outputs. */
typedef struct results {
  cleave_tensor_t *outputs[MOST_OUTPUTS];
  size_t count;
} results_t;

static void release_results(results_t *results) {
  for (size_t k = 0; k < results->count; k++) {
    cleave_tensor_release(results->outputs[k]);
  }
  results->count = 0;
}

static void fail(sweep_t *sweep, const char *backend, const char *how, const char *why) {
  sweep->tally.failed++;
  printf("FAILED %s on %s, %s, %d threads: %s\n  --case '%s'\n", sweep->subject, backend, how,
         (int)sweep->threads, why, sweep->text);
}

static void add_reason(sweep_t *sweep, const char *backend, const char *text) {
  char line[256];
  (void)snprintf(line, sizeof line, "%s: %.240s", backend, text);
  for (size_t k = 0; k < sweep->reason_count; k++) {
    if (strcmp(sweep->reasons[k].text, line) == 0) {
      sweep->reasons[k].count++;
      return;
    }
  }
  if (sweep->reason_count < MOST_REASONS) {
    reason_t *reason = &sweep->reasons[sweep->reason_count++];
    (void)memcpy(reason->text, line, sizeof line);
    (void)snprintf(reason->example, sizeof reason->example, "%.159s", sweep->text);
    reason->count = 1;
  }
}

/* ---- plans ---- */

static cleave_status_t partition(sweep_t *sweep, const cleave_graph_t *graph, uint32_t backend, bool by_rules,
                                 cleave_plan_t **out_plan, cleave_error_t *error) {
  cleave_rule_t everything = {.kind = CLEAVE_RULE_REGION,
                              .name = "everything",
                              .doc = "",
                              .file = "sweep",
                              .mode = CLEAVE_REGION_BACKEND};
  cleave_ruleset_t whole = {.name = "sweep",
                            .backend = cleave_backend_name(backend),
                            .file = "sweep",
                            .rules = &everything,
                            .rule_count = 1};
  const cleave_ruleset_t *ruleset = by_rules ? cleave_rules_ruleset(sweep->rules[backend]) : &whole;
  cleave_supports_t supports;
  cleave_supports_init(&supports, graph);
  cleave_partition_options_t options = {.supports = cleave_supports_ask, .supports_context = &supports};
  cleave_status_t status = cleave_partition(graph, &ruleset, 1, &options, out_plan, error);
  cleave_supports_deinit(&supports);
  return status == CLEAVE_OK ? cleave_plan_check(*out_plan, error) : status;
}

static void note_refusals(sweep_t *sweep, const cleave_plan_t *plan, uint32_t backend) {
  for (uint32_t k = 0; k < plan->note_count; k++) {
    if (plan->notes[k].kind == CLEAVE_PLAN_NOTE_BACKEND) {
      add_reason(sweep, cleave_backend_name(backend), plan->notes[k].reason);
    }
  }
}

static uint32_t largest_fusion(const cleave_plan_t *plan) {
  uint32_t most = 0;
  for (uint32_t k = 0; k < plan->fusion_count; k++) {
    most = plan->fusions[k].node_count > most ? plan->fusions[k].node_count : most;
  }
  return most;
}

/* ---- running ---- */

static cleave_status_t copy_outputs(const cleave_session_t *session, size_t count, results_t *results,
                                    cleave_error_t *error) {
  for (size_t k = 0; k < count; k++) {
    cleave_tensor_view_t view;
    CLEAVE_TRY(cleave_session_output(session, (uint32_t)k, &view, error));
    CLEAVE_TRY(cleave_tensor_create(view.dtype, view.rank, view.dims, &results->outputs[k], error));
    results->count = k + 1;
    if (results->outputs[k]->bytes > 0) {
      memcpy(results->outputs[k]->data, view.data, results->outputs[k]->bytes);
    }
  }
  return CLEAVE_OK;
}

/* Runs with the inputs of a round. In the second, inputs lie off alignment. They must not be written to. */
static cleave_status_t run_round(sweep_t *sweep, const sweep_graph_t *graph, cleave_session_t *session,
                                 uint32_t round, results_t *results, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_tensor_t *inputs[SWEEP_MOST_INPUTS] = {NULL};
  unsigned char *copies[SWEEP_MOST_INPUTS] = {NULL};
  size_t shift = round == 0 ? 0 : 4;
  for (size_t k = 0; k < graph->input_count; k++) {
    CLEAVE_TRY_CLEANUP(sweep_graph_feed(graph, k, round, &inputs[k], error));
    copies[k] = cleave_allocate_aligned(inputs[k]->bytes + 64);
    if (copies[k] == NULL) {
      CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
    }
    cleave_tensor_view_t view = cleave_tensor_view(inputs[k]);
    view.data = copies[k] + (cleave_dtype_size(view.dtype) == 4 ? shift : 0);
    if (inputs[k]->bytes > 0) {
      memcpy((void *)(uintptr_t)view.data, inputs[k]->data, inputs[k]->bytes);
    }
    CLEAVE_TRY_CLEANUP(cleave_session_set_input(session, (uint32_t)k, &view, error));
  }
  CLEAVE_TRY_CLEANUP(cleave_session_run(session, error));
  CLEAVE_TRY_CLEANUP(copy_outputs(session, graph->graph->outputs.count, results, error));
  for (size_t k = 0; k < graph->input_count; k++) {
    const unsigned char *data = copies[k] + (cleave_dtype_size(inputs[k]->dtype) == 4 ? shift : 0);
    if (inputs[k]->bytes > 0 && memcmp(data, inputs[k]->data, inputs[k]->bytes) != 0) {
      status = cleave_error_set(error, CLEAVE_ERROR_MISMATCH, "input %zu was written to", k);
    }
  }
cleanup:
  for (size_t k = 0; k < graph->input_count; k++) {
    cleave_tensor_release(inputs[k]);
    cleave_free(copies[k]);
  }
  (void)sweep;
  return status;
}

/* Shapes that only a run can tell make a session run a region node by node, and say so. */
static bool shapes_known(const cleave_graph_t *graph) {
  for (uint32_t v = 0; v < cleave_graph_value_bound(graph); v++) {
    const cleave_value_record_t *value = cleave_graph_value(graph, (cleave_value_t){v});
    int64_t count = 0;
    if (value->use_count > 0 && !cleave_shape_element_count(value->rank, value->dims, &count)) {
      return false;
    }
  }
  return true;
}

/* All rounds in one session. What was accepted has to compile: a note of the session is a failure. */
static cleave_status_t run(sweep_t *sweep, const sweep_graph_t *graph, const cleave_plan_t *plan,
                           results_t *results, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_session_t *session = NULL;
  cleave_session_options_t options = {.size = sizeof options, .threads = sweep->threads};
  if (graph->graph->outputs.count > MOST_OUTPUTS) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "too many outputs");
  }
  CLEAVE_TRY(cleave_session_create_planned(graph->graph, plan, NULL, 0, &options, &session, error));
  if (cleave_session_note_count(session) > 0 && shapes_known(graph->graph)) {
    CLEAVE_TRY_CLEANUP(
        cleave_error_set(error, CLEAVE_ERROR_BACKEND, "accepted, but: %s", cleave_session_note(session, 0)));
  }
  for (uint32_t round = 0; round < ROUNDS; round++) {
    CLEAVE_TRY_CLEANUP(run_round(sweep, graph, session, round, &results[round], error));
  }
cleanup:
  cleave_session_destroy(session);
  return status;
}

/* ---- comparing ---- */

/* Rounding differs by the order of sums and by the approximation of functions, and grows with the largest
 * number of a tensor, unless that is one among huge ones. Regions on `cpu` give the same bits as nodes. */
static cleave_check_tolerance_t tolerance_for(const sweep_t *sweep, const char *backend,
                                              const sweep_graph_t *graph, cleave_dtype_t dtype) {
  bool exact = strcmp(backend, "cpu") == 0;
  double unit = dtype == CLEAVE_DTYPE_F16 ? 1e-3 : dtype == CLEAVE_DTYPE_F64 ? 1e-13 : 4e-6;
  unit = exact ? 0.0 : unit * sweep->slack;
  bool wild = false;
  for (size_t k = 0; k < graph->input_count; k++) {
    wild = wild || graph->inputs[k].content == '~';
  }
  return (cleave_check_tolerance_t){.rtol = unit, .atol = unit, .scaled = !wild};
}

static bool compare(sweep_t *sweep, const char *backend, const sweep_graph_t *graph, const results_t *actual,
                    const results_t *expected, cleave_text_t *why) {
  for (size_t k = 0; k < expected->count; k++) {
    cleave_check_tolerance_t tolerance = tolerance_for(sweep, backend, graph, expected->outputs[k]->dtype);
    cleave_tensor_view_t view = cleave_tensor_view(actual->outputs[k]);
    cleave_check_result_t result;
    const char *name = cleave_strings_text(&graph->graph->strings, graph->graph->output_names.items[k]);
    if (cleave_check_tensor(&view, expected->outputs[k], &tolerance, &result, NULL) != CLEAVE_OK) {
      cleave_text_format(why, "output '%s' cannot be compared", name);
      return false;
    }
    if (!result.matches) {
      cleave_check_explain(name, &view, expected->outputs[k], &result, why);
      return false;
    }
    if (tolerance.scaled && tolerance.atol > 0.0) {
      double size = result.difference.max_expected > 1.0 ? result.difference.max_expected : 1.0;
      double part = result.difference.max_absolute / (tolerance.atol * size);
      sweep->tally.worst = part > sweep->tally.worst ? part : sweep->tally.worst;
    }
  }
  return true;
}

static void run_on(sweep_t *sweep, const sweep_graph_t *graph, uint32_t backend, expectation_t expectation,
                   const results_t *expected) {
  const char *name = cleave_backend_name(backend);
  const char *how = expectation.by_rules ? "by rules" : "as nodes";
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_plan_t *plan = NULL;
  cleave_text_t why = {0};
  results_t actual[ROUNDS] = {{.count = 0}};
  sweep->tally.cases++;
  if (partition(sweep, graph->graph, backend, expectation.by_rules, &plan, &error) != CLEAVE_OK) {
    fail(sweep, name, how, error.message);
    goto cleanup;
  }
  note_refusals(sweep, plan, backend);
  if (expectation.fusion != ANY_FUSION && largest_fusion(plan) != expectation.fusion) {
    cleave_text_format(&why, "the largest fusion has %u nodes, expected %u", largest_fusion(plan),
                       expectation.fusion);
    fail(sweep, name, how, cleave_text_get(&why));
    goto cleanup;
  }
  if (plan->region_count == 0) {
    sweep->tally.refused++;
    goto cleanup;
  }
  if (run(sweep, graph, plan, actual, &error) != CLEAVE_OK) {
    fail(sweep, name, how, error.message);
    goto cleanup;
  }
  for (uint32_t round = 0; round < ROUNDS; round++) {
    if (!compare(sweep, name, graph, &actual[round], &expected[round], &why)) {
      fail(sweep, name, how, cleave_text_get(&why));
      break;
    }
  }
cleanup:
  for (uint32_t round = 0; round < ROUNDS; round++) {
    release_results(&actual[round]);
  }
  cleave_text_deinit(&why);
  cleave_plan_destroy(plan);
}

static void run_case(sweep_t *sweep, expectation_t expectation) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  sweep_graph_t graph;
  results_t expected[ROUNDS] = {{.count = 0}};
  if (sweep->verbose) {
    printf("%s: %s\n", sweep->subject, sweep->text);
    (void)fflush(stdout);
  }
  if (sweep_graph_read(sweep->text, &graph, &error) != CLEAVE_OK) {
    fail(sweep, "no backend", "reading the case", error.message);
    return;
  }
  if (run(sweep, &graph, NULL, expected, &error) != CLEAVE_OK) {
    fail(sweep, "cpu", "unpartitioned", error.message);
  } else {
    for (uint32_t backend = 0; backend < cleave_backend_count() && backend < MOST_BACKENDS; backend++) {
      const char *name = cleave_backend_name(backend);
      bool wanted = sweep->only_backend == NULL || strcmp(sweep->only_backend, name) == 0;
      if (wanted && (!expectation.by_rules || sweep->rules[backend] != NULL)) {
        run_on(sweep, &graph, backend, expectation, expected);
      }
    }
  }
  for (uint32_t round = 0; round < ROUNDS; round++) {
    release_results(&expected[round]);
  }
  sweep_graph_deinit(&graph);
}

/* ---- what subjects call ---- */

#define SWEEP_FORMAT(sweep, format)                                    \
  do {                                                                 \
    va_list list;                                                      \
    va_start(list, format);                                            \
    (void)vsnprintf((sweep)->text, sizeof(sweep)->text, format, list); \
    va_end(list);                                                      \
  } while (0)

void sweep_nodes(sweep_t *sweep, const char *format, ...) {
  SWEEP_FORMAT(sweep, format);
  run_case(sweep, (expectation_t){.by_rules = false, .fusion = ANY_FUSION});
}

void sweep_rules(sweep_t *sweep, const char *format, ...) {
  SWEEP_FORMAT(sweep, format);
  run_case(sweep, (expectation_t){.by_rules = true, .fusion = ANY_FUSION});
}

void sweep_fused(sweep_t *sweep, uint32_t nodes, const char *format, ...) {
  SWEEP_FORMAT(sweep, format);
  run_case(sweep, (expectation_t){.by_rules = true, .fusion = nodes});
}

void sweep_set_threads(sweep_t *sweep, int32_t threads) {
  sweep->threads = threads;
}

void sweep_set_slack(sweep_t *sweep, double slack) {
  sweep->slack = slack;
}

uint32_t sweep_below(sweep_t *sweep, uint32_t bound) {
  sweep->random ^= sweep->random << 13;
  sweep->random ^= sweep->random >> 7;
  sweep->random ^= sweep->random << 17;
  return (uint32_t)((sweep->random >> 16) % bound);
}

/* ---- the program ---- */

static const struct {
  const char *name;
  void (*run)(sweep_t *sweep);
} subjects[] = {
#define SWEEP_ENTRY(name) {#name, sweep_##name},
    SWEEP_SUBJECTS(SWEEP_ENTRY)
#undef SWEEP_ENTRY
};
enum { SUBJECT_COUNT = sizeof subjects / sizeof subjects[0] };

static void start_subject(sweep_t *sweep, const char *name) {
  sweep->subject = name;
  sweep->threads = 1;
  sweep->slack = 1.0;
  sweep->random = UINT64_C(0x9e3779b97f4a7c15);
  sweep->tally = (tally_t){0};
  sweep->reason_count = 0;
}

static void print_subject(const sweep_t *sweep, double ms) {
  const tally_t *tally = &sweep->tally;
  for (size_t k = 0; k < sweep->reason_count; k++) {
    const reason_t *reason = &sweep->reasons[k];
    printf("refused %u times by %s\n  as in '%s'\n", reason->count, reason->text, reason->example);
  }
  printf("%s: %u cases, %u of them refused, %u failed; at worst %.2f of the tolerance; %.1f s\n",
         sweep->subject, tally->cases, tally->refused, tally->failed, tally->worst, ms / 1e3);
  (void)fflush(stdout);
}

/* Rules of every backend that has some. */
static bool load_rules(sweep_t *sweep) {
  for (uint32_t k = 0; k < cleave_backend_count() && k < MOST_BACKENDS; k++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/rules/%s.lua", CLEAVE_SOURCE_DIR, cleave_backend_name(k));
    FILE *file = fopen(path, "r");
    if (file == NULL) {
      continue;
    }
    (void)fclose(file);
    if (cleave_rules_load(path, NULL, 0, NULL, &sweep->rules[k], &error) != CLEAVE_OK) {
      printf("%s\n", error.message);
      return false;
    }
  }
  return true;
}

static bool is_chosen(const char *subject, int count, char **names) {
  for (int k = 0; k < count; k++) {
    if (strcmp(names[k], subject) == 0) {
      return true;
    }
  }
  return count == 0;
}

static uint32_t run_subjects(sweep_t *sweep, int count, char **names) {
  uint32_t failed = 0;
  for (size_t k = 0; k < SUBJECT_COUNT; k++) {
    if (is_chosen(subjects[k].name, count, names)) {
      uint64_t start = cleave_clock_now();
      start_subject(sweep, subjects[k].name);
      subjects[k].run(sweep);
      print_subject(sweep, cleave_clock_ms(start, cleave_clock_now()));
      failed += sweep->tally.failed;
    }
  }
  return failed;
}

int main(int argc, char **argv) {
  static sweep_t sweep;
  const char *text = NULL;
  uint32_t failed = 0;
  int next = 1;
  for (; next < argc && strncmp(argv[next], "--", 2) == 0; next++) {
    if (strcmp(argv[next], "--verbose") == 0) {
      sweep.verbose = true;
    } else if (strcmp(argv[next], "--backend") == 0 && next + 1 < argc) {
      sweep.only_backend = argv[++next];
    } else if (strcmp(argv[next], "--case") == 0 && next + 1 < argc) {
      text = argv[++next];
    } else {
      printf("usage: %s [--verbose] [--backend NAME] [--case TEXT | SUBJECT...]\n", argv[0]);
      return EXIT_FAILURE;
    }
  }
  if (!load_rules(&sweep)) {
    return EXIT_FAILURE;
  }
  if (text != NULL) {
    start_subject(&sweep, "case");
    sweep_nodes(&sweep, "%s", text);
    sweep_rules(&sweep, "%s", text);
    print_subject(&sweep, 0.0);
    failed = sweep.tally.failed;
  } else {
    failed = run_subjects(&sweep, argc - next, argv + next);
  }
  for (uint32_t k = 0; k < MOST_BACKENDS; k++) {
    cleave_rules_destroy(sweep.rules[k]);
  }
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
