// SPDX-License-Identifier: Apache-2.0
// Decides whether a grown set becomes a region: first by the rule's thresholds, which are data, then by its
// `review`, and at last by the backend's review. All measures are of the set as it stands, not of what it was
// grown from.

#include <stdio.h>

#include "graph/print.h"
#include "partition/grow/partitioner.h"

static bool is_inside(const cleave_partitioner_t *partitioner, cleave_node_t node, uint32_t region) {
  return cleave_node_exists(node) &&
         partitioner->region_of[partitioner->contraction->positions[node.index]] == region;
}

/* Adds to a sum; an unknown (negative) summand makes the sum unknown. */
static void add(double *sum, double part) {
  *sum = *sum < 0.0 || part < 0.0 ? -1.0 : *sum + part;
}

/* Bytes of the outputs of a node that are read, and only inside. */
static double inner_bytes(const cleave_partitioner_t *partitioner, cleave_node_t node, uint32_t region) {
  const cleave_graph_t *graph = partitioner->graph;
  double bytes = 0.0;
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    cleave_use_t use = cleave_value_first_use(graph, value);
    bool is_read = cleave_use_exists(use);
    while (cleave_use_exists(use) && is_inside(partitioner, cleave_use_node(graph, use), region)) {
      use = cleave_use_next(graph, use);
    }
    if (is_read && !cleave_use_exists(use)) {
      add(&bytes, cleave_value_bytes(graph, value));
    }
  }
  return bytes;
}

/* Measures of the set whose positions have `region` in region_of. */
static cleave_status_t measure(cleave_partitioner_t *partitioner, const cleave_candidate_t *candidate,
                               uint32_t region, cleave_node_t *nodes, cleave_proposal_t *proposal,
                               cleave_error_t *error) {
  const cleave_graph_t *graph = partitioner->graph;
  const uint32_t *positions = candidate->positions;
  uint32_t count = candidate->count;
  CLEAVE_TRY(
      cleave_partitioner_find_boundary(partitioner, positions, count, partitioner->region_of, region, error));
  *proposal = (cleave_proposal_t){.graph = graph,
                                  .nodes = nodes,
                                  .node_count = count,
                                  .inputs = partitioner->inputs.items,
                                  .input_count = (uint32_t)partitioner->inputs.count,
                                  .outputs = partitioner->outputs.items,
                                  .output_count = (uint32_t)partitioner->outputs.count,
                                  .rule = candidate->rule->name,
                                  .backend = partitioner->ruleset->backend};
  for (uint32_t k = 0; k < proposal->input_count; k++) {
    add(&proposal->bytes_in, cleave_value_bytes(graph, proposal->inputs[k]));
  }
  for (uint32_t k = 0; k < proposal->output_count; k++) {
    add(&proposal->bytes_out, cleave_value_bytes(graph, proposal->outputs[k]));
  }
  for (uint32_t k = 0; k < count; k++) {
    uint32_t fusion = partitioner->fusion_of[positions[k]];
    nodes[k] = partitioner->contraction->nodes[positions[k]];
    add(&proposal->flops, cleave_op_flops(graph, nodes[k]));
    add(&proposal->bytes_saved, inner_bytes(partitioner, nodes[k], region));
    if (fusion != CLEAVE_INDEX_NONE &&
        partitioner->fusion_nodes.items[partitioner->fusions.items[fusion].first] == positions[k]) {
      proposal->fusion_count++;
    }
  }
  return CLEAVE_OK;
}

/* ---- thresholds ---- */

/* The fusions of a set, for a backend; returns their number. */
static uint32_t list_fusions(const cleave_partitioner_t *partitioner, const cleave_candidate_t *candidate,
                             cleave_node_t *nodes, cleave_fusion_set_t *fusions) {
  uint32_t fusion_count = 0;
  for (uint32_t k = 0, next = 0; k < candidate->count; k++) {
    uint32_t fusion = partitioner->fusion_of[candidate->positions[k]];
    if (fusion == CLEAVE_INDEX_NONE) {
      continue;
    }
    const cleave_found_fusion_t *found = &partitioner->fusions.items[fusion];
    const uint32_t *members = partitioner->fusion_nodes.items + found->first;
    if (members[0] != candidate->positions[k]) {
      continue;
    }
    fusions[fusion_count++] = (cleave_fusion_set_t){.rule = found->source->name,
                                                    .nodes = nodes + next,
                                                    .labels = partitioner->fusion_labels.items + found->first,
                                                    .node_count = found->count,
                                                    .attributes = found->attributes,
                                                    .attribute_count = found->attribute_count};
    for (uint32_t m = 0; m < found->count; m++) {
      nodes[next++] = partitioner->contraction->nodes[members[m]];
    }
  }
  return fusion_count;
}

typedef struct costs {
  double own;
  double apart; /* node by node: on cpu, or, of a fusion that grew, on its own backend */
  bool known;
  cleave_reason_t reason; /* if it is not known */
} costs_t;

static cleave_status_t ask_costs(const cleave_partitioner_t *partitioner, const cleave_candidate_t *candidate,
                                 const cleave_proposal_t *proposal, costs_t *costs, cleave_error_t *error) {
  const cleave_rule_t *rule = candidate->rule;
  const cleave_partition_options_t *options = partitioner->options;
  cleave_status_t status = CLEAVE_OK;
  *costs = (costs_t){.known = false};
  if (options == NULL || options->cost == NULL) {
    (void)snprintf(costs->reason.text, sizeof costs->reason.text, "no backend gives costs");
    return CLEAVE_OK;
  }
  cleave_node_t *nodes = cleave_allocate(proposal->node_count, sizeof *nodes);
  cleave_fusion_set_t *fusions = cleave_allocate((size_t)proposal->fusion_count + 1, sizeof *fusions);
  const char **labels = cleave_allocate(proposal->node_count, sizeof *labels); /* of a fusion that grew */
  CLEAVE_TRY_MEMORY_CLEANUP(nodes != NULL && fusions != NULL && labels != NULL, error);
  for (uint32_t k = 0; k < proposal->node_count; k++) {
    labels[k] = "";
  }
  uint32_t fusion_count = list_fusions(partitioner, candidate, nodes, fusions);
  if (cleave_rule_grows_fusions(rule)) {
    fusions[fusion_count++] = (cleave_fusion_set_t){.rule = rule->name,
                                                    .nodes = proposal->nodes,
                                                    .labels = labels,
                                                    .node_count = proposal->node_count,
                                                    .attributes = rule->attributes,
                                                    .attribute_count = rule->attribute_count};
  }
  cleave_region_set_t own = {.backend = proposal->backend,
                             .graph = proposal->graph,
                             .nodes = proposal->nodes,
                             .node_count = proposal->node_count,
                             .fusions = fusions,
                             .fusion_count = fusion_count};
  cleave_region_set_t apart = {.backend = cleave_rule_grows_fusions(rule) ? proposal->backend : "cpu",
                               .graph = own.graph,
                               .nodes = own.nodes,
                               .node_count = own.node_count};
  CLEAVE_TRY_CLEANUP(
      options->cost(options->backend_context, &own, &costs->own, &costs->known, &costs->reason, error));
  if (costs->known) {
    CLEAVE_TRY_CLEANUP(
        options->cost(options->backend_context, &apart, &costs->apart, &costs->known, &costs->reason, error));
  }
cleanup:
  cleave_free((void *)labels);
  cleave_free(nodes);
  cleave_free(fusions);
  return status;
}

static cleave_status_t refuse(cleave_review_t *review, const char *what, double found, const char *name,
                              double wanted) {
  review->accept = false;
  (void)snprintf(review->reason.text, sizeof review->reason.text, "%s: %.6g, %s is %.6g", what, found, name,
                 wanted);
  return CLEAVE_OK;
}

/* The first value of a set that has an open size; NONE: there is none. */
static cleave_value_t find_open(const cleave_proposal_t *proposal) {
  const cleave_graph_t *graph = proposal->graph;
  for (uint32_t k = 0; k < proposal->node_count; k++) {
    uint32_t inputs = cleave_node_input_count(graph, proposal->nodes[k]);
    for (uint32_t p = 0; p < inputs + cleave_node_output_count(graph, proposal->nodes[k]); p++) {
      cleave_value_t value = p < inputs ? cleave_node_input(graph, proposal->nodes[k], p)
                                        : cleave_node_output(graph, proposal->nodes[k], p - inputs);
      if (cleave_value_exists(value) && cleave_value_bytes(graph, value) < 0.0) {
        return value;
      }
    }
  }
  return CLEAVE_VALUE_NONE;
}

/* If a measure is unknown, the set is refused, and the reason names the open size. */
static cleave_status_t refuse_unknown(cleave_review_t *review, const cleave_proposal_t *proposal,
                                      const char *what, const char *name, double wanted) {
  cleave_text_t open = {0};
  cleave_value_t value = find_open(proposal);
  if (cleave_value_exists(value)) {
    cleave_value_describe_open(proposal->graph, value, &open);
  }
  review->accept = false;
  (void)snprintf(review->reason.text, sizeof review->reason.text, "%s are not known, %s: %s is %.6g", what,
                 open.length > 0 ? cleave_text_get(&open) : "an operator has no estimate", name, wanted);
  cleave_text_deinit(&open);
  return CLEAVE_OK;
}

static cleave_status_t check_thresholds(cleave_partitioner_t *partitioner,
                                        const cleave_candidate_t *candidate,
                                        const cleave_proposal_t *proposal, cleave_review_t *review,
                                        cleave_error_t *error) {
  const cleave_rule_t *rule = candidate->rule;
  if (rule->min_flops > 0.0 && proposal->flops < 0.0) {
    return refuse_unknown(review, proposal, "FLOPs", "min_flops", rule->min_flops);
  }
  if (rule->min_bytes_saved > 0.0 && proposal->bytes_saved < 0.0) {
    return refuse_unknown(review, proposal, "bytes saved", "min_bytes_saved", rule->min_bytes_saved);
  }
  if (rule->min_flops > 0.0 && !(proposal->flops >= rule->min_flops)) {
    return refuse(review, "too few FLOPs", proposal->flops, "min_flops", rule->min_flops);
  }
  if (rule->min_bytes_saved > 0.0 && !(proposal->bytes_saved >= rule->min_bytes_saved)) {
    return refuse(review, "too few bytes saved", proposal->bytes_saved, "min_bytes_saved",
                  rule->min_bytes_saved);
  }
  if (rule->min_gain <= 0.0) {
    return CLEAVE_OK;
  }
  costs_t costs;
  CLEAVE_TRY(ask_costs(partitioner, candidate, proposal, &costs, error));
  if (!costs.known) {
    return cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_LIMIT, candidate->positions[0],
                                   candidate->rule_index, error, "min_gain is not checked: %s",
                                   costs.reason.text);
  }
  if (!(costs.apart >= rule->min_gain * costs.own)) {
    review->accept = false;
    (void)snprintf(review->reason.text, sizeof review->reason.text,
                   "no gain: %.4g us on %s, %.4g us %s, so %.3g times as fast: min_gain is %.6g",
                   costs.own * 1e-3, proposal->backend, costs.apart * 1e-3,
                   cleave_rule_grows_fusions(rule) ? "node by node" : "on cpu", costs.apart / costs.own,
                   rule->min_gain);
  }
  return CLEAVE_OK;
}

/* ---- the backend's second look ---- */

static bool keeps_all(const cleave_review_t *review, uint32_t count) {
  uint32_t kept = 0;
  while (kept < count && review->keep[kept]) {
    kept++;
  }
  return kept == count;
}

static cleave_status_t ask_backend(const cleave_partitioner_t *partitioner,
                                   const cleave_candidate_t *candidate, cleave_review_t *review,
                                   cleave_error_t *error) {
  uint32_t count = candidate->count;
  const cleave_partition_options_t *options = partitioner->options;
  cleave_region_set_t set = {.backend = partitioner->ruleset->backend, .graph = partitioner->graph};
  bool looks = false;
  if (options == NULL || options->review == NULL || cleave_rule_grows_fusions(candidate->rule) ||
      !review->accept || !keeps_all(review, count)) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(options->review(options->backend_context, &set, NULL, &looks, &review->reason, error));
  if (!looks) {
    return CLEAVE_OK;
  }
  cleave_status_t status = CLEAVE_OK;
  cleave_node_t *nodes = cleave_allocate((size_t)count * 2, sizeof *nodes); /* in order, then by fusion */
  cleave_fusion_set_t *fusions = cleave_allocate((size_t)count + 1, sizeof *fusions);
  CLEAVE_TRY_MEMORY_CLEANUP(nodes != NULL && fusions != NULL, error);
  for (uint32_t k = 0; k < count; k++) {
    nodes[k] = partitioner->contraction->nodes[candidate->positions[k]];
  }
  set.nodes = nodes;
  set.node_count = count;
  set.attributes = review->attributes;
  set.attribute_count = review->attribute_count;
  set.fusions = fusions;
  set.fusion_count = list_fusions(partitioner, candidate, nodes + count, fusions);
  CLEAVE_TRY_CLEANUP(
      options->review(options->backend_context, &set, review->keep, &review->accept, &review->reason, error));
cleanup:
  cleave_free(nodes);
  cleave_free(fusions);
  return status;
}

/* ---- the whole ---- */

static bool has_work(const cleave_rule_t *rule) {
  return rule->review != NULL || rule->min_flops > 0.0 || rule->min_bytes_saved > 0.0 || rule->min_gain > 0.0;
}

cleave_status_t cleave_partitioner_review(cleave_partitioner_t *partitioner,
                                          const cleave_candidate_t *candidate, cleave_review_t *review,
                                          bool *out_by_threshold, cleave_error_t *error) {
  const cleave_rule_t *rule = candidate->rule;
  const uint32_t *positions = candidate->positions;
  uint32_t count = candidate->count;
  cleave_status_t status = CLEAVE_OK;
  *out_by_threshold = true;
  review->accept = count >= rule->min_nodes;
  if (!review->accept) {
    (void)snprintf(
        review->reason.text, sizeof review->reason.text, "a %s of %u node%s is too small: min_nodes is %u",
        cleave_rule_grows_fusions(rule) ? "fusion" : "region", count, CLEAVE_PLURAL(count), rule->min_nodes);
    return CLEAVE_OK;
  }
  if (!has_work(rule)) {
    *out_by_threshold = false;
    return ask_backend(partitioner, candidate, review, error);
  }
  uint32_t region = (uint32_t)partitioner->regions.count;
  cleave_node_t *nodes = cleave_allocate(count, sizeof *nodes);
  CLEAVE_TRY_MEMORY(nodes, error);
  for (uint32_t k = 0; k < count; k++) {
    partitioner->region_of[positions[k]] = region;
  }
  cleave_proposal_t proposal;
  CLEAVE_TRY_CLEANUP(measure(partitioner, candidate, region, nodes, &proposal, error));
  CLEAVE_TRY_CLEANUP(check_thresholds(partitioner, candidate, &proposal, review, error));
  if (review->accept && rule->review != NULL) {
    *out_by_threshold = false;
    CLEAVE_TRY_CLEANUP(rule->review(rule->context, &proposal, review, error));
  }
  if (review->accept) {
    *out_by_threshold = false;
    CLEAVE_TRY_CLEANUP(ask_backend(partitioner, candidate, review, error));
  }
cleanup:
  for (uint32_t k = 0; k < count; k++) {
    partitioner->region_of[positions[k]] = CLEAVE_INDEX_NONE;
  }
  cleave_free(nodes);
  return status;
}
