// SPDX-License-Identifier: Apache-2.0
// Labels that occur twice. For each such label, one walk over the pattern computes two sets per part, with
// the parts of that label as bits: the labelled parts in it or before it, and those on the way to its own
// output. If two sets meet in one match, two parts that cannot be the same node or value are a clash.

#include "partition/pattern/pattern_labels.h"

#include <string.h>

#include "base/memory.h"
#include "partition/pattern/pattern_test.h"

enum { MAX_PARTS = 64 }; /* of one label that are looked at: bits of a set */

typedef struct walk {
  const cleave_pattern_t *pattern;
  uint32_t parts[MAX_PARTS]; /* of the label */
  uint32_t count;
  uint8_t *done;
  uint64_t *all;   /* per part: those in it and in what it reads */
  uint64_t *spine; /* per part: those of its operators that what it makes goes through */
  uint32_t first;  /* of a clash, or NONE */
  uint32_t second;
} walk_t;

static bool have_common_op(const cleave_pattern_node_t *a, const cleave_pattern_node_t *b) {
  bool common = a->op_count == 0 || b->op_count == 0;
  for (uint32_t k = 0; k < a->op_count && !common; k++) {
    for (uint32_t m = 0; m < b->op_count && !common; m++) {
      common = cleave_pattern_same_op(a->ops[k], b->ops[m]);
    }
  }
  return common;
}

/* Can two parts be the same node or value, judged by these two parts alone? */
static bool may_be_one(const cleave_pattern_node_t *a, const cleave_pattern_node_t *b) {
  if (a->kind == CLEAVE_PATTERN_OP && b->kind == CLEAVE_PATTERN_OP) {
    return have_common_op(a, b);
  }
  bool has_op = a->kind == CLEAVE_PATTERN_OP || b->kind == CLEAVE_PATTERN_OP;
  return !has_op || (a->kind != CLEAVE_PATTERN_CONSTANT && b->kind != CLEAVE_PATTERN_CONSTANT);
}

/* Combines two sets that occur in one match; `reads`: the parts in `b` read those in `a`. */
static void meet(walk_t *walk, uint64_t a, uint64_t b, bool reads) {
  for (uint32_t k = 0; k < walk->count && walk->first == CLEAVE_INDEX_NONE; k++) {
    for (uint32_t m = 0; m < walk->count && (a >> k & 1u) != 0; m++) {
      const cleave_pattern_node_t *one = &walk->pattern->nodes[walk->parts[k]];
      const cleave_pattern_node_t *other = &walk->pattern->nodes[walk->parts[m]];
      if (k != m && (b >> m & 1u) != 0 && (reads || !may_be_one(one, other))) {
        walk->first = walk->parts[k];
        walk->second = walk->parts[m];
        return;
      }
    }
  }
}

static void visit(walk_t *walk, uint32_t part);

static void visit_op(walk_t *walk, uint32_t part) {
  const cleave_pattern_node_t *node = &walk->pattern->nodes[part];
  uint64_t own = 0;
  uint64_t before = 0;
  for (uint32_t k = 0; k < walk->count; k++) {
    own |= walk->parts[k] == part ? UINT64_C(1) << k : 0;
  }
  for (uint32_t k = 0; k < node->input_count; k++) {
    visit(walk, node->inputs[k].pattern);
    uint64_t input = walk->all[node->inputs[k].pattern];
    meet(walk, before, input, false);
    meet(walk, input, own, true);
    before |= input;
  }
  walk->all[part] = before | own;
  walk->spine[part] = node->kind == CLEAVE_PATTERN_OP ? own : 0;
}

static void visit_children(walk_t *walk, uint32_t part) {
  const cleave_pattern_node_t *node = &walk->pattern->nodes[part];
  uint64_t all = 0;
  uint64_t spine = 0;
  for (uint32_t k = 0; k < node->child_count; k++) {
    uint32_t child = node->children[k];
    visit(walk, child);
    if (node->kind != CLEAVE_PATTERN_ONEOF) {
      meet(walk, all, walk->all[child], false);
    }
    if (node->kind == CLEAVE_PATTERN_SEQUENCE) {
      meet(walk, all, walk->spine[child], true);
    }
    all |= walk->all[child];
    spine |= walk->spine[child];
  }
  walk->all[part] = all;
  walk->spine[part] = spine;
}

static void visit(walk_t *walk, uint32_t part) {
  if (walk->done[part] == 0) {
    walk->done[part] = 1;
    if (cleave_pattern_has_children(&walk->pattern->nodes[part])) {
      visit_children(walk, part);
    } else {
      visit_op(walk, part);
    }
  }
}

static void find_parts(walk_t *walk, const char *label) {
  const cleave_pattern_node_t *nodes = walk->pattern->nodes;
  walk->count = 0;
  for (uint32_t k = 0; k < walk->pattern->node_count && walk->count < MAX_PARTS; k++) {
    if (nodes[k].label != NULL && strcmp(nodes[k].label, label) == 0) {
      walk->parts[walk->count++] = k;
    }
  }
}

cleave_status_t cleave_pattern_find_clash(const cleave_pattern_t *pattern, uint32_t *out_first,
                                          uint32_t *out_second, cleave_error_t *error) {
  size_t n = pattern->node_count;
  uint32_t labelled = 0;
  *out_first = *out_second = CLEAVE_INDEX_NONE;
  for (uint32_t k = 0; k < n; k++) {
    labelled += pattern->nodes[k].label != NULL;
  }
  if (labelled == pattern->label_count) {
    return CLEAVE_OK;  // each once
  }
  walk_t walk = {.pattern = pattern, .first = CLEAVE_INDEX_NONE, .second = CLEAVE_INDEX_NONE};
  walk.done = cleave_allocate(n, 1);
  walk.all = cleave_allocate(n, sizeof *walk.all);
  walk.spine = cleave_allocate(n, sizeof *walk.spine);
  bool has_memory = walk.done != NULL && walk.all != NULL && walk.spine != NULL;
  for (uint32_t k = 0; has_memory && k < pattern->label_count && walk.first == CLEAVE_INDEX_NONE; k++) {
    find_parts(&walk, pattern->labels[k]);
    if (walk.count > 1) {
      memset(walk.done, 0, n);
      visit(&walk, pattern->root);
    }
  }
  *out_first = walk.first;
  *out_second = walk.second;
  cleave_free(walk.done);
  cleave_free(walk.all);
  cleave_free(walk.spine);
  return has_memory ? CLEAVE_OK : cleave_error_out_of_memory(error);
}
