// SPDX-License-Identifier: Apache-2.0
// The log of what graph rules did, read backwards: who made and took a node, and graphs that were.
#include "partition/explain/explain_history.h"

#include <string.h>

#include "graph/clone.h"

enum { MAX_STATES = 48 };

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

/* Of the nodes that an application made and removed again there is no trace. */
static void read_log(cleave_history_t *history) {
  const cleave_edits_t *edits = history->edits;
  for (uint32_t g = 0; g < edits->groups.count; g++) {
    const cleave_edit_group_t *group = &edits->groups.items[g];
    for (uint32_t k = 0; k < group->edit_count; k++) {
      const cleave_edit_t *edit = &edits->items.items[group->first_edit + k];
      if (edit->node.index >= history->node_bound) {
        continue;
      }
      if (edit->kind == CLEAVE_EDIT_ADD_NODE) {
        history->made[edit->node.index] = g;
      } else if (edit->kind == CLEAVE_EDIT_REMOVE_NODE) {
        history->taken[edit->node.index] = g;
      }
    }
  }
}

cleave_status_t cleave_history_create(const cleave_plan_t *plan, cleave_fold_function_t fold,
                                      void *fold_context, cleave_history_t **out_history,
                                      cleave_error_t *error) {
  *out_history = NULL;
  cleave_history_t *history = cleave_allocate_zeroed(1, sizeof *history);
  if (history == NULL) {
    return cleave_error_out_of_memory(error);
  }
  history->plan = plan;
  history->fold = fold;
  history->fold_context = fold_context;
  if (plan->edits != NULL && plan->graph != plan->source) {
    uint32_t bound = cleave_graph_node_bound(plan->graph);
    history->edits = plan->edits;
    history->made = cleave_allocate((size_t)bound + 1, sizeof *history->made);
    history->taken = cleave_allocate((size_t)bound + 1, sizeof *history->taken);
    if (history->made == NULL || history->taken == NULL) {
      cleave_history_destroy(history);
      return cleave_error_out_of_memory(error);
    }
    history->node_bound = bound;
    for (uint32_t k = 0; k < bound; k++) {
      history->made[k] = history->taken[k] = CLEAVE_INDEX_NONE;
    }
    read_log(history);
  }
  *out_history = history;
  return CLEAVE_OK;
}

void cleave_history_release_explainers(cleave_history_t *history) {
  for (size_t k = 0; history != NULL && k < history->states.count; k++) {
    cleave_explainer_destroy(history->states.items[k]->explainer);
    history->states.items[k]->explainer = NULL;
  }
}

void cleave_history_destroy(cleave_history_t *history) {
  if (history == NULL) {
    return;
  }
  cleave_history_release_explainers(history);
  for (size_t k = 0; k < history->states.count; k++) {
    cleave_graph_destroy(history->states.items[k]->owned);
    cleave_free(history->states.items[k]);
  }
  cleave_array_free(&history->states);
  cleave_free(history->made);
  cleave_free(history->taken);
  cleave_free(history);
}

// ---- states ----

/* Performs the first steps of the log on a copy of the model. */
static cleave_status_t perform(const cleave_history_t *history, size_t step, cleave_graph_t **out_graph,
                               cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  cleave_editor_t editor;
  CLEAVE_TRY(cleave_graph_copy(history->plan->source, &graph, error));
  cleave_editor_init(&editor, graph, NULL);
  editor.fold = history->fold;
  editor.fold_context = history->fold_context;
  cleave_status_t status = CLEAVE_OK;
  for (size_t k = 0; k < step && status == CLEAVE_OK; k++) {
    status = cleave_editor_replay_step(&editor, history->edits, k, error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_editor_settle(&editor, error);
  }
  cleave_editor_deinit(&editor);
  if (status != CLEAVE_OK) {
    cleave_graph_destroy(graph);
    return status;
  }
  *out_graph = graph;
  return CLEAVE_OK;
}

static cleave_status_t add_state(cleave_history_t *history, size_t step, cleave_history_state_t **out_state,
                                 cleave_error_t *error) {
  const cleave_plan_t *plan = history->plan;
  bool is_last = history->edits == NULL || step >= history->edits->items.count;
  if (history->states.count == MAX_STATES) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "more than %d states of the model", MAX_STATES);
  }
  CLEAVE_TRY(cleave_array_reserve(&history->states, 1, error));
  cleave_history_state_t *state = cleave_allocate_zeroed(1, sizeof *state);
  if (state == NULL) {
    return cleave_error_out_of_memory(error);
  }
  state->step = step;
  state->graph = is_last ? plan->graph : plan->source;
  if (!is_last && step > 0) {
    cleave_status_t status = perform(history, step, &state->owned, error);
    if (status != CLEAVE_OK) {
      cleave_free(state);
      return status;
    }
    state->graph = state->owned;
  }
  cleave_array_push_reserved(&history->states, state);
  *out_state = state;
  return CLEAVE_OK;
}

cleave_status_t cleave_history_state(cleave_history_t *history, size_t step,
                                     const cleave_history_state_t **out_state, cleave_error_t *error) {
  cleave_history_state_t *state = NULL;
  for (size_t k = 0; k < history->states.count && state == NULL; k++) {
    state = history->states.items[k]->step == step ? history->states.items[k] : NULL;
  }
  if (state == NULL) {
    CLEAVE_TRY(add_state(history, step, &state, error));
  }
  if (state->explainer == NULL) {
    CLEAVE_TRY(cleave_explainer_create(state->graph, &state->explainer, error));
    cleave_explainer_set_history(state->explainer, history);
  }
  *out_state = state;
  return CLEAVE_OK;
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

/* The step before the applications of one rule in a row that end in a group; not before `floor`. */
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

static cleave_status_t list_nodes(const uint32_t *groups, uint32_t node_bound, uint32_t group,
                                  const cleave_graph_t *graph, cleave_arena_t *arena,
                                  const cleave_node_t **out_nodes, uint32_t *out_count,
                                  cleave_error_t *error) {
  uint32_t bound = cleave_graph_node_bound(graph);
  uint32_t count = 0;
  bound = bound < node_bound ? bound : node_bound;
  for (uint32_t k = 0; k < bound; k++) {
    count += groups[k] == group && cleave_node_is_live(graph, (cleave_node_t){k});
  }
  cleave_node_t *nodes = cleave_arena_allocate(arena, (size_t)count + 1, sizeof *nodes);
  if (nodes == NULL) {
    return cleave_error_out_of_memory(error);
  }
  count = 0;
  for (uint32_t k = 0; k < bound; k++) {
    if (groups[k] == group && cleave_node_is_live(graph, (cleave_node_t){k})) {
      nodes[count++].index = k;
    }
  }
  *out_nodes = nodes;
  *out_count = count;
  return CLEAVE_OK;
}

cleave_status_t cleave_history_taken_by(const cleave_history_t *history, uint32_t group,
                                        const cleave_graph_t *graph, cleave_arena_t *arena,
                                        const cleave_node_t **out_nodes, uint32_t *out_count,
                                        cleave_error_t *error) {
  return list_nodes(history->taken, history->node_bound, group, graph, arena, out_nodes, out_count, error);
}

cleave_status_t cleave_history_made_by(const cleave_history_t *history, uint32_t group,
                                       const cleave_graph_t *graph, cleave_arena_t *arena,
                                       const cleave_node_t **out_nodes, uint32_t *out_count,
                                       cleave_error_t *error) {
  return list_nodes(history->made, history->node_bound, group, graph, arena, out_nodes, out_count, error);
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
