// SPDX-License-Identifier: Apache-2.0
// Runs one case: plan, session, two rounds with different inputs, and the comparison with `cpu`.
#include "sweep_case.h"

#include <stdio.h>
#include <string.h>

#include "backend/program/supports.h"
#include "backend/registry/registry.h"
#include "partition/rewrite/transform.h"
#include "tools/verify/check.h"

enum { MAX_OUTPUTS = 64, ROUNDS = 2 };

typedef struct variant {
  bool by_rules;
  bool symbolic;
  uint32_t fusion;      /* nodes of the largest fusion, or SWEEP_ANY_FUSION */
  const char *fused_by; /* a backend, or NULL: all */
  int32_t threads;
} variant_t;

/* Copies of the outputs of one run. */
typedef struct results {
  cleave_tensor_t *outputs[MAX_OUTPUTS];
  size_t count;
} results_t;

static void release_results(results_t *results) {
  for (size_t k = 0; k < results->count; k++) {
    cleave_tensor_release(results->outputs[k]);
  }
  results->count = 0;
}

static void fail(sweep_t *sweep, const char *backend, const variant_t *variant, const char *why) {
  sweep->tally.failed++;
  printf("FAILED %s on %s, %s, %s, %d threads: %s\n  --case '%s'\n", sweep->subject, backend,
         variant->by_rules ? "by rules" : "as nodes", variant->symbolic ? "sizes unknown" : "sizes known",
         (int)variant->threads, why, sweep->text);
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
                            .backend = cleave_backend_name(NULL, backend),
                            .file = "sweep",
                            .rules = &everything,
                            .rule_count = 1};
  uint32_t ruleset_count = 0;
  const cleave_ruleset_t *ruleset =
      by_rules ? cleave_rules_rulesets(sweep->rules[backend], &ruleset_count) : &whole;
  cleave_transform_options_t changes = {.stops_at_mistakes = true};
  cleave_transformation_t transformation;
  CLEAVE_TRY(cleave_transform(graph, &ruleset, 1, &changes, &transformation, error));
  const cleave_graph_t *subject = transformation.graph != NULL ? transformation.graph : graph;
  cleave_status_t status = CLEAVE_OK;
  cleave_plan_t *plan = NULL;
  cleave_supports_t supports;
  cleave_supports_init(&supports, subject);
  cleave_partition_options_t options = {.supports = cleave_supports_ask, .backend_context = &supports};
  CLEAVE_TRY_CLEANUP(cleave_partition(subject, &ruleset, 1, &options, &plan, error));
  CLEAVE_TRY_CLEANUP(cleave_transformation_move(&transformation, graph, plan, error));
  CLEAVE_TRY_CLEANUP(cleave_plan_check(plan, error));
  *out_plan = plan;
  plan = NULL;
cleanup:
  cleave_plan_destroy(plan);
  cleave_supports_deinit(&supports);
  cleave_transformation_deinit(&transformation);
  return status;
}

static void note_refusals(sweep_t *sweep, const cleave_plan_t *plan, uint32_t backend) {
  for (uint32_t k = 0; k < plan->note_count; k++) {
    if (plan->notes[k].kind == CLEAVE_PLAN_NOTE_BACKEND) {
      sweep_add_reason(sweep, cleave_backend_name(NULL, backend), plan->notes[k].reason);
    }
  }
}

/* Rules of regions alone fuse nothing. */
static bool has_fuse_rules(const sweep_t *sweep, uint32_t backend) {
  uint32_t count = 0;
  const cleave_ruleset_t *rulesets = cleave_rules_rulesets(sweep->rules[backend], &count);
  for (uint32_t s = 0; s < count; s++) {
    for (uint32_t r = 0; r < rulesets[s].rule_count; r++) {
      if (rulesets[s].rules[r].kind == CLEAVE_RULE_FUSE) {
        return true;
      }
    }
  }
  return false;
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

/* Memory that holds numbers, for the outputs that are added to it. */
static cleave_status_t hold(const sweep_graph_t *graph, cleave_session_t *session, uint32_t round,
                            results_t *held, cleave_error_t *error) {
  for (size_t k = graph->added_from; k > 0 && k < graph->graph->outputs.count; k++) {
    const cleave_value_record_t *record =
        cleave_graph_value(graph->graph, cleave_graph_output(graph->graph, k));
    cleave_tensor_t **tensor = &held->outputs[held->count];
    CLEAVE_TRY(
        cleave_tensor_create((cleave_dtype_t)record->dtype, record->rank, record->dims, tensor, error));
    held->count++;
    cleave_tensor_fill_normal(*tensor, k + 100 * round, 0.0, 1.0);
    const cleave_tensor_view_t view = cleave_tensor_view(*tensor);
    CLEAVE_TRY(cleave_session_set_output(session, (uint32_t)k, &view, CLEAVE_REQUEST_ADD, error));
  }
  return CLEAVE_OK;
}

/* Runs with the inputs of a round. In the second, inputs lie off alignment. They must not be written to. */
static cleave_status_t run_round(const sweep_graph_t *graph, cleave_session_t *session, uint32_t round,
                                 results_t *results, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_tensor_t *inputs[SWEEP_MAX_INPUTS] = {NULL};
  unsigned char *copies[SWEEP_MAX_INPUTS] = {NULL};
  results_t held = {.count = 0};
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
  CLEAVE_TRY_CLEANUP(hold(graph, session, round, &held, error));
  CLEAVE_TRY_CLEANUP(cleave_session_run(session, error));
  CLEAVE_TRY_CLEANUP(copy_outputs(session, graph->graph->outputs.count, results, error));
  for (size_t k = 0; k < graph->input_count; k++) {
    const unsigned char *data = copies[k] + (cleave_dtype_size(inputs[k]->dtype) == 4 ? shift : 0);
    if (inputs[k]->bytes > 0 && memcmp(data, inputs[k]->data, inputs[k]->bytes) != 0) {
      status = cleave_error_set(error, CLEAVE_ERROR_MISMATCH, "input %zu was written to", k);
    }
  }
cleanup:
  release_results(&held); /* the next run is given its own, or there is none */
  for (size_t k = 0; k < graph->input_count; k++) {
    cleave_tensor_release(inputs[k]);
    cleave_free(copies[k]);
  }
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

/* All rounds in one session. What was accepted has to compile: a note of the session is a failure, unless the
 * backend did not know all sizes when it accepted. */
static cleave_status_t run(sweep_t *sweep, const sweep_graph_t *graph, const cleave_plan_t *plan,
                           int32_t threads, results_t *results, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_session_t *session = NULL;
  cleave_session_options_t options = {
      .size = sizeof options, .threads = threads, .imperative = sweep->imperative};
  cleave_tensor_view_t views[SWEEP_MAX_INPUTS];
  const cleave_tensor_view_t *pointers[SWEEP_MAX_INPUTS];
  if (graph->graph->outputs.count > MAX_OUTPUTS) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "too many outputs");
  }
  for (size_t k = 0; k < graph->input_count; k++) {
    cleave_value_t input = graph->graph->inputs.items[k];
    views[k] = (cleave_tensor_view_t){.size = sizeof views[k],
                                      .dtype = (cleave_dtype_t)cleave_graph_value(graph->graph, input)->dtype,
                                      .rank = graph->inputs[k].rank,
                                      .dims = graph->inputs[k].dims};
    pointers[k] = &views[k];
  }
  CLEAVE_TRY(cleave_session_create_planned(graph->graph, plan, pointers, graph->input_count, &options,
                                           &session, error));
  if (cleave_session_note_count(session) > 0) {
    const char *note = cleave_session_note(session, 0);
    if (shapes_known(graph->graph)) {
      CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_BACKEND, "accepted, but: %s", note));
    }
    sweep->tally.fallbacks++;
    sweep_add_reason(sweep, "a session", note);
  }
  for (uint32_t round = 0; round < ROUNDS; round++) {
    status = run_round(graph, session, round, &results[round], error);
    if (status != CLEAVE_OK) {
      break;
    }
  }
  /* Kernels that do nothing leave numbers that the nodes on cpu refuse. */
  if (status != CLEAVE_OK && sweep->blind && strstr(error->message, "NVRTC") == NULL) {
    cleave_error_t none = CLEAVE_ERROR_INIT;
    *error = none;
    status = CLEAVE_OK;
  }
cleanup:
  cleave_session_destroy(session);
  return status;
}

/* ---- comparing ---- */

/* Rounding differs by the order of sums and by the approximation of functions, and grows with the largest
 * number of a tensor, unless that is one among huge ones. Regions on `cpu` give the same bits as nodes, and
 * so do its kernels in `mirror`; its fusions, which only rules make, reduce in another order. */
static cleave_check_tolerance_t tolerance_for(const sweep_t *sweep, const char *backend,
                                              const sweep_graph_t *graph, cleave_dtype_t dtype) {
  bool exact = (strcmp(backend, "cpu") == 0 && !sweep->kernels) || strcmp(backend, "mirror") == 0;
  double unit = dtype == CLEAVE_DTYPE_F16    ? 1e-3
                : dtype == CLEAVE_DTYPE_BF16 ? 8e-3
                : dtype == CLEAVE_DTYPE_F64  ? 1e-13
                                             : 4e-6;
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

static void run_on(sweep_t *sweep, const sweep_graph_t *graph, uint32_t backend, const variant_t *variant,
                   const results_t *expected) {
  const char *name = cleave_backend_name(NULL, backend);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_plan_t *plan = NULL;
  cleave_text_t why = {0};
  results_t actual[ROUNDS] = {{.count = 0}};
  sweep->tally.cases++;
  if (partition(sweep, graph->graph, backend, variant->by_rules, &plan, &error) != CLEAVE_OK) {
    fail(sweep, name, variant, error.message);
    goto cleanup;
  }
  note_refusals(sweep, plan, backend);
  bool is_counted = variant->fused_by == NULL || strcmp(variant->fused_by, name) == 0;
  if (variant->fusion != SWEEP_ANY_FUSION && is_counted && has_fuse_rules(sweep, backend) &&
      largest_fusion(plan) != variant->fusion) {
    cleave_text_format(&why, "the largest fusion has %u nodes, expected %u", largest_fusion(plan),
                       variant->fusion);
    fail(sweep, name, variant, cleave_text_get(&why));
    goto cleanup;
  }
  if (plan->region_count == 0) {
    sweep->tally.refused++;
    goto cleanup;
  }
  if (run(sweep, graph, plan, variant->threads, actual, &error) != CLEAVE_OK) {
    fail(sweep, name, variant, error.message);
    goto cleanup;
  }
  for (uint32_t round = 0; round < ROUNDS && !sweep->blind; round++) {
    if (!compare(sweep, name, graph, &actual[round], &expected[round], &why)) {
      fail(sweep, name, variant, cleave_text_get(&why));
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

/* On all backends that the variant is for. */
static void run_variant(sweep_t *sweep, const sweep_graph_t *graph, const variant_t *variant,
                        const results_t *expected) {
  for (uint32_t backend = 0; backend < cleave_backend_count(NULL) && backend < SWEEP_MAX_BACKENDS;
       backend++) {
    const char *name = cleave_backend_name(NULL, backend);
    bool wanted =
        sweep->only_backend == NULL ? !sweep->is_left_out[backend] : strcmp(sweep->only_backend, name) == 0;
    if (wanted && (!variant->by_rules || sweep->rules[backend] != NULL)) {
      run_on(sweep, graph, backend, variant, expected);
    }
  }
}

static void run_sized(sweep_t *sweep, const sweep_graph_t *graph, const variant_t *variant,
                      results_t *expected) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (run(sweep, graph, NULL, variant->threads, expected, &error) != CLEAVE_OK) {
    fail(sweep, "cpu alone", variant, error.message);
  } else {
    run_variant(sweep, graph, variant, expected);
  }
}

static void release_rounds(results_t *results) {
  for (uint32_t round = 0; round < ROUNDS; round++) {
    release_results(&results[round]);
  }
}

/* Forward and backward; gradients are written, and added to what is there. */
static void run_backward(sweep_t *sweep, const variant_t *variant) {
  for (int adds = 0; adds < 2; adds++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    sweep_graph_t graph = {0};
    results_t expected[ROUNDS] = {{.count = 0}};
    bool passes = false;
    if (sweep_graph_read(sweep->text, SWEEP_SIZED, &graph, &error) != CLEAVE_OK ||
        sweep_backward_add(&graph, adds != 0, &passes, &error) != CLEAVE_OK) {
      fail(sweep, "no backend", variant, error.message);
    } else if (passes) {
      run_sized(sweep, &graph, variant, expected);
    }
    release_rounds(expected);
    sweep_graph_deinit(&graph);
  }
}

static void run_forward(sweep_t *sweep, variant_t *variant) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  sweep_graph_t graph = {0};
  results_t expected[ROUNDS] = {{.count = 0}};
  if (sweep_graph_read(sweep->text, SWEEP_SIZED, &graph, &error) != CLEAVE_OK) {
    fail(sweep, "no backend", variant, error.message);
    return;
  }
  run_sized(sweep, &graph, variant, expected);
  sweep_graph_deinit(&graph);
  if (expected[ROUNDS - 1].count > 0) {
    variant->symbolic = true;
    variant->fusion = SWEEP_ANY_FUSION;
    if (sweep_graph_read(sweep->text, SWEEP_SYMBOLIC, &graph, &error) != CLEAVE_OK) {
      fail(sweep, "no backend", variant, error.message);
    } else {
      run_variant(sweep, &graph, variant, expected);
    }
  }
  release_rounds(expected);
  sweep_graph_deinit(&graph);
}

void sweep_case_run(sweep_t *sweep, bool by_rules, uint32_t fusion, const char *fused_by) {
  variant_t variant = {
      .by_rules = by_rules, .fusion = fusion, .fused_by = fused_by, .threads = sweep->threads};
  bool is_new = sweep->gradients && sweep_gradient_is_new(sweep);
  if (sweep->every > 0 && sweep->case_number++ % sweep->every != sweep->from % sweep->every && !is_new) {
    return;
  }
  if (sweep->verbose) {
    printf("%s: %s\n", sweep->subject, sweep->text);
    (void)fflush(stdout);
  }
  if (variant.threads == 0) {
    variant.threads = sweep->turn++ % 8 == 7 ? 2 : 1;
  }
  if (!sweep->gradients) {
    run_forward(sweep, &variant);
  } else if (sweep->only_backend != NULL) {
    run_backward(sweep, &variant);
  } else {
    sweep_gradient_run(sweep);
  }
}
