// SPDX-License-Identifier: Apache-2.0
/* Model scripts: the graphs that they build, seeded weights, and errors at the script's line. */
#include <math.h>
#include <unistd.h>

#include "graph/print.h"
#include "graph/verify.h"
#include "ops/ops.h"
#include "script/model_script.h"
#include "system/file.h"
#include "unit.h"

/* Runs the text as the file "m_<process>.lua" of the build folder. */
static cleave_status_t load_with(const char *text, const cleave_setting_t *settings, size_t count,
                                 uint64_t seed, cleave_graph_t **graph, cleave_error_t *error) {
  char path[64];
  (void)snprintf(path, sizeof path, "/tmp/cleave_m_%ld.lua", (long)getpid());
  CLEAVE_TRY(cleave_file_write(path, text, strlen(text), error));
  cleave_status_t status = cleave_model_script_load(
      NULL, path, &(cleave_script_settings_t){.items = settings, .count = count}, seed, graph, error);
  (void)unlink(path);
  return status;
}

static cleave_graph_t *load(const char *text) {
  cleave_graph_t *graph = NULL;
  unit_ok(load_with(text, NULL, 0, 0, &graph, e));
  unit_ok(cleave_graph_verify(graph, e));
  return graph;
}

/* The message without the file's name: ":2: text". */
static void fails(const char *text, cleave_status_t status, const char *message) {
  cleave_graph_t *graph = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t found = load_with(text, NULL, 0, 0, &graph, &error);
  ck_assert_msg(found == status, "%s: status %d: %s", text, found, error.message);
  ck_assert_ptr_null(graph);
  const char *after = strstr(error.message, ".lua:");
  ck_assert_ptr_nonnull(after);
  ck_assert_str_eq(after + 4, message);
}

static void shape_is(const cleave_graph_t *graph, cleave_value_t value, const char *expected) {
  cleave_text_t text = {0};
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  cleave_shape_print(graph->dims, record->rank, record->dims, &text);
  ck_assert_str_eq(cleave_text_get(&text), expected);
  cleave_text_deinit(&text);
}

static cleave_node_t node_of(const cleave_graph_t *graph, const char *op, uint32_t which) {
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    cleave_node_t node = {k};
    if (cleave_node_is_live(graph, node) && strcmp(cleave_node_op(graph, node)->name, op) == 0 &&
        which-- == 0) {
      return node;
    }
  }
  ck_abort_msg("no node %s", op);
  return CLEAVE_NODE_NONE;
}

static uint32_t count_of(const cleave_graph_t *graph, const char *op) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    cleave_node_t node = {k};
    count += cleave_node_is_live(graph, node) && strcmp(cleave_node_op(graph, node)->name, op) == 0 ? 1 : 0;
  }
  return count;
}

static const cleave_tensor_t *constant_named(const cleave_graph_t *graph, const char *name) {
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    cleave_value_t value = {k};
    if (cleave_value_is_constant(graph, value) && strcmp(cleave_value_name(graph, value), name) == 0) {
      return cleave_graph_value(graph, value)->tensor;
    }
  }
  ck_abort_msg("no constant %s", name);
  return NULL;
}

#define INPUT "local x = g.input('x', 'float32', { 1, 3, 8, 8 })\n"

/* ---- building ---- */

UNIT_TEST(builds_nodes_with_shapes_names_and_lines) {
  cleave_graph_t *graph =
      load(INPUT
           "local y = g.Conv(x, g.weight { 4, 3, 3, 3, name = 'w' }, { strides = { 2, 2 },\n"
           "  pads = { 1, 1, 1, 1 }, name = 'first' })\n"
           "assert(y.shape[2] == 4 and y.shape[3] == 4 and y.dtype == 'float32')\n"
           "assert(y.producer.op == 'Conv' and y.name == 'first' and x.is_input)\n"
           "y = g.Relu(y)\n"
           "g.output('result', g.Relu(y))\n");
  ck_assert_uint_eq(graph->live_node_count, 3);
  cleave_node_t conv = node_of(graph, "Conv", 0);
  ck_assert_str_eq(cleave_node_name(graph, conv), "first");
  ck_assert_int_eq(cleave_graph_node(graph, conv)->line, 2);
  uint32_t count = 0;
  ck_assert_int_eq(cleave_op_ints(graph, conv, "strides", &count)[0], 2);
  ck_assert_str_eq(cleave_node_name(graph, node_of(graph, "Relu", 1)), "Relu_1");
  ck_assert_uint_eq(graph->outputs.count, 1);
  ck_assert_str_eq(cleave_strings_text(&graph->strings, graph->output_names.items[0]), "result");
  shape_is(graph, cleave_graph_output(graph, 0), "[1, 4, 4, 4]");
  ck_assert_str_eq(cleave_value_name(graph, graph->inputs.items[0]), "x");
  cleave_graph_destroy(graph);
}

UNIT_TEST(takes_inputs_by_position_and_by_name) {
  cleave_graph_t *graph = load(INPUT
                               "local a = g.Clip(x, nil, 6.0)\n"
                               "local b = g.Clip { input = x, MAX = 6.0 }\n"
                               "local c = g.Conv(x, { W = g.weight { 4, 3, 1, 1 }, b = g.zeros { 4 } })\n"
                               "return a, b, c\n");
  for (uint32_t k = 0; k < 2; k++) {
    cleave_node_t clip = node_of(graph, "Clip", k);
    ck_assert_uint_eq(cleave_node_input_count(graph, clip), 3);
    ck_assert(!cleave_value_exists(cleave_node_input(graph, clip, 1)));
    const cleave_tensor_t *bound = cleave_graph_value(graph, cleave_node_input(graph, clip, 2))->tensor;
    ck_assert_int_eq(bound->dtype, CLEAVE_DTYPE_F32);
    ck_assert_int_eq(bound->rank, 0);
    ck_assert_double_eq(cleave_tensor_get_float(bound, 0), 6.0);
  }
  ck_assert_uint_eq(cleave_node_input_count(graph, node_of(graph, "Conv", 0)), 3);
  ck_assert_uint_eq(graph->outputs.count, 3);
  ck_assert_str_eq(cleave_strings_text(&graph->strings, graph->output_names.items[1]), "output_2");
  cleave_graph_destroy(graph);
}

UNIT_TEST(makes_constants_of_numbers_and_lists) {
  cleave_graph_t *graph = load(INPUT
                               "local c = g.constant({ { 1, 2, 3 }, { 4, 5, 6 } }, nil, 'ints')\n"
                               "assert(c.dtype == 'int64' and c.shape[1] == 2 and c.shape[2] == 3)\n"
                               "assert(g.constant({ 1.5, 2 }).dtype == 'float32')\n"
                               "assert(g.constant(true).dtype == 'bool' and g.constant(3).rank == 0)\n"
                               "assert(g.constant({ 1, 2 }, 'float16').dtype == 'float16')\n"
                               "local r = g.Reshape(x, { 1, -1 })\n"
                               "assert(r.shape[2] == 192)\n"
                               "assert(g.Add(x, 1).producer.inputs.B.dtype == 'float32')\n"
                               "assert(g.Gather(x, 0, { axis = 1 }).rank == 3)\n"
                               "local n = g.Shape(x)\n"
                               "assert((n * 2).producer.inputs[2].dtype == 'int64')\n"
                               "g.output('n', n * 2)\n"
                               "g.output('r', r)\n"
                               "g.output('c', c)\n");
  const cleave_tensor_t *ints = constant_named(graph, "ints");
  ck_assert_int_eq(cleave_tensor_get_int(ints, 5), 6);
  ck_assert_int_eq(ints->rank, 2);
  cleave_graph_destroy(graph);
}

UNIT_TEST(computes_with_operators_on_values) {
  cleave_graph_t *graph = load(INPUT "return -((x + 1) * x / 2.5 - x ^ 2)");
  static const char *const OPS[] = {"Add", "Mul", "Div", "Pow", "Sub", "Neg"};
  for (size_t k = 0; k < sizeof OPS / sizeof OPS[0]; k++) {
    ck_assert_uint_eq(count_of(graph, OPS[k]), 1);
  }
  cleave_graph_destroy(graph);
  fails(INPUT "return x + {}", CLEAVE_ERROR_FORMAT,
        ":2: Add of values: expected a value or a number, found a table");
}

UNIT_TEST(gives_as_many_outputs_as_asked) {
  cleave_graph_t *graph =
      load(INPUT
           "local a, b, c = g.Split(x, { axis = 1, num_outputs = 3 })\n"
           "assert(a.shape[2] == 1 and c.shape[2] == 1)\n"
           "local d, e = g.Split(x, { 2, 1 }, { axis = 1 })\n"
           "assert(d.shape[2] == 2 and e.shape[2] == 1)\n"
           "local y, z = g.MaxPool(x, { kernel_shape = { 2, 2 }, outputs = 2 })\n"
           "assert(z.dtype == 'int64' and select('#', g.MaxPool(x, { kernel_shape = { 2, 2 } })) == 1)\n"
           "return { first = b, second = z }\n");
  ck_assert_uint_eq(graph->outputs.count, 2);
  ck_assert_str_eq(cleave_strings_text(&graph->strings, graph->output_names.items[0]), "first");
  shape_is(graph, cleave_graph_output(graph, 1), "[1, 3, 7, 7]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(follows_symbolic_dimensions) {
  cleave_graph_t *graph = load(
      "local x = g.input('x', 'float32', { 'N', 'T', 8 })\n"
      "local y = g.Reshape(x, { 0, 0, 2, 4 })\n"
      "y = g.Transpose(y, { perm = { 0, 2, 1, 3 } })\n"
      "assert(y.shape[1] == 'N' and y.shape[3] == 'T' and y.shape[4] == 4)\n"
      "local z = g.Concat(x, x, { axis = 1 })\n"
      "assert(z.shape[2] == '2 * T' or z.shape[2] == '2*T', z.shape[2])\n"
      "local t = g.Slice(g.zeros { 1, 512, 8 }, { 0 }, g.Shape(x, { start = 1, ['end'] = 2 }), { 1 })\n"
      "return y, t + x\n");
  shape_is(graph, cleave_graph_output(graph, 0), "[N, 2, T, 4]");
  shape_is(graph, cleave_graph_output(graph, 1), "[N, T, 8]");
  cleave_graph_destroy(graph);
}

/* ---- weights ---- */

UNIT_TEST(draws_the_same_weights_from_the_same_seed) {
  static const char TEXT[] =
      "local x = g.input('x', 'float32', { 4, 100 })\n"
      "return g.MatMul(x, g.weight { 100, 50, name = 'w', fan_in = 100 }) + g.normal { 50 }";
  static const char MORE[] =
      "local x = g.input('x', 'float32', { 4, 100 })\n"
      "local other = g.weight { 7, 7 }\n"
      "local y = g.MatMul(x, g.weight { 100, 50, name = 'w', fan_in = 100 })\n"
      "g.output('other', other)\n"
      "g.output('y', y)";
  cleave_graph_t *graphs[4];
  unit_ok(load_with(TEXT, NULL, 0, 0, &graphs[0], e));
  unit_ok(load_with(TEXT, NULL, 0, 0, &graphs[1], e));
  unit_ok(load_with(TEXT, NULL, 0, 7, &graphs[2], e));
  unit_ok(load_with(MORE, NULL, 0, 0, &graphs[3], e));
  const cleave_tensor_t *weights[4];
  for (int k = 0; k < 4; k++) {
    weights[k] = constant_named(graphs[k], "w");
  }
  ck_assert_int_eq(memcmp(weights[0]->data, weights[1]->data, weights[0]->bytes), 0);
  ck_assert_int_ne(memcmp(weights[0]->data, weights[2]->data, weights[0]->bytes), 0);
  ck_assert_int_eq(memcmp(weights[0]->data, weights[3]->data, weights[0]->bytes), 0);
  for (int k = 0; k < 4; k++) {
    cleave_graph_destroy(graphs[k]);
  }
}

static void moments(const cleave_tensor_t *tensor, double *mean, double *deviation) {
  double sum = 0;
  double squares = 0;
  for (int64_t k = 0; k < tensor->count; k++) {
    double value = cleave_tensor_get_float(tensor, k);
    sum += value;
    squares += value * value;
  }
  *mean = sum / (double)tensor->count;
  *deviation = sqrt(squares / (double)tensor->count - *mean * *mean);
}

UNIT_TEST(initialises_as_he_et_al) {
  cleave_graph_t *graph =
      load(INPUT
           "g.output('a', g.weight { 64, 32, 5, 5, name = 'conv' })\n"
           "g.output('b', g.weight { 200, 300, name = 'matmul', fan_in = 200, gain = 1 })\n"
           "g.output('c', g.uniform { 60000, low = 2, high = 4, name = 'uniform' })\n"
           "g.output('d', g.normal { 60000, mean = 3, std = 0.5, name = 'normal' })\n"
           "g.output('e', g.fill { 3, value = 7, dtype = 'int32', name = 'fill' })\n"
           "g.output('f', g.ones { 2, name = 'ones' })\n");
  static const struct {
    const char *name;
    double mean;
    double deviation;
  } EXPECTED[] = {{"conv", 0, 0.05}, {"matmul", 0, 0.070711}, {"uniform", 3, 0.577350}, {"normal", 3, 0.5}};
  for (size_t k = 0; k < sizeof EXPECTED / sizeof EXPECTED[0]; k++) {
    double mean = 0;
    double deviation = 0;
    moments(constant_named(graph, EXPECTED[k].name), &mean, &deviation);
    ck_assert_double_eq_tol(mean, EXPECTED[k].mean, 0.03 * EXPECTED[k].deviation);
    ck_assert_double_eq_tol(deviation, EXPECTED[k].deviation, 0.02 * EXPECTED[k].deviation);
  }
  ck_assert_int_eq(cleave_tensor_get_int(constant_named(graph, "fill"), 2), 7);
  ck_assert_double_eq(cleave_tensor_get_float(constant_named(graph, "ones"), 1), 1);
  cleave_graph_destroy(graph);
}

UNIT_TEST(makes_batch_norms_that_are_not_trivial) {
  cleave_graph_t *graph =
      load(INPUT "return g.batch_norm(x, { name = 'n', epsilon = 1e-3, gain = 0.5, var = 2 })");
  cleave_node_t norm = node_of(graph, "BatchNormalization", 0);
  ck_assert_uint_eq(cleave_node_input_count(graph, norm), 5);
  ck_assert_double_eq_tol(cleave_op_float(graph, norm, "epsilon", 0), 1e-3, 1e-9);
  for (int64_t k = 0; k < 3; k++) {
    double scale = cleave_tensor_get_float(constant_named(graph, "n.scale"), k);
    double var = cleave_tensor_get_float(constant_named(graph, "n.var"), k);
    ck_assert(scale >= 0.4 && scale <= 0.6 && scale != 0.5);
    ck_assert(var >= 1.4 && var <= 2.6);
    ck_assert(cleave_tensor_get_float(constant_named(graph, "n.mean"), k) != 0);
    ck_assert(cleave_tensor_get_float(constant_named(graph, "n.bias"), k) != 0);
  }
  cleave_graph_destroy(graph);
}

UNIT_TEST(takes_options) {
  const cleave_setting_t settings[] = {{"size", "16"}, {"kind", "small"}, {"deep", "true"}};
  cleave_graph_t *graph = NULL;
  unit_ok(
      load_with("assert(options.size == 16 and options.kind == 'small' and options.deep == true)\n"
                "assert(options.other == nil)\n"
                "local x = g.input('x', 'float32', { 1, options.size })\n"
                "return g.Relu(x)",
                settings, 3, 0, &graph, e));
  shape_is(graph, cleave_graph_output(graph, 0), "[1, 16]");
  cleave_graph_destroy(graph);
}

/* ---- mistakes ---- */

UNIT_TEST(says_what_does_not_fit_at_the_line) {
  fails(INPUT "\nlocal y = g.Conv(x, g.weight { 4, 5, 3, 3 })", CLEAVE_ERROR_SHAPE,
        ":3: node 'Conv_0' (Conv): input 'W': expected shape [4, 3, 3, 3], found [4, 5, 3, 3]");
  fails(INPUT "local y = g.Add(x, g.weight { 5 })", CLEAVE_ERROR_SHAPE,
        ":2: node 'Add_0' (Add): shapes [1, 3, 8, 8] and [5] do not broadcast");
  fails(INPUT "local y = x + g.weight { 5 }", CLEAVE_ERROR_SHAPE,
        ":2: node 'Add_0' (Add): shapes [1, 3, 8, 8] and [5] do not broadcast");
  fails(INPUT "local y = g.Reshape(x, { 7, 7 })", CLEAVE_ERROR_SHAPE,
        ":2: node 'Reshape_0' (Reshape): expected 192 elements, found a shape with 49");
  fails(INPUT "return g.Convv(x)", CLEAVE_ERROR_FORMAT,
        ":2: operator 'Convv' is unknown (did you mean 'Conv'?)");
  fails(INPUT "return g.outptu('y', x)", CLEAVE_ERROR_FORMAT,
        ":2: operator 'outptu' is unknown (did you mean 'output'?)");
  fails(INPUT "return g.Conv(x)", CLEAVE_ERROR_FORMAT,
        ":2: node 'Conv_0': Conv needs 2 inputs ('W'), found 1");
  fails(INPUT "return g.Conv(x, g.weight { 4, 3, 3, 3 }, { stride = { 1, 1 } })", CLEAVE_ERROR_FORMAT,
        ":2: operator 'Conv' has no attribute or input 'stride' (did you mean 'strides'?)");
  fails(INPUT "return g.Conv(x, g.weight { 4, 3, 3, 3 }, { strides = { 1.5, 2 } })", CLEAVE_ERROR_FORMAT,
        ":2: Conv: attribute 'strides': expected a list of integers, found a number");
  fails(INPUT "return g.Relu(x, x)", CLEAVE_ERROR_FORMAT, ":2: Relu: expected at most 1 input, found 2");
  fails(INPUT "return g.Relu('x')", CLEAVE_ERROR_FORMAT,
        ":2: Relu: input 'X': expected a value, found a string");
  fails(INPUT "return g.Split(x, { axis = 1 })", CLEAVE_ERROR_FORMAT,
        ":2: Split: how many outputs? (num_outputs = n, or outputs = n)");
  fails(INPUT "return g.Concat(x, x)", CLEAVE_ERROR_FORMAT,
        ":2: node 'Concat_0': Concat needs the attribute 'axis'");
  fails(INPUT "return g.Clip(x, { input = x })", CLEAVE_ERROR_FORMAT,
        ":2: Clip: input 'input' is given twice");
  fails(INPUT "return g.Relu(x).shap", CLEAVE_ERROR_FORMAT,
        ":2: a value has no field 'shap' (did you mean 'shape'?)");
  fails(INPUT "return g.Concat({ x, x }, { axis = 1 })", CLEAVE_ERROR_FORMAT,
        ":2: a list of numbers is a constant, and this one has a value in it: inputs are separate "
        "arguments, as in g.Concat(a, b, { axis = 1 })");
  fails(INPUT "return x > 0", CLEAVE_ERROR_FORMAT,
        ":2: values have no order while a graph is built: g.Less(a, b) or g.Greater(a, b) makes the node "
        "that compares them");
  fails(
      INPUT "return 0 >= x", CLEAVE_ERROR_FORMAT,
      ":2: values have no order while a graph is built: g.LessOrEqual(a, b) or g.GreaterOrEqual(a, b) makes "
      "the node that compares them");
  fails(INPUT "return g.Relu(x, g.Softmax(x, { axis = 1 }).producer.attrs)", CLEAVE_ERROR_FORMAT,
        ":2: operator 'Relu' has no attribute 'axis'");
}

UNIT_TEST(attributes_of_a_node_make_another_one) {
  cleave_graph_destroy(
      load(INPUT
           "local c = g.Conv(x, g.weight { 4, 3, 3, 3 }, { pads = { 1, 1, 1, 1 }, group = 1 }).producer\n"
           "local d = g.Conv(x, c.inputs.W, c.attrs).producer\n"
           "local names, places = {}, {} for name in pairs(d.attrs) do names[#names + 1] = name end\n"
           "assert(table.concat(names, ' ') == 'group pads' and next(d.attrs) == 'group')\n"
           "assert(d.attrs.pads[4] == 1 and d.attrs.strides[1] == 1)\n"
           "local s = g.Slice(x, { 0 }, { 4 }, nil, { 1 }).producer\n"
           "for place in pairs(s.inputs) do places[#places + 1] = place end\n"
           "assert(table.concat(places, ' ') == '1 2 3 5')\n"
           "assert(select('#', table.unpack(s.inputs)) == 5 and table.unpack(s.inputs) == x)\n"
           "assert(select(2, table.unpack(s.inputs, 3)) == nil and table.unpack(s.outputs) == s.outputs[1])\n"
           "local n = g.ConstantOfShape({ 2 }, { value = g.constant({ 3 }, 'int32') }).producer\n"
           "assert(g.ConstantOfShape({ 3 }, n.attrs).dtype == 'int32')\n"
           "local p = g.Split(x, { axis = 1, num_outputs = 3 }).producer\n"
           "assert(select('#', g.Split(x, p.attrs)) == 3)\n"
           "return d.outputs[1]"));
}

UNIT_TEST(says_what_is_wrong_with_values) {
  fails(INPUT, CLEAVE_ERROR_FORMAT,
        ": expected outputs (g.output(name, value), or return values), found none");
  fails("return 5", CLEAVE_ERROR_FORMAT, ": expected the script to return values, found 5");
  fails("g.input('x', 'float33', { 1 })", CLEAVE_ERROR_FORMAT,
        ":1: dtype 'float33' is unknown (did you mean 'float32'?); there are float32, uint8, int8, uint16, "
        "int16, "
        "int32, int64, string, bool, float16, float64, uint32, uint64, bfloat16");
  fails("g.input('x', 'float32', { 1, {} })", CLEAVE_ERROR_FORMAT,
        ":1: dimension 2 of a shape: expected a size or a name, found a table");
  fails("g.input('x', 'float32')", CLEAVE_ERROR_FORMAT,
        ":1: expected a shape like {1, 3, 224, 224}, found a nil");
  fails("g.weight { 1000000, 1000000 }", CLEAVE_ERROR_FORMAT,
        ":1: a constant of this size: more than 16 GiB in all constants");
  fails("g.weight { 3, nam = 'x' }", CLEAVE_ERROR_FORMAT,
        ":1: g.weight has no key 'nam' (did you mean 'name'?)");
  fails("g.constant({ { 1, 2 }, { 3 } })", CLEAVE_ERROR_FORMAT,
        ":1: a table that is not an array: lists of one level differ in length");
  fails("g.constant({ 1, 'x' })", CLEAVE_ERROR_FORMAT,
        ":1: an element of a constant: expected a number, found a string");
  fails("g.constant(1.5, 'int64')", CLEAVE_ERROR_FORMAT, ":1: a constant of dtype int64 with a fraction");
  fails("g.normal { 3, std = 1 / 0 }", CLEAVE_ERROR_FORMAT, ":1: expected finite numbers to draw from");
  fails("g.Relu = 3", CLEAVE_ERROR_FORMAT, ":1: g cannot be changed");
  fails("options.x = 3", CLEAVE_ERROR_FORMAT, ":1: options cannot be changed");
  fails("io.write('x')", CLEAVE_ERROR_FORMAT, ":1: 'io' is not available in a model script");
  fails("local x = ", CLEAVE_ERROR_FORMAT, ":1: unexpected symbol near <eof>");
}

UNIT_TEST(leaves_no_broken_node_behind) {
  cleave_graph_t *graph = load(INPUT
                               "local ok, message = pcall(g.Conv, x, g.weight { 4, 5, 3, 3 })\n"
                               "assert(not ok and message:find('expected shape'))\n"
                               "return g.Relu(x)");
  ck_assert_uint_eq(graph->live_node_count, 1);
  cleave_graph_destroy(graph);
}

UNIT_TEST(survives_every_failing_allocation) {
  static const char TEXT[] = INPUT
      "local y = g.batch_norm(g.Conv(x, g.weight { 4, 3, 3, 3 }, { pads = { 1, 1, 1, 1 } }))\n"
      "return g.Relu(y) + 1";
  char path[64];
  (void)snprintf(path, sizeof path, "/tmp/cleave_f_%ld.lua", (long)getpid());
  unit_ok(cleave_file_write(path, TEXT, sizeof TEXT - 1, e));
  int64_t k = 0;
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (; status != CLEAVE_OK && k < 200000; k = k < 900 ? k + 1 : k + 41) {
    cleave_graph_t *graph = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(k);
    status = cleave_model_script_load(NULL, path, NULL, 0, &graph, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
    ck_assert((graph != NULL) == (status == CLEAVE_OK));
    cleave_graph_destroy(graph);
  }
  (void)unlink(path);
  ck_assert_int_eq(status, CLEAVE_OK);
  ck_assert_int_gt(k, 900);
}

/* ---- shipped models ---- */

static cleave_graph_t *load_example(const char *name, const cleave_setting_t *settings, size_t count) {
  char path[512];
  cleave_graph_t *graph = NULL;
  (void)snprintf(path, sizeof path, "%s/examples/models/%s.lua", CLEAVE_SOURCE_DIR, name);
  unit_ok(cleave_model_script_load(NULL, path, &(cleave_script_settings_t){.items = settings, .count = count},
                                   0, &graph, e));
  unit_ok(cleave_graph_verify(graph, e));
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    ck_assert(graph->values.items[k].is_removed || graph->values.items[k].rank >= 0);
  }
  return graph;
}

/* Elements of all float constants of rank 1 and more. */
static int64_t parameter_count(const cleave_graph_t *graph) {
  int64_t count = 0;
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    const cleave_tensor_t *tensor = graph->values.items[k].tensor;
    count += tensor != NULL && tensor->rank > 0 && tensor->dtype == CLEAVE_DTYPE_F32 ? tensor->count : 0;
  }
  return count;
}

UNIT_TEST(ships_resnet50) {
  cleave_graph_t *graph = load_example("resnet50", NULL, 0);
  ck_assert_uint_eq(count_of(graph, "Conv"), 53);
  ck_assert_uint_eq(count_of(graph, "BatchNormalization"), 53);
  ck_assert_uint_eq(count_of(graph, "Add"), 16);
  ck_assert_uint_eq(count_of(graph, "Relu"), 49);
  ck_assert_int_eq(parameter_count(graph), 25557032 + 53120); /* torchvision's, and running statistics */
  shape_is(graph, cleave_graph_output(graph, 0), "[1, 1000]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(ships_mobilenet_v2) {
  const cleave_setting_t settings[] = {{"batch", "4"}, {"size", "96"}};
  cleave_graph_t *graph = load_example("mobilenet_v2", settings, 2);
  ck_assert_uint_eq(count_of(graph, "Conv"), 52);
  ck_assert_uint_eq(count_of(graph, "Clip"), 35);
  ck_assert_uint_eq(count_of(graph, "Add"), 10);
  ck_assert_int_eq(parameter_count(graph), 3504872 + 34112);
  shape_is(graph, cleave_graph_output(graph, 0), "[4, 1000]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(ships_bert_base) {
  const cleave_setting_t settings[] = {{"batch", "N"}, {"T", "T"}, {"layers", "2"}, {"vocabulary", "1000"}};
  cleave_graph_t *graph = load_example("bert_base", settings, 4);
  ck_assert_uint_eq(count_of(graph, "MatMul"), 2 * 8 + 1);
  ck_assert_uint_eq(count_of(graph, "LayerNormalization"), 2 * 2 + 1);
  ck_assert_uint_eq(count_of(graph, "Gelu"), 2);
  ck_assert_int_eq(parameter_count(graph), 109482240 - 10 * 7087872 - 29522 * 768);
  shape_is(graph, cleave_graph_output(graph, 0), "[N, T, 768]");
  shape_is(graph, cleave_graph_output(graph, 1), "[N, 768]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(ships_unet) {
  const cleave_setting_t settings[] = {{"size", "64"}, {"width", "8"}};
  cleave_graph_t *graph = load_example("unet", settings, 2);
  ck_assert_uint_eq(count_of(graph, "Conv"), 19);
  ck_assert_uint_eq(count_of(graph, "ConvTranspose"), 4);
  ck_assert_uint_eq(count_of(graph, "Concat"), 4);
  shape_is(graph, cleave_graph_output(graph, 0), "[1, 2, 64, 64]");
  cleave_graph_destroy(graph);
}

UNIT_TEST(ships_gru_residual) {
  const cleave_setting_t settings[] = {{"steps", "3"}};
  cleave_graph_t *graph = load_example("gru_residual", settings, 1);
  ck_assert_uint_eq(count_of(graph, "MatMul"), 6);
  ck_assert_uint_eq(count_of(graph, "Tanh"), 3);
  ck_assert_uint_eq(graph->inputs.count, 4);
  ck_assert_uint_eq(graph->outputs.count, 4);
  ck_assert_int_eq(parameter_count(graph), 2 * 50 * 150 + 2 * 150);
  cleave_graph_destroy(graph);
}

UNIT_SUITE("script model")
