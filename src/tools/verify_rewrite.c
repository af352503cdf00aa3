// SPDX-License-Identifier: Apache-2.0
// The log of changes says which value took the place of which. Both graphs run on `cpu` once, with these
// values as further outputs.
#include "tools/verify_rewrite.h"

#include <string.h>

#include "backend/view.h"
#include "graph/clone.h"

typedef struct pair {
  cleave_value_t source; /* of plan->source */
  cleave_value_t result; /* of plan->graph */
  uint32_t rule;         /* in plan->rules */
} pair_t;

typedef struct rewrites {
  const cleave_plan_t *plan;
  const cleave_verify_options_t *options;
  CLEAVE_ARRAY(pair_t) pairs;
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
      pair_t pair = {origin, edit->value, edits->rules.items[group->rule].number};
      CLEAVE_ARRAY_PUSH(&rewrites->pairs, pair, error);
    }
  }
  size_t kept = 0;
  for (size_t k = 0; k < rewrites->pairs.count; k++) {
    pair_t pair = rewrites->pairs.items[k];
    if (is_live(plan->graph, pair.result) && is_live(plan->source, pair.source)) {
      rewrites->pairs.items[kept++] = pair;
    }
  }
  rewrites->pairs.count = kept;
  return CLEAVE_OK;
}

/* ---- running ---- */

/* The values of the pairs, one tensor each, in their order. */
static cleave_status_t run_tapped(const rewrites_t *rewrites, bool source, cleave_tensor_t **tensors,
                                  cleave_error_t *error) {
  const cleave_graph_t *graph = source ? rewrites->plan->source : rewrites->plan->graph;
  size_t outputs = graph->outputs.count;
  size_t count = rewrites->pairs.count;
  cleave_graph_t *copy = NULL;
  cleave_status_t status = CLEAVE_OK;
  cleave_tensor_t **results = cleave_allocate_zeroed(outputs + count, sizeof *results);
  if (results == NULL) {
    return cleave_error_out_of_memory(error);
  }
  CLEAVE_TRY_CLEANUP(cleave_graph_copy(graph, &copy, error));
  for (size_t k = 0; k < count; k++) {
    const pair_t *pair = &rewrites->pairs.items[k];
    CLEAVE_TRY_CLEANUP(cleave_graph_add_output(copy, "tap", source ? pair->source : pair->result, error));
  }
  CLEAVE_TRY_CLEANUP(cleave_check_reference(copy, rewrites->options->inputs, rewrites->options->input_count,
                                            rewrites->options->threads, results, outputs + count, error));
  for (size_t k = 0; k < count; k++) {
    tensors[k] = cleave_tensor_retain(results[outputs + k]);
  }
cleanup:
  for (size_t k = 0; k < outputs + count; k++) {
    cleave_tensor_release(results[k]);
  }
  cleave_free(results);
  cleave_graph_destroy(copy);
  return status;
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

static cleave_status_t compare_pair(const rewrites_t *rewrites, const pair_t *pair,
                                    const cleave_tensor_t *expected, const cleave_tensor_t *actual,
                                    cleave_verify_report_t *report, cleave_error_t *error) {
  cleave_verify_item_t *item = NULL;
  CLEAVE_TRY(item_of(report, pair->rule, &item, error));
  cleave_check_tolerance_t tolerance = cleave_verify_tolerance_of(rewrites->options, expected->dtype);
  cleave_tensor_view_t view = cleave_tensor_view(actual);
  cleave_check_result_t result;
  CLEAVE_TRY(cleave_check_tensor(&view, expected, &tolerance, &result, error));
  item->count++;
  if (item->index == CLEAVE_INDEX_NONE || result.difference.max_absolute > item->max_absolute) {
    item->index = pair->source.index;
    item->max_absolute = result.difference.max_absolute;
  }
  item->relative = result.relative > item->relative ? result.relative : item->relative;
  if (!result.matches && item->verdict == CLEAVE_VERIFY_MATCH) {
    cleave_check_explain(cleave_value_name(rewrites->plan->source, pair->source), &view, expected, &result,
                         &item->reason);
    item->verdict = CLEAVE_VERIFY_MISMATCH;
    item->index = pair->source.index;
    report->mismatches++;
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
  cleave_tensor_t **tensors = cleave_allocate_zeroed(2 * count, sizeof *tensors);
  if (tensors == NULL) {
    return cleave_error_out_of_memory(error);
  }
  CLEAVE_TRY_CLEANUP(run_tapped(rewrites, true, tensors, error));
  CLEAVE_TRY_CLEANUP(run_tapped(rewrites, false, tensors + count, error));
  for (size_t k = 0; k < count; k++) {
    CLEAVE_TRY_CLEANUP(
        compare_pair(rewrites, &rewrites->pairs.items[k], tensors[k], tensors[count + k], report, error));
  }
cleanup:
  for (size_t k = 0; k < 2 * count; k++) {
    cleave_tensor_release(tensors[k]);
  }
  cleave_free(tensors);
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
  }
  cleave_array_free(&rewrites.pairs);
  cleave_array_free(&rewrites.origins);
  return status;
}
