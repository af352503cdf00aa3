// SPDX-License-Identifier: Apache-2.0
// The edit for an edge inside a match that the pattern does not name: the part that makes the value gets a
// label, and the part that reads it gets an input with that label.

#include <string.h>

#include "partition/explain/explain_find.h"

static bool has_label(const cleave_pattern_t *pattern, const char *label) {
  for (uint32_t k = 0; k < pattern->label_count; k++) {
    if (strcmp(pattern->labels[k], label) == 0) {
      return true;
    }
  }
  return false;
}

/* The label of an operator, or a new one from the operator's name. */
static const char *label_part(cleave_explainer_t *x, uint32_t part, const cleave_op_t *op) {
  cleave_pattern_t *pattern = &x->trial_pattern;
  if (x->built[part].label != NULL) {
    return x->built[part].label;
  }
  char *label = cleave_arena_format(&x->build_arena, "%s", op->name);
  const char **labels =
      cleave_arena_allocate(&x->build_arena, (size_t)pattern->label_count + 1, sizeof *labels);
  for (char *letter = label; label != NULL && *letter != '\0'; letter++) {
    *letter = *letter >= 'A' && *letter <= 'Z' ? (char)(*letter - 'A' + 'a') : *letter;
  }
  const char *own = label;
  for (uint32_t number = 2; own != NULL && has_label(pattern, own); number++) {
    own = cleave_arena_format(&x->build_arena, "%s_%u", label, (unsigned)number);
  }
  if (own == NULL || labels == NULL) {
    return NULL;
  }
  for (uint32_t k = 0; k < pattern->label_count; k++) {
    labels[k] = pattern->labels[k];
  }
  labels[pattern->label_count++] = own;
  pattern->labels = labels;
  x->built[part].label = own;
  return own;
}

/* An edge that the pattern lacks: the reader names the value of the other part by a label, in a new input or
 * in that of the constraint. */
bool cleave_explain_fix_unnamed(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  cleave_node_t maker = cleave_value_producer(x->graph, fault->value);
  uint32_t reader_part = cleave_finder_part(finder, fault->node);
  uint32_t maker_part = cleave_finder_part(finder, maker);
  if (reader_part == CLEAVE_INDEX_NONE || maker_part == CLEAVE_INDEX_NONE ||
      finder->bindings[maker_part].value.index != fault->value.index) {
    return false;
  }
  const cleave_op_t *op = cleave_node_op(x->graph, fault->node);
  cleave_pattern_node_t *reader = &x->built[reader_part];
  bool is_new = x->built[maker_part].label == NULL;
  const char *label = label_part(x, maker_part, cleave_node_op(x->graph, maker));
  cleave_pattern_input_t *inputs = cleave_explainer_own_inputs(x, reader_part, 1);
  if (label == NULL || inputs == NULL) {
    return false;
  }
  bool swaps = (op->flags & CLEAVE_OP_COMMUTATIVE) != 0;
  const constraint_t *d = &x->constraints[fault->constraint];
  uint32_t others = reader->input_count - (d->kind == CONSTRAINT_INPUT);
  uint32_t at = d->index;
  if (d->kind == CONSTRAINT_EDGES) {
    bool has_variadic = others > 0 && inputs[others - 1].port == CLEAVE_PATTERN_PORT_VARIADIC;
    at = others - has_variadic;
    inputs[others] = inputs[at];
    reader->input_count++;
  }
  inputs[at] = (cleave_pattern_input_t){
      .port = swaps ? CLEAVE_PATTERN_PORT_ANY : fault->input,
      .pattern = cleave_explainer_add_part(
          x, (cleave_pattern_node_t){.kind = CLEAVE_PATTERN_VALUE, .type.rank = -1, .label = label})};
  if (is_new) {
    cleave_text_format(text, "op { \"%s\", as = \"%s\" } and ", cleave_node_op(x->graph, maker)->name, label);
  }
  cleave_text_format(text, "op { \"%s\", inputs = { %s", op->name, others > 0 ? "..., " : "");
  if (!swaps) {
    cleave_explain_input(op, fault->input, text);
    cleave_text_add(text, " = ");
  }
  cleave_text_format(text, "any \"%s\" } }", label);
  return true;
}
