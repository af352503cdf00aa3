// SPDX-License-Identifier: Apache-2.0
// Plans from JSON: round trips to the same bytes, every kind of damage with its message, other models.

#include "partition/plan/plan_read.h"

#include <math.h>

#include "plan_case.h"
#include "unit.h"

static const char graph_text[] =
    "c = Conv(x, $w); r = Relu(c); p = MaxPool(r); s = Softmax(p); a = Add(p, s); -> a, s";

/* Regions over MaxPool, Add, Conv, Relu; attributes of all kinds on the first region. */
static cleave_plan_t *sample(const cleave_graph_t *graph) {
  static const int64_t ints[3] = {-1, 0, INT64_MAX};
  static const float floats[3] = {0.1F, -INFINITY, 3.4028235e38F};
  static const char *const strings[2] = {"one", "t\xff wo"};
  static const cleave_attribute_t attributes[] = {
      {.name = "a_int", .kind = CLEAVE_ATTRIBUTE_INT, .i = INT64_MIN},
      {.name = "b_float", .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = 0.1},
      {.name = "c_string", .kind = CLEAVE_ATTRIBUTE_STRING, .count = 3, .s = "a\0b"},
      {.name = "d_ints", .kind = CLEAVE_ATTRIBUTE_INTS, .count = 3, .ints = ints},
      {.name = "e_floats", .kind = CLEAVE_ATTRIBUTE_FLOATS, .count = 3, .floats = floats},
      {.name = "f_strings", .kind = CLEAVE_ATTRIBUTE_STRINGS, .count = 2, .strings = strings},
      {.name = "g_nothing", .kind = CLEAVE_ATTRIBUTE_INTS, .count = 0, .ints = ints}};
  const cleave_ruleset_t *ruleset = plan_case_ops("MaxPool,Add,Conv,Relu");
  cleave_plan_t *plan = plan_case_run(graph, &ruleset, 1, NULL);
  cleave_plan_region_t *regions = (cleave_plan_region_t *)(uintptr_t)plan->regions;
  regions[0].attributes = attributes;
  regions[0].attribute_count = sizeof attributes / sizeof attributes[0];
  return plan;
}

static const char *json_of(const cleave_plan_t *plan) {
  cleave_text_t text = {0};
  unit_ok(cleave_plan_print_json(plan, &text, e));
  return plan_case_keep(text.data);
}

static cleave_plan_document_t *read_text(const char *text) {
  cleave_plan_document_t *document = NULL;
  unit_ok(cleave_plan_document_read("p.json", text, strlen(text), &document, e));
  return document;
}

UNIT_TEST(a_plan_comes_back_as_the_same_bytes) {
  cleave_graph_t *graph = plan_case_graph(graph_text);
  const char *text = json_of(sample(graph));
  cleave_plan_document_t *document = read_text(text);
  cleave_text_t again = {0};
  unit_ok(cleave_plan_document_print(document, &again, e));
  ck_assert_str_eq(cleave_text_get(&again), text);
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_plan_rebuild(document, graph, &plan, e));
  cleave_plan_document_destroy(document);
  ck_assert_str_eq(json_of(plan), text);
  unit_ok(cleave_plan_check(plan, e));
  const cleave_attribute_t *attributes = plan->regions[0].attributes;
  ck_assert_uint_eq(plan->regions[0].attribute_count, 7);
  ck_assert_int_eq(attributes[0].i, INT64_MIN);
  ck_assert_double_eq(attributes[1].f, 0.1);
  ck_assert_uint_eq(attributes[2].count, 3);
  ck_assert_mem_eq(attributes[2].s, "a\0b", 4);
  ck_assert_int_eq(attributes[3].ints[2], INT64_MAX);
  ck_assert(isinf(attributes[4].floats[1]));
  ck_assert_float_eq(attributes[4].floats[2], 3.4028235e38F);
  ck_assert_str_eq(attributes[5].strings[1], "t\xff wo");
  ck_assert_uint_eq(attributes[6].count, 0);
  cleave_text_deinit(&again);
  cleave_plan_destroy(plan);
}

UNIT_TEST(a_plan_without_rules_comes_back) {
  cleave_graph_t *graph = plan_case_graph(graph_text);
  const char *text = json_of(plan_case_run(graph, NULL, 0, NULL));
  cleave_plan_document_t *document = read_text(text);
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_plan_rebuild(document, graph, &plan, e));
  ck_assert_str_eq(json_of(plan), text);
  cleave_plan_document_destroy(document);
  cleave_plan_destroy(plan);
}

/* `text` with every `from` replaced; there is one. */
static const char *replace(const char *text, const char *from, const char *to) {
  cleave_text_t result = {0};
  const char *at = strstr(text, from);
  ck_assert_msg(at != NULL, "'%s' is not in %s", from, text);
  for (; at != NULL; text = at + strlen(from), at = strstr(text, from)) {
    cleave_text_append(&result, text, (size_t)(at - text));
    cleave_text_add(&result, to);
  }
  cleave_text_add(&result, text);
  return plan_case_keep(result.data);
}

/* The sample's JSON with the first `from` replaced. */
static const char *changed(const char *from, const char *to) {
  const char *text = json_of(sample(plan_case_graph(graph_text)));
  const char *at = strstr(text, from);
  ck_assert_msg(at != NULL, "'%s' is not in %s", from, text);
  cleave_text_t result = {0};
  cleave_text_append(&result, text, (size_t)(at - text));
  cleave_text_add(&result, to);
  cleave_text_add(&result, at + strlen(from));
  return plan_case_keep(result.data);
}

static void refused(const char *from, const char *to, const char *message) {
  const char *text = changed(from, to);
  cleave_plan_document_t *document = NULL;
  unit_fails_with(cleave_plan_document_read("p.json", text, strlen(text), &document, e), CLEAVE_ERROR_FORMAT,
                  message);
  ck_assert_ptr_null(document);
}

UNIT_TEST(every_line_of_damage_has_place_expected_and_found) {
  refused("\"format\"", "\"formt\"", "p.json: member 'format' is missing");
  refused("cleave-plan", "leave-plan", "p.json: format: expected 'cleave-plan', found 'leave-plan'");
  refused("\"version\": 1", "\"version\": 2",
          "p.json: version: this program reads plans of version 1, found 2");
  refused("\"version\": 1", "\"version\": \"1\"", "p.json: version: expected a whole number, found a string");
  refused("\"rules\": [", "\"rulez\": [], \"rules\": [",
          "p.json: member 'rulez' is unknown (did you mean 'rules'?)");
  refused("\"hash\":\"", "\"hash\":\"x", "p.json: graph: hash: expected 16 digits");
  refused("\"nodes\":5", "\"nodes\":-1", "p.json: graph.nodes: expected 0 to 4294967294, found -1");
  refused("\"nodes\":5", "\"nodes\":6", "p.json: the steps have 5 nodes, the graph 6");
  refused("\"nodes\":5", "\"nodes\":4", "there is no node 4: the plan has 4");
  refused("\"kind\":\"region\"", "\"kind\":\"regio\"", "p.json: rules[0]: kind 'regio' is none of");
  refused("\"line\":1", "\"line\":1e9", "p.json: rules[0].line: expected a whole number, found a number");
  refused("\"rule\": 0", "\"rule\": 1", "p.json: regions[0].rule: there is no rule 1: the plan has 1");
  refused("\"rule\": 0", "\"rule\": null", "p.json: regions[0].rule: expected a whole number, found null");
  refused("{\"input\":0,", "{\"input\":1,", "p.json: regions[0].inputs[0].input: there is no input 1");
  refused("{\"input\":0,", "{\"input\":0,\"output\":0,",
          "a value is an input or the output of a node, not both");
  refused("{\"position\":0,\"op\":\"Conv\"", "{\"position\":1,\"op\":\"Conv\"", "node 1 is in two steps");
  refused("{\"region\":\"", "{\"region\":\"x", "p.json: steps[0]: expected region '");
  refused("\"kind\":\"ints\"", "\"kind\":\"intz\"",
          "p.json: regions[0].attributes[3]: kind 'intz' is none of");
  refused("[-1,0,", "[-1,0.5,",
          "p.json: regions[0].attributes[3][1]: expected a whole number, found a number");
  refused("{\"hex\":\"", "{\"hex\":\"0", "expected a string, or {\"hex\": \"...\"}");
  refused("\"a_int\"", "\"z_int\"", "attributes: expected in order of their names, each once");
  refused("\"-inf\"", "\"inff\"", "expected a number, found a string");
  refused("{\n", "[1]{\n", "p.json:1: not JSON: ");
  refused("\"notes\": [", "\"notes\": [[[[", "p.json:");
}

UNIT_TEST(deep_and_empty_texts_are_refused) {
  static char deep[200000];
  cleave_plan_document_t *document = NULL;
  memset(deep, '[', sizeof deep - 1);
  unit_fails_with(cleave_plan_document_read("p", deep, sizeof deep - 1, &document, e), CLEAVE_ERROR_FORMAT,
                  "p:1: not JSON: maximum parsing depth reached");
  unit_fails_with(cleave_plan_document_read("p", "", 0, &document, e), CLEAVE_ERROR_FORMAT,
                  "p:1: not JSON: ");
  unit_fails_with(cleave_plan_document_read("p", "[]", 2, &document, e), CLEAVE_ERROR_FORMAT,
                  "p: expected an object, found a list");
  unit_fails_with(cleave_plan_document_read("p", "{\"a\":1,\"a\":2}", 13, &document, e), CLEAVE_ERROR_FORMAT,
                  "duplicate object key");
}

/* Where readers of JSON go wrong, written by hand or not: numbers at their ends, escapes, depth. */
UNIT_TEST(numbers_and_texts_are_read_as_json_has_them) {
  refused("[-1,0,", "[-1,-9223372036854775809,", "too big negative integer");
  refused("[-1,0,", "[-1,9223372036854775808,", "too big integer");
  refused("[-1,0,", "[-1,-0.0,", "expected a whole number, found a number");
  refused("[-1,0,", "[-01,0,", "not JSON");
  refused("[-1,0,", "[+1,0,", "not JSON");
  refused("[-1,0,", "[- 1,0,", "not JSON");
  refused("[-1,0,", "[.5,0,", "not JSON");
  refused("[-1,0,", "[1.,0,", "not JSON");
  refused("[-1,0,", "[0x1,0,", "not JSON");
  refused("[-1,0,", "[NaN,0,", "not JSON");
  refused("[-1,0,", "[1e999,0,", "real number overflow");
  refused("[-1,0,", "[/* */ -1,0,", "not JSON");
  refused("\"nodes\":5", "\"nodes\":5e0", "p.json: graph.nodes: expected a whole number, found a number");
  refused("\"nodes\":5", "\"nodes\":4294967295", "expected 0 to 4294967294, found 4294967295");
  refused("\"a_int\"", "\"a_\\q\"", "invalid escape");
  refused("\"a_int\"", "\"a_\\u12\"", "invalid escape");
  refused("\"a_int\"", "\"a_\\ud83d\"", "p.json:");
  refused("\"a_int\"", "\"a_\\udc00\\ud83d\"", "p.json:");
  refused("\"a_int\"", "\"a_\\u0000\"", "p.json:");
  refused("\"a_int\"", "\"a_\xc3\"", "p.json:");
  refused("\"a_int\"", "\"a_\t\"", "control character");
  refused("\"a_int\"", "'a_int'", "not JSON");
  refused("\"kind\":\"int\"", "\"kind\":\"int\",\"kind\":\"int\"", "duplicate object key");
  refused("[-1,0,", "[-1,,0,", "not JSON");
}

UNIT_TEST(escapes_and_unusual_floats_come_back) {
  cleave_graph_t *graph = plan_case_graph(graph_text);
  static const uint32_t bits[6] = {0x80000000, 0x00000001, 0x7f7fffff, 0x7fc00000, 0xffc00001, 0x7f800000};
  float floats[6];
  memcpy(floats, bits, sizeof bits);
  const cleave_attribute_t attributes[] = {
      {.name = "a\\\"\x01/\xc3\xa4\xf0\x9f\x98\x80", .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = -0.0},
      {.name = "b", .kind = CLEAVE_ATTRIBUTE_FLOATS, .count = 6, .floats = floats},
      {.name = "c", .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = 4.9406564584124654e-324}};
  cleave_plan_t *plan = sample(graph);
  cleave_plan_region_t *regions = (cleave_plan_region_t *)(uintptr_t)plan->regions;
  regions[0].attributes = attributes;
  regions[0].attribute_count = 3;
  cleave_plan_document_t *document = read_text(json_of(plan));
  const cleave_attribute_t *back = document->regions[0].attributes;
  ck_assert_str_eq(back[0].name, attributes[0].name);
  ck_assert(back[0].f == 0.0 && signbit(back[0].f));
  ck_assert_mem_eq(back[1].floats, bits, sizeof bits);
  ck_assert(back[2].f == attributes[2].f);
  cleave_plan_document_destroy(document);
  const char *text = changed("\"name\":\"a_int\"", "\"name\":\"a_\\u0069nt\"");
  document = read_text(text);
  ck_assert_str_eq(document->regions[0].attributes[0].name, "a_int");
  cleave_plan_document_destroy(document);
}

static void other_model(const char *graph, const char *message) {
  const char *text = json_of(sample(plan_case_graph(graph_text)));
  cleave_plan_document_t *document = read_text(text);
  cleave_plan_t *plan = NULL;
  unit_fails(cleave_plan_rebuild(document, plan_case_graph(graph), &plan, e), CLEAVE_ERROR_MISMATCH, message);
  ck_assert_ptr_null(plan);
  cleave_plan_document_destroy(document);
}

UNIT_TEST(a_plan_of_another_model_says_what_differs) {
  other_model("c = Conv(x, $w); r = Elu(c); p = MaxPool(r); s = Softmax(p); a = Add(p, s); -> a, s",
              "p.json: the plan is of another model: node 1 is Elu 'r', the plan has Relu 'r'");
  other_model("c = Conv(x, $w); r = Relu(c); p = MaxPool(r); s = Softmax(p); -> s",
              "p.json: the plan is of another model: it has 4 nodes, the plan 5");
  other_model(
      "r = Relu(x); p = MaxPool(r); s = Softmax(p); a = Add(p, s); -> a, s",
      "p.json: the plan is of another model: it has 4 nodes, the plan 5; node 0 is Relu 'r', the plan "
      "has Conv 'c'");
  other_model("c = Conv(x, $w); r = Relu(c); p = MaxPool(r); s = Softmax(p); a = Add(p, q); -> a, s",
              "p.json: the plan is of another model: it has 2 inputs, the plan 1");
}

UNIT_TEST(a_plan_for_other_sizes_names_the_input) {
  cleave_graph_t *graph = plan_case_graph("r = Relu(x); -> r");
  const int64_t dims[2][2] = {{2, 3}, {4, 3}};
  cleave_value_t x = graph->inputs.items[0];
  unit_ok(cleave_graph_set_type(graph, x, CLEAVE_DTYPE_F32, 2, dims[0], e));
  cleave_plan_document_t *document = read_text(json_of(plan_case_run(graph, NULL, 0, NULL)));
  unit_ok(cleave_graph_set_type(graph, x, CLEAVE_DTYPE_F32, 2, dims[1], e));
  unit_fails(cleave_plan_document_match(document, graph, e), CLEAVE_ERROR_MISMATCH,
             "p.json: the plan is of another model: input 'x' is float32[4, 3], the plan was made for "
             "float32[2, 3]");
  cleave_plan_document_destroy(document);
}

UNIT_TEST(attributes_and_edges_that_differ_are_noticed_by_the_hash) {
  const char *text = json_of(plan_case_run(plan_case_graph("s = Softmax{axis=1}(x); -> s"), NULL, 0, NULL));
  cleave_plan_document_t *document = read_text(text);
  unit_fails_with(cleave_plan_document_match(document, plan_case_graph("s = Softmax{axis=0}(x); -> s"), e),
                  CLEAVE_ERROR_MISMATCH, "but their attributes, edges or constants are not (hash ");
  cleave_plan_document_destroy(document);
}

/* What is well-formed and no plan: what cleave_plan_check finds, and what it takes for granted. */
static void no_plan(const char *text, const char *graph, const char *message) {
  cleave_plan_document_t *document = read_text(text);
  cleave_plan_t *plan = NULL;
  unit_fails_with(cleave_plan_rebuild(document, plan_case_graph(graph), &plan, e), CLEAVE_ERROR_FORMAT,
                  message);
  cleave_plan_document_destroy(document);
}

UNIT_TEST(a_document_that_is_no_plan_of_the_model_is_refused) {
  no_plan(changed("{\"position\":2,\"output\":0", "{\"position\":0,\"output\":0"), graph_text,
          "p.json: no plan of this model: plan: outputs of a region");
  no_plan(changed("{\"position\":2,\"output\":0", "{\"position\":2,\"output\":9"), graph_text,
          "p.json: region 'island_0': an input or output is an output that its node does not have");
  const char *text = json_of(sample(plan_case_graph(graph_text)));
  no_plan(replace(text, "\"island_1\"", "\"island_0\""), graph_text,
          "p.json: region 'island_0': two regions have this name");
}

/* A plan of one region {a b c}, with these fusions. */
static const char *with_fusions(const char *graph, const char *fusions) {
  const cleave_ruleset_t *ruleset = plan_case_ops("Relu,Cos");
  const char *text = json_of(plan_case_run(plan_case_graph(graph), &ruleset, 1, NULL));
  text = replace(text, "\"fusions\": []", fusions);
  return replace(
      text, "\"rules\": [",
      "\"rules\": [{\"kind\":\"fuse\",\"name\":\"f\",\"ruleset\":\"\",\"backend\":\"test\",\"file\":\"\","
      "\"line\":0,\"tries\":0,\"matches\":0,\"refused\":0},");
}

UNIT_TEST(fusions_that_cannot_run_are_refused) {
  const char *graph = "a = Relu(x); b = Cos(a); c = Relu(b); -> c";
  no_plan(with_fusions(graph,
                       "\"fusions\": [{\"rule\":0,\"nodes\":[{\"position\":0,\"op\":\"Relu\"},"
                       "{\"position\":2,\"op\":\"Relu\"}]}]"),
          graph, "p.json: no plan of this model: plan: fusions of a region form a cycle");
  no_plan(with_fusions(graph,
                       "\"fusions\": [{\"rule\":0,\"nodes\":[{\"position\":1,\"op\":\"Cos\"},"
                       "{\"position\":0,\"op\":\"Relu\"}]}]"),
          graph, "p.json: region 'island_0': the nodes of a fusion are not in topological order");
  no_plan(with_fusions(graph,
                       "\"fusions\": [{\"rule\":0,\"nodes\":[{\"position\":1,\"op\":\"Cos\"},"
                       "{\"position\":1,\"op\":\"Cos\"}]}]"),
          graph, "p.json: region 'island_0': a node is in two fusions");
  cleave_plan_document_t *document = NULL;
  const char *text = with_fusions(graph, "\"fusions\": [{\"rule\":0,\"nodes\":[]}]");
  unit_fails(cleave_plan_document_read("p", text, strlen(text), &document, e), CLEAVE_ERROR_FORMAT,
             "p: regions[0].fusions[0]: a fusion has no nodes");
  text = with_fusions(graph, "\"fusions\": [{\"rule\":1,\"nodes\":[{\"position\":1,\"op\":\"Cos\"}]}]");
  unit_fails(cleave_plan_document_read("p", text, strlen(text), &document, e), CLEAVE_ERROR_FORMAT,
             "p: regions[0].fusions[0]: rule 1 makes no fusions");
}

UNIT_TEST(regions_taken_apart_leave_their_nodes_in_place) {
  cleave_graph_t *graph = plan_case_graph(graph_text);
  cleave_plan_document_t *document = read_text(json_of(sample(graph)));
  const char *reasons[2] = {"no such backend", NULL};
  unit_ok(cleave_plan_document_dissolve(document, reasons, e));
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_plan_rebuild(document, graph, &plan, e));
  ck_assert_str_eq(plan_case_regions(plan), "{a}");
  ck_assert_uint_eq(plan->step_count, 5);
  ck_assert_uint_eq(plan->steps[4].region, 0);
  ck_assert_ptr_nonnull(strstr(plan_case_notes(plan, CLEAVE_PLAN_NOTE_BACKEND), "no such backend"));
  cleave_plan_document_destroy(document);
  cleave_plan_destroy(plan);
}

UNIT_SUITE("plan_read")
