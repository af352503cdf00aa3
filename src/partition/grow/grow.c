// SPDX-License-Identifier: Apache-2.0
// Growth by group numbers. Units (free nodes, and the ruleset's own fusions as a whole) get a number. Every
// unit gets a level: the largest number of changes of number on any path to it. Units of equal number and
// level that edges connect become one group. An edge between two such groups always leads to a higher level,
// so the result is acyclic without a search. Then neighbouring groups are joined if that closes no cycle.

#include <stdio.h>

#include "base/containers/numbers.h"
#include "partition/grow/partitioner.h"
#include "partition/pattern/pattern_test.h"

typedef struct grower {
  cleave_partitioner_t *partitioner;
  const cleave_rule_t *rule;
  uint32_t rule_index;
  int64_t *numbers; /* per position; equal within a unit */
  uint32_t *levels; /* per representative */
  bool *joins;
  uint32_t *groups; /* representatives, in order */
  uint32_t group_count;
  cleave_stop_cause_t why; /* why a node has no number */
  bool ops_by_id[CLEAVE_OP_COUNT];
} grower_t;

/* May the rule take this node? The backend is asked only if the rule says yes. */
static cleave_status_t number_node(grower_t *grower, uint32_t position, int64_t *out_number,
                                   cleave_error_t *error) {
  cleave_partitioner_t *partitioner = grower->partitioner;
  const cleave_rule_t *rule = grower->rule;
  cleave_node_t node = partitioner->contraction->nodes[position];
  bool is_assumed = cleave_partitioner_assumes(partitioner, position);
  int64_t number = 0;
  if (is_assumed) {
    number = rule->mode == CLEAVE_REGION_SUPPORTED ? CLEAVE_GROUP_ANY : 0;
  } else if (rule->mode == CLEAVE_REGION_OPS) {
    const cleave_op_t *op = cleave_node_op(partitioner->graph, node);
    bool found = op->id < CLEAVE_OP_COUNT && grower->ops_by_id[op->id];
    for (uint32_t k = 0; op->id == CLEAVE_OP_ID_CUSTOM && !found && k < rule->op_count; k++) {
      found = cleave_pattern_same_op(rule->ops[k], op);
    }
    number = found ? 0 : CLEAVE_GROUP_NONE;
    grower->why = CLEAVE_STOP_OPS;
  } else if (rule->mode == CLEAVE_REGION_SUPPORTED) {
    CLEAVE_TRY(rule->supported(rule->context, partitioner->graph, node, &number, error));
    if (number < 0 && number != CLEAVE_GROUP_ANY) {
      number = CLEAVE_GROUP_NONE;
    }
    grower->why = CLEAVE_STOP_SUPPORTED;
  }
  *out_number = number;
  return CLEAVE_OK;
}

/* A fusion is taken whole: the first number among its nodes counts; if there is none, any group. */
static cleave_status_t number_fusion(grower_t *grower, uint32_t fusion, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = grower->partitioner;
  const cleave_found_fusion_t *found = &partitioner->fusions.items[fusion];
  const uint32_t *nodes = partitioner->fusion_nodes.items + found->first;
  bool has_groups = grower->rule->mode == CLEAVE_REGION_SUPPORTED;
  int64_t number = has_groups ? CLEAVE_GROUP_ANY : 0;
  for (uint32_t k = 0; has_groups && number < 0 && k < found->count; k++) {
    int64_t own = CLEAVE_GROUP_NONE;
    CLEAVE_TRY(number_node(grower, nodes[k], &own, error));
    number = own >= 0 ? own : number;
  }
  for (uint32_t k = 0; k < found->count; k++) {
    grower->numbers[nodes[k]] = number;
  }
  return CLEAVE_OK;
}

static cleave_status_t number_units(grower_t *grower, bool *out_any, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = grower->partitioner;
  *out_any = false;
  for (uint32_t k = 0; grower->rule->mode == CLEAVE_REGION_OPS && k < grower->rule->op_count; k++) {
    if (grower->rule->ops[k]->id < CLEAVE_OP_COUNT) {
      grower->ops_by_id[grower->rule->ops[k]->id] = true;
    }
  }
  for (uint32_t p = 0; p < partitioner->contraction->node_count; p++) {
    uint32_t fusion = partitioner->fusion_of[p];
    if (partitioner->states[p] == CLEAVE_NODE_FREE) {
      bool yes = true;
      CLEAVE_TRY(number_node(grower, p, &grower->numbers[p], error));
      if (grower->numbers[p] != CLEAVE_GROUP_NONE) {
        CLEAVE_TRY(cleave_partitioner_supports_node(partitioner, p, grower->rule_index, &yes, error));
        grower->numbers[p] = yes ? grower->numbers[p] : CLEAVE_GROUP_NONE;
      } else {
        CLEAVE_TRY(cleave_partitioner_stop(
            partitioner, p, grower->rule_index, grower->why,
            grower->why == CLEAVE_STOP_OPS ? "not in 'ops'" : "'supported' returned false", error));
      }
    } else if (!cleave_partitioner_is_open(partitioner, grower->rule, p)) {
      grower->numbers[p] = CLEAVE_GROUP_NONE;
      CLEAVE_TRY(cleave_partitioner_stop_taken(partitioner, p, grower->rule_index, error));
    } else if (partitioner->fusion_nodes.items[partitioner->fusions.items[fusion].first] == p) {
      CLEAVE_TRY(number_fusion(grower, fusion, error));
    }
    *out_any = *out_any || grower->numbers[p] != CLEAVE_GROUP_NONE;
  }
  return CLEAVE_OK;
}

/* Nodes that may join any group: connected ones decide together, for the number of their first neighbour in
 * topological order that has one. Without such a neighbour they stay a group of their own. */
static cleave_status_t decide_any(grower_t *grower, cleave_error_t *error) {
  const cleave_contraction_t *c = grower->partitioner->contraction;
  int64_t *numbers = grower->numbers;
  uint32_t n = c->node_count;
  uint32_t *parents = cleave_allocate(n, sizeof *parents);
  uint32_t *neighbours = cleave_allocate(n, sizeof *neighbours); /* at the root: position, or NONE */
  if (parents == NULL || neighbours == NULL) {
    cleave_free(parents);
    cleave_free(neighbours);
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t p = 0; p < n; p++) {
    parents[p] = p;
    neighbours[p] = CLEAVE_INDEX_NONE;
  }
  for (uint32_t p = 0; p < n; p++) {
    uint32_t group = cleave_contraction_group(c, p);
    if (numbers[p] != CLEAVE_GROUP_ANY) {
      continue;
    }
    if (numbers[group] == CLEAVE_GROUP_ANY) {
      parents[cleave_find_root(parents, p)] = cleave_find_root(parents, group);
    }
    for (uint32_t e = c->producer_start[p]; e < c->producer_start[p + 1]; e++) {
      if (numbers[c->producers[e]] == CLEAVE_GROUP_ANY) {
        parents[cleave_find_root(parents, p)] = cleave_find_root(parents, c->producers[e]);
      }
    }
  }
  for (uint32_t p = 0; p < n; p++) {
    for (uint32_t e = c->producer_start[p]; e < c->producer_start[p + 1]; e++) {
      uint32_t q = c->producers[e];
      if ((numbers[p] == CLEAVE_GROUP_ANY && numbers[q] >= 0) ||
          (numbers[q] == CLEAVE_GROUP_ANY && numbers[p] >= 0)) {
        uint32_t root = cleave_find_root(parents, numbers[p] == CLEAVE_GROUP_ANY ? p : q);
        uint32_t neighbour = numbers[p] == CLEAVE_GROUP_ANY ? q : p;
        if (neighbours[root] == CLEAVE_INDEX_NONE || neighbour < neighbours[root]) {
          neighbours[root] = neighbour;
        }
      }
    }
  }
  // Neighbours have numbers of their own, which do not change here.
  for (uint32_t p = 0; p < n; p++) {
    uint32_t root = cleave_find_root(parents, p);
    if (numbers[p] == CLEAVE_GROUP_ANY && neighbours[root] != CLEAVE_INDEX_NONE) {
      numbers[p] = numbers[neighbours[root]];
    }
  }
  cleave_free(parents);
  cleave_free(neighbours);
  return CLEAVE_OK;
}

/* Groups of different stages stay apart. */
static void number_stages(grower_t *grower) {
  const cleave_partitioner_t *partitioner = grower->partitioner;
  for (uint32_t p = 0; partitioner->stages != NULL && p < partitioner->contraction->node_count; p++) {
    if (grower->numbers[p] != CLEAVE_GROUP_NONE) {
      grower->numbers[p] = (grower->numbers[p] + 1) * CLEAVE_STAGE_LIMIT + partitioner->stages[p];
    }
  }
}

/* Computes the levels of all groups. Groups that may join start at level 1, so that inputs from other nodes
 * cost them no change. */
static void set_levels(grower_t *grower) {
  const cleave_contraction_t *c = grower->partitioner->contraction;
  const int64_t *numbers = grower->numbers;
  for (uint32_t g = cleave_contraction_first(c); g != CLEAVE_INDEX_NONE; g = cleave_contraction_next(c, g)) {
    uint32_t level = numbers[g] == CLEAVE_GROUP_NONE ? 0 : 1;
    uint32_t member = g;
    do {
      for (uint32_t e = c->producer_start[member]; e < c->producer_start[member + 1]; e++) {
        uint32_t other = cleave_contraction_group(c, c->producers[e]);
        if (other != g) {
          uint32_t after = grower->levels[other] + (numbers[other] != numbers[g]);
          level = after > level ? after : level;
        }
      }
      member = c->next_member[member];
    } while (member != g);
    grower->levels[g] = level;
    grower->joins[g] = numbers[g] != CLEAVE_GROUP_NONE;
  }
}

/* For the log: the group of every node that has one, if there are several groups. */
static cleave_status_t log_groups(const grower_t *grower, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = grower->partitioner;
  if (grower->rule->mode != CLEAVE_REGION_SUPPORTED || partitioner->options == NULL ||
      partitioner->options->log == NULL) {
    return CLEAVE_OK;
  }
  for (uint32_t p = 0; p < partitioner->contraction->node_count; p++) {
    char text[48];
    if (grower->numbers[p] != CLEAVE_GROUP_NONE) {
      (void)snprintf(text, sizeof text, "in group %lld", (long long)grower->numbers[p]);
      CLEAVE_TRY(cleave_partitioner_stop(partitioner, p, grower->rule_index, CLEAVE_STOP_GROUP, text, error));
    }
  }
  return CLEAVE_OK;
}

static void list_groups(grower_t *grower) {
  const cleave_contraction_t *c = grower->partitioner->contraction;
  grower->group_count = 0;
  for (uint32_t g = cleave_contraction_first(c); g != CLEAVE_INDEX_NONE; g = cleave_contraction_next(c, g)) {
    if (grower->numbers[g] != CLEAVE_GROUP_NONE) {
      grower->groups[grower->group_count++] = g;
    }
  }
}

cleave_status_t cleave_partitioner_grow(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                        uint32_t rule_index, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  size_t n = (size_t)partitioner->contraction->node_count + 1;
  grower_t grower = {.partitioner = partitioner, .rule = rule, .rule_index = rule_index};
  grower.numbers = cleave_allocate(n, sizeof *grower.numbers);
  grower.levels = cleave_allocate(n, sizeof *grower.levels);
  grower.joins = cleave_allocate(n, sizeof *grower.joins);
  grower.groups = cleave_allocate(n, sizeof *grower.groups);
  CLEAVE_TRY_MEMORY_CLEANUP(
      grower.numbers != NULL && grower.levels != NULL && grower.joins != NULL && grower.groups != NULL,
      error);
  bool any = false;
  CLEAVE_TRY_CLEANUP(number_units(&grower, &any, error));
  if (!any) {
    goto cleanup;
  }
  if (rule->mode == CLEAVE_REGION_SUPPORTED) {
    CLEAVE_TRY_CLEANUP(decide_any(&grower, error));
  }
  CLEAVE_TRY_CLEANUP(log_groups(&grower, error));
  number_stages(&grower);
  set_levels(&grower);
  CLEAVE_TRY_CLEANUP(
      cleave_contraction_contract_levels(partitioner->contraction, grower.levels, grower.joins, error));
  list_groups(&grower);
  CLEAVE_TRY_CLEANUP(cleave_partitioner_merge(
      partitioner, rule_index, grower.groups, grower.group_count, grower.numbers,
      partitioner->contraction->producer_start[partitioner->contraction->node_count], error));
  list_groups(&grower);
  partitioner->plan->rules[rule_index].tries += grower.group_count;
  for (uint32_t k = 0; k < grower.group_count; k++) {
    CLEAVE_TRY_CLEANUP(cleave_partitioner_settle(partitioner, rule, rule_index, grower.groups[k], error));
  }
cleanup:
  cleave_free(grower.numbers);
  cleave_free(grower.levels);
  cleave_free(grower.joins);
  cleave_free(grower.groups);
  return status;
}
