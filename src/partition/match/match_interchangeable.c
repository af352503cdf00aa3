// SPDX-License-Identifier: Apache-2.0
// Finds interchangeable inputs: input patterns of one operator that require the same, by a hash of their
// content. They need to be tried in one order only. A part with a label, a symbol, a condition or a second
// place in the pattern is not interchangeable with another one; for the filter, which binds nothing, it may
// be.

#include <string.h>

#include "base/hash.h"
#include "partition/match/match_state.h"

static uint64_t hash_text(uint64_t hash, const char *text) {
  return cleave_hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t hash_number(uint64_t hash, double number) {
  uint64_t bits = 0;
  memcpy(&bits, &number, sizeof bits);
  return cleave_hash_combine(hash, bits);
}

static uint64_t hash_attribute(uint64_t hash, const cleave_attribute_test_t *test) {
  hash = hash_text(cleave_hash_combine(hash, (uint64_t)test->or_absent << 40 | (uint64_t)test->kind << 32 |
                                                 test->value_count),
                   test->name);
  hash = hash_number(hash_number(hash, test->low), test->high);
  for (uint32_t k = 0; k < test->value_count; k++) {
    const cleave_pattern_literal_t *literal = &test->values[k];
    hash = cleave_hash_combine(hash, (uint64_t)literal->is_list << 32 | literal->count);
    if (literal->text != NULL) {
      hash = hash_text(hash, literal->text);
    }
    for (uint32_t n = 0; literal->text == NULL && n < literal->count; n++) {
      hash = hash_number(hash, literal->numbers[n]);
    }
  }
  return hash;
}

static uint64_t hash_constant(uint64_t hash, const cleave_constant_test_t *test) {
  hash = cleave_hash_combine(hash, (uint64_t)test->value_count << 32 | (uint64_t)test->scalar << 4 |
                                       (uint64_t)test->all_equal << 3 | (uint64_t)test->has_value << 2 |
                                       (uint64_t)test->is_list << 1 | (uint64_t)test->has_range);
  hash = hash_number(hash_number(hash, test->value), test->tolerance);
  hash = hash_number(hash_number(hash, test->low), test->high);
  for (uint32_t k = 0; k < test->value_count; k++) {
    hash = hash_number(hash, test->values[k]);
  }
  return hash;
}

/* Does the part require something that no other part can? */
static bool is_unique(const cleave_matcher_t *m, uint32_t index) {
  const cleave_pattern_node_t *node = &m->pattern->nodes[index];
  bool has_symbol = node->where != NULL;
  for (int32_t d = 0; node->type.dims != NULL && d < node->type.rank; d++) {
    has_symbol = has_symbol || node->type.dims[d].symbol != NULL || node->type.dims[d].expression != NULL;
  }
  return has_symbol || node->label != NULL || m->is_reused[index];
}

typedef struct hasher {
  const cleave_matcher_t *matcher;
  bool with_bindings; /* a part that binds something differs from all others */
  uint64_t *hashes;   /* per part; 0: not worked out */
} hasher_t;

static uint64_t hash_part(const hasher_t *hasher, uint32_t index) {
  const cleave_matcher_t *m = hasher->matcher;
  const uint64_t *hashes = hasher->hashes;
  const cleave_pattern_node_t *node = &m->pattern->nodes[index];
  uint64_t hash = cleave_hash_combine(CLEAVE_HASH_SEED, (uint64_t)node->kind << 1 | (uint64_t)node->shared);
  if (!hasher->with_bindings) {
    hash = cleave_hash_combine(hash, m->is_single[index]);
  } else if (is_unique(m, index)) {
    hash = cleave_hash_combine(hash, (uint64_t)index << 1 | 1);
  }
  hash = cleave_hash_combine(hash, (uint64_t)node->output << 32 | node->op_count);
  hash = cleave_hash_combine(hash, (uint64_t)node->min << 32 | node->max);
  hash = cleave_hash_combine(hash, (uint64_t)node->type.dtypes << 32 | (uint32_t)node->type.rank);
  for (int32_t d = 0; node->type.dims != NULL && d < node->type.rank; d++) {
    hash = cleave_hash_combine(hash, (uint64_t)node->type.dims[d].size);
  }
  for (uint32_t k = 0; k < node->op_count; k++) {
    hash = hash_text(hash_text(hash, node->ops[k]->domain), node->ops[k]->name);
  }
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    hash = hash_attribute(hash, &node->attributes[k]);
  }
  if (node->kind == CLEAVE_PATTERN_CONSTANT) {
    hash = hash_constant(hash, &node->constant);
  }
  for (uint32_t k = 0; node->kind == CLEAVE_PATTERN_OP && k < node->input_count; k++) {
    hash = cleave_hash_combine(hash, node->inputs[k].port);
    hash = cleave_hash_combine(hash, hashes[node->inputs[k].pattern]);
  }
  for (uint32_t k = 0; cleave_pattern_has_children(node) && k < node->child_count; k++) {
    hash = cleave_hash_combine(hash, hashes[node->children[k]]);
  }
  return hash == 0 ? 1 : hash;
}

/* Children before their parents; a checked pattern is acyclic and not deep. */
static void hash_below(const hasher_t *hasher, uint32_t index) {
  const cleave_pattern_node_t *node = &hasher->matcher->pattern->nodes[index];
  if (hasher->hashes[index] != 0) {
    return;
  }
  for (uint32_t k = 0; node->kind == CLEAVE_PATTERN_OP && k < node->input_count; k++) {
    hash_below(hasher, node->inputs[k].pattern);
  }
  for (uint32_t k = 0; cleave_pattern_has_children(node) && k < node->child_count; k++) {
    hash_below(hasher, node->children[k]);
  }
  hasher->hashes[index] = hash_part(hasher, index);
}

/* The first part of each hash stands for all of them. `slots`: twice as many as parts at least, a power of
 * two. */
static void choose_classes(cleave_matcher_t *m, const uint64_t *hashes, uint32_t *slots, size_t slot_count) {
  memset(slots, 0xff, slot_count * sizeof *slots);
  for (uint32_t p = 0; p < m->pattern->node_count; p++) {
    size_t k = (size_t)hashes[p] & (slot_count - 1);
    while (slots[k] != CLEAVE_INDEX_NONE && hashes[slots[k]] != hashes[p]) {
      k = (k + 1) & (slot_count - 1);
    }
    slots[k] = slots[k] == CLEAVE_INDEX_NONE ? p : slots[k];
    m->classes[p] = hashes[p] == 0 ? p : slots[k];
  }
}

static bool are_interchangeable(const cleave_pattern_node_t *node, uint32_t a, uint32_t b,
                                const uint64_t *hashes) {
  uint64_t hash = hashes[node->inputs[a].pattern];
  return hash != 0 && hash == hashes[node->inputs[b].pattern] &&
         node->inputs[a].pattern != node->inputs[b].pattern &&
         (node->inputs[a].port == CLEAVE_PATTERN_PORT_ANY) ==
             (node->inputs[b].port == CLEAVE_PATTERN_PORT_ANY);
}

/* The last input before this one that is interchangeable with it, and how many come after it. */
static interchangeable_t find_interchangeable(const cleave_pattern_node_t *node, uint32_t input,
                                              const uint64_t *hashes) {
  interchangeable_t interchangeable = {CLEAVE_INDEX_NONE, 0};
  for (uint32_t n = 0; n < node->input_count; n++) {
    if (n != input && are_interchangeable(node, n, input, hashes)) {
      interchangeable.before = n < input ? n : interchangeable.before;
      interchangeable.after += n > input;
    }
  }
  return interchangeable;
}

cleave_status_t cleave_matcher_prepare_interchangeable(cleave_matcher_t *m, cleave_error_t *error) {
  const cleave_pattern_t *pattern = m->pattern;
  size_t n = pattern->node_count;
  cleave_status_t status = CLEAVE_OK;
  size_t input_count = 0;
  size_t slot_count = 16;
  while (slot_count < 2 * n) {
    slot_count *= 2;
  }
  uint64_t *hashes = cleave_allocate_zeroed(2 * n, sizeof *hashes);
  uint32_t *slots = cleave_allocate(slot_count, sizeof *slots);
  m->input_starts = cleave_arena_allocate(&m->arena, n, sizeof *m->input_starts);
  m->classes = cleave_arena_allocate(&m->arena, n, sizeof *m->classes);
  for (uint32_t p = 0; p < n; p++) {
    input_count += pattern->nodes[p].kind == CLEAVE_PATTERN_OP ? pattern->nodes[p].input_count : 0;
  }
  m->interchangeable = cleave_arena_allocate(&m->arena, input_count + 1, sizeof *m->interchangeable);
  CLEAVE_TRY_MEMORY_CLEANUP(hashes != NULL && slots != NULL && m->input_starts != NULL &&
                                m->classes != NULL && m->interchangeable != NULL,
                            error);
  hash_below(&(hasher_t){m, true, hashes}, pattern->root);
  hash_below(&(hasher_t){m, false, hashes + n}, pattern->root);
  choose_classes(m, hashes + n, slots, slot_count);
  uint32_t at = 0;
  for (uint32_t p = 0; p < n; p++) {
    const cleave_pattern_node_t *node = &pattern->nodes[p];
    m->input_starts[p] = at;
    for (uint32_t k = 0; node->kind == CLEAVE_PATTERN_OP && k < node->input_count; k++) {
      m->interchangeable[at++] = find_interchangeable(node, k, hashes);
    }
  }
cleanup:
  cleave_free(hashes);
  cleave_free(slots);
  return status;
}
