// SPDX-License-Identifier: Apache-2.0
// Structural check of compiled patterns: after it, the matcher needs no test of its own for indices, depth
// or loops.

#include "partition/pattern.h"

#include <string.h>

#include "base/memory.h"

#define MAX_DEPTH 64
#define MAX_NODES 65536

typedef struct checker {
  const cleave_pattern_t *pattern;
  const char *file;
  const char *rule;
  cleave_error_t *error;
  uint8_t *states; /* per node: 0 not seen, 1 on the path, 2 done */
} checker_t;

static cleave_status_t refuse(const checker_t *checker, uint32_t node, const char *what) {
  int line = node < checker->pattern->node_count ? checker->pattern->nodes[node].line : 0;
  return cleave_error_set_at(checker->error, CLEAVE_ERROR_RULE, checker->file, line, "fuse '%s': %s",
                             checker->rule, what);
}

/* Can the pattern match without any node? Only for what is checked and acyclic. */
static bool may_be_empty(const cleave_pattern_t *pattern, uint32_t index) {
  const cleave_pattern_node_t *node = &pattern->nodes[index];
  switch (node->kind) {
    case CLEAVE_PATTERN_OP:
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_GROUP: return false;
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_EVERY:
    case CLEAVE_PATTERN_MAYBE: return true;
    case CLEAVE_PATTERN_REPEATED: return node->min == 0 || may_be_empty(pattern, node->children[0]);
    case CLEAVE_PATTERN_ONEOF:
      for (uint32_t k = 0; k < node->child_count; k++) {
        if (may_be_empty(pattern, node->children[k])) {
          return true;
        }
      }
      return false;
    case CLEAVE_PATTERN_SEQUENCE:
      for (uint32_t k = 0; k < node->child_count; k++) {
        if (!may_be_empty(pattern, node->children[k])) {
          return false;
        }
      }
      return true;
  }
  return true;
}

/* Does every way through the pattern begin with an operator? */
static bool has_anchor(const cleave_pattern_t *pattern, uint32_t index) {
  const cleave_pattern_node_t *node = &pattern->nodes[index];
  switch (node->kind) {
    case CLEAVE_PATTERN_OP: return true;
    case CLEAVE_PATTERN_VALUE:
    case CLEAVE_PATTERN_CONSTANT:
    case CLEAVE_PATTERN_ABSENT:
    case CLEAVE_PATTERN_EVERY:
    case CLEAVE_PATTERN_MAYBE: return false;
    case CLEAVE_PATTERN_REPEATED: return node->min > 0 && has_anchor(pattern, node->children[0]);
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_GROUP: return has_anchor(pattern, node->children[0]);
    case CLEAVE_PATTERN_ONEOF:
      for (uint32_t k = 0; k < node->child_count; k++) {
        if (!has_anchor(pattern, node->children[k])) {
          return false;
        }
      }
      return true;
    case CLEAVE_PATTERN_SEQUENCE:
      if (cleave_pattern_is_value(&pattern->nodes[node->children[0]])) {
        return node->child_count > 1 && has_anchor(pattern, node->children[1]);
      }
      return has_anchor(pattern, node->children[0]);
  }
  return false;
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
    bool is_rest = node->inputs[k].port == CLEAVE_PATTERN_PORT_REST;
    if (is_rest != (checker->pattern->nodes[node->inputs[k].pattern].kind == CLEAVE_PATTERN_EVERY) ||
        (is_rest && k + 1 < node->input_count)) {
      return refuse(checker, index, "only the last input of an operator can stand for all the others");
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
                   node->kind == CLEAVE_PATTERN_OUTPUT || node->kind == CLEAVE_PATTERN_EVERY;
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
    if (child->kind == CLEAVE_PATTERN_EVERY ||
        (child->kind == CLEAVE_PATTERN_GROUP && node->kind != CLEAVE_PATTERN_ONEOF)) {
      return refuse(checker, index, "pattern has a part where none of its kind can be");
    }
    if (child->kind == CLEAVE_PATTERN_ABSENT && node->kind != CLEAVE_PATTERN_ONEOF) {
      return refuse(checker, index, "only an input can be absent");
    }
  }
  if (node->kind == CLEAVE_PATTERN_REPEATED || node->kind == CLEAVE_PATTERN_EVERY) {
    if (node->max == 0 || node->min > node->max) {
      return refuse(checker, index, "'repeated' needs 1 <= max and min <= max");
    }
  }
  if (node->kind == CLEAVE_PATTERN_REPEATED) {
    if (may_be_empty(pattern, node->children[0])) {
      return refuse(checker, index, "'repeated' needs an operator in it");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_node(checker_t *checker, uint32_t index, uint32_t depth) {
  const cleave_pattern_node_t *node = &checker->pattern->nodes[index];
  if (checker->states[index] == 2) {
    return CLEAVE_OK;
  }
  if (checker->states[index] == 1) {
    return refuse(checker, index, "pattern contains itself");
  }
  if (depth > MAX_DEPTH) {
    return refuse(checker, index, "pattern is nested too deeply (more than 64 parts)");
  }
  checker->states[index] = 1;
  if (node->type.rank > CLEAVE_MAX_RANK || (node->type.dims != NULL && node->type.rank < 0)) {
    return refuse(checker, index, "pattern asks for a rank above 8");
  }
  if (node->kind == CLEAVE_PATTERN_OP) {
    CLEAVE_TRY(check_op(checker, index, depth));
  } else if (cleave_pattern_has_children(node)) {
    CLEAVE_TRY(check_children(checker, index, depth));
  }
  checker->states[index] = 2;
  return CLEAVE_OK;
}

cleave_status_t cleave_pattern_check(const cleave_pattern_t *pattern, const char *file, const char *rule,
                                     cleave_error_t *error) {
  checker_t checker = {pattern, file, rule, error, NULL};
  if (pattern->node_count == 0 || pattern->root >= pattern->node_count) {
    return refuse(&checker, pattern->root, "pattern is empty");
  }
  if (pattern->node_count > MAX_NODES) {
    return refuse(&checker, pattern->root, "pattern has too many parts (more than 65536)");
  }
  for (uint32_t k = 0; k < pattern->node_count; k++) {
    const char *label = pattern->nodes[k].label;
    bool listed = label == NULL;
    for (uint32_t m = 0; !listed && m < pattern->label_count; m++) {
      listed = strcmp(label, pattern->labels[m]) == 0;
    }
    if (!listed) {
      return refuse(&checker, k, "label of the pattern is not in its list of labels");
    }
  }
  checker.states = cleave_allocate_zeroed(pattern->node_count, 1);
  if (checker.states == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_status_t status = check_node(&checker, pattern->root, 0);
  if (status == CLEAVE_OK && !has_anchor(pattern, pattern->root)) {
    status = refuse(&checker, pattern->root, "pattern must begin with an operator, to be found by");
  }
  cleave_free(checker.states);
  return status;
}
