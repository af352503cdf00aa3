// SPDX-License-Identifier: Apache-2.0
/* Reading models: names and order, weights, external data, functions, and what is refused with which words.
 */
#include <sys/stat.h>

#include "onnx_builder.h"
#include "ops/infer.h"
#include "unit.h"

UNIT_TEST(reads_inputs_nodes_and_outputs_in_order) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "1 3 N ?");
  onnx_input(&b, "y", CLEAVE_DTYPE_I64, NULL);
  onnx_simple(&b, "Relu", "x", "r");
  onnx_node(&b, "Transpose", "r", "t");
  onnx_int_list(&b, "perm", (int64_t[]){1, 0, 2, 3}, 4);
  onnx_end_node(&b);
  onnx_output(&b, "t", CLEAVE_DTYPE_F32, "3 1 N M");
  onnx_output(&b, "r", CLEAVE_DTYPE_F32, NULL);
  onnx_expect(&b,
              "input %x : float32[1, 3, N, ?]\n"
              "input %y : int64[...]\n"
              "%r = Relu(%x) : float32[...]\n"
              "%t = Transpose(%r) {perm = [1, 0, 2, 3]} : float32[...]\n"
              "output \"t\" = %t\n"
              "output \"r\" = %r\n");
}

UNIT_TEST(records_versions_and_names) {
  onnx_builder_t b;
  cleave_graph_t *graph = NULL;
  onnx_begin(&b, 7, 13);
  cleave_protobuf_put_text(&b.graph, ONNX_GRAPH_NAME, "net");
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_simple(&b, "Relu", "x", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  unit_ok(onnx_read(&b, &graph, e));
  ck_assert_int_eq(graph->opset_version, 13);
  ck_assert_int_eq(graph->ir_version, 7);
  ck_assert_str_eq(cleave_strings_text(&graph->strings, graph->name), "net");
  ck_assert_str_eq(cleave_strings_text(&graph->strings, graph->source), "model");
  cleave_graph_destroy(graph);
}

UNIT_TEST(initializers_among_the_inputs_are_constants) {
  onnx_builder_t b;
  onnx_begin(&b, 3, 9);
  onnx_input(&b, "w", CLEAVE_DTYPE_F32, "2");
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_floats(&b, "w", "2", (float[]){1, 2}, 2);
  onnx_simple(&b, "Add", "x w", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "%y = Add(%x, %w) : float32[2]\n"
              "output \"y\" = %y\n");
}

UNIT_TEST(nodes_may_come_in_any_order) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_simple(&b, "Add", "b a", "c");
  onnx_simple(&b, "Relu", "a", "b");
  onnx_simple(&b, "Neg", "x", "a");
  onnx_output(&b, "c", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "%a = Neg(%x) : unknown[...]\n"
              "%b = Relu(%a) : unknown[...]\n"
              "%c = Add(%b, %a) : float32[...]\n"
              "output \"c\" = %c\n");
}

UNIT_TEST(names_the_value_that_nobody_defines) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_simple(&b, "Relu", "a", "b");
  onnx_simple(&b, "Add", "x nothing", "a");
  onnx_output(&b, "b", CLEAVE_DTYPE_F32, "2");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT,
               "model: node 'a': operator 'Add' reads value 'nothing', which is not defined");
}

UNIT_TEST(tells_a_cycle) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_simple(&b, "Add", "x b", "a");
  onnx_simple(&b, "Relu", "a", "b");
  onnx_output(&b, "b", CLEAVE_DTYPE_F32, "2");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT, "model: node 'a': operator 'Add' depends on its own output");
}

UNIT_TEST(refuses_values_defined_twice) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_simple(&b, "Relu", "x", "y");
  onnx_simple(&b, "Neg", "x", "y");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT, "model: node 'y': value 'y' is defined twice");
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT, "model: value 'x' is defined twice");
  onnx_begin(&b, 8, 17);
  onnx_ints(&b, "w", "1", (int64_t[]){1}, 1);
  onnx_ints(&b, "w", "1", (int64_t[]){2}, 1);
  onnx_refused(&b, CLEAVE_ERROR_FORMAT, "model: value 'w' is defined twice");
}

UNIT_TEST(refuses_an_output_that_is_not_defined) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_output(&b, "z", CLEAVE_DTYPE_F32, "2");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT, "model: output 'z' is not defined");
}

UNIT_TEST(graph_outputs_may_be_inputs_constants_and_each_other) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_floats(&b, "w", "1", (float[]){1}, 1);
  onnx_simple(&b, "Identity", "x", "a");
  onnx_simple(&b, "Identity", "w", "b");
  onnx_simple(&b, "Identity", "a", "c");
  onnx_output(&b, "a", CLEAVE_DTYPE_F32, "2");
  onnx_output(&b, "b", CLEAVE_DTYPE_F32, "1");
  onnx_output(&b, "c", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "output \"a\" = %x\n"
              "output \"b\" = %w\n"
              "output \"c\" = %x\n");
}

UNIT_TEST(unknown_operators_are_kept_with_their_declared_types) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_opset(&b, "com.example", 3);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_node(&b, "Frobnicate", "x - x", "y - z");
  onnx_domain(&b, "com.example");
  onnx_float(&b, "speed", 0.5f);
  onnx_end_node(&b);
  onnx_value_info(&b, "y", CLEAVE_DTYPE_F16, "2 4");
  onnx_output(&b, "z", CLEAVE_DTYPE_BOOL, "");
  cleave_graph_t *graph = NULL;
  unit_ok(onnx_read(&b, &graph, e));
  cleave_node_t node = {0};
  ck_assert_uint_eq(cleave_node_op(graph, node)->id, CLEAVE_OP_ID_CUSTOM);
  ck_assert_str_eq(cleave_node_op(graph, node)->domain, "com.example");
  ck_assert_uint_eq(cleave_node_output_count(graph, node), 3);
  onnx_expect_graph(
      graph,
      "input %x : float32[2]\n"
      "%y, %2, %z = com.example.Frobnicate(%x, _, %x) {speed = 0.5} : float16[2, 4], unknown[...], "
      "bool[]\n"
      "output \"z\" = %z\n");
}

/* The batch size of the input was edited, the output still says 1. */
UNIT_TEST(stale_shapes_of_outputs_do_no_harm) {
  onnx_builder_t b;
  cleave_graph_t *graph = NULL;
  cleave_infer_options_t options = {0};
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "N 3");
  onnx_simple(&b, "Relu", "x", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "1 3");
  unit_ok(onnx_read(&b, &graph, e));
  unit_ok(cleave_graph_infer(graph, &options, NULL, e));
  onnx_expect_graph(graph,
                    "input %x : float32[N, 3]\n"
                    "%y = Relu(%x) : float32[N, 3]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(checks_nodes_against_their_schemas) {
  onnx_builder_t b;
  cleave_graph_t *graph = NULL;
  onnx_begin(&b, 8, 17);
  onnx_simple(&b, "Relu", "", "y");
  unit_fails_with(onnx_read(&b, &graph, e), CLEAVE_ERROR_FORMAT, "Relu");
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_node(&b, "Relu", "x", "y");
  onnx_int(&b, "slope", 1);
  onnx_end_node(&b);
  unit_fails_with(onnx_read(&b, &graph, e), CLEAVE_ERROR_FORMAT, "slope");
}

UNIT_TEST(newer_operator_sets_are_read_where_they_say_the_same) {
  onnx_builder_t b;
  onnx_begin(&b, 10, 24);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_simple(&b, "Relu", "x", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "%y = Relu(%x) : float32[...]\n"
              "output \"y\" = %y\n");
  onnx_begin(&b, 10, 24);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_node(&b, "Cast", "x", "y");
  onnx_int(&b, "to", 10);
  onnx_text(&b, "round_mode", "up");
  onnx_end_node(&b);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED,
               "model: node 'y': operator 'Cast' of opset 24: attribute 'round_mode' is not known (opsets up "
               "to 22 are)");
}

UNIT_TEST(refuses_what_is_no_model) {
  onnx_builder_t b;
  cleave_graph_t *graph = NULL;
  unit_fails(cleave_onnx_read_memory(NULL, 0, "empty", NULL, &graph, e), CLEAVE_ERROR_FORMAT,
             "empty: not an ONNX model: it has no graph");
  unit_fails_with(cleave_onnx_read_memory("hello, world", 12, "text", NULL, &graph, e), CLEAVE_ERROR_FORMAT,
                  "text: protobuf: ModelProto is malformed");
  onnx_begin(&b, 2, 1);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED, "model: IR version 2 is not supported, expected 3 or later");
  onnx_begin(&b, 8, 0);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_simple(&b, "Relu", "x", "y");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT,
               "model: node 'y': the model imports no operator set for operator 'Relu'");
  unit_fails_with(cleave_onnx_read("/nonexistent/model.onnx", NULL, &graph, e), CLEAVE_ERROR_IO,
                  "/nonexistent/model.onnx: cannot open");
}

UNIT_TEST(refuses_names_with_zero_bytes) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  size_t mark = cleave_protobuf_begin(&b.graph, ONNX_GRAPH_NODE);
  cleave_protobuf_put_text(&b.graph, ONNX_NODE_INPUT, "x");
  cleave_protobuf_put_text(&b.graph, ONNX_NODE_OUTPUT, "y");
  cleave_protobuf_put_bytes(&b.graph, ONNX_NODE_OP_TYPE, "Relu\0x", 6);
  cleave_protobuf_end(&b.graph, mark);
  onnx_refused(&b, CLEAVE_ERROR_FORMAT, "model: a name has a zero byte behind 'Relu'");
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  mark = cleave_protobuf_begin(&b.graph, ONNX_GRAPH_NODE);
  cleave_protobuf_put_bytes(&b.graph, ONNX_NODE_INPUT, "x\0z", 3);
  cleave_protobuf_put_text(&b.graph, ONNX_NODE_OUTPUT, "y");
  cleave_protobuf_put_text(&b.graph, ONNX_NODE_OP_TYPE, "Relu");
  cleave_protobuf_end(&b.graph, mark);
  onnx_refused(&b, CLEAVE_ERROR_FORMAT,
               "model: node 'y': operator 'Relu': a name has a zero byte behind 'x'");
}

UNIT_TEST(refuses_types_other_than_tensors) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  size_t info = cleave_protobuf_begin(&b.graph, ONNX_GRAPH_INPUT);
  cleave_protobuf_put_text(&b.graph, ONNX_VALUE_NAME, "s");
  size_t type = cleave_protobuf_begin(&b.graph, ONNX_VALUE_TYPE);
  cleave_protobuf_put_bytes(&b.graph, ONNX_TYPE_PROTO_SEQUENCE, "", 0);
  cleave_protobuf_end(&b.graph, type);
  cleave_protobuf_end(&b.graph, info);
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED, "model: input 's' is a sequence: not supported");
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", 17, "2");
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED,
               "model: input 'x' has element type 17 (float8e4m3fn): not supported");
  onnx_begin(&b, 8, 17);
  onnx_input(&b, "x", 1, "1 1 1 1 1 1 1 1 1");
  onnx_refused(&b, CLEAVE_ERROR_UNSUPPORTED, "model: input 'x' has more than 8 dimensions");
}

/* ---- model-local functions ---- */

/* Without imports. */
static size_t begin_bare_function(onnx_builder_t *b, const char *name, const char *input,
                                  const char *output) {
  size_t mark = cleave_protobuf_begin(&b->model, ONNX_MODEL_FUNCTIONS);
  cleave_protobuf_put_text(&b->model, ONNX_FUNCTION_NAME, name);
  cleave_protobuf_put_text(&b->model, ONNX_FUNCTION_DOMAIN, "local");
  cleave_protobuf_put_text(&b->model, ONNX_FUNCTION_INPUT, input);
  cleave_protobuf_put_text(&b->model, ONNX_FUNCTION_OUTPUT, output);
  return mark;
}

static size_t begin_function(onnx_builder_t *b, const char *name, const char *input, const char *output) {
  size_t mark = begin_bare_function(b, name, input, output);
  onnx_function_import(b, "", 17);
  onnx_function_import(b, "local", 1);
  return mark;
}

static void call(onnx_builder_t *b, const char *name, const char *inputs, const char *outputs) {
  onnx_node(b, name, inputs, outputs);
  onnx_domain(b, "local");
  onnx_end_node(b);
}

UNIT_TEST(functions_are_inlined_with_fresh_names) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_opset(&b, "local", 1);
  size_t mark = begin_function(&b, "twice", "a", "c");
  onnx_put_node(&b.model, ONNX_FUNCTION_NODE, "Neg", "", "a", "b");
  onnx_put_node(&b.model, ONNX_FUNCTION_NODE, "Neg", "", "b", "c");
  cleave_protobuf_end(&b.model, mark);
  mark = begin_function(&b, "four", "a", "b");
  onnx_put_node(&b.model, ONNX_FUNCTION_NODE, "twice", "local", "a", "t");
  onnx_put_node(&b.model, ONNX_FUNCTION_NODE, "twice", "local", "t", "b");
  cleave_protobuf_end(&b.model, mark);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  call(&b, "four", "x", "b");
  onnx_simple(&b, "Relu", "b", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "%four/twice/b = Neg(%x) : unknown[...]\n"
              "%four/t = Neg(%four/twice/b) : unknown[...]\n"
              "%four/twice.1/b = Neg(%four/t) : unknown[...]\n"
              "%b = Neg(%four/twice.1/b) : unknown[...]\n"
              "%y = Relu(%b) : float32[...]\n"
              "output \"y\" = %y\n");
}

static onnx_builder_t model_of_function(const char *op_type, const char *domain, const char *import) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_opset(&b, "local", 1);
  size_t mark = begin_bare_function(&b, "f", "a", "b");
  if (import != NULL) {
    onnx_function_import(&b, import, 1);
  }
  onnx_put_node(&b.model, ONNX_FUNCTION_NODE, op_type, domain, "a", "b");
  cleave_protobuf_end(&b.model, mark);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  call(&b, "f", "x", "y");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2");
  return b;
}

UNIT_TEST(refuses_functions_that_do_not_import_what_they_use) {
  onnx_builder_t b = model_of_function("Neg", "", NULL);
  onnx_refused(
      &b, CLEAVE_ERROR_FORMAT,
      "model: function 'f': node 'b': it imports no operator set of domain 'ai.onnx' for operator 'Neg' "
      "(--lenient takes the model's)");
  b = model_of_function("Neg", "", "local");
  onnx_refused(
      &b, CLEAVE_ERROR_FORMAT,
      "model: function 'f': node 'b': it imports no operator set of domain 'ai.onnx' for operator 'Neg' "
      "(--lenient takes the model's)");
  b = model_of_function("Frob", "elsewhere", "local");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT,
               "model: function 'f': node 'b': it imports no operator set of domain 'elsewhere' for operator "
               "'Frob'");
}

UNIT_TEST(functions_without_imports_have_those_of_the_model_leniently) {
  onnx_builder_t b = model_of_function("Neg", "", NULL);
  cleave_onnx_read_options_t options = {.lenient = true};
  cleave_graph_t *graph = NULL;
  cleave_text_t bytes = onnx_finish(&b);
  unit_ok(cleave_onnx_read_memory(bytes.data, bytes.length, "model", &options, &graph, e));
  cleave_text_deinit(&bytes);
  onnx_expect_graph(graph,
                    "input %x : float32[2]\n"
                    "%y = Neg(%x) : float32[...]\n"
                    "output \"y\" = %y\n");
}

UNIT_TEST(functions_take_attributes_of_the_call) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  size_t mark = begin_function(&b, "leaky", "a", "b");
  size_t node = cleave_protobuf_begin(&b.model, ONNX_FUNCTION_NODE);
  cleave_protobuf_put_text(&b.model, ONNX_NODE_INPUT, "a");
  cleave_protobuf_put_text(&b.model, ONNX_NODE_OUTPUT, "b");
  cleave_protobuf_put_text(&b.model, ONNX_NODE_OP_TYPE, "LeakyRelu");
  size_t attribute = cleave_protobuf_begin(&b.model, ONNX_NODE_ATTRIBUTE);
  cleave_protobuf_put_text(&b.model, ONNX_ATTRIBUTE_NAME, "alpha");
  cleave_protobuf_put_text(&b.model, ONNX_ATTRIBUTE_REF_ATTR_NAME, "slope");
  cleave_protobuf_put_int(&b.model, ONNX_ATTRIBUTE_TYPE, ONNX_TYPE_FLOAT);
  cleave_protobuf_end(&b.model, attribute);
  cleave_protobuf_end(&b.model, node);
  cleave_protobuf_end(&b.model, mark);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  onnx_node(&b, "leaky", "x", "y");
  onnx_domain(&b, "local");
  onnx_float(&b, "slope", 0.25f);
  onnx_end_node(&b);
  call(&b, "leaky", "y", "z");
  onnx_output(&b, "z", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "%y = LeakyRelu(%x) {alpha = 0.25} : unknown[...]\n"
              "%z = LeakyRelu(%y) : float32[...]\n"
              "output \"z\" = %z\n");
}

UNIT_TEST(a_function_may_hand_its_input_on) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  size_t mark = begin_function(&b, "nothing", "a", "a");
  cleave_protobuf_end(&b.model, mark);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  call(&b, "nothing", "x", "y");
  onnx_simple(&b, "Relu", "y", "z");
  onnx_output(&b, "z", CLEAVE_DTYPE_F32, "2");
  onnx_expect(&b,
              "input %x : float32[2]\n"
              "%z = Relu(%x) : float32[...]\n"
              "output \"z\" = %z\n");
}

UNIT_TEST(refuses_functions_that_call_themselves) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  size_t mark = begin_function(&b, "f", "a", "b");
  onnx_put_node(&b.model, ONNX_FUNCTION_NODE, "g", "local", "a", "b");
  cleave_protobuf_end(&b.model, mark);
  mark = begin_function(&b, "g", "a", "b");
  onnx_put_node(&b.model, ONNX_FUNCTION_NODE, "f", "local", "a", "b");
  cleave_protobuf_end(&b.model, mark);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  call(&b, "f", "x", "y");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT, "model: function 'f' calls itself");
}

UNIT_TEST(refuses_functions_that_explode) {
  onnx_builder_t b;
  char name[16];
  char callee[16];
  onnx_begin(&b, 8, 17);
  for (int k = 0; k < 30; k++) { /* each calls the next one four times: 4^29 nodes */
    (void)snprintf(name, sizeof name, "f%d", k);
    (void)snprintf(callee, sizeof callee, "f%d", k + 1);
    size_t mark = begin_function(&b, name, "a", "b");
    for (int c = 0; c < 4; c++) {
      onnx_put_node(&b.model, ONNX_FUNCTION_NODE, callee, "local", "a", c == 0 ? "b" : "-");
    }
    cleave_protobuf_end(&b.model, mark);
  }
  size_t mark = begin_function(&b, "f30", "a", "b");
  cleave_protobuf_end(&b.model, mark);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  call(&b, "f0", "x", "y");
  cleave_graph_t *graph = NULL;
  unit_fails_with(onnx_read(&b, &graph, e), CLEAVE_ERROR_LIMIT, "': too many calls");
}

UNIT_TEST(refuses_calls_with_too_many_inputs) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  size_t mark = begin_function(&b, "f", "a", "b");
  onnx_put_node(&b.model, ONNX_FUNCTION_NODE, "Neg", "", "a", "b");
  cleave_protobuf_end(&b.model, mark);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2");
  call(&b, "f", "x x", "y");
  onnx_refused(&b, CLEAVE_ERROR_FORMAT,
               "model: node 'y': function 'f' has 1 input and 1 output, found 2 and 1");
}

UNIT_SUITE("onnx_read")
