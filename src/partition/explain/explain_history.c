// SPDX-License-Identifier: Apache-2.0
// Queries on the log of graph rules: which rule made or took a node, and the steps between which a rule ran.
#include "partition/explain/explain_history.h"

#include <string.h>

// ---- who did what ----

static uint32_t rule_of_group(const cleave_history_t *history, uint32_t group) {
  uint32_t rule = group == CLEAVE_INDEX_NONE ? group : history->edits->groups.items[group].rule;
  return rule == CLEAVE_INDEX_NONE ? rule : history->edits->rules.items[rule].number;
}

uint32_t cleave_history_maker(const cleave_history_t *history, cleave_node_t node) {
  return node.index < history->node_bound ? rule_of_group(history, history->made[node.index])
                                          : CLEAVE_INDEX_NONE;
}

uint32_t cleave_history_taker(const cleave_history_t *history, cleave_node_t node) {
  return node.index < history->node_bound ? rule_of_group(history, history->taken[node.index])
                                          : CLEAVE_INDEX_NONE;
}

// ---- points of the log ----

/* Number of a rule in the log, or NONE. */
static uint32_t log_rule(const cleave_history_t *history, uint32_t rule) {
  for (size_t k = 0; history->edits != NULL && k < history->edits->rules.count; k++) {
    if (history->edits->rules.items[k].number == rule) {
      return (uint32_t)k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

static bool is_rewrite(const cleave_history_t *history, size_t rule) {
  uint32_t number = history->edits->rules.items[rule].number;
  return number < history->plan->rule_count && history->plan->rules[number].kind == CLEAVE_RULE_REWRITE;
}

/* The first step of rules from `rule` on. */
static size_t first_step(const cleave_history_t *history, size_t rule) {
  const cleave_edits_t *edits = history->edits;
  for (size_t k = 0; k < edits->groups.count; k++) {
    if (edits->groups.items[k].rule != CLEAVE_INDEX_NONE && edits->groups.items[k].rule >= rule) {
      return edits->groups.items[k].first_edit;
    }
  }
  return edits->items.count;
}

size_t cleave_history_begin(const cleave_history_t *history, uint32_t rule) {
  size_t first = log_rule(history, rule);
  if (first == CLEAVE_INDEX_NONE) {
    return 0;
  }
  while (first > 0 && is_rewrite(history, first) && is_rewrite(history, first - 1)) {
    first--;
  }
  return first_step(history, first);
}

size_t cleave_history_end(const cleave_history_t *history, uint32_t rule) {
  size_t next = log_rule(history, rule);
  if (next == CLEAVE_INDEX_NONE) {
    return history->edits == NULL ? 0 : history->edits->items.count;
  }
  bool together = is_rewrite(history, next++);
  while (together && next < history->edits->rules.count && is_rewrite(history, next)) {
    next++;
  }
  return first_step(history, next);
}

/* The step before the consecutive applications of one rule that end with a group; not before `floor`. */
static size_t before_run(const cleave_history_t *history, uint32_t group, uint32_t floor) {
  const cleave_edit_group_t *groups = history->edits->groups.items;
  uint32_t first = group;
  while (first > floor && groups[first - 1].rule == groups[group].rule) {
    first--;
  }
  return groups[first].first_edit;
}

size_t cleave_history_before_taken(const cleave_history_t *history, cleave_node_t node) {
  uint32_t made = history->made[node.index];
  return before_run(history, history->taken[node.index], made == CLEAVE_INDEX_NONE ? 0 : made + 1);
}

size_t cleave_history_before_made(const cleave_history_t *history, cleave_node_t node) {
  uint32_t group = history->made[node.index];
  uint32_t floor = 0;
  for (uint32_t k = 0; k < history->node_bound; k++) {
    uint32_t made = history->taken[k] == group ? history->made[k] : CLEAVE_INDEX_NONE;
    floor = made != CLEAVE_INDEX_NONE && made < group && made + 1 > floor ? made + 1 : floor;
  }
  return before_run(history, group, floor);
}

/* The first `bound` numbers that are in a group; NULL: no memory. */
static const cleave_node_t *list_nodes(const uint32_t *groups, uint32_t bound, uint32_t group,
                                       const cleave_graph_t *graph, cleave_arena_t *arena,
                                       uint32_t *out_count) {
  uint32_t count = 0;
  if (cleave_graph_node_bound(graph) < bound) {
    bound = cleave_graph_node_bound(graph);
  }
  for (uint32_t k = 0; k < bound; k++) {
    count += groups[k] == group && cleave_node_is_live(graph, (cleave_node_t){k});
  }
  cleave_node_t *nodes = cleave_arena_allocate(arena, (size_t)count + 1, sizeof *nodes);
  if (nodes == NULL) {
    return NULL;
  }
  count = 0;
  for (uint32_t k = 0; k < bound; k++) {
    if (groups[k] == group && cleave_node_is_live(graph, (cleave_node_t){k})) {
      nodes[count++].index = k;
    }
  }
  *out_count = count;
  return nodes;
}

cleave_status_t cleave_history_taken_by(const cleave_history_t *history, uint32_t group,
                                        const cleave_graph_t *graph, cleave_arena_t *arena,
                                        const cleave_node_t **out_nodes, uint32_t *out_count,
                                        cleave_error_t *error) {
  *out_nodes = list_nodes(history->taken, history->node_bound, group, graph, arena, out_count);
  return *out_nodes != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

cleave_status_t cleave_history_made_by(const cleave_history_t *history, uint32_t group,
                                       const cleave_graph_t *graph, cleave_arena_t *arena,
                                       const cleave_node_t **out_nodes, uint32_t *out_count,
                                       cleave_error_t *error) {
  *out_nodes = list_nodes(history->made, history->node_bound, group, graph, arena, out_count);
  return *out_nodes != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

const char *cleave_history_refusal(const cleave_history_t *history, uint32_t rule,
                                   const cleave_graph_t *graph, const cleave_node_t *nodes, uint32_t count) {
  const cleave_edits_t *edits = history->plan->edits;
  char label[128];
  for (uint32_t n = count; edits != NULL && n > 0; n--) {
    (void)cleave_node_label(graph, nodes[n - 1], label, sizeof label);
    for (size_t k = 0; k < edits->refusals.count; k++) {
      const cleave_edit_refusal_t *refusal = &edits->refusals.items[k];
      if (edits->rules.items[refusal->rule].number == rule && strcmp(refusal->place, label) == 0) {
        return refusal->reason;
      }
    }
  }
  return NULL;
}

void cleave_history_print_maker(const cleave_history_t *history, cleave_node_t node, cleave_text_t *text) {
  uint32_t maker = history == NULL ? CLEAVE_INDEX_NONE : cleave_history_maker(history, node);
  if (maker != CLEAVE_INDEX_NONE) {
    const cleave_plan_rule_t *rule = &history->plan->rules[maker];
    cleave_text_format(text, " (made by %s '%s')", cleave_rule_kind_name(rule->kind), rule->name);
  }
}
