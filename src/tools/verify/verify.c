// SPDX-License-Identifier: Apache-2.0
// The model runs once on `cpu` with the inputs of all fusions and regions as further outputs; then each item
// is taken out of the graph twice: as a view for its backend, and as a graph of its own for `cpu`.
#include "tools/verify/verify.h"

#include <string.h>

#include "backend/program/region_run.h"
#include "base/hash.h"
#include "graph/clone.h"
#include "graph/extract.h"
#include "tools/verify/draw.h"
#include "tools/verify/verify_rewrite.h"

typedef struct item_set {
  cleave_view_t view;
  const cleave_plan_region_t *region; /* that it is, or is in */
  const char *backend;
} item_set_t;

typedef struct verifier {
  const cleave_plan_t *plan;
  const cleave_graph_t *graph;
  const cleave_verify_options_t *options;
  cleave_verify_report_t *report;
  cleave_view_builder_t views;
  cleave_arena_t arena;   /* of the item at work */
  uint32_t *tap_of;       /* by value: its number among the taps, or NONE */
  cleave_tensor_t **taps; /* values of graph inputs, then of the taps */
  uint32_t tap_count;
  CLEAVE_ARRAY(cleave_value_t) tapped;
  CLEAVE_ARRAY(uint64_t) hashes; /* by item of the report */
} verifier_t;

/* ---- items ---- */

/* The view of a fusion alone, or of a whole region with its fusions. Lives in the arena. */
static cleave_status_t build_view(verifier_t *verifier, cleave_verify_kind_t kind, uint32_t index,
                                  item_set_t *set, cleave_error_t *error) {
  const cleave_plan_t *plan = verifier->plan;
  bool is_fusion = kind == CLEAVE_VERIFY_FUSION;
  uint32_t region = is_fusion ? plan->fusions[index].region : index;
  const cleave_backend_handle_t *handle = NULL;
  set->region = &plan->regions[region];
  set->backend = set->region->backend;
  CLEAVE_TRY(cleave_registry_find(plan->graph->context, set->backend, &handle, error));
  return cleave_view_build_part(&verifier->views, plan, region, is_fusion ? index : CLEAVE_INDEX_NONE,
                                handle->backend->takes_sparse, &verifier->arena, &set->view, error);
}

static bool is_static(const item_set_t *set) {
  for (uint32_t k = 0; k < set->view.region.value_count; k++) {
    if (cleave_view_element_count(&set->view.region.values[k].tensor) < 0) {
      return false;
    }
  }
  return true;
}

/* Adds an item, unless one of the same structure, rule and backend is there. Marks its inputs as taps. */
static cleave_status_t list_item(verifier_t *verifier, cleave_verify_kind_t kind, uint32_t index,
                                 cleave_error_t *error) {
  item_set_t set;
  bool is_fusion = kind == CLEAVE_VERIFY_FUSION;
  cleave_status_t status = build_view(verifier, kind, index, &set, error);
  CLEAVE_TRY_OR(status, cleave_arena_reset(&verifier->arena));
  cleave_verify_report_t *report = verifier->report;
  uint32_t rule = is_fusion ? verifier->plan->fusions[index].rule : set.region->rule;
  uint64_t hash = cleave_hash_combine(set.view.region.hash, (uint64_t)rule << 1 | (is_fusion ? 1 : 0));
  for (size_t k = 0; !verifier->options->each && k < report->items.count; k++) {
    if (verifier->hashes.items[k] == hash) {
      report->items.items[k].count++;
      cleave_arena_reset(&verifier->arena);
      return CLEAVE_OK;
    }
  }
  cleave_verify_item_t item = {.kind = kind, .index = index, .count = 1, .rule = rule};
  if (!is_static(&set)) {
    item.verdict = CLEAVE_VERIFY_SKIPPED;
    cleave_text_add(&item.reason, "shapes are known only at run time");
  }
  for (uint32_t k = 0; item.verdict != CLEAVE_VERIFY_SKIPPED && k < set.view.region.input_count; k++) {
    cleave_value_t value = set.view.values[set.view.region.inputs[k]];
    if (verifier->tap_of[value.index] == CLEAVE_INDEX_NONE) {
      verifier->tap_of[value.index] = (uint32_t)verifier->tapped.count;
      CLEAVE_TRY_CLEANUP(cleave_array_reserve(&verifier->tapped, 1, error));
      cleave_array_push_reserved(&verifier->tapped, value);
    }
  }
  CLEAVE_TRY_CLEANUP(cleave_array_reserve(&verifier->hashes, 1, error));
  CLEAVE_TRY_CLEANUP(cleave_array_reserve(&report->items, 1, error));
  cleave_array_push_reserved(&verifier->hashes, hash);
  cleave_array_push_reserved(&report->items, item);
  item.reason = (cleave_text_t){0};
cleanup:
  cleave_text_deinit(&item.reason);
  cleave_arena_reset(&verifier->arena);
  return status;
}

static cleave_status_t list_items(verifier_t *verifier, cleave_error_t *error) {
  for (uint32_t k = 0; k < verifier->plan->fusion_count; k++) {
    CLEAVE_TRY(list_item(verifier, CLEAVE_VERIFY_FUSION, k, error));
  }
  for (uint32_t k = 0; k < verifier->plan->region_count; k++) {
    const cleave_plan_region_t *region = &verifier->plan->regions[k];
    bool is_one_fusion = region->fusion_count == 1 &&
                         verifier->plan->fusions[region->fusions[0]].node_count == region->node_count;
    if (!is_one_fusion) {
      CLEAVE_TRY(list_item(verifier, CLEAVE_VERIFY_REGION, k, error));
    }
  }
  return CLEAVE_OK;
}

/* ---- the values that reach the items ---- */

static cleave_status_t run_tapped(verifier_t *verifier, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_graph_t *graph = NULL;
  uint32_t count = (uint32_t)verifier->tapped.count;
  uint32_t outputs = (uint32_t)verifier->graph->outputs.count;
  cleave_tensor_t **results = cleave_allocate_zeroed((size_t)outputs + count, sizeof *results);
  verifier->taps = cleave_allocate_zeroed(count, sizeof(cleave_tensor_t *));
  CLEAVE_TRY_MEMORY_CLEANUP(results != NULL && verifier->taps != NULL, error);
  verifier->tap_count = count;
  if (count == 0) {
    goto cleanup;
  }
  CLEAVE_TRY_CLEANUP(cleave_graph_clone(verifier->graph, NULL, 0, &graph, error));
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY_CLEANUP(cleave_graph_add_output(graph, "tap", verifier->tapped.items[k], error));
  }
  CLEAVE_TRY_CLEANUP(cleave_check_reference(graph, verifier->options->inputs, verifier->options->input_count,
                                            verifier->options->threads, results, (size_t)outputs + count,
                                            error));
  for (uint32_t k = 0; k < count; k++) {
    verifier->taps[k] = cleave_tensor_retain(results[outputs + k]);
  }
cleanup:
  for (uint32_t k = 0; results != NULL && k < outputs + count; k++) {
    cleave_tensor_release(results[k]);
  }
  cleave_free(results);
  cleave_graph_destroy(graph);
  return status;
}

/* ---- one item ---- */

static void fail_item(cleave_verify_item_t *item, cleave_verify_verdict_t verdict, uint32_t round) {
  item->verdict = verdict;
  item->round = round;
}

static cleave_status_t compare(const verifier_t *verifier, const item_set_t *set,
                               cleave_tensor_t *const *actual, cleave_rounding_t *rounding, uint32_t round,
                               cleave_verify_item_t *item, cleave_error_t *error) {
  for (uint32_t k = 0; k < set->view.region.output_count; k++) {
    const cleave_tensor_t *expected = rounding->values[k];
    cleave_tensor_view_t view = cleave_tensor_view(actual[k]);
    cleave_check_result_t result;
    CLEAVE_TRY(cleave_verify_compare(verifier->options, rounding, k, &view, expected, &result, error));
    const cleave_difference_t *difference = &result.difference;
    item->max_absolute =
        difference->max_absolute > item->max_absolute ? difference->max_absolute : item->max_absolute;
    item->relative = result.relative > item->relative ? result.relative : item->relative;
    if (!result.matches && item->verdict == CLEAVE_VERIFY_MATCH) {
      const char *name = set->view.region.values[set->view.region.outputs[k]].name;
      cleave_check_explain(name, &view, expected, &result, &item->reason);
      fail_item(item, CLEAVE_VERIFY_MISMATCH, round);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t run_on_backend(const verifier_t *verifier, const item_set_t *set,
                                      cleave_tensor_t *const *inputs, uint32_t round,
                                      cleave_tensor_t **outputs, cleave_verify_item_t *item,
                                      cleave_error_t *error) {
  const cleave_region_view_t *region = &set->view.region;
  cleave_region_run_t run = {
      .view = &set->view, .threads = verifier->options->threads, .session = verifier->options->session};
  CLEAVE_TRY(cleave_registry_find(verifier->plan->graph->context, set->backend, &run.handle, error));
  cleave_tensor_view_t *views = cleave_allocate(region->input_count, sizeof *views);
  CLEAVE_TRY_MEMORY(views, error);
  for (uint32_t k = 0; k < region->input_count; k++) {
    views[k] = cleave_tensor_view(inputs[k]);
  }
  run.inputs = views;
  cleave_message_t message;
  cleave_status_t status = cleave_region_run(&run, outputs, &message);
  cleave_free(views);
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  if (status != CLEAVE_OK) {
    cleave_text_format(&item->reason, "%s: %s", set->backend,
                       message.text[0] != '\0' ? message.text : "no reason given");
    fail_item(item, CLEAVE_VERIFY_FAILED, round);
  }
  return CLEAVE_OK;
}

/* One round; what did not match stays with the item. */
static cleave_status_t run_round(verifier_t *verifier, const item_set_t *set, const cleave_graph_t *alone,
                                 uint32_t round, cleave_verify_item_t *item, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  const cleave_region_view_t *region = &set->view.region;
  size_t most = (size_t)region->input_count + 2 * (size_t)region->output_count;
  cleave_tensor_t **tensors = cleave_allocate_zeroed(most, sizeof *tensors);
  CLEAVE_TRY_MEMORY(tensors, error);
  cleave_tensor_t **actual = tensors + region->input_count;
  cleave_tensor_t **expected = actual + region->output_count;
  cleave_rounding_t rounding = {.tolerances = NULL};
  for (uint32_t k = 0; k < region->input_count; k++) {
    cleave_value_t value = set->view.values[region->inputs[k]];
    cleave_tensor_t *own = verifier->taps[verifier->tap_of[value.index]];
    uint64_t seed = cleave_hash_combine(verifier->options->seed + round, k);
    if (round == 0) {
      tensors[k] = cleave_tensor_retain(own);
    } else {
      CLEAVE_TRY_CLEANUP(cleave_draw_like(own, seed, 1.0, false, &tensors[k], error));
    }
  }
  CLEAVE_TRY_CLEANUP(run_on_backend(verifier, set, tensors, round, actual, item, error));
  if (item->verdict == CLEAVE_VERIFY_MATCH) {
    CLEAVE_TRY_CLEANUP(cleave_check_reference(alone, tensors, region->input_count, verifier->options->threads,
                                              expected, region->output_count, error));
    rounding = (cleave_rounding_t){.graph = alone,
                                   .inputs = tensors,
                                   .input_count = region->input_count,
                                   .values = expected,
                                   .value_count = region->output_count,
                                   .threads = verifier->options->threads,
                                   .digits = cleave_rounding_digits(set->region, 1)};
    CLEAVE_TRY_CLEANUP(compare(verifier, set, actual, &rounding, round, item, error));
  }
  if (item->verdict != CLEAVE_VERIFY_MATCH) {
    item->inputs = cleave_allocate_zeroed(region->input_count, sizeof *item->inputs);
    item->outputs = cleave_allocate_zeroed(region->output_count, sizeof *item->outputs);
    CLEAVE_TRY_MEMORY_CLEANUP(item->inputs != NULL && item->outputs != NULL, error);
    item->input_count = region->input_count;
    for (uint32_t k = 0; k < region->input_count; k++) {
      item->inputs[k] = cleave_tensor_retain(tensors[k]);
    }
    item->output_count = item->verdict == CLEAVE_VERIFY_MISMATCH ? region->output_count : 0;
    for (uint32_t k = 0; k < item->output_count; k++) {
      item->outputs[k] = cleave_tensor_retain(expected[k]);
    }
  }
cleanup:
  cleave_rounding_deinit(&rounding);
  for (size_t k = 0; k < most; k++) {
    cleave_tensor_release(tensors[k]);
  }
  cleave_free(tensors);
  return status;
}

static cleave_status_t extract_item(const verifier_t *verifier, const item_set_t *set,
                                    cleave_verify_kind_t kind, uint32_t index, cleave_graph_t **out_graph,
                                    cleave_error_t *error) {
  const cleave_region_view_t *region = &set->view.region;
  bool is_fusion = kind == CLEAVE_VERIFY_FUSION;
  const cleave_plan_fusion_t *fusion = is_fusion ? &verifier->plan->fusions[index] : NULL;
  size_t count = (size_t)region->input_count + region->output_count;
  cleave_value_t *values = cleave_allocate(count, sizeof *values);
  CLEAVE_TRY_MEMORY(values, error);
  for (uint32_t k = 0; k < region->input_count; k++) {
    values[k] = set->view.values[region->inputs[k]];
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    values[region->input_count + k] = set->view.values[region->outputs[k]];
  }
  cleave_extract_request_t request = {.nodes = is_fusion ? fusion->nodes : set->region->nodes,
                                      .node_count = is_fusion ? fusion->node_count : set->region->node_count,
                                      .inputs = values,
                                      .input_count = region->input_count,
                                      .outputs = values + region->input_count,
                                      .output_count = region->output_count};
  cleave_status_t status = cleave_graph_extract(verifier->graph, &request, out_graph, error);
  cleave_free(values);
  return status;
}

static cleave_status_t verify_item(verifier_t *verifier, cleave_verify_item_t *item, cleave_error_t *error) {
  item_set_t set;
  cleave_graph_t *alone = NULL;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(build_view(verifier, item->kind, item->index, &set, error));
  CLEAVE_TRY_CLEANUP(extract_item(verifier, &set, item->kind, item->index, &alone, error));
  for (uint32_t round = 0; item->verdict == CLEAVE_VERIFY_MATCH && round <= verifier->options->rounds;
       round++) {
    CLEAVE_TRY_CLEANUP(run_round(verifier, &set, alone, round, item, error));
  }
  if (item->verdict != CLEAVE_VERIFY_MATCH) {
    verifier->report->mismatches++;
    item->graph = alone;
    alone = NULL;
  }
cleanup:
  cleave_graph_destroy(alone);
  cleave_arena_reset(&verifier->arena);
  return status;
}

static cleave_status_t verify_all(verifier_t *verifier, cleave_error_t *error) {
  const cleave_verify_options_t *options = verifier->options;
  size_t values = (size_t)cleave_graph_value_bound(verifier->graph) + 1;
  verifier->tap_of = cleave_allocate(values, sizeof *verifier->tap_of);
  CLEAVE_TRY_MEMORY(verifier->tap_of, error);
  memset(verifier->tap_of, 0xff, values * sizeof *verifier->tap_of);
  CLEAVE_TRY(list_items(verifier, error));
  CLEAVE_TRY(run_tapped(verifier, error));
  uint32_t total = (uint32_t)verifier->report->items.count;
  for (uint32_t k = 0; k < total; k++) {
    if (options->progress != NULL) {
      options->progress(options->context, k, total);
    }
    if (verifier->report->items.items[k].verdict == CLEAVE_VERIFY_MATCH) {
      CLEAVE_TRY(verify_item(verifier, &verifier->report->items.items[k], error));
    }
  }
  return cleave_verify_rewrites(verifier->plan, options, verifier->report, error);
}

cleave_status_t cleave_plan_verify(const cleave_plan_t *plan, const cleave_verify_options_t *options,
                                   cleave_verify_report_t *out_report, cleave_error_t *error) {
  *out_report = (cleave_verify_report_t){0};
  verifier_t verifier = {.plan = plan, .graph = plan->graph, .options = options, .report = out_report};
  cleave_view_builder_init(&verifier.views, plan->graph);
  cleave_status_t status = verify_all(&verifier, error);
  for (uint32_t k = 0; k < verifier.tap_count; k++) {
    cleave_tensor_release(verifier.taps[k]);
  }
  cleave_free(verifier.taps);
  cleave_free(verifier.tap_of);
  cleave_array_free(&verifier.tapped);
  cleave_array_free(&verifier.hashes);
  cleave_view_builder_deinit(&verifier.views);
  cleave_arena_deinit(&verifier.arena);
  return status;
}

void cleave_verify_report_deinit(cleave_verify_report_t *report) {
  for (size_t k = 0; k < report->items.count; k++) {
    cleave_verify_item_t *item = &report->items.items[k];
    for (uint32_t i = 0; i < item->input_count; i++) {
      cleave_tensor_release(item->inputs[i]);
    }
    for (uint32_t i = 0; i < item->output_count; i++) {
      cleave_tensor_release(item->outputs[i]);
    }
    cleave_free(item->inputs);
    cleave_free(item->outputs);
    cleave_graph_destroy(item->graph);
    cleave_graph_destroy(item->after);
    cleave_text_deinit(&item->reason);
  }
  cleave_array_free(&report->items);
  *report = (cleave_verify_report_t){0};
}
