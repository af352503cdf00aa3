// SPDX-License-Identifier: Apache-2.0
// What a matcher computes once per graph (nodes by operator) and once per pattern (labels, symbols, what each
// repetition unbinds), so that a search only follows indices.

#include <string.h>

#include "partition/match/match_state.h"
#include "partition/pattern/pattern_test.h"

// ---- nodes by operator ----

uint32_t cleave_matcher_op_key(const cleave_graph_t *graph, const cleave_op_t *op) {
  if (op->id != CLEAVE_OP_ID_CUSTOM) {
    return op->id;
  }
  for (size_t k = 0; k < graph->custom_ops.count; k++) {
    if (cleave_pattern_same_op(graph->custom_ops.items[k], op)) {
      return (uint32_t)(CLEAVE_OP_COUNT + k);
    }
  }
  return CLEAVE_INDEX_NONE;
}

cleave_status_t cleave_matcher_create(const cleave_contraction_t *contraction, cleave_matcher_t **out_matcher,
                                      cleave_error_t *error) {
  const cleave_graph_t *graph = contraction->graph;
  uint32_t n = contraction->node_count;
  size_t key_count = (size_t)CLEAVE_OP_COUNT + graph->custom_ops.count;
  cleave_matcher_t *matcher = cleave_allocate_zeroed(1, sizeof *matcher);
  CLEAVE_TRY_MEMORY(matcher, error);
  matcher->contraction = contraction;
  matcher->graph = graph;
  matcher->op_key_count = (uint32_t)key_count;
  matcher->op_starts = cleave_allocate_zeroed(key_count + 2, sizeof *matcher->op_starts);
  matcher->op_positions = cleave_allocate((size_t)n + 1, sizeof *matcher->op_positions);
  matcher->owners = cleave_allocate((size_t)n + 1, sizeof *matcher->owners);
  if (matcher->op_starts == NULL || matcher->op_positions == NULL || matcher->owners == NULL) {
    cleave_matcher_destroy(matcher);
    return cleave_error_out_of_memory(error);
  }
  memset(matcher->owners, 0xff, ((size_t)n + 1) * sizeof *matcher->owners);
  matcher->owner_count = (size_t)n + 1;
  matcher->owner_capacity = (size_t)n + 1;
  // Counting sort; starts[key + 2] counts, so that filling leaves starts[key] .. starts[key + 1].
  for (uint32_t p = 0; p < n; p++) {
    uint32_t key = cleave_matcher_op_key(graph, cleave_node_op(graph, contraction->nodes[p]));
    matcher->op_starts[key == CLEAVE_INDEX_NONE ? key_count + 1 : key + 2]++;
  }
  for (size_t k = 2; k < key_count + 2; k++) {
    matcher->op_starts[k] += matcher->op_starts[k - 1];
  }
  for (uint32_t p = 0; p < n; p++) {
    uint32_t key = cleave_matcher_op_key(graph, cleave_node_op(graph, contraction->nodes[p]));
    if (key != CLEAVE_INDEX_NONE) {
      matcher->op_positions[matcher->op_starts[key + 1]++] = p;
    }
  }
  *out_matcher = matcher;
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_grow(cleave_matcher_t *matcher, cleave_error_t *error) {
  size_t wanted = (size_t)matcher->contraction->node_count + 1;
  if (wanted > matcher->owner_capacity) {
    uint32_t *owners = cleave_reallocate(matcher->owners, wanted * 2, sizeof *owners);
    CLEAVE_TRY_MEMORY(owners, error);
    matcher->owners = owners;
    matcher->owner_capacity = wanted * 2;
  }
  if (wanted > matcher->owner_count) {
    memset(matcher->owners + matcher->owner_count, 0xff,
           (wanted - matcher->owner_count) * sizeof *matcher->owners);
    matcher->owner_count = wanted;
  }
  matcher->is_changing = true;
  matcher->dims_are_old = true;
  return CLEAVE_OK;
}

void cleave_matcher_destroy(cleave_matcher_t *matcher) {
  if (matcher == NULL) {
    return;
  }
  cleave_free(matcher->op_starts);
  cleave_free(matcher->op_positions);
  cleave_free(matcher->owners);
  cleave_free(matcher->verdicts);
  cleave_key_set_deinit(&matcher->failures);
  cleave_dims_destroy(matcher->dims);
  cleave_arena_deinit(&matcher->arena);
  cleave_array_free(&matcher->anchors);
  cleave_array_free(&matcher->goals);
  cleave_array_free(&matcher->choices);
  cleave_array_free(&matcher->trail);
  cleave_array_free(&matcher->taken);
  cleave_array_free(&matcher->links);
  cleave_array_free(&matcher->flows);
  cleave_array_free(&matcher->pending);
  cleave_array_free(&matcher->exits);
  cleave_array_free(&matcher->frames);
  cleave_array_free(&matcher->sorted);
  cleave_array_free(&matcher->nodes);
  cleave_array_free(&matcher->names);
  cleave_free(matcher);
}

// ---- the pattern ----

static uint32_t find_label(const cleave_pattern_t *pattern, const char *label) {
  for (uint32_t k = 0; label != NULL && k < pattern->label_count; k++) {
    if (strcmp(pattern->labels[k], label) == 0) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* Marks what is reachable from `start` without entering `avoid`. The pattern is acyclic and not deep. */
static void reach(const cleave_pattern_t *pattern, uint32_t start, uint32_t avoid, uint8_t *seen) {
  if (start == avoid || seen[start]) {
    return;
  }
  seen[start] = 1;
  const cleave_pattern_node_t *node = &pattern->nodes[start];
  for (uint32_t k = 0; node->kind == CLEAVE_PATTERN_OP && k < node->input_count; k++) {
    reach(pattern, node->inputs[k].pattern, avoid, seen);
  }
  for (uint32_t k = 0; cleave_pattern_has_children(node) && k < node->child_count; k++) {
    reach(pattern, node->children[k], avoid, seen);
  }
}

static bool is_repeating(const cleave_pattern_node_t *node) {
  return node->kind == CLEAVE_PATTERN_REPEATED || node->kind == CLEAVE_PATTERN_VARIADIC;
}

static cleave_status_t prepare_repeats(cleave_matcher_t *matcher, cleave_error_t *error) {
  const cleave_pattern_t *pattern = matcher->pattern;
  uint32_t n = pattern->node_count;
  size_t repeats = 0;
  for (uint32_t p = 0; p < n; p++) {
    repeats += is_repeating(&pattern->nodes[p]);
  }
  matcher->exclusive = cleave_arena_allocate(&matcher->arena, repeats * n + 1, sizeof *matcher->exclusive);
  uint8_t *inside = cleave_allocate(n, 1);
  uint8_t *outside = cleave_allocate(n, 1);
  if (matcher->exclusive == NULL || inside == NULL || outside == NULL) {
    cleave_free(inside);
    cleave_free(outside);
    return cleave_error_out_of_memory(error);
  }
  uint32_t count = 0;
  for (uint32_t p = 0; p < n; p++) {
    matcher->repeat_starts[p] = count;
    if (!is_repeating(&pattern->nodes[p])) {
      continue;
    }
    memset(inside, 0, n);
    memset(outside, 0, n);
    reach(pattern, pattern->nodes[p].children[0], CLEAVE_INDEX_NONE, inside);
    reach(pattern, pattern->root, p, outside);
    for (uint32_t q = 0; q < n; q++) {
      if (inside[q] && !outside[q]) {
        matcher->exclusive[count++] = q;
      }
    }
  }
  matcher->repeat_starts[n] = count;
  cleave_free(inside);
  cleave_free(outside);
  return CLEAVE_OK;
}

/* How often each part is named, and each label (after the parts). */
static void count_references(const cleave_matcher_t *matcher, uint32_t *references) {
  const cleave_pattern_t *pattern = matcher->pattern;
  for (uint32_t p = 0; p < pattern->node_count; p++) {
    const cleave_pattern_node_t *node = &pattern->nodes[p];
    for (uint32_t k = 0; node->kind == CLEAVE_PATTERN_OP && k < node->input_count; k++) {
      references[node->inputs[k].pattern]++;
    }
    for (uint32_t k = 0; cleave_pattern_has_children(node) && k < node->child_count; k++) {
      references[node->children[k]]++;
    }
    if (matcher->labels[p] != CLEAVE_INDEX_NONE) {
      references[pattern->node_count + matcher->labels[p]]++;
    }
  }
}

/* Marks parts whose value may have several readers in the pattern: a part that is named in several places,
 * that shares its label, or that ends a part with several readers. */
static void mark_not_single(cleave_matcher_t *matcher, uint32_t part) {
  if (!matcher->is_single[part]) {
    return;
  }
  matcher->is_single[part] = false;
  const cleave_pattern_node_t *node = &matcher->pattern->nodes[part];
  for (uint32_t k = 0; cleave_pattern_has_children(node) && k < node->child_count; k++) {
    mark_not_single(matcher, node->children[k]);
  }
}

/* Marks a part that may have a predecessor in a sequence, and the parts that it may begin with. */
static void mark_entered(cleave_matcher_t *matcher, uint32_t part) {
  const cleave_pattern_node_t *node = &matcher->pattern->nodes[part];
  if (matcher->is_entered[part]) {
    return;
  }
  matcher->is_entered[part] = true;
  uint32_t count = node->kind == CLEAVE_PATTERN_SEQUENCE ? 1 : node->child_count;
  for (uint32_t k = 0; cleave_pattern_has_children(node) && k < count; k++) {
    mark_entered(matcher, node->children[k]);
  }
}

static cleave_status_t prepare_entries(cleave_matcher_t *matcher, cleave_error_t *error) {
  const cleave_pattern_t *pattern = matcher->pattern;
  matcher->is_entered =
      cleave_arena_allocate(&matcher->arena, pattern->node_count, sizeof *matcher->is_entered);
  CLEAVE_TRY_MEMORY(matcher->is_entered, error);
  memset(matcher->is_entered, 0, pattern->node_count * sizeof *matcher->is_entered);
  for (uint32_t p = 0; p < pattern->node_count; p++) {
    const cleave_pattern_node_t *node = &pattern->nodes[p];
    for (uint32_t k = 1; node->kind == CLEAVE_PATTERN_SEQUENCE && k < node->child_count; k++) {
      mark_entered(matcher, node->children[k]);
    }
    if (node->kind == CLEAVE_PATTERN_REPEATED && node->max > 1) {
      mark_entered(matcher, node->children[0]);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare_uses(cleave_matcher_t *matcher, cleave_error_t *error) {
  const cleave_pattern_t *pattern = matcher->pattern;
  size_t n = pattern->node_count;
  uint32_t *references = cleave_allocate_zeroed(n + pattern->label_count, sizeof *references);
  matcher->is_reused = cleave_arena_allocate(&matcher->arena, n, sizeof *matcher->is_reused);
  matcher->is_single = cleave_arena_allocate(&matcher->arena, n, sizeof *matcher->is_single);
  if (references == NULL || matcher->is_reused == NULL || matcher->is_single == NULL) {
    cleave_free(references);
    return cleave_error_out_of_memory(error);
  }
  count_references(matcher, references);
  matcher->is_tree = true;
  for (size_t p = 0; p < n + pattern->label_count; p++) {
    matcher->is_tree = matcher->is_tree && references[p] <= 1;
  }
  memset(matcher->is_single, true, n * sizeof *matcher->is_single);
  for (uint32_t p = 0; p < n; p++) {
    uint32_t label = matcher->labels[p];
    matcher->is_reused[p] = references[p] > 1;
    if (matcher->is_reused[p] || (label != CLEAVE_INDEX_NONE && references[n + label] > 1)) {
      mark_not_single(matcher, p);
    }
  }
  matcher->has_exits = pattern->nodes[pattern->root].kind != CLEAVE_PATTERN_OP;
  if (matcher->has_exits) {
    matcher->has_exits = false;
    for (uint32_t p = 0; p < n; p++) {
      cleave_pattern_kind_t kind = pattern->nodes[p].kind;
      matcher->has_exits =
          matcher->has_exits || kind == CLEAVE_PATTERN_OUTPUT || kind == CLEAVE_PATTERN_GROUP;
    }
  }
  cleave_free(references);
  return CLEAVE_OK;
}

static cleave_status_t prepare_paths(cleave_matcher_t *matcher, cleave_error_t *error) {
  const cleave_pattern_t *pattern = matcher->pattern;
  matcher->paths = cleave_arena_allocate(&matcher->arena, pattern->node_count, sizeof *matcher->paths);
  CLEAVE_TRY_MEMORY(matcher->paths, error);
  for (uint32_t p = 0; p < pattern->node_count; p++) {
    if (pattern->nodes[p].kind == CLEAVE_PATTERN_GROUP) {
      CLEAVE_TRY(cleave_pattern_find_paths(pattern, p, &matcher->arena, &matcher->paths[p], error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_set_pattern(cleave_matcher_t *matcher, const cleave_pattern_t *pattern,
                                           cleave_error_t *error) {
  size_t n = pattern->node_count;
  cleave_arena_deinit(&matcher->arena);
  matcher->pattern = pattern;
  matcher->generation++;
  cleave_arena_t *arena = &matcher->arena;
  size_t label_slots = (size_t)pattern->label_count + 1;
  matcher->labels = cleave_arena_allocate(arena, n, sizeof *matcher->labels);
  matcher->label_is_op = cleave_arena_allocate(arena, label_slots, sizeof *matcher->label_is_op);
  matcher->symbol_starts = cleave_arena_allocate(arena, n, sizeof *matcher->symbol_starts);
  matcher->repeat_starts = cleave_arena_allocate(arena, n + 1, sizeof *matcher->repeat_starts);
  matcher->bound_nodes = cleave_arena_allocate(arena, n, sizeof *matcher->bound_nodes);
  matcher->starts = cleave_arena_allocate(arena, n, sizeof *matcher->starts);
  matcher->bound_values = cleave_arena_allocate(arena, n, sizeof *matcher->bound_values);
  matcher->label_nodes = cleave_arena_allocate(arena, label_slots, sizeof *matcher->label_nodes);
  matcher->label_values = cleave_arena_allocate(arena, label_slots, sizeof *matcher->label_values);
  matcher->out_label_nodes = cleave_arena_allocate(arena, label_slots, sizeof *matcher->out_label_nodes);
  matcher->out_label_values = cleave_arena_allocate(arena, label_slots, sizeof *matcher->out_label_values);
  CLEAVE_TRY_MEMORY(
      matcher->out_label_values != NULL && matcher->labels != NULL && matcher->label_is_op != NULL &&
          matcher->symbol_starts != NULL && matcher->repeat_starts != NULL && matcher->starts != NULL &&
          matcher->bound_nodes != NULL && matcher->bound_values != NULL && matcher->label_nodes != NULL &&
          matcher->label_values != NULL && matcher->out_label_nodes != NULL,
      error);
  for (uint32_t p = 0; p < n; p++) {
    matcher->labels[p] = find_label(pattern, pattern->nodes[p].label);
    if (matcher->labels[p] != CLEAVE_INDEX_NONE && pattern->nodes[p].kind == CLEAVE_PATTERN_OP) {
      matcher->label_is_op[matcher->labels[p]] = true;
    }
    matcher->bound_nodes[p] = CLEAVE_INDEX_NONE;
    matcher->bound_values[p] = CLEAVE_VALUE_NONE;
    matcher->starts[p] = CLEAVE_INDEX_NONE;
  }
  for (uint32_t k = 0; k < pattern->label_count; k++) {
    matcher->label_nodes[k] = CLEAVE_INDEX_NONE;
    matcher->label_values[k] = CLEAVE_VALUE_NONE;
  }
  CLEAVE_TRY(cleave_matcher_prepare_sizes(matcher, error));
  CLEAVE_TRY(prepare_repeats(matcher, error));
  CLEAVE_TRY(prepare_uses(matcher, error));
  CLEAVE_TRY(prepare_entries(matcher, error));
  CLEAVE_TRY(prepare_paths(matcher, error));
  return cleave_matcher_prepare_interchangeable(matcher, error);
}
