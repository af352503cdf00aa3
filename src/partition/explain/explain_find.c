// SPDX-License-Identifier: Apache-2.0
// Finds what is at fault: the trial is matched once more with a name for every part, so that each dropped
// constraint can be compared with the node or value of its part.

#include "partition/explain/explain_find.h"

#include <string.h>

#include "partition/pattern/pattern_test.h"

// ---- bindings ----

/* Does a node meet the constraint? Finds the node at fault of parts that stand for many nodes. */
static bool passes(const cleave_explainer_t *x, const constraint_t *constraint, cleave_node_t node) {
  const cleave_pattern_node_t *part = &x->pattern->nodes[constraint->part];
  cleave_value_t output = cleave_node_output(x->graph, node, part->output);
  cleave_pattern_node_t alone = *part;
  cleave_type_test_t type = {.rank = -1};
  switch ((constraint_kind_t)constraint->kind) {
    case CONSTRAINT_OPS: alone.attribute_count = 0; return cleave_pattern_test_node(&alone, x->graph, node);
    case CONSTRAINT_ATTRIBUTE:
      return cleave_pattern_test_attribute(&part->attributes[constraint->index], x->graph, node);
    case CONSTRAINT_DTYPE: type.dtypes = part->type.dtypes; break;
    case CONSTRAINT_RANK: type.rank = part->type.rank; break;
    default: return true;
  }
  return cleave_value_exists(output) && cleave_pattern_test_type(&type, x->graph, output);
}

static bool is_label_of(const finder_t *finder, uint32_t part, const char *label) {
  const char *own = finder->x->built[part].label;
  return own != NULL && strcmp(own, label) == 0;
}

/* Binds the parts of the pattern, and, from node_count on, those that the builder added. */
static cleave_status_t bind(finder_t *finder, const cleave_match_t *match, cleave_error_t *error) {
  cleave_explainer_t *x = finder->x;
  binding_t *bindings = cleave_arena_allocate(&x->trial_arena, x->built_count, sizeof *bindings);
  cleave_node_t *nodes = cleave_arena_copy(finder->arena, match->nodes, match->node_count * sizeof *nodes);
  CLEAVE_TRY_MEMORY(bindings != NULL && nodes != NULL, error);
  for (uint32_t p = 0; p < x->built_count; p++) {
    bindings[p] = (binding_t){CLEAVE_NODE_NONE, CLEAVE_VALUE_NONE, 0};
    for (uint32_t k = 0; k < match->pattern->label_count; k++) {
      if (is_label_of(finder, p, match->pattern->labels[k])) {
        bindings[p].value = match->label_values[k];
        bindings[p].node = x->built[p].kind == CLEAVE_PATTERN_OP ? match->label_nodes[k]
                           : x->built[p].kind == CLEAVE_PATTERN_OUTPUT
                               ? cleave_value_producer(x->graph, bindings[p].value)
                               : CLEAVE_NODE_NONE;
      }
    }
    for (uint32_t k = 0; x->built[p].kind == CLEAVE_PATTERN_OP && k < match->node_count; k++) {
      bindings[p].count += is_label_of(finder, p, match->node_labels[k]);
    }
    // If there are several repetitions, the first one at fault is bound.
    for (uint32_t d = p < x->pattern->node_count ? x->constraint_starts[p] : 0;
         bindings[p].count > 1 && p < x->pattern->node_count && d < x->constraint_starts[p + 1]; d++) {
      for (uint32_t k = 0; finder->trial->states[d] == CONSTRAINT_DROPPED && k < match->node_count; k++) {
        if (is_label_of(finder, p, match->node_labels[k]) &&
            !passes(x, &x->constraints[d], match->nodes[k])) {
          bindings[p].node = match->nodes[k];
          bindings[p].value = cleave_node_output(x->graph, match->nodes[k], x->built[p].output);
          break;
        }
      }
    }
  }
  finder->bindings = bindings;
  finder->nodes = nodes;
  finder->node_count = match->node_count;
  return CLEAVE_OK;
}

// ---- where a constraint fails ----

/* Does another input pattern of the operator stand for the value? */
static bool is_spoken_for(const finder_t *finder, const constraint_t *constraint, cleave_value_t value) {
  const cleave_explainer_t *x = finder->x;
  const cleave_pattern_node_t *part = &x->pattern->nodes[constraint->part];
  for (uint32_t k = 0; k < part->input_count; k++) {
    uint32_t target = cleave_explainer_resolve(x, finder->trial, part->inputs[k].pattern);
    if (k != constraint->index && finder->bindings[target].value.index == value.index) {
      return true;
    }
  }
  return cleave_finder_has(finder, cleave_value_producer(x->graph, value));
}

/* The part by which a part is bound: itself, or the operator or output that it begins or ends with. */
static uint32_t bound_part(const finder_t *finder, uint32_t part, bool last) {
  const cleave_explainer_t *x = finder->x;
  for (;;) {
    part = cleave_explainer_resolve(x, finder->trial, part);
    const cleave_pattern_node_t *node = &x->pattern->nodes[part];
    if (!cleave_pattern_has_children(node) || node->kind == CLEAVE_PATTERN_MAYBE ||
        node->kind == CLEAVE_PATTERN_ONEOF || node->kind == CLEAVE_PATTERN_OUTPUT) {
      return part;
    }
    part = node->children[last ? node->child_count - 1 : 0];
  }
}

/* The operator of a part that is an operator or one of its outputs, or NULL. */
static const cleave_pattern_node_t *operator_of(const finder_t *finder, uint32_t part) {
  const cleave_pattern_node_t *nodes = finder->x->pattern->nodes;
  part = nodes[part].kind == CLEAVE_PATTERN_OUTPUT ? nodes[part].children[0] : part;
  return nodes[part].kind == CLEAVE_PATTERN_OP ? &nodes[part] : NULL;
}

/* Does the input read the right node at another output than the pattern says? */
static void find_input_output(const finder_t *finder, uint32_t target, fault_t *fault) {
  const cleave_explainer_t *x = finder->x;
  uint32_t part = bound_part(finder, target, true);
  const cleave_pattern_node_t *taker = operator_of(finder, part);
  uint32_t wanted = x->pattern->nodes[part].output;
  if (taker != NULL && cleave_node_exists(fault->node) &&
      cleave_pattern_test_op(taker, x->graph, fault->node) &&
      cleave_graph_value(x->graph, fault->value)->output_index != wanted) {
    fault->output = wanted;
  }
}

/* Does another output of the node that makes the fault's value have the reader that the pattern wants? */
static void find_child_output(const finder_t *finder, uint32_t target, fault_t *fault) {
  const cleave_explainer_t *x = finder->x;
  const cleave_pattern_node_t *taker = operator_of(finder, bound_part(finder, target, false));
  const cleave_value_t wanted = fault->value;
  cleave_node_t maker = cleave_value_producer(x->graph, wanted);
  if (taker == NULL || !cleave_node_exists(maker) ||
      (cleave_node_exists(fault->node) && cleave_pattern_test_op(taker, x->graph, fault->node))) {
    return;
  }
  for (uint32_t k = 0; k < cleave_node_output_count(x->graph, maker) && fault->output == CLEAVE_INDEX_NONE;
       k++) {
    cleave_value_t value = cleave_node_output(x->graph, maker, k);
    cleave_use_t use = cleave_finder_outside_use(finder, value);
    cleave_node_t reader = cleave_use_exists(use) ? cleave_use_node(x->graph, use) : CLEAVE_NODE_NONE;
    if (value.index != wanted.index && cleave_node_exists(reader) &&
        cleave_pattern_test_op(taker, x->graph, reader)) {
      fault->output = cleave_graph_value(x->graph, wanted)->output_index;
      fault->value = value;
      fault->node = reader;
    }
  }
}

/* An earlier input of the node, made by the same node as input `index`; or NONE. */
static uint32_t find_twin(const cleave_graph_t *graph, cleave_node_t user, uint32_t index) {
  cleave_node_t maker = cleave_value_producer(graph, cleave_node_input(graph, user, index));
  for (uint32_t k = 0; k < cleave_node_output_count(graph, maker); k++) {
    for (cleave_use_t use = cleave_value_first_use(graph, cleave_node_output(graph, maker, k));
         cleave_use_exists(use); use = cleave_use_next(graph, use)) {
      if (cleave_use_node(graph, use).index == user.index && cleave_use_input_index(graph, use) < index) {
        return cleave_use_input_index(graph, use);
      }
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* The input that a variadic part does not match: one that another operator makes, or else one whose node
 * makes an earlier one, too. */
static void find_variadic(const finder_t *finder, const constraint_t *constraint, cleave_node_t user,
                          fault_t *fault) {
  const cleave_explainer_t *x = finder->x;
  uint32_t target = x->pattern->nodes[constraint->part].inputs[constraint->index].pattern;
  const cleave_pattern_node_t *taker = operator_of(finder, bound_part(finder, target, true));
  for (uint32_t k = 0; k < cleave_node_input_count(x->graph, user); k++) {
    cleave_value_t value = cleave_node_input(x->graph, user, k);
    if (!cleave_value_exists(value) || is_spoken_for(finder, constraint, value)) {
      continue;
    }
    cleave_node_t maker = cleave_value_producer(x->graph, value);
    if (taker != NULL && (!cleave_node_exists(maker) || !cleave_pattern_test_op(taker, x->graph, maker))) {
      fault->value = value;
      fault->twin = CLEAVE_INDEX_NONE;
      return;
    }
    uint32_t twin = fault->twin == CLEAVE_INDEX_NONE && cleave_node_exists(maker)
                        ? find_twin(x->graph, user, k)
                        : CLEAVE_INDEX_NONE;
    if (twin != CLEAVE_INDEX_NONE || !cleave_value_exists(fault->value)) {
      fault->value = value;
      fault->twin = twin;
    }
  }
}

/* The value that an unmatched input pattern should have matched. */
static void find_input(const finder_t *finder, const constraint_t *constraint, fault_t *fault) {
  const cleave_explainer_t *x = finder->x;
  const cleave_pattern_node_t *part = &x->pattern->nodes[constraint->part];
  cleave_node_t user = finder->bindings[constraint->part].node;
  uint32_t port = part->inputs[constraint->index].port;
  bool named = port != CLEAVE_PATTERN_PORT_ANY && port != CLEAVE_PATTERN_PORT_VARIADIC;
  if (!cleave_node_exists(user)) {
    return;
  }
  bool swaps = (cleave_node_op(x->graph, user)->flags & CLEAVE_OP_COMMUTATIVE) != 0;
  if (named && !(swaps && port < 2)) {
    fault->value = cleave_node_input(x->graph, user, port);
  } else if (port == CLEAVE_PATTERN_PORT_VARIADIC) {
    find_variadic(finder, constraint, user, fault);
  } else {
    for (uint32_t k = 0; k < cleave_node_input_count(x->graph, user); k++) {
      cleave_value_t value = cleave_node_input(x->graph, user, k);
      if (cleave_value_exists(value) && !is_spoken_for(finder, constraint, value)) {
        fault->value = value;
        break;
      }
    }
  }
  if (cleave_value_exists(fault->value)) {
    fault->node = cleave_value_producer(x->graph, fault->value);
    if (fault->twin == CLEAVE_INDEX_NONE) {
      find_input_output(finder, part->inputs[constraint->index].pattern, fault);
    }
  }
}

/* The node or value in the place of a missing child of a sequence. */
static void find_child(const finder_t *finder, const constraint_t *constraint, bool backwards,
                       fault_t *fault) {
  const cleave_explainer_t *x = finder->x;
  const cleave_pattern_node_t *owner = &x->pattern->nodes[constraint->part];
  uint32_t k = constraint->index;
  for (;;) {
    bool at_end = backwards ? k + 1 >= owner->child_count : k == 0;
    if (at_end) {
      return;
    }
    k = backwards ? k + 1 : k - 1;
    const binding_t *bound = &finder->bindings[bound_part(finder, owner->children[k], !backwards)];
    if (backwards && cleave_node_exists(bound->node)) {
      for (uint32_t i = 0; i < cleave_node_input_count(x->graph, bound->node); i++) {
        cleave_value_t value = cleave_node_input(x->graph, bound->node, i);
        bool free_value =
            cleave_value_exists(value) && !cleave_finder_has(finder, cleave_value_producer(x->graph, value));
        if (free_value && !(cleave_value_exists(fault->value) && cleave_value_is_constant(x->graph, value))) {
          fault->value = value;
          fault->node = cleave_value_producer(x->graph, value);
          if (cleave_node_exists(fault->node)) {
            return;
          }
        }
      }
      return;
    }
    if (!backwards && cleave_value_exists(bound->value)) {
      cleave_use_t use = cleave_finder_outside_use(finder, bound->value);
      use = cleave_use_exists(use) ? use : cleave_value_first_use(x->graph, bound->value);
      fault->value = bound->value;
      fault->node = cleave_use_exists(use) ? cleave_use_node(x->graph, use) : CLEAVE_NODE_NONE;
      find_child_output(finder, owner->children[constraint->index], fault);
      return;
    }
  }
}

/* The node in between: the builder added its parts in the order of the constraints. */
static void find_passed(const finder_t *finder, uint32_t constraint, fault_t *fault) {
  const cleave_explainer_t *x = finder->x;
  uint32_t number = 0;
  for (uint32_t d = 0; d < constraint; d++) {
    number += finder->trial->states[d] == CONSTRAINT_PASSED;
  }
  for (uint32_t p = x->pattern->node_count; p < x->built_count; p++) {
    if (x->built[p].kind == CLEAVE_PATTERN_OP && number-- == 0) {
      fault->node = finder->bindings[p].node;
      fault->value = finder->bindings[p].value;
      return;
    }
  }
}

static fault_t find_fault(const finder_t *finder, uint32_t constraint) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[constraint];
  fault_t fault = {constraint,        CLEAVE_NODE_NONE,  CLEAVE_VALUE_NONE,
                   CLEAVE_INDEX_NONE, CLEAVE_INDEX_NONE, CLEAVE_INDEX_NONE};
  if (d->part == CLEAVE_INDEX_NONE) {
    return fault;
  }
  if (finder->trial->states[constraint] == CONSTRAINT_PASSED) {
    find_passed(finder, constraint, &fault);
  } else if (d->kind == CONSTRAINT_CHILD) {
    find_child(finder, d, (finder->trial->edges[constraint] & EDGE_BACKWARDS) != 0, &fault);
  } else if (d->kind == CONSTRAINT_INPUT) {
    find_input(finder, d, &fault);
  } else {
    uint32_t part = d->kind == CONSTRAINT_MIN_COUNT || d->kind == CONSTRAINT_MAX_COUNT
                        ? bound_part(finder, d->part, true)
                        : d->part;
    fault.node = finder->bindings[part].node;
    fault.value = finder->bindings[part].value;
    if (!cleave_node_exists(fault.node) && cleave_value_exists(fault.value)) {
      fault.node = cleave_value_producer(x->graph, fault.value);
    }
  }
  return fault;
}

// ---- in order ----

static bool is_fault(const finder_t *finder, uint32_t constraint) {
  uint8_t state = finder->trial->states[constraint];
  return state == CONSTRAINT_DROPPED || state == CONSTRAINT_PASSED;
}

/* A constant of many elements that should be a scalar is one fault, not two. */
static bool is_said_by_scalar(const finder_t *finder, uint32_t constraint) {
  const constraint_t *d = &finder->x->constraints[constraint];
  if (d->kind != CONSTRAINT_CONTENT && d->kind != CONSTRAINT_ALL_EQUAL) {
    return false;
  }
  uint32_t scalar = cleave_explainer_constraint(finder->x, d->part, CONSTRAINT_SCALAR, 0);
  return scalar != CLEAVE_INDEX_NONE && is_fault(finder, scalar);
}

/* What reads another output than the pattern means reads it outside of the match: that is one fault, unless
 * others read there, too. */
static bool is_said_by_output(const finder_t *finder, const fault_t *fault, uint32_t constraint) {
  const cleave_graph_t *graph = finder->x->graph;
  const constraint_t *d = &finder->x->constraints[constraint];
  bool is_said = d->kind == CONSTRAINT_UNSHARED && fault->output != CLEAVE_INDEX_NONE;
  cleave_node_t maker = is_said ? cleave_value_producer(graph, fault->value) : CLEAVE_NODE_NONE;
  is_said = is_said && finder->bindings[d->part].node.index == maker.index;
  for (uint32_t k = 0; is_said && k < cleave_node_output_count(graph, maker); k++) {
    for (cleave_use_t use = cleave_value_first_use(graph, cleave_node_output(graph, maker, k));
         cleave_use_exists(use); use = cleave_use_next(graph, use)) {
      cleave_node_t user = cleave_use_node(graph, use);
      is_said = is_said && (user.index == fault->node.index || cleave_finder_has(finder, user));
    }
  }
  return is_said;
}

static bool is_told(const finder_t *finder, const fault_t *faults, uint32_t count, uint32_t constraint) {
  bool is_said = is_said_by_scalar(finder, constraint);
  for (uint32_t k = 0; k < count && !is_said; k++) {
    is_said = is_said_by_output(finder, &faults[k], constraint);
  }
  return is_said;
}

/* If an unmatched input pattern accepts a node of the match that feeds this input, the pattern has two parts
 * for one node: the fault becomes that edge. */
static void take_unnamed(finder_t *finder, fault_t *fault) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  if (d->kind != CONSTRAINT_INPUT || finder->trial->states[fault->constraint] != CONSTRAINT_DROPPED) {
    return;
  }
  uint32_t target =
      cleave_explainer_resolve(x, finder->trial, x->pattern->nodes[d->part].inputs[d->index].pattern);
  for (uint32_t k = 0; k < finder->unnamed_count; k++) {
    const cleave_match_edge_t edge = finder->unnamed[k];
    cleave_value_t value = cleave_node_input(x->graph, edge.node, edge.index);
    cleave_node_t maker = cleave_value_producer(x->graph, value);
    if (edge.node.index == finder->bindings[d->part].node.index &&
        x->pattern->nodes[target].kind == CLEAVE_PATTERN_OP &&
        cleave_pattern_test_op(&x->pattern->nodes[target], x->graph, maker) &&
        cleave_finder_part(finder, maker) != CLEAVE_INDEX_NONE) {
      *fault =
          (fault_t){fault->constraint, edge.node, value, edge.index, CLEAVE_INDEX_NONE, CLEAVE_INDEX_NONE};
      finder->unnamed[k] = finder->unnamed[--finder->unnamed_count];
      return;
    }
  }
}

/* Lists the constraints at fault: operators first, then edge by edge from the anchor, then the other
 * constraints. */
static uint32_t list_faults(finder_t *finder, fault_t *faults) {
  cleave_explainer_t *x = finder->x;
  uint32_t count = 0;
  cleave_explainer_walk(x, finder->trial);
  for (uint32_t p = 0; p < x->pattern->node_count; p++) {
    uint32_t ops = x->seen[p] != 0 ? cleave_explainer_constraint(x, p, CONSTRAINT_OPS, 0) : CLEAVE_INDEX_NONE;
    if (ops != CLEAVE_INDEX_NONE && is_fault(finder, ops)) {
      faults[count++] = find_fault(finder, ops);
    }
  }
  for (uint32_t k = 0; k < x->skeleton_count; k++) {
    if (is_fault(finder, x->skeleton[k])) {
      faults[count] = find_fault(finder, x->skeleton[k]);
      take_unnamed(finder, &faults[count++]);
    }
  }
  for (uint32_t k = 0; k < x->detail_count; k++) {
    if (is_fault(finder, x->details[k]) && !is_told(finder, faults, count, x->details[k])) {
      faults[count++] = find_fault(finder, x->details[k]);
    }
  }
  for (uint32_t k = 0; k < finder->unnamed_count; k++) {
    const cleave_match_edge_t *edge = &finder->unnamed[k];
    faults[count++] = (fault_t){cleave_explainer_edges_constraint(x),
                                edge->node,
                                cleave_node_input(x->graph, edge->node, edge->index),
                                edge->index,
                                CLEAVE_INDEX_NONE,
                                CLEAVE_INDEX_NONE};
  }
  return count;
}

cleave_status_t cleave_explainer_find(cleave_explainer_t *x, trial_t *trial, uint32_t anchor,
                                      cleave_arena_t *arena, cleave_finding_t *finding,
                                      cleave_error_t *error) {
  finder_t finder = {.x = x, .trial = trial, .arena = arena};
  cleave_match_answer_t answer;
  cleave_explainer_walk(x, trial);
  CLEAVE_TRY(cleave_explainer_build(x, trial, true, error));
  x->anchor_steps_left = x->steps_left;  // one more probe, of a pattern that matched before
  CLEAVE_TRY(cleave_explainer_probe(x, anchor, &answer, error));
  if (answer.match == NULL) {
    finding->is_complete = false;
    return CLEAVE_OK;
  }
  CLEAVE_TRY(bind(&finder, answer.match, error));
  finder.unnamed_count = answer.unnamed_count;
  memcpy(finder.unnamed, answer.unnamed, answer.unnamed_count * sizeof *answer.unnamed);
  finding->nodes = finder.nodes;
  finding->node_count = finder.node_count;
  fault_t *faults = cleave_arena_allocate(
      &x->trial_arena, (size_t)x->constraint_count + CLEAVE_MATCH_MAX_UNNAMED, sizeof *faults);
  CLEAVE_TRY_MEMORY(faults, error);
  uint32_t count = list_faults(&finder, faults);
  cleave_mismatch_t *mismatches = cleave_arena_allocate(arena, (size_t)count + 1, sizeof *mismatches);
  CLEAVE_TRY_MEMORY(mismatches, error);
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY(cleave_explain_words(&finder, &faults[k], &mismatches[k], error));
  }
  finding->mismatches = mismatches;
  finding->mismatch_count = count;
  finding->matches = count == 0;
  return count == 0 ? CLEAVE_OK : cleave_explain_fix(&finder, anchor, faults, finding, mismatches, error);
}
