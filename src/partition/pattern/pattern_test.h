// SPDX-License-Identifier: Apache-2.0
/* Tests of one graph node or value against a pattern node. Edges are the matcher's concern. */
#ifndef CLEAVE_PARTITION_PATTERN_PATTERN_TEST_H
#define CLEAVE_PARTITION_PATTERN_PATTERN_TEST_H

#include "partition/pattern/pattern.h"

/* Are two operators the same? Custom operators are compared by domain and name. */
bool cleave_pattern_same_op(const cleave_op_t *a, const cleave_op_t *b);

/* The operator of an OP. */
bool cleave_pattern_test_op(const cleave_pattern_node_t *pattern, const cleave_graph_t *graph,
                            cleave_node_t node);

/* Operator and attributes of an OP (schema defaults count). */
bool cleave_pattern_test_node(const cleave_pattern_node_t *pattern, const cleave_graph_t *graph,
                              cleave_node_t node);

/* One attribute (NULL: the node has none, and no default) against one test. */
bool cleave_pattern_test_attribute(const cleave_attribute_test_t *test, const cleave_graph_t *graph,
                                   cleave_node_t node);

/* dtype, rank and sizes; symbols and expressions are left to the matcher. */
bool cleave_pattern_test_type(const cleave_type_test_t *test, const cleave_graph_t *graph,
                              cleave_value_t value);

/* Does the test look at elements, rather than at their number alone? */
bool cleave_pattern_reads_constant(const cleave_constant_test_t *test);

/* Tests the content of a constant; false if the value is not constant. */
bool cleave_pattern_test_constant(const cleave_constant_test_t *test, const cleave_graph_t *graph,
                                  cleave_value_t value);

#endif /* CLEAVE_PARTITION_PATTERN_PATTERN_TEST_H */
