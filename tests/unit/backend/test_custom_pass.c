// SPDX-License-Identifier: Apache-2.0
// Passes of libraries: every word of the editor, what it refuses, and plans that replay without the library.
#include "base/memory.h"
#include "library_case.h"
#include "partition/plan/plan.h"
#include "unit.h"

#define NEW_NODE(...) (&(cleave_new_node_t){.size = sizeof(cleave_new_node_t), __VA_ARGS__})

#define MODEL                                       \
  "local x = g.input('x', 'float32', { 'N', 2 })\n" \
  "local a = g.Exp(x, { name = 'exp' })\n"          \
  "g.output('y', g.LeakyRelu(g.Neg(a, { name = 'neg' }), { alpha = 0.5, name = 'leaky' }))\n"

static cleave_status_t (*body)(const cleave_graph_editor_t *g, cleave_message_t *m); /* of the pass */
static char seen_option[32]; /* "" where there is none */

static cleave_status_t run(void *self, const cleave_graph_editor_t *editor, const cleave_key_value_t *options,
                           uint32_t option_count, cleave_message_t *message) {
  ck_assert_ptr_eq(self, &body);
  (void)snprintf(seen_option, sizeof seen_option, "%s", option_count > 0 ? options[0].value : "");
  return body(editor, message);
}

static const cleave_custom_pass_t pass = {.size = sizeof pass, .name = "change", .self = &body, .run = run};

/* Node of the graph by name. */
static uint32_t node(const cleave_graph_editor_t *g, const char *name) {
  const cleave_region_view_t *view = g->view(g->graph);
  if (view == NULL) { /* no memory */
    return CLEAVE_INDEX_NONE;
  }
  for (uint32_t k = 0; k < view->node_count; k++) {
    if (strcmp(view->nodes[k].name, name) == 0) {
      return g->node_of(g->graph, k);
    }
  }
  ck_abort_msg("no node '%s'", name);
  return CLEAVE_INDEX_NONE;
}

/* Output of a node by name. */
static uint32_t output(const cleave_graph_editor_t *g, const char *name) {
  const cleave_region_view_t *view = g->view(g->graph);
  if (view == NULL) { /* no memory */
    return CLEAVE_INDEX_NONE;
  }
  for (uint32_t k = 0; k < view->node_count; k++) {
    if (strcmp(view->nodes[k].name, name) == 0) {
      return g->value_of(g->graph, view->nodes[k].outputs[0]);
    }
  }
  ck_abort_msg("no node '%s'", name);
  return CLEAVE_INDEX_NONE;
}

static cleave_status_t partition(cleave_model_t *model, cleave_plan_t **out_plan, cleave_error_t *error) {
  return library_case_partition(model, "cpu/change", "how=now", NULL, out_plan, error);
}

/* The pass on the model, run on {1, 2} (and the same for other inputs): the output. */
static void check(cleave_status_t (*what)(const cleave_graph_editor_t *, cleave_message_t *),
                  const float expected[2]) {
  static const int64_t DIMS[2] = {1, 2};
  static const float DATA[2] = {0.0f, 0.0f};
  body = what;
  cleave_model_t *model = library_case_model(MODEL);
  cleave_plan_t *plan = NULL;
  unit_ok(partition(model, &plan, e));
  unit_ok(cleave_plan_check(plan, e));
  ck_assert_str_eq(seen_option, "now");
  cleave_session_t *session = library_case_session(model, plan, 2, DIMS, DATA, NULL);
  library_case_run(session, 0, expected, 2);
  cleave_session_destroy(session);
  // The plan as a file, which replays the changes without the library.
  char *text = NULL;
  body = NULL;
  unit_ok(cleave_plan_format(plan, CLEAVE_PLAN_JSON, &text, e));
  cleave_plan_destroy(plan);
  unit_ok(
      cleave_plan_load(model, "saved",
                       &(cleave_plan_load_options_t){
                           .size = sizeof(cleave_plan_load_options_t), .text = text, .length = strlen(text)},
                       &plan, e));
  session = library_case_session(model, plan, 2, DIMS, DATA, NULL);
  library_case_run(session, 0, expected, 2);
  cleave_session_destroy(session);
  cleave_plan_destroy(plan);
  cleave_text_free(text);
  cleave_model_release(model);
}

static void check_fails(cleave_status_t (*what)(const cleave_graph_editor_t *, cleave_message_t *),
                        cleave_status_t status, const char *part) {
  body = what;
  cleave_model_t *model = library_case_model(MODEL);
  cleave_plan_t *plan = NULL;
  unit_fails_with(partition(model, &plan, e), status, part);
  ck_assert_ptr_null(plan);
  cleave_model_release(model);
}

#define REFUSED(call, expected, part)                                                          \
  do {                                                                                         \
    m->text[0] = '\0';                                                                         \
    cleave_status_t refused_ = (call);                                                         \
    ck_assert_msg(refused_ == (expected), "%s: status %d: %s", #call, (int)refused_, m->text); \
    ck_assert_msg(strstr(m->text, (part)) != NULL, "'%s' is not in '%s'", (part), m->text);    \
  } while (0)

/* ---- what works ---- */

/* Neg becomes Mul by an attribute's tensor and a constant; LeakyRelu gets another alpha. */
static cleave_status_t change_all(const cleave_graph_editor_t *g, cleave_message_t *m) {
  static const float MINUS_FOUR = -4.0f;
  const cleave_tensor_view_t scalar = {
      .size = sizeof scalar, .dtype = CLEAVE_DTYPE_F32, .rank = 0, .data = &MINUS_FOUR};
  const cleave_attribute_view_t alpha = {
      .size = sizeof alpha, .name = "alpha", .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = 0.25};
  uint32_t exp = output(g, "exp");
  uint32_t neg = output(g, "neg");
  uint32_t neg_node = node(g, "neg");
  uint32_t leaky = node(g, "leaky");
  uint32_t four = CLEAVE_INDEX_NONE;
  uint32_t product = CLEAVE_INDEX_NONE;
  CLEAVE_TRY(g->add_constant(g->graph, "four", &scalar, &four, m));
  CLEAVE_TRY(g->add_node(
      g->graph, NEW_NODE(.op = "Mul", .inputs = (uint32_t[]){exp, four}, .input_count = 2, .output_count = 1),
      &product, m));
  CLEAVE_TRY(g->replace_uses(g->graph, neg, product, m));
  CLEAVE_TRY(g->remove_node(g->graph, neg_node, m));
  CLEAVE_TRY(g->set_attribute(g->graph, leaky, &alpha, m));
  const cleave_region_view_t *view = g->view(g->graph);
  ck_assert(view == NULL || view->node_count == 3);
  return CLEAVE_OK;
}

/* One more input, added to what LeakyRelu reads; sizes with the name that x has for them. */
static cleave_status_t add_an_input(const cleave_graph_editor_t *g, cleave_message_t *m) {
  const cleave_region_view_t *view = g->view(g->graph);
  const cleave_tensor_view_t type = view->values[view->inputs[0]].tensor;
  uint32_t neg = output(g, "neg");
  uint32_t leaky = node(g, "leaky");
  uint32_t more = CLEAVE_INDEX_NONE;
  uint32_t sum = CLEAVE_INDEX_NONE;
  CLEAVE_TRY(g->add_input(g->graph, "more", &type, &more, m));
  CLEAVE_TRY(g->add_node(g->graph,
                         NEW_NODE(.op = "Add", .name = "sum", .inputs = (uint32_t[]){neg, more},
                                  .input_count = 2, .output_count = 1),
                         &sum, m));
  CLEAVE_TRY(g->set_input(g->graph, leaky, 0, sum, m));
  view = g->view(g->graph);
  ck_assert_uint_eq(view->input_count, 2);
  ck_assert(view->values[view->inputs[0]].tensor.dims[0] == view->values[view->inputs[1]].tensor.dims[0]);
  return CLEAVE_OK;
}

/* A node with lists and texts among its attributes. */
static cleave_status_t add_attributes(const cleave_graph_editor_t *g, cleave_message_t *m) {
  const cleave_attribute_view_t attributes[] = {{.size = sizeof *attributes,
                                                 .name = "perm",
                                                 .kind = CLEAVE_ATTRIBUTE_INTS,
                                                 .count = 2,
                                                 .ints = (int64_t[]){1, 0}}};
  const cleave_attribute_view_t cut = {
      .size = sizeof cut, .name = "approximate", .kind = CLEAVE_ATTRIBUTE_STRING, .s = "tanh"};
  uint32_t exp = output(g, "exp");
  uint32_t neg = output(g, "neg");
  uint32_t turned[3];
  CLEAVE_TRY(g->add_node(g->graph,
                         NEW_NODE(.op = "Transpose", .inputs = &neg, .input_count = 1,
                                  .attributes = attributes, .attribute_count = 1, .output_count = 1),
                         &turned[0], m));
  CLEAVE_TRY(g->add_node(g->graph,
                         NEW_NODE(.op = "Transpose", .inputs = turned, .input_count = 1,
                                  .attributes = attributes, .attribute_count = 1, .output_count = 1),
                         &turned[1], m));
  CLEAVE_TRY(g->add_node(g->graph,
                         NEW_NODE(.op = "Gelu", .inputs = &exp, .input_count = 1, .attributes = &cut,
                                  .attribute_count = 1, .output_count = 1),
                         &turned[2], m)); /* nobody reads it */
  return g->set_input(g->graph, node(g, "leaky"), 0, turned[1], m);
}

static cleave_status_t change_nothing(const cleave_graph_editor_t *g, cleave_message_t *m) {
  (void)m;
  ck_assert_ptr_eq(g->view(g->graph), g->view(g->graph));
  return CLEAVE_OK;
}

UNIT_TEST(a_pass_changes_a_graph_and_its_plan_replays_without_it) {
  library_case_pass(&pass);
  check(change_nothing, (float[]){-0.5f, -0.5f});
  check(change_all, (float[]){-1.0f, -1.0f});
  check(add_an_input, (float[]){-0.5f, -0.5f});
  check(add_attributes, (float[]){-0.5f, -0.5f});
}

/* ---- what is refused, and leaves the graph as it was ---- */

static cleave_status_t try_ids(const cleave_graph_editor_t *g, cleave_message_t *m) {
  uint32_t exp = output(g, "exp");
  uint32_t exp_node = node(g, "exp");
  uint32_t value = 7;
  ck_assert_uint_eq(g->value_of(g->graph, 1000), CLEAVE_INDEX_NONE);
  ck_assert_uint_eq(g->node_of(g->graph, CLEAVE_INDEX_NONE), CLEAVE_INDEX_NONE);
  REFUSED(g->remove_node(g->graph, 1000, m), CLEAVE_ERROR_INVALID_ARGUMENT, "node 1000 does not exist");
  REFUSED(g->remove_node(g->graph, exp_node, m), CLEAVE_ERROR_INVALID_ARGUMENT, "'neg' reads it");
  REFUSED(g->set_input(g->graph, exp_node, 0, 1000, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "value 1000 does not exist");
  REFUSED(g->set_input(g->graph, exp_node, 3, exp, m), CLEAVE_ERROR_INVALID_ARGUMENT, "there is no input 3");
  REFUSED(g->set_input(g->graph, exp_node, 0, CLEAVE_INDEX_NONE, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "cannot be left out");
  REFUSED(g->set_input(g->graph, exp_node, 0, output(g, "leaky"), m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "would close a cycle");
  REFUSED(g->replace_uses(g->graph, exp, 1000, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "value 1000 does not exist");
  REFUSED(
      g->replace_uses(g->graph, g->value_of(g->graph, g->view(g->graph)->inputs[0]), output(g, "leaky"), m),
      CLEAVE_ERROR_INVALID_ARGUMENT, "would close a cycle");
  REFUSED(g->add_node(g->graph, NEW_NODE(.op = "Expp", .inputs = &exp, .input_count = 1, .output_count = 1),
                      &value, m),
          CLEAVE_ERROR_INVALID_ARGUMENT, "operator 'Expp' is unknown (did you mean 'Exp'?)");
  REFUSED(
      g->add_node(g->graph,
                  NEW_NODE(.domain = "my.x", .op = "Op", .inputs = &exp, .input_count = 1, .output_count = 1),
                  &value, m),
      CLEAVE_ERROR_INVALID_ARGUMENT, "operator 'my.x.Op' is unknown");
  REFUSED(g->add_node(g->graph, NEW_NODE(.inputs = &exp, .input_count = 1, .output_count = 1), &value, m),
          CLEAVE_ERROR_INVALID_ARGUMENT, "a node without an operator");
  REFUSED(g->add_node(g->graph, NEW_NODE(.op = "Add", .inputs = &exp, .input_count = 1, .output_count = 1),
                      &value, m),
          CLEAVE_ERROR_INVALID_ARGUMENT, "Add needs 2 inputs");
  const cleave_attribute_view_t twice[2] = {
      {.size = sizeof twice[0], .name = "alpha", .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = 0.5},
      {.size = sizeof twice[0], .name = "alpha", .kind = CLEAVE_ATTRIBUTE_FLOAT, .f = 0.25}};
  REFUSED(g->add_node(g->graph,
                      NEW_NODE(.op = "LeakyRelu", .inputs = &exp, .input_count = 1, .output_count = 1,
                               .attributes = twice, .attribute_count = 2),
                      &value, m),
          CLEAVE_ERROR_INVALID_ARGUMENT, "operator 'LeakyRelu': attribute 'alpha' is given twice");
  REFUSED(g->add_node(g->graph, NEW_NODE(.op = "Exp", .input_count = 1, .output_count = 1), &value, m),
          CLEAVE_ERROR_INVALID_ARGUMENT, "lists of inputs and attributes");
  REFUSED(g->add_node(g->graph, NEW_NODE(.op = "Exp", .inputs = &exp, .input_count = 1), &value, m),
          CLEAVE_ERROR_INVALID_ARGUMENT, "expected an output at least");
  ck_assert_uint_eq(value, 7);
  return CLEAVE_OK;
}

static cleave_status_t try_values(const cleave_graph_editor_t *g, cleave_message_t *m) {
  static const float NUMBERS[6] = {0};
  cleave_tensor_view_t t = {
      .size = sizeof t, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = (int64_t[]){3, 2}, .data = NUMBERS};
  cleave_attribute_view_t a = {.size = sizeof a, .name = "alpha", .kind = CLEAVE_ATTRIBUTE_INT, .i = 1};
  uint32_t leaky = node(g, "leaky");
  uint32_t value = 7;
  uint32_t three = CLEAVE_INDEX_NONE;
  REFUSED(g->add_input(g->graph, "x", &t, &value, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "input 'x': the graph has this name already");
  REFUSED(g->add_input(g->graph, NULL, &t, &value, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "an input needs a name");
  REFUSED(g->add_input(g->graph, "new", NULL, &value, m), CLEAVE_ERROR_INVALID_ARGUMENT, "expected a dtype");
  t.rank = 9;
  REFUSED(g->add_input(g->graph, "new", &t, &value, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "at most 8 dimensions");
  REFUSED(g->add_constant(g->graph, "c", &t, &value, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "its shape is not known");
  t.rank = 2;
  t.data = NULL;
  REFUSED(g->add_constant(g->graph, "c", &t, &value, m), CLEAVE_ERROR_INVALID_ARGUMENT, "it has no data");
  t.data = NUMBERS;
  t.dims = (int64_t[]){-1, 2};
  REFUSED(g->add_constant(g->graph, "c", &t, &value, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "its sizes are not known");
  t.dims = (int64_t[]){INT64_MAX / 8, 1};
  REFUSED(g->add_constant(g->graph, "c", &t, &value, m), CLEAVE_ERROR_LIMIT, "more than 1073741824 bytes");
  t.dims = (int64_t[]){3, 2};
  t.storage = CLEAVE_STORAGE_CSR;
  REFUSED(g->add_constant(g->graph, "c", &t, &value, m), CLEAVE_ERROR_INVALID_ARGUMENT, "not dense");
  t.storage = CLEAVE_STORAGE_DENSE;
  t.dtype = (cleave_dtype_t)77;
  REFUSED(g->add_constant(g->graph, "c", &t, &value, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "its dtype is unknown");
  REFUSED(g->add_constant(g->graph, "c", NULL, &value, m), CLEAVE_ERROR_INVALID_ARGUMENT, "there is none");
  t.dtype = CLEAVE_DTYPE_I64;
  t.dims = (int64_t[]){1, 2};
  static const int64_t WHOLE[2] = {1, 2};
  t.data = WHOLE;
  CLEAVE_TRY(g->add_constant(g->graph, "c", &t, &three, m));
  REFUSED(g->replace_uses(g->graph, output(g, "exp"), three, m), CLEAVE_ERROR_SHAPE, "its replacement is");
  REFUSED(g->set_attribute(g->graph, leaky, &a, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "attribute 'alpha' is of another kind");
  a.name = "beta";
  REFUSED(g->set_attribute(g->graph, leaky, &a, m), CLEAVE_ERROR_INVALID_ARGUMENT, "has no attribute 'beta'");
  a.name = NULL;
  REFUSED(g->set_attribute(g->graph, leaky, &a, m), CLEAVE_ERROR_INVALID_ARGUMENT,
          "an attribute without a name");
  a = (cleave_attribute_view_t){.size = sizeof a, .name = "perm", .kind = CLEAVE_ATTRIBUTE_INTS, .count = 5};
  REFUSED(g->set_attribute(g->graph, leaky, &a, m), CLEAVE_ERROR_INVALID_ARGUMENT, "expected a list");
  a.kind = (cleave_attribute_kind_t)12;
  REFUSED(g->set_attribute(g->graph, leaky, &a, m), CLEAVE_ERROR_INVALID_ARGUMENT, "no kind has number 12");
  a.kind = CLEAVE_ATTRIBUTE_STRING;
  REFUSED(g->set_attribute(g->graph, leaky, &a, m), CLEAVE_ERROR_INVALID_ARGUMENT, "text is missing");
  return CLEAVE_OK;
}

static cleave_status_t use_what_was_removed(const cleave_graph_editor_t *g, cleave_message_t *m) {
  uint32_t exp = output(g, "exp");
  uint32_t neg = output(g, "neg");
  uint32_t neg_node = node(g, "neg");
  CLEAVE_TRY(g->replace_uses(g->graph, neg, exp, m));
  CLEAVE_TRY(g->remove_node(g->graph, neg_node, m));
  REFUSED(g->remove_node(g->graph, neg_node, m), CLEAVE_ERROR_INVALID_ARGUMENT, "does not exist");
  REFUSED(g->replace_uses(g->graph, exp, neg, m), CLEAVE_ERROR_INVALID_ARGUMENT, "does not exist");
  REFUSED(g->set_input(g->graph, neg_node, 0, exp, m), CLEAVE_ERROR_INVALID_ARGUMENT, "does not exist");
  return CLEAVE_OK;
}

UNIT_TEST(wrong_steps_are_errors_to_the_library_which_may_go_on) {
  library_case_pass(&pass);
  check(try_ids, (float[]){-0.5f, -0.5f});
  check(try_values, (float[]){-0.5f, -0.5f});
  check(use_what_was_removed, (float[]){1.0f, 1.0f});
}

/* ---- what ends the pass ---- */

static cleave_status_t give_up(const cleave_graph_editor_t *g, cleave_message_t *m) {
  (void)g;
  (void)snprintf(m->text, sizeof m->text, "nothing to do here");
  return CLEAVE_ERROR_UNSUPPORTED;
}

static cleave_status_t answer_with_a_number(const cleave_graph_editor_t *g, cleave_message_t *m) {
  (void)g;
  (void)m;
  return (cleave_status_t)1234;
}

/* The inputs do not fit any more: the types say so when they are looked at. */
static cleave_status_t contradict(const cleave_graph_editor_t *g, cleave_message_t *m) {
  uint32_t exp = output(g, "exp");
  uint32_t leaky = node(g, "leaky");
  uint32_t sizes[2];
  const cleave_attribute_view_t to = {.size = sizeof to, .name = "to", .kind = CLEAVE_ATTRIBUTE_INT, .i = 7};
  CLEAVE_TRY(g->add_node(g->graph,
                         NEW_NODE(.op = "Cast", .name = "cast", .inputs = &exp, .input_count = 1,
                                  .attributes = &to, .attribute_count = 1, .output_count = 1),
                         &sizes[0], m));
  CLEAVE_TRY(g->add_node(g->graph,
                         NEW_NODE(.op = "Add", .name = "sum", .inputs = (uint32_t[]){exp, exp},
                                  .input_count = 2, .output_count = 1),
                         &sizes[1], m));
  CLEAVE_TRY(g->set_input(g->graph, node(g, "sum"), 0, sizes[0], m)); /* int64 + float32 */
  CLEAVE_TRY(g->set_input(g->graph, leaky, 0, sizes[1], m));
  ck_assert_ptr_null(g->view(g->graph));
  return CLEAVE_OK;
}

UNIT_TEST(a_pass_that_fails_leaves_no_plan) {
  library_case_pass(&pass);
  check_fails(give_up, CLEAVE_ERROR_UNSUPPORTED, "pass 'change' of library 'cpu': run: nothing to do here");
  check_fails(answer_with_a_number, CLEAVE_ERROR_BACKEND,
              "pass 'change' of library 'cpu': run: no reason given");
  check_fails(contradict, CLEAVE_ERROR_SHAPE, "pass 'change' of library 'cpu': run: node 'sum' (Add)");
}

UNIT_TEST(memory_that_runs_out_ends_the_pass) {
  library_case_pass(&pass);
  body = change_all;
  cleave_model_t *model = library_case_model(MODEL);
  cleave_plan_t *plan = NULL;
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (int64_t k = 0; status != CLEAVE_OK; k += k < 50 ? 1 : 7) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(k);
    status = partition(model, &plan, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || strstr(error.message, "memory") != NULL, "%d: %s", (int)status,
                  error.message);
  }
  ck_assert_ptr_nonnull(plan->edits);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

UNIT_TEST(passes_of_rule_files) {
  library_case_pass(&pass);
  body = change_all;
  cleave_model_t *model = library_case_model(MODEL);
  cleave_plan_t *plan = NULL;
  unit_ok(library_case_partition(model, "return ruleset { name = 'r', pass 'p' { library = 'change' } }",
                                 NULL, NULL, &plan, e));
  ck_assert_str_eq(seen_option, "");
  ck_assert_ptr_nonnull(plan->edits);
  cleave_plan_destroy(plan);
  unit_fails(library_case_partition(model, "return ruleset { name = 'r', pass 'p' { library = 'chance' } }",
                                    NULL, NULL, &plan, e),
             CLEAVE_ERROR_RULE,
             "r.lua:1: pass 'p': no loaded library has a pass 'chance' (did you mean 'change'?)");
  unit_fails(library_case_partition(model,
                                    "return ruleset { name = 'r', pass 'p' { library = 'change',\n"
                                    "  run = function() end } }",
                                    NULL, NULL, &plan, e),
             CLEAVE_ERROR_RULE, "r.lua:1: pass 'p': has both run and library, expected one of them");
  cleave_model_release(model);
  cleave_extensions_t *extensions = NULL;
  static const cleave_custom_pass_t empty = {.size = sizeof empty, .name = "empty"};
  const cleave_custom_pass_t *const list[1] = {&empty};
  cleave_backend_extensions_t brought = {.size = sizeof brought, .passes = list, .pass_count = 1};
  unit_fails(library_case_add(&brought, &extensions, e), CLEAVE_ERROR_BACKEND,
             "library 'cpu': pass 'empty': function 'run' is missing");
}

UNIT_SUITE("custom pass")
