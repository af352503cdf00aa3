// SPDX-License-Identifier: Apache-2.0
// Logs of changes: all kinds of steps there and back through JSON, and what a log from outside may try.
#include "graph/edits.h"

#include <jansson.h>
#include <math.h>

#include "edits_case.h"
#include "graph/clone.h"
#include "graph/compare/structural_hash.h"
#include "partition/plan/edits_json.h"
#include "partition/rewrite/transform.h"
#include "plan_case.h"
#include "unit.h"

// ---- a log of everything ----

static cleave_value_t value_of(const cleave_graph_t *graph, const char *name) {
  return cleave_node_output(graph, plan_case_node(graph, name), 0);
}

static cleave_tensor_t *make_tensor(cleave_dtype_t dtype, int32_t rank, const int64_t *dims, double first) {
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create(dtype, rank, dims, &tensor, e));
  for (int64_t k = 0; k < tensor->count; k++) {
    cleave_tensor_set_float(tensor, k, first + (double)k);
  }
  return tensor;
}

static void add_constants(cleave_editor_t *editor) {
  static const cleave_dtype_t dtypes[] = {CLEAVE_DTYPE_F32, CLEAVE_DTYPE_F16, CLEAVE_DTYPE_BF16,
                                          CLEAVE_DTYPE_F64, CLEAVE_DTYPE_I64, CLEAVE_DTYPE_U64,
                                          CLEAVE_DTYPE_I8,  CLEAVE_DTYPE_BOOL};
  const int64_t dims[2] = {4, 25};
  cleave_value_t value;
  for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
    for (int32_t rank = 0; rank <= 2; rank++) {
      cleave_tensor_t *tensor = make_tensor(dtypes[k], rank, dims, rank == 1 ? 0.25 : -1.0);
      if (k == 0 && rank == 1) {
        cleave_tensor_set_float(tensor, 2, (double)NAN);
      }
      unit_ok(cleave_editor_add_constant(editor, "c", tensor, &value, e));
      cleave_tensor_release(tensor);
    }
  }
  cleave_tensor_t *texts = NULL;
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_STRING, 1, dims, &texts, e));
  unit_ok(cleave_tensor_set_string(texts, 1, "gr\xc3\xbc\xc3\x9f", 6, e));
  unit_ok(cleave_tensor_set_string(texts, 2, "\xff\xfe", 2, e));
  unit_ok(cleave_editor_add_constant(editor, "t", texts, &value, e));
  cleave_tensor_release(texts);
}

/* Every kind of step, and every kind of attribute. */
static void change_everything(cleave_editor_t *editor) {
  cleave_graph_t *graph = editor->graph;
  cleave_value_t a = value_of(graph, "a");
  cleave_value_t b = value_of(graph, "b");
  cleave_node_t node;
  cleave_value_t value;
  const cleave_edit_dim_t dims[3] = {{.size = 4}, {.size = -1, .symbol = "N"}, {.size = -1}};
  const int64_t ints[3] = {1, -2, INT64_MAX};
  const float floats[3] = {0.5F, -INFINITY, 1e-30F};
  const char *const texts[2] = {"one", ""};
  const int64_t size[1] = {3};
  cleave_tensor_t *tensor = make_tensor(CLEAVE_DTYPE_F32, 1, size, 7.0);
  const cleave_attribute_t attributes[7] = {
      {.name = "i", .kind = CLEAVE_ATTRIBUTE_INT, .i = INT64_MIN},
      {.name = "f", .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = 0.1},
      {.name = "s", .kind = CLEAVE_ATTRIBUTE_STRING, .count = 5, .s = "a\0b\xff!"},
      {.name = "is", .kind = CLEAVE_ATTRIBUTE_INTS, .count = 3, .ints = ints},
      {.name = "fs", .kind = CLEAVE_ATTRIBUTE_FLOATS, .count = 3, .floats = floats},
      {.name = "ss", .kind = CLEAVE_ATTRIBUTE_STRINGS, .count = 2, .strings = texts},
      {.name = "t", .kind = CLEAVE_ATTRIBUTE_TENSOR, .held = tensor}};
  const cleave_op_t *custom = NULL;
  unit_ok(cleave_graph_custom_op(graph, "my.domain", "Mine", 1, &custom, e));
  editor->line = 12;
  const cleave_value_t inputs[3] = {a, CLEAVE_VALUE_NONE, a};
  unit_ok(cleave_editor_add_node(editor, custom,
                                 &(cleave_edit_t){.name = "mine",
                                                  .inputs = inputs,
                                                  .input_count = 3,
                                                  .output_count = 2,
                                                  .attributes = attributes,
                                                  .attribute_count = 7},
                                 &node, e));
  cleave_tensor_release(tensor);
  editor->line = 0;
  unit_ok(cleave_editor_add_input(editor, "more", CLEAVE_DTYPE_F32, 3, dims, &value, e));
  unit_ok(cleave_editor_add_input(editor, "any", CLEAVE_DTYPE_UNKNOWN, -1, NULL, &value, e));
  unit_ok(cleave_editor_replace_uses(editor, b, cleave_node_output(graph, node, 1), e));
  unit_ok(cleave_editor_remove_unused(editor, plan_case_node(graph, "b"), e));
  unit_ok(cleave_editor_set_input(editor, node, 2, graph->inputs.items[0], e));
  unit_ok(cleave_editor_set_attribute(editor, node, &attributes[1], e));
  unit_ok(cleave_editor_set_output(editor, 1, a, e));
  unit_ok(cleave_editor_name_node(editor, node, "yours", e));
  unit_ok(cleave_editor_name_value(editor, cleave_node_output(graph, node, 0), "unused", e));
  add_constants(editor);
  cleave_editor_note_reads(editor);
  for (int k = 0; k < 2; k++) { /* looking twice is one step; what is no constant is none */
    unit_ok(cleave_graph_note_read(graph, graph->inputs.items[0], e));
    unit_ok(cleave_graph_note_read(graph, (cleave_value_t){cleave_graph_value_bound(graph) - 1}, e));
  }
  size_t before = editor->log->items.count;
  unit_ok(cleave_editor_log_reads(editor, e));
  ck_assert_uint_eq(editor->log->items.count, before + 1);
  graph->is_sized = true; /* then sizes that were looked at are a step */
  unit_ok(cleave_graph_note_read(graph, graph->inputs.items[0], e));
  unit_ok(cleave_editor_log_reads(editor, e));
  ck_assert_uint_eq(editor->log->items.count, before + 2);
  graph->is_sized = false;
  unit_ok(cleave_editor_fold(editor, e));
}

typedef struct log_case {
  cleave_graph_t *source;
  cleave_graph_t *result;
  cleave_edits_t *edits;
} log_case_t;

static log_case_t make_log(void) {
  log_case_t c = {.source = plan_case_graph("a = Relu(x); b = Exp(a); c = Abs(b); -> c, b")};
  cleave_editor_t editor;
  uint32_t rule = 0;
  unit_ok(cleave_graph_copy(c.source, &c.result, e));
  unit_ok(cleave_edits_create(&c.edits, e));
  unit_ok(cleave_graph_hash(c.source, &c.edits->source_hash, e));
  c.edits->source_nodes = cleave_graph_node_bound(c.source);
  c.edits->source_values = cleave_graph_value_bound(c.source);
  unit_ok(cleave_edits_add_rule(
      c.edits, &(cleave_edit_rule_t){.kind = "pass", .name = "p", .file = "r.lua", .line = 3, .number = 2},
      &rule, e));
  unit_ok(cleave_edits_refuse(c.edits, rule, "a", "not this one", e));
  unit_ok(cleave_edits_begin(c.edits, rule, "here", e));
  cleave_editor_init(&editor, c.result, c.edits);
  editor.first_node = cleave_graph_node_bound(c.result);
  change_everything(&editor);
  cleave_edits_end(c.edits);
  cleave_editor_deinit(&editor);
  unit_ok(cleave_graph_hash(c.result, &c.edits->result_hash, e));
  return c;
}

static void free_log(log_case_t *c) {
  cleave_edits_destroy(c->edits);
  cleave_graph_destroy(c->result);
}

UNIT_TEST(every_kind_of_step_comes_back_from_json) {
  log_case_t c = make_log();
  ck_assert_uint_eq(c.edits->groups.count, 1);
  ck_assert_uint_eq(c.edits->groups.items[0].nodes_made, 1);
  ck_assert_uint_eq(c.edits->groups.items[0].nodes_taken, 1);
  ck_assert_uint_eq(cleave_edits_nodes_taken(c.edits, 2), 1);
  ck_assert_uint_eq(cleave_edits_nodes_taken(c.edits, 0), 0);
  bool seen[CLEAVE_EDIT_KIND_COUNT] = {false};
  for (size_t k = 0; k < c.edits->items.count; k++) {
    seen[c.edits->items.items[k].kind] = true;
  }
  for (int k = 0; k < CLEAVE_EDIT_KIND_COUNT; k++) {
    ck_assert_msg(seen[k], "%s", cleave_edit_kind_name((cleave_edit_kind_t)k));
  }
  // Folding on cpu removes nothing here, so the runtime's and the editor's own agree.
  edits_case_check_replay(c.source, c.edits, c.result);
  free_log(&c);
}

UNIT_TEST(the_log_does_not_need_its_graph) {
  log_case_t c = make_log();
  cleave_graph_destroy(c.result);
  c.result = NULL;
  ck_assert_str_eq(edits_case_text(c.edits), edits_case_text(c.edits));
  free_log(&c);
}

UNIT_TEST(another_graph_is_refused) {
  log_case_t c = make_log();
  cleave_graph_t *other = plan_case_graph("a = Relu(x); b = Sin(a); c = Abs(b); -> c, b");
  cleave_graph_t *out = NULL;
  unit_fails(cleave_transform_replay(other, c.edits, NULL, &out, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "the changes were made to another graph than this one");
  ck_assert_ptr_null(out);
  c.edits->result_hash++;
  unit_fails(cleave_transform_replay(c.source, c.edits, NULL, &out, e), CLEAVE_ERROR_INVALID_ARGUMENT,
             "the changes give another graph than they should");
  free_log(&c);
}

// ---- logs from outside ----

/* Reads a log with `steps`, and performs it on a = Relu(x); b = Exp(a); -> b. */
static const char *perform(const char *steps) {
  cleave_graph_t *graph = plan_case_graph("a = Relu(x); b = Exp(a); -> b");
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_edits_t *edits = NULL;
  cleave_graph_t *out = NULL;
  uint64_t hash = 0;
  char text[2048];
  unit_ok(cleave_graph_hash(graph, &hash, e));
  (void)snprintf(
      text, sizeof text,
      "{\"source\":{\"hash\":\"%016llx\",\"nodes\":2,\"values\":3},\"result\":{\"hash\":"
      "\"0000000000000000\"},\"rules\":[{\"kind\":\"pass\",\"name\":\"p\",\"file\":\"r.lua\",\"line\":1,"
      "\"number\":0,\"tries\":1,\"matches\":1,\"refused\":0}],\"groups\":[{\"rule\":0,\"steps\":[%s]}],"
      "\"refusals\":[]}",
      (unsigned long long)hash, steps);
  json_error_t json_error;
  json_t *json = json_loads(text, 0, &json_error);
  ck_assert_msg(json != NULL, "%s in %s", json_error.text, text);
  cleave_status_t status = cleave_edits_from_json("log", json, &edits, &error);
  json_decref(json);
  if (status == CLEAVE_OK) {
    status = cleave_transform_replay(graph, edits, NULL, &out, &error);
  } else {
    ck_assert_int_eq(status, CLEAVE_ERROR_FORMAT);
  }
  ck_assert_int_ne(status, CLEAVE_OK);
  ck_assert_ptr_null(out);
  cleave_edits_destroy(edits);
  return plan_case_keep(cleave_copy_text(error.message, strlen(error.message)));
}

#define STEP(kind, rest) "{\"do\":\"" kind "\"," rest "}"

UNIT_TEST(members_have_their_types_and_ranges) {
#define AT "log: edits.groups[0].steps[0]: "
  ck_assert_str_eq(perform("{}"), AT "member 'do' is missing");
  ck_assert_str_eq(perform("7"), AT "expected an object, found a whole number");
  ck_assert_str_eq(perform(STEP("explode", "\"node\":1")), AT "do: 'explode' is not a kind of change");
  ck_assert_str_eq(perform(STEP("remove_node", "\"nod\":1")),
                   AT "member 'nod' is unknown (did you mean 'node'?)");
  ck_assert_str_eq(perform(STEP("remove_node", "\"node\":-1")),
                   "log: edits.groups[0].steps[0].node: expected 0 to 4294967294, found -1");
  ck_assert_str_eq(perform(STEP("remove_node", "\"node\":\"1\"")),
                   "log: edits.groups[0].steps[0].node: expected a whole number, found a string");
  ck_assert_str_eq(
      perform(STEP("add_node", "\"op\":\"Relu\",\"name\":\"n\",\"inputs\":[1.5],\"outputs\":1,\"node\":2")),
      "log: edits.groups[0].steps[0].inputs[0]: expected a value's number, or null");
  ck_assert_str_eq(perform(STEP("add_constant",
                                "\"name\":\"c\",\"dtype\":\"float33\",\"shape\":[],\"data\":[1],"
                                "\"value\":3")),
                   AT "dtype 'float33' is unknown");
  ck_assert_str_eq(perform(STEP("add_constant",
                                "\"name\":\"c\",\"dtype\":\"float32\",\"shape\":[2],\"data\":[1],"
                                "\"value\":3")),
                   AT "data: expected a list of 2 elements, or base64");
  ck_assert_str_eq(perform(STEP("add_constant",
                                "\"name\":\"c\",\"dtype\":\"float32\",\"shape\":[2],"
                                "\"data\":\"AAAA\",\"value\":3")),
                   AT "data: expected base64 of 8 bytes");
  const char *too_large =
      AT "expected a constant of a known dtype, with at most 8 dimensions, and 64 MiB in all constants";
  ck_assert_str_eq(perform(STEP("add_constant",
                                "\"name\":\"c\",\"dtype\":\"float32\",\"shape\":[99999999999,"
                                "99999999999],\"data\":\"\",\"value\":3")),
                   too_large);
  ck_assert_str_eq(perform(STEP("add_constant",
                                "\"name\":\"c\",\"dtype\":\"float32\",\"shape\":[17000000],"
                                "\"data\":\"\",\"value\":3")),
                   too_large);
  ck_assert_str_eq(
      perform(STEP("add_input", "\"name\":\"i\",\"dtype\":\"float32\",\"shape\":[-4],\"value\":3")),
      "log: edits.groups[0].steps[0].shape[0]: expected a size, a name, or null for one that is not known");
}

UNIT_TEST(steps_that_cannot_be_are_refused) {
  ck_assert_str_eq(perform(STEP("remove_node", "\"node\":77")), "change 0: node 77 does not exist");
  ck_assert_str_eq(perform(STEP("remove_node", "\"node\":0")),
                   "change 0: node 'a' cannot be removed: 'b' reads it");
  ck_assert_str_eq(
      perform(STEP("set_input", "\"node\":0,\"input\":0,\"value\":2")),
      "change 0: reading value 'b' here would close a cycle: it depends on the node that is to read it");
  ck_assert_str_eq(perform(STEP("set_input", "\"node\":0,\"input\":0,\"value\":null")),
                   "change 0: operator 'Relu': input 'X' cannot be left out");
  ck_assert_str_eq(perform(STEP("set_input", "\"node\":0,\"input\":9,\"value\":0")),
                   "change 0: operator 'Relu' has 1 input here: there is no input 9");
  ck_assert_str_eq(perform(STEP("set_output", "\"output\":4,\"value\":0")),
                   "change 0: the graph has 1 output: there is no output 4");
  ck_assert_str_eq(perform(STEP("set_attribute", "\"node\":0")),
                   "change 0: set_attribute: expected one attribute");
  ck_assert_str_eq(perform(STEP("replace_uses", "\"from\":1,\"value\":0,\"since\":0")),
                   "change 0: replace_uses: nodes of the graph itself are not new");
  ck_assert_str_eq(perform(STEP("replace_uses", "\"from\":900,\"value\":0,\"since\":2")),
                   "change 0: value 900 does not exist");
  ck_assert_str_eq(
      perform(STEP("add_node", "\"op\":\"Relu\",\"name\":\"n\",\"inputs\":[55],\"outputs\":1,\"node\":2")),
      "change 0: operator 'Relu': input 0 is value 55, which does not exist");
  ck_assert_str_eq(
      perform(STEP("add_node", "\"op\":\"Relu\",\"name\":\"n\",\"inputs\":[0],\"outputs\":1,\"node\":9")),
      "change 0: add_node: it makes another node");
  ck_assert_str_eq(
      perform(STEP("add_input", "\"name\":\"x\",\"dtype\":\"float32\",\"shape\":null,\"value\":3")),
      "change 0: input 'x': the graph has one already");
  ck_assert_str_eq(perform(STEP("name_value", "\"name\":\"x\",\"value\":44")),
                   "change 0: name 'x': value 44 does not exist");
  ck_assert_str_eq(perform(STEP("name_node", "\"name\":\"x\",\"node\":44")),
                   "change 0: name 'x': node 44 does not exist");
}

UNIT_TEST(any_member_may_be_anything) {
  // Every member of a good log replaced by values of other types: an error, or the same graph, never more.
  static const char *const values[] = {"null", "true", "-1",   "0",  "4294967295", "1e300",
                                       "\"\"", "[]",   "[[]]", "{}", "[null]",     "99999999999999999"};
  log_case_t c = make_log();
  const char *text = edits_case_text(c.edits);
  size_t tried = 0;
  for (const char *at = strchr(text, ':'); at != NULL; at = strchr(at + 1, ':')) {
    const char *end = at + 1;
    for (int depth = 0; depth > 0 || (*end != ',' && *end != '}'); end++) {
      depth += (*end == '{' || *end == '[') - (*end == '}' || *end == ']');
    }
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++, tried++) {
      cleave_text_t broken = {0};
      cleave_text_append(&broken, text, (size_t)(at + 1 - text));
      cleave_text_add(&broken, values[v]);
      cleave_text_add(&broken, end);
      json_t *json = json_loads(cleave_text_get(&broken), 0, NULL);
      cleave_edits_t *edits = NULL;
      cleave_graph_t *out = NULL;
      if (json != NULL && cleave_edits_from_json("log", json, &edits, NULL) == CLEAVE_OK &&
          cleave_transform_replay(c.source, edits, NULL, &out, NULL) == CLEAVE_OK) {
        uint64_t hash = 0;
        unit_ok(cleave_graph_hash(out, &hash, e));
        ck_assert(hash == c.edits->result_hash);
      }
      cleave_graph_destroy(out);
      cleave_edits_destroy(edits);
      json_decref(json);
      cleave_text_deinit(&broken);
    }
  }
  ck_assert_uint_gt(tried, 1000);
  free_log(&c);
}

UNIT_TEST(constants_beyond_a_limit_do_not_go_into_files) {
  cleave_edits_t *edits = NULL;
  json_t *json = NULL;
  const int64_t dims[1] = {(int64_t)17 << 20};
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_edits_create(&edits, e));
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, dims, &tensor, e));
  unit_ok(cleave_edits_begin(edits, CLEAVE_INDEX_NONE, "", e));
  unit_ok(cleave_edits_add(edits, &(cleave_edit_t){.kind = CLEAVE_EDIT_ADD_CONSTANT, .tensor = tensor}, e));
  cleave_edits_end(edits);
  unit_fails_with(cleave_edits_to_json(edits, &json, e), CLEAVE_ERROR_LIMIT,
                  "the constants that rules made have more than 64 MiB");
  ck_assert_ptr_null(json);
  cleave_tensor_release(tensor);
  cleave_edits_destroy(edits);
}

UNIT_SUITE("edits")
