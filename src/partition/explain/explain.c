// SPDX-License-Identifier: Apache-2.0
// The explainer: creation and destruction, its pattern and anchors, its budgets, and the steps from a
// question to a finding.

#include "partition/explain/explain.h"

#include "partition/explain/explain_find.h"
#include "partition/explain/explain_state.h"
#include "partition/pattern/pattern_test.h"

#define STEPS_PER_ANCHOR ((size_t)200000)
#define STEPS_PER_RULE ((size_t)40000000)
#define STEPS_PER_NODE ((size_t)1000)
/* Limit on the inputs of all matches that the judge is asked about. */
#define INPUTS_PER_RULE ((size_t)1000000)
#define INPUTS_PER_NODE ((size_t)64)
#define MIN_STEPS ((size_t)10000) /* with fewer steps left, no search is begun */

// ---- life ----

cleave_status_t cleave_explainer_create(const cleave_graph_t *graph, cleave_explainer_t **out_explainer,
                                        cleave_error_t *error) {
  *out_explainer = NULL;
  cleave_explainer_t *x = cleave_allocate_zeroed(1, sizeof *x);
  CLEAVE_TRY_MEMORY(x, error);
  x->graph = graph;
  cleave_status_t status = cleave_contraction_create(graph, &x->contraction, error);
  CLEAVE_THEN(status, cleave_matcher_create(x->contraction, &x->matcher, error));
  CLEAVE_TRY_OR(status, cleave_explainer_destroy(x));
  *out_explainer = x;
  return CLEAVE_OK;
}

void cleave_explainer_set_history(cleave_explainer_t *x, const struct cleave_history *history) {
  x->history = history;
}

void cleave_explainer_set_judge(cleave_explainer_t *x, cleave_explain_judge_t judge, void *context) {
  x->judge = judge;
  x->judge_context = context;
}

void cleave_explainer_destroy(cleave_explainer_t *x) {
  if (x == NULL) {
    return;
  }
  cleave_matcher_destroy(x->matcher);
  cleave_contraction_destroy(x->contraction);
  cleave_arena_deinit(&x->pattern_arena);
  cleave_arena_deinit(&x->trial_arena);
  cleave_arena_deinit(&x->build_arena);
  cleave_array_free(&x->anchors);
  cleave_free(x);
}

/* Marks the operators that may take the anchor of a part. The matcher's own list of anchors leaves out those
 * that cannot match because an operator is missing elsewhere, which is exactly what an explanation is about.
 */
static void mark_anchors(const cleave_explainer_t *x, uint32_t part, uint8_t *marks) {
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  switch (node->kind) {
    case CLEAVE_PATTERN_OP: marks[part] = 1; break;
    case CLEAVE_PATTERN_SEQUENCE: {
      bool is_value = cleave_pattern_is_value(&x->pattern->nodes[node->children[0]]);
      mark_anchors(x, node->children[is_value && node->child_count > 1 ? 1 : 0], marks);
      break;
    }
    case CLEAVE_PATTERN_ONEOF:
      for (uint32_t k = 0; k < node->child_count; k++) {
        mark_anchors(x, node->children[k], marks);
      }
      break;
    case CLEAVE_PATTERN_REPEATED:
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_GROUP: mark_anchors(x, node->children[0], marks); break;
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_MAYBE:
    case CLEAVE_PATTERN_VARIADIC: break;
  }
}

static bool may_take(const cleave_pattern_node_t *part, const cleave_op_t *op) {
  bool takes = part->op_count == 0;
  for (uint32_t k = 0; k < part->op_count && !takes; k++) {
    takes = cleave_pattern_same_op(part->ops[k], op);
  }
  return takes;
}

static cleave_status_t find_anchors(cleave_explainer_t *x, cleave_error_t *error) {
  uint8_t *marks = cleave_arena_allocate(&x->pattern_arena, x->pattern->node_count, 1);
  CLEAVE_TRY_MEMORY(marks, error);
  mark_anchors(x, x->pattern->root, marks);
  x->anchors.count = 0;
  CLEAVE_TRY(cleave_array_reserve(&x->anchors, x->contraction->node_count, error));
  for (uint32_t position = 0; position < x->contraction->node_count; position++) {
    const cleave_op_t *op = cleave_node_op(x->graph, x->contraction->nodes[position]);
    bool takes = false;
    for (uint32_t part = 0; part < x->pattern->node_count && !takes; part++) {
      takes = marks[part] != 0 && may_take(&x->pattern->nodes[part], op);
    }
    if (takes) {
      cleave_array_push_reserved(&x->anchors, position);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_explainer_set_pattern(cleave_explainer_t *x, const cleave_pattern_t *pattern,
                                             cleave_error_t *error) {
  x->steps_left = STEPS_PER_RULE + STEPS_PER_NODE * x->contraction->node_count;
  x->inputs_left = INPUTS_PER_RULE + INPUTS_PER_NODE * x->contraction->node_count;
  x->is_exhausted = false;
  CLEAVE_TRY(cleave_explainer_take_apart(x, pattern, error));
  return find_anchors(x, error);
}

cleave_status_t cleave_explainer_anchors(cleave_explainer_t *x, const uint32_t **out_positions,
                                         uint32_t *out_count, cleave_error_t *error) {
  (void)error;
  *out_positions = x->anchors.items;
  *out_count = (uint32_t)x->anchors.count;
  return CLEAVE_OK;
}

bool cleave_explainer_is_spent(const cleave_explainer_t *x) {
  return x->steps_left < MIN_STEPS;
}

cleave_node_t cleave_explainer_node(const cleave_explainer_t *x, uint32_t position) {
  return x->contraction->nodes[position];
}

uint32_t cleave_explainer_position(const cleave_explainer_t *x, cleave_node_t node) {
  return x->contraction->positions[node.index];
}

cleave_status_t cleave_explainer_explain(cleave_explainer_t *x, uint32_t anchor, uint32_t focus,
                                         cleave_explain_depth_t depth, cleave_arena_t *arena,
                                         cleave_finding_t *out_finding, cleave_error_t *error) {
  trial_t best;
  tally_t best_tally;
  bool found = false;
  *out_finding = (cleave_finding_t){.anchor = x->contraction->nodes[anchor]};
  cleave_arena_reset(&x->trial_arena);
  x->anchor_steps_left = STEPS_PER_ANCHOR;
  x->is_exhausted = false;
  CLEAVE_TRY(cleave_explainer_grow(x, anchor, focus, depth, &best, &best_tally, &found, error));
  out_finding->is_complete = !x->is_exhausted;
  if (!found) {
    return CLEAVE_OK;
  }
  out_finding->matched = best_tally.matched;
  out_finding->total = best_tally.total;
  return cleave_explainer_find(x, &best, anchor, arena, out_finding, error);
}

cleave_status_t cleave_explainer_match(cleave_explainer_t *x, uint32_t anchor, cleave_node_t include,
                                       cleave_arena_t *arena, cleave_finding_t *out_finding,
                                       cleave_error_t *error) {
  cleave_match_answer_t answer;
  size_t limit = x->steps_left < STEPS_PER_ANCHOR ? x->steps_left : STEPS_PER_ANCHOR;
  cleave_match_request_t request = {
      .anchor = anchor, .step_limit = limit, .accept = cleave_explainer_has_node, .context = &include};
  *out_finding = (cleave_finding_t){.anchor = x->contraction->nodes[anchor], .is_complete = true};
  CLEAVE_TRY(cleave_matcher_set_pattern(x->matcher, x->pattern, error));
  CLEAVE_TRY(cleave_matcher_match(x->matcher, &request, &answer, error));
  x->steps_left -= answer.steps < x->steps_left ? answer.steps : x->steps_left;
  out_finding->is_complete = !answer.limit;
  if (answer.match == NULL) {
    return CLEAVE_OK;
  }
  out_finding->matches = true;
  out_finding->matched = out_finding->total = out_finding->node_count = answer.match->node_count;
  out_finding->nodes =
      cleave_arena_copy(arena, answer.match->nodes, answer.match->node_count * sizeof *answer.match->nodes);
  return out_finding->nodes == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}
