// SPDX-License-Identifier: Apache-2.0
// Rules in C: two partitioners, one that says which nodes it supports and one that selects from node to node,
// a review that both share, and a pass that gives the graph more inputs.
#include "exp_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of an option, or `fallback`. Options are texts: --set KEY=VALUE, or those of a rule file. */
static const char *option(const cleave_key_value_t *options, uint32_t count, const char *key,
                          const char *fallback) {
  for (uint32_t k = 0; k < count; k++) {
    if (strcmp(options[k].key, key) == 0) {
      return options[k].value;
    }
  }
  return fallback;
}

/* ---- my_part: supportedOps ---- */

/* Nodes of Exp and Log may be in any group; with groups=apart, Exp nodes are group 0 and Log nodes group 1,
 * so that no region has both. */
static cleave_status_t supported(void *state, const cleave_region_view_t *graph,
                                 const cleave_key_value_t *options, uint32_t option_count, int64_t *groups,
                                 cleave_message_t *message) {
  (void)state;
  const char *mode = option(options, option_count, "groups", "any");
  if (strcmp(mode, "any") != 0 && strcmp(mode, "apart") != 0) {
    (void)snprintf(message->text, sizeof message->text, "option groups: expected any or apart, found '%.64s'",
                   mode);
    return CLEAVE_ERROR_INVALID_ARGUMENT;
  }
  for (uint32_t k = 0; k < graph->node_count; k++) {
    cleave_message_t reason = {.text = ""};
    bool yes = exp_log_supports_node(graph, &graph->nodes[k], &reason) == CLEAVE_OK;
    int64_t own = strcmp(graph->nodes[k].op, "Exp") == 0 ? 0 : 1;
    groups[k] = !yes ? -2 : strcmp(mode, "apart") == 0 ? own : -1;
  }
  return CLEAVE_OK;
}

/* Refuses everything where the user says so, and what is smaller than least_nodes; attaches an attribute that
 * the backend sees when it compiles the region. */
static cleave_status_t review(void *state, const cleave_region_view_t *region,
                              const cleave_key_value_t *options, uint32_t option_count, bool *keep,
                              void (*attach)(void *context, const char *key, const char *value),
                              void *context, cleave_message_t *message) {
  (void)state;
  unsigned long least = strtoul(option(options, option_count, "least_nodes", "1"), NULL, 10);
  (void)keep; /* keep[k] = false would leave out node k */
  if (strcmp(option(options, option_count, "reject", "false"), "true") == 0) {
    (void)snprintf(message->text, sizeof message->text, "rejected: the user asked for it");
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  if (region->node_count < least) {
    (void)snprintf(message->text, sizeof message->text, "rejected: %u nodes, least_nodes is %lu",
                   (unsigned)region->node_count, least);
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  attach(context, "my_key", option(options, option_count, "my_key", "my_value"));
  return CLEAVE_OK;
}

static const cleave_custom_partitioner_t my_part = {
    .size = sizeof(cleave_custom_partitioner_t), .name = "my_part", .supported = supported, .review = review};

/* ---- my_select: a selector ---- */

typedef struct selector {
  const cleave_region_view_t *graph;
  uint32_t room; /* nodes that the region may still take */
} selector_t;

/* A fresh one per seed, so that state lives in it. */
static cleave_status_t create_selector(void *state, const cleave_region_view_t *graph,
                                       const cleave_key_value_t *options, uint32_t option_count,
                                       void **out_selector, cleave_message_t *message) {
  (void)state;
  selector_t *selector = calloc(1, sizeof *selector);
  (void)message;
  if (selector == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  selector->graph = graph;
  selector->room = (uint32_t)strtoul(option(options, option_count, "most_nodes", "8"), NULL, 10);
  *out_selector = selector;
  return CLEAVE_OK;
}

static void destroy_selector(void *selector) {
  free(selector);
}

static bool take(selector_t *selector, uint32_t node) {
  const char *op = selector->graph->nodes[node].op;
  if (selector->room == 0 || (strcmp(op, "Exp") != 0 && strcmp(op, "Log") != 0)) {
    return false;
  }
  selector->room--;
  return true;
}

static bool select_node(void *selector, uint32_t node) {
  return take(selector, node);
}

static bool select_input(void *selector, uint32_t node, uint32_t input) {
  (void)node;
  return take(selector, input);
}

static bool select_output(void *selector, uint32_t node, uint32_t output) {
  (void)node;
  return take(selector, output);
}

/* The second ruleset: what my_part left, in regions of cleave's own cpu. */
static const cleave_custom_partitioner_t my_select = {.size = sizeof(cleave_custom_partitioner_t),
                                                      .name = "my_select",
                                                      .backend = "cpu",
                                                      .create_selector = create_selector,
                                                      .destroy_selector = destroy_selector,
                                                      .select = select_node,
                                                      .select_input = select_input,
                                                      .select_output = select_output};

/* ---- add_input: a pass ---- */

/* Exp(x) becomes Exp(x + <name>_input): one more input of the graph, a number, for each Exp. */
static cleave_status_t add_input(void *self, const cleave_graph_editor_t *editor,
                                 const cleave_key_value_t *options, uint32_t option_count,
                                 cleave_message_t *message) {
  (void)self;
  static const int64_t DIMS[] = {1};
  if (strcmp(option(options, option_count, "add_input", "false"), "true") != 0) {
    return CLEAVE_OK;
  }
  const cleave_region_view_t *view = editor->view(editor->graph);
  if (view == NULL) {
    return CLEAVE_ERROR_BACKEND;
  }
  // The view is valid until the first change: what is needed is collected before.
  uint32_t count = 0;
  uint32_t *nodes = malloc((view->node_count + 1) * 2 * sizeof *nodes);
  char(*names)[96] = malloc((view->node_count + 1) * sizeof *names);
  cleave_status_t status = nodes == NULL || names == NULL ? CLEAVE_ERROR_OUT_OF_MEMORY : CLEAVE_OK;
  for (uint32_t k = 0; status == CLEAVE_OK && k < view->node_count; k++) {
    cleave_message_t reason = {.text = ""};
    if (strcmp(view->nodes[k].op, "Exp") == 0 &&
        exp_log_supports_node(view, &view->nodes[k], &reason) == CLEAVE_OK) {
      nodes[2 * count] = editor->node_of(editor->graph, k);
      nodes[2 * count + 1] = editor->value_of(editor->graph, view->nodes[k].inputs[0]);
      (void)snprintf(names[count++], sizeof *names, "%.80s_input", view->nodes[k].name);
    }
  }
  for (uint32_t k = 0; status == CLEAVE_OK && k < count; k++) {
    cleave_tensor_view_t type = {.size = sizeof type, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = DIMS};
    uint32_t inputs[2] = {nodes[2 * k + 1], CLEAVE_INDEX_NONE};
    uint32_t sum = CLEAVE_INDEX_NONE;
    status = editor->add_input(editor->graph, names[k], &type, &inputs[1], message);
    if (status == CLEAVE_OK) {
      status = editor->add_node(editor->graph,
                                &(cleave_new_node_t){.size = sizeof(cleave_new_node_t),
                                                     .op = "Add",
                                                     .inputs = inputs,
                                                     .input_count = 2,
                                                     .output_count = 1},
                                &sum, message);
    }
    if (status == CLEAVE_OK) {
      status = editor->set_input(editor->graph, nodes[2 * k], 0, sum, message);
    }
  }
  free(nodes);
  free(names);
  return status;
}

static const cleave_custom_pass_t add_input_pass = {
    .size = sizeof(cleave_custom_pass_t), .name = "add_input", .run = add_input};

/* ---- all of it ---- */

static const cleave_custom_partitioner_t *const partitioners[] = {&my_part, &my_select};
static const cleave_custom_pass_t *const passes[] = {&add_input_pass};
static const char *const rule_files[] = {"exp_log_rules.lua"};

const cleave_backend_extensions_t exp_log_extensions = {.size = sizeof(cleave_backend_extensions_t),
                                                        .partitioners = partitioners,
                                                        .partitioner_count = 2,
                                                        .passes = passes,
                                                        .pass_count = 1,
                                                        .rule_files = rule_files,
                                                        .rule_file_count = 1};
