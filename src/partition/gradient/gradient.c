// SPDX-License-Identifier: Apache-2.0
// Walks from the loss back. All readers of a value come before its producer, so when the producer's turn
// comes, the gradients that the readers gave are all there, and are added up.
#include "partition/gradient/gradient.h"

#include <stdio.h>

#include "ops/ops.h"

enum { NAME_SIZE = 80 };

/* Gradients that readers gave, as a list by value. */
typedef struct contribution {
  cleave_value_t gradient;
  uint32_t next; /* of the same value, the one given before; NONE: the last */
} contribution_t;

typedef struct walk {
  cleave_editor_t *editor;
  const cleave_gradient_request_t *request;
  cleave_gradient_flow_t flow;
  uint32_t *last; /* by value: the contribution given last */
  CLEAVE_ARRAY(contribution_t) given;
  CLEAVE_ARRAY(cleave_value_t) operands;
  cleave_arena_t arena; /* of one node's turn */
  /* by value, of the region at hand; NULL if there are no regions */
  cleave_value_t *gradients;
  cleave_value_t *results;
  bool *wanted;
} walk_t;

// ---- nodes that no rule makes ----

static cleave_status_t add_node(cleave_editor_t *editor, const char *op_name, const cleave_value_t *inputs,
                                size_t input_count, cleave_value_t *out_value, cleave_error_t *error) {
  char base[NAME_SIZE + 64];
  char name[NAME_SIZE + 96];
  cleave_node_t node = CLEAVE_NODE_NONE;
  (void)snprintf(base, sizeof base, "%s/%s", editor->rule, op_name);
  (void)cleave_editor_unique_name(editor, base, name, sizeof name);
  cleave_edit_t edit = {
      .name = name, .inputs = inputs, .input_count = (uint32_t)input_count, .output_count = 1};
  CLEAVE_TRY(cleave_editor_add_node(editor, cleave_op_find("", op_name), &edit, &node, error));
  *out_value = cleave_node_output(editor->graph, node, 0);
  return CLEAVE_OK;
}

/* The loss by itself: ones of its dtype and shape. */
static cleave_status_t add_seed(cleave_editor_t *editor, cleave_value_t loss, cleave_value_t *out_value,
                                cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(editor->graph, loss);
  bool is_scalar = record->rank == 0;
  cleave_tensor_t *one = NULL;
  CLEAVE_TRY(cleave_tensor_create((cleave_dtype_t)record->dtype, 0, NULL, &one, error));
  cleave_tensor_set_float(one, 0, 1.0);
  cleave_tensor_touch(one);
  cleave_status_t status = cleave_editor_add_constant(editor, "grad(loss)", one, out_value, error);
  cleave_tensor_release(one);
  CLEAVE_TRY(status);
  if (!is_scalar) {
    cleave_value_t expanded[2] = {*out_value, CLEAVE_VALUE_NONE};
    CLEAVE_TRY(add_node(editor, "Shape", &loss, 1, &expanded[1], error));
    CLEAVE_TRY(add_node(editor, "Expand", expanded, 2, out_value, error));
  }
  return CLEAVE_OK;
}

// ---- sums of what readers gave ----

static cleave_status_t give(walk_t *walk, cleave_value_t value, cleave_value_t gradient,
                            cleave_error_t *error) {
  contribution_t entry = {.gradient = gradient, .next = walk->last[value.index]};
  walk->last[value.index] = (uint32_t)walk->given.count;
  CLEAVE_ARRAY_PUSH(&walk->given, entry, error);
  return CLEAVE_OK;
}

/* The sum of all that was given to a value, which takes the place of its parts; NONE if nothing was. */
static cleave_status_t sum_up(walk_t *walk, cleave_value_t value, cleave_value_t *out_sum,
                              cleave_error_t *error) {
  *out_sum = CLEAVE_VALUE_NONE;
  walk->operands.count = 0;
  for (uint32_t k = walk->last[value.index]; k != CLEAVE_INDEX_NONE; k = walk->given.items[k].next) {
    CLEAVE_ARRAY_PUSH(&walk->operands, walk->given.items[k].gradient, error);
  }
  if (walk->operands.count == 0) {
    return CLEAVE_OK;
  }
  *out_sum = walk->operands.items[0];
  if (walk->operands.count > 1) {
    const char *op = walk->operands.count == 2 ? "Add" : "Sum";
    CLEAVE_TRY(add_node(walk->editor, op, walk->operands.items, walk->operands.count, out_sum, error));
    walk->last[value.index] = CLEAVE_INDEX_NONE;
    CLEAVE_TRY(give(walk, value, *out_sum, error));
  }
  return CLEAVE_OK;
}

// ---- messages ----

/* "<what> '<node>' ...; the loss depends on it through ..." */
static cleave_status_t fail_at(const walk_t *walk, cleave_node_t node, const char *what,
                               cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_text_format(&text, "%s; the loss depends on it through ", what);
  cleave_status_t status = cleave_gradient_flow_print_path(&walk->flow, node, &text, error);
  CLEAVE_THEN(status, cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "%s", cleave_text_get(&text)));
  cleave_text_deinit(&text);
  return status;
}

static const char *input_name(const cleave_op_t *op, uint32_t input) {
  if (op->input_count == 0) {
    return "?";
  }
  return op->inputs[input < op->input_count ? input : op->input_count - 1].name;
}

static cleave_status_t fail_input(const walk_t *walk, const cleave_gradient_rule_t *rule, cleave_node_t node,
                                  uint32_t input, cleave_error_t *error) {
  char what[512];
  char label[160];
  const cleave_graph_t *graph = walk->editor->graph;
  (void)snprintf(what, sizeof what, "%s:%d: no gradient for input '%s' of %s '%.100s'", rule->file,
                 (int)rule->line, input_name(rule->op, input), rule->op->name,
                 cleave_node_label(graph, node, label, sizeof label));
  return fail_at(walk, node, what, error);
}

static cleave_status_t check_rule(const walk_t *walk, cleave_node_t node, cleave_error_t *error) {
  const cleave_graph_t *graph = walk->editor->graph;
  const cleave_op_t *op = cleave_node_op(graph, node);
  char what[320];
  char label[160];
  if (cleave_gradient_rule_find(walk->request->rules, op) != NULL) {
    return CLEAVE_OK;
  }
  (void)snprintf(what, sizeof what, "no gradient for %s%s%s '%.100s'", op->domain,
                 op->domain[0] == '\0' ? "" : ".", op->name,
                 cleave_node_label(graph, node, label, sizeof label));
  return fail_at(walk, node, what, error);
}

static uint32_t region_of(const walk_t *walk, cleave_node_t node) {
  const cleave_gradient_regions_t *regions = walk->request->regions;
  return regions == NULL ? CLEAVE_INDEX_NONE : regions->node_region[node.index];
}

/* Every node on the way that is in no region needs a rule: asked before anything is built. */
static cleave_status_t check_rules(const walk_t *walk, cleave_error_t *error) {
  for (uint32_t k = walk->flow.node_count; k-- > 0;) {
    if (region_of(walk, walk->flow.order[k]) == CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(check_rule(walk, walk->flow.order[k], error));
    }
  }
  return CLEAVE_OK;
}

// ---- one node ----

static cleave_status_t prepare_call(walk_t *walk, const cleave_gradient_rule_t *rule, cleave_node_t node,
                                    cleave_gradient_call_t *call, bool *out_any, cleave_error_t *error) {
  const cleave_graph_t *graph = walk->editor->graph;
  uint32_t output_count = cleave_node_output_count(graph, node);
  uint32_t input_count = cleave_node_input_count(graph, node);
  cleave_value_t *outputs = cleave_arena_allocate(&walk->arena, output_count, sizeof *outputs);
  *call = (cleave_gradient_call_t){.node = node, .outputs = outputs, .input_count = input_count};
  call->inputs = cleave_arena_allocate(&walk->arena, input_count, sizeof *call->inputs);
  call->is_zero = cleave_arena_allocate(&walk->arena, input_count, sizeof *call->is_zero);
  CLEAVE_TRY_MEMORY(outputs != NULL && call->inputs != NULL && call->is_zero != NULL, error);
  *out_any = false;
  for (uint32_t k = 0; k < output_count; k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    CLEAVE_TRY(sum_up(walk, value, &outputs[k], error));
    bool exists = cleave_value_exists(outputs[k]);
    *out_any = *out_any || exists;
    call->output_count = exists ? k + 1 : call->output_count;
    if (exists && k >= rule->output_count) {
      char what[512];
      char label[160];
      (void)snprintf(what, sizeof what, "%s:%d: no gradient of output %u of %s '%.100s'", rule->file,
                     (int)rule->line, (unsigned)k + 1, rule->op->name,
                     cleave_node_label(graph, node, label, sizeof label));
      return fail_at(walk, node, what, error);
    }
  }
  for (uint32_t k = 0; k < input_count; k++) {
    call->inputs[k] = CLEAVE_VALUE_NONE;
    call->is_zero[k] = false;
  }
  return CLEAVE_OK;
}

/* Adds what the rule returned to the gradients of the inputs. */
static cleave_status_t hand_out(walk_t *walk, const cleave_gradient_rule_t *rule,
                                const cleave_gradient_call_t *call, cleave_error_t *error) {
  for (uint32_t k = 0; k < call->input_count; k++) {
    cleave_value_t value = cleave_node_input(walk->editor->graph, call->node, k);
    if (!cleave_gradient_flows(&walk->flow, value) || call->is_zero[k]) {
      continue;
    }
    if (!cleave_value_exists(call->inputs[k])) {
      return fail_input(walk, rule, call->node, k, error);
    }
    cleave_error_t cause = CLEAVE_ERROR_INIT;
    if (cleave_editor_check_fit(walk->editor, value, call->inputs[k], &cause) != CLEAVE_OK) {
      char label[160];
      return cleave_error_set(error, CLEAVE_ERROR_RULE,
                              "%s:%d: gradient '%s' of node '%.100s': input '%s': %s", rule->file,
                              (int)rule->line, rule->op->name,
                              cleave_node_label(walk->editor->graph, call->node, label, sizeof label),
                              input_name(rule->op, k), cause.message);
    }
    CLEAVE_TRY(give(walk, value, call->inputs[k], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t walk_node(walk_t *walk, cleave_node_t node, cleave_error_t *error) {
  char prefix[NAME_SIZE];
  char label[160];
  bool any = false;
  cleave_gradient_call_t call;
  cleave_editor_t *editor = walk->editor;
  const cleave_gradient_rule_t *rule =
      cleave_gradient_rule_find(walk->request->rules, cleave_node_op(editor->graph, node));
  (void)snprintf(prefix, sizeof prefix, "grad(%.60s)",
                 cleave_node_label(editor->graph, node, label, sizeof label));
  cleave_arena_reset(&walk->arena);
  editor->rule = prefix;
  editor->line = rule->line;
  cleave_status_t status = prepare_call(walk, rule, node, &call, &any, error);
  if (status == CLEAVE_OK && any) {
    status = rule->apply(rule->context, editor, &call, error);
    CLEAVE_THEN(status, hand_out(walk, rule, &call, error));
  }
  editor->rule = "grad";
  return status;
}

// ---- one region ----

/* Nodes first to end - 1 of the order: what was given to values that they make, and what is wanted of those
 * that they read. */
static cleave_status_t prepare_region(walk_t *walk, uint32_t first, uint32_t end, bool *out_any,
                                      cleave_error_t *error) {
  const cleave_graph_t *graph = walk->editor->graph;
  *out_any = false;
  for (uint32_t n = first; n < end; n++) {
    cleave_node_t node = walk->flow.order[n];
    for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
      cleave_value_t value = cleave_node_input(graph, node, k);
      if (cleave_gradient_flows(&walk->flow, value)) {
        walk->wanted[value.index] = true;
        walk->results[value.index] = CLEAVE_VALUE_NONE;
      }
    }
    for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
      cleave_value_t value = cleave_node_output(graph, node, k);
      cleave_value_t *sum = &walk->gradients[value.index];
      CLEAVE_TRY(sum_up(walk, value, sum, error));
      *out_any = *out_any || cleave_value_exists(*sum);
    }
  }
  for (uint32_t n = first; n < end; n++) { /* values within */
    for (uint32_t k = 0; k < cleave_node_output_count(graph, walk->flow.order[n]); k++) {
      walk->wanted[cleave_node_output(graph, walk->flow.order[n], k).index] = false;
    }
  }
  return CLEAVE_OK;
}

/* Gives on what came of a region, and clears what belongs to it. */
static cleave_status_t finish_region(walk_t *walk, uint32_t first, uint32_t end, bool done,
                                     cleave_error_t *error) {
  const cleave_graph_t *graph = walk->editor->graph;
  for (uint32_t n = first; n < end; n++) {
    cleave_node_t node = walk->flow.order[n];
    uint32_t input_count = cleave_node_input_count(graph, node);
    for (uint32_t k = 0; k < input_count; k++) {
      cleave_value_t value = cleave_node_input(graph, node, k);
      if (!cleave_gradient_flows(&walk->flow, value) || !walk->wanted[value.index]) {
        continue;
      }
      walk->wanted[value.index] = false;
      cleave_error_t cause = CLEAVE_ERROR_INIT;
      cleave_value_t result = walk->results[value.index];
      if (done && cleave_editor_check_fit(walk->editor, value, result, &cause) != CLEAVE_OK) {
        return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "%s: the gradient of '%.100s': %s",
                                walk->editor->rule, cleave_value_name(graph, value), cause.message);
      }
      if (done) {
        CLEAVE_TRY(give(walk, value, result, error));
      }
    }
    for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
      walk->gradients[cleave_node_output(graph, node, k).index] = CLEAVE_VALUE_NONE;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t walk_region(walk_t *walk, uint32_t first, uint32_t end, cleave_error_t *error) {
  const cleave_gradient_regions_t *regions = walk->request->regions;
  const cleave_gradient_region_call_t call = {.region = region_of(walk, walk->flow.order[first]),
                                              .gradients = walk->gradients,
                                              .wanted = walk->wanted,
                                              .results = walk->results};
  char prefix[NAME_SIZE];
  bool any = false;
  bool done = false;
  (void)snprintf(prefix, sizeof prefix, "grad(region %u)", (unsigned)call.region);
  walk->editor->rule = prefix;
  cleave_status_t status = prepare_region(walk, first, end, &any, error);
  if (status == CLEAVE_OK && any) {
    status = regions->ask(regions->context, walk->editor, &call, &done, error);
  }
  if (status == CLEAVE_OK) {
    status = finish_region(walk, first, end, done, error);
  }
  walk->editor->rule = "grad";
  for (uint32_t n = end; status == CLEAVE_OK && any && !done && n-- > first;) {
    status = check_rule(walk, walk->flow.order[n], error);
    status = status == CLEAVE_OK ? walk_node(walk, walk->flow.order[n], error) : status;
  }
  return status;
}

/* The nodes on the way in the order of the regions, and lists for one region. */
static cleave_status_t prepare_regions(walk_t *walk, cleave_error_t *error) {
  const cleave_gradient_regions_t *regions = walk->request->regions;
  size_t values = (size_t)walk->flow.value_count + 1;
  uint32_t bound = cleave_graph_node_bound(walk->editor->graph);
  bool *is_on_way = cleave_allocate_zeroed((size_t)bound + 1, sizeof *is_on_way);
  walk->gradients = cleave_allocate(values, sizeof *walk->gradients);
  walk->results = cleave_allocate(values, sizeof *walk->results);
  walk->wanted = cleave_allocate_zeroed(values, sizeof *walk->wanted);
  if (is_on_way == NULL || walk->gradients == NULL || walk->results == NULL || walk->wanted == NULL) {
    cleave_free(is_on_way);
    return cleave_error_out_of_memory(error);
  }
  for (size_t k = 0; k < values; k++) {
    walk->gradients[k] = CLEAVE_VALUE_NONE;
    walk->results[k] = CLEAVE_VALUE_NONE;
  }
  for (uint32_t k = 0; k < walk->flow.node_count; k++) {
    is_on_way[walk->flow.order[k].index] = true;
  }
  uint32_t count = 0;
  for (uint32_t k = 0; k < regions->node_count; k++) {
    if (is_on_way[regions->order[k].index]) {
      walk->flow.order[count++] = regions->order[k];
    }
  }
  cleave_free(is_on_way);
  return CLEAVE_OK;
}

static cleave_status_t walk_back(walk_t *walk, cleave_value_t *out_gradients, cleave_error_t *error) {
  const cleave_gradient_request_t *request = walk->request;
  if (cleave_gradient_flows(&walk->flow, request->loss)) {
    cleave_value_t seed = CLEAVE_VALUE_NONE;
    CLEAVE_TRY(check_rules(walk, error));
    CLEAVE_TRY(add_seed(walk->editor, request->loss, &seed, error));
    CLEAVE_TRY(give(walk, request->loss, seed, error));
  }
  for (uint32_t end = walk->flow.node_count; end > 0;) {
    uint32_t first = end - 1;
    uint32_t region = region_of(walk, walk->flow.order[first]);
    if (region == CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(walk_node(walk, walk->flow.order[first], error));
      end = first;
      continue;
    }
    while (first > 0 && region_of(walk, walk->flow.order[first - 1]) == region) {
      first--;
    }
    CLEAVE_TRY(walk_region(walk, first, end, error));
    end = first;
  }
  for (size_t k = 0; k < request->wrt_count; k++) {
    CLEAVE_TRY(sum_up(walk, request->wrt[k], &out_gradients[k], error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_gradient_build(cleave_editor_t *editor, const cleave_gradient_request_t *request,
                                      cleave_value_t *out_gradients, cleave_error_t *error) {
  walk_t walk = {.editor = editor, .request = request};
  const char *rule = editor->rule;
  editor->rule = "grad";
  editor->only_adds = true;
  cleave_status_t status = cleave_gradient_flow_init(&walk.flow, editor->graph, request->rules, request->wrt,
                                                     request->wrt_count, request->loss, error);
  if (status == CLEAVE_OK) {
    walk.last = cleave_allocate((size_t)walk.flow.value_count + 1, sizeof *walk.last);
    status = walk.last == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  }
  if (status == CLEAVE_OK && request->regions != NULL) {
    status = prepare_regions(&walk, error);
  }
  if (status == CLEAVE_OK) {
    for (uint32_t k = 0; k < walk.flow.value_count; k++) {
      walk.last[k] = CLEAVE_INDEX_NONE;
    }
    status = walk_back(&walk, out_gradients, error);
  }
  editor->rule = rule;
  editor->only_adds = false;
  cleave_gradient_flow_deinit(&walk.flow);
  cleave_free(walk.last);
  cleave_free(walk.gradients);
  cleave_free(walk.results);
  cleave_free(walk.wanted);
  cleave_array_free(&walk.given);
  cleave_array_free(&walk.operands);
  cleave_arena_deinit(&walk.arena);
  return status;
}
