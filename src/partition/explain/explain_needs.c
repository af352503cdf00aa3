// SPDX-License-Identifier: Apache-2.0
// The operators that a pattern cannot do without and the graph has none of: "Sigmoid", "Relu or Clip".

#include <string.h>

#include "partition/explain/explain_find.h"
#include "partition/pattern/pattern_test.h"

typedef struct needs {
  const cleave_explainer_t *x;
  cleave_arena_t *arena;
  uint8_t *seen; /* per part */
  CLEAVE_ARRAY(const char *) items;
} needs_t;

static bool has_operator(const cleave_explainer_t *x, const cleave_pattern_node_t *part) {
  bool found = part->op_count == 0;
  for (uint32_t position = 0; position < x->contraction->node_count && !found; position++) {
    found = cleave_pattern_test_op(part, x->graph, x->contraction->nodes[position]);
  }
  return found;
}

/* Adds the text once, and empties it. */
static cleave_status_t add(needs_t *needs, cleave_text_t *text, cleave_error_t *error) {
  CLEAVE_TRY(cleave_text_check(text, error));
  for (size_t k = 0; k < needs->items.count; k++) {
    if (strcmp(needs->items.items[k], cleave_text_get(text)) == 0) {
      return CLEAVE_OK;
    }
  }
  const char *copy = cleave_arena_copy_text(needs->arena, cleave_text_get(text), text->length);
  CLEAVE_TRY_MEMORY(copy, error);
  CLEAVE_ARRAY_PUSH(&needs->items, copy, error);
  return CLEAVE_OK;
}

static cleave_status_t find(needs_t *needs, uint32_t part, cleave_error_t *error);

/* Of alternatives that all lack something, what each lacks first: "Sigmoid or HardSigmoid". */
static cleave_status_t find_in_choice(needs_t *needs, const cleave_pattern_node_t *node,
                                      cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_status_t status = CLEAVE_OK;
  needs_t own = {.x = needs->x, .arena = needs->arena, .seen = needs->seen};
  bool lacks = true;
  for (uint32_t k = 0; k < node->child_count && lacks; k++) {
    own.items.count = 0;
    CLEAVE_TRY_CLEANUP(find(&own, node->children[k], error));
    lacks = own.items.count > 0;
    if (lacks) {
      cleave_text_format(&text, "%s%s", k == 0 ? "" : " or ", own.items.items[0]);
    }
  }
  CLEAVE_TRY_CLEANUP(lacks ? add(needs, &text, error) : CLEAVE_OK);
cleanup:
  cleave_array_free(&own.items);
  cleave_text_deinit(&text);
  return status;
}

static cleave_status_t find_in_op(needs_t *needs, const cleave_pattern_node_t *node, cleave_error_t *error) {
  if (!has_operator(needs->x, node)) {
    cleave_text_t text = {0};
    cleave_explain_ops(node, " or ", " or ", &text);
    cleave_status_t status = add(needs, &text, error);
    cleave_text_deinit(&text);
    CLEAVE_TRY(status);
  }
  for (uint32_t k = 0; k < node->input_count; k++) {
    CLEAVE_TRY(find(needs, node->inputs[k].pattern, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t find(needs_t *needs, uint32_t part, cleave_error_t *error) {
  const cleave_pattern_node_t *node = &needs->x->pattern->nodes[part];
  if (needs->seen[part] != 0) {
    return CLEAVE_OK;
  }
  needs->seen[part] = 1;
  switch (node->kind) {
    case CLEAVE_PATTERN_OP: return find_in_op(needs, node, error);
    case CLEAVE_PATTERN_ONEOF: return find_in_choice(needs, node, error);
    case CLEAVE_PATTERN_SEQUENCE:
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_GROUP:
    case CLEAVE_PATTERN_REPEATED:
    case CLEAVE_PATTERN_VARIADIC: {
      bool may_be_none =
          (node->kind == CLEAVE_PATTERN_REPEATED || node->kind == CLEAVE_PATTERN_VARIADIC) && node->min == 0;
      for (uint32_t k = 0; k < node->child_count && !may_be_none; k++) {
        CLEAVE_TRY(find(needs, node->children[k], error));
      }
      return CLEAVE_OK;
    }
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_MAYBE: break;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_explainer_needs(cleave_explainer_t *x, cleave_arena_t *arena,
                                       const char *const **out_needs, uint32_t *out_count,
                                       cleave_error_t *error) {
  cleave_arena_reset(&x->trial_arena);
  needs_t needs = {
      .x = x, .arena = arena, .seen = cleave_arena_allocate(&x->trial_arena, x->pattern->node_count, 1)};
  CLEAVE_TRY_MEMORY(needs.seen, error);
  cleave_status_t status = find(&needs, x->pattern->root, error);
  if (status == CLEAVE_OK) {
    *out_count = (uint32_t)needs.items.count;
    *out_needs = cleave_arena_copy(arena, needs.items.items, needs.items.count * sizeof *needs.items.items);
    status = *out_needs == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  }
  cleave_array_free(&needs.items);
  return status;
}
