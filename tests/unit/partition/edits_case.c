// SPDX-License-Identifier: Apache-2.0
// Graphs compared record by record, and logs sent through JSON. Tests only: any failure fails the test.
#include "edits_case.h"

#include <jansson.h>

#include "base/text.h"
#include "graph/compare/structural_hash.h"
#include "graph/order.h"
#include "graph/verify.h"
#include "partition/plan/edits_json.h"
#include "plan_case.h"
#include "runtime/model/rule_list.h"
#include "unit.h"

const char *edits_case_ops(const cleave_graph_t *graph) {
  cleave_node_t *order = plan_case_keep(calloc(graph->live_node_count + 1, sizeof *order));
  cleave_text_t text = {0};
  unit_ok(cleave_graph_topological_order(graph, order, NULL, e));
  for (size_t k = 0; k < graph->live_node_count; k++) {
    cleave_text_format(&text, "%s%s", k == 0 ? "" : " ", cleave_node_op(graph, order[k])->name);
  }
  const char *kept = plan_case_keep(cleave_copy_text(cleave_text_get(&text), text.length));
  cleave_text_deinit(&text);
  return kept;
}

static void check_attributes(const cleave_graph_t *a, const cleave_graph_t *b, cleave_node_t node) {
  ck_assert_uint_eq(cleave_graph_node(a, node)->attribute_count, cleave_graph_node(b, node)->attribute_count);
  ck_assert(cleave_node_hash(a, node, 1) == cleave_node_hash(b, node, 1));
}

static void check_node(const cleave_graph_t *a, const cleave_graph_t *b, cleave_node_t node) {
  const cleave_op_t *op = cleave_node_op(a, node);
  ck_assert_int_eq(op == NULL, cleave_node_op(b, node) == NULL);
  if (op == NULL) {
    return;
  }
  ck_assert_str_eq(op->name, cleave_node_op(b, node)->name);
  ck_assert_str_eq(op->domain, cleave_node_op(b, node)->domain);
  ck_assert_str_eq(cleave_node_name(a, node), cleave_node_name(b, node));
  check_attributes(a, b, node);
  ck_assert_uint_eq(cleave_node_input_count(a, node), cleave_node_input_count(b, node));
  for (uint32_t k = 0; k < cleave_node_input_count(a, node); k++) {
    ck_assert_uint_eq(cleave_node_input(a, node, k).index, cleave_node_input(b, node, k).index);
  }
  ck_assert_uint_eq(cleave_node_output_count(a, node), cleave_node_output_count(b, node));
}

static void check_type(const cleave_graph_t *a, const cleave_graph_t *b, const cleave_value_record_t *x,
                       const cleave_value_record_t *y) {
  cleave_text_t texts[2] = {{0}, {0}};
  cleave_shape_print(a->dims, x->rank, x->dims, &texts[0]);
  cleave_shape_print(b->dims, y->rank, y->dims, &texts[1]);
  ck_assert_str_eq(cleave_text_get(&texts[0]), cleave_text_get(&texts[1]));
  ck_assert_uint_eq(x->dtype, y->dtype);
  cleave_text_deinit(&texts[0]);
  cleave_text_deinit(&texts[1]);
}

static void check_value(const cleave_graph_t *a, const cleave_graph_t *b, cleave_value_t value) {
  const cleave_value_record_t *x = cleave_graph_value(a, value);
  const cleave_value_record_t *y = cleave_graph_value(b, value);
  ck_assert_int_eq(x->is_removed, y->is_removed);
  if (x->is_removed) {
    return;
  }
  check_type(a, b, x, y);
  ck_assert_str_eq(cleave_value_name(a, value), cleave_value_name(b, value));
  ck_assert_uint_eq(x->use_count, y->use_count);
  ck_assert_uint_eq(x->producer, y->producer);
  ck_assert_int_eq(x->is_input, y->is_input);
  ck_assert_int_eq(x->tensor == NULL, y->tensor == NULL);
  if (x->tensor != NULL && x->tensor->bytes > 0 && x->tensor->dtype != CLEAVE_DTYPE_STRING) {
    ck_assert_uint_eq(x->tensor->bytes, y->tensor->bytes);
    ck_assert_int_eq(memcmp(x->tensor->data, y->tensor->data, x->tensor->bytes), 0);
  }
}

void edits_case_check_same(const cleave_graph_t *a, const cleave_graph_t *b) {
  unit_ok(cleave_graph_verify(a, e));
  unit_ok(cleave_graph_verify(b, e));
  ck_assert_uint_eq(cleave_graph_node_bound(a), cleave_graph_node_bound(b));
  ck_assert_uint_eq(cleave_graph_value_bound(a), cleave_graph_value_bound(b));
  ck_assert_uint_eq(a->inputs.count, b->inputs.count);
  ck_assert_uint_eq(a->outputs.count, b->outputs.count);
  for (uint32_t k = 0; k < cleave_graph_node_bound(a); k++) {
    check_node(a, b, (cleave_node_t){k});
  }
  for (uint32_t k = 0; k < cleave_graph_value_bound(a); k++) {
    check_value(a, b, (cleave_value_t){k});
  }
  for (size_t k = 0; k < a->inputs.count; k++) {
    ck_assert_uint_eq(a->inputs.items[k].index, b->inputs.items[k].index);
  }
  for (size_t k = 0; k < a->outputs.count; k++) {
    ck_assert_uint_eq(cleave_graph_output(a, k).index, cleave_graph_output(b, k).index);
    ck_assert_str_eq(cleave_strings_text(&a->strings, a->output_names.items[k]),
                     cleave_strings_text(&b->strings, b->output_names.items[k]));
  }
}

const char *edits_case_text(const cleave_edits_t *edits) {
  json_t *json = NULL;
  unit_ok(cleave_edits_to_json(edits, &json, e));
  char *text = json_dumps(json, JSON_COMPACT);
  ck_assert_ptr_nonnull(text);
  json_decref(json);
  const char *kept = plan_case_keep(cleave_copy_text(text, strlen(text)));
  free(text);
  return kept;
}

void edits_case_check_replay(const cleave_graph_t *source, const cleave_edits_t *edits,
                             const cleave_graph_t *result) {
  const char *text = edits_case_text(edits);
  json_t *json = json_loads(text, 0, NULL);
  cleave_edits_t *read = NULL;
  cleave_graph_t *graph = NULL;
  ck_assert_ptr_nonnull(json);
  unit_ok(cleave_edits_from_json("log", json, &read, e));
  json_decref(json);
  ck_assert_str_eq(edits_case_text(read), text);
  unit_ok(cleave_graph_replay(source, read, &graph, e));
  edits_case_check_same(result != NULL ? result : source, graph);
  cleave_graph_destroy(graph);
  cleave_edits_destroy(read);
}
