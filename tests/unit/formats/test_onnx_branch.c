// SPDX-License-Identifier: Apache-2.0
// If: the branch that is taken stands in its place; the other one is not looked at; what is refused, and why.
#include "onnx_builder.h"
#include "unit.h"

// A graph attribute of the open node. Nodes, initializers and outputs until its end are those of the graph.
typedef struct branch {
  size_t node;
  size_t attribute;
  size_t graph;
} branch_t;

static branch_t begin_branch(onnx_builder_t *b, const char *name) {
  branch_t branch = {.node = b->node};
  branch.attribute = cleave_protobuf_begin(&b->graph, ONNX_NODE_ATTRIBUTE);
  cleave_protobuf_put_text(&b->graph, ONNX_ATTRIBUTE_NAME, name);
  cleave_protobuf_put_int(&b->graph, ONNX_ATTRIBUTE_TYPE, ONNX_TYPE_GRAPH);
  branch.graph = cleave_protobuf_begin(&b->graph, ONNX_ATTRIBUTE_G);
  return branch;
}

static void end_branch(onnx_builder_t *b, branch_t branch, const char *output) {
  onnx_output(b, output, CLEAVE_DTYPE_F32, NULL);
  cleave_protobuf_end(&b->graph, branch.graph);
  cleave_protobuf_end(&b->graph, branch.attribute);
  b->node = branch.node;
}

// A branch of one node.
static void put_branch(onnx_builder_t *b, const char *name, const char *op, const char *inputs) {
  branch_t branch = begin_branch(b, name);
  onnx_simple(b, op, inputs, "t");
  end_branch(b, branch, "t");
}

// y = If(c) { `yes`(x) } else { `no`(x) }
static void put_if(onnx_builder_t *b, const char *yes, const char *no) {
  onnx_node(b, "If", "c", "y");
  put_branch(b, "then_branch", yes, "x");
  put_branch(b, "else_branch", no, "x");
  onnx_end_node(b);
  onnx_output(b, "y", CLEAVE_DTYPE_F32, NULL);
}

// c: is dimension 1 of x 1?
static void put_condition(onnx_builder_t *b, const char *shape) {
  static const int64_t one = 1;
  onnx_begin(b, 8, 17);
  onnx_input(b, "x", CLEAVE_DTYPE_F32, shape);
  onnx_ints(b, "one", "", &one, 1);
  onnx_simple(b, "Shape", "x", "shape");
  onnx_simple(b, "Gather", "shape one", "size");
  onnx_simple(b, "Equal", "size one", "c");
}

// The only output is made by this operator.
static void expect_operator(onnx_builder_t *b, const char *op) {
  cleave_graph_t *graph = NULL;
  unit_ok(onnx_read(b, &graph, e));
  cleave_node_t node = cleave_value_producer(graph, cleave_graph_output(graph, 0));
  ck_assert_str_eq(cleave_node_op(graph, node)->name, op);
  ck_assert_str_eq(cleave_value_name(graph, cleave_graph_output(graph, 0)), "y");
  cleave_graph_destroy(graph);
}

UNIT_TEST(the_branch_that_a_size_decides_takes_the_place_of_the_node) {
  onnx_builder_t b;
  put_condition(&b, "N 1 3");
  put_if(&b, "Squeeze", "NoSuchOperator");
  expect_operator(&b, "Squeeze");
  put_condition(&b, "N 2 3");
  put_if(&b, "NoSuchOperator", "Relu");
  expect_operator(&b, "Relu");
}

// Both graphs name their values alike, the inner one sees what the outer one and the model have, also what
// comes later in the file; an output may be a value from outside, and an initializer.
UNIT_TEST(a_branch_has_names_of_its_own_and_sees_those_around_it) {
  static const float two = 2.0f;
  static const int64_t one = 1;
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_ints(&b, "one", "", &one, 1);
  onnx_simple(&b, "Equal", "one one", "c");
  onnx_node(&b, "If", "c", "y z v");
  branch_t outer = begin_branch(&b, "then_branch");
  onnx_floats(&b, "w", "", &two, 1);
  onnx_simple(&b, "Mul", "late w", "h");
  onnx_node(&b, "If", "c", "t");
  branch_t inner = begin_branch(&b, "then_branch");
  onnx_simple(&b, "Add", "h x", "h2");
  onnx_simple(&b, "Neg", "h2", "t");
  end_branch(&b, inner, "t");
  onnx_end_node(&b);
  onnx_output(&b, "t", CLEAVE_DTYPE_F32, NULL);
  onnx_output(&b, "w", CLEAVE_DTYPE_F32, NULL);
  end_branch(&b, outer, "x");
  onnx_end_node(&b);
  onnx_simple(&b, "Relu", "x", "late");
  onnx_simple(&b, "Abs", "y", "h");
  onnx_output(&b, "h", CLEAVE_DTYPE_F32, NULL);
  onnx_output(&b, "z", CLEAVE_DTYPE_F32, NULL);
  onnx_output(&b, "v", CLEAVE_DTYPE_F32, NULL);
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "%c = Equal(%one, %one) : unknown[...]\n"
              "%late = Relu(%x) : unknown[...]\n"
              "%If/h = Mul(%late, %z) : unknown[...]\n"
              "%If/If/h2 = Add(%If/h, %x) : unknown[...]\n"
              "%y = Neg(%If/If/h2) : unknown[...]\n"
              "%h = Abs(%y) : float32[...]\n"
              "output \"h\" = %h\n"
              "output \"z\" = %z\n"
              "output \"v\" = %x\n");
}

// In a function: the graph sees the function's names and attributes.
UNIT_TEST(a_function_may_hold_branches) {
  static const int64_t one = 1;
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_opset(&b, "local", 1);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_ints(&b, "one", "", &one, 1);
  onnx_simple(&b, "Equal", "one one", "c");
  onnx_node(&b, "f", "x c", "y");
  onnx_domain(&b, "local");
  onnx_float(&b, "slope", 0.5f);
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  cleave_text_t graph = b.graph;
  b.graph = (cleave_text_t){0};
  onnx_node(&b, "If", "k", "r");
  branch_t branch = begin_branch(&b, "then_branch");
  onnx_node(&b, "LeakyRelu", "n", "t");
  size_t mark = cleave_protobuf_begin(&b.graph, ONNX_NODE_ATTRIBUTE);
  cleave_protobuf_put_text(&b.graph, ONNX_ATTRIBUTE_NAME, "alpha");
  cleave_protobuf_put_text(&b.graph, ONNX_ATTRIBUTE_REF_ATTR_NAME, "slope");
  cleave_protobuf_end(&b.graph, mark);
  onnx_end_node(&b);
  end_branch(&b, branch, "t");
  onnx_end_node(&b);
  cleave_text_t node = b.graph; /* a GraphProto with the one node: its field 1 is the function's field 7 */
  b.graph = graph;
  mark = cleave_protobuf_begin(&b.model, ONNX_MODEL_FUNCTIONS);
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_NAME, "f");
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_DOMAIN, "local");
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_INPUT, "a");
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_INPUT, "k");
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_OUTPUT, "r");
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_ATTRIBUTE, "slope");
  onnx_function_import(&b, "", 17);
  onnx_put_node(&b.model, ONNX_FUNCTION_NODE, "Neg", "", "a", "n");
  cleave_protobuf_t reader;
  cleave_protobuf_field_t field;
  cleave_protobuf_init(&reader, cleave_text_get(&node), node.length, "GraphProto");
  ck_assert(cleave_protobuf_next(&reader, &field, NULL));
  cleave_protobuf_put_bytes(&b.model, ONNX_FUNCTION_NODE, field.bytes.data, field.bytes.size);
  cleave_protobuf_end(&b.model, mark);
  cleave_text_deinit(&node);
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "%c = Equal(%one, %one) : unknown[...]\n"
              "%f/n = Neg(%x) : unknown[...]\n"
              "%y = LeakyRelu(%f/n) {alpha = 0.5} : float32[...]\n"
              "output \"y\" = %y\n");
}

UNIT_TEST(refuses_conditions_that_are_open_and_says_what_they_lack) {
  onnx_builder_t b;
  put_condition(&b, "2 N 3");
  put_if(&b, "Relu", "Neg");
  onnx_refused(
      &b, CLEAVE_ERROR_UNSUPPORTED,
      "model: node 'y': operator 'If': its condition 'c' depends on the shape of 'x', which is open: N "
      "(a branch is taken when the file is read; --shape NAME=SIZE gives a size that has a name)");
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_input(&b, "d", CLEAVE_DTYPE_BOOL, "");
  onnx_simple(&b, "Not", "d", "c");
  put_if(&b, "Relu", "Neg");
  onnx_refused(
      &b, CLEAVE_ERROR_UNSUPPORTED,
      "model: node 'y': operator 'If': its condition 'c' depends on the content of 'd' (a branch is taken "
      "when the file is read; --fix d=VALUE decides it)");
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_simple(&b, "IsNaN", "x", "c");
  put_if(&b, "Relu", "Neg");
  onnx_refused(
      &b, CLEAVE_ERROR_UNSUPPORTED,
      "model: node 'y': operator 'If': its condition 'c' depends on the content of 'x' (a branch is taken "
      "when the file is read)");
}

// A size is fixed only if a condition needs it; of others the name stays.
UNIT_TEST(sizes_that_are_given_decide) {
  const cleave_open_size_t sizes[] = {{"M", 3}, {"N", 1}};
  const cleave_onnx_read_options_t options = {.sizes = sizes, .size_count = 2};
  const char *shapes[] = {"M N 3", "M 1 3"};
  for (int k = 0; k < 2; k++) {
    onnx_builder_t b;
    cleave_graph_t *graph = NULL;
    put_condition(&b, shapes[k]);
    put_if(&b, "Squeeze", "Relu");
    cleave_text_t bytes = onnx_finish(&b);
    unit_ok(cleave_onnx_read_memory(bytes.data, bytes.length, "model", &options, &graph, e));
    const cleave_value_record_t *x = cleave_graph_value(graph, graph->inputs.items[0]);
    ck_assert_int_eq(x->dims[1], 1);
    ck_assert(k == 0 ? x->dims[0] == 3 : cleave_dim_is_symbolic(x->dims[0]));
    cleave_graph_destroy(graph);
    cleave_text_deinit(&bytes);
  }
}

// ---- inputs that are fixed ----

static cleave_status_t read_fixed(onnx_builder_t *b, const char *name, const char *value,
                                  cleave_graph_t **out_graph, cleave_error_t *error) {
  const cleave_fixed_input_t fixed = {.name = name, .value = value};
  const cleave_onnx_read_options_t options = {.fixed_inputs = &fixed, .fixed_input_count = 1};
  cleave_text_t bytes = onnx_finish(b);
  cleave_status_t status =
      cleave_onnx_read_memory(bytes.data, bytes.length, "model", &options, out_graph, error);
  cleave_text_deinit(&bytes);
  return status;
}

// x, and `flag`, which is a condition of one element.
static void put_flag(onnx_builder_t *b, const char *dims) {
  onnx_begin(b, 8, 17);
  onnx_input(b, "flag", CLEAVE_DTYPE_BOOL, dims);
  onnx_input(b, "x", CLEAVE_DTYPE_F32, "2");
}

UNIT_TEST(an_input_that_is_fixed_decides) {
  const char *values[] = {"false", "true"};
  for (int k = 0; k < 2; k++) {
    onnx_builder_t b;
    cleave_graph_t *graph = NULL;
    put_flag(&b, k == 0 ? "" : "1");
    onnx_node(&b, "If", "flag", "y");
    put_branch(&b, "then_branch", k == 0 ? "NoSuchOperator" : "Relu", "x");
    put_branch(&b, "else_branch", k == 0 ? "Neg" : "NoSuchOperator", "x");
    onnx_end_node(&b);
    onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
    unit_ok(read_fixed(&b, "flag", values[k], &graph, e));
    onnx_expect_graph(graph,
                      k == 0 ? "input %x : float32[2]\n%y = Neg(%x) : float32[...]\noutput \"y\" = %y\n"
                             : "input %x : float32[2]\n%y = Relu(%x) : float32[...]\noutput \"y\" = %y\n");
  }
}

// An If inside depends on it, too; the branch has names of values around it for its own, of the file's weight
// and of the output of the If; its initializer stays its own.
UNIT_TEST(a_fixed_input_decides_branches_of_branches_with_names_of_their_own) {
  static const float two[] = {2, 2};
  onnx_builder_t b;
  cleave_graph_t *graph = NULL;
  put_flag(&b, "1");
  onnx_floats(&b, "w", "2", two, 2);
  onnx_simple(&b, "Mul", "x w", "h");
  onnx_node(&b, "If", "flag", "y z");
  branch_t outer = begin_branch(&b, "then_branch");
  onnx_floats(&b, "w", "2", two, 2);
  onnx_simple(&b, "Add", "x w", "h0");
  onnx_simple(&b, "Not", "flag", "no");
  onnx_node(&b, "If", "no", "z");
  put_branch(&b, "then_branch", "NoSuchOperator", "x");
  branch_t inner = begin_branch(&b, "else_branch");
  onnx_simple(&b, "Sub", "h0 h", "x2");
  end_branch(&b, inner, "x2");
  onnx_end_node(&b);
  onnx_output(&b, "z", CLEAVE_DTYPE_F32, NULL);
  end_branch(&b, outer, "h0");
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  onnx_output(&b, "z", CLEAVE_DTYPE_F32, NULL);
  unit_ok(read_fixed(&b, "flag", "1", &graph, e));
  onnx_expect_graph(graph,
                    "input %x : float32[2]\n"
                    "%h = Mul(%x, %w) : unknown[...]\n"
                    "%z = Add(%x, %If/w) : float32[...]\n"
                    "%If/no = Not(%flag) : unknown[...]\n"
                    "%y = Sub(%z, %h) : float32[...]\n"
                    "output \"y\" = %y\n"
                    "output \"z\" = %z\n");
}

UNIT_TEST(refuses_branches_of_fixed_inputs_that_do_not_fit) {
  cleave_graph_t *graph = NULL;
  onnx_builder_t b;
  put_flag(&b, "1");
  put_if(&b, "Relu", "Neg");
  unit_fails(read_fixed(&b, "flag", "yes", &graph, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "model: input 'flag': expected a value of bool to fix it, found 'yes'");
  put_flag(&b, "1");
  put_if(&b, "Relu", "Neg");
  unit_fails(read_fixed(&b, "flog", "true", &graph, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "model: expected an input to fix, found 'flog' (did you mean 'flag'?); the model's inputs are: "
             "flag, x");
  put_flag(&b, "2");
  put_if(&b, "Relu", "Neg");
  unit_fails(read_fixed(&b, "flag", "true", &graph, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "model: input 'flag': expected one number or bool to fix it, found bool[2]");
  put_flag(&b, "1");
  onnx_node(&b, "If", "flag", "y");
  put_branch(&b, "then_branch", "Relu", "nowhere");
  put_branch(&b, "else_branch", "Relu", "x");
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, NULL);
  unit_fails(read_fixed(&b, "flag", "true", &graph, e), CLEAVE_ERROR_FORMAT,
             "model: node 't': operator 'Relu' reads value 'nowhere', which is not defined");
  put_flag(&b, "1");
  onnx_node(&b, "If", "flag", "y z");
  put_branch(&b, "then_branch", "Relu", "x");
  put_branch(&b, "else_branch", "Relu", "x");
  onnx_end_node(&b);
  onnx_output(&b, "z", CLEAVE_DTYPE_F32, NULL);
  unit_fails(read_fixed(&b, "flag", "false", &graph, e), CLEAVE_ERROR_FORMAT,
             "model: node 'y': 'else_branch' has 1 output, expected 2");
}

UNIT_TEST(refuses_conditions_that_are_none) {
  static const int64_t one = 1;
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_ints(&b, "c", "", &one, 1);
  put_if(&b, "Relu", "Neg");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT,
               "model: node 'y': operator 'If': expected a condition of one bool, found 1 of int64");
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_simple(&b, "Greater", "y x", "c");
  put_if(&b, "Relu", "Neg");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT,
               "model: node 'y': operator 'If': its condition is not defined, or depends on its own output");
}

UNIT_TEST(refuses_branches_that_do_not_fit) {
  onnx_builder_t b;
  put_condition(&b, "N 1 3");
  onnx_node(&b, "If", "c", "y z");
  put_branch(&b, "then_branch", "Relu", "x");
  onnx_end_node(&b);
  onnx_refused(&b, CLEAVE_ERROR_FORMAT, "model: node 'y': 'then_branch' has 1 output, expected 2");
  put_condition(&b, "N 1 3");
  onnx_node(&b, "If", "c", "y");
  put_branch(&b, "else_branch", "Relu", "x");
  onnx_end_node(&b);
  onnx_refused(&b, CLEAVE_ERROR_FORMAT, "model: node 'y': operator 'If': it has no graph 'then_branch'");
}

UNIT_TEST(refuses_other_operators_with_graphs) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_node(&b, "Loop", "- - x", "y");
  put_branch(&b, "body", "Relu", "x");
  onnx_end_node(&b);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED,
               "model: node 'y': operator 'Loop': attribute 'body' is a graph, which is read for If alone");
}

// f calls itself in its branch, twice.
UNIT_TEST(refuses_functions_that_call_themselves_by_branches) {
  static const int64_t one = 1;
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_opset(&b, "local", 1);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_ints(&b, "one", "", &one, 1);
  onnx_simple(&b, "Equal", "one one", "c");
  onnx_node(&b, "f", "x c", "y");
  onnx_domain(&b, "local");
  onnx_end_node(&b);
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  size_t function = cleave_protobuf_begin(&b.model, ONNX_MODEL_FUNCTIONS);
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_NAME, "f");
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_DOMAIN, "local");
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_INPUT, "a");
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_INPUT, "k");
  cleave_protobuf_put_text(&b.model, ONNX_FUNCTION_OUTPUT, "r");
  onnx_function_import(&b, "", 17);
  onnx_function_import(&b, "local", 1);
  size_t node = cleave_protobuf_begin(&b.model, ONNX_FUNCTION_NODE);
  cleave_protobuf_put_text(&b.model, ONNX_NODE_INPUT, "k");
  cleave_protobuf_put_text(&b.model, ONNX_NODE_OUTPUT, "r");
  cleave_protobuf_put_text(&b.model, ONNX_NODE_OP_TYPE, "If");
  size_t attribute = cleave_protobuf_begin(&b.model, ONNX_NODE_ATTRIBUTE);
  cleave_protobuf_put_text(&b.model, ONNX_ATTRIBUTE_NAME, "then_branch");
  size_t graph = cleave_protobuf_begin(&b.model, ONNX_ATTRIBUTE_G);
  onnx_put_node(&b.model, ONNX_GRAPH_NODE, "f", "local", "a k", "h");
  onnx_put_node(&b.model, ONNX_GRAPH_NODE, "f", "local", "h k", "t");
  onnx_put_value_info(&b.model, ONNX_GRAPH_OUTPUT, "t", CLEAVE_DTYPE_F32, NULL);
  cleave_protobuf_end(&b.model, graph);
  cleave_protobuf_end(&b.model, attribute);
  cleave_protobuf_end(&b.model, node);
  cleave_protobuf_end(&b.model, function);
  cleave_graph_t *read = NULL;
  unit_fails_with(onnx_read(&b, &read, e), CLEAVE_ERROR_LIMIT, "functions and branches");
}

UNIT_SUITE("onnx_branch")
