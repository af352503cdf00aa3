// SPDX-License-Identifier: Apache-2.0
// Attribute, type and content tests of patterns. An unknown dtype, rank or size passes only if the pattern
// does not restrict it.

#include "partition/pattern/pattern_test.h"

#include <math.h>
#include <string.h>

bool cleave_pattern_same_op(const cleave_op_t *a, const cleave_op_t *b) {
  return a == b || (a->id == CLEAVE_OP_ID_CUSTOM && b->id == CLEAVE_OP_ID_CUSTOM &&
                    strcmp(a->domain, b->domain) == 0 && strcmp(a->name, b->name) == 0);
}

/* Attributes of kind FLOAT were 32-bit floats once: 0.01 in a rule means the nearest of them. */
static bool float_equal(double attribute, double literal) {
  return attribute == literal || (fabs(literal) <= 3.4e38 && (float)attribute == (float)literal);
}

static bool literal_equal(const cleave_pattern_literal_t *literal, const cleave_attribute_t *attribute) {
  if (attribute->kind == CLEAVE_ATTRIBUTE_STRINGS || attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    return false;
  }
  if (attribute->kind == CLEAVE_ATTRIBUTE_STRING || literal->text != NULL) {
    return attribute->kind == CLEAVE_ATTRIBUTE_STRING && literal->text != NULL &&
           strlen(literal->text) == attribute->count &&
           memcmp(literal->text, attribute->s, attribute->count) == 0;
  }
  bool is_equal = literal->is_list == cleave_attribute_is_list(attribute) &&
                  literal->count == cleave_attribute_item_count(attribute);
  for (uint32_t k = 0; is_equal && k < literal->count; k++) {
    cleave_attribute_t item = cleave_attribute_item(attribute, k);
    is_equal = item.kind == CLEAVE_ATTRIBUTE_INT ? (double)item.i == literal->numbers[k]
                                                 : float_equal(item.f, literal->numbers[k]);
  }
  return is_equal;
}

static bool is_one_of_literals(const cleave_attribute_test_t *test, const cleave_attribute_t *attribute) {
  for (uint32_t k = 0; k < test->value_count; k++) {
    if (literal_equal(&test->values[k], attribute)) {
      return true;
    }
  }
  return false;
}

static bool is_in_range(const cleave_attribute_test_t *test, const cleave_attribute_t *attribute) {
  bool is_int = attribute->kind == CLEAVE_ATTRIBUTE_INT;
  double number = is_int ? (double)attribute->i : attribute->f;
  return (is_int || attribute->kind == CLEAVE_ATTRIBUTE_FLOAT) && number >= test->low && number <= test->high;
}

bool cleave_pattern_test_attribute(const cleave_attribute_test_t *test, const cleave_graph_t *graph,
                                   cleave_node_t node) {
  bool accepts_absent = test->kind == CLEAVE_ATTRIBUTE_TEST_ABSENT || test->or_absent;
  if (accepts_absent && cleave_node_attribute(graph, node, test->name) == NULL) {
    return true;
  }
  cleave_attribute_t attribute;
  return test->kind != CLEAVE_ATTRIBUTE_TEST_ABSENT &&
         cleave_op_effective_attribute(graph, node, test->name, &attribute) &&
         (test->kind == CLEAVE_ATTRIBUTE_TEST_RANGE ? is_in_range(test, &attribute)
                                                    : is_one_of_literals(test, &attribute));
}

bool cleave_pattern_test_op(const cleave_pattern_node_t *pattern, const cleave_graph_t *graph,
                            cleave_node_t node) {
  const cleave_op_t *op = cleave_node_op(graph, node);
  bool found = pattern->op_count == 0;
  for (uint32_t k = 0; !found && k < pattern->op_count; k++) {
    found = cleave_pattern_same_op(pattern->ops[k], op);
  }
  return found;
}

bool cleave_pattern_test_node(const cleave_pattern_node_t *pattern, const cleave_graph_t *graph,
                              cleave_node_t node) {
  if (!cleave_pattern_test_op(pattern, graph, node)) {
    return false;
  }
  for (uint32_t k = 0; k < pattern->attribute_count; k++) {
    if (!cleave_pattern_test_attribute(&pattern->attributes[k], graph, node)) {
      return false;
    }
  }
  return true;
}

bool cleave_pattern_test_type(const cleave_type_test_t *test, const cleave_graph_t *graph,
                              cleave_value_t value) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  if (test->dtypes != 0 && (record->dtype == CLEAVE_DTYPE_UNKNOWN || record->dtype >= 32 ||
                            (test->dtypes >> record->dtype & 1u) == 0)) {
    return false;
  }
  if (test->rank < 0) {
    return true;
  }
  if (record->rank != test->rank) {
    return false;
  }
  for (int32_t d = 0; test->dims != NULL && d < test->rank; d++) {
    if (test->dims[d].size >= 0 && record->dims[d] != test->dims[d].size) {
      return false;
    }
  }
  return true;
}

static bool is_near(double element, double value, double tolerance) {
  return element == value || fabs(element - value) <= tolerance;
}

/* Does element k equal what `values` asks for? */
static bool is_one_of(const cleave_constant_test_t *test, double element, int64_t k) {
  if (test->is_list) {
    return is_near(element, test->values[k], test->tolerance);
  }
  bool found = test->value_count == 0;
  for (uint32_t v = 0; !found && v < test->value_count; v++) {
    found = is_near(element, test->values[v], test->tolerance);
  }
  return found;
}

bool cleave_pattern_reads_constant(const cleave_constant_test_t *test) {
  return test->all_equal || test->has_value || test->has_range || test->value_count > 0;
}

bool cleave_pattern_test_constant(const cleave_constant_test_t *test, const cleave_graph_t *graph,
                                  cleave_value_t value) {
  const cleave_tensor_t *tensor = cleave_graph_value(graph, value)->tensor;
  if (tensor == NULL || (test->scalar && tensor->count != 1)) {
    return false;
  }
  if (test->is_list && tensor->count != (int64_t)test->value_count) {
    return false;
  }
  if (!cleave_pattern_reads_constant(test)) {
    return true;
  }
  if (tensor->dtype == CLEAVE_DTYPE_STRING || tensor->count == 0) {
    return false;
  }
  double first = cleave_tensor_get_float(tensor, 0);
  for (int64_t k = 0; k < tensor->count; k++) {
    double element = cleave_tensor_get_float(tensor, k);
    if ((test->all_equal && !(element == first)) ||
        (test->has_value && !is_near(element, test->value, test->tolerance)) ||
        (test->has_range && !(element >= test->low && element <= test->high)) ||
        !is_one_of(test, element, k)) {
      return false;
    }
  }
  return true;
}
