// SPDX-License-Identifier: Apache-2.0
// Finds what a question is about (nodes and rules by name) and collects the answers.

#include "partition/report/explain_report.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT = 10 };

const char *cleave_fate_name(cleave_fate_t fate) {
  switch (fate) {
    case CLEAVE_FATE_FUSED: return "fused";
    case CLEAVE_FATE_REGION: return "region";
    case CLEAVE_FATE_STAGE: return "stage";
    case CLEAVE_FATE_MADE: return "made";
    case CLEAVE_FATE_REWRITTEN: return "rewritten";
    case CLEAVE_FATE_REFUSED: return "refused";
    case CLEAVE_FATE_LOST: return "lost";
    case CLEAVE_FATE_MISSED: return "missed";
    case CLEAVE_FATE_OUTSIDE: return "outside";
  }
  return "";
}

// ---- rules ----

/* The rules of the plan, which lists them ruleset by ruleset. */
static cleave_status_t map_rules(cleave_why_builder_t *builder, cleave_error_t *error) {
  const cleave_why_request_t *request = builder->request;
  const cleave_rule_t **rules =
      cleave_arena_allocate(builder->arena, (size_t)request->plan->rule_count + 1, sizeof *rules);
  uint32_t next = 0;
  CLEAVE_TRY_MEMORY(rules, error);
  for (uint32_t s = 0; s < request->ruleset_count; s++) {
    for (uint32_t r = 0; r < request->rulesets[s]->rule_count; r++) {
      const cleave_rule_t *rule = &request->rulesets[s]->rules[r];
      bool same =
          next < request->plan->rule_count && strcmp(request->plan->rules[next].name, rule->name) == 0;
      if (!same) {
        return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                "why: the plan was not made by these rules (rule %u is not '%s')",
                                (unsigned)next + 1, rule->name);
      }
      rules[next++] = rule;
    }
  }
  builder->rules = rules;
  return CLEAVE_OK;
}

static cleave_status_t find_rules(const cleave_why_builder_t *builder, bool *wanted, cleave_error_t *error) {
  const cleave_plan_t *plan = builder->request->plan;
  for (uint32_t k = 0; k < builder->request->rule_count; k++) {
    const char *name = builder->request->rules[k];
    cleave_nearest_t nearest = {0};
    bool found = false;
    for (uint32_t r = 0; r < plan->rule_count; r++) {
      cleave_nearest_offer(&nearest, name, plan->rules[r].name);
      if (strcmp(plan->rules[r].name, name) == 0) {
        wanted[r] = found = true;
      }
    }
    if (!found && cleave_why_find_gradient(builder->request, name) == NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "why: no rule is called '%s'%s", name,
                              cleave_nearest_hint(&nearest));
    }
  }
  return CLEAVE_OK;
}

// ---- nodes ----

typedef struct node_list {
  CLEAVE_ARRAY(cleave_why_node_t) items;
  uint32_t left_out;
} node_list_t;

static cleave_status_t add_node(node_list_t *list, const cleave_graph_t *graph, cleave_node_t node,
                                cleave_error_t *error) {
  for (size_t k = 0; k < list->items.count; k++) {
    if (list->items.items[k].graph == graph && list->items.items[k].node.index == node.index) {
      return CLEAVE_OK;
    }
  }
  CLEAVE_ARRAY_PUSH(&list->items, ((cleave_why_node_t){.graph = graph, .node = node}), error);
  return CLEAVE_OK;
}

static bool has_operator(const cleave_graph_t *graph, const char *name) {
  for (uint32_t n = 0; n < cleave_graph_node_bound(graph); n++) {
    cleave_node_t node = {n};
    if (cleave_node_is_live(graph, node) && strcmp(cleave_node_op(graph, node)->name, name) == 0) {
      return true;
    }
  }
  return false;
}

/* Nodes of an operator, up to the limit. */
static cleave_status_t add_by_operator(node_list_t *list, const cleave_graph_t *graph, const char *name,
                                       uint32_t limit, cleave_error_t *error) {
  cleave_nearest_t nearest = {0};
  uint32_t count = 0;
  for (uint32_t n = 0; n < cleave_graph_node_bound(graph); n++) {
    cleave_node_t node = {n};
    if (!cleave_node_is_live(graph, node)) {
      continue;
    }
    cleave_nearest_offer(&nearest, name, cleave_node_op(graph, node)->name);
    if (strcmp(cleave_node_op(graph, node)->name, name) != 0) {
      continue;
    }
    if (count++ < limit) {
      CLEAVE_TRY(add_node(list, graph, node, error));
    }
  }
  list->left_out += count > limit ? count - limit : 0;
  return count > 0
             ? CLEAVE_OK
             : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "why: the model has no operator '%s'%s",
                                name, cleave_nearest_hint(&nearest));
}

/* Finds a node by name, by "Conv#12", or by the name of an output; or NONE. */
static cleave_node_t find_by_name(const cleave_graph_t *graph, const char *name, cleave_nearest_t *nearest) {
  cleave_node_t by_output = CLEAVE_NODE_NONE;
  char label[256];
  for (uint32_t n = 0; n < cleave_graph_node_bound(graph); n++) {
    cleave_node_t node = {n};
    if (!cleave_node_is_live(graph, node)) {
      continue;
    }
    const char *own = cleave_node_name(graph, node);
    if (strcmp(own, name) == 0 || strcmp(cleave_node_label(graph, node, label, sizeof label), name) == 0) {
      return node;
    }
    cleave_nearest_offer(nearest, name, own);
    for (uint32_t k = 0; k < cleave_node_output_count(graph, node) && !cleave_node_exists(by_output); k++) {
      if (strcmp(cleave_value_name(graph, cleave_node_output(graph, node, k)), name) == 0) {
        by_output = node;
      }
    }
  }
  return by_output;
}

static cleave_status_t find_node(const cleave_why_request_t *request, const char *name, node_list_t *list,
                                 uint32_t limit, cleave_error_t *error) {
  const cleave_plan_t *plan = request->plan;
  const cleave_graph_t *graph = plan->graph;
  if (strncmp(name, "op:", 3) == 0) {
    bool is_gone = plan->source != graph && !has_operator(graph, name + 3);
    return add_by_operator(list, is_gone ? plan->source : graph, name + 3, limit, error);
  }
  if (name[0] == '#') {
    char *end = NULL;
    unsigned long number = strtoul(name + 1, &end, 10);
    bool is_number = end != name + 1 && *end == '\0' && name[1] != '-' && number < UINT32_MAX;
    cleave_node_t node = {is_number ? (uint32_t)number : CLEAVE_INDEX_NONE};
    graph = request->numbers_of_source || !cleave_node_is_live(graph, node) ? plan->source : graph;
    if (!is_number || !cleave_node_is_live(graph, node)) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "why: the model has no node '%s'", name);
    }
    if (cleave_node_is_live(plan->graph, node)) {
      return add_node(list, plan->graph, node, error);
    }
    cleave_nearest_t nobody = {0};
    const char *own = cleave_node_name(graph, node);
    cleave_node_t namesake = request->numbers_of_source && own[0] != '\0'
                                 ? find_by_name(plan->graph, own, &nobody)
                                 : CLEAVE_NODE_NONE;
    return cleave_node_exists(namesake) ? add_node(list, plan->graph, namesake, error)
                                        : add_node(list, graph, node, error);
  }
  cleave_nearest_t nearest = {0};
  cleave_node_t node = find_by_name(graph, name, &nearest);
  if (!cleave_node_exists(node) && plan->source != plan->graph) {
    graph = plan->source;
    node = find_by_name(graph, name, &nearest);
  }
  if (!cleave_node_exists(node)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "why: the model has no node '%s'%s", name,
                            cleave_nearest_hint(&nearest));
  }
  return add_node(list, graph, node, error);
}

// ---- answers ----

static cleave_status_t judge_nodes(cleave_why_builder_t *builder, cleave_why_t *why, const bool *wanted,
                                   cleave_error_t *error) {
  const cleave_why_request_t *request = builder->request;
  uint32_t rule_count = request->plan->rule_count;
  node_list_t list = {0};
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < request->node_count; k++) {
    CLEAVE_TRY_CLEANUP(find_node(request, request->nodes[k], &list, why->limit, error));
  }
  for (size_t k = 0; k < list.items.count; k++) {
    cleave_why_node_t *node = &list.items.items[k];
    cleave_verdict_t *verdicts = cleave_arena_allocate(&why->arena, (size_t)rule_count + 1, sizeof *verdicts);
    CLEAVE_TRY_CLEANUP(verdicts == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK);
    for (uint32_t r = 0; r < rule_count; r++) {
      if (wanted[r]) {
        CLEAVE_TRY_CLEANUP(cleave_why_judge(builder, r, node->node, &verdicts[node->verdict_count++], error));
      }
    }
    node->verdicts = verdicts;
    CLEAVE_TRY_CLEANUP(
        cleave_why_report_gradient(builder, cleave_node_op(node->graph, node->node), &node->gradient, error));
  }
  why->node_count = (uint32_t)list.items.count;
  why->nodes_left_out = list.left_out;
  why->nodes = cleave_arena_copy(&why->arena, list.items.items, list.items.count * sizeof *list.items.items);
  status = why->nodes == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
cleanup:
  cleave_array_free(&list.items);
  return status;
}

static cleave_status_t report_rules(cleave_why_builder_t *builder, cleave_why_t *why, const bool *wanted,
                                    cleave_error_t *error) {
  uint32_t rule_count = builder->request->plan->rule_count;
  cleave_why_rule_t *reports = cleave_arena_allocate(&why->arena, (size_t)rule_count + 1, sizeof *reports);
  CLEAVE_TRY_MEMORY(reports, error);
  why->rules = reports;
  for (uint32_t r = 0; r < rule_count; r++) {
    if (wanted[r]) {
      CLEAVE_TRY(cleave_why_report_rule(builder, r, &reports[why->rule_count], error));
      why->rule_count++;
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_why_create(const cleave_why_request_t *request, cleave_why_t **out_why,
                                  cleave_error_t *error) {
  *out_why = NULL;
  cleave_status_t status = CLEAVE_OK;
  cleave_why_t *why = cleave_allocate_zeroed(1, sizeof *why);
  bool *wanted = cleave_allocate_zeroed(request->plan->rule_count, sizeof *wanted);
  cleave_why_builder_t builder = {.request = request};
  CLEAVE_TRY_MEMORY_CLEANUP(why != NULL && wanted != NULL, error);
  builder.arena = &why->arena;
  why->plan = request->plan;
  why->limit = request->limit == 0 ? LIMIT : request->limit;
  why->is_summary = request->node_count == 0 && request->rule_count == 0;
  CLEAVE_TRY_CLEANUP(map_rules(&builder, error));
  CLEAVE_TRY_CLEANUP(
      cleave_history_create(request->plan, request->fold, request->fold_context, &why->history, error));
  builder.history = why->history;
  for (uint32_t r = 0; request->rule_count == 0 && r < request->plan->rule_count; r++) {
    wanted[r] = true;
  }
  CLEAVE_TRY_CLEANUP(find_rules(&builder, wanted, error));
  CLEAVE_TRY_CLEANUP(request->node_count > 0 ? judge_nodes(&builder, why, wanted, error)
                                             : report_rules(&builder, why, wanted, error));
  CLEAVE_TRY_CLEANUP(cleave_why_report_gradients(&builder, why, error));
  cleave_history_release_explainers(why->history);
  *out_why = why;
  why = NULL;
cleanup:
  cleave_free(wanted);
  cleave_why_destroy(why);
  return status;
}

void cleave_why_destroy(cleave_why_t *why) {
  if (why != NULL) {
    cleave_history_destroy(why->history);
    cleave_arena_deinit(&why->arena);
    cleave_free(why);
  }
}
