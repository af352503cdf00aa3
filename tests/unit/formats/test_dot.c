// SPDX-License-Identifier: Apache-2.0
/* Graphviz text: exact bytes of a small graph, clusters, and names that try to break out of their quotes. */
#include "formats/dot.h"

#include "ops/ops.h"
#include "unit.h"

static cleave_graph_t *three_nodes(cleave_node_t *nodes, const char *name) {
  cleave_graph_t *graph = NULL;
  cleave_tensor_t *tensor = NULL;
  cleave_value_t values[2];
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, name, CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){2, 3}, &values[0], e));
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, (int64_t[]){3}, &tensor, e));
  unit_ok(cleave_graph_add_constant(graph, "w", tensor, &values[1], e));
  cleave_tensor_release(tensor);
  for (int k = 0; k < 3; k++) {
    unit_ok(cleave_graph_add_node(graph, cleave_op_find("", k == 1 ? "Add" : "Relu"), k == 0 ? name : NULL,
                                  values, k == 1 ? 2 : 1, 1, &nodes[k], e));
    values[0] = cleave_node_output(graph, nodes[k], 0);
    unit_ok(cleave_graph_set_type(graph, values[0], CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){2, 3}, e));
  }
  unit_ok(cleave_graph_add_output(graph, "y", values[0], e));
  return graph;
}

static const char head[] =
    "digraph \"\" {\n"
    "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"Helvetica\", "
    "fontsize=10];\n"
    "  edge [fontname=\"Helvetica\", fontsize=8, color=\"#555555\"];\n"
    "  fontname=\"Helvetica\"; fontsize=10;\n";

UNIT_TEST(prints_a_graph) {
  cleave_node_t nodes[3];
  cleave_text_t text = {0};
  cleave_graph_t *graph = three_nodes(nodes, "x");
  cleave_dot_options_t options = {.hide_shapes = true};
  unit_ok(cleave_dot_print(graph, &options, &text, e));
  ck_assert_msg(strncmp(text.data, head, sizeof head - 1) == 0, "%s", text.data);
  ck_assert_str_eq(text.data + sizeof head - 1,
                   "  v0 [shape=ellipse, fillcolor=\"#dff0d8\", label=\"x\\nfloat32[2, 3]\"];\n"
                   "  o0 [shape=ellipse, fillcolor=\"#f2dede\", label=\"y\"];\n"
                   "  n0 [label=\"Relu\\nx\"];\n"
                   "  n1 [label=\"Add\\nB float32[3]\"];\n"
                   "  n2 [label=\"Relu\"];\n"
                   "  v0 -> n0;\n"
                   "  n0 -> n1;\n"
                   "  n1 -> n2;\n"
                   "  n2 -> o0;\n"
                   "}\n");
  cleave_text_deinit(&text);
  cleave_graph_destroy(graph);
}

UNIT_TEST(groups_are_nested_clusters) {
  cleave_node_t nodes[3];
  cleave_text_t text = {0};
  cleave_graph_t *graph = three_nodes(nodes, "x");
  cleave_group_t groups[2] = {{"cleave.region", "r", "rule a", CLEAVE_INDEX_NONE, 3, nodes},
                              {"cleave.fusion", "f", NULL, 0, 2, nodes}};
  cleave_dot_options_t options = {.group_count = 2, .groups = groups};
  unit_ok(cleave_dot_print(graph, &options, &text, e));
  ck_assert_ptr_nonnull(strstr(text.data,
                               "  subgraph cluster_0 {\n"
                               "    label=\"r\\nrule a\"; style=\"rounded,filled\"; "
                               "fillcolor=\"#eef4fb\"; color=\"#6f93b8\";\n"
                               "    subgraph cluster_1 {\n"
                               "      label=\"f\"; style=\"rounded,filled\"; fillcolor=\"#fdf3e1\"; "
                               "color=\"#c9a25b\";\n"
                               "      n0 [label=\"Relu\\nx\"];\n"
                               "      n1 [label=\"Add\\nB float32[3]\"];\n"
                               "    }\n"
                               "    n2 [label=\"Relu\"];\n"
                               "  }\n"));
  ck_assert_ptr_nonnull(strstr(text.data, "  n0 -> n1 [label=\"float32[2, 3]\"];\n"));
  cleave_text_deinit(&text);
  cleave_graph_destroy(graph);
}

UNIT_TEST(names_cannot_leave_their_quotes) {
  cleave_node_t nodes[3];
  cleave_text_t text = {0};
  cleave_graph_t *graph = three_nodes(nodes, "a\"]; \\\n\xff\xc3\xa9");
  unit_ok(cleave_dot_print(graph, NULL, &text, e));
  ck_assert_ptr_nonnull(strstr(text.data, "  n0 [label=\"Relu\\na\\\"]; \\\\\\\\n\\\\xff\xc3\xa9\"];\n"));
  cleave_text_deinit(&text);
  cleave_graph_destroy(graph);
}

UNIT_TEST(long_names_are_cut) {
  char name[4096];
  cleave_node_t nodes[3];
  cleave_text_t text = {0};
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  cleave_graph_t *graph = three_nodes(nodes, name);
  unit_ok(cleave_dot_print(graph, NULL, &text, e));
  ck_assert_uint_lt(text.length, 2000);
  ck_assert_ptr_nonnull(strstr(text.data, "nnn...\"];\n"));
  cleave_text_deinit(&text);
  cleave_graph_destroy(graph);
}

UNIT_SUITE("dot")
