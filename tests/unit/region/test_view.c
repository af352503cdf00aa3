// SPDX-License-Identifier: Apache-2.0
// Views of node sets: borders, indices, attributes with their defaults, hashes, and what backends answer.
#include "backend/program/supports.h"
#include "backend/region/view.h"
#include "ops/infer.h"
#include "plan_case.h"
#include "unit.h"

enum { MAX_NODES = 128 };

typedef struct viewed {
  cleave_graph_t *graph;
  cleave_view_builder_t builder;
  cleave_arena_t arena;
  cleave_node_t nodes[MAX_NODES];
  cleave_view_t view;
} viewed_t;

/* The view of the nodes whose first outputs have these names ("a b c"). */
static void look(viewed_t *viewed, const char *text, const char *names, const cleave_view_fusion_t *fusion) {
  *viewed = (viewed_t){.graph = plan_case_graph(text)};
  uint32_t count = 0;
  while (*names != '\0') {
    char name[32];
    size_t length = strcspn(names, " ");
    snprintf(name, sizeof name, "%.*s", (int)length, names);
    viewed->nodes[count++] = plan_case_node(viewed->graph, name);
    names += length + strspn(names + length, " ");
  }
  cleave_view_builder_init(&viewed->builder, viewed->graph);
  cleave_view_request_t request = {.name = "r",
                                   .rule = "rule",
                                   .nodes = viewed->nodes,
                                   .node_count = count,
                                   .fusions = fusion,
                                   .fusion_count = fusion == NULL ? 0 : 1};
  unit_ok(cleave_view_build(&viewed->builder, &request, &viewed->arena, &viewed->view, e));
}

static void forget(viewed_t *viewed) {
  cleave_view_builder_deinit(&viewed->builder);
  cleave_arena_deinit(&viewed->arena);
  cleave_graph_destroy(viewed->graph);
}

static const char *border(const viewed_t *viewed) {
  static char text[512];
  const cleave_region_view_t *region = &viewed->view.region;
  int used = 0;
  for (uint32_t k = 0; k < region->input_count; k++) {
    used += snprintf(text + used, sizeof text - (size_t)used, "%s ", region->values[region->inputs[k]].name);
  }
  used += snprintf(text + used, sizeof text - (size_t)used, "->");
  for (uint32_t k = 0; k < region->output_count; k++) {
    used += snprintf(text + used, sizeof text - (size_t)used, " %s", region->values[region->outputs[k]].name);
  }
  return text;
}

UNIT_TEST(inputs_are_in_order_of_use_and_outputs_in_order_of_production) {
  viewed_t v;
  look(&v, "a = Add(y, x); b = Mul(a, z); c = Exp(a); d = Sub(b, c); u = Neg(a); -> d, u", "a b c d", NULL);
  ck_assert_str_eq(border(&v), "y x z -> a d");
  const cleave_region_view_t *region = &v.view.region;
  ck_assert_uint_eq(region->node_count, 4);
  ck_assert_uint_eq(region->value_count, 7);
  ck_assert_str_eq(region->name, "r");
  ck_assert_uint_eq(region->values[region->nodes[3].outputs[0]].producer, 3);
  ck_assert(!region->values[region->nodes[1].outputs[0]].is_output);
  ck_assert(region->values[region->nodes[3].outputs[0]].is_output);
  forget(&v);
}

/* x -> Relu -> Conv -> Relu -> Reshape, two spatial dimensions. */
static cleave_graph_t *conv_graph(cleave_node_t nodes[4]) {
  cleave_graph_t *graph = NULL;
  cleave_value_t x;
  cleave_value_t w;
  cleave_value_t shape;
  cleave_tensor_t *weights = NULL;
  cleave_tensor_t *sizes = NULL;
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 4, (int64_t[]){1, 3, 8, 8}, &x, e));
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 4, (int64_t[]){2, 3, 1, 1}, &weights, e));
  unit_ok(cleave_tensor_create_ints(1, (int64_t[]){1, -1}, 2, &sizes, e));
  unit_ok(cleave_graph_add_constant(graph, "w", weights, &w, e));
  unit_ok(cleave_graph_add_constant(graph, "shape", sizes, &shape, e));
  cleave_tensor_release(weights);
  cleave_tensor_release(sizes);
  const cleave_op_id_t ops[4] = {CLEAVE_OP_Relu, CLEAVE_OP_Conv, CLEAVE_OP_Relu, CLEAVE_OP_Reshape};
  for (uint32_t k = 0; k < 4; k++) {
    cleave_value_t inputs[2] = {x, k == 1 ? w : shape};
    unit_ok(
        cleave_graph_add_node(graph, cleave_op_get(ops[k]), "", inputs, k % 2 == 1 ? 2 : 1, 1, &nodes[k], e));
    x = cleave_node_output(graph, nodes[k], 0);
  }
  unit_ok(cleave_graph_add_output(graph, "y", x, e));
  unit_ok(cleave_graph_infer(graph, NULL, NULL, e));
  return graph;
}

UNIT_TEST(dimensions_mean_what_the_operators_of_the_region_say) {
  cleave_node_t nodes[4];
  cleave_graph_t *graph = conv_graph(nodes);
  cleave_view_builder_t builder;
  cleave_arena_t arena = {0};
  cleave_view_t view;
  cleave_view_builder_init(&builder, graph);
  cleave_view_request_t request = {.name = "r", .nodes = nodes, .node_count = 4};
  unit_ok(cleave_view_build(&builder, &request, &arena, &view, e));
  const cleave_region_view_t *region = &view.region;
  ck_assert_ptr_null(cleave_view_input(region, &region->nodes[0], 0)->tensor.layout); /* nobody says so */
  ck_assert_str_eq(cleave_view_input(region, &region->nodes[1], 0)->tensor.layout, "NCHW");
  ck_assert_str_eq(cleave_view_input(region, &region->nodes[1], 1)->tensor.layout, "OIHW");
  ck_assert_str_eq(cleave_view_output(region, &region->nodes[1], 0)->tensor.layout, "NCHW");
  ck_assert_str_eq(cleave_view_output(region, &region->nodes[2], 0)->tensor.layout, "NCHW");
  ck_assert_ptr_null(cleave_view_output(region, &region->nodes[3], 0)->tensor.layout);
  cleave_view_builder_deinit(&builder);
  cleave_arena_deinit(&arena);
  cleave_graph_destroy(graph);
}

UNIT_TEST(constants_are_values_with_data_and_no_inputs) {
  viewed_t v;
  look(&v, "a = Mul(x, #3.5); -> a", "a", NULL);
  const cleave_region_view_t *region = &v.view.region;
  ck_assert_str_eq(border(&v), "x -> a");
  const cleave_value_view_t *constant = cleave_view_input(region, &region->nodes[0], 1);
  ck_assert_ptr_nonnull(constant->tensor.data);
  ck_assert(constant->tensor.is_weight);
  ck_assert(!cleave_view_input(region, &region->nodes[0], 0)->tensor.is_weight);
  float value = 0;
  memcpy(&value, constant->tensor.data, sizeof value);
  ck_assert_float_eq(value, 3.5f);
  ck_assert_int_eq(constant->tensor.rank, 0);
  ck_assert_uint_eq(v.view.constant_count, 1);
  ck_assert_uint_eq(v.view.constant_versions[0], constant->tensor.version);
  forget(&v);
}

UNIT_TEST(operands_left_out_and_outputs_nobody_uses_have_no_value) {
  viewed_t v;
  look(&v, "a = Clip(x, _, #1.0); b, m = MaxPool{kernel_shape=[1]}(a); -> b", "a b", NULL);
  const cleave_region_view_t *region = &v.view.region;
  ck_assert_uint_eq(region->nodes[0].inputs[1], CLEAVE_INDEX_NONE);
  ck_assert_ptr_null(cleave_view_input(region, &region->nodes[0], 1));
  ck_assert_ptr_nonnull(cleave_view_input(region, &region->nodes[0], 2));
  ck_assert_uint_eq(region->nodes[1].output_count, 2);
  ck_assert_uint_eq(region->nodes[1].outputs[1], CLEAVE_INDEX_NONE);
  forget(&v);
}

UNIT_TEST(attributes_are_complete) {
  viewed_t v;
  look(&v, "a = Gemm{alpha=0.5, transB=1}(x, y); -> a", "a", NULL);
  const cleave_node_view_t *node = &v.view.region.nodes[0];
  ck_assert_double_eq(cleave_view_float(node, "alpha", -1.0), 0.5);
  ck_assert_int_eq(cleave_view_int(node, "transB", -1), 1);
  ck_assert_double_eq(cleave_view_float(node, "beta", -1.0), 1.0); /* a default of the schema */
  ck_assert_int_eq(cleave_view_int(node, "transA", -1), 0);
  ck_assert_uint_eq(node->attribute_count, 4);
  forget(&v);
}

UNIT_TEST(fusions_name_their_nodes) {
  cleave_graph_t *graph = plan_case_graph("a = Exp(x); b = Neg(a); c = Relu(b); -> c");
  cleave_node_t nodes[3] = {plan_case_node(graph, "a"), plan_case_node(graph, "b"),
                            plan_case_node(graph, "c")};
  const char *labels[] = {"first", NULL};
  cleave_view_fusion_t fusion = {.rule = "pair", .nodes = nodes + 1, .labels = labels, .node_count = 2};
  cleave_view_request_t request = {.nodes = nodes, .node_count = 3, .fusions = &fusion, .fusion_count = 1};
  cleave_view_builder_t builder;
  cleave_arena_t arena = {0};
  cleave_view_t view;
  cleave_view_builder_init(&builder, graph);
  unit_ok(cleave_view_build(&builder, &request, &arena, &view, e));
  ck_assert_uint_eq(view.region.fusion_count, 1);
  ck_assert_str_eq(view.region.fusions[0].rule, "pair");
  ck_assert_uint_eq(view.region.fusions[0].nodes[1], 2);
  ck_assert_str_eq(view.region.fusions[0].labels[0], "first");
  ck_assert_str_eq(view.region.fusions[0].labels[1], "");
  ck_assert_uint_eq(view.region.nodes[0].fusion, CLEAVE_INDEX_NONE);
  ck_assert_uint_eq(view.region.nodes[2].fusion, 0);
  uint64_t with_fusion = view.region.hash;
  request.fusion_count = 0;
  unit_ok(cleave_view_build(&builder, &request, &arena, &view, e));
  ck_assert_uint_ne(view.region.hash, with_fusion);
  request.fusion_count = 1;
  request.node_count = 2; /* the fusion is not inside any more */
  unit_fails_with(cleave_view_build(&builder, &request, &arena, &view, e), CLEAVE_ERROR_INTERNAL,
                  "fusion 'pair' has a node outside");
  cleave_view_builder_deinit(&builder);
  cleave_arena_deinit(&arena);
  cleave_graph_destroy(graph);
}

static uint64_t hash_of(const char *text, const char *names) {
  viewed_t v;
  look(&v, text, names, NULL);
  uint64_t hash = v.view.region.hash;
  forget(&v);
  return hash;
}

UNIT_TEST(the_hash_tells_structure_not_names) {
  uint64_t hash = hash_of("a = Exp(x); b = Add(a, y); -> b", "a b");
  ck_assert_uint_eq(hash, hash_of("p = Neg(z); q = Exp(z); r = Add(q, p); -> r", "q r"));
  ck_assert_uint_ne(hash, hash_of("a = Exp(x); b = Add(y, a); -> b", "a b"));
  ck_assert_uint_ne(hash, hash_of("a = Exp(x); b = Add(a, x); -> b", "a b"));
  ck_assert_uint_ne(hash, hash_of("a = Exp(x); b = Sub(a, y); -> b", "a b"));
  ck_assert_uint_ne(hash, hash_of("a = Exp(x); b = Add(a, y); -> b, a", "a b"));
  ck_assert_uint_ne(hash, hash_of("a = Exp(x); b = Add(a, #1.0); -> b", "a b"));
  ck_assert_uint_ne(hash_of("a = Gemm{alpha=0.5}(x, y); -> a", "a"),
                    hash_of("a = Gemm{alpha=0.25}(x, y); -> a", "a"));
}

UNIT_TEST(large_sets_have_the_same_views_as_small_ones) {
  /* The maps come into play; the second view is made with what the first one left behind. */
  char text[4096] = "a0 = Exp(x); ";
  char names[1024] = "a0";
  for (int k = 1; k < 60; k++) {
    snprintf(text + strlen(text), sizeof text - strlen(text), "a%d = Add(a%d, y%d); ", k, k - 1, k % 3);
    snprintf(names + strlen(names), sizeof names - strlen(names), " a%d", k);
  }
  strcat(text, "-> a59");
  viewed_t v;
  look(&v, text, names, NULL);
  ck_assert_str_eq(border(&v), "x y1 y2 y0 -> a59");
  uint64_t hash = v.view.region.hash;
  cleave_view_request_t request = {.nodes = v.nodes, .node_count = 60};
  unit_ok(cleave_view_build(&v.builder, &request, &v.arena, &v.view, e));
  ck_assert_uint_eq(v.view.region.hash, hash);
  cleave_view_request_t small = {.nodes = v.nodes + 5, .node_count = 1};
  unit_ok(cleave_view_build(&v.builder, &small, &v.arena, &v.view, e));
  ck_assert_str_eq(border(&v), "a4 y2 -> a5");
  forget(&v);
}

UNIT_TEST(backends_are_asked_through_views) {
  cleave_graph_t *graph = plan_case_graph("a = Exp(x); b = Frobnicate(a); -> b");
  cleave_node_t exp = plan_case_node(graph, "a");
  cleave_node_t custom = plan_case_node(graph, "b");
  cleave_fusion_set_t one = {.rule = "r", .nodes = &exp, .node_count = 1};
  cleave_fusion_set_t other = {.rule = "r", .nodes = &custom, .node_count = 1};
  cleave_supports_t supports;
  cleave_reason_t reason;
  bool yes = false;
  cleave_supports_init(&supports, graph);
  unit_ok(cleave_supports_ask(&supports, "cpu", graph, &one, &yes, &reason, e));
  ck_assert(yes);
  ck_assert_str_eq(reason.text, "");
  unit_ok(cleave_supports_ask(&supports, "cpu", graph, &other, &yes, &reason, e));
  ck_assert(!yes);
  ck_assert_ptr_nonnull(strstr(reason.text, "Frobnicate"));
  unit_fails_with(cleave_supports_ask(&supports, "tpu", graph, &one, &yes, &reason, e),
                  CLEAVE_ERROR_UNSUPPORTED, "backend 'tpu' is unknown");
  for (int64_t failing = 0; failing < 2; failing++) {
    (void)cleave_memory_fail_after(failing);
    cleave_status_t status = cleave_supports_ask(&supports, "cpu", graph, &one, &yes, &reason, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
  }
  cleave_supports_deinit(&supports);
  cleave_graph_destroy(graph);
}

UNIT_SUITE("view")
