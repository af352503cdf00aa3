// SPDX-License-Identifier: Apache-2.0
// The boundaries of a plan's regions with the reason for every edge: the last entry of the region's own rule
// about the neighbour in the log. Two sets of one rule are separate because of a cut or because of their
// groups.

#include "partition/report/boundary_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reporter {
  cleave_boundary_report_t *report;
  const cleave_plan_t *plan;
  const cleave_graph_t *graph;
} reporter_t;

static uint32_t region_of(const reporter_t *reporter, cleave_node_t node) {
  return cleave_node_exists(node) ? reporter->plan->node_region[node.index] : CLEAVE_INDEX_NONE;
}

static cleave_status_t set_reason(const reporter_t *reporter, cleave_boundary_edge_t *edge,
                                  cleave_stop_cause_t cause, const char *text, cleave_error_t *error) {
  edge->cause = cause;
  edge->reason = cleave_arena_copy_text(&reporter->report->arena, text, strlen(text));
  return edge->reason == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
}

/* ---- reasons ---- */

static const cleave_cut_t *find_cut(const reporter_t *reporter, uint32_t region, uint32_t other) {
  const cleave_boundary_log_t *log = reporter->report->log;
  for (size_t k = 0; k < log->cuts.count; k++) {
    const cleave_cut_t *cut = &log->cuts.items[k];
    uint32_t a = region_of(reporter, cut->nodes[0]);
    uint32_t b = region_of(reporter, cut->nodes[1]);
    if ((a == region && b == other) || (a == other && b == region)) {
      return cut;
    }
  }
  return NULL;
}

/* The neighbour is in another region that the same rule made. */
static cleave_status_t explain_sibling(const reporter_t *reporter, cleave_boundary_edge_t *edge,
                                       cleave_error_t *error) {
  const cleave_plan_t *plan = reporter->plan;
  uint32_t rule = plan->regions[edge->region].rule;
  const cleave_cut_t *cut = find_cut(reporter, edge->region, edge->other);
  const cleave_stop_t *outside = cleave_boundary_log_find(reporter->report->log, edge->outside, rule);
  const cleave_stop_t *inside = cleave_boundary_log_find(reporter->report->log, edge->inside, rule);
  const char *name = plan->regions[edge->other].name;
  char label[128];
  char text[512];
  if (cut == NULL && outside != NULL && outside->cause == CLEAVE_STOP_GROUP) {
    bool same = inside != NULL && strcmp(inside->text, outside->text) == 0;
    if (!same) {
      (void)snprintf(text, sizeof text, "%s ('%s'), this region is %s", outside->text, name,
                     inside == NULL ? "in another" : inside->text);
      return set_reason(reporter, edge, CLEAVE_STOP_GROUP, text, error);
    }
  } else if (cut == NULL && outside != NULL) {
    return set_reason(reporter, edge, outside->cause, outside->text, error);
  }
  if (cut != NULL && !cleave_node_exists(cut->outside)) {
    (void)snprintf(text, sizeof text, "in '%s': the search for a cycle took too many steps", name);
    return set_reason(reporter, edge, CLEAVE_STOP_LIMIT, text, error);
  }
  if (cut == NULL) {
    (void)snprintf(text, sizeof text, "in '%s': together they would close a cycle", name);
  } else {
    (void)snprintf(text, sizeof text, "in '%s': together they would close a cycle through '%s'", name,
                   cleave_node_label(reporter->graph, cut->outside, label, sizeof label));
  }
  return set_reason(reporter, edge, CLEAVE_STOP_CYCLE, text, error);
}

/* The region is a fusion that no region rule took: the fusion grew, or no growth took place. */
static cleave_status_t explain_fusion(const reporter_t *reporter, cleave_boundary_edge_t *edge,
                                      cleave_error_t *error) {
  const cleave_stop_t *own = cleave_boundary_log_find(reporter->report->log, edge->outside,
                                                      reporter->plan->regions[edge->region].rule);
  if (own != NULL && own->cause != CLEAVE_STOP_REGION && own->cause != CLEAVE_STOP_GROUP) {
    return set_reason(reporter, edge, own->cause, own->text, error);
  }
  const cleave_stop_t *stop =
      cleave_boundary_log_find(reporter->report->log, edge->inside, CLEAVE_INDEX_NONE);
  if (stop != NULL && stop->cause != CLEAVE_STOP_REGION && stop->cause != CLEAVE_STOP_GROUP) {
    return set_reason(reporter, edge, stop->cause, stop->text, error);
  }
  return set_reason(reporter, edge, CLEAVE_STOP_NO_RULE, "no region rule took this fusion", error);
}

/* A selector is asked about a node from both sides: the answer from the side of the edge counts. */
static const cleave_stop_t *answer_of_side(const reporter_t *reporter, const cleave_boundary_edge_t *edge,
                                           const cleave_stop_t *stop) {
  const cleave_boundary_log_t *log = reporter->report->log;
  const char *asked = edge->is_input ? "'select_input'" : "'select_output'";
  for (const cleave_stop_t *other = stop; other->cause == CLEAVE_STOP_SELECTOR;
       other = &log->stops.items[other->next]) {
    if (other->rule == stop->rule && strncmp(other->text, asked, strlen(asked)) == 0) {
      return other;
    }
    if (other->next == CLEAVE_INDEX_NONE) {
      break;
    }
  }
  return stop;
}

static cleave_status_t explain(const reporter_t *reporter, cleave_boundary_edge_t *edge,
                               cleave_error_t *error) {
  const cleave_plan_t *plan = reporter->plan;
  uint32_t rule = plan->regions[edge->region].rule;
  if (!cleave_node_exists(edge->outside)) {
    return set_reason(reporter, edge, CLEAVE_STOP_MODEL,
                      edge->is_input ? "an input of the model" : "an output of the model", error);
  }
  if (plan->node_stage != NULL &&
      plan->node_stage[edge->outside.index] != plan->node_stage[plan->regions[edge->region].nodes[0].index]) {
    return set_reason(reporter, edge, CLEAVE_STOP_STAGE, "in another stage", error);
  }
  if (plan->rules[rule].kind == CLEAVE_RULE_FUSE) {
    return explain_fusion(reporter, edge, error);
  }
  if (edge->other != CLEAVE_INDEX_NONE && plan->regions[edge->other].rule == rule) {
    return explain_sibling(reporter, edge, error);
  }
  const cleave_stop_t *stop = cleave_boundary_log_find(reporter->report->log, edge->outside, rule);
  if (stop == NULL || stop->cause == CLEAVE_STOP_GROUP) {
    return set_reason(reporter, edge, CLEAVE_STOP_LIMIT, "left apart when its set was split", error);
  }
  stop = answer_of_side(reporter, edge, stop);
  char text[512];
  if (stop->cause == CLEAVE_STOP_REGION && edge->other != CLEAVE_INDEX_NONE) {
    (void)snprintf(text, sizeof text, "in '%s' on %s already", plan->regions[edge->other].name,
                   plan->regions[edge->other].backend);
  } else if (stop->cause == CLEAVE_STOP_BACKEND) {
    (void)snprintf(text, sizeof text, "%s: %s", plan->rules[rule].backend, stop->text);
  } else {
    (void)snprintf(text, sizeof text, "%s", stop->text);
  }
  return set_reason(reporter, edge, stop->cause, text, error);
}

/* ---- edges ---- */

static cleave_status_t add_edge(const reporter_t *reporter, uint32_t region, bool is_input,
                                cleave_value_t value, cleave_node_t inside, cleave_node_t outside,
                                cleave_error_t *error) {
  cleave_boundary_edge_t edge = {.region = region,
                                 .is_input = is_input,
                                 .value = value,
                                 .inside = inside,
                                 .outside = outside,
                                 .other = region_of(reporter, outside),
                                 .bytes = cleave_value_bytes(reporter->graph, value)};
  CLEAVE_TRY(explain(reporter, &edge, error));
  CLEAVE_ARRAY_PUSH(&reporter->report->edges, edge, error);
  return CLEAVE_OK;
}

static cleave_node_t first_reader(const reporter_t *reporter, cleave_value_t value, uint32_t region) {
  cleave_use_t use = cleave_value_first_use(reporter->graph, value);
  while (cleave_use_exists(use) && region_of(reporter, cleave_use_node(reporter->graph, use)) != region) {
    use = cleave_use_next(reporter->graph, use);
  }
  return cleave_use_exists(use) ? cleave_use_node(reporter->graph, use) : CLEAVE_NODE_NONE;
}

static cleave_status_t list_edges(const reporter_t *reporter, uint32_t index, cleave_error_t *error) {
  const cleave_plan_region_t *region = &reporter->plan->regions[index];
  const cleave_graph_t *graph = reporter->graph;
  for (uint32_t k = 0; k < region->input_count; k++) {
    cleave_value_t value = region->inputs[k];
    CLEAVE_TRY(add_edge(reporter, index, true, value, first_reader(reporter, value, index),
                        cleave_value_producer(graph, value), error));
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    cleave_value_t value = region->outputs[k];
    cleave_node_t maker = cleave_value_producer(graph, value);
    cleave_node_t last = {CLEAVE_INDEX_NONE - 1}; /* uses of one reader usually are adjacent */
    cleave_use_t use = cleave_value_first_use(graph, value);
    for (; cleave_use_exists(use); use = cleave_use_next(graph, use)) {
      cleave_node_t reader = cleave_use_node(graph, use);
      if (region_of(reporter, reader) != index && reader.index != last.index) {
        CLEAVE_TRY(add_edge(reporter, index, false, value, maker, reader, error));
        last = reader;
      }
    }
  }
  return CLEAVE_OK;
}

/* ---- groups ---- */

static const cleave_op_t *op_of(const reporter_t *reporter, const cleave_boundary_edge_t *edge) {
  return cleave_node_exists(edge->outside) ? cleave_node_op(reporter->graph, edge->outside) : NULL;
}

static cleave_status_t group_edge(const reporter_t *reporter, uint32_t index, size_t first_group,
                                  cleave_error_t *error) {
  cleave_boundary_report_t *report = reporter->report;
  const cleave_boundary_edge_t *edge = &report->edges.items[index];
  const cleave_op_t *op = op_of(reporter, edge);
  size_t k = first_group;
  while (k < report->groups.count) {
    const cleave_boundary_group_t *group = &report->groups.items[k];
    if (group->is_input == edge->is_input && group->op == op && group->cause == edge->cause &&
        strcmp(group->reason, edge->reason) == 0) {
      break;
    }
    k++;
  }
  if (k == report->groups.count) {
    cleave_boundary_group_t group = {.region = edge->region,
                                     .is_input = edge->is_input,
                                     .cause = edge->cause,
                                     .reason = edge->reason,
                                     .op = op,
                                     .example = index};
    CLEAVE_ARRAY_PUSH(&report->groups, group, error);
  }
  report->groups.items[k].edge_count++;
  return CLEAVE_OK;
}

/* Counts the values of the groups of one region: an edge adds its value if no earlier edge of its group has
 * it. */
static void count_values(const reporter_t *reporter, uint32_t first_edge, size_t first_group) {
  cleave_boundary_report_t *report = reporter->report;
  for (size_t g = first_group; g < report->groups.count; g++) {
    cleave_boundary_group_t *group = &report->groups.items[g];
    uint32_t last = CLEAVE_INDEX_NONE; /* edges of one value are adjacent */
    for (size_t k = first_edge; k < report->edges.count; k++) {
      const cleave_boundary_edge_t *edge = &report->edges.items[k];
      if (edge->is_input != group->is_input || edge->cause != group->cause || edge->value.index == last ||
          op_of(reporter, edge) != group->op || strcmp(edge->reason, group->reason) != 0) {
        continue;
      }
      last = edge->value.index;
      group->value_count++;
      group->unknown_count += edge->bytes < 0.0;
      group->bytes += edge->bytes > 0.0 ? edge->bytes : 0.0;
    }
  }
}

static int compare_groups(const void *a, const void *b) {
  const cleave_boundary_group_t *x = a;
  const cleave_boundary_group_t *y = b;
  if (x->is_input != y->is_input) {
    return x->is_input ? -1 : 1;
  }
  if (x->bytes != y->bytes) {
    return x->bytes > y->bytes ? -1 : 1;
  }
  return (x->example > y->example) - (x->example < y->example);
}

static cleave_status_t report_region(const reporter_t *reporter, uint32_t region, cleave_error_t *error) {
  cleave_boundary_report_t *report = reporter->report;
  size_t first_edge = report->edges.count;
  size_t first_group = report->groups.count;
  CLEAVE_TRY(list_edges(reporter, region, error));
  for (size_t k = first_edge; k < report->edges.count; k++) {
    CLEAVE_TRY(group_edge(reporter, (uint32_t)k, first_group, error));
  }
  count_values(reporter, (uint32_t)first_edge, first_group);
  if (report->groups.count > first_group) {
    qsort(report->groups.items + first_group, report->groups.count - first_group,
          sizeof *report->groups.items, compare_groups);
  }
  return CLEAVE_OK;
}

/* ---- the whole ---- */

cleave_status_t cleave_boundary_report_create(const cleave_graph_t *graph,
                                              const cleave_ruleset_t *const *rulesets, uint32_t ruleset_count,
                                              const cleave_partition_options_t *options,
                                              cleave_boundary_report_t **out_report, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  cleave_partition_options_t own = options == NULL ? (cleave_partition_options_t){0} : *options;
  cleave_boundary_report_t *report = cleave_allocate_zeroed(1, sizeof *report);
  CLEAVE_TRY_MEMORY(report, error);
  CLEAVE_TRY_CLEANUP(cleave_boundary_log_create(graph, &report->log, error));
  own.log = report->log;
  own.assume = NULL;
  CLEAVE_TRY_CLEANUP(cleave_partition(graph, rulesets, ruleset_count, &own, &report->plan, error));
  reporter_t reporter = {.report = report, .plan = report->plan, .graph = graph};
  for (uint32_t k = 0; k < report->plan->region_count; k++) {
    CLEAVE_TRY_CLEANUP(report_region(&reporter, k, error));
  }
  own.log = NULL;
  CLEAVE_TRY_CLEANUP(cleave_boundary_report_assume(report, rulesets, ruleset_count, &own, error));
  *out_report = report;
  report = NULL;
cleanup:
  cleave_boundary_report_destroy(report);
  return status;
}

void cleave_boundary_report_destroy(cleave_boundary_report_t *report) {
  if (report == NULL) {
    return;
  }
  cleave_plan_destroy(report->plan);
  cleave_boundary_log_destroy(report->log);
  cleave_array_free(&report->edges);
  cleave_array_free(&report->groups);
  cleave_array_free(&report->what_ifs);
  cleave_arena_deinit(&report->arena);
  cleave_free(report);
}
