// SPDX-License-Identifier: Apache-2.0
// The life of a history, and the graphs at points of its log: each is made when it is asked for, with an
// explainer of its own.

#include "graph/clone.h"
#include "partition/explain/explain_history.h"

enum { MAX_STATES = 48 };

/* Nodes that an application made and removed again leave no trace. */
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
  CLEAVE_TRY_MEMORY(history, error);
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

/* Replays the first steps of the log on a copy of the model. */
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
  CLEAVE_THEN(status, cleave_editor_settle(&editor, error));
  cleave_editor_deinit(&editor);
  CLEAVE_TRY_OR(status, cleave_graph_destroy(graph));
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
  CLEAVE_TRY_MEMORY(state, error);
  state->step = step;
  state->graph = is_last ? plan->graph : plan->source;
  if (!is_last && step > 0) {
    CLEAVE_TRY_OR(perform(history, step, &state->owned, error), cleave_free(state));
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
