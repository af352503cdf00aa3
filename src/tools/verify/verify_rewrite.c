// SPDX-License-Identifier: Apache-2.0
// The log of changes says which value took the place of which. Both graphs run on `cpu` once, with these
// values as further outputs.
#include "tools/verify/verify_rewrite.h"

#include "backend/region/view.h"
#include "graph/clone.h"

typedef struct rewrites {
  const cleave_plan_t *plan;
  const cleave_verify_options_t *options;
  CLEAVE_ARRAY(cleave_value_pair_t) pairs;
  CLEAVE_ARRAY(cleave_value_t) origins; /* by value that rules made: the source's value that it stands for */
} rewrites_t;

static bool is_live(const cleave_graph_t *graph, cleave_value_t value) {
  if (value.index >= cleave_graph_value_bound(graph)) {
    return false;
  }
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  cleave_node_t producer = {record->producer};
  return !record->is_removed && (record->tensor != NULL || record->is_input ||
                                 (cleave_node_exists(producer) && cleave_node_is_live(graph, producer)));
}

/* ---- which values stand for which ---- */

static cleave_status_t note_origin(rewrites_t *rewrites, cleave_value_t value, cleave_value_t origin,
                                   cleave_error_t *error) {
  uint32_t first = rewrites->plan->edits->source_values;
  while (rewrites->origins.count <= value.index - first) {
    CLEAVE_ARRAY_PUSH(&rewrites->origins, CLEAVE_VALUE_NONE, error);
  }
  rewrites->origins.items[value.index - first] = origin;
  return CLEAVE_OK;
}

static cleave_value_t origin_of(const rewrites_t *rewrites, cleave_value_t value) {
  uint32_t first = rewrites->plan->edits->source_values;
  if (value.index < first) {
    return value;
  }
  uint32_t index = value.index - first;
  return index < rewrites->origins.count ? rewrites->origins.items[index] : CLEAVE_VALUE_NONE;
}

static cleave_status_t list_pairs(rewrites_t *rewrites, cleave_error_t *error) {
  const cleave_plan_t *plan = rewrites->plan;
  const cleave_edits_t *edits = plan->edits;
  for (size_t g = 0; g < edits->groups.count; g++) {
    const cleave_edit_group_t *group = &edits->groups.items[g];
    for (uint32_t k = 0; group->rule != CLEAVE_INDEX_NONE && k < group->edit_count; k++) {
      const cleave_edit_t *edit = &edits->items.items[group->first_edit + k];
      if (edit->kind != CLEAVE_EDIT_REPLACE_USES) {
        continue;
      }
      cleave_value_t origin = origin_of(rewrites, edit->other);
      if (!cleave_value_exists(origin)) {
        continue;
      }
      if (edit->value.index >= edits->source_values) {
        CLEAVE_TRY(note_origin(rewrites, edit->value, origin, error));
      }
      cleave_value_pair_t pair = {origin, edit->value, edits->rules.items[group->rule].number};
      CLEAVE_ARRAY_PUSH(&rewrites->pairs, pair, error);
    }
  }
  size_t kept = 0;
  for (size_t k = 0; k < rewrites->pairs.count; k++) {
    cleave_value_pair_t pair = rewrites->pairs.items[k];
    if (is_live(plan->graph, pair.result) && is_live(plan->source, pair.source)) {
      rewrites->pairs.items[kept++] = pair;
    }
  }
  rewrites->pairs.count = kept;
  return CLEAVE_OK;
}

/* ---- running ---- */

/* A graph that has run on `cpu`, with the values of the pairs as its last outputs. */
typedef struct tapped {
  cleave_graph_t *graph;
  cleave_tensor_t **inputs; /* borrowed tensors */
  size_t input_count;
  cleave_tensor_t **results;
  size_t result_count;
} tapped_t;

static void deinit_tapped(tapped_t *tapped) {
  for (size_t k = 0; tapped->results != NULL && k < tapped->result_count; k++) {
    cleave_tensor_release(tapped->results[k]);
  }
  cleave_free(tapped->results);
  cleave_free(tapped->inputs);
  cleave_graph_destroy(tapped->graph);
}

/* Readers of a value that a rule made get the source's value from now on, so that a rewrite is not blamed for
 * those before it. */
static cleave_status_t read_source(const rewrites_t *rewrites, tapped_t *tapped,
                                   const cleave_value_pair_t *pair, cleave_tensor_t *source,
                                   cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(tapped->graph, pair->result);
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  cleave_value_t input = CLEAVE_VALUE_NONE;
  if (pair->result.index < rewrites->plan->edits->source_values || record->use_count == 0 ||
      record->dtype != (uint8_t)source->dtype) {
    return CLEAVE_OK;
  }
  for (int32_t d = 0; d < source->rank; d++) {
    dims[d] = source->dims[d];
  }
  CLEAVE_TRY(
      cleave_graph_add_input(tapped->graph, "source", source->dtype, source->rank, dims, &input, error));
  cleave_graph_replace_uses(tapped->graph, pair->result, input);
  tapped->inputs[tapped->input_count++] = source;
  return CLEAVE_OK;
}

/* Runs the source (`sources` NULL), or what the rules made of it, where every rewrite reads the source's
 * values: `sources` has one tensor per pair. */
static cleave_status_t run_tapped(const rewrites_t *rewrites, cleave_tensor_t *const *sources,
                                  tapped_t *tapped, cleave_error_t *error) {
  const cleave_verify_options_t *options = rewrites->options;
  const cleave_graph_t *graph = sources == NULL ? rewrites->plan->source : rewrites->plan->graph;
  size_t count = rewrites->pairs.count;
  tapped->result_count = graph->outputs.count + count;
  tapped->results = cleave_allocate_zeroed(tapped->result_count, sizeof *tapped->results);
  tapped->inputs = cleave_allocate(options->input_count + count, sizeof *tapped->inputs);
  CLEAVE_TRY_MEMORY(tapped->results != NULL && tapped->inputs != NULL, error);
  for (size_t k = 0; k < options->input_count; k++) {
    tapped->inputs[tapped->input_count++] = options->inputs[k];
  }
  CLEAVE_TRY(cleave_graph_copy(graph, &tapped->graph, error));
  for (size_t k = 0; sources != NULL && k < count; k++) {
    CLEAVE_TRY(read_source(rewrites, tapped, &rewrites->pairs.items[k], sources[k], error));
  }
  for (size_t k = 0; k < count; k++) {
    const cleave_value_pair_t *pair = &rewrites->pairs.items[k];
    CLEAVE_TRY(
        cleave_graph_add_output(tapped->graph, "tap", sources == NULL ? pair->source : pair->result, error));
  }
  return cleave_check_reference(tapped->graph, tapped->inputs, tapped->input_count, options->threads,
                                tapped->results, tapped->result_count, error);
}

/* ---- comparing ---- */

static cleave_status_t item_of(cleave_verify_report_t *report, uint32_t rule, cleave_verify_item_t **out_item,
                               cleave_error_t *error) {
  for (size_t k = report->items.count; k > 0; k--) {
    cleave_verify_item_t *item = &report->items.items[k - 1];
    if (item->kind == CLEAVE_VERIFY_REWRITE && item->rule == rule) {
      *out_item = item;
      return CLEAVE_OK;
    }
  }
  cleave_verify_item_t item = {.kind = CLEAVE_VERIFY_REWRITE, .index = CLEAVE_INDEX_NONE, .rule = rule};
  CLEAVE_TRY(cleave_array_reserve(&report->items, 1, error));
  cleave_array_push_reserved(&report->items, item);
  *out_item = &report->items.items[report->items.count - 1];
  return CLEAVE_OK;
}

/* Values of the source, `tapped` and the pair's, from one run. */
static cleave_status_t keep_values(const rewrites_t *rewrites, const cleave_rewrite_parts_t *parts,
                                   cleave_value_t output, cleave_verify_item_t *item, cleave_error_t *error) {
  const cleave_verify_options_t *options = rewrites->options;
  size_t count = parts->inputs.count;
  cleave_status_t status = CLEAVE_OK;
  tapped_t tapped = {.graph = NULL};
  CLEAVE_TRY_CLEANUP(cleave_graph_copy(rewrites->plan->source, &tapped.graph, error));
  size_t first = tapped.graph->outputs.count;
  for (size_t k = 0; k < count; k++) {
    CLEAVE_TRY_CLEANUP(cleave_graph_add_output(tapped.graph, "tap", parts->inputs.items[k], error));
  }
  CLEAVE_TRY_CLEANUP(cleave_graph_add_output(tapped.graph, "tap", output, error));
  tapped.result_count = first + count + 1;
  tapped.results = cleave_allocate_zeroed(tapped.result_count, sizeof *tapped.results);
  item->inputs = cleave_allocate_zeroed(count, sizeof *item->inputs);
  item->outputs = cleave_allocate_zeroed(1, sizeof *item->outputs);
  CLEAVE_TRY_MEMORY_CLEANUP(tapped.results != NULL && item->inputs != NULL && item->outputs != NULL, error);
  CLEAVE_TRY_CLEANUP(cleave_check_reference(tapped.graph, options->inputs, options->input_count,
                                            options->threads, tapped.results, tapped.result_count, error));
  item->input_count = (uint32_t)count;
  item->output_count = 1;
  for (size_t k = 0; k < count; k++) {
    item->inputs[k] = cleave_tensor_retain(tapped.results[first + k]);
  }
  item->outputs[0] = cleave_tensor_retain(tapped.results[first + count]);
cleanup:
  deinit_tapped(&tapped);
  return status;
}

/* Keeps what is needed to see the mismatch again. */
static cleave_status_t keep_failure(const rewrites_t *rewrites, const cleave_value_pair_t *pair,
                                    cleave_verify_item_t *item, cleave_error_t *error) {
  cleave_rewrite_parts_t parts;
  cleave_status_t status =
      cleave_rewrite_parts_find(rewrites->plan, rewrites->pairs.items, rewrites->pairs.count,
                                (size_t)(pair - rewrites->pairs.items), &parts, error);
  CLEAVE_THEN(status, keep_values(rewrites, &parts, pair->source, item, error));
  if (status == CLEAVE_OK) {
    item->graph = parts.before;
    item->after = parts.after;
    parts.before = NULL;
    parts.after = NULL;
  }
  cleave_rewrite_parts_deinit(&parts);
  return status;
}

/* `index`: of its value among those of `rounding`. */
static cleave_status_t compare_pair(const rewrites_t *rewrites, const cleave_value_pair_t *pair,
                                    const cleave_tensor_t *expected, cleave_rounding_t *rounding,
                                    size_t index, cleave_verify_report_t *report, cleave_error_t *error) {
  cleave_verify_item_t *item = NULL;
  CLEAVE_TRY(item_of(report, pair->rule, &item, error));
  cleave_tensor_view_t view = cleave_tensor_view(rounding->values[index]);
  cleave_check_result_t result;
  CLEAVE_TRY(cleave_verify_compare(rewrites->options, rounding, index, &view, expected, &result, error));
  item->count++;
  bool is_largest = item->index == CLEAVE_INDEX_NONE || result.difference.max_absolute > item->max_absolute;
  if (is_largest && item->verdict == CLEAVE_VERIFY_MATCH) {
    item->index = pair->source.index;
  }
  item->max_absolute = is_largest ? result.difference.max_absolute : item->max_absolute;
  item->relative = result.relative > item->relative ? result.relative : item->relative;
  if (!result.matches && item->verdict == CLEAVE_VERIFY_MATCH) {
    cleave_check_explain(cleave_value_name(rewrites->plan->source, pair->source), &view, expected, &result,
                         &item->reason);
    item->verdict = CLEAVE_VERIFY_MISMATCH;
    item->index = pair->source.index;
    report->mismatches++;
    CLEAVE_TRY(keep_failure(rewrites, pair, item, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t skip_all(const rewrites_t *rewrites, cleave_verify_report_t *report,
                                cleave_error_t *error) {
  for (size_t k = 0; k < rewrites->pairs.count; k++) {
    cleave_verify_item_t *item = NULL;
    CLEAVE_TRY(item_of(report, rewrites->pairs.items[k].rule, &item, error));
    if (item->count++ == 0) {
      item->verdict = CLEAVE_VERIFY_SKIPPED;
      cleave_text_add(&item->reason, "a pass added inputs to the graph");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t compare_all(const rewrites_t *rewrites, cleave_verify_report_t *report,
                                   cleave_error_t *error) {
  size_t count = rewrites->pairs.count;
  if (rewrites->plan->graph->inputs.count != rewrites->options->input_count ||
      rewrites->plan->source->inputs.count != rewrites->options->input_count) {
    return skip_all(rewrites, report, error);
  }
  cleave_status_t status = CLEAVE_OK;
  tapped_t source = {.graph = NULL};
  tapped_t result = {.graph = NULL};
  cleave_rounding_t rounding = {.threads = rewrites->options->threads,
                                .narrowed_from = rewrites->plan->edits->source_values};
  CLEAVE_TRY_CLEANUP(run_tapped(rewrites, NULL, &source, error));
  cleave_tensor_t *const *expected = source.results + source.result_count - count;
  CLEAVE_TRY_CLEANUP(run_tapped(rewrites, expected, &result, error));
  rounding.graph = result.graph;
  rounding.inputs = result.inputs;
  rounding.input_count = result.input_count;
  rounding.values = result.results;
  rounding.value_count = result.result_count;
  for (size_t k = 0; k < count; k++) {
    CLEAVE_TRY_CLEANUP(compare_pair(rewrites, &rewrites->pairs.items[k], expected[k], &rounding,
                                    result.result_count - count + k, report, error));
  }
cleanup:
  cleave_rounding_deinit(&rounding);
  deinit_tapped(&result);
  deinit_tapped(&source);
  return status;
}

cleave_status_t cleave_verify_rewrites(const cleave_plan_t *plan, const cleave_verify_options_t *options,
                                       cleave_verify_report_t *report, cleave_error_t *error) {
  if (plan->edits == NULL || plan->rewritten == NULL) {
    return CLEAVE_OK;
  }
  rewrites_t rewrites = {.plan = plan, .options = options};
  cleave_status_t status = list_pairs(&rewrites, error);
  if (status == CLEAVE_OK && rewrites.pairs.count > 0) {
    status = compare_all(&rewrites, report, error);
    CLEAVE_THEN(status, cleave_verify_random(plan, rewrites.pairs.items, rewrites.pairs.count, options,
                                             report, error));
  }
  cleave_array_free(&rewrites.pairs);
  cleave_array_free(&rewrites.origins);
  return status;
}
