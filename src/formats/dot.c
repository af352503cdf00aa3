// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes are written level by level, so that each stands in the cluster of its innermost group; edges follow
 * once all nodes are known. Texts from outside are escaped, and long ones cut.
 */
#include "formats/dot.h"

#include "base/show.h"
#include "graph/print.h"

enum { MAX_DEPTH = 64, LONGEST_TEXT = 160 };

typedef struct dot {
  const cleave_graph_t *graph;
  const cleave_dot_options_t *options;
  cleave_groups_t groups;
  cleave_text_t *out;
  cleave_text_t scratch;
  cleave_text_t shown;
} dot_t;

/* Inside of a quoted string. */
static void put_escaped(dot_t *dot, const char *text) {
  cleave_text_t *shown = &dot->shown;
  uint32_t character = 0;
  shown->length = 0;
  cleave_text_show(shown, "%s", text);
  size_t written = 0;
  for (size_t k = 0; k < shown->length && written <= LONGEST_TEXT; written++) {
    size_t length = cleave_show_character(shown->data + k, shown->length - k, &character);
    if (written == LONGEST_TEXT) {
      cleave_text_add(dot->out, "...");
    } else {
      cleave_text_add(dot->out, character == '"' || character == '\\' ? "\\" : "");
      cleave_text_append(dot->out, shown->data + k, length);
    }
    k += length;
  }
}

static const char *type_text(dot_t *dot, cleave_value_t value) {
  dot->scratch.length = 0;
  cleave_value_type_print(dot->graph, value, &dot->scratch);
  return cleave_text_get(&dot->scratch);
}

static void put_indent(const dot_t *dot, uint32_t depth) {
  for (uint32_t k = 0; k <= depth; k++) {
    cleave_text_add(dot->out, "  ");
  }
}

/* "W float32[64, 3, 7, 7]" for each constant input. */
static void put_constants(dot_t *dot, cleave_node_t node) {
  const cleave_op_t *op = cleave_node_op(dot->graph, node);
  for (uint32_t k = 0; k < cleave_node_input_count(dot->graph, node); k++) {
    cleave_value_t value = cleave_node_input(dot->graph, node, k);
    if (!cleave_value_exists(value) || !cleave_value_is_constant(dot->graph, value)) {
      continue;
    }
    cleave_text_add(dot->out, "\\n");
    if (k < op->input_count) {
      put_escaped(dot, op->inputs[k].name);
      cleave_text_add(dot->out, " ");
    }
    const cleave_tensor_t *tensor = cleave_graph_value(dot->graph, value)->tensor;
    if (tensor->count == 1 && tensor->dtype != CLEAVE_DTYPE_STRING) {
      cleave_text_format(dot->out, "%g", cleave_tensor_get_float(tensor, 0));
    } else {
      put_escaped(dot, type_text(dot, value));
    }
  }
}

static void put_node(dot_t *dot, cleave_node_t node, uint32_t depth) {
  const char *name = cleave_node_name(dot->graph, node);
  put_indent(dot, depth);
  cleave_text_format(dot->out, "n%u [label=\"", node.index);
  put_escaped(dot, cleave_node_op(dot->graph, node)->name);
  if (name[0] != '\0') {
    cleave_text_add(dot->out, "\\n");
    put_escaped(dot, name);
  }
  put_constants(dot, node);
  cleave_text_add(dot->out, "\"];\n");
}

static cleave_status_t put_level(dot_t *dot, uint32_t group, uint32_t depth, cleave_error_t *error);

static cleave_status_t put_cluster(dot_t *dot, uint32_t index, uint32_t depth, cleave_error_t *error) {
  const cleave_group_t *group = &dot->groups.groups[index];
  bool is_outer = group->parent == CLEAVE_INDEX_NONE;
  put_indent(dot, depth);
  cleave_text_format(dot->out, "subgraph cluster_%u {\n", index);
  put_indent(dot, depth + 1);
  cleave_text_add(dot->out, "label=\"");
  put_escaped(dot, group->name);
  if (group->doc != NULL && group->doc[0] != '\0') {
    cleave_text_add(dot->out, "\\n");
    put_escaped(dot, group->doc);
  }
  cleave_text_format(dot->out, "\"; style=\"rounded,filled\"; fillcolor=\"%s\"; color=\"%s\";\n",
                     is_outer ? "#eef4fb" : "#fdf3e1", is_outer ? "#6f93b8" : "#c9a25b");
  CLEAVE_TRY(put_level(dot, index, depth + 1, error));
  put_indent(dot, depth);
  cleave_text_add(dot->out, "}\n");
  return CLEAVE_OK;
}

static cleave_status_t put_level(dot_t *dot, uint32_t group, uint32_t depth, cleave_error_t *error) {
  cleave_group_items_t items = {0};
  if (depth > MAX_DEPTH) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "groups nest more than %d deep", MAX_DEPTH);
  }
  cleave_status_t status = cleave_groups_items(&dot->groups, group, &items, error);
  for (size_t k = 0; k < items.count && status == CLEAVE_OK; k++) {
    if (items.items[k].is_group) {
      status = put_cluster(dot, items.items[k].index, depth, error);
    } else {
      put_node(dot, (cleave_node_t){items.items[k].index}, depth);
    }
  }
  cleave_array_free(&items);
  return status;
}

static void put_source(const dot_t *dot, cleave_value_t value) {
  cleave_node_t producer = cleave_value_producer(dot->graph, value);
  if (cleave_node_exists(producer)) {
    cleave_text_format(dot->out, "n%u", producer.index);
  } else {
    cleave_text_format(dot->out, "v%u", value.index);
  }
}

static void put_edge_label(dot_t *dot, cleave_value_t value) {
  if (!dot->options->hide_shapes) {
    cleave_text_add(dot->out, " [label=\"");
    put_escaped(dot, type_text(dot, value));
    cleave_text_add(dot->out, "\"]");
  }
  cleave_text_add(dot->out, ";\n");
}

/* Graph inputs, and constants that are graph outputs: values that stand alone. */
static void put_value(dot_t *dot, cleave_value_t value, const char *color) {
  cleave_text_format(dot->out, "  v%u [shape=ellipse, fillcolor=\"%s\", label=\"", value.index, color);
  put_escaped(dot, cleave_value_name(dot->graph, value));
  cleave_text_add(dot->out, "\\n");
  put_escaped(dot, type_text(dot, value));
  cleave_text_add(dot->out, "\"];\n");
}

static void put_ends(dot_t *dot) {
  const cleave_graph_t *graph = dot->graph;
  for (size_t k = 0; k < graph->inputs.count; k++) {
    put_value(dot, graph->inputs.items[k], "#dff0d8");
  }
  for (size_t k = 0; k < graph->outputs.count; k++) {
    cleave_value_t value = cleave_graph_output(graph, k);
    if (cleave_value_is_constant(graph, value)) {
      put_value(dot, value, "#eeeeee");
    }
    cleave_text_format(dot->out, "  o%zu [shape=ellipse, fillcolor=\"#f2dede\", label=\"", k);
    put_escaped(dot, cleave_graph_output_name(graph, k));
    cleave_text_add(dot->out, "\"];\n");
  }
}

static void put_edges(dot_t *dot) {
  const cleave_graph_t *graph = dot->graph;
  for (size_t n = 0; n < graph->live_node_count; n++) {
    cleave_node_t node = dot->groups.order[n];
    for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
      cleave_value_t value = cleave_node_input(graph, node, k);
      if (cleave_value_exists(value) && !cleave_value_is_constant(graph, value)) {
        cleave_text_add(dot->out, "  ");
        put_source(dot, value);
        cleave_text_format(dot->out, " -> n%u", node.index);
        put_edge_label(dot, value);
      }
    }
  }
  for (size_t k = 0; k < graph->outputs.count; k++) {
    cleave_value_t value = cleave_graph_output(graph, k);
    cleave_text_add(dot->out, "  ");
    put_source(dot, value);
    cleave_text_format(dot->out, " -> o%zu", k);
    put_edge_label(dot, value);
  }
}

static cleave_status_t print(dot_t *dot, cleave_error_t *error) {
  const cleave_graph_t *graph = dot->graph;
  CLEAVE_TRY(cleave_groups_init(&dot->groups, graph, dot->options->groups, dot->options->group_count, error));
  cleave_text_add(dot->out, "digraph \"");
  put_escaped(dot, cleave_strings_text(&graph->strings, graph->name));
  cleave_text_add(dot->out,
                  "\" {\n"
                  "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", "
                  "fontname=\"Helvetica\", fontsize=10];\n"
                  "  edge [fontname=\"Helvetica\", fontsize=8, color=\"#555555\"];\n"
                  "  fontname=\"Helvetica\"; fontsize=10;\n");
  put_ends(dot);
  CLEAVE_TRY(put_level(dot, CLEAVE_INDEX_NONE, 0, error));
  put_edges(dot);
  cleave_text_add(dot->out, "}\n");
  CLEAVE_TRY(cleave_text_check(&dot->scratch, error));
  CLEAVE_TRY(cleave_text_check(&dot->shown, error));
  return cleave_text_check(dot->out, error);
}

cleave_status_t cleave_dot_print(const cleave_graph_t *graph, const cleave_dot_options_t *options,
                                 cleave_text_t *text, cleave_error_t *error) {
  static const cleave_dot_options_t plain = {0};
  dot_t dot = {.graph = graph, .options = options != NULL ? options : &plain, .out = text};
  cleave_status_t status = print(&dot, error);
  cleave_groups_deinit(&dot.groups);
  cleave_text_deinit(&dot.scratch);
  cleave_text_deinit(&dot.shown);
  return status;
}
