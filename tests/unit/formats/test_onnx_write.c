// SPDX-License-Identifier: Apache-2.0
/* Writing models: what is written reads back as the same graph, plain, with functions, in both opsets, with
 * external data; and what cannot be written says so. */
#include <sys/stat.h>
#include <unistd.h>

#include "graph/compare/structural_hash.h"
#include "graph/print.h"
#include "onnx_builder.h"
#include "ops/infer.h"
#include "unit.h"

static cleave_graph_t *new_graph(void) {
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_graph_create(&graph, e));
  return graph;
}

static cleave_value_t input(cleave_graph_t *graph, const char *name, int32_t rank, const cleave_dim_t *dims) {
  cleave_value_t value;
  unit_ok(cleave_graph_add_input(graph, name, CLEAVE_DTYPE_F32, rank, dims, &value, e));
  return value;
}

static cleave_value_t weight(cleave_graph_t *graph, const char *name, int32_t rank, const int64_t *dims) {
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, rank, dims, &tensor, e));
  cleave_tensor_fill_normal(tensor, 3, 0.0, 1.0);
  unit_ok(cleave_graph_add_constant(graph, name, tensor, &value, e));
  cleave_tensor_release(tensor);
  return value;
}

static cleave_value_t ints(cleave_graph_t *graph, const int64_t *values, int64_t count) {
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value;
  unit_ok(cleave_tensor_create_ints(1, values, count, &tensor, e));
  unit_ok(cleave_graph_add_constant(graph, NULL, tensor, &value, e));
  cleave_tensor_release(tensor);
  return value;
}

static cleave_node_t node(cleave_graph_t *graph, const char *op, const cleave_value_t *inputs, size_t count) {
  cleave_node_t made;
  ck_assert_ptr_nonnull(cleave_op_find("", op));
  unit_ok(cleave_graph_add_node(graph, cleave_op_find("", op), NULL, inputs, count, 1, &made, e));
  return made;
}

static cleave_value_t unary(cleave_graph_t *graph, const char *op, cleave_value_t x) {
  return cleave_node_output(graph, node(graph, op, &x, 1), 0);
}

static cleave_value_t binary(cleave_graph_t *graph, const char *op, cleave_value_t x, cleave_value_t y) {
  return cleave_node_output(graph, node(graph, op, (cleave_value_t[]){x, y}, 2), 0);
}

static void output(cleave_graph_t *graph, const char *name, cleave_value_t value) {
  unit_ok(cleave_graph_add_output(graph, name, value, e));
}

static void infer(cleave_graph_t *graph) {
  cleave_infer_options_t options = {0};
  unit_ok(cleave_graph_infer(graph, &options, NULL, e));
}

static uint64_t hash_of(const cleave_graph_t *graph) {
  uint64_t hash = 0;
  unit_ok(cleave_graph_hash(graph, &hash, e));
  return hash;
}

/* Writes and reads again. */
static cleave_graph_t *round_trip(const cleave_graph_t *graph, const cleave_onnx_write_options_t *options) {
  cleave_text_t bytes = {0};
  cleave_graph_t *back = NULL;
  unit_ok(cleave_onnx_write_text(graph, options, &bytes, e));
  unit_ok(cleave_onnx_read_memory(bytes.data, bytes.length, "model", NULL, &back, e));
  cleave_text_deinit(&bytes);
  return back;
}

/* The same after writing, reading and inference; destroys both. */
static void expect_same(cleave_graph_t *graph, const cleave_onnx_write_options_t *options) {
  infer(graph);
  cleave_graph_t *back = round_trip(graph, options);
  infer(back);
  ck_assert_uint_eq(hash_of(back), hash_of(graph));
  ck_assert_uint_eq(back->live_node_count, graph->live_node_count);
  cleave_graph_destroy(graph);
  cleave_graph_destroy(back);
}

static cleave_graph_t *small_network(void) {
  cleave_graph_t *graph = new_graph();
  cleave_dim_t n = cleave_dims_symbol(graph->dims, "N", 1);
  cleave_value_t x = input(graph, "x", 4, (cleave_dim_t[]){n, 3, 8, 8});
  cleave_value_t w = weight(graph, "w", 4, (int64_t[]){4, 3, 3, 3});
  cleave_node_t conv = node(graph, "Conv", (cleave_value_t[]){x, w}, 2);
  unit_ok(cleave_graph_set_ints(graph, conv, "pads", (int64_t[]){1, 1, 1, 1}, 4, e));
  unit_ok(cleave_graph_set_text(graph, conv, "auto_pad", "NOTSET", e));
  cleave_value_t y = unary(graph, "Relu", cleave_node_output(graph, conv, 0));
  cleave_node_t leaky = node(graph, "LeakyRelu", &y, 1);
  unit_ok(cleave_graph_set_float(graph, leaky, "alpha", 0.125, e));
  cleave_value_t mean =
      binary(graph, "ReduceMean", cleave_node_output(graph, leaky, 0), ints(graph, (int64_t[]){2, 3}, 2));
  output(graph, "features", y);
  output(graph, "mean", mean);
  return graph;
}

UNIT_TEST(a_graph_comes_back_the_same_in_both_opsets) {
  cleave_onnx_write_options_t options = {.opset_version = 17};
  expect_same(small_network(), NULL);
  expect_same(small_network(), &options);
}

UNIT_TEST(names_order_and_symbols_survive) {
  cleave_graph_t *graph = small_network();
  infer(graph);
  cleave_graph_t *back = round_trip(graph, NULL);
  infer(back);
  onnx_expect_graph(back,
                    "input %x : float32[N, 3, 8, 8]\n"
                    "%Conv = Conv(%x, %w) {pads = [1, 1, 1, 1], auto_pad = \"NOTSET\"} : float32[N, 4, 8, "
                    "8]\n"
                    "%features = Relu(%Conv) : float32[N, 4, 8, 8]\n"
                    "%LeakyRelu = LeakyRelu(%features) {alpha = 0.125} : float32[N, 4, 8, 8]\n"
                    "%mean = ReduceMean(%LeakyRelu, %constant) : float32[N, 4, 1, 1]\n"
                    "output \"features\" = %features\n"
                    "output \"mean\" = %mean\n");
  cleave_graph_destroy(graph);
}

UNIT_TEST(equal_names_are_told_apart) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = input(graph, "x", 1, (cleave_dim_t[]){2});
  cleave_value_t a = unary(graph, "Relu", x);
  cleave_value_t b = unary(graph, "Neg", a);
  unit_ok(cleave_graph_set_value_name(graph, a, "x", e));
  unit_ok(cleave_graph_set_value_name(graph, b, "x", e));
  output(graph, "y", unary(graph, "Abs", b));
  expect_same(graph, NULL);
}

/* As nodes have them that stand for one of another domain. */
UNIT_TEST(equal_names_of_nodes_are_told_apart) {
  static const char *const names[] = {"block", "block", "", "block", "block_0"};
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = input(graph, "x", 1, (cleave_dim_t[]){2});
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    cleave_node_t made;
    unit_ok(cleave_graph_add_node(graph, cleave_op_find("", "Relu"), names[k], &x, 1, 1, &made, e));
    x = cleave_node_output(graph, made, 0);
  }
  output(graph, "y", x);
  infer(graph);
  cleave_graph_t *back = round_trip(graph, NULL);
  uint32_t count = cleave_graph_node_bound(back);
  ck_assert_uint_eq(count, sizeof names / sizeof *names);
  ck_assert_str_eq(cleave_node_name(back, (cleave_node_t){0}), "block");
  ck_assert_str_eq(cleave_node_name(back, (cleave_node_t){2}), "");
  for (uint32_t k = 0; k < count; k++) {
    const char *name = cleave_node_name(back, (cleave_node_t){k});
    for (uint32_t other = 0; other < k && name[0] != '\0'; other++) {
      ck_assert_str_ne(name, cleave_node_name(back, (cleave_node_t){other}));
    }
  }
  cleave_graph_destroy(back);
  cleave_graph_destroy(graph);
}

UNIT_TEST(outputs_that_are_inputs_constants_or_each_other_survive) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t x = input(graph, "x", 1, (cleave_dim_t[]){2});
  cleave_value_t w = weight(graph, "w", 1, (int64_t[]){2});
  cleave_value_t r = unary(graph, "Relu", x);
  output(graph, "x", x);
  output(graph, "again", x);
  output(graph, "weight", w);
  output(graph, "r", r);
  output(graph, "r2", r);
  cleave_graph_t *back = round_trip(graph, NULL);
  cleave_text_t text = {0};
  unit_ok(cleave_graph_print(back, &text, e));
  ck_assert_str_eq(text.data,
                   "input %x : float32[2]\n"
                   "%r = Relu(%x) : unknown[...]\n"
                   "output \"x\" = %x\n"
                   "output \"again\" = %x\n"
                   "output \"weight\" = %weight\n"
                   "output \"r\" = %r\n"
                   "output \"r2\" = %r\n");
  cleave_text_deinit(&text);
  cleave_graph_destroy(back);
  expect_same(graph, NULL);
}

UNIT_TEST(attributes_and_constants_of_every_kind_survive) {
  cleave_graph_t *graph = new_graph();
  const cleave_op_t *op = NULL;
  cleave_node_t made;
  cleave_tensor_t *tensor = NULL;
  static const float floats[2] = {0.5f, -2.0f};
  static const char *const strings[2] = {"a", ""};
  cleave_value_t x = input(graph, "x", 1, (cleave_dim_t[]){2});
  unit_ok(cleave_graph_custom_op(graph, "com.example", "Mystery", 1, &op, e));
  unit_ok(cleave_graph_add_node(graph, op, "m", (cleave_value_t[]){x, CLEAVE_VALUE_NONE, x}, 3, 2, &made, e));
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_STRING, 1, (int64_t[]){2}, &tensor, e));
  unit_ok(cleave_tensor_set_string(tensor, 0, "text", 4, e));
  cleave_attribute_t attribute = {.name = "t", .kind = CLEAVE_ATTRIBUTE_TENSOR};
  attribute.held = tensor;
  unit_ok(cleave_graph_set_attribute(graph, made, &attribute, e));
  attribute = (cleave_attribute_t){.name = "f", .kind = CLEAVE_ATTRIBUTE_FLOATS, .count = 2};
  attribute.floats = floats;
  unit_ok(cleave_graph_set_attribute(graph, made, &attribute, e));
  attribute = (cleave_attribute_t){.name = "s", .kind = CLEAVE_ATTRIBUTE_STRINGS, .count = 2};
  attribute.strings = strings;
  unit_ok(cleave_graph_set_attribute(graph, made, &attribute, e));
  unit_ok(cleave_graph_set_int(graph, made, "i", INT64_MIN, e));
  unit_ok(cleave_graph_set_ints(graph, made, "none", NULL, 0, e));
  unit_ok(cleave_graph_set_type(graph, cleave_node_output(graph, made, 0), CLEAVE_DTYPE_BF16, 0, NULL, e));
  output(graph, "y", cleave_node_output(graph, made, 1));
  cleave_tensor_release(tensor);
  cleave_graph_t *back = round_trip(graph, NULL);
  cleave_node_t read = {0};
  const cleave_attribute_t *t = cleave_node_attribute(back, read, "t");
  ck_assert_str_eq(((const char *const *)t->held->data)[0], "text");
  ck_assert_str_eq(cleave_node_attribute(back, read, "s")->strings[0], "a");
  ck_assert_float_eq(cleave_node_attribute(back, read, "f")->floats[1], -2.0f);
  ck_assert_int_eq(cleave_node_attribute(back, read, "i")->i, INT64_MIN);
  ck_assert_uint_eq(cleave_node_attribute(back, read, "none")->count, 0);
  ck_assert(!cleave_value_exists(cleave_node_input(back, read, 1)));
  cleave_graph_destroy(back);
  expect_same(graph, NULL);
}

UNIT_TEST(constants_that_nobody_reads_are_left_out) {
  cleave_graph_t *graph = new_graph();
  (void)weight(graph, "unused", 1, (int64_t[]){100000});
  output(graph, "y", unary(graph, "Relu", input(graph, "x", 1, (cleave_dim_t[]){2})));
  cleave_text_t bytes = {0};
  unit_ok(cleave_onnx_write_text(graph, NULL, &bytes, e));
  ck_assert_uint_lt(bytes.length, 1000);
  cleave_text_deinit(&bytes);
  cleave_graph_destroy(graph);
}

UNIT_TEST(the_same_graph_gives_the_same_bytes) {
  cleave_graph_t *a = small_network();
  cleave_graph_t *b = small_network();
  cleave_text_t bytes[2] = {{0}, {0}};
  unit_ok(cleave_onnx_write_text(a, NULL, &bytes[0], e));
  unit_ok(cleave_onnx_write_text(b, NULL, &bytes[1], e));
  ck_assert_uint_eq(bytes[0].length, bytes[1].length);
  ck_assert_mem_eq(bytes[0].data, bytes[1].data, bytes[0].length);
  cleave_text_deinit(&bytes[0]);
  cleave_text_deinit(&bytes[1]);
  cleave_graph_destroy(a);
  cleave_graph_destroy(b);
}

/* ---- groups ---- */

/* x -> n0 .. n5, a chain, with a constant at n2 and a second reader of n1 at the end. */
static cleave_graph_t *chain(cleave_node_t *nodes) {
  cleave_graph_t *graph = new_graph();
  cleave_value_t value = input(graph, "x", 2, (cleave_dim_t[]){2, 3});
  cleave_value_t second = value;
  for (int k = 0; k < 6; k++) {
    cleave_value_t inputs[2] = {value, k == 2 ? weight(graph, "w", 1, (int64_t[]){3}) : second};
    nodes[k] = k == 2 || k == 5 ? node(graph, "Add", inputs, 2) : node(graph, "Relu", inputs, 1);
    value = cleave_node_output(graph, nodes[k], 0);
    second = k == 1 ? value : second;
  }
  output(graph, "y", value);
  return graph;
}

/* Functions of a model by field walking: how many, and whether one has a domain. */
static size_t count_functions(const cleave_text_t *bytes, const char *domain) {
  cleave_protobuf_t model;
  cleave_protobuf_t function;
  cleave_protobuf_field_t field;
  size_t count = 0;
  cleave_protobuf_init(&model, bytes->data, bytes->length, "ModelProto");
  while (cleave_protobuf_next(&model, &field, NULL)) {
    if (field.number != ONNX_MODEL_FUNCTIONS) {
      continue;
    }
    unit_ok(cleave_protobuf_enter(&model, &field, "FunctionProto", &function, e));
    while (cleave_protobuf_next(&function, &field, NULL)) {
      count += field.number == ONNX_FUNCTION_DOMAIN && field.bytes.size == strlen(domain) &&
               memcmp(field.bytes.data, domain, field.bytes.size) == 0;
    }
    ck_assert_int_eq(function.status, CLEAVE_OK);
  }
  ck_assert_int_eq(model.status, CLEAVE_OK);
  return count;
}

UNIT_TEST(groups_become_functions_that_inline_to_the_same_graph) {
  cleave_node_t nodes[6];
  cleave_graph_t *graph = chain(nodes);
  cleave_node_t region[4] = {nodes[4], nodes[1], nodes[3], nodes[2]};
  cleave_group_t groups[2] = {
      {"cleave.region", "island_0", "rule island", CLEAVE_INDEX_NONE, 4, region},
      {"cleave.fusion", "add_relu_0", NULL, 0, 2, nodes + 2},
  };
  cleave_onnx_entry_t entry = {"cleave.plan", "0123"};
  cleave_onnx_write_options_t options = {
      .group_count = 2, .groups = groups, .metadata_count = 1, .metadata = &entry, .doc = "made by a test"};
  cleave_text_t bytes = {0};
  unit_ok(cleave_onnx_write_text(graph, &options, &bytes, e));
  ck_assert_uint_eq(count_functions(&bytes, "cleave.region"), 1);
  ck_assert_uint_eq(count_functions(&bytes, "cleave.fusion"), 1);
  cleave_text_deinit(&bytes);
  options.opset_version = 17;
  expect_same(graph, &options);
}

UNIT_TEST(ports_of_a_group_are_in_order_of_use) {
  cleave_node_t nodes[6];
  cleave_graph_t *graph = chain(nodes);
  cleave_group_t group = {"cleave.region", "r", NULL, CLEAVE_INDEX_NONE, 3, nodes + 1};
  cleave_groups_t groups;
  cleave_group_values_t inputs = {0};
  cleave_group_values_t outputs = {0};
  unit_ok(cleave_groups_init(&groups, graph, &group, 1, e));
  unit_ok(cleave_groups_ports(&groups, 0, &inputs, &outputs, e));
  ck_assert_uint_eq(inputs.count, 2);
  ck_assert_uint_eq(inputs.items[0].index, cleave_node_output(graph, nodes[0], 0).index);
  ck_assert_str_eq(cleave_value_name(graph, inputs.items[1]), "w");
  ck_assert_uint_eq(outputs.count, 2);
  ck_assert_uint_eq(outputs.items[0].index, cleave_node_output(graph, nodes[1], 0).index);
  ck_assert_uint_eq(outputs.items[1].index, cleave_node_output(graph, nodes[3], 0).index);
  cleave_array_free(&inputs);
  cleave_array_free(&outputs);
  cleave_groups_deinit(&groups);
  cleave_graph_destroy(graph);
}

UNIT_TEST(items_keep_the_order_of_the_graph_around_groups) {
  cleave_node_t nodes[6];
  cleave_graph_t *graph = chain(nodes);
  cleave_group_t group = {"cleave.region", "r", NULL, CLEAVE_INDEX_NONE, 3, nodes + 1};
  cleave_groups_t groups;
  cleave_group_items_t items = {0};
  unit_ok(cleave_groups_init(&groups, graph, &group, 1, e));
  unit_ok(cleave_groups_items(&groups, CLEAVE_INDEX_NONE, &items, e));
  ck_assert_uint_eq(items.count, 4);
  ck_assert_uint_eq(items.items[0].index, nodes[0].index);
  ck_assert(items.items[1].is_group);
  ck_assert_uint_eq(items.items[2].index, nodes[4].index);
  ck_assert_uint_eq(items.items[3].index, nodes[5].index);
  cleave_array_free(&items);
  cleave_groups_deinit(&groups);
  cleave_graph_destroy(graph);
}

UNIT_TEST(refuses_groups_that_overlap_or_close_a_cycle) {
  cleave_node_t nodes[6];
  cleave_graph_t *graph = chain(nodes);
  cleave_text_t bytes = {0};
  cleave_group_t groups[2] = {
      {"cleave.region", "a", NULL, CLEAVE_INDEX_NONE, 3, nodes},
      {"cleave.region", "b", NULL, CLEAVE_INDEX_NONE, 2, nodes + 2},
  };
  cleave_onnx_write_options_t options = {.group_count = 2, .groups = groups};
  unit_fails(cleave_onnx_write_text(graph, &options, &bytes, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "group 'b': node 'Add#2' is in another group, or not in the group that holds this one");
  groups[1] = (cleave_group_t){"cleave.fusion", "b", NULL, 0, 2, nodes + 2};
  unit_fails(cleave_onnx_write_text(graph, &options, &bytes, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "group 'b': node 'Relu#3' is in another group, or not in the group that holds this one");
  groups[0].parent = 1;
  unit_fails(cleave_onnx_write_text(graph, &options, &bytes, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "group 'a' comes before the group that holds it");
  cleave_node_t apart[2] = {nodes[0], nodes[2]};
  groups[0] = (cleave_group_t){"cleave.region", "c", NULL, CLEAVE_INDEX_NONE, 2, apart};
  options.group_count = 1;
  unit_fails(cleave_onnx_write_text(graph, &options, &bytes, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "group 'c' closes a cycle");
  ck_assert_uint_eq(bytes.length, 0);
  cleave_graph_destroy(graph);
}

/* ---- older operator sets; what they lack: test_onnx_lower.c ---- */

UNIT_TEST(modes_and_axes_go_back_to_opset_17_and_return) {
  cleave_graph_t *graph = new_graph();
  cleave_onnx_write_options_t options = {.opset_version = 17};
  cleave_value_t x = input(graph, "x", 4, (cleave_dim_t[]){1, 1, 4, 4});
  cleave_value_t g = input(graph, "g", 4, (cleave_dim_t[]){1, 2, 2, 2});
  cleave_node_t sample = node(graph, "GridSample", (cleave_value_t[]){x, g}, 2);
  unit_ok(cleave_graph_set_text(graph, sample, "mode", "cubic", e));
  cleave_value_t value = cleave_node_output(graph, sample, 0);
  output(graph, "y", binary(graph, "ReduceMax", value, ints(graph, (int64_t[]){1, -1}, 2)));
  expect_same(graph, &options);
}

UNIT_TEST(the_opset_is_the_one_that_was_read_unless_another_is_asked_for) {
  cleave_graph_t *graph = new_graph();
  cleave_text_t bytes = {0};
  cleave_onnx_write_options_t options = {.opset_version = 12};
  cleave_value_t x = input(graph, "x", 2, (cleave_dim_t[]){2, 3});
  output(graph, "y", binary(graph, "RMSNormalization", x, weight(graph, "s", 1, (int64_t[]){3})));
  unit_fails(cleave_onnx_write_text(graph, &options, &bytes, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "models are written in opset 13 to 24, found 12");
  static const int32_t read_and_written[][2] = {{22, 22}, {17, 17}, {24, 24}, {9, 13}, {27, 24}};
  for (size_t k = 0; k < sizeof read_and_written / sizeof *read_and_written; k++) {
    graph->opset_version = read_and_written[k][0];
    cleave_graph_t *back = round_trip(graph, NULL);
    ck_assert_int_eq(back->opset_version, read_and_written[k][1]);
    cleave_graph_destroy(back);
  }
  expect_same(graph, NULL);
}

/* ---- files ---- */

UNIT_TEST(large_weights_go_to_a_file_beside_the_model) {
  char folder[] = "/tmp/cleave_onnx_XXXXXX";
  char path[64];
  char data[64];
  struct stat info;
  ck_assert_ptr_nonnull(mkdtemp(folder));
  (void)snprintf(path, sizeof path, "%s/big.onnx", folder);
  (void)snprintf(data, sizeof data, "%s/big.onnx.data", folder);
  cleave_graph_t *graph = new_graph();
  cleave_graph_t *back = NULL;
  cleave_value_t x = input(graph, "x", 1, (cleave_dim_t[]){1000});
  cleave_value_t y = binary(graph, "Add", x, weight(graph, "a", 1, (int64_t[]){1000}));
  y = binary(graph, "Mul", y, weight(graph, "small", 1, (int64_t[]){1}));
  output(graph, "y", binary(graph, "Add", y, weight(graph, "b", 1, (int64_t[]){1000})));
  cleave_onnx_write_options_t options = {.inline_limit = 4096};
  cleave_text_t bytes = {0};
  unit_fails(cleave_onnx_write_text(graph, &options, &bytes, e), CLEAVE_ERROR_LIMIT,
             "weights have 8004 bytes, at most 4096 fit in the model");
  unit_ok(cleave_onnx_write(path, graph, &options, e));
  ck_assert_int_eq(stat(data, &info), 0);
  ck_assert_int_eq(info.st_size, 4032 + 4000);
  unit_ok(cleave_onnx_read(path, NULL, &back, e));
  const cleave_tensor_t *b = cleave_graph_value(back, cleave_node_input(back, (cleave_node_t){2}, 1))->tensor;
  const cleave_tensor_t *original =
      cleave_graph_value(graph, cleave_node_input(graph, (cleave_node_t){2}, 1))->tensor;
  ck_assert(!b->owns_data);
  ck_assert_mem_eq(b->data, original->data, original->bytes);
  cleave_graph_destroy(graph);
  cleave_graph_destroy(back);
  (void)unlink(path);
  (void)unlink(data);
  (void)rmdir(folder);
}

UNIT_TEST(a_failed_write_says_where) {
  cleave_graph_t *graph = small_network();
  unit_fails_with(cleave_onnx_write("/nonexistent/m.onnx", graph, NULL, e), CLEAVE_ERROR_IO,
                  "/nonexistent/m.onnx: cannot write");
  cleave_graph_destroy(graph);
}

UNIT_SUITE("onnx_write")
