// SPDX-License-Identifier: Apache-2.0
// What happens to a grown set: it becomes a region, or its units are free again. And the regions of fusions
// that no region rule took.

#include <stdlib.h>
#include <string.h>

#include "partition/state.h"

static int compare_positions(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a;
  uint32_t y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Appends the members of a group to region_nodes, ascending. */
static cleave_status_t list_members(cleave_partitioner_t *partitioner, uint32_t position,
                                    cleave_error_t *error) {
  const cleave_contraction_t *c = partitioner->contraction;
  uint32_t group = cleave_contraction_group(c, position);
  uint32_t size = c->sizes[group];
  CLEAVE_TRY(cleave_array_reserve(&partitioner->region_nodes, size, error));
  uint32_t *first = partitioner->region_nodes.items + partitioner->region_nodes.count;
  uint32_t member = group;
  do {
    cleave_array_push_reserved(&partitioner->region_nodes, member);
    member = c->next_member[member];
  } while (member != group);
  qsort(first, size, sizeof *first, compare_positions);
  return CLEAVE_OK;
}

/* Makes the last `count` of region_nodes a region. */
static cleave_status_t keep_region(cleave_partitioner_t *partitioner, uint32_t rule_index, uint32_t count,
                                   cleave_error_t *error) {
  uint32_t region = (uint32_t)partitioner->regions.count;
  cleave_found_region_t found = {rule_index, partitioner->ruleset_number,
                                 (uint32_t)(partitioner->region_nodes.count - count), count};
  CLEAVE_ARRAY_PUSH(&partitioner->regions, found, error);
  for (uint32_t k = 0; k < count; k++) {
    uint32_t position = partitioner->region_nodes.items[found.first + k];
    partitioner->states[position] = CLEAVE_NODE_TAKEN;
    partitioner->region_of[position] = region;
    if (partitioner->fusion_of[position] != CLEAVE_INDEX_NONE) {
      partitioner->fusions.items[partitioner->fusion_of[position]].region = region;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t ask_review(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                  const uint32_t *positions, uint32_t count, bool *out_yes,
                                  cleave_reason_t *reason, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  const cleave_graph_t *graph = partitioner->graph;
  uint32_t region = (uint32_t)partitioner->regions.count;
  for (uint32_t k = 0; k < count; k++) {
    partitioner->region_of[positions[k]] = region;
  }
  cleave_node_t *nodes = cleave_allocate(count, sizeof *nodes);
  if (nodes == NULL) {
    status = cleave_error_out_of_memory(error);
    goto cleanup;
  }
  CLEAVE_TRY_CLEANUP(
      cleave_partitioner_borders(partitioner, positions, count, partitioner->region_of, region, error));
  cleave_proposal_t proposal = {.graph = graph,
                                .nodes = nodes,
                                .node_count = count,
                                .inputs = partitioner->inputs.items,
                                .input_count = (uint32_t)partitioner->inputs.count,
                                .outputs = partitioner->outputs.items,
                                .output_count = (uint32_t)partitioner->outputs.count};
  for (uint32_t k = 0; k < count; k++) {
    uint32_t fusion = partitioner->fusion_of[positions[k]];
    nodes[k] = partitioner->contraction->nodes[positions[k]];
    proposal.flops += cleave_op_flops(graph, nodes[k]);
    if (fusion != CLEAVE_INDEX_NONE &&
        partitioner->fusion_nodes.items[partitioner->fusions.items[fusion].first] == positions[k]) {
      proposal.fusion_count++;
    }
  }
  CLEAVE_TRY_CLEANUP(rule->review(rule->context, &proposal, out_yes, reason, error));
cleanup:
  for (uint32_t k = 0; k < count; k++) {
    partitioner->region_of[positions[k]] = CLEAVE_INDEX_NONE;
  }
  cleave_free(nodes);
  return status;
}

/* The units of a group apart again: nodes single, fusions one group each. */
static cleave_status_t release_group(cleave_partitioner_t *partitioner, const uint32_t *positions,
                                     uint32_t count, cleave_error_t *error) {
  CLEAVE_TRY(cleave_contraction_dissolve(partitioner->contraction, positions[0], error));
  for (uint32_t k = 0; k < count; k++) {
    uint32_t fusion = partitioner->fusion_of[positions[k]];
    if (fusion == CLEAVE_INDEX_NONE) {
      continue;
    }
    const cleave_found_fusion_t *found = &partitioner->fusions.items[fusion];
    const uint32_t *nodes = partitioner->fusion_nodes.items + found->first;
    if (nodes[0] != positions[k]) {
      continue;
    }
    cleave_contraction_result_t result;
    CLEAVE_TRY(
        cleave_contraction_contract(partitioner->contraction, nodes, found->count, SIZE_MAX, &result, error));
    if (result.outcome != CLEAVE_CONTRACTION_DONE) {
      return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "a fusion of a refused region closes a cycle");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t ask_caller(cleave_partitioner_t *partitioner, uint32_t rule_index,
                                  const uint32_t *positions, uint32_t count, bool *out_yes,
                                  cleave_error_t *error) {
  *out_yes = true;
  if (partitioner->options == NULL || partitioner->options->allow == NULL) {
    return CLEAVE_OK;
  }
  cleave_node_t *nodes = cleave_allocate(count, sizeof *nodes);
  if (nodes == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < count; k++) {
    nodes[k] = partitioner->contraction->nodes[positions[k]];
  }
  *out_yes = cleave_partitioner_allows(partitioner, rule_index, nodes, count);
  cleave_free(nodes);
  return CLEAVE_OK;
}

cleave_status_t cleave_partitioner_settle(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                          uint32_t rule_index, uint32_t position, cleave_error_t *error) {
  size_t before = partitioner->region_nodes.count;
  CLEAVE_TRY(list_members(partitioner, position, error));
  const uint32_t *positions = partitioner->region_nodes.items + before;
  uint32_t count = (uint32_t)(partitioner->region_nodes.count - before);
  bool yes = count >= rule->min_nodes;
  cleave_reason_t reason = {""};
  if (!yes) {
    CLEAVE_TRY(cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_REVIEW, positions[0], rule_index, error,
                                       "a region of %u nodes is too small: min_nodes is %u", count,
                                       rule->min_nodes));
  } else if (rule->review != NULL) {
    CLEAVE_TRY(ask_review(partitioner, rule, positions, count, &yes, &reason, error));
    if (!yes) {
      CLEAVE_TRY(cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_REVIEW, positions[0], rule_index,
                                         error, "%s",
                                         reason.text[0] == '\0' ? "review said no" : reason.text));
    }
  }
  if (yes) {
    CLEAVE_TRY(ask_caller(partitioner, rule_index, positions, count, &yes, error));
    if (!yes) {
      CLEAVE_TRY(cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_LEFT_OUT, positions[0], rule_index,
                                         error, "left out on request"));
    }
  }
  if (yes) {
    partitioner->plan->rules[rule_index].matches++;
    return keep_region(partitioner, rule_index, count, error);
  }
  partitioner->plan->rules[rule_index].refused++;
  CLEAVE_TRY(release_group(partitioner, positions, count, error));
  partitioner->region_nodes.count = before;
  return CLEAVE_OK;
}

cleave_status_t cleave_partitioner_region(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                          uint32_t rule_index, cleave_error_t *error) {
  return rule->mode == CLEAVE_REGION_SELECTOR
             ? cleave_partitioner_select(partitioner, rule, rule_index, error)
             : cleave_partitioner_grow(partitioner, rule, rule_index, error);
}

cleave_status_t cleave_partitioner_own_regions(cleave_partitioner_t *partitioner, cleave_error_t *error) {
  for (size_t k = 0; k < partitioner->fusions.count; k++) {
    const cleave_found_fusion_t found = partitioner->fusions.items[k];
    if (found.region != CLEAVE_INDEX_NONE) {
      continue;
    }
    CLEAVE_TRY(cleave_array_reserve(&partitioner->region_nodes, found.count, error));
    memcpy(partitioner->region_nodes.items + partitioner->region_nodes.count,
           partitioner->fusion_nodes.items + found.first,
           found.count * sizeof *partitioner->region_nodes.items);
    partitioner->region_nodes.count += found.count;
    CLEAVE_TRY(keep_region(partitioner, found.rule, found.count, error));
  }
  return CLEAVE_OK;
}
