// SPDX-License-Identifier: Apache-2.0
// Rewrites on random values: what a rewrite took and what took its place run as two graphs of their own, one
// pair of each kind that a rule made. Every other round draws wider values than the model has, because a
// rewrite that is right by chance, such as Clip to [0, 6] into Relu, shows only there.
#include <math.h>
#include <string.h>

#include "backend/region/view.h"
#include "base/hash.h"
#include "graph/clone.h"
#include "tools/verify/draw.h"
#include "tools/verify/verify_rewrite.h"

typedef struct part {
  cleave_verify_item_t *item;
  cleave_rewrite_parts_t parts;
} part_t;

typedef struct trial {
  const cleave_plan_t *plan;
  const cleave_verify_options_t *options;
  CLEAVE_ARRAY(part_t) parts;
  CLEAVE_ARRAY(uint64_t) kinds;        /* of pairs that were taken */
  CLEAVE_ARRAY(cleave_value_t) tapped; /* values of the source that are inputs of parts */
  uint32_t *tap_of;                    /* by value of the source: its number in `tapped`, or NONE */
  cleave_tensor_t **results;           /* of a run of the source: its outputs, then what is tapped */
  size_t result_count;
} trial_t;

/* ---- which pairs ---- */

static uint64_t add_operator(uint64_t hash, const cleave_graph_t *graph, cleave_node_t node) {
  const char *name = cleave_node_exists(node) ? cleave_graph_node(graph, node)->op->name : "";
  return cleave_hash_bytes(hash, name, strlen(name));
}

/* Is equal for pairs of one rule whose values have the same type and are made by the same operators. */
static uint64_t kind_of(const cleave_plan_t *plan, const cleave_value_pair_t *pair) {
  const cleave_value_record_t *record = cleave_graph_value(plan->source, pair->source);
  cleave_node_t before = cleave_value_producer(plan->source, pair->source);
  cleave_node_t after = cleave_value_producer(plan->graph, pair->result);
  uint64_t hash = cleave_hash_combine(pair->rule, record->dtype);
  for (int32_t d = 0; d < record->rank; d++) {
    hash = cleave_hash_combine(hash, (uint64_t)record->dims[d]);
  }
  return add_operator(add_operator(hash, plan->source, before), plan->graph, after);
}

static cleave_status_t tap_inputs(trial_t *trial, const cleave_rewrite_parts_t *parts,
                                  cleave_error_t *error) {
  for (size_t k = 0; k < parts->inputs.count; k++) {
    cleave_value_t value = parts->inputs.items[k];
    if (trial->tap_of[value.index] == CLEAVE_INDEX_NONE) {
      trial->tap_of[value.index] = (uint32_t)trial->tapped.count;
      CLEAVE_ARRAY_PUSH(&trial->tapped, value, error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t add_part(trial_t *trial, const cleave_value_pair_t *pairs, size_t pair_count,
                                size_t index, cleave_verify_item_t *item, cleave_error_t *error) {
  part_t part = {.item = item};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_array_reserve(&trial->parts, 1, error));
  CLEAVE_TRY_CLEANUP(cleave_rewrite_parts_find(trial->plan, pairs, pair_count, index, &part.parts, error));
  if (part.parts.inputs.count > 0 && !cleave_draw_narrows(part.parts.before, part.parts.after)) {
    CLEAVE_TRY_CLEANUP(tap_inputs(trial, &part.parts, error));
    cleave_array_push_reserved(&trial->parts, part);
    part.parts = (cleave_rewrite_parts_t){0};
  }
cleanup:
  cleave_rewrite_parts_deinit(&part.parts);
  return status;
}

static bool is_new_kind(const trial_t *trial, uint64_t kind) {
  for (size_t k = 0; !trial->options->each && k < trial->kinds.count; k++) {
    if (trial->kinds.items[k] == kind) {
      return false;
    }
  }
  return true;
}

/* ---- one part ---- */

/* The tensors of one round of a part. */
typedef struct draw {
  cleave_tensor_t **inputs; /* of both graphs */
  size_t input_count;
  cleave_tensor_t *expected;
  cleave_tensor_t *actual;
} draw_t;

static void draw_clear(draw_t *draw) {
  for (size_t k = 0; k < draw->input_count; k++) {
    cleave_tensor_release(draw->inputs[k]);
    draw->inputs[k] = NULL;
  }
  cleave_tensor_release(draw->expected);
  cleave_tensor_release(draw->actual);
  draw->expected = NULL;
  draw->actual = NULL;
}

/* Inputs, and what `before` makes of them. False in `out_runs`: it cannot run on them, or leaves what floats
 * can hold. */
static cleave_status_t draw_inputs(const trial_t *trial, const part_t *part, uint32_t round, double spread,
                                   draw_t *draw, bool *out_runs, cleave_error_t *error) {
  const cleave_rewrite_parts_t *parts = &part->parts;
  size_t first = trial->plan->source->outputs.count;
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  for (size_t k = 0; k < draw->input_count; k++) {
    cleave_tensor_t *own = trial->results[first + trial->tap_of[parts->inputs.items[k].index]];
    uint64_t seed = cleave_hash_combine(trial->options->seed + round, k);
    CLEAVE_TRY(cleave_draw_like(own, seed, spread, spread > 1.0, &draw->inputs[k], error));
  }
  cleave_status_t status = cleave_check_reference(parts->before, draw->inputs, draw->input_count,
                                                  trial->options->threads, &draw->expected, 1, &failure);
  *out_runs = status == CLEAVE_OK && cleave_draw_is_finite(draw->expected);
  return status == CLEAVE_ERROR_OUT_OF_MEMORY ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

/* Compares, and allows for rounding in one of the graphs, which makes `value` of the inputs. */
static cleave_status_t compare_by(const trial_t *trial, const cleave_graph_t *graph, cleave_tensor_t *value,
                                  const draw_t *draw, cleave_check_result_t *out_result,
                                  cleave_error_t *error) {
  cleave_rounding_t rounding = {.graph = graph,
                                .inputs = draw->inputs,
                                .input_count = draw->input_count,
                                .values = &value,
                                .value_count = 1,
                                .threads = trial->options->threads};
  cleave_tensor_view_t view = cleave_tensor_view(draw->actual);
  cleave_status_t status =
      cleave_verify_compare(trial->options, &rounding, 0, &view, draw->expected, out_result, error);
  cleave_rounding_deinit(&rounding);
  return status;
}

/* Either graph may be the one whose rounding makes the difference. */
static cleave_status_t compare(const trial_t *trial, const part_t *part, draw_t *draw,
                               cleave_error_t *error) {
  cleave_verify_item_t *item = part->item;
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_check_reference(part->parts.after, draw->inputs, draw->input_count,
                                                  trial->options->threads, &draw->actual, 1, &failure);
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  if (status != CLEAVE_OK) {
    item->verdict = CLEAVE_VERIFY_FAILED;
    cleave_text_format(&item->reason, "what replaced it cannot run: %s", failure.message);
    return CLEAVE_OK;
  }
  cleave_tensor_view_t view = cleave_tensor_view(draw->actual);
  cleave_check_result_t result = {.matches = false};
  CLEAVE_TRY(compare_by(trial, part->parts.after, draw->actual, draw, &result, error));
  if (!result.matches && result.difference.same_type) {
    CLEAVE_TRY(compare_by(trial, part->parts.before, draw->expected, draw, &result, error));
  }
  item->max_absolute = fmax(item->max_absolute, result.difference.max_absolute);
  item->relative = fmax(item->relative, result.relative);
  if (!result.matches) {
    item->verdict = CLEAVE_VERIFY_MISMATCH;
    cleave_check_explain(cleave_graph_output_name(part->parts.before, 0), &view, draw->expected, &result,
                         &item->reason);
  }
  return CLEAVE_OK;
}

/* The item takes what it needs to be seen again. */
static cleave_status_t keep_failure(part_t *part, draw_t *draw, cleave_error_t *error) {
  cleave_verify_item_t *item = part->item;
  item->outputs = cleave_allocate_zeroed(1, sizeof *item->outputs);
  CLEAVE_TRY_MEMORY(item->outputs, error);
  item->output_count = item->verdict == CLEAVE_VERIFY_MISMATCH ? 1 : 0;
  if (item->output_count > 0) {
    item->outputs[0] = cleave_tensor_retain(draw->expected);
  }
  item->inputs = draw->inputs;
  item->input_count = (uint32_t)draw->input_count;
  draw->inputs = NULL;
  draw->input_count = 0;
  item->graph = part->parts.before;
  item->after = part->parts.after;
  part->parts.before = NULL;
  part->parts.after = NULL;
  return CLEAVE_OK;
}

static cleave_status_t run_round(const trial_t *trial, part_t *part, uint32_t round, draw_t *draw,
                                 cleave_error_t *error) {
  bool runs = false;
  double spread = cleave_draw_spread(round);
  CLEAVE_TRY(draw_inputs(trial, part, round, spread, draw, &runs, error));
  if (!runs && spread > 1.0) {
    spread = 1.0;
    draw_clear(draw);
    CLEAVE_TRY(draw_inputs(trial, part, round, spread, draw, &runs, error));
  }
  if (!runs) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(compare(trial, part, draw, error));
  if (part->item->verdict != CLEAVE_VERIFY_MATCH) {
    part->item->round = round;
    if (spread > 1.0) {
      cleave_text_add(&part->item->reason, ", on values beyond those of the model");
    }
    return keep_failure(part, draw, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t run_part(const trial_t *trial, part_t *part, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  draw_t draw = {.input_count = part->parts.inputs.count};
  draw.inputs = cleave_allocate_zeroed(draw.input_count, sizeof *draw.inputs);
  CLEAVE_TRY_MEMORY(draw.inputs, error);
  for (uint32_t round = 1;
       round <= trial->options->rounds && part->item->verdict == CLEAVE_VERIFY_MATCH && status == CLEAVE_OK;
       round++) {
    status = run_round(trial, part, round, &draw, error);
    draw_clear(&draw);
  }
  cleave_free(draw.inputs);
  return status;
}

/* ---- all of them ---- */

static cleave_verify_item_t *item_of(const cleave_verify_report_t *report, uint32_t rule) {
  for (size_t k = 0; k < report->items.count; k++) {
    cleave_verify_item_t *item = &report->items.items[k];
    if (item->kind == CLEAVE_VERIFY_REWRITE && item->rule == rule) {
      return item->verdict == CLEAVE_VERIFY_MATCH ? item : NULL;
    }
  }
  return NULL;
}

static cleave_status_t list_parts(trial_t *trial, const cleave_value_pair_t *pairs, size_t pair_count,
                                  const cleave_verify_report_t *report, cleave_error_t *error) {
  uint32_t bound = cleave_graph_value_bound(trial->plan->source);
  trial->tap_of = cleave_allocate((size_t)bound + 1, sizeof *trial->tap_of);
  CLEAVE_TRY_MEMORY(trial->tap_of, error);
  memset(trial->tap_of, 0xff, ((size_t)bound + 1) * sizeof *trial->tap_of);
  for (size_t k = 0; k < pair_count; k++) {
    cleave_verify_item_t *item = item_of(report, pairs[k].rule);
    uint64_t kind = kind_of(trial->plan, &pairs[k]);
    if (item != NULL && is_new_kind(trial, kind)) {
      CLEAVE_ARRAY_PUSH(&trial->kinds, kind, error);
      CLEAVE_TRY(add_part(trial, pairs, pair_count, k, item, error));
    }
  }
  return CLEAVE_OK;
}

/* The values that reach the parts in the model. */
static cleave_status_t run_source(trial_t *trial, cleave_error_t *error) {
  const cleave_verify_options_t *options = trial->options;
  cleave_graph_t *graph = NULL;
  CLEAVE_TRY(cleave_graph_copy(trial->plan->source, &graph, error));
  cleave_status_t status = CLEAVE_OK;
  for (size_t k = 0; k < trial->tapped.count && status == CLEAVE_OK; k++) {
    status = cleave_graph_add_output(graph, "tap", trial->tapped.items[k], error);
  }
  trial->result_count = graph->outputs.count;
  trial->results = cleave_allocate_zeroed(trial->result_count + 1, sizeof *trial->results);
  CLEAVE_TRY_MEMORY_CLEANUP(trial->results, error);
  CLEAVE_THEN(status, cleave_check_reference(graph, options->inputs, options->input_count, options->threads,
                                             trial->results, trial->result_count, error));
cleanup:
  cleave_graph_destroy(graph);
  return status;
}

static void trial_deinit(trial_t *trial) {
  for (size_t k = 0; trial->results != NULL && k < trial->result_count; k++) {
    cleave_tensor_release(trial->results[k]);
  }
  for (size_t k = 0; k < trial->parts.count; k++) {
    cleave_rewrite_parts_deinit(&trial->parts.items[k].parts);
  }
  cleave_free(trial->results);
  cleave_free(trial->tap_of);
  cleave_array_free(&trial->parts);
  cleave_array_free(&trial->kinds);
  cleave_array_free(&trial->tapped);
}

cleave_status_t cleave_verify_random(const cleave_plan_t *plan, const cleave_value_pair_t *pairs,
                                     size_t pair_count, const cleave_verify_options_t *options,
                                     cleave_verify_report_t *report, cleave_error_t *error) {
  if (options->rounds == 0) {
    return CLEAVE_OK;
  }
  trial_t trial = {.plan = plan, .options = options};
  cleave_status_t status = list_parts(&trial, pairs, pair_count, report, error);
  if (status == CLEAVE_OK && trial.parts.count > 0) {
    status = run_source(&trial, error);
  }
  for (size_t k = 0; k < trial.parts.count && status == CLEAVE_OK; k++) {
    part_t *part = &trial.parts.items[k];
    bool was_match = part->item->verdict == CLEAVE_VERIFY_MATCH;
    status = run_part(&trial, part, error);
    report->mismatches += was_match && part->item->verdict != CLEAVE_VERIFY_MATCH ? 1 : 0;
  }
  trial_deinit(&trial);
  return status;
}
