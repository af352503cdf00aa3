// SPDX-License-Identifier: Apache-2.0
// Searches the parts of a member of a group upstream, from its first operator (or its last, if the member
// begins with a value) to a part that an earlier member has too. Alternatives give several paths; a repeated
// part counts once or not at all.

#include "partition/pattern/pattern_path.h"

#include <string.h>

enum { MAX_DEPTH = 128, MAX_WORK = 100000 };

typedef struct finder {
  const cleave_pattern_t *pattern;
  const uint8_t *is_shared; /* per pattern node */
  const uint32_t *labels;   /* per pattern node: label, or NONE */
  bool is_backward;
  uint32_t depth;
  uint32_t work;
  uint32_t hop_count; /* from the top down */
  cleave_pattern_hop_t hops[CLEAVE_PATTERN_LONGEST_PATH];
  uint32_t path_count; /* of the member */
  cleave_pattern_path_t *paths;
} finder_t;

/* The parts of sequences that come before a part; the path continues there. */
typedef struct before {
  uint32_t sequence;
  uint32_t count; /* of its children */
  const struct before *outer;
} before_t;

static void emit(finder_t *finder, uint32_t start, uint32_t output) {
  if (finder->path_count == CLEAVE_PATTERN_MAX_PATHS) {
    return;
  }
  cleave_pattern_path_t *path = &finder->paths[finder->path_count++];
  *path = (cleave_pattern_path_t){
      .start = start, .output = output, .is_backward = finder->is_backward, .hop_count = finder->hop_count};
  for (uint32_t k = 0; k < finder->hop_count; k++) {
    path->hops[k] = finder->hops[finder->hop_count - 1 - k];
  }
}

static void descend(finder_t *finder, uint32_t index, uint32_t output, const before_t *before);

/* Follows the parts that precede this one in its sequences. */
static void descend_before(finder_t *finder, const before_t *before) {
  if (before == NULL) {
    return;
  }
  if (before->count == 0) {
    descend_before(finder, before->outer);
    return;
  }
  before_t rest = {before->sequence, before->count - 1, before->outer};
  descend(finder, finder->pattern->nodes[before->sequence].children[rest.count], CLEAVE_INDEX_NONE, &rest);
}

static void descend_op(finder_t *finder, uint32_t index, uint32_t output, const before_t *before) {
  const cleave_pattern_node_t *node = &finder->pattern->nodes[index];
  if (finder->hop_count == CLEAVE_PATTERN_LONGEST_PATH) {
    return;
  }
  finder->hops[finder->hop_count++] =
      (cleave_pattern_hop_t){index, output == CLEAVE_INDEX_NONE ? node->output : output};
  for (uint32_t k = 0; k < node->input_count; k++) {
    descend(finder, node->inputs[k].pattern, CLEAVE_INDEX_NONE, NULL);
  }
  descend_before(finder, before);
  finder->hop_count--;
}

static void descend(finder_t *finder, uint32_t index, uint32_t output, const before_t *before) {
  const cleave_pattern_node_t *node = &finder->pattern->nodes[index];
  if (++finder->depth > MAX_DEPTH || ++finder->work > MAX_WORK ||
      finder->path_count == CLEAVE_PATTERN_MAX_PATHS) {
    finder->depth--;
    return;
  }
  bool is_end =
      node->kind == CLEAVE_PATTERN_OP || node->kind == CLEAVE_PATTERN_OUTPUT || cleave_pattern_is_value(node);
  if (is_end && finder->is_shared[index] && (finder->hop_count > 0 || node->kind == CLEAVE_PATTERN_OP)) {
    // A path without hops begins at the operator itself.
    if (finder->hop_count > 0 || !finder->is_backward) {
      emit(finder, index, output);
    }
    finder->depth--;
    return;
  }
  switch (node->kind) {
    case CLEAVE_PATTERN_OP: descend_op(finder, index, output, before); break;
    case CLEAVE_PATTERN_OUTPUT: descend(finder, node->children[0], node->output, before); break;
    case CLEAVE_PATTERN_SEQUENCE: {
      before_t rest = {index, node->child_count, before};
      descend_before(finder, &rest);
      break;
    }
    case CLEAVE_PATTERN_MAYBE:
    case CLEAVE_PATTERN_REPEATED:
    case CLEAVE_PATTERN_VARIADIC:
      descend(finder, node->children[0], CLEAVE_INDEX_NONE, before);
      descend_before(finder, before);
      break;
    case CLEAVE_PATTERN_ONEOF:
      for (uint32_t k = 0; k < node->child_count; k++) {
        descend(finder, node->children[k], CLEAVE_INDEX_NONE, before);
      }
      break;
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_GROUP: break;
  }
  finder->depth--;
}

/* Descends from every operator that the member can begin with. */
static void descend_first(finder_t *finder, uint32_t index) {
  const cleave_pattern_node_t *node = &finder->pattern->nodes[index];
  switch (node->kind) {
    case CLEAVE_PATTERN_OP: descend(finder, index, CLEAVE_INDEX_NONE, NULL); break;
    case CLEAVE_PATTERN_OUTPUT: descend(finder, node->children[0], node->output, NULL); break;
    case CLEAVE_PATTERN_MAYBE:
    case CLEAVE_PATTERN_REPEATED: descend_first(finder, node->children[0]); break;
    case CLEAVE_PATTERN_ONEOF:
      for (uint32_t k = 0; k < node->child_count; k++) {
        descend_first(finder, node->children[k]);
      }
      break;
    case CLEAVE_PATTERN_SEQUENCE: {
      const cleave_pattern_node_t *head = &finder->pattern->nodes[node->children[0]];
      bool has_value = cleave_pattern_is_value(head);
      if (!has_value) {
        descend_first(finder, node->children[0]);
        break;
      }
      // The value that leads the sequence is an input of its first operator.
      const cleave_pattern_node_t *first = &finder->pattern->nodes[node->children[1]];
      if (finder->is_shared[node->children[0]] && first->kind == CLEAVE_PATTERN_OP) {
        finder->hops[0] = (cleave_pattern_hop_t){node->children[1], first->output};
        finder->hop_count = 1;
        emit(finder, node->children[0], CLEAVE_INDEX_NONE);
        finder->hop_count = 0;
      }
      descend_first(finder, node->children[1]);
      break;
    }
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_VARIADIC:
    case CLEAVE_PATTERN_GROUP: break;
  }
}

/* Marks all parts below `index`. */
static void mark(const cleave_pattern_t *pattern, uint32_t index, uint8_t *seen) {
  if (seen[index]) {
    return;
  }
  seen[index] = 1;
  const cleave_pattern_node_t *node = &pattern->nodes[index];
  for (uint32_t k = 0; node->kind == CLEAVE_PATTERN_OP && k < node->input_count; k++) {
    mark(pattern, node->inputs[k].pattern, seen);
  }
  for (uint32_t k = 0; cleave_pattern_has_children(node) && k < node->child_count; k++) {
    mark(pattern, node->children[k], seen);
  }
}

/* Parts that are marked, or have a label of one that is. */
static void share_labels(finder_t *finder, const uint8_t *seen, uint8_t *is_shared, uint8_t *label_seen) {
  const cleave_pattern_t *pattern = finder->pattern;
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    if (seen[k] && finder->labels[k] != CLEAVE_INDEX_NONE) {
      label_seen[finder->labels[k]] = 1;
    }
  }
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    uint32_t label = finder->labels[k];
    is_shared[k] = seen[k] || (label != CLEAVE_INDEX_NONE && label_seen[label]);
  }
}

static cleave_status_t find_members(finder_t *finder, uint32_t group, uint8_t *seen,
                                    cleave_pattern_path_t *all, uint32_t *starts, cleave_error_t *error) {
  const cleave_pattern_node_t *node = &finder->pattern->nodes[group];
  uint32_t count = 0;
  uint8_t *is_shared = seen + finder->pattern->node_count;
  uint8_t *label_seen = is_shared + finder->pattern->node_count;
  finder->is_shared = is_shared;
  for (uint32_t k = 0; k < node->child_count; k++) {
    starts[k] = count;
    if (k > 0) {
      uint32_t member = node->children[k];
      share_labels(finder, seen, is_shared, label_seen);
      finder->paths = all + count;
      finder->path_count = 0;
      finder->work = 0;
      finder->is_backward = false;
      descend_first(finder, member);
      if (finder->path_count == 0) {
        finder->is_backward = true;
        descend(finder, member, CLEAVE_INDEX_NONE, NULL);
      }
      if (finder->path_count == 0) {
        return cleave_error_set(error, CLEAVE_ERROR_RULE,
                                "part %u of the group has no value in common with those before it", k + 1);
      }
      count += finder->path_count;
    }
    mark(finder->pattern, node->children[k], seen);
  }
  starts[node->child_count] = count;
  return CLEAVE_OK;
}

/* Per pattern node: its label in pattern->labels, or NONE. */
static void number_labels(const cleave_pattern_t *pattern, uint32_t *labels) {
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    const char *label = pattern->nodes[k].label;
    uint32_t n = 0;
    while (label != NULL && n < pattern->label_count && strcmp(pattern->labels[n], label) != 0) {
      n++;
    }
    labels[k] = label == NULL || n == pattern->label_count ? CLEAVE_INDEX_NONE : n;
  }
}

cleave_status_t cleave_pattern_find_paths(const cleave_pattern_t *pattern, uint32_t group,
                                          cleave_arena_t *arena, cleave_pattern_paths_t *out_paths,
                                          cleave_error_t *error) {
  const cleave_pattern_node_t *node = &pattern->nodes[group];
  finder_t finder = {.pattern = pattern};
  cleave_status_t status = CLEAVE_OK;
  uint8_t *seen = cleave_allocate_zeroed(1, (size_t)2 * pattern->node_count + pattern->label_count);
  uint32_t *labels = cleave_allocate(pattern->node_count, sizeof *labels);
  cleave_pattern_path_t *all =
      cleave_arena_allocate(arena, (size_t)node->child_count * CLEAVE_PATTERN_MAX_PATHS, sizeof *all);
  uint32_t *starts = cleave_arena_allocate(arena, (size_t)node->child_count + 1, sizeof *starts);
  CLEAVE_TRY_MEMORY_CLEANUP(seen != NULL && labels != NULL && all != NULL && starts != NULL, error);
  number_labels(pattern, labels);
  finder.labels = labels;
  CLEAVE_TRY_CLEANUP(find_members(&finder, group, seen, all, starts, error));
  *out_paths = (cleave_pattern_paths_t){all, starts};
cleanup:
  cleave_free(seen);
  cleave_free(labels);
  return status;
}
