// SPDX-License-Identifier: Apache-2.0
// Builds patterns part by part in static memory, for tests: any failure fails the test.

#include "pattern_case.h"

#include "plan_case.h"
#include "unit.h"

cleave_pattern_node_t parts[PATTERN_CASE_MAX_PARTS];

static cleave_pattern_input_t part_inputs[PATTERN_CASE_MAX_PARTS][PATTERN_CASE_MAX_CHILDREN];
static uint32_t part_children[PATTERN_CASE_MAX_PARTS][PATTERN_CASE_MAX_CHILDREN];
static uint32_t part_count;
static const char *labels[PATTERN_CASE_MAX_PARTS];
static uint32_t label_count;

static uint32_t add_part(cleave_pattern_kind_t kind, const char *label) {
  uint32_t index = part_count++;
  ck_assert_uint_lt(index, PATTERN_CASE_MAX_PARTS);
  parts[index] = (cleave_pattern_node_t){.kind = kind,
                                         .label = label,
                                         .line = (int32_t)index + 1,
                                         .type.rank = -1,
                                         .inputs = part_inputs[index],
                                         .children = part_children[index]};
  bool is_known = label == NULL;
  for (uint32_t k = 0; k < label_count && !is_known; k++) {
    is_known = strcmp(labels[k], label) == 0;
  }
  if (!is_known) {
    labels[label_count++] = label;
  }
  return index;
}

uint32_t op(const char *names, const char *label) {
  uint32_t index = add_part(CLEAVE_PATTERN_OP, label);
  parts[index].ops = plan_case_op_list(names, &parts[index].op_count);
  return index;
}

uint32_t input(uint32_t part, uint32_t port, uint32_t pattern) {
  part_inputs[part][parts[part].input_count++] = (cleave_pattern_input_t){port, pattern};
  return part;
}

uint32_t group(cleave_pattern_kind_t kind, uint32_t count, const uint32_t *children) {
  uint32_t index = add_part(kind, NULL);
  memcpy(part_children[index], children, count * sizeof *children);
  parts[index].child_count = count;
  return index;
}

uint32_t maybe(uint32_t child) {
  return group(CLEAVE_PATTERN_MAYBE, 1, &child);
}

uint32_t repeated(uint32_t child, uint32_t min, uint32_t max) {
  uint32_t index = group(CLEAVE_PATTERN_REPEATED, 1, &child);
  parts[index].min = min;
  parts[index].max = max;
  return index;
}

uint32_t value(const char *label) {
  return add_part(CLEAVE_PATTERN_VALUE, label);
}

uint32_t constant(const char *label) {
  return add_part(CLEAVE_PATTERN_CONSTANT, label);
}

cleave_pattern_t pattern_of(uint32_t root) {
  return (cleave_pattern_t){parts, part_count, root, labels, label_count, NULL};
}

uint32_t conv_chain(void) {
  uint32_t sum = input(op("Add", "sum"), ANY, value("residual"));
  return SEQUENCE(op("Conv", "conv"), maybe(op("BatchNormalization", "bn")), maybe(sum),
                  maybe(op("Relu,Clip,Sigmoid", "act")));
}
