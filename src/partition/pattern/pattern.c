// SPDX-License-Identifier: Apache-2.0
// The structural check of compiled patterns. A checked pattern has valid indices, bounded depth and no
// cycles, so the matcher does not test for them.

#include "partition/pattern/pattern.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "partition/pattern/pattern_labels.h"
#include "partition/pattern/pattern_path.h"

enum { MAX_DEPTH = 64, MAX_NODES = 65536, MAX_LABELS = 1024, MAX_SYMBOLS = 1024, MAX_MEMBERS = 64 };

/* Facts that the check has found out about a part. */
enum { IS_ON_PATH = 1, IS_DONE = 2, MAY_BE_EMPTY = 4, HAS_ANCHOR = 8 };

typedef struct checker {
  const cleave_pattern_t *pattern;
  const char *file;
  const char *subject; /* the rule, in messages */
  cleave_error_t *error;
  uint8_t *marks; /* per node */
} checker_t;

/* The file of a part, or (NULL) of the pattern as a whole. */
static const char *file_of(const checker_t *checker, const cleave_pattern_node_t *part) {
  return part != NULL && part->file != NULL ? part->file : checker->file;
}

static cleave_status_t refuse(const checker_t *checker, uint32_t node, const char *what) {
  bool is_part = node < checker->pattern->node_count;
  const cleave_pattern_node_t *part = is_part ? &checker->pattern->nodes[node] : NULL;
  return cleave_error_set_at(checker->error, CLEAVE_ERROR_RULE, file_of(checker, part),
                             is_part ? part->line : 0, "%s: %s", checker->subject, what);
}

static bool may_be_left_out(const cleave_pattern_node_t *node) {
  return node->kind == CLEAVE_PATTERN_MAYBE || (node->kind == CLEAVE_PATTERN_REPEATED && node->min == 0);
}

static bool has_mark(const checker_t *checker, uint32_t index, uint8_t mark) {
  return (checker->marks[index] & mark) != 0;
}

static bool any_child_has(const checker_t *checker, const cleave_pattern_node_t *node, uint8_t mark) {
  for (uint32_t k = 0; k < node->child_count; k++) {
    if (has_mark(checker, node->children[k], mark)) {
      return true;
    }
  }
  return false;
}

static bool all_children_have(const checker_t *checker, const cleave_pattern_node_t *node, uint8_t mark) {
  for (uint32_t k = 0; k < node->child_count; k++) {
    if (!has_mark(checker, node->children[k], mark)) {
      return false;
    }
  }
  return true;
}

/* Does a sequence begin with an operator, whichever of its first parts are left out? */
static bool sequence_has_anchor(const checker_t *checker, const cleave_pattern_node_t *node) {
  uint32_t k = cleave_pattern_is_value(&checker->pattern->nodes[node->children[0]]) ? 1 : 0;
  while (k < node->child_count && has_mark(checker, node->children[k], HAS_ANCHOR) &&
         may_be_left_out(&checker->pattern->nodes[node->children[k]])) {
    k++;
  }
  return k < node->child_count && has_mark(checker, node->children[k], HAS_ANCHOR) &&
         !has_mark(checker, node->children[k], MAY_BE_EMPTY);
}

/* Computes the marks of a part from those of its children. */
static uint8_t marks_of(const checker_t *checker, const cleave_pattern_node_t *node) {
  bool may_be_empty = false; /* can it match without any node? */
  bool has_anchor = false;   /* does every way through it that has nodes begin with an operator? */
  switch (node->kind) {
    case CLEAVE_PATTERN_OP: has_anchor = true; break;
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_VARIADIC: may_be_empty = true; break;
    case CLEAVE_PATTERN_MAYBE:
      may_be_empty = true;
      has_anchor = has_mark(checker, node->children[0], HAS_ANCHOR);
      break;
    case CLEAVE_PATTERN_REPEATED:
      may_be_empty = node->min == 0 || has_mark(checker, node->children[0], MAY_BE_EMPTY);
      has_anchor = has_mark(checker, node->children[0], HAS_ANCHOR);
      break;
    case CLEAVE_PATTERN_ONEOF:
      may_be_empty = any_child_has(checker, node, MAY_BE_EMPTY);
      has_anchor = all_children_have(checker, node, HAS_ANCHOR);
      break;
    case CLEAVE_PATTERN_SEQUENCE:
      may_be_empty = all_children_have(checker, node, MAY_BE_EMPTY);
      has_anchor = sequence_has_anchor(checker, node);
      break;
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_GROUP: has_anchor = has_mark(checker, node->children[0], HAS_ANCHOR); break;
  }
  return (uint8_t)((may_be_empty ? MAY_BE_EMPTY : 0) | (has_anchor ? HAS_ANCHOR : 0) | IS_DONE);
}

static cleave_status_t check_node(checker_t *checker, uint32_t index, uint32_t depth);

static cleave_status_t check_child(checker_t *checker, uint32_t parent, uint32_t child, uint32_t depth) {
  if (child >= checker->pattern->node_count) {
    return refuse(checker, parent, "pattern refers to a part that does not exist");
  }
  return check_node(checker, child, depth + 1);
}

static cleave_status_t check_op(checker_t *checker, uint32_t index, uint32_t depth) {
  const cleave_pattern_node_t *node = &checker->pattern->nodes[index];
  for (uint32_t k = 0; k < node->input_count; k++) {
    CLEAVE_TRY(check_child(checker, index, node->inputs[k].pattern, depth));
    if (checker->pattern->nodes[node->inputs[k].pattern].kind == CLEAVE_PATTERN_GROUP) {
      return refuse(checker, index, "an input cannot be a group");
    }
    bool is_variadic = node->inputs[k].port == CLEAVE_PATTERN_PORT_VARIADIC;
    if (is_variadic != (checker->pattern->nodes[node->inputs[k].pattern].kind == CLEAVE_PATTERN_VARIADIC) ||
        (is_variadic && k + 1 < node->input_count)) {
      return refuse(checker, index, "only the last input of an operator can be variadic");
    }
    for (uint32_t m = 0; m < k; m++) {
      if (node->inputs[k].port != CLEAVE_PATTERN_PORT_ANY && node->inputs[k].port == node->inputs[m].port) {
        return refuse(checker, index, "pattern names an input of an operator twice");
      }
    }
  }
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    const cleave_attribute_test_t *test = &node->attributes[k];
    if (test->name == NULL || (test->kind == CLEAVE_ATTRIBUTE_TEST_EQUAL && test->value_count == 0)) {
      return refuse(checker, index, "pattern tests an attribute against nothing");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_children(checker_t *checker, uint32_t index, uint32_t depth) {
  const cleave_pattern_t *pattern = checker->pattern;
  const cleave_pattern_node_t *node = &pattern->nodes[index];
  bool is_single = node->kind == CLEAVE_PATTERN_MAYBE || node->kind == CLEAVE_PATTERN_REPEATED ||
                   node->kind == CLEAVE_PATTERN_OUTPUT || node->kind == CLEAVE_PATTERN_VARIADIC;
  if (node->child_count == 0 || (is_single && node->child_count != 1)) {
    return refuse(checker, index, "pattern has an empty 'maybe', 'oneof', 'repeated' or sequence");
  }
  for (uint32_t k = 0; k < node->child_count; k++) {
    CLEAVE_TRY(check_child(checker, index, node->children[k], depth));
    const cleave_pattern_node_t *child = &pattern->nodes[node->children[k]];
    if (node->kind == CLEAVE_PATTERN_SEQUENCE && k > 0 && cleave_pattern_is_value(child)) {
      return refuse(checker, index, "only the first part of a sequence can be a value");
    }
    if (node->kind == CLEAVE_PATTERN_OUTPUT && child->kind != CLEAVE_PATTERN_OP) {
      return refuse(checker, index, "'output' needs an operator");
    }
    if (child->kind == CLEAVE_PATTERN_VARIADIC ||
        (child->kind == CLEAVE_PATTERN_GROUP && node->kind != CLEAVE_PATTERN_ONEOF)) {
      return refuse(checker, index, "pattern has a part at a place where its kind is not allowed");
    }
    if (child->kind == CLEAVE_PATTERN_ABSENT && node->kind != CLEAVE_PATTERN_ONEOF) {
      return refuse(checker, index, "only an input can be absent");
    }
  }
  if (node->kind == CLEAVE_PATTERN_REPEATED || node->kind == CLEAVE_PATTERN_VARIADIC) {
    if (node->max == 0 || node->min > node->max) {
      return refuse(checker, index, "'repeated' needs 1 <= max and min <= max");
    }
  }
  if (node->kind == CLEAVE_PATTERN_REPEATED) {
    if (has_mark(checker, node->children[0], MAY_BE_EMPTY)) {
      return refuse(checker, index, "'repeated' needs an operator in it");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_node(checker_t *checker, uint32_t index, uint32_t depth) {
  const cleave_pattern_node_t *node = &checker->pattern->nodes[index];
  if (has_mark(checker, index, IS_DONE)) {
    return CLEAVE_OK;
  }
  if (has_mark(checker, index, IS_ON_PATH)) {
    return refuse(checker, index, "pattern contains itself");
  }
  if (depth > MAX_DEPTH) {
    return refuse(checker, index, "pattern is nested too deeply (more than 64 parts)");
  }
  checker->marks[index] = IS_ON_PATH;
  if (node->type.rank > CLEAVE_MAX_RANK || (node->type.dims != NULL && node->type.rank < 0)) {
    return refuse(checker, index, "pattern asks for a rank above 8");
  }
  if (node->kind == CLEAVE_PATTERN_OP) {
    CLEAVE_TRY(check_op(checker, index, depth));
  } else if (cleave_pattern_has_children(node)) {
    CLEAVE_TRY(check_children(checker, index, depth));
  }
  checker->marks[index] = marks_of(checker, node);
  return CLEAVE_OK;
}

static cleave_status_t check_labels(checker_t *checker) {
  const cleave_pattern_t *pattern = checker->pattern;
  if (pattern->label_count > MAX_LABELS) {
    return refuse(checker, pattern->root, "pattern has too many labels (more than 1024)");
  }
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    const char *label = pattern->nodes[k].label;
    bool listed = label == NULL;
    for (uint32_t n = 0; !listed && n < pattern->label_count; n++) {
      listed = strcmp(label, pattern->labels[n]) == 0;
    }
    if (!listed) {
      return refuse(checker, k, "label of the pattern is not in its list of labels");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_clashes(const checker_t *checker) {
  uint32_t first = CLEAVE_INDEX_NONE;
  uint32_t second = CLEAVE_INDEX_NONE;
  CLEAVE_TRY(cleave_pattern_find_clash(checker->pattern, &first, &second, checker->error));
  if (first == CLEAVE_INDEX_NONE) {
    return CLEAVE_OK;
  }
  const cleave_pattern_node_t *part = &checker->pattern->nodes[second];
  return cleave_error_set_at(checker->error, CLEAVE_ERROR_RULE, file_of(checker, part), part->line,
                             "%s: label '%s' is on two parts that cannot be the same (the other one is in "
                             "line %d): give one of them another label",
                             checker->subject, part->label, (int)checker->pattern->nodes[first].line);
}

// ---- sizes ----

typedef struct symbols {
  uint32_t count;
  const char *names[MAX_SYMBOLS];
} symbols_t;

static bool add_symbol(symbols_t *symbols, const char *name) {
  for (uint32_t k = 0; k < symbols->count; k++) {
    if (strcmp(symbols->names[k], name) == 0) {
      return true;
    }
  }
  if (symbols->count == MAX_SYMBOLS) {
    return false;
  }
  symbols->names[symbols->count++] = name;
  return true;
}

/* A symbol of an expression must be a dimension of its own somewhere. */
static cleave_status_t check_expression(const checker_t *checker, const symbols_t *symbols,
                                        const cleave_pattern_node_t *part,
                                        const cleave_expression_t *expression) {
  for (uint32_t k = 0; expression != NULL && k < expression->symbol_count; k++) {
    bool is_bound = false;
    cleave_nearest_t nearest = {0};
    for (uint32_t n = 0; n < symbols->count; n++) {
      is_bound = is_bound || strcmp(symbols->names[n], expression->symbols[k]) == 0;
      cleave_nearest_offer(&nearest, expression->symbols[k], symbols->names[n]);
    }
    if (!is_bound) {
      return cleave_error_set_at(checker->error, CLEAVE_ERROR_RULE, file_of(checker, part), expression->line,
                                 "%s: '%s': no shape of the pattern has a dimension '%s'%s", checker->subject,
                                 expression->text, expression->symbols[k], cleave_nearest_hint(&nearest));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_part_sizes(const checker_t *checker, const symbols_t *symbols, uint32_t index) {
  const cleave_pattern_node_t *node = &checker->pattern->nodes[index];
  for (int32_t d = 0; node->type.dims != NULL && d < node->type.rank; d++) {
    const cleave_dim_test_t *dim = &node->type.dims[d];
    CLEAVE_TRY(check_expression(checker, symbols, node,
                                dim->size < 0 && dim->symbol == NULL ? dim->expression : NULL));
  }
  return check_expression(checker, symbols, node, node->where);
}

static cleave_status_t check_sizes(const checker_t *checker) {
  const cleave_pattern_t *pattern = checker->pattern;
  symbols_t symbols = {0};
  for (uint32_t p = 0; p < pattern->node_count; p++) {
    const cleave_type_test_t *type = &pattern->nodes[p].type;
    for (int32_t d = 0; type->dims != NULL && d < type->rank; d++) {
      if (type->dims[d].size < 0 && type->dims[d].symbol != NULL &&
          !add_symbol(&symbols, type->dims[d].symbol)) {
        return refuse(checker, p, "pattern has too many sizes with names (more than 1024)");
      }
    }
  }
  for (uint32_t p = 0; p < pattern->node_count; p++) {
    CLEAVE_TRY(check_part_sizes(checker, &symbols, p));
  }
  return check_expression(checker, &symbols, NULL, pattern->where);
}

// ---- groups ----

/* Can every member of a group be found through what it shares with those before it? */
static cleave_status_t check_groups(const checker_t *checker) {
  const cleave_pattern_t *pattern = checker->pattern;
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t p = 0; p < pattern->node_count && status == CLEAVE_OK; p++) {
    if (pattern->nodes[p].kind != CLEAVE_PATTERN_GROUP) {
      continue;
    }
    if (pattern->nodes[p].child_count > MAX_MEMBERS) {
      return refuse(checker, p, "a group has too many parts (more than 64)");
    }
    cleave_arena_t arena = {0};
    cleave_pattern_paths_t paths;
    cleave_error_t cause = CLEAVE_ERROR_INIT;
    status = cleave_pattern_find_paths(pattern, p, &arena, &paths, &cause);
    cleave_arena_deinit(&arena);
    if (status != CLEAVE_OK) {
      return status == CLEAVE_ERROR_RULE ? refuse(checker, p, cause.message)
                                         : cleave_error_out_of_memory(checker->error);
    }
  }
  return status;
}

cleave_status_t cleave_pattern_check_of(const cleave_pattern_t *pattern, const char *file,
                                        const char *subject, cleave_error_t *error) {
  checker_t checker = {pattern, file, subject, error, NULL};
  if (pattern->node_count == 0 || pattern->root >= pattern->node_count) {
    return refuse(&checker, pattern->root, "pattern is empty");
  }
  if (pattern->node_count > MAX_NODES) {
    return refuse(&checker, pattern->root, "pattern has too many parts (more than 65536)");
  }
  CLEAVE_TRY(check_labels(&checker));
  checker.marks = cleave_allocate_zeroed(pattern->node_count, 1);
  CLEAVE_TRY_MEMORY(checker.marks, error);
  cleave_status_t status = check_node(&checker, pattern->root, 0);
  if (status == CLEAVE_OK &&
      (!has_mark(&checker, pattern->root, HAS_ANCHOR) || has_mark(&checker, pattern->root, MAY_BE_EMPTY))) {
    status = refuse(&checker, pattern->root, "pattern must begin with an operator");
  }
  cleave_free(checker.marks);
  CLEAVE_TRY(status);
  CLEAVE_TRY(check_clashes(&checker));
  CLEAVE_TRY(check_sizes(&checker));
  return check_groups(&checker);
}

cleave_status_t cleave_pattern_check(const cleave_pattern_t *pattern, const char *file, const char *rule,
                                     cleave_error_t *error) {
  char subject[128];
  (void)snprintf(subject, sizeof subject, "fuse '%s'", rule);
  return cleave_pattern_check_of(pattern, file, subject, error);
}
