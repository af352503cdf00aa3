// SPDX-License-Identifier: Apache-2.0
/* Partitioners `groups` and `picker` over Exp and Log, and the pass `change`. Options say what they do:
 * `part` crash or hang in one of supported, create, select, input, output, filter, destroy, review, or
 * "group", "status", "attach", "nameless", "many", "refuse", "drop"; `pass` one of "all", "input", "wrong",
 * "removed", "fail", "crash", "hang", "endless", "late", "self" (an operator of this library in the graph)
 * and "large". Every step of the pass is a line of the log, with what it was answered.
 * Long file: each file of this folder is a library. */
#include "misdeed.h"

#define NEW_NODE(...) (&(cleave_new_node_t){.size = sizeof(cleave_new_node_t), __VA_ARGS__})

static const cleave_host_t *its_host;
static const cleave_graph_editor_t *kept; /* of a pass that is over */

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  its_host = host;
  return relu_initialise(host, out_state, message);
}

static const char *option(const cleave_key_value_t *options, uint32_t count, const char *key) {
  for (uint32_t k = 0; k < count; k++) {
    if (strcmp(options[k].key, key) == 0) {
      return options[k].value;
    }
  }
  return "";
}

static bool is_mine(const cleave_region_view_t *graph, uint32_t node) {
  return strcmp(graph->nodes[node].op, "Exp") == 0 || strcmp(graph->nodes[node].op, "Log") == 0;
}

/* ---- partitioners ---- */

static int groups_self;
static const cleave_region_view_t *groups_graph; /* between begin and end */

static cleave_status_t begin_groups(void *self, const cleave_region_view_t *graph,
                                    const cleave_key_value_t *options, uint32_t option_count,
                                    void **out_state, cleave_message_t *message) {
  (void)misdeed_is(option(options, option_count, "part"), "begin");
  if (self != &groups_self || groups_graph != NULL) {
    (void)snprintf(message->text, sizeof message->text, "it is not itself, or begins before it ended");
    return CLEAVE_ERROR_INTERNAL;
  }
  groups_graph = graph;
  *out_state = &groups_graph;
  return CLEAVE_OK;
}

static void end_groups(void *state) {
  *(const cleave_region_view_t **)state = NULL;
}

static cleave_status_t supported(void *state, const cleave_region_view_t *graph,
                                 const cleave_key_value_t *options, uint32_t option_count, int64_t *groups,
                                 cleave_message_t *message) {
  const char *what = option(options, option_count, "part");
  (void)misdeed_is(what, "supported");
  if (state != &groups_graph || groups_graph != graph) {
    (void)snprintf(message->text, sizeof message->text, "it gets another state than that of its graph");
    return CLEAVE_ERROR_INTERNAL;
  }
  (void)snprintf(message->text, sizeof message->text, "as asked for");
  for (uint32_t k = 0; k < graph->node_count; k++) {
    groups[k] = is_mine(graph, k) ? -1 : -2;
  }
  if (misdeed_is(what, "group")) {
    groups[0] = INT64_MIN;
  }
  return misdeed_is(what, "status") ? (cleave_status_t)-7 : CLEAVE_OK;
}

static cleave_status_t review(void *state, const cleave_region_view_t *region,
                              const cleave_key_value_t *options, uint32_t option_count, bool *keep,
                              void (*attach)(void *context, const char *key, const char *value),
                              void *context, cleave_message_t *message) {
  (void)state;
  const char *what = option(options, option_count, "part");
  (void)misdeed_is(what, "review");
  for (int k = 0; misdeed_is(what, "many") && k < 5000; k++) {
    char key[16];
    (void)snprintf(key, sizeof key, "k%d", k);
    attach(context, key, "v");
  }
  for (int k = 0; misdeed_is(what, "again") && k < 5000; k++) {
    char value[16];
    (void)snprintf(value, sizeof value, "v%d", k);
    attach(context, "tile", value);
  }
  if (misdeed_is(what, "attach")) {
    attach(context, "tile", "4");
    attach(context, "tile", "8");
  } else if (misdeed_is(what, "nameless")) {
    attach(context, NULL, "4");
  } else if (misdeed_is(what, "refuse") && region->node_count < 2) {
    (void)snprintf(message->text, sizeof message->text, "one is none");
    return CLEAVE_ERROR_UNSUPPORTED;
  } else if (misdeed_is(what, "drop")) {
    keep[0] = false;
  }
  return CLEAVE_OK;
}

typedef struct picker {
  const cleave_region_view_t *graph;
  char what[32];
  int room;
} picker_t;

static cleave_status_t create_selector(void *state, const cleave_region_view_t *graph,
                                       const cleave_key_value_t *options, uint32_t option_count,
                                       void **out_selector, cleave_message_t *message) {
  (void)state;
  picker_t *picker = calloc(1, sizeof *picker);
  (void)message;
  picker->graph = graph;
  picker->room = 3;
  (void)snprintf(picker->what, sizeof picker->what, "%s", option(options, option_count, "part"));
  (void)misdeed_is(picker->what, "create");
  *out_selector = picker;
  return CLEAVE_OK;
}

static void destroy_selector(void *selector) {
  (void)misdeed_is(((picker_t *)selector)->what, "destroy");
  free(selector);
}

static bool pick(picker_t *picker, uint32_t node) {
  bool yes = picker->room > 0 && is_mine(picker->graph, node);
  picker->room -= yes;
  return yes;
}

static bool select_node(void *selector, uint32_t node) {
  (void)misdeed_is(((picker_t *)selector)->what, "select");
  return pick(selector, node);
}

static bool select_input(void *selector, uint32_t node, uint32_t input) {
  (void)node;
  (void)misdeed_is(((picker_t *)selector)->what, "input");
  return pick(selector, input);
}

static bool select_output(void *selector, uint32_t node, uint32_t output) {
  (void)node;
  (void)misdeed_is(((picker_t *)selector)->what, "output");
  return pick(selector, output);
}

static void filter(void *selector, const uint32_t *candidates, uint32_t count, bool *keep) {
  const picker_t *picker = selector;
  (void)misdeed_is(picker->what, "filter");
  for (uint32_t k = 0; misdeed_is(picker->what, "drop") && k < count; k++) {
    keep[k] = strcmp(picker->graph->nodes[candidates[k]].op, "Log") != 0;
  }
}

/* ---- the pass ---- */

static cleave_message_t said;

static cleave_status_t step(const char *name, cleave_status_t status) {
  char line[512];
  (void)snprintf(line, sizeof line, "%s: %d %s", name, (int)status, status == CLEAVE_OK ? "" : said.text);
  its_host->log(its_host, 2, line);
  said.text[0] = '\0';
  return status;
}

#define STEP(call) step(#call, (call))

/* Node 0 of what it shows is Exp. */
static void change_all(const cleave_graph_editor_t *g) {
  static const float HALVES[2] = {0.5f, 0.25f};
  static const int64_t DIMS[1] = {1};
  const cleave_tensor_view_t half = {
      .size = sizeof half, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = DIMS, .data = HALVES};
  const cleave_attribute_view_t axes[] = {{.size = sizeof *axes,
                                           .name = "perm",
                                           .kind = CLEAVE_ATTRIBUTE_INTS,
                                           .count = 1,
                                           .ints = (int64_t[]){0}}};
  const cleave_region_view_t *view = g->view(g->graph);
  uint32_t node = g->node_of(g->graph, 0);
  uint32_t from = g->value_of(g->graph, view->nodes[0].inputs[0]);
  uint32_t constant = CLEAVE_INDEX_NONE;
  uint32_t product = CLEAVE_INDEX_NONE;
  uint32_t turned = CLEAVE_INDEX_NONE;
  STEP(g->add_constant(g->graph, "half", &half, &constant, &said));
  STEP(g->add_node(g->graph,
                   NEW_NODE(.op = "Mul", .name = "half of it", .inputs = (uint32_t[]){from, constant},
                            .input_count = 2, .output_count = 1),
                   &product, &said));
  STEP(g->add_node(g->graph,
                   NEW_NODE(.op = "Transpose", .inputs = &product, .input_count = 1, .attributes = axes,
                            .attribute_count = 1, .output_count = 1),
                   &turned, &said));
  STEP(g->set_input(g->graph, node, 0, turned, &said));
  view = g->view(g->graph);
  STEP(view != NULL && view->node_count > 2 ? CLEAVE_OK : CLEAVE_ERROR_INTERNAL);
  const cleave_value_view_t *read = view == NULL ? NULL : cleave_view_input(view, &view->nodes[0], 1);
  STEP(read != NULL && read->tensor.data != NULL && *(const float *)read->tensor.data == 0.5f
           ? CLEAVE_OK
           : CLEAVE_ERROR_MISMATCH);
}

static void add_input(const cleave_graph_editor_t *g) {
  const cleave_region_view_t *view = g->view(g->graph);
  const cleave_tensor_view_t *type = &view->values[view->inputs[0]].tensor;
  uint32_t node = g->node_of(g->graph, 0);
  uint32_t more = CLEAVE_INDEX_NONE;
  STEP(g->add_input(g->graph, "more", type, &more, &said));
  STEP(g->set_input(g->graph, node, 0, more, &said));
  STEP(g->add_input(g->graph, "more", type, &more, &said));
}

static void try_wrong_numbers(const cleave_graph_editor_t *g) {
  const cleave_region_view_t *view = g->view(g->graph);
  uint32_t node = g->node_of(g->graph, 0);
  uint32_t value = g->value_of(g->graph, view->nodes[0].outputs[0]);
  uint32_t many[1] = {value};
  uint32_t out = 7;
  STEP(g->value_of(g->graph, 100000) == CLEAVE_INDEX_NONE ? CLEAVE_OK : CLEAVE_ERROR_INTERNAL);
  STEP(g->node_of(g->graph, CLEAVE_INDEX_NONE) == CLEAVE_INDEX_NONE ? CLEAVE_OK : CLEAVE_ERROR_INTERNAL);
  STEP(g->remove_node(g->graph, 100000, &said));
  STEP(g->remove_node(g->graph, CLEAVE_INDEX_NONE, &said));
  STEP(g->remove_node(g->graph, node, &said));
  STEP(g->set_input(g->graph, node, 0, 4000000000u, &said));
  STEP(g->set_input(g->graph, node, 77, value, &said));
  STEP(g->set_input(g->graph, node, 0, value, &said));
  STEP(g->set_input(g->graph, node, 0, CLEAVE_INDEX_NONE, &said));
  STEP(g->replace_uses(g->graph, value, 100000, &said));
  STEP(g->replace_uses(g->graph, 100000, value, NULL));
  STEP(g->add_node(g->graph, NEW_NODE(.op = "Expp", .inputs = many, .input_count = 1, .output_count = 1),
                   &out, &said));
  STEP(g->add_node(
      g->graph,
      NEW_NODE(.domain = "bad.op", .op = "Twic", .inputs = many, .input_count = 1, .output_count = 1), &out,
      &said));
  STEP(g->add_node(g->graph, NEW_NODE(.inputs = many, .input_count = 1, .output_count = 1), &out, &said));
  STEP(g->add_node(g->graph, NEW_NODE(.op = "Exp", .input_count = 1, .output_count = 1), &out, &said));
  STEP(g->add_node(
      g->graph,
      NEW_NODE(.op = "Exp", .inputs = many, .input_count = 1, .attribute_count = 3, .output_count = 1), &out,
      &said));
  STEP(g->add_node(g->graph, NEW_NODE(.op = "Exp", .inputs = many, .input_count = 1), &out, &said));
  STEP(g->add_node(g->graph,
                   NEW_NODE(.op = "Exp", .inputs = many, .input_count = 1, .output_count = 4000000000u), &out,
                   &said));
  STEP(g->add_node(g->graph,
                   NEW_NODE(.op = "Exp", .inputs = many, .input_count = 4000000000u, .output_count = 1), &out,
                   &said));
  STEP(out == 7 ? CLEAVE_OK : CLEAVE_ERROR_INTERNAL);
}

static void try_wrong_values(const cleave_graph_editor_t *g) {
  static const float NUMBERS[6] = {0};
  static char name[1000];
  cleave_tensor_view_t t = {
      .size = sizeof t, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = (int64_t[]){3, 2}, .data = NUMBERS};
  uint32_t out = 7;
  memset(name, 'n', sizeof name - 1);
  STEP(g->add_input(g->graph, NULL, &t, &out, &said));
  STEP(g->add_input(g->graph, "", &t, &out, &said));
  STEP(g->add_input(g->graph, name, &t, &out, &said));
  STEP(g->add_input(g->graph, "new", NULL, &out, &said));
  STEP(g->add_constant(g->graph, "c", NULL, &out, &said));
  t.rank = 9;
  STEP(g->add_input(g->graph, "new", &t, &out, &said));
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  t.rank = -2;
  STEP(g->add_input(g->graph, "new", &t, &out, &said));
  t.rank = 2;
  t.dims = NULL;
  STEP(g->add_input(g->graph, "new", &t, &out, &said));
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  t.dims = (int64_t[]){3, 2};
  t.data = NULL;
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  t.data = NUMBERS;
  t.dims = (int64_t[]){-1, 2};
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  t.dims = (int64_t[]){INT64_MAX / 8, 1};
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  t.dims = (int64_t[]){INT64_MAX / 8, INT64_MAX / 8};
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  t.dims = (int64_t[]){3, 2};
  t.storage = CLEAVE_STORAGE_CSR;
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  t.storage = (cleave_storage_t)-5;
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  t.storage = CLEAVE_STORAGE_DENSE;
  t.memory = 3;
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  t.memory = CLEAVE_MEMORY_HOST;
  t.dtype = (cleave_dtype_t)77;
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  t.dtype = CLEAVE_DTYPE_STRING;
  t.rank = 1;
  t.dims = (int64_t[]){2};
  t.data = (const char *const[]){"word", NULL};
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
  STEP(out == 7 ? CLEAVE_OK : CLEAVE_ERROR_INTERNAL);
  t.data = (const char *const[]){"word", ""};
  STEP(g->add_constant(g->graph, "c", &t, &out, &said));
}

static void try_wrong_attributes(const cleave_graph_editor_t *g) {
  uint32_t node = 0;
  (void)g->view(g->graph);
  node = g->node_of(g->graph, 0);
  cleave_attribute_view_t a = {.size = sizeof a, .name = "perm", .kind = CLEAVE_ATTRIBUTE_INTS, .count = 5};
  STEP(g->set_attribute(g->graph, node, &a, &said));
  STEP(g->set_attribute(g->graph, node, NULL, &said));
  a.count = 4000000000u;
  a.ints = (int64_t[]){1};
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.count = 1;
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.kind = (cleave_attribute_kind_t)12;
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.kind = (cleave_attribute_kind_t)-1;
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.kind = CLEAVE_ATTRIBUTE_STRING;
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.s = "text";
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.kind = CLEAVE_ATTRIBUTE_STRINGS;
  a.count = 2;
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.strings = (const char *const[]){"one", NULL};
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.count = 70000;
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.kind = CLEAVE_ATTRIBUTE_TENSOR;
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.name = NULL;
  STEP(g->set_attribute(g->graph, node, &a, &said));
  a.name = "";
  STEP(g->set_attribute(g->graph, 5000, &a, &said));
}

static void use_what_was_removed(const cleave_graph_editor_t *g) {
  const cleave_region_view_t *view = g->view(g->graph);
  uint32_t last = view->node_count - 1;
  uint32_t node = g->node_of(g->graph, last);
  uint32_t from = g->value_of(g->graph, view->nodes[last].inputs[0]);
  uint32_t to = g->value_of(g->graph, view->nodes[last].outputs[0]);
  STEP(g->replace_uses(g->graph, to, from, &said));
  STEP(g->remove_node(g->graph, node, &said));
  STEP(g->remove_node(g->graph, node, &said));
  STEP(g->replace_uses(g->graph, from, to, &said));
  STEP(g->set_input(g->graph, node, 0, from, &said));
}

/* An operator of this library, whose types it is asked about in the middle of the pass. */
static void use_own_operator(const cleave_graph_editor_t *g) {
  const cleave_region_view_t *view = g->view(g->graph);
  uint32_t node = g->node_of(g->graph, 0);
  uint32_t from = g->value_of(g->graph, view->nodes[0].inputs[0]);
  uint32_t same = CLEAVE_INDEX_NONE;
  const cleave_attribute_view_t crash = {
      .size = sizeof crash, .name = "crashes", .kind = CLEAVE_ATTRIBUTE_INT, .i = 1};
  bool crashes = misdeed("crash within");
  STEP(g->add_node(
      g->graph,
      NEW_NODE(.domain = "bad.rules", .op = "Same", .name = "same", .inputs = &from, .input_count = 1,
               .attributes = &crash, .attribute_count = crashes ? 1 : 0, .output_count = 1),
      &same, &said));
  STEP(g->set_input(g->graph, node, 0, same, &said));
}

static void add_large(const cleave_graph_editor_t *g) {
  int64_t dims[1] = {40 << 20};
  cleave_tensor_view_t t = {.size = sizeof t, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = dims};
  uint32_t out = 0;
  void *data = calloc((size_t)dims[0], sizeof(float));
  t.data = data;
  STEP(g->add_constant(g->graph, "large", &t, &out, &said));
  free(data);
}

static cleave_status_t run(void *self, const cleave_graph_editor_t *g, const cleave_key_value_t *options,
                           uint32_t option_count, cleave_message_t *message) {
  (void)self;
  const char *what = option(options, option_count, "pass");
  uint32_t out = 0;
  if (misdeed_is(what, "late") && kept != NULL) {
    return CLEAVE_OK;
  }
  kept = g;
  if (misdeed_is(what, "all")) {
    change_all(g);
  } else if (misdeed_is(what, "input")) {
    add_input(g);
  } else if (misdeed_is(what, "wrong")) {
    try_wrong_numbers(g);
    try_wrong_values(g);
    try_wrong_attributes(g);
  } else if (misdeed_is(what, "removed")) {
    use_what_was_removed(g);
  } else if (misdeed_is(what, "self")) {
    use_own_operator(g);
  } else if (misdeed_is(what, "large")) {
    add_large(g);
  } else if (misdeed_is(what, "fail")) {
    change_all(g);
    (void)snprintf(message->text, sizeof message->text, "enough of it");
    return CLEAVE_ERROR_LIMIT;
  } else if (misdeed_is(what, "halfway")) {
    change_all(g);
    hostile_crash();
  }
  (void)misdeed_is(what, "pass");
  while (misdeed_is(what, "endless")) {
    cleave_tensor_view_t t = {
        .size = sizeof t, .dtype = CLEAVE_DTYPE_F32, .rank = 0, .data = &(const float){1.0f}};
    (void)g->add_constant(g->graph, NULL, &t, &out, &said);
  }
  for (uint32_t kind = 4; misdeed_is(what, "frames") && kind < 64; kind++) {
    misdeed_send(kind, "12345678", 8);
  }
  return CLEAVE_OK;
}

/* ---- an operator ---- */

static cleave_status_t infer(void *self, const cleave_region_view_t *view, cleave_tensor_view_t *outputs,
                             int64_t (*dims)[CLEAVE_MAX_RANK], cleave_message_t *message) {
  (void)self;
  const cleave_tensor_view_t *x = &cleave_view_input(view, &view->nodes[0], 0)->tensor;
  (void)message;
  if (cleave_view_int(&view->nodes[0], "crashes", 0) != 0) {
    hostile_crash();
  }
  outputs[0].dtype = x->dtype;
  outputs[0].rank = x->rank;
  for (int32_t d = 0; d < x->rank; d++) {
    dims[0][d] = x->dims[d];
  }
  return CLEAVE_OK;
}

static cleave_status_t create(void *self, const cleave_region_view_t *view,
                              const cleave_compile_options_t *options, void **out_executor,
                              cleave_message_t *message) {
  (void)self;
  relu_program_t *program = calloc(1, sizeof *program);
  (void)options;
  (void)message;
  program->elements = (size_t)cleave_view_element_count(&view->values[view->inputs[0]].tensor);
  *out_executor = program;
  return CLEAVE_OK;
}

static cleave_status_t execute(void *executor, const cleave_run_args_t *args, cleave_message_t *message) {
  (void)message;
  memcpy(hostile_memory(&args->outputs[0]), args->inputs[0].data,
         ((relu_program_t *)executor)->elements * sizeof(float));
  return CLEAVE_OK;
}

/* A selector after the pass uses an editor that is gone. */
static bool select_late(void *selector, uint32_t node) {
  if (misdeed_is(((picker_t *)selector)->what, "late") && kept != NULL) {
    STEP(kept->view(kept->graph) == NULL ? CLEAVE_OK : CLEAVE_ERROR_INTERNAL);
    STEP(kept->remove_node(kept->graph, 0, &said));
  }
  return select_node(selector, node);
}

static const cleave_custom_operator_t same = {.size = sizeof same,
                                              .domain = "bad.rules",
                                              .name = "Same",
                                              .version = 1,
                                              .inputs = "X",
                                              .outputs = "Y",
                                              .attributes = "crashes:i=0",
                                              .infer = infer,
                                              .create = create,
                                              .destroy = relu_unload,
                                              .execute = execute};
static const cleave_custom_partitioner_t by_groups = {.size = sizeof by_groups,
                                                      .name = "groups",
                                                      .backend = "cpu",
                                                      .self = &groups_self,
                                                      .begin = begin_groups,
                                                      .end = end_groups,
                                                      .supported = supported,
                                                      .review = review};
static const cleave_custom_partitioner_t by_picker = {.size = sizeof by_picker,
                                                      .name = "picker",
                                                      .backend = "cpu",
                                                      .create_selector = create_selector,
                                                      .destroy_selector = destroy_selector,
                                                      .select = select_late,
                                                      .select_input = select_input,
                                                      .select_output = select_output,
                                                      .filter = filter,
                                                      .review = review};
static const cleave_custom_pass_t change = {.size = sizeof change, .name = "change", .run = run};
static const cleave_custom_operator_t *const operators[] = {&same};
static const cleave_custom_partitioner_t *const partitioners[] = {&by_groups, &by_picker};
static const cleave_custom_pass_t *const passes[] = {&change};
static const cleave_backend_extensions_t extensions = {.size = sizeof extensions,
                                                       .operators = operators,
                                                       .operator_count = 1,
                                                       .partitioners = partitioners,
                                                       .partitioner_count = 2,
                                                       .passes = passes,
                                                       .pass_count = 1};
static cleave_backend_t backend = {RELU_BACKEND("bad_rules"), .extensions = &extensions};

RELU_ENTRY(backend.initialise = initialise)
