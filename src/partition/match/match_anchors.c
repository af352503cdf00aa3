// SPDX-License-Identifier: Apache-2.0
// Anchors: the nodes at which a pattern can begin, from an index of the graph's nodes by operator. A pattern
// that needs an operator which does not occur has none.

#include <stdlib.h>
#include <string.h>

#include "base/containers/numbers.h"
#include "partition/match/match_state.h"

enum { NOT_SEEN = 0, CAN_OCCUR = 1, CANNOT_OCCUR = 2, IS_ADDED = 4 };

static uint32_t count_nodes(const cleave_matcher_t *m, const cleave_op_t *op, uint32_t *out_first) {
  uint32_t key = cleave_matcher_op_key(m->graph, op);
  bool was_there = key < m->op_key_count; /* custom operators may have been added since, and NONE is not a
                                             key */
  *out_first = was_there ? m->op_starts[key] : 0;
  return was_there ? m->op_starts[key + 1] - *out_first : 0;
}

static bool can_occur(const cleave_matcher_t *m, uint32_t index, uint8_t *marks);

static bool op_can_occur(const cleave_matcher_t *m, const cleave_pattern_node_t *node, uint8_t *marks) {
  bool has_nodes = node->op_count == 0;
  for (uint32_t k = 0; k < node->op_count && !has_nodes; k++) {
    uint32_t first = 0;
    has_nodes = count_nodes(m, node->ops[k], &first) > 0;
  }
  for (uint32_t k = 0; k < node->input_count && has_nodes; k++) {
    has_nodes = can_occur(m, node->inputs[k].pattern, marks);
  }
  return has_nodes;
}

static bool children_can_occur(const cleave_matcher_t *m, const cleave_pattern_node_t *node, bool all,
                               uint8_t *marks) {
  for (uint32_t k = 0; k < node->child_count; k++) {
    if (can_occur(m, node->children[k], marks) != all) {
      return !all;
    }
  }
  return all;
}

/* Does the graph have nodes for all operators that the part needs? */
static bool can_occur(const cleave_matcher_t *m, uint32_t index, uint8_t *marks) {
  const cleave_pattern_node_t *node = &m->pattern->nodes[index];
  if (marks[index] != NOT_SEEN) {
    return (marks[index] & CAN_OCCUR) != 0;
  }
  bool can = true;
  switch (node->kind) {
    case CLEAVE_PATTERN_OP: can = op_can_occur(m, node, marks); break;
    case CLEAVE_PATTERN_SEQUENCE:
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_GROUP: can = children_can_occur(m, node, true, marks); break;
    case CLEAVE_PATTERN_ONEOF: can = children_can_occur(m, node, false, marks); break;
    case CLEAVE_PATTERN_REPEATED:
    case CLEAVE_PATTERN_VARIADIC: can = node->min == 0 || children_can_occur(m, node, true, marks); break;
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_MAYBE: break;
  }
  marks[index] = can ? CAN_OCCUR : CANNOT_OCCUR;
  return can;
}

static cleave_status_t add_nodes(cleave_matcher_t *m, const cleave_pattern_node_t *node,
                                 cleave_error_t *error) {
  for (uint32_t k = 0; k < node->op_count; k++) {
    uint32_t first = 0;
    uint32_t count = count_nodes(m, node->ops[k], &first);
    if (count > 0) {
      CLEAVE_TRY(cleave_array_reserve(&m->anchors, count, error));
      memcpy(m->anchors.items + m->anchors.count, m->op_positions + first, count * sizeof *m->op_positions);
      m->anchors.count += count;
    }
  }
  if (node->op_count == 0) {
    uint32_t count = m->contraction->node_count;
    CLEAVE_TRY(cleave_array_reserve(&m->anchors, count, error));
    for (uint32_t p = 0; p < count; p++) {
      cleave_array_push_reserved(&m->anchors, p);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t add_anchors(cleave_matcher_t *m, uint32_t index, uint8_t *marks,
                                   cleave_error_t *error) {
  const cleave_pattern_t *pattern = m->pattern;
  const cleave_pattern_node_t *node = &pattern->nodes[index];
  if (!can_occur(m, index, marks) || (marks[index] & IS_ADDED) != 0) {
    return CLEAVE_OK;
  }
  marks[index] |= IS_ADDED;
  switch (node->kind) {
    case CLEAVE_PATTERN_OP: return add_nodes(m, node, error);
    case CLEAVE_PATTERN_MAYBE:
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_GROUP:
    case CLEAVE_PATTERN_REPEATED: return add_anchors(m, node->children[0], marks, error);
    case CLEAVE_PATTERN_ONEOF:
      for (uint32_t k = 0; k < node->child_count; k++) {
        CLEAVE_TRY(add_anchors(m, node->children[k], marks, error));
      }
      return CLEAVE_OK;
    case CLEAVE_PATTERN_SEQUENCE:
      // The first part, and those after it as long as the ones before may be left out.
      for (uint32_t k = cleave_pattern_is_value(&pattern->nodes[node->children[0]]) ? 1 : 0;
           k < node->child_count; k++) {
        const cleave_pattern_node_t *child = &pattern->nodes[node->children[k]];
        CLEAVE_TRY(add_anchors(m, node->children[k], marks, error));
        if (child->kind != CLEAVE_PATTERN_MAYBE &&
            !(child->kind == CLEAVE_PATTERN_REPEATED && child->min == 0)) {
          break;
        }
      }
      return CLEAVE_OK;
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_VARIADIC: break;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_anchors(cleave_matcher_t *matcher, const uint32_t **out_positions,
                                       uint32_t *out_count, cleave_error_t *error) {
  uint8_t *marks = cleave_allocate_zeroed(matcher->pattern->node_count, 1);
  CLEAVE_TRY_MEMORY(marks, error);
  matcher->anchors.count = 0;
  cleave_status_t status = add_anchors(matcher, matcher->pattern->root, marks, error);
  cleave_free(marks);
  CLEAVE_TRY(status);
  uint32_t *items = matcher->anchors.items;
  size_t count = matcher->anchors.count;
  bool ascending = true;
  for (size_t k = 1; k < count && ascending; k++) {
    ascending = items[k - 1] < items[k];
  }
  if (!ascending) {
    qsort(items, count, sizeof *items, cleave_compare_u32);
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
