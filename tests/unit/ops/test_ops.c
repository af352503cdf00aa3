// SPDX-License-Identifier: Apache-2.0
// The table of operators: lookup, schemas as parsed from the list, defaults, checks of nodes, FLOPs.

#include "base/text.h"
#include "graph/print.h"
#include "infer_case.h"
#include "ops/infer/op_functions.h"
#include "ops/ops.h"
#include "unit.h"

UNIT_TEST(finds_every_operator_under_its_name) {
  for (uint32_t id = 0; id < CLEAVE_OP_COUNT; id++) {
    const cleave_op_t *op = cleave_op_get((cleave_op_id_t)id);
    ck_assert_ptr_eq(cleave_op_find(op->domain, op->name), op);
    ck_assert_uint_eq(op->id, id);
    ck_assert(cleave_op_functions(op)->infer != NULL && cleave_op_functions(op)->flops != NULL &&
              op->output_count > 0);
    ck_assert(op->since_version >= 1 && op->since_version <= 24);
  }
  ck_assert_uint_ge(CLEAVE_OP_COUNT, 170);
  ck_assert_ptr_eq(cleave_op_find("ai.onnx", "Conv"), cleave_op_get(CLEAVE_OP_Conv));
  ck_assert_ptr_eq(cleave_op_find(NULL, "Conv"), cleave_op_get(CLEAVE_OP_Conv));
  ck_assert_ptr_null(cleave_op_find("", "conv"));
  ck_assert_ptr_null(cleave_op_find("com.example", "Conv"));
  ck_assert_ptr_null(cleave_op_find("", ""));
  ck_assert_ptr_null(cleave_op_get(CLEAVE_OP_COUNT));
  ck_assert_ptr_nonnull(cleave_op_find("ai.onnx.preview.training", "Adam"));
  ck_assert_ptr_null(cleave_op_find("", "Adam"));
}

UNIT_TEST(suggests_the_operator_that_was_meant) {
  char hint[64];
  ck_assert_str_eq(cleave_op_hint("Convv", hint, sizeof hint), " (did you mean 'Conv'?)");
  ck_assert_str_eq(cleave_op_hint("Completely", hint, sizeof hint), "");
}

UNIT_TEST(schemas_have_ports_and_attributes_as_in_onnx) {
  const cleave_op_t *conv = cleave_op_get(CLEAVE_OP_Conv);
  ck_assert_uint_eq(conv->input_count, 3);
  ck_assert_str_eq(conv->inputs[1].name, "W");
  ck_assert_int_eq(conv->inputs[1].kind, CLEAVE_OP_INPUT_REQUIRED);
  ck_assert_int_eq(conv->inputs[2].kind, CLEAVE_OP_INPUT_OPTIONAL);
  ck_assert_uint_eq(cleave_op_input_index(conv, "w"), 1);
  ck_assert_uint_eq(cleave_op_input_index(conv, "weight"), CLEAVE_INDEX_NONE);
  ck_assert_uint_eq(cleave_op_output_index(conv, "Y"), 0);
  const cleave_op_attribute_t *group = cleave_op_find_attribute(conv, "group");
  ck_assert(group != NULL && group->has_default && !group->required && group->value.i == 1);
  ck_assert_str_eq(cleave_op_find_attribute(conv, "auto_pad")->value.s, "NOTSET");
  ck_assert(!cleave_op_find_attribute(conv, "strides")->has_default);
  ck_assert_ptr_null(cleave_op_find_attribute(conv, "stride"));

  const cleave_op_t *concat = cleave_op_get(CLEAVE_OP_Concat);
  ck_assert_int_eq(concat->inputs[0].kind, CLEAVE_OP_INPUT_VARIADIC);
  ck_assert(cleave_op_find_attribute(concat, "axis")->required);

  const cleave_op_attribute_t *axes =
      cleave_op_find_attribute(cleave_op_get(CLEAVE_OP_MeanVarianceNormalization), "axes");
  ck_assert_uint_eq(axes->value.count, 3);
  ck_assert_int_eq(axes->value.ints[2], 3);
  /* floats are the float32 that ONNX stores */
  ck_assert(cleave_op_find_attribute(cleave_op_get(CLEAVE_OP_LeakyRelu), "alpha")->value.f == (double)0.01f);
}

UNIT_TEST(flags_say_what_commutes_and_what_draws) {
  ck_assert(cleave_op_get(CLEAVE_OP_Add)->flags & CLEAVE_OP_COMMUTATIVE);
  ck_assert(!(cleave_op_get(CLEAVE_OP_Sub)->flags & CLEAVE_OP_COMMUTATIVE));
  ck_assert(cleave_op_get(CLEAVE_OP_Relu)->flags & CLEAVE_OP_POINTWISE);
  ck_assert(cleave_op_get(CLEAVE_OP_Reshape)->flags & CLEAVE_OP_VIEW);
  ck_assert(cleave_op_get(CLEAVE_OP_RandomNormal)->flags & CLEAVE_OP_RANDOM);
  ck_assert(cleave_op_get(CLEAVE_OP_NonZero)->flags & CLEAVE_OP_DATA_SHAPE);
}

UNIT_TEST(attributes_fall_back_to_the_schema) {
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_graph_create(&graph, e));
  cleave_node_t node = infer_case_add(graph, "Conv", "f32[1,3,8,8] f32[4,3,3,3]", "group=1 pads=1,1,1,1", 1);
  uint32_t count = 0;
  ck_assert_int_eq(cleave_op_int(graph, node, "group", 7), 1);
  ck_assert_str_eq(cleave_op_text(graph, node, "auto_pad", ""), "NOTSET");
  ck_assert_int_eq(cleave_op_ints(graph, node, "pads", &count)[3], 1);
  ck_assert_uint_eq(count, 4);
  ck_assert_ptr_null(cleave_op_ints(graph, node, "strides", &count));
  ck_assert_uint_eq(count, 0);
  ck_assert_int_eq(cleave_op_int(graph, node, "no_such", 7), 7);
  ck_assert_int_eq(cleave_op_int(graph, node, "auto_pad", 7), 7);
  cleave_graph_destroy(graph);
}

/* An attribute with all its defaults, as text: "[1, 1]"; "none". */
static const char *effective(const char *op, const char *inputs, const char *attributes, const char *name) {
  static cleave_text_t text;
  cleave_attribute_t attribute;
  cleave_graph_t *graph = NULL;
  text.length = 0;
  unit_ok(cleave_graph_create(&graph, e));
  cleave_node_t node = infer_case_add(graph, op, inputs, attributes, 1);
  unit_ok(cleave_graph_infer(graph, NULL, NULL, e));
  if (cleave_op_effective_attribute(graph, node, name, &attribute)) {
    ck_assert_str_eq(attribute.name, name);
    cleave_attribute_print(&attribute, &text);
  } else {
    cleave_text_add(&text, "none");
  }
  cleave_graph_destroy(graph);
  return cleave_text_get(&text);
}

UNIT_TEST(defaults_that_are_lists_have_the_length_that_the_shapes_say) {
  static const char CONV[] = "f32[1,3,8,9] f32[4,3,3,5]";
  ck_assert_str_eq(effective("Conv", CONV, "", "strides"), "[1, 1]");
  ck_assert_str_eq(effective("Conv", CONV, "", "dilations"), "[1, 1]");
  ck_assert_str_eq(effective("Conv", CONV, "", "pads"), "[0, 0, 0, 0]");
  ck_assert_str_eq(effective("Conv", CONV, "", "kernel_shape"), "[3, 5]");
  ck_assert_str_eq(effective("Conv", CONV, "strides=2,1", "strides"), "[2, 1]");
  ck_assert_str_eq(effective("Conv", "f32[1,3,8] f32[4,3,3]", "", "strides"), "[1]");
  ck_assert_str_eq(effective("Conv", "f32[1,3,8,8] f32[4,3,k,3]", "", "kernel_shape"), "none");
  ck_assert_str_eq(effective("ConvTranspose", "f32[1,3,8,9] f32[3,4,2,2]", "", "output_padding"), "[0, 0]");
  ck_assert_str_eq(effective("MaxPool", "f32[1,3,8,9]", "kernel_shape=2,2", "strides"), "[1, 1]");
  ck_assert_str_eq(effective("AveragePool", "f32[1,3,8,9,7]", "kernel_shape=2,2,2", "pads"),
                   "[0, 0, 0, 0, 0, 0]");
  ck_assert_str_eq(effective("QLinearConv", "i8[1,3,8,9] f32[] i8[] i8[4,3,3,5] f32[] i8[] f32[] i8[]", "",
                             "kernel_shape"),
                   "[3, 5]");
  ck_assert_str_eq(effective("Transpose", "f32[1,3,8]", "", "perm"), "[2, 1, 0]");
  ck_assert_str_eq(effective("Relu", "f32[1]", "", "perm"), "none");
}

UNIT_TEST(pads_that_the_output_size_decides_have_no_default) {
  static const char CONV[] = "f32[1,3,8,8] f32[4,3,3,3]";
  ck_assert_str_eq(effective("Conv", CONV, "auto_pad=SAME_UPPER", "pads"), "none");
  ck_assert_str_eq(effective("Conv", CONV, "auto_pad=SAME_LOWER", "pads"), "none");
  ck_assert_str_eq(effective("Conv", CONV, "auto_pad=VALID", "pads"), "[0, 0, 0, 0]");
  ck_assert_str_eq(effective("ConvTranspose", "f32[1,3,8,8] f32[3,4,3,3]", "output_shape=10,10", "pads"),
                   "none");
}

static void check_fails(const char *op, const char *inputs, const char *attributes, size_t outputs,
                        const char *message) {
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_graph_create(&graph, e));
  cleave_node_t node = infer_case_add(graph, op, inputs, attributes, outputs);
  unit_fails(cleave_op_check(graph, node, CLEAVE_ERROR_FORMAT, e), CLEAVE_ERROR_FORMAT, message);
  unit_fails(cleave_graph_infer(graph, NULL, NULL, e), CLEAVE_ERROR_FORMAT, message);
  cleave_graph_destroy(graph);
}

UNIT_TEST(checks_refuse_what_the_schema_does_not_allow) {
  check_fails("Relu", "f32[1] f32[1]", "", 1, "node 'Relu#0': Relu has at most 1 input, found 2");
  check_fails("Conv", "f32[1,3,8,8]", "", 1, "node 'Conv#0': Conv needs 2 inputs ('W'), found 1");
  check_fails("Conv", "f32[1,3,8,8] -", "", 1, "node 'Conv#0': input 1 ('W') of Conv is left out");
  check_fails("Conv", "f32[1,3,8,8] f32[4,3,3,3]", "stride=2", 1,
              "node 'Conv#0': Conv has no attribute 'stride' (did you mean 'strides'?)");
  check_fails("Concat", "f32[1,3,8,8]", "", 1, "node 'Concat#0': Concat needs the attribute 'axis'");
  check_fails("Relu", "f32[1]", "", 2, "node 'Relu#0': Relu has at most 1 output, found 2");
}

UNIT_TEST(checks_refuse_attributes_of_another_kind) {
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_graph_create(&graph, e));
  cleave_node_t node = infer_case_add(graph, "Conv", "f32[1,3,8,8] f32[4,3,3,3]", "", 1);
  unit_ok(cleave_graph_set_int(graph, node, "strides", 2, e));
  unit_fails(cleave_op_check(graph, node, CLEAVE_ERROR_FORMAT, e), CLEAVE_ERROR_FORMAT,
             "node 'Conv#0': attribute 'strides' of Conv is a list of ints, found an int");
  cleave_graph_destroy(graph);
}

static double flops(const char *op, const char *inputs, const char *attributes) {
  cleave_graph_t *graph = NULL;
  unit_ok(cleave_graph_create(&graph, e));
  cleave_node_t node = infer_case_add(graph, op, inputs, attributes, 1);
  unit_ok(cleave_graph_infer(graph, NULL, NULL, e));
  double result = cleave_op_flops(graph, node);
  cleave_graph_destroy(graph);
  return result;
}

UNIT_TEST(counts_a_multiply_add_as_two) {
  ck_assert_double_eq(flops("MatMul", "f32[7,5] f32[5,3]", ""), 2.0 * 7 * 5 * 3);
  ck_assert_double_eq(flops("MatMul", "f32[4,7,5] f32[5,3]", ""), 4 * 2.0 * 7 * 5 * 3);
  ck_assert_double_eq(flops("Gemm", "f32[5,7] f32[3,5] f32[3]", "transA=1 transB=1"), (2.0 * 5 + 1) * 7 * 3);
  ck_assert_double_eq(flops("Conv", "f32[1,3,224,224] f32[64,3,7,7] f32[64]", "strides=2,2 pads=3,3,3,3"),
                      64.0 * 112 * 112 * (2 * 3 * 49 + 1));
  ck_assert_double_eq(flops("Conv", "f32[1,8,10,10] f32[8,1,3,3]", "group=8 pads=1,1,1,1"), 800.0 * 2 * 9);
  ck_assert_double_eq(flops("ConvTranspose", "f32[1,8,5,5] f32[8,4,2,2]", "strides=2,2"), 2.0 * 200 * 16);
  ck_assert_double_eq(flops("Einsum", "f32[2,3,4] f32[2,4,5]", "equation=bij,bjk->bik"), 2.0 * 2 * 3 * 4 * 5);
  ck_assert_double_eq(flops("Einsum", "f32[9,3,4] f32[4,5]", "equation=...ij,jk->...ik"),
                      2.0 * 9 * 3 * 4 * 5);
  ck_assert_double_eq(flops("LSTM", "f32[10,2,8] f32[1,64,8] f32[1,64,16]", ""), 20.0 * 64 * (16 + 32 + 4));
  ck_assert_double_eq(flops("Relu", "f32[3,5]", ""), 15.0);
  ck_assert_double_eq(flops("ReduceSum", "f32[3,5]", ""), 15.0);
  ck_assert_double_eq(flops("Reshape", "f32[3,5] i64(15)", ""), 0.0);
  ck_assert_double_eq(flops("Relu", "f32[N,5]", ""), -1.0);
  ck_assert_double_eq(flops("MatMul", "f32[N,5] f32[5,3]", ""), -1.0);
  ck_assert_double_eq(flops("Einsum", "f32[N,3,4] f32[N,4,5]", "equation=bij,bjk->bik"), -1.0);
  ck_assert_double_eq(flops("Reshape", "f32[N,5] i64(15)", ""), 0.0);
  ck_assert_double_eq(flops("Relu", "f32[0,5]", ""), 0.0);
}

UNIT_TEST(says_what_dimensions_mean_where_the_operator_does) {
  const cleave_op_t *conv = cleave_op_get(CLEAVE_OP_Conv);
  ck_assert_str_eq(cleave_op_input_layout(conv, 0, 4), "NCHW");
  ck_assert_str_eq(cleave_op_input_layout(conv, 1, 3), "OIW");
  ck_assert_str_eq(cleave_op_output_layout(conv, 0, 5), "NCDHW");
  ck_assert_ptr_null(cleave_op_input_layout(conv, 2, 1));
  ck_assert_ptr_null(cleave_op_input_layout(conv, 0, 6));
  ck_assert_ptr_null(cleave_op_input_layout(conv, 0, -1));
  ck_assert_ptr_null(cleave_op_input_layout(conv, 9, 4));
  ck_assert_str_eq(cleave_op_input_layout(cleave_op_get(CLEAVE_OP_ConvTranspose), 1, 4), "IOHW");
  ck_assert_str_eq(cleave_op_input_layout(cleave_op_get(CLEAVE_OP_QLinearConv), 3, 4), "OIHW");
  ck_assert_str_eq(cleave_op_input_layout(cleave_op_get(CLEAVE_OP_MaxPool), 0, 4), "NCHW");
  ck_assert_ptr_null(cleave_op_output_layout(cleave_op_get(CLEAVE_OP_MaxPool), 1, 4));
  ck_assert_ptr_null(cleave_op_input_layout(cleave_op_get(CLEAVE_OP_MatMul), 0, 4));
}

UNIT_SUITE("ops")
