// SPDX-License-Identifier: Apache-2.0
// Graphs that are the same but for the content of constants, what tells others apart, and constants shared.
#include "graph/compare/same_structure.h"

#include "graph/clone.h"
#include "plan_case.h"
#include "unit.h"

static const char *difference(const char *text, const char *other) {
  cleave_text_t difference = {0};
  bool same = cleave_graph_has_structure_of(plan_case_graph(text), plan_case_graph(other), &difference);
  ck_assert(same == (difference.length == 0));
  return plan_case_keep(difference.data);
}

UNIT_TEST(the_same_steps_give_the_same_structure) {
  ck_assert_ptr_null(difference("y = Relu(x); -> y", "y = Relu(x); -> y"));
  ck_assert_ptr_null(difference("y = Add(x, #1); -> y", "y = Add(x, #2); -> y"));
  ck_assert_ptr_null(difference("y = Relu(x); -> y", "z = Relu(v); -> z"));
}

UNIT_TEST(the_first_difference_is_named) {
  ck_assert_str_eq(difference("y = Relu(x); -> y", "y = Exp(x); -> y"), "node 'y' is another operator");
  ck_assert_str_eq(difference("y = LeakyRelu{alpha=0.5}(x); -> y", "y = LeakyRelu{alpha=0.25}(x); -> y"),
                   "node 'y' has another attribute 'alpha'");
  ck_assert_str_eq(difference("y = LeakyRelu{alpha=0.5}(x); -> y", "y = LeakyRelu(x); -> y"),
                   "node 'y' has another attribute 'alpha'");
  ck_assert_str_eq(difference("a = Relu(x); y = Add(a, x); -> y", "a = Relu(x); y = Add(x, a); -> y"),
                   "node 'y' has other inputs or outputs");
  ck_assert_str_eq(difference("y = Add(x, $w); -> y", "y = Add(x, w); -> y"),
                   "value 'w' is made in another way");
  ck_assert_str_eq(difference("y = Add(x, $w); -> y", "y = Add(x, #1); -> y"), "value 'w' has another type");
  ck_assert_ptr_nonnull(strstr(difference("y = Relu(x); -> y", "y = Relu(x); z = Exp(y); -> z"), "expected"));
  ck_assert_str_eq(difference("a = Relu(x); b = Exp(x); -> a, b", "a = Relu(x); b = Exp(x); -> b, a"),
                   "it has other inputs or outputs");
}

UNIT_TEST(nobody_has_to_hear_what_differs) {
  ck_assert(!cleave_graph_has_structure_of(plan_case_graph("y = Relu(x); -> y"),
                                           plan_case_graph("y = Exp(x); -> y"), NULL));
}

static cleave_value_t find_constant(const cleave_graph_t *graph, uint32_t number) {
  uint32_t k = 0;
  while (graph->values.items[k].tensor == NULL || number-- > 0) {
    k++;
  }
  return (cleave_value_t){k};
}

UNIT_TEST(equal_constants_become_one_tensor_and_others_go) {
  cleave_graph_t *graph = plan_case_graph("a = Add(x, #1); b = Add(a, #2); -> b");
  cleave_graph_t *copy = NULL;
  cleave_tensor_t *one = NULL;
  cleave_tensor_t *five = NULL;
  unit_ok(cleave_graph_copy(graph, &copy, e));
  unit_ok(cleave_tensor_create_float(1, &one, e));
  unit_ok(cleave_tensor_create_float(5, &five, e));
  unit_ok(cleave_graph_set_constant(copy, find_constant(copy, 0), one, e));
  unit_ok(cleave_graph_set_constant(copy, find_constant(copy, 1), five, e));
  ck_assert_uint_eq(copy->tensors.count, 4);
  unit_ok(cleave_graph_share_constants(copy, graph, e));
  ck_assert_uint_eq(copy->tensors.count, 2);
  ck_assert_ptr_eq(cleave_graph_value(copy, find_constant(copy, 0))->tensor,
                   cleave_graph_value(graph, find_constant(graph, 0))->tensor);
  ck_assert_ptr_eq(cleave_graph_value(copy, find_constant(copy, 1))->tensor, five);
  ck_assert_int_eq(one->references, 1);
  ck_assert_int_eq(five->references, 2);
  cleave_graph_destroy(copy);
  cleave_tensor_release(one);
  cleave_tensor_release(five);
}

UNIT_TEST(tensors_are_the_same_bit_by_bit) {
  const int64_t dims[1] = {2};
  cleave_tensor_t *a = NULL;
  cleave_tensor_t *b = NULL;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_STRING, 1, dims, &a, e));
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_STRING, 1, dims, &b, e));
  ck_assert(cleave_tensor_is_same(a, b));
  unit_ok(cleave_tensor_set_string(a, 1, "text", 4, e));
  ck_assert(!cleave_tensor_is_same(a, b));
  unit_ok(cleave_tensor_set_string(b, 1, "text", 4, e));
  ck_assert(cleave_tensor_is_same(a, b));
  cleave_tensor_release(a);
  cleave_tensor_release(b);
  unit_ok(cleave_tensor_create_float(0.0F, &a, e));
  unit_ok(cleave_tensor_create_float(-0.0F, &b, e));
  ck_assert(!cleave_tensor_is_same(a, b));
  cleave_tensor_release(b);
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, dims, &b, e));
  ck_assert(!cleave_tensor_is_same(a, b));
  cleave_tensor_release(a);
  cleave_tensor_release(b);
}

UNIT_SUITE("same_structure")
