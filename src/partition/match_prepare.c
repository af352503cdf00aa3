// SPDX-License-Identifier: Apache-2.0
// What a matcher works out once per graph (nodes by operator) and once per pattern (labels, symbols, what a
// repetition must forget), so that a search only follows indices.

#include <stdlib.h>
#include <string.h>

#include "partition/match_state.h"
#include "partition/pattern_test.h"

// ---- nodes by operator ----

static uint32_t op_key(const cleave_graph_t *graph, const cleave_op_t *op) {
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
  if (matcher == NULL) {
    return cleave_error_out_of_memory(error);
  }
  matcher->contraction = contraction;
  matcher->graph = graph;
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
    uint32_t key = op_key(graph, cleave_node_op(graph, contraction->nodes[p]));
    matcher->op_starts[key == CLEAVE_INDEX_NONE ? key_count + 1 : key + 2]++;
  }
  for (size_t k = 2; k < key_count + 2; k++) {
    matcher->op_starts[k] += matcher->op_starts[k - 1];
  }
  for (uint32_t p = 0; p < n; p++) {
    uint32_t key = op_key(graph, cleave_node_op(graph, contraction->nodes[p]));
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
    if (owners == NULL) {
      return cleave_error_out_of_memory(error);
    }
    matcher->owners = owners;
    matcher->owner_capacity = wanted * 2;
  }
  if (wanted > matcher->owner_count) {
    memset(matcher->owners + matcher->owner_count, 0xff,
           (wanted - matcher->owner_count) * sizeof *matcher->owners);
    matcher->owner_count = wanted;
  }
  return CLEAVE_OK;
}

void cleave_matcher_destroy(cleave_matcher_t *matcher) {
  if (matcher == NULL) {
    return;
  }
  cleave_free(matcher->op_starts);
  cleave_free(matcher->op_positions);
  cleave_free(matcher->owners);
  cleave_arena_deinit(&matcher->arena);
  cleave_array_free(&matcher->anchors);
  cleave_array_free(&matcher->goals);
  cleave_array_free(&matcher->choices);
  cleave_array_free(&matcher->trail);
  cleave_array_free(&matcher->taken);
  cleave_array_free(&matcher->links);
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

/* Numbers the symbols of all shapes. */
static cleave_status_t prepare_symbols(cleave_matcher_t *matcher, cleave_error_t *error) {
  const cleave_pattern_t *pattern = matcher->pattern;
  size_t dim_count = 0;
  for (uint32_t p = 0; p < pattern->node_count; p++) {
    const cleave_type_test_t *type = &pattern->nodes[p].type;
    matcher->symbol_starts[p] = (uint32_t)dim_count;
    dim_count += type->dims != NULL && type->rank > 0 ? (size_t)type->rank : 0;
  }
  matcher->symbols_of = cleave_arena_allocate(&matcher->arena, dim_count + 1, sizeof *matcher->symbols_of);
  matcher->symbols = cleave_arena_allocate(&matcher->arena, dim_count + 1, sizeof *matcher->symbols);
  if (matcher->symbols_of == NULL || matcher->symbols == NULL) {
    return cleave_error_out_of_memory(error);
  }
  matcher->symbol_count = 0;
  for (uint32_t p = 0; p < pattern->node_count; p++) {
    const cleave_type_test_t *type = &pattern->nodes[p].type;
    for (int32_t d = 0; type->dims != NULL && d < type->rank; d++) {
      const char *name = type->dims[d].size >= 0 ? NULL : type->dims[d].symbol;
      uint32_t symbol = CLEAVE_INDEX_NONE;
      if (name != NULL) {
        for (symbol = 0; symbol < matcher->symbol_count; symbol++) {
          if (strcmp(matcher->symbols[symbol].name, name) == 0) {
            break;
          }
        }
        if (symbol == matcher->symbol_count) {
          matcher->symbols[matcher->symbol_count++].name = name;
        }
      }
      matcher->symbols_of[matcher->symbol_starts[p] + (uint32_t)d] = symbol;
    }
  }
  return CLEAVE_OK;
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

static cleave_status_t prepare_repeats(cleave_matcher_t *matcher, cleave_error_t *error) {
  const cleave_pattern_t *pattern = matcher->pattern;
  uint32_t n = pattern->node_count;
  size_t repeats = 0;
  for (uint32_t p = 0; p < n; p++) {
    repeats += pattern->nodes[p].kind == CLEAVE_PATTERN_REPEATED;
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
    if (pattern->nodes[p].kind != CLEAVE_PATTERN_REPEATED) {
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

/* Is every part named once, and every label? */
static cleave_status_t prepare_tree(cleave_matcher_t *matcher, cleave_error_t *error) {
  const cleave_pattern_t *pattern = matcher->pattern;
  uint32_t *references =
      cleave_allocate_zeroed((size_t)pattern->node_count + pattern->label_count, sizeof *references);
  if (references == NULL) {
    return cleave_error_out_of_memory(error);
  }
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
  matcher->is_tree = true;
  for (size_t k = 0; k < (size_t)pattern->node_count + pattern->label_count; k++) {
    matcher->is_tree = matcher->is_tree && references[k] <= 1;
  }
  cleave_free(references);
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_set_pattern(cleave_matcher_t *matcher, const cleave_pattern_t *pattern,
                                           cleave_error_t *error) {
  size_t n = pattern->node_count;
  cleave_arena_deinit(&matcher->arena);
  matcher->pattern = pattern;
  cleave_arena_t *arena = &matcher->arena;
  size_t label_slots = (size_t)pattern->label_count + 1;
  matcher->labels = cleave_arena_allocate(arena, n, sizeof *matcher->labels);
  matcher->label_is_op = cleave_arena_allocate(arena, label_slots, sizeof *matcher->label_is_op);
  matcher->symbol_starts = cleave_arena_allocate(arena, n, sizeof *matcher->symbol_starts);
  matcher->repeat_starts = cleave_arena_allocate(arena, n + 1, sizeof *matcher->repeat_starts);
  matcher->bound_nodes = cleave_arena_allocate(arena, n, sizeof *matcher->bound_nodes);
  matcher->bound_values = cleave_arena_allocate(arena, n, sizeof *matcher->bound_values);
  matcher->label_nodes = cleave_arena_allocate(arena, label_slots, sizeof *matcher->label_nodes);
  matcher->label_values = cleave_arena_allocate(arena, label_slots, sizeof *matcher->label_values);
  matcher->out_label_nodes = cleave_arena_allocate(arena, label_slots, sizeof *matcher->out_label_nodes);
  matcher->out_label_values = cleave_arena_allocate(arena, label_slots, sizeof *matcher->out_label_values);
  if (matcher->out_label_values == NULL || matcher->labels == NULL || matcher->label_is_op == NULL ||
      matcher->symbol_starts == NULL || matcher->repeat_starts == NULL || matcher->bound_nodes == NULL ||
      matcher->bound_values == NULL || matcher->label_nodes == NULL || matcher->label_values == NULL ||
      matcher->out_label_nodes == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t p = 0; p < n; p++) {
    matcher->labels[p] = find_label(pattern, pattern->nodes[p].label);
    if (matcher->labels[p] != CLEAVE_INDEX_NONE && pattern->nodes[p].kind == CLEAVE_PATTERN_OP) {
      matcher->label_is_op[matcher->labels[p]] = true;
    }
    matcher->bound_nodes[p] = CLEAVE_INDEX_NONE;
    matcher->bound_values[p] = CLEAVE_VALUE_NONE;
  }
  for (uint32_t k = 0; k < pattern->label_count; k++) {
    matcher->label_nodes[k] = CLEAVE_INDEX_NONE;
    matcher->label_values[k] = CLEAVE_VALUE_NONE;
  }
  CLEAVE_TRY(prepare_symbols(matcher, error));
  CLEAVE_TRY(prepare_repeats(matcher, error));
  return prepare_tree(matcher, error);
}

// ---- anchors ----

static cleave_status_t add_anchors(cleave_matcher_t *matcher, uint32_t index, cleave_error_t *error) {
  const cleave_pattern_t *pattern = matcher->pattern;
  const cleave_pattern_node_t *node = &pattern->nodes[index];
  switch (node->kind) {
    case CLEAVE_PATTERN_OP:
      for (uint32_t k = 0; k < node->op_count; k++) {
        uint32_t key = op_key(matcher->graph, node->ops[k]);
        if (key == CLEAVE_INDEX_NONE) {
          continue;
        }
        uint32_t first = matcher->op_starts[key];
        uint32_t count = matcher->op_starts[key + 1] - first;
        if (count == 0) {
          continue;
        }
        CLEAVE_TRY(cleave_array_reserve(&matcher->anchors, count, error));
        memcpy(matcher->anchors.items + matcher->anchors.count, matcher->op_positions + first,
               count * sizeof *matcher->op_positions);
        matcher->anchors.count += count;
      }
      if (node->op_count == 0) {
        uint32_t count = matcher->contraction->node_count;
        CLEAVE_TRY(cleave_array_reserve(&matcher->anchors, count, error));
        for (uint32_t p = 0; p < count; p++) {
          cleave_array_push_reserved(&matcher->anchors, p);
        }
      }
      return CLEAVE_OK;
    case CLEAVE_PATTERN_SEQUENCE: {
      cleave_pattern_kind_t first = pattern->nodes[node->children[0]].kind;
      bool is_value = first == CLEAVE_PATTERN_VALUE || first == CLEAVE_PATTERN_CONSTANT;
      return add_anchors(matcher, node->children[is_value ? 1 : 0], error);
    }
    case CLEAVE_PATTERN_REPEATED: return add_anchors(matcher, node->children[0], error);
    case CLEAVE_PATTERN_ONEOF:
      for (uint32_t k = 0; k < node->child_count; k++) {
        CLEAVE_TRY(add_anchors(matcher, node->children[k], error));
      }
      return CLEAVE_OK;
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_GROUP: return add_anchors(matcher, node->children[0], error);
    case CLEAVE_PATTERN_MAYBE:
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_EVERY: break;
  }
  return CLEAVE_OK;
}

static int compare_positions(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a;
  uint32_t y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

cleave_status_t cleave_matcher_anchors(cleave_matcher_t *matcher, const uint32_t **out_positions,
                                       uint32_t *out_count, cleave_error_t *error) {
  matcher->anchors.count = 0;
  CLEAVE_TRY(add_anchors(matcher, matcher->pattern->root, error));
  uint32_t *items = matcher->anchors.items;
  size_t count = matcher->anchors.count;
  bool ascending = true;
  for (size_t k = 1; k < count && ascending; k++) {
    ascending = items[k - 1] < items[k];
  }
  if (!ascending) {
    qsort(items, count, sizeof *items, compare_positions);
    size_t kept = 1;
    for (size_t k = 1; k < count; k++) {
      if (items[k] != items[kept - 1]) {
        items[kept++] = items[k];
      }
    }
    count = kept;
  }
  *out_positions = items;
  *out_count = (uint32_t)count;
  return CLEAVE_OK;
}
