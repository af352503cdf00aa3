// SPDX-License-Identifier: Apache-2.0
// Both graphs are cut at the same values, so that the same tensors feed them: a value where one walk ends is
// an input of the other part as well, whether that reads it or not.
#include "tools/verify/verify_rewrite.h"

#include "graph/extract.h"
#include "graph/order.h"

typedef struct search {
  const cleave_plan_t *plan;
  const cleave_value_pair_t *pair;
  cleave_value_t *result_of; /* by value of the source: the same value after the rules, or NONE */
  cleave_value_t *source_of; /* by value after the rules: the same value of the source, or NONE */
  bool *is_changed;          /* by node of the source: a rule changed what it computes */
  bool *is_input;            /* by value of the source: among the inputs of the parts */
  cleave_rewrite_parts_t *parts;
} search_t;

/* ---- which values are the same ---- */

static void find_changed_nodes(search_t *search) {
  const cleave_edits_t *edits = search->plan->edits;
  uint32_t bound = cleave_graph_node_bound(search->plan->source);
  for (size_t k = 0; k < edits->items.count; k++) {
    const cleave_edit_t *edit = &edits->items.items[k];
    if ((edit->kind == CLEAVE_EDIT_SET_INPUT || edit->kind == CLEAVE_EDIT_SET_ATTRIBUTE) &&
        edit->node.index < bound) {
      search->is_changed[edit->node.index] = true;
    }
  }
}

/* Neither rules nor folding changed how the value is computed from the node's inputs. */
static bool is_untouched(const search_t *search, cleave_value_t value) {
  const cleave_value_record_t *source = cleave_graph_value(search->plan->source, value);
  const cleave_value_record_t *result = cleave_graph_value(search->plan->graph, value);
  if (source->is_removed || result->is_removed || source->tensor != NULL || result->tensor != NULL) {
    return false;
  }
  return source->is_input || (source->producer != CLEAVE_INDEX_NONE && source->producer == result->producer &&
                              cleave_node_is_live(search->plan->graph, (cleave_node_t){result->producer}) &&
                              !search->is_changed[source->producer]);
}

/* The pair itself is never where a walk ends, nor is what stands for it, or for the same result. */
static void find_same_values(search_t *search, const cleave_value_pair_t *pairs, size_t pair_count) {
  const cleave_graph_t *source = search->plan->source;
  const cleave_graph_t *graph = search->plan->graph;
  const cleave_value_pair_t *pair = search->pair;
  uint32_t bound = cleave_graph_value_bound(source);
  for (uint32_t k = 0; k < bound && k < cleave_graph_value_bound(graph); k++) {
    cleave_value_t value = {k};
    if (value.index != pair->source.index && is_untouched(search, value)) {
      search->result_of[k] = value;
      search->source_of[k] = value;
    }
  }
  for (size_t k = 0; k < pair_count; k++) {
    const cleave_value_pair_t *other = &pairs[k];
    bool is_same_dtype =
        cleave_graph_value(source, other->source)->dtype == cleave_graph_value(graph, other->result)->dtype;
    if (other->result.index < bound || other->result.index == pair->result.index ||
        other->source.index == pair->source.index || !is_same_dtype) {
      continue;
    }
    search->source_of[other->result.index] = other->source;
    if (!cleave_value_exists(search->result_of[other->source.index])) {
      search->result_of[other->source.index] = other->result;
    }
  }
}

/* ---- walking back ---- */

typedef struct walk {
  const cleave_graph_t *graph;
  const cleave_value_t *source_of; /* by value of the graph: where the walk ends; NONE: it goes on */
  bool *is_taken;                  /* by node */
  CLEAVE_ARRAY(cleave_value_t) queue;
  CLEAVE_ARRAY(cleave_node_t) nodes; /* in topological order */
} walk_t;

static cleave_status_t add_input(search_t *search, cleave_value_t source, cleave_error_t *error) {
  if (!search->is_input[source.index]) {
    search->is_input[source.index] = true;
    CLEAVE_ARRAY_PUSH(&search->parts->inputs, source, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t visit(search_t *search, walk_t *walk, cleave_value_t value, cleave_error_t *error) {
  cleave_node_t producer = cleave_value_producer(walk->graph, value);
  if (cleave_value_exists(walk->source_of[value.index])) {
    return add_input(search, walk->source_of[value.index], error);
  }
  if (!cleave_node_exists(producer) || walk->is_taken[producer.index]) {
    return CLEAVE_OK;
  }
  walk->is_taken[producer.index] = true;
  for (uint32_t k = 0; k < cleave_node_input_count(walk->graph, producer); k++) {
    cleave_value_t input = cleave_node_input(walk->graph, producer, k);
    if (cleave_value_exists(input)) {
      CLEAVE_ARRAY_PUSH(&walk->queue, input, error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t list_nodes(walk_t *walk, cleave_error_t *error) {
  size_t count = walk->graph->live_node_count;
  cleave_node_t *order = cleave_allocate(count + 1, sizeof *order);
  CLEAVE_TRY_MEMORY(order, error);
  cleave_status_t status = cleave_graph_topological_order(walk->graph, order, NULL, error);
  CLEAVE_THEN(status, cleave_array_reserve(&walk->nodes, count, error));
  for (size_t k = 0; k < count && status == CLEAVE_OK; k++) {
    if (walk->is_taken[order[k].index]) {
      cleave_array_push_reserved(&walk->nodes, order[k]);
    }
  }
  cleave_free(order);
  return status;
}

static cleave_status_t walk_back(search_t *search, walk_t *walk, cleave_value_t from, cleave_error_t *error) {
  walk->is_taken =
      cleave_allocate_zeroed((size_t)cleave_graph_node_bound(walk->graph) + 1, sizeof *walk->is_taken);
  CLEAVE_TRY_MEMORY(walk->is_taken, error);
  CLEAVE_ARRAY_PUSH(&walk->queue, from, error);
  while (walk->queue.count > 0) {
    CLEAVE_TRY(visit(search, walk, walk->queue.items[--walk->queue.count], error));
  }
  return list_nodes(walk, error);
}

static void walk_deinit(walk_t *walk) {
  cleave_free(walk->is_taken);
  cleave_array_free(&walk->queue);
  cleave_array_free(&walk->nodes);
}

/* `value_of`, by value of the source: the graph's own; NULL: the same. */
static cleave_status_t extract(const search_t *search, const walk_t *walk, const cleave_value_t *value_of,
                               cleave_value_t output, cleave_graph_t **out_graph, cleave_error_t *error) {
  size_t count = search->parts->inputs.count;
  cleave_value_t *inputs = cleave_allocate(count + 1, sizeof *inputs);
  CLEAVE_TRY_MEMORY(inputs, error);
  for (size_t k = 0; k < count; k++) {
    cleave_value_t source = search->parts->inputs.items[k];
    inputs[k] = value_of == NULL ? source : value_of[source.index];
  }
  cleave_extract_request_t request = {.nodes = walk->nodes.items,
                                      .node_count = (uint32_t)walk->nodes.count,
                                      .inputs = inputs,
                                      .input_count = (uint32_t)count,
                                      .outputs = &output,
                                      .output_count = 1};
  cleave_status_t status = cleave_graph_extract(walk->graph, &request, out_graph, error);
  cleave_free(inputs);
  return status;
}

/* In the source a walk ends at what has a value after the rules. */
static cleave_status_t split(search_t *search, cleave_value_t *ends, cleave_error_t *error) {
  const cleave_plan_t *plan = search->plan;
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < cleave_graph_value_bound(plan->source); k++) {
    ends[k] = cleave_value_exists(search->result_of[k]) ? (cleave_value_t){k} : CLEAVE_VALUE_NONE;
  }
  walk_t before = {.graph = plan->source, .source_of = ends};
  walk_t after = {.graph = plan->graph, .source_of = search->source_of};
  CLEAVE_TRY_CLEANUP(walk_back(search, &before, search->pair->source, error));
  CLEAVE_TRY_CLEANUP(walk_back(search, &after, search->pair->result, error));
  CLEAVE_TRY_CLEANUP(extract(search, &before, NULL, search->pair->source, &search->parts->before, error));
  CLEAVE_TRY_CLEANUP(
      extract(search, &after, search->result_of, search->pair->result, &search->parts->after, error));
cleanup:
  walk_deinit(&after);
  walk_deinit(&before);
  return status;
}

cleave_status_t cleave_rewrite_parts_find(const cleave_plan_t *plan, const cleave_value_pair_t *pairs,
                                          size_t pair_count, size_t index, cleave_rewrite_parts_t *out_parts,
                                          cleave_error_t *error) {
  *out_parts = (cleave_rewrite_parts_t){0};
  size_t sources = (size_t)cleave_graph_value_bound(plan->source) + 1;
  size_t results = (size_t)cleave_graph_value_bound(plan->graph) + 1;
  size_t nodes = (size_t)cleave_graph_node_bound(plan->source) + 1;
  search_t search = {.plan = plan, .pair = &pairs[index], .parts = out_parts};
  cleave_status_t status = CLEAVE_OK;
  search.result_of = cleave_allocate(2 * sources + results, sizeof *search.result_of);
  search.is_changed = cleave_allocate_zeroed(nodes + sources, sizeof *search.is_changed);
  CLEAVE_TRY_MEMORY_CLEANUP(search.result_of != NULL && search.is_changed != NULL, error);
  for (size_t k = 0; k < sources + results; k++) {
    search.result_of[k] = CLEAVE_VALUE_NONE;
  }
  search.source_of = search.result_of + sources;
  search.is_input = search.is_changed + nodes;
  find_changed_nodes(&search);
  find_same_values(&search, pairs, pair_count);
  CLEAVE_TRY_CLEANUP(split(&search, search.source_of + results, error));
cleanup:
  cleave_free(search.result_of);
  cleave_free(search.is_changed);
  return status;
}

void cleave_rewrite_parts_deinit(cleave_rewrite_parts_t *parts) {
  cleave_graph_destroy(parts->before);
  cleave_graph_destroy(parts->after);
  cleave_array_free(&parts->inputs);
  *parts = (cleave_rewrite_parts_t){0};
}
