// SPDX-License-Identifier: Apache-2.0
// Replays the log step by step on a copy of the new graph. Before each step the constants that lose a use are
// noted. At the end of an application of a rule, it depends on those of them that no node which it made
// reads.
#include "partition/rewrite/transform_rebase.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/numbers.h"
#include "graph/clone.h"
#include "graph/compare/same_structure.h"
#include "graph/compare/structural_hash.h"
#include "graph/verify.h"

/* A constant, or sizes of another value, on which an application of a rule depends. */
typedef struct lean {
  uint32_t value;
  uint32_t group;
} lean_t;

typedef struct rebasing {
  const cleave_edits_t *edits;
  cleave_editor_t editor;
  CLEAVE_ARRAY(uint32_t) lost;  /* constants that lost a use in the group at work */
  CLEAVE_ARRAY(uint32_t) taken; /* values that a node made in this group reads */
  CLEAVE_ARRAY(lean_t) leans;
} rebasing_t;

static cleave_status_t lose(rebasing_t *r, cleave_value_t value, cleave_error_t *error) {
  const cleave_graph_t *graph = r->editor.graph;
  if (value.index < graph->values.count && cleave_value_is_constant(graph, value)) {
    CLEAVE_ARRAY_PUSH(&r->lost, value.index, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t take(rebasing_t *r, cleave_value_t value, cleave_error_t *error) {
  if (cleave_value_exists(value)) {
    CLEAVE_ARRAY_PUSH(&r->taken, value.index, error);
  }
  return CLEAVE_OK;
}

/* Notes what the step will do. If the step is not possible, everything ends anyway. */
static cleave_status_t watch(rebasing_t *r, const cleave_edit_t *edit, cleave_error_t *error) {
  const cleave_graph_t *graph = r->editor.graph;
  bool is_node = cleave_node_is_live(graph, edit->node);
  switch (edit->kind) {
    case CLEAVE_EDIT_REPLACE_USES:
      CLEAVE_TRY(take(r, edit->value, error));
      return lose(r, edit->other, error);
    case CLEAVE_EDIT_SET_INPUT:
      CLEAVE_TRY(take(r, edit->value, error));
      return is_node ? lose(r, cleave_node_input(graph, edit->node, edit->index), error) : CLEAVE_OK;
    case CLEAVE_EDIT_SET_OUTPUT:
      CLEAVE_TRY(take(r, edit->value, error));
      return edit->index < graph->outputs.count ? lose(r, cleave_graph_output(graph, edit->index), error)
                                                : CLEAVE_OK;
    case CLEAVE_EDIT_REMOVE_NODE:
      for (uint32_t k = 0; is_node && k < cleave_node_input_count(graph, edit->node); k++) {
        CLEAVE_TRY(lose(r, cleave_node_input(graph, edit->node, k), error));
      }
      return CLEAVE_OK;
    case CLEAVE_EDIT_ADD_NODE:
    case CLEAVE_EDIT_ADD_CONSTANT:
    case CLEAVE_EDIT_ADD_INPUT:
    case CLEAVE_EDIT_SET_ATTRIBUTE:
    case CLEAVE_EDIT_NAME_NODE:
    case CLEAVE_EDIT_NAME_VALUE:
    case CLEAVE_EDIT_READ_CONSTANT:
    case CLEAVE_EDIT_READ_SIZES:
    case CLEAVE_EDIT_FOLD: break;
  }
  return CLEAVE_OK;
}

/* Inputs of the live nodes that the group made. */
static cleave_status_t take_inputs(rebasing_t *r, const cleave_edit_group_t *group, cleave_error_t *error) {
  for (uint32_t k = 0; k < group->edit_count; k++) {
    const cleave_edit_t *edit = &r->edits->items.items[group->first_edit + k];
    if (edit->kind == CLEAVE_EDIT_ADD_NODE && cleave_node_is_live(r->editor.graph, edit->node)) {
      for (uint32_t i = 0; i < edit->input_count; i++) {
        CLEAVE_TRY(take(r, edit->inputs[i], error));
      }
    }
  }
  return CLEAVE_OK;
}

/* Makes the change depend on what the rule looked at. */
static cleave_status_t lean_on_reads(rebasing_t *r, uint32_t index, cleave_error_t *error) {
  const cleave_edit_group_t *group = &r->edits->groups.items[index];
  for (uint32_t k = 0; k < group->edit_count; k++) {
    const cleave_edit_t *edit = &r->edits->items.items[group->first_edit + k];
    if (edit->kind == CLEAVE_EDIT_READ_CONSTANT || edit->kind == CLEAVE_EDIT_READ_SIZES) {
      lean_t lean = {.value = edit->value.index, .group = index};
      CLEAVE_ARRAY_PUSH(&r->leans, lean, error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t end_group(rebasing_t *r, uint32_t index, cleave_error_t *error) {
  CLEAVE_TRY(lean_on_reads(r, index, error));
  if (r->lost.count == 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(take_inputs(r, &r->edits->groups.items[index], error));
  if (r->taken.count > 0) {
    qsort(r->taken.items, r->taken.count, sizeof *r->taken.items, cleave_compare_u32);
  }
  for (size_t k = 0; k < r->lost.count; k++) {
    lean_t lean = {.value = r->lost.items[k], .group = index};
    if (r->taken.count == 0 || bsearch(&lean.value, r->taken.items, r->taken.count, sizeof *r->taken.items,
                                       cleave_compare_u32) == NULL) {
      CLEAVE_ARRAY_PUSH(&r->leans, lean, error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t replay(rebasing_t *r, cleave_error_t *error) {
  const cleave_edits_t *edits = r->edits;
  for (uint32_t g = 0; g < edits->groups.count; g++) {
    const cleave_edit_group_t *group = &edits->groups.items[g];
    r->lost.count = 0;
    r->taken.count = 0;
    for (uint32_t k = 0; k < group->edit_count; k++) {
      CLEAVE_TRY(watch(r, &edits->items.items[group->first_edit + k], error));
      CLEAVE_TRY(cleave_editor_replay_step(&r->editor, edits, group->first_edit + k, error));
    }
    if (group->rule != CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(end_group(r, g, error));
    }
  }
  return cleave_editor_settle(&r->editor, error);
}

static bool same_sizes(const cleave_value_record_t *a, const cleave_value_record_t *b) {
  return a->rank == b->rank &&
         (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

static cleave_status_t fail_lean(const rebasing_t *r, const lean_t *lean, const char *what,
                                 cleave_error_t *error) {
  const cleave_graph_t *graph = r->editor.graph;
  const cleave_edit_group_t *group = &r->edits->groups.items[lean->group];
  const cleave_edit_rule_t *rule = &r->edits->rules.items[group->rule];
  return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                          "%s '%.100s' has changed, and %s '%.80s'%s%.100s%s relied on what it was: run the "
                          "rules over the new model",
                          what, cleave_value_name(graph, (cleave_value_t){lean->value}), rule->kind,
                          rule->name, group->place[0] == '\0' ? "" : " at '", group->place,
                          group->place[0] == '\0' ? "" : "'");
}

/* Equal constants of both graphs share their tensors. */
static cleave_status_t check_leans(const rebasing_t *r, const cleave_graph_t *old, cleave_error_t *error) {
  const cleave_graph_t *graph = r->editor.graph;
  for (size_t k = 0; k < r->leans.count; k++) {
    const lean_t *lean = &r->leans.items[k];
    const cleave_value_record_t *now = cleave_graph_value(graph, (cleave_value_t){lean->value});
    const cleave_value_record_t *then = cleave_graph_value(old, (cleave_value_t){lean->value});
    if (now->tensor != then->tensor) {
      return fail_lean(r, lean, "constant", error);
    }
    if (!same_sizes(now, then)) {
      return fail_lean(r, lean, "the size of", error);
    }
  }
  return CLEAVE_OK;
}

/* The replay reports what is wrong with a log; here the constants are the cause. */
static cleave_status_t fail(cleave_error_t *error, const char *what) {
  return cleave_error_set(
      error, CLEAVE_ERROR_UNSUPPORTED,
      "with these constants or sizes the rewrites would be different ones (%.400s): run the rules over "
      "the new model",
      what);
}

static cleave_status_t check_result(rebasing_t *r, const cleave_graph_t *old, cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_status_t status = cleave_graph_verify(r->editor.graph, error);
  if (status == CLEAVE_OK && !cleave_graph_is_version_of(r->editor.graph, old, &text)) {
    status = fail(error, cleave_text_get(&text));
  }
  cleave_text_deinit(&text);
  CLEAVE_TRY(status);
  CLEAVE_TRY(cleave_graph_share_constants(r->editor.graph, old, error));
  return check_leans(r, old, error);
}

static cleave_status_t rebase(rebasing_t *r, const cleave_plan_t *plan, const cleave_graph_t *graph,
                              cleave_edits_t **out_edits, cleave_error_t *error) {
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  CLEAVE_TRY(cleave_edits_copy(plan->edits, out_edits, error));
  CLEAVE_TRY(cleave_graph_hash(graph, &(*out_edits)->source_hash, error));
  CLEAVE_TRY(cleave_graph_copy(graph, &r->editor.graph, error));
  cleave_status_t status = replay(r, &cause);
  if (status != CLEAVE_OK) {
    return status == CLEAVE_ERROR_OUT_OF_MEMORY ? cleave_error_out_of_memory(error)
                                                : fail(error, cause.message);
  }
  CLEAVE_TRY(check_result(r, plan->graph, error));
  return cleave_graph_hash(r->editor.graph, &(*out_edits)->result_hash, error);
}

cleave_status_t cleave_transform_rebase(const cleave_plan_t *plan, const cleave_graph_t *graph,
                                        const cleave_transform_options_t *options, cleave_graph_t **out_graph,
                                        cleave_edits_t **out_edits, cleave_error_t *error) {
  rebasing_t r = {.edits = plan->edits};
  cleave_edits_t *edits = NULL;
  *out_graph = NULL;
  *out_edits = NULL;
  cleave_editor_init(&r.editor, NULL, NULL);
  if (options != NULL) {
    r.editor.fold = options->fold;
    r.editor.fold_context = options->fold_context;
  }
  cleave_status_t status = rebase(&r, plan, graph, &edits, error);
  cleave_graph_t *result = r.editor.graph;
  cleave_editor_deinit(&r.editor);
  if (status == CLEAVE_OK) {
    *out_graph = result;
    *out_edits = edits;
  } else {
    cleave_graph_destroy(result);
    cleave_edits_destroy(edits);
  }
  cleave_array_free(&r.lost);
  cleave_array_free(&r.taken);
  cleave_array_free(&r.leans);
  return status;
}
