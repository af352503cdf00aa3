// SPDX-License-Identifier: Apache-2.0
// Builds a pattern from a trial: a copy of the parts without the constraints that the trial drops. Dropping a
// constraint never excludes a match.

#include <string.h>

#include "partition/explain/explain_state.h"

enum { STEPS_PER_PROBE = 20000, STEPS_PER_PART = 4 };

// ---- changing the copy ----

cleave_status_t cleave_explainer_copy_parts(cleave_explainer_t *x, cleave_error_t *error) {
  size_t n = x->pattern->node_count;
  cleave_arena_reset(&x->build_arena);
  x->built = cleave_arena_allocate(
      &x->build_arena, n + 2 * (size_t)x->constraint_count + CLEAVE_MATCH_MAX_UNNAMED, sizeof *x->built);
  CLEAVE_TRY_MEMORY(x->built, error);
  memcpy(x->built, x->pattern->nodes, n * sizeof *x->built);
  x->built_count = (uint32_t)n;
  x->trial_pattern = *x->pattern;
  x->trial_pattern.nodes = x->built;
  x->passes_unnamed = false;
  return CLEAVE_OK;
}

uint32_t cleave_explainer_add_part(cleave_explainer_t *x, cleave_pattern_node_t part) {
  x->built[x->built_count] = part;
  return x->built_count++;
}

uint32_t *cleave_explainer_own_children(cleave_explainer_t *x, uint32_t part, uint32_t extra) {
  cleave_pattern_node_t *node = &x->built[part];
  uint32_t *own = cleave_arena_allocate(&x->build_arena, (size_t)node->child_count + extra, sizeof *own);
  if (own != NULL && node->child_count > 0) {
    memcpy(own, node->children, node->child_count * sizeof *own);
  }
  node->children = own;
  return own;
}

cleave_pattern_input_t *cleave_explainer_own_inputs(cleave_explainer_t *x, uint32_t part, uint32_t extra) {
  cleave_pattern_node_t *node = &x->built[part];
  cleave_pattern_input_t *own =
      cleave_arena_allocate(&x->build_arena, (size_t)node->input_count + extra, sizeof *own);
  if (own != NULL && node->input_count > 0) {
    memcpy(own, node->inputs, node->input_count * sizeof *own);
  }
  node->inputs = own;
  return own;
}

uint32_t cleave_explainer_add_group(cleave_explainer_t *x, cleave_pattern_kind_t kind, uint32_t a,
                                    uint32_t b) {
  uint32_t *children = cleave_arena_allocate(&x->build_arena, 2, sizeof *children);
  if (children == NULL) {
    return CLEAVE_INDEX_NONE;
  }
  children[0] = a;
  children[1] = b;
  return cleave_explainer_add_part(
      x,
      (cleave_pattern_node_t){
          .kind = kind, .line = x->built[a].line, .type.rank = -1, .children = children, .child_count = 2});
}

uint32_t cleave_explainer_add_choice(cleave_explainer_t *x, uint32_t part) {
  int32_t line = x->built[part].line;
  uint32_t any = cleave_explainer_add_part(
      x, (cleave_pattern_node_t){.kind = CLEAVE_PATTERN_VALUE, .line = line, .type.rank = -1});
  return cleave_explainer_add_group(x, CLEAVE_PATTERN_ONEOF, part, any);
}

/* `part` in sequence with one node of any operator, before or after it. */
static uint32_t add_passed(cleave_explainer_t *x, uint32_t part, bool before) {
  int32_t line = x->built[part].line;
  uint32_t any = cleave_explainer_add_part(
      x, (cleave_pattern_node_t){
             .kind = CLEAVE_PATTERN_OP, .line = line, .type.rank = -1, .shared = !x->is_tree});
  return before ? cleave_explainer_add_group(x, CLEAVE_PATTERN_SEQUENCE, any, part)
                : cleave_explainer_add_group(x, CLEAVE_PATTERN_SEQUENCE, part, any);
}

// ---- dropping constraints ----

static bool drop_dim(cleave_explainer_t *x, uint32_t part, uint32_t index) {
  cleave_type_test_t *type = &x->built[part].type;
  if (type->dims == NULL) {
    return true;  // the rank is dropped, and its dims with it
  }
  cleave_dim_test_t *own = cleave_arena_allocate(&x->build_arena, (size_t)type->rank, sizeof *own);
  if (own == NULL) {
    return false;
  }
  memcpy(own, type->dims, (size_t)type->rank * sizeof *own);
  own[index] = (cleave_dim_test_t){.size = -1};
  type->dims = own;
  return true;
}

static bool drop_attribute(cleave_explainer_t *x, uint32_t part, uint32_t index) {
  cleave_pattern_node_t *node = &x->built[part];
  const cleave_attribute_test_t *dropped = &x->pattern->nodes[part].attributes[index];
  cleave_attribute_test_t *own = cleave_arena_allocate(&x->build_arena, node->attribute_count, sizeof *own);
  if (own == NULL) {
    return false;
  }
  uint32_t kept = 0;
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    bool same = strcmp(node->attributes[k].name, dropped->name) == 0 &&
                node->attributes[k].kind == dropped->kind && node->attributes[k].values == dropped->values;
    if (!same) {
      own[kept++] = node->attributes[k];
    }
  }
  node->attributes = own;
  node->attribute_count = kept;
  return true;
}

/* Dropped children and inputs become NONE; `sweep` removes them. */
static bool drop_edge(cleave_explainer_t *x, const trial_t *trial, uint32_t constraint) {
  const constraint_t *d = &x->constraints[constraint];
  bool passed = trial->states[constraint] == CONSTRAINT_PASSED;
  if (d->kind == CONSTRAINT_CHILD) {
    uint32_t *children = cleave_explainer_own_children(x, d->part, 0);
    if (children == NULL) {
      return false;
    }
    bool before = (trial->edges[constraint] & EDGE_BACKWARDS) == 0;
    children[d->index] = passed ? add_passed(x, children[d->index], before) : CLEAVE_INDEX_NONE;
    return !passed || children[d->index] != CLEAVE_INDEX_NONE;
  }
  cleave_pattern_input_t *inputs = cleave_explainer_own_inputs(x, d->part, 0);
  if (inputs == NULL) {
    return false;
  }
  uint32_t target = inputs[d->index].pattern;
  if (passed) {
    inputs[d->index].pattern = add_passed(x, target, false);
  } else if ((trial->edges[constraint] & EDGE_SAME) != 0) {
    inputs[d->index].pattern = cleave_explainer_add_choice(x, target);
  } else {
    inputs[d->index].pattern = CLEAVE_INDEX_NONE;
    return true;
  }
  return inputs[d->index].pattern != CLEAVE_INDEX_NONE;
}

static bool drop(cleave_explainer_t *x, const trial_t *trial, uint32_t constraint) {
  const constraint_t *d = &x->constraints[constraint];
  if (d->kind == CONSTRAINT_WHERE_ALL) {
    x->trial_pattern.where = NULL;
    return true;
  }
  if (d->kind == CONSTRAINT_EDGES) {
    x->passes_unnamed = true;
    return true;
  }
  cleave_pattern_node_t *node = &x->built[d->part];
  switch ((constraint_kind_t)d->kind) {
    case CONSTRAINT_CHILD:
    case CONSTRAINT_INPUT: return drop_edge(x, trial, constraint);
    case CONSTRAINT_OPS: node->op_count = 0; break;
    case CONSTRAINT_ATTRIBUTE: return drop_attribute(x, d->part, d->index);
    case CONSTRAINT_DTYPE: node->type.dtypes = 0; break;
    case CONSTRAINT_RANK:
      node->type.rank = -1;
      node->type.dims = NULL;
      break;
    case CONSTRAINT_DIM: return drop_dim(x, d->part, d->index);
    case CONSTRAINT_CONSTANT: node->kind = CLEAVE_PATTERN_VALUE; break;
    case CONSTRAINT_SCALAR: node->constant.scalar = false; break;
    case CONSTRAINT_ALL_EQUAL: node->constant.all_equal = false; break;
    case CONSTRAINT_CONTENT:
      node->constant.has_value = node->constant.has_range = node->constant.is_list = false;
      node->constant.values = NULL;
      node->constant.value_count = 0;
      break;
    case CONSTRAINT_LABEL: node->label = NULL; break;
    case CONSTRAINT_UNSHARED: node->shared = true; break;
    case CONSTRAINT_MIN_COUNT: node->min = node->kind == CLEAVE_PATTERN_VARIADIC ? 0 : 1; break;
    case CONSTRAINT_MAX_COUNT: node->max = UINT32_MAX; break;
    case CONSTRAINT_WHERE: node->where = NULL; break;
    case CONSTRAINT_EDGES:
    case CONSTRAINT_WHERE_ALL: break;
  }
  return true;
}

// ---- putting it together ----

static bool sweep(cleave_explainer_t *x, const trial_t *trial, uint32_t part) {
  cleave_pattern_node_t *node = &x->built[part];
  bool owned = false;
  for (uint32_t k = 0; k < node->child_count && !owned; k++) {
    uint32_t child = node->children[k];
    owned = child == CLEAVE_INDEX_NONE ||
            (child < x->pattern->node_count && trial->choices[child] != CHOICE_NONE);
  }
  if (owned) {
    uint32_t *children = cleave_explainer_own_children(x, part, 0);
    uint32_t kept = 0;
    for (uint32_t k = 0; children != NULL && k < node->child_count; k++) {
      if (children[k] != CLEAVE_INDEX_NONE) {
        children[kept++] = children[k] < x->pattern->node_count
                               ? cleave_explainer_resolve(x, trial, children[k])
                               : children[k];
      }
    }
    node->child_count = kept;
    if (children == NULL) {
      return false;
    }
  }
  if (node->input_count == 0) {
    return true;
  }
  cleave_pattern_input_t *inputs = cleave_explainer_own_inputs(x, part, 0);
  uint32_t kept = 0;
  for (uint32_t k = 0; inputs != NULL && k < node->input_count; k++) {
    if (inputs[k].pattern != CLEAVE_INDEX_NONE) {
      inputs[kept] = inputs[k];
      if (inputs[kept].pattern < x->pattern->node_count) {
        inputs[kept].pattern = cleave_explainer_resolve(x, trial, inputs[kept].pattern);
      }
      kept++;
    }
  }
  node->input_count = kept;
  return inputs != NULL;
}

static void reach(const cleave_explainer_t *x, uint32_t part, uint8_t *reached) {
  if (reached[part] != 0) {
    return;
  }
  reached[part] = 1;
  for (uint32_t k = 0; k < x->built[part].input_count; k++) {
    reach(x, x->built[part].inputs[k].pattern, reached);
  }
  for (uint32_t k = 0; k < x->built[part].child_count; k++) {
    reach(x, x->built[part].children[k], reached);
  }
}

/* Gives a label to every part that is reached: "#12", unless it has one. */
static cleave_status_t name_all(cleave_explainer_t *x, cleave_error_t *error) {
  const char **labels = cleave_arena_allocate(&x->build_arena, (size_t)x->built_count + 1, sizeof *labels);
  uint32_t count = 0;
  CLEAVE_TRY_MEMORY(labels, error);
  for (uint32_t p = 0; p < x->built_count; p++) {
    const char *label = x->built[p].label;
    uint32_t known = 0;
    while (label != NULL && known < count && strcmp(labels[known], label) != 0) {
      known++;
    }
    if (label == NULL) {
      label = cleave_arena_format(&x->build_arena, "#%u", (unsigned)p);
      CLEAVE_TRY_MEMORY(label, error);
      x->built[p].label = label;
      known = count;
    }
    if (known == count) {
      labels[count++] = label;
    }
  }
  x->trial_pattern.labels = labels;
  x->trial_pattern.label_count = count;
  return CLEAVE_OK;
}

cleave_status_t cleave_explainer_finish_parts(cleave_explainer_t *x, bool names_all, cleave_error_t *error) {
  uint8_t *reached = cleave_arena_allocate(&x->build_arena, x->built_count, 1);
  CLEAVE_TRY_MEMORY(reached, error);
  reach(x, x->trial_pattern.root, reached);
  for (uint32_t p = 0; p < x->built_count; p++) {
    if (reached[p] == 0) {
      x->built[p] = (cleave_pattern_node_t){.kind = CLEAVE_PATTERN_VALUE, .type.rank = -1};
    }
  }
  x->trial_pattern.node_count = x->built_count;
  return names_all ? name_all(x, error) : CLEAVE_OK;
}

cleave_status_t cleave_explainer_build(cleave_explainer_t *x, const trial_t *trial, bool names_all,
                                       cleave_error_t *error) {
  CLEAVE_TRY(cleave_explainer_copy_parts(x, error));
  for (uint32_t d = 0; d < x->constraint_count; d++) {
    uint8_t state = trial->states[d];
    bool asked = state == CONSTRAINT_KEPT || state == CONSTRAINT_STRICT;
    if (!asked && !drop(x, trial, d)) {
      return cleave_error_out_of_memory(error);
    }
  }
  for (uint32_t p = 0; p < x->pattern->node_count; p++) {
    if (!sweep(x, trial, p)) {
      return cleave_error_out_of_memory(error);
    }
  }
  for (uint32_t p = x->pattern->node_count; p < x->built_count; p++) {
    // Parts that were added: their children may stand for others.
    if (cleave_pattern_has_children(&x->built[p]) && !sweep(x, trial, p)) {
      return cleave_error_out_of_memory(error);
    }
  }
  x->trial_pattern.root = cleave_explainer_resolve(x, trial, x->pattern->root);
  return cleave_explainer_finish_parts(x, names_all, error);
}

cleave_status_t cleave_explainer_probe(cleave_explainer_t *x, uint32_t anchor, cleave_match_answer_t *answer,
                                       cleave_error_t *error) {
  size_t left = x->steps_left < x->anchor_steps_left ? x->steps_left : x->anchor_steps_left;
  size_t cost = (size_t)x->built_count * STEPS_PER_PART;
  *answer = (cleave_match_answer_t){0};
  if (left <= cost) {
    x->is_exhausted = true;
    return CLEAVE_OK;
  }
  cleave_match_request_t request = {.anchor = anchor,
                                    .step_limit = left < STEPS_PER_PROBE ? left : STEPS_PER_PROBE,
                                    .passes_unnamed = x->passes_unnamed};
  cleave_status_t status = cleave_matcher_set_pattern(x->matcher, &x->trial_pattern, NULL);
  if (status == CLEAVE_OK) {
    CLEAVE_TRY(cleave_matcher_match(x->matcher, &request, answer, error));
  } else if (status != CLEAVE_ERROR_RULE) {
    return cleave_error_out_of_memory(error);
  }
  cost += answer->steps;
  x->steps_left -= cost < x->steps_left ? cost : x->steps_left;
  x->anchor_steps_left -= cost < x->anchor_steps_left ? cost : x->anchor_steps_left;
  x->is_exhausted = x->is_exhausted || answer->limit;
  return CLEAVE_OK;
}
