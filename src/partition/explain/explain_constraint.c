// SPDX-License-Identifier: Apache-2.0
// Takes a pattern apart into the constraints of each part, and lists the parts of a trial in the order in
// which they are reached from its anchor.

#include <string.h>

#include "partition/explain/explain_state.h"

// ---- constraints ----

static uint32_t count_constraints(const cleave_pattern_node_t *node) {
  uint32_t dims = node->type.dims != NULL && node->type.rank > 0 ? (uint32_t)node->type.rank : 0;
  return node->child_count + node->input_count + node->attribute_count + dims + 12;
}

static void add(cleave_explainer_t *x, constraint_kind_t kind, uint32_t part, uint32_t index) {
  x->constraints[x->constraint_count++] = (constraint_t){(uint8_t)kind, part, index};
}

/* Has an earlier part, or any operator, the same label? */
static bool label_is_known(const cleave_pattern_t *pattern, uint32_t part) {
  const char *label = pattern->nodes[part].label;
  for (uint32_t k = 0; label != NULL && k < pattern->node_count; k++) {
    const cleave_pattern_node_t *other = &pattern->nodes[k];
    if (k != part && other->label != NULL && strcmp(other->label, label) == 0 &&
        (k < part || other->kind == CLEAVE_PATTERN_OP)) {
      return true;
    }
  }
  return false;
}

static void add_type_constraints(cleave_explainer_t *x, uint32_t part) {
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  const cleave_type_test_t *type = &node->type;
  if (type->dtypes != 0) {
    add(x, CONSTRAINT_DTYPE, part, 0);
  }
  if (type->rank >= 0) {
    add(x, CONSTRAINT_RANK, part, 0);
  }
  for (int32_t d = 0; type->dims != NULL && d < type->rank; d++) {
    if (type->dims[d].size >= 0 || type->dims[d].symbol != NULL || type->dims[d].expression != NULL) {
      add(x, CONSTRAINT_DIM, part, (uint32_t)d);
    }
  }
  if (node->where != NULL) {
    add(x, CONSTRAINT_WHERE, part, 0);
  }
}

static void add_value_constraints(cleave_explainer_t *x, uint32_t part) {
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  const cleave_constant_test_t *test = &node->constant;
  if (node->kind == CLEAVE_PATTERN_CONSTANT) {
    add(x, CONSTRAINT_CONSTANT, part, 0);
    if (test->scalar) {
      add(x, CONSTRAINT_SCALAR, part, 0);
    }
    if (test->all_equal) {
      add(x, CONSTRAINT_ALL_EQUAL, part, 0);
    }
    if (test->has_value || test->values != NULL || test->has_range) {
      add(x, CONSTRAINT_CONTENT, part, 0);
    }
  }
  add_type_constraints(x, part);
  if (label_is_known(x->pattern, part)) {
    add(x, CONSTRAINT_LABEL, part, 0);
  }
}

static void add_constraints(cleave_explainer_t *x, uint32_t part) {
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  switch (node->kind) {
    case CLEAVE_PATTERN_OP:
      for (uint32_t k = 0; k < node->input_count; k++) {
        add(x, CONSTRAINT_INPUT, part, k);
      }
      if (node->op_count > 0) {
        add(x, CONSTRAINT_OPS, part, 0);
      }
      for (uint32_t k = 0; k < node->attribute_count; k++) {
        add(x, CONSTRAINT_ATTRIBUTE, part, k);
      }
      add_type_constraints(x, part);
      if (!node->shared) {
        add(x, CONSTRAINT_UNSHARED, part, 0);
      }
      break;
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT: add_value_constraints(x, part); break;
    case CLEAVE_PATTERN_SEQUENCE:
    case CLEAVE_PATTERN_GROUP:
      for (uint32_t k = 0; k < node->child_count; k++) {
        add(x, CONSTRAINT_CHILD, part, k);
      }
      break;
    case CLEAVE_PATTERN_REPEATED:
    case CLEAVE_PATTERN_VARIADIC:
      if (node->min > 1) {
        add(x, CONSTRAINT_MIN_COUNT, part, 0);
      }
      if (node->max != UINT32_MAX) {
        add(x, CONSTRAINT_MAX_COUNT, part, 0);
      }
      break;
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_MAYBE:
    case CLEAVE_PATTERN_ONEOF:
    case CLEAVE_PATTERN_OUTPUT: break;
  }
}

static void refer(cleave_explainer_t *x, uint32_t from, uint32_t to) {
  bool is_value = cleave_pattern_is_value(&x->pattern->nodes[to]);
  x->is_tree = x->is_tree && (is_value || x->parents[to] == CLEAVE_INDEX_NONE);
  x->parents[to] = from;
}

cleave_status_t cleave_explainer_take_apart(cleave_explainer_t *x, const cleave_pattern_t *pattern,
                                            cleave_error_t *error) {
  cleave_arena_t *arena = &x->pattern_arena;
  size_t n = pattern->node_count;
  size_t most = 2;
  cleave_arena_reset(arena);
  for (size_t k = 0; k < n; k++) {
    most += count_constraints(&pattern->nodes[k]);
  }
  x->pattern = pattern;
  x->constraint_count = 0;
  x->constraints = cleave_arena_allocate(arena, most, sizeof *x->constraints);
  x->constraint_starts = cleave_arena_allocate(arena, n + 1, sizeof *x->constraint_starts);
  x->parents = cleave_arena_allocate(arena, n, sizeof *x->parents);
  x->seen = cleave_arena_allocate(arena, n, sizeof *x->seen);
  x->skeleton = cleave_arena_allocate(arena, most, sizeof *x->skeleton);
  x->details = cleave_arena_allocate(arena, most, sizeof *x->details);
  CLEAVE_TRY_MEMORY(x->constraints != NULL && x->constraint_starts != NULL && x->parents != NULL &&
                        x->seen != NULL && x->skeleton != NULL && x->details != NULL,
                    error);
  x->is_tree = true;
  x->has_group = false;
  memset(x->parents, 0xff, n * sizeof *x->parents);
  for (uint32_t p = 0; p < n; p++) {
    const cleave_pattern_node_t *node = &pattern->nodes[p];
    x->constraint_starts[p] = x->constraint_count;
    x->has_group = x->has_group || node->kind == CLEAVE_PATTERN_GROUP;
    add_constraints(x, p);
    for (uint32_t k = 0; k < node->input_count; k++) {
      refer(x, p, node->inputs[k].pattern);
    }
    for (uint32_t k = 0; k < node->child_count; k++) {
      refer(x, p, node->children[k]);
    }
  }
  x->constraint_starts[n] = x->constraint_count;
  add(x, CONSTRAINT_EDGES, CLEAVE_INDEX_NONE, 0);
  if (pattern->where != NULL) {
    add(x, CONSTRAINT_WHERE_ALL, CLEAVE_INDEX_NONE, 0);
  }
  return CLEAVE_OK;
}

uint32_t cleave_explainer_constraint(const cleave_explainer_t *x, uint32_t part, constraint_kind_t kind,
                                     uint32_t index) {
  for (uint32_t d = x->constraint_starts[part]; d < x->constraint_starts[part + 1]; d++) {
    if (x->constraints[d].kind == kind && x->constraints[d].index == index) {
      return d;
    }
  }
  return CLEAVE_INDEX_NONE;
}

// ---- trials ----

cleave_status_t cleave_explainer_trial_create(cleave_explainer_t *x, trial_t *out_trial,
                                              cleave_error_t *error) {
  cleave_arena_t *arena = &x->trial_arena;
  size_t n = x->pattern->node_count;
  out_trial->states = cleave_arena_allocate(arena, (size_t)x->constraint_count + 1, 1);
  out_trial->edges = cleave_arena_allocate(arena, (size_t)x->constraint_count + 1, 1);
  out_trial->choices = cleave_arena_allocate(arena, n, sizeof *out_trial->choices);
  CLEAVE_TRY_MEMORY(out_trial->states != NULL && out_trial->edges != NULL && out_trial->choices != NULL,
                    error);
  memset(out_trial->choices, 0xff, n * sizeof *out_trial->choices);
  return CLEAVE_OK;
}

cleave_status_t cleave_explainer_trial_copy(cleave_explainer_t *x, const trial_t *trial, trial_t *out_trial,
                                            cleave_error_t *error) {
  CLEAVE_TRY(cleave_explainer_trial_create(x, out_trial, error));
  memcpy(out_trial->states, trial->states, x->constraint_count);
  memcpy(out_trial->edges, trial->edges, x->constraint_count);
  memcpy(out_trial->choices, trial->choices, x->pattern->node_count * sizeof *trial->choices);
  return CLEAVE_OK;
}

uint32_t cleave_explainer_resolve(const cleave_explainer_t *x, const trial_t *trial, uint32_t part) {
  while (trial->choices[part] != CHOICE_NONE) {
    part = x->pattern->nodes[part].children[trial->choices[part]];
  }
  return part;
}

// ---- the walk ----

typedef struct walk {
  cleave_explainer_t *x;
  trial_t *trial;
} walk_t;

static void visit(const walk_t *walk, uint32_t part, bool forwards);

/* Operators belong to the structure and are required from the start. So are constraints that bound the
 * search, if they cannot mislead while parts are still left out. */
static void open_constraint(const cleave_explainer_t *x, trial_t *trial, uint32_t constraint) {
  constraint_kind_t kind = (constraint_kind_t)x->constraints[constraint].kind;
  bool from_start = kind == CONSTRAINT_OPS || kind == CONSTRAINT_MAX_COUNT || kind == CONSTRAINT_EDGES ||
                    (kind == CONSTRAINT_LABEL && x->has_group) || (kind == CONSTRAINT_UNSHARED && x->is_tree);
  if (trial->states[constraint] == CONSTRAINT_STRICT) {
    trial->states[constraint] = from_start ? CONSTRAINT_KEPT : CONSTRAINT_OPEN;
  }
}

/* Visits an edge to a part and, unless the edge was dropped, what is behind it. */
static void visit_edge(const walk_t *walk, uint32_t owner, constraint_kind_t kind, uint32_t index,
                       uint32_t target, bool forwards) {
  cleave_explainer_t *x = walk->x;
  uint32_t constraint = cleave_explainer_constraint(x, owner, kind, index);
  target = cleave_explainer_resolve(x, walk->trial, target);
  bool same = kind == CONSTRAINT_INPUT && x->seen[target] != 0;
  bool backwards = kind == CONSTRAINT_CHILD && !forwards;
  walk->trial->edges[constraint] = (uint8_t)((same ? EDGE_SAME : 0) | (backwards ? EDGE_BACKWARDS : 0));
  open_constraint(x, walk->trial, constraint);
  if (same) {
    x->details[x->detail_count++] = constraint;
    return;
  }
  x->skeleton[x->skeleton_count++] = constraint;
  if (walk->trial->states[constraint] != CONSTRAINT_DROPPED) {
    visit(walk, target, forwards);
  }
}

static void visit_sequence(const walk_t *walk, uint32_t part, bool forwards) {
  const cleave_pattern_node_t *node = &walk->x->pattern->nodes[part];
  if (!forwards) {
    uint32_t last = node->child_count - 1;
    visit(walk, node->children[last], false);
    for (uint32_t k = last; k-- > 0;) {
      visit_edge(walk, part, CONSTRAINT_CHILD, k, node->children[k], false);
    }
    return;
  }
  uint32_t first =
      cleave_pattern_is_value(&walk->x->pattern->nodes[node->children[0]]) && node->child_count > 1 ? 1 : 0;
  visit(walk, node->children[first], true);
  if (first == 1) {
    visit_edge(walk, part, CONSTRAINT_CHILD, 0, node->children[0], false);
  }
  for (uint32_t k = first + 1; k < node->child_count; k++) {
    visit_edge(walk, part, CONSTRAINT_CHILD, k, node->children[k], true);
  }
}

static void visit(const walk_t *walk, uint32_t part, bool forwards) {
  cleave_explainer_t *x = walk->x;
  part = cleave_explainer_resolve(x, walk->trial, part);
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  if (x->seen[part] != 0) {
    return;
  }
  x->seen[part] = 1;
  switch (node->kind) {
    case CLEAVE_PATTERN_OP:
      for (uint32_t k = 0; k < node->input_count; k++) {
        visit_edge(walk, part, CONSTRAINT_INPUT, k, node->inputs[k].pattern, false);
      }
      break;
    case CLEAVE_PATTERN_SEQUENCE: visit_sequence(walk, part, forwards); break;
    case CLEAVE_PATTERN_GROUP:
      visit(walk, node->children[0], true);
      for (uint32_t k = 1; k < node->child_count; k++) {
        visit_edge(walk, part, CONSTRAINT_CHILD, k, node->children[k], true);
      }
      break;
    case CLEAVE_PATTERN_REPEATED:
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_VARIADIC: visit(walk, node->children[0], forwards); break;
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_MAYBE:
    case CLEAVE_PATTERN_ONEOF: break;
  }
}

void cleave_explainer_walk(cleave_explainer_t *x, trial_t *trial) {
  walk_t walk = {x, trial};
  memset(x->seen, 0, x->pattern->node_count);
  x->skeleton_count = 0;
  x->detail_count = 0;
  visit(&walk, x->pattern->root, true);
  // Edges to parts that were seen before come first: they still belong to the structure.
  for (uint32_t p = 0; p < x->pattern->node_count; p++) {
    for (uint32_t d = x->constraint_starts[p]; x->seen[p] != 0 && d < x->constraint_starts[p + 1]; d++) {
      constraint_kind_t kind = (constraint_kind_t)x->constraints[d].kind;
      if (kind != CONSTRAINT_CHILD && kind != CONSTRAINT_INPUT) {
        open_constraint(x, trial, d);
        if (kind != CONSTRAINT_OPS) {
          x->details[x->detail_count++] = d;
        }
      }
    }
  }
  open_constraint(x, trial, cleave_explainer_edges_constraint(x));
  if (x->pattern->where != NULL) {
    x->details[x->detail_count++] = x->constraint_count - 1;
    open_constraint(x, trial, x->constraint_count - 1);
  }
}

uint32_t cleave_explainer_least_ops(cleave_explainer_t *x, const trial_t *trial, uint32_t part) {
  part = cleave_explainer_resolve(x, trial, part);
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  uint32_t count = node->kind == CLEAVE_PATTERN_OP;
  if (node->kind == CLEAVE_PATTERN_MAYBE || x->seen[part] != 0) {
    return 0;
  }
  x->seen[part] = 1;
  if (node->kind == CLEAVE_PATTERN_ONEOF) {
    // The alternatives are equivalent spellings: the first one stands for all.
    return cleave_explainer_least_ops(x, trial, node->children[0]);
  }
  for (uint32_t k = 0; k < node->input_count; k++) {
    count += cleave_explainer_least_ops(x, trial, node->inputs[k].pattern);
  }
  for (uint32_t k = 0; k < node->child_count; k++) {
    count += cleave_explainer_least_ops(x, trial, node->children[k]);
  }
  return node->kind == CLEAVE_PATTERN_REPEATED ? count * node->min : count;
}

uint32_t cleave_explainer_optional_parts(const cleave_explainer_t *x, uint32_t *parts, uint32_t size) {
  uint32_t count = 0;
  for (uint32_t p = 0; p < x->pattern->node_count && count < size; p++) {
    bool optional = false;
    for (uint32_t up = x->parents[p]; up != CLEAVE_INDEX_NONE && !optional; up = x->parents[up]) {
      optional = x->pattern->nodes[up].kind == CLEAVE_PATTERN_MAYBE;
    }
    if (optional && x->pattern->nodes[p].kind == CLEAVE_PATTERN_OP) {
      parts[count++] = p;
    }
  }
  return count;
}
