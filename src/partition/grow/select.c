// SPDX-License-Identifier: Apache-2.0
// MXNet's selector protocol. Seeds are the free nodes in topological order, each once, with a new selector
// per seed. The search takes nodes from a queue and asks about their inputs by position, then about their
// users by output and use; a neighbour is asked again until it is accepted. A neighbour that is in a region,
// or that the backend cannot run, is never asked. Nodes of a refused set are seeds again, unless the rule
// grows once: then a long chain that is refused is not grown from each of its nodes. For a fusion of the
// ruleset, the node that was met is asked about, and the fusion is taken whole.

#include <stdlib.h>

#include "base/containers/numbers.h"
#include "partition/grow/partitioner.h"

typedef struct search {
  cleave_partitioner_t *partitioner;
  const cleave_rule_t *rule;
  uint32_t rule_index;
  void *selector;
  uint32_t *accepted; /* per position: number of the seed that has it */
  uint32_t *met;      /* per position: number of the last search that took it into its set; 0: none */
  bool *is_refused;   /* by search: its rule grows once, and nothing of the set was taken in the end */
  uint64_t *asked;    /* per position: number of the round that asked it */
  uint32_t seed;      /* number of the search */
  uint64_t round;     /* of asking: a node and a direction */
  CLEAVE_ARRAY(uint32_t) queue;
  CLEAVE_ARRAY(uint32_t) parts;
} search_t;

/* Can the backend run the node? Fusions were accepted as a whole before. */
static cleave_status_t can_run(search_t *search, uint32_t position, bool *out_yes, cleave_error_t *error) {
  *out_yes = true;
  if (search->partitioner->states[position] == CLEAVE_NODE_FUSED) {
    return CLEAVE_OK;
  }
  return cleave_partitioner_supports_node(search->partitioner, position, search->rule_index, out_yes, error);
}

/* Takes a node, or the fusion that it is in, into the queue. */
static cleave_status_t accept(search_t *search, uint32_t position, cleave_error_t *error) {
  const cleave_partitioner_t *partitioner = search->partitioner;
  uint32_t fusion = partitioner->fusion_of[position];
  const uint32_t *nodes = &position;
  uint32_t count = 1;
  if (fusion != CLEAVE_INDEX_NONE) {
    nodes = partitioner->fusion_nodes.items + partitioner->fusions.items[fusion].first;
    count = partitioner->fusions.items[fusion].count;
  }
  for (uint32_t k = 0; k < count; k++) {
    search->accepted[nodes[k]] = search->seed;
    search->met[nodes[k]] = search->seed;
    CLEAVE_ARRAY_PUSH(&search->queue, nodes[k], error);
  }
  return CLEAVE_OK;
}

static cleave_status_t ask_neighbours(search_t *search, uint32_t position, bool inputs,
                                      cleave_error_t *error) {
  const cleave_contraction_t *c = search->partitioner->contraction;
  const cleave_selector_functions_t *functions = search->rule->selector;
  cleave_status_t (*ask)(void *, cleave_node_t, cleave_node_t, bool *, cleave_error_t *) =
      inputs ? functions->select_input : functions->select_output;
  const uint32_t *edges = inputs ? c->producers : c->users;
  const uint32_t *start = inputs ? c->producer_start : c->user_start;
  search->round++;
  for (uint32_t e = start[position]; e < start[position + 1]; e++) {
    uint32_t neighbour = edges[e];
    bool yes = false;
    if (search->accepted[neighbour] == search->seed || search->asked[neighbour] == search->round) {
      continue;
    }
    search->asked[neighbour] = search->round;
    if (!cleave_partitioner_is_open(search->partitioner, search->rule, neighbour)) {
      CLEAVE_TRY(cleave_partitioner_stop_taken(search->partitioner, neighbour, search->rule_index, error));
      continue;
    }
    if (cleave_partitioner_crosses(search->partitioner,
                                   (const cleave_node_t[]){c->nodes[position], c->nodes[neighbour]}, 2,
                                   &(cleave_reason_t){""})) {
      continue;
    }
    CLEAVE_TRY(can_run(search, neighbour, &yes, error));
    if (!yes) {
      continue;
    }
    yes = false;
    if (ask != NULL) {
      CLEAVE_TRY(ask(search->selector, c->nodes[position], c->nodes[neighbour], &yes, error));
    }
    if (yes || cleave_partitioner_assumes(search->partitioner, neighbour)) {
      CLEAVE_TRY(accept(search, neighbour, error));
    } else {
      CLEAVE_TRY(cleave_partitioner_stop(
          search->partitioner, neighbour, search->rule_index, CLEAVE_STOP_SELECTOR,
          inputs ? "'select_input' returned false" : "'select_output' returned false", error));
    }
  }
  return CLEAVE_OK;
}

/* Asks `filter` about the candidates; those that stay are left in the queue, ascending. A fusion is dropped
 * if one of its nodes is. */
static cleave_status_t filter_candidates(search_t *search, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = search->partitioner;
  uint32_t *positions = search->queue.items;
  uint32_t count = (uint32_t)search->queue.count;
  cleave_status_t status = CLEAVE_OK;
  qsort(positions, count, sizeof *positions, cleave_compare_u32);
  if (search->rule->selector->filter == NULL) {
    return CLEAVE_OK;
  }
  cleave_node_t *nodes = cleave_allocate(count, sizeof *nodes);
  bool *keep = cleave_allocate(count, sizeof *keep);
  CLEAVE_TRY_MEMORY_CLEANUP(nodes != NULL && keep != NULL, error);
  for (uint32_t k = 0; k < count; k++) {
    nodes[k] = partitioner->contraction->nodes[positions[k]];
    keep[k] = true;
  }
  CLEAVE_TRY_CLEANUP(search->rule->selector->filter(search->selector, nodes, count, keep, error));
  for (uint32_t k = 0; k < count; k++) {
    uint32_t fusion = partitioner->fusion_of[positions[k]];
    if (keep[k]) {
      continue;
    }
    search->accepted[positions[k]] = 0;
    CLEAVE_TRY_CLEANUP(cleave_partitioner_note(partitioner, CLEAVE_PLAN_NOTE_FILTER, positions[k],
                                               search->rule_index, error, "dropped by filter"));
    CLEAVE_TRY_CLEANUP(cleave_partitioner_stop(partitioner, positions[k], search->rule_index,
                                               CLEAVE_STOP_FILTER, "dropped by 'filter'", error));
    if (fusion != CLEAVE_INDEX_NONE) {
      const cleave_found_fusion_t *found = &partitioner->fusions.items[fusion];
      for (uint32_t m = 0; m < found->count; m++) {
        search->accepted[partitioner->fusion_nodes.items[found->first + m]] = 0;
      }
    }
  }
  uint32_t kept = 0;
  for (uint32_t k = 0; k < count; k++) {
    if (search->accepted[positions[k]] == search->seed) {
      positions[kept++] = positions[k];
    }
  }
  search->queue.count = kept;
cleanup:
  cleave_free(nodes);
  cleave_free(keep);
  return status;
}

/* One search from a seed that `select` took. */
static cleave_status_t search_from(search_t *search, uint32_t seed, cleave_error_t *error) {
  CLEAVE_TRY(accept(search, seed, error));
  for (size_t k = 0; k < search->queue.count; k++) {
    uint32_t position = search->queue.items[k];
    CLEAVE_TRY(ask_neighbours(search, position, true, error));
    CLEAVE_TRY(ask_neighbours(search, position, false, error));
  }
  CLEAVE_TRY(filter_candidates(search, error));
  uint32_t *positions = search->queue.items;
  uint32_t count = (uint32_t)search->queue.count;
  if (count == 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_partitioner_split(search->partitioner, search->rule_index, positions, count, error));
  // One position of each part is collected first, because refused parts are dissolved.
  search->parts.count = 0;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t group = cleave_contraction_group(search->partitioner->contraction, positions[k]);
    if (search->accepted[group] == search->seed) {
      search->accepted[group] = 0;
      CLEAVE_ARRAY_PUSH(&search->parts, group, error);
    }
  }
  for (size_t k = 0; k < search->parts.count; k++) {
    CLEAVE_TRY(cleave_partitioner_settle(search->partitioner, search->rule, search->rule_index,
                                         search->parts.items[k], error));
  }
  return CLEAVE_OK;
}

/* Asks `select` about every free node, and searches from those that it takes. */
static cleave_status_t try_seeds(search_t *search, cleave_error_t *error) {
  cleave_partitioner_t *partitioner = search->partitioner;
  const cleave_contraction_t *c = partitioner->contraction;
  const cleave_rule_t *rule = search->rule;
  const cleave_selector_functions_t *functions = rule->selector;
  for (uint32_t p = 0; p < c->node_count; p++) {
    bool yes = false;
    if (!cleave_partitioner_is_open(partitioner, rule, p) || search->is_refused[search->met[p]]) {
      continue;
    }
    if (search->selector == NULL) {
      CLEAVE_TRY(functions->create(rule->context, partitioner->graph, &search->selector, error));
    }
    partitioner->plan->rules[search->rule_index].tries++;
    search->seed++;
    search->queue.count = 0;
    CLEAVE_TRY(functions->select(search->selector, c->nodes[p], &yes, error));
    if (yes) {
      CLEAVE_TRY(can_run(search, p, &yes, error));
    }
    size_t taken = partitioner->fusions.count + partitioner->regions.count;
    if (yes) {
      CLEAVE_TRY(search_from(search, p, error));
    }
    search->is_refused[search->seed] =
        rule->grows_once && yes && taken == partitioner->fusions.count + partitioner->regions.count;
    if (!yes && functions->reset != NULL) {
      CLEAVE_TRY(functions->reset(search->selector, error));
    } else {
      if (functions->destroy != NULL) {
        functions->destroy(rule->context, search->selector);
      }
      search->selector = NULL;
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_partitioner_select(cleave_partitioner_t *partitioner, const cleave_rule_t *rule,
                                          uint32_t rule_index, cleave_error_t *error) {
  size_t n = (size_t)partitioner->contraction->node_count + 1;
  search_t search = {.partitioner = partitioner, .rule = rule, .rule_index = rule_index};
  cleave_status_t status = CLEAVE_OK;
  search.accepted = cleave_allocate_zeroed(n, sizeof *search.accepted);
  search.met = cleave_allocate_zeroed(n, sizeof *search.met);
  search.is_refused = cleave_allocate_zeroed(n, sizeof *search.is_refused);
  search.asked = cleave_allocate_zeroed(n, sizeof *search.asked);
  CLEAVE_TRY_MEMORY_CLEANUP(
      search.accepted != NULL && search.met != NULL && search.is_refused != NULL && search.asked != NULL,
      error);
  CLEAVE_TRY_CLEANUP(try_seeds(&search, error));
cleanup:
  if (search.selector != NULL && rule->selector->destroy != NULL) {
    rule->selector->destroy(rule->context, search.selector);
  }
  cleave_free(search.accepted);
  cleave_free(search.met);
  cleave_free(search.is_refused);
  cleave_free(search.asked);
  cleave_array_free(&search.queue);
  cleave_array_free(&search.parts);
  return status;
}
